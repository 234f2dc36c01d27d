package transcript

import (
	"hash/maphash"
	"strconv"

	"github.com/mneme-ai/mneme/shared/memory"
)

// ids numbers turns that share a base id and recognises records that come
// twice. It keeps 64-bit hashes, so that a file of 2 GB costs some megabytes.
type ids struct {
	seed  maphash.Seed
	count map[uint64]uint32
	seen  map[uint64]struct{}
}

func newIDs() ids {
	return ids{seed: maphash.MakeSeed(), count: map[uint64]uint32{}, seen: map[uint64]struct{}{}}
}

// unique is base for the first turn of an id, base#n for the n-th. The number
// counts from the object's start, so a later snapshot gives the same ids.
func (s *ids) unique(base string) string {
	h := maphash.String(s.seed, base)
	s.count[h]++
	if n := s.count[h]; n > 1 {
		return base + "#" + strconv.FormatUint(uint64(n), 10)
	}
	return base
}

// repeated reports whether a record of this id and content came before.
func (s *ids) repeated(id, content []byte) bool {
	h := maphash.Bytes(s.seed, id)*31 + maphash.Bytes(s.seed, content)
	if _, ok := s.seen[h]; ok {
		return true
	}
	s.seen[h] = struct{}{}
	return false
}

func (s *ids) hash(b []byte) uint64 { return maphash.Bytes(s.seed, b) }

// maxIDBytes bounds an id that a file names: real ones are UUIDs or the like.
const maxIDBytes = 100

// cleanID keeps an id that is short and made of letters, digits and ._:- ; of
// any other it gives the hash, as ids stand in records unredacted.
func cleanID(s string) string {
	if len(s) > maxIDBytes {
		return string(memory.SumString(s))[:32]
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.', c == ':':
		default:
			return string(memory.SumString(s))[:32]
		}
	}
	return s
}

// interner gives one string for equal short byte runs, such as a cwd that
// stands in every record.
type interner map[string]string

// maxInterned bounds the table: past it strings are made anew.
const maxInterned = 4096

func (t interner) str(b []byte) string {
	if s, ok := t[string(b)]; ok {
		return s
	}
	s := string(b)
	if len(t) < maxInterned {
		t[s] = s
	}
	return s
}

// text is the value of a string that recurs.
func (t interner) text(b []byte, v span) string {
	if !isString(b, v) {
		return ""
	}
	raw := b[v.s+1 : v.e-1]
	if s, ok := t[string(raw)]; ok {
		return s
	}
	s := text(b, v)
	if len(t) < maxInterned && len(s) < 1024 && s == string(raw) {
		t[s] = s
	}
	return s
}
