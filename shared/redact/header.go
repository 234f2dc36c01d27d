package redact

import "strings"

// header reads the value of an Authorization header: an optional scheme and
// the credential.
func header(text string, i int) (found, bool) {
	if i < len(text) && text[i] == '>' {
		i++ // 'Authorization' => 'Bearer …'
	}
	if i+2 < len(text) && text[i] == ' ' && (text[i+2] == '"' || text[i+2] == '\'') && strings.IndexByte("bBrRuUfF", text[i+1]) >= 0 {
		i += 2 // f'Bearer …'
	}
	s, _, _ := openValue(text, i)
	if strings.HasPrefix(text[s:], "AWS4-") {
		return found{}, false // a signature of one request, behind its method's name
	}
	end := run(text[:min(len(text), s+12)], s, dotted)
	bare := true
	for _, scheme := range []string{"bearer", "basic", "token", "digest", "apikey", "bot", "negotiate", "splunk", "key", "genieky", "geniekey", "oauth", "ntlm", "jwt", "sso-key", "signature"} {
		if strings.EqualFold(text[s:end], scheme) && end < len(text) && (text[end] == ' ' || text[end] == '=') {
			s = end + 1
			bare = false
			for s < len(text) && text[s] == ' ' {
				s++
			}
			if next, ok := continuation(text, s); ok {
				s = next
			}
			break
		}
	}
	end = s
	for end < len(text) && text[end] > ' ' && text[end] < 0x80 && strings.IndexByte(bareEnd, text[end]) < 0 {
		end++
	}
	end = trimToken(text, s, end)
	f := extend(text, found{start: s, end: end, kind: "authorization"}, dotted)
	v := f.value(text)
	if len(v) < minValue || !hasDigit(v) && (bare || len(v) < 12) || isReference(v) || s > 0 && text[s-1] == '$' || strings.HasSuffix(v, "...") ||
		f.end < len(text) && (text[f.end] == '(' || text[f.end] == '[' || text[f.end] == '{') || bare && codeWord(v) {
		return found{}, false
	}
	if g, ok := inner(text, s, f.end); ok {
		return g, true
	}
	return f, true
}

// minBearer is the least length of a bearer token outside a header: shorter
// ones are words about it.
const minBearer = 16

// bearerAt reads "Bearer <token>" and "Basic <base64>" in running text.
func bearerAt(text string, i int) (found, bool) {
	n := len("bearer ")
	if len(text)-i > n && strings.EqualFold(text[i:i+6], "basic ") {
		n = len("basic ")
	} else if len(text)-i < n+minBearer || !strings.EqualFold(text[i:i+n], "bearer ") {
		return found{}, false
	}
	s := i + n
	end := trimToken(text, s, run(text, s, dotted))
	if n == len("basic ") && !basicPair(text[s:end]) {
		return found{}, false
	}
	f := extend(text, found{start: s, end: end, kind: "bearer_token"}, dotted)
	if n == len("basic ") {
		f.kind = "authorization"
	}
	v := f.value(text)
	if len(v) < minBearer-8*btoi(n < 7) || n == 7 && !hasDigit(v) || isReference(v) {
		return found{}, false
	}
	if g, ok := inner(text, s, f.end); ok {
		return g, true
	}
	return f, true
}

// basicPair says that v is base64 of user:password.
func basicPair(v string) bool {
	if len(v) < 8 || len(v) > maxValue {
		return false
	}
	b, err := decode64(v)
	if err != nil {
		return false
	}
	colon := strings.IndexByte(b, ':')
	if colon < 0 || colon == len(b)-1 {
		return false
	}
	for i := 0; i < len(b); i++ {
		if b[i] < ' ' || b[i] > 0x7e {
			return false
		}
	}
	return true
}
