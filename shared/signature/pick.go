package signature

import (
	"cmp"
	"slices"
	"strings"
)

// choose picks one of a rule's hits.
func (t *text) choose(p pick, hs []hit) int {
	switch p {
	case last:
		return hs[len(hs)-1].at
	case least:
		return t.least(hs)
	case deepest:
		return t.deepest(hs)
	case chain:
		return t.chain(hs)
	}
	return hs[0].at
}

// least takes the first hit of each key and the smallest normal form of those.
func (t *text) least(hs []hit) int {
	type one struct {
		key, norm string
		at        int
	}
	var firsts []one
	seen := map[string]bool{}
	for _, h := range hs {
		if seen[h.key] && h.key != "" || h.key == "" && len(firsts) >= 64 {
			continue
		}
		seen[h.key] = true
		firsts = append(firsts, one{h.key, Normalise(t.lines[h.at].text), h.at})
	}
	return slices.MinFunc(firsts, func(a, b one) int {
		return cmp.Or(cmp.Compare(a.norm, b.norm), cmp.Compare(a.at, b.at))
	}).at
}

// deepest takes the most indented hit of the first block of hits; of equals the
// last for `Caused by:`, else the first.
func (t *text) deepest(hs []hit) int {
	best, depth := hs[0].at, indent(t.lines[hs[0].at].text)
	for k, h := range hs {
		if k > 0 && !t.sameBlock(hs[k-1].at, h.at) {
			break
		}
		s := t.lines[h.at].text
		caused := strings.Contains(s, "Caused by:")
		if d := indent(s); caused || d > depth {
			best, depth = h.at, d
		}
	}
	return best
}

// sameBlock reports whether two hits are of one stack trace or one explanation:
// no new title stands between them.
func (t *text) sameBlock(a, b int) bool {
	if b-a > 400 {
		return false
	}
	for i := a + 1; i < b; i++ {
		s := t.lines[i].text
		if strings.HasPrefix(s, "* ") || strings.HasPrefix(s, "FAILURE:") || strings.HasPrefix(s, "Exception in thread") || strings.Contains(s, "<<< ") || freshTrace(s) {
			return false
		}
	}
	return true
}

// freshTrace reports whether a line begins a stack trace of its own.
func freshTrace(s string) bool {
	if s == "" || s[0] == ' ' || s[0] == '\t' || strings.Contains(s, "Caused by:") {
		return false
	}
	name, _, _ := strings.Cut(s, ":")
	return strings.Contains(name, ".") && !strings.Contains(name, " ") && (strings.HasSuffix(name, "Exception") || strings.HasSuffix(name, "Error"))
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// chain finds the first exception of Python's last chain: tracebacks that are
// joined by "the direct cause of" and "During handling".
func (t *text) chain(hs []hit) int {
	k := len(hs) - 1
	for k > 0 {
		linked := false
		for i := hs[k-1].at + 1; i < hs[k].at; i++ {
			s := t.lines[i].text
			if strings.Contains(s, "was the direct cause of the following exception") || strings.Contains(s, "During handling of the above exception") {
				linked = true
				break
			}
		}
		if !linked {
			break
		}
		k--
	}
	return hs[k].at
}
