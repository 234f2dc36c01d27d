// Package labels reads what people, rules and larger models said of chunks:
// whether they hold evidence for a question (brief P18), and says which of
// several opinions counts.
//
// Invariant: a label is an opinion beside the log's decisions. None is ever
// overwritten and no memory follows from one; which counts is decided anew at
// each reading, from the records alone, in any order they are read in.
//
// A label is about a wording, so that a later generation of a stream
// ("decisions@5e0c2f11.2") has the labels of the first, and about bytes
// [start,end) of one chunk's text; 0, 0 is the whole chunk.
//
// The package asks no model and writes nothing.
package labels

import (
	"cmp"
	"context"
	"crypto/sha256"
	"regexp"
	"slices"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Verdict is one opinion, without the text it is about.
type Verdict struct {
	Key        memory.SHA // of the object it stands in
	Kind       string     // memory.LabelHuman, LabelModel or LabelRule
	Model      string     // who, of a model
	Start, End int        // chunk text; 0, 0 for all of it
	Evidence   bool
	Exit       bool
	FormatOK   bool     // false: a model whose answer could not be read; it says nothing
	Confidence *float64 // that it is evidence, [0,1]
	AtNanos    int64    // when, Unix time
}

// Set holds the verdicts of one project.
type Set struct {
	by map[[sha256.Size]byte][]Verdict
	n  int
}

// Read reads a project's labels; keep, which may be nil, says which.
func Read(ctx context.Context, log *eventlog.Log, project string, keep func(*memory.Label) bool) (_ *Set, err error) {
	defer fault.Wrap(&err, "labels of %s", project)
	s := &Set{}
	for key, err := range log.RecordKeys(ctx, project, eventlog.Labels) {
		if err != nil {
			return nil, err
		}
		recs, err := log.Records(ctx, project, eventlog.Labels, key)
		if err != nil {
			return nil, err
		}
		for _, r := range recs {
			l, ok, err := eventlog.AsLabel(r)
			if err != nil {
				return nil, err
			}
			if ok && l.Erased == "" && (keep == nil || keep(l)) {
				s.Add(key, l)
			}
		}
	}
	return s, nil
}

// Add takes one label into the set; key names the object it stands in.
func (s *Set) Add(key memory.SHA, l *memory.Label) {
	if s.by == nil {
		s.by = map[[sha256.Size]byte][]Verdict{}
	}
	at := place(l.Stream, l.Chunk)
	s.by[at] = append(s.by[at], Verdict{
		Key: key, Kind: l.Kind, Model: l.Model, Start: l.Start, End: l.End, Evidence: l.Evidence, Exit: l.Exit,
		FormatOK: l.FormatOK || l.Kind != memory.LabelModel, Confidence: l.Confidence, AtNanos: l.At.UnixNano(),
	})
	s.n++
}

// N is how many labels the set holds.
func (s *Set) N() int { return s.n }

// Of are the verdicts about chunk text [start,end) as an answer to the stream's
// question: those of exactly these bytes, of bytes around them, or of the whole
// chunk; the one that counts first (see Compare).
func (s *Set) Of(stream string, chunk memory.SHA, start, end int) []Verdict {
	var out []Verdict
	for _, v := range s.by[place(stream, chunk)] {
		if v.Start == 0 && v.End == 0 || v.Start <= start && end <= v.End {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, Compare)
	return out
}

// Best is the verdict that counts; false where nothing readable was said.
func (s *Set) Best(stream string, chunk memory.SHA, start, end int) (Verdict, bool) {
	for _, v := range s.Of(stream, chunk, start, end) {
		if v.FormatOK {
			return v, true
		}
	}
	return Verdict{}, false
}

// Compare orders opinions about the same bytes, the one that counts first: a
// person's before a model's before a rule's, then the latest, then by key, so that
// the order is total.
func Compare(a, b Verdict) int {
	return cmp.Or(cmp.Compare(weight(a.Kind), weight(b.Kind)), cmp.Compare(b.AtNanos, a.AtNanos), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start))
}

func weight(kind string) int {
	switch kind {
	case memory.LabelHuman:
		return 0
	case memory.LabelModel:
		return 1
	}
	return 2
}

// generation is the suffix of a stream that decides a wording once more.
var generation = regexp.MustCompile(`(@[0-9a-f]{8})\.[0-9]+$`)

// Wording is the stream that a wording had first: what labels are about.
func Wording(stream string) string { return generation.ReplaceAllString(stream, "$1") }

func place(stream string, chunk memory.SHA) [sha256.Size]byte {
	return sha256.Sum256([]byte(Wording(stream) + "\n" + string(chunk)))
}
