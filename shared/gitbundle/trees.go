package gitbundle

import (
	"bytes"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/mneme-ai/mneme/shared/gitlog"
)

// Modes of tree entries, as git makes them of what stands there.
const (
	modeTree   = 0o040000
	modeFile   = 0o100000
	modeLink   = 0o120000
	modeModule = 0o160000
	modeKind   = 0o170000
)

// maxPath bounds a path, and with it how deep trees stand in one another. What
// lies deeper is not known.
const maxPath = 4096

// costOfTree stands for the time that finding a tree takes, however short it is.
const costOfTree = 1 << 10

// trees compares two trees and writes what differs into a commit.
type trees struct {
	pack    *pack
	commit  *gitlog.Commit
	symbols gitlog.Symbols
	// trusted says that what is in the bundle is new where the tree before is not
	// in it; see present.
	trusted bool
	partial bool // something that differs is not known
	full    bool // the commit lists all files that it may
}

// side is one of two trees. Of an unknown one it may be asked nothing; the zero
// value is an empty one.
type side struct {
	b       []byte
	unknown bool
}

// tree reads a tree; one that is not there is unknown.
func (t *trees) tree(id oid) (side, error) {
	b, err := t.pack.read(id, plumbing.TreeObject)
	if err != nil {
		return side{}, err
	}
	return side{b, b == nil}, t.pack.m.spend(len(b) + costOfTree)
}

// entry is a line of a tree.
type entry struct {
	mode uint32
	name []byte
	id   oid
}

func (e entry) isTree() bool { return e.mode == modeTree }

// cut takes the first entry off: "<octal mode> <name>\x00<20 bytes of id>".
func (s *side) cut() (e entry, ok bool) {
	mode, rest, ok := bytes.Cut(s.b, []byte(" "))
	if !ok || len(mode) == 0 || len(mode) > 6 {
		return e, false
	}
	for _, c := range mode {
		if c < '0' || c > '7' {
			return e, false
		}
		e.mode = e.mode<<3 | uint32(c-'0')
	}
	e.mode = canonical(e.mode)
	e.name, rest, ok = bytes.Cut(rest, []byte{0})
	if !ok || len(e.name) == 0 || len(rest) < len(e.id) {
		return e, false
	}
	s.b = rest[copy(e.id[:], rest):]
	return e, true
}

// canonical makes of a mode one of those that git knows; old ones wrote 100664.
func canonical(mode uint32) uint32 {
	switch mode & modeKind {
	case modeFile:
		if mode&0o100 != 0 {
			return modeFile | 0o755
		}
		return modeFile | 0o644
	case modeLink, modeTree:
		return mode & modeKind
	}
	return modeModule
}

// compare orders entries as they stand in a tree, where the name of a folder
// ends with a slash. A file and a folder of one name are two entries.
func compare(a, b entry) int {
	n := min(len(a.name), len(b.name))
	if c := bytes.Compare(a.name[:n], b.name[:n]); c != 0 {
		return c
	}
	end := func(e entry) int {
		switch {
		case len(e.name) > n:
			return int(e.name[n])
		case e.isTree():
			return '/'
		}
		return 0
	}
	if c := end(a) - end(b); c != 0 {
		return c
	}
	return len(a.name) - len(b.name)
}

// differ goes through two trees side by side.
func (t *trees) differ(prefix string, before, after side) error {
	if after.unknown {
		t.partial = true
		return nil
	}
	if before.unknown {
		t.partial = true
		if !t.trusted {
			return nil
		}
		return t.present(prefix, after)
	}
	a, okA := t.next(&before)
	b, okB := t.next(&after)
	for (okA || okB) && !t.full {
		c := 0
		switch {
		case !okA:
			c = 1
		case !okB:
			c = -1
		default:
			c = compare(a, b)
		}
		var err error
		switch {
		case c < 0:
			err = t.one(prefix, "D", a)
			a, okA = t.next(&before)
		case c > 0:
			err = t.one(prefix, "A", b)
			b, okB = t.next(&after)
		default:
			if a.id != b.id || a.mode != b.mode {
				err = t.both(prefix, a, b)
			}
			a, okA = t.next(&before)
			b, okB = t.next(&after)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// next is the next entry; a tree that is wrong ends there.
func (t *trees) next(s *side) (entry, bool) {
	if len(s.b) == 0 {
		return entry{}, false
	}
	e, ok := s.cut()
	if !ok {
		t.partial = true
		s.b = nil
	}
	return e, ok
}

// one is an entry that only one side has.
func (t *trees) one(prefix, status string, e entry) error {
	if !e.isTree() {
		if status == "D" {
			return t.file(prefix, status, e, entry{})
		}
		return t.file(prefix, status, entry{}, e)
	}
	s, err := t.tree(e.id)
	if err != nil {
		return err
	}
	if s.unknown || len(prefix)+len(e.name) > maxPath {
		t.partial = true
		return nil
	}
	if status == "D" {
		return t.differ(prefix+string(e.name)+"/", s, side{})
	}
	return t.differ(prefix+string(e.name)+"/", side{}, s)
}

// both is an entry that both sides have, as a folder or as something else.
func (t *trees) both(prefix string, a, b entry) error {
	if !a.isTree() {
		status := "M"
		if a.mode&modeKind != b.mode&modeKind {
			status = "T"
		}
		return t.file(prefix, status, a, b)
	}
	if len(prefix)+len(a.name) > maxPath {
		t.partial = true
		return nil
	}
	before, err := t.tree(a.id)
	if err != nil {
		return err
	}
	after, err := t.tree(b.id)
	if err != nil {
		return err
	}
	return t.differ(prefix+string(a.name)+"/", before, after)
}

// present lists what is known where the tree before is not, as it is one of a
// prerequisite: a bundle leaves out the objects that such a tree holds, so a
// file whose text is in the bundle was changed or added, and which of them can
// not be told.
func (t *trees) present(prefix string, s side) error {
	for e, ok := t.next(&s); ok && !t.full; e, ok = t.next(&s) {
		i, found := t.pack.find(e.id)
		switch {
		case !found, len(prefix)+len(e.name) > maxPath:
		case e.isTree():
			sub, err := t.tree(e.id)
			if err != nil {
				return err
			}
			if err := t.present(prefix+string(e.name)+"/", sub); err != nil {
				return err
			}
		case t.pack.objects[i].kind == int8(plumbing.BlobObject):
			t.full = !t.commit.Touch("M", prefix+string(e.name))
		}
	}
	return nil
}

// file notes a file that differs; an entry without a mode is one that is not
// there.
func (t *trees) file(prefix, status string, a, b entry) error {
	name := a.name
	if a.mode == 0 {
		name = b.name
	}
	path := prefix + string(name)
	if !t.commit.Touch(status, path) {
		t.full = true
		return nil
	}
	if t.symbols.Full() || !gitlog.Declares(path) || a.id == b.id {
		return nil
	}
	var sides [2][]byte
	for i, e := range []entry{a, b} {
		if k := e.mode & modeKind; k != modeFile && k != modeLink {
			continue
		}
		at, ok := t.pack.find(e.id)
		if ok && t.pack.objects[at].size > gitlog.MaxBlobBytes {
			return nil
		}
		text, err := t.pack.read(e.id, plumbing.BlobObject)
		if err != nil {
			return err
		}
		if text == nil {
			t.partial = true
			return nil
		}
		sides[i] = text
		if err := t.pack.m.spend(len(text)); err != nil {
			return err
		}
	}
	t.symbols.Touched(status, path, sides[0], sides[1])
	return nil
}
