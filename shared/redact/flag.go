package redact

import "strings"

// flagAt reads `--password VALUE`, `-Token VALUE`, `-u user:password`, `-p
// VALUE` at a dash.
func flagAt(text string, from, i int) (found, bool) {
	if i > 0 && text[i-1] > ' ' && strings.IndexByte("\"'`[(,n", text[i-1]) < 0 {
		return found{}, false
	}
	s := i
	for s < len(text) && text[s] == '-' && s-i < 2 {
		s++
	}
	e := s
	for e < len(text) && e-s < maxName && isName(text[e]) {
		e++
	}
	if s == i+1 && s < len(text) && text[s] == 'p' && (e >= len(text) || text[e] > ' ') {
		return glued(text, from, i, s)
	}
	if e == s || e+1 >= len(text) {
		return found{}, false
	}
	name := text[s:e]
	if name[0] == 'p' && s == i+1 && len(name) > 4 {
		if f, ok := glued(text, from, i, s); ok {
			return f, true
		}
	}
	// "--password", "x" in a list of arguments
	k := e
	if text[k] == '"' || text[k] == '\'' {
		for k++; k < len(text) && (text[k] == ' ' || text[k] == ',' || text[k] == '\n') && k-e < 16; k++ {
		}
		if k >= len(text) || text[k] != text[e] || k == e+1 {
			return found{}, false
		}
	} else if text[k] != ' ' && text[k] != '\t' {
		return found{}, false
	}
	if len(name) == 1 {
		return shortFlag(text, from, i, name[0], k)
	}
	if s == i+1 && !isUp(name[0]) && name != "pass" && name != "password" && name != "passin" && name != "passout" && name != "token" {
		return found{}, false // clustered short flags
	}
	if name == "user" || name == "proxy-user" {
		return userPair(text, k)
	}
	if (name == "body" || name == "value") && onLine(text, from, i, "secret set ", "secrets set ", "secret put ", "put-parameter ") {
		return stored(text, from, i, k)
	}
	kind, t := secretName(name)
	if name == "passin" || name == "passout" {
		kind, t = "password", anyWord
	}
	if t != random && t != anyWord {
		return found{}, false
	}
	v := readValue(text, k)
	if v.ok && strings.HasPrefix(v.clean, "pass:") {
		v.start, v.clean = v.start+5, v.clean[5:]
	}
	if v.ok && v.clean == "" || v.ok && !v.quoted && (text[v.start] == '-' || t == anyWord && plainWord(v.clean)) {
		return found{}, false
	}
	return judge(text, from, assignment{s, e, e, kind, t, false, true}, v)
}

// plainWord is a word of a sentence about a flag.
func plainWord(v string) bool {
	return letters(v) && (strings.ToLower(v) == v && len(v) < 8 || plainWords[strings.ToLower(v)])
}

// stored reads the value that a command puts into a store of secrets: whatever
// it is called there.
func stored(text string, from, i, k int) (found, bool) {
	v := readValue(text, k)
	if !v.ok || v.end >= len(text) || text[v.start] == '-' {
		return found{}, false
	}
	return judge(text, from, assignment{i, i + 1, i + 1, "secret", anyWord, false, true}, v)
}

// userPair reads user:password.
func userPair(text string, k int) (found, bool) { return userPairBy(text, k, ':') }

// userPairBy is userPair with another sign between the two.
func userPairBy(text string, k int, sign byte) (found, bool) {
	v := readValue(text, k)
	if v.ok && sign == ',' && v.end < len(text) && text[v.end] == sign {
		e := word(text[:min(len(text), v.end+maxValue)], v.end)
		v.end, v.clean = e, text[v.start:e]
	}
	if !v.ok || v.joined {
		return found{}, false
	}
	colon := strings.IndexByte(v.clean, sign)
	if colon < 1 || len(v.clean) != v.end-v.start {
		return found{}, false
	}
	pw := v.clean[colon+1:]
	if len(pw) < 3 || isReference(pw) || stubPasswords[strings.ToLower(pw)] || allDigits(pw) && len(pw) < 6 || strings.ContainsAny(pw, " /\n") && !looksRandom(pw) || containsMark(pw) ||
		allDigits(v.clean[:colon]) && allDigits(pw) {
		return found{}, false
	}
	s := v.start + colon + 1
	if f, ok := inner(text, s, v.end); ok {
		return f, true
	}
	return found{start: s, end: v.end, kind: "password"}, true
}

// shortFlag reads the flags of programs that take a password by one letter:
// the program's name stands before it on the line.
func shortFlag(text string, from, i int, c byte, k int) (found, bool) {
	switch c {
	case 'u', 'U':
		if c == 'U' && onLine(text, from, i, "smbclient", "rpcclient", "smbmap", "smbget") {
			return userPairBy(text, k, '%')
		}
		if c == 'u' && onLine(text, from, i, "lftp") {
			return userPairBy(text, k, ',')
		}
		if !onLine(text, from, i, "curl", "wget", "http ", "https ", "httpie", "ab ", "hey ") {
			return found{}, false
		}
		return userPair(text, k)
	case 'b':
		if onLine(text, from, i, "secret set ") {
			return stored(text, from, i, k)
		}
		return found{}, false
	case 'p', 'a', 'k', 'w', 'P', 'N':
	default:
		return found{}, false
	}
	ok := c == 'p' && onLine(text, from, i, "sshpass", "docker login", "podman login", "az login", "oc login", "nerdctl login", "helm registry login", "cf login", "mongo", "plink", "useradd", "twine ") ||
		c == 'N' && onLine(text, from, i, "ssh-keygen") ||
		c == 'a' && onLine(text, from, i, "redis-cli") ||
		c == 'k' && onLine(text, from, i, "openssl enc", "openssl aes") ||
		c == 'w' && onLine(text, from, i, "ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami") ||
		c == 'P' && onLine(text, from, i, "sqlcmd", "ipmitool", "zip ", "bcp ")
	if !ok {
		return found{}, false
	}
	v := readValue(text, k)
	if !v.ok || len(v.clean) < 4 || isReference(v.clean) || strings.ContainsAny(v.clean, " \n") || containsMark(text[v.start:v.end]) || text[v.start] == '-' || allDigits(v.clean) && len(v.clean) < 6 {
		return found{}, false
	}
	if f, ok := inner(text, v.start, v.end); ok {
		return f, true
	}
	return found{start: v.start, end: v.end, kind: "password", secret: v.secretOf()}, true
}

// secretOf is the value where it is not the bytes of the text.
func (v read) secretOf() string {
	if v.joined || len(v.clean) != v.end-v.start {
		return v.clean
	}
	return ""
}

// glued reads `mysql -psecret`, `7z a -psecret`.
func glued(text string, from, i, s int) (found, bool) {
	if !onLine(text, from, i, "mysql", "mariadb", "7z ", "sshpass") {
		return found{}, false
	}
	v := readValue(text, s+1)
	if !v.ok || len(v.clean) < 4 || isReference(v.clean) || strings.ContainsAny(v.clean, " \n") || containsMark(text[v.start:v.end]) {
		return found{}, false
	}
	return found{start: v.start, end: v.end, kind: "password", secret: v.secretOf()}, true
}

// onLine says that one of the words stands left of i, on its line or on the
// lines that it continues.
func onLine(text string, from, i int, words ...string) bool {
	from = max(from, i-maxCommand)
	line := text[from:i]
	for k := len(line); ; {
		nl := strings.LastIndexByte(line[:k], '\n')
		if nl < 0 {
			break
		}
		if nl == 0 || line[nl-1] != '\\' {
			line = line[nl+1:]
			break
		}
		k = nl
	}
	for _, w := range words {
		if strings.Contains(line, w) {
			return true
		}
	}
	return false
}

// maxCommand is how far left of a flag its command is looked for, in bytes.
const maxCommand = 400
