package gru

import (
	"fmt"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// This file is the loop's port: what a step is given and what it gives back.
// functions/gate is written against it.

// Config freezes what decides in one stream. It is copied into the run record
// at the first slice of a part.
type Config struct {
	Tenant       string
	Project      string
	Stream       string // "<id>@<sha8>" or "adhoc-<sha8>"
	QueryID      string
	Question     string
	Level        memory.Level // of the memory: L1 for a question, L2 for a synthesis
	BudgetTokens int          // of the memory: 1,024 standing, 4,096 ad-hoc (DESIGN section 6)
	ExitGate     bool         // whether an open exit gate ends the part
	Count        func(string) int
	// Redact is the present rule set. A quote that it would change is refused:
	// the end of a span must not make a secret out of what is none as a whole,
	// or uncover one (DESIGN section 5). nil checks nothing.
	Redact func(string) string
	// Policy decides without a model; nil where Model is set.
	Policy Policy
	// Model makes the loop decide by model calls; see Step.
	Model *Model
	// Lower are the memories that a synthesis reads, at L2 alone; see synthesis.go.
	Lower []Lower
}

// Citable is the citation of chunk text [from,to), refused where it has no
// source bytes or where redaction would change the quote.
func (cfg *Config) Citable(c *memory.Chunk, object, etag string, from, to int) (memory.Span, error) {
	span, err := c.SpanOf(object, etag, from, to)
	if err != nil || span.Redacted || cfg.Redact == nil {
		return span, err
	}
	if quote := c.Text[span.ChunkStart:span.ChunkEnd]; cfg.Redact(quote) != quote {
		return memory.Span{}, fmt.Errorf("span [%d,%d): redaction would change the quote", from, to)
	}
	return span, nil
}

// Part is one admitted part, as the admit line and the source record give it.
type Part struct {
	Admit  memory.Admit
	Source memory.Source
	Chunks int // steps the part has when no chunk is read in pieces
}

// ChunkInput is one chunk to look at; Chunk.Text is loaded and verified.
type ChunkInput struct {
	Chunk memory.Chunk
	// Context is the last assistant message of the chunk before, where the
	// chunk continues a chat; known, never evidence. Empty when there is none.
	Context string
}

// Record is a line for the log: *memory.Run, *memory.Gate, *memory.Evidence,
// *memory.Memory or *memory.RunEnd, complete but for what only the shell
// knows: latency, cost and the blob of a raw reply.
type Record = any

// Policy decides over one chunk without a model call: pure and deterministic.
type Policy interface {
	Name() string          // frozen in the run record, e.g. "extractive/x1"
	PromptVersion() string // "-" where there is no prompt
	Decide(in PolicyInput) Decision
}

// PolicyInput is all that a policy may look at.
type PolicyInput struct {
	Config *Config
	State  *State
	Part   *Part
	Chunk  *memory.Chunk
	// Context as in ChunkInput.
	Context string
	// Places gives the place of a pick that starts at chunk offset start in
	// turn ti: effective time (DESIGN section 3), admit seq, i and start.
	Place func(ti, start int) memory.Place
}

// Pick is a verbatim passage that a step keeps: chunk text [Start,End), inside
// one turn, without a line break.
type Pick struct {
	Turn       int // index into Chunk.Turns
	Start, End int
	Cues       []string
	Score      float64
	Supersedes []memory.Occurrence // the other statements; Place decides which is the newer
}

// CueAmends is the cue of a statement whose whole message speaks of replacing
// something said before. It stands in the evidence record's rules, so that the
// fold knows it when an older statement is read later.
const CueAmends = "amends"

// Decision is what a policy answers about one chunk. Update is true exactly
// when Picks or a changed Candidate change the memory.
type Decision struct {
	Update     bool
	Exit       bool
	FormatOK   bool
	Pending    bool
	Reason     string // for people; names cues, never transcript text
	ReasonCode string // see memory.Gate
	Think      string
	Score      *float64
	Picks      []Pick
	Candidate  string // the whole new memory text; used when Update
	// Parents are the nodes of the statements that stand in Candidate. Where
	// nil, they are found by their text.
	Parents    []memory.SHA
	Ungrounded int // sentences of a candidate dropped, see Ground
	Dropped    int // passages chosen and left out because no citation could be computed
	// Shingles go into the gate record as they are.
	Shingles []string
}

// Kept is one statement in the state of a stream: the fold of its evidence
// records, all that the extractive policy knows of the past.
type Kept struct {
	Node       memory.SHA   `json:"node"`
	Text       string       `json:"text"`
	T          int          `json:"t"`
	Place      memory.Place `json:"place"`
	Score      float64      `json:"score"`
	Role       memory.Role  `json:"role,omitempty"`
	TextSHA    memory.SHA   `json:"text_sha,omitempty"`
	Chunk      memory.SHA   `json:"chunk,omitempty"`
	ChunkStart int          `json:"chunk_start"`
	ChunkEnd   int          `json:"chunk_end"`
	Amends     bool         `json:"amends,omitempty"` // CueAmends
	Superseded bool         `json:"superseded,omitempty"`
	Until      memory.Place `json:"until,omitzero"` // of the newest statement that superseded it
	In         bool         `json:"in,omitempty"`   // stands in the memory text
}

// State is the state of one stream after a step: the fold of its records
// alone. It is a value; Step does not change the one it is given. As JSON it
// is the folded-state cache.
type State struct {
	T          int        `json:"t"`     // steps done
	Admit      int64      `json:"admit"` // parts up to here are done
	MemoryText string     `json:"memory_text"`
	MemorySHA  memory.SHA `json:"memory_sha,omitempty"` // text sha; empty before the first update
	MemoryNode memory.SHA `json:"memory_node,omitempty"`
	Tokens     int        `json:"memory_tokens"`
	// Kept are the statements in order of reading. A *Kept is never changed once
	// it stands in a state; the next state holds another in its place.
	Kept []*Kept `json:"kept,omitempty"`
	// Shingles are those of the gate records, in order of reading. The list is
	// never changed in place.
	Shingles []string `json:"shingles,omitempty"`
	// Newest is the greatest effective time admitted so far: what a record
	// without a usable time of its own counts as.
	Newest time.Time `json:"newest,omitzero"`
	// Pending are the steps without a readable reply that no later step stands
	// for, in order. The list is never changed in place.
	Pending []PendingStep `json:"pending,omitempty"`
	Open    *OpenRun      `json:"open,omitempty"` // a run whose run_end is not written yet
	// Bridges are what forgotten statements had to do with others, by node. The map is
	// never changed in place.
	Bridges map[memory.SHA][]memory.Occurrence `json:"bridges,omitempty"`
	// Ended is the cause of the last completed run, of a synthesis alone.
	Ended string `json:"ended,omitempty"`
	// Call is the model call that the last step waits for. It is no part of the
	// fold: after a crash the chunk is asked about again.
	Call *Call `json:"-"`
}

// PendingStep is a step that was not decided: what it looked at.
type PendingStep struct {
	T     int   `json:"t"`
	Admit int64 `json:"admit"`
	I     int   `json:"i"`
	Start int   `json:"start"` // chunk text [start,end)
	End   int   `json:"end"`
}

// OpenRun is a part in progress, or pending steps that are asked again.
type OpenRun struct {
	// Regate says that the run asks pending steps again: those up to T0.
	Regate bool `json:"regate,omitempty"`
	// Synthesis says that the run reads memories, and Memory is what it came to so far.
	Synthesis bool           `json:"synthesis,omitempty"`
	Memory    *memory.Memory `json:"memory,omitempty"`

	Run    memory.SHA `json:"run"`
	Ref    string     `json:"ref,omitempty"` // of its cause
	Admit  int64      `json:"admit"`
	Source memory.SHA `json:"source"`
	T0     int        `json:"t0"`             // last step before the run
	Next   int        `json:"next"`           // chunk i to look at next
	From   int        `json:"from,omitempty"` // offset in it: past the pieces that are done
	Used   int        `json:"used"`
	Exited bool       `json:"exited,omitempty"`
	// LastUsed is the last chunk that changed the memory, counted from 1, so
	// that a chunk read in pieces is used once.
	LastUsed int `json:"last_used,omitempty"`
	Pending  int `json:"pending,omitempty"` // steps without a readable reply
	// Frozen is the memory before the batch of gates that Next stands in, which are
	// asked side by side; see parallel.go.
	Frozen string `json:"frozen,omitempty"`
}
