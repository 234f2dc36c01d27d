package scrub_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/replay"
	"github.com/mneme-ai/mneme/shared/scrub"
)

var day = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

const (
	secret  = "ACME-77aa88bb99"
	another = "ACME-0c1d2e3f4a"
	rules   = "patterns:\n  - name: acme\n    regexp: 'ACME-[0-9a-f]{10}'\n"
)

// bodies hold secrets that the built-in rules do not know: in kept statements,
// in one that was replaced, in one that replaces, twice in a line, on a line with
// a secret that is known, in talk that is not kept, and in a message that is
// longer than a chunk.
func bodies() [][]byte {
	long := strings.Repeat("We go through the module and its callers in turn, and note what we see there.\n", 600)
	return [][]byte{
		functest.Decision("s0", day, "We decided to sign the releases with the key "+secret+", because the old one leaked."),
		functest.Decision("s1", day.AddDate(0, 0, 1), "From now on the cache TTL is 10 minutes, never longer, since stale prices cost us an incident."),
		functest.Decision("s2", day.AddDate(0, 0, 2), "From now on the mirror of the index is ACME-1111111111, since the first one is slow."),
		functest.Decision("s3", day.AddDate(0, 0, 3), "From now on the mirror of the index is ACME-2222222222 instead of ACME-1111111111, since the first one is gone."),
		functest.Decision("s4", day.AddDate(0, 0, 4), "Never print \"the pass\" "+another+" nor "+secret+" in a log, no exceptions.\nAlways use pgx for the database, because lib/pq is not maintained."),
		functest.Session("s5", day.AddDate(0, 0, 5),
			functest.User("export TOKEN=ghp_"+strings.Repeat("a1B2c3D4e5", 3)+"f6G7h8 and "+secret+" are both of the deploy account, we decided to keep them apart."),
			functest.Assistant("The value "+another+" stands in the file, ja, dort steht «"+secret+"» auch."),
		),
		functest.Session("s6", day.AddDate(0, 0, 6),
			functest.User(long+"We decided that "+secret+" is rotated every month, because the auditor asked for it.\n"+long)),
		functest.Decision("s7", day.AddDate(0, 0, 7), "We decided to retry five times, because the upstream is flaky."),
	}
}

// taught is a world that learned bodies under the old rules.
func taught(t *testing.T, o functest.Options, bodies ...[]byte) *functest.World {
	t.Helper()
	w := functest.New(t, o)
	w.AskUp("shop", true, "decisions", "rules")
	for i, b := range bodies {
		w.Learned(fmt.Sprintf("shop/%d.jsonl", i), b)
	}
	return w
}

func reference() functest.Options {
	return functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()}
}

func forbid(t *testing.T, w *functest.World) {
	t.Helper()
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/redact.yaml", []byte(rules)); err != nil {
		t.Fatal(err)
	}
}

func scrubbed(t *testing.T, w *functest.World) learn.Scrubbed {
	t.Helper()
	out, err := w.Learn.Scrub(t.Context(), "", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(w.Published()...)
	return out
}

// leaks names what in the log still holds one of the secrets, or its beginning.
func leaks(t *testing.T, w *functest.World) (out []string) {
	t.Helper()
	for info, err := range w.Bucket.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := w.Bucket.ReadAll(t.Context(), info.Key, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(info.Key, "blob/"+functest.Tenant+"/shop/"); ok {
			if b, err = w.Log.Blob(t.Context(), "shop", memory.SHA(rest)); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasPrefix(info.Key, "config/") {
			continue
		}
		if bytes.Contains(b, []byte("ACME-")) {
			out = append(out, info.Key)
		}
	}
	return out
}

// TestScrub: nothing that is stored holds the secret, every check of the log and
// of the index holds, nothing was decided anew, and what is asked or told later
// goes on from there.
func TestScrub(t *testing.T) {
	t.Parallel()
	w := taught(t, functest.Options{}, bodies()...)
	w.Hashes()
	if n := len(leaks(t, w)); n < 8 {
		t.Fatalf("%d objects hold the secrets before: the test proves nothing", n)
	}
	calls := w.Gate.PolicyCalls()
	dry, err := w.Learn.Scrub(t.Context(), "", true, nil)
	if err != nil || dry.Projects[0].Blobs != 0 || dry.Projects[0].Chunks == 0 {
		t.Errorf("before the pattern stands: %v %+v", err, dry)
	}
	forbid(t, w)
	before := len(w.Records("shop", w.Streams("shop")[0]))
	if dry, err = w.Learn.Scrub(t.Context(), "shop", true, nil); err != nil || dry.Projects[0].Secrets["user_acme"] < 10 || len(w.Records("shop", w.Streams("shop")[0])) != before {
		t.Errorf("a dry run: %v %+v", err, dry)
	}
	out := scrubbed(t, w)
	r := out.Projects[0]
	t.Logf("%+v", r)
	if r.Tombstone == "" || r.Evidence == 0 || r.Memories == 0 || r.Vectors == 0 || r.Dropped != 0 || len(r.Names) != 0 || len(r.Unreadable) != 0 ||
		r.Secrets["user_acme"] != dry.Projects[0].Secrets["user_acme"] {
		t.Errorf("%+v", r)
	}
	for _, k := range leaks(t, w) {
		t.Error("holds a secret: " + k)
	}
	want := w.Hashes()
	if n := w.Gate.PolicyCalls() - calls; n != 2 { // the synthesis reads the two memories that were stated anew
		t.Errorf("%d policy calls", n)
	}
	if again := scrubbed(t, w).Projects[0]; again.Tombstone != "" || again.Blobs != 0 {
		t.Errorf("a second scrub finds %+v", again)
	}
	if diff := cmp.Diff(want, w.Hashes()); diff != "" {
		t.Errorf("a second scrub changes (-before +after):\n%s", diff)
	}
	cited(t, w)
	sameState(t, w)

	// The rebuild gives the same rows.
	if _, err := w.Project.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w.Hashes()); diff != "" {
		t.Errorf("rebuild (-before +after):\n%s", diff)
	}
	// The same bytes again are known, a new question is back-filled from the
	// redacted texts, and a new decision replaces an old one.
	for i, b := range bodies() {
		w.Learned(fmt.Sprintf("shop/again-%d.jsonl", i), b)
	}
	if diff := cmp.Diff(want, w.Hashes()); diff != "" {
		t.Errorf("the same bytes again (-before +after):\n%s", diff)
	}
	w.Ask("shop", "decisions", "rules", "secrets")
	w.Sweep()
	w.Learned("shop/8.jsonl", functest.Decision("s8", day.AddDate(0, 0, 9), "From now on the mirror of the index is mirror.example.org instead of ACME-2222222222, since that one is gone."))
	w.Hashes()
	cited(t, w)
	sameState(t, w)
	for _, k := range leaks(t, w) {
		t.Error("holds a secret after more was learned: " + k)
	}
	marked := 0
	for _, s := range w.Streams("shop") {
		for _, e := range functest.Of[*memory.Evidence](w.Records("shop", s)) {
			if e.Erased == "" && strings.Contains(e.Text, "[REDACTED:user_acme:") {
				marked++
				if e.Span.Redacted != (e.Span.HMAC != "") || !e.Span.Redacted {
					t.Errorf("%+v", e.Span)
				}
			}
		}
	}
	if marked < 6 {
		t.Errorf("%d statements with a mark", marked)
	}
}

// cited: every statement that stands is proved by the bytes of its object.
func cited(t *testing.T, w *functest.World) {
	t.Helper()
	ps, err := redact.ParsePatterns("rules", []byte(rules))
	if err != nil {
		t.Fatal(err)
	}
	red := redact.NewWith(functest.TenantKey, redact.Options{Patterns: ps})
	n := 0
	for _, s := range w.Streams("shop") {
		for _, e := range functest.Of[*memory.Evidence](w.Records("shop", s)) {
			if e.Erased != "" {
				continue
			}
			n++
			b, _, err := w.Inbox.ReadAll(t.Context(), strings.TrimPrefix(e.Span.Object, functest.Inbox+"/"), 1<<30)
			if err != nil {
				t.Fatal(err)
			}
			raw := b[e.Span.Start:e.Span.End]
			switch {
			case e.Span.Redacted && memory.HMAC(functest.TenantKey, raw) != e.Span.HMAC:
				t.Errorf("%q: the HMAC is not that of the bytes %q", e.Text, raw)
			case !e.Span.Redacted && memory.Sum(raw) != e.Span.SHA256:
				t.Errorf("%q: the hash is not that of the bytes %q", e.Text, raw)
			}
			text := strings.NewReplacer(`\"`, `"`, `\n`, "\n", `\\`, `\`).Replace(string(raw))
			if got, _ := red.Redact(text); got != e.Text {
				t.Errorf("the bytes say %q, the statement %q", got, e.Text)
			}
		}
	}
	if n == 0 {
		t.Error("no statement at all")
	}
}

// sameState: a process that was there all the time and one that starts anew
// know the same of every stream.
func sameState(t *testing.T, w *functest.World) {
	t.Helper()
	for _, s := range w.Streams("shop") {
		c, err := replay.Load(t.Context(), w.Log, "shop", s)
		if err != nil {
			t.Fatal(err)
		}
		walked := replay.Cursor{}
		if walked, err = walked.Advance(t.Context(), w.Log, "shop", s); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(walked.State, c.State); diff != "" {
			t.Errorf("%s (-walked +cached):\n%s", s, diff)
		}
		if strings.Contains(walked.State.MemoryText, "ACME-") {
			t.Errorf("%s remembers it", s)
		}
	}
}

// TestStateGoesOn: the state that folded the secret before it was erased comes to
// be the one of a log that has it erased.
func TestStateGoesOn(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()...)
	cursors := map[string]replay.Cursor{}
	for _, s := range w.Streams("shop") {
		c, err := replay.Load(t.Context(), w.Log, "shop", s)
		if err != nil {
			t.Fatal(err)
		}
		cursors[s] = c
	}
	forbid(t, w)
	scrubbed(t, w)
	for s, c := range cursors {
		c, err := c.Advance(t.Context(), w.Log, "shop", s)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := replay.Cursor{}.Advance(t.Context(), w.Log, "shop", s)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fresh.State, c.State); diff != "" {
			t.Errorf("%s (-fresh +went on):\n%s", s, diff)
		}
	}
}

// TestManyTombstones: what is more than one tombstone holds comes to the same
// text in several.
func TestManyTombstones(t *testing.T) {
	once := taught(t, reference(), bodies()...)
	forbid(t, once)
	one := scrubbed(t, once).Projects[0]
	defer scrub.SetMaxEdits(1)()
	w := taught(t, reference(), bodies()...)
	forbid(t, w)
	many := scrubbed(t, w).Projects[0]
	for _, k := range leaks(t, w) {
		t.Error("holds a secret: " + k)
	}
	w.Hashes()
	cited(t, w)
	sameState(t, w)
	n := 0
	for _, err := range w.Log.RecordKeys(t.Context(), "shop", eventlog.Tombstones) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < 3 || many.Blobs != one.Blobs || many.Evidence < one.Evidence || !maps.Equal(many.Secrets, one.Secrets) {
		t.Errorf("%d tombstones:\n%+v\nagainst one:\n%+v", n, many, one)
	}
	for _, s := range w.Streams("shop") {
		a, b := memoryOf(t, once, s), memoryOf(t, w, s)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("memory of %s (-one +many):\n%s", s, diff)
		}
	}
}

func memoryOf(t *testing.T, w *functest.World, stream string) string {
	t.Helper()
	c, err := replay.Cursor{}.Advance(t.Context(), w.Log, "shop", stream)
	if err != nil {
		t.Fatal(err)
	}
	return c.State.MemoryText
}

// TestKilled: a scrub that dies at any call to the store is finished by the
// next, with the same hashes.
func TestKilled(t *testing.T) {
	t.Parallel()
	few := slices.Delete(slices.Clone(bodies()), 5, 7) // a chunk of 5,000 tokens takes its time
	calm := taught(t, reference(), few...)
	forbid(t, calm)
	scrubbed(t, calm)
	want := calm.Hashes()
	step := 7
	if testing.Short() {
		step = 23
	}
	step *= functest.Stride(4)
	deaths := 0
	for _, effect := range []bool{false, true} {
		for n := 0; ; n += step {
			w := taught(t, reference(), few...)
			forbid(t, w)
			reached := w.Stores.DieAt(n, effect, fault.As(fault.Unavailable, errors.New("injected")))
			_, err := w.Learn.Scrub(t.Context(), "", false, nil)
			w.Stores.Fail(nil, nil)
			if !reached() {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			deaths++
			next := functest.New(t, functest.Options{From: w, Graph: w.Graph, Lexical: w.Lexical})
			scrubbed(t, next)
			next.Sweep()
			for _, k := range leaks(t, next) {
				t.Errorf("died at %d, effect %t: %s holds a secret", n, effect, k)
			}
			if diff := cmp.Diff(want, next.Hashes()); diff != "" {
				t.Fatalf("died at %d, effect %t (-calm +killed):\n%s", n, effect, diff)
			}
		}
	}
	t.Logf("%d deaths", deaths)
	if deaths < 15/functest.Stride(4) {
		t.Errorf("only %d deaths: the store was hardly asked", deaths)
	}
}

// A promoted skill that holds a secret is erased, and given out no more even before
// that; its record, who promoted it and when stay, and another skill is left alone.
func TestScrubSkills(t *testing.T) {
	t.Parallel()
	w := taught(t, reference(), bodies()[1])
	w.Hashes()
	texts := map[string]string{}
	for name, line := range map[string]string{"signing": "Sign with " + secret + ".", "releasing": "Tag, then push."} {
		texts[name] = "---\nname: " + name + "\ndescription: Says how it is done. Use before a release.\n---\n\n" + line + "\n"
		w.Post("/memory/skills", map[string]string{"action": "promote", "name": name, "text": texts[name], "by": "Ada", "project": "shop"}, 200, new(any))
	}
	if n := len(leaks(t, w)); n != 1 {
		t.Fatalf("%d objects hold the secret before: the test proves nothing", n)
	}
	forbid(t, w)
	state := func() (out [2]struct {
		Name, Text, NotLoadable, PromotedBy string
		Loadable                            bool
	}) {
		t.Helper()
		for i, name := range []string{"signing", "releasing"} {
			var s struct {
				Name        string `json:"name"`
				Text        string `json:"text"`
				NotLoadable string `json:"not_loadable"`
				PromotedBy  string `json:"promoted_by"`
				Loadable    bool   `json:"loadable"`
			}
			w.Get("/memory/skills/"+name, &s)
			out[i].Name, out[i].Text, out[i].NotLoadable, out[i].PromotedBy, out[i].Loadable = s.Name, s.Text, s.NotLoadable, s.PromotedBy, s.Loadable
		}
		return out
	}
	if s := state(); s[0].Loadable || s[0].Text != "" || !strings.Contains(s[0].NotLoadable, "masked now") || s[1].Text != texts["releasing"] {
		t.Errorf("before the scrub: %+v", s)
	}
	dry, err := w.Learn.Scrub(t.Context(), "shop", true, nil)
	if err != nil || dry.Projects[0].Secrets["user_acme"] != 1 || len(leaks(t, w)) != 1 {
		t.Errorf("a dry run: %v %+v", err, dry)
	}
	if r := scrubbed(t, w).Projects[0]; r.Tombstone == "" || r.Skills != 1 || r.Evidence != 0 {
		t.Errorf("%+v", r)
	}
	if l := leaks(t, w); len(l) != 0 {
		t.Errorf("still there: %v", l)
	}
	if s := state(); s[0].Loadable || !strings.Contains(s[0].NotLoadable, "erased") || s[0].PromotedBy != "Ada" || !s[1].Loadable {
		t.Errorf("after the scrub: %+v", s)
	}
	if r := scrubbed(t, w).Projects[0]; r.Tombstone != "" || r.Skills != 0 {
		t.Errorf("again: %+v", r)
	}
	w.Hashes()
}
