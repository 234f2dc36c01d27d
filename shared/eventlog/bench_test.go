package eventlog_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/memory"
)

// fifty is a segment as the loop writes it: 50 records, of which most are gate
// records, and a memory now and then.
func fifty(b *testing.B) []eventlog.Record {
	b.Helper()
	l := eventlog.Open(newBucket(), tenant, "w")
	p := &loop{stream: stream}
	var recs []eventlog.Record
	for n := 1; len(recs) < 50; n++ {
		a, cs := admit(b, l, n, 20)
		recs = append(recs, p.fold(a, cs)...)
	}
	return recs[:50]
}

func BenchmarkAppend(b *testing.B) {
	recs := fifty(b)
	ctx := context.Background()
	b.Run("50-records", func(b *testing.B) {
		b.ReportAllocs()
		l := eventlog.Open(newBucket(), tenant, "w")
		var head eventlog.Head
		var err error
		for b.Loop() {
			if head, err = l.Append(ctx, project, stream, head, recs); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/50, "µs/record")
	})
}

func BenchmarkSegments(b *testing.B) {
	recs := fifty(b)
	ctx := context.Background()
	bucket := newBucket()
	l := eventlog.Open(bucket, tenant, "w")
	var head eventlog.Head
	var err error
	for range 20 {
		if head, err = l.Append(ctx, project, stream, head, recs); err != nil {
			b.Fatal(err)
		}
	}
	var size int64
	for info, err := range bucket.List(ctx, "log/") {
		if err != nil {
			b.Fatal(err)
		}
		size += info.SizeBytes
	}
	b.Run("20x50-records", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(size)
		for b.Loop() {
			for _, err := range l.Segments(ctx, project, stream, 0) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkLogHash(b *testing.B) {
	ctx := context.Background()
	l := eventlog.Open(newBucket(), tenant, "w")
	for s := range 4 {
		var head eventlog.Head
		for from := 1; from <= 2500; from += 100 {
			recs := make([]eventlog.Record, 100)
			for i := range recs {
				recs[i] = gateOf(from + i)
			}
			var err error
			if head, err = l.Append(ctx, project, fmt.Sprintf("q%d@00000000", s), head, recs); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("10k-gates", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := l.LogHash(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// gateOf is a gate record of the usual size.
func gateOf(t int) *memory.Gate {
	score := 0.25
	sha := memory.SumString(fmt.Sprint(t))
	return &memory.Gate{
		Level: memory.L1, T: t, TotalT: 2500, Run: memory.SumString("run"), QueryID: "decisions", Admit: 3, I: t, Chunk: sha, End: 20_000,
		FormatOK: true, Attempt: 1, Reason: "no cue of a decision, rule or cause stands in the chunk", ReasonCode: "closed", Score: &score,
		Policy: "extractive/x1", PromptVersion: "-", MemoryBeforeSHA: sha, MemorySHA: sha, PromptTokensOwn: 4980, MemoryTokens: 512, LatencyMS: 0.412,
	}
}

func BenchmarkVerify(b *testing.B) {
	l := build(b, newBucket(), "w", 50, 20, stream, second)
	b.Run("50-parts-2-streams", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			rep, err := l.Verify(context.Background(), nil)
			if err != nil || !rep.OK {
				b.Fatal(rep.Problems, err)
			}
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	line, err := eventlog.EncodeRecord(gateOf(7))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("gate", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(line)))
		buf := make([]byte, 0, 4096)
		for b.Loop() {
			if buf, _, err = eventlog.Seal(buf[:0], line); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("gate-by-jcs-library", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(line)))
		for b.Loop() {
			if _, err := jcs.Transform(line); err != nil {
				b.Fatal(err)
			}
		}
	})
}
