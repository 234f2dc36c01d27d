package gateeval

import (
	"math"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/mneme-ai/mneme/shared/gru/extractive"
)

// passageWords is the length of a raw passage (DESIGN section 8).
const passageWords = 150

// BM25 parameters (Robertson and Zaragoza 2009, the usual middle).
const (
	k1 = 1.2
	b  = 0.75
)

// document is an L0 sentence or a raw passage; source is the index of its
// chat.
type document struct {
	source int
	terms  map[string]int
	length int
}

// chat is what the gate kept of one source.
type chat struct {
	open   bool
	prints []extractive.Fingerprint
	newer  []bool // the message of each pick speaks of replacing something
}

// retrieval ranks, for each task, the L0 picks of opened chats and the raw
// passages of all chats in one list by BM25, and lets a later chat that
// supersedes an older one move directly before it. The list of a task holds
// the chats of the task (its answer and those that the answer amends) and all
// decoys: the chats of other tasks may tell another history of the same code.
// Files stand in order of time: a later line is a later chat.
func retrieval(p *extractive.Policy, d dataset) *Retrieval {
	docs := make([][]document, len(d.items))
	chats := make([]chat, len(d.items))
	at := make(map[string]int, len(d.items))
	var decoys []int
	for i := range d.items {
		docs[i] = chats[i].read(p, i, d.items[i].Messages)
		at[d.items[i].ID] = i
		if open := d.items[i].Open; open != nil && !*open {
			decoys = append(decoys, i)
		}
	}
	var plain, amended, plainN, amendedN int
	for _, t := range d.tasks {
		var list []document
		for _, id := range append([]string{t.Answer}, t.Stale...) {
			if i, ok := at[id]; ok {
				list = append(list, docs[i]...)
			}
		}
		for _, i := range decoys {
			list = append(list, docs[i]...)
		}
		order := newIndex(list).rank(t.Question)
		hit := len(order) > 0 && d.items[first(order, list, chats)].ID == t.Answer
		if len(t.Stale) == 0 {
			plainN++
			plain += count(hit)
			continue
		}
		amendedN++
		amended += count(hit)
	}
	return &Retrieval{Plain: rate(plain, plainN), Amended: rate(amended, amendedN)}
}

func count(hit bool) int {
	if hit {
		return 1
	}
	return 0
}

// read scores a chat and returns its documents.
func (c *chat) read(p *extractive.Policy, source int, msgs []extractive.Message) []document {
	var docs []document
	res := p.Score(msgs)
	c.open = res.Open
	for _, k := range res.Picks {
		s := res.Sentences[k]
		m := msgs[s.Message].Text
		text := m[s.Start:s.End]
		docs = append(docs, newDocument(source, strings.Fields(text)))
		c.prints = append(c.prints, extractive.FingerprintOf(text))
		c.newer = append(c.newer, extractive.HasSupersede(m))
	}
	var words []string
	for i := range msgs {
		words = append(words, strings.Fields(msgs[i].Text)...)
	}
	for part := range slices.Chunk(words, passageWords) {
		docs = append(docs, newDocument(source, part))
	}
	return docs
}

// supersedes reports whether a sentence kept of c replaces one kept of old.
func (c *chat) supersedes(old *chat) bool {
	for i, f := range c.prints {
		for _, o := range old.prints {
			if extractive.Relate(f, o, c.newer[i]) == extractive.Supersedes {
				return true
			}
		}
	}
	return false
}

// first is the source of the first hit once newer chats stand before those
// they supersede.
func first(order []int, docs []document, chats []chat) int {
	top := docs[order[0]].source
	for moved := true; moved; {
		moved = false
		for _, k := range order {
			s := docs[k].source
			if s > top && chats[s].supersedes(&chats[top]) {
				top, moved = s, true
				break
			}
		}
	}
	return top
}

func newDocument(source int, words []string) document {
	d := document{source: source, terms: map[string]int{}}
	for _, w := range words {
		for _, t := range terms(w) {
			d.terms[t]++
			d.length++
		}
	}
	return d
}

// terms cuts text into lower-case runs of letters and digits, an ending s off.
func terms(text string) []string {
	out := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for i, t := range out {
		if len(t) > 4 {
			out[i] = strings.TrimSuffix(t, "s")
		}
	}
	return out
}

// index is a BM25 index over documents.
type index struct {
	docs []document
	df   map[string]int
	mean float64
}

func newIndex(docs []document) *index {
	ix := &index{docs: docs, df: map[string]int{}}
	total := 0
	for i := range docs {
		total += docs[i].length
		for t := range docs[i].terms {
			ix.df[t]++
		}
	}
	ix.mean = float64(total) / float64(max(1, len(docs)))
	return ix
}

// rank returns the indices of the documents that share a term with the
// question, best first, the earlier document first where scores are equal.
func (ix *index) rank(question string) []int {
	query := terms(question)
	sort.Strings(query)
	query = slices.Compact(query)
	scores := make([]float64, len(ix.docs))
	var order []int
	for i := range ix.docs {
		d := &ix.docs[i]
		for _, t := range query {
			tf := float64(d.terms[t])
			if tf == 0 {
				continue
			}
			n := float64(ix.df[t])
			idf := math.Log1p((float64(len(ix.docs)) - n + 0.5) / (n + 0.5))
			scores[i] += idf * tf * (k1 + 1) / (tf + k1*(1-b+b*float64(d.length)/ix.mean))
		}
		if scores[i] > 0 {
			order = append(order, i)
		}
	}
	sort.SliceStable(order, func(x, y int) bool { return scores[order[x]] > scores[order[y]] })
	return order
}
