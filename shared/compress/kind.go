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
	if isContextDiff(text) {
		return Text
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
	if git && mostlyDiff(head) {
		return true
	}
	if git {
		return strings.HasPrefix(head, "diff --") || strings.HasPrefix(head, "commit ") || strings.HasPrefix(head, "From ") ||
			strings.HasPrefix(head, "tree ") || strings.HasPrefix(head, "Author:")
	}
	i := strings.Index(head, "--- ")
	if i < 0 || i > 0 && head[i-1] != '\n' {
		return false
	}
	if before := head[:i]; i > 0 && !strings.HasPrefix(before, "Index: ") && !strings.HasPrefix(before, "diff ") && !strings.HasPrefix(before, "===") && !mostlyDiff(head) {
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

// mostlyDiff reports that of the lines of a text that begins with something else, a
// list of files or a word about the change, nearly all are a diff's.
func mostlyDiff(head string) bool {
	lines, part := 0, 0
	for l := range strings.SplitSeq(head, "\n") {
		lines++
		if l == "" || strings.IndexByte(" +-@\\", l[0]) >= 0 || strings.HasPrefix(l, "diff ") || strings.HasPrefix(l, "index ") {
			part++
		}
	}
	return part*10 >= lines*9
}

// isContextDiff reports the older form of a diff, which is left as it is.
func isContextDiff(text string) bool {
	return strings.HasPrefix(text, "*** ") && strings.Contains(text[:min(len(text), 4<<10)], "\n***************")
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
	c := countLog(s)
	if c.lines == 0 || c.lines < 3 && !named {
		return false
	}
	if named {
		return float64(c.marked+c.repeated) >= logShareNamed*float64(c.lines)
	}
	if c.long*2 > c.lines {
		return false
	}
	if c.stamped*3 < c.lines && c.results*3 < c.lines && isTable(s) {
		return false
	}
	if c.stamped*3 < c.lines && isWritten(s, c.repeated*2 >= c.lines) {
		return false
	}
	if c.listed*5 >= c.lines*4 && c.repeated*2 < c.lines {
		return false
	}
	if float64(c.marked) >= logShare*float64(c.lines) {
		return true
	}
	if c.lines < 20 || float64(c.repeated) < repeatShare*float64(c.lines) {
		return false
	}
	if c.marked+c.doubted == 0 && len(text) > logSample { // the failure may stand in the middle
		c = countLog(text)
	}
	return c.marked+c.doubted > 0
}

// lineCount is how many lines of a text say what.
type lineCount struct {
	lines    int // that are not blank
	marked   int // carry a time, a level, a file:line, a frame or a failure form
	doubted  int // have a word that failures are told with
	repeated int // have the form of another line
	long     int
	stamped  int // begin with a time or name a level
	results  int // say how a run came out
	listed   int // a place in a file and a line of it, as grep lists them
}

func countLog(s string) (c lineCount) {
	forms := map[uint64]bool{}
	var li lineInfo
	for l := range strings.SplitSeq(s, "\n") {
		if strings.TrimSpace(l) == "" {
			continue
		}
		c.lines++
		li = classify(l)
		switch {
		case li.level >= weak && li.form || li.stamped || li.frame || li.level == strong || li.summary:
			c.marked++
		case li.level == weak:
			c.doubted++
		}
		if li.stamped {
			c.stamped++
		}
		if li.summary {
			c.results++
		}
		if at, _ := prefix(l); at < len(l) && located(l[at:]) == atLine && li.level <= weak {
			c.listed++
		}
		if forms[li.template] {
			c.repeated++
		}
		forms[li.template] = true
		if len(l) > 300 {
			c.long++
		}
	}
	return c
}

// isTable reports CSV and its like: nearly every line has the same separators, and
// each is a row that somebody may look for.
func isTable(s string) bool {
	for _, sep := range []byte(",\t;") {
		lines, same, first := 0, 0, 0
		for l := range strings.SplitSeq(s, "\n") {
			if l == "" {
				continue
			}
			n := 0
			for i := range len(l) {
				if l[i] == sep && (sep != ',' || i+1 == len(l) || l[i+1] != ' ') {
					n++
				}
			}
			if lines == 0 {
				first = n
			}
			lines++
			if n == first {
				same++
			}
		}
		if (first >= 2 || first == 1 && sep == '\t') && same*20 >= lines*19 {
			return true
		}
	}
	return false
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
