package compress

import (
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/token"
)

// counter is loaded at the first text that needs it. Without its table tokens
// are estimated from bytes.
var counter = sync.OnceValue(func() func(string) int {
	t, err := token.Default()
	if err != nil {
		return func(s string) int { return (len(s) + 3) / 4 }
	}
	return t.Count
})

// Tokens counts exactly, by the Qwen2.5 vocabulary.
func Tokens(text string) int { return counter()(text) }

// maxShare is the share of the input's tokens under which a result is given:
// above it what a reader loses is worth more.
const maxShare = 0.9

// maxShareCode is the same for code, whose outline is asked for.
const maxShareCode = 0.97

// Up to exactBytes every token is counted. Above it windows are, where the byte
// count already tells (sureShare); where it does not, all up to wholeBytes.
const (
	exactBytes = 8 << 10
	wholeBytes = 1 << 20
	sureShare  = 0.6
)

// worth reports that out has less than maxShare of the tokens of in.
func worth(in, out string) bool { return under(in, out, maxShare) }

func under(in, out string, share float64) bool {
	switch {
	case len(out) >= len(in):
		return false
	case len(out)*5 < len(in) && !sparse(in):
		// What is left are lines of the input and marks: were they made of five
		// times as many tokens a byte, the rest would be nearly empty lines.
		return true
	case float64(len(out)) > sureShare*float64(len(in)) && len(in) <= wholeBytes:
		return float64(Tokens(out)) < share*float64(Tokens(in))
	}
	return estimate(out) < share*estimate(in)
}

// sparse reports that a text is mostly white space or one repeated byte, which
// costs few tokens a byte.
func sparse(s string) bool {
	w := windows(s, 1<<10)
	return strings.Count(w, " ")+strings.Count(w, "\n")+strings.Count(w, "\t")+strings.Count(w, w[:1]) > len(w)/2
}

func estimate(s string) float64 {
	if len(s) <= exactBytes {
		return float64(Tokens(s))
	}
	w := windows(s, exactBytes/4)
	return float64(Tokens(w)) / float64(len(w)) * float64(len(s))
}

// windows gives four pieces of n bytes at even distances.
func windows(s string, n int) string {
	if len(s) <= 4*n {
		return s
	}
	var b strings.Builder
	step := (len(s) - n) / 3
	for i := range 4 {
		b.WriteString(s[i*step : i*step+n])
	}
	return b.String()
}
