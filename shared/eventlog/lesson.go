package eventlog

import (
	"encoding/json"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
)

// lessonLine is a lesson as a record of the shelf Lessons. What people and tools said
// stands in members that can be erased: the command and the paths are objects with a text.
//
//	{"v":1,"type":"lesson","level":"-","tenant":"local","project":"shop","tool":"npm","sig_sha":"d449…",
//	 "text":"Pin react-mask to 5.4.4.","quote":"npm error code ERESOLVE …","command":{"text":"npm ci"},…}
type lessonLine struct {
	V       int          `json:"v"`
	Type    string       `json:"type"` // "lesson"
	Level   memory.Level `json:"level"`
	Tenant  string       `json:"tenant"`
	Project string       `json:"project"`
	lesson.Lesson
	Command *said        `json:"command,omitempty"`
	Changes []changeLine `json:"changes,omitempty"`
	Erased  memory.SHA   `json:"erased,omitempty"`
}

type said struct {
	Text string `json:"text"`
}

type changeLine struct {
	Kind    string `json:"kind"`
	Path    *said  `json:"path,omitempty"`
	Added   int    `json:"added,omitempty"`
	Removed int    `json:"removed,omitempty"`
	Quote   string `json:"quote,omitempty"`
}

func sayIf(s string) *said {
	if s == "" {
		return nil
	}
	return &said{s}
}

func (s *said) words() string {
	if s == nil {
		return ""
	}
	return s.Text
}

// LessonRecord is a lesson as a record of the shelf Lessons.
func LessonRecord(tenant, project string, l *lesson.Lesson) (Record, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	c := lessonLine{Tenant: tenant, Project: project, Lesson: *l, Command: sayIf(l.Command)}
	for _, ch := range l.Changes {
		c.Changes = append(c.Changes, changeLine{ch.Kind, sayIf(ch.Path), ch.Added, ch.Removed, ch.Quote})
	}
	if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeLesson, memory.LevelNone); err != nil {
		return nil, err
	}
	line, err := marshal(&c)
	return &Opaque{Type: memory.TypeLesson, Line: line}, err
}

// AsLesson reads a lesson out of a record; ok is false where it is none, erased true where
// its words are gone.
func AsLesson(r Record) (l *lesson.Lesson, erased, ok bool, err error) {
	o, is := r.(*Opaque)
	if !is || o.Type != memory.TypeLesson {
		return nil, false, false, nil
	}
	var c lessonLine
	if err := json.Unmarshal(o.Line, &c); err != nil {
		return nil, false, true, fault.New(fault.Corrupt, "the lesson does not decode: %v", jsonFault(err))
	}
	out := c.Lesson
	if c.Erased != "" {
		return &out, true, true, nil
	}
	out.Command = c.Command.words()
	out.Changes = nil
	for _, ch := range c.Changes {
		out.Changes = append(out.Changes, lesson.Change{Kind: ch.Kind, Path: ch.Path.words(), Added: ch.Added, Removed: ch.Removed, Quote: ch.Quote})
	}
	return &out, false, true, nil
}

// outcomeLine is what came of a lesson's use, as a record of the same shelf.
type outcomeLine struct {
	V       int          `json:"v"`
	Type    string       `json:"type"` // "lesson_outcome"
	Level   memory.Level `json:"level"`
	Tenant  string       `json:"tenant"`
	Project string       `json:"project"`
	lesson.Outcome
}

// OutcomeRecord is an outcome as a record of the shelf Lessons.
func OutcomeRecord(tenant, project string, o *lesson.Outcome) (Record, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	c := outcomeLine{Tenant: tenant, Project: project, Outcome: *o}
	if err := stamp(&c.V, &c.Type, &c.Level, lesson.TypeOutcome, memory.LevelNone); err != nil {
		return nil, err
	}
	line, err := marshal(&c)
	return &Opaque{Type: lesson.TypeOutcome, Line: line}, err
}

// AsOutcome reads an outcome out of a record; false where it is none.
func AsOutcome(r Record) (*lesson.Outcome, bool, error) {
	o, ok := r.(*Opaque)
	if !ok || o.Type != lesson.TypeOutcome {
		return nil, false, nil
	}
	var c outcomeLine
	if err := json.Unmarshal(o.Line, &c); err != nil {
		return nil, true, fault.New(fault.Corrupt, "the outcome does not decode: %v", jsonFault(err))
	}
	return &c.Outcome, true, nil
}
