package gru_test

import (
	"math"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/gru"
)

// toks are tokens without alternatives, and likely.
func toks(texts ...string) []gru.Token {
	out := make([]gru.Token, len(texts))
	for i, s := range texts {
		out[i] = gru.Token{Prob: gru.Prob{Text: s, Logprob: -0.0001}}
	}
	return out
}

// at is a token with alternatives: text, probability, text, probability …; the
// first is what was sampled.
func at(alts ...any) gru.Token {
	var t gru.Token
	for i := 0; i < len(alts); i += 2 {
		t.Top = append(t.Top, gru.Prob{Text: alts[i].(string), Logprob: math.Log(alts[i+1].(float64))})
	}
	t.Prob = t.Top[0]
	return t
}

func cat(parts ...any) (out []gru.Token) {
	for _, p := range parts {
		switch p := p.(type) {
		case gru.Token:
			out = append(out, p)
		case string:
			out = append(out, toks(p)...)
		}
	}
	return out
}

func TestScore(t *testing.T) {
	t.Parallel()
	const untold = -1
	for name, tc := range map[string]struct {
		json    bool
		content string // the tokens' text where empty
		tokens  []gru.Token
		want    float64
	}{
		"a token of its own":     {tokens: cat("<check>", at("yes", 0.8, "no", 0.2), "</check>"), want: 0.8},
		"no":                     {tokens: cat("<check>", at("no", 0.9, "yes", 0.1), "</check>"), want: 0.1},
		"other words aside":      {tokens: cat("<check>", at("yes", 0.3, "maybe", 0.5, "no", 0.1), "</check>"), want: 0.75},
		"split":                  {tokens: cat("<check>", at("y", 0.6, "n", 0.2, "x", 0.2), "es", "</check>"), want: 0.75},
		"split unevenly":         {tokens: cat("<check>", at("ye", 0.6, "no", 0.2), "s", "</check>"), want: 0.75},
		"leading space":          {tokens: cat("<check>", at(" yes", 0.5, " no", 0.25, "yes", 0.25), " </check>"), want: 0.75},
		"space of its own":       {tokens: cat("<check>", "\n ", at("yes", 0.5, "no", 0.5), "\n</check>"), want: 0.5},
		"capital letters":        {tokens: cat("<check>", at("Yes", 0.5, "NO", 0.1, "yes", 0.2, "No", 0.2), "</check>"), want: 0.7},
		"with the tag's end":     {tokens: cat("<check", at(">yes", 0.6, ">no", 0.4), "</", "check>"), want: 0.6},
		"with what follows":      {tokens: cat("<check>", at("yes</", 0.6, "no</", 0.3, "yes", 0.1), "check>"), want: 0.7},
		"one token":              {tokens: cat("<check>yes</check>"), want: untold}, // its first letter is that of a tag
		"words that begin so":    {tokens: cat("<check>", at("yes", 0.5, "not", 0.2, "none", 0.1, "yesterday", 0.1, "no", 0.1), "</check>"), want: 0.5 / 0.6},
		"no alternatives":        {tokens: cat("<check>", gru.Token{Prob: gru.Prob{Text: "yes", Logprob: -0.3}}, "</check>"), want: untold},
		"alone and sure":         {tokens: cat("<check>", gru.Token{Prob: gru.Prob{Text: "yes", Logprob: -0.001}}, "</check>"), want: 1},
		"the other not listed":   {tokens: cat("<check>", at("no", 0.6, "maybe", 0.2, "perhaps", 0.1), "</check>"), want: untold},
		"the other far below":    {tokens: cat("<check>", at("no", 0.9, "maybe", 0.05, "perhaps", 0.0001), "</check>"), want: 0},
		"all that is left":       {tokens: cat("<check>", at("yes", 0.99, "maybe", 0.0099), "</check>"), want: 1},
		"sampled below the list": {tokens: cat("<check>", gru.Token{Prob: gru.Prob{Text: "yes", Logprob: math.Log(0.001)}, Top: []gru.Prob{{Text: "no", Logprob: math.Log(0.9)}}}, "</check>"), want: 0.001 / 0.901},
		"listed twice":           {tokens: cat("<check>", gru.Token{Prob: gru.Prob{Text: "yes", Logprob: math.Log(0.5)}, Top: []gru.Prob{{Text: "yes", Logprob: math.Log(0.5)}, {Text: "no", Logprob: math.Log(0.5)}}}, "</check>"), want: 0.5},
		"not a number":           {tokens: cat("<check>", gru.Token{Prob: gru.Prob{Text: "yes", Logprob: math.NaN()}}, "</check>"), want: untold},
		"more than all":          {tokens: cat("<check>", gru.Token{Prob: gru.Prob{Text: "yes", Logprob: 3}}, "</check>"), want: untold},
		"impossible":             {tokens: cat("<check>", at("yes", 1.0, "no", 0.0), "</check>"), want: 1},

		"a thought inside that says both":  {tokens: cat("<think>", at("yes", 0.1, "no", 0.9), " or no? yes", "</think>", "<check>", at("yes", 0.8, "no", 0.2), "</check>"), want: 0.8},
		"a thought taken out that quotes":  {content: "<check>yes</check>", tokens: cat("I say <check>", at("yes", 0.1, "no", 0.9), "</check>. ", "<check>", at("yes", 0.8, "no", 0.2), "</check>"), want: 0.8},
		"a thought taken out, end token":   {content: "<check>no</check>", tokens: cat("yes yes no", "<check>", at("no", 0.5, "yes", 0.5), "</check>", "<|im_end|>"), want: 0.5},
		"the memory says both":             {tokens: cat("<check>", at("yes", 0.8, "no", 0.2), "</check><update>", at("no", 0.9, "yes", 0.1), " limit: yes</update>"), want: 0.8},
		"half a character before":          {content: "<think>é</think><check>yes</check>", tokens: cat("<think>", "\xc3", "\xa9", "</think><check>", at("yes", 0.8, "no", 0.2), "</check>"), want: 0.8},
		"tokens of another text":           {content: "<check>yes</check>", tokens: cat("<check>", at("no", 0.8, "yes", 0.2), "</check>"), want: untold},
		"no tokens":                        {content: "<check>yes</check>", want: untold},
		"neither":                          {tokens: cat("<check>", at("maybe", 0.8, "no", 0.2), "</check>"), want: untold},
		"two checks":                       {tokens: cat("<check>", at("yes", 0.8, "no", 0.2), "</check><check>no</check>"), want: untold},
		"not closed":                       {tokens: cat("<check>", at("yes", 0.8, "no", 0.2)), want: untold},
		"JSON":                             {json: true, tokens: cat(`{"think":"`, `yes or no`, `","check":"`, at("yes", 0.8, "no", 0.2), `","update":"no"}`), want: 0.8},
		"JSON, quote in the token":         {json: true, tokens: cat(`{"check":`, at(` "yes`, 0.6, ` "no`, 0.2, `"yes`, 0.1), `"}`), want: 0.7 / 0.9},
		"JSON, whole string in the token":  {json: true, tokens: cat(`{"check":`, at(`"yes"`, 0.6, `"no"`, 0.4), `}`), want: 0.6},
		"JSON, split":                      {json: true, tokens: cat(`{"check": "`, at("y", 0.9, "n", 0.1), "es", `"}`), want: 0.9},
		"JSON, a thought with the field":   {json: true, tokens: cat(`{"think":"{\"check\":\"`, at("no", 0.9, "yes", 0.1), `\"}","check":"`, at("yes", 0.8, "no", 0.2), `"}`), want: 0.8},
		"JSON, the field deeper":           {json: true, tokens: cat(`{"a":{"check":"`, at("no", 0.9, "yes", 0.1), `"},"check":"`, at("yes", 0.8, "no", 0.2), `"}`), want: 0.8},
		"JSON, twice":                      {json: true, tokens: cat(`{"check":"`, at("yes", 0.8, "no", 0.2), `","check":"no"}`), want: untold},
		"JSON, escaped":                    {json: true, tokens: cat(`{"check":"\u0079es"}`), want: untold},
		"JSON, cut off":                    {json: true, tokens: cat(`{"check":"`, at("yes", 0.8, "no", 0.2), `","upda`), want: untold},
		"JSON, none":                       {json: true, tokens: cat(`{"update":"yes"}`), want: untold},
		"JSON where tags were asked for":   {tokens: cat(`{"check":"`, at("yes", 0.8, "no", 0.2), `"}`), want: untold},
		"behind white space of the server": {json: true, content: `{"check":"yes"}`, tokens: cat("\n\n", `{"check":"`, at("yes", 0.8, "no", 0.2), `"}`, "\n"), want: 0.8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := tc.content
			if content == "" {
				var b strings.Builder
				for _, tok := range tc.tokens {
					b.WriteString(tok.Text)
				}
				content = b.String()
			}
			got := gru.Score(tc.json, content, tc.tokens)
			switch {
			case got == nil && tc.want != untold:
				t.Errorf("nothing is told, want %f", tc.want)
			case got != nil && (math.Abs(*got-tc.want) > 1e-9 || *got < 0 || *got > 1):
				t.Errorf("%f, want %f", *got, tc.want)
			}
		})
	}
}

// FuzzScore: whatever a server sends, a score is a probability or not told.
func FuzzScore(f *testing.F) {
	f.Add(true, `{"check":"yes"}`, `{"check":"`, "yes", -0.1, "no", -2.0)
	f.Add(false, "<check>no</check>", "<check>", "no", -0.1, "yes", math.Inf(-1))
	f.Fuzz(func(t *testing.T, asJSON bool, content, before, token string, lp float64, other string, olp float64) {
		tokens := []gru.Token{{Prob: gru.Prob{Text: before}}, {Prob: gru.Prob{Text: token, Logprob: lp}, Top: []gru.Prob{{Text: other, Logprob: olp}}}, {Prob: gru.Prob{Text: strings.TrimPrefix(content, before+token)}}}
		if s := gru.Score(asJSON, content, tokens); s != nil && !(*s >= 0 && *s <= 1) {
			t.Errorf("%v", *s)
		}
	})
}
