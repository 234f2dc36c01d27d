package redact

import "strings"

// maxName is how far left of a separator a name is looked for, in bytes.
const maxName = 64

// assigned reads the value behind a separator at i when the name before it, or
// the URL around it, says that it is a secret.
func assigned(text string, i int) (found, bool) {
	if text[i] == ':' && strings.HasPrefix(text[i:], "://") {
		return userinfo(text, i)
	}
	s, e, quoted := nameBefore(text, i)
	if s == e {
		return found{}, false
	}
	name := text[s:e]
	kind, strong := secretName(name)
	if kind == "" {
		return found{}, false
	}
	if kind == "authorization" {
		return header(text, i+1)
	}
	return value(text, s, e, i, kind, strong, quoted)
}

// nameBefore is the identifier left of a separator, past spaces and a closing
// quote, which may itself be escaped.
func nameBefore(text string, i int) (s, e int, quoted bool) {
	e = i
	for e > 0 && i-e < 4 && text[e-1] == ' ' {
		e--
	}
	if e > 0 && (text[e-1] == '"' || text[e-1] == '\'' || text[e-1] == '`') {
		e--
		quoted = true
		for e > 0 && text[e-1] == '\\' && i-e < 12 {
			e--
		}
	}
	s = e
	for s > 0 && e-s < maxName && isName(text[s-1]) {
		s--
	}
	// `\nPASSWORD=` in quoted code: the n belongs to the escape.
	if s > 0 && s < e && text[s-1] == '\\' && strings.IndexByte("nrt", text[s]) >= 0 {
		s++
	}
	return s, e, quoted
}

func isName(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '.'
}

// secretName says what a name promises: the kind, and whether the value is a
// password, which may be any word, rather than a key, which looks random. Only
// the last segments count: TOKEN_LIMIT and secretName are no secrets.
func secretName(name string) (kind string, password bool) {
	if !mayNameSecret(name) {
		return "", false
	}
	segs := segments(name)
	for len(segs) > 1 && suffixes[segs[len(segs)-1]] {
		segs = segs[:len(segs)-1]
	}
	if len(segs) == 0 {
		return "", false
	}
	last := segs[len(segs)-1]
	prev := ""
	if len(segs) > 1 {
		prev = segs[len(segs)-2]
	}
	switch last {
	case "password", "passwd", "pwd", "passphrase", "pass", "pw":
		return "password", true
	case "secret", "secrets":
		return "secret", true
	case "token", "authtoken", "accesstoken":
		return "token", false
	case "apikey", "secretkey", "accesskey", "privatekey":
		return "api_key", false
	case "authorization":
		return "authorization", false
	case "credential", "credentials":
		return "secret", false
	case "key":
		switch prev {
		case "api", "secret", "access", "private", "signing", "encryption", "auth", "license", "master", "service", "account", "storage":
			return "api_key", false
		}
	}
	return "", false
}

// mayNameSecret is the cheap look that nearly every name fails: all kinds of
// names above hold "pass", "pw", "secret", "token", "key", "auth" or "cred".
func mayNameSecret(name string) bool {
	for i := 0; i+1 < len(name); i++ {
		switch name[i] | 0x20 {
		case 'p':
			if c := name[i+1] | 0x20; c == 'a' || c == 'w' {
				return true
			}
		case 's', 'k':
			if name[i+1]|0x20 == 'e' {
				return true
			}
		case 't':
			if name[i+1]|0x20 == 'o' {
				return true
			}
		case 'a':
			if name[i+1]|0x20 == 'u' {
				return true
			}
		case 'c':
			if name[i+1]|0x20 == 'r' {
				return true
			}
		}
	}
	return false
}

// suffixes after a secret's name say whose it is, not what.
var suffixes = map[string]bool{
	"prod": true, "production": true, "dev": true, "staging": true, "test": true, "local": true, "old": true, "new": true,
	"1": true, "2": true, "3": true, "value": true, "base": true, "64": true, "b": true,
}

// segments splits a name at _ - . and at camel-case borders, in lower case.
func segments(name string) []string {
	var out []string
	from := 0
	cut := func(to int) {
		if to > from {
			out = append(out, strings.ToLower(name[from:to]))
		}
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '_' || c == '-' || c == '.':
			cut(i)
			from = i + 1
		case i > from && isUp(c) && !isUp(name[i-1]),
			i > from && isUp(c) && i+1 < len(name) && isLow(name[i+1]),
			i > from && isNum(c) != isNum(name[i-1]):
			cut(i)
			from = i
		}
	}
	cut(len(name))
	return out
}

func isUp(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLow(c byte) bool { return c >= 'a' && c <= 'z' }
func isNum(c byte) bool { return c >= '0' && c <= '9' }

// header reads the value of an Authorization header: an optional scheme and
// the credential.
func header(text string, i int) (found, bool) {
	s := openValue(text, i)
	end := run(text[:min(len(text), s+12)], s, dotted)
	bare := true
	for _, scheme := range []string{"bearer", "basic", "token", "digest", "apikey", "bot", "negotiate"} {
		if strings.EqualFold(text[s:end], scheme) && end < len(text) && text[end] == ' ' {
			s = end + 1
			bare = false
			for s < len(text) && text[s] == ' ' {
				s++
			}
			break
		}
	}
	end = run(text, s, dotted)
	end = trimToken(text, s, end)
	v := text[s:end]
	if len(v) < minValue || !hasDigit(v) && (bare || len(v) < 12) || isReference(v) || s > 0 && text[s-1] == '$' || strings.HasSuffix(v, "...") ||
		end < len(text) && (text[end] == '(' || text[end] == '[') {
		return found{}, false
	}
	if f, ok := inner(text, s, end); ok {
		return f, true
	}
	return found{s, end, "authorization"}, true
}

// openValue skips spaces and an opening quote, which may be escaped.
func openValue(text string, i int) int {
	for i < len(text) && text[i] == ' ' {
		i++
	}
	for i < len(text) && text[i] == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\' || text[i+1] == '\'') {
		i++
	}
	if i < len(text) && (text[i] == '"' || text[i] == '\'' || text[i] == '`') {
		i++
	}
	return i
}

// value reads an assigned value. Quoted values end at the quote, others at
// white space or punctuation.
func value(text string, ns, ne, sep int, kind string, password, nameQuoted bool) (found, bool) {
	i := sep + 1
	if text[sep] == ':' && i < len(text) && text[i] == '=' {
		i++
	}
	if text[sep] == '=' && (i < len(text) && (text[i] == '=' || text[i] == '>' || text[i] == '~') || sep > 0 && strings.IndexByte("=!<>", text[sep-1]) >= 0) {
		return found{}, false // a comparison
	}
	s := openValue(text, i)
	quoted := s > i && (text[s-1] == '"' || text[s-1] == '\'' || text[s-1] == '`')
	spaced := s > i && text[i] == ' ' || sep > ne && !nameQuoted
	var end int
	if quoted {
		q := text[s-1]
		for end = s; end < len(text) && end-s <= maxValue && text[end] != q && text[end] != '\n' && text[end] != '\\'; end++ {
		}
		if end < len(text) && text[end] == '\n' {
			return found{}, false
		}
	} else {
		for end = s; end < len(text) && end-s <= maxValue && text[end] > ' ' && text[end] < 0x80 && strings.IndexByte("\"'`,;&|<>(){}[]\\", text[end]) < 0; end++ {
		}
		end = trimToken(text, s, end)
		if end < len(text) && (text[end] == '(' || text[end] == '[' || text[end] == '{') {
			return found{}, false // a call or an index; also a mark
		}
	}
	v := text[s:end]
	if len(v) < minValue || strings.ContainsAny(v, " \t") || isReference(v) || containsMark(v) {
		return found{}, false
	}
	if f, ok := inner(text, s, end); ok {
		return f, true
	}
	env := strings.ToUpper(text[ns:ne]) == text[ns:ne] && text[sep] == '=' && !spaced
	flag := ns > 1 && text[ns-1] == '-' || strings.HasPrefix(text[ns:ne], "-")
	switch {
	case looksRandom(v):
	case password && (env || flag):
	case !password && (env || flag) && hasDigit(v) && len(v) >= 8 && !strings.ContainsAny(v, "/."):
	case password && quoted && hasDigit(v):
	case password && quoted && len(v) >= 8 && !namesSecret(v) && !plainWords[strings.ToLower(v)] && letters(v) && text[sep] == ':' == nameQuoted:
	default:
		return found{}, false
	}
	if !quoted && !env && !flag && strings.ContainsAny(v, ".") && !hasDigit(v) {
		return found{}, false // settings.password: a path in code
	}
	if len(v) > maxValue {
		if !looksRandom(v) {
			return found{}, false
		}
		end = run(text, end, dotted)
	}
	return found{s, end, kind}, true
}

const (
	minValue = 6   // shorter values are flags and stubs
	maxValue = 512 // how far a value is read before it has to look random
)

// isReference says that a value only names where the secret is, or is a stub.
func isReference(v string) bool {
	if strings.ContainsAny(v, "${<*") || strings.HasPrefix(v, "%") || strings.Contains(v, "...") {
		return true
	}
	low := strings.ToLower(v)
	for _, w := range []string{"your-", "your_", "my-", "my_", "example", "placeholder", "changeme", "redacted", "xxxx", "process.env", "os.environ", "os.getenv", "secretref", "vault:", "secrets."} {
		if strings.HasPrefix(low, w) {
			return true
		}
	}
	return strings.Trim(low, "x-_.") == ""
}

func containsMark(v string) bool { return strings.Contains(v, markOpen) }

// looksRandom says that a value is no word of a language or a program: letters
// and digits together, in a length that a name seldom has.
func looksRandom(v string) bool {
	if len(v) < 8 || strings.ContainsAny(v, "()[]{}<>\"'") {
		return false
	}
	digits, lows, ups, marks, turns := 0, 0, 0, 0, 0
	last := byte(0)
	for i := 0; i < len(v); i++ {
		kind := byte('m')
		switch c := v[i]; {
		case isNum(c):
			digits++
			kind = 'd'
		case isLow(c):
			lows++
			kind = 'l'
		case isUp(c):
			ups++
			kind = 'u'
		default:
			marks++
		}
		if kind != last && i > 0 {
			turns++
		}
		last = kind
	}
	if strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "~/") || strings.Contains(v, "://") {
		return false
	}
	if digits == 0 || lows+ups == 0 {
		return false
	}
	return digits >= 2 && turns >= 2 || digits >= 1 && ups > 0 && lows > 0 || digits >= 1 && marks > 0 && !strings.ContainsAny(v, "/.")
}

// namesSecret says that a value is itself a name of a secret: a field mapping
// or a keyword argument.
func namesSecret(v string) bool {
	low := strings.ToLower(v)
	for _, w := range []string{"pass", "secret", "token", "key", "cred", "auth", "pwd"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

func letters(v string) bool {
	for i := 0; i < len(v); i++ {
		if !isLow(v[i]) && !isUp(v[i]) {
			return false
		}
	}
	return true
}

// plainWords are values of schemas and forms, not passwords.
var plainWords = map[string]bool{
	"required": true, "optional": true, "undefined": true, "disabled": true, "enabled": true, "identifier": true,
	"nullable": true, "varchar": true, "encrypted": true, "textarea": true, "unchanged": true, "sensitive": true,
	"plaintext": true, "protected": true, "external": true, "internal": true,
}

// userinfo reads scheme://user:password@host at the colon.
func userinfo(text string, i int) (found, bool) {
	if i == 0 || class[text[i-1]] != wordByte {
		return found{}, false
	}
	colon := -1
	for j := i + 3; j < len(text); j++ {
		switch c := text[j]; {
		case c == '@':
			if colon < 0 || j == colon+1 {
				return found{}, false
			}
			// The last @ before the host ends the password.
			for k := j + 1; k < len(text) && k-i < 600 && strings.IndexByte(urlEnd, text[k]) < 0 && text[k] > ' '; k++ {
				if text[k] == '@' {
					j = k
				}
			}
			v := text[colon+1 : j]
			if isReference(v) || containsMark(v) || strings.ContainsAny(v, "[]") {
				return found{}, false
			}
			return found{colon + 1, j, "url_password"}, true
		case c == ':' && colon < 0:
			colon = j
		case c <= ' ', strings.IndexByte(urlEnd, c) >= 0, j-i > 300:
			return found{}, false
		}
	}
	return found{}, false
}

// urlEnd are bytes that end the part of a URL in which a password can stand.
const urlEnd = "/?#\"'`<>()\\|,;"
