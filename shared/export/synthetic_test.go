package export_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// many is the stream that decided writes.
const many = "many@00000000"

// prose is a session whose chunks hold about kb kB of talk each.
func prose(id string, chunks, kb int) []byte {
	var says []functest.Say
	for i := range chunks {
		var b strings.Builder
		for n := 0; b.Len() < kb<<10; n++ {
			fmt.Fprintf(&b, "In turn %d of step %d the reader opens the module %x, follows its callers and notes what each of them passes on. ", n, i, memory.SumString(fmt.Sprint(i, n))[:8])
		}
		says = append(says, functest.User(b.String()))
	}
	return functest.Session(id, start, says...)
}

// decided appends n decisions of a model over the chunks of one part, again and again,
// in runs of one part each: every tenth gate is open. perDay runs end on one day.
func decided(t testing.TB, log *eventlog.Log, a memory.Admit, n, perDay int) {
	t.Helper()
	ctx := context.Background()
	_, chunks, err := log.Part(ctx, "shop", a.Source)
	if err != nil {
		t.Fatal(err)
	}
	var head eventlog.Head
	var recs []eventlog.Record
	var mem string
	raw, err := log.PutBlob(ctx, "shop", []byte(`{"message":{"content":"<think>\nnothing here\n</think>\n<check>no</check>\n<update></update>\n<next>continue</next>"}}`))
	if err != nil {
		t.Fatal(err)
	}
	sha := func() memory.SHA {
		if mem == "" {
			return ""
		}
		return memory.SumString(mem)
	}
	for t1, run := 0, 0; t1 < n; run++ {
		id := memory.SumString(fmt.Sprint("run ", run))
		ended := start.AddDate(0, 0, run/perDay).Add(time.Duration(run%perDay) * time.Millisecond)
		recs = append(recs, &memory.Run{
			Level: memory.L1, Run: id, Stream: many, Question: "What was decided, and why?", Cause: memory.Cause{Kind: memory.CausePart, Ref: string(a.Source)}, Admit: a.Seq, Source: a.Source, T: t1,
			Chunks: len(chunks), Policy: "model/full", Model: "small", PromptVersion: gru.PromptVersion, MemoryBudget: 1024, MemoryBefore: sha(), Started: ended,
		})
		for i := range chunks {
			if t1 == n {
				break
			}
			t1++
			before := sha()
			g := &memory.Gate{
				Level: memory.L1, T: t1, TotalT: len(chunks), Run: id, QueryID: "many", Admit: a.Seq, I: i, Chunk: chunks[i].SHA256, End: chunks[i].SizeBytes, Update: t1%10 == 0,
				FormatOK: true, Attempt: 1, Reason: "the model says no", ReasonCode: "closed", Think: "nothing here", Policy: "model/full", Model: "small", PromptVersion: gru.PromptVersion,
				Sampling: &memory.Sampling{TopP: 1, Seed: 7}, MemoryBeforeSHA: before, PromptTokens: 5000, PromptTokensOwn: 4980, CompletionTokens: 20, FinishReason: "stop", LatencyMS: 812, Reply: raw,
			}
			if g.Update {
				g.ReasonCode, g.Reply = "kept", ""
				mem = fmt.Sprintf("Step %d decided to keep the limit at %d. ", t1, t1) + strings.Repeat("What was decided before stands. ", 8)
			}
			g.MemorySHA = sha()
			recs = append(recs, g)
			if g.Update {
				recs = append(recs, &memory.Memory{Level: memory.L1, T: t1, Run: id, QueryID: "many", Node: memory.NodeID(functest.Tenant, "shop", memory.L1, many, sha()), TextSHA: sha(), Text: mem, Tokens: 90, Parents: []memory.SHA{memory.SumString("L0")}, Place: memory.Place{Time: start, Admit: a.Seq, I: i}})
			}
		}
		recs = append(recs, &memory.RunEnd{Level: memory.L1, Run: id, Admit: a.Seq, T: t1, ChunksSeen: len(chunks), Ended: ended})
		if len(recs) > min(n/10, 2000) || t1 == n {
			if head, err = log.Append(ctx, "shop", many, head, recs); err != nil {
				t.Fatal(err)
			}
			recs = recs[:0]
		}
	}
	var said []eventlog.Record
	for i := range chunks {
		r, err := eventlog.LabelRecord(&memory.Label{
			Level: memory.L1, Kind: memory.LabelHuman, Stream: many, QueryID: "many", Chunk: chunks[i].SHA256, Evidence: i%9 == 0, At: start, FormatOK: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, r)
	}
	if _, err := log.PutRecords(ctx, "shop", eventlog.Labels, said); err != nil {
		t.Fatal(err)
	}
}

// dated is the options of the export of decided alone: its runs end before any other.
func dated(format string) export.Options {
	return export.Options{Until: start.AddDate(1, 0, 0), Project: "shop", Format: format}
}
