package indextest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Lexical is the reference index.Lexical: BM25 over lower-case words between
// spaces and punctuation, no stemming, over the passages of the projects that
// the filter sees. Drivers analyse better, so that the suite compares with it
// only on words that every analysis leaves alone.
type Lexical struct {
	mu      sync.Mutex
	nodes   map[memory.SHA]index.Node
	current map[memory.SHA]bool // of memories: index.Succession
	applied map[position]int64
	staged  map[string]*Lexical // by tenant
}

var _ index.Lexical = (*Lexical)(nil)

// NewLexical is an empty reference index.
func NewLexical() *Lexical {
	return &Lexical{nodes: map[memory.SHA]index.Node{}, current: map[memory.SHA]bool{}, applied: map[position]int64{}}
}

// Apply implements index.Lexical.
func (l *Lexical) Apply(_ context.Context, b index.Batch) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := position{b.Tenant, b.Project, b.Stream, b.Space}
	if b.Seq >= 1 && b.Seq <= l.applied[at] {
		return nil
	}
	if err := index.Validate(&b, 0); err != nil {
		return err
	}
	if b.Seq != l.applied[at]+1 {
		return fault.New(fault.Unavailable, "seq %d is not next: %d is applied", b.Seq, l.applied[at])
	}
	for p, seq := range l.applied {
		if p.tenant == b.Tenant && p.project == b.Project && p.stream == b.Stream && p.space != b.Space && seq >= b.Seq {
			l.applied[at] = b.Seq // another space brought these passages
			return nil
		}
	}
	if b.Replace {
		maps.DeleteFunc(l.nodes, func(_ memory.SHA, n index.Node) bool {
			return n.Tenant == b.Tenant && n.Project == b.Project && n.Stream == b.Stream
		})
	}
	for _, n := range b.Nodes {
		n = index.Normal(n)
		if stored, ok := l.nodes[n.ID]; ok {
			n = index.Merge(stored, n)
		}
		l.nodes[n.ID] = n
	}
	maps.Copy(l.current, index.Succession(b.Nodes))
	l.applied[at] = b.Seq
	return nil
}

// replaced reports whether n is a memory that another one took the place of.
func (l *Lexical) replaced(n *index.Node) bool {
	now, isMemory := l.current[n.ID]
	return isMemory && !now
}

// Applied implements index.Lexical.
func (l *Lexical) Applied(_ context.Context, tenant, project, stream, space string) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.applied[position{tenant, project, stream, space}], nil
}

func wordsOf(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return strings.ContainsRune(" \n.,;:?!", r) })
}

// Search implements index.Lexical.
func (l *Lexical) Search(_ context.Context, query string, f index.Filter, k int) ([]index.Hit, error) {
	const k1, b = 1.2, 0.75
	l.mu.Lock()
	defer l.mu.Unlock()
	raw := slices.Contains(f.Scope(), memory.LevelRaw)
	type doc struct {
		node    *index.Node
		passage memory.SHA
		tf      map[string]float64
		length  float64
	}
	var docs []doc
	var total float64
	df := map[string]float64{}
	for _, n := range l.nodes {
		scope := f
		scope.Levels = []memory.Level{memory.L0, memory.L1, memory.L2}
		if raw {
			scope.Levels = append(scope.Levels, memory.LevelRaw)
		}
		if n.Tenant != f.Tenant || !slices.Contains(f.Projects, n.Project) || !slices.Contains(scope.Levels, n.Level) || l.replaced(&n) {
			continue
		}
		for _, p := range n.Passages {
			d := doc{node: &n, passage: p.ID, tf: map[string]float64{}}
			if n.SourceTime != nil {
				d.length++ // the date is a term
			}
			for _, w := range wordsOf(n.Text[p.Start:p.End]) {
				d.tf[w]++
				d.length++
			}
			for w := range d.tf {
				df[w]++
			}
			total += d.length
			docs = append(docs, d)
		}
	}
	terms := slices.Compact(slices.Sorted(slices.Values(wordsOf(query))))
	var bound, subject float64
	idf, known := map[string]float64{}, map[string]float64{}
	for _, w := range terms {
		known[w] = math.Log(1 + (index.ShareBackground+float64(len(docs))-df[w]+0.5)/(df[w]+0.5))
		subject += known[w]
		idf[w] = math.Log(1 + (float64(len(docs))-df[w]+0.5)/(df[w]+0.5))
		bound += idf[w] * (k1 + 1)
	}
	best := map[memory.SHA]index.Hit{}
	for _, d := range docs {
		if !Sees(&f, d.node) {
			continue
		}
		h := index.Hit{Node: d.node.ID, Passage: d.passage, Max: bound}
		for _, w := range terms {
			if tf := d.tf[w]; tf > 0 {
				h.Score += idf[w] * (k1 + 1) * tf / (tf + k1*(1-b+b*d.length/(total/float64(len(docs)))))
				h.IDFShare += known[w] / subject
			}
		}
		if h.Score > best[h.Node].Score {
			best[h.Node] = h
		}
	}
	hits := slices.Collect(maps.Values(best))
	slices.SortFunc(hits, func(a, b index.Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Node, b.Node))
	})
	return hits[:min(len(hits), max(k, 0))], nil
}

// Passages implements index.Lexical.
func (l *Lexical) Passages(_ context.Context, tenant string) (n int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.nodes {
		if x.Tenant == tenant && !l.replaced(&x) {
			n += int64(len(x.Passages))
		}
	}
	return n, nil
}

// Wipe implements index.Lexical.
func (l *Lexical) Wipe(_ context.Context, tenant, project string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if tenant == "" {
		return fault.New(fault.Invalid, "a tenant is needed")
	}
	in := func(t, p string) bool { return t == tenant && (project == "" || p == project) }
	maps.DeleteFunc(l.nodes, func(_ memory.SHA, n index.Node) bool { return in(n.Tenant, n.Project) })
	maps.DeleteFunc(l.applied, func(p position, _ int64) bool { return in(p.tenant, p.project) })
	return nil
}

// Close implements index.Lexical.
func (l *Lexical) Close() error { return nil }

// queries are words of the story that no stemmer changes and no stop list
// holds, some that stand nowhere, and mixes.
var queries = []string{"port", "port 8080", "9090 ingress", "proxy port 8080 zebra", "archive", "commas", "zebra", "export port five"}

// RunLexical is the conformance suite of index.Lexical. open gives an empty
// index that the test closes.
func RunLexical(t *testing.T, open func(t *testing.T) index.Lexical) { runLexical(t, open, sameHits) }

// RunLexicalByWords is RunLexical for a driver that scores by statistics of its own, as
// Lucene does over passages that were deleted and over other projects, and that stems:
// what is found is what the reference finds, with a share within .02 of its, the order
// is by its own score. A hit whose words are all misspelt (share 0) is its own.
func RunLexicalByWords(t *testing.T, open func(t *testing.T) index.Lexical) {
	runLexical(t, open, func(want, got []index.Hit) string {
		for i, h := range got {
			if !(h.Score > 0 && h.Score <= h.Max+1e-9) || i > 0 && h.Score > got[i-1].Score {
				return fmt.Sprintf("hit %d has score %v, bound %v", i, h.Score, h.Max)
			}
		}
		plain := func(hits []index.Hit) (out []index.Hit) {
			for _, h := range hits {
				if h.IDFShare > 0 {
					h.Score, h.Max, h.Passage = 0, 0, ""
					out = append(out, h)
				}
			}
			slices.SortFunc(out, func(a, b index.Hit) int { return cmp.Compare(a.Node, b.Node) })
			return out
		}
		return gocmp.Diff(plain(want), plain(got), cmpopts.EquateApprox(0, .02), cmpopts.EquateEmpty())
	})
}

// sameHits is the difference of what two indexes answer; "" for none.
func sameHits(want, got []index.Hit) string { return gocmp.Diff(want, got, near) }

func runLexical(t *testing.T, open func(t *testing.T) index.Lexical, diff func(want, got []index.Hit) string) {
	fresh := func(t *testing.T) index.Lexical {
		l := open(t)
		t.Cleanup(func() { l.Close() })
		return l
	}
	t.Run("same as the reference", func(t *testing.T) {
		t.Parallel()
		l, ref := fresh(t), NewLexical()
		applyStory(t, l)
		applyStory(t, ref)
		sameLexical(t, ref, l, diff)
	})
	t.Run("any order, any repetition", func(t *testing.T) {
		t.Parallel()
		ref := NewLexical()
		applyStory(t, ref)
		for seed := range uint64(2) {
			l := fresh(t)
			applyShuffled(t, l, rand.New(rand.NewPCG(seed, 2)))
			sameLexical(t, ref, l, diff)
		}
	})
	t.Run("concurrent use", func(t *testing.T) {
		t.Parallel()
		l, ref := fresh(t), NewLexical()
		applyStory(t, ref)
		applyAtOnce(t, l, func(ctx context.Context) error {
			_, err := l.Search(ctx, "port 8080", everything(), 5)
			return err
		})
		sameLexical(t, ref, l, diff)
	})
	t.Run("sequence", func(t *testing.T) {
		t.Parallel()
		l := fresh(t)
		n := Evidence(Project, "q@1", "Logs rotate daily.", 1)
		if err := l.Apply(t.Context(), Batch(2, n)); !fault.Is(err, fault.Unavailable) {
			t.Errorf("a gap: got %v, want unavailable", err)
		}
		wantApplied(t, l, 0)
		for range 2 {
			if err := l.Apply(t.Context(), Batch(1, n)); err != nil {
				t.Fatal(err)
			}
			wantApplied(t, l, 1)
		}
		empty := index.Batch{Tenant: Tenant, Project: Project, Stream: "q@1", Space: Space, Seq: 2}
		if err := l.Apply(t.Context(), empty); err != nil {
			t.Errorf("a segment without nodes: %v", err)
		}
		wantApplied(t, l, 2)
	})
	t.Run("refuses what has no source", func(t *testing.T) {
		t.Parallel()
		testRefused(t, fresh(t).Apply)
	})
	t.Run("a replaced memory is not found, one that holds again is", func(t *testing.T) {
		t.Parallel()
		l := fresh(t)
		const s = "decisions@11111111"
		e := Evidence(Project, s, "We serve on port 8080 behind the proxy.", 1)
		m1 := Memory(Project, s, memory.L1, "Port 8080 behind the proxy.", 1, e.ID)
		m2 := Memory(Project, s, memory.L1, "Port 9090 behind the proxy.", 2, e.ID)
		m2.Supersedes = []memory.SHA{m1.ID}
		m3 := Memory(Project, s, memory.L1, m1.Text, 3, e.ID)
		m3.Supersedes = []memory.SHA{m2.ID}
		found := func() []memory.SHA {
			hits, err := l.Search(t.Context(), "proxy", index.Filter{Tenant: Tenant, Projects: []string{Project}, Levels: []memory.Level{memory.L1}}, 10)
			if err != nil {
				t.Fatal(err)
			}
			var ids []memory.SHA
			for _, h := range hits {
				ids = append(ids, h.Node)
			}
			return ids
		}
		for i, step := range []struct {
			nodes []index.Node
			want  memory.SHA
		}{{[]index.Node{e, m1}, m1.ID}, {[]index.Node{m2}, m2.ID}, {[]index.Node{m3}, m1.ID}, {[]index.Node{m2, m3}, m1.ID}} {
			if err := l.Apply(t.Context(), Batch(int64(i+1), step.nodes...)); err != nil {
				t.Fatal(err)
			}
			if got := found(); len(got) != 1 || got[0] != step.want {
				t.Errorf("after batch %d: %v, want %s alone", i+1, got, step.want)
			}
		}
	})
	t.Run("a run of a synthesis leaves nothing of those before", func(t *testing.T) {
		t.Parallel()
		l, ref := fresh(t), fresh(t)
		runs := syntheses()
		for i, b := range runs {
			b.Seq = int64(i + 1)
			if err := l.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			b.Replace = false
			if b.Seq = 1; i == len(runs)-1 {
				if err := ref.Apply(t.Context(), b); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, space := range []string{Space, "second"} { // the second passes over the outdated runs
			for i, b := range runs {
				b.Seq, b.Space = int64(i+1), space
				if err := l.Apply(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				for _, q := range []string{"port 8080", "queue", "9090"} {
					got, errA := l.Search(t.Context(), q, everything(), 9)
					want, errB := ref.Search(t.Context(), q, everything(), 9)
					if d := diff(want, got); d != "" || errA != nil || errB != nil {
						t.Errorf("%q: %v %v (-last alone +replaced):\n%s", q, errA, errB, d)
					}
				}
			}
		}
		got, errA := l.Passages(t.Context(), Tenant)
		if want, errB := ref.Passages(t.Context(), Tenant); got != want || errA != nil || errB != nil || want == 0 {
			t.Errorf("%d passages, want %d (%v %v)", got, want, errA, errB)
		}
	})
	t.Run("a second space changes no answer", func(t *testing.T) {
		t.Parallel()
		l, ref := fresh(t), fresh(t)
		applyStory(t, l)
		applyStory(t, ref)
		same := func(when string) {
			t.Helper()
			for _, q := range []string{"port 8080", "port proxy", "queue", "nightly job archive rows"} {
				for _, f := range []index.Filter{everything(), {Tenant: Tenant, Projects: []string{Project}, Levels: []memory.Level{memory.L1}}} {
					got, errA := l.Search(t.Context(), q, f, 20)
					want, errB := ref.Search(t.Context(), q, f, 20)
					if d := diff(want, got); d != "" || errA != nil || errB != nil {
						t.Errorf("%s, %q: %v %v (-one space +two):\n%s", when, q, errA, errB, d)
					}
				}
			}
			got, errA := l.Passages(t.Context(), Tenant)
			if want, errB := ref.Passages(t.Context(), Tenant); got != want || errA != nil || errB != nil {
				t.Errorf("%s: %d passages, want %d (%v %v)", when, got, want, errA, errB)
			}
		}
		for stream, batches := range Story() {
			for _, b := range batches {
				if b.Space == "" {
					continue
				}
				b.Space, b.Vectors = "test0002", nil
				if err := l.Apply(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				same(fmt.Sprintf("%s at %d", stream, b.Seq)) // in the middle too: old memories must not come back
			}
		}
	})
	t.Run("an empty scope sees nothing", func(t *testing.T) {
		t.Parallel()
		l := fresh(t)
		applyStory(t, l)
		for name, f := range map[string]index.Filter{
			"zero": {}, "no project": {Tenant: Tenant}, "no tenant": {Projects: []string{Project}},
			"another tenant": {Tenant: "rival", Projects: []string{Project}}, "a path": {Tenant: Tenant, Projects: []string{"../" + Tenant + "/" + Project}},
		} {
			if hits, err := l.Search(t.Context(), "port", f, 5); err != nil || len(hits) > 0 {
				t.Errorf("%s: %d hits, %v", name, len(hits), err)
			}
		}
	})
	t.Run("wipe", func(t *testing.T) {
		t.Parallel()
		l, ref := fresh(t), NewLexical()
		applyStory(t, l)
		applyStory(t, ref)
		for _, project := range []string{"other", ""} {
			for _, x := range []index.Lexical{l, ref} {
				if err := x.Wipe(t.Context(), Tenant, project); err != nil {
					t.Fatal(err)
				}
			}
			sameLexical(t, ref, l, diff)
		}
		applyStory(t, l)
		applyStory(t, ref)
		sameLexical(t, ref, l, diff)
	})
}

// most is more than the story's nodes: what is found is compared whole.
const most = 100

// sameLexical compares every answer of two indexes that hold the story.
func sameLexical(t *testing.T, want, got index.Lexical, diff func(want, got []index.Hit) string) {
	t.Helper()
	ctx := t.Context()
	w, werr := want.Passages(ctx, Tenant)
	g, gerr := got.Passages(ctx, Tenant)
	if w != g || werr != nil || gerr != nil {
		t.Errorf("passages: got %d, %v; want %d, %v", g, gerr, w, werr)
	}
	day := func(f index.Filter, since, until int) index.Filter {
		f.Since, f.Until = Epoch.AddDate(0, 0, since), Epoch.AddDate(0, 0, until)
		return f
	}
	from := func(f index.Filter, sources ...string) index.Filter {
		f.Sources = sources
		return f
	}
	raw := func(f index.Filter) index.Filter {
		f.Levels = []memory.Level{memory.LevelRaw, memory.L0}
		return f
	}
	for name, f := range map[string]index.Filter{
		"all":       everything(),
		"a project": {Tenant: Tenant, Projects: []string{"other"}},
		"L0":        {Tenant: Tenant, Projects: []string{Project}, Levels: []memory.Level{memory.L0}},
		"L1 and L2": {Tenant: Tenant, Projects: []string{Project}, Levels: []memory.Level{memory.L1, memory.L2}},
		"raw":       {Tenant: Tenant, Projects: []string{Project}, Levels: []memory.Level{memory.LevelRaw, memory.L0, memory.L1, memory.L2}},
		"day 4":     day(everything(), 4, 5),
		"day 1 on":  day(everything(), 1, 9),
		"an object": from(everything(), "transcripts/shop/4.jsonl"),
		"objects":   from(everything(), "transcripts/shop/1", "transcripts/shop/3.jsonl"),
		"no object": from(everything(), "transcripts/other/", "transcripts/*"),
		"an object and a time it was not said at": day(from(everything(), "transcripts/shop/1.jsonl"), 3, 9),
		"an object and its time":                  day(from(everything(), "transcripts/shop/4.jsonl"), 3, 9),
		"raw of an object":                        raw(from(everything(), "transcripts/shop/3")),
	} {
		for _, q := range queries {
			w, err := want.Search(ctx, q, f, most)
			if err != nil {
				t.Fatal(err)
			}
			g, err := got.Search(ctx, q, f, most)
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(w, g); d != "" {
				t.Errorf("%s, %q (-want +got):\n%s", name, q, d)
			}
		}
	}
}
