package learn

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/forget"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

// forgetRequest is the body of POST /memory/forget: a source, a node, or all of a
// project.
type forgetRequest struct {
	Project string `json:"project"`
	Source  string `json:"source"`  // an object, a session, a file, or the hash of one
	Node    string `json:"node"`    // a statement or a memory; 8 digits of its hash or more
	All     bool   `json:"all"`     // everything of the project
	Inbox   bool   `json:"inbox"`   // the uploads too
	DryRun  bool   `json:"dry_run"` // say what would go, and change nothing
}

func (q *forgetRequest) check() error {
	bad := func(field, hint, format string, args ...any) error {
		return fault.At(fault.Invalid, "field "+field, hint, format, args...)
	}
	n := 0
	for _, is := range []bool{q.Source != "", q.Node != "", q.All} {
		if is {
			n++
		}
	}
	switch {
	case !memory.ValidName(q.Project):
		return bad("project", "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", q.Project)
	case n != 1:
		return bad("source", "name one of source, node and all", "%d are named", n)
	case len(q.Source) > 1200:
		return bad("source", "name an object, a session or a file", "over 1200 bytes")
	case q.Node != "" && (len(q.Node) < 8 || len(q.Node) > 64 || !isHex(q.Node)):
		return bad("node", "8 digits of its hash or more, as mem query shows them", "%q is no node", q.Node)
	}
	return nil
}

func isHex(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}

func (f *Function) postForget(w http.ResponseWriter, r *http.Request) {
	var req forgetRequest
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<10))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {project, source | node | all, inbox, dry_run}", "%v", err))
		return
	}
	if err := req.check(); err != nil {
		serve.WriteError(w, err)
		return
	}
	p := serve.NewProgress(w, r)
	out, err := f.Forget(r.Context(), req.Project, forget.Request{
		Target: memory.Target{Source: req.Source, Node: memory.SHA(req.Node), Project: req.All}, Inbox: req.Inbox, DryRun: req.DryRun,
	}, func(l forget.Progress) { p.Line(l) })
	p.End(out, err)
}

func (f *Function) getForget(w http.ResponseWriter, r *http.Request) {
	projects := []string{r.URL.Query().Get("project")}
	if projects[0] == "" {
		var err error
		if projects, err = f.cfg.Log.Projects(r.Context()); err != nil {
			serve.WriteError(w, err)
			return
		}
	} else if !memory.ValidName(projects[0]) {
		serve.WriteError(w, fault.At(fault.Invalid, "project", "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", projects[0]))
		return
	}
	out := []forget.Receipt{}
	for _, p := range projects {
		rs, err := forget.Receipts(r.Context(), f.cfg.Log, p)
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		out = append(out, rs...)
	}
	serve.WriteJSON(w, http.StatusOK, map[string]any{"receipts": out})
}

func (f *Function) forgetting(progress func(forget.Progress)) forget.Config {
	return forget.Config{
		Tenant: f.cfg.Tenant, Log: f.cfg.Log, Store: f.cfg.Store, Inbox: f.cfg.Inbox, Count: f.cfg.Count, Projections: f.cfg.Projections,
		Patience: f.cfg.ScrubPatience, Now: f.cfg.Now, Progress: progress,
		Asked: func(ctx context.Context, project string) (out []string, err error) {
			streams, err := f.cfg.Catalog.Streams(ctx, project)
			for _, s := range streams {
				out = append(out, s.Question)
			}
			return out, err
		},
	}
}

// Forget takes what a request names out of a project, and gives the receipt. No object
// is admitted meanwhile. What fails half-way is finished by the next call, or the next
// sweep.
func (f *Function) Forget(ctx context.Context, project string, req forget.Request, progress func(forget.Progress)) (forget.Receipt, error) {
	if f.cfg.Store == nil {
		return forget.Receipt{}, fault.New(fault.Internal, "learn: the log's bucket is not given")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return forget.Receipt{}, err
	}
	if !slices.Contains(projects, project) {
		return forget.Receipt{}, fault.At(fault.NotFound, "project "+project, "", "nothing is stored of such a project")
	}
	r, err := forget.Run(ctx, f.forgetting(progress), project, req)
	if e := f.publish(ctx, f.forgotten(r)); err == nil {
		err = e
	}
	return r, err
}

// forgotten asks for what follows: the vectors of what was stated anew, what is to be
// synthesised, the slices of streams that were held; and where the indexes are another
// process's, theirs.
func (f *Function) forgotten(r forget.Receipt) []ce.Event {
	if r.Tombstone == "" {
		return nil
	}
	at := event.Project{Tenant: f.cfg.Tenant, Project: r.Project}
	var out []ce.Event
	if f.cfg.Projections == nil {
		out = append(out, event.New(event.RebuildRequested, f.Name(), at))
	}
	names := make([]string, 0, len(r.Streams))
	for name := range r.Streams {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, s := range names {
		out = append(out, event.New(event.RunEnded, f.Name(), event.Stream{Tenant: f.cfg.Tenant, Project: r.Project, Stream: s}))
	}
	return append(out, event.New(event.QuestionsChanged, f.Name(), at))
}

// Forgetting counts the projects in which something is being forgotten.
func (f *Function) Forgetting(ctx context.Context) (n int, err error) {
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return 0, err
	}
	for _, p := range projects {
		last, _, err := f.cfg.Log.LastScrub(ctx, p)
		if err != nil {
			return n, err
		}
		if last.Kind == memory.TombstoneForget && !last.Proved {
			n++
		}
	}
	return n, nil
}

// finishForgotten does what an earlier call left.
func (f *Function) finishForgotten(ctx context.Context) ([]ce.Event, error) {
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return nil, err
	}
	var out []ce.Event
	for _, p := range projects {
		last, _, err := f.cfg.Log.LastScrub(ctx, p)
		if err != nil {
			return out, err
		}
		if last.Kind != memory.TombstoneForget || last.Proved {
			continue
		}
		f.mu.Lock()
		r, err := forget.Finish(ctx, f.forgetting(nil), p)
		f.mu.Unlock()
		if err != nil {
			return out, err
		}
		if r != nil {
			out = append(out, f.forgotten(*r)...)
		}
	}
	return out, nil
}

// offered is object for what somebody offers by a request: with again, what says that it
// was forgotten is no answer.
func (f *Function) offered(ctx context.Context, o event.Object, opt objectOptions) (Result, error) {
	if opt.again {
		if err := f.cfg.Log.ReadmitReceipt(ctx, eventlog.ReceiptID(o.Bucket, o.Key, o.ETag)); err != nil {
			return Result{}, err
		}
	}
	return f.object(ctx, o, opt)
}

// lift puts on record that what was forgotten is read again.
func (f *Function) lift(ctx context.Context, project string, raw memory.SHA, admit int64) error {
	line, err := json.Marshal(memory.Lift{
		V: memory.Version, Type: memory.TypeLift, Level: memory.LevelNone, Tenant: f.cfg.Tenant, Project: project,
		Raw: raw, Admit: admit, At: f.cfg.Now().UTC(),
	})
	if err != nil {
		return err
	}
	_, err = f.cfg.Log.PutRecords(ctx, project, eventlog.Forgotten, []eventlog.Record{&eventlog.Opaque{Type: memory.TypeLift, Line: line}})
	return err
}

// barredSession is 1 where all that is known of a part's sessions was forgotten, else 0.
func (f *Function) barredSession(ctx context.Context, project string, known *admitted, p *part) (int, error) {
	n := 0
	for session := range p.sessions {
		for _, l := range known.sessions[session] {
			barred, err := f.admits.barred(ctx, project, l)
			if err != nil || !barred {
				return 0, err
			}
			n = 1
		}
	}
	return n, nil
}

// barredBytes reports whether a tombstone bars the whole of what is offered: it is not
// even stored, as it may have been removed from the inbox on purpose.
func (f *Function) barredBytes(ctx context.Context, project, name string, sha memory.SHA) (Result, bool, error) {
	if project == autoProject {
		return Result{}, false, nil // each of its records says where it belongs
	}
	known, _, err := f.admits.fold(ctx, project)
	if err != nil {
		return Result{}, false, err
	}
	l, ok := known.raw[sha]
	if !ok {
		return Result{}, false, nil
	}
	barred, err := f.admits.barred(ctx, project, l)
	if err != nil || !barred {
		return Result{}, false, err
	}
	return Result{Repeat: true, Receipt: eventlog.Receipt{
		Bucket: f.cfg.Inbox.Name(), Key: project + "/" + postDir + "/" + string(sha) + "/" + name,
		Outcome: OutcomeForgotten, Reason: reasonForgotten,
		Parts: []eventlog.ReceiptPart{{Project: project, Seq: l.Seq, Source: l.Source, RawSHA256: sha}},
	}}, true, nil
}

const reasonForgotten = "a tombstone bars it; mem learn --again reads it anew"
