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
