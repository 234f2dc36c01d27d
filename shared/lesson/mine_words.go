package lesson

import (
	"path"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// headLines is how many lines a head lets through; 0 where it is none.
func headLines(words []string) int {
	if path.Base(words[0]) != "head" {
		return 0
	}
	for _, x := range words[1:] {
		if n, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(x, "-"), "n")); err == nil && n > 0 {
			return n
		}
	}
	return 10
}

// grepPattern is the pattern of a grep that lets lines through, as a regular
// expression; "" where it is none, or lets other lines through.
func grepPattern(words []string) string {
	name := path.Base(words[0])
	if name != "grep" && name != "egrep" && name != "rg" {
		return ""
	}
	extended, fold := name != "grep", ""
	for i, x := range words[1:] {
		switch {
		case strings.HasPrefix(x, "--"):
			if x != "--color=never" && x != "--line-buffered" && !strings.HasPrefix(x, "--color") {
				return ""
			}
		case strings.HasPrefix(x, "-") && len(x) > 1 && strings.Trim(x[1:], "EinPaCAB0123456789") == "":
			extended = extended || strings.ContainsAny(x, "EP")
			if strings.Contains(x, "i") {
				fold = "(?i)"
			}
		case strings.HasPrefix(x, "-"):
			return ""
		case len(words) > i+2:
			return "" // of a file
		default:
			if !extended {
				x = basic.Replace(x)
			}
			return fold + x
		}
	}
	return ""
}

// basic turns a basic regular expression into an extended one.
var basic = strings.NewReplacer(`\|`, "|", `\(`, "(", `\)`, ")", `\+`, "+", `\?`, "?", "(", `\(`, ")", `\)`, "|", `\|`, "+", `\+`, "?", `\?`, "{", `\{`)

// wordText is a word as the program gets it; what is expanded stays as it is
// written.
func wordText(w *syntax.Word) string {
	if w == nil {
		return ""
	}
	var b strings.Builder
	parts(&b, w.Parts)
	return b.String()
}

func parts(b *strings.Builder, ps []syntax.WordPart) {
	for _, p := range ps {
		switch x := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(x.Value))
		case *syntax.SglQuoted:
			b.WriteString(x.Value)
		case *syntax.DblQuoted:
			parts(b, x.Parts)
		default:
			_ = syntax.NewPrinter().Print(b, p)
		}
	}
}

func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
