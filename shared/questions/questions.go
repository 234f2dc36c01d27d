// Package questions holds a project's standing questions and the rule that
// finds a project's name.
//
// A question file is YAML, one a project, kept in the bucket at
// config/<tenant>/<project>/questions.yaml and edited by people:
//
//	project: shop
//	sources: [claude-code, pi]        # optional; empty means every source
//	export: false                     # optional, true by default: whether decisions may be exported for training
//	queries:
//	  - id: decisions
//	    question: What was decided, and why?
//	  - id: open
//	    question: What is still open?
//	    exit_gate: true               # optional, false by default
//	synthesis:                        # optional
//	  question: What must a newcomer know?
//	  exit_gate: true
//
// Invariants: a file is taken whole or refused with its name and line; nothing
// in it is guessed or ignored, so that a misspelt field can not silently drop a
// question. Marshal gives back people's own bytes until something is changed,
// and then keeps their order and their comments.
//
// The name of a stream follows from a question's id and wording, so a reworded
// question is a new stream (DESIGN section 3). The package counts no tokens,
// reads no store and sends no event.
package questions

import (
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// SynthesisID is the reserved id of a project's synthesis; people can not use
// it, as an id never begins with "_".
const SynthesisID = memory.SynthesisID

// Limits of a question file. They bound what one upload of a file can cost:
// every question is a stream that reads every chunk of the project.
const (
	MaxFileBytes     = 256 << 10 // 64 questions of 1,024 tokens at about 4 bytes
	MaxQueries       = 64
	MaxQuestionBytes = 8 << 10 // 1,024 tokens of up to 8 bytes; the token limit itself is the gate's
	MaxSources       = 64
	MaxSourceBytes   = 1024
)

// Set is the standing questions of one project, in people's order.
type Set struct {
	Project   string
	Sources   []string // formats or path patterns the project reads; empty: all
	Queries   []Query
	Synthesis *Query // nil: the project has no synthesis
	NoExport  bool   // export: false: no decision of the project leaves for training

	src []byte // the file as it was read, for Marshal
}

// Clone is a set that shares nothing that a caller may change.
func (s Set) Clone() Set {
	s.Sources, s.Queries = slices.Clone(s.Sources), slices.Clone(s.Queries)
	if s.Synthesis != nil {
		q := *s.Synthesis
		s.Synthesis = &q
	}
	return s
}

// Query is one standing question.
type Query struct {
	ID       string
	Question string // trimmed; 1 to MaxQuestionBytes
	ExitGate bool   // whether the exit gate is acted on
}

// Stream is the question's stream: "<id>@<sha8 of the wording>".
func (q Query) Stream() string { return memory.StreamName(q.ID, q.Question) }

// Equal reports whether both sets ask the same of the same project, in the same
// order. Comments and layout do not count.
func (s Set) Equal(o Set) bool {
	if (s.Synthesis == nil) != (o.Synthesis == nil) {
		return false
	}
	return s.Project == o.Project && s.NoExport == o.NoExport && slices.Equal(s.Sources, o.Sources) && slices.Equal(s.Queries, o.Queries) &&
		(s.Synthesis == nil || *s.Synthesis == *o.Synthesis)
}

// Get finds the question with the given id.
func (s Set) Get(id string) (Query, bool) {
	i := s.index(id)
	if i < 0 {
		return Query{}, false
	}
	return s.Queries[i], true
}

func (s Set) index(id string) int {
	return slices.IndexFunc(s.Queries, func(q Query) bool { return q.ID == id })
}

// Add appends a question, or gives the question with the same id its new
// wording in place. It does not change s. An invalid question is
// fault.Invalid; the same question again is no change.
func (s Set) Add(q Query) (Set, error) {
	q.Question = strings.TrimSpace(q.Question)
	if err := checkQuery(q); err != nil {
		return s, err
	}
	s.Queries = slices.Clone(s.Queries)
	if i := s.index(q.ID); i >= 0 {
		s.Queries[i] = q
		return s, nil
	}
	if len(s.Queries) == MaxQueries {
		return s, fault.At(fault.Invalid, "question "+q.ID, "remove one with `mem question rm`", "a project has at most %d questions", MaxQueries)
	}
	s.Queries = append(s.Queries, q)
	return s, nil
}

// Remove takes the question with the given id out of the set; ok is false when
// there is none. It does not change s. What the log holds of it stays.
func (s Set) Remove(id string) (_ Set, ok bool) {
	i := s.index(id)
	if i < 0 {
		return s, false
	}
	s.Queries = slices.Delete(slices.Clone(s.Queries), i, i+1)
	return s, true
}

func checkQuery(q Query) error {
	if !memory.ValidQuestionID(q.ID) {
		return fault.At(fault.Invalid, "id", idHint, "id %q is not valid", q.ID)
	}
	return checkWording(q.Question)
}

const idHint = `use a-z, 0-9, ".", "_" and "-", at most 63 characters, beginning with a letter or digit and not with "adhoc-"`

func checkWording(text string) error {
	switch {
	case text == "":
		return fault.At(fault.Invalid, "question", "say what the memory should answer", "the question has no words")
	case len(text) > MaxQuestionBytes:
		return fault.At(fault.Invalid, "question", "", "the question has %d bytes, at most %d are allowed", len(text), MaxQuestionBytes)
	}
	for _, r := range text {
		if r == '\n' || r == '\t' {
			continue
		}
		if r < 0x20 || r == 0x7f || r == '\uFFFD' {
			return fault.At(fault.Invalid, "question", "", "the question holds the character %U, which no text needs", r)
		}
	}
	return nil
}
