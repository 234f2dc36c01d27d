package transcript

import (
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// maxQueued bounds the prompts that wait; a person types a few.
const maxQueued = 256

// queue replays the prompts typed ahead, first in, first out. A prompt that
// the agent absorbs while it works leaves the queue by `remove` and often
// stands nowhere else in the file; one that is dequeued becomes a user record
// of its own (formats.md 1.7).
type queue struct{ waiting []queued }

type queued struct {
	hash uint64 // of the trimmed text; 0 when the record holds none
	turn memory.Turn
}

func (q *queue) enqueue(x queued) {
	if len(q.waiting) < maxQueued {
		q.waiting = append(q.waiting, x)
	}
}

func (q *queue) dequeue() {
	if len(q.waiting) > 0 {
		q.waiting = q.waiting[1:]
	}
}

func (q *queue) clear() { q.waiting = nil }

// remove takes the prompt of that text, or the oldest when content is 0: false
// when none waits.
func (q *queue) remove(content uint64) (queued, bool) {
	k := 0
	if content != 0 {
		k = slices.IndexFunc(q.waiting, func(x queued) bool { return x.hash == content })
	}
	if k < 0 || k >= len(q.waiting) {
		return queued{}, false
	}
	x := q.waiting[k]
	q.waiting = slices.Delete(slices.Clone(q.waiting), k, k+1)
	return x, true
}

// steered are the turns of one text that came out of the queue.
type steered struct {
	seqs  []int // ascending
	muted int   // the first of them, from before Options.From
}

// words is what prompts are compared by: the hash of the trimmed text, without
// what a harness put into it.
func (c *claude) words(ps []memory.Piece) uint64 {
	t := memory.Turn{}
	t.Pieces, _, _ = cutAll(ps)
	return c.r.ids.hash([]byte(strings.TrimSpace(t.Text())))
}

// stands notes that a record of its own holds this text. A turn of the same
// text that came out of the queue was its copy, and is taken back as far as
// the window still holds it.
func (c *claude) stands(ps ...memory.Piece) {
	h := c.words(ps)
	c.records[h] = struct{}{}
	old := c.steered[h]
	if old == nil {
		return
	}
	delete(c.steered, h)
	gone := c.r.retract(old.seqs, old.muted)
	if n := len(gone) - old.muted; n > 0 {
		c.r.stats.Dropped["steering_repeated"] += n
	}
	below := func(seq int) int {
		n, _ := slices.BinarySearch(gone, seq)
		return seq - n
	}
	for k, seq := range c.prompts {
		c.prompts[k] = below(seq)
	}
	for _, s := range c.steered {
		for i := range s.seqs {
			s.seqs[i] = below(s.seqs[i])
		}
	}
}

// queued follows the prompts that a person types while the agent works.
func (c *claude) queued(v *envelope) {
	b := v.rec.b
	switch text(b, v.op) {
	case "enqueue":
		c.queue.enqueue(c.typed(v))
	case "dequeue":
		c.queue.dequeue()
	case "popAll":
		c.queue.clear()
	case "remove":
		own := c.typed(v)
		x, ok := c.queue.remove(own.hash)
		if !ok {
			// It was typed before the file begins, as in a slice of a session.
			if x = own; x.hash == 0 {
				return
			}
		}
		if _, ok := c.records[x.hash]; ok {
			c.r.stats.drop("steering_repeated")
			return
		}
		if c.steer(x.turn) {
			s := c.steered[x.hash]
			if s == nil {
				s = &steered{}
				c.steered[x.hash] = s
			}
			s.seqs = append(s.seqs, c.r.seq-1)
			if c.r.muted {
				s.muted++
			}
		}
	}
}

// typed is the prompt that a record of the queue holds.
func (c *claude) typed(v *envelope) queued {
	x := queued{turn: c.turn(v, memory.RoleUser, memory.KindSteering, memory.TrustUser)}
	if x.turn.Pieces = c.texts(v, v.content); len(x.turn.Pieces) > 0 {
		x.hash = c.words(x.turn.Pieces)
	}
	x.turn.ID = c.sessionID() + "/queue-" + string(memory.Sum(v.rec.b[v.rec.at.s:v.rec.at.e]))[:16]
	return x
}

// texts are the texts of a prompt that stands as a string, or as a list of
// strings and text blocks.
func (c *claude) texts(v *envelope, at span) (ps []memory.Piece) {
	b := v.rec.b
	switch {
	case isString(b, at):
		ps = append(ps, piece(b, at, v.rec.base))
	case isArray(b, at):
		elements(b, at, func(e span) bool {
			if isObject(b, e) {
				c.block, _ = members(b, e.s, c.block[:0])
				e = c.field("text")
			}
			if isString(b, e) {
				ps = append(ps, piece(b, e, v.rec.base))
			}
			return true
		})
	}
	return ps
}

// steer emits a steering turn unless it is a command or a harness's text.
func (c *claude) steer(t memory.Turn) bool {
	head := strings.TrimSpace(t.Text())
	if isNotSpeech(head) || head == "" || strings.HasPrefix(head, "/") && !strings.ContainsAny(head, " \n") {
		c.r.stats.drop("queued_command")
		return false
	}
	kept, _, derived := cutAll(t.Pieces)
	if blank(kept) {
		if !derived {
			return false
		}
		t.Derived = true
	} else {
		t.Pieces = kept
	}
	t.ID = c.r.ids.unique(t.ID)
	c.r.emit(t)
	return true
}

// attached reads an attachment record; only a queued prompt is a person's.
func (c *claude) attached(v *envelope) {
	b := v.rec.b
	if !isObject(b, v.attachment) {
		return
	}
	c.block, _ = members(b, v.attachment.s, c.block[:0])
	typ, mode, prompt := text(b, c.field("type")), text(b, c.field("commandMode")), c.field("prompt")
	if typ != "queued_command" || mode != "" && mode != "prompt" {
		bump(c.r.stats.Dropped, "attachment/"+typ)
		return
	}
	if v.uuid.ok() && c.r.ids.repeated(b[v.uuid.s:v.uuid.e], nil) {
		c.r.stats.drop("repeated")
		return
	}
	ps := c.texts(v, prompt)
	if len(ps) == 0 {
		return
	}
	c.stands(ps...)
	t := c.turn(v, memory.RoleUser, memory.KindSteering, memory.TrustUser)
	t.Pieces = ps
	t.ID = c.sessionID() + "/" + attachmentName(v)
	c.steer(t)
}

func attachmentName(v *envelope) string {
	if b := v.rec.b; isString(b, v.uuid) {
		return cleanID(text(b, v.uuid))
	}
	return string(memory.Sum(v.rec.b[v.rec.at.s:v.rec.at.e]))[:32]
}

// blockedPrompt stands before the prompt in the record that a hook's refusal
// leaves; the prompt has no other record (formats.md 1.4).
const blockedPrompt = "Original prompt: "

// system reads a system record: only a prompt that a hook blocked is speech.
func (c *claude) system(v *envelope) {
	b := v.rec.b
	if text(b, v.subtype) == "informational" && isString(b, v.content) {
		p := piece(b, v.content, v.rec.base)
		if i := strings.Index(p.Text, blockedPrompt); i >= 0 {
			if q, ok := trimmed(p, i+len(blockedPrompt), len(p.Text)); ok {
				c.speech(v, q, memory.RoleUser, memory.KindText, memory.TrustUser)
				return
			}
		}
	}
	c.r.stats.drop(v.kind)
}
