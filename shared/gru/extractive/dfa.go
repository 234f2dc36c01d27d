package extractive

import (
	"encoding/binary"
	"fmt"
	"regexp/syntax"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"
)

// dfa tests a text against up to 64 patterns in one pass. It answers the same
// as package regexp for each of them, which the tests hold it to, at about a
// hundredth of the cost: 60 patterns over each sentence by package regexp take
// tens of milliseconds for a chunk.
//
// States are built when a text first leads to them and kept, so that a pass
// over seen states is one table look-up a byte. States are immutable once
// published; a transition is published by one atomic store.
type dfa struct {
	insts   []inst
	starts  []uint32 // one a pattern
	floor   []uint32 // what every state of an unanchored dfa holds besides its own
	ascii   [utf8.RuneSelf]uint8
	bounds  []rune  // lower ends of the intervals of equal runes, ascending
	ofBound []uint8 // the class of each interval
	reps    []rune  // a rune of each class
	words   []bool  // whether the class holds word characters, as \b means them

	cache atomic.Pointer[cache]
	build sync.Mutex // guards building; readers take none
}

// inst is an instruction of the joined programs.
type inst struct {
	op       syntax.InstOp
	out, arg uint32
	rune     *syntax.Inst
	id       uint8 // of the pattern, for a match
}

// cache holds the states built so far.
type cache struct {
	states map[string]*state
	start  [3]*state // at the begin of the text, behind a word character, behind another
}

// state is a set of instructions that wait for the next rune.
type state struct {
	pcs  []uint32
	prev prev
	acc  mask // patterns found when this state was entered
	next []atomic.Pointer[state]
}

// prev is what stands before the next rune.
type prev uint8

const (
	begin prev = iota
	afterWord
	afterOther
)

// maxStates bounds the states kept: at about 1 KB each, 8 MB. A text that
// needs more starts a new cache.
const maxStates = 8192

// newDFA compiles patterns; the i-th sets bit i. An anchored dfa matches only
// from where it is started.
func newDFA(patterns []string, anchored bool) *dfa {
	if len(patterns) > 64 {
		panic(fmt.Sprintf("extractive: %d patterns in one dfa", len(patterns)))
	}
	d := &dfa{}
	for id, p := range patterns {
		re, err := syntax.Parse(p, syntax.Perl)
		if err != nil {
			panic(fmt.Sprintf("extractive: pattern %d: %v", id, err)) // patterns are constants
		}
		prog, err := syntax.Compile(re.Simplify())
		if err != nil {
			panic(fmt.Sprintf("extractive: pattern %d: %v", id, err))
		}
		base := uint32(len(d.insts))
		for k := range prog.Inst {
			in := &prog.Inst[k]
			x := inst{op: in.Op, out: in.Out + base, arg: in.Arg, rune: in, id: uint8(id)}
			if in.Op == syntax.InstAlt || in.Op == syntax.InstAltMatch {
				x.arg += base
			}
			d.insts = append(d.insts, x)
		}
		d.starts = append(d.starts, base+uint32(prog.Start))
	}
	d.classify()
	if !anchored {
		for _, pc := range d.closure(d.starts, 0) {
			if in := &d.insts[pc]; in.op == syntax.InstEmptyWidth && syntax.EmptyOp(in.arg)&syntax.EmptyBeginText != 0 {
				continue // never holds again
			}
			d.floor = append(d.floor, pc)
		}
	}
	d.cache.Store(d.newCache())
	return d
}

// classify cuts the runes into classes that no instruction tells apart.
func (d *dfa) classify() {
	cut := map[rune]bool{0: true}
	split := func(lo, hi rune) { cut[lo], cut[hi+1] = true, true }
	split('0', '9')
	split('A', 'Z')
	split('a', 'z')
	split('_', '_')
	var tests []*syntax.Inst
	seen := map[string]bool{}
	for i := range d.insts {
		in := d.insts[i].rune
		switch in.Op {
		case syntax.InstRune1, syntax.InstRune:
			if len(in.Rune) == 1 {
				split(in.Rune[0], in.Rune[0])
				if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
					for r := unicode.SimpleFold(in.Rune[0]); r != in.Rune[0]; r = unicode.SimpleFold(r) {
						split(r, r)
					}
				}
			}
			for k := 0; k+1 < len(in.Rune); k += 2 {
				split(in.Rune[k], in.Rune[k+1])
			}
		case syntax.InstRuneAnyNotNL:
			split('\n', '\n')
		case syntax.InstRuneAny:
		default:
			continue
		}
		if key := fmt.Sprint(in.Op, in.Arg, in.Rune); !seen[key] {
			seen[key] = true
			tests = append(tests, in)
		}
	}
	for r := range cut {
		d.bounds = append(d.bounds, r)
	}
	slices.Sort(d.bounds)
	classes := map[string]uint8{}
	for _, r := range d.bounds {
		sig := make([]byte, 0, len(tests)+1)
		for _, in := range tests {
			sig = append(sig, bit(in.MatchRune(r)))
		}
		sig = append(sig, bit(syntax.IsWordChar(r)))
		c, ok := classes[string(sig)]
		if !ok {
			c = uint8(len(d.reps))
			classes[string(sig)] = c
			d.reps = append(d.reps, r)
			d.words = append(d.words, syntax.IsWordChar(r))
		}
		d.ofBound = append(d.ofBound, c)
	}
	for r := range d.ascii {
		d.ascii[r] = d.class(rune(r))
	}
}

func bit(on bool) byte {
	if on {
		return 1
	}
	return 0
}

func (d *dfa) class(r rune) uint8 {
	i := sort.Search(len(d.bounds), func(i int) bool { return d.bounds[i] > r })
	return d.ofBound[i-1]
}

// closure follows the instructions that read nothing from pcs, with the
// assertions of have. What it returns reads a rune, waits for an assertion, or
// matches.
func (d *dfa) closure(pcs []uint32, have syntax.EmptyOp) []uint32 {
	seen := make(map[uint32]bool, 4*len(pcs))
	var out []uint32
	stack := slices.Clone(pcs)
	for len(stack) > 0 {
		pc := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &d.insts[pc]; in.op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.out, in.arg)
		case syntax.InstCapture, syntax.InstNop:
			stack = append(stack, in.out)
		case syntax.InstEmptyWidth:
			if need := syntax.EmptyOp(in.arg); need&^have == 0 {
				stack = append(stack, in.out)
			} else {
				out = append(out, pc)
			}
		case syntax.InstFail:
		default:
			out = append(out, pc)
		}
	}
	return out
}

func (d *dfa) newCache() *cache {
	c := &cache{states: make(map[string]*state)}
	all := d.closure(d.starts, 0)
	for p := range c.start {
		c.start[p] = d.intern(c, slices.Clone(all), prev(p), 0)
	}
	return c
}

// intern returns the state of a set, a new one if there is none.
func (d *dfa) intern(c *cache, pcs []uint32, p prev, acc mask) *state {
	slices.Sort(pcs)
	pcs = slices.Compact(pcs)
	key := make([]byte, 0, 4*len(pcs)+9)
	for _, pc := range pcs {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	key = binary.LittleEndian.AppendUint64(append(key, byte(p)), uint64(acc))
	if s, ok := c.states[string(key)]; ok {
		return s
	}
	s := &state{pcs: pcs, prev: p, acc: acc, next: make([]atomic.Pointer[state], len(d.reps)+1)}
	c.states[string(key)] = s
	return s
}

// step builds the transition from s by a class, or by the end of the text,
// the class behind the last.
func (d *dfa) step(s *state, class int) *state {
	d.build.Lock()
	defer d.build.Unlock()
	if n := s.next[class].Load(); n != nil {
		return n
	}
	c := d.cache.Load()
	if len(c.states) >= maxStates {
		c = d.newCache()
		d.cache.Store(c)
	}
	end := class == len(d.reps)
	word := !end && d.words[class]
	var have syntax.EmptyOp
	if s.prev == begin {
		have |= syntax.EmptyBeginText
	}
	if end {
		have |= syntax.EmptyEndText
	}
	if word == (s.prev == afterWord) {
		have |= syntax.EmptyNoWordBoundary
	} else {
		have |= syntax.EmptyWordBoundary
	}
	var acc mask
	var to []uint32
	for _, pc := range d.closure(s.pcs, have) {
		switch in := &d.insts[pc]; in.op {
		case syntax.InstMatch:
			acc |= 1 << in.id
		case syntax.InstEmptyWidth:
		default:
			if !end && in.rune.MatchRune(d.reps[class]) {
				to = append(to, in.out)
			}
		}
	}
	p := afterOther
	if word {
		p = afterWord
	}
	to = d.closure(to, 0)
	if !end {
		to = append(to, d.floor...)
	}
	n := d.intern(c, to, p, acc)
	s.next[class].Store(n)
	return n
}

// scan returns which patterns match anywhere in s.
func (d *dfa) scan(s string) mask {
	return d.run(s, d.cache.Load().start[begin], 0)
}

// at reports whether the patterns match in s from byte i on; \b at the front
// sees what stands before.
func (d *dfa) at(s string, i int) mask {
	p := begin
	if i > 0 {
		p = afterOther
		if syntax.IsWordChar(rune(s[i-1])) { // no byte of a longer rune is a word character
			p = afterWord
		}
	}
	return d.run(s[i:], d.cache.Load().start[p], 0)
}

func (d *dfa) run(s string, st *state, m mask) mask {
	for i := 0; i < len(s); {
		c := s[i]
		var class uint8
		if c < utf8.RuneSelf {
			class = d.ascii[c]
			i++
		} else {
			r, n := utf8.DecodeRuneInString(s[i:])
			class = d.class(r)
			i += n
		}
		next := st.next[class].Load()
		if next == nil {
			next = d.step(st, int(class))
		}
		st = next
		m |= st.acc
		if len(st.pcs) == 0 {
			return m
		}
	}
	end := len(d.reps)
	next := st.next[end].Load()
	if next == nil {
		next = d.step(st, end)
	}
	return m | next.acc
}

// ends calls f with each position where a pattern of d ends, in order, until f
// returns true; it reports whether f did.
func (d *dfa) ends(s string, f func(int) bool) bool {
	st := d.cache.Load().start[begin]
	for i := 0; i <= len(s); {
		class, n := len(d.reps), 1
		if i < len(s) {
			r := rune(s[i])
			if r >= utf8.RuneSelf {
				r, n = utf8.DecodeRuneInString(s[i:])
			}
			class = int(d.class(r))
		}
		next := st.next[class].Load()
		if next == nil {
			next = d.step(st, class)
		}
		st = next
		if st.acc != 0 && f(i) {
			return true
		}
		i += n
	}
	return false
}
