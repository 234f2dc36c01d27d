package bleveindex

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/bleve/v2/index/scorch"
	segment "github.com/blevesearch/scorch_segment_api/v2"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	// k1 and b of BM25, the usual values (Robertson and Zaragoza 2009) and
	// those of the measured baseline in models/static.
	k1 = 1.2
	b  = 0.75

	// codeWeight is that of an exact error code beside the same word in the
	// text: a code names one thing, and whoever types it means that one.
	codeWeight = 2

	// commonShare: a word that stands in more of the passages is left out of
	// the search unless nothing else is left. Its idf is under 1.2 of 9 or
	// more, and its postings are most of the time: 48 ms a query with such
	// words, 5 ms without (DESIGN section 9).
	commonShare = 0.30
	// commonFrom passages on: in a small index every word is common, and the
	// time is none.
	commonFrom = 1000

	// maxTerms bounds a query. The rarest are kept: a question has 10 to 30,
	// a pasted log thousands.
	maxTerms = 64
)

// queryWord is a word of the question: the terms it is found by, as indexes
// into the query's terms.
type queryWord struct {
	parts  []int
	wholes []int
	stop   bool
}

type queryTerm struct {
	field, text string
	weight      float64 // of the field
	df          int     // passages that hold it
	idf         float64
	known       float64 // idf for the share: see background
	dropped     bool
	bit         uint64 // in a passage's mask; 0 when dropped or in no passage
}

type query struct {
	terms []queryTerm
	words []queryWord
}

func parse(st *stemmer, text string) *query {
	q := &query{}
	at := map[[2]string]int{}
	term := func(field, text string, weight float64) int {
		key := [2]string{field, text}
		i, ok := at[key]
		if !ok {
			i = len(q.terms)
			at[key] = i
			q.terms = append(q.terms, queryTerm{field: field, text: text, weight: weight})
		}
		return i
	}
	st.words(text, func(w *word) {
		var qw queryWord
		for _, t := range w.parts {
			qw.parts = append(qw.parts, term(fieldText, t, 1))
		}
		for _, t := range w.wholes {
			qw.wholes = append(qw.wholes, term(fieldText, t, 1))
		}
		if w.code != "" {
			term(fieldCode, w.code, codeWeight)
		}
		qw.stop = w.stop
		q.words = append(q.words, qw)
	})
	return q
}

// part is one segment of one project's index.
type part struct {
	seg   *scorch.SegmentSnapshot
	dicts map[string]segment.TermDictionary
	lists []segment.PostingsList // by term; nil where the segment has none
}

// Search implements index.Lexical.
func (ix *Index) Search(ctx context.Context, text string, f index.Filter, k int) (hits []index.Hit, err error) {
	defer fault.Wrap(&err, "bleveindex.Search(%s)", f.Tenant)
	if k <= 0 {
		return nil, nil
	}
	q := parse(ix.stems, text)
	if len(q.terms) == 0 {
		return nil, nil
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	snaps, err := ix.snapshots(&f)
	defer func() {
		for _, s := range snaps {
			s.Close()
		}
	}()
	if err != nil {
		return nil, err
	}
	docs, tokens := 0.0, 0.0
	var parts []*part
	for _, s := range snaps {
		n, err := s.DocCount()
		if err != nil {
			return nil, fault.As(fault.Unavailable, err)
		}
		t, err := number(s, tokensKey)
		if err != nil {
			return nil, err
		}
		docs, tokens = docs+float64(n), tokens+float64(t)
		for _, seg := range s.Segments() {
			parts = append(parts, &part{seg: seg, dicts: map[string]segment.TermDictionary{}})
		}
	}
	if docs == 0 {
		return nil, nil
	}
	if err := q.lookup(parts); err != nil {
		return nil, err
	}
	q.weigh(docs)
	sc := scorers.Get().(*scorer)
	defer func() {
		sc.q, sc.filter = nil, nil
		scorers.Put(sc)
	}()
	sc.q, sc.average, sc.filter, sc.found = q, max(tokens/docs, 1), &f, sc.found[:0]
	for i, p := range parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := sc.score(uint32(i), p); err != nil {
			return nil, err
		}
	}
	return sc.hits(parts, k)
}

// snapshots opens the indexes that f sees. Those it returns are to be closed,
// after an error too.
func (ix *Index) snapshots(f *index.Filter) ([]*scorch.IndexSnapshot, error) {
	raw := slices.Contains(f.Scope(), memory.LevelRaw)
	mem := slices.ContainsFunc(f.Scope(), func(l memory.Level) bool { return l != memory.LevelRaw })
	var out []*scorch.IndexSnapshot
	for _, project := range slices.Compact(slices.Sorted(slices.Values(f.Projects))) {
		for _, k := range []shardKey{{f.Tenant, project, false}, {f.Tenant, project, true}} {
			if k.raw && !raw || !k.raw && !mem {
				continue
			}
			s, err := ix.shard(k, false)
			if err != nil {
				return out, err
			}
			if s == nil {
				continue
			}
			snap, err := s.snapshot()
			if err != nil {
				return out, err
			}
			out = append(out, snap)
		}
	}
	return out, nil
}

// lookup finds each term's postings and counts them over all parts.
func (q *query) lookup(parts []*part) error {
	for _, p := range parts {
		p.lists = make([]segment.PostingsList, len(q.terms))
		for i := range q.terms {
			t := &q.terms[i]
			d, ok := p.dicts[t.field]
			if !ok {
				var err error
				if d, err = p.seg.Segment().Dictionary(t.field); err != nil {
					return fault.As(fault.Unavailable, err)
				}
				p.dicts[t.field] = d
			}
			list, err := d.PostingsList([]byte(t.text), p.seg.Deleted(), nil)
			if err != nil {
				return fault.As(fault.Unavailable, err)
			}
			if n := int(list.Count()); n > 0 {
				p.lists[i] = list
				t.df += n
			}
		}
	}
	return nil
}

// weigh gives the terms their idf and drops what is too common.
func (q *query) weigh(docs float64) {
	left := 0
	for i := range q.terms {
		t := &q.terms[i]
		t.idf = math.Log(1 + (docs-float64(t.df)+0.5)/(float64(t.df)+0.5))
		t.known = math.Log(1 + (index.ShareBackground+docs-float64(t.df)+0.5)/(float64(t.df)+0.5))
		t.dropped = docs >= commonFrom && float64(t.df) > commonShare*docs
		if t.df > 0 && !t.dropped {
			left++
		}
	}
	order := make([]int, len(q.terms))
	for i := range order {
		order[i] = i
		if left == 0 {
			q.terms[i].dropped = false
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(q.terms[y].idf, q.terms[x].idf) })
	bit := 0
	for _, i := range order {
		t := &q.terms[i]
		if t.df == 0 || t.dropped {
			continue
		}
		if bit == maxTerms {
			t.dropped = true
			continue
		}
		t.bit = 1 << bit
		bit++
	}
}

// bound is the least upper bound of a passage's score: every word of the
// question matched without end. A subject word that stands nowhere is in it, a
// function word or a spelling that stands nowhere is not.
func (q *query) bound() float64 {
	sum := 0.0
	for i := range q.terms {
		if t := &q.terms[i]; t.bit != 0 {
			sum += t.weight * t.idf * (k1 + 1)
		}
	}
	seen := map[int]bool{}
	for _, w := range q.words {
		for _, i := range w.parts {
			if t := &q.terms[i]; !w.stop && t.df == 0 && !seen[i] {
				seen[i] = true
				sum += t.idf * (k1 + 1)
			}
		}
	}
	return sum
}

// share is the share of the question's idf in the passage's mask: each subject
// word once, by its parts, or whole when one of its whole forms matched.
// Dropped words do not count. A question of function words alone says nothing
// of a subject, and has share 0.
func (q *query) share(mask uint64) float64 {
	var got, all float64
	seen := map[int]bool{}
	for _, w := range q.words {
		if w.stop {
			continue
		}
		whole := false
		for _, i := range w.wholes {
			whole = whole || q.terms[i].bit&mask != 0
		}
		for _, i := range w.parts {
			t := &q.terms[i]
			if t.dropped || seen[i] {
				continue
			}
			seen[i] = true
			all += t.known
			if whole || t.bit&mask != 0 {
				got += t.known
			}
		}
	}
	if all == 0 {
		return 0
	}
	return got / all
}

type found struct {
	score float32
	part  uint32
	doc   uint32
	mask  uint64
}

// scorer adds up the terms of one query, a part at a time, with working memory
// that the next search uses again.
type scorer struct {
	q       *query
	average float64 // words of a passage
	filter  *index.Filter

	sums  []float32 // by document of the part
	masks []uint64
	found []found
}

// scorers keep their slices from search to search: they are 12 bytes a passage.
var scorers = sync.Pool{New: func() any { return new(scorer) }}

// normer gives a posting's field length. bleve's Norm() is its inverse square
// root in float32, which costs a root and digits.
type normer interface{ NormUint64() uint64 }

func (sc *scorer) score(pi uint32, p *part) error {
	n := int(p.seg.Segment().Count())
	sc.sums = resize(sc.sums, n)
	sc.masks = resize(sc.masks, n)
	allowed, err := sc.allowed(p)
	if err != nil {
		return err
	}
	any := false
	for i := range sc.q.terms {
		t := &sc.q.terms[i]
		if t.bit == 0 || p.lists[i] == nil {
			continue
		}
		any = true
		if err := sc.add(t, p.lists[i], allowed); err != nil {
			return err
		}
	}
	if !any {
		return nil
	}
	for doc, mask := range sc.masks[:n] {
		if mask != 0 {
			sc.found = append(sc.found, found{sc.sums[doc], pi, uint32(doc), mask})
		}
	}
	return nil
}

func resize[T float32 | uint64](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// add adds one term's postings.
func (sc *scorer) add(t *queryTerm, list segment.PostingsList, allowed *roaring.Bitmap) error {
	it := list.Iterator(true, true, false, nil)
	if o, ok := it.(segment.OptimizablePostingsIterator); ok && allowed != nil {
		if bm := o.ActualBitmap(); bm != nil {
			o.ReplaceActual(roaring.And(bm, allowed))
		}
	}
	top := float32(t.weight * t.idf * (k1 + 1))
	base := float32(k1 * (1 - b))
	slope := float32(k1 * b / sc.average)
	for {
		post, err := it.Next()
		if err != nil {
			return fault.As(fault.Unavailable, err)
		}
		if post == nil {
			return nil
		}
		doc := post.Number()
		if allowed != nil && !allowed.Contains(uint32(doc)) {
			continue // a list of one passage has no bitmap to cut
		}
		length := float32(sc.average)
		if x, ok := post.(normer); ok && t.field == fieldText {
			length = float32(x.NormUint64())
		}
		tf := float32(post.Frequency())
		sc.sums[doc] += top * tf / (tf + base + slope*length)
		sc.masks[doc] |= t.bit
	}
}

// allowed is what the filter lets through beyond tenant and project, which
// chose the indexes; nil means all.
func (sc *scorer) allowed(p *part) (*roaring.Bitmap, error) {
	f := sc.filter
	var out *roaring.Bitmap
	if levels := f.Scope(); !coversMemory(levels) {
		out = roaring.New()
		d, err := p.seg.Segment().Dictionary(fieldLevel)
		if err != nil {
			return nil, fault.As(fault.Unavailable, err)
		}
		for _, l := range levels {
			list, err := d.PostingsList([]byte(l), p.seg.Deleted(), nil)
			if err != nil {
				return nil, fault.As(fault.Unavailable, err)
			}
			if err := union(out, list); err != nil {
				return nil, err
			}
		}
	}
	var in *roaring.Bitmap
	var err error
	from, to := f.Range()
	switch {
	case len(f.Sources) > 0:
		in, err = stating(p, fieldFrom, f.Sources, func(term string) bool {
			object, at, ok := strings.Cut(term, "\x00")
			return ok && at >= timeKey(from) && at < timeKey(to) && f.From(object)
		})
	case f.Timed():
		in, err = within(p, fieldTime, timeKey(from), timeKey(to), func(string) bool { return true })
	default:
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	if out != nil {
		in.And(out)
	}
	return in, nil
}

// stating is the documents of a term that begins with one of the prefixes, and passes.
func stating(p *part, field string, prefixes []string, passes func(term string) bool) (*roaring.Bitmap, error) {
	all := roaring.New()
	for _, prefix := range prefixes {
		in, err := within(p, field, prefix, prefix+"\xff", passes) // no byte of UTF-8 is ff
		if err != nil {
			return nil, err
		}
		all.Or(in)
	}
	return all, nil
}

// within is the documents of a term in [from, to) that passes.
func within(p *part, field, from, to string, passes func(term string) bool) (*roaring.Bitmap, error) {
	d, err := p.seg.Segment().Dictionary(field)
	if err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	in := roaring.New()
	it := d.AutomatonIterator(nil, []byte(from), []byte(to))
	for {
		e, err := it.Next()
		if err != nil {
			return nil, fault.As(fault.Unavailable, err)
		}
		if e == nil {
			return in, nil
		}
		if !passes(e.Term) {
			continue
		}
		list, err := d.PostingsList([]byte(e.Term), p.seg.Deleted(), nil)
		if err != nil {
			return nil, fault.As(fault.Unavailable, err)
		}
		if err := union(in, list); err != nil {
			return nil, err
		}
	}
}

// coversMemory reports whether levels holds L0, L1 and L2, so that the index of
// a project's memory needs no filter. The raw index holds raw alone and is
// opened only when raw is asked for.
func coversMemory(levels []memory.Level) bool {
	return slices.Contains(levels, memory.L0) && slices.Contains(levels, memory.L1) && slices.Contains(levels, memory.L2)
}

func union(dst *roaring.Bitmap, list segment.PostingsList) error {
	it := list.Iterator(false, false, false, nil)
	if o, ok := it.(segment.OptimizablePostingsIterator); ok {
		if bm := o.ActualBitmap(); bm != nil {
			dst.Or(bm)
			return nil
		}
	}
	for {
		post, err := it.Next()
		if err != nil {
			return fault.As(fault.Unavailable, err)
		}
		if post == nil {
			return nil
		}
		dst.Add(uint32(post.Number()))
	}
}

// hits collapses what was found to the k best nodes.
func (sc *scorer) hits(parts []*part, k int) ([]index.Hit, error) {
	bound := sc.q.bound()
	for want := 4*k + 64; ; want *= 4 {
		top := best(sc.found, want)
		chosen, err := collapse(parts, top, k)
		if err != nil {
			return nil, err
		}
		if len(chosen) < k && len(top) < len(sc.found) {
			continue // many passages of few nodes
		}
		out := make([]index.Hit, 0, len(chosen))
		for _, c := range chosen {
			part, err := visitStored(parts[c.part].seg, uint64(c.doc))
			if err != nil {
				return nil, err
			}
			out = append(out, index.Hit{
				Passage: part.id, Node: sha([]byte(c.id[:32])),
				Score:    min(float64(c.score), bound), // sums of float32
				IDFShare: sc.q.share(c.mask), Max: bound,
			})
		}
		return out, nil
	}
}

// best gives the n of greatest score, and those that tie with the last.
func best(all []found, n int) []found {
	if len(all) <= n {
		return all
	}
	// A heap of the n best scores finds the cut; most scores are under it.
	heap := make([]float32, 0, n)
	for i := range all {
		s := all[i].score
		if len(heap) < n {
			heap = append(heap, s)
			up(heap)
		} else if s > heap[0] {
			heap[0] = s
			down(heap)
		}
	}
	var out []found
	for i := range all {
		if all[i].score >= heap[0] {
			out = append(out, all[i])
		}
	}
	return out
}

// up and down keep a heap with the least score first.
func up(h []float32) {
	for i := len(h) - 1; i > 0; {
		p := (i - 1) / 2
		if h[p] <= h[i] {
			return
		}
		h[p], h[i] = h[i], h[p]
		i = p
	}
}

func down(h []float32) {
	for i := 0; ; {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

type identified struct {
	found
	id string // see docID
}

// collapse keeps each node's best passage, ties by id, and gives the k best.
func collapse(parts []*part, top []found, k int) ([]identified, error) {
	all := make([]identified, 0, len(top))
	for _, c := range top {
		id, err := parts[c.part].seg.DocID(uint64(c.doc))
		if err != nil || len(id) < 32 {
			return nil, fault.At(fault.Corrupt, "lexical index", "run `mem rebuild`", "a passage without an id: %v", err)
		}
		all = append(all, identified{c, string(id)})
	}
	slices.SortFunc(all, func(x, y identified) int {
		return cmp.Or(cmp.Compare(y.score, x.score), cmp.Compare(x.id, y.id))
	})
	seen := map[string]bool{}
	out := all[:0]
	for _, c := range all {
		if node := c.id[:32]; !seen[node] {
			seen[node] = true
			if out = append(out, c); len(out) == k {
				break
			}
		}
	}
	return out, nil
}
