package query_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/sqliteindex"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestNeverAboveItsSuccessor: over chains, rings, branches, late uploads and sentences that
// several questions keep, no result stands above one that replaces it, each replaced one
// is marked, and each result says why it stands where it stands. It runs over every graph.
func TestNeverAboveItsSuccessor(t *testing.T) {
	t.Parallel()
	graphs := map[string]func(t *testing.T) (index.Graph, index.Lexical, int){
		"reference": func(*testing.T) (index.Graph, index.Lexical, int) {
			return indextest.NewGraph(), indextest.NewLexical(), 12
		},
		"sqlite": func(t *testing.T) (index.Graph, index.Lexical, int) {
			g, err := sqliteindex.Open(t.Context(), filepath.Join(t.TempDir(), "g.sqlite"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { g.Close() })
			return g, indextest.NewLexical(), 6
		},
		"postgres": func(t *testing.T) (index.Graph, index.Lexical, int) {
			if os.Getenv("MNEME_TEST_PG") == "" || os.Getenv("MNEME_TEST_OS") == "" {
				t.Skip("MNEME_TEST_PG and MNEME_TEST_OS are not set: make services")
			}
			g, l, _ := servers(t)
			return g, l, 1
		},
	}
	for name, open := range graphs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, l, seeds := open(t)
			succeedOnce(t, g, l, 0)
			for seed := 1; seed < seeds; seed++ {
				g, l, _ = open(t)
				succeedOnce(t, g, l, uint64(seed))
			}
		})
	}
}

func succeedOnce(t *testing.T, g index.Graph, l index.Lexical, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	w := functest.New(t, functest.Options{Graph: g, Lexical: l})
	ids := []string{"decisions", "rules", "architecture"}
	w.Ask("shop", ids...)
	var all []*index.Node
	for _, id := range ids {
		var nodes []index.Node
		for i := range 14 {
			text := fmt.Sprintf("The retry backoff of the payment client is capped at %d seconds now.", 10+r.IntN(12))
			n := statement("shop", id, text, i+1, day.AddDate(0, 0, r.IntN(30)), r.IntN(6)) // late uploads among them
			for range r.IntN(3) {                                                           // chains, branches, and rings
				if len(nodes) > 0 {
					if o := nodes[r.IntN(len(nodes))]; o.ID != n.ID {
						if r.IntN(4) == 0 {
							n.SupersededBy = append(n.SupersededBy, o.ID)
						} else {
							n.Supersedes = append(n.Supersedes, o.ID)
						}
					}
				}
			}
			nodes = append(nodes, n)
		}
		apply(t, w, nodes)
		for i := range nodes {
			all = append(all, &nodes[i])
		}
	}
	for _, q := range []query.Request{{}, {Levels: []memory.Level{memory.L0}, Limit: 100}, {Levels: []memory.Level{memory.L0}, Limit: 100, NoFloor: true}, {Limit: 100, AsOf: day.AddDate(0, 0, 15)}} {
		q.Projects = []string{"shop"}
		a := ask(t, w, "at how many seconds is the retry backoff of the payment client capped?", q)
		if len(a.Results) == 0 {
			t.Fatalf("seed %d: nothing", seed)
		}
		at := map[memory.SHA]int{}
		for i, res := range a.Results {
			at[res.SHA256] = i
			if res.Reason == "" || len(res.SupersededBy) > 0 != strings.Contains(res.Reason, "replaced by") {
				t.Errorf("seed %d: %v says %q", seed, res.SupersededBy, res.Reason)
			}
		}
		for i, res := range a.Results {
			for _, by := range res.SupersededBy {
				if j, ok := at[by]; ok && j > i {
					t.Errorf("seed %d, %+v: place %d is replaced by place %d", seed, q.AsOf, i+1, j+1)
				}
			}
		}
		if !q.AsOf.IsZero() {
			continue
		}
		// Against the port's own word: whoever the graph says is replaced is marked.
		want, err := g.Superseded(t.Context(), functest.Tenant, idsOf(all))
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range a.Results {
			for _, by := range want[res.SHA256] {
				if !slices.Contains(res.SupersededBy, by) {
					t.Errorf("seed %d: %s is replaced by %s, and the answer does not say so", seed, res.SHA256.Short(), by.Short())
				}
			}
		}
	}
}

func idsOf(nodes []*index.Node) (out []memory.SHA) {
	for _, n := range nodes {
		out = append(out, n.ID)
	}
	return out
}

// statement is evidence of a question's stream, said at one time in chunk number chunk.
func statement(project, id, text string, t int, at time.Time, chunk int) index.Node {
	stream := memory.StreamName(id, functest.Wording(id))
	sum := memory.SumString(text)
	n := index.Node{
		ID: memory.NodeID(functest.Tenant, project, memory.L0, stream, sum), Level: memory.L0,
		Tenant: functest.Tenant, Project: project, Stream: stream, QueryID: id, Text: text, TextSHA: sum, T: t,
		Role: memory.RoleUser, Trust: memory.TrustUser, SourceTime: &at, Place: memory.Place{Time: at, Admit: int64(t)},
	}
	n.Occurrences = []index.Occurrence{{T: t, Place: n.Place, Quote: text, Role: n.Role, Span: memory.Span{
		Object: fmt.Sprintf("%s/%s/%d.jsonl", functest.Inbox, project, chunk), ETag: "e", Start: int64(t), End: int64(t + len(text)), Codec: memory.CodecRaw,
		SHA256: sum, Chunk: memory.SumString(fmt.Sprint(project, chunk)), ChunkEnd: len(text),
	}}}
	return n
}

// apply brings evidence of one stream into both indexes, a batch for each statement.
func apply(t *testing.T, w *functest.World, nodes []index.Node) {
	t.Helper()
	e, err := functest.Table()
	if err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		b := index.Batch{Tenant: functest.Tenant, Project: nodes[i].Project, Stream: nodes[i].Stream, Space: w.Space.ID, Seq: int64(i + 1), Nodes: nodes[i : i+1], Vectors: map[memory.SHA][]float32{}}
		for _, p := range index.PassagesOf(&nodes[i]) {
			v, err := e.Embed(t.Context(), []string{p.Embed})
			if err != nil {
				t.Fatal(err)
			}
			b.Vectors[p.ID] = v[0]
		}
		if err := w.Graph.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := w.Lexical.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAmendedConversation: a vague sentence of a conversation whose decision was amended
// stands behind the amendment; one that says what is asked stands first all the same.
func TestAmendedConversation(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph()})
	w.Ask("shop", "decisions")
	old := day
	vague := statement("shop", "decisions", "We need a retry policy that stops that.", 1, old, 1)
	sixty := statement("shop", "decisions", "Settled: failed calls are retried at most four attempts, with the retry backoff of the policy capped at 60 seconds.", 2, old, 1)
	port := statement("shop", "decisions", "The admin port of the gateway is 9443.", 3, old, 1)
	thirty := statement("shop", "decisions", "Amending: the backoff now caps at 30 seconds.", 4, old.AddDate(0, 0, 9), 2)
	thirty.Supersedes = []memory.SHA{sixty.ID}
	apply(t, w, []index.Node{vague, sixty, port, thirty})
	q := query.Request{Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}}
	a := ask(t, w, "Our auth service got hammered after a bad deploy because the HTTP client kept retrying calls that had failed, and the retry policy did nothing to stop that; please fix the policy of retrying", q)
	if len(a.Results) < 3 || a.Results[0].Text != thirty.Text || len(a.Results[0].SupersededBy) != 0 {
		t.Fatalf("%q", texts(a))
	}
	for _, r := range a.Results {
		if r.Text == vague.Text && (len(r.SupersededBy) != 0 || !strings.Contains(r.Reason, "conversation")) {
			t.Errorf("the vague sentence: %+v", r)
		}
	}
	if a := ask(t, w, "what is the admin port of the gateway?", q); len(a.Results) == 0 || a.Results[0].Text != port.Text {
		t.Errorf("%q", texts(a))
	}
}

// TestSources: statements of one upload, by its name, its key or its full name.
func TestSources(t *testing.T) {
	t.Parallel()
	w := filled(t, functest.Options{})
	for _, source := range []string{"1.jsonl", "shop/1", "transcripts/shop/1.jsonl"} {
		a := ask(t, w, "what is the cache TTL in minutes?", query.Request{Projects: []string{"shop"}, Sources: []string{source}})
		if len(a.Results) == 0 {
			t.Errorf("%s: nothing", source)
		}
		for _, r := range a.Results {
			for _, c := range r.Citations {
				if c.Object != "transcripts/shop/1.jsonl" {
					t.Errorf("%s finds a statement of %s", source, c.Object)
				}
			}
		}
	}
	if a := ask(t, w, "what is the cache TTL in minutes?", query.Request{Projects: []string{"shop"}, Sources: []string{"9"}}); len(a.Results) != 0 {
		t.Errorf("%q", texts(a))
	}
	// As of a day before the amendment the old value stands, unmarked.
	q := query.Request{Projects: []string{"shop"}, Levels: []memory.Level{memory.L0}, AsOf: day.AddDate(0, 0, 5)}
	if a := ask(t, w, "what is the cache TTL in minutes?", q); len(a.Results) == 0 || !strings.Contains(a.Results[0].Text, "TTL is 10 minutes") || len(a.Results[0].SupersededBy) != 0 {
		t.Errorf("as of then: %+v", a.Results)
	}
}
