package gitlog

import (
	"bytes"
	"path"
	"regexp"
	"strings"
	"sync"
)

// maxLine is how much of a line is looked at: declarations are short, lines of
// generated files are not.
const maxLine = 1 << 10

// maxWhere is how much is looked at of the line that a hunk stands under, as
// much as git shows of it.
const maxWhere = 80

// binaryBytes is where a NUL makes a file binary, as git has it.
const binaryBytes = 8000

// Symbols are the names that a diff declares or stands in, each once, in the
// order of their appearance. The zero value has none.
type Symbols struct {
	list []string
	seen map[string]bool
}

// List is never nil.
func (s *Symbols) List() []string {
	if s.list == nil {
		return []string{}
	}
	return s.list
}

// Full reports that another file would add nothing.
func (s *Symbols) Full() bool { return len(s.list) >= MaxSymbols }

// Touched looks at one file before and after, as its status says; nil is a file
// that is not there. Prose, binary files and those over MaxBlobBytes declare
// nothing. A file that became a link, or a link that became a file, is another.
func (s *Symbols) Touched(status, name string, before, after []byte) {
	if status == "T" {
		s.change(name, before, nil)
		before = nil
	}
	s.change(name, before, after)
}

func (s *Symbols) change(name string, before, after []byte) {
	if s.Full() || !Declares(name) || opaque(before) || opaque(after) {
		return
	}
	a, b := lines(before), lines(after)
	for _, h := range diff(a, b) {
		if at := h.a0; at > 0 {
			if where := enclosing(a[:at]); where != nil {
				s.declared(where)
			}
		}
		for _, l := range a[h.a0:h.a1] {
			s.declared(l)
		}
		for _, l := range b[h.b0:h.b1] {
			s.declared(l)
		}
		if s.Full() {
			return
		}
	}
}

// Declares reports whether a file of this name may declare anything: prose and
// data do not, whatever their lines begin with.
func Declares(name string) bool { return !proseFiles[strings.ToLower(path.Ext(name))] }

var proseFiles = map[string]bool{
	".md": true, ".markdown": true, ".txt": true, ".rst": true, ".adoc": true, ".org": true, ".tex": true, ".html": true, ".htm": true, ".csv": true,
	".json": true, ".jsonl": true, ".yaml": true, ".yml": true, ".toml": true, ".xml": true, ".svg": true, ".lock": true, ".sum": true, ".txtar": true,
}

func opaque(b []byte) bool {
	return len(b) > MaxBlobBytes || bytes.IndexByte(b[:min(len(b), binaryBytes)], 0) >= 0
}

// enclosing is the line that a place stands under: the nearest one before it
// that begins with a letter, _ or $, which is how git heads a hunk.
func enclosing(before [][]byte) []byte {
	for i := len(before) - 1; i >= 0; i-- {
		l := before[i]
		if len(l) > 0 && (l[0] == '_' || l[0] == '$' || l[0] >= 'a' && l[0] <= 'z' || l[0] >= 'A' && l[0] <= 'Z') {
			return bytes.TrimRight(l[:min(len(l), maxWhere)], " \t\r\n\v\f")
		}
	}
	return nil
}

// lazy compiles a pattern at its first use: they take 0.7 ms, which a function
// that reads no history should not start with.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// declaration finds the name in a line that declares one, in the languages that
// say so by a word; receivers, modifiers and generics stand between.
var declaration = lazy(`^[ \t]*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([a-z]+\))?|unsafe|extern|override|open|sealed|data|virtual|inline|const|declare|partial|readonly|suspend) +)*` +
	`(?:func|fn|def|class|interface|trait|struct|enum|type|function\*?|module|namespace|protocol|object|record|macro_rules!|macro|fun|sub|impl|union|CREATE (?:OR REPLACE )?(?:TABLE|VIEW|FUNCTION|INDEX)(?: IF NOT EXISTS)?)(?:<[^>]*>)?[ \t]+` +
	`(?:\([^)]*\)[ \t]*)?(?:<[^>]*>[ \t]*)?([\p{L}_$][\p{L}\p{N}_$.:]*)`)

// method finds the name before the parameters, for languages that declare by a
// type: `static int parse(char *s)`. Calls begin with no type, statements with
// a keyword. Inside a class one is told by a word of access.
var method = lazy(`^(?:[ \t]+(?:public|private|protected|internal)[ \t]+)?[\p{L}_][\p{L}\p{N}_<>\[\],.:*& \t]*?[ \t*&]([\p{L}_][\p{L}\p{N}_:~]*)[ \t]*\([^;]*$`)

// constant finds a name that a file declares at its outermost level.
var constant = lazy(`^(?:export +)?(?:const|var|let|val)[ \t]+([\p{L}_$][\p{L}\p{N}_$]*)`)

// notMethods begin a line that only looks like a method.
var notMethods = lazy(`^(?:return|if|else|for|while|switch|case|throw|new|await|yield|assert|print|defer|go|var|let|const|import|from|using|package|use|select|insert|update|delete|and|or|not|the|a|an)\b`)

func (s *Symbols) declared(line []byte) {
	if line = line[:min(len(line), maxLine)]; s.Full() {
		return
	}
	m := declaration().FindSubmatch(line)
	if m == nil {
		m = constant().FindSubmatch(line)
	}
	if m == nil && !notMethods().Match(bytes.ToLower(line)) {
		if m = method().FindSubmatch(line); m != nil && !bytes.ContainsAny(line, "{") && !bytes.HasSuffix(bytes.TrimSpace(line), []byte(")")) {
			m = nil
		}
	}
	if m == nil || len(m[1]) > 80 || len(m[1]) < 2 {
		return
	}
	name := strings.TrimRight(strings.ToValidUTF8(string(m[1]), ""), ".:")
	if s.seen[name] {
		return
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[name] = true
	s.list = append(s.list, name)
}
