package token

import (
	"slices"
	"strings"
	"sync"
)

// pure is the twin in Go.
type pure struct {
	*table
	pool sync.Pool // of *scratch
}

func newPure(t *table) *pure {
	return &pure{table: t, pool: sync.Pool{New: func() any { return new(scratch) }}}
}

func (p *pure) count(text string) int {
	s := p.pool.Get().(*scratch)
	defer p.put(s)
	n := 0
	p.pieces(text, func(uint32) { n++ }, func(piece string) {
		for len(piece) > 0 {
			w := p.word(piece)
			n += len(p.ids(s, piece[:w]))
			piece = piece[w:]
		}
	})
	return n
}

func (p *pure) encode(dst []int, text string) []int {
	s := p.pool.Get().(*scratch)
	defer p.put(s)
	p.pieces(text, func(id uint32) { dst = append(dst, int(id)) }, func(piece string) {
		for len(piece) > 0 {
			w := p.word(piece)
			for _, id := range p.ids(s, piece[:w]) {
				dst = append(dst, int(id))
			}
			piece = piece[w:]
		}
	})
	return dst
}

// pieces calls add for every added token in text and plain for the text in
// NFC between them, in order.
func (p *pure) pieces(text string, add func(id uint32), plain func(piece string)) {
	from := 0
	for at := 0; ; {
		lt := strings.IndexByte(text[at:], '<') // every added token begins so
		if lt < 0 {
			break
		}
		at += lt
		i := slices.IndexFunc(p.added, func(a addedToken) bool { return strings.HasPrefix(text[at:], a.text) })
		if i < 0 {
			at++
			continue
		}
		plain(nfc(text[from:at]))
		add(p.added[i].id)
		at += len(p.added[i].text)
		from = at
	}
	plain(nfc(text[from:]))
}

func (p *pure) put(s *scratch) {
	if cap(s.heap) <= maxKept && cap(s.sym) <= maxKept {
		p.pool.Put(s)
	}
}
