package chunk

import (
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
)

// Options configures a Chunker. Count, Redact and TenantKey are required.
type Options struct {
	Tokens     int                      // of a dialogue chunk; 0 means 5,000 (DESIGN section 6)
	NoteChars  int                      // of a note chunk, in characters; 0 means 2,000
	ToolTokens int                      // of a tool call's target or result; 0 means 400
	Count      func(string) int         // tokens of a text
	Redact     *redact.Redactor         // masks secrets before anything is cut
	TenantKey  []byte                   // of the HMAC that seals redacted lines
	Seen       func(turnID string) bool // already admitted: skipped and counted; nil means none
}

// Chunker turns a stream of turns into chunks by policy c1. It is not safe for
// concurrent use.
type Chunker struct{ opt Options }

// New makes a Chunker.
func New(opt Options) *Chunker { return &Chunker{opt: opt} }

// Add takes the next turn and returns the chunks that it completes, in order.
func (c *Chunker) Add(t memory.Turn) ([]memory.Chunk, error) { return nil, nil }

// Flush returns what is left. The Chunker may be used on.
func (c *Chunker) Flush() ([]memory.Chunk, error) { return nil, nil }

// Redactions counts masked secrets by kind.
func (c *Chunker) Redactions() map[string]int { return nil }

// Duplicates counts turns that Seen knew.
func (c *Chunker) Duplicates() int { return 0 }

// Dropped counts turns that the policy leaves out, by reason.
func (c *Chunker) Dropped() map[string]int { return nil }

// TurnIDs lists the turns that stand in chunks, in order, each once.
func (c *Chunker) TurnIDs() []string { return nil }
