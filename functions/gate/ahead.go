package gate

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/gru"
)

// ahead is a gate's question that was asked before its chunk's turn.
type ahead struct {
	call  *gru.Call
	reply gru.Reply
	err   error // of this one alone: it counts when it is the chunk's turn
}

// chunk is the next chunk of the part, with the answer of its gate where that is asked
// ahead: the gates of a batch are asked side by side when its first one is needed.
func (f *Function) chunk(ctx context.Context, w *writer, cfg *gru.Config, m *Models, p part) (gru.ReadChunk, error) {
	i := w.next.Open.Next
	if end := cfg.BatchEnd(&w.next, len(p.chunks)); end > 0 && w.ahead[i] == nil && w.next.Open.From == 0 {
		if err := f.askAhead(ctx, w, cfg, m, p, i, end); err != nil {
			return gru.ReadChunk{}, err
		}
	}
	in, err := f.input(ctx, w.scrub, w.project, p, i)
	read := gru.ReadChunk{ChunkInput: in}
	if a := w.ahead[i]; a != nil {
		delete(w.ahead, i)
		if a.err != nil {
			return read, a.err
		}
		read.Ahead, read.Reply = a.call, a.reply
	}
	return read, err
}

// askAhead asks the gates of chunks [from,to). What is answered is kept for the next
// slice too, whatever becomes of this one.
func (f *Function) askAhead(ctx context.Context, w *writer, cfg *gru.Config, m *Models, p part, from, to int) error {
	w.ahead = map[int]*ahead{}
	var g errgroup.Group
	g.SetLimit(to - from)
	for i := from; i < to; i++ {
		in, err := f.input(ctx, w.scrub, w.project, p, i)
		if err != nil {
			return err
		}
		call := gru.Ahead(w.next, cfg, in)
		if call == nil {
			continue
		}
		a := &ahead{call: call}
		w.ahead[i] = a
		g.Go(func() error {
			a.reply, a.err = f.ask(ctx, w, m, call, w.callKey(call, "ahead"))
			return nil
		})
	}
	return g.Wait()
}
