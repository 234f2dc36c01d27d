package transcript

// nested is what both dialogue formats hold one level down: the members of
// `message`, and of each object in its `content`. They are found in the same
// pass that checks the line, so that no byte is scanned twice.
type nested struct {
	at      span     // of the message object
	ms      []member // its members
	content span     // the array
	blocks  []block
	bm      []member // members of all blocks
}

// block is one element of the content; objects have members bm[from:to].
type block struct {
	at       span
	from, to int
}

func (n *nested) reset() {
	*n = nested{ms: n.ms[:0], blocks: n.blocks[:0], bm: n.bm[:0]}
}

// members reads the record at b[i], and what is nested in it.
func (n *nested) members(b []byte, i int, dst []member) ([]member, int) {
	n.reset()
	return walk(b, i, dst, n.value)
}

func (n *nested) value(b, key []byte, v int) int {
	if string(key) != "message" || v >= len(b) || b[v] != '{' {
		return skipValue(b, v, 1)
	}
	n.reset() // of two messages the last counts
	e := 0
	n.ms, e = walk(b, v, n.ms, n.inner)
	n.at = span{v, e}
	return e
}

func (n *nested) inner(b, key []byte, v int) int {
	if string(key) != "content" || v >= len(b) || b[v] != '[' {
		return skipValue(b, v, 2)
	}
	n.blocks, n.bm = n.blocks[:0], n.bm[:0]
	start := v
	i := skipSpace(b, v+1)
	if i < len(b) && b[i] == ']' {
		n.content = span{start, i + 1}
		return i + 1
	}
	for {
		k := block{at: span{s: i}, from: len(n.bm)}
		if i < len(b) && b[i] == '{' {
			n.bm, i = walk(b, i, n.bm, deep)
		} else {
			i = skipValue(b, i, 3)
		}
		if i < 0 {
			return -1
		}
		k.at.e, k.to = i, len(n.bm)
		if len(n.blocks) == maxMembers {
			return -1
		}
		n.blocks = append(n.blocks, k)
		if i = skipSpace(b, i); i >= len(b) {
			return -1
		}
		switch b[i] {
		case ']':
			n.content = span{start, i + 1}
			return i + 1
		case ',':
			i = skipSpace(b, i+1)
		default:
			return -1
		}
	}
}

func deep(b, _ []byte, v int) int { return skipValue(b, v, 4) }
