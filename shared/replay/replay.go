// Package replay folds a question stream of the log back into the state that
// the loop had when it wrote the stream.
//
// Invariant: the state is a function of the stream's records alone. The cached
// fold only saves reading; one whose head the log does not hold is not used.
package replay

import (
	"context"
	"iter"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// saveEvery is how many segments past the cached fold make a new one worth
// writing: a cold start then reads at most that many objects a stream.
const saveEvery = 16

// cached is the folded state as it is kept. One of another version is not used: it
// lacks what the fold has learnt to keep.
//
// History: 1 — pending steps. 2 — the cause of the open run. 3 — what was forgotten.
type cached struct {
	Fold  int       `json:"fold"`
	State gru.State `json:"state"`
}

const foldVersion = 3

// Cursor is a folded stream: its state, its head, and how far the cached fold
// in the store reaches.
type Cursor struct {
	State  gru.State
	Head   eventlog.Head
	cached int64
}

// Load folds the stream: the cached fold, then every segment after it.
func Load(ctx context.Context, log *eventlog.Log, project, stream string) (_ Cursor, err error) {
	defer fault.Wrap(&err, "replay %s/%s", project, stream)
	var c Cursor
	var held cached
	head, ok, err := log.FoldCache(ctx, project, stream, &held)
	if err != nil {
		return Cursor{}, err
	}
	if ok && held.Fold == foldVersion {
		c.State, c.Head, c.cached = held.State, head, head.Seq
	}
	return c.Advance(ctx, log, project, stream)
}

// Advance folds the segments that were appended since.
func (c Cursor) Advance(ctx context.Context, log *eventlog.Log, project, stream string) (Cursor, error) {
	for seg, err := range log.Segments(ctx, project, stream, c.Head.Seq) {
		if err != nil {
			return c, err
		}
		c.State = c.State.FoldOn(records(seg.Records))
		c.Head = eventlog.Head{Seq: seg.Header.Seq, Hash: seg.Hash}
	}
	return c, nil
}

// records are a segment's, as the loop takes them.
func records(rs []eventlog.Record) iter.Seq[any] {
	return func(yield func(any) bool) {
		for _, r := range rs {
			if !yield(r) {
				return
			}
		}
	}
}

// Save writes the cached fold when it is far enough behind.
func (c *Cursor) Save(ctx context.Context, log *eventlog.Log, project, stream string) error {
	if c.Head.Seq-c.cached < saveEvery {
		return nil
	}
	if err := log.PutFoldCache(ctx, project, stream, c.Head, cached{foldVersion, c.State}); err != nil {
		return err
	}
	c.cached = c.Head.Seq
	return nil
}

// PartEnd finds the run_end of the part with the given admit seq, walking back
// from the stream's end: recent parts are asked about most. false while the
// part is not done, or when the stream never folds it.
func PartEnd(ctx context.Context, log *eventlog.Log, project, stream string, admit int64) (_ memory.RunEnd, ok bool, err error) {
	defer fault.Wrap(&err, "run end of part %d in %s/%s", admit, project, stream)
	head, err := log.Head(ctx, project, stream)
	if err != nil {
		return memory.RunEnd{}, false, err
	}
	for seq := head.Seq; seq > 0; seq-- {
		seg, err := log.Segment(ctx, project, stream, seq)
		if err != nil {
			return memory.RunEnd{}, false, err
		}
		older := false
		for _, r := range seg.Records {
			e, isEnd := r.(*memory.RunEnd)
			if !isEnd || e.Admit == 0 || e.Continued {
				continue // no part's end: a tombstone's, or of a run that others went on with
			}
			if e.Admit == admit {
				return *e, true, nil
			}
			older = older || e.Admit < admit
		}
		if older {
			return memory.RunEnd{}, false, nil // parts end in admit order
		}
	}
	return memory.RunEnd{}, false, nil
}

// Outcome is what an ended run left.
type Outcome struct {
	Text  string // the memory after its last update; empty where it made none
	Model string // that decided; empty for a policy without one
}

// Updates adds to used the chunks that the ended run kept, and returns what the
// run left. It walks back over the run's own segments.
func Updates(ctx context.Context, log *eventlog.Log, project, stream string, end memory.RunEnd, used map[memory.SHA]bool) (out Outcome, err error) {
	defer fault.Wrap(&err, "updates of run %s", end.Run.Short())
	head, err := log.Head(ctx, project, stream)
	if err != nil {
		return out, err
	}
	for seq := head.Seq; seq > 0; seq-- {
		seg, err := log.Segment(ctx, project, stream, seq)
		if err != nil {
			return out, err
		}
		for i := len(seg.Records) - 1; i >= 0; i-- {
			switch r := seg.Records[i].(type) {
			case *memory.Gate:
				if r.Run == end.Run && r.Update {
					used[r.Chunk] = true
				}
			case *memory.Memory:
				if r.Run == end.Run && out.Text == "" {
					out.Text = r.Text
				}
			case *memory.Run:
				if r.Run == end.Run {
					out.Model = r.Model
					return out, nil
				}
			}
		}
	}
	return out, nil
}
