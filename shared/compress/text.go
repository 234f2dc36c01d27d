package compress

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of prose two things go: sentences that were said before, word for word, and
// words that say nothing. A sentence with a negation, a number, a name in code, a
// quote or a link loses no word.

// sentence is a piece of a text with the white space behind it.
type sentence struct {
	text  string
	space string
}

// repeatBytes is the least sentence whose repetition is left out: "Yes." may
// answer two questions.
const repeatBytes = 20

func (o *Options) compressText(text, hash string) (draft, bool) {
	if !utf8.ValidString(text) {
		return draft{}, false
	}
	list := sentences(text)
	seen := make(map[string]bool, len(list))
	var b strings.Builder
	b.Grow(len(text))
	var omissions []Omission
	omitted, words, run := 0, 0, 0
	space := "" // behind the last sentence left out
	flush := func() {
		if run == 0 {
			return
		}
		b.WriteString(sentenceMark(run) + space)
		omissions = append(omissions, Omission{Count: run, Unit: "sentences"})
		omitted += run
		run = 0
	}
	fenced := false
	for _, s := range list {
		fence := strings.HasPrefix(s.text, "```") || strings.HasPrefix(s.text, "~~~")
		fenced = fenced != fence
		if fenced || fence || !said(s.text) {
			flush()
			b.WriteString(s.text + s.space)
			continue
		}
		key := strings.Join(strings.Fields(s.text), " ")
		if seen[key] {
			run++
			space = s.space
			continue
		}
		seen[key] = true
		flush()
		t, n := withoutFillers(s.text)
		words += n
		b.WriteString(t + s.space)
	}
	flush()
	out := b.String()
	if words > 0 {
		omissions = append(omissions, Omission{Count: words, Unit: "words"})
		out = lastLine(out, fmt.Sprintf("[... %d words omitted: fillers]", words))
	}
	if len(omissions) == 0 {
		return draft{text: text}, true
	}
	if hash != "" {
		out = lastLine(out, footerLine(omitted, len(list), "sentences", hash))
	}
	return draft{text: out, omissions: omissions}, true
}

func sentenceMark(n int) string {
	if n == 1 {
		return "[... 1 sentence omitted: said above]"
	}
	return fmt.Sprintf("[... %d sentences omitted: said above]", n)
}

// lastLine adds a line at the end of a text, which ends as it did.
func lastLine(text, line string) string {
	body := strings.TrimRight(text, "\n")
	return body + "\n" + line + text[len(body):]
}

// said reports a sentence of prose: with words, closed by a stop. A line of a
// list, a table or a program says something else at each of its places.
func said(s string) bool {
	if len(s) < repeatBytes {
		return false
	}
	t := strings.TrimRight(s, `"')*_`)
	if t == "" || strings.IndexByte(".!?", t[len(t)-1]) < 0 && !strings.HasSuffix(t, "。") && !strings.HasSuffix(t, "！") && !strings.HasSuffix(t, "？") {
		return false
	}
	switch s[0] {
	case '|', '#', '>', '-', '*', '+', '{', '}', '<', '/', '[':
		return false
	}
	return s[0] >= 0x80 || strings.Count(s, " ") >= 3
}

// sentences cuts a text behind . ! ? with white space or a quote behind it,
// behind 。！？, and at line feeds. Joined they are the text.
func sentences(text string) []sentence {
	var out []sentence
	start := 0
	push := func(end int) int {
		j := end
		for j < len(text) {
			r, n := utf8.DecodeRuneInString(text[j:])
			if !unicode.IsSpace(r) {
				break
			}
			j += n
		}
		out = append(out, sentence{text[start:end], text[end:j]})
		start = j
		return j
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '\n':
			i = push(i)
		case c == '.' || c == '!' || c == '?':
			j := i + 1
			for j < len(text) && strings.IndexByte(`.!?")'`+"`", text[j]) >= 0 {
				j++
			}
			if j == len(text) || text[j] == ' ' || text[j] == '\n' || text[j] == '\t' || text[j] == '\r' {
				if abbreviated(text[start:i]) {
					i = j
					continue
				}
				i = push(j)
				continue
			}
			i = j
		case c == 0xe3 && strings.HasPrefix(text[i:], "。"), c == 0xef && (strings.HasPrefix(text[i:], "！") || strings.HasPrefix(text[i:], "？")):
			i = push(i + 3)
		default:
			i++
		}
	}
	if start < len(text) {
		push(len(text))
	}
	return out
}

// abbreviated reports that the dot behind s ends no sentence.
func abbreviated(s string) bool {
	i := strings.LastIndexAny(s, " \t\n(")
	switch strings.ToLower(s[i+1:]) {
	case "e.g", "i.e", "etc", "cf", "vs", "dr", "mr", "mrs", "ms", "st", "no", "fig", "eq", "al", "approx", "inc", "ltd", "jr", "sr", "prof":
		return true
	}
	return false
}

// fillers are said without adding anything, and what takes their place.
var fillers = []struct{ say, instead string }{
	{"It is important to note that ", ""}, {"it is important to note that ", ""}, {"it is basically important to note that ", ""},
	{"It should be noted that ", ""}, {"it should be noted that ", ""}, {"It is worth noting that ", ""}, {"it is worth noting that ", ""},
	{"It is worth mentioning that ", ""}, {"it is worth mentioning that ", ""}, {"Please note that ", ""}, {"please note that ", ""},
	{"As a matter of fact, ", ""}, {"as a matter of fact, ", ""}, {"Needless to say, ", ""}, {"needless to say, ", ""},
	{"In order to be able to ", "To "}, {"in order to be able to ", "to "}, {"In order to ", "To "}, {"in order to ", "to "},
	{"due to the fact that ", "because "}, {"Due to the fact that ", "Because "}, {"at this point in time", "now"}, {"for the purpose of ", "for "},
	{"in the event that ", "if "}, {"In the event that ", "If "}, {" basically ", " "}, {" essentially ", " "}, {" actually ", " "}, {" really ", " "}, {" very ", " "}, {" quite ", " "}, {" simply ", " "},
}

// careful are words beside which nothing is touched: what they say hangs on
// every word.
var careful = []string{"not", "no", "never", "without", "none", "nor", "neither", "cannot", "nothing", "except", "unless", "only", "must", "should", "shall", "may", "nie", "kein", "nicht", "pas", "jamais", "не", "нет"}

// withoutFillers takes fillers out of a sentence that has no negation, number,
// quote, code or identifier.
func withoutFillers(s string) (string, int) {
	if len(s) < 24 || strings.ContainsAny(s, "\"'`0123456789_<>{}[]=|\\/@#$*“”‘’«»") {
		return s, 0
	}
	for w := range strings.FieldsSeq(strings.ToLower(s)) {
		w = strings.Trim(w, ".,;:!?()")
		for _, c := range careful {
			if w == c {
				return s, 0
			}
		}
	}
	words := len(strings.Fields(s))
	for _, f := range fillers {
		if strings.Contains(s, f.say) {
			s = strings.ReplaceAll(s, f.say, f.instead)
		}
	}
	return s, words - len(strings.Fields(s))
}
