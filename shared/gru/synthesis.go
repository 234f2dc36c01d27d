package gru

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/mneme-ai/mneme/shared/memory"
)

// This file is the loop one level up (brief P7): the chunks are the final memories of
// a project's question streams, in the order of the question file, and the memory is
// the project's synthesis. Each run starts from an empty memory, so that what it comes
// to is a function of its inputs and never of the runs before; its cause is the digest
// of the inputs, so that nothing is asked again while they are the same.
//
//	inputs   decisions: "- Retries stop after 5 attempts. [1a2b3c4d]"     L1, node a
//	         rules:     "- Deploys wait for the migration. [5e6f7a8b]"    L1, node b
//	memory   "- Retries stop after 5 attempts. [1a2b3c4d]
//	          - Deploys wait for the migration. [5e6f7a8b]"               L2, parents a and b

// Lower is one memory that a synthesis reads.
type Lower struct {
	Stream   string
	QueryID  string
	Question string
	Node     memory.SHA // L1
	TextSHA  memory.SHA
	Text     string
	Tokens   int
	Place    memory.Place // newest of what it rests on
	Lines    []LowerLine  // in order
}

// LowerLine is a line of a Lower, with what its stream's evidence says of it; the
// zero values where a model wrote it.
type LowerLine struct {
	Text  string // without list sign and source ids
	Whole string // as it stands, with its line end
	Score float64
	Role  memory.Role
	Place memory.Place
}

// LowerOf is the memory of a question stream as a synthesis reads it; false where the
// stream has none.
func LowerOf(stream, queryID, question string, s *State) (Lower, bool) {
	if s.MemoryNode == "" || strings.TrimSpace(s.MemoryText) == "" {
		return Lower{}, false
	}
	l := Lower{Stream: stream, QueryID: queryID, Question: question, Node: s.MemoryNode, TextSHA: s.MemorySHA, Text: s.MemoryText, Tokens: s.Tokens}
	kept := map[string]*Kept{}
	for _, k := range s.Kept {
		if k.In && k.Text != "" {
			kept[k.Node.Short()] = k
			if k.Place.Compare(l.Place) > 0 {
				l.Place = k.Place
			}
		}
	}
	for _, whole := range memory.Lines(s.MemoryText) {
		line := LowerLine{Text: memory.Fact(whole), Whole: whole + "\n", Place: l.Place}
		for _, id := range memory.SourceIDs(whole) {
			if k := kept[id]; k != nil && strings.Contains(whole, k.Text) {
				line.Score, line.Role, line.Place = k.Score, k.Role, k.Place
			}
		}
		l.Lines = append(l.Lines, line)
	}
	return l, true
}

// InputsRef is the digest of what a synthesis reads: sha256 over the RFC 8785 form of
// the list of node ids. A node id holds the stream and the text's sha256, so that the
// same text in another generation of a stream is another input.
func InputsRef(lower []Lower) string {
	ids := make([]memory.SHA, len(lower))
	for i := range lower {
		ids[i] = lower[i].Node
	}
	b, err := json.Marshal(ids)
	if err != nil {
		panic("gru: inputs: " + err.Error()) // hashes always encode
	}
	return string(memory.Sum(bytes.TrimSpace(b)))
}

// refOf is the digest in a cause's ref, behind which "#<step>" stands where the same
// inputs came back after others.
func refOf(ref string) string {
	digest, _, _ := strings.Cut(ref, "#")
	return digest
}

// Synthesized reports whether the last completed run of the stream read inputs with
// that digest.
func (s *State) Synthesized(ref string) bool { return s.Ended != "" && refOf(s.Ended) == ref }

// Synthesizing reports whether a run over inputs with that digest is open.
func (s *State) Synthesizing(ref string) bool {
	return s.Open != nil && s.Open.Synthesis && refOf(s.Open.Ref) == ref
}

// Chunk is the memory as the loop reads it: a line is a message, so that a small window
// cuts it between two lines. It has no source bytes of its own: nothing in it is picked
// as evidence.
func (l *Lower) Chunk(i int) memory.Chunk {
	c := memory.Chunk{I: i, SHA256: l.TextSHA, Text: l.Text, Tokens: l.Tokens, Trust: memory.TrustAssistant}
	var at *time.Time
	if t := l.Place.Time; !t.IsZero() {
		at = &t
	}
	end := 0
	for line := range strings.Lines(l.Text) {
		c.Turns = append(c.Turns, memory.ChunkTurn{Role: memory.RoleNote, Kind: memory.KindText, Trust: memory.TrustAssistant, Time: at, Start: end, End: end + len(line)})
		end += len(line)
	}
	return c
}

// SynthesisPart is a run's inputs in the place of an admitted part.
func SynthesisPart(lower []Lower) *Part { return &Part{Chunks: len(lower)} }

// BeginSynthesis opens a run over cfg.Lower, from an empty memory. A run over the same
// inputs that is open already, decided by the same, is returned as it is; any other
// open run is left as it stands: what it read is outdated.
func BeginSynthesis(s State, cfg *Config, started time.Time) (State, []Record) {
	ref := InputsRef(cfg.Lower)
	policy, model, _, _, prompt, _ := cfg.names()
	if o := s.Open; o != nil && refOf(o.Ref) == ref && RunID(cfg.Stream, memory.Cause{Kind: memory.CauseSynthesis, Ref: o.Ref}, policy, model, prompt) == o.Run {
		return s, nil
	}
	if s.T > 0 {
		// No run of a stream is begun twice: the same inputs may come back, as when a
		// question is taken out and put in again, and a run may be asked for anew.
		ref += "#" + strconv.Itoa(s.T)
	}
	t := s.T
	s.startOver()
	run := newRun(s, cfg, memory.Cause{Kind: memory.CauseSynthesis, Ref: ref}, started)
	run.T, run.Chunks = t, len(cfg.Lower)
	return s.Apply(run), []Record{run}
}

// startOver empties the memory for a new run.
func (s *State) startOver() {
	s.MemoryText, s.MemorySHA, s.MemoryNode, s.Tokens = "", "", "", 0
	s.Kept, s.Shingles, s.Pending, s.Newest = nil, nil, nil, time.Time{}
}

// EndSynthesis closes the run. Its memory is stated once more before the end, unless
// inSegment says that it stands in the segment at hand: whoever reads the segment of
// the end alone has what the run came to.
func EndSynthesis(s State, cfg *Config, inSegment bool, ended time.Time) (State, []Record) {
	var recs []Record
	if m := s.Open.Memory; m != nil && !inSegment {
		again := *m
		again.T = s.T
		recs = append(recs, &again)
	}
	next, end := End(s.applyAll(recs), cfg, nil, ended)
	return next, append(recs, end...)
}

// sourced gives each line of a synthesis that a model wrote the source ids of the lines
// it was made of, in the place of the id of the whole memory that it read: a sentence
// leads to its own evidence, and keeps its ids when another line of that memory changes.
//
//	memory   "- Retries stop after 5 attempts. [1a2b3c4d]\n- Ada owns the deploy. [5e6f7a8b]"
//	written  "Ada is the one who deploys. [db065a07]"         db065a07: the memory
//	sourced  "Ada is the one who deploys. [5e6f7a8b]"
func (l *Lower) sourced(text string) string {
	whole := SourceID(l.TextSHA)
	if !strings.Contains(text, "["+whole+"]") {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		ids := memory.SourceIDs(line)
		if !slices.Contains(ids, whole) {
			continue
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == whole })
		for _, from := range l.from(memory.Fact(line)) {
			for _, id := range memory.SourceIDs(from.Whole) {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
		if len(ids) > 0 { // nobody knows which line it was made of: the memory stays named
			ids = ids[max(0, len(ids)-maxLineIDs):]
			lines[i] = memory.WithoutSourceIDs(line) + " [" + strings.Join(ids, "] [") + "]"
		}
	}
	return strings.Join(lines, "\n")
}

// madeOf is the share of a sentence's weight that a line must have for the sentence to be
// made of it: a sentence may merge three.
const madeOf = 0.3

// from lists the lines that a sentence was made of: those that hold its words, each
// weighed by how few lines hold it, so that "limit" and "MB" tell no two limits apart and
// "alpha" does.
func (l *Lower) from(fact string) (out []*LowerLine) {
	in := map[string]int{} // lines that hold the word
	bags := make([]map[string]bool, len(l.Lines))
	for i := range l.Lines {
		bags[i] = bag(l.Lines[i].Text)
		for w := range bags[i] {
			in[w]++
		}
	}
	var all float64
	words := bag(fact)
	for w := range words {
		if n := in[w]; n > 0 {
			all += 1 / float64(n)
		}
	}
	for i := range l.Lines {
		var got float64
		for w := range words {
			if bags[i][w] {
				got += 1 / float64(in[w])
			}
		}
		if all > 0 && got/all >= madeOf {
			out = append(out, &l.Lines[i])
		}
	}
	return out
}

// bag is the words and numbers of a text, in lower case.
func bag(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		out[w] = true
	}
	return out
}

// names reports whether a line rests on the memory: its ids name it, or a line of it
// that the sentence was made of; or it stands there word for word.
func (l *Lower) names(ids []string, fact string) bool {
	if slices.Contains(ids, SourceID(l.TextSHA)) || slices.ContainsFunc(l.Lines, func(x LowerLine) bool { return x.Text == fact }) {
		return true
	}
	return len(ids) > 0 && slices.ContainsFunc(l.from(fact), func(x *LowerLine) bool {
		return slices.ContainsFunc(memory.SourceIDs(x.Whole), func(id string) bool { return slices.Contains(ids, id) })
	})
}

// restsOnLower lists the inputs that a synthesis rests on, of those read up to chunk i:
// those that its source ids name, by the memory or by one of its lines, or whose lines
// stand in it word for word; for a line of which none is true, all that were read.
func (cfg *Config) restsOnLower(text string, i int) (parents []memory.SHA, newest memory.Place) {
	read := cfg.Lower[:min(i+1, len(cfg.Lower))]
	rests := make([]bool, len(read))
	for _, line := range memory.Lines(text) {
		ids, fact, found := memory.SourceIDs(line), memory.Fact(line), false
		for j := range read {
			if read[j].names(ids, fact) {
				rests[j], found = true, true
			}
		}
		if !found {
			for j := range rests {
				rests[j] = true
			}
		}
	}
	for j := range read {
		if rests[j] {
			parents = append(parents, read[j].Node)
			if read[j].Place.Compare(newest) > 0 {
				newest = read[j].Place
			}
		}
	}
	return parents, newest
}
