package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

func TestSource(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	src, cs := sourceOf(1, 3)
	key, err := l.PutSource(ctx, project, src, cs)
	if err != nil {
		t.Fatal(err)
	}
	again, err := eventlog.Open(b, tenant, "other").PutSource(ctx, project, src, cs)
	if err != nil || again != key {
		t.Errorf("again: %s, %v; want %s", again, err, key)
	}
	got, chunks, err := l.Source(ctx, project, key)
	if err != nil {
		t.Fatal(err)
	}
	want := src
	want.V, want.Type, want.Level, want.Tenant, want.Project = 1, "source", "-", tenant, project
	want.Chunks, want.TurnIDs = []memory.SHA{cs[0].SHA256, cs[1].SHA256, cs[2].SHA256}, []string{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i := range cs {
		c := cs[i]
		c.V, c.Type, c.Level, c.Text = 1, "chunk", "-", ""
		if diff := cmp.Diff(c, chunks[i]); diff != "" {
			t.Error(diff)
		}
	}
	// A damaged copy is not believed, and is put right when it is written again.
	stored := "log/local/shop/sources/" + string(key) + ".jsonl"
	data, _, err := b.ReadAll(ctx, stored, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"changed": bytes.Replace(data, []byte(`"user"`), []byte(`"tool"`), 1),
		"cut":     data[:len(data)/2], "empty": {},
	} {
		if _, err := b.Put(ctx, stored, bad); err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.Source(ctx, project, key); !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), stored) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := l.PutSource(ctx, project, src, cs); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := l.Source(ctx, project, key); err != nil {
			t.Errorf("%s, written again: %v", name, err)
		}
	}
	if _, _, err := l.Source(ctx, project, memory.SumString("none")); !fault.Is(err, fault.NotFound) {
		t.Errorf("none: %v", err)
	}
	if _, _, err := l.Source(ctx, project, "../x"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad key: %v", err)
	}
	swapped := []memory.Chunk{cs[1], cs[0], cs[2]}
	if _, err := l.PutSource(ctx, project, src, swapped); !fault.Is(err, fault.Invalid) {
		t.Errorf("chunks out of place: %v", err)
	}
	wrong := src
	wrong.Chunks = []memory.SHA{cs[0].SHA256}
	if _, err := l.PutSource(ctx, project, wrong, cs); !fault.Is(err, fault.Invalid) {
		t.Errorf("another chunk list: %v", err)
	}
	wrong = src
	wrong.Project = "other"
	if _, err := l.PutSource(ctx, project, wrong, cs); !fault.Is(err, fault.Invalid) {
		t.Errorf("another project: %v", err)
	}
	// No chunk at all is a source too.
	empty, _ := sourceOf(2, 0)
	key, err = l.PutSource(ctx, project, empty, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, chunks, err := l.Source(ctx, project, key); err != nil || len(chunks) != 0 {
		t.Errorf("%v, %v", chunks, err)
	}
}

func TestBlob(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	for _, data := range [][]byte{nil, []byte("a"), []byte(strings.Repeat("the same words again ", 5000)), {0xff, 0, 0xfe}} {
		sha, err := l.PutBlob(ctx, project, data)
		if err != nil || sha != memory.Sum(data) {
			t.Fatalf("%s, %v", sha, err)
		}
		if _, err := l.PutBlob(ctx, project, data); err != nil {
			t.Errorf("again: %v", err)
		}
		got, err := l.Blob(ctx, project, sha)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v; want %d", len(got), err, len(data))
		}
		if _, err := l.Blob(ctx, "elsewhere", sha); !fault.Is(err, fault.NotFound) {
			t.Errorf("another project sees it: %v", err)
		}
	}
	sha := memory.Sum([]byte("a"))
	key := "blob/local/shop/" + string(sha)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"another text": enc.EncodeAll([]byte("b"), nil), "no zstd": []byte("a"), "nothing": {},
		// 80 MiB of zeros in a few KB.
		"a bomb": enc.EncodeAll(make([]byte, 80<<20), nil),
	} {
		if _, err := b.Put(ctx, key, bad); err != nil {
			t.Fatal(err)
		}
		if got, err := l.Blob(ctx, project, sha); !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if _, err := l.PutBlob(ctx, project, []byte("a")); err != nil {
			t.Errorf("%s, written again: %v", name, err)
		}
		if got, err := l.Blob(ctx, project, sha); err != nil || string(got) != "a" {
			t.Errorf("%s, written again: %q, %v", name, got, err)
		}
	}
	if _, err := l.PutBlob(ctx, project, make([]byte, 64<<20+1)); !fault.Is(err, fault.Invalid) {
		t.Errorf("a blob over the limit: %v", err)
	}
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	part := eventlog.ReceiptPart{Project: project, Seq: 3, Source: memory.SumString("s"), RawSHA256: memory.SumString("r"), Chunks: 2}
	rec := func(outcome string) eventlog.Receipt {
		r := eventlog.Receipt{Bucket: "transcripts", Key: "shop/a b/ü.jsonl", ETag: "e1", Outcome: outcome}
		if outcome == "admitted" {
			r.Parts = []eventlog.ReceiptPart{part}
			r.Counts = &memory.Counts{Lines: 9, Records: 8, Bad: 1}
		}
		return r
	}
	if _, found, err := l.Receipt(ctx, "transcripts", "shop/a b/ü.jsonl", "e1"); found || err != nil {
		t.Fatalf("%v, %v", found, err)
	}
	for _, step := range []struct{ put, want string }{
		{"refused", "refused"}, {"unsupported", "unsupported"}, {"admitted", "admitted"}, {"duplicate", "admitted"}, {"refused", "admitted"},
	} {
		if err := l.PutReceipt(ctx, rec(step.put)); err != nil {
			t.Fatal(err)
		}
		got, found, err := l.Receipt(ctx, "transcripts", "shop/a b/ü.jsonl", "e1")
		if err != nil || !found {
			t.Fatalf("%v, %v", found, err)
		}
		want := rec(step.want)
		want.V, want.Type, want.Level, want.At = 1, "receipt", "-", noon
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	id := eventlog.ReceiptID("transcripts", "shop/a b/ü.jsonl", "e1")
	if got, found, err := l.ReceiptByID(ctx, id); err != nil || !found || got.Outcome != "admitted" {
		t.Errorf("by id: %+v, %v, %v", got, found, err)
	}
	ids, err := l.ReceiptIDs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[memory.SHA]bool{id: true}, ids); diff != "" {
		t.Error(diff)
	}
	if _, found, err := l.Receipt(ctx, "transcripts", "shop/a b/ü.jsonl", "e2"); found || err != nil {
		t.Errorf("another version: %v, %v", found, err)
	}
	if err := l.PutReceipt(ctx, rec("perhaps")); !fault.Is(err, fault.Invalid) {
		t.Errorf("an unknown outcome: %v", err)
	}
	if _, err := b.Put(ctx, "receipts/local/"+string(id), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Receipt(ctx, "transcripts", "shop/a b/ü.jsonl", "e1"); !fault.Is(err, fault.Corrupt) {
		t.Errorf("damaged: %v", err)
	}
}

func TestReceiptIDKeepsFieldsApart(t *testing.T) {
	t.Parallel()
	seen := map[memory.SHA][3]string{}
	for _, f := range [][3]string{{"a", "b", "c"}, {"ab", "", "c"}, {"a", "b\",\"c", ""}, {"a", "bc", ""}, {"", "ab", "c"}, {"a", "<b>", "c"}, {"a", "\\u003cb>", "c"}} {
		id := eventlog.ReceiptID(f[0], f[1], f[2])
		if other, dup := seen[id]; dup {
			t.Errorf("%q and %q are one", f, other)
		}
		seen[id] = f
	}
}

// clock is a store's clock that a test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return noon.Add(time.Duration(c.at.Load())) }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

func TestLease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var c clock
	b, _ := bucketWith(memstore.Hooks{Now: c.now})
	one, two := eventlog.Open(b, tenant, "p1"), eventlog.Open(b, tenant, "p2")
	const name = "shop/" + stream
	x, err := one.Acquire(ctx, name, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if !x.Until().Equal(noon.Add(time.Minute)) || x.TTL() != time.Minute {
		t.Errorf("until %v", x.Until())
	}
	c.pass(20 * time.Second)
	for who, l := range map[string]*eventlog.Log{"another": two, "the same process": one} {
		_, err := l.Acquire(ctx, name, time.Minute)
		if !errors.Is(err, eventlog.ErrHeld) || !fault.Is(err, fault.Exhausted) || fault.RetryAfterOf(err) != 40*time.Second {
			t.Errorf("%s: %v, retry after %v", who, err, fault.RetryAfterOf(err))
		}
	}
	if err := x.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	c.pass(50 * time.Second) // past the first end, within the renewed
	if _, err := two.Acquire(ctx, name, time.Minute); !errors.Is(err, eventlog.ErrHeld) {
		t.Errorf("renewed: %v", err)
	}
	c.pass(10 * time.Second) // exactly its end
	y, err := two.Acquire(ctx, name, time.Minute)
	if err != nil {
		t.Fatalf("an ended lease: %v", err)
	}
	if err := x.Renew(ctx); !errors.Is(err, eventlog.ErrHeld) {
		t.Errorf("renewing a lost lease: %v", err)
	}
	if err := x.Release(ctx); err != nil {
		t.Errorf("releasing a lost lease: %v", err)
	}
	if _, err := one.Acquire(ctx, name, time.Minute); !errors.Is(err, eventlog.ErrHeld) {
		t.Errorf("the loser's release freed it: %v", err)
	}
	if err := y.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if z, err := one.Acquire(ctx, name, time.Minute); err != nil {
		t.Errorf("a released lease: %v", err)
	} else if err := y.Renew(ctx); !errors.Is(err, eventlog.ErrHeld) || z == nil {
		t.Errorf("renewing what was released and taken: %v", err)
	}
	if _, err := one.Acquire(ctx, "shop/other", time.Minute); err != nil {
		t.Errorf("another name: %v", err)
	}
	if _, err := one.Acquire(ctx, "shop/../x", time.Minute); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad name: %v", err)
	}
}

func TestLeaseReleaseFrees(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	x, err := eventlog.Open(b, tenant, "p1").Acquire(ctx, "n", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := eventlog.Open(b, tenant, "p2").Acquire(ctx, "n", time.Hour); err != nil {
		t.Error(err)
	}
}

// A killed process leaves its leases; the next one on the same folder, which it
// owns by an OS lock, does not wait for them. One on another folder does.
func TestLeaseOfEarlierProcess(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	if _, err := eventlog.Open(b, tenant, "p1", eventlog.WithFolder("f")).Acquire(ctx, "n", time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := eventlog.Open(b, tenant, "p2", eventlog.WithFolder("g")).Acquire(ctx, "n", time.Hour); !errors.Is(err, eventlog.ErrHeld) {
		t.Errorf("another folder: %v", err)
	}
	if _, err := eventlog.Open(b, tenant, "p3").Acquire(ctx, "n", time.Hour); !errors.Is(err, eventlog.ErrHeld) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := eventlog.Open(b, tenant, "p4", eventlog.WithFolder("f")).Acquire(ctx, "n", time.Hour); err != nil {
		t.Errorf("the same folder: %v", err)
	}
}

func TestLeaseOneWinner(t *testing.T) {
	t.Parallel()
	b := newBucket()
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := eventlog.Open(b, tenant, "p").Acquire(context.Background(), "n", time.Hour); err == nil {
				won.Add(1)
			} else if !errors.Is(err, eventlog.ErrHeld) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d winners", won.Load())
	}
}

// A renewal whose answer was lost is still ours.
func TestLeaseLostAnswer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var lose atomic.Bool
	var c clock
	b, _ := bucketWith(memstore.Hooks{Now: c.now, After: func(_ context.Context, call memstore.Call) error {
		if call.Op == memstore.OpPut && lose.Load() {
			return storeDown()
		}
		return nil
	}})
	x, err := eventlog.Open(b, tenant, "p").Acquire(ctx, "n", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c.pass(time.Second)
	lose.Store(true)
	if err := x.Renew(ctx); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v", err)
	}
	lose.Store(false)
	c.pass(time.Second)
	if err := x.Renew(ctx); err != nil {
		t.Errorf("renew after a lost answer: %v", err)
	}
	lose.Store(true)
	if err := x.Renew(ctx); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v", err)
	}
	lose.Store(false)
	if err := x.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := eventlog.Open(b, tenant, "q").Acquire(ctx, "n", time.Minute); err != nil {
		t.Errorf("not released: %v", err)
	}
}

// TestVectorsWithout: passages that the model has no vector for stand beside those
// that have one, whichever a second writer found bad, and go when they are dropped.
func TestVectorsWithout(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := eventlog.Open(newBucket(), tenant, "w")
	const space = "0a1b2c3d"
	p1, p2, p3 := memory.SumString("p1"), memory.SumString("p2"), memory.SumString("p3")
	v := eventlog.Vectors{Dims: 1, Passages: []memory.SHA{p1, p3}, Rows: []float32{1, 2}, Without: []memory.SHA{p2}}
	if err := l.PutVectors(ctx, project, space, stream, 1, v); err != nil {
		t.Fatal(err)
	}
	read := func(want eventlog.Vectors) {
		t.Helper()
		got, found, err := l.Vectors(ctx, project, space, stream, 1)
		if err != nil || !found {
			t.Fatalf("%t %v", found, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	read(v)
	for name, tc := range map[string]struct {
		w    eventlog.Vectors
		kind error
	}{
		"all of them": {eventlog.Vectors{Dims: 1, Passages: []memory.SHA{p1, p2, p3}, Rows: []float32{1, 5, 2}}, nil},
		"none":        {eventlog.Vectors{Dims: 1, Without: []memory.SHA{p1, p2, p3}}, nil},
		"one less":    {eventlog.Vectors{Dims: 1, Passages: []memory.SHA{p1, p3}, Rows: []float32{1, 2}}, fault.Conflict.Sentinel()},
	} {
		if err := l.PutVectors(ctx, project, space, stream, 1, tc.w); !errors.Is(err, tc.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	read(v)
	if n, err := l.DropVectors(ctx, project, space, stream, 1, func(p memory.SHA) bool { return p == p3 }); n != 2 || err != nil {
		t.Errorf("dropped %d, %v", n, err)
	}
	read(eventlog.Vectors{Dims: 1, Passages: []memory.SHA{p3}, Rows: []float32{2}})
}

func TestVectors(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	const space = "0a1b2c3d"
	v := eventlog.Vectors{Dims: 3, Passages: []memory.SHA{memory.SumString("p1"), memory.SumString("p2")}, Rows: []float32{1, -0.5, math.SmallestNonzeroFloat32, 0, math.MaxFloat32, 0.1}}
	if _, found, err := l.Vectors(ctx, project, space, stream, 1); found || err != nil {
		t.Fatalf("%v, %v", found, err)
	}
	if err := l.PutVectors(ctx, project, space, stream, 1, v); err != nil {
		t.Fatal(err)
	}
	got, found, err := l.Vectors(ctx, project, space, stream, 1)
	if err != nil || !found {
		t.Fatalf("%v, %v", found, err)
	}
	if diff := cmp.Diff(v, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float32{0, math.MaxFloat32, 0.1}, got.Row(1)); diff != "" {
		t.Error(diff)
	}
	// The first write stays; other numbers for the same passages are no error.
	w := v
	w.Rows = []float32{9, 9, 9, 9, 9, 9}
	if err := l.PutVectors(ctx, project, space, stream, 1, w); err != nil {
		t.Error(err)
	}
	if got, _, _ := l.Vectors(ctx, project, space, stream, 1); cmp.Diff(v, got) != "" {
		t.Error("the first write did not stay")
	}
	w.Passages = []memory.SHA{memory.SumString("p1"), memory.SumString("p3")}
	if err := l.PutVectors(ctx, project, space, stream, 1, w); !fault.Is(err, fault.Conflict) {
		t.Errorf("other passages: %v", err)
	}
	if err := l.PutVectors(ctx, project, space, stream, 2, eventlog.Vectors{Dims: 3}); err != nil {
		t.Errorf("no rows: %v", err)
	}
	if got, found, err := l.Vectors(ctx, project, space, stream, 2); err != nil || !found || len(got.Passages) != 0 || got.Dims != 3 {
		t.Errorf("no rows: %+v, %v, %v", got, found, err)
	}
	for name, bad := range map[string]eventlog.Vectors{
		"too few numbers": {Dims: 3, Passages: v.Passages, Rows: v.Rows[:5]},
		"NaN":             {Dims: 1, Passages: v.Passages[:1], Rows: []float32{float32(math.NaN())}},
		"infinity":        {Dims: 1, Passages: v.Passages[:1], Rows: []float32{float32(math.Inf(1))}},
		"bad passage":     {Dims: 1, Passages: []memory.SHA{"x"}, Rows: []float32{1}},
		"bad without":     {Dims: 1, Without: []memory.SHA{"x"}},
		"negative dims":   {Dims: -1},
	} {
		if err := l.PutVectors(ctx, project, space, stream, 3, bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for seq, want := range map[int64]bool{1: true, 2: true, 3: false} {
		if has, err := l.HasVectors(ctx, project, space, stream, seq); err != nil || has != want {
			t.Errorf("segment %d: %v, %v", seq, has, err)
		}
	}
	if err := l.PutVectors(ctx, project, space, stream, 4, eventlog.Vectors{Dims: 3}); err != nil {
		t.Fatal(err)
	}
	if head, err := l.VectorsHead(ctx, project, space, stream); err != nil || head != 2 {
		t.Errorf("head %d, %v; segment 3 is missing", head, err)
	}
	if spaces, err := l.VectorSpaces(ctx, project); err != nil || cmp.Diff([]string{space}, spaces) != "" {
		t.Errorf("spaces %v, %v", spaces, err)
	}
	// Every byte counts.
	key := "vector/local/shop/" + space + "/" + stream + "/00000000000000000001"
	data, _, err := b.ReadAll(ctx, key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		if _, err := b.Put(ctx, key, bad); err != nil {
			t.Fatal(err)
		}
		if _, _, err := l.Vectors(ctx, project, space, stream, 1); !fault.Is(err, fault.Corrupt) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
	// Bytes of another segment under this key are not its vectors.
	if _, err := b.Put(ctx, "vector/local/shop/"+space+"/"+stream+"/00000000000000000009", data); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.Vectors(ctx, project, space, stream, 9); !fault.Is(err, fault.Corrupt) {
		t.Errorf("another segment's: %v", err)
	}
}

func TestPointer(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	type serving struct {
		Streams map[string]string `json:"streams"`
	}
	var got serving
	etag, err := l.Pointer(ctx, "shop/questions", &got)
	if err != nil || etag != "" {
		t.Fatalf("%q, %v", etag, err)
	}
	one := serving{map[string]string{"decisions": "decisions@1"}}
	if err := l.SetPointer(ctx, "shop/questions", one, ""); err != nil {
		t.Fatal(err)
	}
	if etag, err = l.Pointer(ctx, "shop/questions", &got); err != nil || etag == "" {
		t.Fatalf("%q, %v", etag, err)
	}
	if diff := cmp.Diff(one, got); diff != "" {
		t.Error(diff)
	}
	other := eventlog.Open(b, tenant, "x")
	two := serving{map[string]string{"decisions": "decisions@2"}}
	if err := other.SetPointer(ctx, "shop/questions", two, ""); !fault.Is(err, fault.Conflict) {
		t.Errorf("create over it: %v", err)
	}
	if err := other.SetPointer(ctx, "shop/questions", two, etag); err != nil {
		t.Fatal(err)
	}
	if err := l.SetPointer(ctx, "shop/questions", one, etag); !fault.Is(err, fault.Conflict) {
		t.Errorf("a stale move: %v", err)
	}
	if err := other.SetPointer(ctx, "shop/questions", two, etag); err != nil {
		t.Errorf("the own move again: %v", err)
	}
	if _, err := l.Pointer(ctx, "Shop", &got); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad name: %v", err)
	}
}

func TestDeadLetters(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	d := eventlog.Dead{Function: "learn", EventType: "dev.mneme.object.created.v1", EventID: "e1", Subject: "shop/a.jsonl",
		Event: []byte(`{"a":"\ufffd"}`), Kind: "invalid", Error: "not UTF-8: \xff", Attempts: 4}
	for range 2 {
		if err := l.PutDead(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	d.EventID, d.Attempts = "e2", 1
	if err := l.PutDead(ctx, d); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, "ops/dead/local/zz.json", []byte("{")); err != nil {
		t.Fatal(err)
	}
	if err := eventlog.Open(b, "other", "w").PutDead(ctx, d); err != nil {
		t.Fatal(err)
	}
	got, bad := map[string]eventlog.Dead{}, 0
	for d, err := range l.DeadLetters(ctx) {
		if err != nil {
			bad++
			continue
		}
		got[d.EventID] = d
	}
	if len(got) != 2 || bad != 1 {
		t.Fatalf("%d letters, %d damaged", len(got), bad)
	}
	if e := got["e1"]; e.Attempts != 4 || !e.At.Equal(noon) || !e.ID.Valid() || string(e.Event) != `{"a":"\ufffd"}` || e.Error != "not UTF-8: \ufffd" {
		t.Errorf("%+v", e)
	}
}

func TestFoldCache(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := build(t, b, "w", 2, 3, stream)
	type state struct{ N int }
	read := func(l *eventlog.Log) (state, eventlog.Head, bool) {
		t.Helper()
		var s state
		h, ok, err := l.FoldCache(ctx, project, stream, &s)
		if err != nil {
			t.Fatal(err)
		}
		return s, h, ok
	}
	if _, _, ok := read(l); ok {
		t.Error("a cache of nothing")
	}
	head, err := l.Head(ctx, project, stream)
	if err != nil {
		t.Fatal(err)
	}
	first, err := l.Segment(ctx, project, stream, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []eventlog.Head{{Seq: 1, Hash: first.Hash}, head} {
		if err := l.PutFoldCache(ctx, project, stream, h, state{int(h.Seq)}); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*eventlog.Log{l, eventlog.Open(b, tenant, "x")} {
			if s, got, ok := read(r); !ok || got != h || s.N != int(h.Seq) {
				t.Errorf("%+v, %+v, %v", s, got, ok)
			}
		}
	}
	key := "derived/fold/local/shop/" + stream + ".json"
	data, _, err := b.ReadAll(ctx, key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"another value":   bytes.Replace(data, []byte(`"N":`), []byte(`"N":1`), 1),
		"another hash":    bytes.Replace(data, []byte(head.Hash), []byte(memory.SumString("x")), 1),
		"another version": bytes.Replace(data, []byte(`"v":1`), []byte(`"v":2`), 1),
		"another stream":  bytes.Replace(data, []byte("local/shop/"), []byte("local/ship/"), 1),
		"a later segment": bytes.Replace(data, []byte(`"seq":`), []byte(`"seq":9`), 1),
		"cut":             data[:len(data)/2],
	} {
		if _, err := b.Put(ctx, key, bad); err != nil {
			t.Fatal(err)
		}
		if _, _, ok := read(eventlog.Open(b, tenant, "x")); ok {
			t.Errorf("%s is believed", name)
		}
	}
	if err := l.PutFoldCache(ctx, project, stream, eventlog.Head{}, state{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a fold of nothing: %v", err)
	}
}
