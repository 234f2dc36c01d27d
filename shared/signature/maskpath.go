package signature

import "strings"

// maskPaths replaces each absolute or climbing path by `<p>/BASENAME`. What
// follows a host or a word is relative and stays: `openssl/nope.h`,
// `github.com/x/y`. A single segment such as `/health` stays too.
func maskPaths(s string) string {
	var b strings.Builder
	last := 0
	for i := 0; i < len(s); {
		n, base := pathAt(s, i)
		if n == 0 {
			i++
			continue
		}
		if b.Len() == 0 {
			b.Grow(len(s))
		}
		b.WriteString(s[last:i])
		b.WriteString("<p>/")
		b.WriteString(base)
		i += n
		last = i
	}
	if last == 0 {
		return s
	}
	b.WriteString(s[last:])
	return b.String()
}

// pathAt reports the length of a path that begins at i, and its last segment.
func pathAt(s string, i int) (int, string) {
	c := s[i]
	if c != '/' && c != '~' && c != '.' && c != 'f' && (c < 'a' || c > 'z') {
		return 0, ""
	}
	if i > 0 && !pathMayFollow(s[i-1]) {
		return 0, ""
	}
	switch {
	case strings.HasPrefix(s[i:], "file:///"):
		n, base, _ := segments(s, i+len("file://"))
		return grow(n, len("file://")), base
	case c >= 'a' && c <= 'z' && i+3 < len(s) && s[i+1] == ':' && (s[i+2] == '\\' || s[i+2] == '/' && s[i+3] != '/'):
		return drive(s, i)
	case c == '~' && i+1 < len(s) && s[i+1] == '/':
		n, base, _ := segments(s, i+1)
		return grow(n, 1), base
	case c == '/':
		n, base, count := segments(s, i)
		if count < 2 {
			return 0, ""
		}
		return n, base
	case strings.HasPrefix(s[i:], "../"), strings.HasPrefix(s[i:], `..\`):
		j := i
		for strings.HasPrefix(s[j:], "../") || strings.HasPrefix(s[j:], `..\`) {
			j += 3
		}
		n, base, _ := segments(s, j-1)
		if n == 0 {
			return 0, ""
		}
		return j - 1 - i + n, base
	}
	return 0, ""
}

func grow(n, by int) int {
	if n == 0 {
		return 0
	}
	return n + by
}

func pathMayFollow(c byte) bool {
	switch c {
	case ' ', '\t', '"', '\'', '`', '(', '[', '{', '<', '=', ':', ',', ';', '|', '>', '!', '&', '+', '\\':
		return true
	}
	return false
}

// inSegment are the bytes of a name in a path. `< > *` are what masks and npm's
// own `***` leave in a directory.
func inSegment(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c >= 0x80:
		return true
	}
	return strings.IndexByte("_.-+@%~<>*$^#=", c) >= 0
}

// segments reads `/a/b/c` from the slash at i, with either slash.
func segments(s string, i int) (n int, base string, count int) {
	j := i
	for j < len(s) && (s[j] == '/' || s[j] == '\\') {
		k := j + 1
		for k < len(s) && inSegment(s[k]) {
			k++
		}
		if k == j+1 {
			break
		}
		base = s[j+1 : k]
		count++
		j = k
	}
	if count == 0 {
		return 0, "", 0
	}
	// A sentence's full stop is not of the name.
	t := strings.TrimRight(base, ".>")
	if strings.Count(base, "<") == strings.Count(base, ">") {
		t = strings.TrimRight(base, ".")
	}
	if t == "" {
		t = base
	}
	j -= len(base) - len(t)
	if t == base && j < len(s) && s[j] == '/' {
		j++ // the slash behind a directory
	}
	return j - i, t, count
}

// drive reads `c:\a b\c`. A blank is of the path where a backslash follows in
// the same segment.
func drive(s string, i int) (int, string) {
	j := i + 2
	base := ""
	for j < len(s) && (s[j] == '\\' || s[j] == '/') {
		k, end := j+1, -1
		for k < len(s) {
			if inSegment(s[k]) {
				k++
				continue
			}
			if (s[k] == ' ' || s[k] == '(' || s[k] == ')' || s[k] == '&') && end < 0 {
				end = k
			}
			if s[k] != ' ' && s[k] != '(' && s[k] != ')' && s[k] != '&' {
				break
			}
			k++
		}
		if end >= 0 && (k >= len(s) || s[k] != '\\') {
			k = end
		}
		for k < len(s) && s[k] == '\\' && k+1 < len(s) && s[k+1] == '\\' {
			k++ // doubled in JSON and in quoted text
		}
		if strings.Trim(s[j+1:k], `\`) == "" {
			break
		}
		base = strings.Trim(s[j+1:k], `\`)
		j = k
	}
	if base == "" {
		return 0, ""
	}
	t := strings.TrimRight(base, ".")
	return j - i - (len(base) - len(t)), t
}
