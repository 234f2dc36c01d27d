package gru

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/lazy"
)

// joiner is U+2060 WORD JOINER: it has no width, so that people and models
// still read the word, and no parser takes it for a tag.
const joiner = "\u2060"

// reserved matches what text under the loop's control may not hold as it is:
// an opening or closing tag of the contract or of the prompt, and the special
// tokens of chat templates: ChatML and Llama 3 (<|…|>, DeepSeek with wide bars),
// Gemma (<start_of_turn>), Llama 2 and Mistral (<s>, [INST], <<SYS>>). Joiners
// that stand there already are matched too, so that each masking can be told from
// the text's own.
//
// It is anchored: every match begins with a bracket, and looking at the brackets alone
// is ten times as fast as a search through the whole text.
var reserved = lazy.MustCompile(`(?i)^(?:<` + joiner + `*(?:/?(?:think|check|update|next|add|replace|question|memory|section|start_of_turn|end_of_turn)\b` +
	`|/?(?:s|bos|eos)>|</?sys>>|[|｜][\p{L}\p{N}_▁.-]+[|｜]>)` +
	`|\[` + joiner + `*/?inst\])`)

// eachReserved gives text with every reserved tag replaced by what do makes of it.
func eachReserved(text string, do func(tag string) string) string {
	var b strings.Builder
	for from := 0; ; {
		i := strings.IndexAny(text[from:], "<[")
		if i < 0 {
			if b.Len() == 0 {
				return text
			}
			b.WriteString(text)
			return b.String()
		}
		at := from + i
		m := reserved.FindStringIndex(text[at:])
		if m == nil {
			from = at + 1
			continue
		}
		b.WriteString(text[:at])
		b.WriteString(do(text[at : at+m[1]]))
		text, from = text[at+m[1]:], 0
	}
}

// Neutralise puts one joiner behind the bracket that opens every reserved tag in
// text, so that a transcript that talks about tags cannot speak for the model.
// Restore undoes it exactly.
func Neutralise(text string) string {
	return eachReserved(text, func(tag string) string { return tag[:1] + joiner + tag[1:] })
}

// Restore takes out what Neutralise put in: Restore(Neutralise(x)) == x.
func Restore(text string) string {
	if !strings.Contains(text, joiner) {
		return text
	}
	return eachReserved(text, func(tag string) string {
		return tag[:1] + strings.TrimPrefix(tag[1:], joiner)
	})
}
