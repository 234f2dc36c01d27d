package preflight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
)

// A server may answer 200 to a constraint that it does not know: vLLM from 0.12 on
// to guided_*, Ollama's /v1 to every field but its own, a proxy that drops
// response_format. So what an adapter declares is tried once, with a prompt that
// begs for anything but what the constraint allows. A model of any size passes
// where the constraint holds, as nothing else can be sampled.
//
// A constraint that does not hold is no reason not to run: the tags are read
// strictly and need none. So the finding is good, says that tags are asked for, and
// carries the cure for who wants JSON.

// held are the two words; none is likely in the answer to constraintPrompt.
var held = []string{"amber", "violet"}

const constraintPrompt = "Write one cheerful sentence about the sea. Write plain prose: no JSON, no braces, no quotes, and neither of the words amber and violet."

var constraintSchema = json.RawMessage(`{"type":"object","properties":{"word":{"type":"string","enum":["amber","violet"]}},"required":["word"],"additionalProperties":false}`)

// Room for the reply. An object takes some ten tokens; a model that spends the
// first room on white space or a thought gets the second.
var constraintRooms = []int{64, 512}

// constrained tries what s declares: a schema, else a choice. tried is false where
// it declares neither, or is an adapter, which is asked for tags anyhow. An error
// is of a server that gave no answer.
func constrained(ctx context.Context, s Server, window int) (f Finding, schema, tried bool, err error) {
	can := s.Chat.Capabilities()
	if s.Adapter != "" || !can.Schema && !can.Choice {
		return Finding{}, false, false, nil
	}
	what, judge := "a schema", objectHeld
	if !can.Schema {
		what, judge = "a choice", choiceHeld
	}
	f = Finding{Check: "constraint", OK: true}
	got := nothing
	for _, room := range constraintRooms {
		req := llm.ChatRequest{Model: s.Model, User: constraintPrompt, Window: window, Sampling: memory.Sampling{TopP: 1, Seed: 1, MaxTokens: room}}
		if can.Schema {
			req.Schema = constraintSchema
		} else {
			req.Choice = held
		}
		r, err := s.Chat.Chat(ctx, req)
		if err != nil && !fault.Is(err, fault.Invalid) {
			return Finding{}, false, false, err
		}
		if err != nil {
			f.Found, f.Cure = fmt.Sprintf("it refuses %s: it is asked for tags", what), unheld(s)
			return f, false, true, nil
		}
		if got = judge(r.Content); got != nothing {
			break
		}
	}
	switch got {
	case holds:
		f.Found = "it holds replies to " + what
		return f, can.Schema, true, nil
	case breaks:
		f.Found = fmt.Sprintf("it answers outside %s that it was sent, and says nothing: it is asked for tags", what)
	default:
		f.Found = fmt.Sprintf("it gives no reply of %d tokens to tell by whether it holds to %s: it is asked for tags", constraintRooms[1], what)
	}
	f.Cure = unheld(s)
	return f, false, true, nil
}

type heldness uint8

const (
	nothing heldness = iota // blank: cut off in white space or in a thought
	holds
	breaks
)

// objectHeld judges a reply by its characters outside white space: what is cut off
// inside an object of the schema has been held to it.
func objectHeld(content string) heldness {
	got := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, content)
	if got == "" {
		return nothing
	}
	for _, w := range held {
		// One brace alone may be the beginning of anything.
		if whole := `{"word":"` + w + `"}`; len(got) > 1 && strings.HasPrefix(whole, got) {
			return holds
		}
	}
	return breaks
}

func choiceHeld(content string) heldness {
	switch got := strings.TrimSpace(content); {
	case got == "":
		return nothing
	case slices.Contains(held, got):
		return holds
	}
	return breaks
}

// unheld is what to do about a server that does not hold replies to anything.
func unheld(s Server) string {
	switch s.Kind {
	case "ollama":
		return "for JSON: update Ollama (format is known from 0.5 on), and take a model that runs here, as its cloud does not enforce a schema"
	case "vllm":
		return "for JSON: serve with a structured outputs backend (vLLM 0.12 dropped guided_*), and look at what a proxy before it drops: response_format must arrive"
	case "openrouter":
		return "for JSON: take a model that has a provider with structured outputs"
	}
	return "for JSON: take a model and a server with structured outputs (response_format json_schema)"
}
