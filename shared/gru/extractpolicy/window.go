package extractpolicy

import (
	"fmt"

	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Sizes in bytes of what is scored at once. The score is measured on chats of a
// few thousand characters and on single exchanges, and asks more of a longer
// text, as more sentences have more chances; a chunk of 5,000 tokens (about
// 20,000 characters) holds many exchanges, and scored whole one decision in it
// drowns. So a long chunk is read in windows: whole exchanges, each a person's
// message and what answers it, with the assistant's last message before them
// as context, the form of the exchanges that the score is measured on.
const (
	windowOver = 8000 // a conversation up to this is scored whole
	windowSize = 3000 // a window ends at the first exchange that ends past this
)

// windows cuts a conversation; a short one, or a document, is one window.
func (c *conversation) windows() []conversation {
	size := 0
	for i := range c.list {
		size += len(c.list[i].Text)
	}
	if size <= windowOver || c.notes() {
		return []conversation{*c}
	}
	var out []conversation
	cur := conversation{turn: map[int]int{}}
	curSize := 0
	last := "" // what the assistant said last
	for i := range c.list {
		m := c.list[i]
		if m.Role == memory.RoleUser && curSize >= windowSize && len(cur.turn) > 0 {
			out = append(out, cur)
			cur, curSize = conversation{turn: map[int]int{}}, 0
			if last != "" {
				cur.list = append(cur.list, extractive.Message{Role: memory.RoleAssistant, Text: last, Context: true})
			}
		}
		if at, ok := c.turn[i]; ok {
			cur.turn[len(cur.list)] = at
			curSize += len(m.Text)
		}
		if m.Role == memory.RoleNote {
			cur.note++
		}
		if m.Role == memory.RoleAssistant {
			last = m.Text
		}
		cur.list = append(cur.list, m)
	}
	if len(cur.turn) > 0 {
		out = append(out, cur)
	}
	return out
}

// scored is a conversation's score and the windows it was read in.
type scored struct {
	res extractive.Result
	all conversation
}

// result is the score of a conversation in its windows. all is the windows one
// after the other, which the result's sentences point into.
func (p *Policy) result(c *conversation) (res extractive.Result, all conversation) {
	ws := c.windows()
	if len(ws) == 1 {
		return p.score.Score(ws[0].list), ws[0]
	}
	all.turn = map[int]int{}
	best, opened := 0, 0
	for wi := range ws {
		w := &ws[wi]
		r := p.score.Score(w.list)
		base, sentences := len(all.list), len(res.Sentences)
		all.list = append(all.list, w.list...)
		for i, at := range w.turn {
			all.turn[base+i] = at
		}
		all.note += w.note
		for _, s := range r.Sentences {
			s.Message += base
			res.Sentences = append(res.Sentences, s)
		}
		if r.Open {
			opened++
			for _, i := range r.Picks {
				res.Picks = append(res.Picks, sentences+i)
			}
		}
		if wi == 0 || r.Score > res.Score {
			res.Score, res.Reason, best = r.Score, r.Reason, wi
		}
		res.Open = res.Open || r.Open
	}
	res.Reason = fmt.Sprintf("%d of %d windows open; window %d: %s", opened, len(ws), best+1, res.Reason)
	return res, all
}
