package static

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/mneme-ai/mneme/shared/fault"
)

const (
	// maxWord is the longest word, in code points, that is cut into pieces; a
	// longer one is unknown as a whole (BERT's max_input_chars_per_word).
	maxWord = 100
	// slotBits sizes the vocabulary's hash table: 65,536 slots, 47 % full.
	slotBits = 16
	// rowBits of a slot hold row + 1; the rest is a tag of the hash, so that
	// nearly every miss is decided without reading the vocabulary.
	rowBits = 15
)

// vocabulary finds the row of a piece of a word. It reads vocab.txt in place.
type vocabulary struct {
	text    string
	at      []uint32 // at[i] is the offset of line i; one more at the end
	slots   [1 << slotBits]uint32
	longest int // bytes of the longest piece, without "##"
}

func newVocabulary(text string) (*vocabulary, error) {
	v := &vocabulary{text: text, at: make([]uint32, 0, rows+1)}
	for pos := 0; pos < len(text); {
		end := strings.IndexByte(text[pos:], '\n')
		if end < 0 {
			end = len(text) - pos
		}
		v.at = append(v.at, uint32(pos))
		pos += end + 1
	}
	if len(v.at) != rows {
		return nil, fault.New(fault.Corrupt, "vocab.txt has %d lines, want %d", len(v.at), rows)
	}
	v.at = append(v.at, uint32(len(text)+1-b2i(text[len(text)-1] == '\n')))
	for row := range rows {
		if special(row) {
			continue
		}
		piece, inner := v.piece(row)
		h := hashStart(inner)
		for i := range len(piece) {
			h = hashByte(h, piece[i])
		}
		s := slotOf(h)
		for v.slots[s] != 0 {
			s = (s + 1) & (1<<slotBits - 1)
		}
		v.slots[s] = tagOf(h)<<rowBits | uint32(row+1)
		v.longest = max(v.longest, len(piece))
	}
	return v, nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// special reports the rows of [PAD], [UNK], [CLS], [SEP] and [MASK], which text
// never is: "[SEP]" in a text is three words.
func special(row int) bool { return row == 0 || row >= 100 && row <= 103 }

// piece is the token of a row, and whether it continues a word.
func (v *vocabulary) piece(row int) (string, bool) {
	line := v.text[v.at[row] : v.at[row+1]-1]
	if len(line) > 2 && line[:2] == "##" {
		return line[2:], true
	}
	return line, false
}

// FNV-1a, with another start for pieces inside a word.
func hashStart(inner bool) uint32 {
	if inner {
		return 0x811c9dc5 ^ 0x5bd1e995
	}
	return 0x811c9dc5
}
func hashByte(h uint32, b byte) uint32 { return (h ^ uint32(b)) * 0x01000193 }
func mix(h uint32) uint32              { return (h ^ h>>15) * 0x2c1b3c6d }
func slotOf(h uint32) uint32           { return mix(h) >> (32 - slotBits) }
func tagOf(h uint32) uint32            { return mix(h) & (1<<(32-rowBits) - 1) }

// longestPiece is the longest prefix of word that is a piece; -1 when none is.
func (v *vocabulary) longestPiece(word []byte, inner bool) (row, size int) {
	row = -1
	h := hashStart(inner)
	for i := range min(len(word), v.longest) {
		h = hashByte(h, word[i])
		tag := tagOf(h)
		for s := slotOf(h); v.slots[s] != 0; s = (s + 1) & (1<<slotBits - 1) {
			if v.slots[s]>>rowBits != tag {
				continue
			}
			r := int(v.slots[s]&(1<<rowBits-1)) - 1
			if p, in := v.piece(r); in == inner && p == string(word[:i+1]) {
				row, size = r, i+1
				break
			}
		}
	}
	return row, size
}

// scratch is the working space of one call.
type scratch struct {
	word []byte
	ids  []uint16
}

// maxKept bounds the scratch that a pool keeps, in ids.
const maxKept = 1 << 16

// tokens is the rows of text, valid until the next call with s.
func (v *vocabulary) tokens(s *scratch, text string) []uint16 {
	if cap(s.ids) > maxKept {
		s.ids = nil
	}
	w := words{v: v, ids: s.ids[:0], word: s.word[:0]}
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			w.ascii(b)
			i++
			continue
		}
		// A run past ASCII is normalised as a whole, with the ASCII letter
		// before it already out: marks are dropped, so nothing composes.
		j := i
		for j < len(text) && text[j] >= utf8.RuneSelf {
			j++
		}
		w.wide(text[i:j])
		i = j
	}
	w.end()
	s.ids, s.word = w.ids, w.word
	return w.ids
}

// words collects the characters of one word and cuts it at its end.
type words struct {
	v    *vocabulary
	word []byte
	n    int // code points in word
	ids  []uint16
}

func (w *words) ascii(b byte) {
	switch {
	case b >= 'a' && b <= 'z' || b >= '0' && b <= '9':
		w.add(b)
	case b >= 'A' && b <= 'Z':
		w.add(b | 0x20)
	case b == ' ' || b == '\t' || b == '\n' || b == '\r':
		w.end()
	case b < ' ' || b == 0x7f: // a control character vanishes and joins its neighbours
	default: // 33-47, 58-64, 91-96, 123-126: a word of its own
		w.end()
		w.add(b)
		w.end()
	}
}

func (w *words) add(b byte) {
	w.word = append(w.word, b)
	w.n++
}

// wide handles a run of characters past ASCII: clean, decompose, drop marks,
// lower-case, in this order.
func (w *words) wide(run string) {
	var kept strings.Builder
	for _, r := range run { // bytes that are not UTF-8 come as U+FFFD and go
		switch {
		case unicode.In(r, unicode.Zs, unicode.Zl, unicode.Zp):
			kept.WriteByte(' ')
		case r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs):
		case ideograph(r):
			kept.WriteByte(' ')
			kept.WriteRune(r)
			kept.WriteByte(' ')
		default:
			kept.WriteRune(r)
		}
	}
	for _, r := range norm.NFD.String(kept.String()) {
		switch {
		case r < utf8.RuneSelf:
			w.ascii(byte(r))
		case unicode.Is(unicode.Mn, r):
		case unicode.Is(unicode.P, r):
			w.end()
			w.word, w.n = utf8.AppendRune(w.word, r), 1
			w.end()
		default:
			if r = unicode.ToLower(r); r < utf8.RuneSelf { // the Kelvin sign's k
				w.add(byte(r))
				continue
			}
			w.word = utf8.AppendRune(w.word, r)
			w.n++
		}
	}
}

// end cuts the word into pieces, the longest first; a word with any part that
// is no piece adds nothing.
func (w *words) end() {
	if len(w.word) == 0 {
		return
	}
	before := len(w.ids)
	if w.n <= maxWord {
		for rest, inner := w.word, false; len(rest) > 0; inner = true {
			row, size := w.v.longestPiece(rest, inner)
			if row < 0 {
				w.ids = w.ids[:before]
				break
			}
			w.ids = append(w.ids, uint16(row))
			rest = rest[size:]
		}
	}
	w.word, w.n = w.word[:0], 0
}

// ideograph reports the CJK ideographs, each of which is a word. Kana and
// hangul are not among them.
func ideograph(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B820 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}
