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

	table atomic.Pointer[table]
	build sync.Mutex // guards what follows, generations, and the growth of tables; readers take none
	seen  []uint32   // marks of closure, by instruction
	round uint32
	stack []uint32
	now   []uint32
	read  []uint32
	key   []byte

	accepts []classSet // of each kind of instruction
}

// inst is an instruction of the joined programs.
type inst struct {
	op       syntax.InstOp
	out, arg uint32
	rune     *syntax.Inst
	test     int   // which kind of reading instruction
	id       uint8 // of the pattern, for a match
}

// table is the transitions built so far. A state is known by the offset of its
// row. Entry [state+class] is 0 where a transition is not built yet, else the
// next state, with the flag news where that state found a pattern or is dead. A state's found and dead are written
// before the first entry that leads to it is stored. A table that is full is
// replaced by a larger copy; readers of the old one ask for what it lacks.
type table struct {
	next   []uint32 // read and written by atomic operations
	found  []mask   // of each state: the patterns found when it was entered
	dead   []bool   // nothing can be found any more
	stride uint32   // classes, and one for the end of the text
	start  [3]uint32
	gen    *generation
}

const news = 1 << 31

// generation is the states of a table and its larger copies.
type generation struct {
	keys map[string]uint32
	sets []waiting // of each state
	last *table
}

// classSet is a set of classes of runes.
type classSet [4]uint64

// waiting is the instructions that wait for the next rune in a state.
type waiting struct {
	pcs  []uint32
	prev prev
}

// prev is what stands before the next rune.
type prev uint8

const (
	begin prev = iota
	afterWord
	afterOther
)

// maxStates bounds the states kept: at about 0.5 KB each, 8 MB. When they are
// reached, a new generation starts.
const maxStates = 1 << 14

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
	d.seen = make([]uint32, len(d.insts))
	if !anchored {
		for _, pc := range d.closure(nil, d.starts, 0) {
			if in := &d.insts[pc]; in.op == syntax.InstEmptyWidth && syntax.EmptyOp(in.arg)&syntax.EmptyBeginText != 0 {
				continue // never holds again
			}
			d.floor = append(d.floor, pc)
		}
	}
	d.reset()
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
	seen := map[string]int{}
	var key []byte
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
		key = binary.LittleEndian.AppendUint32(append(key[:0], byte(in.Op)), in.Arg)
		for _, r := range in.Rune {
			key = binary.LittleEndian.AppendUint32(key, uint32(r))
		}
		k, ok := seen[string(key)]
		if !ok {
			k = len(tests)
			seen[string(key)] = k
			tests = append(tests, in)
		}
		d.insts[i].test = k
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
	if len(d.reps) > 255 {
		panic(fmt.Sprintf("extractive: %d classes of runes", len(d.reps))) // patterns are constants
	}
	d.accepts = make([]classSet, len(tests))
	for k, in := range tests {
		for c, r := range d.reps {
			if in.MatchRune(r) {
				d.accepts[k][c/64] |= 1 << (c % 64)
			}
		}
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
// assertions of have, and appends to dst what reads a rune, waits for an
// assertion, or matches.
func (d *dfa) closure(dst, pcs []uint32, have syntax.EmptyOp) []uint32 {
	d.round++
	d.stack = append(d.stack[:0], pcs...)
	for len(d.stack) > 0 {
		pc := d.stack[len(d.stack)-1]
		d.stack = d.stack[:len(d.stack)-1]
		if d.seen[pc] == d.round {
			continue
		}
		d.seen[pc] = d.round
		switch in := &d.insts[pc]; in.op {
		case syntax.InstAlt, syntax.InstAltMatch:
			d.stack = append(d.stack, in.out, in.arg)
		case syntax.InstCapture, syntax.InstNop:
			d.stack = append(d.stack, in.out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.arg)&^have == 0 {
				d.stack = append(d.stack, in.out)
			} else {
				dst = append(dst, pc)
			}
		case syntax.InstFail:
		default:
			dst = append(dst, pc)
		}
	}
	return dst
}

// firstStates is the size of the first table.
const firstStates = 64

// reset starts a generation with the three start states and nothing else.
func (d *dfa) reset() {
	g := &generation{keys: make(map[string]uint32), sets: make([]waiting, 1)} // entry 0 means unbuilt
	g.last = newTable(firstStates, uint32(len(d.reps)+1), g)
	all := d.closure(nil, d.starts, 0)
	for p := range g.last.start {
		g.last.start[p] = d.intern(g, slices.Clone(all), prev(p), 0) &^ news
	}
	d.table.Store(g.last)
}

func newTable(states int, stride uint32, g *generation) *table {
	return &table{
		next: make([]uint32, states*int(stride)), found: make([]mask, states), dead: make([]bool, states),
		stride: stride, gen: g,
	}
}

// intern returns the entry of a state, a new one if there is none. It may
// leave a larger table in g.last.
func (d *dfa) intern(g *generation, pcs []uint32, p prev, found mask) uint32 {
	slices.Sort(pcs)
	pcs = slices.Compact(pcs)
	d.key = d.key[:0]
	for _, pc := range pcs {
		d.key = binary.LittleEndian.AppendUint32(d.key, pc)
	}
	d.key = binary.LittleEndian.AppendUint64(append(d.key, byte(p)), uint64(found))
	if e, ok := g.keys[string(d.key)]; ok {
		return e
	}
	id := len(g.sets)
	entry := uint32(id) * g.last.stride
	if found != 0 || len(pcs) == 0 {
		entry |= news
	}
	g.sets = append(g.sets, waiting{slices.Clone(pcs), p})
	g.keys[string(d.key)] = entry
	if id == len(g.last.found) {
		old := g.last
		g.last = newTable(2*id, old.stride, g)
		g.last.start = old.start
		copy(g.last.next, old.next) // only the holder of build writes
		copy(g.last.found, old.found)
		copy(g.last.dead, old.dead)
	}
	g.last.found[id], g.last.dead[id] = found, len(pcs) == 0
	return entry
}

// step builds the transition from a state of old by a class, or by the end of
// the text, the class behind the last. It returns the entry and the table it
// belongs to.
func (d *dfa) step(old *table, state uint32, class int) (*table, uint32) {
	d.build.Lock()
	defer d.build.Unlock()
	g := old.gen
	if e := g.last.next[state+uint32(class)]; e != 0 {
		return g.last, e
	}
	set := g.sets[state/old.stride]
	end := class == len(d.reps)
	word := !end && d.words[class]
	var have syntax.EmptyOp
	if set.prev == begin {
		have |= syntax.EmptyBeginText
	}
	if end {
		have |= syntax.EmptyEndText
	}
	if word == (set.prev == afterWord) {
		have |= syntax.EmptyNoWordBoundary
	} else {
		have |= syntax.EmptyWordBoundary
	}
	var found mask
	d.now = d.closure(d.now[:0], set.pcs, have)
	d.read = d.read[:0]
	for _, pc := range d.now {
		switch in := &d.insts[pc]; in.op {
		case syntax.InstMatch:
			found |= 1 << in.id
		case syntax.InstEmptyWidth:
		default:
			if !end && d.reads(in, class) {
				d.read = append(d.read, in.out)
			}
		}
	}
	p := afterOther
	if word {
		p = afterWord
	}
	d.now = d.closure(d.now[:0], d.read, 0)
	if !end {
		d.now = append(d.now, d.floor...)
	}
	e := d.intern(g, d.now, p, found)
	atomic.StoreUint32(&g.last.next[state+uint32(class)], e)
	switch current := d.table.Load(); {
	case current.gen != g: // a run that began before the last reset
	case len(g.sets) >= maxStates:
		d.reset()
	case current != g.last:
		d.table.Store(g.last)
	}
	return g.last, e
}

// reads reports whether an instruction reads the runes of a class.
func (d *dfa) reads(in *inst, class int) bool {
	return d.accepts[in.test][class/64]>>(class%64)&1 == 1
}

// scan returns which patterns match anywhere in s.
func (d *dfa) scan(s string) mask { return d.run(s, begin) }

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
	return d.run(s[i:], p)
}

func (d *dfa) run(s string, p prev) mask {
	t := d.table.Load()
	state := t.start[p] &^ news
	var m mask
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
		e := atomic.LoadUint32(&t.next[state+uint32(class)])
		if e == 0 {
			t, e = d.step(t, state, int(class))
		}
		state = e &^ news
		if e&news != 0 {
			m |= t.found[state/t.stride]
			if t.dead[state/t.stride] {
				return m
			}
		}
	}
	e := atomic.LoadUint32(&t.next[state+t.stride-1])
	if e == 0 {
		t, e = d.step(t, state, len(d.reps))
	}
	return m | t.found[(e&^news)/t.stride]
}

// ends calls f with each position where a pattern of d ends, in order, until f
// returns true; it reports whether f did.
func (d *dfa) ends(s string, f func(int) bool) bool {
	t := d.table.Load()
	state := t.start[begin] &^ news
	for i := 0; i <= len(s); {
		class, n := len(d.reps), 1
		if i < len(s) {
			r := rune(s[i])
			if r >= utf8.RuneSelf {
				r, n = utf8.DecodeRuneInString(s[i:])
			}
			class = int(d.class(r))
		}
		e := atomic.LoadUint32(&t.next[state+uint32(class)])
		if e == 0 {
			t, e = d.step(t, state, class)
		}
		state = e &^ news
		if t.found[state/t.stride] != 0 && f(i) {
			return true
		}
		i += n
	}
	return false
}
