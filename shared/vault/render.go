package vault

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// RenderVersion changes with the form of the pages: a vault of another one is
// written anew.
//
// History:
//
//	1 — first
//	2 — names like __init__ are text; the index leads to what its synthesis read
const RenderVersion = 2

// Bounds of a page. A page says how much it leaves out; the log leaves out nothing.
const (
	// maxListed bounds the statements in each list beside a memory: some twenty
	// screens, the newest first.
	maxListed = 100
	// maxTimeline bounds the statements of the timeline likewise: Obsidian opens a
	// page of 300 KB without a wait.
	maxTimeline = 1000
	// maxCited bounds the places that are listed of a statement that was said again
	// and again, and the statements that a line of a model's memory is led to for each
	// section that it names.
	maxCited = 4
)

// Render makes the pages of a project.
func Render(m *Model) *Vault {
	r := newRenderer(m)
	r.index()
	for _, q := range r.qs {
		if q.page {
			r.question(q)
		}
	}
	r.timeline()
	r.orphans()
	if m.Evidence {
		r.evidence()
	}
	slices.SortFunc(r.out.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return r.out
}

// renderer holds what the pages of one project know of one another.
type renderer struct {
	m       *Model
	out     *Vault
	b       bytes.Buffer
	in      strings.Builder
	qs      []*questionPage
	short   map[string][]target // what an id of eight digits may mean
	l2      []memoryLine
	below   []read // what the synthesis was made of, by question
	regions map[string]Region
}

// questionPage is a question with what its page shows.
type questionPage struct {
	*Question
	stem     string
	page     bool
	byNode   map[memory.SHA]*shown
	all      []*shown // by place, the newest first
	lines    []memoryLine
	replaced []*shown
	beside   []*shown
	left     [2]int // left out of replaced and of beside
	blocks   map[string]bool
}

// shown is a statement and where it stands on its page.
type shown struct {
	*Statement
	q       *questionPage
	block   string // of its line; "" where only its provenance stands there
	cited   bool   // its provenance stands there
	source  string // block of its provenance
	evident string // stem of its own page
}

// memoryLine is one line of a memory and what its ids lead to.
type memoryLine struct {
	text    string
	refs    []target
	unknown []string
	block   string
	own     *shown // the statement that the line is, word for word
}

// read is a memory that the synthesis read, as it was then.
type read struct {
	q   *questionPage
	mem Memory
}

// target is what an id names: a statement, or the memory of a question.
type target struct {
	q *questionPage
	s *shown
}

func newRenderer(m *Model) *renderer {
	r := &renderer{m: m, out: &Vault{Folder: Folder(m.Project)}, short: map[string][]target{}}
	qs := make([]question, 0, len(m.Questions))
	for i := range m.Questions {
		q := &questionPage{Question: &m.Questions[i], byNode: map[memory.SHA]*shown{}, blocks: map[string]bool{}}
		q.page = !q.Adhoc || strings.TrimSpace(q.Memory.Text) != ""
		if !q.page {
			r.out.Stats.EmptyAdhoc++
		}
		r.qs = append(r.qs, q)
		qs = append(qs, question{q.ID, q.Asked})
	}
	slices.SortFunc(r.qs, func(a, b *questionPage) int { return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.ID, b.ID)) })
	r.regions = Regions(m.Notes, qs)
	n := names{taken: map[string]bool{}}
	n.keep("index")
	n.keep("timeline")
	byID := slices.Clone(r.qs)
	slices.SortFunc(byID, func(a, b *questionPage) int { return cmp.Compare(a.ID, b.ID) })
	for _, q := range byID {
		q.stem = n.of(q.ID)
	}
	r.out.Stats.NamesMet = len(n.met)
	for _, q := range r.qs {
		r.statements(q)
	}
	for _, q := range r.qs {
		if q.page {
			r.resolvable(q)
		}
	}
	for _, q := range r.qs {
		r.read(q)
	}
	if s := m.Synthesis; s != nil {
		r.readBelow(s.Memory.Parents)
		for _, l := range memoryLines(s.Memory.Text) {
			r.l2 = append(r.l2, r.resolve(l, nil))
		}
	}
	for _, q := range r.qs {
		r.choose(q)
	}
	for i := range r.l2 {
		for _, t := range r.l2[i].refs {
			if t.s != nil {
				t.s.cited = true
			}
		}
	}
	for _, q := range r.qs { // what replaced a statement that is shown, once all are chosen
		for _, s := range q.all {
			if s.block != "" && s.Superseded {
				if by := q.byNode[s.By]; by != nil {
					by.cited = true
				}
			}
		}
	}
	for _, q := range r.qs {
		for _, s := range q.all {
			if s.cited {
				s.source = q.free("p-", s.Node)
				r.out.Stats.Shown++
			}
		}
	}
	if m.Evidence {
		r.evidencePages()
	}
	r.out.Regions = r.regions
	return r
}

// statements sorts what a question keeps.
func (r *renderer) statements(q *questionPage) {
	all := make([]shown, len(q.Statements))
	q.all = make([]*shown, len(q.Statements))
	for i := range q.Statements {
		all[i] = shown{Statement: &q.Statements[i], q: q}
		q.all[i] = &all[i]
		q.byNode[q.Statements[i].Node] = &all[i]
		if q.Statements[i].Superseded {
			r.out.Stats.Superseded++
		}
	}
	slices.SortFunc(q.all, func(a, b *shown) int {
		return cmp.Or(b.Place.Compare(a.Place), cmp.Compare(a.Node, b.Node))
	})
	r.out.Stats.Statements += len(q.all)
}

// readBelow finds the memories that a synthesis names as its parents.
func (r *renderer) readBelow(parents []memory.SHA) {
	for _, q := range r.qs {
		if !q.page {
			continue
		}
		for _, mem := range append([]Memory{q.Memory}, q.Read...) {
			if mem.Node != "" && slices.Contains(parents, mem.Node) {
				r.below = append(r.below, read{q, mem})
			}
		}
	}
}

// resolvable notes what ids of eight digits may mean: statements, and the chunks they
// were read in.
func (r *renderer) resolvable(q *questionPage) {
	add := func(id memory.SHA, t target) {
		k := id.Short()
		if n := len(r.short[k]); n > 0 && r.short[k][n-1] == t {
			return
		}
		r.short[k] = append(r.short[k], t)
	}
	for _, s := range q.all {
		add(s.Node, target{q, s})
	}
	for _, s := range q.all {
		for i := range s.Spans {
			add(s.Spans[i].Span.Chunk, target{q, s})
		}
	}
}

// named is what an id of a line of q's memory mem means: a statement of the question,
// or those that were read in a chunk. What the memory was made of goes before all else.
func (r *renderer) named(id string, q *questionPage, mem *Memory) (out []target) {
	for _, t := range r.short[id] {
		if t.q == q {
			out = append(out, t)
		}
	}
	if under := slices.DeleteFunc(slices.Clone(out), func(t target) bool { return !slices.Contains(mem.Parents, t.s.Node) }); len(under) > 0 {
		return under
	}
	return out
}

// namedAbove is what an id of a line of the synthesis means: what it means in a memory
// that was read, or such a memory itself, with its statements where they are few.
func (r *renderer) namedAbove(id string) (out []target) {
	for i := range r.below {
		b := &r.below[i]
		out = append(out, r.named(id, b.q, &b.mem)...)
		if b.mem.TextSHA.Short() != id && b.mem.Node.Short() != id {
			continue
		}
		out = append(out, target{b.q, nil})
		if len(b.mem.Parents) <= maxCited {
			for _, n := range b.mem.Parents {
				if s := b.q.byNode[n]; s != nil {
					out = append(out, target{b.q, s})
				}
			}
		}
	}
	return out
}

// mark is a source id in a memory's line, with the blanks before it.
var mark = regexp.MustCompile(`[ \t]*\[([0-9a-f]{8})\]`)

// memoryLines are the lines of a memory that hold something.
func memoryLines(text string) (out []string) {
	for l := range strings.Lines(text) {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// resolve reads one line of the memory of own, nil for the synthesis.
func (r *renderer) resolve(line string, own *questionPage) memoryLine {
	var l memoryLine
	var ids []string
	l.text = mark.ReplaceAllStringFunc(line, func(m string) string {
		ids = append(ids, mark.FindStringSubmatch(m)[1])
		return ""
	})
	l.text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l.text), "- "))
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			continue
		}
		var found []target
		if own != nil {
			found = r.named(id, own, &own.Memory)
		} else {
			found = r.namedAbove(id)
		}
		if len(found) == 0 {
			l.unknown = append(l.unknown, id)
			r.out.Stats.Unresolved++
			continue
		}
		// A chunk names all that was kept of it; what stands in a memory goes first.
		slices.SortStableFunc(found, func(a, b target) int { return cmp.Compare(weight(a), weight(b)) })
		statements := 0
		for _, t := range found {
			if t.s != nil {
				statements++
			}
			if statements <= maxCited && !slices.Contains(l.refs, t) {
				l.refs = append(l.refs, t)
			}
		}
	}
	return l
}

func weight(t target) int {
	switch {
	case t.s == nil:
		return 0
	case t.s.In:
		return 1
	case !t.s.Superseded:
		return 2
	}
	return 3
}

// read resolves the lines of a question's memory and gives them their blocks.
func (r *renderer) read(q *questionPage) {
	if !q.page {
		return
	}
	for _, line := range memoryLines(q.Memory.Text) {
		l := r.resolve(line, q)
		if len(l.refs) == 1 && l.refs[0].s != nil && l.refs[0].s.block == "" && l.refs[0].s.Text == l.text {
			l.own = l.refs[0].s
			l.block = q.free("", l.own.Node)
			l.own.block = l.block
		} else {
			l.block = q.free("", memory.SumString(l.text))
		}
		for _, t := range l.refs {
			t.s.cited = true
		}
		q.lines = append(q.lines, l)
	}
}

// free is the shortest block id of a hash that the page does not have yet.
func (q *questionPage) free(prefix string, sha memory.SHA) string {
	for n := 8; n <= len(sha); n += 4 {
		if id := prefix + string(sha[:n]); !q.blocks[id] {
			q.blocks[id] = true
			return id
		}
	}
	for n := 2; ; n++ {
		if id := prefix + string(sha) + "-" + strconv.Itoa(n); !q.blocks[id] {
			q.blocks[id] = true
			return id
		}
	}
}

// choose picks the statements that a page lists beside its memory.
func (r *renderer) choose(q *questionPage) {
	if !q.page {
		return
	}
	for _, n := range q.Memory.Parents {
		if s := q.byNode[n]; s != nil {
			s.cited = true
		}
	}
	for _, s := range q.all {
		switch {
		case s.block != "" || s.cited && !s.Superseded:
		case s.Superseded:
			q.replaced = append(q.replaced, s)
		default:
			q.beside = append(q.beside, s)
		}
	}
	slices.SortStableFunc(q.replaced, func(a, b *shown) int {
		return cmp.Or(b.Until.Compare(a.Until), b.Place.Compare(a.Place), cmp.Compare(a.Node, b.Node))
	})
	for i, list := range []*[]*shown{&q.replaced, &q.beside} {
		if n := len(*list); n > maxListed {
			q.left[i] = n - maxListed
			*list = (*list)[:maxListed]
		}
		for _, s := range *list {
			s.block, s.cited = q.free("", s.Node), true
		}
	}
}

// begin starts a page: front matter and the marker of what Mneme gives out.
func (r *renderer) begin(title string, front ...string) {
	r.b.Reset()
	r.b.WriteString("---\ntitle: " + title + "\n")
	for i := 0; i+1 < len(front); i += 2 {
		r.b.WriteString(front[i] + ":")
		if front[i+1] != "" {
			r.b.WriteString(" " + front[i+1])
		}
		r.b.WriteByte('\n')
	}
	r.b.WriteString(transcript.DerivedFrontMatter + "\n---\n\n" + derived.Marker(derived.KindVault) + "\n\n")
}

// end ends a page with its Notes region; note is "" where it has none.
func (r *renderer) end(path, note, stream string) {
	r.b.WriteByte('\n')
	if note != "" {
		r.b.WriteString(notesLine)
	}
	r.b.WriteString(derived.MarkerClose + "\n")
	f := File{Path: path, Note: note, Stream: stream}
	if note != "" {
		key := note
		if strings.HasPrefix(path, orphanPrefix) {
			key = orphanPrefix + note
		}
		reg := r.regions[key]
		if reg.Conflict() {
			r.out.Stats.Conflicts++
		}
		r.b.WriteString("\n" + notesHeading + "\n")
		r.b.WriteString(reg.Text)
	}
	f.Bytes = bytes.Clone(r.b.Bytes())
	r.out.Files = append(r.out.Files, f)
}

// inline writes a text as Inline does.
func (r *renderer) inline(s string) {
	r.in.Reset()
	appendInline(&r.in, s)
	r.b.WriteString(r.in.String())
}

// tags are a page's tags: Obsidian takes letters, digits, "-", "_" and "/".
func (r *renderer) tags(level string) string {
	p := strings.ReplaceAll(r.m.Project, ".", "-")
	return "[mneme, mneme/" + level + ", mneme/project/" + p + "]"
}

// instant is a time as front matter and pages show it; "" for none.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// day is the day of a place.
func day(t time.Time) string {
	if t.IsZero() {
		return "undated"
	}
	return t.UTC().Format(time.DateOnly)
}

// to is a link's target from a page in folder "" or "x/": a name that holds a dot
// keeps its ending, which would be taken for one.
func to(up bool, stem string) string {
	if strings.Contains(stem, ".") {
		stem += ".md"
	}
	if up {
		return "../" + stem
	}
	return stem
}

// link is the link to a page of a folder, "" or "x/", shown as its name.
func link(folder, stem string) string {
	if target := folder + to(false, stem); target != stem {
		return "[[" + target + "|" + stem + "]]"
	}
	return "[[" + stem + "]]"
}

// where is the link to a statement from the page of from, nil for another page.
func where(s *shown, from *questionPage, up bool) string {
	block := s.block
	if block == "" {
		block = s.source
	}
	page := ""
	if from != s.q {
		page = to(up, s.q.stem)
	}
	if block == "" {
		return "[[" + page + "]]"
	}
	return "[[" + page + "#^" + block + "|" + s.q.stem + " " + s.Node.Short() + "]]"
}

// question renders the page of a question.
func (r *renderer) question(q *questionPage) {
	title := quoted(q.Wording)
	r.begin(title,
		"aliases", "["+title+"]", "project", yamlName(r.m.Project), "level", "L1", "query_id", yamlName(q.ID), "stream", quoted(q.Stream),
		"updated", instant(q.Memory.Updated), "chunks_seen", strconv.Itoa(q.ChunksSeen), "chunks_used", strconv.Itoa(q.ChunksUsed), "tags", r.tags("L1"))
	b := &r.b
	b.WriteString("# ")
	r.inline(q.Wording)
	b.WriteString("\n\n")
	if q.Asked != q.Stream && !q.Adhoc {
		b.WriteString("> [!info] The question was worded anew. This is what its earlier wording found; the new one is read over all that was learned first.\n\n")
	}
	if len(q.lines) == 0 {
		b.WriteString("Nothing that was learned answers this yet.\n")
	}
	for i := range q.lines {
		r.line(&q.lines[i], q)
	}
	if len(q.beside) > 0 {
		b.WriteString("\n## Kept beside it\n\nKept, and no longer or not yet in the memory, whose room is bounded. The newest first.\n\n")
		for _, s := range q.beside {
			b.WriteString("- ")
			r.inline(s.Text)
			fmt.Fprintf(b, " [[#^%s|%s]] ^%s\n", s.source, day(s.Place.Time), s.block)
		}
		r.leftOut(q.left[1])
	}
	if len(q.replaced) > 0 {
		b.WriteString("\n## Superseded\n\n")
		for _, s := range q.replaced {
			r.struck(s)
			fmt.Fprintf(b, " [[#^%s|%s]] ^%s\n", s.source, day(s.Place.Time), s.block)
		}
		r.leftOut(q.left[0])
	}
	b.WriteString("\n## Provenance\n\n")
	fmt.Fprintf(b, "%d of %d chunks were kept from. ", q.ChunksUsed, q.ChunksSeen)
	if q.Memory.TextSHA != "" {
		fmt.Fprintf(b, "Memory `%s`, node `%s`. ", q.Memory.TextSHA, q.Memory.Node)
	}
	if !slices.ContainsFunc(q.all, func(s *shown) bool { return s.cited }) {
		b.WriteString("Nothing is cited.\n")
	} else {
		b.WriteString("Each statement with the bytes of the upload it stands in, and their sha256:\n\n")
	}
	for _, s := range q.all {
		if s.cited {
			r.provenance(s)
		}
	}
	b.WriteString("\nUp: [[index]] · [[timeline]]\n")
	r.end(q.stem+".md", q.ID, q.Asked)
}

// line writes one line of a memory.
func (r *renderer) line(l *memoryLine, q *questionPage) {
	r.b.WriteString("- ")
	r.inline(l.text)
	if l.own != nil && l.own.Superseded {
		r.b.WriteString(" (")
		r.until(l.own)
		r.b.WriteString(")")
	}
	for _, t := range l.refs {
		switch {
		case t.s == nil:
			r.b.WriteString(" " + link("", t.q.stem))
		case q == nil: // a synthesis
			r.b.WriteString(" " + where(t.s, nil, false))
		default:
			fmt.Fprintf(&r.b, " [[#^%s|%s]]", t.s.source, day(t.s.Place.Time))
		}
	}
	for _, id := range l.unknown {
		r.b.WriteString(" (" + id + ")")
	}
	if len(l.refs) == 0 {
		r.b.WriteString(uncited)
		r.out.Stats.Uncited++
	}
	r.b.WriteString(" ^" + l.block + "\n")
}

// uncited says of a line of a model's memory that it names no source.
const uncited = " *(names no source)*"

// struck writes a superseded statement, struck through, with its end.
func (r *renderer) struck(s *shown) {
	r.b.WriteString("- ~~")
	r.inline(s.Text)
	r.b.WriteString("~~ (")
	r.until(s)
	r.b.WriteString(")")
}

// ended is the day on which a statement was superseded.
func ended(s *shown) string {
	if s.Until.Time.IsZero() {
		return "an unknown day"
	}
	return day(s.Until.Time)
}

func (r *renderer) until(s *shown) {
	r.b.WriteString("until " + ended(s))
	if by := s.q.byNode[s.By]; by != nil && by != s {
		r.b.WriteString(", replaced by " + where(by, s.q, false))
	}
}

func (r *renderer) leftOut(n int) {
	if n > 0 {
		fmt.Fprintf(&r.b, "\n%d older ones are left out here; `mem log --type evidence` has all.\n", n)
	}
}

// provenance writes where a statement stands. One that is on no line of the page
// is quoted.
func (r *renderer) provenance(s *shown) {
	b := &r.b
	b.WriteString("- ")
	if s.block != "" {
		fmt.Fprintf(b, "[[#^%s|%s]]", s.block, s.Node.Short())
	} else {
		b.WriteString(s.Node.Short() + " “")
		r.inline(s.Text)
		b.WriteString("”")
		if s.Superseded {
			b.WriteString(" (")
			r.until(s)
			b.WriteString(")")
		}
	}
	r.said(s)
	if s.evident != "" {
		fmt.Fprintf(b, "; [[evidence/%s|evidence]]", s.evident)
	}
	b.WriteString(" ^" + s.source + "\n")
}

// said writes who said a statement, when and where.
func (r *renderer) said(s *shown) {
	fmt.Fprintf(&r.b, " %s", s.Role)
	if s.Trust != "" && string(s.Trust) != string(s.Role) {
		fmt.Fprintf(&r.b, " (trust %s)", s.Trust)
	}
	for i := range s.Spans {
		if i == maxCited {
			fmt.Fprintf(&r.b, "; and %d more", len(s.Spans)-i)
			break
		}
		if i > 0 {
			r.b.WriteString("; again")
		}
		r.cite(&s.Spans[i])
	}
}

// cite writes one citation; citation reads it.
func (r *renderer) cite(c *Cited) {
	if at := instant(c.Place.Time); at != "" {
		r.b.WriteString(" " + at)
	}
	sp := &c.Span
	fmt.Fprintf(&r.b, ": `%s` bytes %d to %d", objectName(sp.Object), sp.Start, sp.End)
	if sp.Codec != "" && sp.Codec != memory.CodecRaw {
		fmt.Fprintf(&r.b, " (%s)", sp.Codec)
	}
	switch {
	case sp.SHA256 != "":
		fmt.Fprintf(&r.b, " sha256 `%s`", sp.SHA256)
	case sp.HMAC != "":
		fmt.Fprintf(&r.b, " hmac-sha256 `%s` (redacted)", sp.HMAC)
	}
}

// yamlName is a name as a plain scalar where YAML reads it as text, else quoted:
// `007`, `1.5`, `null` and `no` are names of projects.
func yamlName(s string) string {
	if plainName.MatchString(s) && !notText[s] {
		return s
	}
	return quoted(s)
}

var (
	plainName = regexp.MustCompile(`^[a-df-z][a-z0-9_-]*$|^e[a-z_-][a-z0-9_-]*$`)
	notText   = map[string]bool{"null": true, "true": true, "false": true, "yes": true, "no": true, "on": true, "off": true, "y": true, "n": true}
)
