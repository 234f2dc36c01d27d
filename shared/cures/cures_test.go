package cures_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/cures"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/lookup/lookuptest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

func open(t *testing.T, b *objstore.Bucket, tenant string) *cures.Cures {
	t.Helper()
	return &cures.Cures{Tenant: tenant, Log: eventlog.Open(b, tenant, "test"), Index: lookuptest.NewMem()}
}

func lessonOf(n int, text string) *lesson.Lesson {
	return &lesson.Lesson{
		Tool: "npm", Rule: "npm.eresolve", Confidence: 0.9, SigVersion: "s1",
		SigSHA: string(memory.SumString(fmt.Sprint("class", n/10))), DetailSHA: string(memory.SumString(fmt.Sprint("detail", n))), SymSHAs: []string{string(memory.SumString(fmt.Sprint("symptom", n/10)))},
		Text: text, Failure: "npm error", Command: "npm ci", Outcome: lesson.Told, Origin: lesson.Person, Time: fmt.Sprintf("2026-03-01T10:00:%02dZ", n%60),
		Changes: []lesson.Change{{Kind: "edit", Path: "package.json", Added: 1, Quote: "react: 16"}},
	}
}

func put(t *testing.T, c *cures.Cures, project string, l *lesson.Lesson) memory.SHA {
	t.Helper()
	rec, err := eventlog.LessonRecord(c.Tenant, project, l)
	if err != nil {
		t.Fatal(err)
	}
	key, err := c.Log.PutRecords(t.Context(), project, eventlog.Lessons, []eventlog.Record{rec})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func hash(t *testing.T, c *cures.Cures) string {
	t.Helper()
	h, n, err := c.Index.Hash(t.Context(), c.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(n, " ", h)
}

func TestCures(t *testing.T) {
	t.Parallel()
	b := objstore.NewBucket("mneme", memstore.New())
	c := open(t, b, "acme")
	var keys []memory.SHA
	for n := range 30 {
		keys = append(keys, put(t, c, "shop", lessonOf(n, fmt.Sprint("cure ", n))))
	}
	rec, err := eventlog.OutcomeRecord("acme", "shop", &lesson.Outcome{Lesson: keys[7], Use: "ci-1", Worked: true, Time: "2026-03-02T10:00:00Z"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Log.PutRecords(t.Context(), "shop", eventlog.Lessons, []eventlog.Record{rec}); err != nil {
		t.Fatal(err)
	}
	if n, err := c.CatchUp(t.Context(), "shop"); n != 31 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := c.CatchUp(t.Context(), "shop"); n != 0 || err != nil {
		t.Error("caught up twice", n, err)
	}
	// The record comes back as it was.
	f, ok, err := c.Get(t.Context(), "shop", keys[7])
	if err != nil || !ok || f.Told != 1 || f.Worked != 1 || f.Lesson.Command != "npm ci" || len(f.Lesson.Changes) != 1 || f.Lesson.Changes[0].Path != "package.json" || f.Lesson.Changes[0].Quote != "react: 16" {
		t.Errorf("%+v %v %v", f, ok, err)
	}

	ask := func(c *cures.Cures, project string, a lesson.Ask) string {
		t.Helper()
		got, err := c.Find(t.Context(), project, a, 3)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(got.By, " ", got.Count, " ", len(got.Solutions))
	}
	sha := func(kind string, n int) []memory.SHA { return []memory.SHA{memory.SumString(fmt.Sprint(kind, n))} }
	all := lesson.Ask{Details: sha("detail", 7), Sigs: sha("class", 0), Symptoms: sha("symptom", 0)}
	for want, a := range map[string]lesson.Ask{
		"detail_sha 1 1": all,
		"sig_sha 10 3":   {Details: sha("detail", 99), Sigs: sha("class", 0), Symptoms: sha("symptom", 1)},
		"sym_sha 10 3":   {Details: sha("detail", 99), Sigs: sha("class", 99), Symptoms: sha("symptom", 1)},
		" 0 0":           {Details: sha("detail", 99)},
	} {
		if got := ask(c, "shop", a); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	// Nobody else sees them, in the same index or over the same bucket.
	for _, other := range []struct {
		c       *cures.Cures
		project string
	}{{c, "blog"}, {&cures.Cures{Tenant: "umbrella", Log: eventlog.Open(b, "umbrella", "test"), Index: c.Index}, "shop"}} {
		if got := ask(other.c, other.project, all); got != " 0 0" {
			t.Errorf("%s/%s sees %q", other.c.Tenant, other.project, got)
		}
	}

	// An erased record is gone from what serves and from what is built anew, however late
	// it is announced; the others stay.
	tomb := memory.SumString("tombstone")
	if err := c.Log.EraseRecords(t.Context(), "shop", eventlog.Lessons, keys[7], tomb); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), "shop", keys[5:9]); err != nil {
		t.Fatal(err)
	}
	anew := open(t, b, "acme")
	if err := anew.RebuildAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b := hash(t, c), hash(t, anew); a != b {
		t.Errorf("served %s, rebuilt %s", a, b)
	}
	// What verify finds: nothing here; a row of a record that was erased since; a row that
	// is not what its record says.
	verify := func(c *cures.Cures) string {
		t.Helper()
		n, problems, err := c.Verify(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(n, problems)
	}
	if got := verify(c); got != "29 []" {
		t.Errorf("verify: %s", got)
	}
	if err := c.Log.EraseRecords(t.Context(), "shop", eventlog.Lessons, keys[11], tomb); err != nil {
		t.Fatal(err)
	}
	if got := verify(c); !strings.Contains(got, keys[11].Short()) || !strings.Contains(got, "still found") {
		t.Errorf("verify after an erasure that was not applied: %s", got)
	}
	wrong := open(t, b, "acme")
	row, err := cures.RowOf(keys[3], lessonOf(4, "something else"))
	if err != nil {
		t.Fatal(err)
	}
	if err := wrong.Index.Apply(t.Context(), lookup.Scope{Tenant: "acme", Project: "shop"}, lookup.Batch{Rows: []lookup.Row{row}}); err != nil {
		t.Fatal(err)
	}
	if got := verify(wrong); !strings.Contains(got, keys[3].Short()) || !strings.Contains(got, "not what the record says") {
		t.Errorf("verify of a wrong row: %s", got)
	}
	if got := ask(c, "shop", lesson.Ask{Details: sha("detail", 7)}); got != " 0 0" {
		t.Errorf("an erased lesson is found: %q", got)
	}
	if got := ask(anew, "shop", lesson.Ask{Details: sha("detail", 8)}); got != "detail_sha 1 1" {
		t.Errorf("another is lost: %q", got)
	}
}

// A damaged record holds up no other.
func TestDamaged(t *testing.T) {
	t.Parallel()
	b := objstore.NewBucket("mneme", memstore.New())
	c := open(t, b, "acme")
	bad := put(t, c, "shop", lessonOf(1, "lost"))
	put(t, c, "shop", lessonOf(2, "stands"))
	if _, err := b.Put(t.Context(), "log/acme/shop/lessons/"+string(bad)+".jsonl", []byte("{\"v\":1,\"type\":\"lesson\"")); err != nil {
		t.Fatal(err)
	}
	var named []memory.SHA
	c.Damaged = func(_ string, key memory.SHA, _ error) { named = append(named, key) }
	if n, err := c.CatchUp(t.Context(), "shop"); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if len(named) != 1 || named[0] != bad {
		t.Errorf("named %v", named)
	}
	if missing, err := c.Missing(t.Context(), "shop"); len(missing) != 0 || err != nil {
		t.Error("a sweep never ends:", missing, err)
	}
	if h := hash(t, c); h[:2] != "1 " {
		t.Errorf("rows %s", h)
	}
}
