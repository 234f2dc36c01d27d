package query

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Why is a gate record with the part it belongs to: why a chunk was kept or
// refused (brief B1).
type Why struct {
	memory.Gate
	Project string `json:"project"`
	Stream  string `json:"stream"`
	Object  string `json:"object"`
}

// why streams gate records as JSON Lines. ?sha256= names a chunk, a node, a
// source record, or the bytes of an uploaded file.
func (f *Function) why(w http.ResponseWriter, r *http.Request) {
	sha := memory.SHA(r.URL.Query().Get("sha256"))
	if !sha.Valid() {
		serve.WriteError(w, fault.At(fault.Invalid, "sha256", "the hash of a chunk, a node, a source or a file", "not 64 hex digits"))
		return
	}
	projects, err := f.asked(r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	out := newLines(w)
	for _, p := range projects {
		if err := f.whyProject(r.Context(), p, sha, out); err != nil {
			out.fail(err)
			return
		}
	}
	if !out.begun {
		serve.WriteError(w, fault.At(fault.NotFound, string(sha), "mem why takes a file, or a hash that mem query or mem log printed", "nothing in the log has this hash"))
		return
	}
	out.flush()
}

func (f *Function) whyProject(ctx context.Context, project string, sha memory.SHA, out *lines) error {
	objects := map[int64]string{}
	mine := map[int64]bool{}
	for a, err := range f.cfg.Log.Admits(ctx, project, 0) {
		if err != nil {
			return err
		}
		objects[a.Seq] = a.Object
		mine[a.Seq] = a.RawSHA256 == sha || a.Source == sha
	}
	streams, err := f.cfg.Log.Streams(ctx, project)
	if err != nil {
		return err
	}
	for _, s := range streams {
		for seg, err := range f.cfg.Log.Segments(ctx, project, s, 0) {
			if err != nil {
				return err
			}
			for i, r := range seg.Records {
				g, ok := r.(*memory.Gate)
				if !ok || !(mine[g.Admit] || g.Chunk == sha || g.Run == sha || g.MemorySHA == sha || stated(seg.Records[i+1:], g.T, sha)) {
					continue
				}
				if err := out.write(Why{Gate: *g, Project: project, Stream: s, Object: objects[g.Admit]}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// stated reports whether step t wrote a node with this id or text.
func stated(after []eventlog.Record, t int, sha memory.SHA) bool {
	for _, r := range after {
		switch r := r.(type) {
		case *memory.Evidence:
			if r.T != t {
				return false
			}
			if r.Node == sha || r.TextSHA == sha {
				return true
			}
		case *memory.Memory:
			if r.T != t {
				return false
			}
			if r.Node == sha || r.TextSHA == sha {
				return true
			}
		default:
			return false
		}
	}
	return false
}

// asked is the ?project= of a request, or every project.
func (f *Function) asked(r *http.Request) ([]string, error) {
	all, err := f.cfg.Log.Projects(r.Context())
	if err != nil {
		return nil, err
	}
	p := r.URL.Query().Get("project")
	if p == "" {
		return all, nil
	}
	if !slices.Contains(all, p) {
		return nil, fault.At(fault.NotFound, "project", "mem log lists what is known", "nothing is known of project %q", p)
	}
	return []string{p}, nil
}

// logLines streams the log itself: every record of a stream, one a line, as
// stored. ?stream=_admit is the admit stream; without it all streams follow
// each other.
func (f *Function) logLines(w http.ResponseWriter, r *http.Request) {
	projects, err := f.asked(r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	only := r.URL.Query().Get("stream")
	kind := r.URL.Query().Get("type")
	out := newLines(w)
	for _, p := range projects {
		streams, err := f.cfg.Log.Streams(r.Context(), p)
		if err != nil {
			out.fail(err)
			return
		}
		for _, s := range append([]string{memory.AdmitStream}, streams...) {
			if only != "" && only != s && only != memory.QueryID(s) {
				continue
			}
			for seg, err := range f.cfg.Log.Segments(r.Context(), p, s, 0) {
				if err != nil {
					out.fail(err)
					return
				}
				for i, rec := range seg.Records {
					if kind != "" && kind != rec.RecordType() {
						continue
					}
					if err := out.raw(seg.Lines[i]); err != nil {
						return
					}
				}
			}
		}
	}
	out.flush()
}

// lines answers JSON Lines.
type lines struct {
	w     http.ResponseWriter
	b     *bufio.Writer
	begun bool
}

func newLines(w http.ResponseWriter) *lines {
	return &lines{w: w, b: bufio.NewWriterSize(w, 64<<10)}
}

func (l *lines) begin() {
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", "application/x-ndjson")
	}
}

func (l *lines) write(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.raw(b)
}

func (l *lines) raw(b []byte) error {
	l.begin()
	if _, err := l.b.Write(b); err != nil {
		return err
	}
	return l.b.WriteByte('\n')
}

// fail ends a stream that may have begun: the error is its last line.
func (l *lines) fail(err error) {
	if !l.begun {
		serve.WriteError(l.w, err)
		return
	}
	_ = l.write(map[string]any{"error": serve.ProblemOf(err)})
	l.flush()
}

func (l *lines) flush() {
	l.begin()
	_ = l.b.Flush() // the client has gone: nobody is left to tell
}
