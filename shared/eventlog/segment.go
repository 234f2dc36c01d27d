package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"strconv"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// maxSegment is the largest segment that is written or read, in bytes. A slice
// of a loop writes some tens of records of a few KB; a memory of 4,096 tokens is
// some 20 KB. 64 MiB is far above both and bounds what a hostile store can make
// a reader hold.
const maxSegment = 64 << 20

// Types of a segment's first and last line.
const (
	typeHeader = "header"
	typeFooter = "footer"
)

// Header is a segment's first line.
type Header struct {
	V       int          `json:"v"`
	Type    string       `json:"type"` // "header"
	Level   memory.Level `json:"level"`
	Tenant  string       `json:"tenant"`
	Project string       `json:"project"`
	Stream  string       `json:"stream"`
	Seq     int64        `json:"seq"`
	Prev    memory.SHA   `json:"prev"` // hash of segment seq-1; empty at seq 1
	Run     memory.SHA   `json:"run"`  // run of the first record that has one, else empty
	Writer  string       `json:"writer"`
	Count   int          `json:"count"` // records between header and footer
}

// Footer is a segment's last line.
type Footer struct {
	V      int          `json:"v"`
	Type   string       `json:"type"` // "footer"
	Level  memory.Level `json:"level"`
	SHA256 memory.SHA   `json:"sha256"` // over the sealed header and records
}

// Segment is one verified segment. Lines[i] holds Records[i] as it is stored,
// fields that this program does not know included.
type Segment struct {
	Header   Header
	Records  []Record
	Lines    [][]byte
	Footer   Footer
	Hash     memory.SHA // the footer's sha256, verified; what `prev` of the next segment holds
	StoredAt time.Time  // the store's clock
}

// errTorn says that an object ends before its footer: a write that a power cut
// or a dead process left half done, on a store that does not write atomically.
var errTorn = errors.New("the segment has no footer")

// chainer computes a footer: sha256 over the sealed form of each line, each
// followed by a line feed.
type chainer struct {
	h hash.Hash
	c canonicalizer // kept for its buffers
}

func newChainer() *chainer { return &chainer{h: sha256.New()} }

// add takes one line and reports whether it is erased.
func (c *chainer) add(line []byte) (isErased bool, err error) {
	c.c.src, c.c.dst, c.c.pos, c.c.mode, c.c.sawErased = line, c.c.dst[:0], 0, sealed, false
	out, isErased, err := c.c.seal()
	if err != nil {
		return false, err
	}
	c.c.dst = append(out, '\n')
	c.h.Write(c.c.dst)
	return isErased, nil
}

var lineFeed = []byte{'\n'}

func (c *chainer) sum() memory.SHA { return memory.SHA(hex.EncodeToString(c.h.Sum(nil))) }

// encodeSegment gives the bytes of a new segment and its hash.
func encodeSegment(h Header, recs []Record) (data []byte, sum memory.SHA, err error) {
	lines := make([][]byte, len(recs))
	size := 0
	for i, r := range recs {
		line, run, err := encodeRecord(r)
		if err == nil {
			err = checkNode(&h, r)
		}
		if err != nil {
			return nil, "", at(err, "record "+strconv.Itoa(i+1))
		}
		if h.Run == "" {
			h.Run = run
		}
		lines[i] = line
		if size += len(line) + 1; size > maxSegment {
			return nil, "", fault.New(fault.Invalid, "a segment of %d bytes or more; at most %d: append fewer records at a time", size, maxSegment)
		}
	}
	h.V, h.Type, h.Level, h.Count = memory.Version, typeHeader, memory.LevelNone, len(recs)
	head, err := marshal(h)
	if err != nil {
		return nil, "", err
	}
	chain := newChainer()
	if _, err := chain.add(head); err != nil {
		return nil, "", fault.New(fault.Invalid, "header: %w", err)
	}
	data = make([]byte, 0, size+len(head)+footerBytes)
	data = append(append(data, head...), '\n')
	for i, line := range lines {
		isErased, err := chain.add(line)
		if err == nil && isErased {
			err = errors.New("the field `erased` is written by forget alone")
		}
		if err != nil {
			return nil, "", fault.At(fault.Invalid, "record "+strconv.Itoa(i+1), "", "%v", err)
		}
		data = append(append(data, line...), '\n')
	}
	sum = chain.sum()
	foot, err := marshal(Footer{V: memory.Version, Type: typeFooter, Level: memory.LevelNone, SHA256: sum})
	if err != nil {
		return nil, "", err
	}
	data = append(append(data, foot...), '\n')
	if len(data) > maxSegment {
		return nil, "", fault.New(fault.Invalid, "a segment of %d bytes; at most %d: append fewer records at a time", len(data), maxSegment)
	}
	return data, sum, nil
}

// footerBytes is room for the footer's line.
const footerBytes = 128

// at puts a place before an error, keeping its kind.
func at(err error, where string) error {
	return &fault.Error{Kind: fault.KindOf(err), Where: where, Hint: fault.HintOf(err), Err: err}
}

// corrupt is a Corrupt error at a line of an object, from 1; 0 means the whole.
func corrupt(key string, line int, err error) error {
	where := key
	if line > 0 {
		where += ":" + strconv.Itoa(line)
	}
	hint := fault.HintOf(err)
	if hint == "" {
		hint = "run `mem verify`; bring the object back from a copy of the data folder"
	}
	return &fault.Error{Kind: fault.Corrupt, Where: where, Hint: hint, Err: err}
}

// parseSegment verifies the bytes that stand under key and decodes them. want
// holds the tenant, project, stream and seq that the key names.
func parseSegment(data []byte, key string, want Header) (Segment, error) {
	lines, foot, err := splitSegment(data)
	if err != nil {
		return Segment{}, corrupt(key, len(lines)+1, err)
	}
	var seg Segment
	seg.Footer = foot
	if err := decodeStrictType(lines[0], typeHeader, &seg.Header, func() int { return seg.Header.V }); err != nil {
		return Segment{}, corrupt(key, 1, err)
	}
	h := seg.Header
	switch {
	case h.Type != typeHeader:
		err = fault.New(fault.Corrupt, "the first line is a %q, not a header", clip([]byte(h.Type)))
	case h.Tenant != want.Tenant || h.Project != want.Project || h.Stream != want.Stream || h.Seq != want.Seq:
		err = fault.New(fault.Corrupt, "the header is of %s/%s/%s segment %d", h.Tenant, h.Project, h.Stream, h.Seq)
	case h.Count != len(lines)-1:
		err = fault.New(fault.Corrupt, "the header counts %d records; there are %d", h.Count, len(lines)-1)
	case h.Seq == 1 && h.Prev != "", h.Seq > 1 && !h.Prev.Valid():
		err = fault.New(fault.Corrupt, "prev %q is wrong for segment %d", clip([]byte(h.Prev)), h.Seq)
	}
	if err != nil {
		return Segment{}, corrupt(key, 1, err)
	}
	chain := newChainer()
	for i, line := range lines {
		if _, err := chain.add(line); err != nil {
			return Segment{}, corrupt(key, i+1, err)
		}
	}
	if seg.Hash = chain.sum(); seg.Hash != foot.SHA256 {
		return Segment{}, corrupt(key, len(lines)+1, errors.New("the bytes do not match the footer's sha256"))
	}
	seg.Lines = lines[1:]
	seg.Records = make([]Record, len(seg.Lines))
	for i, line := range seg.Lines {
		if seg.Records[i], err = decodeRecord(line); err != nil {
			return Segment{}, corrupt(key, i+2, err)
		}
	}
	return seg, nil
}

// splitSegment cuts an object into its header and record lines, and its
// footer. Without a footer as last line it is errTorn.
func splitSegment(data []byte) (lines [][]byte, foot Footer, err error) {
	body, whole := bytes.CutSuffix(data, lineFeed)
	lines = bytes.Split(body, lineFeed)
	last := len(lines) - 1
	if !whole || last < 1 {
		return lines[:max(last, 0)], foot, errTorn
	}
	if json.Unmarshal(lines[last], &foot) != nil || foot.Type != typeFooter {
		return lines[:last], foot, errTorn
	}
	if err := versionError(foot.V); err != nil {
		return lines[:last], foot, err
	}
	// A footer of this version has no field to spare: one with more, or fewer,
	// was not written by a mem, and its own bytes are not under the chain.
	want, err := marshal(Footer{V: foot.V, Type: typeFooter, Level: memory.LevelNone, SHA256: foot.SHA256})
	if err != nil || foot.V == memory.Version && !bytes.Equal(want, lines[last]) {
		return lines[:last], foot, errors.New("the footer is not as mem writes it")
	}
	return lines[:last], foot, nil
}

// decodeStrictType decodes a line that must be of one type and version.
func decodeStrictType(line []byte, typ string, into any, version func() int) error {
	if err := json.Unmarshal(line, into); err != nil {
		return fault.New(fault.Corrupt, "the %s does not decode: %s", typ, jsonFault(err))
	}
	return versionError(version())
}
