package export

import (
	"context"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// text is a memory's text, or that it is not known any more.
type text struct {
	s    string
	sha  memory.SHA // of s; "" for none
	gone bool
}

// turn is one gate record of a trajectory with the memory around it.
type turn struct {
	g             *memory.Gate
	before, after text
}

// trajectory is all turns over one part, or over the steps that a run asked again.
type trajectory struct {
	run    *memory.Run // that ends it; for a part the last of those that went on with it
	runs   map[memory.SHA]bool
	ended  time.Time
	turns  []turn
	shown  map[memory.SHA]text // memory texts by sha, for gates that were shown a frozen one
	whole  bool                // its beginning was read
	linked bool                // its last run was left to another
}

func (t *trajectory) regate() bool { return t.run.Cause.Kind == memory.CauseRegate }

// walker folds a stream's records into trajectories.
type walker struct {
	mem      text
	cur      *trajectory
	aside    map[memory.SHA]bool // runs of tombstones: they decide nothing
	restated int                 // gate records of such runs
}

// take folds one record; it returns the trajectory that the record ends.
func (w *walker) take(r eventlog.Record) *trajectory {
	switch r := r.(type) {
	case *memory.Run:
		if r.Cause.Kind == memory.CauseTombstone {
			if w.aside == nil {
				w.aside = map[memory.SHA]bool{}
			}
			w.aside[r.Run] = true
			return nil
		}
		if c := w.cur; c != nil && c.linked && r.Source == c.run.Source && strings.Contains(r.Cause.Ref, "#") {
			c.run, c.linked = r, false
			c.runs[r.Run] = true
			return nil
		}
		w.cur = &trajectory{run: r, runs: map[memory.SHA]bool{r.Run: true}, shown: map[memory.SHA]text{}, whole: true}
		if !strings.Contains(r.Cause.Ref, "#") {
			return nil
		}
		w.cur.whole = false // it goes on with a part whose beginning was not read
	case *memory.Gate:
		switch c := w.cur; {
		case w.aside[r.Run]:
			w.restated++
		case c != nil && c.runs[r.Run]:
			c.note(r.MemoryBeforeSHA, w.mem)
			c.turns = append(c.turns, turn{g: r, before: w.mem, after: w.mem})
		}
	case *memory.Memory:
		w.mem = text{r.Text, r.TextSHA, r.Erased != ""}
		if c := w.cur; c != nil && c.runs[r.Run] {
			c.note(r.TextSHA, w.mem)
			if n := len(c.turns) - 1; n >= 0 && c.turns[n].g.T == r.T {
				c.turns[n].after = w.mem
			}
		}
	case *memory.RunEnd:
		c := w.cur
		if c == nil || !c.runs[r.Run] {
			return nil
		}
		if r.Continued {
			c.linked = true
			return nil
		}
		w.cur = nil
		c.ended = r.Ended
		return c
	}
	return nil
}

func (t *trajectory) note(sha memory.SHA, m text) {
	if sha != "" {
		t.shown[sha] = m
	}
}

// memoryOf is the memory that a turn's gate was shown.
func (t *trajectory) memoryOf(u *turn) text {
	switch f := u.g.FrozenSHA; {
	case f == "":
	case f == emptySHA:
		return text{}
	default:
		m, ok := t.shown[f]
		if !ok {
			return text{gone: true}
		}
		return m
	}
	if u.g.MemoryBeforeSHA != u.before.sha {
		return text{gone: true} // of an erased one that was stated anew, say
	}
	return u.before
}

var emptySHA = memory.SumString("")

// trajectories gives the stream's trajectories that ended in [since, until), in order.
// open counts the gates of the one that has not ended; counts are of the same range only
// as far as a gate has a time.
func (e *Exporter) trajectories(ctx context.Context, project, stream string, head eventlog.Head, o *Options, do func(*trajectory) error) (open, restated int, err error) {
	defer fault.Wrap(&err, "trajectories of %s/%s", project, stream)
	after, err := e.begin(ctx, project, stream, head, o.Since)
	if err != nil {
		return 0, 0, err
	}
	var w walker
	for seg, err := range e.cfg.Log.Segments(ctx, project, stream, after) {
		if err != nil {
			return 0, 0, err
		}
		if seg.Header.Seq > head.Seq {
			break
		}
		for _, r := range seg.Records {
			t := w.take(r)
			if t == nil || !t.whole || !o.holds(t.ended) {
				continue
			}
			if err := do(t); err != nil {
				return 0, 0, err
			}
		}
	}
	if w.cur != nil {
		open = len(w.cur.turns)
	}
	return open, w.restated, nil
}

// begin is the segment after which a walk begins that must see every trajectory which
// ended at since or later, and the memory as it was before each. It walks back from the
// head to the end of a part before since, and from there to a memory: a nightly export
// reads some of yesterday's segments and not the whole log.
func (e *Exporter) begin(ctx context.Context, project, stream string, head eventlog.Head, since time.Time) (int64, error) {
	if since.IsZero() {
		return 0, nil
	}
	past := false
	for seq := head.Seq; seq > 0; seq-- {
		seg, err := e.cfg.Log.Segment(ctx, project, stream, seq)
		if err != nil {
			return 0, err
		}
		if past && remembers(seg.Records) {
			return seq - 1, nil
		}
		for _, r := range seg.Records {
			if end, ok := r.(*memory.RunEnd); ok && end.Admit > 0 && !end.Continued && end.Ended.Before(since) {
				past = true
			}
		}
	}
	return 0, nil
}

func remembers(rs []eventlog.Record) bool {
	for _, r := range rs {
		if _, ok := r.(*memory.Memory); ok {
			return true
		}
	}
	return false
}

// settledCodes are of steps about which nothing was asked: there was nothing to show.
var settledCodes = map[string]bool{"empty": true, "derived": true}

// nothingNew is of a step at which the built-in policy picked what helps and left its gate
// closed, as the memory holds it. The prompt asks whether the section holds such facts, so
// that neither answer is what the gate meant and the question's own at once.
const nothingNew = "nothing_new"

// refusedCodes are of replies that could be read and were refused for what they said.
var refusedCodes = map[string]bool{gru.ReasonForgets: true, gru.ReasonLeak: true}

// rollout is the trajectory as rewards see it.
func (e *Exporter) rollout(ctx context.Context, project, stream string, t *trajectory, said *opinions) (Rollout, error) {
	r := Rollout{Steps: make([]Step, len(t.turns))}
	for i := range t.turns {
		g := t.turns[i].g
		s := Step{
			Place: Place{g.I, g.Start}, Open: gru.Opened(g), Exit: g.Exit, Cut: g.TruncatedByServer,
			Decided: g.FormatOK && !g.Pending && !settledCodes[g.ReasonCode],
			Parsed:  g.FormatOK || refusedCodes[g.ReasonCode],
		}
		if s.Evidence = said.evidence(stream, g.Chunk, g.Start, g.End); s.Evidence == Unknown && settledCodes[g.ReasonCode] {
			s.Evidence = HasNot
		}
		r.Steps[i] = s
	}
	n := len(t.turns)
	if n == 0 || t.regate() || !t.turns[n-1].g.ExitActed {
		return r, nil
	}
	last := t.turns[n-1].g
	if t.run.Source == "" { // a synthesis: what it did not read stands nowhere
		if last.I+1 < last.TotalT {
			r.Unread = []Evidence{Unknown}
		}
		return r, nil
	}
	_, chunks, err := e.cfg.Log.Part(ctx, project, t.run.Source)
	if fault.Is(err, fault.NotFound) {
		r.Unread = []Evidence{Unknown}
		return r, nil
	}
	if err != nil {
		return r, err
	}
	for i := last.I; i < len(chunks); i++ {
		c, from := &chunks[i], 0
		if i == last.I {
			if !last.More {
				continue
			}
			from = last.End
		}
		ev := said.evidence(stream, c.SHA256, from, c.SizeBytes)
		if ev == Unknown && c.Derived {
			ev = HasNot
		}
		r.Unread = append(r.Unread, ev)
	}
	return r, nil
}
