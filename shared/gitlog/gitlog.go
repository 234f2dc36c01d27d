// Package gitlog makes the lines of a git history: one JSON object a commit, the
// form that shared/transcript reads as format git-log.
//
//	{"type":"commit","sha":"9f2c…","parents":["41aa…"],"author":"Ada","email":"ada@example.org",
//	 "date":"2026-02-01T09:00:00+01:00","message":"Cap retries at 5\n\nThe upstream bans us after that.\n",
//	 "files":[{"status":"M","path":"retry.go"}],"symbols":["Retry","maxRetries"]}
//
// Two programs find the commits: `mem learn --git` asks the git program about a
// repository, and learn reads a bundle in the inbox by shared/gitbundle. The
// line is made here for both.
//
// Invariant: a commit gives the same bytes whoever finds it, on every machine:
// the fields are put in order here, and symbols come from a difference that is
// computed here, so that neither a version of git nor its configuration nor the
// attributes of a work tree has a say.
//
// The package reads no repository and drops no commit: which commits say
// nothing (merges, bots, version bumps) is the reader's to judge.
package gitlog

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"
)

// Bounds on what one commit lists: a commit of more files is one of vendored or
// generated ones. Symbols are those of the files that are listed.
const (
	MaxFiles   = 100
	MaxSymbols = 100
)

// MaxBlobBytes bounds each side of a file whose symbols are looked for. What
// people write stays far under it; what is over it is generated.
const MaxBlobBytes = 2 << 20

// Commit is one line.
type Commit struct {
	Type    string   `json:"type"` // commit
	SHA     string   `json:"sha"`
	Parents []string `json:"parents"`
	Author  string   `json:"author"`
	Email   string   `json:"email"`
	Date    string   `json:"date"`    // of the author, RFC 3339 with the offset of the place; empty where it has none
	Message string   `json:"message"` // subject, blank line, body; ends with LF
	Files   []File   `json:"files"`   // in the order of their paths, byte by byte; none of a merge
	Symbols []string `json:"symbols"` // names that the diff declares or stands in
}

// File is a file that a commit touches. A rename is a deletion and an addition:
// to find one is a guess that depends on limits.
type File struct {
	Status string `json:"status"` // A, M, D or T, as git log --name-status
	Path   string `json:"path"`
}

// Header is what a commit says of itself, in the bytes of its object after
// re-encoding to UTF-8.
type Header struct {
	SHA     string
	Parents []string
	Author  string
	Email   string
	Date    string // as git keeps it: seconds since 1970 and an offset, "1769932800 +0100"
	Message string
}

// New is the line of a commit with neither files nor symbols.
func New(h Header) Commit {
	return Commit{
		Type: "commit", SHA: valid(h.SHA), Parents: append([]string{}, h.Parents...), Author: valid(h.Author), Email: valid(h.Email),
		Date: Date(h.Date), Message: strings.TrimSpace(valid(h.Message)) + "\n", Files: []File{}, Symbols: []string{},
	}
}

// Touch adds a file; false where the list is full.
func (c *Commit) Touch(status, path string) bool {
	if len(c.Files) >= MaxFiles {
		return false
	}
	c.Files = append(c.Files, File{status, valid(path)})
	return true
}

// valid keeps text encodable: each run of wrong bytes becomes one U+FFFD.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Date makes RFC 3339 of git's form. An offset that no place on earth has is
// none; a date that is not a number, or not of a year with four digits, is empty.
func Date(raw string) string {
	secs, zone, _ := strings.Cut(strings.TrimSpace(raw), " ")
	n, err := strconv.ParseInt(secs, 10, 64)
	if err != nil || n < minSeconds || n > maxSeconds {
		return ""
	}
	offset := 0
	if z, err := strconv.Atoi(strings.TrimSpace(zone)); err == nil && z > -2400 && z < 2400 && z%100 > -60 && z%100 < 60 {
		offset = (z/100*60 + z%100) * 60
	}
	return time.Unix(n, 0).In(time.FixedZone("", offset)).Format("2006-01-02T15:04:05-07:00")
}

// Seconds of the years 1 to 9998, so that no offset leaves four digits.
const (
	minSeconds = -62_135_596_800
	maxSeconds = 253_370_764_799
)

// Encoder writes commits, a line each.
type Encoder struct{ enc *json.Encoder }

// NewEncoder writes to w, which it does not buffer.
func NewEncoder(w io.Writer) *Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return &Encoder{enc}
}

// Encode writes one line.
func (e *Encoder) Encode(c Commit) error { return e.enc.Encode(c) }

// FileName is what the history of a repository or a bundle is called: of
// shop.git or shop.bundle it is shop.git-log.jsonl.
func FileName(base string) string {
	for _, ext := range []string{".gz", ".zst", ".bundle", ".git"} {
		base = strings.TrimSuffix(base, ext)
	}
	if base == "" || base == "." || base == "/" || base == `\` {
		base = "repository"
	}
	return base + ".git-log.jsonl"
}
