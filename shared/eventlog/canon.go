package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	// maxDepth bounds nesting in a line. Records nest six deep (chunk, turns,
	// pieces, enc, exceptions); 64 leaves room and keeps recursion small.
	maxDepth = 64

	// maxSafe is the largest integer that every JSON reader holds exactly:
	// 2^53-1, RFC 7493 (I-JSON) section 2.2. RFC 8785 writes numbers as IEEE
	// doubles, so two larger integers could share one canonical form.
	maxSafe = 1<<53 - 1

	// maxDigits is how many significant digits a double can need; a literal
	// with more would be rounded by its canonical form.
	maxDigits = 17
)

// sealedPrefix begins what stands in place of an erasable text.
const sealedPrefix = "sha256:"

// erasable reports whether a member of this name holds words of people or
// models, which `mem forget` must be able to take out (DESIGN section 4).
func erasable(name []byte) bool {
	switch string(name) {
	case "text", "think", "reason", "question", "quote":
		return true
	}
	return false
}

// erasedMember marks an erased record, and forgottenMember beside it one that
// nothing stands for. In an erased record they stand outside the sealed form.
const (
	erasedMember    = "erased"
	forgottenMember = "forgotten"
)

// canonMode says what becomes of erasable texts.
type canonMode uint8

const (
	asIs   canonMode = iota
	sealed           // replaced by sha256:<hex>
	erased           // already sha256:<hex>; the top-level `erased` and `forgotten` are left out
)

// canonicalizer writes the RFC 8785 form of one JSON value in one pass. It
// refuses what has no faithful canonical form: duplicate names, bad UTF-8,
// lone surrogates, numbers that a double rounds.
type canonicalizer struct {
	src       []byte
	pos       int
	dst       []byte
	mode      canonMode
	depth     int
	members   []member // of the open objects, innermost last
	tmp       []byte
	sawErased bool // a top-level `erased` was met
}

// member is one "name":value in dst. plain: the name is ASCII without escapes,
// so that byte order is UTF-16 order.
type member struct {
	start, nameEnd, end int
	plain               bool
}

// canonical appends the RFC 8785 form of line to dst. gowebpki/jcs is the
// yardstick: a fuzz test proves that both give the same bytes; this one is one
// pass and also seals.
func canonical(dst, line []byte) ([]byte, error) {
	c := canonicalizer{src: line, dst: dst}
	if err := c.run(); err != nil {
		return dst, err
	}
	return c.dst, nil
}

// Seal appends the sealed form of a record's line to dst: its RFC 8785 form
// with each erasable text (a string member named text, think, reason, question
// or quote, at any depth) replaced by sha256:<hex> of its UTF-8 bytes. An
// erased record seals to the same bytes as the record it was: its texts are
// hashes already and its top-level `erased` and `forgotten` are left out.
// isErased tells which it is.
func Seal(dst, line []byte) (out []byte, isErased bool, err error) {
	c := canonicalizer{src: line, dst: dst, mode: sealed}
	return c.seal()
}

func (c *canonicalizer) seal() (out []byte, isErased bool, err error) {
	base := c.dst
	if err := c.run(); err != nil {
		return base, false, err
	}
	if !c.sawErased {
		return c.dst, false, nil
	}
	c.dst, c.mode, c.pos = base, erased, 0
	if err := c.run(); err != nil {
		return base, false, err
	}
	return c.dst, true, nil
}

// Erase gives a record's line with its texts gone: the sealed form plus
// `erased`, the sha256 of the tombstone that bars them. Erasing an erased line
// gives it back unchanged.
func Erase(line []byte, tombstone memory.SHA) ([]byte, error) { return erase(line, tombstone, false) }

// Forget is Erase of a record that nothing will stand for: it says so by
// `forgotten`. A line that was erased before gets the mark too, and keeps the
// tombstone it has.
func Forget(line []byte, tombstone memory.SHA) ([]byte, error) { return erase(line, tombstone, true) }

func erase(line []byte, tombstone memory.SHA, forgotten bool) ([]byte, error) {
	if !tombstone.Valid() {
		return nil, fmt.Errorf("tombstone %q is not a sha256", tombstone)
	}
	out, already, err := Seal(nil, line)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 || out[0] != '{' {
		return nil, errors.New("a record is a JSON object")
	}
	if already {
		var was struct {
			Erased    memory.SHA `json:"erased"`
			Forgotten bool       `json:"forgotten"`
		}
		if err := json.Unmarshal(line, &was); err != nil {
			return nil, err
		}
		if was.Forgotten || !forgotten {
			return bytes.Clone(line), nil
		}
		tombstone = was.Erased
	}
	mark := `{"` + erasedMember + `":"` + string(tombstone) + `",`
	if forgotten {
		mark += `"` + forgottenMember + `":true,`
	}
	with := append([]byte(mark), out[1:]...)
	if len(out) == 2 {
		with = append(with[:len(with)-2], '}')
	}
	return canonical(nil, with)
}

func (c *canonicalizer) run() error {
	c.depth, c.members = 0, c.members[:0]
	if err := c.value(); err != nil {
		return fmt.Errorf("byte %d: %w", c.pos, err)
	}
	c.space()
	if c.pos != len(c.src) {
		return fmt.Errorf("byte %d: bytes after the JSON value", c.pos)
	}
	return nil
}

func (c *canonicalizer) space() {
	for c.pos < len(c.src) {
		switch c.src[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

var errEnd = errors.New("the JSON value is cut off")

func (c *canonicalizer) value() error {
	c.space()
	if c.pos >= len(c.src) {
		return errEnd
	}
	switch b := c.src[c.pos]; {
	case b == '{':
		return c.object()
	case b == '[':
		return c.array()
	case b == '"':
		return c.str()
	case b == '-' || b >= '0' && b <= '9':
		return c.number()
	}
	for _, lit := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(c.src[c.pos:], []byte(lit)) {
			c.dst = append(c.dst, lit...)
			c.pos += len(lit)
			return nil
		}
	}
	return fmt.Errorf("%q begins no JSON value", c.src[c.pos])
}

func (c *canonicalizer) enter() error {
	if c.depth++; c.depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	return nil
}

func (c *canonicalizer) array() error {
	if err := c.enter(); err != nil {
		return err
	}
	c.pos++
	c.dst = append(c.dst, '[')
	for first := true; ; first = false {
		c.space()
		if c.pos >= len(c.src) {
			return errEnd
		}
		if c.src[c.pos] == ']' {
			break
		}
		if !first {
			if c.src[c.pos] != ',' {
				return fmt.Errorf("%q where a comma or ] belongs", c.src[c.pos])
			}
			c.pos++
			c.dst = append(c.dst, ',')
		}
		if err := c.value(); err != nil {
			return err
		}
	}
	c.pos++
	c.depth--
	c.dst = append(c.dst, ']')
	return nil
}

func (c *canonicalizer) object() error {
	if err := c.enter(); err != nil {
		return err
	}
	c.pos++
	c.dst = append(c.dst, '{')
	body, base := len(c.dst), len(c.members)
	sorted, comma := true, false
	for {
		c.space()
		if c.pos >= len(c.src) {
			return errEnd
		}
		if c.src[c.pos] == '}' {
			break
		}
		if comma {
			if c.src[c.pos] != ',' {
				return fmt.Errorf("%q where a comma or } belongs", c.src[c.pos])
			}
			c.pos++
			c.space()
		}
		comma = true
		m, keep, err := c.member()
		if err != nil {
			return err
		}
		if !keep {
			continue
		}
		if n := len(c.members); n > base && c.compare(c.members[n-1], m) >= 0 {
			sorted = false
		}
		c.members = append(c.members, m)
		c.dst = append(c.dst, ',')
	}
	c.pos++
	c.depth--
	ms := c.members[base:]
	if !sorted {
		slices.SortFunc(ms, c.compare)
		for i := 1; i < len(ms); i++ {
			if bytes.Equal(c.name(ms[i-1]), c.name(ms[i])) {
				return fmt.Errorf("the name %q stands twice", clip(c.name(ms[i])))
			}
		}
		c.tmp = c.tmp[:0]
		for _, m := range ms {
			c.tmp = append(append(c.tmp, c.dst[m.start:m.end]...), ',')
		}
		c.dst = append(c.dst[:body], c.tmp...)
	}
	c.members = c.members[:base]
	if len(c.dst) > body {
		c.dst = c.dst[:len(c.dst)-1] // the last comma
	}
	c.dst = append(c.dst, '}')
	return nil
}

// member writes one "name":value; keep is false for what the sealed form
// leaves out.
func (c *canonicalizer) member() (m member, keep bool, err error) {
	if c.pos >= len(c.src) {
		return m, false, errEnd
	}
	if c.src[c.pos] != '"' {
		return m, false, fmt.Errorf("%q where a name belongs", c.src[c.pos])
	}
	m.start = len(c.dst)
	if err := c.str(); err != nil {
		return m, false, err
	}
	m.nameEnd = len(c.dst)
	m.plain = plainASCII(c.name(m))
	c.space()
	if c.pos >= len(c.src) {
		return m, false, errEnd
	}
	if c.src[c.pos] != ':' {
		return m, false, fmt.Errorf("%q where a colon belongs", c.src[c.pos])
	}
	c.pos++
	c.dst = append(c.dst, ':')
	at := len(c.dst)
	if err := c.value(); err != nil {
		return m, false, err
	}
	m.end = len(c.dst)
	name := c.name(m)
	if c.depth == 1 && string(name) == erasedMember {
		c.sawErased = true
		if c.mode == erased {
			v := c.dst[at:]
			if len(v) != 66 || !memory.SHA(v[1:65]).Valid() {
				return m, false, errors.New("`erased` is not the sha256 of a tombstone")
			}
			c.dst = c.dst[:m.start]
			return m, false, nil
		}
	}
	if c.depth == 1 && c.mode == erased && string(name) == forgottenMember {
		c.dst = c.dst[:m.start]
		return m, false, nil
	}
	if c.mode != asIs && c.dst[at] == '"' && erasable(name) {
		if err := c.sealText(at); err != nil {
			return m, false, err
		}
		m.end = len(c.dst)
	}
	return m, true, nil
}

// sealText replaces the string at dst[at:] by sha256:<hex> of its bytes.
func (c *canonicalizer) sealText(at int) error {
	text := c.dst[at+1 : len(c.dst)-1]
	if c.mode == erased {
		h, ok := bytes.CutPrefix(text, []byte(sealedPrefix))
		if !ok || !memory.SHA(h).Valid() {
			return errors.New("an erased record still holds a text")
		}
		return nil
	}
	sum := sha256.Sum256(unescape(text))
	c.dst = append(c.dst[:at], `"`+sealedPrefix...)
	c.dst = hex.AppendEncode(c.dst, sum[:])
	c.dst = append(c.dst, '"')
	return nil
}

// name is the canonical text of a member's name, without quotes.
func (c *canonicalizer) name(m member) []byte { return c.dst[m.start+1 : m.nameEnd-1] }

// compare orders members by the UTF-16 code units of their names (RFC 8785
// section 3.2.3).
func (c *canonicalizer) compare(a, b member) int {
	x, y := c.name(a), c.name(b)
	if a.plain && b.plain {
		return bytes.Compare(x, y)
	}
	return slices.Compare(utf16.Encode([]rune(string(unescape(x)))), utf16.Encode([]rune(string(unescape(y)))))
}

func plainASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf || c == '\\' {
			return false
		}
	}
	return true
}

// str copies the string at pos in canonical form, with its quotes.
func (c *canonicalizer) str() error {
	c.dst = append(c.dst, '"')
	i := c.pos + 1
	start := i
	for i < len(c.src) {
		b := c.src[i]
		switch {
		case b == '"':
			c.dst = append(append(c.dst, c.src[start:i]...), '"')
			c.pos = i + 1
			return nil
		case b == '\\':
			c.dst = append(c.dst, c.src[start:i]...)
			r, n, err := readEscape(c.src[i:])
			if err != nil {
				return err
			}
			c.dst = appendRune(c.dst, r)
			i += n
			start = i
		case b < 0x20:
			return fmt.Errorf("a raw control character %#02x in a string", b)
		case b < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(c.src[i:])
			if r == utf8.RuneError && n == 1 {
				return fmt.Errorf("byte %#02x is not UTF-8", b)
			}
			i += n
		}
	}
	return errEnd
}

// readEscape decodes the escape at b[0] == '\\'.
func readEscape(b []byte) (r rune, n int, err error) {
	if len(b) < 2 {
		return 0, 0, errEnd
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2, nil
	case 'b':
		return '\b', 2, nil
	case 'f':
		return '\f', 2, nil
	case 'n':
		return '\n', 2, nil
	case 'r':
		return '\r', 2, nil
	case 't':
		return '\t', 2, nil
	case 'u':
		hi, err := hex4(b[2:])
		if err != nil {
			return 0, 0, err
		}
		if !utf16.IsSurrogate(hi) {
			return hi, 6, nil
		}
		if len(b) < 12 || b[6] != '\\' || b[7] != 'u' {
			return 0, 0, errors.New("a lone surrogate")
		}
		lo, err := hex4(b[8:])
		if err != nil {
			return 0, 0, err
		}
		if r = utf16.DecodeRune(hi, lo); r == utf8.RuneError {
			return 0, 0, errors.New("a lone surrogate")
		}
		return r, 12, nil
	}
	return 0, 0, fmt.Errorf("unknown escape %q", b[:2])
}

func hex4(b []byte) (rune, error) {
	if len(b) < 4 {
		return 0, errEnd
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, fmt.Errorf("%q is no hex digit", c)
		}
	}
	return r, nil
}

// appendRune writes r as RFC 8785 section 3.2.2.2 wants it.
func appendRune(dst []byte, r rune) []byte {
	if r < 0x20 || r == '"' || r == '\\' {
		return memory.AppendControl(dst, byte(r))
	}
	return utf8.AppendRune(dst, r)
}

// unescape decodes canonical string content.
func unescape(b []byte) []byte {
	i := bytes.IndexByte(b, '\\')
	if i < 0 {
		return b
	}
	out := append(make([]byte, 0, len(b)), b[:i]...)
	for i < len(b) {
		if b[i] != '\\' {
			out = append(out, b[i])
			i++
			continue
		}
		r, n, err := readEscape(b[i:])
		if err != nil { // canonical content holds only escapes that str wrote
			return append(out, b[i:]...)
		}
		out = utf8.AppendRune(out, r)
		i += n
	}
	return out
}

// number copies the number at pos in canonical form.
func (c *canonicalizer) number() error {
	b := c.src[c.pos:]
	n, digits, integer, err := scanNumber(b)
	if err != nil {
		return err
	}
	tok := b[:n]
	c.pos += n
	if integer && digits <= 15 && string(tok) != "-0" {
		c.dst = append(c.dst, tok...)
		return nil
	}
	if digits > maxDigits {
		return fmt.Errorf("number %s has %d significant digits; a double holds %d", clip(tok), digits, maxDigits)
	}
	f, err := strconv.ParseFloat(string(tok), 64)
	switch {
	case err != nil, f > maxSafe, f < -maxSafe:
		return fmt.Errorf("number %s is beyond 2^53-1", clip(tok))
	case f == 0 && digits > 0:
		return fmt.Errorf("number %s is too small for a double", clip(tok))
	}
	s, err := jcs.NumberToJSON(f)
	if err != nil {
		return err
	}
	c.dst = append(c.dst, s...)
	return nil
}

// scanNumber reads the number that b begins with (RFC 8259 section 6): its
// length, its significant digits, and whether it is written as an integer.
func scanNumber(b []byte) (n, digits int, integer bool, err error) {
	bad := func() (int, int, bool, error) { return 0, 0, false, fmt.Errorf("%q is no JSON number", clip(b)) }
	if b[0] == '-' {
		n++
	}
	zeros := 0 // seen since the last digit that is not zero
	count := func() int {
		from := n
		for n < len(b) && b[n] >= '0' && b[n] <= '9' {
			switch {
			case b[n] != '0':
				digits += zeros + 1
				zeros = 0
			case digits > 0:
				zeros++
			}
			n++
		}
		return n - from
	}
	first := n
	if k := count(); k == 0 || k > 1 && b[first] == '0' {
		return bad()
	}
	integer = true
	if n < len(b) && b[n] == '.' {
		integer = false
		n++
		if count() == 0 {
			return bad()
		}
	}
	if integer {
		digits += zeros // of 1200 all four count: it is copied as it stands
	}
	if n < len(b) && (b[n] == 'e' || b[n] == 'E') {
		integer = false
		n++
		if n < len(b) && (b[n] == '+' || b[n] == '-') {
			n++
		}
		from := n
		for n < len(b) && b[n] >= '0' && b[n] <= '9' {
			n++
		}
		if n == from {
			return bad()
		}
	}
	return n, digits, integer, nil
}

// clip keeps a line's content from filling a message: 40 bytes at most.
func clip(b []byte) string {
	if len(b) > 40 {
		b = b[:40]
	}
	return string(b)
}
