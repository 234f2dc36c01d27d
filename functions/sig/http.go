package sig

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/cures"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/signature"
)

// Routes adds what people and agents call.
func (f *Function) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /memory/sig/lessons", f.postLesson)
	mux.HandleFunc("POST /memory/sig/outcomes", f.postOutcome)
	mux.HandleFunc("GET /memory/sig/explain", f.getExplain)
	mux.HandleFunc("POST /memory/sig/explain", f.postExplain)
}

// maxBody bounds a request: a log of signature.MaxBytes in base64, and the rest.
const maxBody = 2*signature.MaxBytes + 64<<10

// Log is a log in a request: as text, or as bytes in base64 where it is none.
type Log struct {
	Log  string `json:"log,omitempty"`
	Data []byte `json:"data,omitempty"`
}

func (l *Log) bytes() []byte {
	if len(l.Data) > 0 {
		return l.Data
	}
	return []byte(l.Log)
}

// LearnRequest is the body of POST /memory/sig/lessons.
type LearnRequest struct {
	Project  string `json:"project"`
	Tool     string `json:"tool,omitempty"`
	Solution string `json:"solution"`
	Log
}

// Learned is its answer: what stands in the log.
type Learned struct {
	Project    string     `json:"project"`
	Lesson     memory.SHA `json:"lesson"`
	Stored     bool       `json:"stored"`  // false: it stood there already
	Visible    bool       `json:"visible"` // it is found from now on; else when the index has caught up
	Tool       string     `json:"tool"`
	InnerTool  string     `json:"inner_tool,omitempty"`
	Rule       string     `json:"rule"`
	Confidence float64    `json:"confidence"`
	SigSHA     string     `json:"sig_sha"`
	DetailSHA  string     `json:"detail_sha"`
	Failure    string     `json:"failure"`  // the root line, redacted
	Solution   string     `json:"solution"` // redacted
	Symptoms   int        `json:"symptoms"` // under which it is found
}

func decode(w http.ResponseWriter, r *http.Request, into any, hint string) error {
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fault.At(fault.Invalid, "body", hint, "%v", err)
	}
	return nil
}

func checkProject(p string) error {
	if !memory.ValidName(p) {
		return fault.At(fault.Invalid, "project", "name one project: lessons are never looked up across", "%.80q is not a project name", p)
	}
	return nil
}

func (f *Function) postLesson(w http.ResponseWriter, r *http.Request) {
	out, err := f.learn(w, r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	status := http.StatusOK
	if out.Stored {
		status = http.StatusCreated
	}
	serve.WriteJSON(w, status, out)
}

func (f *Function) learn(w http.ResponseWriter, r *http.Request) (out Learned, err error) {
	defer fault.Wrap(&err, "learn")
	ctx := r.Context()
	var b LearnRequest
	if err := decode(w, r, &b, "send {project, tool, log, solution}"); err != nil {
		return out, err
	}
	if err := checkProject(b.Project); err != nil {
		return out, err
	}
	switch text := strings.TrimSpace(b.Solution); {
	case text == "":
		return out, fault.At(fault.Invalid, "solution", "say what cured it", "empty")
	case !utf8.ValidString(text):
		return out, fault.At(fault.Invalid, "solution", "send it as UTF-8", "not UTF-8")
	case len(text) > lesson.MaxText:
		return out, fault.At(fault.Invalid, "solution", "say it shorter; a longer text is a note", "%d bytes, at most %d", len(text), lesson.MaxText)
	}
	mask, err := f.redactor(ctx)
	if err != nil {
		return out, err
	}
	res, err := signature.Extract(signature.FromBytes(b.bytes()), signature.Options{Tool: b.Tool, Redactor: mask})
	if err != nil {
		return out, err
	}
	if !lesson.Usable(&res) {
		return out, fault.At(fault.Invalid, "log", "send the whole log, or name the tool", "the log does not say what failed: a lesson learned from it would be found for every failure")
	}
	l := lesson.Of(&res)
	l.Text, _ = mask.Redact(strings.TrimSpace(b.Solution))
	l.Outcome, l.Origin, l.Time = lesson.Told, lesson.Person, f.cfg.Now().UTC().Format(time.RFC3339)
	out = Learned{
		Project: b.Project, Tool: l.Tool, InnerTool: l.InnerTool, Rule: l.Rule, Confidence: l.Confidence, SigSHA: l.SigSHA, DetailSHA: l.DetailSHA,
		Failure: l.Failure, Solution: l.Text, Symptoms: len(l.SymSHAs),
	}
	if out.Lesson, out.Stored, err = f.Store(ctx, b.Project, &l); err != nil {
		return out, err
	}
	out.Visible = true
	if out.Stored {
		out.Visible, err = f.publish(ctx, b.Project, out.Lesson)
	}
	return out, err
}

// OutcomeRequest is the body of POST /memory/sig/outcomes.
type OutcomeRequest struct {
	Project string `json:"project"`
	Lesson  string `json:"lesson"` // its key, or how that begins
	Worked  *bool  `json:"worked"`
	// Use names the use, so that telling of it twice is one; without it each request is
	// another use.
	Use string `json:"use,omitempty"`
}

// Told is its answer.
type Told struct {
	Project string     `json:"project"`
	Lesson  memory.SHA `json:"lesson"`
	Record  memory.SHA `json:"record"`
	Worked  bool       `json:"worked"`
	Use     string     `json:"use"`
	Visible bool       `json:"visible"`
}

func (f *Function) postOutcome(w http.ResponseWriter, r *http.Request) {
	out, err := f.tell(w, r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusCreated, out)
}

func (f *Function) tell(w http.ResponseWriter, r *http.Request) (out Told, err error) {
	defer fault.Wrap(&err, "outcome")
	ctx := r.Context()
	var b OutcomeRequest
	if err := decode(w, r, &b, "send {project, lesson, worked}"); err != nil {
		return out, err
	}
	if err := checkProject(b.Project); err != nil {
		return out, err
	}
	if b.Worked == nil {
		return out, fault.At(fault.Invalid, "worked", "true or false", "not said")
	}
	key, err := f.lessonNamed(ctx, b.Project, b.Lesson)
	if err != nil {
		return out, err
	}
	now := f.cfg.Now().UTC()
	o := lesson.Outcome{Lesson: key, Use: b.Use, Worked: *b.Worked, Time: now.Format(time.RFC3339Nano)}
	if o.Use == "" {
		o.Use = "at-" + strings.NewReplacer(":", "", "-", "").Replace(o.Time)
	}
	rec, err := eventlog.OutcomeRecord(f.cfg.Tenant, b.Project, &o)
	if err != nil {
		return out, err
	}
	record, err := f.cfg.Log.PutRecords(ctx, b.Project, eventlog.Lessons, []eventlog.Record{rec})
	if err != nil {
		return out, err
	}
	out = Told{Project: b.Project, Lesson: o.Lesson, Record: record, Worked: o.Worked, Use: o.Use}
	out.Visible, err = f.publish(ctx, b.Project, record)
	return out, err
}

// minPrefix is how many digits of a lesson's key must be said.
const minPrefix = 6

// lessonNamed finds the lesson of a project whose key is, or begins with, what was said.
func (f *Function) lessonNamed(ctx context.Context, project, said string) (memory.SHA, error) {
	const hint = "take it from mem sig explain"
	if len(said) < minPrefix || len(said) > 64 {
		return "", fault.At(fault.Invalid, "lesson", hint, "%.80q is no key of a lesson, nor the first %d digits of one", said, minPrefix)
	}
	var found []memory.SHA
	for key, err := range f.cfg.Log.RecordKeysWith(ctx, project, eventlog.Lessons, strings.ToLower(said)) {
		if err != nil {
			return "", err
		}
		recs, err := f.cfg.Log.Records(ctx, project, eventlog.Lessons, key)
		if err != nil {
			return "", err
		}
		for _, rec := range recs {
			if _, erased, ok, err := eventlog.AsLesson(rec); err == nil && ok && !erased {
				found = append(found, key)
			}
		}
		if len(found) > 1 {
			return "", fault.At(fault.Invalid, "lesson", "type more digits", "several lessons begin with %s", said)
		}
	}
	if len(found) == 0 {
		return "", fault.At(fault.NotFound, "lesson", hint, "project %s has no lesson %s", project, said)
	}
	return found[0], nil
}

// ExplainRequest is the body of POST /memory/sig/explain: a hash, words, or a log.
type ExplainRequest struct {
	Project string `json:"project"`
	SigSHA  string `json:"sig_sha,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Query   string `json:"query,omitempty"`
	Limit   int    `json:"limit,omitempty"`
	Log
}

// Explained is its answer (brief U6).
type Explained struct {
	Project   string            `json:"project"`
	Found     bool              `json:"found"`
	By        cures.By          `json:"by,omitempty"`      // detail_sha: this very failure; sig_sha: its class; sym_sha: what is said of it
	SigSHA    string            `json:"sig_sha,omitempty"` // asked for, or of the best solution
	DetailSHA string            `json:"detail_sha,omitempty"`
	Count     int               `json:"count"` // lessons found; 1,000 is that or more
	Solutions []lesson.Solution `json:"solutions"`
	Failure   string            `json:"failure,omitempty"` // root line of the log that was sent
	Why       string            `json:"why,omitempty"`     // why nothing was found
}

// maxWords bounds what a person says of a failure.
const maxWords = 4 << 10

func (f *Function) getExplain(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	f.answer(w, r, ExplainRequest{Project: v.Get("project"), SigSHA: v.Get("sig_sha"), Tool: v.Get("tool"), Query: v.Get("query")})
}

func (f *Function) postExplain(w http.ResponseWriter, r *http.Request) {
	var b ExplainRequest
	if err := decode(w, r, &b, "send {project, sig_sha}, {project, tool, query} or {project, tool, log}"); err != nil {
		serve.WriteError(w, err)
		return
	}
	f.answer(w, r, b)
}

func (f *Function) answer(w http.ResponseWriter, r *http.Request, b ExplainRequest) {
	out, err := f.explain(r, b)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

func (f *Function) explain(r *http.Request, b ExplainRequest) (out Explained, err error) {
	defer fault.Wrap(&err, "explain")
	out = Explained{Project: b.Project, Solutions: []lesson.Solution{}}
	if err := checkProject(b.Project); err != nil {
		return out, err
	}
	if f.cures == nil {
		return out, fault.At(fault.Unavailable, "lessons", "give this function the index of lessons (docs/LESSONS.md)", "lessons are stored here and not looked up")
	}
	if len(b.Query) > maxWords || !utf8.ValidString(b.Query) {
		return out, fault.At(fault.Invalid, "query", "say it shorter, as UTF-8; send a log as log", "%d bytes, at most %d", len(b.Query), maxWords)
	}
	var ask lesson.Ask
	log := b.bytes()
	if b.SigSHA != "" {
		if err := ask.AddSig(b.SigSHA); err != nil {
			return out, err
		}
		out.SigSHA = strings.ToLower(b.SigSHA)
	}
	mask, err := f.redactor(r.Context())
	if err != nil {
		return out, err
	}
	if len(log) > 0 {
		res, err := signature.Extract(signature.FromBytes(log), signature.Options{Tool: b.Tool, Redactor: mask})
		if err != nil {
			return out, err
		}
		ask.AddLog(&res)
		out.SigSHA, out.DetailSHA, out.Failure = res.SigSHA, res.DetailSHA, res.Raw
		if ask.Empty() {
			out.Why = "the log does not say what failed"
		}
	}
	if b.Query != "" {
		words, _ := mask.Redact(b.Query) // as the failure's own words were
		if err := ask.AddWords(b.Tool, words); err != nil {
			return out, err
		}
	}
	if ask.Empty() {
		if len(log) == 0 && b.Query == "" {
			return out, fault.At(fault.Invalid, "body", "send sig_sha, or tool and query, or a log", "nothing is asked")
		}
		if out.Why == "" {
			out.Why = "the words say no more than that something failed"
		}
		return out, nil
	}
	a, err := f.cures.Find(r.Context(), b.Project, ask, b.Limit)
	if err != nil {
		return out, err
	}
	out.By, out.Count, out.Found = a.By, a.Count, len(a.Solutions) > 0
	if out.Found {
		out.Solutions = a.Solutions
		if out.SigSHA == "" {
			out.SigSHA = a.Solutions[0].SigSHA
		}
	} else {
		out.Why = "no lesson of this project has this failure, one of its class, or these words"
	}
	return out, nil
}
