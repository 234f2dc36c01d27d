package redact

import "strings"

// urlEnd are bytes that end the part of a URL in which a password can stand.
const urlEnd = "/?#\"'`<>()\\|,;"

// stubPasswords of URLs in documentation, which say "password" and no more.
var stubPasswords = set("pass password passwd pwd p pw secret user username token x xxx xxxx 123 foo bar baz test guest passw0rd")

// userinfo reads scheme://user:password@host at the colon, and
// scheme://token@host.
func userinfo(text string, i int) (found, bool) {
	if i == 0 || class[text[i-1]] != wordByte {
		return found{}, false
	}
	colon := -1
	for j := i + 3; j < len(text); j++ {
		switch c := text[j]; {
		case c == '@':
			if colon == j-1 {
				return found{}, false
			}
			// The last @ before the host ends the password.
			for k := j + 1; k < len(text) && k-i < 600 && strings.IndexByte(urlEnd, text[k]) < 0 && text[k] > ' '; k++ {
				if text[k] == '@' {
					j = k
				}
			}
			s := colon + 1
			if colon < 0 {
				s = i + 3
			}
			v := text[s:j]
			if isReference(v) || containsMark(v) || strings.ContainsAny(v, "[]") || stubPasswords[strings.ToLower(v)] || len(v) < 4 && letters(v) {
				return found{}, false
			}
			if f, ok := inner(text, s, j); ok {
				return f, true
			}
			if colon < 0 {
				if len(v) < 20 || !strong(v) || isUUID(v) {
					return found{}, false
				}
				return found{start: s, end: j, kind: "url_token"}, true
			}
			return found{start: s, end: j, kind: "url_password"}, true
		case c == ':' && colon < 0:
			colon = j
		case c <= ' ', strings.IndexByte(urlEnd, c) >= 0, j-i > 300:
			return slashed(text, i, colon)
		}
	}
	return found{}, false
}

// slashed reads a password that holds a slash or another byte that ends a
// host: user:pa/ss@host, which clients take.
func slashed(text string, i, colon int) (found, bool) {
	if colon < 0 || colon == i+3 {
		return found{}, false
	}
	for j := colon + 1; j < len(text) && j-colon < 80; j++ {
		switch c := text[j]; {
		case c == '@':
			v := text[colon+1 : j]
			if port := strings.IndexAny(v, "/?#"); port >= 0 && allDigits(v[:port]) || !looksRandom(strings.ReplaceAll(v, "/", "+")) || isReference(v) || containsMark(v) ||
				j+1 >= len(text) || !alnum.has(text[j+1]) {
				return found{}, false
			}
			return found{start: colon + 1, end: j, kind: "url_password"}, true
		case c <= ' ', strings.IndexByte("\"'`<>()\\|", c) >= 0:
			return found{}, false
		}
	}
	return found{}, false
}

func allDigits(v string) bool {
	for i := 0; i < len(v); i++ {
		if !isNum(v[i]) {
			return false
		}
	}
	return true
}

// atSign reads user:password@ without a scheme before it: Go's MySQL form
// user:password@tcp(host), or a host with a port.
func atSign(text string, from, i int) (found, bool) {
	s := i
	for s > from && i-s < maxName && text[s-1] > ' ' && strings.IndexByte("\"'`:/@<>()=,;\\", text[s-1]) < 0 {
		s--
	}
	if s == i || s-2 < from || text[s-1] != ':' || !dashed.has(text[s-2]) {
		return found{}, false
	}
	v, after := text[s:i], text[i+1:]
	if isReference(v) || stubPasswords[strings.ToLower(v)] || len(v) < 3 || containsMark(v) {
		return found{}, false
	}
	f := found{start: s, end: i, kind: "url_password"}
	for _, p := range []string{"tcp(", "unix(", "tcp6(", "cloudsql("} {
		if strings.HasPrefix(after, p) {
			return f, true
		}
	}
	// host:port; without a port the same form is a message's id
	e := run(text[:min(len(text), i+64)], i+1, hostname)
	host := text[i+1 : e]
	port := e < len(text)-1 && text[e] == ':' && isNum(text[e+1])
	if len(v) < 8 || !looksRandom(v) || host == "" || !alnum.has(host[0]) || !port || strings.HasPrefix(host, "sha") {
		return found{}, false
	}
	return f, true
}
