package memory

import "time"

// Notes that stand in no question's file. A question's id never begins with "_".
const (
	NoteIndex    = "_index"    // the project's own page
	NoteTimeline = "_timeline" // the page of what was said when
)

// Note is the text that people keep in the Notes region of a page of the vault.
// Records are appended and never overwritten: one names in Prev those that it
// takes the place of, and those that no other names are the present ones. Two
// present ones were written side by side; both count until a later one names both.
type Note struct {
	V       int    `json:"v"`
	Type    string `json:"type"` // "note"
	Level   Level  `json:"level"`
	Tenant  string `json:"tenant"`
	Project string `json:"project"`
	Note    string `json:"note"`             // question id, NoteIndex or NoteTimeline
	Stream  string `json:"stream,omitempty"` // StreamName of the question's wording then: the note follows it under a new id
	// Text is the region behind its heading line, redacted, and otherwise byte for
	// byte as it was written; valid UTF-8 of at most MaxNoteBytes. Erasable.
	Text   string    `json:"text"`
	Prev   []SHA     `json:"prev"`   // keys of the records it replaces, ascending; empty for the first
	Origin string    `json:"origin"` // where it was written: "vault"; "scrub" for a newly redacted form; "moved" when its question changed
	At     time.Time `json:"at"`
	Erased SHA       `json:"erased,omitempty"` // the tombstone that erased its text
}

// MaxNoteBytes bounds one Notes region: some hundred pages of text.
const MaxNoteBytes = 1 << 20

// RecordType is the record's `type` field.
func (*Note) RecordType() string { return TypeNote }
