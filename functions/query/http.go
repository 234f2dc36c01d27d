package query

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Routes adds what people and agents call.
func (f *Function) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /memory/query", f.ask(fromURL))
	mux.HandleFunc("POST /memory/query", f.ask(fromBody))
	mux.HandleFunc("GET /memory/context", f.getContext)
	mux.HandleFunc("POST /memory/context", f.postContext)
	mux.HandleFunc("GET /memory/projects", f.projects)
	mux.HandleFunc("GET /memory/synthesis", f.synthesis)
	mux.HandleFunc("GET /memory/why", f.why)
	mux.HandleFunc("GET /memory/log", f.logLines)
	mux.HandleFunc("GET /memory/report", f.report)
	mux.HandleFunc("GET /memory/skills", f.listSkills)
	mux.HandleFunc("GET /memory/skills/_draft", f.draftSkill)
	mux.HandleFunc("GET /memory/skills/{name}", f.showSkill)
	mux.HandleFunc("POST /memory/skills", f.postSkill)
	mux.HandleFunc("GET /memory/original/{hash}", f.getOriginal)
	mux.HandleFunc("POST /memory/original", f.postOriginal)
}

func (f *Function) ask(parse func(*http.Request) (Request, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q, err := parse(r)
		if err == nil {
			err = q.check()
		}
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		a, err := f.Ask(f.asCaller(r), q)
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		serve.WriteJSON(w, http.StatusOK, a)
	}
}

// asCaller is the request's context, with the caller's own token for the lexical index
// where that is configured. The token goes to no other host, and into no log.
func (f *Function) asCaller(r *http.Request) context.Context {
	if f.cfg.Caller == nil {
		return r.Context()
	}
	return index.WithBearer(r.Context(), strings.TrimSpace(f.cfg.Caller(r)))
}

// body is POST /memory/query. project is one name; projects several.
type body struct {
	Query    string   `json:"query"`
	Project  string   `json:"project"`
	Projects []string `json:"projects"`
	Level    string   `json:"level"`
	Limit    *int     `json:"limit"`
	Since    string   `json:"since"`
	Until    string   `json:"until"`
	AsOf     string   `json:"as_of"`
	Source   string   `json:"source"`
	Sources  []string `json:"sources"`
	Floor    *bool    `json:"floor"`

	DenseWeight *float64 `json:"dense_weight"`

	Optimize     bool `json:"optimize"`
	BudgetTokens *int `json:"budget_tokens"`
}

// maxBody is of a request: room for a question that is too long to be told so.
const maxBody = 1 << 20

func fromBody(r *http.Request) (Request, error) {
	var b body
	dec := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		return Request{}, fault.At(fault.Invalid, "body", "send {query, project, level, limit}", "%v", err)
	}
	return b.request()
}

func fromURL(r *http.Request) (Request, error) {
	v := r.URL.Query()
	b := body{Query: v.Get("query"), Level: v.Get("level"), Since: v.Get("since"), Until: v.Get("until"), AsOf: v.Get("as_of"), Sources: v["source"]}
	for _, p := range v["project"] {
		b.Projects = append(b.Projects, strings.Split(p, ",")...)
	}
	if s := v.Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return Request{}, fault.At(fault.Invalid, "limit", "a number from 1 to 100", "%q is not one", s)
		}
		b.Limit = &n
	}
	if s := v.Get("floor"); s != "" {
		on, err := strconv.ParseBool(s)
		if err != nil {
			return Request{}, fault.At(fault.Invalid, "floor", "true, or false for whatever is nearest", "%q is neither", s)
		}
		b.Floor = &on
	}
	if s := v.Get("optimize"); s != "" {
		on, err := strconv.ParseBool(s)
		if err != nil {
			return Request{}, fault.At(fault.Invalid, "optimize", "true for short texts and quotes", "%q is neither true nor false", s)
		}
		b.Optimize = on
	}
	if s := v.Get("budget_tokens"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return Request{}, fault.At(fault.Invalid, "budget_tokens", "a number from 50 to 1000000", "%q is not one", s)
		}
		b.BudgetTokens = &n
	}
	if s := v.Get("dense_weight"); s != "" {
		w, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return Request{}, fault.At(fault.Invalid, "dense_weight", "a number from 0 (words alone) to 1 (meaning alone)", "%q is not one", s)
		}
		b.DenseWeight = &w
	}
	return b.request()
}

func (b body) request() (Request, error) {
	q := Request{Query: b.Query, DenseWeight: b.DenseWeight, NoFloor: b.Floor != nil && !*b.Floor}
	q.Optimize = b.Optimize
	if b.BudgetTokens != nil {
		if q.BudgetTokens = *b.BudgetTokens; q.BudgetTokens == 0 {
			return q, fault.At(fault.Invalid, "budget_tokens", "a number from 50 to 1000000", "0")
		}
	}
	if b.Limit != nil {
		if q.Limit = *b.Limit; q.Limit < 1 || q.Limit > maxLimit {
			return q, fault.At(fault.Invalid, "limit", "a number from 1 to 100", "%d", q.Limit)
		}
	}
	for _, s := range append([]string{b.Source}, b.Sources...) {
		if s != "" && !slices.Contains(q.Sources, s) {
			q.Sources = append(q.Sources, s)
		}
	}
	for _, p := range append([]string{b.Project}, b.Projects...) {
		if p != "" && !slices.Contains(q.Projects, p) {
			q.Projects = append(q.Projects, p)
		}
	}
	for l := range strings.SplitSeq(b.Level, ",") {
		switch l := memory.Level(strings.TrimSpace(l)); l {
		case "":
		case memory.L0, memory.L1, memory.L2, memory.LevelRaw:
			q.Levels = append(q.Levels, l)
		default:
			return q, fault.At(fault.Invalid, "level", "L0, L1, L2 or raw, several with commas", "%q is not a level", l)
		}
	}
	var err error
	if q.Since, err = parseTime("since", b.Since); err != nil {
		return q, err
	}
	if q.Until, err = parseTime("until", b.Until); err != nil {
		return q, err
	}
	q.AsOf, err = parseTime("as_of", b.AsOf)
	return q, err
}

// parseTime reads RFC 3339 or a day.
func parseTime(field, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.UTC(), nil
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return t, fault.At(fault.Invalid, field, "2026-01-31 or 2026-01-31T10:00:00Z", "%q is not a time", s)
	}
	return t, nil
}

// Limits of the objects that a request names.
const (
	maxSources = 16
	maxSource  = 1024 // bytes, S3's of a key
)

func (q *Request) check() error {
	switch {
	case strings.TrimSpace(q.Query) == "":
		return fault.At(fault.Invalid, "query", "ask a question", "empty")
	case len(q.Query) > maxQuery:
		return fault.At(fault.Invalid, "query", "ask a shorter question", "%d bytes, at most %d", len(q.Query), maxQuery)
	case !utf8.ValidString(q.Query):
		return fault.At(fault.Invalid, "query", "send it as UTF-8", "not UTF-8")
	case checkBudget(q.BudgetTokens) != nil:
		return checkBudget(q.BudgetTokens)
	case q.Limit < 0 || q.Limit > maxLimit:
		return fault.At(fault.Invalid, "limit", "a number from 1 to 100", "%d", q.Limit)
	case q.DenseWeight != nil && !(*q.DenseWeight >= 0 && *q.DenseWeight <= 1):
		return fault.At(fault.Invalid, "dense_weight", "a number from 0 (words alone) to 1 (meaning alone)", "%v", *q.DenseWeight)
	case !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until):
		return fault.At(fault.Invalid, "since", "since is the earlier of the two; until itself is not in it", "%s is not before until=%s", q.Since.Format(time.RFC3339), q.Until.Format(time.RFC3339))
	case !q.Since.IsZero() && !q.AsOf.IsZero() && q.AsOf.Before(q.Since):
		return fault.At(fault.Invalid, "as_of", "as_of is at or after since", "%s is before since=%s", q.AsOf.Format(time.RFC3339), q.Since.Format(time.RFC3339))
	case len(q.Sources) > maxSources:
		return fault.At(fault.Invalid, "source", "name fewer, or what their names begin with", "%d objects, at most %d", len(q.Sources), maxSources)
	case slices.ContainsFunc(q.Sources, func(s string) bool { return len(s) > maxSource || !utf8.ValidString(s) }):
		return fault.At(fault.Invalid, "source", "the name of an upload, or what it begins with", "not the name of an object: over %d bytes, or not UTF-8", maxSource)
	case len(q.Projects) > 64:
		return fault.At(fault.Invalid, "project", "ask at most 64 projects at once", "%d projects", len(q.Projects))
	}
	for _, p := range q.Projects {
		if !memory.ValidName(p) {
			return fault.At(fault.Invalid, "project", "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", p)
		}
	}
	return nil
}

// projectList is GET /memory/projects. Who names a project by a folder of its
// own disk does it by these mappings, as learn does for a record's cwd.
type projectList struct {
	Projects      []projectRow `json:"projects"`
	Mappings      []mappingRow `json:"mappings,omitempty"`
	MappingsError string       `json:"mappings_error,omitempty"` // why there are none
}

type mappingRow struct {
	CWD     string `json:"cwd"`
	Project string `json:"project"`
}

// projectRow is one line of GET /memory/projects.
type projectRow struct {
	Project   string        `json:"project"`
	Parts     int64         `json:"parts"` // admitted
	Questions []questionRow `json:"questions"`
	Error     string        `json:"error,omitempty"` // why the rest of the row is missing
}

type questionRow struct {
	ID       string `json:"id"`
	Question string `json:"question"`
	Stream   string `json:"stream"`
}

func (f *Function) projects(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	names, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	rows := []projectRow{}
	for _, n := range names {
		row, err := f.projectRow(ctx, n)
		if err != nil {
			if ctx.Err() != nil {
				serve.WriteError(w, fault.As(fault.Unavailable, ctx.Err()))
				return
			}
			row.Error = err.Error() // one damaged project does not hide the others
		}
		rows = append(rows, row)
	}
	out := projectList{Projects: rows}
	maps, err := f.cfg.Catalog.Mappings(ctx)
	if err != nil {
		out.MappingsError = err.Error() // the list itself stands
	}
	for _, m := range maps.Mappings {
		out.Mappings = append(out.Mappings, mappingRow{m.CWD, m.Project})
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

func (f *Function) projectRow(ctx context.Context, name string) (projectRow, error) {
	row := projectRow{Project: name, Questions: []questionRow{}}
	streams, err := f.cfg.Catalog.ServingStreams(ctx, name)
	if err != nil {
		return row, err
	}
	for _, s := range streams {
		row.Questions = append(row.Questions, questionRow{s.QueryID, s.Question, s.Name})
	}
	head, err := f.cfg.Log.Head(ctx, name, memory.AdmitStream)
	row.Parts = head.Seq
	return row, err
}
