package transcript

import "github.com/mneme-ai/mneme/shared/memory"

// windowBytes is how much text of turns is held back before it is yielded.
// Whether a turn was abandoned is only known later, when the person goes back
// and takes another way; nearly every transcript holds less text than this
// and is marked exactly, and a longer one still needs no more memory.
const windowBytes = 8 << 20

// turnCost and pieceCost are what a turn and a piece are held to cost without
// their text, in bytes.
const (
	turnCost  = 512
	pieceCost = 96
)

// window holds the newest turns back.
type window struct {
	turns []memory.Turn
	head  int
	bytes int
}

func cost(t *memory.Turn) int {
	n := turnCost
	for i := range t.Pieces {
		n += pieceCost + len(t.Pieces[i].Text) + 32*len(t.Pieces[i].Enc.Exceptions)
	}
	if t.Tool != nil {
		for i := range t.Tool.Edits {
			n += turnCost/2 + len(t.Tool.Edits[i].Text.Text) + 32*len(t.Tool.Edits[i].Text.Enc.Exceptions)
		}
	}
	return n
}

func (w *window) push(r *Reader, t memory.Turn) {
	w.bytes += cost(&t)
	if w.turns == nil {
		w.turns = make([]memory.Turn, 0, 32)
	}
	w.turns = append(w.turns, t)
	for w.bytes > windowBytes && w.head < len(w.turns) && !r.stop {
		w.pop(r)
	}
	if w.head > 1024 && w.head*2 > len(w.turns) {
		n := copy(w.turns, w.turns[w.head:])
		clear(w.turns[n:])
		w.turns, w.head = w.turns[:n], 0
	}
}

func (w *window) pop(r *Reader) {
	t := w.turns[w.head]
	w.turns[w.head] = memory.Turn{}
	w.head++
	w.bytes -= cost(&t)
	r.stats.Turns++
	switch t.Kind {
	case memory.KindSteering:
		r.stats.Steering++
	case memory.KindFeedback:
		r.stats.Feedback++
	}
	if !r.yield(t, nil) {
		r.stop = true
	}
}

func (w *window) flush(r *Reader) {
	for w.head < len(w.turns) && !r.stop {
		w.pop(r)
	}
	w.turns, w.head, w.bytes = nil, 0, 0
}

// held are the turns that can still be marked.
func (w *window) held() []memory.Turn { return w.turns[w.head:] }

// retract takes back the turns of these Seqs, ascending, and numbers the later
// ones anew. The first muted of them came before Options.From. It gives the
// Seqs that are gone: those yielded already stay.
func (r *Reader) retract(seqs []int, muted int) (gone []int) {
	w := &r.win
	gone = append(gone, seqs[:muted]...)
	kept, k := w.turns[:w.head], muted
	for _, t := range w.turns[w.head:] {
		for k < len(seqs) && seqs[k] < t.Seq {
			k++
		}
		if k < len(seqs) && seqs[k] == t.Seq {
			w.bytes -= cost(&t)
			gone = append(gone, t.Seq)
			continue
		}
		t.Seq -= len(gone)
		kept = append(kept, t)
	}
	clear(w.turns[len(kept):])
	w.turns = kept
	r.seq -= len(gone)
	return gone
}
