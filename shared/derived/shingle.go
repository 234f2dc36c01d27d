package derived

import (
	"fmt"
	"strconv"
	"strings"
)

// ShingleVersion begins every shingle. A shingle of another version is not
// known again.
//
// History: w1 — first.
const ShingleVersion = "w1"

// Shingle is what a log keeps of a statement to know it again as a whole,
// without its text: version, hash of all tokens, hash of the first three, tokens
// and words, such as "w1-9c41d0e51f0a77c2-08fa7701-16-15". It is empty for a
// statement of fewer than three tokens.
func Shingle(text string) string {
	ws, _ := words(nil, text)
	if len(ws) < minTokens {
		return ""
	}
	tokens := make([]hash, len(ws))
	for i := range ws {
		tokens[i] = ws[i].hash
	}
	return fmt.Sprintf("%s-%016x-%08x-%d-%d", ShingleVersion, sum(tokens), uint32(sum(tokens[:minTokens])), len(tokens), count(tokens))
}

// maxTokens bounds a shingle's sizes: no statement is longer.
const maxTokens = 1 << 16

// parse reads a shingle.
func parse(s string) (whole uint64, start uint32, o other, ok bool) {
	f := strings.Split(s, "-")
	if len(f) != 5 || f[0] != ShingleVersion {
		return 0, 0, other{}, false
	}
	whole, err1 := strconv.ParseUint(f[1], 16, 64)
	first, err2 := strconv.ParseUint(f[2], 16, 32)
	tokens, err3 := strconv.Atoi(f[3])
	words, err4 := strconv.Atoi(f[4])
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || tokens < minTokens || tokens > maxTokens || words < 1 || words > tokens {
		return 0, 0, other{}, false
	}
	return whole, uint32(first), other{tokens: int32(tokens), words: int32(words)}, true
}

// AddShingle adds a statement of which only the shingle is known. It is found as
// a whole, never in part. One that cannot be read has a place and is never
// found.
func (x *Index) AddShingle(s string) {
	x.init()
	whole, start, o, ok := parse(s)
	o.id = int32(x.shingles)
	x.shingles++
	if !ok {
		return
	}
	if _, known := x.others[whole]; known {
		return
	}
	x.others[whole] = o
	x.longest = max(x.longest, int(o.tokens))
	x.start(start, o.tokens)
}

// Knows reports whether a shingle is that of one of the first n statements or
// of the first m shingles.
func (x *Index) Knows(s string, n, m int) bool {
	whole, _, o, ok := parse(s)
	if !ok {
		return false
	}
	if id, ok := x.whole[whole]; ok && int(id) < n && len(x.statements[id].tokens) == int(o.tokens) {
		return true
	}
	have, ok := x.others[whole]
	return ok && int(have.id) < m && have.tokens == o.tokens
}
