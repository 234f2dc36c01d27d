package gateeval_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/gru/gateeval"
)

// Published values of the exact interval: extractive.md section 1.
func TestInterval(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		k, n      int
		low, high float64
	}{
		{24, 24, .858, 1}, {7, 90, .032, .154}, {15, 15, .782, 1}, {7, 50, .058, .267},
		{20, 20, .832, 1}, {0, 20, 0, .168}, {9, 14, .351, .872}, {4, 50, .022, .192},
		{0, 0, 0, 1}, {1, 1, .025, 1}, {0, 1, 0, .975}, {500, 1000, .469, .531},
	} {
		low, high := gateeval.Interval(tt.k, tt.n)
		if math.Abs(low-tt.low) > .0006 || math.Abs(high-tt.high) > .0006 {
			t.Errorf("%d of %d: [%.4f, %.4f], want [%.3f, %.3f]", tt.k, tt.n, low, high, tt.low, tt.high)
		}
	}
}

func write(t *testing.T, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	openLine   = `{"id":"a","open":true,"messages":[{"role":"user","text":"Never log the request body, it holds the key."}]}`
	closedLine = `{"id":"b","open":false,"text":"Build log of the night. All is well."}`
	nullLine   = `{"id":"c","open":null,"messages":[{"role":"user","text":"We must never do that."}]}`
	missedLine = `{"id":"d","open":true,"messages":[{"role":"assistant","text":"Which one?","ctx":true},{"role":"tool","text":"x"},{"role":"user","text":"thanks"}]}`
)

func TestRunOnLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := write(t, dir, "x.jsonl", openLine+"\n\n"+closedLine+"\r\n"+nullLine+"\n"+missedLine) // no newline at the end
	got, err := gateeval.Run(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.Open != 2 || got.Closed != 1 || got.Recall != .5 || got.FalseOpen != 0 || got.Retrieval != nil {
		t.Errorf("report %+v, want 1 of 2 open and 0 of 1 closed", got)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var names map[string]any
	if err := json.Unmarshal(b, &names); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"open", "closed", "recall", "recall_low", "recall_high", "false_open", "false_open_low", "false_open_high"} {
		if _, ok := names[name]; !ok {
			t.Errorf("%s lacks %q", b, name)
		}
	}
	folder, err := gateeval.Run(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, folder); diff != "" {
		t.Errorf("the folder of one file (-file +folder):\n%s", diff)
	}
}

// An amended decision: the older chat matches the question better, the newer
// one answers it.
func TestRunOnBench(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "decisions.jsonl", `{"id":"r#0","turns":[{"role":"user","text":"The retry policy of the client: backoff sleeps are capped at 60 seconds, at most 4 attempts, that is the rule."}]}
{"id":"r#1","turns":[{"role":"user","text":"We amend the retry policy: backoff sleeps are capped at 30 seconds from now on, at most 4 attempts."}]}
{"id":"p#0","turns":[{"role":"user","text":"We decided that exports must be sorted by invoice date."}]}
`)
	write(t, dir, "decoys.jsonl", `{"id":"y0","turns":[{"role":"user","text":"How does the invoice export work?"},{"role":"assistant","text":"It reads the table and writes a file."}]}
`)
	write(t, dir, "tasks.jsonl", `{"task":"r","question":"What is the cap of the backoff sleeps in the retry policy of the client, 60 seconds?","answer":"r#1","stale":["r#0"]}
{"task":"p","question":"In which order do invoice exports stand?","answer":"p#0","stale":[]}
`)
	got, err := gateeval.Run(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.Open != 3 || got.Closed != 1 || got.Recall != 1 || got.FalseOpen != 0 {
		t.Errorf("gate %+v, want 3 of 3 and 0 of 1", got)
	}
	if r := got.Retrieval; r == nil || r.Plain.N != 1 || r.Plain.Hits != 1 || r.Amended.N != 1 || r.Amended.Hits != 1 {
		t.Errorf("retrieval %+v, want 1 of 1 plain and amended", r)
	}
}

func TestBadInputNamesItsPlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, content, where string }{
		{"no json", openLine + "\nnot json\n", "x.jsonl:2"},
		{"truncated", openLine + "\n" + closedLine[:30], "x.jsonl:2"},
		{"wrong type", `{"id":"a","open":"yes","text":"x"}`, "x.jsonl:1"},
		{"no content", `{"id":"a","open":true}`, "x.jsonl:1"},
		{"no role", `{"id":"a","open":true,"messages":[{"text":"x"}]}`, "x.jsonl:1"},
		{"an array", `[1]`, "x.jsonl:1"},
	} {
		_, err := gateeval.Run(write(t, t.TempDir(), "x.jsonl", tt.content))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tt.where) {
			t.Errorf("%s: %v, want an invalid that names %s", tt.name, err, tt.where)
		}
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "absent"), t.TempDir()} {
		if _, err := gateeval.Run(path); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want an invalid", path, err)
		}
	}
	dir := t.TempDir()
	write(t, dir, "decisions.jsonl", `{"id":"a","turns":[{"role":"user","text":"x"}]}`)
	if _, err := gateeval.Run(dir); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "decoys.jsonl") {
		t.Errorf("without decoys: %v, want an invalid that names the file", err)
	}
}

// sharedFile is a path of the evaluation data, which is not part of this
// repository.
func sharedFile(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared")
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is absent: set MNEME_SHARED to the folder that holds it", path)
	}
	return path
}

// The figures of docs/EXTRACTIVE.md.
func TestFigures(t *testing.T) {
	t.Parallel()
	rep, err := gateeval.Run(sharedFile(t, "eval/sde-bench"))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Recall < .95 || rep.FalseOpen > .10 {
		t.Errorf("sde-bench: recall %.3f at false-open %.3f, want at least .95 at at most .10", rep.Recall, rep.FalseOpen)
	}
	if r := rep.Retrieval; r == nil || r.Plain.Hits != 18 || r.Plain.N != 18 || r.Amended.Hits != 3 || r.Amended.N != 3 {
		t.Errorf("sde-bench: retrieval %+v, want 18 of 18 and 3 of 3", r)
	}
	// With the picks of the method as written: 18 of 18 and 3 of 3 as well
	// (extractive.md section 5).
	rep, err = gateeval.RunWith(extractive.New(extractive.Options{Variant: extractive.AsWritten}), sharedFile(t, "eval/sde-bench"))
	if err != nil {
		t.Fatal(err)
	}
	if r := rep.Retrieval; r.Plain.Hits != 18 || r.Amended.Hits != 3 {
		t.Errorf("sde-bench as written: retrieval %+v, want 18 and 3", r)
	}
	rep, err = gateeval.Run(sharedFile(t, "eval/real-exchanges.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Open != 16 || rep.Closed != 52 || rep.Recall < .73 || rep.FalseOpen > .05 {
		t.Errorf("real exchanges: %+v, want at least .73 at at most .05", rep)
	}
}

// Whatever bytes stand in a file, Run answers or names an invalid.
func FuzzRun(f *testing.F) {
	f.Add(openLine + "\n" + closedLine)
	f.Add(nullLine)
	f.Add("{}")
	f.Add("\xff\n[")
	f.Fuzz(func(t *testing.T, content string) {
		rep, err := gateeval.Run(write(t, t.TempDir(), "x.jsonl", content))
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("%v is not an invalid", err)
			}
			return
		}
		if rep.RecallLow > rep.Recall && rep.Open > 0 || rep.Recall > rep.RecallHigh || rep.FalseOpen > rep.FalseOpenHigh {
			t.Fatalf("a figure is outside its interval: %+v", rep)
		}
	})
}
