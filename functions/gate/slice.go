package gate

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/replay"
)

// paidFlush is how much of a model's work a kill may lose: its answers are paid for,
// and an append costs some milliseconds.
const paidFlush = 2 * time.Second

// A segment is appended when it holds this many records or its slice or the
// admit stream ends: one fsync for many parts of a back-fill, and far under
// the size at which a reader would have to stream it.
const segmentRecords = 512

// slice folds parts until the admit stream or the time ends. It returns the
// stream's new head, zero when nothing was appended, and errSlice when there
// is more to do.
func (f *Function) slice(ctx context.Context, project string, s catalog.Stream, deadline time.Time) (_ eventlog.Head, err error) {
	scrub, err := f.scrubbed(ctx, project)
	if err != nil {
		return eventlog.Head{}, err
	}
	w := &writer{f: f, scrub: scrub, project: project, stream: s, ledger: f.purses.Of(project)}
	defer func() { err = errors.Join(err, w.ledger.Close(context.WithoutCancel(ctx))) }()
	if w.cursor, err = f.cursor(ctx, scrub, project, s.Name); err != nil {
		return eventlog.Head{}, err
	}
	w.next = w.cursor.State
	cfg := &gru.Config{
		Tenant: f.cfg.Tenant, Project: project, Stream: s.Name, QueryID: s.QueryID, Question: s.Question,
		Level: memory.L1, BudgetTokens: s.BudgetTokens, ExitGate: s.ExitGate,
		Count: f.cfg.Count, Redact: f.cfg.Redact, Policy: f.cfg.Policy,
	}
	after := w.next.Admit
	if s.Only != 0 {
		after = max(after, s.Only-1)
	}
	over := false
	if w.next.Open != nil && w.next.Open.Regate { // it was interrupted: parts wait for its end
		done, err := f.again(ctx, w, cfg, deadline)
		if err != nil {
			return f.flushed(ctx, w, err)
		}
		over = !done
	}
	for line, err := range f.admits(ctx, project, after) {
		if err != nil {
			return eventlog.Head{}, err
		}
		if over || s.Only != 0 && line.Seq != s.Only {
			break
		}
		if over = w.moved && f.cfg.Now().After(deadline); over {
			break
		}
		done, err := f.fold(ctx, w, cfg, line, deadline)
		if err != nil {
			return f.flushed(ctx, w, err)
		}
		if over = !done; over {
			break
		}
	}
	if !over {
		done, err := f.again(ctx, w, cfg, deadline)
		if err != nil {
			return f.flushed(ctx, w, err)
		}
		over = !done
	}
	if err := w.flush(ctx); err != nil {
		return eventlog.Head{}, err
	}
	if over {
		return w.head, errSlice
	}
	return w.head, nil
}

// flushTime bounds the append of a slice that was cut off: one object of a store.
const flushTime = 20 * time.Second

// flushed appends what was decided before err ended the slice: where a model
// decides, each decision was paid for.
func (f *Function) flushed(ctx context.Context, w *writer, err error) (eventlog.Head, error) {
	if w.models == nil {
		return eventlog.Head{}, err
	}
	// The event's time may be what ended it: what was paid for is kept all the same.
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	if e := w.flush(keep); e != nil {
		return eventlog.Head{}, errors.Join(e, err)
	}
	return w.head, f.stopped(ctx, w.project, w.stream.Name, w.models, err)
}

// scrubbed is the project's scrub state, under which texts are cached. One that
// was not seen before lets go of all that is held under others.
func (f *Function) scrubbed(ctx context.Context, project string) (etag string, err error) {
	if etag, err = f.cfg.Log.ScrubState(ctx, project); err != nil {
		return "", err
	}
	if old, ok := f.scrubs.Swap(project, etag); ok && old != etag || !ok && etag != "" {
		f.cursors.Purge()
		f.parts.Purge()
		f.blobs.Purge()
		f.answered.Purge()
	}
	return etag, nil
}

// drop forgets a stream's cursor.
func (f *Function) drop(name string) {
	for _, k := range f.cursors.Keys() {
		if k.name == name {
			f.cursors.Remove(k)
		}
	}
}

// admits is the log's admit lines after a number, each read from the store once
// for all of a project's streams.
func (f *Function) admits(ctx context.Context, project string, after int64) iter.Seq2[memory.Admit, error] {
	return func(yield func(memory.Admit, error) bool) {
		for {
			line, ok := f.lines.Get(lineKey{project, after + 1})
			if !ok {
				break
			}
			if !yield(line, nil) {
				return
			}
			after++
		}
		for line, err := range f.cfg.Log.Admits(ctx, project, after) {
			if err == nil {
				f.lines.Add(lineKey{project, line.Seq}, line)
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

// lineKey names one admit line.
type lineKey struct {
	project string
	seq     int64
}

// fold runs the loop over one part; false when the time was over before its end.
func (f *Function) fold(ctx context.Context, w *writer, cfg *gru.Config, line memory.Admit, deadline time.Time) (bool, error) {
	m, err := w.ready(ctx, cfg)
	if err != nil {
		return false, err
	}
	p, err := f.part(ctx, w.scrub, w.project, line.Source)
	if err != nil {
		return false, err
	}
	gp := &gru.Part{Admit: line, Source: p.source, Chunks: len(p.chunks)}
	if err := w.take(ctx, func(s gru.State) (gru.State, []gru.Record) { return gru.Begin(s, cfg, gp, f.cfg.Now()) }); err != nil {
		return false, err
	}
	for !w.next.Done(gp) {
		if err := ctx.Err(); err != nil {
			return false, fault.As(fault.Unavailable, err)
		}
		if w.moved && len(w.ahead) == 0 && f.cfg.Now().After(deadline) {
			return false, nil
		}
		if m != nil {
			read, err := f.chunk(ctx, w, cfg, m, p)
			if err == nil {
				err = f.decide(ctx, w, cfg, gp, m, read)
			}
			if err == nil && f.cfg.Now().Sub(w.begun) >= paidFlush {
				err = w.flush(ctx)
			}
			if err != nil {
				return false, err
			}
			continue
		}
		in, err := f.input(ctx, w.scrub, w.project, p, w.next.Open.Next)
		if err != nil {
			return false, err
		}
		if err := w.take(ctx, func(s gru.State) (gru.State, []gru.Record) {
			start := time.Now()
			f.calls.Add(1)
			s, recs := gru.StepChunk(s, cfg, gp, in)
			setLatency(recs, time.Since(start))
			return s, recs
		}); err != nil {
			return false, err
		}
	}
	return true, w.take(ctx, func(s gru.State) (gru.State, []gru.Record) { return gru.End(s, cfg, gp, f.cfg.Now()) })
}

// setLatency notes how long the step took: only the shell has a clock.
func setLatency(recs []gru.Record, d time.Duration) {
	for _, r := range recs {
		if g, ok := r.(*memory.Gate); ok {
			g.LatencyMS = float64(d.Microseconds()) / 1000
		}
	}
}

// input loads chunk i, and what the assistant last said before it.
func (f *Function) input(ctx context.Context, scrub, project string, p part, i int) (gru.ChunkInput, error) {
	in := gru.ChunkInput{Chunk: p.chunks[i]}
	var err error
	if in.Chunk.Text, err = f.blob(ctx, scrub, project, in.Chunk.SHA256); err != nil {
		return in, err
	}
	if i == 0 || !in.Chunk.Continues {
		return in, nil
	}
	prev := &p.chunks[i-1]
	for ti := len(prev.Turns) - 1; ti >= 0; ti-- {
		t := &prev.Turns[ti]
		if t.Role != memory.RoleAssistant || t.Kind != memory.KindText {
			continue
		}
		text, err := f.blob(ctx, scrub, project, prev.SHA256)
		if err != nil {
			return in, err
		}
		if t.Start < 0 || t.End > len(text) || t.Start > t.End {
			return in, fault.New(fault.Corrupt, "chunk %s: turn %d is outside the text", prev.SHA256.Short(), ti)
		}
		in.Context = text[t.Start:t.End]
		break
	}
	return in, nil
}

func (f *Function) part(ctx context.Context, scrub, project string, key memory.SHA) (part, error) {
	held := heldKey{scrub, project + "/" + string(key)}
	if p, ok := f.parts.Get(held); ok {
		return p, nil
	}
	src, chunks, err := f.cfg.Log.Part(ctx, project, key)
	if err != nil {
		return part{}, err
	}
	p := part{src, chunks}
	f.parts.Add(held, p)
	return p, nil
}

func (f *Function) blob(ctx context.Context, scrub, project string, sha memory.SHA) (string, error) {
	held := heldKey{scrub, project + "/" + string(sha)}
	if b, ok := f.blobs.Get(held); ok {
		return b, nil
	}
	b, err := f.cfg.Log.Blob(ctx, project, sha)
	if err != nil {
		return "", err
	}
	f.blobs.Add(held, string(b))
	return string(b), nil
}

// writer gathers records and appends them as segments. next runs ahead of
// cursor by the records that are not appended yet.
type writer struct {
	f       *Function
	scrub   string // the scrub state under which everything was read
	project string
	stream  catalog.Stream
	ledger  *cost.Ledger
	models  *Models // that decide; nil: the policy, or nothing was decided yet
	looked  bool
	begun   time.Time      // when the first of recs came
	ahead   map[int]*ahead // by chunk of the part at hand
	cursor  replay.Cursor
	next    gru.State
	recs    []eventlog.Record
	head    eventlog.Head // of the last append
	// moved is set by the first step: a slice whose time is over before it has
	// begun, as after a long catch-up, would else continue for ever.
	moved bool
}

// ready puts into cfg what decides, once. It is called when there is something to
// decide: a look at a model is a call of it.
func (w *writer) ready(ctx context.Context, cfg *gru.Config) (*Models, error) {
	if w.looked {
		return w.models, nil
	}
	m, err := w.f.decides(ctx, w.project, w.stream)
	if err != nil {
		return nil, err
	}
	if m != nil {
		cfg.Policy, cfg.Model = nil, &m.Model
		if err := cfg.Check(); err != nil {
			return nil, err
		}
	}
	w.models, w.looked = m, true
	return m, nil
}

func (w *writer) take(ctx context.Context, step func(gru.State) (gru.State, []gru.Record)) error {
	s, recs := step(w.next)
	w.moved = w.moved || s.T > w.next.T || s.Admit > w.next.Admit
	w.next = s
	if len(w.recs) == 0 {
		w.begun = w.f.cfg.Now()
	}
	for _, r := range recs {
		w.recs = append(w.recs, r.(eventlog.Record))
	}
	if len(w.recs) >= segmentRecords {
		return w.flush(ctx)
	}
	return nil
}

func (w *writer) flush(ctx context.Context) error {
	if len(w.recs) == 0 {
		return nil
	}
	// A slice that outlived its lease may hold the words of what was erased meanwhile.
	now, err := w.f.cfg.Log.ScrubState(ctx, w.project)
	if err != nil {
		return err
	}
	if now != w.scrub {
		return fault.New(fault.Conflict, "texts were erased since they were read")
	}
	head, err := w.f.cfg.Log.Append(ctx, w.project, w.stream.Name, w.cursor.Head, w.recs)
	if err != nil {
		return err
	}
	w.head, w.cursor.Head, w.cursor.State, w.recs = head, head, w.next, nil
	// What Save notes belongs to the cursor that is kept: without it every
	// further append would write the whole state again.
	err = w.cursor.Save(ctx, w.f.cfg.Log, w.project, w.stream.Name)
	w.f.cursors.Add(heldKey{w.scrub, w.project + "/" + w.stream.Name}, w.cursor)
	return err
}
