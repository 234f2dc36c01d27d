package memory

import (
	"fmt"
	"unicode/utf8"
)

// Codec says how the source bytes of a span become text.
type Codec string

const (
	CodecRaw        Codec = "raw"         // the bytes are the text
	CodecJSONString Codec = "json-string" // the bytes stand inside a JSON string, escapes included
)

// Style is the rule by which a writer escapes a JSON string. Nearly every
// writer follows one of two rules, so that the source bytes of any part of a
// text can be rebuilt from the text, the style and a short list of exceptions.
type Style string

const (
	StyleRaw   Style = "raw"   // bytes are the text
	StyleJS    Style = "js"    // JSON.stringify: \" \\ \b \f \n \r \t, other C0 as \u00xx (lower-case hex), the rest literal
	StyleASCII Style = "ascii" // json.dumps: as js, and everything past 0x7E as \uxxxx (lower-case hex, surrogate pairs)
)

// Exception is a place where the source bytes differ from what Style gives:
// Len bytes of text (at least 1) at offset At of the piece's text stand as Raw.
type Exception struct {
	At  int    `json:"at"`
	Len int    `json:"len"`
	Raw []byte `json:"raw"` // base64 in JSON, as the bytes may not be UTF-8
}

// Encoding rebuilds source bytes from decoded text. With it a citation into
// any part of a chunk can be computed, hash included, from the log alone; the
// uploaded object is not read again.
type Encoding struct {
	Codec      Codec       `json:"codec"`
	Style      Style       `json:"style"`
	Exceptions []Exception `json:"exceptions,omitempty"` // ascending by At, not overlapping
}

// RawEncoding is that of text whose bytes are themselves.
var RawEncoding = Encoding{Codec: CodecRaw, Style: StyleRaw}

// Append appends the source bytes of text[from:to] to dst. An exception that
// straddles from or to gives an error: such a cut has no source bytes.
func (e *Encoding) Append(dst []byte, text string, from, to int) ([]byte, error) {
	if from < 0 || to < from || to > len(text) {
		return nil, fmt.Errorf("encode [%d,%d) of %d bytes", from, to, len(text))
	}
	pos := from
	for i := range e.Exceptions {
		x := &e.Exceptions[i]
		if x.At+x.Len <= from {
			continue
		}
		if x.At >= to {
			break
		}
		if x.At < from || x.At+x.Len > to {
			return nil, fmt.Errorf("encode [%d,%d): cuts the escape at %d", from, to, x.At)
		}
		dst = appendStyle(dst, e.Style, text[pos:x.At])
		dst = append(dst, x.Raw...)
		pos = x.At + x.Len
	}
	return appendStyle(dst, e.Style, text[pos:to]), nil
}

const hexDigits = "0123456789abcdef"

func appendStyle(dst []byte, s Style, text string) []byte {
	if s == StyleRaw {
		return append(dst, text...)
	}
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			if s == StyleJS {
				i++
				continue
			}
			r, n := utf8.DecodeRuneInString(text[i:])
			dst = append(dst, text[start:i]...)
			dst = AppendASCIIRune(dst, r)
			i += n
			start = i
			continue
		}
		if c >= 0x20 && c != '"' && c != '\\' && (c != 0x7f || s == StyleJS) {
			i++
			continue
		}
		dst = append(dst, text[start:i]...)
		dst = AppendControl(dst, c)
		i++
		start = i
	}
	return append(dst, text[start:]...)
}

// AppendControl appends the escape that both styles use for an ASCII byte that
// must be escaped.
func AppendControl(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// AppendASCIIRune appends the \uxxxx form of r, as a surrogate pair past the
// basic plane.
func AppendASCIIRune(dst []byte, r rune) []byte {
	if r > 0xffff {
		r -= 0x10000
		dst = appendU(dst, 0xd800+(r>>10))
		return appendU(dst, 0xdc00+(r&0x3ff))
	}
	return appendU(dst, r)
}

func appendU(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}
