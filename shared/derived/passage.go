package derived

import "strings"

// Passage is text [From,To) that the memory gave out. It ends behind the marks
// that close it.
type Passage struct {
	From, To int
	// Cited says that a node suffix stands in it or right behind it: nobody
	// types those.
	Cited bool
}

// Passages finds what text has of the first n statements and the first m
// shingles; ascending, apart. Time is linear in the text, and in the statements only where a row of them is
// found.
func (x *Index) Passages(text string, n, m int) []Passage {
	n = min(n, len(x.statements))
	if n+m == 0 || len(x.starts) == 0 {
		return nil
	}
	ws, open := words(x.text[:0], text)
	x.text, x.open = ws, open
	if len(ws) < minTokens {
		return nil
	}
	x.sums = append(x.sums[:0], 0)
	for i := range ws {
		x.sums = append(x.sums, step(x.sums[i], ws[i].hash))
	}
	var out []Passage
	found := x.rows(n, m)
	for i := 0; i < len(ws); {
		from, to, ok := i, i, false
		if found && x.next[i] > 0 {
			from, to, ok = x.row(text, i, n)
		}
		if !ok && len(x.anchors) > 0 {
			from, to, ok = x.part(text, i, n)
		}
		if !ok {
			i++
			continue
		}
		// The part of a statement before a row may begin before i, never inside
		// the passage before.
		p := Passage{From: ws[from].from, To: x.closing(text, to)}
		if len(out) > 0 {
			p.From = max(p.From, out[len(out)-1].To)
		}
		for k := from + 1; k <= to; k++ {
			if k < len(ws) && ws[k].cited || k == len(ws) && open {
				p.Cited = true
				break
			}
		}
		out = append(out, p)
		i = max(to, i+1)
	}
	return out
}

// of is the hash of tokens [i,j).
func (x *Index) of(i, j int) uint64 {
	p := uint64(1)
	for b, e := uint64(base), j-i; e > 0; e >>= 1 {
		if e&1 != 0 {
			p *= b
		}
		b *= b
	}
	return x.sums[j] - x.sums[i]*p
}

// rows finds, for every token, the row of whole statements with the most words
// that begins there, and where its first statement ends. It reports whether
// there is any.
func (x *Index) rows(n, m int) bool {
	ws := x.text
	x.best, x.next = zeros(x.best, len(ws)+1), zeros(x.next, len(ws)+1)
	found := false
	for i := len(ws) - minTokens; i >= 0; i-- {
		for _, length := range x.starts[uint32(x.of(i, i+minTokens))] {
			j := i + int(length)
			if j > len(ws) {
				continue
			}
			w := x.size(i, j, n, m)
			if w == 0 {
				continue
			}
			if w += x.best[j]; w > x.best[i] {
				x.best[i], x.next[i] = w, int32(j)
				found = true
			}
		}
	}
	return found
}

// size is how many words tokens [i,j) have, where they are a whole statement.
func (x *Index) size(i, j, n, m int) int32 {
	full := x.of(i, j)
	if id, ok := x.whole[full]; ok && int(id) < n && len(x.statements[id].tokens) == j-i && x.equal(id, 0, i, j) {
		return x.statements[id].words
	}
	if s, ok := x.others[full]; ok && int(s.id) < m && int(s.tokens) == j-i {
		return s.words
	}
	return 0
}

func zeros(s []int32, n int) []int32 {
	if cap(s) < n {
		return make([]int32, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// equal reports whether tokens [i,j) are those of a statement from at on.
func (x *Index) equal(id int32, at, i, j int) bool {
	t := x.statements[id].tokens
	if at < 0 || at+j-i > len(t) {
		return false
	}
	for k := i; k < j; k++ {
		if !t[at+k-i].same(x.text[k].hash) {
			return false
		}
	}
	return true
}

// row is the passage of the row of statements that begins at token i.
func (x *Index) row(text string, i, n int) (from, to int, ok bool) {
	from, to = i, i
	for x.next[to] > 0 {
		to = int(x.next[to])
	}
	total := x.best[i]
	// An excerpt: a part of a statement before, from the paragraph's begin, and
	// one behind, to its end.
	for k := i - 1; k >= max(0, i-x.longest) && !x.paragraph(text, k+1); k-- {
		if !x.paragraph(text, k) {
			continue
		}
		if w := x.tail(k, i, n); w > 0 {
			from, total = k, total+w
		}
	}
	for end, k := to, to+1; k <= min(len(x.text), end+x.longest) && !x.paragraph(text, k-1); k++ {
		if !x.paragraph(text, k) {
			continue
		}
		if w := x.head(end, k, n); w > 0 {
			to, total = k, total+w
		}
	}
	if total >= MinWords {
		return from, to, true
	}
	to = int(x.next[i])
	// One statement, with its node's suffix.
	if to < len(x.text) && x.text[to].cited || to == len(x.text) && x.open {
		return i, to, true
	}
	// One statement, over two lines or more.
	if x.best[i]-x.best[to] < lineWords || !x.border(text, i) || !x.border(text, to) ||
		!strings.Contains(text[x.text[i].from:x.text[to-1].to], "\n") {
		return 0, 0, false
	}
	return i, to, true
}

// tail is how many words tokens [i,j) have, where they end a statement.
func (x *Index) tail(i, j, n int) int32 {
	for id := range x.statements[:n] {
		if t := x.statements[id].tokens; len(t) > j-i && x.equal(int32(id), len(t)-(j-i), i, j) {
			return count(t[len(t)-(j-i):])
		}
	}
	return 0
}

// head is how many words tokens [i,j) have, where they begin a statement.
func (x *Index) head(i, j, n int) int32 {
	for id := range x.statements[:n] {
		if t := x.statements[id].tokens; len(t) > j-i && x.equal(int32(id), 0, i, j) {
			return count(t[:j-i])
		}
	}
	return 0
}

// part is the passage of MinWords consecutive words or more of one long
// statement, found by the anchor that begins at token i. It is widened to the
// sentence that it stands in: what is left of a sentence says nothing.
func (x *Index) part(text string, i, n int) (from, to int, ok bool) {
	if i+anchorTokens > len(x.text) {
		return 0, 0, false
	}
	for _, p := range x.anchors[x.of(i, i+anchorTokens)] {
		if int(p.statement) >= n || !x.equal(p.statement, int(p.at), i, i+anchorTokens) {
			continue
		}
		t := x.statements[p.statement].tokens
		a, b := i, i+anchorTokens
		for a > 0 && int(p.at)-(i-a) > 0 && t[int(p.at)-(i-a)-1].same(x.text[a-1].hash) {
			a--
		}
		for b < len(x.text) && int(p.at)+b-i < len(t) && t[int(p.at)+b-i].same(x.text[b].hash) {
			b++
		}
		if count(t[int(p.at)-(i-a):int(p.at)+b-i]) < MinWords {
			continue
		}
		for a > 0 && !x.stop(text, a) {
			a--
		}
		for b < len(x.text) && !x.stop(text, b) {
			b++
		}
		return a, b, true
	}
	return 0, 0, false
}

// stop reports whether a sentence ends before token i.
func (x *Index) stop(text string, i int) bool {
	if x.paragraph(text, i) {
		return true
	}
	g := x.gap(text, i)
	k := strings.IndexAny(g, ".!?")
	return k >= 0 && strings.ContainsAny(g[k:], " \n\t")
}

// closing is the end of a passage whose last token is the one before i: behind
// what closes it on its line, node suffix and list mark included.
func (x *Index) closing(text string, i int) int {
	g := x.gap(text, i)
	if n := strings.IndexByte(g, '\n'); n >= 0 {
		g = g[:n]
	}
	return x.text[i-1].to + len(g)
}
