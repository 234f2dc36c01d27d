package eventlog

import (
	"encoding/json"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// LabelRecord is a label as a record of the shelf Labels: a line, as programs that
// know other fields of labels keep them.
func LabelRecord(l *memory.Label) (Record, error) {
	c := *l
	c.At = c.At.UTC()
	if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeLabel, memory.L1, memory.L2, memory.LevelNone); err != nil {
		return nil, err
	}
	line, err := marshal(&c)
	return &Opaque{Type: memory.TypeLabel, Line: line}, err
}

// AsLabel reads a label out of a record; false where it is none.
func AsLabel(r Record) (*memory.Label, bool, error) {
	o, ok := r.(*Opaque)
	if !ok || o.Type != memory.TypeLabel {
		return nil, false, nil
	}
	var l memory.Label
	if err := json.Unmarshal(o.Line, &l); err != nil {
		return nil, true, fault.New(fault.Corrupt, "the label does not decode: %v", jsonFault(err))
	}
	return &l, true, nil
}
