package eventlog

import (
	"encoding/json"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// SkillRecord is a skill's promotion or withdrawal as a record of the shelf Skills: a
// line, as programs that know other fields of it keep them.
func SkillRecord(s *memory.Skill) (Record, error) {
	c := *s
	c.At = c.At.UTC()
	if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeSkill, memory.LevelNone); err != nil {
		return nil, err
	}
	line, err := marshal(&c)
	return &Opaque{Type: memory.TypeSkill, Line: line}, err
}

// AsSkill reads one out of a record; false where it is none.
func AsSkill(r Record) (*memory.Skill, bool, error) {
	o, ok := r.(*Opaque)
	if !ok || o.Type != memory.TypeSkill {
		return nil, false, nil
	}
	var s memory.Skill
	if err := json.Unmarshal(o.Line, &s); err != nil {
		return nil, true, fault.New(fault.Corrupt, "the skill record does not decode: %v", jsonFault(err))
	}
	if s.Erased != "" {
		s.Text = "" // its hash stands there
	}
	return &s, true, nil
}
