package vault_test

import (
	"fmt"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/vault"
)

var day0 = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// place is the n-th thing that was said.
func place(n int) memory.Place {
	return memory.Place{Time: day0.AddDate(0, 0, n), Admit: int64(n + 1), I: 0, Start: 10}
}

// said is a statement of question q, said as the n-th thing.
func said(q, text string, n int) vault.Statement {
	return vault.Statement{
		Node: memory.SumString(q + "\x00" + text), Text: text, T: n + 1, Place: place(n), Role: memory.RoleUser, Trust: memory.TrustUser,
		Spans: []vault.Cited{{Place: place(n), T: n + 1, Span: memory.Span{
			Object: fmt.Sprintf("transcripts/shop/%d.jsonl", n), Start: 100, End: 100 + int64(len(text)), Codec: memory.CodecJSONString,
			SHA256: memory.SumString(text), Chunk: memory.SumString(fmt.Sprint("chunk", n)), ChunkStart: 0, ChunkEnd: len(text),
		}}},
	}
}

// asked is a question whose memory holds statements, a line each.
func asked(id, wording string, n int, in ...vault.Statement) vault.Question {
	q := vault.Question{ID: id, N: n, Wording: wording, Stream: memory.StreamName(id, wording), Asked: memory.StreamName(id, wording)}
	text := ""
	for _, s := range in {
		if !s.Superseded {
			s.In = true
			text += "- " + s.Text + " [" + s.Node.Short() + "]\n"
			q.Memory.Parents = append(q.Memory.Parents, s.Node)
			if s.Place.Time.After(q.Memory.Updated) {
				q.Memory.Updated = s.Place.Time
			}
		}
		q.Statements = append(q.Statements, s)
	}
	q.ChunksSeen, q.ChunksUsed = len(in)+2, len(in)
	if text != "" {
		q.Memory.Text, q.Memory.TextSHA, q.Memory.Node = text, memory.SumString(text), memory.SumString(id+text)
	}
	return q
}

// replaced says that by took the place of s.
func replaced(s, by vault.Statement) vault.Statement {
	s.Superseded, s.Until, s.By = true, by.Place, by.Node
	return s
}

// kept is a note record.
func kept(note, stream, text string, n int, prev ...memory.SHA) vault.KeptNote {
	k := vault.KeptNote{Note: memory.Note{Project: "shop", Note: note, Stream: stream, Text: text, Prev: prev, Origin: "vault", At: day0.Add(time.Duration(n) * time.Hour)}}
	k.Key = memory.SumString(fmt.Sprint(note, stream, text, n))
	k.TextSHA = memory.SumString(text)
	return k
}

// hostile is text that would be something in Markdown, in HTML, in YAML or here.
var hostile = []string{
	"[[index]] and ![[decisions]] and [x](javascript:alert(1)) <b>bold</b> <!-- /mneme:derived -->",
	"#tag ^block1 %%hidden%% ==marked== $x^2$ `code` ~~struck~~ **bold** key:: value",
	"## Notes", "---", "- [ ] a task", "1. first", "> [!note] callout", "| a | b |", "\u202eright to left\u202c", "a\u2028b\x00c\xffd",
	"\u0646\u0639\u0645\u060c \u0642\u0631\u0631\u0646\u0627 \u0630\u0644\u0643", "[1a2b3c4d] looks like an id", "ends with a caret ^abc",
}

// project is a model of everything that pages show.
func project() *vault.Model {
	old := said("decisions", "The limit of queue orders is 100 messages.", 0)
	now := said("decisions", "The limit of queue orders is 250 messages, since the consumer got faster.", 1)
	again := said("decisions", "Releases are signed with the new key.", 2)
	again.Spans = append(again.Spans, said("decisions", "Releases are signed with the new key.", 1).Spans...)
	secret := said("decisions", "The key is [REDACTED:aws:12ab34].", 3)
	secret.Spans[0].Span.SHA256, secret.Spans[0].Span.HMAC, secret.Spans[0].Span.Redacted = "", string(memory.SumString("hmac")), true
	beside := said("decisions", "The old consumer was slow.", 4)
	d := asked("decisions", "What was decided, and why?", 0, replaced(old, now), now, again, secret)
	d.Statements = append(d.Statements, beside)
	model := asked("open", "What is \"open\": still?", 1, said("open", "The migration waits for a review.", 5))
	model.Memory.Text = "A model wrote this line of its own. [" + model.Statements[0].Node.Short() + "] [" + model.Statements[0].Spans[0].Span.Chunk.Short() + "]\nAnd this one leads nowhere. [00000000]\n"
	model.Memory.TextSHA = memory.SumString(model.Memory.Text)
	empty := asked("rules", "Which rules hold?", 2)
	empty.ChunksSeen = 4
	arabic := asked("arabic", "\u0645\u0627 \u0627\u0644\u0630\u064a \u062a\u0642\u0631\u0631\u060c \u0648\u0644\u0645\u0627\u0630\u0627\u061f", 3, said("arabic", "\u0646\u0639\u0645\u060c \u0642\u0631\u0631\u0646\u0627 \u0630\u0644\u0643.", 6))
	once := asked("adhoc-1a2b3c4d", "What is the limit?", 4, said("adhoc-1a2b3c4d", "The limit is 250.", 7))
	once.Adhoc, once.Stream, once.Asked = true, once.ID, once.ID
	nothing := asked("adhoc-00000001", "What is nothing?", 5)
	nothing.Adhoc = true
	m := &vault.Model{Project: "shop", Questions: []vault.Question{d, model, empty, arabic, once, nothing}}
	l2 := "- The limit of queue orders is 250 messages. [" + now.Node.Short() + "]\n- All of it. [" + d.Memory.TextSHA.Short() + "]\n"
	m.Synthesis = &vault.Synthesis{Question: "What must one know?", Stream: "_synthesis@1a2b3c4d", Ran: true, Chunks: 4, Used: 3,
		Memory: vault.Memory{Node: memory.SumString("l2"), TextSHA: memory.SumString(l2), Text: l2, Parents: []memory.SHA{d.Memory.Node}, Updated: place(2).Time}}
	first := kept("decisions", d.Asked, "older\n", 1)
	m.Notes = []vault.KeptNote{
		first, kept("decisions", d.Asked, "mine\r\n[[link]] no end", 2, first.Key),
		kept("open", model.Asked, "from here\n", 3), kept("open", model.Asked, "from there", 4),
		kept("gone", memory.StreamName("gone", "What went?"), "of a question that went\n", 5),
		kept(memory.NoteIndex, "", "on the index\n", 6),
	}
	return m
}
