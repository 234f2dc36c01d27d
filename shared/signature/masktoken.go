package signature

import "strings"

// maskTokens looks at every run of letters and digits: hex of 12 or more, hex
// of 7 to 11 with both, long runs of mixed letters and digits that no word is,
// and integers of five digits or more. Codes such as e0308, ts2307 and exit
// codes are shorter and stay.
func maskTokens(s string) string {
	var b strings.Builder
	last := 0
	for i := 0; i < len(s); {
		if !alnum(s[i]) {
			i++
			continue
		}
		j := i
		var digits, letters, hex, turns int
		for j < len(s) && alnum(s[j]) {
			c := s[j]
			d := isDigit(c)
			if d {
				digits++
			} else {
				letters++
			}
			if d || c >= 'a' && c <= 'f' {
				hex++
			}
			if j > i && d != isDigit(s[j-1]) {
				turns++
			}
			j++
		}
		with := ""
		n := j - i
		switch {
		case letters == 0:
			if n >= 5 {
				with = "<n>"
			}
		case hex == n && n >= 12 && digits > 0:
			with = "<hex>"
		case hex == n && n >= 7 && digits > 0 && !code(s[i:j]):
			with = "<hex>"
		case n >= 16 && digits >= 3 && turns >= 4:
			with = "<id>"
		}
		if with != "" {
			b.WriteString(s[last:i])
			b.WriteString(with)
			last = j
		}
		i = j
	}
	if last == 0 {
		return s
	}
	b.WriteString(s[last:])
	return b.String()
}

func alnum(c byte) bool { return c >= 'a' && c <= 'z' || isDigit(c) }

// code reports whether s is one to three letters and four or five digits.
func code(s string) bool {
	i := 0
	for i < len(s) && !isDigit(s[i]) {
		i++
	}
	if i == 0 || i > 3 || len(s)-i < 4 || len(s)-i > 5 {
		return false
	}
	for _, c := range s[i:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
