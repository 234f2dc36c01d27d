package skill

import (
	"strings"
	"unicode"

	"github.com/mneme-ai/mneme/shared/lazy"
)

// What a transcript said is put into a prompt with a skill, and some loaders act on
// a skill's text before a model sees it. So a text is brought onto one line, and
// what has a meaning to a loader, to a reader of Markdown or to one of tags is
// broken. Words stay words: shared/derived knows the statement again.

// clean is s on one line, without control characters and those that nobody sees
// (zero width, direction marks, tags, private use).
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs), r == unicode.ReplacementChar, r == 0xfffe, r == 0xffff:
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

var (
	tagOpen = lazy.MustCompile(`<([/!?A-Za-z])`)
	// A command in backticks behind "!" is run when Claude Code loads a skill.
	bangTick = lazy.MustCompile("!+`")
	fences   = lazy.MustCompile("`{3,}|~{3,}")
	// $ARGUMENTS, $0 and ${…} are replaced there by what the skill was called with.
	dollar = lazy.MustCompile(`\$(\d|\{|ARGUMENTS)`)
	// @path takes in the file where prompts and memory files are read.
	atPath = lazy.MustCompile(`(^|[\s(\[{"'` + "`" + `])@([\w.~-]*[/.~][\w./~-])`)
	image  = lazy.MustCompile(`!\[`)
	// lead is what makes a list item something else than a paragraph.
	lead = lazy.MustCompile(`^(#{1,6}(\s|$)|>|[-+*](\s|$)|\d{1,9}[.)](\s|$)|\||~|=+\s*$|[-*_](\s*[-*_])+\s*$|:\s)`)
)

// inline makes s a text that may begin a line of a Markdown body.
func inline(s string) string {
	s = field(s)
	if lead.MatchString(s) {
		s = `\` + s
	}
	return s
}

// field makes s a text that may stand inside a line: in a field of the front matter,
// or in the body.
func field(s string) string {
	s = tagOpen.ReplaceAllString(clean(s), "‹$1")
	s = fences.ReplaceAllStringFunc(s, func(m string) string { return m[:2] })
	s = bangTick.ReplaceAllString(s, "! `")
	s = image.ReplaceAllString(s, "! [")
	s = dollar.ReplaceAllString(s, "$$ $1")
	return atPath.ReplaceAllString(s, "$1@ $2")
}
