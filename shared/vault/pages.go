package vault

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/mneme-ai/mneme/shared/memory"
)

// index renders the project's own page: the synthesis and the questions.
func (r *renderer) index() {
	s := r.m.Synthesis
	var mem Memory
	seen, used, question := 0, 0, ""
	if s != nil {
		mem, seen, used, question = s.Memory, s.Chunks, s.Used, s.Question
	}
	updated := mem.Updated
	for _, q := range r.qs {
		if q.page && q.Memory.Updated.After(updated) {
			updated = q.Memory.Updated
		}
	}
	r.begin(quoted(r.m.Project), "project", yamlName(r.m.Project), "level", "L2", "query_id", "_synthesis",
		"updated", instant(updated), "chunks_seen", strconv.Itoa(seen), "chunks_used", strconv.Itoa(used), "tags", r.tags("L2"))
	b := &r.b
	b.WriteString("# ")
	r.inline(r.m.Project)
	b.WriteString("\n\n")
	if question != "" {
		b.WriteString("## Synthesis\n\n*")
		r.inline(question)
		b.WriteString("*\n\n")
		page := &questionPage{blocks: map[string]bool{}}
		for i := range r.l2 {
			l := &r.l2[i]
			l.block = page.free("", memory.SumString(l.text))
			r.line(l, nil)
		}
		switch {
		case len(r.l2) > 0:
		case s.Ran:
			b.WriteString("The memories below hold nothing that answers it.\n")
		default:
			b.WriteString("It has not run yet: the memories below stand for themselves.\n")
		}
		b.WriteByte('\n')
	}
	b.WriteString("## Questions\n\n")
	adhoc := false
	for _, q := range r.qs {
		if !q.page || q.Adhoc {
			adhoc = adhoc || q.page
			continue
		}
		r.listed(q)
	}
	if adhoc {
		b.WriteString("\n## Asked once\n\n")
		for _, q := range r.qs {
			if q.page && q.Adhoc {
				r.listed(q)
			}
		}
	}
	var orphans []string
	for key, reg := range r.regions {
		if reg.Orphan {
			orphans = append(orphans, key)
		}
	}
	slices.Sort(orphans)
	if len(orphans) > 0 {
		b.WriteString("\n## Notes without a question\n\n")
		for i, stem := range orphanStems(orphans) {
			b.WriteString("- " + link(orphanPrefix, stem) + ": ")
			r.inline(orphans[i][len(orphanPrefix):])
			b.WriteByte('\n')
		}
	}
	b.WriteString("\n## Provenance\n\n")
	if mem.TextSHA != "" {
		fmt.Fprintf(b, "Memory `%s`, node `%s`, stream `%s`, made of the memories of:\n\n", mem.TextSHA, mem.Node, s.Stream)
		r.made(mem.Parents)
	} else {
		b.WriteString("The memories of the project's questions:\n\n")
		for _, q := range r.qs {
			if q.page && q.Memory.TextSHA != "" {
				fmt.Fprintf(b, "- %s memory `%s`, stream `%s`\n", link("", q.stem), q.Memory.TextSHA, q.Stream)
			}
		}
	}
	b.WriteString("\nBeside it: [[timeline]]\n")
	r.end("index.md", memory.NoteIndex, "")
}

// made lists the memories that the synthesis read.
func (r *renderer) made(parents []memory.SHA) {
	b, on := &r.b, map[memory.SHA]bool{}
	for _, l := range r.below {
		on[l.mem.Node] = true
		fmt.Fprintf(b, "- %s memory `%s`, stream `%s`", link("", l.q.stem), l.mem.TextSHA, l.q.Stream)
		if l.mem.Node != l.q.Memory.Node {
			b.WriteString("; its page shows a newer one")
		}
		b.WriteByte('\n')
	}
	for _, n := range parents {
		if !on[n] {
			fmt.Fprintf(b, "- node `%s`, of a stream that answers no more\n", n)
		}
	}
}

// listed writes a question as an item of the index.
func (r *renderer) listed(q *questionPage) {
	r.b.WriteString("- " + link("", q.stem) + ": ")
	r.inline(q.Wording)
	fmt.Fprintf(&r.b, " (%d of %d chunks", q.ChunksUsed, q.ChunksSeen)
	if !q.Memory.Updated.IsZero() {
		fmt.Fprintf(&r.b, ", newest %s", day(q.Memory.Updated))
	}
	r.b.WriteString(")\n")
}

// timeline renders what was said when: the statements that the questions' pages
// hold, each text once a place, the newest first.
func (r *renderer) timeline() {
	type entry struct {
		first *shown
		all   []*shown
	}
	var entries []*entry
	type key struct {
		text  string
		nanos int64
		admit int64
		start int
	}
	at := map[key]*entry{}
	for _, q := range r.qs {
		if !q.page {
			continue
		}
		for _, s := range q.all {
			if !s.cited {
				continue
			}
			k := key{s.Text, s.Place.Time.UnixNano(), s.Place.Admit, s.Place.Start}
			e := at[k]
			if e == nil {
				e = &entry{first: s}
				at[k] = e
				entries = append(entries, e)
			}
			e.all = append(e.all, s)
		}
	}
	slices.SortStableFunc(entries, func(a, b *entry) int {
		return cmp.Or(b.first.Place.Compare(a.first.Place), cmp.Compare(a.first.Node, b.first.Node))
	})
	left := max(0, len(entries)-maxTimeline)
	entries = entries[:len(entries)-left]
	updated := ""
	if len(entries) > 0 {
		updated = instant(entries[0].first.Place.Time)
	}
	seen, used := 0, 0
	for _, q := range r.qs {
		seen, used = max(seen, q.ChunksSeen), max(used, q.ChunksUsed)
	}
	r.begin(quoted(r.m.Project+": timeline"), "project", yamlName(r.m.Project), "level", "L0", "query_id", memory.NoteTimeline,
		"updated", updated, "chunks_seen", strconv.Itoa(seen), "chunks_used", strconv.Itoa(used), "tags", r.tags("L0"))
	b := &r.b
	b.WriteString("# Timeline\n")
	if len(entries) == 0 {
		b.WriteString("\nNothing is kept yet.\n")
	}
	today := ""
	for _, e := range entries {
		if d := day(e.first.Place.Time); d != today {
			today = d
			b.WriteString("\n## " + d + "\n\n")
		}
		struck := true
		for _, s := range e.all {
			struck = struck && s.Superseded
		}
		b.WriteString("- ")
		if struck {
			b.WriteString("~~")
		}
		r.inline(e.first.Text)
		if struck {
			b.WriteString("~~ (until " + ended(e.first) + ")")
		}
		for _, s := range e.all {
			b.WriteString(" " + where(s, nil, false))
		}
		b.WriteByte('\n')
	}
	if left > 0 {
		fmt.Fprintf(b, "\n%d older ones are left out here; `mem log --type evidence` has all.\n", left)
	}
	b.WriteString("\n## Provenance\n\nEach line leads to its statement on the page of a question, which names the bytes of the upload it stands in.\n\nUp: [[index]]\n")
	r.end("timeline.md", memory.NoteTimeline, "")
}

func orphanStems(keys []string) []string {
	n := names{taken: map[string]bool{}}
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = n.of(k[len(orphanPrefix):])
	}
	return out
}

// orphans renders the notes whose question is asked no more.
func (r *renderer) orphans() {
	var keys []string
	for key, reg := range r.regions {
		if reg.Orphan {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	r.out.Stats.Orphans = len(keys)
	for i, stem := range orphanStems(keys) {
		reg := r.regions[keys[i]]
		stream := reg.Heads[len(reg.Heads)-1].Note.Stream
		r.begin(quoted("Notes of "+reg.Note), "project", yamlName(r.m.Project), "level", `"-"`, "query_id", yamlName(reg.Note),
			"updated", "", "chunks_seen", "0", "chunks_used", "0", "tags", r.tags("notes"))
		b := &r.b
		b.WriteString("# Notes of ")
		r.inline(reg.Note)
		b.WriteString("\n\nThis question is asked no more. Its notes stand here, and go back to its page when it is asked again.\n\n## Provenance\n\n")
		for _, h := range reg.Heads {
			fmt.Fprintf(b, "- note record `%s`\n", h.Key)
		}
		b.WriteString("\nUp: [[../index]]\n")
		r.end(orphanPrefix+stem+".md", reg.Note, stream)
	}
}

// evidencePages gives every statement of a page the name of its own.
func (r *renderer) evidencePages() {
	taken := map[string]bool{}
	for _, q := range r.qs {
		if !q.page {
			continue
		}
		nodes := slices.Clone(q.all)
		slices.SortFunc(nodes, func(a, b *shown) int { return cmp.Compare(a.Node, b.Node) })
		for _, s := range nodes {
			for n := 8; n <= len(s.Node); n += 4 {
				if s.evident = string(s.Node[:n]); !taken[s.evident] {
					break
				}
			}
			taken[s.evident] = true
		}
	}
}

// evidence renders a page for each statement.
func (r *renderer) evidence() {
	for _, q := range r.qs {
		if !q.page {
			continue
		}
		for _, s := range q.all {
			r.statement(s)
		}
	}
}

func (r *renderer) statement(s *shown) {
	r.begin(`"`+s.evident+`"`, "project", yamlName(r.m.Project), "level", "L0", "query_id", yamlName(s.q.ID), "node", `"`+string(s.Node)+`"`,
		"updated", instant(s.Place.Time), "chunks_seen", "1", "chunks_used", "1", "tags", r.tags("L0"))
	b := &r.b
	b.WriteString("# Evidence " + s.evident + "\n\n")
	if s.Superseded {
		b.WriteString("~~")
	}
	r.inline(s.Text)
	if s.Superseded {
		b.WriteString("~~")
	}
	b.WriteString(" ^text\n\n")
	fmt.Fprintf(b, "- Kept for %s\n", where(s, nil, true))
	if s.Superseded {
		b.WriteString("- Held until " + ended(s))
		if by := s.q.byNode[s.By]; by != nil && by != s && by.evident != "" {
			fmt.Fprintf(b, ", replaced by [[%s]]", by.evident)
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n## Provenance\n\n- " + s.Node.Short())
	r.said(s)
	b.WriteString(" ^source\n\nUp: [[../index]]\n")
	r.end("evidence/"+s.evident+".md", "", "")
}
