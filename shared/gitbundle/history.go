package gitbundle

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/text/encoding/charmap"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gitlog"
)

// tips are the refs that are read: HEAD, branches and tags, in the order in
// which git goes through them. What else a bundle of --all holds is no history
// of the project: stashes, notes, what a remote had. Where it holds nothing but
// such refs, they were meant.
func (h header) tips() []oid {
	named := func(pick func(name string) bool) []oid {
		refs := slices.DeleteFunc(slices.Clone(h.refs), func(r ref) bool { return !pick(r.name) })
		slices.SortStableFunc(refs, func(a, b ref) int {
			if c := cmp.Compare(b2i(a.name == "HEAD"), b2i(b.name == "HEAD")); c != 0 {
				return c // HEAD comes last
			}
			return cmp.Compare(a.name, b.name)
		})
		var out []oid
		for _, r := range refs {
			out = append(out, r.id)
		}
		return out
	}
	tips := named(func(name string) bool {
		return name == "HEAD" || strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/")
	})
	if len(tips) == 0 {
		tips = named(func(string) bool { return true })
	}
	return tips
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// history is the graph of commits.
type history struct {
	pack      *pack
	nodes     []node
	seen      map[int32]int32 // object -> node
	announced map[oid]bool    // prerequisites
	filtered  bool            // objects were left out that no prerequisite has
	lost      map[oid]bool
	stats     Stats
}

type node struct {
	object    int32
	parents   []int32 // nodes; -1 is a commit that is not there
	tree      oid
	committed int64 // seconds since 1970
	authored  int64
}

func (h *history) read(tips []oid, f func(gitlog.Commit) error) (Stats, error) {
	for i := range h.pack.objects {
		if !h.pack.objects[i].known {
			h.stats.Unresolved++
		}
	}
	starts, err := h.walk(tips)
	if err != nil {
		return h.stats, err
	}
	if len(h.nodes) == 0 && h.stats.Lost+h.stats.Unresolved > 0 {
		return h.stats, fault.At(fault.Invalid, "", hintWhole, "no commit of it can be read: %d objects follow from ones that it leaves out", h.stats.Unresolved)
	}
	for _, i := range h.order(starts) {
		c, err := h.line(h.nodes[i])
		if err != nil {
			return h.stats, err
		}
		h.stats.Commits++
		if err := f(c); err != nil {
			return h.stats, err
		}
	}
	return h.stats, nil
}

// walk finds all commits that the tips reach; it returns the nodes of the tips.
func (h *history) walk(tips []oid) (starts []int32, err error) {
	for _, id := range tips {
		at, err := h.peel(id)
		if err != nil {
			return nil, err
		}
		if at < 0 {
			continue
		}
		if i, fresh := h.node(at); fresh {
			starts = append(starts, i)
		}
	}
	for i := 0; i < len(h.nodes); i++ {
		b, err := h.pack.data(h.nodes[i].object)
		if err != nil {
			return nil, err
		}
		c := parse(b)
		n := &h.nodes[i]
		n.tree, n.committed, n.authored = c.tree, c.committed, c.authored
		parents := make([]int32, 0, len(c.parents))
		for _, id := range c.parents {
			at, ok := h.pack.find(id)
			if !ok || h.pack.objects[at].kind != int8(plumbing.CommitObject) || h.pack.objects[at].size > h.pack.limits.ObjectBytes {
				h.lose(id)
				parents = append(parents, -1)
				continue
			}
			p, _ := h.node(at)
			parents = append(parents, p)
		}
		h.nodes[i].parents = parents
	}
	return starts, nil
}

func (h *history) node(object int32) (i int32, fresh bool) {
	if i, ok := h.seen[object]; ok {
		return i, false
	}
	i = int32(len(h.nodes))
	h.nodes = append(h.nodes, node{object: object})
	h.seen[object] = i
	return i, true
}

// peel goes from a tag to its commit; -1 where it is of something else.
func (h *history) peel(id oid) (int32, error) {
	for range 16 { // a tag of a tag is rare, one of that unheard of
		i, ok := h.pack.find(id)
		if !ok || h.pack.objects[i].size > h.pack.limits.ObjectBytes {
			h.lose(id)
			return -1, nil
		}
		switch plumbing.ObjectType(h.pack.objects[i].kind) {
		case plumbing.CommitObject:
			return i, nil
		case plumbing.TagObject:
		default:
			return -1, nil
		}
		b, err := h.pack.data(i)
		if err != nil {
			return -1, err
		}
		line, _, _ := bytes.Cut(b, []byte("\n"))
		next, ok := parseOID(strings.TrimPrefix(string(line), "object "))
		if !ok {
			h.lose(id)
			return -1, nil
		}
		id = next
	}
	return -1, nil
}

// lose counts what should be there and is not.
func (h *history) lose(id oid) {
	if h.announced[id] || h.lost[id] {
		return
	}
	if h.lost == nil {
		h.lost = map[oid]bool{}
	}
	h.lost[id] = true
	h.stats.Lost++
	if len(h.stats.LostSHAs) < maxNamed {
		h.stats.LostSHAs = append(h.stats.LostSHAs, id.String())
	}
}

// queue gives what has the greatest key, of equal ones what came first.
type queue struct {
	items []queued
	n     int
}

type queued struct {
	node int32
	key  int64
	n    int
}

func (q *queue) Len() int { return len(q.items) }
func (q *queue) Less(i, j int) bool {
	if a, b := q.items[i].key, q.items[j].key; a != b {
		return a > b
	}
	return q.items[i].n < q.items[j].n
}
func (q *queue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *queue) Push(v any)    { q.items = append(q.items, v.(queued)) }
func (q *queue) Pop() any {
	v := q.items[len(q.items)-1]
	q.items = q.items[:len(q.items)-1]
	return v
}
func (q *queue) put(node int32, key int64) {
	heap.Push(q, queued{node, key, q.n})
	q.n++
}
func (q *queue) take() int32 { return heap.Pop(q).(queued).node }

// order is that of git log --reverse --author-date-order: no parent after a
// child; where that leaves a choice, by the date of the author. Branches of
// equal dates stand as git comes upon them, going back by the date of commit.
func (h *history) order(starts []int32) []int32 {
	var met []int32
	q := &queue{}
	in := make([]bool, len(h.nodes))
	for _, i := range starts {
		in[i] = true
		q.put(i, h.nodes[i].committed)
	}
	for q.Len() > 0 {
		i := q.take()
		met = append(met, i)
		for _, p := range h.nodes[i].parents {
			if p >= 0 && !in[p] {
				in[p] = true
				q.put(p, h.nodes[p].committed)
			}
		}
	}
	children := make([]int, len(h.nodes))
	for _, i := range met {
		for _, p := range h.nodes[i].parents {
			if p >= 0 {
				children[p]++
			}
		}
	}
	for _, i := range met {
		if children[i] == 0 {
			q.put(i, h.nodes[i].authored)
		}
	}
	out := met[:0:0]
	for q.Len() > 0 {
		i := q.take()
		out = append(out, i)
		for _, p := range h.nodes[i].parents {
			if p >= 0 {
				if children[p]--; children[p] == 0 {
					q.put(p, h.nodes[p].authored)
				}
			}
		}
	}
	slices.Reverse(out)
	return out
}

// line makes the line of a commit.
func (h *history) line(n node) (gitlog.Commit, error) {
	b, err := h.pack.data(n.object)
	if err != nil {
		return gitlog.Commit{}, err
	}
	d := parse(b)
	parents := make([]string, len(d.parents))
	for i, id := range d.parents {
		parents[i] = id.String()
	}
	c := gitlog.New(gitlog.Header{
		SHA: h.pack.objects[n.object].id.String(), Parents: parents, Author: d.author, Email: d.email, Date: d.date, Message: d.message,
	})
	if len(n.parents) > 1 {
		return c, nil // of a merge git shows no difference
	}
	t := trees{pack: h.pack, commit: &c}
	before := side{}
	if len(n.parents) == 1 {
		before.unknown = true
		// A parent that a prerequisite announces was left out with all it holds,
		// one that is missing otherwise may have left its files here. A tree that
		// is missing below a parent that is here is one of a prerequisite, if it is
		// none of those that can not be read.
		t.trusted = h.announced[d.parents[0]]
		if p := n.parents[0]; p >= 0 {
			t.trusted = len(h.announced) > 0 && h.stats.Unresolved == 0 && !h.filtered
			if before, err = t.tree(h.nodes[p].tree); err != nil {
				return c, err
			}
		}
	}
	after, err := t.tree(n.tree)
	if err != nil {
		return c, err
	}
	if err := t.differ("", before, after); err != nil {
		return c, err
	}
	c.Symbols = t.symbols.List()
	if t.partial {
		h.stats.Partial++
		if len(h.stats.PartialSHAs) < maxNamed {
			h.stats.PartialSHAs = append(h.stats.PartialSHAs, c.SHA)
		}
	}
	return c, nil
}

// parsed is what a commit's object says.
type parsed struct {
	tree                         oid
	parents                      []oid
	author, email, date, message string
	committed, authored          int64 // seconds; 0 where there is none
}

// parse reads a commit as git log does: what is wrong in it is left out.
func parse(b []byte) (c parsed) {
	b, _, _ = bytes.Cut(b, []byte{0}) // git ends a message there
	head, message, _ := bytes.Cut(b, []byte("\n\n"))
	var author, encoding string
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		key, value, _ := strings.Cut(string(line), " ")
		switch key {
		case "tree":
			c.tree, _ = parseOID(value)
		case "parent":
			if id, ok := parseOID(value); ok {
				c.parents = append(c.parents, id)
			}
		case "author":
			author = value
		case "committer":
			_, _, date := ident(value)
			c.committed = seconds(date)
		case "encoding":
			encoding = value
		}
	}
	decode := decoder(encoding)
	c.author, c.email, c.date = ident(decode(author))
	c.authored = seconds(c.date)
	c.message = decode(string(message))
	return c
}

// ident takes "Ada <ada@x.org> 1769932800 +0100" apart. The date stands after
// the last >, since a name may hold one.
func ident(s string) (name, mail, date string) {
	name, rest, ok := strings.Cut(s, "<")
	if !ok {
		return "", "", ""
	}
	mail, _, ok = strings.Cut(rest, ">")
	if !ok {
		return "", "", ""
	}
	date = strings.TrimSpace(rest[strings.LastIndexByte(rest, '>')+1:])
	return strings.TrimSpace(name), mail, date
}

func seconds(date string) int64 {
	secs, _, _ := strings.Cut(date, " ")
	n, err := strconv.ParseInt(secs, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// charsets are the encodings of one byte that commits name; of others the bytes
// stay, and those that are no UTF-8 become U+FFFD.
var charsets = map[string]*charmap.Charmap{
	"iso88591": charmap.ISO8859_1, "latin1": charmap.ISO8859_1, "iso88592": charmap.ISO8859_2, "latin2": charmap.ISO8859_2,
	"iso88595": charmap.ISO8859_5, "iso88599": charmap.ISO8859_9, "iso885915": charmap.ISO8859_15, "latin9": charmap.ISO8859_15,
	"windows1250": charmap.Windows1250, "cp1250": charmap.Windows1250, "windows1251": charmap.Windows1251, "cp1251": charmap.Windows1251,
	"windows1252": charmap.Windows1252, "cp1252": charmap.Windows1252, "koi8r": charmap.KOI8R, "koi8u": charmap.KOI8U,
}

func decoder(encoding string) func(string) string {
	cs := charsets[strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(encoding))]
	if cs == nil {
		return func(s string) string { return s }
	}
	return func(s string) string {
		var out strings.Builder
		for i := range len(s) {
			out.WriteRune(cs.DecodeByte(s[i]))
		}
		return out.String()
	}
}
