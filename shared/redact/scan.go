package redact

import "strings"

// found is one secret in the text.
type found struct {
	start, end int
	kind       string
	// secret is what the fingerprint is made of where that is not the bytes of
	// the text: without escapes, joints and a PEM block's line ends.
	secret string
}

func (f found) value(text string) string {
	if f.secret != "" {
		return f.secret
	}
	return text[f.start:f.end]
}

// Byte classes of the one pass over the text. Nearly every byte is wordByte or
// other and costs one table look-up; a rule is tried only where a word begins
// with two letters that begin a known prefix, at a separator, or at a sign.
const (
	other = iota
	wordByte
	sepByte   // = and : may assign
	dashByte  // - may open a PEM block or a flag
	brackByte // [ may open a mark
	slashByte // \ may stand before an escaped letter
	commaByte // , between a name and a value
	callByte  // ( behind the name of a function
	tagByte   // > at the end of a tag
	atByte    // @ between a password and a host
	tildeByte // ~ in a client secret of Azure
	dotByte   // . in a token of Discord
	escByte   // ESC opens a terminal's colour
	orByte    // | or ? twice, before a value that stands in; | alone, between cells
	pctByte   // % may open an escape of a URL
)

var class = func() (t [256]uint8) {
	for c := range 256 {
		switch {
		// A byte past ASCII is none: tokens stand in “quotes”, between spaces that
		// do not break, and right behind the words of scripts without spaces.
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
			t[c] = wordByte
		}
	}
	t['='], t[':'] = sepByte, sepByte
	t['-'], t['['], t['\\'] = dashByte, brackByte, slashByte
	t[','], t['('], t['>'], t['@'], t['~'], t['.'], t[0x1b], t['%'] = commaByte, callByte, tagByte, atByte, tildeByte, dotByte, escByte, pctByte
	t['|'], t['?'] = orByte, orByte
	return t
}()

// scan gives the secrets of text in order.
func scan(text string) []found {
	var out []found
	from := 0 // behind the last secret or mark: no rule looks left of it
	add := func(f found) int {
		if f.start < from || f.end <= f.start || overMark(text[f.start:f.end]) {
			return 0
		}
		out = append(out, f)
		from = f.end
		if f.kind == "aws_key_id" {
			if g, ok := awsPair(text, f); ok && !overMark(text[f.end:g.end]) {
				out = append(out, g)
				from = g.end
			}
		}
		return from
	}
	for i := 0; i < len(text); {
		var f found
		var ok bool
		switch class[text[i]] {
		case wordByte:
			if i+1 < len(text) && starts[text[i]][text[i+1]>>6]>>(text[i+1]&63)&1 != 0 {
				if f, ok = wordAt(text, from, i); ok {
					if e := add(f); e > 0 {
						i = e
						continue
					}
				}
			}
			for i++; i < len(text) && class[text[i]] == wordByte; i++ {
			}
			continue
		case other:
			for i++; i < len(text) && class[text[i]] == other; i++ {
			}
			continue
		case sepByte:
			if text[i] == ':' {
				if kubeName(text, from, i) {
					added := false
					for _, g := range kubeData(text, i) {
						if e := add(g); e > 0 {
							i, added = e, true
						}
					}
					if added {
						continue
					}
				}
			}
			f, ok = assigned(text, from, i)
		case dashByte:
			if strings.HasPrefix(text[i:], pemOpen) {
				if f, ok = pemAt(text, i); !ok {
					i += len(pemOpen)
					continue
				}
			} else {
				f, ok = flagAt(text, from, i)
			}
		case brackByte:
			if n := markLen(text[i:]); n > 0 {
				i += n
				from = i
				continue
			}
		case slashByte:
			i += escapeLen(text[i:])
			continue
		case commaByte:
			if i > 0 && (text[i-1] == '"' || text[i-1] == '\'' || text[i-1] == '`') {
				f, ok = commaPair(text, from, i)
			} else if i > 0 && isUp(text[i-1]) {
				f, ok = csvAt(text, from, i)
			}
		case callByte:
			if i+1 < len(text) && class[text[i+1]] != wordByte && text[i+1] != ')' {
				f, ok = callAt(text, from, i)
			}
		case tagByte:
			if i > 0 && isName(text[i-1]) {
				f, ok = tagAt(text, from, i)
			}
		case orByte:
			if f, ok = orAt(text, from, i); !ok && text[i] == '|' {
				f, ok = cellAt(text, from, i)
			}
		case atByte:
			f, ok = atSign(text, from, i)
		case tildeByte:
			f, ok = azureAt(text, from, i)
		case dotByte:
			if i >= 24 && i+7 < len(text) && text[i+7] == '.' {
				f, ok = discordAt(text, from, i)
			}
		case escByte:
			i += colourLen(text[i:])
			continue
		case pctByte:
			if i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]) {
				i += 3
				continue
			}
		}
		if ok {
			if e := add(f); e > 0 {
				i = e
				continue
			}
		}
		i++
	}
	return out
}

// wordAt tries the rules of a word that begins at i.
func wordAt(text string, from, i int) (found, bool) {
	q := pairAt(text[i:])
	if q.tokens {
		if f, ok := q.tokenAt(text, i); ok {
			return f, true
		}
	}
	if q.webhook {
		return webhookAt(text, i)
	}
	if q.mid {
		if text[i] == 's' {
			return vaultAt(text, from, i)
		}
		return terraformAt(text, from, i)
	}
	for _, w := range q.words {
		if len(text)-i > len(w) && text[i+2] == w[2] && strings.HasPrefix(text[i:], w) {
			return spacedAt(text, from, i)
		}
	}
	return found{}, false
}

func kubeName(text string, from, i int) bool {
	e := i
	for e > from && i-e < 3 && (text[e-1] == '"' || text[e-1] == '\\') {
		e--
	}
	switch {
	case e-4 >= from && text[e-4:e] == "data" && (e-4 == from || !isName(text[e-5])):
	case e-10 >= from && text[e-10:e] == "stringData":
	default:
		return false
	}
	return kubeSecret(text, e)
}

// overMark says that s holds a mark or the begin of one.
func overMark(s string) bool { return strings.Contains(s, markOpen) }

// escapeLen is the length of an escape: `\n` stands before the next word's
// first letter, `\u0026` and `\x1b[31m` too.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 1
	}
	n := 1
	switch c := s[1]; c {
	case 'n', 'r', 't', 'b', 'f', 'v', '0':
		n = 2
	case 'u':
		n = hexRun(s, 2, 4)
	case 'x':
		n = hexRun(s, 2, 2)
	case 'e':
		if len(s) > 2 && s[2] == '[' {
			n = 2
		}
	}
	if c := s[1]; n > 1 && n < len(s) && s[n] == '[' && (c == 'u' || c == 'x' || c == 'e' || c == '0') {
		return n + colourTail(s[n:])
	}
	if strings.HasPrefix(s, `\033[`) {
		return 4 + colourTail(s[4:])
	}
	return n
}

func hexRun(s string, from, n int) int {
	for k := from; k < from+n; k++ {
		if k >= len(s) || !isHex(s[k]) {
			return 1
		}
	}
	return from + n
}

// colourLen is the length of a terminal's colour, ESC [ 3 1 m.
func colourLen(s string) int { return 1 + colourTail(s[1:]) }

func colourTail(s string) int {
	if s == "" || s[0] != '[' {
		return 0
	}
	k := 1
	for k < len(s) && k < 16 && (isNum(s[k]) || s[k] == ';') {
		k++
	}
	if k < len(s) && (s[k] == 'm' || s[k] == 'K') {
		return k + 1
	}
	return 0
}
