package query

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/cures"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/signature"
)

// ContextRequest is what GET and POST /memory/context ask: words, a failing log, or both,
// of one project.
type ContextRequest struct {
	Project string `json:"project"`
	Query   string `json:"query,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Log     string `json:"log,omitempty"`
	Data    []byte `json:"data,omitempty"` // the log in base64, where it is no text
	Limit   int    `json:"limit,omitempty"`
}

// Context is the answer (brief U7). The first tier that has anything answers alone: what
// cured the very failure is not mixed with what only sounds like it.
type Context struct {
	Project    string          `json:"project"`
	Tier       int             `json:"tier"`       // 1 a lesson of this failure, 2 what was said, 3 documents and what was seen; 0 nothing
	Confidence string          `json:"confidence"` // high | medium | low | none
	Why        string          `json:"why"`
	By         cures.By        `json:"by,omitempty"` // of tier 1
	Count      int             `json:"count,omitempty"`
	SigSHA     string          `json:"sig_sha,omitempty"`
	DetailSHA  string          `json:"detail_sha,omitempty"`
	Failure    string          `json:"failure,omitempty"` // root line of the log that was sent
	Results    []ContextResult `json:"results"`
	Degraded   []Degraded      `json:"degraded"`
	TookMS     float64         `json:"took_ms"`
}

// ContextResult is a solution of tier 1, or a node of the others.
type ContextResult struct {
	Source    string     `json:"source"` // the object it comes from; "person" where it was told
	Text      string     `json:"text"`
	Timestamp *time.Time `json:"timestamp,omitempty"`
	// Of tier 1.
	Lesson      memory.SHA      `json:"lesson,omitempty"`
	SuccessRate *float64        `json:"success_rate,omitempty"`
	Uses        int             `json:"uses,omitempty"`
	Failure     string          `json:"failure,omitempty"` // the root line then
	Command     string          `json:"command,omitempty"`
	Changes     []lesson.Change `json:"changes,omitempty"`
	Outcome     string          `json:"outcome,omitempty"`
	// Of the others.
	SHA256    memory.SHA     `json:"sha256,omitempty"` // the node
	Level     memory.Level   `json:"level,omitempty"`
	Score     float64        `json:"score,omitempty"`
	Kept      bool           `json:"kept"` // false for raw: seen, not kept
	Citations []ContextQuote `json:"citations"`
}

// ContextQuote is a span, and what it shows: failed, change, passed, or said.
type ContextQuote struct {
	Shows string `json:"shows"`
	Quote string `json:"quote,omitempty"`
	memory.Span
}

// Confidence of the tiers.
const (
	confidenceHigh   = "high"
	confidenceMedium = "medium"
	confidenceLow    = "low"
	confidenceNone   = "none"
)

// maxContextBody bounds a request: a log of signature.MaxBytes in base64, and the rest.
const maxContextBody = 2*signature.MaxBytes + 64<<10

func (f *Function) getContext(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	q := ContextRequest{Project: v.Get("project"), Query: v.Get("query"), Tool: v.Get("tool")}
	if s := v.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			serve.WriteError(w, fault.At(fault.Invalid, "limit", "a number from 1 to 100", "%q is not one", s))
			return
		}
		q.Limit = n
	}
	f.writeContext(w, r, q)
}

func (f *Function) postContext(w http.ResponseWriter, r *http.Request) {
	var q ContextRequest
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxContextBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&q); err != nil {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {project, query, tool, log}", "%v", err))
		return
	}
	f.writeContext(w, r, q)
}

func (f *Function) writeContext(w http.ResponseWriter, r *http.Request, q ContextRequest) {
	c, err := f.Context(f.asCaller(r), q)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, c)
}

func (q *ContextRequest) check() error {
	switch {
	case !memory.ValidName(q.Project):
		return fault.At(fault.Invalid, "project", "name one project: lessons are never looked up across", "%.80q is not a project name", q.Project)
	case len(q.Query) > maxQuery:
		return fault.At(fault.Invalid, "query", "ask a shorter question; send a log as log", "%d bytes, at most %d", len(q.Query), maxQuery)
	case !utf8.ValidString(q.Query):
		return fault.At(fault.Invalid, "query", "send it as UTF-8", "not UTF-8")
	case strings.TrimSpace(q.Query) == "" && q.Log == "" && len(q.Data) == 0:
		return fault.At(fault.Invalid, "query", "say what failed, or send its log", "empty")
	case q.Limit < 0 || q.Limit > maxLimit:
		return fault.At(fault.Invalid, "limit", "a number from 1 to 100", "%d", q.Limit)
	}
	return nil
}

// Context answers what is known of a failure: lessons by its exact signature, else what a
// search finds, else documents.
func (f *Function) Context(ctx context.Context, q ContextRequest) (_ Context, err error) {
	defer fault.Wrap(&err, "context")
	start := f.cfg.Now()
	c := Context{Project: q.Project, Confidence: confidenceNone, Results: []ContextResult{}, Degraded: []Degraded{}}
	if err := q.check(); err != nil {
		return c, err
	}
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	why, err := f.lessons(ctx, &q, &c)
	if err == nil && c.Tier == 0 {
		err = f.searched(ctx, &q, &c, why)
	}
	c.TookMS = float64(f.cfg.Now().Sub(start).Microseconds()) / 1000
	return c, err
}

// lessons is tier 1; why says why it has nothing.
func (f *Function) lessons(ctx context.Context, q *ContextRequest, c *Context) (why string, err error) {
	var ask lesson.Ask
	o := signature.Options{Tool: q.Tool}
	if f.cfg.Redact != nil {
		if o.Redactor, err = f.cfg.Redact(ctx); err != nil {
			return "", err
		}
	}
	log := q.Data
	if len(log) == 0 {
		log = []byte(q.Log)
	}
	if len(log) > 0 {
		res, err := signature.Extract(signature.FromBytes(log), o)
		if err != nil {
			return "", err
		}
		ask.AddLog(&res)
		c.SigSHA, c.DetailSHA, c.Failure = res.SigSHA, res.DetailSHA, res.Raw
	}
	if q.Query != "" {
		words := q.Query
		if o.Redactor != nil {
			words, _ = o.Redactor.Redact(words) // as the failure's own words were
		}
		if err := ask.AddWords(q.Tool, words); err != nil {
			return "", err
		}
		// Words may be the failing line itself.
		if res, err := signature.Extract(signature.FromBytes([]byte(q.Query)), o); err == nil && len(log) == 0 {
			ask.AddLog(&res)
		}
	}
	switch {
	case f.cures == nil:
		c.Degraded = append(c.Degraded, Degraded{"lessons", "this function has no index of lessons"})
		return "lessons are not looked up here", nil
	case ask.Empty():
		return "what was sent does not say what failed", nil
	}
	a, err := f.cures.Find(ctx, q.Project, ask, q.Limit)
	switch {
	case fault.Is(err, fault.Unavailable) && ctx.Err() == nil:
		c.Degraded = append(c.Degraded, Degraded{"lessons", err.Error()})
		return "lessons could not be looked up", nil
	case err != nil:
		return "", err
	case len(a.Solutions) == 0:
		return "no lesson has this failure", nil
	}
	c.Tier, c.Confidence, c.By, c.Count = 1, confidenceHigh, a.By, a.Count
	c.Why = fmt.Sprintf("%s by %s", plural(a.Count, "lesson"), map[cures.By]string{
		cures.ByDetail: "detail_sha: this very failure was cured before", cures.ByClass: "sig_sha: a failure of this class was cured before",
		cures.BySymptom: "sym_sha: a failure that is described by these words was cured before",
	}[a.By])
	for i := range a.Solutions {
		c.Results = append(c.Results, f.ofSolution(q.Project, &a.Solutions[i]))
	}
	return "", nil
}

func (f *Function) ofSolution(project string, s *lesson.Solution) ContextResult {
	r := ContextResult{
		Source: s.Source, Text: s.Solution, Lesson: s.Lesson, SuccessRate: s.SuccessRate, Uses: s.Uses, Failure: s.Failure,
		Command: s.Command, Changes: s.Changes, Outcome: s.Outcome, Kept: true, Citations: []ContextQuote{},
	}
	if t, err := time.Parse(time.RFC3339, s.Timestamp); err == nil {
		r.Timestamp = &t
	}
	for _, sp := range s.Spans {
		r.Citations = append(r.Citations, ContextQuote{Shows: sp.Role, Span: sp.Span})
	}
	if len(r.Citations) == 0 { // a person said it: the record is the source
		r.Citations = append(r.Citations, ContextQuote{Shows: "said", Quote: s.Solution, Span: memory.Span{
			Object: "mneme/log/" + f.cfg.Tenant + "/" + project + "/lessons/" + string(s.Lesson) + ".jsonl",
		}})
	}
	return r
}

// searched is tiers 2 and 3, through the function's own search.
func (f *Function) searched(ctx context.Context, q *ContextRequest, c *Context, why string) error {
	words := strings.TrimSpace(q.Query)
	if words == "" {
		words = c.Failure
	}
	if len(words) > maxQuery {
		words = strings.ToValidUTF8(words[:maxQuery], "")
	}
	if strings.TrimSpace(words) == "" {
		c.Why = why + "; and there are no words to search by"
		return nil
	}
	a, err := f.Ask(ctx, Request{Query: words, Projects: []string{q.Project}, Limit: q.Limit})
	if err != nil {
		return err
	}
	c.Degraded = append(c.Degraded, a.Degraded...)
	var said, documents []ContextResult
	for i := range a.Results {
		r := &a.Results[i]
		if r.Kept && !document(r) {
			said = append(said, ofResult(r))
		} else {
			documents = append(documents, ofResult(r))
		}
	}
	switch {
	case len(said) > 0:
		c.Tier, c.Confidence, c.Results = 2, confidenceMedium, said
		c.Why = why + "; found by meaning and words in what the project keeps"
	case len(documents) > 0:
		c.Tier, c.Confidence, c.Results = 3, confidenceLow, documents
		c.Why = why + ", and nothing said of it is kept; from documents, or seen and not kept"
	default:
		c.Why = why + ", and nothing else is known about it"
	}
	return nil
}

// document reports whether a result rests on notes and documents alone.
func document(r *Result) bool {
	if r.Role != "" {
		return r.Role == memory.RoleNote
	}
	for i := range r.Citations {
		if r.Citations[i].Role != memory.RoleNote {
			return false
		}
	}
	return len(r.Citations) > 0
}

func ofResult(r *Result) ContextResult {
	out := ContextResult{Text: r.Text, Timestamp: r.Time, SHA256: r.SHA256, Level: r.Level, Score: r.Score, Kept: r.Kept, Citations: []ContextQuote{}}
	for i := range r.Citations {
		ci := &r.Citations[i]
		if out.Source == "" {
			out.Source = ci.Object
		}
		out.Citations = append(out.Citations, ContextQuote{Shows: "said", Quote: ci.Quote, Span: memory.Span{
			Object: ci.Object, ETag: ci.ETag, Start: ci.Start, End: ci.End, Codec: ci.Codec, SHA256: ci.SHA256, HMAC: ci.HMAC, Redacted: ci.Redacted,
			Chunk: ci.Chunk, ChunkStart: ci.ChunkStart, ChunkEnd: ci.ChunkEnd,
		}})
	}
	return out
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
