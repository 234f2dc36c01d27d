// Package functest puts the functions over stores in memory, so that the
// tests of one function run the real ones beside it. It is imported by tests
// only.
//
// A World delivers events in the caller's goroutine, one after the other, in
// the order in which they are sent or in one that a seed draws.
package functest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/functions/embed"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/functions/project"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/functions/sig"
	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/bleveindex"
	"github.com/mneme-ai/mneme/shared/index/sqliteindex"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/originals"
	"github.com/mneme-ai/mneme/shared/rank"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/token"
)

// Names of the fixtures.
const (
	Tenant = memory.LocalTenant
	Inbox  = "transcripts"
	Store  = "mneme"
)

// TenantKey is the same in every world: hashes are compared between them.
var TenantKey = []byte("a tenant key for tests, long enough")

// Epoch is the time at which every store's clock starts; it goes on by a
// millisecond a call.
var Epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Options change a World; the zero value is the built-in policy, the static
// table and the embedded indexes in a folder of their own.
type Options struct {
	Count  func(string) int // Qwen2.5 by default
	Policy gru.Policy
	Models func(ctx context.Context, project string) (*gate.Models, error) // of the gate; none by default
	Budget func(project string) cost.Budget                                // of the gate; none by default
	Picked func(ctx context.Context, project string, p *models.Pick) (*gate.Models, error)
	Picks  models.Config // what a request may pick from
	Plan   func(project string, p *models.Pick) *gate.Plan
	// EmbedBudget is embed's; none by default. A million tokens cost a dollar.
	EmbedBudget  func(project string) cost.Budget
	Embedder     llm.Embedder
	Spaces       bool          // several embedding spaces, as a program has them; else Embedder's alone
	Grace        time.Duration // before a space is removed
	Graph        index.Graph
	Lexical      index.Lexical
	Lessons      lookup.Index // none by default
	Slice        time.Duration
	Lease        time.Duration
	Batch        int
	Wait         time.Duration // of POST /memory/learn
	LegTimeout   time.Duration
	LegRest      time.Duration
	Caller       func(*http.Request) string // query.Config.Caller
	Reranker     llm.Reranker
	RerankTop    int
	Optimizer    compress.Options // query.Config.Optimizer
	OriginalsOff bool             // nothing that answers leave out is kept
	Sweep        time.Duration    // learn's budget of one sweep
	PartBytes    int              // of one part's chunk records
	Now          func() time.Time
	// Live delivers what routes publish, and all that follows, before they go on.
	Live bool
	// Retry is how often a store call is tried in all; 1 by default, so that
	// an injected fault reaches the function.
	Retry uint
	// InboxDriver and LogDriver are of real stores; without the hooks of those in memory.
	InboxDriver, LogDriver objstore.Driver
	// From gives the stores of an earlier World: a process that starts again.
	From *World
	// Folder is what the process owns by an OS lock, "test" by default: a
	// process of the same folder takes over the leases that an earlier one
	// left, one of another folder finds them held.
	Folder string
}

// World is every function over one pair of buckets.
type World struct {
	T       testing.TB
	Stores  *Stores
	Inbox   *objstore.Bucket
	Bucket  *objstore.Bucket
	Log     *eventlog.Log
	Catalog *catalog.Catalog
	Learn   *learn.Function
	Gate    *gate.Function
	Embed   *embed.Function
	Project *project.Function
	Query   *query.Function
	Sig     *sig.Function // handles no event without Options.Lessons
	Lessons lookup.Index
	Graph   index.Graph
	Lexical index.Lexical
	Space   memory.Space
	Spaces  *Spaces // nil: one space for good

	live bool

	mu        sync.Mutex
	published []ce.Event
}

var counter = sync.OnceValues(func() (func(string) int, error) {
	t, err := token.Default()
	if err != nil {
		return nil, err
	}
	return t.Count, nil
})

var table = sync.OnceValues(static.New)

// Table is the static table that worlds embed with by default.
func Table() (llm.Embedder, error) { return table() }

var worlds struct {
	sync.Mutex
	n int
}

// New builds a world.
func New(t testing.TB, o Options) *World {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if o.Count == nil {
		c, err := counter()
		must(err)
		o.Count = c
	}
	if o.Policy == nil {
		o.Policy = extractpolicy.New(extractive.Options{})
	}
	if o.Embedder == nil {
		e, err := table()
		must(err)
		o.Embedder = e
	}
	if o.Graph == nil {
		g, err := sqliteindex.Open(t.Context(), filepath.Join(t.TempDir(), "graph.sqlite"))
		must(err)
		t.Cleanup(func() { must(g.Close()) })
		o.Graph = g
	}
	if o.Lexical == nil {
		l, err := bleveindex.Open(t.Context(), filepath.Join(t.TempDir(), "lexical.bleve"))
		must(err)
		t.Cleanup(func() { must(l.Close()) })
		o.Lexical = l
	}
	if o.Wait == 0 {
		o.Wait = time.Nanosecond // nothing runs beside the caller
	}
	w := &World{T: t, Graph: o.Graph, Lexical: o.Lexical, Lessons: o.Lessons, Space: o.Embedder.Space(), live: o.Live}
	if o.From != nil {
		w.Stores = o.From.Stores
	} else {
		w.Stores = newStores()
	}
	retry := objstore.WithRetry(max(o.Retry, 1), time.Microsecond)
	w.Inbox = objstore.NewBucket(Inbox, w.Stores.inbox, retry)
	w.Bucket = objstore.NewBucket(Store, w.Stores.log, retry)
	if o.InboxDriver != nil && o.LogDriver != nil {
		w.Inbox, w.Bucket = objstore.NewBucket(Inbox, o.InboxDriver), objstore.NewBucket(Store, o.LogDriver)
	}
	worlds.Lock()
	worlds.n++
	writer := fmt.Sprintf("test-%d", worlds.n)
	worlds.Unlock()
	if o.Folder == "" {
		o.Folder = "test"
	}
	w.Log = eventlog.Open(w.Bucket, Tenant, writer, eventlog.WithFolder(o.Folder))
	w.Catalog = catalog.New(w.Bucket, w.Log, Tenant)
	var err error
	cleaned := &project.Projections{Publish: w.publish}
	w.Learn, err = learn.New(learn.Config{
		Store: w.Bucket, Projections: cleaned,
		Tenant: Tenant, TenantKey: TenantKey, Inbox: w.Inbox, Log: w.Log, Catalog: w.Catalog, Count: o.Count, Models: o.Picks,
		Publish: w.publish, Wait: o.Wait, SweepBudget: o.Sweep, PartBytes: o.PartBytes, Now: o.Now,
	})
	must(err)
	w.Gate, err = gate.New(gate.Config{
		Tenant: Tenant, Log: w.Log, Catalog: w.Catalog, Policy: o.Policy, Models: o.Models, Picked: o.Picked, Pick: o.Picks.Pick, Plan: o.Plan, Budget: o.Budget, Count: o.Count,
		Publish: w.publish, Lease: o.Lease, Slice: o.Slice, Now: o.Now,
	})
	must(err)
	t.Cleanup(func() { must(w.Gate.Close()) })
	ec := embed.Config{
		Tenant: Tenant, Log: w.Log, Embedder: o.Embedder, Batch: o.Batch, Budget: o.EmbedBudget, Now: o.Now, Slice: o.Slice,
		Tokens: o.Count, Price: func(_ string, tokens int) float64 { return float64(tokens) / 1e6 }, Publish: w.publish,
	}
	pc := project.Config{
		Tenant: Tenant, Log: w.Log, Graph: o.Graph, Lexical: o.Lexical, Space: w.Space.ID, Catalog: w.Catalog, Bucket: w.Bucket, Now: o.Now, TempDir: t.TempDir(),
		Redactor: Redactor(w.Catalog), TenantKey: TenantKey, Grace: o.Grace,
		Lessons: o.Lessons,
	}
	var serving func(context.Context) (llm.Embedder, error)
	if o.Spaces {
		w.Spaces = newSpaces(w.Log, o.Embedder)
		ec.Spaces, pc.Spaces, serving = w.Spaces, w.Spaces, w.Spaces.Serving
	}
	w.Embed, err = embed.New(ec)
	must(err)
	w.Project, err = project.New(pc)
	must(err)
	cleaned.Function = w.Project
	kept, err := originals.New(originals.Config{Bucket: w.Bucket, Tenant: Tenant, Redactor: Redactor(w.Catalog), Now: o.Now, Off: o.OriginalsOff})
	must(err)
	w.Query, err = query.New(query.Config{
		Serving: serving,
		Tenant:  Tenant, Log: w.Log, Catalog: w.Catalog, Graph: o.Graph, Lexical: o.Lexical, Embedder: o.Embedder,
		FloorIDF: rank.Defaults().FloorIDF, LegTimeout: o.LegTimeout, LegRest: o.LegRest, Inbox: Inbox, Caller: o.Caller, Reranker: o.Reranker, RerankModel: "cross", RerankTop: o.RerankTop,
		Originals: kept, Optimizer: o.Optimizer, Lessons: o.Lessons,
	})
	must(err)
	w.Sig, err = sig.New(sig.Config{Tenant: Tenant, TenantKey: TenantKey, Log: w.Log, Catalog: w.Catalog, Lessons: o.Lessons, Publish: w.publish, Wait: 50 * time.Millisecond, Now: o.Now})
	must(err)
	return w
}

// Redactor gives the tenant's redaction rules as they stand.
func Redactor(c *catalog.Catalog) func(context.Context) (func(string) string, string, error) {
	return func(ctx context.Context) (func(string) string, string, error) {
		ps, err := c.Patterns(ctx)
		r := redact.NewWith(TenantKey, redact.Options{Patterns: ps})
		return func(s string) string { out, _ := r.Redact(s); return out }, r.Version(), err
	}
}

func (w *World) publish(_ context.Context, es ...ce.Event) error {
	if w.live {
		w.Run(es...)
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.published = append(w.published, es...)
	return nil
}

// Published takes the events that routes sent since the last call.
func (w *World) Published() []ce.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.published
	w.published = nil
	return out
}

// Put uploads an object and returns its notification.
func (w *World) Put(key string, body []byte) ce.Event {
	w.T.Helper()
	info, err := w.Inbox.Put(w.T.Context(), key, body)
	if err != nil {
		w.T.Fatal(err)
	}
	return Created(key, info)
}

// Created is the notification of an object version.
func Created(key string, info objstore.Info) ce.Event {
	return event.New(event.ObjectCreated, "s3", event.Object{Bucket: Inbox, Key: key, ETag: info.ETag, SizeBytes: info.SizeBytes})
}

// Functions are the handlers by name.
func (w *World) Functions() map[string]serve.Function {
	fs := map[string]serve.Function{"learn": w.Learn, "gate": w.Gate, "embed": w.Embed, "project": w.Project}
	if w.Lessons != nil {
		fs["sig"] = w.Sig
	}
	return fs
}

// Run delivers events and all that follow from them, in order, and fails the
// test on any error. It returns the types delivered, in order.
func (w *World) Run(es ...ce.Event) []event.Type {
	w.T.Helper()
	return w.deliver(es, func(queue []delivery) int { return 0 }, 1)
}

// Shuffled is Run in an order that seed draws, each event delivered `times`
// times.
func (w *World) Shuffled(seed uint64, times int, es ...ce.Event) []event.Type {
	w.T.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	return w.deliver(es, func(queue []delivery) int { return r.IntN(len(queue)) }, times)
}

// Learned uploads and runs to the end.
func (w *World) Learned(key string, body []byte) {
	w.T.Helper()
	w.Run(w.Put(key, body))
}

// Sweep runs a sweep of every function to the end.
func (w *World) Sweep() []event.Type {
	w.T.Helper()
	return w.Run(event.New(event.SweepRequested, "test", event.Sweep{Tenant: Tenant, At: "2026-03-01T12:00:00Z"}))
}

type delivery struct {
	fn string
	e  ce.Event
}

// maxDeliveries stops a world that goes round in circles.
const maxDeliveries = 10_000

func (w *World) deliver(es []ce.Event, pick func([]delivery) int, times int) []event.Type {
	w.T.Helper()
	fns := w.Functions()
	var queue []delivery
	send := func(es []ce.Event) {
		for _, e := range es {
			for _, name := range event.Handlers(event.Type(e.Type())) {
				if fns[name] == nil {
					continue
				}
				for range times {
					queue = append(queue, delivery{name, e})
				}
			}
		}
	}
	send(es)
	var seen []event.Type
	for n := 0; len(queue) > 0; n++ {
		if n == maxDeliveries {
			w.T.Fatalf("still %d events after %d deliveries: %v", len(queue), n, seen[len(seen)-10:])
		}
		i := pick(queue)
		d := queue[i]
		queue = slices.Delete(queue, i, i+1)
		seen = append(seen, event.Type(d.e.Type()))
		out, err := fns[d.fn].Handle(w.T.Context(), d.e)
		if err != nil {
			w.T.Fatalf("%s, %s: %v", d.fn, d.e.Type(), err)
		}
		send(out)
		send(w.Published())
	}
	return seen
}

// Hashes are what DESIGN section 3 compares.
type Hashes struct {
	Log     memory.SHA
	Index   memory.SHA
	Streams map[string]memory.SHA
}

// Hashes verifies the whole world and returns its hashes.
func (w *World) Hashes() Hashes {
	w.T.Helper()
	v, err := w.Project.Verify(w.T.Context(), nil)
	if err != nil {
		w.T.Fatal(err)
	}
	for _, p := range v.Problems {
		w.T.Error("verify:", p)
	}
	return Hashes{v.LogHash, v.IndexHash, v.Streams}
}

// Admits lists a project's admit lines.
func (w *World) Admits(project string) []memory.Admit {
	w.T.Helper()
	var out []memory.Admit
	for a, err := range w.Log.Admits(w.T.Context(), project, 0) {
		if err != nil {
			w.T.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// Records lists the records of a stream.
func (w *World) Records(project, stream string) []eventlog.Record {
	w.T.Helper()
	var out []eventlog.Record
	for seg, err := range w.Log.Segments(w.T.Context(), project, stream, 0) {
		if err != nil {
			w.T.Fatal(err)
		}
		out = append(out, seg.Records...)
	}
	return out
}

// Of is the records of one type.
func Of[R eventlog.Record](recs []eventlog.Record) []R {
	var out []R
	for _, r := range recs {
		if r, ok := r.(R); ok {
			out = append(out, r)
		}
	}
	return out
}

// Streams lists the project's question streams.
func (w *World) Streams(project string) []string {
	w.T.Helper()
	s, err := w.Log.Streams(w.T.Context(), project)
	if err != nil {
		w.T.Fatal(err)
	}
	return s
}

// Wording is the question that Ask asks under an id.
func Wording(id string) string { return "What is known about " + id + "?" }

// Ask sets the project's standing questions to one for each id.
func (w *World) Ask(project string, ids ...string) { w.ask(project, "", ids) }

// SynthesisWording is the question that AskUp asks one level up.
const SynthesisWording = "What must a newcomer know?"

// AskUp is Ask with a synthesis, which acts on its exit gate where exit says so. It
// returns the synthesis' stream.
func (w *World) AskUp(project string, exit bool, ids ...string) string {
	w.ask(project, fmt.Sprintf("synthesis:\n  question: %s\n  exit_gate: %v\n", SynthesisWording, exit), ids)
	return memory.StreamName(memory.SynthesisID, SynthesisWording)
}

func (w *World) ask(project, synthesis string, ids []string) {
	w.T.Helper()
	set := "project: " + project + "\nqueries:\n"
	for _, id := range ids {
		set += fmt.Sprintf("  - id: %s\n    question: %s\n", id, Wording(id))
	}
	if len(ids) == 0 {
		set = "project: " + project + "\nqueries: []\n"
	}
	set += synthesis
	key := "config/" + Tenant + "/" + project + "/questions.yaml"
	if _, err := w.Bucket.Put(w.T.Context(), key, []byte(set)); err != nil {
		w.T.Fatal(err)
	}
}

// Call sends one request to the routes of every function. body is sent as it is
// when it is a []byte or string, as JSON otherwise.
func (w *World) Call(method, target string, body any) *httptest.ResponseRecorder {
	w.T.Helper()
	mux := http.NewServeMux()
	for _, f := range []serve.Routes{w.Learn, w.Gate, w.Project, w.Query, w.Sig} {
		f.Routes(mux)
	}
	var b []byte
	switch v := body.(type) {
	case nil:
	case []byte:
		b = v
	case string:
		b = []byte(v)
	default:
		var err error
		if b, err = json.Marshal(v); err != nil {
			w.T.Fatal(err)
		}
	}
	r := httptest.NewRequestWithContext(w.T.Context(), method, target, bytes.NewReader(b))
	rec := httptest.NewRecorder()
	mux.ServeHTTP(rec, r)
	return rec
}

// Get is Call of a GET whose 200 is decoded into v.
func (w *World) Get(target string, v any) {
	w.T.Helper()
	w.decode(w.Call(http.MethodGet, target, nil), http.StatusOK, v)
}

// Post is Call of a POST whose answer, with the status wanted, is decoded into v.
func (w *World) Post(target string, body any, status int, v any) {
	w.T.Helper()
	w.decode(w.Call(http.MethodPost, target, body), status, v)
}

func (w *World) decode(rec *httptest.ResponseRecorder, status int, v any) {
	w.T.Helper()
	if rec.Code != status {
		w.T.Fatalf("status %d, want %d: %s", rec.Code, status, rec.Body)
	}
	if err := json.Unmarshal(rec.Body.Bytes(), v); err != nil {
		w.T.Fatalf("%v: %s", err, rec.Body)
	}
}
