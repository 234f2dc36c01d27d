package transcript

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// call reads a tool call. Its arguments are an object, JSON text in a string,
// or free text such as a patch.
func (c *codex) call(v *codexRecord, name string, args span) {
	s := &c.r.stats
	b := v.rec.b
	s.g.toolUse++
	id := v.field("call_id")
	if !id.ok() {
		id = v.field("id")
	}
	t := c.turn(v, memory.RoleAssistant, memory.KindToolCall, memory.TrustAssistant)
	t.Tool = &memory.Tool{Name: name, CallID: text(b, id)}
	t.Tool.Edits = edits(b, args, v.rec.base, name)
	ps, about := callTarget(b, args, v.rec.base)
	t.Pieces, t.Tool.Target = ps, label(about)
	if id.ok() {
		s.g.orphanUse++
		c.tools[c.r.ids.hash(b[id.s:id.e])] = tool{name: name, own: isOwn(name, about)}
	}
	c.emit(v, t)
}

// callTarget says what a call is about: its source pieces, and in words.
func callTarget(b []byte, args span, base int64) ([]memory.Piece, string) {
	if isObject(b, args) {
		v := commandOf(b, args)
		switch {
		case isString(b, v):
			p := piece(b, v, base)
			return patched([]memory.Piece{p}, p.Text)
		case isArray(b, v):
			var ps []memory.Piece
			for _, e := range argv(b, v) {
				ps = append(ps, piece(b, e, base))
			}
			return patched(ps, join(ps))
		}
		return nil, ""
	}
	x, ok := innerOf(b, args, base)
	if !ok {
		if !isString(b, args) || args.e-args.s <= 2 {
			return nil, ""
		}
		p := piece(b, args, base)
		return patched([]memory.Piece{p}, p.Text)
	}
	switch v := commandOf(x.text, x.value()); {
	case isString(x.text, v):
		return patched(x.pieces(v), text(x.text, v))
	case isArray(x.text, v):
		var ps []memory.Piece
		var words []string
		for _, e := range argv(x.text, v) {
			ps = append(ps, x.pieces(e)...)
			words = append(words, text(x.text, e))
		}
		return patched(ps, strings.Join(words, " "))
	}
	return nil, ""
}

func join(ps []memory.Piece) string {
	words := make([]string, len(ps))
	for i, p := range ps {
		words[i] = p.Text
	}
	return strings.Join(words, " ")
}

// commandOf is the argument that says what a call is about.
func commandOf(b []byte, args span) span {
	if !isObject(b, args) {
		return span{}
	}
	ms, _ := members(b, args.s, nil)
	for _, name := range []string{"command", "cmd", "input"} {
		v := fieldOf(ms, name)
		if isString(b, v) && v.e-v.s > 2 || isArray(b, v) {
			return v
		}
	}
	return targetOf(b, ms)
}

// argv are the words of a command; of `bash -lc SCRIPT` the script.
func argv(b []byte, v span) (words []span) {
	elements(b, v, func(e span) bool {
		if isString(b, e) {
			words = append(words, e)
		}
		return true
	})
	if len(words) == 3 && strings.HasPrefix(text(b, words[1]), "-") && strings.HasSuffix(text(b, words[1]), "c") {
		return words[2:]
	}
	return words
}

var patchFile = lazy.MustCompile(`\*\*\* (?:Update File|Add File|Delete File|Move to): ([^\n\\]+)`)

// patched gives the files of a patch in place of its text.
func patched(ps []memory.Piece, about string) ([]memory.Piece, string) {
	if !strings.Contains(about, "*** Begin Patch") {
		return ps, about
	}
	var files []memory.Piece
	for _, p := range ps {
		for _, m := range patchFile.FindAllStringSubmatchIndex(p.Text, -1) {
			if q, ok := trimmed(p, m[2], m[3]); ok {
				files = append(files, q)
			}
		}
	}
	if len(files) == 0 {
		return ps, about
	}
	return files, join(files)
}

// output reads what a tool gave back.
func (c *codex) output(v *codexRecord) {
	s := &c.r.stats
	b := v.rec.b
	s.g.toolResult++
	id := v.field("call_id")
	of := tool{}
	if id.ok() {
		h := c.r.ids.hash(b[id.s:id.e])
		var known bool
		if of, known = c.tools[h]; !known {
			s.g.orphanResult++
		} else if !of.answered {
			s.g.orphanUse--
			c.tools[h] = tool{name: of.name, own: of.own, answered: true}
		}
	}
	t := c.turn(v, memory.RoleTool, memory.KindToolResult, memory.TrustTool)
	t.Tool = &memory.Tool{Name: of.name, CallID: text(b, id)}
	if isWeb(of.name) {
		t.Trust = memory.TrustWeb
	}
	t.Derived = of.own
	t.Pieces, t.Tool.IsError = c.result(v, v.field("output"))
	if t.Tool.IsError {
		s.g.toolErrors++
	}
	c.emit(v, t)
}

// result reads an output: text, parts, an object {content, success}, or JSON
// text {output, metadata: {exit_code}} in a string.
func (c *codex) result(v *codexRecord, out span) ([]memory.Piece, bool) {
	b := v.rec.b
	if isObject(b, out) {
		ms, _ := members(b, out.s, nil)
		failed := isFalse(b, fieldOf(ms, "success"))
		body := fieldOf(ms, "content")
		if !body.ok() {
			body = fieldOf(ms, "output")
		}
		ps, bad := c.result(v, body)
		return ps, failed || bad || exitCode(b, ms)
	}
	if x, ok := innerOf(b, out, v.rec.base); ok && isObject(x.text, x.value()) {
		ms, _ := members(x.text, x.value().s, nil)
		if body := fieldOf(ms, "output"); isString(x.text, body) {
			return x.pieces(body), exitCode(x.text, ms) || isFalse(x.text, fieldOf(ms, "success")) || failedText(text(x.text, body))
		}
	}
	ps := c.content(v, out)
	return ps, len(ps) > 0 && failedText(ps[0].Text)
}

func isFalse(b []byte, v span) bool { return v.ok() && b[v.s] == 'f' }

// exitCode reports whether the metadata tell of a failure.
func exitCode(b []byte, ms []member) bool {
	meta := fieldOf(ms, "metadata")
	if isObject(b, meta) {
		ms, _ = members(b, meta.s, nil)
	}
	code := fieldOf(ms, "exit_code")
	return code.ok() && !isNull(b, code) && string(b[code.s:code.e]) != "0"
}

// failedLine tells a failure in the lines before a command's own output.
var failedLine = lazy.MustCompile(`^(?:Exit code: |Process exited with code )-?[1-9]`)

// failedHeads begin the answer to a call that was refused or never ran.
var failedHeads = []string{
	"execution error:", "exec_command failed", "failed to parse function arguments", "apply_patch verification failed",
	"exec command rejected", "patch rejected", "command timed out",
}

// maxHeadLines is how many lines a harness writes before a command's output.
const maxHeadLines = 8

func failedText(s string) bool {
	for _, head := range failedHeads {
		if strings.HasPrefix(s, head) {
			return true
		}
	}
	for range maxHeadLines {
		line, rest, more := strings.Cut(s, "\n")
		if failedLine.MatchString(line) {
			return true
		}
		if line == "Output:" || !more {
			break
		}
		s = rest
	}
	return false
}
