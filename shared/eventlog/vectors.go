package eventlog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"path"
	"slices"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

const (
	// maxVectors bounds a vector object, in bytes: 64 MiB of segment hold some
	// 60,000 passages of 150 words at most, of 768 float32 each.
	maxVectors = 256 << 20

	// maxDims is above every embedding model in use (4,096 is the largest of
	// the common ones) and keeps dims·rows from overflowing.
	maxDims = 1 << 16

	typeVectors = "vectors"
	hashBytes   = sha256.Size
)

// Vectors are the vectors of one segment's new passages in one space. No row
// at all is a valid answer: the segment has no new node.
type Vectors struct {
	Dims     int
	Passages []memory.SHA // passage id of each row
	Rows     []float32    // len(Passages)·Dims, row after row
	// Without are the passages that the model has no vector for: it refuses their
	// text, or computes no number. They are found by their words alone.
	Without []memory.SHA
}

// all is the passages of v, with a vector or without, sorted.
func (v *Vectors) all() []memory.SHA {
	return slices.Sorted(slices.Values(slices.Concat(v.Passages, v.Without)))
}

// Row is the vector of Passages[i].
func (v *Vectors) Row(i int) []float32 { return v.Rows[i*v.Dims : (i+1)*v.Dims] }

// vectorHeader is the first line of a vector object.
type vectorHeader struct {
	V       int          `json:"v"`
	Type    string       `json:"type"` // "vectors"
	Level   memory.Level `json:"level"`
	Tenant  string       `json:"tenant"`
	Project string       `json:"project"`
	Space   string       `json:"space"`
	Stream  string       `json:"stream"`
	Seq     int64        `json:"seq"`
	Dims    int          `json:"dims"`
	Rows    int          `json:"rows"`
	Without []memory.SHA `json:"without,omitempty"`
}

func (l *Log) checkVectorKey(project, space, stream string, seq int64) error {
	if err := l.checkStream(project, stream); err != nil {
		return err
	}
	if seq < 1 {
		return fault.New(fault.Invalid, "segments count from 1")
	}
	return checkParts("space", space)
}

// PutVectors writes the vectors of one segment in one space, once. Where the
// object stands already with the same passages and dimensions the first stays
// and it is no error, whatever the numbers and whichever passages are without: a
// model may round differently the second time. Other passages there:
// fault.Conflict. A number that is not finite, or rows that do not fit passages
// and dims, or of other dimensions than the space has (PutSpace): fault.Invalid.
func (l *Log) PutVectors(ctx context.Context, project, space, stream string, seq int64, v Vectors) (err error) {
	defer fault.Wrap(&err, "put vectors(%s/%s, %s, %d)", project, stream, space, seq)
	if err := l.checkVectorKey(project, space, stream, seq); err != nil {
		return err
	}
	if err := l.checkDims(space, &v); err != nil {
		return err
	}
	h := vectorHeader{
		V: memory.Version, Type: typeVectors, Level: memory.LevelNone, Tenant: l.tenant, Project: project,
		Space: space, Stream: stream, Seq: seq, Dims: v.Dims, Rows: len(v.Passages), Without: v.Without,
	}
	data, err := encodeVectors(h, v)
	if err != nil {
		return err
	}
	var other bool
	err = l.putOnce(ctx, l.vectorKey(project, space, stream, seq), data, maxVectors, func(old []byte) error {
		stands, err := decodeVectors(old, h)
		other = err == nil && (stands.Dims != v.Dims || !slices.Equal(stands.all(), v.all()))
		return err
	})
	if err == nil && other {
		return fault.New(fault.Conflict, "vectors of other passages stand there")
	}
	return err
}

// Vectors reads the vectors of one segment in one space, verified; false when
// there are none yet.
func (l *Log) Vectors(ctx context.Context, project, space, stream string, seq int64) (_ Vectors, _ bool, err error) {
	defer fault.Wrap(&err, "vectors(%s/%s, %s, %d)", project, stream, space, seq)
	if err := l.checkVectorKey(project, space, stream, seq); err != nil {
		return Vectors{}, false, err
	}
	key := l.vectorKey(project, space, stream, seq)
	raw, err := l.readLimited(ctx, key, maxVectors)
	if fault.Is(err, fault.NotFound) {
		return Vectors{}, false, nil
	}
	if err != nil {
		return Vectors{}, false, err
	}
	v, err := decodeVectors(raw.data, vectorHeader{Tenant: l.tenant, Project: project, Space: space, Stream: stream, Seq: seq})
	if err != nil {
		return Vectors{}, false, corrupt(key, 0, err)
	}
	return v, true, nil
}

// HasVectors reports whether the vectors of a segment stand, without reading
// them.
func (l *Log) HasVectors(ctx context.Context, project, space, stream string, seq int64) (_ bool, err error) {
	defer fault.Wrap(&err, "has vectors(%s/%s, %s, %d)", project, stream, space, seq)
	if err := l.checkVectorKey(project, space, stream, seq); err != nil {
		return false, err
	}
	_, err = l.b.Head(ctx, l.vectorKey(project, space, stream, seq))
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// encodeVectors packs: the header as one line of JSON, the passage ids (32
// bytes each), the rows (float32, little-endian), and the sha256 of all of it.
func encodeVectors(h vectorHeader, v Vectors) ([]byte, error) {
	if v.Dims < 0 || v.Dims > maxDims || len(v.Rows) != v.Dims*len(v.Passages) {
		return nil, fault.New(fault.Invalid, "%d numbers are not %d rows of %d", len(v.Rows), len(v.Passages), v.Dims)
	}
	for _, p := range v.Without {
		if !p.Valid() {
			return nil, fault.New(fault.Invalid, "a passage id is a sha256")
		}
	}
	head, err := marshal(h)
	if err != nil {
		return nil, err
	}
	size := len(head) + 1 + hashBytes*len(v.Passages) + 4*len(v.Rows) + hashBytes
	if size > maxVectors {
		return nil, fault.New(fault.Invalid, "vectors of %d bytes; at most %d", size, maxVectors)
	}
	data := append(append(make([]byte, 0, size), head...), '\n')
	for _, p := range v.Passages {
		if !p.Valid() {
			return nil, fault.New(fault.Invalid, "a passage id is a sha256")
		}
		data, _ = hex.AppendDecode(data, []byte(p)) // valid hex
	}
	for i, f := range v.Rows {
		if f64 := float64(f); math.IsNaN(f64) || math.IsInf(f64, 0) {
			return nil, fault.New(fault.Invalid, "row %d holds a number that is not finite", i/v.Dims)
		}
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	sum := sha256.Sum256(data)
	return append(data, sum[:]...), nil
}

// decodeVectors verifies an object against its footer and the header fields
// that its key names.
func decodeVectors(data []byte, want vectorHeader) (Vectors, error) {
	if len(data) < hashBytes {
		return Vectors{}, errors.New("the object is cut off")
	}
	body, foot := data[:len(data)-hashBytes], data[len(data)-hashBytes:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], foot) {
		return Vectors{}, errors.New("the bytes do not match the footer's sha256")
	}
	line, rest, ok := bytes.Cut(body, lineFeed)
	if !ok {
		return Vectors{}, errors.New("no header line")
	}
	var h vectorHeader
	if err := decodeStrictType(line, typeVectors, &h, func() int { return h.V }); err != nil {
		return Vectors{}, err
	}
	if h.Type != typeVectors || h.Tenant != want.Tenant || h.Project != want.Project ||
		h.Space != want.Space || h.Stream != want.Stream || h.Seq != want.Seq {
		return Vectors{}, errors.New("the header is of another segment")
	}
	if h.Dims < 0 || h.Dims > maxDims || h.Rows < 0 || h.Rows > maxVectors/hashBytes ||
		int64(len(rest)) != int64(h.Rows)*(hashBytes+4*int64(h.Dims)) {
		return Vectors{}, errors.New("the length is not that of the rows")
	}
	for _, p := range h.Without {
		if !p.Valid() {
			return Vectors{}, errors.New("a passage id is no sha256")
		}
	}
	v := Vectors{Dims: h.Dims, Passages: make([]memory.SHA, h.Rows), Rows: make([]float32, h.Rows*h.Dims), Without: h.Without}
	for i := range v.Passages {
		v.Passages[i] = memory.SHA(hex.EncodeToString(rest[i*hashBytes : (i+1)*hashBytes]))
	}
	rest = rest[h.Rows*hashBytes:]
	for i := range v.Rows {
		v.Rows[i] = math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:]))
	}
	return v, nil
}

// VectorsHead is the greatest n for which the vectors of segments 1 to n stand
// in the space, 0 when none do: one LIST call for 1,000 segments.
func (l *Log) VectorsHead(ctx context.Context, project, space, stream string) (_ int64, err error) {
	defer fault.Wrap(&err, "vectors head(%s/%s, %s)", project, stream, space)
	if err := l.checkVectorKey(project, space, stream, 1); err != nil {
		return 0, err
	}
	var head int64
	for info, err := range l.b.ListAfter(ctx, l.vectorPrefix(project, space, stream), "") {
		if err != nil {
			return 0, err
		}
		seq, ok := seqOf(path.Base(info.Key))
		if !ok {
			continue
		}
		if seq != head+1 {
			break
		}
		head = seq
	}
	return head, nil
}

// VectorSpaces lists the spaces that have vectors in the project, sorted.
func (l *Log) VectorSpaces(ctx context.Context, project string) (_ []string, err error) {
	defer fault.Wrap(&err, "vector spaces(%s)", project)
	if err := l.checkProject(project); err != nil {
		return nil, err
	}
	return l.folders(ctx, "vector/"+l.tenant+"/"+project+"/")
}

var _ store = (*objstore.Bucket)(nil)
