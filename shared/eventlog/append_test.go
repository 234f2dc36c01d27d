package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

func gate(t int, reason string) *memory.Gate {
	return &memory.Gate{Level: memory.L1, T: t, Run: memory.SumString("run"), Chunk: memory.SumString("chunk"), FormatOK: true, Reason: reason}
}

func TestAppendAndRead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w1")
	var head eventlog.Head
	for n := 1; n <= 3; n++ {
		next, err := l.Append(ctx, project, stream, head, []eventlog.Record{gate(2*n-1, "a <b> & \u2028 é"), gate(2*n, "b")})
		if err != nil {
			t.Fatal(err)
		}
		if next.Seq != int64(n) || !next.Hash.Valid() {
			t.Fatalf("head %+v after %d", next, n)
		}
		head = next
	}
	for name, other := range map[string]*eventlog.Log{"same process": l, "another": eventlog.Open(b, tenant, "w2")} {
		got, err := other.Head(ctx, project, stream)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(head, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var steps []int
	prev := memory.SHA("")
	for seg, err := range l.Segments(ctx, project, stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seg.Header.Prev != prev {
			t.Errorf("segment %d: prev %q, want %q", seg.Header.Seq, seg.Header.Prev, prev)
		}
		prev = seg.Hash
		if seg.Header.Run != memory.SumString("run") || seg.Header.Count != 2 || seg.Header.Writer != "w1" || !seg.StoredAt.Equal(noon) {
			t.Errorf("header %+v at %v", seg.Header, seg.StoredAt)
		}
		for _, r := range seg.Records {
			g := r.(*memory.Gate)
			if g.V != 1 || g.Type != "gate" {
				t.Errorf("record %+v", g)
			}
			steps = append(steps, g.T)
		}
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4, 5, 6}, steps); diff != "" {
		t.Error(diff)
	}
}

func TestSegmentMissing(t *testing.T) {
	t.Parallel()
	l := eventlog.Open(newBucket(), tenant, "w")
	if _, err := l.Segment(context.Background(), project, stream, 1); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v", err)
	}
	if head, err := l.Head(context.Background(), project, stream); err != nil || head != (eventlog.Head{}) {
		t.Errorf("head of nothing: %+v, %v", head, err)
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	type args struct {
		project, stream string
		prev            eventlog.Head
		recs            []eventlog.Record
	}
	ok := []eventlog.Record{gate(1, "r")}
	evidence := func(change func(*memory.Evidence)) []eventlog.Record {
		text := "We keep blobs as zstd."
		sha := memory.SumString(text)
		e := &memory.Evidence{T: 1, Text: text, TextSHA: sha, Node: memory.NodeID(tenant, project, memory.L0, stream, sha),
			Span: memory.Span{Object: "transcripts/shop/a", Start: 3, End: 25, Codec: memory.CodecRaw, SHA256: sha, Chunk: memory.SumString("c")}}
		change(e)
		return []eventlog.Record{e}
	}
	mem := &memory.Memory{Level: memory.L1, T: 1, Text: "x", TextSHA: memory.SumString("x"),
		Node: memory.NodeID(tenant, project, memory.L1, stream, memory.SumString("x"))}
	erased := gate(1, "r")
	erased.Erased = memory.SumString("t")
	tests := []struct {
		name string
		args args
		want fault.Kind
	}{
		{"no records", args{project, stream, eventlog.Head{}, nil}, fault.Invalid},
		{"project", args{"Shop", stream, eventlog.Head{}, ok}, fault.Invalid},
		{"stream with a slash", args{project, "a/b", eventlog.Head{}, ok}, fault.Invalid},
		{"stream in upper case", args{project, "A", eventlog.Head{}, ok}, fault.Invalid},
		{"stream of 201 bytes", args{project, strings.Repeat("a", 201), eventlog.Head{}, ok}, fault.Invalid},
		{"stream of dots", args{project, "..", eventlog.Head{}, ok}, fault.Invalid},
		{"no level", args{project, stream, eventlog.Head{}, []eventlog.Record{&memory.Gate{Level: "L7"}}}, fault.Invalid},
		{"wrong type", args{project, stream, eventlog.Head{}, []eventlog.Record{&memory.Gate{Type: "run", Level: memory.L1}}}, fault.Invalid},
		{"newer version", args{project, stream, eventlog.Head{}, []eventlog.Record{&memory.Gate{V: 2, Level: memory.L1}}}, fault.Invalid},
		{"nil record", args{project, stream, eventlog.Head{}, []eventlog.Record{nil}}, fault.Invalid},
		{"a source record", args{project, stream, eventlog.Head{}, []eventlog.Record{&memory.Source{}}}, fault.Invalid},
		{"not UTF-8", args{project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "a\xffb")}}, fault.Invalid},
		{"number beyond 2^53", args{project, stream, eventlog.Head{}, []eventlog.Record{gate(1<<53, "r")}}, fault.Invalid},
		{"erased", args{project, stream, eventlog.Head{}, []eventlog.Record{erased}}, fault.Invalid},
		{"opaque without version", args{project, stream, eventlog.Head{}, []eventlog.Record{&eventlog.Opaque{Type: "x", Line: []byte(`{"type":"x","level":"-"}`)}}}, fault.Invalid},
		{"opaque without level", args{project, stream, eventlog.Head{}, []eventlog.Record{&eventlog.Opaque{Type: "x", Line: []byte(`{"v":1,"type":"x"}`)}}}, fault.Invalid},
		{"opaque of another type", args{project, stream, eventlog.Head{}, []eventlog.Record{&eventlog.Opaque{Type: "y", Line: []byte(`{"v":1,"type":"x","level":"-"}`)}}}, fault.Invalid},
		{"opaque in two lines", args{project, stream, eventlog.Head{}, []eventlog.Record{&eventlog.Opaque{Type: "x", Line: []byte("{\"v\":1,\n\"type\":\"x\",\"level\":\"-\"}")}}}, fault.Invalid},
		{"opaque number rounded", args{project, stream, eventlog.Head{}, []eventlog.Record{&eventlog.Opaque{Type: "x", Line: []byte(`{"v":1,"type":"x","level":"-","n":9007199254740993}`)}}}, fault.Invalid},
		{"evidence of another text", args{project, stream, eventlog.Head{}, evidence(func(e *memory.Evidence) { e.Text += "!" })}, fault.Invalid},
		{"evidence of another stream", args{project, "other", eventlog.Head{}, evidence(func(e *memory.Evidence) {})}, fault.Invalid},
		{"evidence without a span", args{project, stream, eventlog.Head{}, evidence(func(e *memory.Evidence) { e.Span.Object = "" })}, fault.Invalid},
		{"evidence without a chunk", args{project, stream, eventlog.Head{}, evidence(func(e *memory.Evidence) { e.Span.Chunk = "" })}, fault.Invalid},
		{"a memory without a parent", args{project, stream, eventlog.Head{}, []eventlog.Record{mem}}, fault.Invalid},
		{"head without hash", args{project, stream, eventlog.Head{Seq: 0, Hash: memory.SumString("x")}, ok}, fault.Invalid},
		{"head not in the log", args{project, stream, eventlog.Head{Seq: 7, Hash: memory.SumString("x")}, ok}, fault.Conflict},
		{"head with another hash", args{project, "one", eventlog.Head{Seq: 1, Hash: memory.SumString("x")}, ok}, fault.Conflict},
	}
	b := newBucket()
	seed := eventlog.Open(b, tenant, "seed")
	if _, err := seed.Append(ctx, project, "one", eventlog.Head{}, ok); err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := eventlog.Open(b, tenant, "w")
			_, err := l.Append(ctx, tt.args.project, tt.args.stream, tt.args.prev, tt.args.recs)
			if !fault.Is(err, tt.want) || err == nil {
				t.Errorf("got %v (%v), want %v", err, fault.KindOf(err), tt.want)
			}
		})
	}
	if _, err := eventlog.Open(b, tenant, "").Append(ctx, project, stream, eventlog.Head{}, ok); !fault.Is(err, fault.Invalid) {
		t.Errorf("no writer: %v", err)
	}
	t.Cleanup(func() {
		if s, err := seed.Streams(ctx, project); err != nil || len(s) != 1 {
			t.Errorf("a refused append left %v, %v", s, err)
		}
	})
}

// U+FFFD itself, and the letters of its escape, are text like any other.
func TestReplacementCharacterIsText(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l := eventlog.Open(newBucket(), tenant, "w")
	want := "a\ufffdb \\ufffd \\\\ufffd"
	if _, err := l.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, want)}); err != nil {
		t.Fatal(err)
	}
	seg, err := l.Segment(ctx, project, stream, 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, seg.Records[0].(*memory.Gate).Reason); diff != "" {
		t.Error(diff)
	}
}

// The loser of a race gets Conflict, reads, and starts again.
func TestAppendFence(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	one, two := eventlog.Open(b, tenant, "w1"), eventlog.Open(b, tenant, "w2")
	head, err := one.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "one")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "two")}); !fault.Is(err, fault.Conflict) {
		t.Fatalf("the loser got %v", err)
	}
	// Same records by another writer are another's write; by the same writer
	// they are its own earlier attempt.
	if _, err := two.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "one")}); !fault.Is(err, fault.Conflict) {
		t.Fatalf("another writer's equal records: %v", err)
	}
	again, err := one.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "one")})
	if err != nil || again != head {
		t.Fatalf("the own attempt again: %+v, %v", again, err)
	}
	if _, err := one.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "other")}); !fault.Is(err, fault.Conflict) {
		t.Fatalf("other records by the same writer: %v", err)
	}
	seen, err := two.Head(ctx, project, stream)
	if err != nil || seen != head {
		t.Fatalf("head %+v, %v", seen, err)
	}
	if _, err := two.Append(ctx, project, stream, seen, []eventlog.Record{gate(2, "two")}); err != nil {
		t.Fatal(err)
	}
}

// storeDown is how a driver says that it did not answer.
func storeDown() error { return fault.New(fault.Unavailable, "the store does not answer") }

// A write whose answer is lost took effect; one that failed before its effect
// did not. Append tells them apart, at once or when it is called again.
func TestAppendLostAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name          string
		before, after bool
		readsFail     bool
		wantFirst     bool // the first call succeeds
	}{
		{name: "lost answer", after: true, wantFirst: true},
		{name: "lost answer, store then down", after: true, readsFail: true},
		{name: "no effect", before: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			var broken atomic.Bool
			broken.Store(true)
			fail := func(on bool) func(context.Context, memstore.Call) error {
				return func(_ context.Context, c memstore.Call) error {
					if broken.Load() && (on && c.Op == memstore.OpPut || tt.readsFail && c.Op == memstore.OpGet) {
						return storeDown()
					}
					return nil
				}
			}
			b, _ := bucketWith(memstore.Hooks{Before: fail(tt.before), After: fail(tt.after)})
			l := eventlog.Open(b, tenant, "w")
			recs := []eventlog.Record{gate(1, "r")}
			first, err := l.Append(ctx, project, stream, eventlog.Head{}, recs)
			if (err == nil) != tt.wantFirst {
				t.Fatalf("first: %v", err)
			}
			if err != nil && !fault.Is(err, fault.Unavailable) {
				t.Fatalf("first: %v", err)
			}
			broken.Store(false)
			second, err := l.Append(ctx, project, stream, eventlog.Head{}, recs)
			if err != nil {
				t.Fatalf("second: %v", err)
			}
			if tt.wantFirst && first != second {
				t.Errorf("first %+v, second %+v", first, second)
			}
			if _, err := l.Segment(ctx, project, stream, 2); !fault.Is(err, fault.NotFound) {
				t.Errorf("a second segment: %v", err)
			}
		})
	}
}

// Many writers, a store that loses answers and fails at random: every append
// that was acknowledged is in the log exactly once and in order, none that was
// given up and not retried stands twice, and the log verifies.
func TestAppendUnderFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			rng := rand.New(rand.NewPCG(seed, 1))
			roll := func(p float64) bool {
				mu.Lock()
				defer mu.Unlock()
				return rng.Float64() < p
			}
			flaky := func(p float64) func(context.Context, memstore.Call) error {
				return func(context.Context, memstore.Call) error {
					if roll(p) {
						return storeDown()
					}
					return nil
				}
			}
			b, _ := bucketWith(memstore.Hooks{Before: flaky(0.1), After: flaky(0.1)})
			const writers, each = 6, 12
			acked := make([][]string, writers)
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					l := eventlog.Open(b, tenant, fmt.Sprintf("w%d", w))
					for n := range each {
						name := fmt.Sprintf("w%d-%d", w, n)
						if appendUntil(l, name) {
							acked[w] = append(acked[w], name)
						}
					}
				})
			}
			wg.Wait()
			want := map[string]bool{}
			for _, names := range acked {
				for _, n := range names {
					want[n] = true
				}
			}
			if len(want) != writers*each {
				t.Fatalf("%d of %d appends were acknowledged", len(want), writers*each)
			}
			got := map[string]int{}
			step := 0
			last := map[string]string{}
			for seg, err := range retrySegments(eventlog.Open(b, tenant, "reader")) {
				if err != nil {
					t.Fatal(err)
				}
				step++
				g := seg.Records[0].(*memory.Gate)
				if g.T != step {
					t.Fatalf("segment %d has step %d", seg.Header.Seq, g.T)
				}
				got[g.Reason]++
				if g.Reason < last[seg.Header.Writer] && len(g.Reason) == len(last[seg.Header.Writer]) {
					t.Errorf("%s after %s", g.Reason, last[seg.Header.Writer])
				}
				last[seg.Header.Writer] = g.Reason
			}
			for n := range want {
				if got[n] != 1 {
					t.Errorf("%s stands %d times", n, got[n])
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d segments, %d acknowledged", len(got), len(want))
			}
		})
	}
}

// appendUntil is what a function does: read the head, decide, append; on
// Conflict again from the new state; on Unavailable the same append again.
func appendUntil(l *eventlog.Log, name string) bool {
	ctx := context.Background()
	for range 400 {
		head, err := l.Head(ctx, project, stream)
		if err != nil {
			continue
		}
		recs := []eventlog.Record{gate(int(head.Seq)+1, name)}
		for range 50 {
			_, err = l.Append(ctx, project, stream, head, recs)
			if !fault.Is(err, fault.Unavailable) {
				break
			}
		}
		switch {
		case err == nil:
			return true
		case fault.Is(err, fault.Conflict):
		default:
			panic(err)
		}
	}
	return false
}

// retrySegments reads the stream through a store that fails now and then.
func retrySegments(l *eventlog.Log) func(func(eventlog.Segment, error) bool) {
	return func(yield func(eventlog.Segment, error) bool) {
		var after int64
		for range 2000 {
			failed := false
			for seg, err := range l.Segments(context.Background(), project, stream, after) {
				if fault.Is(err, fault.Unavailable) {
					failed = true
					break
				}
				if !yield(seg, err) {
					return
				}
				after = seg.Header.Seq
			}
			if !failed {
				return
			}
		}
		yield(eventlog.Segment{}, errors.New("the store never answers"))
	}
}

// A last segment that ends before its footer was never committed: it ends the
// stream, is set aside and replaced. One with a segment behind it is damage.
func TestTornSegment(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	whole := func(t *testing.T) []byte {
		b := newBucket()
		l := eventlog.Open(b, tenant, "dead")
		head, err := l.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "first")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Append(ctx, project, stream, head, []eventlog.Record{gate(2, "lost"), gate(3, "lost")}); err != nil {
			t.Fatal(err)
		}
		data, _, err := b.ReadAll(ctx, l.SegmentKey(project, stream, 2), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}(t)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	cuts := map[string][]byte{
		"nothing":                {},
		"half a header":          lines[0][:len(lines[0])/2],
		"header alone":           lines[0],
		"one record":             bytes.Join(lines[:2], nil),
		"half a record":          append(bytes.Join(lines[:2], nil), lines[2][:10]...),
		"half a footer":          whole[:len(whole)-20],
		"footer without newline": whole[:len(whole)-1],
		"zeros at the end":       append(bytes.Join(lines[:2], nil), make([]byte, 512)...),
	}
	for name, torn := range cuts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBucket()
			l := eventlog.Open(b, tenant, "w")
			head, err := l.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "first")})
			if err != nil {
				t.Fatal(err)
			}
			key := l.SegmentKey(project, stream, 2)
			if _, err := b.Put(ctx, key, torn); err != nil {
				t.Fatal(err)
			}
			for _, reader := range []*eventlog.Log{l, eventlog.Open(b, tenant, "r")} {
				if got, err := reader.Head(ctx, project, stream); err != nil || got != head {
					t.Fatalf("head %+v, %v; want %+v", got, err, head)
				}
			}
			if _, err := l.Segment(ctx, project, stream, 2); !fault.Is(err, fault.Corrupt) {
				t.Fatalf("the torn segment reads as %v", err)
			}
			rep, err := l.Verify(ctx, nil)
			if err != nil || rep.OK {
				t.Errorf("verify does not name the torn segment: %+v, %v", rep.Problems, err)
			}
			next, err := l.Append(ctx, project, stream, head, []eventlog.Record{gate(2, "second")})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := eventlog.Open(b, tenant, "r").Head(ctx, project, stream); err != nil || got != next {
				t.Fatalf("head %+v, %v; want %+v", got, err, next)
			}
			var dead []eventlog.Dead
			for d, err := range l.DeadLetters(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				dead = append(dead, d)
			}
			if len(dead) != 1 || dead[0].Key != key || !bytes.Equal(dead[0].Body, torn) {
				t.Errorf("dead letters: %+v", dead)
			}
		})
	}
	t.Run("with a segment behind it", func(t *testing.T) {
		t.Parallel()
		b := newBucket()
		l := build(t, b, "w", 1, 2, stream)
		key := l.SegmentKey(project, stream, 2)
		data, info, err := b.ReadAll(ctx, key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Put(ctx, key, data[:len(data)-30]); err != nil {
			t.Fatal(err)
		}
		fresh := eventlog.Open(b, tenant, "w3")
		var last error
		for _, err := range fresh.Segments(ctx, project, stream, 0) {
			last = err
		}
		if !fault.Is(last, fault.Corrupt) {
			t.Errorf("the walk ends with %v", last)
		}
		first, err := fresh.Segment(ctx, project, stream, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fresh.Append(ctx, project, stream, eventlog.Head{Seq: 1, Hash: first.Hash}, []eventlog.Record{gate(2, "x")}); !fault.Is(err, fault.Corrupt) {
			t.Errorf("append over it: %v", err)
		}
		if now, err := b.Head(ctx, key); err != nil || now.ETag == info.ETag || now.SizeBytes != info.SizeBytes-30 {
			t.Errorf("it was overwritten: %+v, %v", now, err)
		}
	})
}

// A segment that is whole but does not match its footer is damage, not a torn
// write: it is never overwritten.
func TestCorruptSegmentIsNotReplaced(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	if _, err := l.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "first")}); err != nil {
		t.Fatal(err)
	}
	key := l.SegmentKey(project, stream, 1)
	data, _, err := b.ReadAll(ctx, key, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Replace(data, []byte(`"first"`), []byte(`"fiRst"`), 1)
	if _, err := b.Put(ctx, key, bad); err != nil {
		t.Fatal(err)
	}
	_, err = eventlog.Open(b, tenant, "x").Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "other")})
	if !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), key) {
		t.Errorf("got %v", err)
	}
	now, _, err := b.ReadAll(ctx, key, 1<<20)
	if err != nil || !bytes.Equal(now, bad) {
		t.Errorf("it was overwritten: %v", err)
	}
}

func TestAppendAdmit(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var lost atomic.Bool
	b, _ := bucketWith(memstore.Hooks{
		After: func(_ context.Context, c memstore.Call) error {
			if c.Op == memstore.OpPut && lost.Load() {
				return storeDown()
			}
			return nil
		},
		Before: func(_ context.Context, c memstore.Call) error {
			if c.Op == memstore.OpGet && lost.Load() {
				return storeDown()
			}
			return nil
		},
	})
	l := eventlog.Open(b, tenant, "w")
	in := memory.Admit{Source: memory.SumString("s1"), RawSHA256: memory.SumString("r1"), Object: "transcripts/shop/a", Chunks: 2, To: 10}
	a, head, err := l.AppendAdmit(ctx, project, eventlog.Head{}, in)
	if err != nil {
		t.Fatal(err)
	}
	want := in
	want.V, want.Type, want.Level, want.Tenant, want.Project, want.Seq, want.StoredAt = 1, "admit", "-", tenant, project, 1, noon
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	if head.Seq != 1 {
		t.Errorf("head %+v", head)
	}
	// The answer is lost and the store is down; later the same call gives the
	// line that was stored.
	in2 := memory.Admit{Source: memory.SumString("s2"), RawSHA256: memory.SumString("r2")}
	lost.Store(true)
	if _, _, err := l.AppendAdmit(ctx, project, head, in2); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v", err)
	}
	lost.Store(false)
	a2, head2, err := l.AppendAdmit(ctx, project, head, in2)
	if err != nil || a2.Seq != 2 || head2.Seq != 2 {
		t.Fatalf("%+v %+v %v", a2, head2, err)
	}
	// Another part at the same place loses.
	if _, _, err := eventlog.Open(b, tenant, "v").AppendAdmit(ctx, project, head, memory.Admit{Source: memory.SumString("s3"), RawSHA256: memory.SumString("r3")}); !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v", err)
	}
	if _, _, err := l.AppendAdmit(ctx, project, head2, memory.Admit{Source: "x"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("a line without source: %v", err)
	}
	var seqs []int64
	for line, err := range l.Admits(ctx, project, 1) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, line.Seq)
	}
	if diff := cmp.Diff([]int64{2}, seqs); diff != "" {
		t.Error(diff)
	}
}
