package preflight_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/preflight"
)

// constrainable is a server whose replies to a constrained call are given.
type constrainable struct {
	server
	can     llm.Capabilities
	replies []string // to each in turn, the last for ever
	err     error
	asked   []llm.ChatRequest
}

func (s *constrainable) Capabilities() llm.Capabilities { return s.can }

func (s *constrainable) Chat(ctx context.Context, r llm.ChatRequest) (llm.ChatReply, error) {
	if len(r.Schema) == 0 && len(r.Choice) == 0 {
		return s.server.Chat(ctx, r)
	}
	s.asked = append(s.asked, r)
	if s.err != nil {
		return llm.ChatReply{}, s.err
	}
	return llm.ChatReply{Content: s.replies[min(len(s.asked), len(s.replies))-1], PromptTokens: 30}, nil
}

// TestConstraint: JSON is asked for only of a server that was seen to hold a reply
// to a schema, and no honest model of any size fails.
func TestConstraint(t *testing.T) {
	t.Parallel()
	schema, choice := llm.Capabilities{Schema: true, Choice: true}, llm.Capabilities{Choice: true}
	const outside, untold = "answers outside", "no reply of 512 tokens"
	for name, tc := range map[string]struct {
		can     llm.Capabilities
		replies []string
		err     error
		adapter string
		schema  bool
		found   string // "" where nothing was tried
		kind    string
		cure    string
		calls   int
		failed  bool
	}{
		"holds":                     {can: schema, replies: []string{`{"word":"amber"}`}, schema: true, found: "holds replies to a schema", calls: 1},
		"holds, spread over lines":  {can: schema, replies: []string{"{\n  \"word\" : \"violet\"\n}\n"}, schema: true, found: "holds", calls: 1},
		"holds, cut off inside":     {can: schema, replies: []string{"{\n\n\n  \"wo"}, schema: true, found: "holds", calls: 1},
		"holds, after white space":  {can: schema, replies: []string{"\n\n   \n", `{"word":"amber"}`}, schema: true, found: "holds", calls: 2},
		"holds, after a thought":    {can: schema, replies: []string{"", ` {"word":"amber"}`}, schema: true, found: "holds", calls: 2},
		"never says anything":       {can: schema, replies: []string{"  \n"}, found: untold, cure: "Ollama", kind: "ollama", calls: 2},
		"prose":                     {can: schema, replies: []string{"The sea sparkles today!"}, found: outside, cure: "guided_*", kind: "vllm", calls: 1},
		"prose with a word":         {can: schema, replies: []string{"amber"}, found: outside, cure: "structured outputs", calls: 1},
		"one brace":                 {can: schema, replies: []string{"{"}, found: outside, calls: 1},
		"another word":              {can: schema, replies: []string{`{"word":"blue"}`}, found: outside, calls: 1},
		"another field":             {can: schema, replies: []string{`{"sentence":"The sea."}`}, found: outside, calls: 1},
		"a field more":              {can: schema, replies: []string{`{"word":"amber","why":"sea"}`}, found: outside, calls: 1},
		"fenced":                    {can: schema, replies: []string{"```json\n{\"word\":\"amber\"}\n```"}, found: outside, kind: "openrouter", cure: "provider", calls: 1},
		"text behind":               {can: schema, replies: []string{`{"word":"amber"} The sea.`}, found: outside, calls: 1},
		"refuses schemas":           {can: schema, err: fault.New(fault.Invalid, "unknown field"), found: "refuses a schema", calls: 1},
		"down meanwhile":            {can: schema, err: fault.New(fault.Unavailable, "down"), calls: 1, failed: true},
		"a choice that holds":       {can: choice, replies: []string{"violet"}, found: "holds replies to a choice", calls: 1},
		"a choice that is ignored":  {can: choice, replies: []string{"I see violet waves."}, found: outside + " a choice", calls: 1},
		"an adapter knows the tags": {can: schema, adapter: "gate-lora"},
		"declares nothing":          {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &constrainable{server: server{models: []llm.Info{{Model: "small", Window: 16384}}, factor: 1, template: 9}, can: tc.can, replies: tc.replies, err: tc.err}
			r, err := preflight.Check(t.Context(), preflight.Server{Endpoint: "local", Kind: tc.kind, Model: "small", Adapter: tc.adapter, Chat: s, Probe: &s.server}, preflight.Needs{Window: 8000, Least: 4000, Count: count})
			if err != nil {
				t.Fatal(err)
			}
			if r.OK == tc.failed || (r.Err() == nil) == tc.failed || r.Schema != tc.schema || len(s.asked) != tc.calls {
				t.Errorf("%d calls: %+v", len(s.asked), r)
			}
			found := ""
			for _, f := range r.Findings {
				if f.Check == "constraint" {
					found = f.Found
					if good := strings.Contains(f.Found, "holds replies"); !f.OK || good == (f.Cure != "") || !strings.Contains(f.Cure, tc.cure) || good == strings.Contains(f.Found, "tags") {
						t.Errorf("%+v", f)
					}
				}
			}
			if (found == "") != (tc.found == "") || !strings.Contains(found, tc.found) {
				t.Errorf("found %q, want %q", found, tc.found)
			}
			for _, a := range s.asked {
				if tc.can.Schema != json.Valid(a.Schema) || tc.can.Schema == (len(a.Choice) > 0) || a.Sampling.MaxTokens == 0 || a.Sampling.Temperature != 0 {
					t.Errorf("asked %+v", a)
				}
			}
		})
	}
}

// logged is a server that may give log-probabilities, or refuse to be asked.
type logged struct {
	server
	gives, refuses bool
	asked          []bool
}

func (s *logged) Capabilities() llm.Capabilities { return llm.Capabilities{Logprobs: true} }

func (s *logged) Chat(ctx context.Context, r llm.ChatRequest) (llm.ChatReply, error) {
	s.asked = append(s.asked, r.Logprobs)
	if r.Logprobs && s.refuses {
		return llm.ChatReply{}, fault.New(fault.Invalid, "logprobs are not supported with reasoning models")
	}
	out, err := s.server.Chat(ctx, r)
	if r.Logprobs && s.gives {
		out.Tokens = []llm.Token{{TokenProb: llm.TokenProb{Token: "ok", Logprob: -0.1}}}
	}
	return out, err
}

// TestLogprobs: they are asked for where they were seen, at the cost of no call.
func TestLogprobs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		gives, refuses bool
		asked          []bool
	}{
		"given":   {true, false, []bool{true, false, false, false, false, false}},
		"not":     {false, false, []bool{true, false, false, false, false, false}},
		"refused": {true, true, []bool{true, false, false, false, false, false, false}},
	} {
		s := &logged{server: server{models: []llm.Info{{Model: "small", Window: 16384}}, factor: 1, template: 9}, gives: tc.gives, refuses: tc.refuses}
		r, err := preflight.Check(t.Context(), preflight.Server{Endpoint: "local", Model: "small", Chat: s, Probe: &s.server}, preflight.Needs{Window: 8000, Least: 4000, Count: count})
		if err != nil || !r.OK || r.Logprobs != (tc.gives && !tc.refuses) || !slices.Equal(s.asked, tc.asked) {
			t.Errorf("%s: asked %v: %+v %v", name, s.asked, r, err)
		}
	}
}
