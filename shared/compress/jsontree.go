package compress

import (
	"encoding/json"
	"strings"
)

// jnode is a value of a JSON text. Values stand in document order, each before
// what it holds, so that next leads over it.
type jnode struct {
	start, end int32 // of its bytes
	key, keyTo int32 // of its name with quotes, in an object
	next       int32 // index behind it and all it holds
	kind       byte  // { [ " n (number) l (true, false, null)
}

// Limits of what is looked at. A deeper or larger text is left as it is.
const (
	maxDepth = 512
	maxNodes = 4 << 20
)

// jtree is a text as its values. The text is the authority: a result is made by
// leaving out ranges of its bytes, so that literals, the order and repetition of
// keys, and white space stay as they are.
type jtree struct {
	text  string
	nodes []jnode
}

// parse reads one valid value at i and gives the place behind it, or -1 where
// the text is over a limit or not JSON.
func (t *jtree) parse(i, depth int) int {
	s := t.text
	if depth > maxDepth || len(t.nodes) >= maxNodes || i >= len(s) {
		return -1
	}
	me := len(t.nodes)
	t.nodes = append(t.nodes, jnode{start: int32(i)})
	end := -1
	switch c := s[i]; c {
	case '{', '[':
		t.nodes[me].kind = c
		end = t.members(i, depth, c == '{')
	case '"':
		t.nodes[me].kind = '"'
		end = stringEnd(s, i)
	case 't', 'f', 'n':
		t.nodes[me].kind = 'l'
		end = wordEnd(s, i)
	default:
		t.nodes[me].kind = 'n'
		end = wordEnd(s, i)
	}
	if end < 0 || end == i {
		return -1
	}
	t.nodes[me].end = int32(end)
	t.nodes[me].next = int32(len(t.nodes))
	return end
}

func (t *jtree) members(i, depth int, object bool) int {
	s := t.text
	closing := byte(']')
	if object {
		closing = '}'
	}
	i = space(s, i+1)
	if i < len(s) && s[i] == closing {
		return i + 1
	}
	for i < len(s) {
		key, keyTo := 0, 0
		if object {
			if s[i] != '"' {
				return -1
			}
			key = i
			if keyTo = stringEnd(s, i); keyTo < 0 {
				return -1
			}
			i = space(s, keyTo)
			if i >= len(s) || s[i] != ':' {
				return -1
			}
			i = space(s, i+1)
		}
		child := len(t.nodes)
		if i = t.parse(i, depth+1); i < 0 {
			return -1
		}
		t.nodes[child].key, t.nodes[child].keyTo = int32(key), int32(keyTo)
		i = space(s, i)
		switch {
		case i >= len(s):
			return -1
		case s[i] == closing:
			return i + 1
		case s[i] != ',':
			return -1
		}
		i = space(s, i+1)
	}
	return -1
}

func space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

func stringEnd(s string, i int) int {
	for i++; i < len(s); {
		j := strings.IndexByte(s[i:], '"')
		if j < 0 {
			return -1
		}
		i += j + 1
		k := i - 2
		for k >= 0 && s[k] == '\\' {
			k--
		}
		if (i-2-k)%2 == 0 {
			return i
		}
	}
	return -1
}

func wordEnd(s string, i int) int {
	for i < len(s) && s[i] != ',' && s[i] != ']' && s[i] != '}' && s[i] > ' ' {
		i++
	}
	return i
}

// children calls f with each value that node i holds, in order.
func (t *jtree) children(i int32, f func(child int32)) {
	for c := i + 1; c < t.nodes[i].next; c = t.nodes[c].next {
		f(c)
	}
}

func (t *jtree) raw(i int32) string { return t.text[t.nodes[i].start:t.nodes[i].end] }

// name is the node's key as it is written, without quotes.
func (t *jtree) name(i int32) string {
	n := &t.nodes[i]
	if n.keyTo == 0 {
		return ""
	}
	return t.text[n.key+1 : n.keyTo-1]
}

// strayShare is how many of the lines of a stream may be no JSON: a program that
// logs JSON is started by one that does not. They stay.
const strayShare = 0.1

// fewStrays may be half of the lines of a stream: what is left of a long one has few
// lines beside them.
const fewStrays = 20

func strays(stray, lines int) bool {
	return float64(stray) <= strayShare*float64(lines) || stray <= fewStrays && stray*2 <= lines
}

// isJSONStream reports values one after another: at least two, most often one a
// line.
func isJSONStream(text string) bool {
	lines, stray := countLines(text)
	if lines >= 2 && strays(stray, lines) {
		return true
	}
	t := jtree{text: text}
	roots, ok := t.stream()
	return ok && len(roots) >= 2
}

// countLines counts the lines that are not blank, and those of them that are
// neither object nor array.
func countLines(text string) (lines, stray int) {
	for l := range strings.SplitSeq(text, "\n") {
		l = strings.TrimSpace(l)
		if l == "" {
			continue
		}
		lines++
		if l[0] != '{' && l[0] != '[' || !json.Valid([]byte(l)) {
			stray++
			if lines > 50 && stray*2 > lines {
				return lines, stray
			}
		}
	}
	return lines, stray
}

// stream reads values one after another, over any lines.
func (t *jtree) stream() (roots []int32, ok bool) {
	for i := space(t.text, 0); i < len(t.text); {
		start := i
		roots = append(roots, int32(len(t.nodes)))
		if i = t.parse(i, 0); i < 0 || t.text[start] != '{' && t.text[start] != '[' || !json.Valid([]byte(t.text[start:i])) {
			return nil, false
		}
		i = space(t.text, i)
	}
	return roots, true
}

// lineStream reads a value a line. A line that is none is a node of kind x; ok is
// false where too many are.
func (t *jtree) lineStream() (roots []int32, ok bool) {
	stray := 0
	for i := 0; i < len(t.text); {
		end := len(t.text)
		if j := strings.IndexByte(t.text[i:], '\n'); j >= 0 {
			end = i + j
		}
		start, stop := i, end
		for start < stop && t.text[start] <= ' ' {
			start++
		}
		for start < stop && t.text[stop-1] <= ' ' {
			stop--
		}
		if start < stop {
			root := len(t.nodes)
			roots = append(roots, int32(root))
			if c := t.text[start]; c != '{' && c != '[' || t.parse(start, 0) != stop {
				stray++
				t.nodes = append(t.nodes[:root], jnode{start: int32(start), end: int32(stop), next: int32(root + 1), kind: 'x'})
			}
		}
		i = end + 1
	}
	return roots, len(roots) >= 2 && strays(stray, len(roots))
}
