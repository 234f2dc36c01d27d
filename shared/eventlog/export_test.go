package eventlog

// What the external tests need of the inside.

// Canonical is the RFC 8785 form of a JSON value.
func Canonical(line []byte) ([]byte, error) { return canonical(nil, line) }

// ParseSegment verifies an object's bytes as segment h names it.
func ParseSegment(data []byte, h Header) (Segment, error) { return parseSegment(data, "key", h) }

// ParseSource verifies a source object.
var ParseSource = parseSource

// SegmentKey, SourceKey and the others are the keys of docs/FORMATS.md.
func (l *Log) SegmentKey(project, stream string, seq int64) string {
	return l.segmentKey(project, stream, seq)
}

// EncodeRecord gives a record's line.
func EncodeRecord(r Record) ([]byte, error) { line, _, err := encodeRecord(r); return line, err }

// Marshal writes any stored value's line.
var Marshal = marshal

// Objects with one line, as they are stored.
type (
	LeaseRecord   = leaseRecord
	PointerRecord = pointer
	FoldRecord    = foldCache

	AttemptsRecord = attempts
)

// DecodeVectors and EncodeVectors are the packed form.
func DecodeVectors(data []byte, tenant, project, space, stream string, seq int64) (Vectors, error) {
	return decodeVectors(data, vectorHeader{Tenant: tenant, Project: project, Space: space, Stream: stream, Seq: seq})
}

// SumLines proves an unordered object against its key.
var SumLines = sumLines

// AppendStep is a gate record's line of the stream hash.
var AppendStep = appendStep

// SumStreams is the log hash over named stream hashes.
var SumStreams = sumStreams
