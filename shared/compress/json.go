package compress

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// edit is a range of a text that another text takes the place of.
type edit struct {
	start, end int
	mark       string
	from, to   int    // bytes of the original
	count      int    // elements or bytes of the original
	unit       string // "elements" or "bytes"
}

func (o *Options) compressJSON(text, hash string) (draft, bool) {
	edits, ok := o.jsonEdits(text, hash, nil)
	if !ok {
		return draft{}, false
	}
	out := apply(text, edits)
	for range maxRounds {
		next, ok := o.jsonEdits(out, hash, placed(edits))
		if !ok {
			return draft{}, false
		}
		if len(next) == 0 {
			break
		}
		// As in compressLog: as anybody would read it, a mark is an element.
		fresh, ok := o.jsonEdits(out, hash, nil)
		if !ok || !worth(out, apply(out, fresh)) {
			break
		}
		edits, out = compose(edits, next), apply(out, next)
	}
	d := draft{text: out}
	for _, e := range edits {
		d.omissions = append(d.omissions, Omission{From: e.from, To: e.to, Count: e.count, Unit: e.unit})
	}
	return d, true
}

// apply makes the edits, which are ascending and do not overlap.
func apply(text string, edits []edit) string {
	if len(edits) == 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) / 2)
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.start])
		b.WriteString(e.mark)
		at = e.end
	}
	b.WriteString(text[at:])
	return b.String()
}

// placed gives the edits at the places where their marks stand in the result:
// that is how our marks are known, never by what a value says.
func placed(edits []edit) []edit {
	out := make([]edit, len(edits))
	shift := 0
	for i, e := range edits {
		out[i] = e
		out[i].start = e.start + shift
		out[i].end = out[i].start + len(e.mark)
		shift += len(e.mark) - (e.end - e.start)
	}
	return out
}

// compose gives the edits of the original that two rounds come to. An edit of
// the second covers those of the first that lie in it.
func compose(first, second []edit) []edit {
	at := placed(first)
	var out []edit
	i := 0
	back := func(pos, passed int) int { // a place of the result in the original
		shift := 0
		for _, e := range first[:passed] {
			shift += len(e.mark) - (e.end - e.start)
		}
		return pos - shift
	}
	for _, e := range second {
		for i < len(at) && at[i].end <= e.start {
			out = append(out, first[i])
			i++
		}
		c := e
		c.start = back(e.start, i)
		if i < len(at) && at[i].start < e.start { // begins inside a mark: can not be
			return first
		}
		for i < len(at) && at[i].start < e.end {
			i++
		}
		c.end = back(e.end, i)
		c.from, c.to = c.start, c.end
		out = append(out, c)
	}
	return append(out, first[i:]...)
}

// jsonEdits finds what may be left out. marks are where marks of an earlier round
// stand; their counts are part of those of what covers them.
func (o *Options) jsonEdits(text, hash string, marks []edit) ([]edit, bool) {
	t := jtree{text: text, nodes: make([]jnode, 0, min(len(text)/12+16, maxNodes))}
	var roots []int32
	if i := t.parse(space(text, 0), 0); i >= 0 && space(text, i) == len(text) {
		roots = append(roots, 0)
	} else {
		t.nodes = t.nodes[:0]
		var ok bool
		if roots, ok = t.lineStream(); !ok {
			t.nodes = t.nodes[:0]
			if roots, ok = t.stream(); !ok {
				return nil, false
			}
		}
	}
	w := jwriter{t: &t, o: o, hash: hash, marks: marks, terms: queryTerms(o.Query)}
	if len(roots) == 1 {
		w.value(roots[0])
	} else {
		w.rows(roots, false)
	}
	slices.SortFunc(w.edits, func(a, b edit) int { return a.start - b.start })
	return w.edits, true
}

type jwriter struct {
	t     *jtree
	o     *Options
	hash  string
	marks []edit
	terms []string
	edits []edit
}

// value looks for what may be left out of a value that stays.
func (w *jwriter) value(i int32) {
	n := &w.t.nodes[i]
	switch n.kind {
	case '{':
		w.t.children(i, w.value)
	case '[':
		var rows []int32
		w.t.children(i, func(c int32) { rows = append(rows, c) })
		w.rows(rows, true)
	case '"':
		if !w.blob(n) {
			w.inner(i)
		}
	}
}

// innerBytes is the least string that is looked at as a log: what a command
// printed often stands in a field of what a tool answered.
const innerBytes = 1 << 10

// printed are fields that hold what a program printed.
var printed = map[string]bool{"stdout": true, "stderr": true, "output": true, "log": true, "logs": true, "console": true, "tool_output": true, "tool_result": true, "aggregated_output": true, "combined_output": true, "trace": true}

// inner compresses a string that is a log. It works on the string as it is
// written: its lines are what stands between the escapes of line feeds, and those
// that stay keep every escape.
func (w *jwriter) inner(i int32) {
	n := &w.t.nodes[i]
	raw := w.t.text[n.start+1 : n.end-1]
	if len(raw) < innerBytes || !strings.Contains(raw, `\n`) || w.o.Keep[Log] {
		return
	}
	text := realLines(raw)
	if Detect(text, "") != Log && !(printed[strings.ToLower(w.t.name(i))] && isLog(text, true)) {
		return
	}
	d, ok := w.o.compressLog(text, w.hash)
	if !ok || len(d.omissions) == 0 || len(d.text) > len(text)*9/10 {
		return
	}
	mark := strings.ReplaceAll(d.text, "\n", `\n`)
	if !json.Valid([]byte(`"` + mark + `"`)) {
		return // a long line was cut inside an escape
	}
	count := 0
	for _, om := range d.omissions {
		if om.Unit == "lines" {
			count += om.Count
		}
	}
	w.edits = append(w.edits, edit{start: int(n.start) + 1, end: int(n.end) - 1, mark: mark, from: int(n.start) + 1, to: int(n.end) - 1, count: count, unit: "lines"})
}

// realLines puts line feeds in the place of their escapes. No other line feed can
// stand in a JSON string.
func realLines(raw string) string {
	var b strings.Builder
	b.Grow(len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			b.WriteByte(raw[i])
			continue
		}
		i++
		if raw[i] == 'n' {
			b.WriteByte('\n')
			continue
		}
		b.WriteByte('\\')
		b.WriteByte(raw[i])
	}
	return b.String()
}

// rows leaves out elements of an array, or values of a stream.
func (w *jwriter) rows(rows []int32, array bool) {
	var stays []bool
	if len(rows) >= minRows {
		stays = w.choose(rows)
	}
	for k := 0; k < len(rows); {
		if stays == nil || stays[k] {
			w.value(rows[k])
			k++
			continue
		}
		j := k
		for j < len(rows) && !stays[j] {
			j++
		}
		start, end := int(w.t.nodes[rows[k]].start), int(w.t.nodes[rows[j-1]].end)
		count := 0
		for _, r := range rows[k:j] {
			count += w.counts(r)
		}
		e := edit{start: start, end: end, from: start, to: end, count: count, unit: "elements"}
		e.mark = elementMark(count, w.hash)
		if end-start < w.leastGap() {
			for ; k < j; k++ {
				w.value(rows[k])
			}
			continue
		}
		w.edits = append(w.edits, e)
		k = j
	}
}

// leastGap is the least omission in bytes: a mark and 24. It does not hang on the
// count in the mark, so that it is the same in every round.
func (w *jwriter) leastGap() int {
	if w.hash == "" {
		return 42
	}
	return 42 + len(`,"_ccr":""`) + ShownHex
}

// elementMark takes the place of elements: an element itself, so that the array
// stays one.
func elementMark(count int, hash string) string {
	if hash == "" {
		return fmt.Sprintf(`{"_omitted":%d}`, count)
	}
	return fmt.Sprintf(`{"_omitted":%d,"_ccr":"%s"}`, count, shown(hash))
}

// counts is how many elements of the original row r stands for.
func (w *jwriter) counts(r int32) int {
	start := int(w.t.nodes[r].start)
	k, ok := slices.BinarySearchFunc(w.marks, start, func(e edit, at int) int { return e.start - at })
	if ok && w.marks[k].unit == "elements" && w.marks[k].end == int(w.t.nodes[r].end) {
		return w.marks[k].count
	}
	return 1
}

// A string of at least blobBytes without a space, in the letters of base64 or
// hex, is of no use to a reader; its first blobShown say what it was.
const (
	blobBytes = 512
	blobShown = 32
)

func (w *jwriter) blob(n *jnode) bool {
	start, end := int(n.start)+1, int(n.end)-1
	if end-start < blobBytes {
		return false
	}
	s := w.t.text[start:end]
	body := s
	if strings.HasPrefix(s, "data:") {
		if i := strings.IndexByte(s[:min(len(s), 100)], ','); i > 0 {
			body = s[i+1:]
		}
	}
	if !encoded(body) || len(w.terms) > 0 && strings.Contains(strings.ToLower(w.o.Query), s[:8]) {
		return false
	}
	from := start + len(s) - len(body) + blobShown
	e := edit{start: from, end: end, from: from, to: end, count: end - from, unit: "bytes"}
	e.mark = fmt.Sprintf(" [... %d bytes omitted]", e.count)
	if w.hash != "" {
		e.mark = fmt.Sprintf(" [... %d bytes omitted; original %s]", e.count, shown(w.hash))
	}
	w.edits = append(w.edits, e)
	return true
}

// encoded reports that s is base64, base64url or hex, without escapes; its end
// is as good as its whole.
func encoded(s string) bool {
	digits, upper, lower := 0, 0, 0
	for i := range len(s) {
		c := s[i]
		switch {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c && c <= 'z':
			lower++
		case 'A' <= c && c <= 'Z':
			upper++
		case c == '+' || c == '/' || c == '=' || c == '-' || c == '_':
		default:
			return false
		}
	}
	// A path or a slug has few digits; what is encoded has about one in six.
	return digits*12 > len(s)
}
