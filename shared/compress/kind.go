package compress

import (
	"encoding/json"
	"path"
	"strings"
)

// Kind is what a text is.
type Kind uint8

// The kinds.
const (
	Text Kind = iota
	JSON
	JSONL // values one after another, most often one a line
	Diff
	Log
	Code
	kinds
)

var kindNames = [kinds]string{"text", "json", "jsonl", "diff", "log", "code"}

// String is the kind's name in answers.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return "text"
}

// Detect tells the kind of a text from its bytes; name, where it is known, only
// tells code, and log from text where the bytes leave it open.
func Detect(text, name string) Kind {
	if looksJSON(text) && json.Valid([]byte(text)) {
		return JSON
	}
	if looksStream(text) && isJSONStream(text) {
		return JSONL
	}
	if looksDiff(text) {
		return Diff
	}
	ext := strings.ToLower(path.Ext(strings.ReplaceAll(name, `\`, "/")))
	if _, ok := languages[ext]; ok {
		return Code
	}
	if prose[ext] {
		return Text
	}
	if ext == "" && isSettings(text) {
		return Text
	}
	if isLog(text, ext == ".log" || ext == ".out" || ext == ".err") {
		return Log
	}
	return Text
}

// prose are the names of what people write: a changelog that is full of errors
// is no log.
var prose = map[string]bool{".md": true, ".rst": true, ".adoc": true, ".tex": true, ".html": true, ".csv": true, ".tsv": true, ".yaml": true, ".yml": true, ".toml": true, ".ini": true, ".xml": true}

// isSettings reports YAML and its like: names with values, or dashes, on nearly
// each line, and many of them indented. Each line says something of its own.
func isSettings(text string) bool {
	lines, named, indents := 0, 0, 0
	for l := range strings.SplitSeq(text[:min(len(text), logSample)], "\n") {
		t := strings.TrimLeft(l, " ")
		if t == "" || t[0] == '#' {
			continue
		}
		lines++
		if len(t) < len(l) {
			indents++
		}
		if t == "---" || strings.HasPrefix(t, "- ") {
			named++
			continue
		}
		i := 0
		for i < len(t) && (alnum[t[i]] || t[i] == '_' || t[i] == '-' || t[i] == '.' || t[i] == '/' || t[i] == '"') {
			i++
		}
		if i > 0 && i < len(t) && t[i] == ':' && (i+1 == len(t) || t[i+1] == ' ' || t[i+1] == '\r') {
			named++
		}
	}
	return lines >= 5 && named*20 >= lines*19 && indents*5 >= lines
}

func looksJSON(text string) bool {
	t := strings.TrimLeft(text[:min(len(text), 4<<10)], " \t\r\n")
	return t != "" && (t[0] == '{' || t[0] == '[')
}

// looksStream reports that of the first lines at least half begin as JSON values
// do.
func looksStream(text string) bool {
	lines, values := 0, 0
	for l := range strings.SplitSeq(text[:min(len(text), 4<<10)], "\n") {
		l = strings.TrimLeft(l, " \t\r")
		if l == "" {
			continue
		}
		lines++
		if l[0] == '{' || l[0] == '[' {
			values++
		}
		if lines == 6 {
			break
		}
	}
	return values > 0 && values*2 >= lines || looksJSON(text)
}

// looksDiff finds the head of a unified diff in the first lines: what git prints
// before it, a commit or a mail, may be long.
func looksDiff(text string) bool {
	head := text[:min(len(text), 16<<10)]
	git := strings.HasPrefix(head, "diff --git ") || strings.Contains(head, "\ndiff --git ") ||
		strings.HasPrefix(head, "diff --cc ") || strings.HasPrefix(head, "diff --combined ")
	if git {
		return strings.HasPrefix(head, "diff --") || strings.HasPrefix(head, "commit ") || strings.HasPrefix(head, "From ") ||
			strings.HasPrefix(head, "tree ") || strings.HasPrefix(head, "Author:")
	}
	i := strings.Index(head, "--- ")
	if i < 0 || i > 0 && head[i-1] != '\n' {
		return false
	}
	if before := head[:i]; i > 0 && !strings.HasPrefix(before, "Index: ") && !strings.HasPrefix(before, "diff ") && !strings.HasPrefix(before, "===") {
		return false
	}
	rest := head[i:]
	_, rest, ok := strings.Cut(rest, "\n")
	if !ok || !strings.HasPrefix(rest, "+++ ") {
		return false
	}
	_, rest, _ = strings.Cut(rest, "\n")
	return strings.HasPrefix(rest, "@@ -")
}

// Shares of the lines looked at that make a text a log.
const (
	logShare      = 0.15 // carry a time, a level, a file:line, a frame or a failure form
	logShareNamed = 0.02 // when the file is called .log
	repeatShare   = 0.5  // repeat the form of another line
)

// logSample is how much of a text decides: half at its beginning, half at its end.
const logSample = 32 << 10

func isLog(text string, named bool) bool {
	if strings.Count(text, "\r") > 20 && strings.Count(text, "\r\n") < 5 {
		return true // a progress bar
	}
	s := text
	if len(s) > logSample {
		s = s[:logSample/2] + "\n" + s[len(s)-logSample/2:]
	}
	lines, marked, repeated, long := 0, 0, 0, 0
	forms := map[uint64]bool{}
	var li lineInfo
	for l := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(l) == "" {
			continue
		}
		lines++
		li = classify(l)
		if li.level >= weak && li.form || li.stamped || li.frame || li.level == strong || li.summary {
			marked++
		}
		if forms[li.template] {
			repeated++
		}
		forms[li.template] = true
		if len(l) > 300 {
			long++
		}
	}
	if lines == 0 || lines < 3 && !named {
		return false
	}
	if named {
		return float64(marked+repeated) >= logShareNamed*float64(lines)
	}
	if long*2 > lines {
		return false
	}
	return float64(marked) >= logShare*float64(lines) || lines >= 20 && float64(repeated) >= repeatShare*float64(lines) && marked > 0
}

// asksForExact reports that a question wants a text as it stands: a summary would
// be asked for again.
func asksForExact(query string) bool {
	q := " " + strings.ToLower(query) + " "
	for _, w := range exactWords {
		if strings.Contains(q, w) {
			return true
		}
	}
	return false
}

var exactWords = []string{" verbatim", " exact text", " exact output", " exact content", " word for word", " unabridged", " uncompressed", " full text", " full output", " full log", " entire output", " entire file", " whole file", " whole output", " complete output", " byte for byte"}
