// Package redact finds secrets in text and masks them before anything is
// stored.
//
// A secret becomes [REDACTED:kind:fingerprint], for example
//
//	export DB_PASSWORD=[REDACTED:password:3fa9c1]
//
// The fingerprint is keyed by the tenant, so that the same secret is
// recognised again and nothing can be tried against it elsewhere. Redacting
// twice equals redacting once: a mark is never masked again.
//
// Rules look for the shape of a credential (a vendor's prefix, a PEM block, a
// JWT), for a vendor's name beside a value of its form (both from the rules of
// gitleaks, rules_gen.go), or for a name that says what stands behind it
// (`password=`, `Authorization:`, user:password@ in a URL), as shells, files,
// programs and headers write it. A value that one place names as a secret is
// masked in the whole text. Hashes, git ids, UUIDs and base64 are no secrets by
// themselves and stay, and so do placeholders. A user adds patterns of his own
// (ParsePatterns).
//
// A secret may be written over a line's end: by a shell's `\`, as two string
// literals, in YAML's folded form, or wrapped where a vendor's form has an exact
// length. Its fingerprint is that of the secret in one piece, without escapes.
//
// The one pass tries a rule only where a word begins with two letters that begin
// a known prefix, at a separator and at a few signs; expressions run on the few
// hundred bytes there. Every step is bounded, so that time is linear in the text.
//
// The package does not know where a text comes from and stores nothing.
package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// RulesVersion is recorded in every source record; a span is checked by the
// rules that made it.
//
// History: r1 — first set. r2 — the rules of gitleaks 8.30.1, values by name in
// the shapes of shells, files and programs, secrets written over joints, values
// known from elsewhere in the text, placeholders; the fingerprint of a secret no
// longer depends on how it is escaped.
//
// r3 — names in cells, elements, clauses of SQL, password files and before a
// type; keys whose lines stand behind numbers or a file's name, and in base64;
// tokens beside bytes that are no ASCII; lists that are joined.
const RulesVersion = "r3"

// OwnTokenPrefix begins every API token that Mneme mints, so that its own
// credentials are masked too. At least 20 letters or digits follow it.
const OwnTokenPrefix = "mneme_"

// Mark is one masked secret.
type Mark struct {
	Start, End       int    // in the original text
	OutStart, OutEnd int    // in the redacted text
	Kind             string // rule family: "anthropic_key", "password", …
}

// Redactor masks secrets under one tenant's key. It is safe for concurrent use.
type Redactor struct {
	key      []byte
	patterns []Pattern
	version  string
}

// Options adds to the built-in rules.
type Options struct {
	Patterns []Pattern // of the user, from ParsePatterns; tried before the built-in rules
}

// New makes a Redactor whose fingerprints are keyed by tenantKey.
func New(tenantKey []byte) *Redactor { return NewWith(tenantKey, Options{}) }

// NewWith is New with options.
func NewWith(tenantKey []byte, o Options) *Redactor {
	return &Redactor{key: []byte(string(tenantKey)), patterns: slices.Clone(o.Patterns), version: versionOf(o.Patterns)}
}

// Version names the rules in force: RulesVersion, and a hash of the user's
// patterns where there are any, such as "r3+1f0c9a3e".
func (r *Redactor) Version() string { return r.version }

// Redact replaces each secret in text by [REDACTED:kind:fingerprint], where the
// fingerprint is 6 hex digits of the HMAC-SHA256 of the secret under the
// tenant key. Marks are ascending and do not overlap. Redact of its own output
// changes nothing. Text without a secret is returned as it is, with nil marks.
func (r *Redactor) Redact(text string) (string, []Mark) {
	all := r.pass(text)
	if len(all) == 0 {
		return text, nil
	}
	out, marks := r.write(text, all)
	// A mark changes what stands around it: look again until nothing is found.
	for range maxPasses {
		more := r.again(out, marks)
		if len(more) == 0 {
			break
		}
		k, shift := 0, 0 // marks before a find, and how far they moved it
		for i := range more {
			for k < len(marks) && marks[k].OutEnd <= more[i].start {
				shift = marks[k].End - marks[k].OutEnd
				k++
			}
			more[i].start += shift
			more[i].end += shift
		}
		all = append(all, more...)
		slices.SortFunc(all, func(a, b found) int { return a.start - b.start })
		out, marks = r.write(text, all)
	}
	return out, marks
}

// maxPasses bounds the looks at a text. Every text seen so far is done after
// the second.
const maxPasses = 16

// pass finds what one look finds.
func (r *Redactor) pass(text string) []found {
	return same(text, merge(userFinds(text, r.patterns), scan(text)))
}

// look is how far from a change a rule may see, in bytes: the kind of a
// Kubernetes object is the farthest (kubeLook), before it and behind it.
const look = 2 * kubeLook

// again looks once more, at the lines around the marks alone: nothing else has
// changed. Places may be looked at together when they are near.
func (r *Redactor) again(out string, marks []Mark) []found {
	if len(out) <= 16*look {
		return r.pass(out)
	}
	var all []found
	for i := 0; i < len(marks); {
		from, to := max(0, marks[i].OutStart-look), marks[i].OutEnd+look
		for i++; i < len(marks) && marks[i].OutStart-look <= to; i++ {
			to = marks[i].OutEnd + look
		}
		from, to = lineBefore(out, from), lineAfter(out, min(to, len(out)))
		for i < len(marks) && marks[i].OutStart < to {
			i++
		}
		for _, f := range r.pass(out[from:to]) {
			f.start += from
			f.end += from
			all = append(all, f)
		}
	}
	return all
}

// lineBefore is the begin of the line of i, and lineAfter its end, where that is
// near; else i.
func lineBefore(s string, i int) int {
	if k := strings.LastIndexByte(s[max(0, i-look):i], '\n'); k >= 0 {
		return max(0, i-look) + k + 1
	}
	return i
}

func lineAfter(s string, i int) int {
	if k := strings.IndexByte(s[i:min(len(s), i+look)], '\n'); k >= 0 {
		return i + k
	}
	return i
}

// write replaces the finds, which are ascending and apart.
func (r *Redactor) write(text string, all []found) (string, []Mark) {
	var out strings.Builder
	out.Grow(len(text) + 16*len(all))
	marks := make([]Mark, 0, len(all))
	at := 0
	for _, f := range all {
		out.WriteString(text[at:f.start])
		m := Mark{Start: f.start, End: f.end, OutStart: out.Len(), Kind: f.kind}
		out.WriteString(markOpen)
		out.WriteString(f.kind)
		out.WriteByte(':')
		out.WriteString(r.fingerprint(f.value(text)))
		out.WriteByte(']')
		m.OutEnd = out.Len()
		marks = append(marks, m)
		at = f.end
	}
	out.WriteString(text[at:])
	return out.String(), marks
}

func (r *Redactor) fingerprint(secret string) string {
	m := hmac.New(sha256.New, r.key)
	m.Write([]byte(secret))
	return hex.EncodeToString(m.Sum(nil)[:3])
}

const (
	markOpen  = "[REDACTED:"
	hexDigits = 6 // of the fingerprint: tells the secrets of one project apart
)

// markLen is the length of the mark that begins at s, or 0.
func markLen(s string) int {
	if !strings.HasPrefix(s, markOpen) {
		return 0
	}
	i := len(markOpen)
	for i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || s[i] == '_' || i > len(markOpen) && isNum(s[i])) {
		i++
	}
	if i == len(markOpen) || len(s) < i+hexDigits+2 || s[i] != ':' || s[i+1+hexDigits] != ']' {
		return 0
	}
	for _, c := range []byte(s[i+1 : i+1+hexDigits]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return 0
		}
	}
	return i + hexDigits + 2
}
