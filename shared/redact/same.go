package redact

import (
	"slices"
	"strings"
)

// A value that one place of a text names as a secret is masked wherever else it
// stands in that text: `export DB_PASSWORD=…` and, ten lines on, `psql … it`.

const (
	minSame     = 8        // shorter values are words too
	maxSame     = 256      // secrets of one text that are looked for
	sameBudget  = 64 << 20 // bytes read for that at most
	maxSameHits = 1 << 12
)

// same adds the other places of the finds' secrets.
func same(text string, all []found) []found {
	if len(all) == 0 {
		return all
	}
	seen := map[string]bool{}
	var more []found
	budget := sameBudget
	for _, f := range all {
		v := f.value(text)
		if len(v) < minSame || strings.HasPrefix(v, "pem:") || !hasDigit(v) && symbols(v) == 0 || seen[v] {
			continue
		}
		if seen[v] = true; len(seen) > maxSame {
			break
		}
		if budget -= len(text); budget < 0 {
			break
		}
		for at := 0; len(more) < maxSameHits; {
			k := strings.Index(text[at:], v)
			if k < 0 {
				break
			}
			s, e := at+k, at+k+len(v)
			at = e
			if s > 0 && class[text[s-1]] == wordByte && class[v[0]] == wordByte && !escaped(text, s) || e < len(text) && class[text[e]] == wordByte && class[v[len(v)-1]] == wordByte {
				continue
			}
			more = append(more, found{start: s, end: e, kind: f.kind})
		}
	}
	// A place that a rule found itself stays the rule's.
	return merge(all, more)
}

// escaped says that the letter before s belongs to an escape such as `\n`.
func escaped(text string, s int) bool {
	return s > 1 && text[s-2] == '\\' && strings.IndexByte("nrt", text[s-1]) >= 0
}

// merge is the finds of a, and those of b that touch none of them and no mark.
func merge(a, b []found) []found {
	if len(b) == 0 {
		return a
	}
	slices.SortStableFunc(a, func(x, y found) int { return x.start - y.start })
	slices.SortStableFunc(b, func(x, y found) int { return x.start - y.start })
	out := make([]found, 0, len(a)+len(b))
	i, end := 0, 0
	for _, f := range b {
		for i < len(a) && a[i].start <= f.start {
			out = append(out, a[i])
			end = a[i].end
			i++
		}
		if f.start < end || i < len(a) && f.end > a[i].start {
			continue
		}
		out = append(out, f)
		end = f.end
	}
	return append(out, a[i:]...)
}
