package project

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/vault"
)

// This file keeps the pages of each project in the bucket, a projection like the
// indexes. They are written when a stream has been applied and none of the
// project's is behind, by a sweep where nobody said so, and by a rebuild.
//
// Objects:
//
//	derived/vault/<tenant>/<project>/<page>        shop's decisions.md, evidence excepted
//	derived/vault/<tenant>/<project>/_state.json   what stands there, and of which state of the log; written last

// vaultState is the marker: which pages stand there.
type vaultState struct {
	V     int                 `json:"v"`
	Key   memory.SHA          `json:"key"`   // of the vault.State they were made of
	Pages map[string]pageMark `json:"pages"` // by path
}

// pageMark is a page as it was written.
type pageMark struct {
	SHA256    memory.SHA `json:"sha256"`
	SizeBytes int64      `json:"size_bytes"`
}

const (
	vaultStateVersion = 1
	// maxVaultState bounds the marker: 10,000 pages are 1.5 MB.
	maxVaultState = 64 << 20
	vaultMarker   = "_state.json"
)

func (f *Function) vaultPrefix(project string) string {
	return "derived/vault/" + f.cfg.Tenant + "/" + project + "/"
}

// withVault reports whether this function was given what pages need.
func (f *Function) withVault() bool { return f.vault != nil }

// readVault reads the marker; the zero value where there is none or none that can
// be used.
func (f *Function) readVault(ctx context.Context, project string) (s vaultState, err error) {
	b, _, err := f.cfg.Bucket.ReadAll(ctx, f.vaultPrefix(project)+vaultMarker, maxVaultState)
	if fault.Is(err, fault.NotFound) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if json.Unmarshal(b, &s) != nil || s.V != vaultStateVersion {
		return vaultState{}, nil
	}
	return s, nil
}

// standing lists the pages that are in the bucket, by path, with their sizes.
func (f *Function) standing(ctx context.Context, project string) (map[string]int64, error) {
	prefix := f.vaultPrefix(project)
	out := map[string]int64{}
	for info, err := range f.cfg.Bucket.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		if p := strings.TrimPrefix(info.Key, prefix); p != vaultMarker {
			out[p] = info.SizeBytes
		}
	}
	return out, nil
}

// writeVault brings the pages of one project up to date. With whole every page is
// written, whatever the marker says.
func (f *Function) writeVault(ctx context.Context, project string, whole bool) (err error) {
	defer fault.Wrap(&err, "vault of %s", project)
	if !f.withVault() {
		return nil
	}
	f.vaultMu.Lock()
	defer f.vaultMu.Unlock()
	state, err := f.vault.State(ctx, project)
	if err != nil {
		return err
	}
	old, err := f.readVault(ctx, project)
	if err != nil {
		return err
	}
	there, err := f.standing(ctx, project)
	if err != nil {
		return err
	}
	key := state.Key()
	if !whole && old.Key == key && same(old.Pages, there) {
		return nil
	}
	made, err := f.render(ctx, project, key, false)
	if err != nil {
		return err
	}
	v := made.vault
	prefix := f.vaultPrefix(project)
	next := vaultState{V: vaultStateVersion, Key: made.key, Pages: make(map[string]pageMark, len(v.Files))}
	for i := range v.Files {
		p := &v.Files[i]
		m := pageMark{memory.Sum(p.Bytes), int64(len(p.Bytes))}
		next.Pages[p.Path] = m
		if size, ok := there[p.Path]; ok && size == m.SizeBytes && old.Pages[p.Path] == m && !whole {
			continue
		}
		if _, err := f.cfg.Bucket.Put(ctx, prefix+p.Path, p.Bytes); err != nil {
			return err
		}
	}
	for _, p := range slices.Sorted(maps.Keys(there)) {
		if _, ok := next.Pages[p]; !ok {
			if err := f.cfg.Bucket.Delete(ctx, prefix+p); err != nil {
				return err
			}
		}
	}
	b, err := json.Marshal(next)
	if err != nil {
		return fault.New(fault.Internal, "encode the marker: %v", err)
	}
	_, err = f.cfg.Bucket.Put(ctx, prefix+vaultMarker, append(b, '\n'))
	return err
}

// same reports whether the pages of a marker are those that stand there.
func same(pages map[string]pageMark, there map[string]int64) bool {
	if len(pages) != len(there) {
		return false
	}
	for p, m := range pages {
		if size, ok := there[p]; !ok || size != m.SizeBytes {
			return false
		}
	}
	return true
}

// rendered is the last rendering of a project, so that the pages of one listing are
// made once.
type rendered struct {
	project  string
	key      memory.SHA
	evidence bool
	vault    *vault.Vault
	listing  func() *VaultListing // made once
}

// render makes the pages of a project in state key; vaultMu is held. Notes that
// followed their question are moved in the log first, which is another state: that of
// the answer counts.
func (f *Function) render(ctx context.Context, project string, key memory.SHA, evidence bool) (*rendered, error) {
	at := slices.IndexFunc(f.rendered, func(r *rendered) bool { return r.project == project && r.evidence == evidence })
	if at >= 0 && f.rendered[at].key == key {
		return f.rendered[at], nil
	}
	m, err := f.vault.Load(ctx, project)
	if err != nil {
		return &rendered{}, err
	}
	if moves := vault.Moves(m); len(moves) > 0 {
		for i := range moves {
			if _, err := f.cfg.Log.PutNote(ctx, &moves[i]); err != nil {
				return &rendered{}, err
			}
		}
		state, err := f.vault.State(ctx, project)
		if err != nil {
			return &rendered{}, err
		}
		key = state.Key()
		if m, err = f.vault.Load(ctx, project); err != nil {
			return &rendered{}, err
		}
	}
	m.Evidence = evidence
	v := vault.Render(m)
	r := &rendered{project, key, evidence, v, sync.OnceValue(func() *VaultListing { return listingOf(project, v) })}
	if at >= 0 {
		f.rendered = slices.Delete(f.rendered, at, at+1)
	}
	f.rendered = slices.Insert(f.rendered, 0, r)
	f.rendered = f.rendered[:min(len(f.rendered), maxRendered)]
	return r, nil
}

// maxRendered bounds the renderings in memory: 10,000 pages are some 20 MB.
const maxRendered = 4

// afterApply writes the pages when the stream that was just applied was the last
// one that was behind. It never fails what it follows: the sweep comes back to it.
func (f *Function) afterApply(ctx context.Context, project, stream string) {
	if !f.withVault() || stream == memory.AdmitStream {
		return
	}
	ready, err := f.atRest(ctx, project)
	if err == nil && ready {
		err = f.writeVault(ctx, project, false)
	}
	if err != nil && ctx.Err() == nil {
		f.cfg.Logger.WarnContext(ctx, "the pages of a project wait for the next sweep", slog.String("project", project), slog.Any("err", err))
	}
}

// atRest reports whether every stream that answers has decided all that is
// admitted, and both indexes hold it: a bulk upload renders once and not once a
// part and question.
func (f *Function) atRest(ctx context.Context, project string) (bool, error) {
	admitted, err := f.cfg.Log.Head(ctx, project, memory.AdmitStream)
	if err != nil {
		return false, err
	}
	streams, err := f.cfg.Catalog.ServingStreams(ctx, project)
	if err != nil {
		return false, err
	}
	for _, st := range streams {
		head, err := f.cfg.Log.Head(ctx, project, st.Name)
		if err != nil {
			return false, err
		}
		at, err := f.applied(ctx, project, st.Name)
		if err != nil || at < head.Seq {
			return false, err
		}
		if st.Only > 0 {
			continue // it folds one part alone
		}
		if done, err := f.decided(ctx, project, st.Name, head.Seq, admitted.Seq); err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// decided reports whether a stream that ends with segment last has folded every
// part up to admitted, and no run of it is open.
func (f *Function) decided(ctx context.Context, project, stream string, last, admitted int64) (bool, error) {
	if admitted == 0 {
		return true, nil
	}
	ended := map[memory.SHA]bool{}
	for seq := last; seq > 0; seq-- {
		seg, err := f.cfg.Log.Segment(ctx, project, stream, seq)
		if err != nil {
			return false, err
		}
		for _, r := range slices.Backward(seg.Records) {
			switch r := r.(type) {
			case *memory.RunEnd:
				if r.Admit > 0 && !r.Continued {
					return r.Admit >= admitted, nil
				}
				ended[r.Run] = true
			case *memory.Run:
				if !ended[r.Run] {
					return false, nil
				}
			}
		}
	}
	return false, nil
}

// sweepVaults writes the pages that are behind.
func (f *Function) sweepVaults(ctx context.Context) error {
	if !f.withVault() {
		return nil
	}
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return err
	}
	var first error
	for _, p := range projects {
		err := f.writeVault(ctx, p, false)
		if f.beyond(ctx, p, err) {
			continue
		}
		if err != nil && first == nil {
			first = err
		}
		if ctx.Err() != nil {
			return fault.As(fault.Unavailable, context.Cause(ctx))
		}
	}
	return first
}

// beyond reports an error that no repetition cures: a question file that people
// broke, or a damaged object. The commands that read them say so; the indexes of
// the project do not wait.
func (f *Function) beyond(ctx context.Context, project string, err error) bool {
	if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Corrupt) {
		return false
	}
	f.cfg.Logger.WarnContext(ctx, "the pages of a project can not be written", slog.String("project", project), slog.Any("err", err))
	return true
}
