package transcript

import "github.com/mneme-ai/mneme/shared/memory"

// maxQueued bounds the prompts that wait; a person types a few.
const maxQueued = 256

// repeatLines is how far after a steering turn a record of the same text is
// its copy; later it is a person who says the same again.
const repeatLines = 200

// queue replays the prompts typed ahead. A prompt that the agent absorbs
// while it works leaves the queue by `remove` and often stands nowhere else in
// the file; one that is dequeued becomes a user record of its own.
//
// All decisions look back only, so that a longer snapshot of the same file
// gives the same turns: a prompt that stood in a user record while it waited
// is not emitted on `remove`, and a user record that repeats an emitted one
// later is left out.
type queue struct {
	waiting []queued
	emitted map[uint64]int // line at which a steering turn was emitted that no record has repeated yet
}

type queued struct {
	hash      uint64
	turn      memory.Turn
	delivered bool
}

func newQueue() queue { return queue{emitted: map[uint64]int{}} }

func (q *queue) enqueue(h uint64, t memory.Turn) {
	if len(q.waiting) < maxQueued {
		q.waiting = append(q.waiting, queued{hash: h, turn: t})
	}
}

func (q *queue) dequeue() {
	if len(q.waiting) > 0 {
		q.waiting = q.waiting[1:]
	}
}

func (q *queue) clear() { q.waiting = nil }

// remove takes the prompt of that text, or the oldest when content is 0 or
// unknown, and gives it unless it was delivered.
func (q *queue) remove(content uint64, line int) (memory.Turn, bool) {
	if len(q.waiting) == 0 {
		return memory.Turn{}, false
	}
	k := 0
	for i := range q.waiting {
		if q.waiting[i].hash == content {
			k = i
			break
		}
	}
	x := q.waiting[k]
	q.waiting = append(q.waiting[:k:k], q.waiting[k+1:]...)
	if x.delivered {
		return memory.Turn{}, false
	}
	if len(q.emitted) >= maxQueued {
		clear(q.emitted)
	}
	q.emitted[x.hash] = line
	return x.turn, true
}

// delivered notes that a record holds this text, and reports whether the text
// was emitted before as a steering turn.
func (q *queue) delivered(h uint64, line int) bool {
	if at, ok := q.emitted[h]; ok {
		delete(q.emitted, h)
		if line-at <= repeatLines {
			return true
		}
	}
	for i := range q.waiting {
		if q.waiting[i].hash == h && !q.waiting[i].delivered {
			q.waiting[i].delivered = true
			break
		}
	}
	return false
}
