package export

import (
	"encoding/json"
	"strings"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// content is what a model said in a raw reply: the body as its server gave it, in
// Ollama's form or OpenAI's. false where the body is of neither.
func content(body []byte) (text, reasoning string, ok bool) {
	type message struct {
		Content          *string         `json:"content"`
		Thinking         string          `json:"thinking"`          // Ollama
		Reasoning        json.RawMessage `json:"reasoning"`         // vLLM, newer
		ReasoningContent json.RawMessage `json:"reasoning_content"` // vLLM, older
	}
	var got struct {
		Message *message `json:"message"`
		Choices []struct {
			Message *message `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &got) != nil {
		return "", "", false
	}
	m := got.Message
	if m == nil && len(got.Choices) > 0 {
		m = got.Choices[0].Message
	}
	if m == nil {
		return "", "", false
	}
	if m.Content != nil {
		text = *m.Content
	}
	reasoning = m.Thinking
	for _, raw := range []json.RawMessage{m.Reasoning, m.ReasoningContent} {
		var s string
		if reasoning == "" && json.Unmarshal(raw, &s) == nil {
			reasoning = s
		}
	}
	return text, reasoning, true
}

// How a completion came about.
const (
	ofRaw      = "raw"      // the model's own words
	ofRendered = "rendered" // written anew, in tags, from what the record says
)

// Calls in whose form a completion is.
const (
	callDecide = "decide" // think, check, update, next
	callGate   = "gate"   // think, check, next
)

// answerTo is a completion: an answer to the prompt of a wording and a call.
type answerTo struct {
	version string // in tags
	call    string
	text    string // "" where there is no honest answer
	of      string
}

func (a *answerTo) kind() gru.CallKind {
	if a.call == callDecide {
		return gru.CallDecide
	}
	return gru.CallGate
}

// said is the thought of an answer whose own is not known: the check in words, as the
// prompt asks for the block.
func said(open bool) string {
	if open {
		return "The section states facts that help to answer the question."
	}
	return "The section states nothing that helps to answer the question."
}

// verdict is the gate's answer in tags.
func verdict(think string, open, exit bool) string {
	if strings.TrimSpace(think) == "" {
		think = said(open)
	}
	return gru.Verdict{Think: think, Update: open, Exit: exit}.Render(gru.ShapeGate)
}

// complete makes the completion of a decided step. after is the memory after it, text
// and reasoning what the model replied last, "" where that is not known.
//
// The model's own words are taken where they answer this very call, were asked for in
// tags, hold their thought, agree with the record, and nothing of them was dropped.
// Else the answer is written from the record. The built-in policy, and whoever leaves
// the memory to a second model, answers the gate's question alone: no update is made
// up for it.
func complete(g *memory.Gate, version string, full, json bool, after, text, reasoning string) answerTo {
	open := gru.Opened(g)
	a := answerTo{version: version, call: callGate, of: ofRendered}
	if g.Model == "" {
		a.text = verdict("", open, g.Exit)
		return a
	}
	shape := gru.ShapeGate
	if full {
		shape = gru.ShapeFull
	}
	parse := gru.ParseReply
	if json {
		parse = gru.ParseJSON
	}
	v, err := parse(shape, text, reasoning, g.FinishReason)
	own := err == nil && v.Update == open && v.Exit == g.Exit && (full || !open)
	if own && !json && g.Ungrounded == 0 && strings.Contains(text, "<think>") {
		a.text, a.of = text, ofRaw
		if full {
			a.call = callDecide
		}
		return a
	}
	think := g.Think
	if think == "" {
		think = said(open)
	}
	if full && (!open || g.Update) {
		w := gru.Verdict{Think: think, Update: open, Exit: g.Exit}
		if open {
			w.Memory = after
		}
		if !open || strings.TrimSpace(after) != "" {
			a.call, a.text = callDecide, w.Render(gru.ShapeFull)
			return a
		}
	}
	a.text = verdict(think, open, g.Exit)
	return a
}
