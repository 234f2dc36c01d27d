package vault_test

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/vault"
)

func TestInline(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"plain words, 100 % of them.", "plain words, 100 % of them."},
		{"snake_case and _emphasis_", `snake_case and \_emphasis\_`},
		{"keep `__init__` and __main__", "keep \\`\\_\\_init\\_\\_\\` and \\_\\_main\\_\\_"},
		{"__init__.py, a__b, _a_b_, a_, (_x_)y", `\_\_init\_\_.py, a__b, \_a_b\_, a\_, (\_x\_)y`},
		{`\a_b`, `\\a_b`}, {"é_b, —_b_, ___", `é_b, —\_b\_, \_\_\_`},
		{"[[a]] #b ^c", `\[\[a\]\] \#b \^c`},
		{"- item", `\- item`}, {"12. item", `12\. item`}, {"1234567890. no item", "1234567890. no item"},
		{"a\n\n  b\tc", "a b c"},
		{"%%x%%", "&#37;&#37;x&#37;&#37;"},
		{"<b>&amp;</b>", "&lt;b&gt;&amp;amp;&lt;/b&gt;"},
		{"\u202ex", "\ufffdx"}, {"\u0645\u0631\u062d\u0628\u0627", "\u0645\u0631\u062d\u0628\u0627"},
	} {
		if got := vault.Inline(tc.in); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.in, got, tc.want)
		}
	}
}

var (
	backslash = regexp.MustCompile(`\\([!-/:-@\[-` + "`" + `{-~])`)
	entity    = regexp.MustCompile(`&(#37|lt|gt|amp);`)
	blanks    = regexp.MustCompile(`[\s\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+`)
)

// shownAs is what a reader of Markdown sees of an inline text, by the rules of
// CommonMark for backslashes and entities.
func shownAs(s string) string {
	var b strings.Builder
	for at := 0; at < len(s); {
		m := backslash.FindStringSubmatchIndex(s[at:])
		if m == nil {
			b.WriteString(html.UnescapeString(s[at:]))
			break
		}
		b.WriteString(html.UnescapeString(s[at : at+m[0]]))
		b.WriteString(s[at+m[2] : at+m[3]])
		at += m[1]
	}
	return b.String()
}

// emphasis is the first run of underscores that CommonMark could take for the begin or
// the end of emphasis: one that is not between letters or digits.
func emphasis(s string) string {
	plain := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }
	for at := 0; at < len(s); {
		if s[at] == '\\' && at+1 < len(s) {
			at += 2
			continue
		}
		n := at
		for n < len(s) && s[n] == '_' {
			n++
		}
		if n == at {
			at++
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(s[:at])
		after, _ := utf8.DecodeRuneInString(s[n:])
		if !plain(before) || !plain(after) {
			return s[at:]
		}
		at = n
	}
	return ""
}

// Laws: one line of valid UTF-8; a reader sees the characters of the text; none of
// what begins a link, a tag, an embed, a block id, code, HTML or a comment stands
// there without its escape.
func FuzzInline(f *testing.F) {
	for _, s := range append([]string{"`__init__` and __main__", "a_b__c_ _d", "—_x_", "1. _a_", `\a_b`}, hostile...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := vault.Inline(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r") {
			t.Fatalf("%q: %q", s, got)
		}
		want := strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) || r == '\u2028' || r == '\u2029' {
				return ' '
			}
			if unicode.IsControl(r) || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
				return utf8.RuneError
			}
			return r
		}, strings.ToValidUTF8(s, "\ufffd"))
		squeeze := func(s string) string { return strings.TrimSpace(blanks.ReplaceAllString(s, " ")) }
		fold := func(s string) string { return regexp.MustCompile("\ufffd+").ReplaceAllString(squeeze(s), "\ufffd") }
		if fold(shownAs(got)) != fold(want) {
			t.Fatalf("%q is shown as %q", s, shownAs(got))
		}
		bare := entity.ReplaceAllString(backslash.ReplaceAllString(got, "x"), "x")
		if i := strings.IndexAny(bare, "[]#^`*<>|~$"); i >= 0 {
			t.Fatalf("%q: %q has a bare %q", s, got, bare[i])
		}
		if e := emphasis(got); e != "" {
			t.Fatalf("%q: %q has emphasis at %q", s, got, e)
		}
		if strings.Contains(bare, "%%") || strings.Contains(bare, "==") || strings.Contains(bare, "{{") || strings.Contains(bare, "::") {
			t.Fatalf("%q: %q", s, got)
		}
	})
}

func TestSafeName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"decisions": "decisions", "a.b": "a.b", "a-b_c": "a-b_c"} {
		if got := vault.SafeName(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
	for _, in := range []string{"con", "con.txt", "com1", "lpt9.x", "a.", ".a", "a b/c", "A", "what?", "", "..", strings.Repeat("x", 300), strings.Repeat("\u0645", 200), "conin$"} {
		if got := vault.SafeName(in); got == in || len(got) > 100 {
			t.Errorf("%q stays or is too long: %q", in, got)
		}
	}
}

var unsafeName = regexp.MustCompile(`[<>:"/\\|?*#^\[\]%\x00-\x1f` + "`" + `]|^\.|[. ]$|^$`)

// Laws: a name that Windows, macOS and a wikilink take; what it gives stays; two
// names that differ by case alone never become one unless they were equal.
func FuzzSafeName(f *testing.F) {
	for _, s := range []string{"con", "a.", "Ä", "decisions", "x y", "nul.tar.gz", "COM¹"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := vault.SafeName(s)
		if unsafeName.MatchString(got) || len(got) > 100 || !utf8.ValidString(got) {
			t.Fatalf("%q: %q", s, got)
		}
		base, _, _ := strings.Cut(got, ".")
		for _, d := range []string{"con", "prn", "aux", "nul", "com1", "lpt1", "com\u00b9"} {
			if base == d {
				t.Fatalf("%q: %q is a device", s, got)
			}
		}
		if up := strings.ToUpper(s); up != s && strings.EqualFold(vault.SafeName(up), got) {
			t.Fatalf("%q and %q are both %q", s, up, got)
		}
	})
}
