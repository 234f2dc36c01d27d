package eventlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

// Every byte of a segment is covered: whichever one changes, the segment no
// longer reads, or it reads as what it was.
func TestSegmentEveryByteCounts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	build(t, b, "w", 1, 3, stream)
	data, _, err := b.ReadAll(ctx, l.SegmentKey(project, stream, 2), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	h := eventlog.Header{Tenant: tenant, Project: project, Stream: stream, Seq: 2}
	want, err := eventlog.ParseSegment(data, h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		for _, flip := range []byte{0x01, 0x20, 0x80} {
			bad := bytes.Clone(data)
			bad[i] ^= flip
			got, err := eventlog.ParseSegment(bad, h)
			if err == nil && (got.Hash != want.Hash || cmp.Diff(want.Records, got.Records) != "") {
				t.Fatalf("byte %d (%q) ^ %#02x goes unnoticed", i, data[i], flip)
			}
		}
	}
	for i := range data {
		if _, err := eventlog.ParseSegment(data[:i], h); err == nil {
			t.Fatalf("the first %d of %d bytes read as a segment", i, len(data))
		}
	}
}

// reseal gives the bytes of a segment with other lines and a right footer.
func reseal(t *testing.T, lines ...string) []byte {
	t.Helper()
	var out, chain bytes.Buffer
	for _, line := range lines {
		out.WriteString(line + "\n")
		sealed, _, err := eventlog.Seal(nil, []byte(line))
		if err != nil {
			t.Fatal(err)
		}
		chain.Write(append(sealed, '\n'))
	}
	fmt.Fprintf(&out, `{"v":1,"type":"footer","level":"-","sha256":"%s"}`+"\n", memory.Sum(chain.Bytes()))
	return out.Bytes()
}

func header(count int) string {
	return fmt.Sprintf(`{"v":1,"type":"header","level":"-","tenant":"local","project":"shop","stream":"decisions@0a1b2c3d","seq":1,"prev":"","run":"","writer":"w","count":%d}`, count)
}

func TestSegmentRefused(t *testing.T) {
	t.Parallel()
	note := `{"v":1,"type":"note","level":"-"}`
	tests := []struct {
		name  string
		lines []string
		want  string // in the message; "" means accepted
	}{
		{"as it should be", []string{header(1), note}, ""},
		{"count", []string{header(2), note}, "counts 2"},
		{"another stream", []string{strings.Replace(header(1), "decisions", "causes", 1), note}, "header is of"},
		{"another tenant", []string{strings.Replace(header(1), "local", "other", 1), note}, "header is of"},
		{"another seq", []string{strings.Replace(header(1), `"seq":1`, `"seq":2`, 1), note}, "header is of"},
		{"prev at the start", []string{strings.Replace(header(1), `"prev":""`, `"prev":"`+strings.Repeat("a", 64)+`"`, 1), note}, "prev"},
		{"no header", []string{note, note}, "not a header"},
		{"newer header", []string{strings.Replace(header(1), `"v":1`, `"v":2`, 1), note}, "newer mem"},
		{"newer record", []string{header(1), `{"v":2,"type":"note","level":"-"}`}, "newer mem"},
		{"newer gate", []string{header(1), `{"v":2,"type":"gate","level":"L1"}`}, "newer mem"},
		{"no version", []string{header(1), `{"type":"note"}`}, "no version"},
		{"not an object", []string{header(1), `[1]`}, "no record"},
		{"wrong field type", []string{header(1), `{"v":1,"type":"gate","level":"L1","t":"one"}`}, "field t"},
		{"type not first", []string{header(1), `{"type":"gate","t":3,"v":1,"level":"L1"}`}, ""},
		{"a field more", []string{header(1), `{"v":1,"type":"gate","level":"L1","t":3,"wind":"north"}`}, ""},
		{"a header field more", []string{strings.Replace(header(1), `"v":1`, `"v":1,"epoch":7`, 1), note}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := eventlog.ParseSegment(reseal(t, tt.lines...), eventlog.Header{Tenant: tenant, Project: project, Stream: stream, Seq: 1})
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "key:") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if fault.HintOf(err) == "" {
				t.Errorf("%v: no hint that cures", err)
			}
		})
	}
}

// What this program does not know is kept byte for byte: types as Opaque,
// fields in the segment's lines.
func TestUnknownIsKept(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	label := `{ "v":1, "type":"label","level":"-","by":"human","score":1.50,"text":"\u0041 wörd","z":{"b":1,"a":[]} }`
	gate := `{"v":1,"type":"gate","level":"L1","t":7,"chunk":"c","wind":"north","reason":"r"}`
	head, err := l.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{
		&eventlog.Opaque{Type: "label", Line: []byte(label)},
		&eventlog.Opaque{Type: "gate", Line: []byte(gate)},
	})
	if err != nil {
		t.Fatal(err)
	}
	seg, err := l.Segment(ctx, project, stream, 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{label, gate}, []string{string(seg.Lines[0]), string(seg.Lines[1])}); diff != "" {
		t.Error(diff)
	}
	if o, ok := seg.Records[0].(*eventlog.Opaque); !ok || o.Type != "label" || string(o.Line) != label {
		t.Errorf("the label reads as %+v", seg.Records[0])
	}
	if g, ok := seg.Records[1].(*memory.Gate); !ok || g.T != 7 {
		t.Errorf("the gate reads as %+v", seg.Records[1])
	}
	// Written again from its lines, in another log, it is the same segment but
	// for the header: the records hash the same.
	again := eventlog.Open(newBucket(), tenant, "w")
	recs := []eventlog.Record{&eventlog.Opaque{Type: "label", Line: seg.Lines[0]}, &eventlog.Opaque{Type: "gate", Line: seg.Lines[1]}}
	got, err := again.Append(ctx, project, stream, eventlog.Head{}, recs)
	if err != nil || got != head {
		t.Errorf("got %+v, %v; want %+v", got, err, head)
	}
}

// An erased record is its sealed form plus `erased`: segment, chain and hashes
// stay what they were, the text is gone, and readers see none.
func TestErase(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := build(t, b, "w", 2, 4, stream)
	before, hashes, err := l.LogHash(ctx)
	if err != nil {
		t.Fatal(err)
	}
	head, err := l.Head(ctx, project, stream)
	if err != nil {
		t.Fatal(err)
	}
	tomb := memory.SumString("tombstone")
	n, total := 0, 0
	for seq := int64(1); seq <= head.Seq; seq++ {
		k, err := l.Erase(ctx, project, stream, seq, tomb, func(eventlog.Record) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		n += k
		again, err := l.Erase(ctx, project, stream, seq, tomb, func(eventlog.Record) bool { return true })
		if err != nil || again != 0 {
			t.Errorf("erased again: %d, %v", again, err)
		}
	}
	fresh := eventlog.Open(b, tenant, "x")
	for seg, err := range fresh.Segments(ctx, project, stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		total += len(seg.Records)
		for i, r := range seg.Records {
			switch r := r.(type) {
			case *memory.Evidence:
				if r.Text != "" || r.Erased != tomb || !r.TextSHA.Valid() {
					t.Errorf("evidence %+v", r)
				}
			case *memory.Memory:
				if r.Text != "" || r.Erased != tomb {
					t.Errorf("memory %+v", r)
				}
			case *memory.Gate:
				if r.Reason != "" || r.Erased != tomb {
					t.Errorf("gate %+v", r)
				}
			case *memory.Run:
				if r.Question != "" || r.Erased != tomb {
					t.Errorf("run %+v", r)
				}
			}
			if bytes.Contains(seg.Lines[i], []byte("We keep rule")) || bytes.Contains(seg.Lines[i], []byte("decided")) {
				t.Errorf("a text is left: %s", seg.Lines[i])
			}
		}
	}
	if n != total {
		t.Errorf("%d of %d records erased", n, total)
	}
	if got, err := fresh.Head(ctx, project, stream); err != nil || got != head {
		t.Errorf("head %+v, %v; want %+v", got, err, head)
	}
	after, hashesAfter, err := fresh.LogHash(ctx)
	if err != nil || after != before {
		t.Errorf("log hash %s, %v; want %s", after, err, before)
	}
	if diff := cmp.Diff(hashes, hashesAfter); diff != "" {
		t.Error(diff)
	}
	rep, err := fresh.Verify(ctx, nil)
	if err != nil || !rep.OK {
		t.Errorf("verify: %v, %v", rep.Problems, err)
	}
	// A text put back is another text: the footer does not match.
	seg, err := fresh.Segment(ctx, project, stream, 1)
	if err != nil {
		t.Fatal(err)
	}
	var one map[string]any
	if err := json.Unmarshal(seg.Lines[0], &one); err != nil {
		t.Fatal(err)
	}
	delete(one, "erased")
	one["question"] = "another question?"
	line, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	data, _, err := b.ReadAll(ctx, fresh.SegmentKey(project, stream, 1), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Replace(data, seg.Lines[0], line, 1)
	if _, err := eventlog.ParseSegment(forged, seg.Header); !fault.Is(err, fault.Corrupt) {
		t.Errorf("a forged text: %v", err)
	}
}

func TestChainBroken(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "w")
	var head eventlog.Head
	var err error
	for n := 1; n <= 3; n++ {
		if head, err = l.Append(ctx, project, stream, head, []eventlog.Record{gate(n, "r")}); err != nil {
			t.Fatal(err)
		}
	}
	// Segment 2 of another history, whole in itself.
	other := eventlog.Open(newBucket(), tenant, "v")
	ohead, err := other.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "else")})
	if err != nil {
		t.Fatal(err)
	}
	b2 := newBucket()
	seed := eventlog.Open(b2, tenant, "v")
	if _, err := seed.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{gate(1, "else")}); err != nil {
		t.Fatal(err)
	}
	if _, err := seed.Append(ctx, project, stream, ohead, []eventlog.Record{gate(2, "else")}); err != nil {
		t.Fatal(err)
	}
	data, _, err := b2.ReadAll(ctx, seed.SegmentKey(project, stream, 2), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(ctx, l.SegmentKey(project, stream, 2), data); err != nil {
		t.Fatal(err)
	}
	fresh := eventlog.Open(b, tenant, "x")
	var seqs []int64
	var last error
	for seg, err := range fresh.Segments(ctx, project, stream, 0) {
		if last = err; err == nil {
			seqs = append(seqs, seg.Header.Seq)
		}
	}
	if !fault.Is(last, fault.Corrupt) || !slices.Equal(seqs, []int64{1}) {
		t.Errorf("walk gave %v, then %v", seqs, last)
	}
}

// The end of a long stream is found with few calls.
func TestHeadOfLongStream(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, n := range []int{999, 1000, 1001, 1999, 3217} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			b, _ := bucketWith(memstore.Hooks{Before: func(context.Context, memstore.Call) error { calls.Add(1); return nil }})
			l := eventlog.Open(b, tenant, "w")
			var head eventlog.Head
			var err error
			for i := 1; i <= n; i++ {
				if head, err = l.Append(ctx, project, stream, head, []eventlog.Record{gate(i, "")}); err != nil {
					t.Fatal(err)
				}
			}
			calls.Store(0)
			got, err := eventlog.Open(b, tenant, "x").Head(ctx, project, stream)
			if err != nil || got != head {
				t.Errorf("head %+v, %v; want %+v", got, err, head)
			}
			if c := calls.Load(); c > 30 {
				t.Errorf("%d calls", c)
			}
			calls.Store(0)
			if got, err = l.Head(ctx, project, stream); err != nil || got != head || calls.Load() != 1 {
				t.Errorf("warm head %+v, %v, %d calls", got, err, calls.Load())
			}
		})
	}
}

func TestProjectsAndStreams(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var lists atomic.Int64
	b, _ := bucketWith(memstore.Hooks{Before: func(_ context.Context, c memstore.Call) error {
		if c.Op == memstore.OpList {
			lists.Add(1)
		}
		return nil
	}})
	l := eventlog.Open(b, tenant, "w")
	other := eventlog.Open(b, "local2", "w")
	if p, err := l.Projects(ctx); err != nil || len(p) != 0 {
		t.Errorf("projects of nothing: %v, %v", p, err)
	}
	for _, p := range []string{"a", "a.b", "a-b", "a0", "ab", "z"} {
		for _, s := range []string{"q@00000000", "q@00000000.1", "_synthesis@00000000", "adhoc-00000000"} {
			if _, err := l.Append(ctx, p, s, eventlog.Head{}, []eventlog.Record{gate(1, "")}); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := l.AppendAdmit(ctx, p, eventlog.Head{}, memory.Admit{Source: memory.SumString("s"), RawSHA256: memory.SumString("r")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Append(ctx, "foreign", stream, eventlog.Head{}, []eventlog.Record{gate(1, "")}); err != nil {
		t.Fatal(err)
	}
	lists.Store(0)
	got, err := l.Projects(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "a-b", "a.b", "a0", "ab", "z"}, got); diff != "" {
		t.Error(diff)
	}
	if n := lists.Load(); n > 7 {
		t.Errorf("%d LIST calls for 6 projects", n)
	}
	streams, err := l.Streams(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"_synthesis@00000000", "adhoc-00000000", "q@00000000", "q@00000000.1"}, streams); diff != "" {
		t.Error(diff)
	}
}

// FuzzSegment: no bytes crash the reader, and what it accepts, it accepts for
// its footer.
func FuzzSegment(f *testing.F) {
	b := newBucket()
	l := build(f, b, "w", 1, 100, stream)
	data, _, err := b.ReadAll(context.Background(), l.SegmentKey(project, stream, 1), 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("{}\n{}\n"))
	h := eventlog.Header{Tenant: tenant, Project: project, Stream: stream, Seq: 1}
	f.Fuzz(func(t *testing.T, in []byte) {
		seg, err := eventlog.ParseSegment(in, h)
		if err != nil {
			if !fault.Is(err, fault.Corrupt) {
				t.Fatalf("kind %v: %v", fault.KindOf(err), err)
			}
			return
		}
		if len(seg.Records) != seg.Header.Count || seg.Hash != seg.Footer.SHA256 {
			t.Fatalf("accepted: %+v", seg.Header)
		}
	})
}
