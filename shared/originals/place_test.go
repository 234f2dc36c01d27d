package originals_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
	"github.com/mneme-ai/mneme/shared/objstore/s3store"
	"github.com/mneme-ai/mneme/shared/originals"
)

// TestS3 puts originals on a real server, and reads them as another process would.
func TestS3(t *testing.T) {
	t.Parallel()
	where := os.Getenv("MNEME_TEST_S3")
	if where == "" {
		t.Skip("MNEME_TEST_S3 is not set")
	}
	u, err := url.Parse(where)
	if err != nil || u.User == nil {
		t.Fatal("MNEME_TEST_S3 is not http://key:secret@host:port")
	}
	pass, _ := u.User.Password()
	c := s3store.Config{Endpoint: u.Scheme + "://" + u.Host, Bucket: cmp.Or(strings.Trim(u.Path, "/"), "mneme-originals"), AccessKey: u.User.Username(), SecretKey: pass}
	if err := s3store.MakeBucket(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	tenant := fmt.Sprintf("t%d", time.Now().UnixNano())
	process := func(ttl time.Duration) *originals.Store {
		d, err := s3store.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		s, err := originals.New(originals.Config{Bucket: objstore.NewBucket(c.Bucket, d), Tenant: tenant, Redactor: masks, TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	text := failingLog(11)
	r, err := process(time.Hour).Compress(t.Context(), project, text, compress.Options{})
	if err != nil || !r.Changed {
		t.Fatal(r.Reason, err)
	}
	after := process(time.Hour)
	o, err := after.Get(t.Context(), project, r.SHA256[:compress.ShownHex])
	if err != nil || o.Text != text {
		t.Fatalf("after a restart: %d bytes, %v", len(o.Text), err)
	}
	if _, err := after.Get(t.Context(), "other", r.SHA256); !fault.Is(err, fault.NotFound) || errors.Is(err, originals.ErrExpired) {
		t.Errorf("another project: %v", err)
	}
	time.Sleep(5 * time.Millisecond)
	late := process(time.Millisecond)
	for range 2 {
		if _, err := late.Get(t.Context(), project, r.SHA256); !errors.Is(err, originals.ErrExpired) {
			t.Errorf("after its time: %v", err)
		}
	}
	if err := late.Wipe(t.Context(), project); err != nil {
		t.Fatal(err)
	}
	if _, err := after.Get(t.Context(), project, r.SHA256); !fault.Is(err, fault.NotFound) || errors.Is(err, originals.ErrExpired) {
		t.Errorf("after the wipe: %v", err)
	}
}

// TestMaxTotal: those touched last stay within the bytes of a project; what is larger
// than all of them is given to its reader all the same.
func TestMaxTotal(t *testing.T) {
	t.Parallel()
	c := newClock()
	d := memstore.NewWith(memstore.Hooks{Now: c.now})
	s := open(t, d, c, func(cfg *originals.Config) { cfg.MaxTotal = 50 << 10 })
	r := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) string { // hardly packs
		b := make([]byte, n)
		for i := range b {
			b[i] = ' ' + byte(r.IntN(95))
		}
		return string(b)
	}
	var last []string
	for i := range 12 {
		o, err := s.Put(t.Context(), project, noise(10<<10))
		if err != nil {
			t.Fatal(err)
		}
		last = append(last, string(o.SHA256))
		c.advance(time.Second)
		if _, err := s.Get(t.Context(), project, last[i]); err != nil {
			t.Errorf("original %d is gone at once: %v", i, err)
		}
	}
	b := objstore.NewBucket("mneme", d)
	size := int64(0)
	for info, err := range b.List(t.Context(), originals.Prefix) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(info.Key, ".gone") {
			size += info.SizeBytes
		}
	}
	if size > 50<<10 || size < 20<<10 {
		t.Errorf("%d bytes stand, at most %d may", size, 50<<10)
	}
	if _, err := s.Get(t.Context(), project, last[0]); !errors.Is(err, originals.ErrExpired) {
		t.Errorf("the first: %v", err)
	}
	big, err := s.Put(t.Context(), project, noise(200<<10))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), project, string(big.SHA256)); err != nil {
		t.Errorf("one larger than the bound: %v", err)
	}
}

// TestWritersRace: many processes put and get the same and different texts at once;
// each gets what it put.
func TestWritersRace(t *testing.T) {
	t.Parallel()
	c := newClock()
	d := memstore.NewWith(memstore.Hooks{Now: c.now})
	var wg sync.WaitGroup
	for p := range 6 {
		s := open(t, d, c, func(cfg *originals.Config) { cfg.LocalBytes = 64 << 10 })
		wg.Go(func() {
			for i := range 30 {
				text := failingLog(i % 10) // the same in all processes
				if i%3 == 0 {
					text += fmt.Sprint(p)
				}
				r, err := s.Compress(t.Context(), project, text, compress.Options{})
				if err != nil || !r.Changed {
					t.Errorf("Compress: %s %v", r.Reason, err)
					return
				}
				o, err := s.Get(t.Context(), project, r.SHA256[:compress.ShownHex])
				if err != nil || o.Text != text {
					t.Errorf("process %d, text %d: %d bytes, %v", p, i, len(o.Text), err)
				}
			}
		})
	}
	wg.Wait()
}

// TestClocks: a store whose clock is another than ours keeps what was just put.
func TestClocks(t *testing.T) {
	t.Parallel()
	c := newClock()
	for _, skew := range []time.Duration{-300 * time.Hour, 300 * time.Hour} {
		s := open(t, memstore.NewWith(memstore.Hooks{Now: func() time.Time { return c.now().Add(skew) }}), c, nil)
		o, err := s.Put(t.Context(), project, failingLog(12))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), project, string(o.SHA256)); err != nil {
			t.Errorf("a store %v away: %v", skew, err)
		}
	}
}
