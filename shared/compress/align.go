package compress

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A server that keeps the work done for a prompt finds it again by the prompt's
// first bytes: one byte that differs loses its block and all behind it. So what
// is the same from turn to turn stands first, in an order that no score changes,
// and values that differ each time stand at the end, with a label in their place.
//
//	system | tools by name | memory by (tier, id) | query | turn | [ctx: t1=2026-08-28T09:15:00Z u1=4f1c2d3e-…]

// Prompt is Mneme's own prompt in parts. Nobody else's is touched.
type Prompt struct {
	System string
	Tools  []Tool
	Memory []Block
	Query  string
	Turn   string // what was said last
}

// Tool is a tool's description as the model gets it.
type Tool struct{ Name, Text string }

// Block is a piece of memory.
type Block struct {
	Tier int
	ID   string // of the node
	Text string
}

// Aligned is a prompt in its order.
type Aligned struct {
	Text   string
	Stable int // bytes of Text that the same system, tools and memory give again
	labels []label
}

// Prefix is the part that stays the same.
func (a Aligned) Prefix() string { return a.Text[:a.Stable] }

// PrefixSHA256 is its hash in hex.
func (a Aligned) PrefixSHA256() string {
	sum := sha256.Sum256([]byte(a.Prefix()))
	return hex.EncodeToString(sum[:])
}

// label is a short name and the value it stands for.
type label struct{ name, value string }

// Align orders a prompt. In system, tools and memory, times and ids of runs get
// labels in the order in which they first stand there; the last line lists them.
// Query and turn stay as they are.
func Align(p Prompt) Aligned {
	var a Aligned
	var l labeller
	var b strings.Builder
	part := func(s string, stable bool) {
		if s == "" {
			return
		}
		if stable {
			l.named = nil
			s = l.replace(s)
		}
		b.WriteString(s)
		if !strings.HasSuffix(s, "\n") {
			b.WriteByte('\n')
		}
	}
	part(p.System, true)
	tools := slices.Clone(p.Tools)
	slices.SortStableFunc(tools, func(x, y Tool) int { return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Text, y.Text)) })
	for _, t := range tools {
		part(t.Text, true)
	}
	blocks := slices.Clone(p.Memory)
	slices.SortStableFunc(blocks, func(x, y Block) int {
		return cmp.Or(cmp.Compare(x.Tier, y.Tier), cmp.Compare(x.ID, y.ID), cmp.Compare(x.Text, y.Text))
	})
	for _, m := range blocks {
		part(m.Text, true)
	}
	a.Stable = b.Len()
	part(p.Query, false)
	part(p.Turn, false)
	a.labels = l.list
	if len(l.list) > 0 {
		b.WriteString("[ctx:")
		list := slices.Clone(l.list)
		slices.SortFunc(list, func(x, y label) int {
			return cmp.Or(cmp.Compare(x.name[0], y.name[0]), cmp.Compare(len(x.name), len(y.name)), cmp.Compare(x.name, y.name))
		})
		for _, v := range list {
			fmt.Fprintf(&b, " %s=%s", v.name, v.value)
		}
		b.WriteString("]\n")
	}
	a.Text = b.String()
	return a
}

// Restore puts the values back into a text with labels, such as what a model
// answered or the prefix itself.
func (a Aligned) Restore(text string) string {
	if len(a.labels) == 0 {
		return text
	}
	byName := make(map[string]string, len(a.labels))
	for _, l := range a.labels {
		byName[l.name] = l.value
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:i])
		text = text[i:]
		if n := labelEnd(text); n > 0 {
			if v, ok := byName[text[1:n-1]]; ok {
				b.WriteString(v)
				text = text[n:]
				continue
			}
		}
		b.WriteByte('<')
		text = text[1:]
	}
}

// labeller gives labels: t for times, u for UUIDs, and l for what looks like a
// label itself, so that every label in its output is one. A value has one label in
// a part; in another part it has another, as today's date in the system's part
// must not change the labels of a memory of that day.
type labeller struct {
	list  []label
	named map[string]string // of the part that is read
	count [256]int
}

func (l *labeller) label(kind byte, value string) string {
	key := string(kind) + value
	if n, ok := l.named[key]; ok {
		return n
	}
	if l.named == nil {
		l.named = map[string]string{}
	}
	l.count[kind]++
	name := string(kind) + strconv.Itoa(l.count[kind])
	l.list = append(l.list, label{name, value})
	l.named[key] = name
	return name
}

func (l *labeller) replace(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		n, kind := 0, byte(0)
		switch {
		case s[i] == '<':
			n, kind = labelEnd(s[i:]), 'l'
		case i > 0 && (alnum[s[i-1]] || s[i-1] == '_'):
		case '0' <= s[i] && s[i] <= '9' || 'a' <= s[i] && s[i] <= 'f' || 'A' <= s[i] && s[i] <= 'F':
			if n, kind = timeEnd(s[i:]), 't'; n == 0 {
				n, kind = uuidEnd(s[i:]), 'u'
			}
		}
		if n == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		fmt.Fprintf(&b, "<%s>", l.label(kind, s[i:i+n]))
		i += n
	}
	return b.String()
}

// labelEnd is the length of a label such as <t1> at the beginning of s, or 0.
func labelEnd(s string) int {
	if len(s) < 4 || s[0] != '<' || s[1] < 'a' || s[1] > 'z' {
		return 0
	}
	i := 2
	for i < len(s) && i < 12 && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	if i == 2 || i >= len(s) || s[i] != '>' {
		return 0
	}
	return i + 1
}

// shape matches s against a form of 0 (a digit), x (a hex digit) and literals.
func shape(s, form string) bool {
	if len(s) < len(form) {
		return false
	}
	for i := range len(form) {
		c := s[i]
		switch form[i] {
		case '0':
			if c < '0' || c > '9' {
				return false
			}
		case 'x':
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return false
			}
		case 'T':
			if c != 'T' && c != ' ' && c != 't' {
				return false
			}
		default:
			if c != form[i] {
				return false
			}
		}
	}
	return true
}

// timeEnd is the length of a time (RFC 3339, with or without zone and fraction)
// or a date at the beginning of s, or 0.
func timeEnd(s string) int {
	n := 0
	switch {
	case shape(s, "0000-00-00T00:00:00"):
		n = 19
	case shape(s, "0000-00-00T00:00"):
		n = 16
	case shape(s, "0000-00-00"):
		n = 10
		if n < len(s) && alnum[s[n]] {
			return 0
		}
		return n
	default:
		return 0
	}
	if n < len(s) && (s[n] == '.' || s[n] == ',') {
		j := n + 1
		for j < len(s) && '0' <= s[j] && s[j] <= '9' {
			j++
		}
		if j > n+1 {
			n = j
		}
	}
	switch {
	case n < len(s) && (s[n] == 'Z' || s[n] == 'z'):
		n++
	case n < len(s) && (s[n] == '+' || s[n] == '-') && shape(s[n+1:], "00:00"):
		n += 6
	case n < len(s) && (s[n] == '+' || s[n] == '-') && shape(s[n+1:], "0000"):
		n += 5
	}
	if n < len(s) && alnum[s[n]] {
		return 0
	}
	return n
}

func uuidEnd(s string) int {
	const n = 36
	if !shape(s, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") || len(s) > n && (alnum[s[n]] || s[n] == '-') {
		return 0
	}
	return n
}
