package gitbundle

import (
	"bytes"
	"cmp"
	"container/list"
	"crypto/sha1"
	"hash"
	"io"
	"os"
	"slices"
	"sort"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/mneme-ai/mneme/shared/fault"
)

// object is an object of the pack.
type object struct {
	offset int64
	size   int64 // of its content; of a delta -1 until it is patched
	id     oid
	base   int32 // the object that a delta is against, else -1
	kind   int8  // plumbing.ObjectType of the content; 0 while it is not known
	known  bool  // id is its id: it can be read
	depth  int16 // how many deltas lead to it, at most maxDeltas
}

// refDelta is a delta against an object that is named by its id.
type refDelta struct {
	base   oid
	object int32
}

// costOfSeek stands for the time that finding a stream takes, however short it
// is: 4 KiB are unpacked in about as long.
const costOfSeek = 4 << 10

// pack gives the objects of a packfile by their id.
type pack struct {
	m       *meter
	limits  Limits
	size    int64 // bytes of the file
	scan    *packfile.Scanner
	objects []object
	byID    []int32 // known objects in the order of their ids
	cache   cache
}

// open reads the whole pack: checks its sum and finds the id of each object.
func (p *pack) open(file *os.File) error {
	p.cache = cache{left: p.limits.CacheBytes, items: map[int32]*list.Element{}, recent: list.New()}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fault.As(fault.Unavailable, err)
	}
	p.scan = packfile.NewScanner(file)
	named, err := p.index()
	if err != nil {
		return err
	}
	if err := p.resolve(named); err != nil {
		return err
	}
	for i := range p.objects {
		if p.objects[i].known {
			p.byID = append(p.byID, int32(i))
		}
	}
	slices.SortFunc(p.byID, func(a, b int32) int { return bytes.Compare(p.objects[a].id[:], p.objects[b].id[:]) })
	return nil
}

// index goes once over the pack. Whole objects get their id; it returns the
// deltas against named objects, in the order of the names.
func (p *pack) index() ([]refDelta, error) {
	bad := func(err error) error {
		if p.m.err != nil {
			return p.m.err
		}
		return damaged("%v", err)
	}
	_, count, err := p.scan.Header()
	if err != nil {
		return nil, bad(err)
	}
	if int64(count) > int64(p.limits.Objects) {
		return nil, fault.At(fault.Invalid, "", hintParts, "%d objects, at most %d", count, p.limits.Objects)
	}
	var named []refDelta
	sum := sha1.New()
	for i := range int32(count) {
		h, err := p.scan.NextObjectHeader()
		if err != nil {
			return nil, bad(err)
		}
		o := object{offset: h.Offset, size: h.Length, base: -1}
		w := io.Writer(p.m)
		whole := false
		switch h.Type {
		case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
			o.kind, whole = int8(h.Type), true
			begin(sum, h.Type, h.Length)
			w = io.MultiWriter(p.m, sum)
		case plumbing.OFSDeltaObject:
			at := sort.Search(len(p.objects), func(k int) bool { return p.objects[k].offset >= h.OffsetReference })
			if at == len(p.objects) || p.objects[at].offset != h.OffsetReference {
				return nil, damaged("object %d is a difference to no object", i)
			}
			o.base, o.size = int32(at), -1
		case plumbing.REFDeltaObject:
			named = append(named, refDelta{oid(h.Reference), i})
			o.size = -1
		default:
			return nil, damaged("object %d is of no kind", i)
		}
		n, _, err := p.scan.NextObject(w)
		if err != nil {
			return nil, bad(err)
		}
		if n != h.Length {
			return nil, damaged("object %d has %d bytes, not %d", i, n, h.Length)
		}
		if whole {
			o.id, o.known = oid(sum.Sum(nil)), true
		}
		p.objects = append(p.objects, o)
	}
	if _, err := p.scan.Checksum(); err != nil {
		return nil, bad(err)
	}
	end, err := p.scan.SeekFromStart(0)
	if err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	if end != p.size {
		return nil, damaged("%d bytes stand after its end", p.size-end)
	}
	slices.SortFunc(named, func(a, b refDelta) int {
		return cmp.Or(bytes.Compare(a.base[:], b.base[:]), cmp.Compare(a.object, b.object))
	})
	return named, nil
}

// begin starts the id of an object: sha1 over "<kind> <size>\x00<content>".
func begin(sum hash.Hash, kind plumbing.ObjectType, size int64) {
	sum.Reset()
	sum.Write(append(strconv.AppendInt([]byte(kind.String()+" "), size, 10), 0))
}

// resolve finds the ids of the deltas, each after its base, and all that follow
// from one base before the next, while its bytes are in the cache. A delta that
// can not be patched stays unknown, and so do those that follow from it.
func (p *pack) resolve(named []refDelta) error {
	// The deltas against each object, as lists through next.
	first, next := make([]int32, len(p.objects)), make([]int32, len(p.objects))
	for i := range first {
		first[i] = -1
	}
	for i := len(p.objects) - 1; i >= 0; i-- {
		if b := p.objects[i].base; b >= 0 {
			next[i], first[b] = first[b], int32(i)
		}
	}
	sum := sha1.New()
	var stack []int32
	patch := func(i, base int32) error {
		o := &p.objects[i]
		if o.known || p.objects[base].depth >= maxDeltas {
			return nil
		}
		o.base, o.depth = base, p.objects[base].depth+1
		b, err := p.data(i)
		if err != nil || b == nil {
			return err
		}
		o.kind, o.size = p.objects[base].kind, int64(len(b))
		begin(sum, plumbing.ObjectType(o.kind), o.size)
		sum.Write(b)
		o.id, o.known = oid(sum.Sum(nil)), true
		stack = append(stack, i)
		return nil
	}
	for root := range p.objects {
		if !p.objects[root].known || p.objects[root].base >= 0 {
			continue
		}
		stack = append(stack[:0], int32(root))
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for c := first[i]; c >= 0; c = next[c] {
				if err := patch(c, i); err != nil {
					return err
				}
			}
			id := p.objects[i].id
			k, _ := slices.BinarySearchFunc(named, id, func(d refDelta, id oid) int { return bytes.Compare(d.base[:], id[:]) })
			for ; k < len(named) && named[k].base == id; k++ {
				if err := patch(named[k].object, i); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// find is the object of an id.
func (p *pack) find(id oid) (int32, bool) {
	k, ok := slices.BinarySearchFunc(p.byID, id, func(i int32, id oid) int { return bytes.Compare(p.objects[i].id[:], id[:]) })
	if !ok {
		return 0, false
	}
	return p.byID[k], true
}

// read gives the content of an object of this kind; nil where there is none.
// What it gives is shared: read only.
func (p *pack) read(id oid, kind plumbing.ObjectType) ([]byte, error) {
	i, ok := p.find(id)
	if !ok || p.objects[i].kind != int8(kind) {
		return nil, nil
	}
	return p.data(i)
}

// data unpacks an object. It is nil where that can not be done; the error is
// one that ends the reading. An empty object is not nil.
func (p *pack) data(i int32) ([]byte, error) {
	var chain []int32
	var b []byte
	for at := i; ; at = p.objects[at].base {
		if kept, ok := p.cache.get(at); ok {
			b = kept
			break
		}
		if p.objects[at].base < 0 {
			var err error
			if b, err = p.inflate(at); b == nil || err != nil {
				return nil, err
			}
			p.cache.put(at, b)
			break
		}
		chain = append(chain, at)
	}
	for _, at := range slices.Backward(chain) {
		delta, err := p.inflate(at)
		if delta == nil || err != nil {
			return nil, err
		}
		if size, ok := patchedSize(delta); !ok || size > uint64(p.limits.ObjectBytes) {
			return nil, nil
		}
		if b, err = packfile.PatchDelta(b, delta); err != nil {
			return nil, nil
		}
		if b == nil {
			b = []byte{}
		}
		if err := p.m.spend(len(b)); err != nil {
			return nil, err
		}
		p.cache.put(at, b)
	}
	return b, nil
}

// inflate gives the bytes of an object's stream: its content, or a delta.
func (p *pack) inflate(i int32) ([]byte, error) {
	if err := p.m.spend(costOfSeek); err != nil {
		return nil, err
	}
	h, err := p.scan.SeekObjectHeader(p.objects[i].offset)
	if err != nil {
		return nil, fault.As(fault.Unavailable, err) // it was read before
	}
	if h.Length > p.limits.ObjectBytes {
		return nil, nil
	}
	buf := bytes.NewBuffer(make([]byte, 0, h.Length))
	if _, _, err := p.scan.NextObject(io.MultiWriter(p.m, buf)); err != nil {
		if p.m.err != nil {
			return nil, p.m.err
		}
		return nil, fault.As(fault.Unavailable, err)
	}
	return buf.Bytes(), nil
}

// patchedSize is the size that a delta says its result has: the second of the
// two numbers at its beginning, seven bits a byte, the lowest first.
func patchedSize(delta []byte) (size uint64, ok bool) {
	for range 2 {
		size, ok = 0, false
		for shift := 0; len(delta) > 0 && shift < 63; shift += 7 {
			c := delta[0]
			delta = delta[1:]
			size |= uint64(c&0x7f) << shift
			if c < 0x80 {
				ok = true
				break
			}
		}
		if !ok {
			return 0, false
		}
	}
	return size, true
}

// cache keeps the contents that were used last, up to a number of bytes.
type cache struct {
	left   int64
	items  map[int32]*list.Element
	recent *list.List // of cached, the last used first
}

type cached struct {
	i int32
	b []byte
}

// overhead is about what an item costs beside its bytes.
const overhead = 200

func (c *cache) get(i int32) ([]byte, bool) {
	e, ok := c.items[i]
	if !ok {
		return nil, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(cached).b, true
}

func (c *cache) put(i int32, b []byte) {
	if _, ok := c.items[i]; ok {
		return
	}
	c.left -= int64(cap(b)) + overhead
	c.items[i] = c.recent.PushFront(cached{i, b})
	for c.left < 0 {
		e := c.recent.Back()
		v := e.Value.(cached)
		c.left += int64(cap(v.b)) + overhead
		delete(c.items, v.i)
		c.recent.Remove(e)
	}
}
