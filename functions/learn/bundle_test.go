package learn_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/gitbundle"
	"github.com/mneme-ai/mneme/shared/gitbundle/gitbundletest"
	"github.com/mneme-ai/mneme/shared/gitlog"
	"github.com/mneme-ai/mneme/shared/memory"
)

// small is a repository with two decisions, a merge and a bot.
func small(t *testing.T) *gitbundletest.Repo {
	t.Helper()
	r := gitbundletest.New(t)
	r.Write("retry.go", "package shop\n\nfunc Retry() {}\n")
	r.Commit("Cap retries at 5 attempts\n\nWe decided to cap retries at 5 attempts, because the upstream bans us after that.")
	r.Git("checkout", "-q", "-b", "side")
	r.Write("log.go", "package shop\n\nfunc Log() {}\n")
	r.Commit("Keep logs for 30 days\n\nThe root cause of the lost trace was that logs were gone after one day, so we keep them for 30 days.")
	r.Git("checkout", "-q", "main")
	r.CommitAs("dependabot[bot]", "bot@example.org", "Something of a bot that nobody decided")
	r.Git("merge", "-q", "--no-ff", "side", "-m", "Merge branch 'side'")
	return r
}

// turns are the ids of the turns that were admitted, in order.
func turns(t *testing.T, w *functest.World, project string) []string {
	t.Helper()
	var out []string
	for _, a := range w.Admits(project) {
		src, _, err := w.Log.Source(t.Context(), project, a.Source)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, src.TurnIDs...)
	}
	return out
}

// dead are the keys and reasons of the dead letters.
func refusals(t *testing.T, w *functest.World) map[string]string {
	t.Helper()
	out := map[string]string{}
	for d, err := range w.Log.DeadLetters(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if d.Hint == "" {
			t.Errorf("dead letter without a hint: %+v", d)
		}
		out[d.Key] = d.Error
	}
	return out
}

// TestBundle: a git bundle in the inbox becomes a git log there, which is what
// is admitted and cited.
func TestBundle(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	w.Ask("shop", "decisions")
	repo := small(t)
	bundle := repo.Bundle("HEAD")
	e := w.Put("shop/repos/shop.bundle", bundle)
	res := receive(t, w, e)
	r := res.Receipt
	if r.Outcome != learn.OutcomeAdmitted || len(r.Parts) != 1 || len(res.Events) != 1 || r.Key != "shop/repos/shop.bundle" ||
		!strings.Contains(r.Reason, "4 commits, read as "+r.Derived) || r.Counts.Dropped["merge"] != 1 || r.Counts.Dropped["bot"] != 1 {
		t.Fatalf("%+v, %d events", r, len(res.Events))
	}
	// What is stored are the lines, under their sum.
	body, info, err := w.Inbox.Get(t.Context(), r.Derived)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	if want := "shop/_post/" + string(memory.Sum(got)) + "/shop.git-log.jsonl"; r.Derived != want || r.Parts[0].RawSHA256 != memory.Sum(got) {
		t.Errorf("derived %s, parts %+v, want %s", r.Derived, r.Parts, want)
	}
	var want bytes.Buffer
	if _, err := gitbundle.Read(t.Context(), bytes.NewReader(bundle), gitbundle.Limits{}, gitlog.NewEncoder(&want).Encode); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.String(), string(got)); d != "" {
		t.Errorf("lines (-bundle +stored):\n%s", d)
	}
	if a := w.Admits("shop"); len(a) != 1 || a[0].Object != functest.Inbox+"/"+r.Derived {
		t.Errorf("admits %+v", a)
	}
	// Citations point at its bytes.
	w.Run(res.Events...)
	n := 0
	var kept []*memory.Evidence
	for _, stream := range w.Streams("shop") {
		kept = append(kept, functest.Of[*memory.Evidence](w.Records("shop", stream))...)
	}
	for _, rec := range kept {
		n++
		span := rec.Span
		if span.Object != functest.Inbox+"/"+r.Derived || span.Start < 0 || span.End > int64(len(got)) || memory.Sum(got[span.Start:span.End]) != span.SHA256 {
			t.Errorf("a citation of %+v", span)
		}
	}
	if n == 0 {
		t.Error("nothing was kept")
	}
	// The notification of what was written finds it done; the bundle again, too.
	if again := receive(t, w, functest.Created(r.Derived, info)); !again.Repeat || len(again.Events) != 0 {
		t.Errorf("the log's own notification: %+v", again)
	}
	if again := receive(t, w, e); !again.Repeat || again.Receipt.Derived != r.Derived {
		t.Errorf("again: %+v", again)
	}
	if again := receive(t, w, w.Put("shop/other.bundle", bundle)).Receipt; again.Outcome != learn.OutcomeDuplicate || again.Parts[0].Seq != 1 {
		t.Errorf("under another name: %+v", again)
	}
	if p, err := w.Learn.Pending(t.Context()); err != nil || len(p) != 0 {
		t.Errorf("pending %+v, %v", p, err)
	}
	if d := refusals(t, w); len(d) != 0 {
		t.Errorf("dead letters %v", d)
	}
}

// TestBundleGrows: of a longer history, whole or as an increment, compressed or
// not, by mem learn --git or as a bundle, only the new commits are admitted.
func TestBundleGrows(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	repo := small(t)
	old := repo.Git("rev-parse", "HEAD")
	known := []string{"git/" + repo.Git("rev-parse", "HEAD~2"), "git/" + repo.Git("rev-parse", "side")}
	receive(t, w, w.Put("shop/a.bundle", repo.Bundle("HEAD")))
	if d := cmp.Diff(known, turns(t, w, "shop")); d != "" {
		t.Fatalf("first (-want +got):\n%s", d)
	}
	repo.Write("retry.go", "package shop\n\nfunc Retry() { again() }\n")
	next := repo.Commit("Cap retries at 3 attempts\n\nFrom now on we cap retries at 3 attempts, because 5 were still too many.")
	whole, thin := repo.Bundle("HEAD"), repo.Bundle("HEAD", "^"+old)
	known = append(known, "git/"+next)
	steps := []struct {
		name    string
		key     string
		body    []byte
		outcome string
	}{
		{"an increment", "shop/a.bundle", thin, learn.OutcomeAdmitted},
		{"the whole", "shop/a.bundle", whole, learn.OutcomeDuplicate},
		{"compressed", "shop/b.bundle.gz", gzipped(t, whole), learn.OutcomeDuplicate},
	}
	for _, s := range steps {
		r := receive(t, w, w.Put(s.key, s.body)).Receipt
		if r.Outcome != s.outcome || r.Derived == "" {
			t.Errorf("%s: %+v", s.name, r)
		}
		if d := cmp.Diff(known, turns(t, w, "shop")); d != "" {
			t.Errorf("%s (-want +got):\n%s", s.name, d)
		}
		if s.name == "an increment" && !strings.Contains(r.Reason, "of 1 commits ("+next[:12]+") not all paths") {
			t.Errorf("%s: %s", s.name, r.Reason)
		}
	}
	// Another project begins anew, here from the increment.
	receive(t, w, w.Put("bank/thin.bundle", thin))
	receive(t, w, w.Put("bank/whole.bundle", whole))
	if d := cmp.Diff([]string{known[2], known[0], known[1]}, turns(t, w, "bank")); d != "" {
		t.Errorf("bank (-want +got):\n%s", d)
	}
}

// TestBundleRefused: what can not be read is refused by its name and listed; the
// rest of the bucket goes on.
func TestBundleRefused(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	repo := small(t)
	bundle := repo.Bundle("HEAD")
	flipped := bytes.Clone(bundle)
	flipped[len(flipped)/2] ^= 1
	want := map[string]string{}
	for key, tc := range map[string]struct {
		body []byte
		want string
	}{
		"shop/cut.bundle":     {bundle[:len(bundle)-30], "the bundle is damaged"},
		"shop/flipped.bundle": {flipped, "the bundle is damaged"},
		"shop/cut.bundle.gz":  {gzipped(t, bundle)[:200], "the bundle is damaged"},
		"shop/garbage.bundle": {[]byte("# v2 git bundle\n" + strings.Repeat("0a", 20) + " HEAD\n\nPACK\x00\x00\x00\x02"), "the bundle is damaged"},
		"shop/sha256.bundle":  {[]byte("# v3 git bundle\n@object-format=sha256\n" + strings.Repeat("0a", 32) + " HEAD\n\nPACK"), "sha256"},
		"_auto/shop.bundle":   {bundle, "its project has to be named"},
	} {
		w.Put(key, tc.body)
		want[functest.Inbox+"/"+key] = tc.want
	}
	w.Put("shop/good.bundle", bundle)
	w.Put("shop/talk.jsonl", decision("s1"))
	w.Sweep()
	w.Sweep()
	for _, key := range []string{"shop/cut.bundle", "_auto/shop.bundle"} {
		info, err := w.Inbox.Head(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		r, ok, err := w.Log.Receipt(t.Context(), functest.Inbox, key, info.ETag)
		if err != nil || !ok || r.Outcome != learn.OutcomeRefused || r.Derived != "" || !strings.Contains(r.Reason, "(") {
			t.Errorf("%s: %+v, %v, %v", key, r, ok, err)
		}
	}
	got := refusals(t, w)
	for key, reason := range want {
		if !strings.Contains(got[key], reason) {
			t.Errorf("%s: dead letter %q, want %q", key, got[key], reason)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d dead letters of %d objects", len(got), len(want))
	}
	if n := len(w.Admits("shop")); n != 2 {
		t.Errorf("%d admit lines", n)
	}
	if p, err := w.Learn.Pending(t.Context()); err != nil || len(p) != 0 {
		t.Errorf("pending %+v, %v", p, err)
	}
}

// TestBundleLimits: a bundle over a limit of size or time is refused with what
// to do instead, not tried for ever.
func TestBundleLimits(t *testing.T) {
	t.Parallel()
	bundle := small(t).Bundle("HEAD")
	for name, tc := range map[string]struct {
		limits gitbundle.Limits
		budget time.Duration
		want   string
	}{
		"objects": {gitbundle.Limits{Objects: 3}, 0, "at most 3"},
		"work":    {gitbundle.Limits{WorkBytes: 100}, 0, "to unpack"},
		"time":    {gitbundle.Limits{}, time.Nanosecond, "not read in 1ns"},
	} {
		w := functest.New(t, functest.Options{})
		f, err := learn.New(learn.Config{
			Tenant: functest.Tenant, TenantKey: functest.TenantKey, Inbox: w.Inbox, Log: w.Log, Catalog: w.Catalog, Count: functest.Coarse,
			Bundle: tc.limits, BundleBudget: tc.budget,
		})
		if err != nil {
			t.Fatal(err)
		}
		res, err := f.Object(t.Context(), object(t, w.Put("shop/a.bundle", bundle)))
		if err != nil || res.Receipt.Outcome != learn.OutcomeRefused || !strings.Contains(res.Receipt.Reason, tc.want) || !strings.Contains(res.Receipt.Reason, "in parts") {
			t.Errorf("%s: %+v, %v", name, res.Receipt, err)
		}
		if d := refusals(t, w); len(d) != 1 {
			t.Errorf("%s: dead letters %v", name, d)
		}
	}
	// A bundle of nothing but a blob has no commit.
	repo := gitbundletest.New(t)
	repo.Write("x", "x\n")
	repo.Commit("One")
	repo.Git("tag", "blob", "HEAD:x")
	w := functest.New(t, functest.Options{})
	if r := receive(t, w, w.Put("shop/b.bundle", repo.Bundle("blob"))).Receipt; r.Outcome != learn.OutcomeEmpty {
		t.Errorf("%+v", r)
	}
}

// TestBundleCrash: killed at any store call, or with any call lost, a bundle is
// admitted once and announced.
func TestBundleCrash(t *testing.T) {
	t.Parallel()
	bundle := small(t).Bundle("HEAD")
	upload := func(w *functest.World) []ce.Event { return []ce.Event{w.Put("shop/a.bundle", bundle)} }
	for _, effect := range []bool{false, true} {
		crashAt(t, 0, upload, func(s *functest.Stores, n int) func() bool { return s.DieAt(n, effect, errKilled) })
		crashAt(t, 0, upload, func(s *functest.Stores, n int) func() bool { return s.FailOnce(n, effect, errKilled) })
	}
}

// TestBundleSwept: of a log that was stored by a process that then ended, the
// sweep knows without the bundle.
func TestBundleSwept(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	e := w.Put("shop/a.bundle", small(t).Bundle("HEAD"))
	w.Stores.Fail(nil, func(c functest.Call) error {
		if strings.Contains(c.Key, "/_post/") {
			return errKilled
		}
		return nil
	})
	if _, err := w.Learn.Handle(t.Context(), e); err == nil {
		t.Fatal("the lost answer is no error")
	}
	w.Stores.Fail(nil, nil)
	p, err := w.Learn.Pending(t.Context())
	if err != nil || len(p) != 2 || !slices.ContainsFunc(p, func(o event.Object) bool { return strings.Contains(o.Key, "/_post/") }) {
		t.Fatalf("pending %+v, %v", p, err)
	}
	slices.Reverse(p) // the log first
	for _, o := range p {
		// Both announce the part: whoever was first may have been killed.
		if res, err := w.Learn.Object(t.Context(), o); err != nil || len(res.Events) != 1 {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	if n := len(w.Admits("shop")); n != 1 {
		t.Errorf("%d admit lines", n)
	}
	if r := receive(t, w, e); !r.Repeat || r.Receipt.Outcome != learn.OutcomeDuplicate || r.Receipt.Derived == "" {
		t.Errorf("%+v", r)
	}
}

// TestBundleLeavesNothing: no temporary file outlives a bundle, good or bad.
func TestBundleLeavesNothing(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	w := functest.New(t, functest.Options{})
	bundle := small(t).Bundle("HEAD")
	for i, b := range [][]byte{bundle, bundle[:len(bundle)-1]} {
		receive(t, w, w.Put(fmt.Sprintf("shop/%d.bundle", i), b))
	}
	left, err := filepath.Glob(filepath.Join(tmp, "mneme-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.Chmod(tmp, 0o500); err == nil && os.Getuid() != 0 {
		if _, err := w.Learn.Handle(t.Context(), w.Put("shop/3.bundle", bundle)); err == nil {
			t.Error("without a place for temporary files a bundle is read")
		}
		_ = os.Chmod(tmp, 0o700)
	}
}
