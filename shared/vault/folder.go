package vault

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/memory"
)

// This file decides what keeps a person's folder in step with the pages; the
// program that calls it does the reading and writing.
//
// Invariant: a file is overwritten or removed only when all that stands in it is
// known to be Mneme's or to be in the log. Anything else is set aside first, or
// left alone.

// Listed is one page as GET /memory/vault lists it.
type Listed struct {
	Path      string     `json:"path"` // below the project's folder, slash-separated
	SHA256    memory.SHA `json:"sha256"`
	SizeBytes int        `json:"size_bytes"`
	Body      memory.SHA `json:"body_sha256"`            // of all but what people wrote, see Page.BodySum
	Note      string     `json:"note,omitempty"`         // whose Notes region it holds
	Stream    string     `json:"stream,omitempty"`       // of the question's wording
	Notes     memory.SHA `json:"notes_sha256,omitempty"` // of the region
	Conflict  bool       `json:"conflict,omitempty"`     // several versions stand in it
}

// Mark is what is known of a file without its bytes.
type Mark struct {
	SHA256 memory.SHA
	Body   memory.SHA
	Notes  memory.SHA // "" where it has no region
	Ours   bool       // it carries a line of shared/derived
}

// MarkOf reads a file's mark.
func MarkOf(file []byte) Mark {
	p := Split(file)
	m := Mark{SHA256: memory.Sum(file), Body: p.BodySum()}
	if p.Found {
		m.Notes = memory.Sum(p.Notes)
	}
	m.Ours = p.Found && bytes.Contains(p.Open, []byte(derived.MarkerClose))
	if !m.Ours {
		kind, ok := derived.Marked(string(file))
		m.Ours = ok && kind == derived.KindVault
	}
	return m
}

// FolderStateName is the file beside a project's pages that says what was written
// there; Obsidian shows no name that begins with a dot.
const FolderStateName = ".mneme-vault.json"

// FolderStateVersion is the version of that file.
//
// History: 1 — first.
const FolderStateVersion = 1

// FolderState is that file. Without it nothing is lost: what can not be known to
// be Mneme's is set aside.
type FolderState struct {
	V       int                `json:"v"`
	Project string             `json:"project"`
	Pages   map[string]Written `json:"pages"` // by path
}

// Equal reports whether both say the same.
func (s *FolderState) Equal(o *FolderState) bool {
	return s.V == o.V && s.Project == o.Project && maps.Equal(s.Pages, o.Pages)
}

// Written is a page as it was written.
type Written struct {
	SHA256 memory.SHA `json:"sha256,omitempty"`
	Body   memory.SHA `json:"body_sha256,omitempty"`
	Notes  memory.SHA `json:"notes_sha256,omitempty"`
	Note   string     `json:"note,omitempty"`
	Stream string     `json:"stream,omitempty"`
	// Before is the Body of the page before this one: an editor that had it open may
	// have written it back.
	Before memory.SHA `json:"before_body_sha256,omitempty"`
	// Next is the Body of a page that is about to be written: a process that died in
	// between has left either.
	Next memory.SHA `json:"next_body_sha256,omitempty"`
}

// LocalFolder is what a person's folder has.
type LocalFolder struct {
	State FolderState
	Files map[string]Mark // those that stand at a page's path
}

// LocalEdit is a Notes region that is not what it was when it was written.
type LocalEdit struct {
	Path, Note, Stream string
	Base               memory.SHA // of the region as it was written; "" where nobody knows
}

// Edits lists the regions that people changed, by path.
func (f *LocalFolder) Edits(listed []Listed) (out []LocalEdit) {
	at := byPath(listed)
	for _, path := range slices.Sorted(maps.Keys(f.Files)) {
		m, l := f.Files[path], at[path]
		w, written := f.State.Pages[path]
		if m.Notes == "" || !m.Ours && !written {
			continue // no region, or a file of somebody else's
		}
		e := LocalEdit{Path: path, Note: w.Note, Stream: w.Stream, Base: w.Notes}
		if e.Note == "" {
			e.Note, e.Stream = l.Note, l.Stream
		}
		switch {
		case e.Note == "", m.Notes == w.Notes, m.Notes == l.Notes && e.Note == l.Note:
		default:
			out = append(out, e)
		}
	}
	return out
}

// Answer says what became of an edit.
type Answer struct {
	Outcome Outcome
	Notes   memory.SHA // of the region that was sent; the file may hold another by now
}

// Outcome is what becomes of an edit.
type Outcome int

// Outcomes.
const (
	Held   Outcome = iota + 1 // the log holds the region byte for byte
	Masked                    // the log holds it with secrets masked
	Not                       // it was refused: the file is left alone
)

// Step brings one file in step.
type Step struct {
	Path  string
	Write bool // the listed page; else the file goes
	Aside bool // what stands there is kept under another name first
	Seen  Mark // what stands there; zero for nothing. Another by now: leave it for the next round
}

// Unsettled lists the edits that were made since others had their answers, by path:
// their files are left for the next round.
func (f *LocalFolder) Unsettled(listed []Listed, answers map[string]Answer) (out []string) {
	for _, e := range f.Edits(listed) {
		if a := answers[e.Path]; a.Outcome != Not && a.Notes != f.Files[e.Path].Notes {
			out = append(out, e.Path)
		}
	}
	return out
}

// Steps lists what brings the folder in step, by path, once its edits have their
// answers. Files at skipped paths are left alone.
func (f *LocalFolder) Steps(listed []Listed, answers map[string]Answer, skipped map[string]bool) (out []Step) {
	at := byPath(listed)
	for _, l := range listed {
		m, there := f.Files[l.Path]
		if skipped[l.Path] || there && m.SHA256 == l.SHA256 {
			continue
		}
		out = append(out, Step{Path: l.Path, Write: true, Aside: there && !f.known(m, l, l.Path, answers), Seen: m})
	}
	for path := range f.State.Pages {
		m, there := f.Files[path]
		if _, still := at[path]; still || !there || skipped[path] {
			continue
		}
		out = append(out, Step{Path: path, Aside: !f.known(m, Listed{}, path, answers), Seen: m})
	}
	slices.SortFunc(out, func(a, b Step) int { return cmp.Compare(a.Path, b.Path) })
	return out
}

// known reports whether all that stands in a file is Mneme's or in the log.
func (f *LocalFolder) known(m Mark, l Listed, path string, answers map[string]Answer) bool {
	if m.SHA256 == memory.SumString("") {
		return true
	}
	w, written := f.State.Pages[path]
	body := m.Body == l.Body || slices.Contains([]memory.SHA{w.Body, w.Before, w.Next}, m.Body)
	if !body || !m.Ours && !written || answers[path].Outcome == Masked {
		return false
	}
	return m.Notes == "" || m.Notes == w.Notes || m.Notes == l.Notes || answers[path] == Answer{Held, m.Notes}
}

// Next is the state of the folder once steps are done; with pending, that before
// they begin. A file that was left alone and whose edit the log holds goes on from
// that edit.
func (f *LocalFolder) Next(project string, listed []Listed, steps []Step, answers map[string]Answer, skipped map[string]bool, pending bool) FolderState {
	s := FolderState{V: FolderStateVersion, Project: project, Pages: map[string]Written{}}
	todo := map[string]bool{}
	for _, st := range steps {
		todo[st.Path] = true
	}
	for _, l := range listed {
		w, had := f.State.Pages[l.Path]
		switch {
		case skipped[l.Path]:
			if a := answers[l.Path]; a.Outcome == Held {
				w.Notes = a.Notes
				if w.Note == "" {
					w.Note, w.Stream = l.Note, l.Stream
				}
			} else if !had {
				continue
			}
			s.Pages[l.Path] = w
		case pending && todo[l.Path]:
			w.Next = l.Body
			if w.Note == "" {
				w.Note, w.Stream = l.Note, l.Stream
			}
			s.Pages[l.Path] = w
		default:
			next := Written{SHA256: l.SHA256, Body: l.Body, Notes: l.Notes, Note: l.Note, Stream: l.Stream, Before: w.Before}
			if w.Body != l.Body {
				next.Before = w.Body
			}
			s.Pages[l.Path] = next
		}
	}
	at := byPath(listed)
	for path, w := range f.State.Pages {
		if _, still := at[path]; !still && (pending || skipped[path]) {
			s.Pages[path] = w
		}
	}
	return s
}

func byPath(listed []Listed) map[string]Listed {
	at := make(map[string]Listed, len(listed))
	for _, l := range listed {
		at[l.Path] = l
	}
	return at
}
