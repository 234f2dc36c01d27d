package embed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/embed"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
)

// spaced is a world of several spaces with n parts in it.
func spaced(t *testing.T, o functest.Options, n int) *functest.World {
	t.Helper()
	o.Spaces = true
	if o.Slice == 0 {
		o.Slice = time.Nanosecond // an event a segment
	}
	w := world(t, o)
	for i := range n {
		w.Learned(fmt.Sprintf("shop/%d.jsonl", i), functest.Decision(fmt.Sprintf("s%d", i), day.AddDate(0, 0, i),
			fmt.Sprintf("We decided to keep the limit of queue q%d at %d messages, because the consumer falls behind.", i, 100+i)))
	}
	return w
}

// post calls a route of embed and runs what it starts.
func post(t *testing.T, w *functest.World, path, body string) (embed.Status, string) {
	t.Helper()
	mux := http.NewServeMux()
	w.Embed.Routes(mux)
	rec := httptest.NewRecorder()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	mux.ServeHTTP(rec, httptest.NewRequest(method, path, strings.NewReader(body)))
	w.Run(w.Published()...)
	var st embed.Status
	if rec.Code != http.StatusOK {
		return st, rec.Body.String()
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &st); err != nil {
		t.Fatal(err)
	}
	return st, ""
}

func roles(t *testing.T, w *functest.World) string {
	t.Helper()
	st, bad := post(t, w, "/memory/models/spaces", "")
	if bad != "" {
		t.Fatal(bad)
	}
	var out []string
	for _, s := range st.Spaces {
		out = append(out, fmt.Sprintf("%s %s %d/%d", s.Name, s.Role, s.Segments, s.Of))
	}
	return strings.Join(out, ", ")
}

// TestChange: another model's space is filled by events while the present one answers,
// switches by itself, leads back, and is removed. Rows and decisions stay as they are.
func TestChange(t *testing.T) {
	t.Parallel()
	w := spaced(t, functest.Options{Grace: time.Nanosecond}, 7)
	ask := func() query.Answer {
		t.Helper()
		a, err := w.Query.Ask(t.Context(), query.Request{Query: "what is the limit of queue q3?", Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}})
		if err != nil || len(a.Results) == 0 || a.Results[0].Components.Cosine == 0 || len(a.Degraded) > 0 {
			t.Fatalf("%+v %v", a, err)
		}
		return a
	}
	want, first := w.Hashes(), ask()
	if first.Space != w.Space.ID {
		t.Errorf("the answer names space %q, want %q", first.Space, w.Space.ID)
	}
	calm := len(vectors(t, w))
	if _, bad := post(t, w, "/memory/models/embed", `{"name":"static-128"}`); bad != "" {
		t.Fatal(bad)
	}
	of := fmt.Sprintf("%d/%d", calm, calm)
	if got, want := roles(t, w), "static-128 serving "+of+", static kept "+of; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	cut, err := static.Cut(128)
	if err != nil {
		t.Fatal(err)
	}
	second := ask()
	if second.Space != cut.Space().ID || second.Results[0].Components.Cosine == first.Results[0].Components.Cosine {
		t.Errorf("after the switch: space %s, cosine %v, before %v", second.Space, second.Results[0].Components.Cosine, first.Results[0].Components.Cosine)
	}
	if n := len(vectors(t, w)); n != 2*calm {
		t.Errorf("%d vector objects, want %d", n, 2*calm)
	}
	if d := cmp.Diff(want, w.Hashes()); d != "" {
		t.Errorf("hashes (-before +after):\n%s", d)
	}
	st, err := w.Spaces.State(t.Context())
	if r := st.Serving.Recall; err != nil || r == nil || r.Probes == 0 || r.At10 <= 0.3 || r.At10 > 1 || r.Cosine <= 0 || r.Was <= 0 || r.Against != w.Space.ID {
		t.Errorf("the comparison: %+v %v", r, err)
	}

	// New text goes to both, and the kept one leads back at once.
	w.Learned("shop/late.jsonl", functest.Decision("late", day.AddDate(0, 1, 0), "We decided to keep the limit of queue q99 at 7 messages, because the disk is small."))
	if got := roles(t, w); strings.Count(got, fmt.Sprintf("%d/%d", calm+1, calm+1)) != 2 {
		t.Errorf("after new text: %s", got)
	}
	calls := w.Embed.Calls()
	if _, bad := post(t, w, "/memory/models/rollback", `{}`); bad != "" {
		t.Fatal(bad)
	}
	if a := ask(); a.Space != w.Space.ID {
		t.Errorf("rolled back, the answer is of space %s", a.Space)
	}
	if w.Embed.Calls() != calls {
		t.Error("the way back embeds")
	}
	if _, bad := post(t, w, "/memory/models/drop", `{"space":"static"}`); !strings.Contains(bad, "cannot be dropped") {
		t.Errorf("what serves: %s", bad)
	}
	before := w.Hashes()
	if _, bad := post(t, w, "/memory/models/drop", `{"space":"static-128"}`); bad != "" {
		t.Fatal(bad)
	}
	w.Sweep()
	if n := len(vectors(t, w)); n != calm+1 {
		t.Errorf("%d vector objects after the drop, want %d", n, calm+1)
	}
	q, err := cut.Embed(t.Context(), []string{"queue"})
	if err != nil {
		t.Fatal(err)
	}
	if hits, err := w.Graph.SearchDense(t.Context(), cut.Space().ID, q[0], filter(), 5); err != nil || len(hits) > 0 {
		t.Errorf("the index still has %d of it, %v", len(hits), err)
	}
	if d := cmp.Diff(before, w.Hashes()); d != "" {
		t.Errorf("hashes after the drop:\n%s", d)
	}
	// It may be filled again.
	if _, bad := post(t, w, "/memory/models/embed", `{"name":"static-128"}`); bad != "" {
		t.Fatal(bad)
	}
	if a := ask(); a.Space != cut.Space().ID {
		t.Errorf("filled again, the answer is of space %s: %s", a.Space, roles(t, w))
	}
	if d := cmp.Diff(before, w.Hashes()); d != "" {
		t.Errorf("hashes at the end:\n%s", d)
	}
}

// TestHold: with hold the filled space waits, and does not fall behind meanwhile.
func TestHold(t *testing.T) {
	t.Parallel()
	w := spaced(t, functest.Options{}, 3)
	if _, bad := post(t, w, "/memory/models/embed", `{"name":"static-128","hold":true}`); bad != "" {
		t.Fatal(bad)
	}
	st, err := w.Spaces.State(t.Context())
	if err != nil || st.Filling == nil || st.Filling.Recall == nil || st.Serving.ID != w.Space.ID {
		t.Fatalf("%+v %v", st, err)
	}
	for name, behind := range map[string]func(context.Context) (int, error){"embed": w.Embed.Behind, "project": w.Project.Behind} {
		if n, err := behind(t.Context()); n != 0 || err != nil {
			t.Errorf("%s is %d behind while it is held, %v", name, n, err)
		}
	}
	w.Learned("shop/late.jsonl", functest.Decision("late", day.AddDate(0, 1, 0), "We decided to keep the limit of queue q99 at 7 messages, because the disk is small."))
	if got := roles(t, w); got != "static serving 4/4, static-128 filling 4/4" {
		t.Error(got)
	}
	if _, bad := post(t, w, "/memory/models/switch", `{}`); bad != "" {
		t.Fatal(bad)
	}
	if got := roles(t, w); got != "static-128 serving 4/4, static kept 4/4" {
		t.Error(got)
	}
	if _, bad := post(t, w, "/memory/models/switch", `{}`); !strings.Contains(bad, "no space is being filled") {
		t.Errorf("a second switch: %s", bad)
	}
}

// TestRefused: what cannot be filled changes nothing.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := spaced(t, functest.Options{}, 1)
	w.Sweep() // what serves is on record
	for body, want := range map[string]string{
		`{"name":"nope"}`: "static-128", `{}`: "name", `{"name":`: "body", `{"nome":"static"}`: "unknown field", `{"name":"static-64"}`: "no model",
	} {
		if _, bad := post(t, w, "/memory/models/embed", body); !strings.Contains(bad, want) {
			t.Errorf("%s: %q, want %q in it", body, bad, want)
		}
	}
	w.Spaces.Bad = fault.At(fault.Invalid, "model m", "write dims: 3", "its vectors have 3 numbers, and 8 are configured")
	if _, bad := post(t, w, "/memory/models/embed", `{"name":"static-128"}`); !strings.Contains(bad, "write dims: 3") {
		t.Errorf("%s", bad)
	}
	w.Spaces.Wanted = "static-128" // a file that asks for it is not followed either
	w.Sweep()
	if got := roles(t, w); got != "static serving 1/1" {
		t.Error(got)
	}
	w.Spaces.Bad = nil
	w.Sweep() // it is well now
	if got := roles(t, w); got != "static-128 serving 1/1, static kept 1/1" {
		t.Error(got)
	}
}

// counting counts the texts that a model is asked for, and may be down.
type counting struct {
	llm.Embedder
	texts atomic.Int64
	left  atomic.Int64 // calls until it is down
}

func (c *counting) Space() memory.Space {
	s := c.Embedder.Space()
	s.Model = "other"
	s.ID = memory.SpaceID(s.Model, s.Revision, s.Dims, s.Prefix)
	return s
}

func (c *counting) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if c.left.Add(-1) < 0 {
		return nil, fault.New(fault.Unavailable, "the model is gone")
	}
	c.texts.Add(int64(len(texts)))
	return c.Embedder.Embed(ctx, texts)
}

// TestModelGoesDown: a model that fails while its space is filled stops nothing else. A
// process that starts again goes on where the objects end: no text is embedded twice.
func TestModelGoesDown(t *testing.T) {
	t.Parallel()
	table, err := static.Cut(128)
	if err != nil {
		t.Fatal(err)
	}
	other := &counting{Embedder: table}
	other.left.Store(3)
	w := spaced(t, functest.Options{Batch: 1}, 5)
	w.Spaces.Models["other"] = other
	if _, bad := post(t, w, "/memory/models/embed", `{"name":"other"}`); bad != "" {
		t.Fatal(bad)
	}
	got := roles(t, w)
	if !strings.HasPrefix(got, "static serving 5/5, other filling ") || strings.Contains(got, "filling 5/5") || strings.Contains(got, "filling 0/5") {
		t.Fatalf("%s: the fixture does not stop in the middle", got)
	}
	st, _ := post(t, w, "/memory/models/spaces", "")
	if st.Spaces[1].Error == "" {
		t.Error("nobody says that the model is gone")
	}
	if n, err := w.Embed.Behind(t.Context()); n == 0 || err != nil {
		t.Errorf("behind %d %v", n, err)
	}
	w.Learned("shop/late.jsonl", functest.Decision("late", day.AddDate(0, 1, 0), "We decided to keep the limit of queue q99 at 7 messages, because the disk is small."))
	if a, err := w.Query.Ask(t.Context(), query.Request{Query: "what is the limit of queue q99?", Projects: []string{"shop"}}); err != nil || len(a.Results) == 0 || a.Space != w.Space.ID {
		t.Errorf("new text meanwhile: %+v %v", a, err)
	}

	next := world(t, functest.Options{From: w, Spaces: true, Batch: 1, Slice: time.Nanosecond})
	next.Graph, next.Lexical = w.Graph, w.Lexical
	other.left.Store(1 << 30)
	next.Spaces.Models["other"] = other
	next.Sweep()
	if got := roles(t, next); got != "other serving 6/6, static kept 6/6" {
		t.Errorf("after the start: %s", got)
	}
	rows := int64(0)
	for seq := int64(1); seq <= 6; seq++ {
		v, ok, err := next.Log.Vectors(t.Context(), "shop", other.Space().ID, stream, seq)
		if err != nil || !ok {
			t.Fatal(seq, ok, err)
		}
		rows += int64(len(v.Passages))
	}
	// A segment of several texts that was not stored when the model went is asked anew.
	if n := other.texts.Load(); n < rows || n > rows+3 {
		t.Errorf("%d texts were embedded for %d rows", n, rows)
	}
	next.Hashes()
}

// TestWrongLength: vectors of another length than the space's are stored nowhere.
func TestWrongLength(t *testing.T) {
	t.Parallel()
	w := spaced(t, functest.Options{}, 1)
	st, err := w.Spaces.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for key := range vectors(t, w) {
		if !strings.Contains(key, st.Serving.ID) {
			t.Errorf("%s is of no live space", key)
		}
	}
	table, err := static.Cut(128)
	if err != nil {
		t.Fatal(err)
	}
	w.Spaces.Models["liar"] = changed{&counting{Embedder: table}, func(v [][]float32) [][]float32 {
		for i := range v {
			v[i] = v[i][:64]
		}
		return v
	}}
	if _, bad := post(t, w, "/memory/models/embed", `{"name":"liar"}`); bad != "" {
		t.Fatal(bad)
	}
	if got := roles(t, w); got != "static serving 1/1, liar filling 0/1" {
		t.Error(got)
	}
	w.Hashes() // verify finds nothing wrong
}

func filter() (f index.Filter) {
	f.Tenant, f.Projects = functest.Tenant, []string{"shop"}
	return f
}
