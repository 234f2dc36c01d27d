package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/vault"
)

// vaultChecked is what mem vault --check says of one folder.
type vaultChecked struct {
	Folder    string          `json:"folder"`
	Project   string          `json:"project"`
	Pages     int             `json:"pages"`
	Links     int             `json:"links"`
	Citations int             `json:"citations"`
	Behind    int             `json:"behind"` // pages that stand as they were written, and are others by now
	Problems  []vault.Problem `json:"problems"`
}

// vaultFolders are the folders below out that hold pages, by name.
func vaultFolders(out string) ([]string, error) {
	entries, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, placeFault(err)
	}
	var found []string
	for _, e := range entries {
		at := filepath.Join(out, e.Name())
		if _, err := os.Stat(filepath.Join(at, vault.FolderStateName)); err == nil {
			found = append(found, at)
		}
	}
	return found, nil
}

// checkFolder reads the pages that were written into a folder, and looks whether
// what they name is there, and whether they are what the server would write now.
func checkFolder(ctx context.Context, cl *client, at string) (*vaultChecked, error) {
	b, err := os.ReadFile(filepath.Join(at, vault.FolderStateName))
	if err != nil {
		return nil, placeFault(err)
	}
	var s vault.FolderState
	if err := json.Unmarshal(b, &s); err != nil || s.V != vault.FolderStateVersion {
		return nil, fault.At(fault.Invalid, filepath.Join(at, vault.FolderStateName), "write it again with: mem vault", "not a state file of version %d", vault.FolderStateVersion)
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return nil, placeFault(err)
	}
	v := vaultSync{client: cl, project: s.Project, root: root}
	defer v.close()
	r := &vaultChecked{Folder: at, Project: s.Project, Problems: []vault.Problem{}}
	var files []vault.File
	for _, p := range slices.Sorted(maps.Keys(s.Pages)) {
		v.evidence = v.evidence || strings.HasPrefix(p, "evidence/")
		b, err := v.read(p, maxVaultFile)
		if err != nil {
			r.Problems = append(r.Problems, vault.Problem{Path: p, Msg: "the page can not be read: " + causeText(err)})
			continue
		}
		files = append(files, vault.File{Path: p, Bytes: b})
	}
	r.Pages, r.Links, r.Citations = len(files), vault.Links(files), len(vault.Citations(files))
	r.Problems = append(r.Problems, vault.Check(files)...)
	if err := v.compare(ctx, s.Pages, files, r); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.Problems, func(a, b vault.Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return r, nil
}

// compare looks at the pages of a folder beside those that the server has now. One
// that differs and is as it was written is behind, which is no problem; others are
// asked for.
func (v *vaultSync) compare(ctx context.Context, written map[string]vault.Written, files []vault.File, r *vaultChecked) error {
	l, err := v.list(ctx)
	if err != nil {
		return err
	}
	said := map[string]bool{}
	for _, p := range r.Problems {
		said[p.Path] = true
	}
	add := func(at, msg string) { r.Problems = append(r.Problems, vault.Problem{Path: at, Msg: msg}) }
	now := map[string]memory.SHA{}
	for _, p := range l.Pages {
		now[p.Path] = p.Body
	}
	var differ []vault.File
	for _, f := range files {
		body, w := vault.Split(f.Bytes).BodySum(), written[f.Path]
		switch is, ok := now[f.Path]; {
		case ok && body == is:
		case body == w.Body || body == w.Next:
			r.Behind++
		case !ok:
			add(f.Path, "it was changed, and no such page is written now; mem vault takes it away")
		default:
			differ = append(differ, f)
		}
	}
	for at := range now {
		if _, ok := written[at]; !ok {
			r.Behind++
		}
	}
	for batch := range slices.Chunk(differ, vaultBatch) {
		var steps []vault.Step
		for _, f := range batch {
			steps = append(steps, vault.Step{Path: f.Path, Write: true})
		}
		texts, err := v.fetch(ctx, steps)
		if err != nil {
			return err
		}
		for _, f := range batch {
			b, ok := texts[f.Path]
			if !ok {
				r.Behind++ // gone since the listing
				continue
			}
			r.Problems = append(r.Problems, vault.Differences(f, vault.File{Path: f.Path, Bytes: b}, said[f.Path])...)
		}
	}
	return nil
}

// causeText is an error without the path, which stands before it.
func causeText(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
