package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	things = "harbor lantern meadow copper violin glacier pepper saddle orchard anchor marble canyon ribbon walnut falcon timber pillow mortar cobalt ginger turret basket meteor quartz thistle beacon cinder velvet badger magnet tunnel compass blanket thunder garnet hammock spindle bramble lattice furnace parcel trellis gondola kettle rudder sparrow locket trumpet chimney pebble"
	does   = "ships stores drains signs renames mirrors splits merges counts rotates freezes batches throttles encrypts archives samples compacts routes pins audits"
	which  = "northern quiet shared nightly regional legacy public hidden second cheap remote striped bounded foreign yearly"
)

func pick(r *rand.Rand, words string) string { w := strings.Fields(words); return w[r.IntN(len(w))] }

// decisions are n decisions in sessions of 60 or 240, of words drawn from many, so that few
// replace another.
func decisions(t *testing.T, dir string, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	start := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	per := 60
	if n > 10_000 {
		per = 240
	}
	for s := 0; n > 0; s++ {
		var says []functest.Say
		for range min(n, per) {
			n--
			says = append(says, functest.User(fmt.Sprintf("We decided that the %s %s %s the %s %s, because the %s %s %s the %s.", pick(r, which), pick(r, things), pick(r, does),
				pick(r, things), pick(r, things), pick(r, which), pick(r, things), pick(r, does), pick(r, things))), functest.Assistant("Noted."))
		}
		body := functest.Session(fmt.Sprintf("s%d", s), start.Add(time.Duration(s)*20*time.Hour), says...)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("s%04d.jsonl", s)), body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// asking asks a server so many questions a second and judges each answer.
type asking struct {
	t      *testing.T
	s      *server
	token  string
	tables map[string]llm.Embedder // by id of the space
	// late is judged at the end, a part of it: a model that is a server would be kept busy by it.
	late func(space string) llm.Embedder
	rate int // questions a second

	mu     sync.Mutex
	failed []string
	mixed  []string
	cosine int // cosines that were computed again
	by     map[string]int
	took   []time.Duration
	later  []asked
}

type asked struct {
	question string
	answer   query.Answer
}

func newAsking(t *testing.T, s *server) *asking {
	t.Helper()
	creds, err := wire.ReadCredentials(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	a := &asking{t: t, s: s, token: creds.Token.Reveal(), rate: 20, tables: map[string]llm.Embedder{}, by: map[string]int{}}
	for _, n := range []int{128, 256} {
		e, err := static.Cut(n)
		if err != nil {
			t.Fatal(err)
		}
		a.tables[e.Space().ID] = e
	}
	return a
}

// during asks questions while do runs, and gives the 99th percentile of what
// they took.
func (a *asking) during(do func()) (p50, p99 time.Duration) {
	a.t.Helper()
	a.mu.Lock()
	a.took = nil
	a.mu.Unlock()
	ctx, stop := context.WithCancel(a.t.Context())
	var asked, ticking sync.WaitGroup
	ticking.Go(func() {
		tick := time.NewTicker(time.Second / time.Duration(a.rate))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				asked.Go(func() { a.ask(i) })
			}
		}
	})
	do()
	stop()
	ticking.Wait()
	asked.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	slices.Sort(a.took)
	at := func(q float64) time.Duration { return a.took[int(q*float64(len(a.took)-1))] }
	return at(.5), at(.99)
}

func (a *asking) ask(i int) {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	q := fmt.Sprintf("why does the %s %s not take the %s?", pick(r, which), pick(r, things), pick(r, things))
	start := time.Now()
	req, err := http.NewRequest(http.MethodGet, a.s.http+"/memory/query?project=shop&query="+url.QueryEscape(q), nil)
	if err != nil {
		a.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
	var body []byte
	if err == nil {
		body, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	took := time.Since(start)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = append(a.took, took)
	var out query.Answer
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err == nil && len(out.Degraded) > 0 {
		err = fmt.Errorf("degraded: %v", out.Degraded)
	}
	if err != nil {
		a.failed = append(a.failed, err.Error())
		return
	}
	a.by[out.Space]++
	if a.late != nil && a.tables[out.Space] == nil {
		a.later = append(a.later, asked{q, out})
		return
	}
	a.judge(q, &out)
}

// judgeLater judges 25 of the answers that were put off.
func (a *asking) judgeLater() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, x := range a.later {
		if i%max(1, len(a.later)/25) == 0 {
			if a.tables[x.answer.Space] == nil {
				a.tables[x.answer.Space] = a.late(x.answer.Space)
			}
			a.judge(x.question, &x.answer)
		}
	}
}

// judge computes the cosine of each result again, in the space that the answer names.
func (a *asking) judge(q string, out *query.Answer) {
	e := a.tables[out.Space]
	if e == nil {
		a.mixed = append(a.mixed, "space "+out.Space)
		return
	}
	vec := func(s string) []float32 {
		v, err := e.Embed(context.Background(), []string{s})
		if err != nil {
			a.t.Error(err)
		}
		return v[0]
	}
	asked := vec(q)
	for _, r := range out.Results {
		n := index.Node{Text: r.Text, Role: r.Role, SourceTime: r.Time}
		ps := index.PassagesOf(&n)
		if r.Components.Cosine == 0 || len(ps) != 1 {
			continue
		}
		var dot float64
		for i, x := range vec(ps[0].Embed) {
			dot += float64(x) * float64(asked[i])
		}
		if a.cosine++; math.Abs(dot-r.Components.Cosine) > 1e-4 {
			a.mixed = append(a.mixed, fmt.Sprintf("%.4f in space %s, which gives %.4f", r.Components.Cosine, out.Space, dot))
		}
	}
}

// changesModel is Shows 3 of the model change: under 20 queries a second the embedding
// model is changed and changed back, with no failed query and no answer of two spaces.
func changesModel(t *testing.T, s *server, passages int, bound float64, to string, late func(string) llm.Embedder) {
	src := t.TempDir()
	decisions(t, src, passages*13/4)
	for range 20 { // a command ends after five minutes; the same files again cost nothing
		if _, code := s.mem("learn", "-p", "shop", src); code == 0 {
			break
		}
	}
	s.must("learn", "-p", "shop", src)
	for range 20 {
		if _, code := s.mem("wait", "--timeout", "4m"); code == 0 {
			break
		}
	}
	want := s.verify()
	a := newAsking(t, s)
	if a.late = late; late != nil {
		a.rate = 3 // what a small model embeds on two cores; beyond that answers are by words alone, and say so
	}
	for i := range 20 { // the first search reads the vectors
		a.ask(i)
	}
	quiet50, quiet := a.during(func() { time.Sleep(min(20*time.Second, time.Duration(passages)*4*time.Millisecond)) })
	t.Logf("quiet: p50 %v, p99 %v", quiet50.Round(100*time.Microsecond), quiet.Round(100*time.Microsecond))
	report := func(what string, p50, p99 time.Duration, took time.Duration, out string) {
		t.Helper()
		t.Logf("%s: %v, p50 %v, p99 %v (quiet %v, %.2f times)\n%s", what, took.Round(time.Millisecond), p50.Round(100*time.Microsecond), p99.Round(100*time.Microsecond), quiet.Round(100*time.Microsecond), float64(p99)/float64(quiet), out)
		if bound > 0 && float64(p99) > bound*float64(quiet) {
			t.Errorf("%s: p99 is %v, %.1f times what it is without", what, p99, float64(p99)/float64(quiet))
		}
	}
	for _, step := range [][]string{{"model", "set", "embed", to}, {"model", "rollback"}} {
		var out string
		start := time.Now()
		var took time.Duration
		p50, p99 := a.during(func() {
			out = s.must(append(step, "--wait=false")...)
			s.must("wait", "--timeout", "280s")
			out = s.must("model", "status")
			took = time.Since(start)
			time.Sleep(2 * time.Second) // and what follows the switch
		})
		report(strings.Join(step, " "), p50, p99, took, out)
	}
	a.judgeLater()
	if len(a.failed) > 0 || len(a.mixed) > 0 {
		t.Errorf("%d failed queries, %d mixed answers: %.3q %.3q", len(a.failed), len(a.mixed), a.failed, a.mixed)
	}
	if len(a.by) != 2 || a.cosine < 5*a.rate {
		t.Errorf("answers by space %v, %d cosines computed again: nothing was shown", a.by, a.cosine)
	}
	t.Logf("answers by space %v, %d cosines computed again, %d failed, %d mixed", a.by, a.cosine, len(a.failed), len(a.mixed))
	sameHashes(t, "after the changes", want, s.verify())
	var v struct{ Index struct{ Vectors int64 } }
	if err := json.Unmarshal([]byte(s.must("verify", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d vectors in both spaces", v.Index.Vectors)
	if v.Index.Vectors < int64(2*passages) {
		t.Errorf("%d vectors in both spaces; %d passages were asked for", v.Index.Vectors, passages)
	}
}

// TestModelChanges runs it over the embedded indexes, with MNEME_TEST_SPACES passages; at
// 20,000 and more the 99th percentile is held to twice the quiet one.
func TestModelChanges(t *testing.T) {
	passages, bound := 300, 0.0
	if v := os.Getenv("MNEME_TEST_SPACES"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		if passages = n; n >= 20000 {
			bound = 2
		}
	}
	dir := filepath.Join(t.TempDir(), "d")
	if kept := os.Getenv("MNEME_TEST_SPACES_DIR"); kept != "" { // to measure again without learning again
		dir = kept
	}
	changesModel(t, start(t, dir), passages, bound, "static-128", nil)
}

// TestModelChangesOnPostgres runs it where the vectors of each space stand in a table of
// PostgreSQL.
func TestModelChangesOnPostgres(t *testing.T) {
	dsn := os.Getenv("MNEME_TEST_PG")
	if dsn == "" {
		t.Skip("MNEME_TEST_PG is not set")
	}
	name := "spaces" + strconv.FormatInt(time.Now().UnixNano(), 36)
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	t.Cleanup(func() { _ = psql(dsn, "DROP SCHEMA IF EXISTS "+name+" CASCADE").Run() })
	changesModel(t, start(t, filepath.Join(t.TempDir(), "d"), "MNEME_PG="+dsn+sep+"search_path="+name), 150, 0, "static-128", nil)
}

// TestModelChangesToOllama runs it from the table of the program to a model behind the
// Ollama that MNEME_TEST_OLLAMA names, over 200 passages or more.
func TestModelChangesToOllama(t *testing.T) {
	where := os.Getenv("MNEME_TEST_OLLAMA")
	if where == "" {
		t.Skip("MNEME_TEST_OLLAMA is not set")
	}
	const model = "smollm2-135m"
	file := filepath.Join(t.TempDir(), "models.yaml")
	config := fmt.Sprintf("endpoints:\n  - {name: local, url: %q, kind: ollama}\nembed: static\nembeds:\n  %s: {endpoint: local, model: %s, dims: 576, window: 2048}\n", where, model, model)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	changesModel(t, start(t, filepath.Join(t.TempDir(), "d"), "MNEME_MODELS="+file), 230, 0, model, func(space string) llm.Embedder {
		return ollamaVectors{where, model}
	})
}

// ollamaVectors asks Ollama itself, past everything of Mneme's.
type ollamaVectors struct{ url, model string }

func (o ollamaVectors) Space() memory.Space { return memory.Space{} }

func (o ollamaVectors) Embed(_ context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(map[string]any{"model": o.model, "input": texts})
	if err != nil {
		return nil, err
	}
	resp, err := http.Post(o.url+"/api/embed", "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out struct{ Embeddings [][]float32 }
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || len(out.Embeddings) != len(texts) {
		return nil, fmt.Errorf("%s: %d vectors: %w", resp.Status, len(out.Embeddings), err)
	}
	for i, v := range out.Embeddings {
		out.Embeddings[i] = index.Unit(v)
	}
	return out.Embeddings, nil
}
