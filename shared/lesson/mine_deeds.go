package lesson

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// commands takes a shell line apart: what can teach, and what it changes.
func (m *Miner) commands(th *thread, c *call, open bool) {
	ps := parseShell(c.line)
	if n := len(ps); n > 1 {
		c.looks = finders[programOf(ps[n-1].words[0])] && !ps[n-1].masked
	}
	for i := range ps {
		t := taskOf(&ps[i])
		if !dull[programOf(t.part.words[0])] {
			c.tasks = append(c.tasks, t)
		}
		e := t.effect()
		if !open || e == effectNone {
			continue
		}
		d := &deed{pos: th.n, effect: e, task: &t}
		if e >= effectWeak {
			q := m.quoter(c.pieces)
			at := firstLine(q.text)
			if cited := q.line(RoleChange, min(at, len(q.text)), maxQuote); cited.ok {
				d.span, d.cited = cited.span, true
			}
			d.change = m.done(&t, e, c.cwd)
			if strings.Contains(c.line, "| xargs ") { // what it was given is half of what it did
				head, _, _ := strings.Cut(c.line, "\n")
				d.change.Quote = clip(m.redacted(head), maxQuote)
			}
		}
		c.deeds = append(c.deeds, d)
	}
}

// done is the change that a command makes: a file that it writes, or what it
// was.
func (m *Miner) done(t *task, e effect, cwd string) Change {
	p := t.part
	if len(p.writes) == 0 || e != effectStrong {
		return Change{Kind: "command", Quote: clip(m.redacted(t.String()), maxQuote)}
	}
	c := Change{Kind: string(memory.EditWrite), Path: clip(m.redacted(relative(p.writes[0], cwd)), maxQuote)}
	if p.input == "" {
		c.Kind, c.Quote = "command", clip(m.redacted(t.String()+" > "+p.writes[0]), maxQuote)
		return c
	}
	c.Added = strings.Count(strings.TrimSuffix(p.input, "\n"), "\n") + 1
	masked := strings.TrimSpace(m.redacted(p.input))
	head, _, _ := strings.Cut(masked, "\n")
	c.Quote = clip(strings.TrimSpace(head), maxQuote)
	return c
}

// edited is the deed of one edit.
func (m *Miner) edited(th *thread, e *memory.FileEdit, t *memory.Turn) *deed {
	d := &deed{pos: th.n, effect: effectStrong, change: Change{
		Kind: string(e.Kind), Path: clip(m.redacted(relative(e.Path, t.Cwd)), maxQuote), Added: e.Added, Removed: e.Removed,
	}}
	if isProse(e.Path) {
		d.effect = effectWeak
	}
	if e.Text.Text != "" {
		q := m.quoter([]memory.Piece{e.Text})
		if cited := q.cite(RoleChange, e.From, min(e.To, e.From+len(clip(q.text[e.From:], maxQuote)))); cited.ok {
			d.change.Quote, d.span, d.cited = cited.text, cited.span, true
		}
	}
	return d
}

// isProse tells files that no build and no test reads.
func isProse(file string) bool {
	file = strings.ToLower(file)
	for _, ext := range []string{".md", ".mdx", ".rst", ".adoc"} {
		if strings.HasSuffix(file, ext) {
			return !strings.Contains(file, "testdata") && !strings.Contains(file, "fixture")
		}
	}
	return false
}

// relative is a path from the folder that the work is done in.
func relative(file, cwd string) string {
	if cwd != "" {
		if rest, ok := strings.CutPrefix(file, strings.TrimRight(cwd, "/\\")); ok && rest != "" && (rest[0] == '/' || rest[0] == '\\') {
			return rest[1:]
		}
	}
	return file
}
