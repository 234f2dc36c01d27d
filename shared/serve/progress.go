package serve

import (
	"encoding/json"
	"net/http"
)

// Progress answers a long call. A client that accepts application/x-ndjson
// gets lines {"progress":…} and last {"result":…} or {"error":…}; any other
// gets the result alone.
type Progress struct {
	w      http.ResponseWriter
	stream bool
	begun  bool
}

// NewProgress begins the answer to r.
func NewProgress(w http.ResponseWriter, r *http.Request) *Progress {
	return &Progress{w: w, stream: r.Header.Get("Accept") == "application/x-ndjson"}
}

// Line tells how far the work is.
func (p *Progress) Line(v any) { p.write("progress", v) }

func (p *Progress) write(key string, v any) {
	if !p.stream {
		return
	}
	if !p.begun {
		p.begun = true
		p.w.Header().Set("Content-Type", "application/x-ndjson")
	}
	b, err := json.Marshal(map[string]any{key: v})
	if err != nil {
		return
	}
	_, _ = p.w.Write(append(b, '\n')) // the client has gone: the work goes on to its end
	_ = http.NewResponseController(p.w).Flush()
}

// End gives the result, or what went wrong.
func (p *Progress) End(v any, err error) {
	switch {
	case err != nil && p.stream:
		p.write("error", ProblemOf(err))
	case err != nil:
		WriteError(p.w, err)
	case p.stream:
		p.write("result", v)
	default:
		WriteJSON(p.w, http.StatusOK, v)
	}
}
