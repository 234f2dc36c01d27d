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

// isJSONStream reports values one after another: at least two, each valid, most
// often one a line. Lines of other text between them make it none.
func isJSONStream(text string) bool {
	first, rest, ok := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "\n")
	if !ok || strings.TrimSpace(rest) == "" {
		return false
	}
	if !json.Valid([]byte(first)) && len(text) > 1<<20 {
		return false // values over several lines, in a large text: its lines say as much
	}
	values, _ := streamValues(text)
	return values >= 2
}

// streamValues counts the values of a stream; 0 where it is none.
func streamValues(text string) (n int, ok bool) {
	if lineValues(text) {
		return strings.Count(strings.TrimSpace(text), "\n") + 1, true
	}
	dec := json.NewDecoder(strings.NewReader(text))
	for dec.More() {
		var raw json.RawMessage
		if dec.Decode(&raw) != nil || raw[0] != '{' && raw[0] != '[' {
			return 0, false
		}
		n++
	}
	return n, dec.InputOffset() >= int64(len(strings.TrimRight(text, " \t\r\n")))
}

// lineValues reports that each line that is not blank is one object or array.
func lineValues(text string) bool {
	for l := range strings.SplitSeq(text, "\n") {
		l = strings.TrimSpace(l)
		if l == "" {
			continue
		}
		if l[0] != '{' && l[0] != '[' || !json.Valid([]byte(l)) {
			return false
		}
	}
	return true
}
