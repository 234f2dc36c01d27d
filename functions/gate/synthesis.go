package gate

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/replay"
	"github.com/mneme-ai/mneme/shared/serve"
)

// This file is the synthesis (brief P7): the loop over the final memories of a
// project's serving question streams. It is due when they are not those that the last
// completed run read, and none of the streams is behind; whoever asks for it when it is
// not due, by event, sweep or clock, costs no call.

// synthesizes reports whether a stream is a synthesis.
func synthesizes(stream string) bool { return memory.QueryID(stream) == memory.SynthesisID }

// due is the synthesis of a project as far as it is folded, and whether a run is
// missing. The question streams must have caught up.
func (f *Function) due(ctx context.Context, project string) (b behindStream, due bool, err error) {
	s, ok, err := f.cfg.Catalog.Synthesis(ctx, project)
	if err != nil || !ok {
		return b, false, err
	}
	scrub, err := f.scrubbed(ctx, project)
	if err != nil {
		return b, false, err
	}
	lower, err := f.lower(ctx, scrub, project)
	if err != nil {
		return b, false, err
	}
	c, err := f.cursor(ctx, scrub, project, s.Name)
	if err != nil {
		return b, false, err
	}
	return behindStream{s, c}, missing(&c.State, lower), nil
}

// missing reports whether no completed run of the stream read these memories last, or
// one over them is open. Where there is none, a run is missing only when an earlier one
// came to something.
func missing(s *gru.State, lower []gru.Lower) bool {
	if len(lower) == 0 && s.Ended == "" {
		return false
	}
	ref := gru.InputsRef(lower)
	return !s.Synthesized(ref) || s.Synthesizing(ref)
}

// lower reads the memories of the project's serving streams, in the order of its
// question file.
func (f *Function) lower(ctx context.Context, scrub, project string) (out []gru.Lower, err error) {
	set, _, err := f.cfg.Catalog.Questions(ctx, project)
	if err != nil {
		return nil, err
	}
	serving, _, err := f.cfg.Catalog.Serving(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, q := range set.Queries {
		name := serving.Serving[q.ID]
		if name == "" {
			name = serving.Of(q).Name
		}
		c, err := f.cursor(ctx, scrub, project, name)
		if err != nil {
			return nil, err
		}
		if l, ok := gru.LowerOf(name, q.ID, q.Question, &c.State); ok {
			out = append(out, l)
		}
	}
	return out, nil
}

// settled reports whether every standing question has folded all that is admitted. A
// stream that this process knows to be there costs no read.
func (f *Function) settled(ctx context.Context, project string) (bool, error) {
	head, err := f.cfg.Log.Head(ctx, project, memory.AdmitStream)
	if err != nil {
		return false, err
	}
	streams, err := f.cfg.Catalog.Streams(ctx, project)
	if err != nil {
		return false, err
	}
	scrub, err := f.scrubbed(ctx, project)
	if err != nil {
		return false, err
	}
	for _, s := range streams {
		if s.Only != 0 {
			continue
		}
		c, ok := f.cursors.Get(heldKey{scrub, project + "/" + s.Name})
		if !ok || c.State.Admit < head.Seq {
			if c, err = f.cursor(ctx, scrub, project, s.Name); err != nil {
				return false, err
			}
		}
		if c.State.Admit >= head.Seq {
			continue
		}
		if refused, err := f.refused(ctx, project, s); err != nil || !refused {
			return false, err
		}
	}
	return true, nil
}

// synthesisOf asks for the project's synthesis where it is due.
func (f *Function) synthesisOf(ctx context.Context, project string) ([]ce.Event, error) {
	if _, paused := f.pauses.Of(project); paused {
		return nil, nil
	}
	ok, err := f.settled(ctx, project)
	if err != nil || !ok {
		return nil, err
	}
	b, due, err := f.due(ctx, project)
	if err != nil || !due {
		return nil, err
	}
	return []ce.Event{f.wanted(project, &b)}, nil
}

// wanted is the event that asks for what a stream is behind by.
func (f *Function) wanted(project string, b *behindStream) ce.Event {
	if synthesizes(b.stream.Name) {
		return event.New(event.SynthesisRequested, f.Name(), event.Synthesis{Tenant: f.cfg.Tenant, Project: project, Seq: b.cursor.Head.Seq})
	}
	return event.New(event.RunRequested, f.Name(), event.Stream{Tenant: f.cfg.Tenant, Project: project, Stream: b.stream.Name, Seq: b.cursor.Head.Seq})
}

// SynthesisAsked is the answer of POST /memory/synthesis.
type SynthesisAsked struct {
	Project string `json:"project"`
	Stream  string `json:"stream"`
	// Due says that a run follows; without it the last one read what there is.
	Due    bool       `json:"due"`
	Run    memory.SHA `json:"run,omitempty"`    // the last completed one, before that
	Behind bool       `json:"behind,omitempty"` // standing questions read first
}

// AskSynthesis asks for the project's synthesis where it is due, and with again also
// where it is not: a run over what was read already.
func (f *Function) AskSynthesis(ctx context.Context, project string, again bool) (out SynthesisAsked, err error) {
	defer fault.Wrap(&err, "synthesis of %s", project)
	out.Project = project
	b, due, err := f.due(ctx, project)
	if err != nil {
		return out, err
	}
	if b.stream.Name == "" {
		return out, fault.At(fault.NotFound, "synthesis", "give the project's question file a synthesis (docs/FORMATS.md)", "project %s asks for none", project)
	}
	last, _, err := replay.Synthesis(ctx, f.cfg.Log, project, b.stream.Name)
	if err != nil {
		return out, err
	}
	ready, err := f.settled(ctx, project)
	if err != nil {
		return out, err
	}
	out.Stream, out.Run, out.Behind = b.stream.Name, last.Run.Run, !ready
	if out.Due = due || again && b.cursor.State.T > 0; !out.Due {
		return out, nil
	}
	f.pauses.Resume(project)
	if f.cfg.Publish == nil {
		return out, fault.New(fault.Unavailable, "no event can be sent from here")
	}
	return out, f.cfg.Publish(ctx, event.New(event.SynthesisRequested, f.Name(), event.Synthesis{
		Tenant: f.cfg.Tenant, Project: project, Seq: b.cursor.Head.Seq, Again: again,
	}))
}

func (f *Function) postSynthesis(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Project string `json:"project"`
		Again   bool   `json:"again"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {project, again}", "%v", err))
		return
	}
	if !memory.ValidName(b.Project) {
		serve.WriteError(w, badProject(b.Project))
		return
	}
	out, err := f.AskSynthesis(r.Context(), b.Project, b.Again)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	status := http.StatusOK
	if out.Due {
		status = http.StatusAccepted
	}
	serve.WriteJSON(w, status, out)
}

// never is the place of a stream at which no run is made anew.
const never int64 = -1

// synthesize is one slice of the project's synthesis. Where the stream ends at segment
// again, a run is made over memories that were read already: the first of several
// deliveries moves the end.
func (f *Function) synthesize(ctx context.Context, project string, again int64) ([]ce.Event, error) {
	s, ok, err := f.cfg.Catalog.Synthesis(ctx, project)
	if err != nil || !ok {
		return nil, err
	}
	out, state, err := f.drive(ctx, project, s, func(deadline time.Time) (eventlog.Head, error) {
		return f.synthesisSlice(ctx, project, s, deadline, again)
	})
	switch {
	case err != nil || state == droveNothing:
		return out, err
	case state == droveOn:
		scrub, err := f.scrubbed(ctx, project)
		if err != nil {
			return out, err
		}
		c, err := f.cursor(ctx, scrub, project, s.Name)
		return append(out, event.New(event.RunContinued, f.Name(), event.Stream{Tenant: f.cfg.Tenant, Project: project, Stream: s.Name, Seq: c.Head.Seq})), err
	}
	more, err := f.synthesisOf(ctx, project) // a memory may have changed meanwhile
	return append(out, more...), err
}

// synthesisSlice goes on with the run that is missing until the time ends.
func (f *Function) synthesisSlice(ctx context.Context, project string, s catalog.Stream, deadline time.Time, again int64) (_ eventlog.Head, err error) {
	if ok, err := f.settled(ctx, project); err != nil || !ok {
		return eventlog.Head{}, err // their end asks again
	}
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
	lower, err := f.lower(ctx, scrub, project)
	if err != nil {
		return eventlog.Head{}, err
	}
	if w.cursor.Head.Seq != again && !missing(&w.next, lower) {
		return eventlog.Head{}, nil
	}
	cfg := &gru.Config{
		Tenant: f.cfg.Tenant, Project: project, Stream: s.Name, QueryID: s.QueryID, Question: s.Question,
		Level: memory.L2, BudgetTokens: s.BudgetTokens, ExitGate: s.ExitGate,
		Count: f.cfg.Count, Redact: f.cfg.Redact, Policy: f.cfg.Synthesis, Lower: lower,
	}
	done, err := f.foldUp(ctx, w, cfg, deadline)
	if err != nil {
		return f.flushed(ctx, w, err)
	}
	if err := w.flush(ctx); err != nil {
		return eventlog.Head{}, err
	}
	if !done {
		return w.head, errSlice
	}
	return w.head, nil
}

// foldUp runs the loop over the memories; false when the time was over before the end.
func (f *Function) foldUp(ctx context.Context, w *writer, cfg *gru.Config, deadline time.Time) (bool, error) {
	m, err := w.ready(ctx, cfg)
	if err != nil {
		return false, err
	}
	if m != nil && cfg.Model.Parallel > 1 {
		one := *cfg.Model // a few steps, each of which may be the last
		one.Parallel = 0
		cfg.Model = &one
	}
	part := gru.SynthesisPart(cfg.Lower)
	if err := w.take(ctx, func(s gru.State) (gru.State, []gru.Record) { return gru.BeginSynthesis(s, cfg, f.cfg.Now()) }); err != nil {
		return false, err
	}
	for !w.next.Done(part) {
		if w.moved && f.cfg.Now().After(deadline) {
			return false, nil
		}
		i := w.next.Open.Next
		in := gru.ChunkInput{Chunk: cfg.Lower[i].Chunk(i)}
		// What a step read is a blob, as a chunk is: the memory below may move on.
		if _, err := f.cfg.Log.PutBlob(ctx, w.project, []byte(in.Chunk.Text)); err != nil {
			return false, err
		}
		if m != nil {
			err = f.decide(ctx, w, cfg, part, m, gru.ReadChunk{ChunkInput: in})
			if err == nil && f.cfg.Now().Sub(w.begun) >= paidFlush {
				err = w.flush(ctx)
			}
		} else {
			err = w.take(ctx, func(s gru.State) (gru.State, []gru.Record) {
				start := time.Now()
				f.calls.Add(1)
				s, recs := gru.StepChunk(s, cfg, part, in)
				setLatency(recs, time.Since(start))
				return s, recs
			})
		}
		if err != nil {
			return false, err
		}
	}
	return true, w.take(ctx, func(s gru.State) (gru.State, []gru.Record) {
		here := s.Open.Memory != nil && slices.ContainsFunc(w.recs, func(r eventlog.Record) bool { return r == eventlog.Record(s.Open.Memory) })
		return gru.EndSynthesis(s, cfg, here, f.cfg.Now())
	})
}
