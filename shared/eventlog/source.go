package eventlog

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// maxSource is the largest source object, in bytes: the record and one line a
// chunk. A 2 GB transcript gives some 100,000 chunks of 5,000 tokens at most
// and is admitted in parts long before.
const maxSource = 64 << 20

// PutSource writes a source record and its chunk records as one write-once
// object and returns its key: the sha256 of the sealed form of its lines. V,
// Type, Level, Tenant, Project and Chunks are filled in where they are empty.
// The same source again is the same object and no error.
func (l *Log) PutSource(ctx context.Context, project string, s memory.Source, chunks []memory.Chunk) (_ memory.SHA, err error) {
	defer fault.Wrap(&err, "put source(%s)", project)
	if err := l.checkProject(project); err != nil {
		return "", err
	}
	data, key, err := l.encodeSource(project, s, chunks)
	if err != nil {
		return "", err
	}
	err = l.putOnce(ctx, l.sourceKey(project, key), data, maxSource, func(old []byte) error {
		_, _, err := parseSource(old, key)
		return err
	})
	return key, err
}

func (l *Log) encodeSource(project string, s memory.Source, chunks []memory.Chunk) ([]byte, memory.SHA, error) {
	if err := stamp(&s.V, &s.Type, &s.Level, memory.TypeSource, memory.LevelNone); err != nil {
		return nil, "", err
	}
	if s.Tenant == "" {
		s.Tenant = l.tenant
	}
	if s.Project == "" {
		s.Project = project
	}
	if s.Tenant != l.tenant || s.Project != project {
		return nil, "", fault.New(fault.Invalid, "the source is of %s/%s, not %s/%s", s.Tenant, s.Project, l.tenant, project)
	}
	if s.Chunks == nil {
		s.Chunks = make([]memory.SHA, len(chunks))
		for i := range chunks {
			s.Chunks[i] = chunks[i].SHA256
		}
	}
	if s.TurnIDs == nil {
		s.TurnIDs = []string{}
	}
	if len(s.Chunks) != len(chunks) {
		return nil, "", fault.New(fault.Invalid, "the source lists %d chunks and comes with %d", len(s.Chunks), len(chunks))
	}
	s.TimeMin, s.TimeMax = s.TimeMin.UTC(), s.TimeMax.UTC()
	chain := newChainer()
	var buf bytes.Buffer
	add := func(v any) error {
		line, err := marshal(v)
		if err != nil {
			return err
		}
		if _, err := chain.add(line); err != nil {
			return fault.New(fault.Invalid, "%w", err)
		}
		if buf.Len()+len(line) >= maxSource {
			return fault.New(fault.Invalid, "a source of more than %d bytes; admit the object in smaller parts", maxSource)
		}
		buf.Write(line)
		return buf.WriteByte('\n')
	}
	if err := add(&s); err != nil {
		return nil, "", err
	}
	for i := range chunks {
		c := chunks[i]
		if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeChunk, memory.LevelNone, memory.LevelRaw); err != nil {
			return nil, "", err
		}
		if c.I != i || c.SHA256 != s.Chunks[i] {
			return nil, "", fault.New(fault.Invalid, "chunk %d stands at place %d, or not under its sha256", c.I, i)
		}
		if c.Turns == nil {
			c.Turns = []memory.ChunkTurn{}
		}
		c.Turns = utcTurns(c.Turns)
		if err := add(&c); err != nil {
			return nil, "", at(err, "chunk "+strconv.Itoa(i))
		}
	}
	return buf.Bytes(), chain.sum(), nil
}

// utcTurns is turns with every time in UTC.
func utcTurns(turns []memory.ChunkTurn) []memory.ChunkTurn {
	out := make([]memory.ChunkTurn, len(turns))
	for i, t := range turns {
		t.Time = utc(t.Time)
		out[i] = t
	}
	return out
}

// Source reads a source record and its chunk records, verified against the
// key. Chunk texts are not loaded; they are blobs. None there: fault.NotFound.
func (l *Log) Source(ctx context.Context, project string, key memory.SHA) (_ memory.Source, _ []memory.Chunk, err error) {
	defer fault.Wrap(&err, "source(%s, %s)", project, key.Short())
	if err := l.checkProject(project); err != nil {
		return memory.Source{}, nil, err
	}
	if !key.Valid() {
		return memory.Source{}, nil, fault.New(fault.Invalid, "the key of a source is a sha256")
	}
	raw, err := l.readLimited(ctx, l.sourceKey(project, key), maxSource)
	if err != nil {
		return memory.Source{}, nil, err
	}
	s, chunks, err := parseSource(raw.data, key)
	if err == nil && (s.Tenant != l.tenant || s.Project != project) {
		err = fault.New(fault.Corrupt, "the source is of %s/%s", s.Tenant, s.Project)
	}
	if err != nil {
		return memory.Source{}, nil, corrupt(l.sourceKey(project, key), 0, err)
	}
	return s, chunks, nil
}

// sumLines cuts an unordered object into lines and proves that the sealed form
// of them hashes to its key.
func sumLines(data []byte, key memory.SHA) ([][]byte, error) {
	body, whole := bytes.CutSuffix(data, lineFeed)
	if !whole {
		return nil, fault.New(fault.Corrupt, "the object is cut off")
	}
	chain := newChainer()
	lines := bytes.Split(body, lineFeed)
	for i, line := range lines {
		if _, err := chain.add(line); err != nil {
			return nil, fault.New(fault.Corrupt, "line %d: %w", i+1, err)
		}
	}
	if got := chain.sum(); got != key {
		return nil, fault.New(fault.Corrupt, "the lines do not hash to the key")
	}
	return lines, nil
}

// parseSource verifies and decodes a source object.
func parseSource(data []byte, key memory.SHA) (s memory.Source, chunks []memory.Chunk, err error) {
	if s, ok := parseStub(data); ok {
		return s, nil, nil
	}
	lines, err := sumLines(data, key)
	if err != nil {
		return s, nil, err
	}
	if err := decodeStrictType(lines[0], memory.TypeSource, &s, func() int { return s.V }); err != nil {
		return s, nil, err
	}
	if s.Type != memory.TypeSource {
		return s, nil, fault.New(fault.Corrupt, "line 1 is no source record")
	}
	chunks = make([]memory.Chunk, 0, len(lines)-1)
	for i, line := range lines[1:] {
		h, err := sniff(line)
		if err != nil {
			return s, nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		if err := versionError(h.V); err != nil {
			return s, nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		if h.Type != memory.TypeChunk {
			continue // a record type of a newer mem
		}
		var c memory.Chunk
		if err := decodeStrictType(line, memory.TypeChunk, &c, func() int { return c.V }); err != nil {
			return s, nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		chunks = append(chunks, c)
	}
	if len(chunks) != len(s.Chunks) {
		return s, nil, fault.New(fault.Corrupt, "the source lists %d chunks and holds %d", len(s.Chunks), len(chunks))
	}
	for i := range chunks {
		if chunks[i].SHA256 != s.Chunks[i] || chunks[i].I != i {
			return s, nil, fault.New(fault.Corrupt, "chunk %d is not the one the source lists", i)
		}
	}
	return s, chunks, nil
}
