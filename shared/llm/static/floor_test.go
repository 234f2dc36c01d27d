package static_test

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/llm/static"
)

// TestFloor prints the two distributions that the floor stands between, over
// the chats of SDE-bench cut into passages (windows of 150 words, and single
// sentences, as L0 nodes are): the best cosine of a nonsense question to any
// passage, and that of a real question to the passages that answer it. It
// holds the floor to its two promises: 19 in 20 of the questions made of
// invented words or keyboard noise find nothing, and 9 in 10 real ones keep
// their answer.
func TestFloor(t *testing.T) {
	t.Parallel()
	for _, n := range []int{256, 128} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			e, err := static.Cut(n)
			if err != nil {
				t.Fatal(err)
			}
			testFloor(t, e)
		})
	}
}

func testFloor(t *testing.T, e *static.Embedder) {
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared")
	}
	dir := filepath.Join(root, "eval", "sde-bench")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("needs eval/sde-bench in the folder that MNEME_SHARED names: %v", err)
	}
	type chat struct {
		ID    string
		Turns []struct{ Text string }
	}
	passages := map[string][][]float32{}
	for _, name := range []string{"decisions.jsonl", "decoys.jsonl"} {
		for _, c := range readLines[chat](t, filepath.Join(dir, name)) {
			var all, texts []string
			for _, turn := range c.Turns {
				all = append(all, strings.Fields(turn.Text)...)
				texts = append(texts, strings.SplitAfter(turn.Text, ". ")...)
			}
			for w := range slices.Chunk(all, 150) {
				texts = append(texts, strings.Join(w, " "))
			}
			passages[c.ID] = embed(t, e, texts...)
		}
	}
	best := func(q []float32, of ...string) (top float64) {
		for _, id := range of {
			for _, p := range passages[id] {
				top = max(top, dot(q, p))
			}
		}
		return top
	}
	var ids []string
	for id := range passages {
		ids = append(ids, id)
	}
	report := func(name string, got []float64) []float64 {
		slices.Sort(got)
		at := func(q float64) float64 { return got[int(q*float64(len(got)-1))] }
		t.Logf("%-28s n=%-4d min %.3f  5%% %.3f  10%% %.3f  50%% %.3f  90%% %.3f  95%% %.3f  max %.3f",
			name, len(got), got[0], at(.05), at(.10), at(.5), at(.90), at(.95), got[len(got)-1])
		return got
	}

	type task struct{ Question, Answer string }
	var real, short []float64
	for _, q := range readLines[task](t, filepath.Join(dir, "tasks.jsonl")) {
		real = append(real, best(embed(t, e, q.Question)[0], q.Answer))
		words := strings.Fields(q.Question)
		short = append(short, best(embed(t, e, strings.Join(words[:min(len(words), 10)], " "))[0], q.Answer))
	}
	report("real, whole question", real)
	report("real, first 10 words", short)

	rnd := rand.New(rand.NewPCG(11, 12))
	invented := func() string {
		var b strings.Builder
		for w := range 3 {
			if w > 0 {
				b.WriteByte(' ')
			}
			for range 2 + rnd.IntN(3) {
				b.WriteByte("bcdfghjklmnpqrstvwxz"[rnd.IntN(20)])
				b.WriteByte("aeiouy"[rnd.IntN(6)])
			}
		}
		return b.String()
	}
	noise := func() string {
		b := make([]byte, 12)
		for i := range b {
			b[i] = "asdfghjklqwertyuiopzxcvbnm"[rnd.IntN(26)]
		}
		return string(b)
	}
	var inv, key []float64
	for range 200 {
		inv = append(inv, best(embed(t, e, invented())[0], ids...))
		key = append(key, best(embed(t, e, noise())[0], ids...))
	}
	report("invented words", inv)
	report("keyboard noise", key)
	var off []float64
	for _, q := range []string{
		"how long do I boil an egg", "which whale is the largest", "what did Napoleon eat for breakfast", "best time to plant tulips",
		"who won the football match", "why is the sea salty", "recipe for potato soup with leeks", "how tall is the Eiffel tower",
		"what colour is a giraffe's tongue", "does the cat need a vaccine", "train from Vienna to Prague", "how do I iron a silk shirt",
		"songs about the moon", "is it going to rain in Lisbon", "how many strings has a cello", "what does a beekeeper wear in winter",
	} {
		off = append(off, best(embed(t, e, q)[0], ids...))
	}
	report("plain questions off topic", off)

	floor := e.Space().Floor
	under := func(s []float64) int { n, _ := slices.BinarySearch(s, floor); return n }
	t.Logf("under the floor of %.2f: real %d/%d, invented %d/%d, noise %d/%d, off topic %d/%d",
		floor, under(real), len(real), under(inv), len(inv), under(key), len(key), under(off), len(off))
	if n := under(real); 10*n > len(real) {
		t.Errorf("%d of %d real questions lose their answer to the floor", n, len(real))
	}
	if n := under(inv) + under(key); 20*n < 19*(len(inv)+len(key)) {
		t.Errorf("%d of %d nonsense questions pass the floor", len(inv)+len(key)-n, len(inv)+len(key))
	}
}

func readLines[T any](t *testing.T, path string) (out []T) {
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
