// Package emitted checks that nothing which Mneme gave out is evidence (DESIGN section
// 1, invariant 7), in two ways:
//
//   - of the log: no evidence stands in a turn that was recognised as derived, and none
//     that no person said is nothing but words of its stream's own memory, by the rule of
//     shared/derived, as the stream stood at that step; nor is any nothing but whole
//     lines of the project's memories before (see recital.go);
//   - of what stands now: every memory, every synthesis, every promoted skill and every
//     draft that could be made, and what the caller adds (pages of the vault), is fed
//     back as a file, as an assistant's message, as a tool's result and, where it carries
//     the marker, as a person's paste, through the readers, the chunker and the policy of
//     each question. What the policy would keep of it is a problem.
//
// Invariant: nothing is written, no model is called, and a problem names records and
// artifacts, never their text.
//
// The check of what stands now is the built-in policy's. Of a question that a model
// decides it says how much the readers do not take out before the model sees it; what
// the model would keep of that is known only when it was asked, and the check of the log
// names it then. A person who types what a memory says is not looked at: a person's word
// is evidence. One who pastes its lines with their source ids is.
package emitted

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/skill"
)

// Kinds of artifacts.
const (
	KindMemory    = "memory"    // of a question, L1
	KindSynthesis = "synthesis" // of the project, L2
	KindSkill     = "skill"     // promoted
	KindDraft     = "draft"     // of a skill, as it would be made now
	KindNote      = "note"      // a page of the vault
)

// Artifact is a text that Mneme gives out.
type Artifact struct {
	Kind string
	Name string // unique in its kind
	Text string
}

// Checker checks one tenant's projects.
type Checker struct {
	Tenant  string
	Log     *eventlog.Log
	Catalog *catalog.Catalog
	Policy  gru.Policy
	Count   func(string) int // Qwen2.5 tokens
	// ByModel reports whether a model decides in a stream; nil: none does anywhere.
	ByModel func(project string, s catalog.Stream) bool
}

// Report is what a check of one project found.
type Report struct {
	Project    string         `json:"project"`
	Statements int            `json:"statements"`         // L0 of the log that were looked at
	Unknown    int            `json:"unknown"`            // of them whose turn stands in no chunk record any more (scrubbed)
	Artifacts  map[string]int `json:"artifacts"`          // by kind
	Fed        int            `json:"fed"`                // artifacts times the forms in which they came back
	Streams    int            `json:"streams"`            // questions that they were fed to, of those that the policy decides
	Derived    int            `json:"derived"`            // chunks that were recognised whole
	Evidence   int            `json:"evidence"`           // statements that would be kept of them
	ByModel    []string       `json:"by_model,omitempty"` // questions that a model decides: nothing was fed to them
	Unmarked   int            `json:"unmarked,omitempty"` // of Fed those of which a line reaches that model
	Problems   []string       `json:"problems"`
	Omitted    int            `json:"omitted,omitempty"` // problems past the first hundred
}

// OK reports whether nothing that was given out is evidence, or would be.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// maxProblems bounds a report: the first of a kind tell what is wrong.
const maxProblems = 100

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) >= maxProblems {
		r.Omitted++
		return
	}
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Project checks one project, and the artifacts that are given beside those that the
// log knows.
func (c *Checker) Project(ctx context.Context, project string, more ...Artifact) (_ Report, err error) {
	defer fault.Wrap(&err, "derived filter of %s", project)
	r := Report{Project: project, Artifacts: map[string]int{}, Problems: []string{}}
	if err := c.logged(ctx, project, &r); err != nil {
		return r, err
	}
	all, err := c.artifacts(ctx, project)
	if err != nil {
		return r, err
	}
	return r, c.feed(ctx, project, append(all, more...), &r)
}

// logged looks at the evidence that the log holds.
func (c *Checker) logged(ctx context.Context, project string, r *Report) error {
	parts := map[int64]memory.SHA{}
	for a, err := range c.Log.Admits(ctx, project, 0) {
		if err != nil {
			return err
		}
		parts[a.Seq] = a.Source
	}
	streams, err := c.Log.Streams(ctx, project)
	if err != nil {
		return err
	}
	// A synthesis comes behind the memories that it read.
	slices.SortStableFunc(streams, func(a, b string) int { return cmp.Compare(above(a), above(b)) })
	given := newGiven()
	for _, stream := range streams {
		s := said{c: c, project: project, stream: stream, parts: parts, report: r, given: given}
		for seg, err := range c.Log.Segments(ctx, project, stream, 0) {
			if err != nil {
				return err
			}
			for _, rec := range seg.Records {
				if err := s.record(ctx, rec); err != nil {
					return err
				}
			}
		}
	}
	given.name(r)
	return nil
}

// above orders streams by the level of their memories.
func above(stream string) int {
	if memory.QueryID(stream) == memory.SynthesisID {
		return 1
	}
	return 0
}

// said follows one stream.
type said struct {
	c       *Checker
	project string
	stream  string
	parts   map[int64]memory.SHA
	report  *Report
	given   *given

	index        derived.Index
	kept, passed int // statements and shingles before step t
	shingles     int
	t            int
	admit        int64 // the newest part that was read

	part   int64 // whose chunks are at hand
	chunks []memory.Chunk
	sha    memory.SHA // whose text is at hand
	text   string
}

func (s *said) record(ctx context.Context, rec eventlog.Record) error {
	switch rec := rec.(type) {
	case *memory.Gate:
		s.t, s.kept, s.passed = rec.T, s.index.Len(), s.shingles
		s.admit = max(s.admit, rec.Admit)
		for _, x := range rec.Shingles {
			s.index.AddShingle(x)
			s.shingles++
		}
	case *memory.Evidence:
		if rec.Erased != "" {
			return nil
		}
		s.report.Statements++
		named := false
		if rec.Restates == nil {
			var err error
			if named, err = s.look(ctx, rec); err != nil {
				return err
			}
		}
		s.given.evidence(s.at(rec), rec, named)
		s.index.Add(rec.Text)
	case *memory.Memory:
		if rec.Erased == "" {
			s.given.memory(rec, s.admit)
		}
	}
	return nil
}

// at says which statement.
func (s *said) at(e *memory.Evidence) string {
	return fmt.Sprintf("%s/%s step %d: evidence %s", s.project, s.stream, s.t, e.Node.Short())
}

// look looks at one statement of step s.t, and reports whether it is a problem.
func (s *said) look(ctx context.Context, e *memory.Evidence) (named bool, err error) {
	turn, err := s.turn(ctx, e)
	if err != nil {
		return false, err
	}
	at := s.at(e)
	switch {
	case turn == nil:
		s.report.Unknown++
		return false, nil
	case turn.Derived:
		s.report.problem("%s stands in a turn that is derived", at)
		return true, nil
	case e.Role == memory.RoleUser:
		return false, nil
	}
	if s.sha != e.Span.Chunk {
		b, err := s.c.Log.Blob(ctx, s.project, e.Span.Chunk)
		if fault.Is(err, fault.NotFound) {
			s.report.Unknown++
			return false, nil
		}
		if err != nil {
			return false, err
		}
		s.sha, s.text = e.Span.Chunk, string(b)
	}
	if turn.End > len(s.text) || e.Span.ChunkEnd > turn.End || e.Span.ChunkStart < turn.Start {
		s.report.Unknown++
		return false, nil
	}
	whole := s.text[turn.Start:turn.End]
	from, to := e.Span.ChunkStart-turn.Start, e.Span.ChunkEnd-turn.Start
	left := []byte(whole)
	for _, p := range s.index.Passages(whole, s.kept, s.passed) {
		if e.Role == memory.RoleNote && !p.Cited {
			continue
		}
		for i := p.From; i < p.To; i++ {
			left[i] = ' '
		}
	}
	if strings.TrimFunc(string(left[from:to]), func(r rune) bool { return !wordy(r) }) == "" {
		s.report.problem("%s, said by %s, is nothing but what the memory gave out", at, e.Role)
		return true, nil
	}
	return false, nil
}

// turn is the turn that a statement stands in; nil where no chunk record of its part
// has that text any more.
func (s *said) turn(ctx context.Context, e *memory.Evidence) (*memory.ChunkTurn, error) {
	if s.part != e.Place.Admit || s.chunks == nil {
		key, ok := s.parts[e.Place.Admit]
		if !ok {
			return nil, nil
		}
		_, chunks, err := s.c.Log.Source(ctx, s.project, key)
		if fault.Is(err, fault.NotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		s.part, s.chunks = e.Place.Admit, chunks
	}
	if e.Place.I < 0 || e.Place.I >= len(s.chunks) || s.chunks[e.Place.I].SHA256 != e.Span.Chunk {
		return nil, nil
	}
	turns := s.chunks[e.Place.I].Turns
	for i := range turns {
		if turns[i].Start <= e.Span.ChunkStart && e.Span.ChunkEnd <= turns[i].End {
			return &turns[i], nil
		}
	}
	return nil, nil
}

// artifacts are what the log knows to be given out, and what could be.
func (c *Checker) artifacts(ctx context.Context, project string) (out []Artifact, err error) {
	reader := skill.NewReader(c.Log, c.Catalog)
	promoted, err := reader.Promoted(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, p := range promoted {
		out = append(out, Artifact{KindSkill, p.Name, p.Text})
	}
	texts, err := reader.Memories(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, m := range texts {
		kind := KindMemory
		if m.Level == memory.L2 {
			kind = KindSynthesis
		}
		out = append(out, Artifact{kind, project + "/" + m.Question, m.Text})
		src, err := reader.Source(ctx, project, m.Question)
		if err == nil {
			var d skill.Doc
			if d, _, err = skill.Draft(src, skill.Options{IncludeToolOutput: true}); err == nil {
				out = append(out, Artifact{KindDraft, d.Name, skill.Render(d)})
				continue
			}
		}
		if !fault.Is(err, fault.NotFound) {
			return nil, err
		}
	}
	return out, nil
}
