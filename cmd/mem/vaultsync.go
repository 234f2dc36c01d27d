package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/functions/project"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/vault"
)

// vaultSync keeps the folder of one project. What is done with each file is decided
// by shared/vault; here it is read and written. Order: people's regions go to the
// log, the state file says which pages are about to be written, the pages, the
// state file.
type vaultSync struct {
	client   *client
	project  string
	out      string // folder of the folders
	evidence bool

	root *os.Root
	// paths are those at which pages stand or stood, ascending.
	paths []string
	// seen are the marks of files that have not changed since by size and time.
	seen map[string]seenFile
}

type seenFile struct {
	size int64
	mod  time.Time
	mark vault.Mark
}

// vaultReport is what a sync did.
type vaultReport struct {
	Project   string       `json:"project"`
	Folder    string       `json:"folder"`
	Pages     int          `json:"pages"`
	Written   int          `json:"written"`
	Removed   int          `json:"removed"`
	Saved     int          `json:"saved"` // Notes regions that went to the log
	Masked    []vaultNamed `json:"masked"`
	Aside     []vaultNamed `json:"aside"`
	Refused   []vaultNamed `json:"refused"`
	Conflicts []string     `json:"conflicts"` // pages whose Notes hold several versions
	Stats     vault.Stats  `json:"stats"`

	unsettled bool // something kept changing
}

// vaultNamed is one file of which something is to be said.
type vaultNamed struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Kept   string `json:"kept_as,omitempty"`
}

const (
	// maxVaultFile bounds a file that is read as a page: a region of the greatest
	// size and a page's own part.
	maxVaultFile = 8 << 20
	// vaultBatch bounds the pages of one request, notesBatch the bytes of regions.
	vaultBatch = 500
	notesBatch = 2 << 20
	// maxVaultRounds bounds how often a folder that changes meanwhile is looked at
	// again; what is left then waits for the next call.
	maxVaultRounds = 4
)

// sync brings the folder in step once.
func (v *vaultSync) sync(ctx context.Context) (*vaultReport, error) {
	r := &vaultReport{Project: v.project, Masked: []vaultNamed{}, Aside: []vaultNamed{}, Refused: []vaultNamed{}, Conflicts: []string{}}
	for round := 1; ; round++ {
		l, err := v.list(ctx)
		if err != nil {
			return nil, err
		}
		if err := v.open(l.Folder); err != nil {
			return nil, err
		}
		again, err := v.round(ctx, l, r)
		if err != nil {
			return nil, err
		}
		if again == "" || round == maxVaultRounds {
			if r.unsettled = again != ""; r.unsettled {
				r.Refused = append(r.Refused, vaultNamed{Path: again, Reason: "it keeps changing while it is written; run it again"})
			}
			return r, nil
		}
	}
}

// list asks for the pages.
func (v *vaultSync) list(ctx context.Context) (*project.VaultListing, error) {
	l := &project.VaultListing{}
	if err := v.client.get(ctx, "/memory/vault"+v.query(), l); err != nil {
		return nil, err
	}
	if l.Folder == "" || !filepath.IsLocal(l.Folder) || strings.ContainsAny(l.Folder, `/\`) {
		return nil, fault.New(fault.Corrupt, "the server names the folder %q", l.Folder)
	}
	return l, nil
}

func (v *vaultSync) query() string {
	evidence := ""
	if v.evidence {
		evidence = "true"
	}
	return queryString("project", v.project, "evidence", evidence)
}

// open opens the project's folder; names that would lead out of it fail there.
func (v *vaultSync) open(folder string) error {
	if v.root != nil {
		return nil
	}
	at := filepath.Join(v.out, folder)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return placeFault(err)
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return placeFault(err)
	}
	v.root, v.seen = root, map[string]seenFile{}
	v.sweepTemps(time.Now())
	return nil
}

// tempName is the name under which this process writes a file before it takes its
// place.
func tempName() string { return fmt.Sprintf(".mneme-%d.tmp", os.Getpid()) }

var tempFile = regexp.MustCompile(`^\.mneme-([0-9]+)\.tmp$`)

// tempStays is how long a file of another process that runs is left alone: it stands
// for milliseconds, and the number of one that was killed may have been given again.
const tempStays = time.Minute

// sweepTemps removes what a process that was killed has left. A file that can not be
// removed harms nothing: the next run tries again.
func (v *vaultSync) sweepTemps(now time.Time) {
	for _, dir := range []string{".", "evidence", "orphans"} {
		entries, err := fs.ReadDir(v.root.FS(), dir)
		if err != nil {
			continue // there is none
		}
		for _, e := range entries {
			m := tempFile.FindStringSubmatch(e.Name())
			if m == nil || !e.Type().IsRegular() {
				continue
			}
			pid, err := strconv.Atoi(m[1])
			info, statErr := e.Info()
			if err == nil && pid != os.Getpid() && running(pid) && (statErr != nil || now.Sub(info.ModTime()) < tempStays) {
				continue
			}
			_ = v.root.Remove(path.Join(dir, e.Name())) // the next run tries again
		}
	}
}

// running reports whether a process of this number runs here, as far as can be known.
func running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0)) // asks and sends nothing; Windows knows it not, and has said by now
	return !errors.Is(err, os.ErrProcessDone)
}

func (v *vaultSync) close() {
	if v.root != nil {
		_ = v.root.Close() // nothing is written through it
	}
}

func placeFault(err error) error {
	return fault.At(fault.Invalid, "", "free the place, or name another folder with --out", "%v", err)
}

// round is one pass; again names a file that changed meanwhile.
func (v *vaultSync) round(ctx context.Context, l *project.VaultListing, r *vaultReport) (again string, err error) {
	f, err := v.scan(l)
	if err != nil {
		return "", err
	}
	answers, saved, err := v.send(ctx, f.Edits(l.Pages), r)
	if err != nil {
		return "", err
	}
	if saved {
		if l, err = v.list(ctx); err != nil {
			return "", err
		}
		if f, err = v.scan(l); err != nil {
			return "", err
		}
	}
	r.Refused = slices.DeleteFunc(r.Refused, func(x vaultNamed) bool { return answers[x.Path].Outcome != vault.Not })
	r.Folder, r.Pages, r.Stats = v.root.Name(), len(l.Pages), l.Stats
	r.Conflicts = r.Conflicts[:0]
	for _, p := range l.Pages {
		if p.Conflict {
			r.Conflicts = append(r.Conflicts, p.Path)
		}
	}
	skipped := map[string]bool{}
	for at, a := range answers {
		skipped[at] = a.Outcome == vault.Not
	}
	for _, at := range f.Unsettled(l.Pages, answers) {
		again, skipped[at] = at, true
	}
	steps := f.Steps(l.Pages, answers, skipped)
	if len(steps) > 0 {
		if err := v.save(f.Next(v.project, l.Pages, steps, answers, skipped, true)); err != nil {
			return "", err
		}
	}
	for batch := range slices.Chunk(steps, vaultBatch) {
		texts, err := v.fetch(ctx, batch)
		if err != nil {
			return "", err
		}
		for _, st := range batch {
			done, err := v.do(st, texts[st.Path], l, r)
			if err != nil {
				return "", err
			}
			if !done {
				again, skipped[st.Path] = st.Path, true
			}
		}
	}
	next := f.Next(v.project, l.Pages, steps, answers, skipped, false)
	if len(steps) == 0 && next.Equal(&f.State) {
		return again, nil
	}
	return again, v.save(next)
}

// scan reads what stands at the paths of pages.
func (v *vaultSync) scan(l *project.VaultListing) (*vault.LocalFolder, error) {
	f := &vault.LocalFolder{Files: map[string]vault.Mark{}}
	b, err := v.read(vault.FolderStateName, 64<<20)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, placeFault(err)
	case json.Unmarshal(b, &f.State) != nil || f.State.V != vault.FolderStateVersion:
		f.State = vault.FolderState{} // of another version or damaged: all is looked at as new
	case f.State.Project != v.project:
		return nil, fault.At(fault.Invalid, v.root.Name(), "name another folder with --out", "the folder holds the pages of project %s", f.State.Project)
	}
	paths := map[string]bool{}
	for _, p := range l.Pages {
		if !filepath.IsLocal(filepath.FromSlash(p.Path)) || path.Clean(p.Path) != p.Path || strings.Contains(p.Path, `\`) {
			return nil, fault.New(fault.Corrupt, "the server names the page %q", p.Path)
		}
		paths[p.Path] = true
	}
	for p := range f.State.Pages {
		paths[p] = paths[p] || filepath.IsLocal(filepath.FromSlash(p))
	}
	v.paths = v.paths[:0]
	for p, ok := range paths {
		if ok {
			v.paths = append(v.paths, p)
		}
	}
	slices.Sort(v.paths)
	for _, p := range v.paths {
		m, there, err := v.mark(p)
		if err != nil {
			return nil, err
		}
		if there {
			f.Files[p] = m
		}
	}
	return f, nil
}

// mark is what stands at a path. A folder or a file too large to be a page is in
// the way: an error names it.
func (v *vaultSync) mark(p string) (m vault.Mark, there bool, err error) {
	st, err := v.root.Stat(p)
	if err != nil {
		if err := v.noLink(p); err != nil {
			return m, false, err
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		delete(v.seen, p)
		if v.root.Rename(holdName(p), p) != nil {
			return m, false, nil
		}
		st, err = v.root.Stat(p) // a process died while it replaced it
	}
	if err != nil {
		return m, false, placeFault(err)
	}
	if !st.Mode().IsRegular() {
		return m, false, fault.At(fault.Invalid, filepath.Join(v.root.Name(), p), "move it away", "a page belongs here, and this is no file")
	}
	if s, ok := v.seen[p]; ok && s.size == st.Size() && s.mod.Equal(st.ModTime()) && time.Since(s.mod) > time.Second {
		return s.mark, true, nil
	}
	b, err := v.read(p, maxVaultFile)
	if err != nil {
		return m, false, placeFault(err)
	}
	m = vault.MarkOf(b)
	v.seen[p] = seenFile{st.Size(), st.ModTime(), m}
	return m, true, nil
}

// noLink says what is to be done where the page at p can not be looked at because a
// symbolic link there, or at its folder, leads out of the project's folder or nowhere.
// One within the folder is read like the file.
func (v *vaultSync) noLink(p string) error {
	for _, at := range []string{path.Dir(p), p} {
		st, err := v.root.Lstat(at)
		if err != nil || st.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		if at != p {
			if _, err := v.root.Stat(at); err == nil {
				continue
			}
		}
		return fault.At(fault.Invalid, filepath.Join(v.root.Name(), at), "remove the link, or put what it leads to in its place; pages elsewhere: --out", "a page belongs here, and this is a symbolic link that leads out of the folder or nowhere")
	}
	return nil
}

func (v *vaultSync) read(p string, limit int64) ([]byte, error) {
	f, err := v.root.Open(p)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s: over %s: move it away", filepath.Join(v.root.Name(), p), sizeText(limit))
	}
	return b, err
}

// send gives the log the regions that people changed.
func (v *vaultSync) send(ctx context.Context, edits []vault.LocalEdit, r *vaultReport) (answers map[string]vault.Answer, saved bool, err error) {
	answers = map[string]vault.Answer{}
	refuse := func(at, reason string) {
		answers[at] = vault.Answer{Outcome: vault.Not}
		x := vaultNamed{Path: at, Reason: reason}
		if !slices.Contains(r.Refused, x) {
			r.Refused = append(r.Refused, x)
		}
	}
	for len(edits) > 0 {
		req := project.NotesRequest{Project: v.project}
		var at []string
		size := 0
		for len(edits) > 0 && size < notesBatch && len(at) < vaultBatch {
			e := edits[0]
			edits = edits[1:]
			b, err := v.read(e.Path, maxVaultFile)
			if err != nil {
				return nil, saved, placeFault(err)
			}
			p := vault.Split(b)
			if !utf8.Valid(p.Notes) {
				refuse(e.Path, "its Notes are not UTF-8: save the file as UTF-8")
				continue
			}
			req.Notes = append(req.Notes, project.NoteEdit{Note: e.Note, Stream: e.Stream, Base: e.Base, Text: string(p.Notes), SHA256: memory.Sum(p.Notes)})
			at = append(at, e.Path)
			size += len(p.Notes)
		}
		if len(at) == 0 {
			continue
		}
		var out project.NotesAnswer
		if err := v.client.send(ctx, http.MethodPost, "/memory/vault/notes", req, &out); err != nil {
			return nil, saved, err
		}
		if len(out.Notes) != len(at) {
			return nil, saved, fault.New(fault.Unavailable, "the server answered %d notes of %d", len(out.Notes), len(at))
		}
		for i, n := range out.Notes {
			switch {
			case n.Outcome == "refused":
				refuse(at[i], n.Reason)
				continue
			case len(n.Redacted) > 0:
				answers[at[i]] = vault.Answer{Outcome: vault.Masked, Notes: req.Notes[i].SHA256}
				r.Masked = append(r.Masked, vaultNamed{Path: at[i], Reason: counted(n.Redacted)})
			default:
				answers[at[i]] = vault.Answer{Outcome: vault.Held, Notes: req.Notes[i].SHA256}
			}
			if n.Outcome == "saved" {
				saved = true
				r.Saved++
			}
		}
	}
	return answers, saved, nil
}

// counted is "2 aws_key, 1 jwt".
func counted(m map[string]int) string {
	var s []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		s = append(s, strconv.Itoa(m[k])+" "+k)
	}
	return strings.Join(s, ", ")
}

// fetch asks for the pages that steps write.
func (v *vaultSync) fetch(ctx context.Context, steps []vault.Step) (map[string][]byte, error) {
	req := project.PagesRequest{Project: v.project, Evidence: v.evidence}
	for _, st := range steps {
		if st.Write {
			req.Paths = append(req.Paths, st.Path)
		}
	}
	if len(req.Paths) == 0 {
		return nil, nil
	}
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	resp, err := v.client.do(ctx, http.MethodPost, "/memory/vault/pages", "application/json", bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	out := map[string][]byte{}
	for dec := json.NewDecoder(resp.Body); ; {
		var p project.PageText
		if err := dec.Decode(&p); err == io.EOF {
			return out, nil
		} else if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fault.New(fault.Unavailable, "the server's answer broke off: %v", err)
		}
		if memory.SumString(p.Text) != p.SHA256 {
			return nil, fault.New(fault.Corrupt, "page %s is not what its sha256 says", p.Path)
		}
		out[p.Path] = []byte(p.Text)
	}
}

// do performs one step. It is not done where the file or the page is another by
// now: the next round looks again.
func (v *vaultSync) do(st vault.Step, text []byte, l *project.VaultListing, r *vaultReport) (done bool, err error) {
	delete(v.seen, st.Path)
	temp := ""
	if st.Write {
		i, _ := slices.BinarySearchFunc(l.Pages, st.Path, func(p vault.Listed, at string) int { return strings.Compare(p.Path, at) })
		if memory.Sum(text) != l.Pages[i].SHA256 {
			return false, nil // the project moved on in between
		}
		if err := v.root.MkdirAll(path.Dir(st.Path), 0o755); err != nil {
			return false, placeFault(err)
		}
		temp = path.Join(path.Dir(st.Path), tempName())
		if err := v.root.WriteFile(temp, text, 0o644); err != nil {
			return false, placeFault(err)
		}
		defer func() { _ = v.root.Remove(temp) }() // gone already, or not needed
	}
	if st.Seen.SHA256 == "" {
		return v.put(temp, st.Path, r)
	}
	// Whatever stands there is taken away first, and looked at where no editor finds
	// it: what was saved since it was seen is not written over.
	hold := holdName(st.Path)
	switch err := v.root.Rename(st.Path, hold); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, placeFault(err)
	}
	now, err := v.read(hold, maxVaultFile)
	if err == nil && memory.Sum(now) != st.Seen.SHA256 {
		return false, v.putBack(hold, st.Path, now, r)
	}
	if err == nil && st.Aside {
		err = v.aside(st.Path, now, r)
	}
	if err != nil {
		return false, errors.Join(placeFault(err), v.putBack(hold, st.Path, now, r))
	}
	if st.Write {
		if done, err = v.put(temp, st.Path, r); err != nil {
			return false, errors.Join(err, v.putBack(hold, st.Path, now, r))
		}
	} else {
		done = true
		r.Removed++
	}
	// Somebody who had it open may have written to it still.
	if late, err := v.read(hold, maxVaultFile); err == nil && memory.Sum(late) != st.Seen.SHA256 {
		if err := v.aside(st.Path, late, r); err != nil {
			return done, err
		}
	}
	if err := v.root.Remove(hold); err != nil {
		return done, placeFault(err)
	}
	if dir := path.Dir(st.Path); !st.Write && dir != "." {
		_ = v.root.Remove(dir) // stays while anything is in it
	}
	return done, nil
}

// holdName is where a file stands while it is replaced; scan takes it back from a
// process that died.
func holdName(p string) string { return path.Join(path.Dir(p), ".mneme-old-"+path.Base(p)) }

// put moves a page to its path where nothing stands.
func (v *vaultSync) put(temp, p string, r *vaultReport) (done bool, err error) {
	err = v.root.Link(temp, p)
	if errors.Is(err, fs.ErrExist) {
		return false, nil // somebody else's, since: the next round looks at it
	}
	if err != nil { // a file system without links, such as exFAT
		if _, err := v.root.Lstat(p); err == nil {
			return false, nil
		}
		if err := v.root.Rename(temp, p); err != nil {
			return false, placeFault(err)
		}
	}
	r.Written++
	return true, nil
}

// putBack gives a file its path again; where another stands there by now, it is kept
// beside it.
func (v *vaultSync) putBack(hold, p string, b []byte, r *vaultReport) error {
	if _, err := v.root.Lstat(p); errors.Is(err, fs.ErrNotExist) {
		if err := v.root.Rename(hold, p); err != nil {
			return placeFault(err)
		}
		return nil
	}
	if err := v.aside(p, b, r); err != nil {
		return err
	}
	if err := v.root.Remove(hold); err != nil {
		return placeFault(err)
	}
	return nil
}

// aside keeps a file under another name: NAME.local-1.md, or the next number that is
// free.
func (v *vaultSync) aside(p string, b []byte, r *vaultReport) error {
	stem := strings.TrimSuffix(p, ".md")
	for n := 1; ; n++ {
		name := fmt.Sprintf("%s.local-%d.md", stem, n)
		f, err := v.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			if old, err := v.read(name, maxVaultFile); err != nil || !bytes.Equal(old, b) {
				continue
			}
		} else if err != nil {
			return placeFault(err)
		} else {
			_, err = f.Write(b)
			if err = errors.Join(err, f.Close()); err != nil {
				return placeFault(errors.Join(err, v.root.Remove(name)))
			}
		}
		for i := range r.Masked {
			if r.Masked[i].Path == p && r.Masked[i].Kept == "" {
				r.Masked[i].Kept = name
				return nil
			}
		}
		r.Aside = append(r.Aside, vaultNamed{Path: p, Reason: "changed above its Notes, which Mneme writes", Kept: name})
		return nil
	}
}

// save writes the state file.
func (v *vaultSync) save(s vault.FolderState) error {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	temp := tempName()
	if err := v.root.WriteFile(temp, append(b, '\n'), 0o644); err != nil {
		return placeFault(err)
	}
	if err := v.root.Rename(temp, vault.FolderStateName); err != nil {
		return placeFault(err)
	}
	return nil
}
