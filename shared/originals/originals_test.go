package originals_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
	"github.com/mneme-ai/mneme/shared/originals"
	"github.com/mneme-ai/mneme/shared/redact"
)

const project = "api"

// clock is one time for the store and for what stands above it.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func newClock() *clock {
	c := &clock{}
	c.at.Store(time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func masks(context.Context) (func(string) string, string, error) {
	r := redact.New([]byte("a key of the tests, long enough"))
	return func(s string) string { out, _ := r.Redact(s); return out }, r.Version(), nil
}

func open(t *testing.T, d objstore.Driver, c *clock, edit func(*originals.Config)) *originals.Store {
	t.Helper()
	cfg := originals.Config{Bucket: objstore.NewBucket("mneme", d, objstore.WithRetry(1, time.Millisecond)), Tenant: "local", Redactor: masks, Now: c.now}
	if edit != nil {
		edit(&cfg)
	}
	s, err := originals.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// failingLog is a log that compresses.
func failingLog(n int) string {
	var b strings.Builder
	for i := range 400 {
		fmt.Fprintf(&b, "2026-03-04T09:00:%02dZ INFO worker-%d processed job %d of %d\n", i%60, i%8, i, n)
	}
	return b.String() + "2026-03-04T09:07:00Z ERROR disk full on /dev/sda1\nexit status 1\n"
}

func TestRoundTripAfterRestart(t *testing.T) {
	t.Parallel()
	c := newClock()
	dir := t.TempDir()
	d, err := dirstore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{failingLog(1), "", "\xff\xfe bytes that are no UTF-8 \x00", strings.Repeat("长", 5000)}
	var hashes []string
	s := open(t, d, c, nil)
	for _, text := range texts {
		o, err := s.Put(t.Context(), project, text)
		if err != nil {
			t.Fatal(err)
		}
		if o.Text != text || o.SHA256 != memory.SumString(text) {
			t.Fatalf("Put gave %q, %s", o.Text, o.SHA256)
		}
		hashes = append(hashes, string(o.SHA256))
	}
	d.Close()
	d, err = dirstore.Open(dir) // another process
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s = open(t, d, c, nil)
	for i, h := range hashes {
		for _, hash := range []string{h, h[:compress.ShownHex]} {
			o, err := s.Get(t.Context(), project, hash)
			if err != nil || o.Text != texts[i] {
				t.Errorf("Get(%s) = %d bytes, %v; want %d", hash, len(o.Text), err, len(texts[i]))
			}
		}
	}
	_, err = s.Get(t.Context(), "other", hashes[0])
	if !fault.Is(err, fault.NotFound) || errors.Is(err, originals.ErrExpired) {
		t.Errorf("another project reads it: %v", err)
	}
}

func TestNothingIsStoredUnmasked(t *testing.T) {
	t.Parallel()
	c := newClock()
	d := memstore.New()
	s := open(t, d, c, nil)
	secret := "ghp_" + strings.Repeat("aB3dE5fG7h", 4)[:36]
	text := failingLog(2) + "Authorization: Bearer " + secret + "\n"
	r, err := s.Compress(t.Context(), project, text, compress.Options{})
	if err != nil || !r.Changed {
		t.Fatalf("Compress: %v %v", r.Reason, err)
	}
	o, err := s.Get(t.Context(), project, r.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(o.Text, secret) || strings.Contains(r.Text, secret) || !strings.Contains(o.Text, "[REDACTED:") {
		t.Error("the secret is stored")
	}
}

// TestMarksNameWhatIsStored holds every hash that a result shows against the store.
func TestMarksNameWhatIsStored(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, memstore.New(), c, nil)
	text := failingLog(3)
	r, err := s.Compress(t.Context(), project, text, compress.Options{})
	if err != nil || !r.Changed {
		t.Fatal(r.Reason, err)
	}
	_, rest, ok := strings.Cut(r.Text, "original ")
	if !ok {
		t.Fatalf("no mark names the original:\n%s", r.Text)
	}
	o, err := s.Get(t.Context(), project, rest[:compress.ShownHex])
	if err != nil || o.Text != text {
		t.Fatal(err)
	}
	again, err := s.Compress(t.Context(), project, r.Text, compress.Options{})
	if err != nil || again.Changed || again.Text != r.Text {
		t.Errorf("a result changes when it comes again: %v", err)
	}
}

func TestNoMarkWhereNothingIsKept(t *testing.T) {
	t.Parallel()
	c := newClock()
	text := failingLog(4)
	off := open(t, memstore.New(), c, func(cfg *originals.Config) { cfg.Off = true })
	r, err := off.Compress(t.Context(), project, text, compress.Options{})
	if err != nil || !r.Changed || strings.Contains(r.Text, "original ") {
		t.Errorf("off: changed %v, %v\n%s", r.Changed, err, r.Text)
	}
	full := open(t, memstore.NewWith(memstore.Hooks{Before: func(_ context.Context, c memstore.Call) error {
		if c.Op == memstore.OpPut {
			return fault.As(fault.Unavailable, objstore.ErrFull)
		}
		return nil
	}}), c, nil)
	r, err = full.Compress(t.Context(), project, text, compress.Options{})
	if err != nil || r.Changed || r.Text != text || r.Reason != originals.ReasonNotStored {
		t.Errorf("a full store: changed %v, %q, %v", r.Changed, r.Reason, err)
	}
	large := strings.Repeat(failingLog(5), 1+originals.MaxBytes/len(text))
	r, err = open(t, memstore.New(), c, nil).Compress(t.Context(), project, large, compress.Options{})
	if err != nil || r.Changed || r.Text != large {
		t.Errorf("over MaxBytes: changed %v, %v", r.Changed, err)
	}
}

func TestExpiredIsNotNever(t *testing.T) {
	t.Parallel()
	c := newClock()
	d := memstore.NewWith(memstore.Hooks{Now: c.now})
	s := open(t, d, c, nil)
	o, err := s.Put(t.Context(), project, failingLog(6))
	if err != nil {
		t.Fatal(err)
	}
	for range 6 { // each get keeps it an hour longer
		c.advance(50 * time.Minute)
		if _, err := s.Get(t.Context(), project, string(o.SHA256)); err != nil {
			t.Fatal(err)
		}
	}
	c.advance(61 * time.Minute)
	for range 2 {
		if _, err := s.Get(t.Context(), project, string(o.SHA256)); !errors.Is(err, originals.ErrExpired) || !fault.Is(err, fault.NotFound) {
			t.Fatalf("after the TTL: %v", err)
		}
	}
	_, err = s.Get(t.Context(), project, strings.Repeat("0", 64))
	if !fault.Is(err, fault.NotFound) || errors.Is(err, originals.ErrExpired) {
		t.Errorf("never stored: %v", err)
	}
	if _, err := s.Put(t.Context(), project, failingLog(6)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), project, string(o.SHA256)); err != nil {
		t.Errorf("stored again: %v", err)
	}
}

func TestMaxEntries(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := open(t, memstore.NewWith(memstore.Hooks{Now: c.now}), c, func(cfg *originals.Config) { cfg.MaxEntries = 5 })
	var hashes []string
	for i := range 12 {
		o, err := s.Put(t.Context(), project, fmt.Sprintf("text %d", i))
		if err != nil {
			t.Fatal(err)
		}
		hashes = append(hashes, string(o.SHA256))
		c.advance(time.Second)
	}
	for i, h := range hashes {
		_, err := s.Get(t.Context(), project, h)
		if i < 7 && !errors.Is(err, originals.ErrExpired) || i >= 7 && err != nil {
			t.Errorf("original %d of 12, 5 kept: %v", i, err)
		}
	}
}

func TestLocalNeverOutlivesTheBucket(t *testing.T) {
	t.Parallel()
	c := newClock()
	d := memstore.NewWith(memstore.Hooks{Now: c.now})
	one, two := open(t, d, c, nil), open(t, d, c, nil) // two processes
	o, err := one.Put(t.Context(), project, failingLog(7))
	if err != nil {
		t.Fatal(err)
	}
	if err := two.Wipe(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	if _, err := one.Get(t.Context(), project, string(o.SHA256)); !fault.Is(err, fault.NotFound) {
		t.Errorf("wiped by another process, and still read: %v", err)
	}
}

// TestNewerRules: a secret that rules of a later day know is not given out, and a
// scrub of the log takes the originals with it.
func TestNewerRules(t *testing.T) {
	t.Parallel()
	c := newClock()
	d := memstore.New()
	b := objstore.NewBucket("mneme", d)
	text := failingLog(9) + "account ACME-77aa88bb99\n"
	o, err := open(t, d, c, nil).Put(t.Context(), project, text)
	if err != nil {
		t.Fatal(err)
	}
	newer := open(t, d, c, func(cfg *originals.Config) {
		cfg.Redactor = func(context.Context) (func(string) string, string, error) {
			return func(s string) string { return strings.ReplaceAll(s, "ACME-77aa88bb99", "[REDACTED:user_acme:1f0c9a]") }, "r3+x", nil
		}
	})
	if got, err := newer.Get(t.Context(), project, string(o.SHA256)); !errors.Is(err, originals.ErrExpired) {
		t.Errorf("given out under newer rules: %v %v", got.SHA256, err)
	}
	again, err := open(t, d, c, nil).Put(t.Context(), project, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := eventlog.Open(b, "local", "test").DropOriginals(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	if _, err := newer.Get(t.Context(), project, string(again.SHA256)); !fault.Is(err, fault.NotFound) {
		t.Errorf("after a scrub: %v", err)
	}
	for info, err := range b.List(t.Context(), originals.Prefix) {
		t.Errorf("left: %v %v", info.Key, err)
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	c := newClock()
	d := memstore.New()
	b := objstore.NewBucket("mneme", d)
	s := open(t, d, c, nil)
	o, err := s.Put(t.Context(), project, failingLog(8))
	if err != nil {
		t.Fatal(err)
	}
	key := originals.Prefix + "local/" + project + "/" + string(o.SHA256)[:compress.ShownHex]
	raw, _, err := b.ReadAll(t.Context(), key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"cut": raw[:len(raw)-5], "no header": raw[3:], "empty": nil, "a later version": append([]byte(strings.Replace(string(raw), `{"v":1`, `{"v":2`, 1)), ' ')} {
		if _, err := b.Put(t.Context(), key, bad); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), project, string(o.SHA256)); !fault.Is(err, fault.Corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Put(t.Context(), project, failingLog(8)); err != nil {
		t.Fatal("what is damaged can be stored again:", err)
	}
	if got, err := s.Get(t.Context(), project, string(o.SHA256)); err != nil || got.SHA256 != o.SHA256 {
		t.Error(err)
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := open(t, memstore.New(), newClock(), nil)
	for _, hash := range []string{"", "abc", strings.Repeat("g", 64), strings.Repeat("a", 65), "../../../log/local/api/admit"} {
		if _, err := s.Get(t.Context(), project, hash); !fault.Is(err, fault.Invalid) {
			t.Errorf("Get(%q): %v", hash, err)
		}
	}
	for _, p := range []string{"", "..", "A", "a/b"} {
		if _, err := s.Get(t.Context(), p, strings.Repeat("a", 64)); !fault.Is(err, fault.Invalid) {
			t.Errorf("project %q: %v", p, err)
		}
		if _, err := s.Put(t.Context(), p, "x"); !fault.Is(err, fault.Invalid) {
			t.Errorf("project %q: %v", p, err)
		}
	}
}

func TestFromEnv(t *testing.T) {
	t.Parallel()
	env := map[string]string{"MEM_CCR_ENABLED": "false", "MEM_CCR_MAX_ENTRIES": "7", "MEM_CCR_TTL_SECS": "90"}
	var c originals.Config
	if err := c.FromEnv(func(k string) string { return env[k] }); err != nil || !c.Off || c.MaxEntries != 7 || c.TTL != 90*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
	bad := map[string]string{"MEM_CCR_ENABLED": "maybe", "MEM_CCR_MAX_ENTRIES": "-1", "MEM_CCR_TTL_SECS": "1h"}
	err := c.FromEnv(func(k string) string { return bad[k] })
	for k := range bad {
		if err == nil || !strings.Contains(err.Error(), k) {
			t.Errorf("%s is not named: %v", k, err)
		}
	}
}
