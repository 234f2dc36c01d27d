package redact

import "strings"

// assigned reads the value behind a separator at i when the name before it, or
// the URL around it, says that it is a secret.
func assigned(text string, from, i int) (found, bool) {
	if text[i] == ':' {
		if strings.HasPrefix(text[i:], "://") {
			return userinfo(text, i)
		}
		if f, ok := telegram(text, from, i); ok {
			return f, true
		}
	}
	if text[i] == ':' && i+1 < len(text) && (isNum(text[i+1]) || text[i+1] == '*') {
		if f, ok := pgpass(text, from, i); ok {
			return f, true
		}
	}
	s, e, quoted := nameBefore(text, i)
	s = max(s, from)
	if s >= e {
		return found{}, false
	}
	if text[i] == '=' && typeNames[text[s:e]] {
		// const apiKey: string = "…"
		if ts, te := typed(text, from, s); te > ts {
			s, e = ts, te
		}
	}
	if quoted && s-2 >= from && text[s-2:s] == "::" {
		return found{}, false // "AWS::IAM::AccessKey": a type's name
	}
	name := text[s:e]
	if f, ok := loginPair(text, i, name); ok {
		return f, true
	}
	kind, t := secretName(name)
	if t == maybe && strings.EqualFold(name, "key") {
		// "Secret Access Key": names of prose and prompts stand in words.
		if ws, we, _ := nameBefore(text, s); ws >= from && we > ws && we+1 == s {
			if k, wt := secretName(text[ws:we] + "_key"); wt == random {
				s, kind, t = ws, k, wt
			}
		}
	}
	if text[i] == ':' && strings.EqualFold(name, "Private-Lines") {
		return puttyAt(text, i)
	}
	switch {
	case t == scheme:
		return header(text, i+1)
	case t == noSecret && pairValue(name):
		// {"name": "DB_PASSWORD", "value": "…"}
		if n := pairName(text, from, s); n != "" {
			if kind, t = secretName(n); t > maybe && t != scheme {
				return value(text, from, assignment{s, e, i, kind, t, quoted, true})
			}
		}
		return found{}, false
	case t == noSecret:
		// A vendor's name needs a long value with digits behind it.
		v, _, _ := openValue(text, skipOperator(text, i))
		if n := word(text[:min(len(text), v+vendorLook)], v); n-v < minNamed || !hasDigit(text[v:n]) {
			return found{}, false
		}
	}
	return value(text, from, assignment{s, e, i, kind, t, quoted, false})
}

// skipOperator is the end of the assignment whose first sign stands at i.
func skipOperator(text string, i int) int {
	for i++; i < len(text) && (text[i] == '=' || text[i] == '>' || text[i] == ':'); i++ {
	}
	return i
}

// passphrase says that a value with spaces is one: quoted, behind PASSWORD= of
// a shell or a file, with a digit.
func passphrase(text string, a assignment, v read) bool {
	name := text[a.ns:a.ne]
	return v.quoted && a.kind == "password" && a.sep == a.ne && text[a.sep] == '=' && strings.ToUpper(name) == name &&
		len(v.clean) <= 64 && hasDigit(v.clean) && !strings.ContainsAny(v.clean, "$%{<")
}

// assignment is a name [ns,ne) and the separator after it.
type assignment struct {
	ns, ne, sep int
	kind        string
	trust       trust
	nameQuoted  bool
	pair        bool // name and value stand in fields of their own
}

const (
	minValue = 6   // shorter values are flags and stubs
	maxValue = 512 // how far a value is read before it has to look random
	minNamed = 14  // least length of a value that a vendor's name alone makes a secret
)

// value reads an assigned value. Quoted values end at the quote, others at
// white space or punctuation.
func value(text string, from int, a assignment) (found, bool) {
	i := a.sep + 1
	switch text[a.sep] {
	case ':':
		if i < len(text) && text[i] == ':' {
			return found{}, false // a scope
		}
		if i < len(text) && (text[i] == '=' || text[i] == '-' && a.ns > 1 && text[a.ns-1] == '{') {
			i++ // := and ${NAME:-value}
		}
		if strings.HasPrefix(text[i:], "**") {
			i += 2 // **Password:** in Markdown
		}
	case '=':
		if i < len(text) && text[i] == '>' {
			i++ // 'password' => 'x'
		} else if i < len(text) && text[i] == '=' && a.trust == anyWord && !strings.HasPrefix(text[i:], "=~") {
			for i < len(text) && text[i] == '=' {
				i++
			}
			// A comparison with a literal that can be no word.
			if v := readValue(text, i); v.ok && v.quoted && looksRandom(v.clean) && (!codeWord(v.clean) || count(v.clean).digits > 1 && mixed(v.clean)) && !namesSecret(v.clean) {
				return judge(text, from, a, v)
			}
			return found{}, false
		} else if i < len(text) && (text[i] == '=' || text[i] == '~') || a.sep > 0 && strings.IndexByte("=!<>~", text[a.sep-1]) >= 0 {
			return found{}, false // a comparison
		}
	}
	v := readValue(text, i)
	if w, ok := lineValue(text, from, a, i); ok && !v.quoted && !v.joined && w.end > v.end {
		v = w
	}
	if !v.ok {
		return found{}, false
	}
	return judge(text, from, a, v)
}

// lineValue reads the value of a line NAME=value of an .env file as far as the
// line goes: passwords hold brackets and ampersands.
func lineValue(text string, from int, a assignment, i int) (read, bool) {
	if a.trust != anyWord || a.sep != a.ne || text[a.sep] != '=' || i != a.sep+1 || a.ns > from && text[a.ns-1] != '\n' || i >= len(text) || text[i] == '$' || text[i] == '(' {
		return read{}, false
	}
	e := word(text[:min(len(text), i+maxValue)], i)
	if e == i || e < len(text) && text[e] != '\n' && text[e] != '\r' || containsMark(text[i:e]) || !hasDigit(text[i:e]) || strings.Contains(text[i:e], "(") && !strings.ContainsAny(text[i:e], "!@#%^&*") {
		return read{}, false
	}
	return read{open: i, start: i, end: e, clean: text[i:e], ok: true}, true
}

// judge decides on a value by its form, its name and where both stand.
func judge(text string, from int, a assignment, v read) (found, bool) {
	s := v.clean
	if len(s) < minValue || strings.ContainsAny(s, "\t\n") || strings.Contains(s, " ") && !passphrase(text, a, v) || containsMark(text[v.start:v.end]) || isReference(s) {
		return found{}, false
	}
	name := text[a.ns:a.ne]
	if a.trust == noSecret {
		if len(s) < minNamed || !hasDigit(s) || hashName(name) {
			return found{}, false
		}
		return namedAt(text, from, a.sep, v.start, v.end)
	}
	if f, ok := inner(text, v.start, v.end); ok {
		return f, true
	}
	spaced := a.sep+1 < v.open && text[a.sep+1] == ' ' || a.sep > a.ne && !a.nameQuoted
	upper := strings.ToUpper(name) == name
	env := a.pair || upper && !spaced && (text[a.sep] == '=' || a.ns > 1 && text[a.ns-2:a.ns] == "${") || settingLine(text, from, a, v)
	flag := a.ns > 1 && text[a.ns-1] == '-' || strings.HasPrefix(name, "-")
	clause := inClause(text, a, v) // Password=x; of a connection string
	f := found{start: v.start, end: v.end, kind: a.kind}
	if v.joined || len(s) != v.end-v.start {
		f.secret = s
	}
	if isPath(s) || strings.Trim(s, "0123456789.+-_eE") == "" && !(a.trust == anyWord && (upper || flag || a.pair || v.quoted)) {
		return found{}, false
	}
	sure := env || flag || clause || text[a.sep] == ':' && strings.IndexByte(name, '-') > 0 || argument(text, a, v)
	if namesSecret(s) && (plainName(s) || !v.quoted && identifier(s)) && !(flag || a.pair || upper && text[a.sep] == '=') {
		return found{}, false // PrivateKey: testRSA2048PrivateKey
	}
	if t := a.trust; (t == random || t == maybe || namesSecret(s)) && !sure && phrase(s) || strings.HasPrefix(s, "urn:") || strings.HasSuffix(s, "/aws4_request") {
		return found{}, false
	}
	if a.kind == "secret" && protocolSecret(name) && allHex(s) {
		return found{}, false
	}
	if strings.EqualFold(name, "pass") && text[a.sep] == ':' && (!v.quoted || !a.nameQuoted && upper) {
		return found{}, false // the outcome of a test
	}
	if a.trust == inQuery && (!clause || !strings.HasPrefix(text[a.sep:], "=")) {
		return found{}, false
	}
	switch a.trust {
	case maybe, inQuery:
		if !v.quoted && !sure || publicKey(s) || !strong(s) || entropy(s) < 3.7 || isUUID(s) || isHash(s) && a.trust == maybe || hashName(name) {
			if len(s) >= minNamed && hasDigit(s) && !hashName(name) {
				return namedAt(text, from, a.sep, v.start, v.end)
			}
			return found{}, false
		}
	case random:
		switch {
		case looksRandom(s) && (v.quoted || sure || strong(s) || !codeWord(s)):
		case sure && hasDigit(s) && len(s) >= 8 && !strings.ContainsAny(s, "/."):
		case sure && len(s) >= 20 && entropy(s) >= 3.7 && letters(s) && mixed(s):
		case v.quoted && len(s) >= 20 && entropy(s) >= 3.9 && letters(s) && mixed(s):
		case v.quoted && len(s) >= 32 && entropy(s) >= 4.3 && hasDigit(s) && symbols(s) >= 3 && !strings.Contains(s, "://"): // Django's, with brackets
		default:
			return found{}, false
		}
	case anyWord:
		low := strings.ToLower(s)
		switch {
		case plainWords[low] || !sure && plainWords[strings.TrimRight(low, "?!")]:
			return found{}, false
		case looksRandom(s) && (v.quoted || sure || strong(s) || !codeWord(s)):
		case sure && !codePath(s):
		case v.quoted && (hasDigit(s) || symbols(s) > 0) && !namesSecret(s):
		case v.quoted && len(s) >= 8 && !namesSecret(s) && letters(s) && text[a.sep] == ':' == a.nameQuoted:
		case !v.quoted && hasDigit(s) && !codeWord(s) && !codePath(s):
		case !v.quoted && len(s) >= 8 && symbols(s) > 0 && (hasDigit(s) || mixed(s)) && !codePath(s):
		default:
			return found{}, false
		}
	}
	if !v.quoted && !sure && strings.ContainsAny(s, ".") && !hasDigit(s) {
		return found{}, false // settings.password: a path in code
	}
	return f, true
}

// plainName is an identifier of words, with one number at most.
func plainName(v string) bool {
	return identifier(v) && count(v).runs <= 2 && (wordy(v) || count(v).digits <= 4)
}

// publicKey says that s is a public key in DER, by its first bytes.
func publicKey(s string) bool {
	for _, p := range []string{"MFkw", "MIIBI", "MIICI", "MCow", "MIGf", "MHYw", "AAAAB3", "AAAAC3", "AAAAE2"} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// phrase is "server-valid-token-1": words and small numbers between signs.
func phrase(v string) bool {
	parts := strings.FieldsFunc(v, func(c rune) bool { return c == '-' || c == '_' || c == '.' || c == '/' || c == ':' })
	words := 0
	for _, p := range parts {
		switch {
		case letters(p) && (strings.ToLower(p) == p || strings.ToUpper(p) == p || wordy(p+"aaaa") || len(p) < 4):
			words++
		case allDigits(p) && len(p) <= 4, len(p) <= 3:
		default:
			return false
		}
	}
	return len(parts) > 1 && words > 0 && !(len(v) >= 20 && entropy(v) > 4.2)
}

// protocolSecret is a term of TLS, HPKE and key exchanges: its hex stands in
// test vectors, and a session of them is over when it is written down.
func protocolSecret(name string) bool {
	for _, s := range segments(name) {
		switch s {
		case "shared", "exporter", "traffic", "master", "premaster", "early", "handshake", "resumption":
			return true
		}
	}
	return false
}

func allHex(v string) bool {
	for i := 0; i < len(v); i++ {
		if !isHex(v[i]) {
			return false
		}
	}
	return true
}

// settingLine says that a name and its value are all of their line: a line of
// YAML, of an .env or .ini file, not of code.
func settingLine(text string, from int, a assignment, v read) bool {
	if v.quoted && text[a.sep] != ':' && text[a.sep] != '=' {
		return false
	}
	i := a.ns
	if a.nameQuoted {
		return false
	}
	for i > from && a.ns-i < maxName && strings.IndexByte(" \t-+#>$;", text[i-1]) >= 0 {
		i--
	}
	for _, w := range []string{"export ", "set ", "env ", "ENV ", "ARG ", "SET ", "-e ", "setenv ", "declare -x ", "export\t", "env:", "$env:", "Env:", "with ", "global:", "environment:"} {
		if i-from >= len(w) && text[i-len(w):i] == w || a.ns-from >= len(w) && text[a.ns-len(w):a.ns] == w {
			return true
		}
	}
	if i > from && text[i-1] != '\n' && !(i > 1 && text[i-1] == 'n' && text[i-2] == '\\') {
		return false
	}
	e := v.end
	if v.quoted {
		for e < len(text) && (text[e] == '\\' || text[e] == '"' || text[e] == '\'' || text[e] == '`') {
			e++
		}
	}
	for e < len(text) && (text[e] == ' ' || text[e] == '\t' || text[e] == '\r') {
		e++
	}
	end := e >= len(text) || text[e] == '\n' || text[e] == '#' || strings.HasPrefix(text[e:], `\n`) || strings.HasPrefix(text[e:], `\r`)
	// `password: SecretStr` is a field of a class.
	return end && (hasDigit(v.clean) || symbols(v.clean) > 0 || text[a.sep] == '=' && a.sep == a.ne && a.sep+1 == v.open || text[a.sep] == ':' && letters(v.clean) && !mixed(v.clean))
}

// inClause says that an assignment stands in a list of them: a connection
// string, a query string, a form.
func inClause(text string, a assignment, v read) bool {
	if text[a.sep] != '=' || a.sep != a.ne || v.quoted {
		return false
	}
	before := a.ns > 0 && strings.IndexByte(";?&", text[a.ns-1]) >= 0 ||
		a.ns > 1 && text[a.ns-1] == ' ' && text[a.ns-2] == ';' ||
		strings.HasSuffix(text[max(0, a.ns-6):a.ns], `\u0026`)
	after := v.end < len(text) && (text[v.end] == ';' || text[v.end] == '&')
	return before || after && a.sep+1 == v.open && !strings.HasSuffix(text[a.ns:a.ne], ".")
}

// argument says that name=value is a word of a command line, not of a call in
// code, where a comma or a bracket follows.
func argument(text string, a assignment, v read) bool {
	if text[a.sep] != '=' || a.sep != a.ne || a.sep+1 != v.open || v.quoted {
		return false
	}
	return (a.ns == 0 || strings.IndexByte(" \t\n\"'=", text[a.ns-1]) >= 0) &&
		(v.end >= len(text) || strings.IndexByte(" \t\r\n\"'\\", text[v.end]) >= 0)
}

// hashName says that a name announces a digest or an id.
func hashName(name string) bool {
	for _, s := range segments(name) {
		switch s {
		case "sha", "md", "hash", "digest", "checksum", "integrity", "commit", "rev", "revision", "ref", "etag", "sum", "crc", "fingerprint", "uuid", "guid", "oid", "public", "pub", "cksum", "hex":
			return true
		}
	}
	return false
}

// looksRandom says that a value is no word of a language or a program: letters
// and digits together, in a length that a name seldom has.
func looksRandom(v string) bool {
	if len(v) < 8 || strings.ContainsAny(v, "()[]{}<>\"'") {
		return false
	}
	c := count(v)
	if isPath(v) || c.digits == 0 || c.lows+c.ups == 0 {
		return false
	}
	return c.digits >= 2 && c.turns >= 2 || c.ups > 0 && c.lows > 0 || c.marks > 0 && !strings.ContainsAny(v, "/.")
}

// strong says that a value can not be an identifier: long, with digits spread
// among its letters.
func strong(v string) bool {
	c := count(v)
	return len(v) >= 16 && entropy(v) >= 3.2 && c.digits >= 2 && (c.runs >= 3 || c.marks > 0 && c.runs >= 2 || isUUID(v)) && !isPath(v) && !namesSecret(v)
}

type counts struct{ digits, lows, ups, marks, turns, runs int }

// count counts the bytes of v by kind, the changes of kind, and the runs of
// digits.
func count(v string) (c counts) {
	last := byte(0)
	for i := 0; i < len(v); i++ {
		kind := byte('m')
		switch b := v[i]; {
		case isNum(b):
			c.digits++
			kind = 'd'
			if last != 'd' {
				c.runs++
			}
		case isLow(b):
			c.lows++
			kind = 'l'
		case isUp(b):
			c.ups++
			kind = 'u'
		default:
			c.marks++
		}
		if kind != last && i > 0 {
			c.turns++
		}
		last = kind
	}
	return c
}

// codeWord is an identifier as code has them, with or without a call's dots.
func codeWord(v string) bool {
	for i := 0; i < len(v); i++ {
		if !isName(v[i]) {
			return false
		}
	}
	c := count(v)
	if len(v) >= 12 && c.digits > 0 && c.ups > 0 && c.lows > 0 && c.marks == 0 && !wordy(v) {
		return false
	}
	return !isNum(v[0]) && c.digits <= 3 && c.runs <= 2 && c.turns*2 <= len(v)
}

// codePath is obj.field or pkg::name.
func codePath(v string) bool {
	if strings.Contains(v, "::") || strings.Contains(v, "->") {
		return true
	}
	dot := strings.IndexByte(v, '.')
	if dot <= 0 || dot == len(v)-1 {
		return false
	}
	for _, s := range strings.Split(v, ".") {
		if !identifier(s) {
			return false
		}
	}
	return !hasDigit(v)
}

// symbols counts what passwords have and words have not.
func symbols(v string) (n int) {
	for i := 0; i < len(v); i++ {
		if strings.IndexByte("!@#$%^&*+=?~", v[i]) >= 0 {
			n++
		}
	}
	return n
}

func mixed(v string) bool {
	c := count(v)
	return c.ups > 0 && c.lows > 0
}

// namesSecret says that a value is itself a name of a secret: a field mapping
// or a keyword argument.
func namesSecret(v string) bool {
	if len(v) >= 20 && entropy(v) >= 4.1 {
		return false // random letters hold short words too
	}
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

func containsMark(v string) bool { return strings.Contains(v, markOpen) }
