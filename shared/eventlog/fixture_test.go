package eventlog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

const (
	tenant  = "local"
	project = "shop"
	stream  = "decisions@0a1b2c3d"
)

// noon is the store's clock in tests: nothing depends on when they run.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func bucketWith(h memstore.Hooks) (*objstore.Bucket, *memstore.Store) {
	if h.Now == nil {
		h.Now = func() time.Time { return noon }
	}
	s := memstore.NewWith(h)
	return objstore.NewBucket("mneme", s, objstore.WithRetry(1, time.Millisecond)), s
}

func newBucket() *objstore.Bucket {
	b, _ := bucketWith(memstore.Hooks{})
	return b
}

// chunkText is the text of chunk i of part n: three sentences, the second of
// which the fixture's loop keeps.
func chunkText(n, i int) string {
	return fmt.Sprintf("User: part %d chunk %d begins.\nWe keep rule %d.%d because <reasons> & \"é\U0001f600\".\nSo it ends.\n", n, i, n, i)
}

func kept(text string) (from, to int) {
	from = strings.Index(text, "We keep")
	return from, from + strings.Index(text[from:], "\n")
}

// sourceOf is a source record and its chunks, their texts loaded.
func sourceOf(n, chunks int) (memory.Source, []memory.Chunk) {
	var whole strings.Builder
	var cs []memory.Chunk
	for i := range chunks {
		text := chunkText(n, i)
		at := time.Date(2026, 2, n%27+1, 9, i%60, 0, 0, time.UTC)
		start := int64(whole.Len())
		whole.WriteString(text)
		cs = append(cs, memory.Chunk{
			I: i, SHA256: memory.SumString(text), SizeBytes: len(text), Tokens: len(text) / 4,
			Policy: memory.ChunkPolicy, Start: start, End: int64(whole.Len()),
			Trust: memory.TrustUser, Roles: map[string]int{"user": 1}, Text: text,
			Turns: []memory.ChunkTurn{{
				ID: fmt.Sprintf("s%d/%d", n, i), Session: fmt.Sprintf("s%d", n), Role: memory.RoleUser,
				Kind: memory.KindText, Trust: memory.TrustUser, Time: &at,
				TimeRaw: at.Format(time.RFC3339), TimeQuality: memory.TimeExact, Start: 0, End: len(text),
				Pieces: []memory.ChunkPiece{{C0: 0, C1: len(text), O0: start, O1: int64(whole.Len()), Enc: memory.RawEncoding}},
			}},
		})
	}
	raw := memory.SumString(whole.String())
	return memory.Source{
		Object: fmt.Sprintf("transcripts/%s/%d.md", project, n), ETag: string(raw[:32]), Format: "markdown", ReaderVersion: "1",
		RawSHA256: raw, SizeBytes: int64(whole.Len()), Session: fmt.Sprintf("s%d", n), From: 0, To: int64(whole.Len()),
		PrefixSHA256: raw, Origin: "upload", ChunkPolicy: memory.ChunkPolicy, RedactRules: "r1",
		Counts: memory.Counts{Lines: 3 * chunks, Records: chunks},
	}, cs
}

// admit admits part n: blobs, source record, admit line, in that order.
func admit(t testing.TB, l *eventlog.Log, n, chunks int) (memory.Admit, []memory.Chunk) {
	t.Helper()
	ctx := context.Background()
	src, cs := sourceOf(n, chunks)
	for i := range cs {
		if _, err := l.PutBlob(ctx, project, []byte(cs[i].Text)); err != nil {
			t.Fatal(err)
		}
	}
	key, err := l.PutSource(ctx, project, src, cs)
	if err != nil {
		t.Fatal(err)
	}
	head, err := l.Head(ctx, project, memory.AdmitStream)
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := l.AppendAdmit(ctx, project, head, memory.Admit{
		Source: key, RawSHA256: src.RawSHA256, Object: src.Object, ETag: src.ETag, Session: src.Session,
		From: src.From, To: src.To, PrefixSHA256: src.PrefixSHA256, Chunks: len(cs),
	})
	if err != nil {
		t.Fatal(err)
	}
	return a, cs
}

// loop is a stand-in for the gated loop: it keeps the second sentence of every
// chunk whose place is even.
type loop struct {
	stream string
	t      int
	text   string
	sha    memory.SHA
	node   memory.SHA
	l0     []memory.SHA
	last   *memory.Occurrence
}

// fold gives the records of one part.
func (p *loop) fold(a memory.Admit, chunks []memory.Chunk) []eventlog.Record {
	run := memory.SumString(p.stream + string(a.Source))
	recs := []eventlog.Record{&memory.Run{
		Level: memory.L1, Run: run, Stream: p.stream, Question: "what was decided, and why?",
		Cause: memory.Cause{Kind: "part", Ref: string(a.Source)}, Admit: a.Seq, Source: a.Source, T: p.t,
		Chunks: len(chunks), Policy: "extractive/x1", PromptVersion: "-", MemoryBudget: 1024, MemoryBefore: p.sha, Started: noon,
	}}
	used := 0
	for i := range chunks {
		c := &chunks[i]
		p.t++
		score := 0.5
		g := &memory.Gate{
			Level: memory.L1, T: p.t, TotalT: len(chunks), Run: run, QueryID: memory.QueryID(p.stream), Admit: a.Seq,
			I: i, Chunk: c.SHA256, Start: 0, End: len(c.Text), FormatOK: true, Attempt: 1, Reason: "no cue", ReasonCode: "closed",
			Score: &score, Policy: "extractive/x1", PromptVersion: "-", MemoryBeforeSHA: p.sha, MemorySHA: p.sha, LatencyMS: 0.25,
		}
		recs = append(recs, g)
		if i%2 == 1 {
			continue
		}
		used++
		from, to := kept(c.Text)
		span, err := c.SpanOf(a.Object, a.ETag, from, to)
		if err != nil {
			panic(err)
		}
		quote := c.Text[from:to]
		sha := memory.SumString(quote)
		node := memory.NodeID(tenant, project, memory.L0, p.stream, sha)
		place := memory.Place{Time: *c.Turns[0].Time, Admit: a.Seq, I: i, Start: from}
		e := &memory.Evidence{
			T: p.t, Run: run, Node: node, TextSHA: sha, Text: quote, Span: span, Trust: memory.TrustUser, Role: memory.RoleUser,
			Rules: []string{"rule"}, Score: 0.75, TurnID: c.Turns[0].ID, Place: place, SourceTime: c.Turns[0].Time,
			TimeRaw: c.Turns[0].TimeRaw, TimeQuality: memory.TimeExact,
		}
		if p.last != nil {
			e.Supersedes = []memory.Occurrence{*p.last}
		}
		p.last = &memory.Occurrence{Node: node, T: p.t, Place: place}
		p.l0 = append(p.l0, node)
		p.text += quote + "\n"
		p.sha = memory.SumString(p.text)
		m := &memory.Memory{
			Level: memory.L1, T: p.t, Run: run, QueryID: g.QueryID, Node: memory.NodeID(tenant, project, memory.L1, p.stream, p.sha),
			TextSHA: p.sha, Text: p.text, Tokens: len(p.text) / 4, Parents: append([]memory.SHA(nil), p.l0...), Place: place,
		}
		if p.node != "" {
			m.Supersedes = []memory.SHA{p.node}
		}
		p.node = m.Node
		g.Update, g.ReasonCode, g.Reason, g.CandidateSHA, g.MemorySHA, g.MemoryTokens = true, "kept", "a rule", p.sha, p.sha, m.Tokens
		recs = append(recs, e, m)
	}
	return append(recs, &memory.RunEnd{
		Level: memory.L1, Run: run, Admit: a.Seq, T: p.t, ChunksSeen: len(chunks), ChunksUsed: used,
		MemorySHA: p.sha, MemoryTokens: len(p.text) / 4, Ended: noon,
	})
}

// cut appends records as segments of at most n records.
func cut(t testing.TB, l *eventlog.Log, stream string, head eventlog.Head, recs []eventlog.Record, n int) eventlog.Head {
	t.Helper()
	for len(recs) > 0 {
		k := min(n, len(recs))
		var err error
		if head, err = l.Append(context.Background(), project, stream, head, recs[:k]); err != nil {
			t.Fatal(err)
		}
		recs = recs[k:]
	}
	return head
}

// build fills a log: parts of three chunks each, folded by each stream.
func build(t testing.TB, b *objstore.Bucket, writer string, parts, perSegment int, streams ...string) *eventlog.Log {
	t.Helper()
	l := eventlog.Open(b, tenant, writer)
	var admits []memory.Admit
	var chunks [][]memory.Chunk
	for n := 1; n <= parts; n++ {
		a, cs := admit(t, l, n, 3)
		admits, chunks = append(admits, a), append(chunks, cs)
	}
	for _, s := range streams {
		p := &loop{stream: s}
		var recs []eventlog.Record
		for i := range admits {
			recs = append(recs, p.fold(admits[i], chunks[i])...)
		}
		cut(t, l, s, eventlog.Head{}, recs, perSegment)
	}
	return l
}
