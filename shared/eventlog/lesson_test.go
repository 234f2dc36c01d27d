package eventlog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
)

// A lesson comes back as it was; erased, it keeps its key and none of its words.
func TestLessonRecord(t *testing.T) {
	t.Parallel()
	const tenant, project = "acme", "shop"
	want := lesson.Lesson{
		Tool: "npm", InnerTool: "node", Rule: "npm.eresolve", Confidence: 0.97, SigVersion: "s1",
		SigSHA: string(memory.SumString("class")), DetailSHA: string(memory.SumString("detail")), SymSHAs: []string{string(memory.SumString("symptom"))},
		Text: "walrus <text>", Failure: "walrus failure", Command: "npm run walrus",
		Changes: []lesson.Change{{Kind: "edit", Path: "walrus/package.json", Added: 2, Removed: 1, Quote: "walrus quote"}, {Kind: "command", Quote: "npm install walrus"}},
		Outcome: lesson.Passed, Origin: lesson.Mined, Session: "s1", Time: "2026-03-01T10:00:00Z",
		Spans: []lesson.Span{{Role: "failed", Span: memory.Span{Object: "transcripts/shop/s.jsonl", ETag: "e", Start: 1, End: 9, Codec: "raw", SHA256: memory.SumString("x")}}},
	}
	rec, err := eventlog.LessonRecord(tenant, project, &want)
	if err != nil {
		t.Fatal(err)
	}
	got, erased, ok, err := eventlog.AsLesson(rec)
	if err != nil || !ok || erased {
		t.Fatal(ok, erased, err)
	}
	if d := cmp.Diff(&want, got); d != "" {
		t.Error(d)
	}
	key, err := eventlog.RecordsKey([]eventlog.Record{rec})
	if err != nil {
		t.Fatal(err)
	}
	line := rec.(*eventlog.Opaque).Line
	gone, err := eventlog.Erase(line, memory.SumString("tombstone"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(gone), "walrus") {
		t.Errorf("its words stand there: %s", gone)
	}
	if got, erased, ok, err := eventlog.AsLesson(&eventlog.Opaque{Type: memory.TypeLesson, Line: gone}); err != nil || !ok || !erased || got.DetailSHA != want.DetailSHA {
		t.Error(got, erased, ok, err)
	}
	before, _, err := eventlog.Seal(nil, line)
	if err != nil {
		t.Fatal(err)
	}
	after, _, err := eventlog.Seal(nil, gone)
	if err != nil || string(before) != string(after) {
		t.Errorf("the sealed form changed, and with it the key %s: %v", key, err)
	}

	for name, line := range map[string]string{"cut off": `{"v":1,"type":"lesson"`, "of another shape": `{"v":1,"type":"lesson","level":"-","changes":7}`} {
		if _, _, ok, err := eventlog.AsLesson(&eventlog.Opaque{Type: memory.TypeLesson, Line: []byte(line)}); err == nil || !ok {
			t.Errorf("%s: read", name)
		}
	}
	bad := want
	bad.Text = ""
	if _, err := eventlog.LessonRecord(tenant, project, &bad); err == nil {
		t.Error("a lesson without a solution was taken")
	}
}
