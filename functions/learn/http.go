package learn

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/replay"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/transcript"
)

const (
	// maxLearnBody bounds POST /memory/learn. Larger texts are uploaded.
	maxLearnBody = 16 << 20
	// maxFileName keeps an object key part under 200 bytes.
	maxFileName = 180
)

// Routes adds what people and programs call.
func (f *Function) Routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /memory/learn", f.postLearn)
	mux.HandleFunc("PUT /memory/files/{project}/{name...}", f.putFile)
	mux.HandleFunc("GET /memory/ingest/{job}", f.getJob)
	mux.HandleFunc("POST /memory/scrub", f.postScrub)
	mux.HandleFunc("POST /memory/forget", f.postForget)
	mux.HandleFunc("GET /memory/forget", f.getForget)
	mux.HandleFunc("GET /memory/redact", f.getPatterns)
	mux.HandleFunc("POST /memory/redact", f.setPatterns)
	mux.HandleFunc("GET /memory/schemas", f.listSchemas)
	mux.HandleFunc("POST /memory/schemas", f.addSchema)
	mux.HandleFunc("GET /memory/schemas/{name}", f.getSchema)
	mux.HandleFunc("DELETE /memory/schemas/{name}", f.removeSchema)
}

// learnRequest is the body of POST /memory/learn (brief D1).
type learnRequest struct {
	Project        string `json:"project"`
	Text           string `json:"text"`
	Name           string `json:"name"`  // file name, "note.md" by default: its ending is a hint to the reader
	Query          string `json:"query"` // an ad-hoc question; absent: the standing ones
	Model          string `json:"model"`
	GateModel      string `json:"gate_model"`
	RewriteModel   string `json:"rewrite_model"`
	GateBaseURL    string `json:"gate_base_url"`
	RewriteBaseURL string `json:"rewrite_base_url"`
	MemoryBudget   int    `json:"memory_budget"` // tokens, ad-hoc only; 4,096 by default
	ChunkSize      int    `json:"chunk_size"`    // characters of a note's chunk; 2,000 by default
	Again          bool   `json:"again"`         // read anew what was forgotten
}

// Learned is the answer of brief D1.
type Learned struct {
	Project      string        `json:"project"`
	Status       string        `json:"status"` // completed | running | refused | forgotten
	ChunksSeen   int           `json:"chunks_seen"`
	ChunksUsed   int           `json:"chunks_used"`
	Memory       string        `json:"memory"`
	MemoryTokens int           `json:"memory_tokens"`
	Stored       bool          `json:"stored"` // whether this call added to the log
	Model        string        `json:"model"`
	JobID        string        `json:"job_id"`
	StatusURL    string        `json:"status_url"`
	Outcome      string        `json:"outcome"` // see Outcome…
	Reason       string        `json:"reason,omitempty"`
	Hint         string        `json:"hint,omitempty"` // what to do about a refusal, or about what a running job waits for
	Questions    []LearnedPart `json:"questions"`
	// Counts says what the reader found: bad, joined, over-long and cut-off
	// lines, unknown record types. Absent where the object was not read.
	Counts *memory.Counts `json:"counts,omitempty"`
}

// LearnedPart says what one question stream made of the part.
type LearnedPart struct {
	Project      string `json:"project"`
	QueryID      string `json:"query_id"`
	Stream       string `json:"stream"`
	Done         bool   `json:"done"`
	ChunksSeen   int    `json:"chunks_seen"`
	ChunksUsed   int    `json:"chunks_used"`
	Pending      int    `json:"pending,omitempty"` // steps that the model left undecided: mem regate --pending
	MemoryTokens int    `json:"memory_tokens"`
}

func (f *Function) postLearn(w http.ResponseWriter, r *http.Request) {
	var req learnRequest
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLearnBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			serve.WriteError(w, fault.At(fault.Invalid, "body", "upload larger texts to the inbox bucket, or use mem learn", "over %d bytes", maxLearnBody))
			return
		}
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {project, text, query}", "%v", err))
		return
	}
	if err := req.check(f.cfg.Count); err != nil {
		serve.WriteError(w, err)
		return
	}
	red, err := f.redactor(r.Context())
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	req.Query, _ = red.Redact(req.Query) // it stands in records, as text does
	picked, err := f.pick(req, red)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	wait, err := waitOf(r, f.cfg.Wait)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	l, err := f.learnText(r.Context(), req, picked, wait)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	status := http.StatusOK
	if l.Status == "running" {
		status = http.StatusAccepted
	}
	serve.WriteJSON(w, status, l)
}

func (q *learnRequest) check(count func(string) int) error {
	bad := func(field, hint, format string, args ...any) error {
		return fault.At(fault.Invalid, "field "+field, hint, format, args...)
	}
	switch {
	case !memory.ValidName(q.Project):
		return bad("project", "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", q.Project)
	case strings.TrimSpace(q.Text) == "":
		return bad("text", "send the text to learn from", "empty")
	case q.MemoryBudget != 0 && q.Query == "":
		return bad("memory_budget", "send it with a query: the budget of standing questions belongs to them", "without a query")
	case q.MemoryBudget < 0 || q.MemoryBudget > catalog.MaxBudget:
		return bad("memory_budget", "", "must be 1 to %d tokens", catalog.MaxBudget)
	case q.ChunkSize != 0 && (q.ChunkSize < 200 || q.ChunkSize > 20_000):
		return bad("chunk_size", "", "must be 200 to 20000 characters")
	case len(q.Query) > 8<<10:
		return bad("query", "ask a shorter question", "over 8 KiB")
	}
	if n := count(q.Query); n > gru.MaxQuestionTokens {
		return bad("query", "ask a shorter question", "%d tokens, at most %d", n, gru.MaxQuestionTokens)
	}
	return nil
}

// learnText stores the body in the inbox, admits it and waits for its runs.
func (f *Function) learnText(ctx context.Context, q learnRequest, picked *models.Pick, wait time.Duration) (Learned, error) {
	name, err := fileName(q.Name, "note.md")
	if err != nil {
		return Learned{}, err
	}
	sha := memory.SumString(q.Text)
	if !q.Again && q.Query == "" {
		if res, barred, err := f.barredBytes(ctx, q.Project, name, sha); err != nil || barred {
			return f.summary(res), err
		}
	}
	o, err := f.store(ctx, q.Project, name, sha, strings.NewReader(q.Text), int64(len(q.Text)))
	if err != nil {
		return Learned{}, err
	}
	res, err := f.offered(ctx, o, objectOptions{noteChars: q.ChunkSize, again: q.Again})
	if err != nil {
		return Learned{}, err
	}
	events := res.Events
	var adhoc *catalog.Stream
	if q.Query != "" && len(res.Receipt.Parts) > 0 {
		p := res.Receipt.Parts[0]
		a := catalog.Adhoc{Stream: memory.AdhocStreamBy(q.Query, p.RawSHA256, picked.Key()), Models: picked, Question: q.Query, RawSHA256: p.RawSHA256, Admit: p.Seq, BudgetTokens: q.MemoryBudget}
		if a.BudgetTokens == 0 {
			a.BudgetTokens = catalog.AdhocBudget
		}
		if res.asked, err = f.cfg.Catalog.PutAdhoc(ctx, q.Project, a); err != nil {
			return Learned{}, err
		}
		if res.asked && picked != nil {
			again, err := f.cfg.Catalog.Reopen(ctx, q.Project, a)
			if err != nil {
				return Learned{}, err
			}
			res.asked = !again // refused then, so that this call is the first to use any chunk
		}
		s := a.AsStream()
		adhoc = &s
		events = append(events, event.New(event.RunRequested, f.Name(), event.Stream{Tenant: f.cfg.Tenant, Project: q.Project, Stream: a.Stream}))
	}
	if err := f.publish(ctx, events); err != nil {
		return Learned{}, err
	}
	return f.await(ctx, res, adhoc, wait)
}

func (f *Function) publish(ctx context.Context, es []ce.Event) error {
	if len(es) == 0 || f.cfg.Publish == nil {
		return nil
	}
	return f.cfg.Publish(ctx, es...)
}

// store puts a body under <project>/_post/<sha256>/<name>, create-only.
func (f *Function) store(ctx context.Context, project, name string, sha memory.SHA, r io.Reader, size int64) (event.Object, error) {
	key := project + "/" + postDir + "/" + string(sha) + "/" + name
	info, err := f.cfg.Inbox.CreateReader(ctx, key, r, size)
	if fault.Is(err, fault.Conflict) {
		info, err = f.cfg.Inbox.Head(ctx, key) // the same bytes came before
	}
	if err != nil {
		return event.Object{}, err
	}
	return event.Object{Bucket: f.cfg.Inbox.Name(), Key: key, ETag: info.ETag, SizeBytes: info.SizeBytes}, nil
}

// fileName is the last key part of an uploaded body, and the two before it
// where they tell what it is.
func fileName(name, def string) (string, error) {
	full := path.Clean("/" + strings.ReplaceAll(name, `\`, "/"))
	name = path.Base(full)
	if session, _, ok := transcript.Spilled(full); ok {
		name = session + "/" + path.Base(path.Dir(full)) + "/" + name
		if err := objstore.ValidKey("x/" + name); err != nil || len(name) > maxFileName {
			return "", fault.At(fault.Invalid, "name", "use shorter or plainer names of folder and file", "%.100q can not be a key", name)
		}
		return name, nil
	}
	if name == "/" || name == "." {
		name = def
	}
	if len(name) > maxFileName {
		name = name[len(name)-maxFileName:]
		for len(name) > 0 && name[0]&0xC0 == 0x80 { // not inside a UTF-8 sequence
			name = name[1:]
		}
	}
	if err := objstore.ValidKey("x/" + name); err != nil {
		return "", fault.At(fault.Invalid, "name", "use a plain file name", "%v", err)
	}
	return name, nil
}

// putFile takes a file from `mem learn`: body is the file, `sha256` in the
// query its hash, which is checked against what arrived.
func (f *Function) putFile(w http.ResponseWriter, r *http.Request) {
	res, err := f.uploadFile(r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	l := f.summary(res)
	serve.WriteJSON(w, http.StatusOK, l)
}

func (f *Function) uploadFile(r *http.Request) (Result, error) {
	project := r.PathValue("project")
	if project != autoProject && !memory.ValidName(project) {
		return Result{}, fault.At(fault.Invalid, "project", "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", project)
	}
	name, err := fileName(r.PathValue("name"), "file")
	if err != nil {
		return Result{}, err
	}
	sha := memory.SHA(r.URL.Query().Get("sha256"))
	if !sha.Valid() {
		return Result{}, fault.At(fault.Invalid, "sha256", "send the hex sha256 of the file", "missing or not a hash")
	}
	again := false
	if v := r.URL.Query().Get("again"); v != "" {
		if again, err = strconv.ParseBool(v); err != nil {
			return Result{}, fault.At(fault.Invalid, "again", "true or false", "%q is neither", v)
		}
	}
	if r.ContentLength < 0 {
		return Result{}, fault.At(fault.Invalid, "Content-Length", "send the file's size", "missing")
	}
	if !again {
		if res, barred, err := f.barredBytes(r.Context(), project, name, sha); err != nil || barred {
			return res, err
		}
	}
	body := &checkedReader{r: r.Body, h: sha256.New(), left: r.ContentLength, want: sha}
	if err := body.check(); err != nil {
		return Result{}, err
	}
	o, err := f.store(r.Context(), project, name, sha, body, r.ContentLength)
	if body.wrong != nil {
		return Result{}, body.wrong
	}
	if err != nil {
		return Result{}, err
	}
	res, err := f.offered(r.Context(), o, objectOptions{again: again})
	if err != nil {
		return Result{}, err
	}
	return res, f.publish(r.Context(), res.Events)
}

// summary is D1's object before any run is waited for.
func (f *Function) summary(res Result) Learned {
	r := res.Receipt
	id := string(eventlog.ReceiptID(r.Bucket, r.Key, r.ETag))
	l := Learned{
		Project: strings.SplitN(r.Key, "/", 2)[0], Model: models.Builtin, Outcome: r.Outcome, Reason: r.Reason,
		Stored: r.Outcome == OutcomeAdmitted && !res.Repeat, Status: "completed",
		JobID: id, StatusURL: "/memory/ingest/" + id, Questions: []LearnedPart{}, Counts: r.Counts,
	}
	if r.ETag == "" { // nothing was stored
		l.JobID, l.StatusURL = "", ""
	}
	if len(r.Parts) > 0 {
		l.Project = r.Parts[0].Project
	}
	switch {
	case r.Outcome == OutcomeRefused || r.Outcome == OutcomeUnsupported:
		l.Status = "refused"
	case r.Outcome == OutcomeForgotten:
		l.Status = OutcomeForgotten
	case l.Stored:
		l.Status = "running"
	}
	for _, p := range r.Parts {
		l.ChunksSeen += p.Chunks
	}
	return l
}

// await waits up to `wait` until the part is done in the streams that look at
// it: the ad-hoc one, else every serving one.
func (f *Function) await(ctx context.Context, res Result, adhoc *catalog.Stream, wait time.Duration) (Learned, error) {
	deadline := f.cfg.Now().Add(wait)
	pause := 5 * time.Millisecond
	for {
		l, err := f.status(ctx, res, adhoc)
		if err != nil || l.Status != "running" || !f.cfg.Now().Before(deadline) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return l, fault.As(fault.Unavailable, ctx.Err())
		case <-time.After(pause):
		}
		pause = min(2*pause, 250*time.Millisecond)
	}
}

// status reads from the log how far the parts of a receipt are.
func (f *Function) status(ctx context.Context, res Result, adhoc *catalog.Stream) (Learned, error) {
	l := f.summary(res)
	if adhoc != nil && adhoc.Models != nil {
		l.Model = adhoc.Models.Decides()
	}
	if adhoc != nil {
		l.StatusURL += "?stream=" + url.QueryEscape(adhoc.Name)
	}
	if l.Status == "refused" || l.Status == OutcomeForgotten || len(res.Receipt.Parts) == 0 {
		return l, nil
	}
	repeat := res.Repeat || res.Receipt.Outcome != OutcomeAdmitted
	l.ChunksSeen, l.Status = 0, "completed"
	used := map[memory.SHA]bool{}
	for _, p := range res.Receipt.Parts {
		l.ChunksSeen += p.Chunks
		streams, err := f.cfg.Catalog.ServingStreams(ctx, p.Project)
		if err != nil {
			return l, err
		}
		if adhoc != nil {
			streams = []catalog.Stream{*adhoc}
		} else {
			streams = slices.DeleteFunc(streams, func(s catalog.Stream) bool { return s.Only != 0 })
		}
		for _, s := range streams {
			lp, left, err := f.partStatus(ctx, p, s, used, len(l.Questions) == 0)
			if err != nil {
				return l, err
			}
			if left.Model != "" {
				l.Model = left.Model
			}
			text := left.Text
			if !lp.Done {
				l.Status = "running"
				if err := f.refusal(ctx, p.Project, s, &l); err != nil {
					return l, err
				}
				f.held(p.Project, s.Name, &l)
			}
			l.Questions = append(l.Questions, lp)
			// Of several questions that kept something the first one's memory is
			// shown: they overlap, and questions[] names them all.
			if text != "" && l.Memory == "" {
				l.Memory, l.MemoryTokens = text, lp.MemoryTokens
			}
		}
	}
	l.ChunksUsed = len(used)
	if repeat && (adhoc == nil || res.asked) {
		l.ChunksUsed = 0 // this call used none (brief D8)
	}
	if l.Status == "completed" && l.Memory == "" && len(l.Questions) > 0 {
		// Nothing of this part was kept: the memory is what it was.
		q := l.Questions[0]
		c, err := replay.Load(ctx, f.cfg.Log, q.Project, q.Stream)
		if err != nil {
			return l, err
		}
		l.Memory, l.MemoryTokens = c.State.MemoryText, c.State.Tokens
	}
	return l, nil
}

// held says what a running job waits for: the first of its streams that waits.
func (f *Function) held(project, stream string, l *Learned) {
	if f.cfg.Held == nil || l.Status != "running" || l.Hint != "" {
		return
	}
	if reason, hint := f.cfg.Held(project, stream); reason != "" {
		l.Reason, l.Hint = reason, cmp.Or(hint, "mem doctor looks at the models, mem dead lists what was given up")
	}
}

// partStatus reads one stream's answer about one part. Of a stream that kept
// nothing what decided is read only where it is asked for.
func (f *Function) partStatus(ctx context.Context, p eventlog.ReceiptPart, s catalog.Stream, used map[memory.SHA]bool, model bool) (LearnedPart, replay.Outcome, error) {
	lp := LearnedPart{Project: p.Project, QueryID: s.QueryID, Stream: s.Name}
	end, ok, err := replay.PartEnd(ctx, f.cfg.Log, p.Project, s.Name, p.Seq)
	if err != nil || !ok {
		return lp, replay.Outcome{}, err
	}
	lp.Done, lp.ChunksSeen, lp.ChunksUsed, lp.MemoryTokens, lp.Pending = true, end.ChunksSeen, end.ChunksUsed, end.MemoryTokens, end.Pending
	if end.ChunksUsed == 0 && !model {
		return lp, replay.Outcome{}, nil
	}
	left, err := replay.Updates(ctx, f.cfg.Log, p.Project, s.Name, end, used)
	return lp, left, err
}

func (f *Function) getJob(w http.ResponseWriter, r *http.Request) {
	id := memory.SHA(r.PathValue("job"))
	if !id.Valid() {
		serve.WriteError(w, fault.At(fault.Invalid, "job", "use the job_id that learn answered", "not a job id"))
		return
	}
	rec, ok, err := f.cfg.Log.ReceiptByID(r.Context(), id)
	if err == nil && !ok {
		err = fault.At(fault.NotFound, "job "+string(id), "jobs are named by POST /memory/learn and mem learn", "no such job")
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	res := Result{Receipt: rec}
	wait, err := waitOf(r, 0)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	// A request with a question of its own names its stream: the receipt is the
	// object's, whoever asks about it.
	var asked *catalog.Stream
	if name := r.URL.Query().Get("stream"); name != "" && len(rec.Parts) > 0 {
		s, err := f.cfg.Catalog.Stream(r.Context(), rec.Parts[0].Project, name)
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		asked = &s
	}
	l, err := f.await(r.Context(), res, asked, wait)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	l.Stored = rec.Outcome == OutcomeAdmitted
	serve.WriteJSON(w, http.StatusOK, l)
}

// waitOf reads ?wait=5s, at most a minute.
func waitOf(r *http.Request, absent time.Duration) (time.Duration, error) {
	v := r.URL.Query().Get("wait")
	if v == "" {
		return absent, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < 0 || d > time.Minute {
		return 0, fault.At(fault.Invalid, "wait", "a duration such as 5s, at most 1m", "%q is not one", v)
	}
	return d, nil
}
