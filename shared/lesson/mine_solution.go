package lesson

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// ending is the run that passed.
type ending struct {
	c     *call
	t     *memory.Turn
	tasks []task
	span  quoted
}

// lesson makes the record of the failure of runs[i], whose last run it is. What
// cured it was done between that run and the next that shows something else:
// the next failing run of the same that tells another failure, else the pass.
func (m *Miner) lesson(th *thread, runs []*run, i int, end *ending) (Lesson, bool) {
	f := runs[i]
	until := end.c.pos
	for _, g := range runs[i+1:] {
		if g.told && coversRun(g.tasks, f) {
			until = g.pos
			break
		}
	}
	deeds, opaque := th.between(f, until, end)
	if len(deeds) == 0 && until != end.c.pos {
		deeds, opaque = th.between(f, end.c.pos, end)
	}
	l := Of(&f.sig)
	l.Failure = clip(l.Failure, maxFailure/2)
	l.Outcome, l.Origin, l.Session = Passed, Mined, th.session
	l.Command = clip(m.redacted(lineOf(f.tasks)), maxQuote)
	l.Time = m.opt.Time.UTC().Format(time.RFC3339)
	if !end.t.Time.IsZero() {
		l.Time = end.t.Time.UTC().Format(time.RFC3339)
	}
	if f.span.ok {
		l.Spans = append(l.Spans, f.span.span)
	}
	now := lineOf(covering(end.tasks, f))
	for _, d := range deeds {
		if d.cited && len(l.Spans) < maxListed {
			l.Spans = append(l.Spans, d.span)
		}
		l.Changes = merge(l.Changes, d.change)
	}
	other := false // the command that passed is itself the change
	if len(l.Changes) > maxCure || f.pos < th.lost {
		return l, false // which of them was it?
	}
	more := max(0, len(l.Changes)-maxListed)
	l.Changes = l.Changes[:len(l.Changes)-more]
	if len(l.Changes) == 0 {
		switch {
		case differs(end.tasks, f):
			q := m.quoter(end.c.pieces)
			if x := q.line(RoleChange, firstLine(q.text), maxQuote); x.ok {
				l.Spans = append(l.Spans, x.span)
			}
			other = true
			l.Changes = []Change{{Kind: "command", Quote: clip(m.redacted(now), maxQuote)}}
		case opaque:
			return l, false // something was done, and nobody can say what
		default:
			l.Outcome = Flaky
		}
	}
	if end.span.ok {
		l.Spans = append(l.Spans, end.span.span)
	}
	l.Text = m.redacted(solution(&l, more, now, other))
	return l, true
}

// between are the deeds after a failing run up to a position: those that surely
// change something, else those that may. What passes in the end is no deed.
func (th *thread) between(f *run, until int, end *ending) (deeds []*deed, opaque bool) {
	var weak []*deed
	for _, d := range th.changes {
		if d.undone || d.pos <= f.pos || d.pos > until {
			continue
		}
		if d.task != nil && slices.ContainsFunc(f.tasks, func(u task) bool { return d.task.covers(&u) || u.covers(d.task) }) {
			continue
		}
		switch d.effect {
		case effectStrong:
			deeds = append(deeds, d)
		case effectWeak:
			weak = append(weak, d)
		case effectOpaque:
			opaque = true
		}
	}
	if len(deeds) == 0 {
		deeds = weak
	}
	return deeds, opaque
}

// covering are the commands of the pass that f's ones are a part of.
func covering(tasks []task, f *run) []task {
	var out []task
	for i := range tasks {
		for k := range f.tasks {
			if tasks[i].covers(&f.tasks[k]) {
				out = append(out, tasks[i])
				break
			}
		}
	}
	return out
}

// differs says that the command that passed is not the one that failed: it has
// other assignments, sudo or flags.
func differs(tasks []task, f *run) bool {
	for k := range f.tasks {
		same := false
		for i := range tasks {
			same = same || tasks[i].covers(&f.tasks[k]) && tasks[i].alike(&f.tasks[k])
		}
		if !same {
			return true
		}
	}
	return false
}

func lineOf(tasks []task) string {
	var out []string
	for i := range tasks {
		if s := tasks[i].String(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, " && ")
}

// merge adds a change; one more of the same file is counted with the first.
func merge(list []Change, c Change) []Change {
	for i := range list {
		x := &list[i]
		if c.Kind == "command" && x.Kind == c.Kind && x.Quote == c.Quote {
			return list
		}
		if c.Kind != "command" && x.Path == c.Path && x.Kind != "command" {
			x.Added, x.Removed = x.Added+c.Added, x.Removed+c.Removed
			if c.Kind == string(memory.EditDelete) {
				x.Kind = c.Kind
			}
			if x.Quote == "" {
				x.Quote = c.Quote
			}
			return list
		}
	}
	return append(list, c)
}

// maxSaid is how many changes stand in the words of a solution.
const maxSaid = 6

// solution says in words what was done, in the order of the doing. Every word
// that is not of this frame stood in the transcript.
func solution(l *Lesson, more int, passing string, other bool) string {
	var b strings.Builder
	if other {
		return fmt.Sprintf("`%s` passed where `%s` failed.", oneLine(clip(passing, maxQuote)), oneLine(l.Command))
	}
	if l.Outcome == Flaky {
		fmt.Fprintf(&b, "Flaky: `%s` passed again without any change.", clip(passing, maxQuote))
		return b.String()
	}
	said := telling(l)
	more += len(l.Changes) - len(said)
	for i := range said {
		c := &said[i]
		switch {
		case i == 0:
		case i == len(said)-1 && more == 0:
			b.WriteString(", then ")
		default:
			b.WriteString(", ")
		}
		switch c.Kind {
		case "command":
			fmt.Fprintf(&b, "ran `%s`", oneLine(c.Quote))
			continue
		case string(memory.EditWrite):
			fmt.Fprintf(&b, "wrote %s (+%d)", c.Path, c.Added)
		case string(memory.EditDelete):
			fmt.Fprintf(&b, "deleted %s", c.Path)
		default:
			fmt.Fprintf(&b, "edited %s (+%d -%d)", c.Path, c.Added, c.Removed)
		}
		if c.Quote != "" {
			fmt.Fprintf(&b, ": `%s`", oneLine(c.Quote))
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	fmt.Fprintf(&b, ". Then `%s` passed.", oneLine(clip(passing, maxQuote)))
	s := b.String()
	return strings.ToUpper(s[:1]) + s[1:]
}

// telling are the changes that the words name: all, or of many those first that
// name a file of the root line, in the order of the doing.
func telling(l *Lesson) []Change {
	if len(l.Changes) <= maxSaid {
		return l.Changes
	}
	files := fileName.FindAllString(l.Failure, 8)
	at := make([]int, 0, len(l.Changes))
	for _, near := range []bool{true, false} {
		for i := range l.Changes {
			c := &l.Changes[i]
			names := slices.ContainsFunc(files, func(f string) bool {
				return path.Base(c.Path) == f || c.Kind == "command" && strings.Contains(c.Quote, f)
			})
			if names == near {
				at = append(at, i)
			}
		}
	}
	at = at[:maxSaid]
	slices.Sort(at)
	out := make([]Change, 0, maxSaid)
	for _, i := range at {
		out = append(out, l.Changes[i])
	}
	return out
}

// fileName tells names of files in a root line.
var fileName = lazy.MustCompile(`[\w-]+\.[A-Za-z]\w{0,4}\b`)

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
