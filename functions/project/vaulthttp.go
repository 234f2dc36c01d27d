package project

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/vault"
)

// VaultListing is the answer of GET /memory/vault.
type VaultListing struct {
	Project string         `json:"project"`
	Folder  string         `json:"folder"`
	Pages   []vault.Listed `json:"pages"` // by path
	Stats   vault.Stats    `json:"stats"`
}

// PagesRequest is the body of POST /memory/vault/pages.
type PagesRequest struct {
	Project  string   `json:"project"`
	Evidence bool     `json:"evidence,omitempty"`
	Paths    []string `json:"paths"`
}

// PageText is one line of its answer.
type PageText struct {
	Path   string     `json:"path"`
	SHA256 memory.SHA `json:"sha256"` // of Text
	Text   string     `json:"text"`
}

// NoteEdit is one region as a folder has it.
type NoteEdit struct {
	Note   string     `json:"note"`
	Stream string     `json:"stream,omitempty"` // as it was listed
	Base   memory.SHA `json:"base_sha256"`      // of the region that was edited; "" where that is not known
	Text   string     `json:"text"`
	SHA256 memory.SHA `json:"sha256,omitempty"` // of the region's bytes: JSON carries no others than UTF-8
}

// NotesRequest is the body of POST /memory/vault/notes.
type NotesRequest struct {
	Project string     `json:"project"`
	Notes   []NoteEdit `json:"notes"`
}

// SavedNote says what became of one region.
type SavedNote struct {
	Note     string         `json:"note"`
	Outcome  string         `json:"outcome"`            // saved | unchanged | refused
	Key      memory.SHA     `json:"key,omitempty"`      // of the record
	Conflict bool           `json:"conflict,omitempty"` // another version stands beside it
	Redacted map[string]int `json:"redacted,omitempty"` // secrets that were masked, by kind
	Reason   string         `json:"reason,omitempty"`   // of a refusal
}

// NotesAnswer is the answer of POST /memory/vault/notes, in the order of the
// request.
type NotesAnswer struct {
	Notes []SavedNote `json:"notes"`
}

const (
	// maxPagePaths bounds the pages of one request.
	maxPagePaths = 1000
	// maxPathsBody bounds that request: paths are some 100 bytes.
	maxPathsBody = 1 << 20
	// maxNotes bounds the regions of one request; a question file holds 64.
	maxNotes = 1000
	// maxNotesBody bounds the request: JSON may write a byte in six.
	maxNotesBody = 32 << 20
)

func (f *Function) vaultProject(ctx context.Context, project string) error {
	if !memory.ValidName(project) {
		return fault.At(fault.Invalid, "project", "?project= names one project: [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", project)
	}
	if !f.withVault() {
		return fault.New(fault.Unavailable, "this process renders no pages")
	}
	projects, err := f.cfg.Catalog.Known(ctx)
	if err == nil && !slices.Contains(projects, project) {
		err = fault.At(fault.NotFound, "project "+project, "GET /memory/projects lists them; a project begins with mem learn -p NAME", "nothing is known of such a project")
	}
	return err
}

// Vault renders a project as it stands now.
func (f *Function) Vault(ctx context.Context, project string, evidence bool) (*vault.Vault, error) {
	r, err := f.vaultNow(ctx, project, evidence)
	return r.vault, err
}

// VaultListing describes its pages; what was described once is kept with the
// rendering, so that who asks again and again costs a look at the log's ends.
func (f *Function) VaultListing(ctx context.Context, project string, evidence bool) (*VaultListing, error) {
	r, err := f.vaultNow(ctx, project, evidence)
	if err != nil {
		return nil, err
	}
	return r.listing(), nil
}

func (f *Function) vaultNow(ctx context.Context, project string, evidence bool) (*rendered, error) {
	if err := f.vaultProject(ctx, project); err != nil {
		return &rendered{}, err
	}
	f.vaultMu.Lock()
	defer f.vaultMu.Unlock()
	state, err := f.vault.State(ctx, project)
	if err != nil {
		return &rendered{}, err
	}
	return f.render(ctx, project, state.Key(), evidence)
}

// getVault lists the pages, or gives one: ?path=, which with ?sha256= may come from
// the rendering that was listed.
func (f *Function) getVault(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	project, path, evidence := q.Get("project"), q.Get("path"), q.Get("evidence")
	if evidence != "" && evidence != "true" && evidence != "false" {
		serve.WriteError(w, fault.At(fault.Invalid, "evidence", "true or false", "%q is neither", evidence))
		return
	}
	if path != "" && f.listed(w, project, path, memory.SHA(q.Get("sha256")), evidence == "true") {
		return
	}
	if path == "" {
		l, err := f.VaultListing(r.Context(), project, evidence == "true")
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		serve.WriteJSON(w, http.StatusOK, l)
		return
	}
	v, err := f.Vault(r.Context(), project, evidence == "true")
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	i, ok := pageAt(v, path)
	if !ok {
		serve.WriteError(w, fault.At(fault.NotFound, "path", "GET /memory/vault?project= lists the pages", "no page %q", path))
		return
	}
	writePage(w, v.Files[i].Bytes)
}

// listed answers a page out of the last rendering, when that is the one meant.
func (f *Function) listed(w http.ResponseWriter, project, path string, sum memory.SHA, evidence bool) bool {
	if sum == "" {
		return false
	}
	f.vaultMu.Lock()
	at := slices.IndexFunc(f.rendered, func(r *rendered) bool { return r.project == project && r.evidence == evidence })
	var last *rendered
	if at >= 0 {
		last = f.rendered[at]
	}
	f.vaultMu.Unlock()
	if last == nil {
		return false
	}
	i, ok := pageAt(last.vault, path)
	if !ok || memory.Sum(last.vault.Files[i].Bytes) != sum {
		return false
	}
	writePage(w, last.vault.Files[i].Bytes)
	return true
}

func writePage(w http.ResponseWriter, b []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/markdown; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("ETag", `"`+string(memory.Sum(b))+`"`)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(b) // the client has gone: nobody is left to tell
}

// listingOf describes the pages of a rendering.
func listingOf(project string, v *vault.Vault) *VaultListing {
	out := &VaultListing{Project: project, Folder: v.Folder, Pages: make([]vault.Listed, len(v.Files)), Stats: v.Stats}
	for i := range v.Files {
		p := &v.Files[i]
		s := vault.Split(p.Bytes)
		out.Pages[i] = vault.Listed{Path: p.Path, SHA256: memory.Sum(p.Bytes), SizeBytes: len(p.Bytes), Body: s.BodySum(), Note: p.Note, Stream: p.Stream}
		if s.Found {
			reg := v.RegionOf(p)
			out.Pages[i].Notes, out.Pages[i].Conflict = memory.Sum(s.Notes), reg.Conflict()
		}
	}
	return out
}

// postPages gives many pages as lines of JSON, in the order that was asked for. One
// that there is not is left out.
func (f *Function) postPages(w http.ResponseWriter, r *http.Request) {
	var req PagesRequest
	err := readBody(w, r, maxPathsBody, "send {project, paths: [path]}", &req)
	if err == nil && len(req.Paths) > maxPagePaths {
		err = fault.At(fault.Invalid, "paths", "ask for them in several requests", "%d pages, at most %d", len(req.Paths), maxPagePaths)
	}
	var v *vault.Vault
	if err == nil {
		v, err = f.Vault(r.Context(), req.Project, req.Evidence)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, path := range req.Paths {
		if i, ok := pageAt(v, path); ok {
			b := v.Files[i].Bytes
			if enc.Encode(PageText{path, memory.Sum(b), string(b)}) != nil {
				return // the client has gone
			}
		}
	}
}

// pageAt finds a page by its path.
func pageAt(v *vault.Vault, path string) (int, bool) {
	return slices.BinarySearchFunc(v.Files, path, func(p vault.File, path string) int { return strings.Compare(p.Path, path) })
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64, hint string, into any) error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fault.At(fault.Invalid, "body", hint, "%v", err)
	}
	return nil
}

func (f *Function) postNotes(w http.ResponseWriter, r *http.Request) {
	var req NotesRequest
	err := readBody(w, r, maxNotesBody, "send {project, notes: [{note, base_sha256, text}]}", &req)
	if err == nil && len(req.Notes) > maxNotes {
		err = fault.At(fault.Invalid, "notes", "send them in several requests", "%d notes, at most %d", len(req.Notes), maxNotes)
	}
	var out NotesAnswer
	if err == nil {
		out, err = f.SaveNotes(r.Context(), req)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

// SaveNotes appends the regions that differ from what the log holds. One that can
// not be kept is refused by name and holds up no other.
func (f *Function) SaveNotes(ctx context.Context, req NotesRequest) (out NotesAnswer, err error) {
	if err := f.vaultProject(ctx, req.Project); err != nil {
		return out, err
	}
	if len(f.cfg.TenantKey) == 0 {
		return out, fault.At(fault.Unavailable, "", "set MNEME_TENANT_KEY for the project function", "nothing enters the log before redaction, and this process has no key for its marks")
	}
	patterns, err := f.cfg.Catalog.Patterns(ctx)
	if err != nil {
		return out, fault.As(fault.Unavailable, err)
	}
	red := redact.NewWith(f.cfg.TenantKey, redact.Options{Patterns: patterns})
	f.vaultMu.Lock()
	defer f.vaultMu.Unlock()
	m, err := f.vault.Load(ctx, req.Project)
	if err != nil {
		return out, err
	}
	out.Notes = make([]SavedNote, len(req.Notes))
	for i, e := range req.Notes {
		s := &out.Notes[i]
		s.Note, s.Outcome = e.Note, "refused"
		reg, stream, ok := vault.RegionFor(m, e.Note, e.Stream)
		switch {
		case !ok:
			s.Reason = "no such page has notes"
			continue
		case len(e.Text) > memory.MaxNoteBytes:
			s.Reason = fmt.Sprintf("%d bytes, at most %d are kept", len(e.Text), memory.MaxNoteBytes)
			continue
		}
		if e.SHA256 != "" && e.SHA256 != memory.SumString(e.Text) {
			s.Reason = "the text is not what its sha256 says: it is not UTF-8"
			continue
		}
		text, marks := red.Redact(e.Text)
		prev, isNew := reg.Edit(e.Base, text)
		if !isNew {
			s.Outcome = "unchanged"
		}
		for _, k := range marks {
			if s.Redacted == nil {
				s.Redacted = map[string]int{}
			}
			s.Redacted[k.Kind]++
		}
		if !isNew {
			continue
		}
		n := memory.Note{Tenant: f.cfg.Tenant, Project: req.Project, Note: reg.Note, Stream: stream, Text: text, Prev: prev, Origin: "vault", At: f.cfg.Now().UTC()}
		key, err := f.cfg.Log.PutNote(ctx, &n)
		if err != nil {
			if fault.Is(err, fault.Invalid) {
				s.Reason = err.Error()
				continue
			}
			return out, err
		}
		s.Outcome, s.Key = "saved", key
		m.Notes = append(m.Notes, vault.KeptNote{Key: key, Note: n, TextSHA: memory.SumString(text)})
		reg, _, _ = vault.RegionFor(m, e.Note, e.Stream)
		s.Conflict = reg.Conflict()
	}
	return out, nil
}
