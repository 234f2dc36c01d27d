package indextest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/llm/static"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Judged is a corpus with questions whose answers are known.
type Judged struct {
	Nodes     []index.Node
	Questions []Question
}

// Question is asked of every driver. Gold are the nodes that answer it.
type Question struct {
	Text string
	Gold map[memory.SHA]bool
}

// Words of the generated corpus: what a team that writes software says.
var (
	components = strings.Split("payment gateway|search indexer|retry queue|session cache|export worker|upload endpoint|billing report|image resizer|login page|audit log|mail relay|feature flags|import job|token service|rate limiter|nightly backup|metrics collector|webhook sender|order history|stock ledger|price list|address book|document store|chat bridge|map tiles|build runner|release script|schema migration|permission check|notification feed", "|")
	settings   = strings.Split("retry limit|timeout|batch size|pool size|page size|cache lifetime|worker count|queue length|backoff|log level|retention period|memory limit|connection limit|chunk size|refresh interval|lock timeout|compression level|concurrency|error budget|sampling rate", "|")
	reasons    = strings.Split("the upstream closes idle sockets|two workers wrote the same row|the old value filled the disk within a week|customers in Norway saw stale totals|the load test fell over at 900 requests per second|the vendor bills each call|support could not find failed runs|a rolling deploy needs both versions alive|the garbage collector paused for seconds|the certificate check takes most of the time|duplicates reached the warehouse|auditors ask for ninety days", "|")
	events     = strings.Split("the deploy of Tuesday|the outage in March|a review by the platform team|the migration to arm64|the incident call|the last retrospective|a bug report from a partner|the security audit", "|")
	errorsSeen = strings.Split("TS2322|E0308|ECONNRESET|ERESOLVE|PGRST116|ERR_PNPM_PEER|ORA-01555|EACCES|CS0246|YN0060|SQLSTATE|ENOSPC", "|")
	people     = strings.Split("Ada|Grace|Linus|Barbara|Edsger|Margaret|Dennis|Radia", "|")
)

func camel(s string) string {
	w := strings.Fields(s)
	for i := 1; i < len(w); i++ {
		w[i] = strings.ToUpper(w[i][:1]) + w[i][1:]
	}
	return strings.Join(w, "")
}

func snake(s string) string { return strings.ReplaceAll(s, " ", "_") }

// Generate gives n nodes of an engineering team's memory, prose with code in it, and the
// given number of questions, each about one setting of one component, one error met in one
// file, or one identifier. The same seed gives the same.
func Generate(n, questions int, seed uint64) Judged {
	r := rand.New(rand.NewPCG(seed, 7))
	pick := func(of []string) string { return of[r.IntN(len(of))] }
	var j Judged
	seen := map[string]bool{}
	add := func(text string) (memory.SHA, bool) {
		if seen[text] {
			return "", false
		}
		seen[text] = true
		node := Evidence(Project, "q@1", text, len(j.Nodes)%900+1)
		j.Nodes = append(j.Nodes, node)
		return node.ID, true
	}
	ask := func(text string, gold memory.SHA) {
		j.Questions = append(j.Questions, Question{Text: text, Gold: map[memory.SHA]bool{gold: true}})
	}
	// One decision about each setting of each component, in a random order: the first answer the questions.
	pairs := r.Perm(len(components) * len(settings))
	for i := 0; len(j.Questions) < questions; i++ {
		c, s := components[pairs[i%len(pairs)]/len(settings)], settings[pairs[i%len(pairs)]%len(settings)]
		why, value := pick(reasons), 2+r.IntN(500)
		switch i % 5 {
		case 0, 1:
			if id, ok := add(fmt.Sprintf("We decided to set the %s of the %s to %d, because %s. %s will change `%s.%s` in config/%s.yaml after %s.", s, c, value, why, pick(people), camel(c), camel(s), snake(c), pick(events))); ok {
				ask([]string{
					fmt.Sprintf("What %s did we choose for the %s, and why?", s, c),
					fmt.Sprintf("why is the %s %s what it is", c, s),
				}[i%2], id)
			}
		case 2:
			code, line := pick(errorsSeen), 10+r.IntN(900)
			if id, ok := add(fmt.Sprintf("Building the %s fails with %s in src/%s/%s.ts:%d while the %s is read; the cure was to pin the parser to 4.%d.%d and clear node_modules.", c, code, snake(c), camel(s), line, s, r.IntN(20), r.IntN(20))); ok {
				ask(fmt.Sprintf("%s when building the %s, src/%s/%s.ts", code, c, snake(c), camel(s)), id)
			}
		case 3:
			name := camel(c + " " + s)
			if id, ok := add(fmt.Sprintf("func %s(ctx context.Context, max int) error in pkg/%s/%s.go now returns ErrTooMany%d instead of blocking, since %s.", name, snake(c), snake(s), value, why)); ok {
				ask(fmt.Sprintf("what does %s return?", name), id)
			}
		case 4:
			if id, ok := add(fmt.Sprintf("From now on the %s runs `make %s-%s` before each release; %s found in %s that %s.", c, strings.ReplaceAll(c, " ", "-"), strings.ReplaceAll(s, " ", "-"), pick(people), pick(events), why)); ok {
				ask(fmt.Sprintf("which command runs before a release of the %s because of its %s?", c, s), id)
			}
		}
	}
	for len(j.Nodes) < n {
		c, s := pick(components), pick(settings)
		add([]string{
			fmt.Sprintf("%s looked at the %s after %s and saw nothing odd; %s, but not here.", pick(people), c, pick(events), pick(reasons)),
			fmt.Sprintf("Ran `go test ./%s/... -run Test%d`: %d passed, %d failed, last error %s: %s exceeded.", snake(c), r.IntN(9000), r.IntN(400), r.IntN(9), pick(errorsSeen), s),
			fmt.Sprintf("Maybe the %s should be raised some day, said %s about the %s; no decision yet (ticket OPS-%d).", s, pick(people), c, r.IntN(9999)),
			fmt.Sprintf("```go\nif n > %d { // %s\n\treturn fmt.Errorf(\"%s: %%w\", err)\n}\n``` in pkg/%s/%s.go", r.IntN(5000), pick(reasons), s, snake(c), snake(pick(settings))),
		}[r.IntN(4)])
	}
	r.Shuffle(len(j.Nodes), func(a, b int) { j.Nodes[a], j.Nodes[b] = j.Nodes[b], j.Nodes[a] })
	return j
}

// Chats are the conversations of sde-bench, turn by turn, with its questions, from the
// folder that MNEME_SHARED names; ok is false where it is absent.
func Chats(t testing.TB) (j Judged, ok bool) {
	t.Helper()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared")
	}
	of := map[string]map[memory.SHA]bool{}
	seen := map[memory.SHA]bool{}
	for _, name := range []string{"decisions.jsonl", "decoys.jsonl"} {
		ok = readLines(t, filepath.Join(root, "eval", "sde-bench", name), func(c struct {
			ID    string
			Turns []struct{ Role, Text string }
		}) {
			of[c.ID] = map[memory.SHA]bool{}
			for _, turn := range c.Turns {
				n := Evidence(Project, "q@1", turn.Text, len(j.Nodes)+1)
				if of[c.ID][n.ID] = true; !seen[n.ID] && turn.Text != "" {
					seen[n.ID] = true
					j.Nodes = append(j.Nodes, n)
				}
			}
		})
		if !ok {
			return j, false
		}
	}
	ok = readLines(t, filepath.Join(root, "eval", "sde-bench", "tasks.jsonl"), func(task struct{ Question, Answer string }) {
		j.Questions = append(j.Questions, Question{Text: task.Question, Gold: of[task.Answer]})
	})
	return j, ok
}

func readLines[T any](t testing.TB, path string, each func(T)) bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Logf("left out: %v", err)
		return false
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		each(v)
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return true
}

// Batches are the nodes in batches of some hundreds, with the vectors of the static
// table by e; without e they have none.
func (j *Judged) Batches(t testing.TB, e *static.Embedder) (out []index.Batch) {
	t.Helper()
	const size = 500
	for from := 0; from < len(j.Nodes); from += size {
		b := index.Batch{Tenant: Tenant, Project: Project, Stream: "q@1", Space: "none", Seq: int64(len(out) + 1), Nodes: j.Nodes[from:min(from+size, len(j.Nodes))]}
		if e != nil {
			b.Space, b.Vectors = e.Space().ID, map[memory.SHA][]float32{}
			for i := range b.Nodes {
				for _, p := range index.PassagesOf(&b.Nodes[i]) {
					v, err := e.Embed(t.Context(), []string{p.Embed})
					if err != nil {
						t.Fatal(err)
					}
					b.Vectors[p.ID] = v[0]
				}
			}
		}
		out = append(out, b)
	}
	return out
}
