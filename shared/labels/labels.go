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
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Verdict is one opinion, without the text it is about.
type Verdict struct {
	Key           memory.SHA // of the object it stands in
	Kind          string     // memory.LabelHuman, LabelModel or LabelRule
	Model         string     // who, of a model
	Adapter       string
	PromptVersion string
	Rule          string // which, of a rule
	By            string // who, of a person
	// Memory says that a model was shown a memory beside the chunk: what it says is
	// whether it would have updated that memory, which depends on what that held.
	Memory     bool
	Start, End int // chunk text; 0, 0 for all of it
	Evidence   bool
	Exit       bool
	FormatOK   bool     // false: a model whose answer could not be read; it says nothing
	Confidence *float64 // that it is evidence, [0,1]
	AtNanos    int64    // when, Unix time
}

// Set holds the verdicts of one project.
type Set struct {
	by   map[[sha256.Size]byte][]Verdict
	text map[string]string // one copy of each name
	n    int
}

// readAhead is how many objects are read side by side: people's labels are one
// object each, and a store's answer takes longer than its bytes.
const (
	readAhead  = 8
	readWindow = 512
)

// Each gives a project's labels that stand, one after the other in the order of
// their objects' keys, whatever order the store answers in.
func Each(ctx context.Context, log *eventlog.Log, project string, do func(key memory.SHA, l *memory.Label) error) (err error) {
	defer fault.Wrap(&err, "labels of %s", project)
	keys := make([]memory.SHA, 0, readWindow)
	for key, err := range log.RecordKeys(ctx, project, eventlog.Labels) {
		if err != nil {
			return err
		}
		if keys = append(keys, key); len(keys) == readWindow {
			if err := window(ctx, log, project, keys, do); err != nil {
				return err
			}
			keys = keys[:0]
		}
	}
	return window(ctx, log, project, keys, do)
}

func window(ctx context.Context, log *eventlog.Log, project string, keys []memory.SHA, do func(memory.SHA, *memory.Label) error) error {
	recs := make([][]eventlog.Record, len(keys))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readAhead)
	for i, key := range keys {
		g.Go(func() (err error) {
			recs[i], err = log.Records(ctx, project, eventlog.Labels, key)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, key := range keys {
		for _, r := range recs[i] {
			l, ok, err := eventlog.AsLabel(r)
			if err != nil {
				return err
			}
			if ok && l.Erased == "" {
				if err := do(key, l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// Read reads a project's labels; keep, which may be nil, says which.
func Read(ctx context.Context, log *eventlog.Log, project string, keep func(*memory.Label) bool) (*Set, error) {
	s := &Set{}
	err := Each(ctx, log, project, func(key memory.SHA, l *memory.Label) error {
		if keep == nil || keep(l) {
			s.Add(key, l)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Add takes one label into the set; key names the object it stands in.
func (s *Set) Add(key memory.SHA, l *memory.Label) {
	if s.by == nil {
		s.by, s.text = map[[sha256.Size]byte][]Verdict{}, map[string]string{}
	}
	at := place(l.Stream, l.Chunk)
	v := VerdictOf(key, l)
	for _, p := range []*string{&v.Kind, &v.Model, &v.Adapter, &v.PromptVersion, &v.Rule, &v.By} {
		if one, ok := s.text[*p]; ok {
			*p = one
		} else {
			s.text[*p] = *p
		}
	}
	s.by[at] = append(s.by[at], v)
	s.n++
}

// VerdictOf is the opinion of one label; key names the object it stands in.
func VerdictOf(key memory.SHA, l *memory.Label) Verdict {
	return Verdict{
		Key: key, Kind: l.Kind, Model: l.Model, Adapter: l.Adapter, PromptVersion: l.PromptVersion, Rule: l.Rule, By: l.By,
		Memory: l.Kind == memory.LabelModel && l.Basis != memory.BasisChunk,
		Start:  l.Start, End: l.End, Evidence: l.Evidence, Exit: l.Exit,
		FormatOK: l.FormatOK || l.Kind != memory.LabelModel, Confidence: l.Confidence, AtNanos: l.At.UnixNano(),
	}
}

// N is how many labels the set holds.
func (s *Set) N() int { return s.n }

// Of are the verdicts about chunk text [start,end) as an answer to the stream's
// question: those of exactly these bytes, of bytes around them, or of the whole
// chunk; the one that counts first (see Compare). 0, 0 asks about the whole chunk.
func (s *Set) Of(stream string, chunk memory.SHA, start, end int) []Verdict {
	var out []Verdict
	for _, v := range s.by[place(stream, chunk)] {
		if v.covers(start, end) {
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

// covers reports whether the verdict is about all of chunk text [start,end).
func (v *Verdict) covers(start, end int) bool {
	if v.Start == 0 && v.End == 0 {
		return true
	}
	return (start != 0 || end != 0) && v.Start <= start && end <= v.End
}

// Compare orders opinions about the same bytes, the one that counts first: a
// person's, a model's that saw the chunk alone, a model's that saw a memory, a
// rule's; then the latest, then by key, so that the order is total.
func Compare(a, b Verdict) int {
	return cmp.Or(cmp.Compare(a.weight(), b.weight()), cmp.Compare(b.AtNanos, a.AtNanos), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
}

func (v *Verdict) weight() int {
	switch {
	case v.Kind == memory.LabelHuman:
		return 0
	case v.Kind == memory.LabelModel && !v.Memory:
		return 1
	case v.Kind == memory.LabelModel:
		return 2
	}
	return 3
}

// generation is the suffix of a stream that decides a wording once more.
var generation = lazy.MustCompile(`(@[0-9a-f]{8})\.[0-9]+$`)

// Wording is the stream that a wording had first: what labels are about.
func Wording(stream string) string { return generation.ReplaceAllString(stream, "$1") }

func place(stream string, chunk memory.SHA) [sha256.Size]byte {
	return sha256.Sum256([]byte(Wording(stream) + "\n" + string(chunk)))
}
