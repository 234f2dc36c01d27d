package redact

import "strings"

// pairValue says that a field's name is that of a value whose name stands in a
// field before it.
func pairValue(name string) bool {
	switch len(name) {
	case 5:
		return strings.EqualFold(name, "value")
	case 7:
		return strings.EqualFold(name, "default")
	case 11:
		return strings.EqualFold(name, "secretvalue")
	case 12:
		return strings.EqualFold(name, "string_value")
	case 14:
		return strings.EqualFold(name, "parametervalue")
	}
	return false
}

// maxPair is how far left of a value the field with its name ends, in bytes:
// quotes, a comma, a line end and an indentation.
const maxPair = 64

// pairName is the NAME of `"name": "NAME", "value":`, of `- name: NAME` with
// `value:` on the next line, and of `<add key="NAME" value=`. value stands at i.
func pairName(text string, from, i int) string {
	e := i
	for e > from && i-e < maxPair && strings.IndexByte(" \t\r\n\"',\\n+-{", text[e-1]) >= 0 {
		e--
	}
	if e == i {
		return ""
	}
	// A name that itself ends in n, cut by the escape's letter.
	for e < i && text[e] == 'n' {
		e++
	}
	s := e
	for s > from && e-s < maxName && isName(text[s-1]) {
		s--
	}
	k := s
	for k > from && s-k < 8 && strings.IndexByte(" \\\"'=:", text[k-1]) >= 0 {
		k--
	}
	if strings.HasSuffix(text[from:k], "variable") && k < s {
		return text[s:e] // Terraform's variable "NAME" { default =
	}
	if k == s || !strings.ContainsAny(text[k:s], "=:") {
		return ""
	}
	f := k
	for f > from && k-f < 16 && isName(text[f-1]) {
		f--
	}
	switch strings.ToLower(text[f:k]) {
	case "name", "key", "parametername", "parameterkey", "variable", "var", "label", "field":
		return text[s:e]
	}
	return ""
}

// commaPair reads ("API_KEY", "value") at the comma: a name and a value as
// arguments of a call.
func commaPair(text string, from, i int) (found, bool) {
	if i < 3 || text[i-1] != '"' && text[i-1] != '\'' && text[i-1] != '`' || !opensQuote(text, i+1) {
		return found{}, false
	}
	s, e, quoted := nameBefore(text, i)
	s = max(s, from)
	if !quoted || s >= e {
		return found{}, false
	}
	name := text[s:e]
	if strings.EqualFold(name, "authorization") {
		return header(text, i+1)
	}
	kind, t := secretName(name)
	if t != random && t != anyWord {
		return found{}, false
	}
	v := readValue(text, i+1)
	if !v.ok || !v.quoted || namesSecret(v.clean) {
		return found{}, false
	}
	if k := strings.LastIndexByte(v.clean, ':'); k > 0 && allDigits(v.clean[k+1:]) && run(v.clean, 0, hostname) == k {
		return found{}, false // ("user", "password", "localhost:22")
	}
	// "password", "hunter" may be a list of words: a name of a variable or a
	// header, or a value that looks it.
	if !looksRandom(v.clean) && (strings.ToUpper(name) != name || !hasDigit(v.clean)) {
		return found{}, false
	}
	return judge(text, from, assignment{s, e, i, kind, t, true, false}, v)
}

// callAt reads setPassword("value") at the bracket.
func callAt(text string, from, i int) (found, bool) {
	if i == 0 || i+1 >= len(text) || !isName(text[i-1]) || !opensQuote(text, i+1) {
		return found{}, false
	}
	s := i
	for s > from && i-s < maxName && isName(text[s-1]) {
		s--
	}
	name := text[s:i]
	if credentialCall(name) {
		return secondLiteral(text, i+1)
	}
	kind, t := secretName(name)
	if t != random && t != anyWord {
		return found{}, false
	}
	v := readValue(text, i+1)
	if !v.ok || !v.quoted || !looksRandom(v.clean) && !(t == anyWord && len(v.clean) >= 8 && mixed(v.clean) && symbols(v.clean) > 0) || namesSecret(v.clean) || containsMark(v.clean) {
		return found{}, false
	}
	return judge(text, from, assignment{s, i, i, kind, t, false, false}, v)
}

// orAt reads NAME || "value" and NAME ?? "value": what stands in for a setting
// that is absent.
func orAt(text string, from, i int) (found, bool) {
	if i+2 >= len(text) || text[i+1] != text[i] || !opensQuote(text, i+2) {
		return found{}, false
	}
	s, e, _ := nameBefore(text, i)
	s = max(s, from)
	if s >= e {
		return found{}, false
	}
	kind, t := secretName(text[s:e])
	v := readValue(text, i+2)
	if t != random && t != anyWord || !v.ok || !v.quoted {
		return found{}, false
	}
	return judge(text, from, assignment{s, e, i, kind, t, false, false}, v)
}

// opensQuote says that a string literal begins at i, after spaces.
func opensQuote(text string, i int) bool {
	_, _, q := openValue(text, i)
	return q != 0 || i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\'')
}

// tagAt reads <password>value</password> at the end of the opening tag.
func tagAt(text string, from, i int) (found, bool) {
	if i+1 >= len(text) || i == 0 || !isName(text[i-1]) {
		return found{}, false
	}
	s := i
	for s > from && i-s < maxName && isName(text[s-1]) {
		s--
	}
	if s == from || text[s-1] != '<' && text[s-1] != ':' {
		return found{}, false
	}
	kind, t := secretName(text[s:i])
	if t != random && t != anyWord {
		if tag := text[s:i]; tag != "string" && tag != "value" {
			return found{}, false
		}
		// <key>NAME</key><string>value</string>
		ns, ne := elementBefore(text, from, s-1)
		if kind, t = secretName(text[ns:ne]); t != random && t != anyWord {
			return found{}, false
		}
		s = ns
	}
	j := i + 1
	end := j
	for end < len(text) && end-j < maxValue && text[end] != '<' && text[end] != '\n' && text[end] != ' ' {
		end++
	}
	if end >= len(text) || text[end] != '<' || end+1 >= len(text) || text[end+1] != '/' {
		return found{}, false
	}
	return judge(text, from, assignment{s, min(i, s+maxName), i, kind, t, false, true}, read{open: j, start: j, end: end, clean: text[j:end], ok: true})
}

// spacedWords are the words of spacedAt.
var spacedWords = []string{"password", "PASSWORD", "BY", "requirepass", "is", "ENV", "ARG", "setx", "setenv", "put", "set", "add", "ConvertTo-SecureString", "echo", "printf"}

// spacedAt reads words that a value follows after a space: `password VALUE` of
// a .netrc line, `ENV API_KEY VALUE`, `password is VALUE`.
func spacedAt(text string, from, i int) (found, bool) {
	e := i
	for e < len(text) && e-i < maxName && isName(text[e]) {
		e++
	}
	if e >= len(text) || text[e] != ' ' {
		return found{}, false
	}
	switch text[i:e] {
	case "password":
		if sqlUser(text, from, i, e) {
			return judged(text, from, i, e, e)
		}
		if !onLine(text, from, i, "machine ", "login ", "set ") && !netrcLine(text, from, i) {
			return found{}, false
		}
		return judged(text, from, i, e, e)
	case "PASSWORD", "BY":
		if sqlUser(text, from, i, e) {
			v := readValue(text, e)
			if !v.ok {
				return found{}, false
			}
			return judge(text, from, assignment{i, e, e, "password", anyWord, false, true}, v)
		}
		return found{}, false
	case "requirepass": // Redis
		v := readValue(text, e)
		if !v.ok || !hasDigit(v.clean) && !v.quoted {
			return found{}, false
		}
		return judge(text, from, assignment{i, e, e, "password", anyWord, false, true}, v)
	case "is":
		if k := e + 1 + btoi(e+1 < len(text) && opensQuote(text, e)); k < len(text) && !hasDigit(text[k:word(text[:min(len(text), k+maxValue)], k)]) {
			return found{}, false // nearly always: a word of a sentence
		}
		s, e2, _ := nameBefore(text, i)
		if s = max(s, from); s >= e2 {
			return found{}, false
		}
		_, t := secretName(text[s:e2])
		v := readValue(text, e)
		if t != anyWord && t != random && !strings.EqualFold(text[s:e2], "key") || !v.ok || !looksRandom(v.clean) || codeWord(v.clean) && count(v.clean).runs < 2 {
			return found{}, false
		}
		return judged(text, from, s, e2, e)
	case "ENV", "ARG", "setx", "setenv", "put", "set", "add":
		s := e + 1
		if text[s] == '`' { // set `NAME` to `value`
			k := strings.Index(text[s+1:min(len(text), s+maxName)], "` to ")
			if k < 0 {
				return found{}, false
			}
			v := readValue(text, s+1+k+len("` to"))
			if _, t := secretName(text[s+1 : s+1+k]); t != anyWord && t != random || !v.ok || !looksRandom(v.clean) || codeWord(v.clean) && count(v.clean).runs < 2 {
				return found{}, false
			}
			return judged(text, from, s+1, s+1+k, s+1+k+len("` to"))
		}
		for k := 0; k < 2 && s+1 < len(text) && text[s] == '-' && isLow(text[s+1]); k++ { // set -gx NAME value
			for s++; s < len(text) && isLow(text[s]); s++ {
			}
			if s < len(text) && text[s] == ' ' {
				s++
			}
		}
		f := s
		for f < len(text) && f-s < maxName && isName(text[f]) {
			f++
		}
		if f == s || f >= len(text) || text[f] != ' ' {
			return found{}, false
		}
		if _, t := secretName(text[s:f]); t != anyWord && t != random {
			return found{}, false
		}
		if v := readValue(text, f); letters(v.clean) && strings.ToLower(v.clean) == v.clean {
			return found{}, false // set auth.existingSecret instead
		}
		if text[f+1:] == "" || text[f+1] == '=' || text[f+1] == '-' || text[f+1] == ':' {
			return found{}, false
		}
		return judged(text, from, s, f, f)
	case "ConvertTo-SecureString":
		k := e + 1
		if strings.HasPrefix(text[k:], "-String ") {
			k += len("-String ")
		}
		v := readValue(text, k)
		if !v.ok || !v.quoted {
			return found{}, false
		}
		return judge(text, from, assignment{i, e, e, "password", anyWord, false, true}, v)
	case "echo", "printf":
		v := readValue(text, e)
		if !v.ok || v.end >= len(text) || len(v.clean) < minValue || strings.ContainsAny(v.clean, " \n") || isReference(v.clean) || containsMark(text[v.start:v.end]) {
			return found{}, false
		}
		line := text[v.end:min(len(text), v.end+maxCommand)]
		if nl := strings.IndexByte(line, '\n'); nl >= 0 {
			line = line[:nl]
		}
		bar := strings.IndexByte(line, '|')
		if bar < 0 || bar > 8 {
			return found{}, false
		}
		for _, w := range []string{"--password-stdin", "--with-token", "--stdin", "sudo -S", "chpasswd", "secret set", "secret put", "secrets set"} {
			if strings.Contains(line[bar:], w) {
				if f, ok := inner(text, v.start, v.end); ok {
					return f, true
				}
				return found{start: v.start, end: v.end, kind: "password", secret: v.secretOf()}, true
			}
		}
	}
	return found{}, false
}

// judged reads the value behind k for the name [s,e).
func judged(text string, from, s, e, k int) (found, bool) {
	kind, t := secretName(text[s:e])
	if t != anyWord && t != random {
		kind, t = "api_key", random
	}
	v := readValue(text, k)
	if !v.ok || text[v.start:v.end] == "" {
		return found{}, false
	}
	return judge(text, from, assignment{s, e, k, kind, t, false, true}, v)
}
