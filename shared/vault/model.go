package vault

import (
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Model is all that the pages of one project are made of. The order of Questions,
// Statements and Notes does not matter: Render brings them into its own.
type Model struct {
	Project   string
	Questions []Question
	Synthesis *Synthesis // nil: the project asks for none
	Notes     []KeptNote
	// Evidence asks for a page of each statement.
	Evidence bool
}

// Question is one question that answers, and what its stream holds.
type Question struct {
	ID      string
	N       int    // place in the question file, from 0; ad-hoc ones stand behind those
	Wording string // as it is asked now
	Stream  string // that answers
	Asked   string // the stream of the present wording; another than Stream while that one is behind
	Adhoc   bool
	Memory  Memory
	// Read are earlier memories that the synthesis was made of, without their text.
	Read []Memory
	// ChunksSeen and ChunksUsed count chunks of the project: looked at, and kept from.
	ChunksSeen, ChunksUsed int
	Statements             []Statement
}

// Memory is the present memory of a stream; the zero value where it has none.
type Memory struct {
	Node    memory.SHA
	TextSHA memory.SHA
	Text    string
	Parents []memory.SHA
	Updated time.Time // effective time of the newest statement in it
}

// Statement is one L0 node that a stream keeps, with all its words.
type Statement struct {
	Node       memory.SHA
	Text       string
	T          int
	Place      memory.Place
	Role       memory.Role
	Trust      memory.Trust
	In         bool // it stands in the memory
	Superseded bool
	Until      memory.Place // of the newest statement that superseded it
	By         memory.SHA   // that statement; "" where its words are gone
	Spans      []Cited      // where it was said; the newest first
}

// Cited is one place where a statement was said.
type Cited struct {
	Place memory.Place
	T     int
	Span  memory.Span
}

// Synthesis is the project's L2 memory: the last completed run.
type Synthesis struct {
	Question string
	Stream   string
	Memory   Memory // zero: no run has completed, or it found nothing; its parents are the memories it read
	Ran      bool
	Chunks   int // memories read
	Used     int
}

// KeptNote is a note record as the log holds it.
type KeptNote struct {
	Key     memory.SHA
	Note    memory.Note
	TextSHA memory.SHA // of its text, erased or not
}

// File is one page.
type File struct {
	Path   string // slash-separated, below the project's folder
	Bytes  []byte
	Note   string // whose Notes region it holds; "" where it has none
	Stream string // StreamName of that question's present wording; "" where there is none
}

// Vault is a rendered project.
type Vault struct {
	Folder string // the project's
	Files  []File // by path
	Stats  Stats
	// Regions are the Notes regions by the note they belong to.
	Regions map[string]Region
}

// Stats says what a reader should know of a rendering.
type Stats struct {
	Statements int `json:"statements"`  // that the streams keep
	Shown      int `json:"shown"`       // on the pages of their questions
	Superseded int `json:"superseded"`  // of all
	Unresolved int `json:"unresolved"`  // source ids in memories that lead nowhere; shown as plain text
	Uncited    int `json:"uncited"`     // lines of memories that name no source
	Conflicts  int `json:"conflicts"`   // Notes regions with several present versions
	Orphans    int `json:"orphans"`     // Notes regions whose question is asked no more
	NamesMet   int `json:"names_met"`   // pages whose name met another's where case does not count
	EmptyAdhoc int `json:"empty_adhoc"` // ad-hoc questions without an answer: they have no page
}
