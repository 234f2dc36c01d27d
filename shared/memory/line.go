package memory

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// This file is the text of a memory as its readers take it apart: a fact a line, each
// of which ends with the source ids that it rests on.
//
//	- Retries stop after 5 attempts. [1a2b3c4d] [9c0d1e2f]
//
// A source id is the first 8 hex digits of a hash: of an evidence node where the
// built-in policy wrote the line, of the chunk that a model read, and in a synthesis of
// the memory below.

var (
	listSign = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[-*+•]|\d+[.)])\s+`) })
	sourceID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\[([0-9a-f]{8})\]`) })
	idSpace  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[ \t]*\[[0-9a-f]{8}\]`) })
)

// Lines are the lines of a memory that hold something, without their line ends.
func Lines(text string) (out []string) {
	for l := range strings.Lines(text) {
		if l = strings.TrimRight(l, "\r\n"); strings.TrimSpace(l) != "" {
			out = append(out, l)
		}
	}
	return out
}

// SourceIDs lists the source ids of a text, each once.
func SourceIDs(text string) (out []string) {
	for _, m := range sourceID().FindAllStringSubmatch(text, -1) {
		if !slices.Contains(out, m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

// WithoutSourceIDs is a text without its source ids and the blanks before them.
func WithoutSourceIDs(text string) string {
	return strings.TrimSpace(idSpace().ReplaceAllString(text, ""))
}

// Fact is a line as a sentence: white space folded, without list sign and source ids.
func Fact(line string) string {
	return WithoutSourceIDs(listSign().ReplaceAllString(strings.Join(strings.Fields(line), " "), ""))
}
