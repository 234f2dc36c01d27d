package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/vault"
)

// vaultChecked is what mem vault --check says of one folder.
type vaultChecked struct {
	Folder    string          `json:"folder"`
	Project   string          `json:"project"`
	Pages     int             `json:"pages"`
	Links     int             `json:"links"`
	Citations int             `json:"citations"`
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
// what they name is there.
func checkFolder(at string) (*vaultChecked, error) {
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
	v := vaultSync{root: root}
	defer v.close()
	r := &vaultChecked{Folder: at, Project: s.Project, Problems: []vault.Problem{}}
	var files []vault.File
	for _, p := range slices.Sorted(maps.Keys(s.Pages)) {
		b, err := v.read(p, maxVaultFile)
		if err != nil {
			r.Problems = append(r.Problems, vault.Problem{Path: p, Msg: "the page can not be read: " + causeText(err)})
			continue
		}
		files = append(files, vault.File{Path: p, Bytes: b})
	}
	r.Pages, r.Links, r.Citations = len(files), vault.Links(files), len(vault.Citations(files))
	r.Problems = append(r.Problems, vault.Check(files)...)
	return r, nil
}

// causeText is an error without the path, which stands before it.
func causeText(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
