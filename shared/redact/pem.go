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
					if bytes64(text[body:end]) < minPEMLine {
						return found{}, false // '-----BEGIN …-----' and '-----END …-----' in words
					}
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
	if end, ok := framed(text, body); ok {
		return pemFound(text, i, body, end, end), true
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

// framed reads the lines of a key that each stand behind something: numbers
// as editors and agents print them, a file's name as grep prints it, a quote and
// an operator. Each line but the last must hold a stretch of a key; the END line
// ends it, or the first line that holds none.
func framed(text string, body int) (end int, ok bool) {
	lines, skipped := 0, 0
	for at := body; lines < maxPEMLines; {
		nl := strings.IndexByte(text[at:min(len(text), at+maxFrame)], '\n')
		if nl < 0 {
			nl = min(len(text), at+maxFrame) - at
		}
		line := text[at : at+nl]
		if k := strings.Index(line, "-----END "); k >= 0 {
			if e := strings.Index(line[k+9:], pemDash); e >= 0 && lines > 0 {
				return at + k + 9 + e + len(pemDash), true
			}
			break
		}
		s, e := longest64(line)
		switch {
		case e-s >= minFramed && entropy(line[s:e]) >= 4.3 && hasDigit(line[s:e]) && mixed(line[s:e]): // no name of code
			lines++
			end = at + e
		case at == body || strings.Contains(line, "Proc-Type") || strings.Contains(line, "DEK-Info") || strings.Contains(line, "Version:") || strings.Contains(line, "Comment:"):
		case lines == 0 && e-s < minFramed && skipped < 2: // the blank line behind the headers
			skipped++
		case lines > 0 && e > s && e-s <= maxPEMLine && endsNext(text, at+nl):
			end = at + e
		default:
			return end, lines > 1
		}
		if at += nl + 1; at >= len(text) {
			break
		}
	}
	return end, lines > 1
}

// Bounds of framed: a key of 16,384 bits has 200 lines, and a frame of a long
// path 200 bytes beside the line's 76.
const (
	maxPEMLines = 256
	maxFrame    = 320
	minFramed   = 40
	maxPEMLine  = 76
)

// endsNext says that the END line, or the checksum of a PGP block, follows.
func endsNext(text string, i int) bool {
	next := text[i:min(len(text), i+2*maxFrame)]
	return strings.Contains(next, "-----END ")
}

// longest64 is the longest stretch of base64 in a line.
func longest64(line string) (s, e int) {
	for i := 0; i < len(line); {
		k := run(line, i, standard64)
		for k > i && k < len(line) && line[k] == '=' {
			k++
		}
		if k-i > e-s {
			s, e = i, k
		}
		i = k + 1
	}
	return s, e
}

// pem64 begins a PEM file in base64, as Kubernetes and CI settings hold it.
const pem64 = "LS0tLS1CRUdJTi"

// pem64At reads a private key that stands in base64 as a whole, over line ends
// where it is wrapped.
func pem64At(text string, i int) (found, bool) {
	e := run(text, i, standard64)
	head, err := decode64(text[i : i+(min(e-i, 64))&^3])
	if err != nil || !strings.Contains(head, pemKey) {
		return found{}, false
	}
	for {
		next, ok := lineEnd(text, e)
		if !ok {
			break
		}
		k := run(text, next, standard64)
		for k < len(text) && text[k] == '=' {
			k++
		}
		if k-next < minPEMLine || k < len(text) && text[k] != '\n' && text[k] != '\r' && text[k] != '\\' {
			break
		}
		e = k
	}
	for e < len(text) && text[e] == '=' {
		e++
	}
	return pemFound(text, i, i, e, e), true
}

// minPEMLine tells a line of a key from the next word of prose.
const minPEMLine = 24

func trimEnd(text string, from, to int) int {
	return from + len(strings.TrimRight(text[from:to], " \t\r\n"))
}

func bytes64(s string) (n int) {
	for i := 0; i < len(s); i++ {
		n += btoi(isBase64(s[i]))
	}
	return n
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
