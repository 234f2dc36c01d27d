package eventlog_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

const second = "causes@11111111"

func hashes(t *testing.T, l *eventlog.Log) (memory.SHA, map[string]memory.SHA) {
	t.Helper()
	all, each, err := l.LogHash(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return all, each
}

// The hashes are those of what was decided: how records are cut into segments,
// who wrote them and when, what a step cost and what it gave as reason are not
// in them.
func TestHashesSeeDecisionsOnly(t *testing.T) {
	t.Parallel()
	want, wantEach := hashes(t, build(t, newBucket(), "w1", 4, 1000, stream, second))
	for _, per := range []int{1, 2, 7} {
		got, gotEach := hashes(t, build(t, newBucket(), "w2", 4, per, second, stream))
		if got != want {
			t.Errorf("%d records a segment: %s, want %s", per, got, want)
		}
		if diff := cmp.Diff(wantEach, gotEach); diff != "" {
			t.Error(diff)
		}
	}
	l := build(t, newBucket(), "w", 4, 5, stream, second)
	for name := range wantEach {
		_, s, _ := strings.Cut(name, "/")
		if got, err := l.StreamHash(context.Background(), project, s); err != nil || got != wantEach[name] {
			t.Errorf("%s: %s, %v; want %s", name, got, err, wantEach[name])
		}
	}
}

func TestStreamHashFields(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	base := memory.Gate{Level: memory.L1, T: 1, Run: memory.SumString("run"), Chunk: memory.SumString("c"), Start: 0, End: 10,
		Update: true, FormatOK: true, Reason: "r", ReasonCode: "kept", MemorySHA: memory.SumString("m")}
	sum := func(change func(*memory.Gate)) memory.SHA {
		g := base
		change(&g)
		l := eventlog.Open(newBucket(), tenant, "w")
		if _, err := l.Append(ctx, project, stream, eventlog.Head{}, []eventlog.Record{&g}); err != nil {
			t.Fatal(err)
		}
		s, err := l.StreamHash(ctx, project, stream)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := sum(func(*memory.Gate) {})
	in := map[string]func(*memory.Gate){
		"t": func(g *memory.Gate) { g.T = 2 }, "chunk": func(g *memory.Gate) { g.Chunk = memory.SumString("d") },
		"start": func(g *memory.Gate) { g.Start = 1 }, "end": func(g *memory.Gate) { g.End = 11 },
		"update": func(g *memory.Gate) { g.Update = false }, "exit": func(g *memory.Gate) { g.Exit = true },
		"format_ok": func(g *memory.Gate) { g.FormatOK = false }, "memory_sha": func(g *memory.Gate) { g.MemorySHA = "" },
	}
	for name, change := range in {
		if sum(change) == want {
			t.Errorf("%s is not in the hash", name)
		}
	}
	score := 0.5
	out := map[string]func(*memory.Gate){
		"run": func(g *memory.Gate) { g.Run = memory.SumString("x") }, "reason": func(g *memory.Gate) { g.Reason = "x" },
		"latency": func(g *memory.Gate) { g.LatencyMS = 812 }, "cost": func(g *memory.Gate) { g.CostUSD = 0.1 },
		"tokens": func(g *memory.Gate) { g.PromptTokens = 7 }, "score": func(g *memory.Gate) { g.Score = &score },
		"newest": func(g *memory.Gate) { g.Newest = noon }, "model": func(g *memory.Gate) { g.Model = "m" },
		"attempt": func(g *memory.Gate) { g.Attempt = 2 },
	}
	for name, change := range out {
		if sum(change) != want {
			t.Errorf("%s is in the hash", name)
		}
	}
}

// Of an L2 stream only the last completed run over the present memories counts,
// however many runs went before.
func TestSynthesisHash(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const l2 = "_synthesis@22222222"
	// final gives the last memory of a question stream.
	final := func(l *eventlog.Log, s string) memory.SHA {
		var sha memory.SHA
		for seg, err := range l.Segments(ctx, project, s, 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range seg.Records {
				if m, ok := r.(*memory.Memory); ok {
					sha = m.TextSHA
				}
			}
		}
		return sha
	}
	type run struct {
		inputs []memory.SHA
		ended  bool
	}
	hash := func(runs func(now []memory.SHA) []run) (memory.SHA, memory.SHA) {
		l := build(t, newBucket(), "w", 2, 4, stream, second)
		now := []memory.SHA{final(l, second), final(l, stream)}
		var recs []eventlog.Record
		step := 0
		for i, r := range runs(now) {
			id := memory.SumString(fmt.Sprint(l2, i, r.inputs))
			recs = append(recs, &memory.Run{Level: memory.L2, Run: id, Stream: l2, Cause: memory.Cause{Kind: "synthesis"}, T: step, Policy: "p", PromptVersion: "-"})
			mem := memory.SHA("")
			for n, in := range r.inputs {
				step++
				before := mem
				mem = memory.SumString(fmt.Sprint(mem, in))
				recs = append(recs, &memory.Gate{Level: memory.L2, T: step, Run: id, I: n, Chunk: in, End: 9, Update: true, FormatOK: true, MemoryBeforeSHA: before, MemorySHA: mem})
			}
			if r.ended {
				recs = append(recs, &memory.RunEnd{Level: memory.L2, Run: id, T: step, MemorySHA: mem})
			}
		}
		cut(t, l, l2, eventlog.Head{}, recs, 2)
		one, err := l.StreamHash(ctx, project, l2)
		if err != nil {
			t.Fatal(err)
		}
		_, each := hashes(t, l)
		return one, each[project+"/"+l2]
	}
	stale := []memory.SHA{memory.SumString("old"), memory.SumString("older")}
	want, _ := hash(func(now []memory.SHA) []run { return []run{{now, true}} })
	empty, _ := hash(func(now []memory.SHA) []run { return nil })
	for name, tt := range map[string]struct {
		runs func(now []memory.SHA) []run
		want memory.SHA
	}{
		"after stale ones":     {func(now []memory.SHA) []run { return []run{{stale, true}, {stale[:1], true}, {now, true}} }, want},
		"before a stale one":   {func(now []memory.SHA) []run { return []run{{now, true}, {stale, true}} }, want},
		"after an unended one": {func(now []memory.SHA) []run { return []run{{now[:1], false}, {now, true}} }, want},
		"unended itself":       {func(now []memory.SHA) []run { return []run{{now, false}} }, empty},
		"only stale":           {func(now []memory.SHA) []run { return []run{{stale, true}} }, empty},
	} {
		one, all := hash(tt.runs)
		if one != tt.want || all != tt.want {
			t.Errorf("%s: stream hash %s, in log hash %s; want %s", name, one, all, tt.want)
		}
	}
	if want == empty {
		t.Error("the run is not in the hash")
	}
}

func TestVerifyClean(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBucket()
	l := build(t, b, "w", 5, 4, stream, second)
	for seq := int64(1); seq <= 2; seq++ {
		if err := l.PutVectors(ctx, project, "0a1b2c3d", stream, seq, eventlog.Vectors{Dims: 1, Passages: []memory.SHA{memory.SumString("p")}, Rows: []float32{1}}); err != nil {
			t.Fatal(err)
		}
	}
	last := 0
	rep, err := l.Verify(ctx, func(done int) {
		if done != last+1 {
			t.Errorf("progress %d after %d", done, last)
		}
		last = done
	})
	if err != nil {
		t.Fatal(err)
	}
	if !rep.OK || len(rep.Problems) != 0 {
		t.Errorf("problems: %v", rep.Problems)
	}
	all, each := hashes(t, l)
	if rep.LogHash != all {
		t.Errorf("log hash %s, want %s", rep.LogHash, all)
	}
	if diff := cmp.Diff(each, rep.Streams); diff != "" {
		t.Error(diff)
	}
	want := map[string]int{"projects": 1, "streams": 2, "segments": 5 + 2*12, "admits": 5, "chunks": 15, "runs": 10, "open_runs": 0,
		"gates": 30, "evidence": 20, "memories": 20, "erased": 0, "opaque": 0, "vectors": 2, "rows": 2}
	if diff := cmp.Diff(want, rep.Counts); diff != "" {
		t.Error(diff)
	}
	if last == 0 {
		t.Error("no progress was told")
	}
}

func TestVerifyEmpty(t *testing.T) {
	t.Parallel()
	rep, err := eventlog.Open(newBucket(), tenant, "w").Verify(context.Background(), nil)
	if err != nil || !rep.OK {
		t.Errorf("%+v, %v", rep, err)
	}
	if rep.LogHash != memory.SumString("") {
		t.Errorf("the hash of no stream is %s", rep.LogHash)
	}
}

// A store that goes away is an error, not a clean report.
func TestVerifyStoreDown(t *testing.T) {
	t.Parallel()
	n := 0
	down := 1 << 30
	b, _ := bucketWith(memstore.Hooks{Before: func(context.Context, memstore.Call) error {
		if n++; n > down {
			return storeDown()
		}
		return nil
	}})
	l := build(t, b, "w", 1, 4, stream)
	for after := range 12 {
		n, down = 0, after
		if _, err := eventlog.Open(b, tenant, "v").Verify(context.Background(), nil); !fault.Is(err, fault.Unavailable) {
			t.Errorf("after %d calls: %v", after, err)
		}
	}
	n, down = 0, 1<<30
	if rep, err := l.Verify(context.Background(), nil); err != nil || !rep.OK {
		t.Errorf("%v, %v", rep.Problems, err)
	}
}

// rewrite changes an object.
func rewrite(t *testing.T, b *objstore.Bucket, key string, change func([]byte) []byte) {
	t.Helper()
	ctx := context.Background()
	data, _, err := b.ReadAll(ctx, key, 1<<26)
	if err != nil {
		t.Fatal(err)
	}
	changed := change(bytes.Clone(data))
	if bytes.Equal(changed, data) {
		t.Fatalf("%s: nothing changed", key)
	}
	if _, err := b.Put(ctx, key, changed); err != nil {
		t.Fatal(err)
	}
}

// Damage of every kind is found, and named by key and line.
func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	seg := func(n int) string { return fmt.Sprintf("log/local/shop/questions/%s/%020d.jsonl", stream, n) }
	admits := func(n int) string { return fmt.Sprintf("log/local/shop/admit/%020d.jsonl", n) }
	blob := "blob/local/shop/" + string(memory.SumString(chunkText(1, 0)))
	vec := fmt.Sprintf("vector/local/shop/0a1b2c3d/%s/%020d", stream, 1)
	find := func(t *testing.T, b *objstore.Bucket, prefix string) string {
		for info, err := range b.List(ctx, prefix) {
			if err != nil {
				t.Fatal(err)
			}
			return info.Key
		}
		t.Fatalf("nothing under %s", prefix)
		return ""
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	tests := []struct {
		name   string
		damage func(t *testing.T, b *objstore.Bucket)
		key    string // "" : any
		want   string
	}{
		{"a segment's byte", func(t *testing.T, b *objstore.Bucket) { rewrite(t, b, seg(2), flip) }, seg(2), ""},
		{"an admit line's byte", func(t *testing.T, b *objstore.Bucket) { rewrite(t, b, admits(1), flip) }, admits(1), ""},
		{"a blob's byte", func(t *testing.T, b *objstore.Bucket) { rewrite(t, b, blob, flip) }, blob, ""},
		{"a blob cut", func(t *testing.T, b *objstore.Bucket) {
			rewrite(t, b, blob, func(b []byte) []byte { return b[:len(b)-3] })
		}, blob, ""},
		{"a blob gone", func(t *testing.T, b *objstore.Bucket) { del(t, b, blob) }, blob, "missing"},
		{"a source gone", func(t *testing.T, b *objstore.Bucket) { del(t, b, find(t, b, "log/local/shop/sources/")) }, "", "missing"},
		{"a source's byte", func(t *testing.T, b *objstore.Bucket) { rewrite(t, b, find(t, b, "log/local/shop/sources/"), flip) }, "", ""},
		{"a segment gone", func(t *testing.T, b *objstore.Bucket) { del(t, b, seg(2)) }, seg(2), "segments 2 to 2 are missing"},
		{"the first segment gone", func(t *testing.T, b *objstore.Bucket) { del(t, b, seg(1)) }, seg(1), "missing"},
		{"an admit line gone", func(t *testing.T, b *objstore.Bucket) { del(t, b, admits(1)) }, admits(1), "missing"},
		{"two segments swapped", func(t *testing.T, b *objstore.Bucket) {
			one, _, _ := b.ReadAll(ctx, seg(1), 1<<20)
			two, _, _ := b.ReadAll(ctx, seg(2), 1<<20)
			put(t, b, seg(1), two)
			put(t, b, seg(2), one)
		}, seg(1), "header"},
		{"a stranger among the segments", func(t *testing.T, b *objstore.Bucket) {
			put(t, b, "log/local/shop/questions/"+stream+"/notes.txt", []byte("x"))
		}, "log/local/shop/questions/" + stream + "/notes.txt", "name"},
		{"a vector's byte", func(t *testing.T, b *objstore.Bucket) { rewrite(t, b, vec, flip) }, vec, ""},
		{"vectors of no segment", func(t *testing.T, b *objstore.Bucket) {
			l := eventlog.Open(b, tenant, "w")
			if err := l.PutVectors(ctx, project, "0a1b2c3d", "none@00000000", 1, eventlog.Vectors{}); err != nil {
				t.Fatal(err)
			}
		}, "", "the stream ends at 0"},
		{"vectors past a gap", func(t *testing.T, b *objstore.Bucket) {
			l := eventlog.Open(b, tenant, "w")
			if err := l.PutVectors(ctx, project, "0a1b2c3d", stream, 3, eventlog.Vectors{}); err != nil {
				t.Fatal(err)
			}
		}, "", "vectors of segments 2 to 2 are missing"},
		{"a tombstone's byte", func(t *testing.T, b *objstore.Bucket) {
			put(t, b, "log/local/shop/tombstones/"+string(memory.SumString("x"))+".jsonl", []byte("{\"v\":1}\n"))
		}, "", "hash to the key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBucket()
			l := build(t, b, "w", 2, 4, stream)
			if err := l.PutVectors(ctx, project, "0a1b2c3d", stream, 1, eventlog.Vectors{Dims: 2, Passages: []memory.SHA{memory.SumString("p")}, Rows: []float32{1, 2}}); err != nil {
				t.Fatal(err)
			}
			tt.damage(t, b)
			rep, err := eventlog.Open(b, tenant, "v").Verify(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if rep.OK || len(rep.Problems) == 0 {
				t.Fatal("it goes unnoticed")
			}
			for _, p := range rep.Problems {
				if (tt.key == "" || p.Key == tt.key) && strings.Contains(p.String(), tt.want) {
					return
				}
			}
			t.Errorf("not named: %v", rep.Problems)
		})
	}
}

func put(t *testing.T, b *objstore.Bucket, key string, data []byte) {
	t.Helper()
	if _, err := b.Put(context.Background(), key, data); err != nil {
		t.Fatal(err)
	}
}

func del(t *testing.T, b *objstore.Bucket, key string) {
	t.Helper()
	if err := b.Delete(context.Background(), key); err != nil {
		t.Fatal(err)
	}
}

// Records that are whole and chained but wrong in themselves are found too.
func TestVerifyFindsWrongRecords(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	// nth gives the n-th record of its type.
	tests := []struct {
		name, want string
		change     func([]eventlog.Record) []eventlog.Record
	}{
		{"as it should be", "", func(r []eventlog.Record) []eventlog.Record { return r }},
		{"evidence text", "the text is not the chunk's", func(r []eventlog.Record) []eventlog.Record {
			e := nth[*memory.Evidence](r, 1)
			e.Text = strings.ToUpper(e.Text)
			e.TextSHA = memory.SumString(e.Text)
			e.Node = memory.NodeID(tenant, project, memory.L0, stream, e.TextSHA)
			return r
		}},
		{"evidence span", "the text is not the chunk's", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Evidence](r, 0).Span.ChunkStart++
			return r
		}},
		{"evidence span outside", "the text is not the chunk's", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Evidence](r, 0).Span.ChunkEnd = 1 << 20
			return r
		}},
		{"evidence in another chunk", "another chunk", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Evidence](r, 0).Span.Chunk = memory.SumString(chunkText(1, 1))
			return r
		}},
		{"evidence without hash", "their hash", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Evidence](r, 0).Span.SHA256 = ""
			return r
		}},
		{"plain hash of a redaction", "their hash", func(r []eventlog.Record) []eventlog.Record {
			e := nth[*memory.Evidence](r, 0)
			e.Span.Redacted = true
			return r
		}},
		{"evidence node", "node id", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Evidence](r, 0).Node = memory.SumString("x")
			return r
		}},
		{"memory node", "node id", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Memory](r, 0).Node = memory.SumString("x")
			return r
		}},
		{"memory text", "does not hash", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Memory](r, 0).Text += "!"
			return r
		}},
		{"memory parent", "parent", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Memory](r, 0).Parents[0] = memory.SumString("x")
			return r
		}},
		{"memory without parent", "no parent", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Memory](r, 0).Parents = nil
			return r
		}},
		{"memory supersedes", "supersedes memory", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Memory](r, 1).Supersedes = []memory.SHA{memory.SumString("x")}
			return r
		}},
		{"evidence supersedes", "supersedes a statement", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Evidence](r, 1).Supersedes[0].T = 99
			return r
		}},
		{"a step skipped", "follows step", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Gate](r, 1).T++
			return r
		}},
		{"a step's chunk", "is another", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Gate](r, 1).Chunk = memory.SumString("x")
			return r
		}},
		{"a closed gate that changes the memory", "closed gate", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Gate](r, 1).MemorySHA = memory.SumString("x")
			return r
		}},
		{"a step's memory before", "another memory", func(r []eventlog.Record) []eventlog.Record {
			g := nth[*memory.Gate](r, 1)
			g.MemoryBeforeSHA, g.MemorySHA = "", ""
			return r
		}},
		{"a step's reply", "missing", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Gate](r, 1).Reply = memory.SumString("reply")
			return r
		}},
		{"a step of another run", "not open", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Gate](r, 1).Run = memory.SumString("x")
			return r
		}},
		{"no run", "never began", func(r []eventlog.Record) []eventlog.Record { return r[1:] }},
		{"a run that never ends", "is open", func(r []eventlog.Record) []eventlog.Record {
			for i := range r {
				if _, ok := r[i].(*memory.RunEnd); ok {
					return append(r[:i:i], r[i+1:]...)
				}
			}
			return r
		}},
		{"a run of no part", "not admitted", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Run](r, 1).Admit = 9
			return r
		}},
		{"a run of another source", "source is not", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.Run](r, 1).Source = memory.SumString("x")
			return r
		}},
		{"a part folded twice", "begins twice", func(r []eventlog.Record) []eventlog.Record {
			first := *nth[*memory.Run](r, 0)
			first.T, first.MemoryBefore = nth[*memory.RunEnd](r, 1).T, nth[*memory.RunEnd](r, 1).MemorySHA
			return append(r, &first)
		}},
		{"a run that ends twice", "ends twice", func(r []eventlog.Record) []eventlog.Record {
			end := *nth[*memory.RunEnd](r, 1)
			return append(r, &end)
		}},
		{"a run that ends elsewhere", "ends at step", func(r []eventlog.Record) []eventlog.Record {
			nth[*memory.RunEnd](r, 0).T = 1
			return r
		}},
		{"an admit line in a question stream", "outside the admit stream", func(r []eventlog.Record) []eventlog.Record {
			return append(r, &memory.Admit{})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := eventlog.Open(newBucket(), tenant, "w")
			p := &loop{stream: stream}
			var recs []eventlog.Record
			for n := 1; n <= 2; n++ {
				a, cs := admit(t, l, n, 3)
				recs = append(recs, p.fold(a, cs)...)
			}
			cut(t, l, stream, eventlog.Head{}, unchecked(t, tt.change(recs)), 3)
			rep, err := l.Verify(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if !rep.OK {
					t.Errorf("problems: %v", rep.Problems)
				}
				return
			}
			for _, p := range rep.Problems {
				if strings.Contains(p.Msg, tt.want) && p.Key != "" && (p.Line > 1 || strings.HasPrefix(p.Key, "blob/")) {
					return
				}
			}
			t.Errorf("not named: %v", rep.Problems)
		})
	}
}

// unchecked gives records as lines, which Append stores as they are: a program
// with a bug, or another program, may have written them.
func unchecked(t testing.TB, recs []eventlog.Record) []eventlog.Record {
	t.Helper()
	out := make([]eventlog.Record, len(recs))
	for i, r := range recs {
		line, err := eventlog.EncodeRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = &eventlog.Opaque{Type: r.RecordType(), Line: line}
	}
	return out
}

// nth is the n-th record of type T, from 0.
func nth[T any](recs []eventlog.Record, n int) T {
	for _, r := range recs {
		if x, ok := r.(T); ok {
			if n == 0 {
				return x
			}
			n--
		}
	}
	panic("no such record")
}

// A crash between any two writes leaves a log that verifies, and finishing the
// work gives the hashes of an undisturbed run.
func TestCrashAnywhere(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	want, wantEach := hashes(t, build(t, newBucket(), "w", 2, 3, stream))
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 2))
			budget := 0 // writes that are left before the crash
			afterEffect := false
			crash := func(after bool) func(context.Context, memstore.Call) error {
				return func(_ context.Context, c memstore.Call) error {
					if c.Op == memstore.OpPut && budget <= 0 && after == afterEffect {
						return storeDown()
					}
					if c.Op == memstore.OpPut && after {
						budget--
					}
					return nil
				}
			}
			b, _ := bucketWith(memstore.Hooks{Before: crash(false), After: crash(true)})
			for life := 0; ; life++ {
				if life > 200 {
					t.Fatal("the work never ends")
				}
				budget, afterEffect = rng.IntN(6), rng.IntN(2) == 0
				done := work(b, fmt.Sprintf("w%d", life))
				budget = 1 << 30
				l := eventlog.Open(b, tenant, "v")
				rep, err := l.Verify(ctx, nil)
				if err != nil || !rep.OK {
					t.Fatalf("life %d: %v, %v", life, rep.Problems, err)
				}
				if !done {
					continue
				}
				got, gotEach := hashes(t, l)
				if got != want {
					t.Errorf("log hash %s, want %s", got, want)
				}
				if diff := cmp.Diff(wantEach, gotEach); diff != "" {
					t.Error(diff)
				}
				return
			}
		})
	}
}

// work does what learn and gate do, from whatever the log holds; false when the
// store failed on the way.
func work(b *objstore.Bucket, writer string) bool {
	ctx := context.Background()
	l := eventlog.Open(b, tenant, writer)
	var admits []memory.Admit
	var chunks [][]memory.Chunk
	for n := 1; n <= 2; n++ {
		src, cs := sourceOf(n, 3)
		var known *memory.Admit
		for a, err := range l.Admits(ctx, project, 0) {
			if err != nil {
				return false
			}
			if a.RawSHA256 == src.RawSHA256 {
				known = &a
			}
		}
		if known == nil {
			for i := range cs {
				if _, err := l.PutBlob(ctx, project, []byte(cs[i].Text)); err != nil {
					return false
				}
			}
			key, err := l.PutSource(ctx, project, src, cs)
			if err != nil {
				return false
			}
			head, err := l.Head(ctx, project, memory.AdmitStream)
			if err != nil {
				return false
			}
			a, _, err := l.AppendAdmit(ctx, project, head, memory.Admit{Source: key, RawSHA256: src.RawSHA256, Object: src.Object,
				ETag: src.ETag, Session: src.Session, To: src.To, PrefixSHA256: src.PrefixSHA256, Chunks: len(cs)})
			if err != nil {
				return false
			}
			known = &a
		}
		admits, chunks = append(admits, *known), append(chunks, cs)
	}
	p := &loop{stream: stream}
	var recs []eventlog.Record
	for i := range admits {
		recs = append(recs, p.fold(admits[i], chunks[i])...)
	}
	var head eventlog.Head
	for seg, err := range l.Segments(ctx, project, stream, 0) {
		if err != nil {
			return false
		}
		head = eventlog.Head{Seq: seg.Header.Seq, Hash: seg.Hash}
		recs = recs[len(seg.Records):]
	}
	for len(recs) > 0 {
		k := min(3, len(recs))
		var err error
		if head, err = l.Append(ctx, project, stream, head, recs[:k]); err != nil {
			return false
		}
		recs = recs[k:]
	}
	return true
}
