// Package lesson is what a failure taught: the signature of a failing command,
// what was changed after it, and that the same command passed then.
package lesson

import "github.com/mneme-ai/mneme/shared/memory"

// Lesson is one record of type "lesson". Erasable fields (DESIGN 4): text, quote.
type Lesson struct {
	Tool        string   `json:"tool"` // tool of the failing log, as shared/signature names it
	InnerTool   string   `json:"inner_tool,omitempty"`
	Rule        string   `json:"rule"`       // signature rule that picked the root line
	Confidence  float64  `json:"confidence"` // of the signature, 0 to 1
	SigVersion  string   `json:"sig_version"`
	SigSHA      string   `json:"sig_sha"`    // class of the failure
	DetailSHA   string   `json:"detail_sha"` // this very failure
	InnerSig    string   `json:"inner_sig_sha,omitempty"`
	InnerDetail string   `json:"inner_detail_sha,omitempty"`
	SymSHAs     []string `json:"sym_shas"`          // symptoms under which it is found, sorted
	Text        string   `json:"text"`              // solution in words, redacted
	Failure     string   `json:"quote"`             // root line, redacted
	Command     string   `json:"command,omitempty"` // the command that failed and passed, normalised, redacted
	Changes     []Change `json:"changes,omitempty"`
	Outcome     string   `json:"outcome"` // passed | flaky | told
	Origin      string   `json:"origin"`  // mined | person
	Session     string   `json:"session,omitempty"`
	Time        string   `json:"time"`            // RFC 3339 UTC of the pass, or of the telling
	Spans       []Span   `json:"spans,omitempty"` // failed, changed…, passed; role names which
}

// Change is one thing done between the failure and the pass.
type Change struct {
	Kind    string `json:"kind"` // edit | write | delete | command
	Path    string `json:"path,omitempty"`
	Added   int    `json:"added,omitempty"`   // lines
	Removed int    `json:"removed,omitempty"` // lines
	Quote   string `json:"quote,omitempty"`   // short, redacted
}

// Span cites bytes of the source object (DESIGN 5), and what they show.
type Span struct {
	Role string `json:"role"` // failed | change | passed | said
	memory.Span
}
