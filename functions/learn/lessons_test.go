package learn_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/forget"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
)

// lessonsOf are the lessons of a project's shelf, by what they are.
func lessonsOf(t *testing.T, w *functest.World, project string) map[string]*lesson.Lesson {
	t.Helper()
	out := map[string]*lesson.Lesson{}
	for key, err := range w.Log.RecordKeys(t.Context(), project, eventlog.Lessons) {
		if err != nil {
			t.Fatal(err)
		}
		recs, err := w.Log.Records(t.Context(), project, eventlog.Lessons, key)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs {
			l, _, ok, err := eventlog.AsLesson(r)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			out[string(key)] = l
		}
	}
	return out
}

func failures(ls map[string]*lesson.Lesson) (out []string) {
	for _, l := range ls {
		out = append(out, l.Outcome+" "+l.Failure)
	}
	slices.Sort(out)
	return out
}

// A session's lessons stand on the shelf before it is admitted, each once,
// however often it is delivered and in however many parts it comes.
func TestLessons(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile("../../shared/lesson/testdata/claude-code.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	w := functest.New(t, functest.Options{})
	e := w.Put("shop/s.jsonl", whole)
	receive(t, w, e)
	got := lessonsOf(t, w, "shop")
	want := []string{
		"flaky sync_test.go:58: Get \"http://127.0.0.1:40113/stock\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
		"passed cart/total.go:12:15: undefined: math",
		"passed total_test.go:31: Total() = 1099, want 1100",
	}
	if d := cmp.Diff(want, failures(got)); d != "" {
		t.Fatalf("lessons (-want +got):\n%s", d)
	}
	for _, l := range got {
		for _, s := range l.Spans {
			if s.Object != functest.Inbox+"/shop/s.jsonl" || s.ETag == "" || s.SHA256 == "" {
				t.Errorf("span %+v does not name its object", s)
			}
		}
	}
	receive(t, functest.New(t, functest.Options{From: w}), e)
	receive(t, w, w.Put("shop/copy/s.jsonl", whole))
	if n := len(lessonsOf(t, w, "shop")); n != len(want) {
		t.Errorf("%d lessons after repeats, want %d", n, len(want))
	}

	// The session grows, line by line of some, between its failures and passes.
	grown := functest.New(t, functest.Options{})
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for _, n := range []int{5, 9, 14, 20, 23, len(lines)} {
		receive(t, grown, grown.Put("shop/s.jsonl", bytes.Join(lines[:min(n, len(lines))], nil)))
	}
	if d := cmp.Diff(want, failures(lessonsOf(t, grown, "shop"))); d != "" {
		t.Errorf("lessons of a session that grew (-want +got):\n%s", d)
	}
	if n := len(lessonsOf(t, w, "other")); n != 0 {
		t.Errorf("%d lessons in another project", n)
	}
}

// A log that was forgotten teaches nothing, though the command passes later.
func TestLessonsOfForgotten(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile("../../shared/lesson/testdata/claude-code.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	const root = "total_test.go:31: Total() = 1099, want 1100"
	first := whole[:bytes.Index(whole, []byte(root))]
	first = whole[:len(first)+bytes.IndexByte(whole[len(first):], '\n')+1]
	w := functest.New(t, functest.Options{})
	receive(t, w, w.Put("shop/s.jsonl", first))
	if _, err := w.Learn.Forget(t.Context(), "shop", forget.Request{Target: memory.Target{Source: functest.Inbox + "/shop/s.jsonl"}}, nil); err != nil {
		t.Fatal(err)
	}
	receive(t, w, w.Put("shop/s.jsonl", whole))
	got := failures(lessonsOf(t, w, "shop"))
	for _, f := range got {
		if f == "passed "+root {
			t.Errorf("a lesson of a forgotten log: %s", f)
		}
	}
	if len(got) != 2 {
		t.Errorf("lessons %q, want the two of what was not forgotten", got)
	}
}
