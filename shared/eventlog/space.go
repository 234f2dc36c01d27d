package eventlog

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// spaceRecord is a `space` record: what an id in vector keys stands for. It has no time,
// so that the same space is one object however often it is filled.
type spaceRecord struct {
	V     int          `json:"v"`
	Type  string       `json:"type"` // "space"
	Level memory.Level `json:"level"`
	memory.Space
}

// PutSpace notes in the project what a space is, once, before its first vectors. From
// then on PutVectors of this process refuses vectors of other dimensions in it.
func (l *Log) PutSpace(ctx context.Context, project string, s memory.Space) (err error) {
	defer fault.Wrap(&err, "put space(%s, %s)", project, s.ID)
	if s.ID != memory.SpaceID(s.Model, s.Revision, s.Dims, s.Prefix) {
		return fault.New(fault.Invalid, "the id is not that of its model, revision, dimensions and prefix")
	}
	// Weights and floor are tuned while vectors stay: they are no part of the record.
	s.DenseWeight, s.Floor = 0, 0
	line, err := marshal(spaceRecord{V: memory.Version, Type: memory.TypeSpace, Level: memory.LevelNone, Space: s})
	if err != nil {
		return err
	}
	if _, err := l.PutRecords(ctx, project, Spaces, []Record{&Opaque{Type: memory.TypeSpace, Line: line}}); err != nil {
		return err
	}
	l.dims.Store(s.ID, s.Dims)
	return nil
}

// checkDims refuses vectors that are not of their space's dimensions, as far as this
// process knows them. A segment without a new node has no vector and any dims.
func (l *Log) checkDims(space string, v *Vectors) error {
	want, known := l.dims.Load(space)
	if known && len(v.Passages) > 0 && want.(int) != v.Dims {
		return fault.New(fault.Invalid, "vectors of %d dimensions in space %s, which has %d", v.Dims, space, want)
	}
	return nil
}

// spaceDims are the dimensions of the spaces that the project has a record of, by id.
func (l *Log) spaceDims(ctx context.Context, project string) (map[string]int, error) {
	out := map[string]int{}
	for key, err := range l.RecordKeys(ctx, project, Spaces) {
		if err != nil {
			return nil, err
		}
		recs, err := l.Records(ctx, project, Spaces, key)
		if fault.Is(err, fault.Corrupt) {
			continue // said where the shelf is checked
		}
		if err != nil {
			return nil, err
		}
		for _, r := range recs {
			if o, ok := r.(*Opaque); ok && o.Type == memory.TypeSpace {
				var s memory.Space
				if json.Unmarshal(o.Line, &s) == nil {
					out[s.ID] = s.Dims
				}
			}
		}
	}
	return out, nil
}

// DropSpace deletes the project's vectors of a space, the last segments first: what a
// crash leaves is a space that is not filled to its end. It gives the number of objects.
func (l *Log) DropSpace(ctx context.Context, project, space string) (n int, err error) {
	defer fault.Wrap(&err, "drop space(%s, %s)", project, space)
	if err := l.checkProject(project); err != nil {
		return 0, err
	}
	if err := checkParts("space", space); err != nil {
		return 0, err
	}
	var keys []string
	for info, err := range l.b.ListAfter(ctx, "vector/"+l.tenant+"/"+project+"/"+space+"/", "") {
		if err != nil {
			return 0, err
		}
		keys = append(keys, info.Key)
	}
	for _, k := range slices.Backward(keys) {
		if err := l.b.Delete(ctx, k); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
