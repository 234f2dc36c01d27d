package redact

import "strings"

const (
	pemOpen = "-----BEGIN "
	pemKey  = "PRIVATE KEY"
	pemDash = "-----"
)

// pemAt reads a private key block: to its END line, or, when that is missing,
// as far as base64 goes. Line ends may be written as \n.
func pemAt(text string, i int) (found, bool) {
	head := text[i+len(pemOpen):]
	k := strings.Index(head, pemDash)
	if k < 0 || k > 64 || !strings.Contains(head[:k], pemKey) || strings.ContainsAny(head[:k], "\n[") {
		return found{}, false
	}
	body := i + len(pemOpen) + k + len(pemDash)
	end := body
	for end < len(text) {
		switch c := text[end]; {
		case isBase64(c), c == '\n', c == '\r', c == ' ', c == '\t', c == '\\', c == '"', c == '\'', c == ',', c == ':', c == '-', c == '>', c == '|', c == '#', c == '*':
			// Headers of old keys ("Proc-Type: 4,ENCRYPTED"), quoting and
			// comment signs stand between the lines.
			if c == '-' && strings.HasPrefix(text[end:], "-----END ") {
				if e := strings.Index(text[end+9:], pemDash); e >= 0 && e <= 64 && !strings.Contains(text[end+9:end+9+e], "\n") {
					return pemFound(text, i, body, end, end+9+e+len(pemDash)), true
				}
			}
			if c == '-' && strings.HasPrefix(text[end:], pemOpen) {
				if trimEnd(text, body, end)-body < minPEMLine {
					return found{}, false
				}
				return pemFound(text, i, body, trimEnd(text, body, end), trimEnd(text, body, end)), true
			}
			end++
			continue
		}
		break
	}
	// No END: keep the lines that are base64 and nothing else.
	end = body
	for {
		j := end
		for j < len(text) && (text[j] == '\n' || text[j] == '\r' || text[j] == ' ' || text[j] == '\t') {
			j++
		}
		for strings.HasPrefix(text[j:], `\n`) || strings.HasPrefix(text[j:], `\r`) {
			j += 2
		}
		k := j
		for k < len(text) && isBase64(text[k]) {
			k++
		}
		if k-j < minPEMLine {
			break
		}
		end = k
	}
	if end == body {
		return found{}, false // a mention of the header, no key
	}
	return pemFound(text, i, body, end, end), true
}

// minPEMLine tells a line of a key from the next word of prose.
const minPEMLine = 24

func trimEnd(text string, from, to int) int {
	return from + len(strings.TrimRight(text[from:to], " \t\r\n"))
}

func isBase64(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '+' || c == '/' || c == '='
}

// pemFound makes the fingerprint of the key's base64 alone, so that the same
// key has the same mark with real and with escaped line ends, indented or in a
// diff.
func pemFound(text string, start, body, bodyEnd, end int) found {
	b := make([]byte, 0, bodyEnd-body)
	fresh := true // a line begins
	for i := body; i < bodyEnd; i++ {
		c := text[i]
		switch {
		case c == '\n':
			fresh = true
			continue
		case c == '\\' && i+1 < bodyEnd && (text[i+1] == 'n' || text[i+1] == 'r'):
			for i+1 < bodyEnd && text[i] == '\\' {
				i++
			}
			fresh = true
			continue
		case fresh && (c == '+' || c == '-' || c == '>' || c == '#' || c == '|' || c == ' ' || c == '\t'):
			// a diff's sign, or a base64 line that begins with +: both are
			// left out alike
			continue
		case isBase64(c):
			b = append(b, c)
		}
		fresh = false
	}
	return found{start: start, end: end, kind: "private_key", secret: "pem:" + string(b)}
}

// puttyAt reads the private lines of PuTTY's key file behind their count.
func puttyAt(text string, i int) (found, bool) {
	k := i + 1
	for k < len(text) && (text[k] == ' ' || isNum(text[k])) {
		k++
	}
	s, end := 0, k
	for {
		next, ok := lineEnd(text, end)
		if !ok {
			break
		}
		e := run(text, next, standard64)
		for e < len(text) && text[e] == '=' {
			e++
		}
		if e-next < minPEMLine && s == 0 || e == next || e < len(text) && text[e] != '\n' && text[e] != '\r' && text[e] != '\\' {
			break
		}
		if s == 0 {
			s = next
		}
		end = e
	}
	if s == 0 {
		return found{}, false
	}
	return pemFound(text, s, s, end, end), true
}
