package indextest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/bleveindex"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/sqliteindex"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/rank"
)

// corpus is both legs over a set of texts, as they are used.
type corpus struct {
	graph   *sqliteindex.Index
	lexical *bleveindex.Index
	embed   *static.Embedder
	source  map[memory.SHA]string // node to the chat it is from
}

func newCorpus(t testing.TB) *corpus {
	t.Helper()
	ctx := context.Background()
	g, err := sqliteindex.Open(ctx, filepath.Join(t.TempDir(), "graph.db"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := bleveindex.Open(ctx, filepath.Join(t.TempDir(), "lexical"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(); l.Close() })
	return &corpus{graph: g, lexical: l, embed: e, source: map[memory.SHA]string{}}
}

// add indexes texts by their source, each a node, in one batch.
func (c *corpus) add(t testing.TB, sources []string, texts [][]string) {
	t.Helper()
	ctx := context.Background()
	b := index.Batch{Tenant: indextest.Tenant, Project: indextest.Project, Stream: "q@1", Space: c.embed.Space().ID, Seq: 1, Vectors: map[memory.SHA][]float32{}}
	for i, source := range sources {
		for _, text := range texts[i] {
			n := indextest.Evidence(indextest.Project, "q@1", text, i+1)
			if c.source[n.ID] != "" {
				continue
			}
			c.source[n.ID] = source
			b.Nodes = append(b.Nodes, n)
			for _, p := range index.PassagesOf(&n) {
				v, err := c.embed.Embed(ctx, []string{p.Embed})
				if err != nil {
					t.Fatal(err)
				}
				b.Vectors[p.ID] = v[0]
			}
		}
	}
	if err := c.graph.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
	if err := c.lexical.Apply(ctx, b); err != nil {
		t.Fatal(err)
	}
}

// legs gives both legs' hits, 50 each.
func (c *corpus) legs(t testing.TB, query string) (dense, lexical []rank.Scored) {
	t.Helper()
	ctx := context.Background()
	f := index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}
	v, err := c.embed.Embed(ctx, []string{query})
	if err != nil {
		t.Fatal(err)
	}
	dh, err := c.graph.SearchDense(ctx, c.embed.Space().ID, v[0], f, 50)
	if err != nil {
		t.Fatal(err)
	}
	lh, err := c.lexical.Search(ctx, query, f, 50)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range dh {
		dense = append(dense, rank.Scored{ID: h.Node, Score: h.Score})
	}
	for _, h := range lh {
		lexical = append(lexical, rank.Scored{ID: h.Node, Score: h.Score, Max: h.Max, IDFShare: h.IDFShare})
	}
	return dense, lexical
}

type chat struct {
	ID    string
	Task  string // "" for a decoy
	Turns []struct{ Role, Text string }
}

type task struct {
	Question, Answer string
	Stale            []string
}

// bench loads sde-bench from the folder that MNEME_SHARED names.
func bench(t testing.TB) (chats []chat, tasks []task) {
	t.Helper()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared")
	}
	dir := filepath.Join(root, "eval", "sde-bench")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("needs eval/sde-bench in the folder that MNEME_SHARED names: %v", err)
	}
	chats = append(lines[chat](t, filepath.Join(dir, "decisions.jsonl")), lines[chat](t, filepath.Join(dir, "decoys.jsonl"))...)
	return chats, lines[task](t, filepath.Join(dir, "tasks.jsonl"))
}

func lines[T any](t testing.TB, path string) (out []T) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// chatCorpus is the chats in windows of 150 words, or in sentences, as L0 nodes are.
func chatCorpus(t testing.TB, chats []chat, sentences bool) *corpus {
	t.Helper()
	c := newCorpus(t)
	var sources []string
	var all [][]string
	for _, ch := range chats {
		var texts []string
		if sentences {
			for _, turn := range ch.Turns {
				for _, s := range strings.SplitAfter(turn.Text, ". ") {
					if strings.TrimSpace(s) != "" {
						texts = append(texts, s)
					}
				}
			}
		} else {
			var whole strings.Builder
			for _, turn := range ch.Turns {
				fmt.Fprintf(&whole, "%s: %s\n", turn.Role, turn.Text)
			}
			texts = append(texts, whole.String())
		}
		sources, all = append(sources, ch.ID), append(all, texts)
	}
	c.add(t, sources, all)
	return c
}

// TestFusion measures weights and floor over the chats as passages and as
// sentences, and the floor over a few chats too.
func TestFusion(t *testing.T) {
	t.Parallel()
	if raceEnabled {
		t.Skip("measures quality, a minute long under the race detector; the suites test for races")
	}
	chats, tasks := bench(t)
	for _, sentences := range []bool{false, true} {
		for _, size := range []int{5, len(chats)} {
			name := fmt.Sprintf("chats=%d", size)
			if sentences {
				name += ",sentences"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := chatCorpus(t, chats[:size], sentences)
				if size < len(chats) {
					floor(t, c, nil)
					return
				}
				floor(t, c, tasks)
				weights(t, c, chats, tasks, sentences)
			})
		}
	}
}

// weights prints R@1 and MRR of the fusion at each dense weight, and holds the
// default to what the best weight reaches.
func weights(t *testing.T, c *corpus, chats []chat, tasks []task, sentences bool) {
	decoy := map[string]bool{}
	for _, ch := range chats {
		decoy[ch.ID] = ch.Task == ""
	}
	type legs struct{ dense, lexical []rank.Scored }
	found := make([]legs, len(tasks))
	for i, task := range tasks {
		found[i].dense, found[i].lexical = c.legs(t, task.Question)
	}
	measure := func(opt rank.Options) (plain, amended, top3, mrr float64) {
		var r1, a1, a3, rr []float64
		for i, task := range tasks {
			var order []string
			for _, f := range rank.Fuse(found[i].dense, found[i].lexical, opt) {
				// Against the decoys and the task's own chats, as the data asks:
				// a plain and an amended task share their question.
				s := c.source[f.ID]
				own := s == task.Answer || slices.Contains(task.Stale, s)
				if (own || decoy[s]) && !slices.Contains(order, s) {
					order = append(order, s)
				}
			}
			want := map[string]bool{task.Answer: true}
			if len(task.Stale) > 0 {
				a1 = append(a1, rank.RecallAt(order, want, 1))
				a3 = append(a3, rank.RecallAt(order, want, 3))
				continue
			}
			r1 = append(r1, rank.RecallAt(order, want, 1))
			rr = append(rr, rank.ReciprocalRank(order, want))
		}
		return rank.Mean(r1), rank.Mean(a1), rank.Mean(a3), rank.Mean(rr)
	}
	best := 0.0
	for w := 0; w <= 10; w++ {
		opt := rank.Options{DenseWeight: float64(w) / 10, LexicalWeight: 1 - float64(w)/10}
		plain, amended, top3, mrr := measure(opt)
		best = max(best, mrr)
		t.Logf("dense %.1f: plain R@1 %.3f MRR %.3f, amended R@1 %.3f R@3 %.3f", opt.DenseWeight, plain, mrr, amended, top3)
	}
	plain, amended, top3, mrr := measure(rank.Options{RRF: true})
	t.Logf("RRF:       plain R@1 %.3f MRR %.3f, amended R@1 %.3f R@3 %.3f", plain, mrr, amended, top3)
	def := rank.Defaults()
	plain, amended, top3, mrr = measure(def)
	t.Logf("defaults:  plain R@1 %.3f MRR %.3f, amended R@1 %.3f R@3 %.3f", plain, mrr, amended, top3)
	def.FloorCosine, def.FloorIDF = 0, 0
	plain, amended, top3, mrr = measure(def)
	t.Logf("no floor:  plain R@1 %.3f MRR %.3f, amended R@1 %.3f R@3 %.3f", plain, mrr, amended, top3)
	if mrr < best-.06 { // one task of 18 is 0.056
		t.Errorf("the default weights give MRR %.3f, the best weight %.3f", mrr, best)
	}
	def.Superseded = map[memory.SHA][]memory.SHA{}
	for _, task := range tasks {
		for id, source := range c.source {
			for by, newer := range c.source {
				if slices.Contains(task.Stale, source) && newer == task.Answer && !sentences {
					def.Superseded[id] = append(def.Superseded[id], by)
				}
			}
		}
	}
	_, amended, top3, _ = measure(def)
	t.Logf("succession known: amended R@1 %.3f R@3 %.3f", amended, top3)
	if !sentences && amended < 1 {
		t.Errorf("with succession known, amended R@1 is %.3f", amended)
	}
}

// floor prints what the floor stands between and holds it to its promise:
// nonsense finds nothing, and real questions keep their answer.
func floor(t *testing.T, c *corpus, tasks []task) {
	rnd := rand.New(rand.NewPCG(11, 12))
	var nonsense []string
	for range 100 {
		var b strings.Builder
		for range 3 {
			for range 2 + rnd.IntN(3) {
				b.WriteByte("bcdfghjklmnpqrstvwxz"[rnd.IntN(20)])
				b.WriteByte("aeiouy"[rnd.IntN(6)])
			}
			b.WriteByte(' ')
		}
		nonsense = append(nonsense, b.String(), "what is the "+b.String()+"of the project?")
	}
	offTopic := []string{
		"how long do I boil an egg", "which whale is the largest", "what did Napoleon eat for breakfast", "best time to plant tulips",
		"who won the football match", "why is the sea salty", "recipe for potato soup with leeks", "how tall is the Eiffel tower",
		"what colour is a giraffe's tongue", "does the cat need a vaccine", "train from Vienna to Prague", "how do I iron a silk shirt",
		"songs about the moon", "is it going to rain in Lisbon", "how many strings has a cello", "what does a beekeeper wear in winter",
	}
	report := func(name string, queries []string, answer func(i int) string) {
		var cos, share []float64
		through := 0
		for i, q := range queries {
			dense, lexical := c.legs(t, q)
			var bc, bs float64
			for _, h := range dense {
				if answer == nil || c.source[h.ID] == answer(i) {
					bc = max(bc, h.Score)
				}
			}
			for _, h := range lexical {
				if answer == nil || c.source[h.ID] == answer(i) {
					bs = max(bs, h.IDFShare)
				}
			}
			cos, share = append(cos, bc), append(share, bs)
			for _, f := range rank.Fuse(dense, lexical, rank.Defaults()) {
				if answer == nil || c.source[f.ID] == answer(i) {
					through++
					break
				}
			}
		}
		q := func(xs []float64, at float64) float64 {
			slices.Sort(xs)
			return xs[int(at*float64(len(xs)-1))]
		}
		pass := float64(through) / float64(len(queries))
		switch {
		case name == "nonsense" && pass > .01:
			t.Errorf("%d of %d nonsense questions pass the floor", through, len(queries))
		case strings.HasPrefix(name, "real") && pass < .9:
			t.Errorf("%s: %d of %d questions lose their answer to the floor", name, len(queries)-through, len(queries))
		}
		t.Logf("%-22s n=%-3d through %d; cosine 5%% %.2f 50%% %.2f 95%% %.2f; idf share 5%% %.2f 50%% %.2f 95%% %.2f",
			name, len(queries), through, q(cos, .05), q(cos, .5), q(cos, .95), q(share, .05), q(share, .5), q(share, .95))
	}
	report("nonsense", nonsense, nil)
	report("off topic", offTopic, nil)
	if tasks != nil {
		var real, short, four, answers []string
		for _, task := range tasks {
			w := strings.Fields(task.Question)
			real = append(real, task.Question)
			short = append(short, strings.Join(w[:min(len(w), 10)], " "))
			four = append(four, strings.Join(w[2:min(len(w), 7)], " "))
			answers = append(answers, task.Answer)
		}
		answer := func(i int) string { return answers[i] }
		report("real", real, answer)
		report("real, 10 words", short, answer)
		report("real, 5 words", four, answer)
	}
}
