// Package gitbundle reads the commits of a git bundle without the git program:
// a function that sleeps between events carries no tools.
//
// A bundle is a text header and a packfile:
//
//	# v2 git bundle                      or v3, with lines @object-format=… and @filter=…
//	-41aa… comment                       a prerequisite: a commit that the reader is meant to have
//	9f2c… refs/heads/main                a ref
//	                                     an empty line
//	PACK…                                zlib streams of whole objects and of deltas; a sha1 at the end
//
// Read gives the commits that HEAD, branches and tags reach, each with the files
// and symbols that it changes, the oldest first: the same lines in the same order
// as git log --reverse --author-date-order gives in a clone of the bundle.
//
// Invariants: a pack whose bytes do not match its sha1 gives no commit at all. In
// a whole pack no object takes others with it: what a thin pack's missing bases
// leave unknown is counted, and every commit that can be read is given. Memory
// and time are bounded whatever the bytes say, see Limits; the pack itself lies in
// a temporary file, never in memory.
//
// Packfiles and deltas are go-git's to parse; which object follows from which,
// and how much of it is ever held, is decided here. The package refuses the
// sha256 object format, and reads no object by a promise of somebody to have it.
package gitbundle

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gitlog"
)

// Limits bound what one bundle may cost. A field that is 0 takes its default.
type Limits struct {
	// PackBytes is the size of the pack, in the temporary file. Default 2 GiB.
	PackBytes int64
	// Objects is the number of objects, about 80 bytes of memory each. Default
	// 1 million: a history of 100,000 to 150,000 commits.
	Objects int
	// ObjectBytes is the size of an object that is looked into; a larger one is
	// as good as missing. Default 16 MiB; three may be held at a time.
	ObjectBytes int64
	// CacheBytes is how much of unpacked objects is kept. Default 64 MiB.
	CacheBytes int64
	// WorkBytes bounds the bytes that are unpacked, patched, compared. It ends
	// packs that are small and long to read. Default 32 GiB, about two minutes: a
	// history of 20,000 commits in 188,765 objects takes 3.8 GiB, in 13 s.
	WorkBytes int64
}

const (
	// maxHeader bounds the header: some 50,000 refs.
	maxHeader = 8 << 20
	// maxDeltas bounds a chain of deltas; git makes at most 4,095.
	maxDeltas = 4096
	// maxNamed is how many commits Stats names.
	maxNamed = 3
)

func (l Limits) defaults() Limits {
	or := func(v *int64, def int64) {
		if *v <= 0 {
			*v = def
		}
	}
	or(&l.PackBytes, 2<<30)
	or(&l.ObjectBytes, 16<<20)
	or(&l.CacheBytes, 64<<20)
	or(&l.WorkBytes, 32<<30)
	if l.Objects <= 0 {
		l.Objects = 1_000_000
	}
	return l
}

// Stats says what a bundle held.
type Stats struct {
	Commits int // that were given
	// Partial counts commits of which not all files or symbols are known, since
	// objects that they follow from are not in the bundle; PartialSHAs names the
	// first ones.
	Partial     int
	PartialSHAs []string
	// Lost counts commits and tags that a ref or a commit names, that no
	// prerequisite announces, and that can not be read.
	Lost     int
	LostSHAs []string
	// Unresolved counts objects of the pack whose base is missing or wrong.
	Unresolved int
}

// Hints that cure.
const (
	hintParts  = "upload the history in parts (git bundle create part.bundle OLD..NEW), or use mem learn --git"
	hintAgain  = "make it again (git bundle create FILE HEAD; git bundle verify FILE) and upload it"
	hintWhole  = "make a whole one (git bundle create FILE HEAD): known commits are not taken twice"
	hintFormat = "use mem learn --git, which asks git itself"
)

// Read gives each commit to f. Errors: Corrupt where the bytes are damaged,
// Invalid where a limit or an unknown form stops the reading; with both, f has
// got no commit, or has to forget those it got. Unavailable for I/O and an
// ended ctx. An error of f is returned as it is.
func Read(ctx context.Context, r io.Reader, limits Limits, f func(gitlog.Commit) error) (_ Stats, err error) {
	defer fault.Wrap(&err, "git bundle")
	limits = limits.defaults()
	in := &source{r: r}
	br := bufio.NewReaderSize(in, 64<<10)
	h, err := readHeader(br)
	if in.err != nil {
		return Stats{}, fault.As(fault.Unavailable, in.err)
	}
	if err != nil {
		return Stats{}, err
	}
	file, err := os.CreateTemp("", "mneme-bundle-")
	if err != nil {
		return Stats{}, fault.At(fault.Unavailable, "temporary file", "give the function a folder for temporary files (TMPDIR)", "%v", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	m := &meter{ctx: ctx, left: limits.WorkBytes, limit: limits.WorkBytes}
	size, err := io.Copy(file, io.LimitReader(m.reader(br), limits.PackBytes+1))
	switch {
	case m.err != nil:
		return Stats{}, m.err
	case in.err != nil:
		return Stats{}, fault.As(fault.Unavailable, in.err)
	case err != nil:
		return Stats{}, fault.As(fault.Unavailable, err)
	case size > limits.PackBytes:
		return Stats{}, fault.At(fault.Invalid, "", hintParts, "a pack of over %d MiB", limits.PackBytes>>20)
	}
	p := &pack{m: m, limits: limits, size: size}
	if err := p.open(file); err != nil {
		return Stats{}, err
	}
	hist := &history{pack: p, seen: map[int32]int32{}, announced: map[oid]bool{}, filtered: h.filtered}
	for _, id := range h.prerequisites {
		hist.announced[id] = true
	}
	return hist.read(h.tips(), f)
}

// source remembers its own failure, so that a broken connection is told from
// damaged bytes.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// meter counts work and looks whether ctx has ended. Its error stays.
type meter struct {
	ctx   context.Context
	left  int64
	limit int64
	err   error
}

func (m *meter) spend(n int) error {
	if m.err != nil {
		return m.err
	}
	if m.left -= int64(n); m.left < 0 {
		m.err = fault.At(fault.Invalid, "", hintParts, "more than %d MiB to unpack", m.limit>>20)
	} else if m.ctx.Err() != nil {
		m.err = fault.As(fault.Unavailable, context.Cause(m.ctx))
	}
	return m.err
}

// Write lets a meter stand in a stream.
func (m *meter) Write(b []byte) (int, error) {
	if err := m.spend(len(b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// reader spends what is read.
func (m *meter) reader(r io.Reader) io.Reader { return io.TeeReader(r, m) }

// oid is the sha1 of an object.
type oid [20]byte

func (o oid) String() string { return hex.EncodeToString(o[:]) }

func parseOID(s string) (o oid, ok bool) {
	if len(s) != 2*len(o) {
		return o, false
	}
	_, err := hex.Decode(o[:], []byte(s))
	return o, err == nil
}

type header struct {
	filtered      bool
	prerequisites []oid
	refs          []ref
}

type ref struct {
	name string
	id   oid
}

// readHeader reads up to the empty line before the pack.
func readHeader(br *bufio.Reader) (h header, err error) {
	left := maxHeader
	line := func() (string, error) {
		var all []byte
		for {
			b, err := br.ReadSlice('\n')
			if left -= len(b); left < 0 {
				return "", fault.At(fault.Invalid, "header", hintParts, "over %d MiB of refs", maxHeader>>20)
			}
			all = append(all, b...)
			if err == bufio.ErrBufferFull {
				continue
			}
			if err != nil {
				return "", damaged("the header is cut off")
			}
			return string(all[:len(all)-1]), nil
		}
	}
	first, err := line()
	if err != nil {
		return h, err
	}
	v3 := first == "# v3 git bundle"
	if first != "# v2 git bundle" && !v3 {
		return h, fault.At(fault.Invalid, "header", hintFormat, "no bundle of version 2 or 3")
	}
	for {
		l, err := line()
		switch {
		case err != nil:
			return h, err
		case l == "":
			return h, nil
		case v3 && l[0] == '@':
			if err := capability(l[1:]); err != nil {
				return h, err
			}
			h.filtered = h.filtered || strings.HasPrefix(l, "@filter")
			continue
		}
		rest, needed := strings.CutPrefix(l, "-")
		hash, name, _ := strings.Cut(rest, " ")
		id, ok := parseOID(hash)
		switch {
		case ok && needed:
			h.prerequisites = append(h.prerequisites, id)
		case ok && name != "":
			h.refs = append(h.refs, ref{name, id})
		default:
			return h, damaged("the header holds a line that is neither a ref nor a prerequisite")
		}
	}
}

// capability judges a line of a version 3 header; a reader has to refuse what
// it does not know (gitformat-bundle). A filter leaves objects out, which are
// missing then.
func capability(s string) error {
	key, value, _ := strings.Cut(s, "=")
	switch {
	case key == "object-format" && value == "sha1", key == "filter":
		return nil
	case key == "object-format":
		return fault.At(fault.Invalid, "header", hintFormat, "the object format %.20q is not read, only sha1", value)
	}
	return fault.At(fault.Invalid, "header", hintFormat, "the capability %.40q is not known", key)
}

func damaged(format string, args ...any) error {
	return fault.At(fault.Corrupt, "", hintAgain, "the bundle is damaged: "+format, args...)
}
