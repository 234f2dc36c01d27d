package compress_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/compress"
)

// filler is n lines that say nothing.
func filler(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "2026-05-01T08:%02d:%02dZ INFO worker-%d done job %d\n", i/60%60, i%60, i%4, i)
	}
	return b.String()
}

// TestEvidenceStays puts one line, as different programs print it, into the
// middle of a log.
func TestEvidenceStays(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"ERROR: disk full", "[ERROR] no such host", "error[E0382]: borrow of moved value: `x`", "src/a.ts(4,7): error TS2304: Cannot find name 'foo'.", "./main.go:12:5: undefined: foo", "./x.go:3:2: declared and not used: y",
		"lib/a.c:9:1: fatal error: zlib.h: No such file or directory", "/usr/bin/ld: cannot find -lssl", "make: *** [Makefile:12: all] Error 2", "panic: runtime error: index out of range [7]", "ValueError: bad key 'x'", "java.lang.NullPointerException: x",
		"Caused by: java.net.ConnectException: Connection refused", "npm ERR! code ERESOLVE", "npm error code E404", "not ok 77 - rounds up", "--- FAIL: TestSums (0.00s)", "E       assert 3 == 4", "FAILED tests/test_a.py::test_b - assert 3 == 4", "##[error]The operation was canceled.",
		"fatal: couldn't find remote ref main", "Killed", "Segmentation fault (core dumped)", "thread 'main' panicked at src/main.rs:4:5:", "Process completed with exit code 137.", "1 failed, 12 passed in 3.2s", "Error: Process completed with exit code 1.",
		"ошибка: не найден модуль", "Fehler: Datei nicht gefunden", "错误: 找不到文件", "CrashLoopBackOff", "WARN pool is nearly empty", "time=\"x\" level=warn msg=\"slow consumer\"", "\x1b[31mERROR\x1b[0m in ./src/index.js", "Build left local git repository checkout dirty",
		"remote: Permission to a/b.git denied to c.", "The job running on runner X has exceeded the maximum execution time of 60 minutes.", "level=fatal msg=\"no config\"", "{\"level\":\"error\",\"msg\":\"no config\"}", "dial tcp 10.0.0.1:5432: connect: connection refused", "OOMKilled",
	} {
		r := law(t, line, filler(120)+line+"\n"+filler(120), compress.Options{Path: "a.log"})
		if !r.Changed || !strings.Contains(r.Text, line+"\n") {
			t.Errorf("%q is lost (%v, %s)", line, r.Changed, r.Reason)
		}
	}
}

// TestNoFailureIsClaimed: names of things and counts of zero are no failures.
func TestNoFailureIsClaimed(t *testing.T) {
	t.Parallel()
	names := []string{"libgpg-error0 installed", "compiling errors.go", "GET /error/page 200", "0 errors", "0 failed, 12 passed", "errors: 0", "--fail-fast=false", "std::error::Error implemented", "test_error.py", "set continue-on-error"}
	var b strings.Builder
	for i := range 300 {
		b.WriteString(filler(1) + names[i%len(names)] + "\n")
	}
	r := law(t, "names", b.String(), compress.Options{Path: "a.log"})
	if len(r.Text)*8 > b.Len() {
		t.Errorf("%d of %d bytes stay:\n%s", len(r.Text), b.Len(), head(r.Text))
	}
}

func TestEvidenceOfTheCaller(t *testing.T) {
	t.Parallel()
	text := filler(300)
	lines := strings.Split(text, "\n")
	o := compress.Options{Evidence: func(text string) []int {
		for i, l := range strings.Split(text, "\n") {
			if strings.HasSuffix(l, "job 150") {
				return []int{i}
			}
		}
		return nil
	}}
	r := law(t, "evidence", text, o)
	for i := 147; i <= 153; i++ {
		if !strings.Contains(r.Text, lines[i]+"\n") {
			t.Errorf("line %d, beside the evidence, is lost", i)
		}
	}
	for _, bad := range []int{-5, 1 << 30} { // a wrong line of the caller's harms nothing
		compress.Compress(text, compress.Options{Evidence: func(string) []int { return []int{bad} }})
	}
}

func TestQuery(t *testing.T) {
	t.Parallel()
	text := filler(300)
	r := compress.Compress(text, compress.Options{Query: "what became of job 217?"})
	if !strings.Contains(r.Text, "done job 217\n") {
		t.Errorf("the line that the question names is lost:\n%s", head(r.Text))
	}
	for _, q := range []string{"give me the exact output", "the whole file please"} {
		if r := compress.Compress(text, compress.Options{Query: q}); r.Changed || r.Reason != compress.ReasonExact {
			t.Errorf("%q: %s", q, r.Reason)
		}
	}
	if r := compress.Compress(text, compress.Options{Exact: true}); r.Changed {
		t.Error("an exact text is changed")
	}
	var rows strings.Builder
	for i := range 200 {
		fmt.Fprintf(&rows, `{"id":%d,"host":"web-%d","status":"ok"}`+"\n", i, i%40)
	}
	if r := compress.Compress(rows.String(), compress.Options{Query: "how is host web-33"}); !r.Changed || !strings.Contains(r.Text, `"host":"web-33"`) {
		t.Errorf("the row that the question names is lost:\n%s", head(r.Text))
	}
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	inputs := map[string]string{"MEM_COMPRESS_LOGS": filler(100), "MEM_COMPRESS_DIFF": benchDiff(4000), "MEM_COMPRESS_JSON": benchJSON(8000), "MEM_COMPRESS_TEXT": strings.Repeat("The table stays as it was before. ", 40)}
	for name, text := range inputs {
		for _, v := range []string{"", "on", "off"} {
			for _, all := range []string{"", "off"} {
				env := map[string]string{name: v, "MEM_CONTEXT_OPTIMIZER": all}
				o, err := compress.FromEnv(func(k string) string { return env[k] })
				if err != nil {
					t.Fatal(err)
				}
				if r := compress.Compress(text, o); r.Changed != (v != "off" && all != "off") {
					t.Errorf("%v: changed %v (%s)", env, r.Changed, r.Reason)
				}
			}
		}
	}
	code := "package a\n\nfunc f() {\n" + strings.Repeat("\tg()\n", 100) + "}\n"
	for v, want := range map[string]bool{"": false, "on": true} {
		o, err := compress.FromEnv(func(k string) string { return map[string]string{"MEM_COMPRESS_CODE": v}[k] })
		o.Path = "a.go"
		if r := compress.Compress(code, o); err != nil || r.Changed != want {
			t.Errorf("code, switch %q: changed %v (%s) %v", v, r.Changed, r.Reason, err)
		}
	}
	_, err := compress.FromEnv(func(string) string { return "perhaps" })
	for _, name := range []string{"MEM_CONTEXT_OPTIMIZER", "MEM_COMPRESS_JSON", "MEM_COMPRESS_LOGS", "MEM_COMPRESS_CODE", "MEM_COMPRESS_DIFF", "MEM_COMPRESS_TEXT"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

// TestPrefixOfTenTurns: the same memory, turn after turn, begins with the same
// bytes, whatever the time, the question and the order in which memory was found.
func TestPrefixOfTenTurns(t *testing.T) {
	t.Parallel()
	blocks := []compress.Block{{2, "b", "Decided 2026-01-02: keep the pool at 20. See <t1>."}, {1, "z", "run 4f1c2d3e-1111-4222-8333-944455556666 failed"}, {1, "a", "the table stays"}}
	var first compress.Aligned
	for turn := range 10 {
		p := compress.Prompt{
			System: fmt.Sprintf("You are told at 2026-08-%02dT0%d:15:00Z what is known. Today is 2026-01-%02d.", 1+turn, turn, 1+turn),
			Tools:  []compress.Tool{{"query", "query: asks"}, {"log", "log: reads"}},
			Query:  fmt.Sprintf("question %d", turn), Turn: fmt.Sprintf("turn %d at 2026-08-28T09:15:00Z", turn),
		}
		for i := range blocks {
			p.Memory = append(p.Memory, blocks[(i+turn)%len(blocks)])
		}
		a := compress.Align(p)
		if turn == 0 {
			first = a
		}
		if a.Prefix() != first.Prefix() || a.PrefixSHA256() != first.PrefixSHA256() {
			t.Errorf("turn %d begins otherwise:\n%s\n---\n%s", turn, a.Prefix(), first.Prefix())
		}
		if want := "log: reads\nquery: asks\nthe table stays\n"; !strings.Contains(a.Text, want) {
			t.Errorf("order: %s", a.Text)
		}
		if back := a.Restore(a.Prefix()); !strings.HasPrefix(back, p.System+"\n") || !strings.Contains(back, "keep the pool at 20. See <t1>.") {
			t.Errorf("restored: %s", back)
		}
		if !strings.Contains(a.Text[a.Stable:], "2026-08-28T09:15:00Z") || !strings.HasSuffix(a.Text, "]\n") {
			t.Errorf("tail: %s", a.Text[a.Stable:])
		}
	}
}
