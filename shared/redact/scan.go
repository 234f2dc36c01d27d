package redact

import "strings"

// found is one secret in the text.
type found struct {
	start, end int
	kind       string
}

// Byte classes of the one pass over the text. Nearly every byte is wordByte or
// other and costs one table look-up; a rule is tried only where a word begins
// with two letters that begin a known prefix, at a separator, or at a bracket.
const (
	other = iota
	wordByte
	sepByte   // = and : may assign
	dashByte  // - may open a PEM block
	brackByte // [ may open a mark
	slashByte // \ may stand before an escaped letter
)

var class = func() (t [256]uint8) {
	for c := range 256 {
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c >= 0x80:
			t[c] = wordByte
		}
	}
	t['='], t[':'] = sepByte, sepByte
	t['-'], t['['], t['\\'] = dashByte, brackByte, slashByte
	return t
}()

// scan gives the secrets of text in order.
func scan(text string) []found {
	var out []found
	add := func(f found) int {
		out = append(out, f)
		return f.end
	}
	for i := 0; i < len(text); {
		switch class[text[i]] {
		case wordByte:
			if i+1 < len(text) && starts[text[i]][text[i+1]>>6]>>(text[i+1]&63)&1 != 0 {
				if f, ok := tokenAt(text, i); ok {
					i = add(f)
					continue
				}
			}
			for i++; i < len(text) && class[text[i]] == wordByte; i++ {
			}
		case sepByte:
			if f, ok := assigned(text, i); ok {
				i = add(f)
				continue
			}
			i++
		case dashByte:
			if strings.HasPrefix(text[i:], pemOpen) {
				if f, ok := pemAt(text, i); ok {
					i = add(f)
					continue
				}
				i += len(pemOpen)
				continue
			}
			i++
		case brackByte:
			i += max(1, markLen(text[i:]))
		case slashByte:
			// In quoted code `\n` stands before the next word's first letter.
			if i++; i < len(text) && strings.IndexByte("nrtbf", text[i]) >= 0 {
				i++
			}
		default:
			i++
		}
	}
	return out
}

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
					return found{i, end + 9 + e + len(pemDash), "private_key"}, true
				}
			}
			if c == '-' && strings.HasPrefix(text[end:], pemOpen) {
				if trimEnd(text, body, end)-body < minPEMLine {
					return found{}, false
				}
				return found{i, trimEnd(text, body, end), "private_key"}, true
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
	return found{i, end, "private_key"}, true
}

// minPEMLine tells a line of a key from the next word of prose.
const minPEMLine = 24

func trimEnd(text string, from, to int) int {
	return from + len(strings.TrimRight(text[from:to], " \t\r\n"))
}

func isBase64(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '+' || c == '/' || c == '='
}
