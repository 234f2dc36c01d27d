package extractpolicy

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// hideOwn puts spaces in the place of what the stream itself gave out, where no
// person said it, and counts the passages: an assistant that recites the memory
// gives no evidence, whether wrapped anew, outdated or verbatim. What stands
// beside it is read as ever, at the same offsets.
//
// A person's message is never touched: who restates a rule means it. Of a note,
// which people write as well as programs, only what carries the memory's node
// suffixes is hidden.
//
// What was given out is a function of the stream's own fold: every memory is a
// row of kept statements, those included that were replaced or left it since,
// and what the streams of other questions keep are picks that this one passed
// over, whose shingles its gate records hold. So the decision is the same after
// a crash, and in any order of events, and no stream waits for another.
func (p *Policy) hideOwn(in gru.PolicyInput, m *conversation) int {
	kept, shingles := len(in.State.Kept), len(in.State.Shingles)
	if kept+shingles == 0 {
		return 0
	}
	var x *keptIndex
	n := 0
	for i := range m.list {
		msg := &m.list[i]
		if msg.Context || msg.Role == memory.RoleUser {
			continue
		}
		if msg.Role == memory.RoleNote && !strings.ContainsAny(msg.Text, "[^") {
			continue
		}
		if x == nil {
			x = p.indexOf(in.Config)
			x.mu.Lock()
			defer x.mu.Unlock()
			x.sync(p, in.State)
		}
		var hidden []derived.Passage
		for _, o := range x.own.Passages(msg.Text, kept, shingles) {
			if msg.Role != memory.RoleNote || o.Cited {
				hidden = append(hidden, o)
			}
		}
		if len(hidden) == 0 {
			continue
		}
		if m.hidden == nil {
			m.hidden = map[int][]derived.Passage{}
		}
		m.hidden[i] = hidden
		msg.Text = blank(msg.Text, hidden)
		n += len(hidden)
	}
	return n
}

// blank is s with spaces in the place of the passages, line ends aside.
func blank(s string, passages []derived.Passage) string {
	b := []byte(s)
	for _, o := range passages {
		for i := o.From; i < o.To; i++ {
			if b[i] != '\n' {
				b[i] = ' '
			}
		}
	}
	return string(b)
}
