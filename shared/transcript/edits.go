package transcript

import (
	"strings"
	"unicode"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Names of arguments by which tools say what they change in a file. Which tool
// it is does not matter; that its name speaks of writing does.
var (
	editPathKeys = []string{"file_path", "filePath", "absolute_path", "notebook_path", "path", "target_file", "relative_workspace_path", "file"}
	editOldKeys  = []string{"old_string", "oldString", "oldText", "old_str", "old_text"}
	editNewKeys  = []string{"new_string", "newString", "newText", "new_str", "new_text", "new_source", "insert_text"}
	wholeKeys    = []string{"content", "contents", "file_text", "fileText"}
	patchKeys    = []string{"patch", "patchText", "input", "diff", "command", "cmd"}
)

// writingNames stand in the names of tools that change files.
var writingNames = []string{"edit", "write", "replace", "create", "insert", "patch", "delete", "save"}

// mayEdit says that a tool of this name may change files, or run a command
// that holds a patch.
func mayEdit(name string) bool {
	name = strings.ToLower(name)
	for _, w := range writingNames {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}

// maxEdits bounds the edits of one call, editContext the text that is kept on
// each side of a changed line, so that a secret around it is seen, in bytes.
const (
	maxEdits    = 64
	editContext = 4 << 10
	maxEditLine = 512
)

// argsOf is where the arguments of a call stand: an object of the record, or
// JSON text in one of its strings.
type argsOf struct {
	b     []byte
	ms    []member
	base  int64
	inner *inner
}

func (a *argsOf) first(ms []member, keys []string) span {
	for _, k := range keys {
		if v := fieldOf(ms, k); isString(a.b, v) {
			return v
		}
	}
	return span{}
}

// pieces are the source pieces of a string, one a line where it is nested.
func (a *argsOf) pieces(v span) []memory.Piece {
	switch {
	case !isString(a.b, v):
		return nil
	case a.inner != nil:
		return a.inner.pieces(v)
	}
	return []memory.Piece{piece(a.b, v, a.base)}
}

// edits are the changes of files that a call asks for; args is its arguments.
func edits(b []byte, args span, base int64, name string) []memory.FileEdit {
	a := argsOf{b: b, base: base}
	switch {
	case isObject(b, args):
		a.ms, _ = members(b, args.s, nil)
	case isString(b, args):
		x, ok := innerOf(b, args, base)
		if !ok {
			if ps := a.pieces(args); strings.Contains(ps[0].Text, patchBegin) {
				return patchEdits(ps)
			}
			return nil
		}
		a.b, a.inner = x.text, &x
		if isObject(x.text, x.value()) {
			a.ms, _ = members(x.text, x.value().s, nil)
		}
	}
	if patch := a.patch(); patch != nil {
		return patchEdits(patch)
	}
	if !mayEdit(name) {
		return nil
	}
	path := text(a.b, a.first(a.ms, editPathKeys))
	if path == "" {
		return nil
	}
	if strings.Contains(strings.ToLower(name), "delete") {
		return []memory.FileEdit{{Kind: memory.EditDelete, Path: path}}
	}
	var out []memory.FileEdit
	if list := fieldOf(a.ms, "edits"); isArray(a.b, list) {
		elements(a.b, list, func(e span) bool {
			if isObject(a.b, e) {
				ms, _ := members(a.b, e.s, nil)
				if x, ok := a.edit(ms, path); ok {
					out = append(out, x)
				}
			}
			return len(out) < maxEdits
		})
		return out
	}
	if x, ok := a.edit(a.ms, path); ok {
		out = append(out, x)
	}
	return out
}

// patch is the argument that holds a patch of apply_patch.
func (a *argsOf) patch() []memory.Piece {
	for _, k := range patchKeys {
		v := fieldOf(a.ms, k)
		var last span
		if isArray(a.b, v) {
			elements(a.b, v, func(e span) bool { last = e; return true })
			v = last
		}
		if isString(a.b, v) && strings.Contains(string(a.b[v.s:v.e]), patchBegin) {
			return a.pieces(v)
		}
	}
	return nil
}

// edit reads one change: an old and a new text, or the whole of a file.
func (a *argsOf) edit(ms []member, path string) (memory.FileEdit, bool) {
	was, now := a.first(ms, editOldKeys), a.first(ms, editNewKeys)
	x := memory.FileEdit{Kind: memory.EditChange, Path: path}
	if !now.ok() && !was.ok() {
		now = a.first(ms, wholeKeys)
		x.Kind = memory.EditWrite
	}
	if !now.ok() && !was.ok() {
		return x, false
	}
	from, to := text(a.b, was), text(a.b, now)
	at, removed, added := changed(from, to)
	x.Added, x.Removed = added, removed
	if added > 0 {
		quoteLine(&x, a.pieces(now), at)
	} else if removed > 0 {
		quoteLine(&x, a.pieces(was), at)
	}
	return x, true
}

// changed counts the lines that differ, without those that both texts begin
// and end with; at is how many lines stand before the first.
func changed(was, now string) (at, removed, added int) {
	a, b := linesOf(was), linesOf(now)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b, at = a[1:], b[1:], at+1
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	common := 0
	if len(a)*len(b) <= maxCompared {
		common = commonLines(a, b)
	}
	return at, len(a) - common, len(b) - common
}

// maxCompared bounds the pairs of lines that are compared.
const maxCompared = 1 << 16

// commonLines is the length of the longest common subsequence.
func commonLines(a, b []string) int {
	row := make([]int, len(b)+1)
	for i := range a {
		diag := 0
		for j := range b {
			up := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diag + 1
			} else {
				row[j+1] = max(up, row[j])
			}
			diag = up
		}
	}
	return row[len(b)]
}

func linesOf(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// quoteLine keeps the first line, from line at on, that says something, and
// the text around it.
func quoteLine(x *memory.FileEdit, ps []memory.Piece, at int) {
	if len(ps) == 0 {
		return
	}
	p, from := ps[0], 0
	if len(ps) > 1 { // a line each
		for at < len(ps) && !says(ps[at].Text) {
			at++
		}
		if at >= len(ps) {
			return
		}
		p = ps[at]
	} else {
		for n := 0; from < len(p.Text); n++ {
			end := lineEnd(p.Text, from)
			if n >= at && says(p.Text[from:end]) {
				break
			}
			from = min(end+1, len(p.Text))
		}
	}
	setQuote(x, p, from)
}

// says tells a line with words from one of signs alone.
func says(line string) bool {
	return strings.IndexFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0
}

func lineEnd(s string, from int) int {
	if k := strings.IndexByte(s[from:], '\n'); k >= 0 {
		return from + k
	}
	return len(s)
}

// setQuote quotes the line of p that begins at from.
func setQuote(x *memory.FileEdit, p memory.Piece, from int) {
	if from >= len(p.Text) {
		return
	}
	to := lineEnd(p.Text, from)
	line := p.Text[from:to]
	from += len(line) - len(strings.TrimLeft(line, " \t\r"))
	to = from + len(strings.TrimRight(p.Text[from:to], " \t\r"))
	if to-from > maxEditLine {
		to = from + maxEditLine
		for to > from && p.Text[to]&0xc0 == 0x80 {
			to--
		}
	}
	lo, hi := max(0, from-editContext), min(len(p.Text), to+editContext)
	for lo > 0 && p.Text[lo]&0xc0 == 0x80 {
		lo--
	}
	for hi < len(p.Text) && p.Text[hi]&0xc0 == 0x80 {
		hi++
	}
	q, ok := slice(p, lo, hi)
	if !ok {
		return
	}
	x.Text, x.From, x.To = q, from-lo, to-lo
}

const patchBegin = "*** Begin Patch"

// patchHeads begin the part of a patch that is one file's.
var patchHeads = []struct {
	head string
	kind memory.EditKind
}{
	{"*** Update File: ", memory.EditChange},
	{"*** Add File: ", memory.EditWrite},
	{"*** Delete File: ", memory.EditDelete},
}

// patchEdits reads a patch of apply_patch, whole in one piece or a line each.
func patchEdits(ps []memory.Piece) []memory.FileEdit {
	var out []memory.FileEdit
	for i := range ps {
		p := &ps[i]
		for at := 0; at <= len(p.Text) && len(out) <= maxEdits; {
			end := lineEnd(p.Text, at)
			out = patchLine(out, p, at, end)
			at = end + 1
		}
	}
	return out[:min(len(out), maxEdits)]
}

func patchLine(out []memory.FileEdit, p *memory.Piece, at, end int) []memory.FileEdit {
	line := strings.TrimRight(p.Text[at:end], "\r")
	for _, h := range patchHeads {
		if path, ok := strings.CutPrefix(line, h.head); ok {
			return append(out, memory.FileEdit{Kind: h.kind, Path: strings.TrimSpace(path)})
		}
	}
	if len(out) == 0 || line == "" {
		return out
	}
	x := &out[len(out)-1]
	switch {
	case line[0] == '+':
		x.Added++
		if x.Text.Text == "" && says(line[1:]) {
			setQuote(x, *p, at+1)
		}
	case line[0] == '-':
		x.Removed++
	}
	return out
}

// answeredQuietly notes on the newest call of this id, as far as the window
// still holds it, that its result held no text.
func (r *Reader) answeredQuietly(callID string) {
	if callID == "" {
		return
	}
	held := r.win.held()
	for i := len(held) - 1; i >= max(0, len(held)-maxQuietBack); i-- {
		if t := &held[i]; t.Kind == memory.KindToolCall && t.Tool != nil && t.Tool.CallID == callID {
			t.Tool.Quiet = true
			return
		}
	}
}

// maxQuietBack is how many turns a call is looked for: as many stand between a
// call and its result where calls run side by side.
const maxQuietBack = 256
