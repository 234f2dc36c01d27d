package learn

import (
	"encoding/json"

	"github.com/mneme-ai/mneme/shared/memory"
)

// partBytes is about the size of one part's chunk records. A part is what gate
// holds at once and what project applies in one transaction, and its source
// record must stay well under the log's 64 MiB; at about 13 KiB a chunk it is
// some 1,200 chunks of 5,000 tokens.
const partBytes = 16 << 20

// split cuts an object's chunks into parts. A cut never stands between two
// chunks of one turn: when a delivery dies between two parts, the next one
// knows the admitted turns by their ids, goes on with the first turn that is
// not, and comes to the same chunks. Chunks are counted from 0 in each part.
func split(chunks []memory.Chunk, limit int) [][]memory.Chunk {
	if len(chunks) < 2 {
		return [][]memory.Chunk{chunks}
	}
	var out [][]memory.Chunk
	from, size := 0, 0
	for i := range chunks {
		n := encodedSize(&chunks[i])
		if size > 0 && size+n > limit && !sharesTurn(&chunks[i-1], &chunks[i]) {
			out = append(out, chunks[from:i])
			from, size = i, 0
		}
		size += n
	}
	out = append(out, chunks[from:])
	for _, part := range out[1:] {
		for i := range part {
			part[i].I = i
		}
	}
	return out
}

// encodedSize is the length of a chunk's record.
func encodedSize(c *memory.Chunk) int {
	b, err := json.Marshal(c)
	if err != nil {
		return 0 // the log refuses it by name when it is written
	}
	return len(b)
}

// sharesTurn reports whether b goes on with a turn that a began.
func sharesTurn(a, b *memory.Chunk) bool {
	return len(a.Turns) > 0 && len(b.Turns) > 0 && a.Turns[len(a.Turns)-1].ID == b.Turns[0].ID
}

// pieceOf is the source record of one part of several. What is counted of the
// object as a whole stands with the last one.
func (p *part) pieceOf(src memory.Source, chunks []memory.Chunk, last bool) memory.Source {
	src.Chunks = make([]memory.SHA, len(chunks))
	src.TurnIDs = nil
	seen := map[string]bool{}
	for i := range chunks {
		c := &chunks[i]
		src.Chunks[i] = c.SHA256
		for ti := range c.Turns {
			if id := c.Turns[ti].ID; !seen[id] {
				seen[id] = true
				src.TurnIDs = append(src.TurnIDs, id)
			}
		}
	}
	src.From = chunks[0].Start
	if !last {
		src.To, src.PrefixSHA256, src.Counts = chunks[len(chunks)-1].End, "", memory.Counts{}
	}
	return src
}
