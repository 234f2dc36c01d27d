package transcript

import (
	"bytes"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/lazy"
)

const (
	// detectBytes and detectRecords bound how much is held before the format
	// must be known (formats.md section 5).
	detectBytes   = 64 << 10
	detectRecords = 20
)

// detector decides the format by content; the key's suffix is only a hint.
type detector struct {
	hint    string // lower-case suffix of the key, without a compression suffix
	held    []line
	size    int
	records int
	scratch []member

	prose   bool     // a Markdown file that does not begin with a value: JSON in it is an example
	output  bool     // the key says that it is a tool's output, whatever stands in it
	base    string   // the key's last element
	schemas []Schema // the user's
	schema  *Schema  // that the format is read by
	began   bool
	json    bool    // the first value is an object or array
	doc     bool    // and does not end on its line: perhaps one document
	line    string  // format of our own that a line shows
	lineBy  *Schema // and the schema that says so
	own     *Schema // the first of the user's that a line fits
}

// shapes are the formats that are told by one or two names which many formats
// use. A schema of the user's goes before these, and before these alone.
var shapes = map[string]bool{FormatOpenAI: true, FormatShareGPT: true, FormatLoop: true, FormatFlat: true}

// feed looks at one line, which the detector keeps. It returns the format and
// true as soon as the content settles it.
func (d *detector) feed(ln line) (string, bool) {
	ln.b = bytes.Clone(ln.b)
	d.held = append(d.held, ln)
	d.size += len(ln.b) + 1
	if d.output {
		if d.size >= detectBytes {
			return d.last(), true
		}
		return "", false
	}
	b := trimLine(ln)
	if i := skipSpace(b, 0); !d.began && i < len(b) && b[i] != '{' && b[i] != '[' && isMarkdownName(d.hint) {
		d.began, d.prose = true, true
	}
	if d.prose {
		if d.size >= detectBytes {
			return d.last(), true
		}
		return "", false
	}
	for i := skipSpace(b, 0); i < len(b); i = skipSpace(b, i) {
		e := skipValue(b, i, 0)
		if !d.began {
			d.began = true
			d.json = b[i] == '{' || b[i] == '['
			d.doc = e < 0 && d.json
		}
		if e < 0 {
			break
		}
		if b[i] == '{' {
			d.records++
			d.scratch, _ = members(b, i, d.scratch[:0])
			if d.own == nil {
				d.own = described(d.schemas, d.base, b, d.scratch)
			}
			if d.line == "" {
				if d.line = formatOf(b, d.scratch, d.records == 1); d.line == "" {
					if d.lineBy = described(builtin(), d.base, b, d.scratch); d.lineBy != nil {
						d.line = d.lineBy.Name
					}
				}
			}
			// A shape waits whether a line fits one of the user's, and one of the
			// user's whether a line shows a format that is never taken from us.
			if settled := d.line != "" && (!shapes[d.line] || d.own != nil || len(d.schemas) == 0); settled && !d.doc {
				return d.shown(), true
			}
		}
		i = e
	}
	if d.size >= detectBytes || d.records >= detectRecords {
		return d.last(), true
	}
	return "", false
}

// shown is the format that the lines show; FormatUnknown when they show none.
func (d *detector) shown() string {
	switch {
	case d.own != nil && (d.line == "" || shapes[d.line]):
		d.schema = d.own
		return d.own.Name
	case d.line != "":
		d.schema = d.lineBy
		return d.line
	}
	return FormatUnknown
}

// formatOf names the format that one record shows, or "".
func formatOf(b []byte, ms []member, first bool) string {
	var v struct {
		typ, id, role, content, message, payload, session, project, set, claude, messages, info, mapping, node, parent, instr, ts span
	}
	for _, m := range ms {
		switch string(m.key) {
		case "type":
			v.typ = m.val
		case "id":
			v.id = m.val
		case "role":
			v.role = m.val
		case "content":
			v.content = m.val
		case "message":
			v.message = m.val
		case "payload":
			v.payload = m.val
		case "sessionId":
			v.session = m.val
		case "projectHash":
			v.project = m.val
		case "$set", "$rewindTo":
			v.set = m.val
		case "parentUuid", "leafUuid", "isSidechain":
			v.claude = m.val
		case "messages":
			v.messages = m.val
		case "info":
			v.info = m.val
		case "mapping":
			v.mapping = m.val
		case "current_node":
			v.node = m.val
		case "parentId":
			v.parent = m.val
		case "instructions":
			v.instr = m.val
		case "timestamp":
			v.ts = m.val
		}
	}
	typ := text(b, v.typ)
	role := ""
	hasContent := false
	if isObject(b, v.message) {
		ms, _ := members(b, v.message.s, nil)
		for _, m := range ms {
			switch string(m.key) {
			case "role":
				role = text(b, m.val)
			case "content":
				hasContent = true
			}
		}
	}
	switch {
	case typ == "commit" && isCommit(b, ms):
		return FormatGit
	case v.payload.ok() && codexTypes[typ]:
		return FormatCodex
	case first && typ == "" && isString(b, v.id) && v.ts.ok() && v.instr.ok():
		return FormatCodex // the bare first line of 2025 H1
	case typ == "session" && isString(b, v.id) && first, role == "toolResult", role == "bashExecution":
		return FormatPi
	case typ == "message" && role != "" && !v.session.ok():
		return FormatPi // headerless
	case v.session.ok() && v.project.ok(), v.set.ok(), typ == "gemini" && v.id.ok() && v.ts.ok():
		return FormatGemini
	case isString(b, v.role) && hasContent:
		return FormatCursor
	case v.claude.ok(), typ == "file-history-snapshot", v.session.ok() && typ != "",
		(typ == "user" || typ == "assistant") && role != "":
		return FormatClaude
	case isArray(b, v.messages) && isObject(b, v.info):
		return FormatOpenCode
	case isTRL(ms):
		return FormatTRL
	case isObject(b, v.mapping) && v.node.ok():
		return FormatChatGPT
	}
	return ""
}

var codexTypes = map[string]bool{
	"session_meta": true, "response_item": true, "compacted": true, "turn_context": true, "event_msg": true,
	"world_state": true, "inter_agent_communication": true, "inter_agent_communication_metadata": true, "session_state": true,
}

// last decides when no record settled it.
func (d *detector) last() string {
	var all []byte
	for _, ln := range d.held {
		all = append(append(all, ln.b...), '\n')
		if len(all) > detectBytes {
			break
		}
	}
	all = bytes.TrimPrefix(all, []byte("\ufeff"))
	body := bytes.TrimSpace(all)
	switch {
	case len(body) == 0 && d.size == 0:
		return FormatEmpty
	case d.output && isText(all):
		return FormatOutput
	case d.output:
		return FormatUnknown
	case bundleMagic.Match(all):
		return FormatBundle
	case (d.records == 0 || d.doc) && (bytes.HasPrefix(body, []byte("{")) || bytes.HasPrefix(body, []byte("["))):
		if f := d.document(body); f != "" {
			return f
		}
		if f := d.shown(); f != FormatUnknown {
			return f
		}
	case d.records > 0:
		// A text may show JSON as an example; a file of JSON begins with it.
		if f := d.shown(); f != FormatUnknown || bytes.HasPrefix(body, []byte("{")) || bytes.HasPrefix(body, []byte("[")) {
			return f
		}
	}
	switch d.hint {
	case ".json", ".jsonl", ".ndjson":
		return FormatUnknown
	}
	if !isText(all) {
		return FormatUnknown
	}
	if bytes.HasPrefix(body, []byte("# aider chat started at")) || bytes.Contains(body, []byte("\n# aider chat started at")) {
		return FormatAider
	}
	if len(body) == 0 {
		return FormatEmpty
	}
	if d.hint == ".txt" && isCursorText(all) {
		return FormatCursor
	}
	if isMarkdownName(d.hint) {
		return FormatMarkdown
	}
	switch d.hint {
	case ".txt", ".text", ".log", ".csv", ".tsv":
		return FormatText
	}
	if markdownLine.Match(all) {
		return FormatMarkdown
	}
	return FormatText
}

func isMarkdownName(hint string) bool {
	return hint == ".md" || hint == ".markdown" || hint == ".mdx" || hint == ".mdc"
}

func isText(b []byte) bool { return bytes.IndexByte(b, 0) < 0 && mostlyUTF8(b) && printable(b) }

// markdownLine is what only Markdown has: a front matter at the very top, a
// heading, or a fence.
var markdownLine = lazy.MustCompile("\\A---[ \t]*\r?\n|(?m)^ {0,3}(?:#{1,6}[ \t]+\\S|```|~~~)")

// printable tells text from binary: at least 85 of 100 characters are letters,
// marks, numbers, punctuation, symbols or white space. Terminal recordings and
// files of control codes fail it.
func printable(b []byte) bool {
	n, good := 0, 0
	for i := 0; i < len(b); {
		r, k := utf8.DecodeRune(b[i:])
		if unicode.IsPrint(r) || r == '\n' || r == '\t' || r == '\r' {
			good++
		}
		n++
		i += k
	}
	return good*100 >= n*85
}

// described is the first schema that a record fits.
func described(schemas []Schema, base string, b []byte, ms []member) *Schema {
	for i := range schemas {
		if s := &schemas[i]; s.matches(base, b, ms) {
			return s
		}
	}
	return nil
}

// document names the format of a file that is one JSON value, by the members
// of its first record as far as b has them.
func (d *detector) document(b []byte) string {
	i := 0
	if b[0] == '[' {
		i = skipSpace(b, 1)
	}
	f := wholeFormat(b)
	if f == FormatOpenAI && b[0] == '[' && isCline(d.base, b) {
		return FormatCline
	}
	if f == "" || shapes[f] {
		if s := described(d.schemas, d.base, b, partial(b, i)); s != nil {
			d.schema = s
			return s.Name
		}
	}
	return f
}

// partial is members for an object that b may cut off. Of the value where b
// ends only the beginning is there, if it is an object or array.
func partial(b []byte, i int) []member {
	ms, e := members(b, i, nil)
	if e >= 0 || i >= len(b) || b[i] != '{' {
		return ms
	}
	at := i + 1
	if len(ms) > 0 {
		at = skipSpace(b, ms[len(ms)-1].val.e) + 1
	}
	if at = skipSpace(b, min(at, len(b))); at >= len(b) || b[at] != '"' {
		return ms
	}
	key, at := skipKey(b, at+1)
	if at < 0 {
		return ms
	}
	if at = skipSpace(b, at); at >= len(b) || b[at] != ':' {
		return ms
	}
	if at = skipSpace(b, at+1); at < len(b) && (b[at] == '{' || b[at] == '[') {
		ms = append(ms, member{key, span{at, len(b)}})
	}
	return ms
}

// mostlyUTF8 tells text from binary: at most one byte in a hundred is wrong.
func mostlyUTF8(b []byte) bool {
	bad := 0
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 && i+utf8.UTFMax <= len(b) {
			bad++
		}
		i += n
	}
	return bad*100 <= len(b)
}

// wholeFormat names the format of a file that is one JSON value, from the
// names of the keys in its first part; the value may be cut off.
func wholeFormat(b []byte) string {
	top := keysOf(b)
	list := b[0] == '['
	switch {
	case list && top["role"] && top["content"]:
		return FormatOpenAI
	case !list && top["messages"] && top["projectHash"]:
		return FormatGemini
	case !list && top["messages"] && top["info"]:
		return FormatOpenCode
	case top["conversations"] || top["conversation"]:
		return FormatShareGPT
	case top["mapping"]:
		return FormatChatGPT
	case top["chat_messages"]:
		return FormatClaudeAI
	case top["prompt"] && (top["completion"] || top["chosen"]) || top["chosen"] && top["rejected"]:
		return FormatTRL
	case top["messages"]:
		return FormatOpenAI
	}
	return ""
}

// keysOf collects the keys of the outermost object, or of the objects that
// stand in the outermost array, as far as b goes.
func keysOf(b []byte) map[string]bool {
	keys := map[string]bool{}
	level := 1
	if b[0] == '[' {
		level = 2
	}
	depth := 0
	for i := 0; i < len(b); {
		switch b[i] {
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case '"':
			e := skipString(b, i+1)
			if e < 0 {
				return keys
			}
			if j := skipSpace(b, e); depth == level && j < len(b) && b[j] == ':' {
				keys[string(b[i+1:e-1])] = true
			}
			i = e
		default:
			i++
		}
	}
	return keys
}

// hintOf is the key's suffix in lower case, under a compression suffix.
func hintOf(object string) string {
	return strings.ToLower(path.Ext(baseOf(object)))
}

// baseOf is the key's last element without a compression suffix.
func baseOf(object string) string {
	if object == "" {
		return ""
	}
	base := path.Base(object)
	for _, z := range []string{".gz", ".zst"} {
		if len(base) > len(z) && strings.HasSuffix(strings.ToLower(base), z) {
			return base[:len(base)-len(z)]
		}
	}
	return base
}

// trimLine drops a BOM at the object's start, one CR, and NULs at the end.
func trimLine(ln line) []byte {
	b := ln.b
	if ln.off == 0 {
		b = bytes.TrimPrefix(b, []byte("\ufeff"))
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	if len(b) > 0 && b[len(b)-1] == '\r' {
		b = b[:len(b)-1]
	}
	return b
}
