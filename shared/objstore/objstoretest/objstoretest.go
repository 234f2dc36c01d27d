// Package objstoretest is the conformance suite of objstore.Driver: each driver
// runs it from its own test.
package objstoretest

import (
	"bytes"
	gocmp "cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// OddKeys are keys that trip path, URL and XML handling. Every driver holds
// all of them at once.
var OddKeys = []string{
	"a", "a/b", "a.b", "a/b/c", "a-b", "a b", "A",
	"plus/a+b", "pct/a%20b", "pct/100%", "pct/%2F", "pct/%23x", "amp/a&b=c", "hash/a#b?c", "quote/a'b\"c<d>",
	"plus/+", "plus/a%2Bb", "plus/a b+c%20d", "pct/a%2Fb", "pct/%252F", "pct/%00", "pct/%", " lead", "trail ", "sp/ ",
	"uni/ñ日本", "uni/\u00e9", "uni/e\u0301", "uni/\U0001F980", "uni/\u212b", "uni/\u00c5", "uni/\u00a0", "uni/\u200d", "sp ace/ lead", "dots/...", "dots/.hidden", ".top", ".mneme", ".mneme-store/format",
	"semi;colon:star*back\\slash|tilde~", "ext.d/file.d", "ext.d/noext", "noext/noext",
	"long/" + strings.Repeat("x", 200), "long/" + strings.Repeat("日", 66), "long/" + strings.Repeat("%", 200),
	strings.Repeat("d", 200) + "/" + strings.Repeat("e", 200) + "/f",
	strings.Repeat(strings.Repeat("p", 99)+"/", 9) + "of 907 bytes", // with a prefix of the test's, near MaxKeyBytes
}

// Limits are what a server cannot do although the contract wants it. A driver
// of ours has none.
type Limits struct {
	// NoNesting: while the object "a" stands, no object "a/b" can, as in servers
	// that keep objects as files.
	NoNesting bool
	// MaxPartBytes is the longest key part the server takes; 0: any.
	MaxPartBytes int
	// Many is how many keys the long listing has; 0: 2,500, which is more than
	// two pages of S3's.
	Many int
	// Versioned: the store keeps what was replaced and deleted.
	Versioned bool
	// NoRecreate: in a bucket with versions a create-only write is refused where
	// an object was deleted, or all its versions were, as by versitygw 1.8.
	NoRecreate bool
}

func (l Limits) recreate() objstore.Condition { return objstore.Condition{Create: !l.NoRecreate} }

// odd are the OddKeys that a server with these limits can hold at once.
func (l Limits) odd() []string {
	var keys []string
	for _, key := range OddKeys {
		nested, long := false, false
		for _, other := range OddKeys {
			nested = nested || strings.HasPrefix(key, other+"/")
		}
		for part := range strings.SplitSeq(key, "/") {
			long = long || l.MaxPartBytes > 0 && len(part) > l.MaxPartBytes
		}
		if !long && !(l.NoNesting && nested) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Run checks that the driver given by open keeps the contract. Each call of
// open gives an empty store of its own.
func Run(t *testing.T, open func(t *testing.T) objstore.Driver) { RunLimited(t, Limits{}, open) }

// RunLimited is Run against a server that is not ours.
func RunLimited(t *testing.T, limits Limits, open func(t *testing.T) objstore.Driver) {
	for _, c := range []struct {
		name string
		test func(*testing.T, objstore.Driver)
	}{
		{"absent", func(t *testing.T, d objstore.Driver) { absent(t, d, limits) }},
		{"put and get", func(t *testing.T, d objstore.Driver) { putAndGet(t, d, limits) }},
		{"ranges", ranges},
		{"create", create},
		{"if-match", ifMatch},
		{"racing creates", racingCreates},
		{"racing replaces", racingReplaces},
		{"short body", shortBody},
		{"odd keys", func(t *testing.T, d objstore.Driver) { oddKeys(t, d, limits.odd()) }},
		{"list", func(t *testing.T, d objstore.Driver) { list(t, d, limits.NoNesting) }},
		{"many keys", func(t *testing.T, d objstore.Driver) { manyKeys(t, d, gocmp.Or(limits.Many, 2500)) }},
		{"large", large},
		{"broken parts", brokenParts},
		{"racing large creates", racingLarge},
		{"large replace", largeReplace},
		{"delete versions", func(t *testing.T, d objstore.Driver) { deleteVersions(t, d, limits) }},
		{"cancelled", cancelled},
		{"clock", clock},
		{"proof", proof},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}

func put(t *testing.T, d objstore.Driver, key, text string, cond objstore.Condition) objstore.Info {
	t.Helper()
	info, err := d.Put(t.Context(), key, strings.NewReader(text), int64(len(text)), cond)
	if err != nil {
		t.Fatalf("Put(%q, %+v): %v", key, cond, err)
	}
	return info
}

func get(t *testing.T, d objstore.Driver, key string, from, n int64) (string, objstore.Info) {
	t.Helper()
	r, info, err := d.Get(t.Context(), key, from, n)
	if err != nil {
		t.Fatalf("Get(%q, %d, %d): %v", key, from, n, err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("read %q: %v", key, err)
	}
	return string(data), info
}

// sameInfo allows what S3 cuts off a time: it lists milliseconds and heads
// seconds.
func sameInfo(t *testing.T, what string, want, got objstore.Info) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(time.Second)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantErr(t *testing.T, what string, err, want error, kind fault.Kind) {
	t.Helper()
	if !errors.Is(err, want) || !fault.Is(err, kind) {
		t.Errorf("%s: got error %v of kind %v, want %v of kind %v", what, err, fault.KindOf(err), want, kind)
	}
}

func absent(t *testing.T, d objstore.Driver, limits Limits) {
	put(t, d, "there/a", "x", objstore.Condition{})
	for _, key := range []string{"nothing", "there", "there/a/b", "there/aa"} {
		_, err := d.Head(t.Context(), key)
		wantErr(t, "Head "+key, err, objstore.ErrNotFound, fault.NotFound)
		_, _, err = d.Get(t.Context(), key, 0, -1)
		wantErr(t, "Get "+key, err, objstore.ErrNotFound, fault.NotFound)
		if limits.NoRecreate && key == "there" {
			continue // versitygw 1.8: an internal error for a folder, with versions only
		}
		if err := d.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete %s of nothing: %v", key, err)
		}
	}
	if got, _ := get(t, d, "there/a", 0, -1); got != "x" {
		t.Errorf("deleting what is not there left %q of another object", got)
	}
}

func putAndGet(t *testing.T, d objstore.Driver, limits Limits) {
	before, err := d.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "", "third, longer than before"} {
		wrote := put(t, d, "p/k", text, objstore.Condition{})
		got, info := get(t, d, "p/k", 0, -1)
		if got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		sameInfo(t, "Get after Put", wrote, info)
		head, err := d.Head(t.Context(), "p/k")
		if err != nil {
			t.Fatal(err)
		}
		sameInfo(t, "Head after Put", wrote, head)
		page, err := d.List(t.Context(), "p/k", "", 10)
		if err != nil || len(page) != 1 {
			t.Fatalf("List: %d objects, error %v", len(page), err)
		}
		sameInfo(t, "List after Put", wrote, page[0])
		if info.Key != "p/k" || info.SizeBytes != int64(len(text)) || info.ETag == "" || strings.Contains(info.ETag, `"`) {
			t.Errorf("odd Info %+v", info)
		}
		if info.ModTime.Location() != time.UTC || info.ModTime.Before(before.Add(-2*time.Second)) {
			t.Errorf("ModTime %v, the store's clock said %v before", info.ModTime, before)
		}
	}
	if err := d.Delete(t.Context(), "p/k"); err != nil {
		t.Fatal(err)
	}
	_, err = d.Head(t.Context(), "p/k")
	wantErr(t, "Head after Delete", err, objstore.ErrNotFound, fault.NotFound)
	put(t, d, "p/k", "again", limits.recreate())
}

func ranges(t *testing.T, d objstore.Driver) {
	put(t, d, "r", "0123456789", objstore.Condition{})
	put(t, d, "empty", "", objstore.Condition{})
	for _, c := range []struct {
		key     string
		from, n int64
		want    string
	}{
		{"r", 0, -1, "0123456789"}, {"r", 3, -1, "3456789"}, {"r", 0, 4, "0123"}, {"r", 4, 3, "456"},
		{"r", 8, 100, "89"}, {"r", 9, 1, "9"}, {"r", 10, 1, ""}, {"r", 50, 5, ""}, {"r", 50, -1, ""}, {"r", 2, 0, ""},
		{"empty", 0, -1, ""}, {"empty", 0, 5, ""}, {"empty", 3, -1, ""},
	} {
		got, info := get(t, d, c.key, c.from, c.n)
		if got != c.want {
			t.Errorf("Get(%s, %d, %d) = %q, want %q", c.key, c.from, c.n, got, c.want)
		}
		if whole := map[string]int64{"r": 10}[c.key]; info.SizeBytes != whole || info.ETag == "" {
			t.Errorf("Get(%s, %d, %d): Info %+v is not the whole object's", c.key, c.from, c.n, info)
		}
	}
}

func create(t *testing.T, d objstore.Driver) {
	put(t, d, "c", "one", objstore.Condition{Create: true})
	for _, text := range []string{"two", "one"} {
		_, err := d.Put(t.Context(), "c", strings.NewReader(text), int64(len(text)), objstore.Condition{Create: true})
		wantErr(t, "second create", err, objstore.ErrPrecondition, fault.Conflict)
	}
	if got, _ := get(t, d, "c", 0, -1); got != "one" {
		t.Errorf("a lost create left %q", got)
	}
}

func ifMatch(t *testing.T, d objstore.Driver) {
	first := put(t, d, "m", "one", objstore.Condition{})
	second := put(t, d, "m", "two", objstore.Condition{IfMatch: first.ETag})
	for name, c := range map[string]struct{ key, etag string }{
		"stale":  {"m", first.ETag},
		"absent": {"nothing", second.ETag},
	} {
		_, err := d.Put(t.Context(), c.key, strings.NewReader("three"), 5, objstore.Condition{IfMatch: c.etag})
		wantErr(t, name, err, objstore.ErrPrecondition, fault.Conflict)
	}
	if got, _ := get(t, d, "m", 0, -1); got != "two" {
		t.Errorf("a lost replace left %q", got)
	}
	_, err := d.Head(t.Context(), "nothing")
	wantErr(t, "a lost replace of nothing", err, objstore.ErrNotFound, fault.NotFound)
}

const (
	racers = 16 // writers at once
	rounds = 8  // races of each kind
)

func racingCreates(t *testing.T, d objstore.Driver) {
	for round := range rounds {
		race(t, d, fmt.Sprintf("race/%d", round), objstore.Condition{Create: true})
	}
}

func racingReplaces(t *testing.T, d objstore.Driver) {
	etag := put(t, d, "race", "start", objstore.Condition{}).ETag
	for range rounds {
		etag = race(t, d, "race", objstore.Condition{IfMatch: etag}).ETag
	}
}

// race lets racers write under cond: one must win and its bytes stand.
func race(t *testing.T, d objstore.Driver, key string, cond objstore.Condition) objstore.Info {
	t.Helper()
	infos, errs := make([]objstore.Info, racers), make([]error, racers)
	var wg sync.WaitGroup
	for w := range racers {
		wg.Go(func() {
			text := fmt.Sprintf("%s %v writer %02d", key, cond, w)
			for { // Unavailable means: not decided, again
				infos[w], errs[w] = d.Put(t.Context(), key, strings.NewReader(text), int64(len(text)), cond)
				if !fault.Is(errs[w], fault.Unavailable) {
					return
				}
			}
		})
	}
	wg.Wait()
	winner := -1
	for w, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Fatalf("%s: writers %d and %d both won", key, winner, w)
		case err == nil:
			winner = w
		default:
			wantErr(t, "loser", err, objstore.ErrPrecondition, fault.Conflict)
		}
	}
	if winner < 0 {
		t.Fatalf("%s: nobody won: %v", key, errors.Join(errs...))
	}
	got, info := get(t, d, key, 0, -1)
	if want := fmt.Sprintf("%s %v writer %02d", key, cond, winner); got != want {
		t.Fatalf("%s holds %q, the winner wrote %q", key, got, want)
	}
	sameInfo(t, "the winner's Info", infos[winner], info)
	return info
}

// shortBody: an upload that breaks off leaves what stood there before.
func shortBody(t *testing.T, d objstore.Driver) {
	put(t, d, "s", "whole", objstore.Condition{})
	broken := io.MultiReader(strings.NewReader("ha"), &failingReader{errors.New("client went away")})
	for name, r := range map[string]io.Reader{"ends early": strings.NewReader("ha"), "fails": broken} {
		for _, key := range []string{"s", "new/s"} {
			if _, err := d.Put(t.Context(), key, r, 10, objstore.Condition{}); err == nil {
				t.Errorf("%s: Put of 2 of 10 bytes succeeded", name)
			}
		}
	}
	if got, _ := get(t, d, "s", 0, -1); got != "whole" {
		t.Errorf("a broken upload left %q", got)
	}
	page, err := d.List(t.Context(), "", "", 10)
	if err != nil || len(page) != 1 {
		t.Errorf("broken uploads left %d objects, error %v", len(page), err)
	}
}

type failingReader struct{ err error }

func (r *failingReader) Read([]byte) (int, error) { return 0, r.err }

func oddKeys(t *testing.T, d objstore.Driver, keys []string) {
	for i, key := range keys {
		put(t, d, key, fmt.Sprintf("text %d", i), objstore.Condition{Create: true})
	}
	for i, key := range keys {
		got, info := get(t, d, key, 0, -1)
		if want := fmt.Sprintf("text %d", i); got != want || info.Key != key {
			t.Errorf("key %q holds %q (Info.Key %q), want %q", key, got, info.Key, want)
		}
	}
	want := append([]string(nil), keys...)
	sort.Strings(want)
	if diff := cmp.Diff(want, keysOf(t, d, "", 7)); diff != "" {
		t.Errorf("listing (-want +got):\n%s", diff)
	}
	for _, key := range want {
		if err := d.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete(%q): %v", key, err)
		}
	}
	if left := keysOf(t, d, "", 7); len(left) != 0 {
		t.Errorf("left after deleting: %q", left)
	}
}

// keysOf lists in pages of n.
func keysOf(t *testing.T, d objstore.Driver, prefix string, n int) []string {
	t.Helper()
	var keys []string
	after := ""
	for {
		page, err := d.List(t.Context(), prefix, after, n)
		if err != nil {
			t.Fatalf("List(%q, %q): %v", prefix, after, err)
		}
		if len(page) > n {
			t.Fatalf("List(%q, %q) gave %d objects of at most %d", prefix, after, len(page), n)
		}
		for _, info := range page {
			keys = append(keys, info.Key)
		}
		if len(page) < n {
			return keys
		}
		after = page[n-1].Key
	}
}

func list(t *testing.T, d objstore.Driver, noNesting bool) {
	var all []string
	for _, dir := range []string{"", "log/", "log/a/", "log/a.b/", "log/a-b/", "logs/", "z/y/x/w/"} {
		for _, name := range []string{"0", "1.jsonl", "10.jsonl", "2.jsonl", "a"} {
			if dir+name == "log/a" {
				continue // put below, after what lies under it
			}
			all = append(all, dir+name)
		}
	}
	if !noNesting {
		all = append(all, "log/a")
	}
	for _, key := range all {
		put(t, d, key, key, objstore.Condition{})
	}
	sort.Strings(all)
	afters := append([]string{"", "log", "log/", "log/a/\xff", "log/a0", "zz", "log/a.b/1"}, all...)
	for _, prefix := range []string{"", "l", "log", "log/", "log/a", "log/a/", "log/a/1", "log/a.b/2.jsonl", "none", "log/none/", "z/y"} {
		for _, after := range afters {
			var want []string
			for _, key := range all {
				if strings.HasPrefix(key, prefix) && key > after {
					want = append(want, key)
				}
			}
			for _, n := range []int{3, 1000} {
				page, err := d.List(t.Context(), prefix, after, n)
				if err != nil {
					if strings.Contains(after, "\xff") {
						continue // not UTF-8: a server may refuse it
					}
					t.Fatalf("List(%q, %q, %d): %v", prefix, after, n, err)
				}
				got := make([]string, 0, n)
				for _, info := range page {
					got = append(got, info.Key)
				}
				if diff := cmp.Diff(want[:min(n, len(want))], got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("List(%q, %q, %d) (-want +got):\n%s", prefix, after, n, diff)
				}
			}
		}
	}
}

// manyKeys reads a long listing through a Bucket: whole, in byte order, from
// any place on, page by page.
func manyKeys(t *testing.T, d objstore.Driver, n int) {
	if testing.Short() {
		n = min(n, 1050)
	}
	want := make([]string, n)
	for i := range want {
		// Neighbours in order differ in what URLs and file systems treat apart.
		want[i] = fmt.Sprintf("many/%05d%s", i*7919%n, []string{"", " x", "+x", "%2Fx", "/x", "é"}[i%6])
	}
	var wg sync.WaitGroup
	errs := make([]error, racers)
	for w := range racers {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += racers {
				_, errs[w] = d.Put(t.Context(), want[i], strings.NewReader(want[i]), int64(len(want[i])), objstore.Condition{})
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	sort.Strings(want)
	counted := &listings{Driver: d}
	b := objstore.NewBucket("b", counted)
	for _, from := range []int{-1, 0, n / 3, n - 1001, n - 1} {
		after, rest := "", want
		if from >= 0 {
			after, rest = want[from], want[from+1:]
		}
		counted.calls = 0
		got := make([]string, 0, n)
		for info, err := range b.ListAfter(t.Context(), "many/", after) {
			if err != nil {
				t.Fatal(err)
			}
			if info.SizeBytes != int64(len(info.Key)) {
				t.Fatalf("%q is listed with %d bytes", info.Key, info.SizeBytes)
			}
			got = append(got, info.Key)
		}
		if diff := cmp.Diff(rest, got); diff != "" {
			t.Fatalf("after %q (-want +got):\n%s", after, diff)
		}
		if most := len(rest)/1000 + 1; counted.calls > most {
			t.Errorf("after %q: %d keys took %d listings, want at most %d", after, len(rest), counted.calls, most)
		}
	}
	counted.calls = 0
	for info, err := range b.List(t.Context(), "many/") { // who stops early pays one page
		if err != nil || info.Key != want[0] || counted.calls != 1 {
			t.Errorf("first of a stream: %q, error %v, after %d listings", info.Key, err, counted.calls)
		}
		break
	}
}

// listings counts the List calls of one goroutine.
type listings struct {
	objstore.Driver
	calls int
}

func (l *listings) List(ctx context.Context, prefix, after string, limit int) ([]objstore.Info, error) {
	l.calls++
	return l.Driver.List(ctx, prefix, after, limit)
}

// largeBytes is more than one part of s3store's uploads (16 MiB), and more than
// one of minio-go's own.
const largeBytes = 17<<20 + 7

// largeData is read by all tests, and written by none.
var largeData = sync.OnceValue(func() []byte {
	data := make([]byte, largeBytes)
	for i := range data {
		data[i] = byte(i * 2654435761 >> 13) // not compressible by accident, no randomness
	}
	return data
})

// brokenParts: an upload that fails after its first part is taken back, parts
// and all.
func brokenParts(t *testing.T, d objstore.Driver) {
	r := io.MultiReader(bytes.NewReader(largeData()), &failingReader{errors.New("client went away")})
	if _, err := d.Put(t.Context(), "k", r, -1, objstore.Condition{Create: true}); err == nil {
		t.Fatal("an upload that broke off succeeded")
	}
	_, err := d.Head(t.Context(), "k")
	wantErr(t, "Head after a broken upload", err, objstore.ErrNotFound, fault.NotFound)
	if n, err := d.DeleteVersions(t.Context(), "k"); n != 0 || err != nil {
		t.Errorf("a broken upload left %d things to remove, error %v", n, err)
	}
}

// racingLarge: uploads in parts are complete only under their condition; one
// wins, and the others leave nothing.
func racingLarge(t *testing.T, d objstore.Driver) {
	data, errs := largeData(), make([]error, 3)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for {
				_, errs[w] = d.Put(t.Context(), "k", bytes.NewReader(data[w:]), -1, objstore.Condition{Create: true})
				if !fault.Is(errs[w], fault.Unavailable) {
					return
				}
			}
		})
	}
	wg.Wait()
	won := -1
	for w, err := range errs {
		switch {
		case err == nil && won >= 0:
			t.Fatalf("writers %d and %d both won", won, w)
		case err == nil:
			won = w
		default:
			wantErr(t, "loser", err, objstore.ErrPrecondition, fault.Conflict)
		}
	}
	if won < 0 {
		t.Fatalf("nobody won: %v", errors.Join(errs...))
	}
	if got, _ := get(t, d, "k", 0, -1); got != string(data[won:]) {
		t.Errorf("%d bytes stand, the winner wrote %d, or they differ", len(got), len(data)-won)
	}
	if n, err := d.DeleteVersions(t.Context(), "k"); n != 1 || err != nil {
		t.Errorf("%d things stood where one upload won, error %v", n, err)
	}
}

// largeReplace: the completion of an upload in parts carries If-Match too.
func largeReplace(t *testing.T, d objstore.Driver) {
	data := largeData()
	first := put(t, d, "k", "small", objstore.Condition{})
	second, err := d.Put(t.Context(), "k", bytes.NewReader(data), -1, objstore.Condition{IfMatch: first.ETag})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Put(t.Context(), "k", bytes.NewReader(data[1:]), -1, objstore.Condition{IfMatch: first.ETag})
	wantErr(t, "a stale large replace", err, objstore.ErrPrecondition, fault.Conflict)
	got, info := get(t, d, "k", 0, -1)
	if got != string(data) {
		t.Error("a lost large replace changed the object")
	}
	sameInfo(t, "Get after a large replace", second, info)
	put(t, d, "k", "small again", objstore.Condition{IfMatch: second.ETag})
}

// deleteVersions: all that ever stood under a key goes, and nothing beside it.
func deleteVersions(t *testing.T, d objstore.Driver, limits Limits) {
	remove := func(key string, want int) {
		t.Helper()
		if n, err := d.DeleteVersions(t.Context(), key); n != want || err != nil {
			t.Errorf("DeleteVersions(%q) removed %d, error %v; want %d", key, n, err, want)
		}
		_, err := d.Head(t.Context(), key)
		wantErr(t, "Head after DeleteVersions", err, objstore.ErrNotFound, fault.NotFound)
	}
	for _, key := range []string{"v/k", "v/k.b", "v/k é+%2F", "v/K", "v/l"} {
		for _, text := range []string{"one", "two", "three"} {
			put(t, d, key, text, objstore.Condition{})
		}
	}
	if err := d.Delete(t.Context(), "v/l"); err != nil {
		t.Fatal(err)
	}
	three, four := 1, 0 // what stands where three were written, and where they were deleted then
	if limits.Versioned {
		three, four = 3, 4
	}
	remove("v/k", three)
	remove("v/k", 0)
	remove("v/l", four)
	remove("v/nothing", 0)
	remove("v", 0)
	if diff := cmp.Diff([]string{"v/K", "v/k é+%2F", "v/k.b"}, keysOf(t, d, "", 10)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	remove("v/k é+%2F", three)
	put(t, d, "v/k", "again", limits.recreate())
	if got, _ := get(t, d, "v/k", 0, -1); got != "again" {
		t.Errorf("after DeleteVersions and Create it holds %q", got)
	}
	remove("v/k", 1)
}

// large moves more than the part size from which clients cut an upload up.
func large(t *testing.T, d objstore.Driver) {
	data := largeData()
	for name, size := range map[string]int64{"known": int64(len(data)), "unknown": -1} {
		info, err := d.Put(t.Context(), name, bytes.NewReader(data), size, objstore.Condition{Create: true})
		if err != nil {
			t.Fatalf("Put of %s size: %v", name, err)
		}
		got, read := get(t, d, name, 0, -1)
		if got != string(data) {
			t.Errorf("%s size: %d bytes came back, %d went in, or they differ", name, len(got), len(data))
		}
		sameInfo(t, "Get of large", info, read)
		for _, edge := range []int64{8 << 20, 16 << 20} {
			if part, _ := get(t, d, name, edge-1, 5); part != string(data[edge-1:edge+4]) {
				t.Errorf("%s size: a range over %d MiB reads %x", name, edge>>20, part)
			}
		}
		if _, err := d.Put(t.Context(), name, bytes.NewReader(data), size, objstore.Condition{Create: true}); !errors.Is(err, objstore.ErrPrecondition) {
			t.Errorf("%s size: a second create of a large object: %v", name, err)
		}
	}
}

func cancelled(t *testing.T, d objstore.Driver) {
	put(t, d, "k", "v", objstore.Condition{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Put(ctx, "k", strings.NewReader("w"), 1, objstore.Condition{}); err == nil {
		t.Error("Put under a cancelled context succeeded")
	}
	if r, _, err := d.Get(ctx, "k", 0, -1); err == nil {
		if _, err := io.ReadAll(r); err == nil {
			t.Error("Get under a cancelled context succeeded")
		}
		r.Close()
	}
	if _, err := d.List(ctx, "", "", 10); err == nil {
		t.Error("List under a cancelled context succeeded")
	}
	if got, _ := get(t, d, "k", 0, -1); got != "v" {
		t.Errorf("a cancelled Put left %q", got)
	}
}

func clock(t *testing.T, d objstore.Driver) {
	now, err := d.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wrote := put(t, d, "k", "v", objstore.Condition{})
	if now.Location() != time.UTC {
		t.Errorf("the store's clock is in %v", now.Location())
	}
	const slack = 5 * time.Second // S3's Date has seconds, and a slow machine takes its time
	if gap := wrote.ModTime.Sub(now); gap < -slack || gap > slack {
		t.Errorf("the store's clock said %v, and dates an object written then %v", now, wrote.ModTime)
	}
}

func proof(t *testing.T, d objstore.Driver) {
	b := objstore.NewBucket("b", d)
	if err := b.Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := keysOf(t, d, "", 10); len(left) != 0 {
		t.Errorf("the proof left %q", left)
	}
}
