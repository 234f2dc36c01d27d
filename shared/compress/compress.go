package compress

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// Options say what may be done to a text. The zero value compresses every kind
// but code.
type Options struct {
	Off  bool        // nothing is done
	Keep [kinds]bool // kinds that are left as they are
	Code bool        // code may lose the bodies of its functions

	Path  string // name of the file, where it is known
	Query string // what is asked of the text: what it names stays

	// Exact leaves the text as it is: pasted by a person, or given back by the
	// store of originals.
	Exact bool

	// Line is how many lines stand before the text where it is a part of a larger one:
	// marks and omissions of a log count from there.
	Line int

	// Original lets marks name the original by its hash. The caller stores it.
	Original bool

	// Evidence names lines of a log, from 0, that stay with 3 lines around them:
	// the root line that a signature found, and its detail.
	Evidence func(text string) []int
}

// Result is a text as it may be shown.
type Result struct {
	Text    string
	Kind    Kind
	Changed bool
	Reason  string // why Text is the original; "" when Changed

	// SHA256 is the original's, in hex, when Changed.
	SHA256    string
	Omissions []Omission
}

// Omission is one place where something was left out.
type Omission struct {
	// From and To are lines of the original, from 1, both left out; 0 where the
	// unit is none. Of JSON they are bytes [From, To).
	From, To int
	Count    int    // how many units
	Unit     string // "lines", "elements", "bytes", "sentences", "words", "frames"
}

// minBytes is the least size that is looked at: below it a mark costs what an
// omission saves. Code is asked for by name, and its functions are short.
const (
	minBytes     = 500
	minCodeBytes = 200
)

// maxBytes bounds the time and memory of one text.
const maxBytes = 64 << 20

// Reasons for giving the original.
const (
	ReasonOff      = "switched off"
	ReasonExact    = "exact text"
	ReasonShort    = "short"
	ReasonLarge    = "over 64 MiB"
	ReasonBinary   = "binary"
	ReasonUTF16    = "UTF-16"
	ReasonNoGain   = "nothing to gain"
	ReasonDoubt    = "not understood well enough"
	ReasonUnstable = "not stable"
)

// Compress gives text as short as it may be. See the package for what holds.
func Compress(text string, o Options) Result {
	r := Result{Text: text, Kind: Text}
	switch {
	case o.Off:
		r.Reason = ReasonOff
		return r
	case len(text) > maxBytes:
		r.Reason = ReasonLarge
		return r
	case o.Exact || asksForExact(o.Query):
		r.Kind, r.Reason = Detect(text, o.Path), ReasonExact
		return r
	}
	r.Kind = Detect(text, o.Path)
	if reason := o.refuse(text, r.Kind); reason != "" {
		r.Reason = reason
		return r
	}
	if o.Original {
		r.SHA256 = sha(text)
	}
	out, reason := o.once(text, r.Kind, r.SHA256)
	if reason != "" {
		r.SHA256, r.Reason = "", reason
		return r
	}
	if !o.stable(out.text) {
		r.SHA256, r.Reason = "", ReasonUnstable
		return r
	}
	if r.SHA256 == "" {
		r.SHA256 = sha(text)
	}
	r.Text, r.Omissions, r.Changed = out.text, out.omissions, true
	return r
}

// refuse says why text is not even tried, or nothing.
func (o *Options) refuse(text string, k Kind) string {
	least := minBytes
	if k == Code {
		least = minCodeBytes
	}
	switch {
	case len(text) < least:
		return ReasonShort
	case strings.HasPrefix(text, "\xff\xfe"), strings.HasPrefix(text, "\xfe\xff"):
		return ReasonUTF16
	case strings.IndexByte(text[:min(len(text), 8<<10)], 0) >= 0:
		return ReasonBinary
	case o.Keep[k], k == Code && !o.Code:
		return ReasonOff
	}
	return ""
}

// draft is what a compressor proposes.
type draft struct {
	text      string
	omissions []Omission
}

// once compresses text of a kind and checks the gain. The reason is "" when a
// draft is worth giving.
func (o *Options) once(text string, k Kind, hash string) (draft, string) {
	var d draft
	ok := false
	switch k {
	case JSON, JSONL:
		d, ok = o.compressJSON(text, hash)
	case Diff:
		d, ok = o.compressDiff(text, hash)
	case Log:
		d, ok = o.compressLog(text, hash)
	case Code:
		d, ok = o.compressCode(text, hash)
	case Text:
		d, ok = o.compressText(text, hash)
	}
	share := maxShare
	if k == Code {
		share = maxShareCode
	}
	switch {
	case !ok:
		return d, ReasonDoubt
	case len(d.omissions) == 0, !under(text, d.text, share):
		return d, ReasonNoGain
	case !utf8.ValidString(d.text) && utf8.ValidString(text):
		return d, ReasonDoubt
	}
	return d, ""
}

// stable reports that a result would come back as it is.
func (o *Options) stable(out string) bool {
	k := Detect(out, o.Path)
	if o.refuse(out, k) != "" {
		return true
	}
	hash := ""
	if o.Original {
		hash = sha(out)
	}
	_, reason := o.once(out, k, hash)
	return reason != ""
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// ShownHex is how many hex digits of an original's hash a mark shows.
const ShownHex = 24

func shown(hash string) string { return hash[:min(len(hash), ShownHex)] }
