package tricky

import "fmt"

// Braces { in a comment.
const s = "a { string"

var raw = `raw { string
with "quotes" and }`

func Rune(c rune) bool {
	switch c {
	case '{', '}':
		return true
	}
	return false
}

func (s *Set[T]) Add(v T) (err error) {
	defer func() { err = fmt.Errorf("%w }", err) }()
	if s.m == nil {
		s.m = map[string]struct{}{}
	}
	return nil
}

func short() {}
