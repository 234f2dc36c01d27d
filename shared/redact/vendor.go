package redact

import (
	"math"
	"regexp"
	"strings"
	"sync"
)

//go:generate go run ./internal/genrules

// vendorPrefix is a rule of gitleaks whose matches begin with a literal. expr
// is anchored at its start and compiled when the prefix first stands in a text
// with enough token bytes behind it.
type vendorPrefix struct {
	prefix  string
	fold    bool // the prefix is lower case and stands for any case
	min     int  // length of the shortest match in bytes
	kind    string
	entropy float64 // least Shannon entropy of the match in bits a byte
	expr    string

	once sync.Once
	re   *regexp.Regexp
}

// vendorName is a rule of gitleaks that wants a vendor's name near an
// assignment: expr holds name, separator and value, which is its first group.
type vendorName struct {
	kind     string
	keywords []string // lower case; one stands in every match
	entropy  float64
	expr     string

	once sync.Once
	re   *regexp.Regexp
}

func (p *vendorPrefix) regexp() *regexp.Regexp {
	p.once.Do(func() { p.re = regexp.MustCompile(p.expr) })
	return p.re
}

func (n *vendorName) regexp() *regexp.Regexp {
	n.once.Do(func() { n.re = regexp.MustCompile(n.expr) })
	return n.re
}

// maxVendorToken bounds the text that a vendor's expression reads: the longest
// fixed form (Slack's configuration token, Vault's batch token) is under 400.
const maxVendorToken = 512

func (p *vendorPrefix) begins(s string) bool {
	return len(s) >= len(p.prefix) && (s[:len(p.prefix)] == p.prefix || p.fold && strings.EqualFold(s[:len(p.prefix)], p.prefix))
}

// at reads the rule's token, whose prefix stands at i. Joints are read over,
// when the text behind them makes the exact length.
func (p *vendorPrefix) at(text string, i int) (found, bool) {
	if strings.IndexByte(p.prefix, '.') >= 0 && inWord(text, i) {
		return found{}, false
	}
	// Nearly every word that begins alike is shorter than the token: look at
	// the bytes before running the expression.
	n := run(text[:min(len(text), i+maxVendorToken)], i, vendorByte)
	if n-i >= p.min {
		if e, ok := p.match(text[i:min(len(text), i+maxVendorToken)]); ok && !inBase64(text, i, i+e) {
			return found{start: i, end: i + e, kind: p.kind}, true
		}
	}
	if n-i < len(p.prefix) {
		return found{}, false
	}
	var f found
	unfold(text, i, n, maxVendorToken, func(joined string, ends []int) bool {
		if len(joined) < p.min {
			return false
		}
		e, ok := p.match(joined)
		if !ok || i+e <= n {
			return false
		}
		f = found{start: i, end: ends[e-1], kind: p.kind, secret: joined[:e]}
		return true
	})
	return f, f.end > 0
}

// minBlob is the length of a base64 run that is data, not a token beside a
// slash.
const minBlob = 24

// blob says that a run of base64 bytes is data, not the folders of a path.
func blob(s string) bool { return len(s) >= minBlob && mixed(s) && hasDigit(s) }

// inBase64 says that [s,e) is a stretch of longer base64: a + or / borders it
// and more follows.
func inBase64(text string, s, e int) bool {
	before, after := "", ""
	if s > 0 && (text[s-1] == '/' || text[s-1] == '+') {
		k := s
		for k > 0 && s-k < 3*minBlob && standard64.has(text[k-1]) {
			k--
		}
		before = text[k:s]
	}
	if e < len(text) && (text[e] == '/' || text[e] == '+') {
		after = text[e:run(text[:min(len(text), e+3*minBlob)], e, standard64)]
	}
	return len(before)+len(after) >= minBlob && blob(before+after)
}

// match is the length of the token with which s begins.
func (p *vendorPrefix) match(s string) (int, bool) {
	m := p.regexp().FindStringSubmatchIndex(s)
	if m == nil {
		return 0, false
	}
	e := m[1]
	if len(m) > 3 && m[2] == 0 {
		e = m[3] // the expression ends in a byte that follows the token
	}
	for e > p.min && s[e-1] == '.' {
		e--
	}
	if e < len(s) && class[s[e]] == wordByte || !hasDigit(s[:e]) && p.min < 37 || entropy(s[:e]) < p.entropy || isStub(s[len(p.prefix):e]) {
		return 0, false
	}
	return e, true
}

// vendorByte are the bytes of vendors' tokens.
const vendorByte = dotted

// Of the text around a value, what a vendor's expression may need: 50 bytes of
// a name, 20 between it and the separator, and quotes.
const vendorLook = 96

// namedAt matches the rules that want a vendor's name left of the value
// [s,end), whose separator stands at sep.
func namedAt(text string, from, sep, s, end int) (f found, ok bool) {
	from = max(from, sep-vendorLook)
	if nl := strings.LastIndexByte(text[from:sep], '\n'); nl >= 0 {
		from += nl + 1
	}
	vendorWords().each(text[from:min(end, sep+vendorLook)], func(id int) bool {
		n := vendorNames[id]
		m := n.regexp().FindStringSubmatchIndex(text[from:min(len(text), end+2)])
		// The secret is the group that lies in the value.
		a, b := 0, 0
		for g := 2; g+1 < len(m) && b == 0; g += 2 {
			if m[g] >= 0 && from+m[g] >= s && from+m[g+1] <= end {
				a, b = from+m[g], from+m[g+1]
			}
		}
		if b == 0 || entropy(text[a:b]) < n.entropy || !hasDigit(text[a:b]) {
			return false
		}
		f, ok = found{start: a, end: b, kind: n.kind}, true
		return true
	})
	return f, ok
}

// entropy is the Shannon entropy of s in bits a byte.
func entropy(s string) float64 {
	if s == "" {
		return 0
	}
	var n [256]int
	for i := 0; i < len(s); i++ {
		n[s[i]]++
	}
	h := 0.0
	for _, c := range n {
		if c > 0 {
			p := float64(c) / float64(len(s))
			h -= p * math.Log2(p)
		}
	}
	return h
}
