package compress_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/compress"
)

// pick gives one of a few.
func pick[T any](r *rand.Rand, xs ...T) T { return xs[r.IntN(len(xs))] }

// logLine is a line as one of many programs prints it.
func logLine(r *rand.Rand) string {
	stamp := pick(r, "", fmt.Sprintf("2026-03-04T09:%02d:%02d.%03dZ ", r.IntN(60), r.IntN(60), r.IntN(1000)), fmt.Sprintf("[%02d:%02d:%02d] ", r.IntN(24), r.IntN(60), r.IntN(60)), "#12 0.345 ")
	switch r.IntN(16) {
	case 0:
		return stamp + fmt.Sprintf("ERROR request %d failed: %s", r.IntN(1e6), pick(r, "timeout", "connection refused", "no such file"))
	case 1:
		return stamp + "WARN pool is at " + fmt.Sprint(r.IntN(100)) + " %"
	case 2:
		return ""
	case 3:
		return "\tat com.example.Main.run(Main.java:" + fmt.Sprint(r.IntN(500)) + ")"
	case 4:
		return fmt.Sprintf("src/a%d.ts(%d,%d): error TS%d: Cannot find name 'x'.", r.IntN(5), r.IntN(90), r.IntN(90), 2000+r.IntN(400))
	case 5:
		return fmt.Sprintf("[... %d lines omitted: %d-%d]", r.IntN(90), r.IntN(90), r.IntN(90))
	case 6:
		return strings.Repeat(pick(r, "=", "a", "x y ", "ё"), r.IntN(1800))
	case 7:
		return "\x1b[31m" + pick(r, "FAIL", "ok") + "\x1b[0m pkg/" + fmt.Sprint(r.IntN(9))
	case 8:
		return fmt.Sprintf("   %d%%\r   %d%%\r   100%%", r.IntN(50), 50+r.IntN(50))
	case 9:
		return pick(r, "exit status 1", "Process completed with exit code 1.", "3 passed, 0 failed", "BUILD SUCCESSFUL in 3s", "12 errors")
	default:
		return stamp + fmt.Sprintf("INFO worker-%d %s job %d", r.IntN(8), pick(r, "started", "finished", "took"), r.IntN(1e5))
	}
}

func TestRandomLogs(t *testing.T) {
	t.Parallel()
	unstable, changed := 0, 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 1))
		var b strings.Builder
		for range 5 + r.IntN(pick(r, 20, 80, 400)) {
			b.WriteString(logLine(r) + pick(r, "\n", "\n", "\n", "\r\n"))
		}
		res := law(t, fmt.Sprintf("log %d", seed), b.String(), compress.Options{Path: pick(r, "", "a.log"), Original: seed%2 == 0, Query: pick(r, "", "", "worker-3 finished")})
		if res.Reason == compress.ReasonUnstable {
			unstable++
		}
		if res.Changed {
			changed++
		}
	}
	if changed < 50 || unstable*50 > changed {
		t.Errorf("of 150 logs %d are shorter and %d came to no stable result", changed, unstable)
	}
}

// value is a JSON value, written as different programs write it.
func value(r *rand.Rand, b *strings.Builder, depth int) {
	switch k := r.IntN(10); {
	case k < 2 && depth > 0:
		rows(r, b, depth)
	case k < 4 && depth > 0:
		b.WriteString("{")
		for i := range r.IntN(5) {
			if i > 0 {
				b.WriteString(pick(r, ",", ", ", ",\n  "))
			}
			fmt.Fprintf(b, "%q%s", pick(r, "a", "b", "error", "status", "msg", "level", "_omitted", "é\"\\"), pick(r, ":", ": "))
			value(r, b, depth-1)
		}
		b.WriteString("}")
	case k < 7:
		b.WriteString(pick(r, "0", "-1", "1.0", "9007199254740993", "1e400", "0.10", "12345678901234567890", fmt.Sprint(r.IntN(100))))
	case k < 9:
		b.WriteString(pick(r, `""`, `"ok"`, `"<b>&amp;"`, `"\u00e9\/"`, `"failed: timeout"`, `"\\"`, `"\\\""`, `"`+strings.Repeat("aGVsbG8w", r.IntN(120))+`"`, `"`+strings.Repeat(`INFO a line\n`, r.IntN(120))+`ERROR x"`, fmt.Sprintf("%q", fmt.Sprint("id-", r.IntN(1e6)))))
	default:
		b.WriteString(pick(r, "true", "false", "null"))
	}
}

// rows is an array of values of one or two shapes.
func rows(r *rand.Rand, b *strings.Builder, depth int) {
	n := pick(r, 0, 1, 10, 25, 60, 120)
	b.WriteString("[")
	shape := r.IntN(5)
	for i := range n {
		if i > 0 {
			b.WriteString(pick(r, ",", ", ", ",\n"))
		}
		switch shape {
		case 0:
			fmt.Fprintf(b, `{"i":%d,"status":"%s","n":%d}`, i, pick(r, "ok", "ok", "ok", "ok", "ok", "ok", "ok", "draining"), 90+r.IntN(9))
		case 1:
			fmt.Fprintf(b, `{"_omitted":%d,"_ccr":"%024x","note":"x"}`, i, r.Uint64())
		case 2:
			fmt.Fprintf(b, `"v%d.%d.%d"`, i/10, i%10, r.IntN(9))
		case 3:
			value(r, b, depth-1)
		default:
			fmt.Fprintf(b, `{"level":"%s","msg":"request %d","k%d":1}`, pick(r, "info", "info", "info", "error"), i, r.IntN(3)*r.IntN(30))
		}
	}
	b.WriteString("]")
}

func TestRandomJSON(t *testing.T) {
	t.Parallel()
	unstable, changed := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		var b strings.Builder
		for range pick(r, 1, 1, 1, 30) {
			rows(r, &b, 2)
			b.WriteString("\n")
			if r.IntN(30) == 0 {
				b.WriteString("starting server\n")
			}
		}
		text := b.String()
		if !strings.Contains(text, "starting") && strings.Count(text, "]\n") == 1 && !json.Valid([]byte(text)) {
			t.Fatalf("the test writes no JSON:\n%s", head(text))
		}
		res := law(t, fmt.Sprintf("json %d", seed), text, compress.Options{Original: seed%2 == 0, Query: pick(r, "", "", "request 17")})
		if res.Reason == compress.ReasonUnstable {
			unstable++
		}
		if res.Changed {
			changed++
		}
	}
	if changed < 60 || unstable*50 > changed {
		t.Errorf("of 200 texts %d are shorter and %d came to no stable result", changed, unstable)
	}
}

func TestRandomText(t *testing.T) {
	t.Parallel()
	said := []string{
		"The migration did not drop the table.", "It is important to note that the server restarts at night.", "Do not retry without a lock!", "这是一个很长的句子，它会被重复多次，请不要删除它。",
		"In order to be able to ship, we really need the fix.", "- a point of a list that repeats itself", "```", "x := 1", "See e.g. the page of Dr. Who for that one.", "[... 2 sentences omitted: said above]", "\"Never\", she said, and went away again.",
	}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		var b strings.Builder
		for range r.IntN(80) {
			b.WriteString(pick(r, said...) + pick(r, " ", "\n", "\n\n", "  "))
		}
		res := law(t, fmt.Sprintf("text %d", seed), b.String(), compress.Options{Path: "a.txt", Original: seed%2 == 0})
		for _, s := range said {
			if strings.Contains(b.String(), s) && !strings.Contains(res.Text, s) && !strings.Contains(s, "to note") && !strings.Contains(s, "In order") {
				t.Errorf("text %d: %q is said nowhere any more", seed, s)
			}
		}
	}
}
