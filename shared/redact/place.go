package redact

import "strings"

// Values whose name, or the like of it, stands in a place of its own: a cell,
// an element, a clause of SQL, a line of a password file.

// typeNames are types that stand between a name and its value.
var typeNames = set("string String str any Secret SecretStr")

// typed is the name before a type that begins at s: `apiKey: string`, `key
// string`, `key: &str`.
func typed(text string, from, s int) (int, int) {
	e := s
	for e > from && s-e < 12 && strings.IndexByte(" :&*?", text[e-1]) >= 0 {
		e--
	}
	if e == s {
		return 0, 0
	}
	k := e
	for k > from && e-k < maxName && isName(text[k-1]) {
		k--
	}
	return k, e
}

// cellAt reads | NAME | value | of a Markdown table at the sign between.
func cellAt(text string, from, i int) (found, bool) {
	if i < 3 || text[i-1] != ' ' || i+2 >= len(text) || text[i+1] != ' ' {
		return found{}, false
	}
	s, e, _ := nameBefore(text, i)
	if s = max(s, from); s >= e {
		return found{}, false
	}
	k := s
	for k > from && s-k < 4 && strings.IndexByte(" `*", text[k-1]) >= 0 {
		k--
	}
	if k > from && text[k-1] != '|' && text[k-1] != '\n' {
		return found{}, false
	}
	kind, t := secretName(text[s:e])
	v := readValue(text, i+1)
	if t != random && t != anyWord || !v.ok || !looksRandom(v.clean) || phrase(v.clean) ||
		(len(v.clean) < 20 || entropy(v.clean) < 4.2) && (codeWord(v.clean) || count(v.clean).runs < 2 && symbols(v.clean) == 0) {
		return found{}, false
	}
	return judge(text, from, assignment{s, e, i, kind, t, false, true}, v)
}

// csvAt reads a line NAME,value at the comma; the name is written in capitals.
func csvAt(text string, from, i int) (found, bool) {
	s := i
	for s > from && i-s < maxName && (isUp(text[s-1]) || isNum(text[s-1]) || text[s-1] == '_') {
		s--
	}
	if s > 0 && text[s-1] != '\n' || strings.IndexByte(text[s:i], '_') < 0 {
		return found{}, false
	}
	kind, t := secretName(text[s:i])
	v := readValue(text, i+1)
	if t != random && t != anyWord || !v.ok || !looksRandom(v.clean) || codeWord(v.clean) {
		return found{}, false
	}
	return judge(text, from, assignment{s, i, i, kind, t, false, true}, v)
}

// elementBefore is the text of the element <key> or <name> that ends before i,
// where the next one opens.
func elementBefore(text string, from, i int) (s, e int) {
	e = i
	for e > from && i-e < maxPair && strings.IndexByte(" \t\r\n", text[e-1]) >= 0 {
		e--
	}
	switch {
	case e-6 >= from && text[e-6:e] == "</key>":
		e -= 6
	case e-7 >= from && text[e-7:e] == "</name>":
		e -= 7
	default:
		return i, i
	}
	s = e
	for s > from && e-s < maxName && isName(text[s-1]) {
		s--
	}
	return s, e
}

// sqlUser says that a quoted password of SQL stands behind the word [i,e):
// ALTER USER … PASSWORD '…', IDENTIFIED … BY '…'.
func sqlUser(text string, from, i, e int) bool {
	if e+1 >= len(text) || text[e+1] != '\'' && text[e+1] != '"' && text[e+1] != '\\' {
		return false
	}
	if strings.EqualFold(text[i:e], "by") {
		return onLine(text, from, i, "IDENTIFIED ", "identified ")
	}
	return onLine(text, from, i, "USER ", "user ", "ROLE ", "role ", "LOGIN ")
}

// netrcLine says that `password` at i is a line of .netrc: the lines before it
// name a machine or a login.
func netrcLine(text string, from, i int) bool {
	lines := strings.Split(text[max(from, i-maxCommand):i], "\n")
	n := len(lines)
	if n < 2 || strings.Trim(lines[n-1], " \t+-0123456789\u2192|") != "" {
		return false
	}
	for _, l := range lines[max(0, n-3) : n-1] {
		if strings.Contains(l, "machine ") || strings.Contains(l, "login ") {
			return true
		}
	}
	return false
}

// pgpass reads a line host:port:database:user:password of .pgpass at the colon
// before the port.
func pgpass(text string, from, i int) (found, bool) {
	k := i + 1
	for k < len(text) && k-i <= 6 && isNum(text[k]) {
		k++
	}
	if n := k - i - 1; n == 0 && text[k] == '*' {
		k++
	} else if n < 4 || n > 5 {
		return found{}, false
	}
	s := i
	for s > from && i-s < maxName && (hostname.has(text[s-1]) || text[s-1] == '*') {
		s--
	}
	if s == i || s > 0 && strings.IndexByte("\n\"'` \t", text[s-1]) < 0 {
		return found{}, false
	}
	for range 2 { // the database and the user
		if k >= len(text) || text[k] != ':' {
			return found{}, false
		}
		f := k + 1
		for k = f; k < len(text) && k-f < maxName && (isName(text[k]) || text[k] == '*'); k++ {
		}
		if k == f || isNum(text[f]) {
			return found{}, false
		}
	}
	if k >= len(text) || text[k] != ':' {
		return found{}, false
	}
	k++
	e := word(text[:min(len(text), k+maxValue)], k)
	v := text[k:e]
	if len(v) < minValue || !hasDigit(v) && symbols(v) == 0 || isReference(v) || containsMark(v) || isPath(v) {
		return found{}, false
	}
	return found{start: k, end: e, kind: "password"}, true
}

// loginPair reads what names a user and a password together: Docker's "auth":
// "base64 of user:password", npm's _auth, and auth=("user", "password").
func loginPair(text string, i int, name string) (found, bool) {
	if len(name) < 4 || lower(name[len(name)-1]) != 'h' || !strings.EqualFold(name, "auth") && name != "_auth" && name != "http_auth" && name != "basic_auth" {
		return found{}, false
	}
	if i+1 < len(text) && text[i] == '=' && text[i+1] == '(' {
		return secondLiteral(text, i+2)
	}
	v := readValue(text, i+1)
	if !v.ok || v.joined || !basicPair(v.clean) || !hasDigit(v.clean) && !mixed(v.clean) {
		return found{}, false
	}
	return found{start: v.start, end: v.end, kind: "docker_auth"}, true
}

// credentialCall says that a function's arguments are a user and a password.
func credentialCall(name string) bool {
	for _, w := range []string{"BasicAuth", "NetworkCredential", "PasswordCredentials"} {
		if k := len(name) - len(w); k >= 0 && strings.EqualFold(name[k:], w) {
			return true
		}
	}
	return false
}

// secondLiteral reads "user", "password" and gives the second.
func secondLiteral(text string, i int) (found, bool) {
	u := readValue(text, i)
	if !u.ok || !u.quoted || u.joined || len(u.clean) == 0 || len(u.clean) > maxName {
		return found{}, false
	}
	k := u.end
	for k < len(text) && (text[k] == '\\' || text[k] == '"' || text[k] == '\'') {
		k++
	}
	if k+1 >= len(text) || text[k] != ',' || !opensQuote(text, k+1) {
		return found{}, false
	}
	v := readValue(text, k+1)
	if !v.ok || !v.quoted || len(v.clean) < minValue || strings.ContainsAny(v.clean, " \n") || isReference(v.clean) || containsMark(v.clean) ||
		stubPasswords[strings.ToLower(v.clean)] || plainWords[strings.ToLower(v.clean)] || !hasDigit(v.clean) && symbols(v.clean) == 0 {
		return found{}, false
	}
	if f, ok := inner(text, v.start, v.end); ok {
		return f, true
	}
	return found{start: v.start, end: v.end, kind: "password", secret: v.secretOf()}, true
}
