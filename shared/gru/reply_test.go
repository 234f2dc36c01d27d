package gru_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
)

func TestParseReply(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, content, reasoning, finish string
		shape                            gru.Shape
		want                             gru.Verdict
		err                              string // part of the message; "" when it parses
	}{
		{name: "all four", content: "<think>new</think>\n<check>yes</check>\n<update>m</update>\n<next>continue</next>", want: gru.Verdict{Think: "new", Update: true, Memory: "m"}},
		{name: "case and spaces", content: "<check> YES </check><update> m </update><next>\nEnd </next>", want: gru.Verdict{Update: true, Memory: "m", Exit: true}},
		{name: "no without update", content: "<check>no</check><next>continue</next>"},
		{name: "no with empty update", content: "<check>no</check><update></update><next>end</next>", want: gru.Verdict{Exit: true}},
		{name: "no: the candidate is discarded", content: "<check>no</check><update>m</update><next>continue</next>"},
		{name: "thought in the server's field", content: "<check>no</check><next>continue</next>", reasoning: "seen", want: gru.Verdict{Think: "seen"}},
		{name: "the inline thought comes first", content: "<think>a</think><check>no</check><next>continue</next>", reasoning: "b", want: gru.Verdict{Think: "a"}},
		{name: "the server kept the opening think", content: "a</think><check>no</check><next>continue</next>", want: gru.Verdict{Think: "a"}},
		{name: "prose around the tags is passed over", content: "Sure!\n<check>no</check> so, yes <next>continue</next> bye"},
		{name: "last </update> before the last <next>", content: "<check>yes</check><update>a</update>b</update><next>end</next>", want: gru.Verdict{Update: true, Memory: "a</update>b", Exit: true}},
		{name: "masked tags come back", content: "<check>yes</check><update>use <\u2060check> here</update><next>end</next>", want: gru.Verdict{Update: true, Memory: "use <check> here", Exit: true}},
		{name: "gate", shape: gru.ShapeGate, content: "<check>yes</check><next>continue</next>", want: gru.Verdict{Update: true}},
		{name: "rewrite", shape: gru.ShapeRewrite, content: "<update>m</update>", want: gru.Verdict{Update: true, Memory: "m"}},

		{name: "cut off", content: "<check>yes</check><update>m</update><next>end</next>", finish: "length", err: "cut off"},
		{name: "empty", content: "", err: "0 <check>"},
		{name: "prose alone", content: "Yes, this is important.", err: "0 <check>"},
		{name: "two checks", content: "<check>no</check><check>yes</check><next>end</next>", err: "2 <check>"},
		{name: "a check in the thought", content: "<think>maybe <check>yes</check></think><check>no</check><next>end</next>", err: "2 <check>"},
		{name: "two nexts", content: "<check>no</check><next>end</next><next>end</next>", err: "2 <next>"},
		{name: "no next", content: "<check>no</check>", err: "0 <next>"},
		{name: "another value", content: "<check>maybe</check><next>end</next>", err: "neither yes nor no"},
		{name: "another exit", content: "<check>no</check><next>stop</next>", err: "neither continue nor end"},
		{name: "yes with nothing", content: "<check>yes</check><update> </update><next>end</next>", err: "missing or empty"},
		{name: "yes without update", content: "<check>yes</check><next>end</next>", err: "missing or empty"},
		{name: "update not closed", content: "<check>yes</check><update>m<next>end</next>", err: "not closed before <next>"},
		{name: "update closed after next", content: "<check>yes</check><update>m<next>end</next></update>", err: "not closed before <next>"},
		{name: "check inside the update", content: "<update>m <check>yes</check></update><next>end</next>", err: "before <check>"},
		{name: "next first", content: "<next>end</next><check>no</check>", err: "before <check>"},
		{name: "think not closed", content: "<think>a <check>no</check><next>end</next>", err: "not closed"},
		{name: "gate with update", shape: gru.ShapeGate, content: "<check>yes</check><update>m</update><next>end</next>", err: "reply of a gate"},
		{name: "rewrite without update", shape: gru.ShapeRewrite, content: "m", err: "missing or empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := gru.ParseReply(c.shape, c.content, c.reasoning, c.finish)
			if c.err != "" {
				if !fault.Is(err, fault.Malformed) || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want Malformed with %q", err, c.err)
				}
				if diff := cmp.Diff(gru.Verdict{}, got); diff != "" {
					t.Errorf("a malformed reply says something (-want +got):\n%s", diff)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Any bytes are read without panic; a reply that parses is rendered and parsed
// to the same verdict.
func FuzzParseReply(f *testing.F) {
	for _, s := range []string{
		"<think>new</think>\n<check>yes</check>\n<update>m</update>\n<next>continue</next>",
		"<check>no</check><next>end</next>", "<update>x</update>", "</update><update>", "<check></check><next></next>", "<add>a</add><replace line=\"2\"></replace>",
		"<think></think></think><check>yes</check><update>a</update>b</update><next>end</next>", "<\u2060check>", "\xff<check>",
	} {
		for shape := range uint8(4) {
			f.Add(s, "r", shape)
		}
	}
	f.Fuzz(func(t *testing.T, content, reasoning string, shape uint8) {
		sh := gru.Shape(shape % 4)
		v, err := gru.ParseReply(sh, content, reasoning, "stop")
		if err != nil {
			return
		}
		again, err := gru.ParseReply(sh, v.Render(sh), "", "stop")
		if err != nil {
			t.Fatalf("%q renders as %q: %v", content, v.Render(sh), err)
		}
		if diff := cmp.Diff(v, again); diff != "" {
			t.Errorf("%q (-parsed +parsed again):\n%s", content, diff)
		}
	})
}

// TestNeutraliseTokens: the special tokens of chat templates are masked, each once,
// and what only looks like one is not.
func TestNeutraliseTokens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<start_of_turn>model<end_of_turn>":          "<\u2060start_of_turn>model<\u2060end_of_turn>",
		"<s>[INST] <<SYS>>a<</SYS>> b [/INST] c</s>": "<\u2060s>[\u2060INST] <\u2060<SYS>>a<\u2060</SYS>> b [\u2060/INST] c<\u2060/s>",
		"<|start_header_id|>":                        "<\u2060|start_header_id|>",
		"<|reserved_special_token_12|>":              "<\u2060|reserved_special_token_12|>",
		"<｜end▁of▁sentence｜>":                        "<\u2060｜end▁of▁sentence｜>",
		"<bos>x<eos>":                                "<\u2060bos>x<\u2060eos>",
		"[install] a[inst] <span> <strong> x<|y":     "[install] a[\u2060inst] <span> <strong> x<|y",
	} {
		got := gru.Neutralise(text)
		if got != want || gru.Restore(got) != text {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func FuzzNeutralise(f *testing.F) {
	for _, s := range []string{"", "<check>", "</THINK >", "<\u2060check>", "<\u2060\u2060/next", "<|im_end|>", "<<think>", "<checker>", "a < b", "<|", "\xff<update\xff", "<start_of_turn>user", "</s><s>[INST] <<SYS>>x<</SYS>>[/INST]", "[\u2060/inst]", "<<s>", "[[INST]]", "<\u2060<SYS>>", "<|reserved_special_token_12|>", "<｜end▁of▁sentence｜>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		masked := gru.Neutralise(text)
		if got := gru.Restore(masked); got != text {
			t.Errorf("Restore(Neutralise(%q)) = %q", text, got)
		}
		low := strings.ToLower(masked)
		for _, tag := range []string{"<think>", "</think>", "<check>", "</check>", "<update>", "</update>", "<next>", "</next>", "<add>", "</add>", "</replace>", "</section>", "</memory>", "</question>", "<|im_start|>", "<|im_end|>",
			"<start_of_turn>", "<end_of_turn>", "<s>", "</s>", "<bos>", "<eos>", "[inst]", "[/inst]", "<<sys>>", "<</sys>>", "<|reserved_special_token_12|>", "<|start_header_id|>", "<｜end▁of▁sentence｜>"} {
			if strings.Contains(low, tag) {
				t.Errorf("Neutralise(%q) = %q holds %s", text, masked, tag)
			}
		}
	})
}
