package compress

import "strings"

// What people write, programs and documents, is full of words that failures are told
// with, and of lines alike. Without a name it is told from a log by how its lines
// begin and end. In doubt it is written: it comes back whole.

// Shares of the lines that are not blank, in the part that is looked at.
const (
	codeShare   = 0.45 // begin or end as statements do
	markupShare = 0.4  // begin with a tag
	proseShare  = 0.4  // are sentences, or the lines of paragraphs
)

// statements are what lines of programs begin with.
var statements = []string{
	"//", "/*", "#include", "#define", "#if", "#endif", "#!", "import ", "from ", "package ", "func ", "def ", "class ", "return", "if ", "if(", "for ", "for(", "while ", "const ", "let ", "var ", "type ", "public ", "private ", "protected ", "static ",
	"use ", "my ", "sub ", "fn ", "pub ", "impl ", "struct ", "enum ", "try:", "try ", "else", "elif ", "except", "raise ", "self.", "case ", "switch ", "print(", "async ", "await ", "export ", "function ", "end", "fi", "done", "do ", "then", "local ",
	"CREATE ", "SELECT ", "INSERT ", "UPDATE ", "ALTER ", "DROP ", "AS ", "LANGUAGE ",
}

var statementsBy = index(len(statements), func(i int) string { return statements[i] })

// isWritten reports a program, markup or a document. The sentences of one that is
// alike from line to line are a log's.
func isWritten(s string, alike bool) bool {
	for _, head := range []string{"<?xml", "<!DOCTYPE", "<!doctype", "<html", "<svg"} {
		if strings.HasPrefix(s, head) {
			return true
		}
	}
	lines, code, tags, prose, titles, rules := 0, 0, 0, 0, 0, 0
	before := "" // the line above
	for l := range strings.SplitSeq(s, "\n") {
		l = strings.TrimSuffix(l, "\r")
		t := strings.TrimSpace(l)
		above := before
		before = t
		if t == "" {
			continue
		}
		lines++
		last := t[len(t)-1]
		switch {
		case t[0] == '<':
			tags++
		case t[0] == '#' && above == "" && isHeading(t):
			titles++
		case underlines(t, above):
			rules++
		case strings.IndexByte("{};,([\\", last) >= 0, strings.HasSuffix(t, "):"), strings.HasSuffix(t, "*/"), strings.Contains(t, " = "), strings.Contains(t, " := "), strings.Contains(t, " => "), beginsStatement(t):
			code++
		case !alike && isProse(t):
			prose++
		}
	}
	n := float64(lines)
	return float64(code) >= codeShare*n || float64(tags) >= markupShare*n || titles+rules >= 2 && (titles+rules)*100 >= lines || lines >= 3 && float64(prose) >= proseShare*n || float64(code+prose+tags) >= 0.7*n
}

func beginsStatement(t string) bool {
	for _, i := range statementsBy[t[0]] {
		if strings.HasPrefix(t, statements[i]) {
			return true
		}
	}
	return false
}

// isHeading reports a heading of Markdown.
func isHeading(t string) bool {
	k := len(t) - len(strings.TrimLeft(t, "#"))
	return k <= 6 && len(t) > k+2 && t[k] == ' ' && t[k+1] != ' '
}

// underlines reports the line of signs under a heading of reStructuredText.
func underlines(t, above string) bool {
	return len(t) >= 4 && len(t) == len(above) && strings.IndexByte("=-~^\"*+", t[0]) >= 0 && strings.Trim(t, t[:1]) == "" && above[0] != t[0] && !strings.Contains(above, "  ")
}

// isProse reports a line of a paragraph: words in small letters for the most part,
// with no number, path or sign of a program among them.
func isProse(t string) bool {
	if len(t) < 30 || strings.ContainsAny(t, "=[]{}|\\") || strings.Contains(t, "://") {
		return false
	}
	words, plain := 0, 0
	for w := range strings.FieldsSeq(t) {
		words++
		w = strings.Trim(w, ".,;:!?()\"'`*_")
		ok := w != ""
		for i := range len(w) {
			if c := w[i]; (c < 'a' || c > 'z') && c != '-' && c != '\'' && c < 0x80 && (i > 0 || c < 'A' || c > 'Z') {
				ok = false
				break
			}
		}
		if ok {
			plain++
		}
	}
	return words >= 5 && plain*10 >= words*8
}
