package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// typing is mem with something on standard input.
func (s *server) typing(in string, args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"--dir", s.dir}, args...)...)
	cmd.Env = cleanEnv()
	cmd.Stdin = strings.NewReader(in)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	_ = cmd.Run() // its exit code says it
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// limits is a note of n chunks, of which every second holds a decision; every fourth
// is about the cache, of which the second model sees nothing.
func limits(t *testing.T, n int) string {
	t.Helper()
	var b strings.Builder
	for i := range n {
		text := "Nothing of note happened here."
		switch i % 4 {
		case 0:
			text = fmt.Sprintf("We decided to set limit %d to %d.", i, 10*i)
		case 2:
			text = fmt.Sprintf("We decided to cap cache %d at %d MB.", i, 10*i)
		}
		fmt.Fprintf(&b, "# Part %d\n\n%s %s\n\n", i, text, strings.Repeat("It is so. ", 3))
	}
	return note(t, "limits.md", b.String())
}

type reviewItems struct {
	Items []struct {
		Chunk string `json:"chunk"`
		Text  string `json:"text"`
	} `json:"items"`
	Left     int `json:"left"`
	Reviewed int `json:"reviewed"`
}

// answers are what a person who knows says to what is shown next.
func (s *server) answers(args ...string) (keys string, items reviewItems) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must(append([]string{"--json", "label", "review", "-q", "decisions"}, args...)...)), &items); err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for _, it := range items.Items {
		if strings.Contains(it.Text, "decided") {
			b.WriteString("y\n")
		} else {
			b.WriteString("n\n")
		}
	}
	return b.String(), items
}

// TestLabels: from learning to a model whose labels are held against a person's and
// refused, and files of labels that go out and in again.
func TestLabels(t *testing.T) {
	t.Parallel()
	m := newModelServer(t)
	s := start(t, t.TempDir(), "MNEME_MODELS="+m.modelsFile(t, ""))
	s.must("-p", "shop", "learn", "--wait", limits(t, 24))
	s.must("wait") // the synthesis too
	before := s.verify()

	// Nothing is known yet: agreement says so, and so does an export.
	if out, code := s.mem("label", "agreement"); code != 1 || !strings.Contains(out, "no model and no rule has labelled anything: mem label run") {
		t.Errorf("%d %s", code, out)
	}
	if out, code := s.mem("label", "export"); code != 1 || !strings.Contains(out, "there are no such labels") {
		t.Errorf("%d %s", code, out)
	}
	if out, code := s.mem("label", "export", "--kind", "foo"); code != 2 || !strings.Contains(out, `--kind is human, model or rule, not "foo"`) {
		t.Errorf("%d %s", code, out)
	}
	for _, format := range []string{"jsonl", "csv"} {
		path := filepath.Join(t.TempDir(), "nodir", "x."+format)
		if out, code := s.mem("label", "export", "-o", path); code != 4 || strings.Contains(out, ".mem-") || !strings.Contains(out, path+": can not be written: no such file or directory") || !strings.Contains(out, "make its folder first") {
			t.Errorf("%d %s", code, out)
		}
	}

	// Rules.
	rules := note(t, "rules.yaml", "rules:\n  - {id: decided, question: decisions, any: [decided], evidence: yes, confidence: 0.9}\n  - {id: rest, question: decisions, any: [{regex: '(?s).'}], evidence: no}\n")
	for _, tc := range []struct{ args, want string }{
		{"-n", "24 labels would be written, 0 stood before"},
		{"", "24 pieces: 24 match a rule, 12 of them as evidence; 24 labels written, 0 stood before"},
		{"", "0 labels written, 24 stood before"},
	} {
		if out := s.must(append([]string{"label", "run", "--rules", rules}, strings.Fields(tc.args)...)...); !strings.Contains(out, tc.want) {
			t.Errorf("no %q in %s", tc.want, out)
		}
	}

	// Without a pair there is nothing to measure, and nothing is 0.
	if out, code := s.mem("label", "agreement"); code != 1 || !regexp.MustCompile(`rules +0 +0 +0 +0 +0 +- +- +-\n`).MatchString(out) {
		t.Errorf("%d %s", code, out)
	}

	// A person, a few pieces at a time.
	keys, items := s.answers()
	if len(items.Items) != 24 || items.Left != 24 || items.Reviewed != 0 {
		t.Fatalf("%d items, %d left", len(items.Items), items.Left)
	}
	first := strings.Join(strings.SplitAfter(keys, "\n")[:5], "")
	out, errOut, code := s.typing("what?\n"+first+"s\nQ\ny\n", "label", "review", "-q", "decisions", "--by", "ada")
	if code != 0 || !strings.Contains(out, "5 labelled by ada") || !strings.Contains(out, "1 skipped, 19 pieces without a person's label are left") || strings.Contains(out, "the gate was") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	rest, items := s.answers("--seed", "7")
	if len(items.Items) != 19 || items.Reviewed != 5 {
		t.Errorf("%d items, %d reviewed", len(items.Items), items.Reviewed)
	}
	// Standard input ends in the middle: what was answered stands.
	half := strings.Join(strings.SplitAfter(rest, "\n")[:9], "")
	if out, _, code := s.typing(half, "label", "review", "-q", "decisions", "--seed", "7", "--by", "ada", "--show"); code != 0 || !strings.Contains(out, "9 labelled by ada") || !strings.Contains(out, "the gate was open") || !strings.Contains(out, "rule decided: evidence") {
		t.Errorf("%d %s", code, out)
	}
	rest, _ = s.answers()
	if _, _, code := s.typing(rest, "label", "review", "-q", "decisions", "--by", "ada"); code != 0 {
		t.Error(code)
	}
	if out, errOut, code := s.typing("y\n", "label", "review", "-q", "decisions"); code != 1 || !strings.Contains(errOut, "nothing to label: 24 pieces have a person's label") {
		t.Errorf("%d %s %s", code, out, errOut)
	}

	// A model: what it costs is shown, and nothing is asked without a yes.
	calls := m.sectionCalls()
	out, errOut, code = s.typing("", "label", "run", "--model", "second", "-q", "decisions")
	if code != 0 || !strings.Contains(out, "24 pieces, 0 labelled by second before, 24 to ask") || !strings.Contains(out, "second at fake ("+m.URL) || !strings.Contains(out, "24 to 48 calls") || !strings.Contains(out, "$0.0") || !strings.Contains(errOut, "nothing was asked; run it again with --yes") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	asked := func(n int, args ...string) string {
		t.Helper()
		was := m.sectionCalls()
		out := s.must(append([]string{"label", "run", "--model", "second", "-q", "decisions", "--yes"}, args...)...)
		if got := m.sectionCalls() - was; got != n {
			t.Errorf("%v: %d pieces asked about, want %d\n%s", args, got, n, out)
		}
		return out
	}
	if n := m.sectionCalls() - calls; n != 0 {
		t.Errorf("showing the cost asked about %d pieces", n)
	}
	asked(7, "--limit", "7")
	if out := asked(17); !strings.Contains(out, "24 pieces, 7 labelled by second before, 17 to ask") || !strings.Contains(out, "17 pieces asked") || !strings.Contains(out, "7 stood before") {
		t.Error(out)
	}
	asked(0)

	// The rules are as the person; the model missed half.
	out, code = s.mem("label", "agreement", "-q", "decisions")
	for _, want := range []string{"model second  24", "0.50 [0.10, 0.76]", "rules is trusted", "model second: its labels are not trusted: kappa 0.50 [0.10, 0.76] is below 0.60", "24 labels of people"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != 1 {
		t.Errorf("exit %d of a judge that is refused", code)
	}
	if out := s.must("label", "agreement", "--rules"); !strings.Contains(out, "rules is trusted: kappa is at least 0.60 over 24 pieces") {
		t.Error(out)
	}
	s.must("label", "agreement", "--model", "second", "--min-kappa", "0.4")

	sameHashes(t, "labels", before, s.verify())
	exportAndImport(t, s)
	reported(t, s)
}

func (s *modelServer) sectionCalls() int { s.mu.Lock(); defer s.mu.Unlock(); return s.sections }

// exportAndImport: labels that are not trusted do not go out unless told; a file goes
// in again as it came out, here and in a project with the same chunks.
func exportAndImport(t *testing.T, s *server) {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if out, code := s.mem("label", "export", "-o", file("no.jsonl")); code != 1 || !strings.Contains(out, "refused: model second: its labels are not trusted") || !strings.Contains(out, "--untrusted") {
		t.Errorf("%d %s", code, out)
	}
	if _, err := os.Stat(file("no.jsonl")); err == nil {
		t.Error("what was refused is written")
	}
	s.must("label", "export", "--untrusted", "-o", file("all.jsonl"))
	s.must("label", "export", "--min-kappa", "0.4", "-o", file("all.csv"))
	s.must("label", "export", "--kind", "human", "-o", file("people.csv"))
	if lines := strings.Count(read(t, file("people.csv")), "\n"); lines != 25 {
		t.Errorf("%d lines", lines)
	}
	if text := read(t, file("all.jsonl")); strings.Count(text, "\n") != 72 || strings.Contains(text, "decided to") {
		t.Errorf("%d rows, or text of a chunk in them", strings.Count(text, "\n"))
	}
	for _, name := range []string{"all.jsonl", "all.csv", "people.csv"} {
		if out := s.must("label", "import", file(name)); !strings.Contains(out, "0 labels written") || !strings.Contains(out, "0 left out") {
			t.Errorf("%s: %s", name, out)
		}
	}
	s.must("-p", "bank", "learn", "--wait", limits(t, 24))
	for _, name := range []string{"all.csv", "all.jsonl"} { // the second says what the first did
		out := s.must("-p", "bank", "label", "import", file(name))
		if want := map[string]string{"all.csv": "72 labels written, 0 stood before, 0 left out", "all.jsonl": "0 labels written, 72 stood before"}[name]; !strings.Contains(out, want) {
			t.Errorf("%s: %s", name, out)
		}
	}
	if out := s.must("-p", "bank", "label", "export", "--untrusted"); out != read(t, file("all.jsonl")) {
		t.Errorf("the round trip changed the labels:\n%.600s", out)
	}
	// What is wrong is named by line and field, and the rest is kept.
	rows := strings.Split(strings.TrimSpace(read(t, file("people.csv"))), "\n")
	rows[1] = strings.ReplaceAll(rows[1], ",ada,", ",eve,")
	rows[2] = strings.Repeat("0", 64) + "," + rows[2]
	rows = append(rows[:3], "not,enough")
	if err := os.WriteFile(file("bad.csv"), []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := `{"question":"decisions","chunk":"` + strings.Repeat("0", 64) + `","evidence":true}
{"question":"colours","chunk":"` + strings.Repeat("0", 64) + `","evidence":true}
{"question":"decisions","chunk":
{"question":"decisions","chunk":"` + chunkIn(t, rows[1]) + `","evidence":"perhaps"}
{"question":"decisions","chunk":"` + chunkIn(t, rows[1]) + `","evidence":"no"}
`
	out, errOut, code := s.typing(bad, "-p", "shop", "label", "import", "-", "--by", "eve")
	if code != 0 || !strings.Contains(out, "5 rows: 1 labels written, 0 stood before, 4 left out") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	for _, want := range []string{"-:1: chunk: the project has no chunk 000", "-:2: question: the project has no question \"colours\"", "-:3: ", "-:4: evidence: "} {
		if !strings.Contains(errOut, want) {
			t.Errorf("no %q in\n%s", want, errOut)
		}
	}
	if out, code := s.mem("-p", "shop", "label", "import", file("bad.csv")); code != 0 || !strings.Contains(out, "3 rows: 1 labels written, 0 stood before, 2 left out") {
		t.Errorf("%d %s", code, out)
	}
}

func chunkIn(t *testing.T, row string) string {
	t.Helper()
	for f := range strings.SplitSeq(row, ",") {
		if len(f) == 64 {
			return f
		}
	}
	t.Fatalf("no chunk in %s", row)
	return ""
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// reported: the run report over the same labels.
func reported(t *testing.T, s *server) {
	t.Helper()
	out := s.must("-p", "shop", "report", "-q", "decisions")
	for _, want := range []string{"by small", "┤", "t=24", "24 steps are labelled (24 by a person)", "always yes", "always no", "unreadable", "cost", "exits          early 0, exact 0, late 1 (1 never opened"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	var r struct {
		Streams []struct {
			Stream string `json:"stream"`
			Run    struct {
				Run string `json:"run"`
			} `json:"run"`
			Gates []struct {
				Who    string   `json:"who"`
				Recall *float64 `json:"recall"`
			} `json:"gates"`
			Memory struct {
				Points []struct{ T, Last int } `json:"points"`
			} `json:"memory"`
		} `json:"streams"`
	}
	if err := json.Unmarshal([]byte(s.must("--json", "-p", "shop", "report", "--last", "-q", "decisions")), &r); err != nil {
		t.Fatal(err)
	}
	one := r.Streams[0]
	if len(r.Streams) != 1 || len(one.Run.Run) != 64 || len(one.Gates) != 3 || *one.Gates[0].Recall < .9 || len(one.Memory.Points) != 24 || one.Memory.Points[23].Last == 0 {
		t.Errorf("%+v", r)
	}
	svg, page := filepath.Join(t.TempDir(), "r.svg"), filepath.Join(t.TempDir(), "r.html")
	if out := s.must("report", one.Run.Run[:10], "--svg", svg, "--html", page); !strings.Contains(out, one.Stream) || !strings.Contains(out, "run "+one.Run.Run[:8]) {
		t.Error(out)
	}
	if !strings.HasPrefix(read(t, svg), "<svg ") || !strings.Contains(read(t, page), "always yes") {
		t.Error("no picture, or no page")
	}
	if out, code := s.mem("report", "0000000000"); code != 1 || !strings.Contains(out, "no run has this id") || !strings.Contains(out, "hint: mem report --runs lists them") {
		t.Errorf("%d %s", code, out)
	}
	if out := s.must("-p", "shop", "report", "--runs", "-q", "decisions"); !strings.Contains(out, one.Run.Run[:8]) || !strings.Contains(out, "24 steps from t=1") {
		t.Error(out)
	}
}

// TestLabelsOfSamples: real sessions, by rules and by hand, and their report.
func TestLabelsOfSamples(t *testing.T) {
	t.Parallel()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	samples := filepath.Join(root, "samples", "claude-code")
	if _, err := os.Stat(samples); err != nil {
		t.Skipf("no sample transcripts: MNEME_SHARED names their parent folder, default ../shared: %v", err)
	}
	s := start(t, t.TempDir())
	s.must("-p", "shop", "learn", "--wait", samples)
	s.must("wait")
	before := s.verify()
	rules := note(t, "rules.yaml", "rules:\n  - {id: chosen, question: decisions, any: [decided, chose, instead of], evidence: yes}\n  - {id: rest, question: decisions, any: [{regex: '(?s).'}], evidence: no}\n")
	var run struct{ Pieces, Matched, Evidence, Written, Gone int }
	if err := json.Unmarshal([]byte(s.must("--json", "label", "run", "--rules", rules)), &run); err != nil {
		t.Fatal(err)
	}
	if run.Pieces < 20 || run.Matched != run.Pieces || run.Written != run.Pieces || run.Gone != 0 || run.Evidence == 0 {
		t.Errorf("%+v", run)
	}
	// A person who says as the gate did: kappa of the rules is what it is, the gate's is 1.
	var items struct{ Items []struct{ Open bool } }
	if err := json.Unmarshal([]byte(s.must("--json", "label", "review", "-q", "decisions", "--sample", "200")), &items); err != nil {
		t.Fatal(err)
	}
	var keys strings.Builder
	open := 0
	for _, it := range items.Items {
		if it.Open {
			open++
			keys.WriteString("y\n")
		} else {
			keys.WriteString("n\n")
		}
	}
	if out, _, code := s.typing(keys.String(), "label", "review", "-q", "decisions", "--sample", "200", "--by", "ada"); code != 0 || !strings.Contains(out, fmt.Sprintf("%d labelled by ada (%d evidence), 0 skipped, 0 pieces", run.Pieces, open)) {
		t.Errorf("%d %.300s", code, out[max(0, len(out)-300):])
	}
	out, _ := s.mem("label", "agreement", "-q", "decisions")
	if !strings.Contains(out, fmt.Sprintf("the gate  %d", run.Pieces)) {
		t.Error(out)
	}
	out = s.must("report", "-q", "decisions")
	for _, want := range []string{fmt.Sprintf("%d steps are labelled (%[1]d by a person), %d as evidence", run.Pieces, open), "the gate       0.", "  1.00 [", "1.00  1.00  1.00", "always yes     1.000", "mean r_exit -", "the update rate is of all ", fmt.Sprintf("of the %d of these with a label", run.Pieces)} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out := s.must("report", "-q", "decisions", "--human"); !strings.Contains(out, fmt.Sprintf("(%d by a person)", run.Pieces)) {
		t.Error(out)
	}
	file := filepath.Join(t.TempDir(), "l.jsonl")
	s.must("label", "export", "-o", file)
	if out := s.must("label", "import", file); !strings.Contains(out, fmt.Sprintf("%d rows: 0 labels written, %[1]d stood before, 0 left out", 2*run.Pieces)) {
		t.Error(out)
	}
	sameHashes(t, "labels", before, s.verify())
}
