package chunk

import (
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
)

// Defaults of policy c1 (DESIGN section 6).
const (
	Tokens     = 5000 // of a dialogue chunk; the paper's chunk size
	NoteChars  = 2000 // of a note chunk
	ToolTokens = 400  // of a tool call's target or a tool result
	ToolLines  = 20   // of a cut tool result, at each end
)

// Options configures a Chunker. Count, Redact and TenantKey are required.
type Options struct {
	Tokens     int                      // of a dialogue chunk; 0 means 5,000
	NoteChars  int                      // of a note chunk, in characters; 0 means 2,000
	ToolTokens int                      // of a tool call's target or result; 0 means 400
	Count      func(string) int         // tokens of a text, each at most maxTokenBytes long
	Redact     *redact.Redactor         // masks secrets before anything is cut
	TenantKey  []byte                   // of the HMAC that seals redacted lines
	Seen       func(turnID string) bool // already admitted: skipped and counted; nil means none
}

// Chunker turns a stream of turns into chunks by policy c1. It is not safe for
// concurrent use.
type Chunker struct {
	opt        Options
	next       int // I of the next chunk
	open       *draft
	begun      map[string]bool // conversations that have a turn already
	redactions map[string]int
	dropped    map[string]int
	duplicates int
	ids        []string
	idSet      map[string]bool
}

// New makes a Chunker.
func New(opt Options) *Chunker {
	if opt.Tokens <= 0 {
		opt.Tokens = Tokens
	}
	if opt.NoteChars <= 0 {
		opt.NoteChars = NoteChars
	}
	if opt.ToolTokens <= 0 {
		opt.ToolTokens = ToolTokens
	}
	return &Chunker{
		opt: opt, begun: map[string]bool{}, idSet: map[string]bool{},
		redactions: map[string]int{}, dropped: map[string]int{},
	}
}

// Add takes the next turn and returns the chunks that it completes, in order.
// A turn whose pieces do not decode from their source bytes is an error.
func (c *Chunker) Add(t memory.Turn) (done []memory.Chunk, err error) {
	defer fault.Wrap(&err, "chunk(%s)", t.ID)
	if c.opt.Seen != nil && c.opt.Seen(t.ID) {
		c.duplicates++
		c.begun[t.Session] = true
		return nil, nil
	}
	switch t.Role {
	case memory.RoleInjected, memory.RoleSummary, memory.RoleSystem:
		c.dropped[string(t.Role)]++
		return nil, nil
	}
	v := c.view(&t)
	if strings.TrimSpace(v.red) == "" && t.Kind != memory.KindToolCall {
		c.dropped["empty"]++
		return nil, nil
	}
	for _, m := range v.marks {
		c.redactions[m.Kind]++
	}
	if !c.idSet[t.ID] {
		c.idSet[t.ID] = true
		c.ids = append(c.ids, t.ID)
	}
	if t.Role == memory.RoleNote {
		return c.note(v), nil
	}
	return c.dialogue(v), nil
}

// Flush returns what is left. The Chunker may be used on.
func (c *Chunker) Flush() ([]memory.Chunk, error) {
	if c.open == nil {
		return nil, nil
	}
	return []memory.Chunk{c.close()}, nil
}

// Redactions counts masked secrets by kind, in all turns that stand in chunks
// and in what was cut from them.
func (c *Chunker) Redactions() map[string]int { return c.redactions }

// Duplicates counts turns that Seen knew.
func (c *Chunker) Duplicates() int { return c.duplicates }

// Dropped counts turns that the policy leaves out, by reason.
func (c *Chunker) Dropped() map[string]int { return c.dropped }

// TurnIDs lists the turns that stand in chunks, in order, each once.
func (c *Chunker) TurnIDs() []string { return c.ids }

// dialogue adds a turn to the open chunk, or begins the next.
func (c *Chunker) dialogue(v *view) (done []memory.Chunk) {
	t := v.t
	if c.open != nil && c.open.session != t.Session {
		done = append(done, c.close())
	}
	items := []item{{from: 0, to: len(v.red)}}
	if t.Kind == memory.KindToolCall || t.Kind == memory.KindToolResult {
		items = c.excerpt(v)
	}
	first := !c.begun[t.Session]
	c.begun[t.Session] = true
	if c.surelyOver(size(items)) {
		return append(done, c.split(v, first)...)
	}
	b := c.block(v, items, 0)
	b.turn.First = first
	if b.tokens > c.opt.Tokens {
		return append(done, c.split(v, first)...)
	}
	if c.open != nil && c.open.tokens+b.tokens > c.opt.Tokens {
		done = append(done, c.close())
	}
	c.put(b, !first)
	return done
}

// split cuts a message longer than a chunk at lines. Its last part stays open
// for the turns that follow.
func (c *Chunker) split(v *view, first bool) (done []memory.Chunk) {
	if c.open != nil {
		done = append(done, c.close())
	}
	for k, r := range c.lines(v, 0, len(v.red)) {
		if c.open != nil {
			done = append(done, c.close())
		}
		b := c.block(v, []item{r}, k+1)
		b.turn.First = first && k == 0
		c.put(b, !first || k > 0)
		c.open.split = true
	}
	return done
}

// note gives a note's chunks: one, or one for each part.
func (c *Chunker) note(v *view) (done []memory.Chunk) {
	if c.open != nil {
		done = append(done, c.close())
	}
	parts := c.paragraphs(v)
	n := 0
	for _, r := range parts {
		sub := []item{r}
		if c.surelyOver(size(sub)) || c.block(v, sub, 0).tokens > c.opt.Tokens {
			sub = c.lines(v, r.from, r.to)
		}
		for _, s := range sub {
			part := n + 1
			if len(parts) == 1 && len(sub) == 1 {
				part = 0
			}
			c.put(c.block(v, []item{s}, part), n > 0)
			c.open.split = part > 0
			c.open.heading, _ = c.opt.Redact.Redact(v.t.Heading)
			done = append(done, c.close())
			n++
		}
	}
	return done
}

// put adds a block to the open chunk.
func (c *Chunker) put(b block, continues bool) {
	if c.open == nil {
		c.open = &draft{session: b.turn.Session, continues: continues}
	}
	c.open.blocks = append(c.open.blocks, b)
	c.open.tokens += b.tokens
}

// draft is a chunk that is still open.
type draft struct {
	session   string
	continues bool
	split     bool
	heading   string
	tokens    int // sum over blocks, at least the text's
	blocks    []block
}

// block is one turn, or a part of one, as it stands in a chunk. Offsets are
// relative to the block's text.
type block struct {
	text       string // header, text and the blank line
	tokens     int
	turn       memory.ChunkTurn
	start, end int64 // source bytes
}

// trustRank orders trust; the lowest names the chunk's.
var trustRank = map[memory.Trust]int{
	memory.TrustInjected: 0, memory.TrustWeb: 1, memory.TrustTool: 2, memory.TrustAssistant: 3, memory.TrustUser: 4,
}

// close makes the open chunk final.
func (c *Chunker) close() memory.Chunk {
	d := c.open
	c.open = nil
	ch := memory.Chunk{
		V: memory.Version, Type: memory.TypeChunk, Level: memory.LevelNone, I: c.next,
		Policy: memory.ChunkPolicy, Roles: map[string]int{}, Heading: d.heading,
		Split: d.split, Continues: d.continues, Abandoned: true, Derived: true,
	}
	c.next++
	var text strings.Builder
	for i, b := range d.blocks {
		at := text.Len()
		text.WriteString(b.text)
		t := b.turn
		t.Start += at
		t.End += at
		t.Pieces = append([]memory.ChunkPiece(nil), t.Pieces...)
		for k := range t.Pieces {
			p := &t.Pieces[k]
			p.C0 += at
			p.C1 += at
			p.Seals = append([]memory.Seal(nil), p.Seals...)
			for s := range p.Seals {
				p.Seals[s].C0 += at
				p.Seals[s].C1 += at
			}
		}
		if i == 0 {
			ch.Trust, ch.Start, ch.End = t.Trust, b.start, b.end
		}
		if trustRank[t.Trust] < trustRank[ch.Trust] {
			ch.Trust = t.Trust
		}
		ch.Start, ch.End = min(ch.Start, b.start), max(ch.End, b.end)
		ch.Roles[string(t.Role)]++
		ch.Abandoned = ch.Abandoned && t.Abandoned
		ch.Derived = ch.Derived && t.Derived
		ch.Turns = append(ch.Turns, t)
	}
	ch.Text = strings.TrimSuffix(text.String(), "\n")
	ch.SHA256 = memory.SumString(ch.Text)
	ch.SizeBytes = len(ch.Text)
	ch.Tokens = c.opt.Count(ch.Text)
	return ch
}

// block renders items of a turn. part is the part's number from 1, or 0 when
// the turn stands whole.
func (c *Chunker) block(v *view, items []item, part int) block {
	t := v.t
	var text strings.Builder
	text.WriteString(c.header(t, part))
	b := block{turn: memory.ChunkTurn{
		ID: t.ID, Session: t.Session, Role: t.Role, Kind: t.Kind, Trust: t.Trust,
		TimeQuality: t.TimeQuality, TimeRaw: t.TimeRaw,
		Abandoned: t.Abandoned, Derived: t.Derived, Start: text.Len(),
	}}
	if t.Tool != nil {
		b.turn.Tool, b.turn.IsError = toolName(t.Tool.Name), t.Tool.IsError
	}
	if !t.Time.IsZero() {
		utc := t.Time.UTC()
		b.turn.Time = &utc
	}
	for _, it := range items {
		at := text.Len()
		if it.lit != "" {
			text.WriteString(it.lit)
			continue
		}
		text.WriteString(v.red[it.from:it.to])
		b.turn.Pieces = append(b.turn.Pieces, v.pieces(it.from, it.to, at)...)
	}
	b.turn.End = text.Len()
	text.WriteString("\n\n")
	if b.turn.Start == b.turn.End {
		b.text = strings.TrimSuffix(text.String(), "\n")
	} else {
		b.text = text.String()
	}
	b.tokens = c.opt.Count(b.text)
	b.start, b.end = t.From, t.To
	for i, p := range b.turn.Pieces {
		if i == 0 {
			b.start, b.end = p.O0, p.O1
		}
		b.start, b.end = min(b.start, p.O0), max(b.end, p.O1)
	}
	return b
}

// header is the line before a turn's text.
func (c *Chunker) header(t *memory.Turn, part int) string {
	var h strings.Builder
	h.WriteByte('[')
	switch t.Kind {
	case memory.KindToolCall, memory.KindToolResult:
		h.WriteString(string(t.Kind))
		if t.Tool != nil && t.Tool.Name != "" {
			h.WriteString(" " + toolName(t.Tool.Name))
		}
		if t.Tool != nil && t.Tool.IsError {
			h.WriteString(" error")
		}
	case memory.KindText:
		h.WriteString(string(t.Role))
	default:
		h.WriteString(string(t.Role) + " " + string(t.Kind))
	}
	if t.Abandoned {
		h.WriteString(" abandoned")
	}
	if t.Derived {
		h.WriteString(" recalled")
	}
	if part > 0 {
		h.WriteString(" part " + strconv.Itoa(part))
	}
	if t.Heading != "" {
		heading, _ := c.opt.Redact.Redact(t.Heading)
		h.WriteString(" " + strings.Join(strings.Fields(heading), " "))
	}
	if !t.Time.IsZero() && (t.TimeQuality == memory.TimeExact || t.TimeQuality == memory.TimeHeader) {
		h.WriteString(" " + t.Time.UTC().Format(time.RFC3339))
	}
	h.WriteString("]\n")
	return h.String()
}

// toolName keeps a tool's name to what names are made of: it stands in records
// unredacted.
func toolName(name string) string {
	const most = 64
	ok := func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("_-.:/", r) {
			return r
		}
		return '_'
	}
	if len(name) > most {
		name = name[:most]
	}
	return strings.Map(ok, name)
}
