package transcript

import (
	"strconv"
	"strings"
	"time"
)

// replay tells the copy of the parent's history, with which a fork or a
// sub-agent begins, from its own turns. The copy is stamped with the time of
// the fork, so only ids tell (formats.md section 3):
//
//   - subagent_history_start_ordinal, or history_base.end_ordinal_exclusive:
//     what has a smaller ordinal is copied;
//   - else all is copied up to the first turn_context or task_started whose
//     turn_id, a UUIDv7, is not older than the fork;
//   - files without such turn ids: up to the first pause of forkPause after
//     the fork, as a copy is written in one go. Should such a turn id come
//     before any turn without, the guess was wrong and is taken back.
type replay struct {
	on      bool
	ordinal int       // own history begins here; -1 when unknown
	fork    time.Time // of the fork's own id
	last    time.Time // of the last copied record
	turnIDs bool      // a turn id that tells its time was seen
	guess   bool      // the end of the copy was told by a pause alone
}

// forkPause parts the copy from the first own turn in files without turn ids:
// a copy takes milliseconds, a person or a model takes seconds.
const forkPause = time.Second

func (p *replay) begin(v *codexRecord, id string, start time.Time) {
	b := v.rec.b
	p.ordinal = intOf(b, v.field("subagent_history_start_ordinal"))
	if base := v.field("history_base"); p.ordinal < 0 && isObject(b, base) {
		ms, _ := members(b, base.s, nil)
		p.ordinal = intOf(b, fieldOf(ms, "end_ordinal_exclusive"))
	}
	forked := isString(b, v.field("forked_from_id")) || isString(b, v.field("parent_thread_id"))
	if source := v.field("source"); isObject(b, source) {
		ms, _ := members(b, source.s, nil)
		if sub := fieldOf(ms, "subagent"); isObject(b, sub) {
			ms, _ = members(b, sub.s, nil)
			if spawn := fieldOf(ms, "thread_spawn"); isObject(b, spawn) {
				ms, _ = members(b, spawn.s, nil)
				forked = forked || isString(b, fieldOf(ms, "parent_thread_id"))
			}
		}
	}
	p.on = forked || p.ordinal >= 0
	var ok bool
	if p.fork, ok = uuidTime(id); !ok {
		p.fork = start
	}
	if p.last = p.fork; v.timed && v.time.After(p.last) {
		p.last = v.time
	}
}

// copied reports whether a record is the parent's; wrong, that all since a
// guess was the parent's too. index counts records from 0 and stands in for an
// ordinal.
func (p *replay) copied(v *codexRecord, index int) (copied, wrong bool) {
	if !p.on && !p.guess {
		return false, false
	}
	b := v.rec.b
	if p.ordinal >= 0 {
		n := intOf(b, v.ordinal)
		if n < 0 {
			n = index
		}
		p.on = n < p.ordinal
		return p.on, false
	}
	if v.kind == "turn_context" || v.kind == "event_msg" && (v.typ == "task_started" || v.typ == "turn_started") {
		at, ok := uuidTime(text(b, v.field("turn_id")))
		switch {
		case p.guess:
			p.guess = false
			return false, ok && !at.Before(p.fork)
		case ok && !at.Before(p.fork):
			p.on = false
			return false, false
		}
		p.turnIDs = p.turnIDs || ok
	}
	if p.guess {
		return false, false
	}
	if v.timed {
		if !p.turnIDs && v.time.Sub(p.last) >= forkPause {
			p.on, p.guess = false, true
			return false, false
		}
		if v.time.After(p.last) {
			p.last = v.time
		}
	}
	return true, false
}

// uuidTime is the time in a UUIDv7, in milliseconds.
func uuidTime(id string) (time.Time, bool) {
	hex := strings.ReplaceAll(id, "-", "")
	if len(id) != 36 || len(hex) != 32 || hex[12] != '7' {
		return time.Time{}, false
	}
	ms, err := strconv.ParseInt(hex[:12], 16, 64)
	return time.UnixMilli(ms).UTC(), err == nil
}
