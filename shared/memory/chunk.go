package memory

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// ChunkPolicy is the version of the rule that turns turns into chunk text
// (DESIGN section 6). A new policy applies to new parts.
//
// History: c1 — dialogue cut at 5,000 tokens, notes at 2,000 characters.
const ChunkPolicy = "c1"

// Chunk is one unit the gate looks at, as it stands in a source record
// (`type` chunk). Its text lives in a blob under SHA256.
type Chunk struct {
	V         int            `json:"v"`
	Type      string         `json:"type"` // "chunk"
	Level     Level          `json:"level"`
	I         int            `json:"i"` // place in its part, from 0
	SHA256    SHA            `json:"sha256"`
	SizeBytes int            `json:"size_bytes"`
	Tokens    int            `json:"tokens"` // Qwen2.5
	Policy    string         `json:"chunk_policy"`
	Start     int64          `json:"start"` // source bytes the chunk covers
	End       int64          `json:"end"`
	Trust     Trust          `json:"trust"`    // the lowest trust in it
	Roles     map[string]int `json:"role_mix"` // turns by role
	Heading   string         `json:"heading,omitempty"`
	Split     bool           `json:"split,omitempty"`     // holds a part of a message longer than a chunk
	Continues bool           `json:"continues,omitempty"` // the conversation began in an earlier chunk
	Abandoned bool           `json:"abandoned,omitempty"` // every turn is off the active path
	Derived   bool           `json:"derived,omitempty"`   // every turn is Mneme's own output
	Turns     []ChunkTurn    `json:"turns"`

	Text string `json:"-"` // redacted text; loaded from the blob
}

// ChunkTurn is one turn's place in the chunk text.
type ChunkTurn struct {
	ID          string       `json:"id"`
	Session     string       `json:"session,omitempty"`
	Role        Role         `json:"role"`
	Kind        Kind         `json:"kind"`
	Trust       Trust        `json:"trust"`
	Tool        string       `json:"tool,omitempty"`
	IsError     bool         `json:"is_error,omitempty"`
	Time        *time.Time   `json:"time,omitempty"`     // UTC; nil when unknown
	TimeRaw     string       `json:"time_raw,omitempty"` // as it stood, with its offset
	TimeQuality TimeQuality  `json:"time_quality,omitempty"`
	Start       int          `json:"start"` // of the turn's text in the chunk text, without its header line
	End         int          `json:"end"`
	Abandoned   bool         `json:"abandoned,omitempty"`
	Derived     bool         `json:"derived,omitempty"`
	First       bool         `json:"first,omitempty"` // first turn of the conversation
	Pieces      []ChunkPiece `json:"pieces,omitempty"`
}

// ChunkPiece maps chunk text [C0,C1) to source bytes [O0,O1). Without
// redactions the source bytes of any part follow from the text by Enc. Each
// Seal covers whole lines of the piece that hold a redaction; a span that
// touches one is widened to it, as its bytes cannot be rebuilt.
type ChunkPiece struct {
	C0    int      `json:"c0"`
	C1    int      `json:"c1"`
	O0    int64    `json:"o0"`
	O1    int64    `json:"o1"`
	Enc   Encoding `json:"enc"` // Exceptions are relative to C0 and lie outside seals
	Seals []Seal   `json:"seals,omitempty"`
}

// Seal is a run of chunk text that holds at least one redaction.
type Seal struct {
	C0   int    `json:"c0"` // chunk text
	C1   int    `json:"c1"`
	O0   int64  `json:"o0"` // source bytes
	O1   int64  `json:"o1"`
	HMAC string `json:"hmac"` // HMAC-SHA256 of the source bytes under the tenant key, hex
}

// Span is where a quote stands: in the object's (decompressed) bytes and in
// the redacted chunk text. SHA256 is over the source bytes; a span that holds
// a redaction carries HMAC instead, never a plain hash of a secret's line.
type Span struct {
	Object     string `json:"object"` // bucket/key
	ETag       string `json:"etag"`
	Start      int64  `json:"start"`
	End        int64  `json:"end"`
	Codec      Codec  `json:"codec"`
	SHA256     SHA    `json:"sha256,omitempty"`
	HMAC       string `json:"hmac_sha256,omitempty"`
	Redacted   bool   `json:"redacted,omitempty"`
	Chunk      SHA    `json:"chunk"`
	ChunkStart int    `json:"chunk_start"`
	ChunkEnd   int    `json:"chunk_end"`
}

// SpanOf computes the citation of chunk text [from,to): which object bytes it
// stands for and their hash. It widens the range to whole seals. It fails when
// the range leaves one piece, cuts an escape, or has no source; such evidence
// is refused. object and etag are copied into the span; c.Text must be loaded.
func (c *Chunk) SpanOf(object, etag string, from, to int) (Span, error) {
	if from < 0 || to <= from || to > len(c.Text) {
		return Span{}, fmt.Errorf("span [%d,%d) outside chunk of %d bytes", from, to, len(c.Text))
	}
	for ti := range c.Turns {
		t := &c.Turns[ti]
		if to <= t.Start || from >= t.End {
			continue
		}
		for pi := range t.Pieces {
			p := &t.Pieces[pi]
			if from < p.C0 || to > p.C1 {
				continue
			}
			return p.span(c, object, etag, from, to)
		}
	}
	return Span{}, fmt.Errorf("span [%d,%d) is not inside one cited piece", from, to)
}

func (p *ChunkPiece) span(c *Chunk, object, etag string, from, to int) (Span, error) {
	s := Span{Object: object, ETag: etag, Codec: p.Enc.Codec, Chunk: c.SHA256}
	var hit *Seal
	for i := range p.Seals {
		x := &p.Seals[i]
		if x.C0 < to && x.C1 > from {
			if hit != nil {
				return Span{}, fmt.Errorf("span [%d,%d) touches two redacted passages", from, to)
			}
			hit = x
		}
	}
	if hit != nil {
		if from < hit.C0 || to > hit.C1 {
			return Span{}, fmt.Errorf("span [%d,%d) reaches past the redacted passage [%d,%d)", from, to, hit.C0, hit.C1)
		}
		s.Start, s.End, s.ChunkStart, s.ChunkEnd = hit.O0, hit.O1, hit.C0, hit.C1
		s.Redacted, s.HMAC = true, hit.HMAC
		return s, nil
	}
	start, err := p.Offset(c.Text, from)
	if err != nil {
		return Span{}, err
	}
	raw, err := p.Enc.Append(nil, c.Text[p.C0:p.C1], from-p.C0, to-p.C0)
	if err != nil {
		return Span{}, err
	}
	s.Start = start
	s.End = s.Start + int64(len(raw))
	s.SHA256 = Sum(raw)
	s.ChunkStart, s.ChunkEnd = from, to
	return s, nil
}

// Offset is the source byte at which text offset at of the chunk stands; at is
// in the piece and inside no seal.
func (p *ChunkPiece) Offset(text string, at int) (int64, error) {
	// The bytes before it are counted from the end of the last seal, or from the
	// piece's start.
	baseC, baseO := p.C0, p.O0
	for i := range p.Seals {
		if x := &p.Seals[i]; x.C1 <= at && x.C1 > baseC {
			baseC, baseO = x.C1, x.O1
		}
	}
	before, err := p.Enc.Append(nil, text[p.C0:p.C1], baseC-p.C0, at-p.C0)
	return baseO + int64(len(before)), err
}

// HMAC is the hex HMAC-SHA256 of b under the tenant key.
func HMAC(key, b []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write(b)
	return hex.EncodeToString(m.Sum(nil))
}
