package gru

import (
	"encoding/json"
	"math"
	"strings"
	"unicode"
)

// Token is a token of a reply, with the likeliest ones in its place.
type Token struct {
	Prob
	Top []Prob // itself included where it is among them
}

// Prob is a token and its natural log-probability.
type Prob struct {
	Text    string
	Logprob float64
}

const (
	// scoreTolerance is how large the probability of the word that is not listed
	// may be, against the one that is, to count as 0.
	scoreTolerance = 0.01
	// scoreForms are the tokens that one word may begin with: "no", " no", "No",
	// " No", "n", " n". None that is not listed is likelier than the last that is.
	scoreForms = 6
)

// Score is the model's own probability that check is yes: P(yes) / (P(yes) +
// P(no)), in [0,1], at the token where the value begins; nil where it cannot be
// told. It is what the model says of itself: not calibrated, and under a schema
// taken before the server's constraint.
//
// tokens are what was generated, a thought in front included; content is the reply
// as it was read, and must stand in them. A value that is split ("y", "es") is
// told by its first token, as the two words differ there; white space, quotes and
// brackets before the word, and its case, do not matter. A word that is not among
// the listed counts as 0 where it could not have a hundredth of the other's
// probability; else nothing is told.
func Score(asJSON bool, content string, tokens []Token) *float64 {
	find := checkInTags
	if asJSON {
		find = checkInJSON
	}
	at, ok := find(content)
	if !ok || len(tokens) == 0 {
		return nil
	}
	var text strings.Builder
	for _, t := range tokens {
		text.WriteString(t.Text)
	}
	// The last place: a thought may quote what is then said.
	begin := strings.LastIndex(text.String(), content)
	if begin < 0 {
		return nil
	}
	at += begin
	i := 0
	for ; at >= len(tokens[i].Text); i++ {
		at -= len(tokens[i].Text)
	}
	return share(tokens[i])
}

// share weighs the two words against each other among the tokens of one place.
func share(t Token) *float64 {
	own := wordOf(t.Text)
	if own == 0 {
		return nil
	}
	var yes, no, listed float64
	least := math.Inf(1)
	seen := map[string]bool{}
	for _, p := range append([]Prob{t.Prob}, t.Top...) {
		if seen[p.Text] {
			continue
		}
		seen[p.Text] = true
		prob := math.Exp(p.Logprob)
		if math.IsNaN(prob) || prob > 1.001 { // rounded sums of a server; more is no probability
			return nil
		}
		listed += prob
		least = min(least, prob)
		switch wordOf(p.Text) {
		case 'y':
			yes += prob
		case 'n':
			no += prob
		}
	}
	if yes == 0 || no == 0 {
		unseen := min(max(1-listed, 0), scoreForms*least)
		if yes+no == 0 || unseen > scoreTolerance*(yes+no) {
			return nil
		}
	}
	s := yes / (yes + no)
	return &s
}

// wordOf is 'y' or 'n' for a token that begins, or is, one of the two words; 0 for
// any other.
func wordOf(token string) byte {
	word := strings.TrimLeftFunc(token, func(r rune) bool { return !unicode.IsLetter(r) })
	rest := strings.TrimLeftFunc(word, unicode.IsLetter)
	word = strings.ToLower(word[:len(word)-len(rest)])
	for _, w := range []string{"yes", "no"} {
		// A beginning alone is one only where the token ends with it: "not", "none"
		// and "you" are others.
		if word == w || word != "" && rest == "" && strings.HasPrefix(w, word) {
			return w[0]
		}
	}
	return 0
}

// checkInTags is the offset of the value of the one <check>.
func checkInTags(content string) (int, bool) {
	const start, stop = "<check>", "</check>"
	if strings.Count(content, start) != 1 {
		return 0, false
	}
	from := strings.Index(content, start) + len(start)
	n := strings.Index(content[from:], stop)
	if n < 0 {
		return 0, false
	}
	value := content[from : from+n]
	trimmed := strings.TrimLeftFunc(value, unicode.IsSpace)
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "yes", "no":
		return from + len(value) - len(trimmed), true
	}
	return 0, false
}

// checkInJSON is the offset of the value of the object's own "check", behind its
// quote.
func checkInJSON(content string) (at int, ok bool) {
	dec := json.NewDecoder(strings.NewReader(content))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return 0, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return 0, false
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			return 0, false
		}
		if name != "check" {
			continue
		}
		if ok || string(v) != `"yes"` && string(v) != `"no"` { // a second one leaves open which is meant
			return 0, false
		}
		at, ok = int(dec.InputOffset())-len(v)+1, true
	}
	return at, ok
}
