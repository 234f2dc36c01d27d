package learn

import (
	"encoding/json"
	"net/http"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Patterns is the answer of GET and POST /memory/redact.
type Patterns struct {
	Rules    string   `json:"rules"`    // version in force
	Patterns []string `json:"patterns"` // names, in the order in which they are tried
	Error    string   `json:"error,omitempty"`
	Hint     string   `json:"hint,omitempty"`
	YAML     string   `json:"yaml"`
}

// maxPatternBody bounds POST /memory/redact: a file of the greatest size, escaped.
const maxPatternBody = 2*redact.MaxPatternFile + 4<<10

func (f *Function) patternsOf(ps []redact.Pattern, yaml string) Patterns {
	out := Patterns{Rules: redact.NewWith(f.cfg.TenantKey, redact.Options{Patterns: ps}).Version(), Patterns: []string{}, YAML: yaml}
	for _, p := range ps {
		out.Patterns = append(out.Patterns, p.Name)
	}
	return out
}

func (f *Function) getPatterns(w http.ResponseWriter, r *http.Request) {
	file, err := f.cfg.Catalog.PatternFile(r.Context())
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	out := f.patternsOf(file.Patterns, string(file.Data))
	if file.Err != nil {
		out.Error, out.Hint = file.Err.Error(), fault.HintOf(file.Err)
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

func (f *Function) setPatterns(w http.ResponseWriter, r *http.Request) {
	var b struct {
		File string `json:"file"`
		YAML string `json:"yaml"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPatternBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {file, yaml}", "%v", err))
		return
	}
	if b.File == "" {
		b.File = "redact.yaml"
	}
	ps, err := f.cfg.Catalog.SavePatterns(r.Context(), b.File, []byte(b.YAML))
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, f.patternsOf(ps, b.YAML))
}
