package tricky

import "fmt"

// Braces { in a comment.
const s = "a { string"

var raw = `raw { string
with "quotes" and }`

func Rune(c rune) bool {
	// [... 5 lines omitted: 12-16]
}

func (s *Set[T]) Add(v T) (err error) {
	// [... 5 lines omitted: 20-24]
}

func short() {}
