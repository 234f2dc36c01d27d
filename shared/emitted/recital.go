package emitted

import (
	"crypto/sha256"
	"math"
	"strings"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/memory"
)

// This file finds the memory's own text among the evidence, where nothing marked it: a
// statement every line of which a memory of the project had stated before the
// statement's part was admitted.
//
//	part 1   evidence  "The team caps the queue, at 500."    a person's
//	         memory    "Queue cap: 500 items. [1a2b3c4d]"    in a model's words
//	part 2   evidence  "- Queue cap: 500 items. [1a2b3c4d]"  the memory's, fed back
//
// A line is compared as memory.Fact has it: white space folded, without list sign and
// source ids. Before and after are the order in which parts are admitted, as no clock
// is asked. A text that was evidence when the last of its lines came into a memory is
// what the memory was made of, whoever says it again.

// given is what a project's memories gave out, and the evidence that may be of it.
type given struct {
	lines    map[key]int64        // newest part read when a memory first stated the line
	nodes    map[memory.SHA]int64 // likewise, of memories
	texts    map[key]int64        // part in which a text was first evidence
	suspects []suspect
}

// key is a line's or a text's hash: the first half of its sha256.
type key [16]byte

func keyOf(s string) key {
	h := sha256.Sum256([]byte(s))
	return key(h[:16])
}

// suspect is a statement of which a memory may have had every line.
type suspect struct {
	at    string // for people
	role  memory.Role
	admit int64
	text  key
	lines []key
}

func newGiven() *given {
	return &given{lines: map[key]int64{}, nodes: map[memory.SHA]int64{}, texts: map[key]int64{}}
}

// least keeps the smaller of what is known and n.
func least[K comparable](m map[K]int64, k K, n int64) {
	if old, ok := m[k]; !ok || n < old {
		m[k] = n
	}
}

// memory takes in a memory that was stated when part admit was the newest read. One of
// a synthesis is as new as the newest of those below.
func (g *given) memory(m *memory.Memory, admit int64) {
	if m.Level == memory.L2 {
		admit = math.MaxInt64
		for i, p := range m.Parents {
			n, ok := g.nodes[p]
			switch {
			case !ok: // nothing tells when
				return
			case i == 0 || n > admit:
				admit = n
			}
		}
	}
	least(g.nodes, m.Node, admit)
	for _, l := range memory.Lines(m.Text) {
		least(g.lines, keyOf(memory.Fact(l)), admit)
	}
}

// evidence takes in a statement. named says that it is a problem already.
func (g *given) evidence(at string, e *memory.Evidence, named bool) {
	var facts []string
	var lines []key
	for _, l := range memory.Lines(e.Text) {
		if f := memory.Fact(l); f != "" {
			facts = append(facts, f)
			lines = append(lines, keyOf(f))
		}
	}
	text := strings.Join(facts, " ")
	cited := len(memory.SourceIDs(e.Text)) > 0
	if cited { // what the memory was made of has not its ids
		text = strings.Join(strings.Fields(e.Text), " ")
	}
	x := suspect{at: at, role: e.Role, admit: e.Place.Admit, text: keyOf(text), lines: lines}
	least(g.texts, x.text, x.admit)
	switch {
	case named, len(lines) == 0:
	case derived.Shingle(text) == "": // a word or two say nothing of where they are from
	case e.Role == memory.RoleUser && !cited:
	default:
		g.suspects = append(g.suspects, x)
	}
}

// name reports the statements that are nothing but lines of memories before.
func (g *given) name(r *Report) {
	for _, x := range g.suspects {
		stated, all := int64(0), true
		for _, l := range x.lines {
			n, ok := g.lines[l]
			all = all && ok
			stated = max(stated, n)
		}
		if all && stated < x.admit && stated < g.texts[x.text] {
			r.problem("%s, said by %s, is nothing but lines of a memory that was stated before", x.at, x.role)
		}
	}
}
