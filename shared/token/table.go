package token

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"

	"github.com/mneme-ai/mneme/shared/fault"
)

//go:generate go run ./internal/gentable -json testdata/tokenizer.json.gz -out qwen2.5.bpe

// compiled is the vocabulary as internal/gentable writes it, little-endian:
//
//	"MNBP", uint32 version (1)
//	uint32 added tokens, each: uint32 id, uint32 length, bytes
//	3 times (letters, numbers, white space) uint32 ranges, each: uint32 first, uint32 last
//	uint32 merges, each: 3 bytes left id, 3 bytes right id
//
// Ids 0 to 255 are the bytes in the order of byteID; merge i makes id 256+i and
// i is its rank.
//
//go:embed qwen2.5.bpe
var compiled string

// tableVersion history: 1 — first.
const tableVersion = 1

// tableSHA256 is the sha256 of the compiled table; the generator prints it.
const tableSHA256 = "b7ec2023a87a7401f7f0612036cb0cb5e7cde0ac6fd95f6dbba57ae1d258549d"

// class is what the splitting pattern asks of a character.
type class uint8

const (
	other  class = iota
	letter       // \p{L}
	number       // \p{N}
	space        // \s
)

// A page of the class index covers 128 characters.
const (
	pageBits = 7
	pageSize = 1 << pageBits
	pages    = 0x110000 >> pageBits
)

// slotBits sizes the merge table: 2^18 slots of 8 bytes (2 MiB) for 151,387
// merges, 58 % full, so that a look-up reads 1.7 slots on average.
const slotBits = 18

// table is the vocabulary in memory.
type table struct {
	added   []addedToken
	ascii   [128]class
	page    [pages]uint16
	classes [][pageSize]class
	slots   []uint64 // left<<36 | right<<18 | id, 0 when free; a merge's id is never 0
}

type addedToken struct {
	text string
	id   uint32
}

func openTable(data string) (t *table, err error) {
	sum := sha256.Sum256([]byte(data))
	if got := hex.EncodeToString(sum[:]); got != tableSHA256 {
		return nil, fault.At(fault.Corrupt, "shared/token/qwen2.5.bpe", "restore the file from the repository, or run go generate ./shared/token",
			"the tokenizer table is not the pinned one: sha256 %s, want %s", got, tableSHA256)
	}
	r := tableReader{data: data}
	if r.bytes(4) != "MNBP" || r.uint32() != tableVersion {
		return nil, fault.New(fault.Corrupt, "the tokenizer table has an unknown version")
	}
	t = &table{slots: make([]uint64, 1<<slotBits)}
	for range r.uint32() {
		id := r.uint32()
		t.added = append(t.added, addedToken{id: id, text: r.bytes(int(r.uint32()))})
	}
	t.classes = make([][pageSize]class, 1, 256) // page 0: all other
	full := map[class]uint16{}                  // pages of one class
	for _, c := range []class{letter, number, space} {
		for range r.uint32() {
			t.mark(c, r.uint32(), r.uint32(), full)
		}
	}
	for c := range t.ascii {
		t.ascii[c] = t.classes[t.page[c>>pageBits]][c&(pageSize-1)]
	}
	merges := r.bytes(6 * int(r.uint32()))
	id := uint64(256)
	for i := 0; i+6 <= len(merges); i += 6 {
		m := merges[i : i+6]
		l := uint32(m[0]) | uint32(m[1])<<8 | uint32(m[2])<<16
		rr := uint32(m[3]) | uint32(m[4])<<8 | uint32(m[5])<<16
		k := pairKey(l, rr)
		s := slotOf(k)
		for t.slots[s] != 0 {
			s = (s + 1) & (1<<slotBits - 1)
		}
		t.slots[s] = k<<18 | id
		id++
	}
	return t, nil
}

// mark gives [first, last] class c. Ranges ascend within a class and do not
// overlap between classes, so that a page written whole stays so.
func (t *table) mark(c class, first, last uint32, full map[class]uint16) {
	for p := first >> pageBits; p <= last>>pageBits; p++ {
		from, to := max(first, p<<pageBits), min(last, p<<pageBits|(pageSize-1))
		if to-from == pageSize-1 {
			if _, ok := full[c]; !ok {
				full[c] = t.newPage()
				for i := range pageSize {
					t.classes[full[c]][i] = c
				}
			}
			t.page[p] = full[c]
			continue
		}
		if t.page[p] == 0 {
			t.page[p] = t.newPage()
		}
		for r := from; r <= to; r++ {
			t.classes[t.page[p]][r&(pageSize-1)] = c
		}
	}
}

func (t *table) newPage() uint16 {
	t.classes = append(t.classes, [pageSize]class{})
	return uint16(len(t.classes) - 1)
}

// classOf is the class of a character; r is valid.
func (t *table) classOf(r rune) class {
	return t.classes[t.page[uint32(r)>>pageBits]][r&(pageSize-1)]
}

func pairKey(left, right uint32) uint64 { return uint64(left)<<18 | uint64(right) }

// slotOf spreads a key by Fibonacci hashing: 2^64 divided by the golden ratio.
func slotOf(key uint64) uint32 { return uint32(key * 0x9E3779B97F4A7C15 >> (64 - slotBits)) }

// noMerge is greater than every id: such a pair never merges.
const noMerge = ^uint32(0)

// merge is the id that the pair becomes, which is 256 above its rank.
func (t *table) merge(left, right uint32) uint32 {
	k := pairKey(left, right)
	for s := slotOf(k); ; s = (s + 1) & (1<<slotBits - 1) {
		switch v := t.slots[s]; {
		case v == 0:
			return noMerge
		case v>>18 == k:
			return uint32(v & (1<<18 - 1))
		}
	}
}

// byteID is the id of a byte: the printable ones of Latin-1 first, then the
// rest, as GPT-2's byte alphabet has them.
var byteID = func() (ids [256]uint32) {
	printable := func(b int) bool {
		return b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE
	}
	n := uint32(0)
	for _, want := range []bool{true, false} {
		for b := range 256 {
			if printable(b) == want {
				ids[b] = n
				n++
			}
		}
	}
	return ids
}()

// tableReader reads a table whose hash is known to be right, so that it needs
// no bounds of its own: a wrong length panics in tests and nowhere else.
type tableReader struct{ data string }

func (r *tableReader) bytes(n int) string {
	b := r.data[:n]
	r.data = r.data[n:]
	return b
}

func (r *tableReader) uint32() uint32 {
	return binary.LittleEndian.Uint32([]byte(r.bytes(4)))
}
