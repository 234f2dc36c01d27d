package emitted

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/chunk"
	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/replay"
	"github.com/mneme-ai/mneme/shared/transcript"
)

func wordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

// form is one way in which a text comes back.
type form struct {
	name string
	file string // which says how it is read
	text func(string) string
	// marked forms are those in which the marker alone tells whose words they are.
	marked bool
}

var forms = []form{
	{"a file", "back.md", func(s string) string { return s }, false},
	{"an assistant's message", "back.jsonl", func(s string) string {
		return line("user", "u1", "What do we know so far?") + line("assistant", "a1", []any{map[string]any{"type": "text", "text": s}})
	}, false},
	{"a tool's result", "back.jsonl", func(s string) string {
		return line("assistant", "a1", []any{map[string]any{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": map[string]any{"command": "cat notes.txt"}}}) +
			line("user", "u1", []any{map[string]any{"type": "tool_result", "tool_use_id": "toolu_1", "content": s}})
	}, false},
	{"a person's paste", "back.jsonl", func(s string) string { return line("user", "u1", s) }, true},
}

// line is one record of a Claude Code session.
func line(role, id string, content any) string {
	msg := map[string]any{"role": role, "content": content}
	if role == "assistant" {
		msg["id"], msg["type"], msg["model"] = "msg_"+id, "message", "m"
	}
	b, err := json.Marshal(map[string]any{
		"type": role, "uuid": id, "parentUuid": nil, "sessionId": "back", "timestamp": "2026-01-01T00:00:00.000Z",
		"cwd": "/back", "version": "2.1.42", "isSidechain": false, "userType": "external", "message": msg,
	})
	if err != nil {
		panic(err) // texts alone
	}
	return string(b) + "\n"
}

// state is one question and what it has kept.
type state struct {
	stream catalog.Stream
	gru.State
}

// feed gives every artifact back in every form to every question.
func (c *Checker) feed(ctx context.Context, project string, all []Artifact, r *Report) error {
	streams, err := c.Catalog.ServingStreams(ctx, project)
	if err != nil {
		return err
	}
	var states []state
	for _, s := range streams {
		if c.ByModel != nil && c.ByModel(project, s) {
			r.ByModel = append(r.ByModel, s.QueryID)
			continue
		}
		cur, err := replay.Load(ctx, c.Log, project, s.Name)
		if err != nil {
			return err
		}
		states = append(states, state{s, cur.State})
	}
	r.Streams = len(states)
	for _, a := range all {
		r.Artifacts[a.Kind]++
		_, marked := derived.Marked(a.Text)
		for _, f := range forms {
			if f.marked && !marked {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			chunks, err := c.read(f.file, f.text(a.Text))
			if err != nil {
				return err
			}
			r.Fed++
			if len(r.ByModel) > 0 && reaches(chunks, a.Text) {
				r.Unmarked++
			}
			for i := range chunks {
				if chunks[i].Derived {
					r.Derived++
					continue
				}
				for _, s := range states {
					if n := c.keeps(project, s, &chunks[i], len(chunks)); n > 0 {
						r.Evidence += n
						r.problem("%s %s, come back as %s, would give %s/%s %d statements", a.Kind, a.Name, f.name, project, s.stream.QueryID, n)
					}
				}
			}
		}
	}
	return nil
}

// reaches reports whether a line of text stands in a turn that was not recognised.
func reaches(chunks []memory.Chunk, text string) bool {
	own := map[string]bool{}
	for _, l := range memory.Lines(text) {
		if f := memory.Fact(l); strings.ContainsFunc(f, wordy) {
			own[f] = true
		}
	}
	for i := range chunks {
		for _, t := range chunks[i].Turns {
			if t.Derived {
				continue
			}
			for _, l := range memory.Lines(chunks[i].Text[t.Start:t.End]) {
				if own[memory.Fact(l)] {
					return true
				}
			}
		}
	}
	return false
}

// read cuts a text into chunks as learn does.
func (c *Checker) read(file, text string) (out []memory.Chunk, err error) {
	rd, err := transcript.Open(strings.NewReader(text), transcript.Options{Object: file, ModTime: time.Unix(0, 0).UTC()})
	if err != nil {
		return nil, err
	}
	key := []byte("the marks of this check are never stored")
	ch := chunk.New(chunk.Options{Count: c.Count, Redact: redact.New(key), TenantKey: key})
	for t, err := range rd.Turns() {
		if err != nil {
			return nil, err
		}
		done, err := ch.Add(t)
		if err != nil {
			return nil, err
		}
		out = append(out, done...)
	}
	done, err := ch.Flush()
	return append(out, done...), err
}

// keeps is how many statements of a chunk the policy would keep for a question.
func (c *Checker) keeps(project string, s state, ck *memory.Chunk, of int) int {
	seq := s.Admit + 1
	d := c.Policy.Decide(gru.PolicyInput{
		Config: &gru.Config{
			Tenant: c.Tenant, Project: project, Stream: s.stream.Name, QueryID: s.stream.QueryID, Question: s.stream.Question,
			Level: memory.L1, BudgetTokens: s.stream.BudgetTokens, Count: c.Count,
		},
		State: &s.State, Chunk: ck,
		Part: &gru.Part{Admit: memory.Admit{Seq: seq, Object: "back"}, Source: memory.Source{Object: "back"}, Chunks: of},
		Place: func(_, start int) memory.Place {
			return memory.Place{Time: s.Newest, Admit: seq, I: ck.I, Start: start}
		},
	})
	if !d.Update {
		return 0
	}
	return len(d.Picks)
}
