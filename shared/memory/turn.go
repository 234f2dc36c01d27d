package memory

import "time"

// TimeQuality says how a turn's time is known.
type TimeQuality string

const (
	TimeExact  TimeQuality = "exact"  // the record's own timestamp
	TimeHeader TimeQuality = "header" // the session header's
	TimeFile   TimeQuality = "file"   // front matter or the object's modification time
	TimeNone   TimeQuality = "none"
)

// Tool is the tool of a tool_call or tool_result turn.
type Tool struct {
	Name    string `json:"name,omitempty"`
	Target  string `json:"target,omitempty"` // file path, command or pattern the call is about
	CallID  string `json:"call_id,omitempty"`
	IsError bool   `json:"is_error,omitempty"`

	// Edits are what a call was to change, Quiet says that its result held no
	// text and was no error: no turn stands for such a result. Neither enters a
	// chunk.
	Edits []FileEdit `json:"-"`
	Quiet bool       `json:"-"`
}

// FileEdit is one change of a file that a tool call asked for.
type FileEdit struct {
	Kind    EditKind
	Path    string
	Added   int // lines
	Removed int // lines
	// Text is the passage around the first changed line, of the new text where
	// there is one; [From,To) is that line in it.
	Text     Piece
	From, To int
}

// EditKind says what becomes of a file.
type EditKind string

const (
	EditChange EditKind = "edit"
	EditWrite  EditKind = "write" // a new file, or the whole of one anew
	EditDelete EditKind = "delete"
)

// Turn is the normal form of one utterance, tool call or tool result, whatever
// the transcript format. Readers yield turns in file order.
type Turn struct {
	Format      string // reader name: claude-code, pi, markdown, flat
	Session     string
	ID          string // stable id: claude "session/uuid", else "session/message.id", pi "session/id", else sha256(…)
	ParentID    string
	Seq         int // position in the object, from 0
	Role        Role
	Kind        Kind
	Trust       Trust
	Pieces      []Piece // the text, in order; each maps to one run of source bytes
	Tool        *Tool
	Time        time.Time // zero when TimeQuality is none
	TimeRaw     string    // the timestamp as it stood, with its offset
	TimeQuality TimeQuality
	Cwd         string
	GitBranch   string
	Remote      string // repository remote URL when the file has it
	Root        string // the folder whose worktree Cwd is in, when the file says so
	Heading     string // Markdown heading path "A > B"
	Agent       string // the sub-agent whose turn it is; "" the session's own
	Abandoned   bool   // off the active path of a conversation tree
	Derived     bool   // Mneme's own output: never evidence
	Line        int    // physical line in the object, from 1
	From, To    int64  // bytes of the whole record in the decompressed object
}

// Text is the turn's text: its pieces joined by newlines.
func (t *Turn) Text() string {
	switch len(t.Pieces) {
	case 0:
		return ""
	case 1:
		return t.Pieces[0].Text
	}
	n := len(t.Pieces) - 1
	for _, p := range t.Pieces {
		n += len(p.Text)
	}
	b := make([]byte, 0, n)
	for i, p := range t.Pieces {
		if i > 0 {
			b = append(b, '\n')
		}
		b = append(b, p.Text...)
	}
	return string(b)
}

// Piece is a decoded text and the run of source bytes it was decoded from.
// A piece without source (Start < 0) is written by Mneme, such as a cut mark,
// and can never be cited.
type Piece struct {
	Text  string
	Start int64 // first byte in the decompressed object; -1 when synthesised
	End   int64 // one past the last byte
	Enc   Encoding
}

// Cited reports whether the piece has source bytes.
func (p *Piece) Cited() bool { return p.Start >= 0 }
