package query

import (
	"context"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/skill"
)

// Skill is a skill that people promoted, as the log has it. Drafts stand on people's
// disks alone: the log knows none, and so no route gives one.
type Skill struct {
	Name          string       `json:"name"`
	Project       string       `json:"project"`
	From          string       `json:"from,omitempty"` // the question that it was made of
	Description   string       `json:"description,omitempty"`
	WhenToUse     string       `json:"when_to_use,omitempty"`
	State         string       `json:"state"`                  // promoted | withdrawn
	Loadable      bool         `json:"loadable"`               // an agent may load it
	NotLoadable   string       `json:"not_loadable,omitempty"` // why a promoted one may not be
	SHA256        memory.SHA   `json:"sha256"`                 // of its text
	GeneratedFrom memory.SHA   `json:"generated_from,omitempty"`
	Serving       memory.SHA   `json:"serving,omitempty"` // the memory that answers that question now
	Drift         string       `json:"drift,omitempty"`   // why it may be outdated; empty where it is not
	PromotedBy    string       `json:"promoted_by"`       // who did what State says
	At            time.Time    `json:"at"`
	Record        memory.SHA   `json:"record"` // key of the log's record
	Prev          memory.SHA   `json:"prev,omitempty"`
	Unchanged     bool         `json:"unchanged,omitempty"` // of a POST that found it so
	Text          string       `json:"text,omitempty"`      // of one that was asked by name
	History       []SkillEvent `json:"history,omitempty"`   // likewise, the newest last
}

// SkillEvent is one promotion or withdrawal.
type SkillEvent struct {
	Action string     `json:"action"`
	By     string     `json:"by"`
	At     time.Time  `json:"at"`
	SHA256 memory.SHA `json:"sha256"`
	Record memory.SHA `json:"record"`
}

// Skills is the answer of GET /memory/skills.
type Skills struct {
	Skills   []Skill  `json:"skills"`
	Problems []string `json:"problems,omitempty"` // records that can not be read
}

// SkillDraft is the answer of GET /memory/skills/_draft: what a skill of the present
// memory would be. Nothing of it is kept here.
type SkillDraft struct {
	Name          string        `json:"name"`
	Text          string        `json:"text"`
	SHA256        memory.SHA    `json:"sha256"`
	Project       string        `json:"project"`
	Question      string        `json:"question"`
	Level         memory.Level  `json:"level"`
	GeneratedFrom memory.SHA    `json:"generated_from"`
	Facts         []skill.Fact  `json:"facts"` // of the memory, those left out too
	LeftOut       skill.LeftOut `json:"left_out"`
}

// look is what several skills of one request share: many may be made of one memory.
type look struct {
	skills  *skill.Reader
	rules   *redact.Redactor
	answers map[[2]string]memory.SHA
}

func (f *Function) look(ctx context.Context) (*look, error) {
	ps, err := f.cfg.Catalog.Patterns(ctx)
	if err != nil {
		return nil, err
	}
	// Its marks are never stored, so that any key will do.
	rules := redact.NewWith([]byte("marks of this check are never stored"), redact.Options{Patterns: ps})
	return &look{f.skills, rules, map[[2]string]memory.SHA{}}, nil
}

// serving is the memory that answers a question now; false where nobody asks it.
func (l *look) serving(ctx context.Context, project, question string) (memory.SHA, bool, error) {
	at := [2]string{project, question}
	if node, ok := l.answers[at]; ok {
		return node, true, nil
	}
	node, asked, err := l.skills.Serving(ctx, project, question)
	if err == nil && asked {
		l.answers[at] = node
	}
	return node, asked, err
}

// secret is the kind of the first secret in a text by the present rules, and its line.
func (l *look) secret(text string) (kind string, line int) {
	_, marks := l.rules.Redact(text)
	if len(marks) == 0 {
		return "", 0
	}
	return marks[0].Kind, 1 + strings.Count(text[:marks[0].Start], "\n")
}

// skillOf is how a name stands after its records.
func (l *look) skillOf(ctx context.Context, list []skill.Record) (Skill, error) {
	r := list[len(list)-1]
	s := Skill{
		Name: r.Name, Project: r.Project, From: r.From, State: r.Action, SHA256: r.SHA256, GeneratedFrom: r.GeneratedFrom,
		PromotedBy: r.PromotedBy, At: r.At, Record: r.Key, Prev: r.Prev,
	}
	if s.State == memory.SkillPromoted {
		d, err := skill.Parse(r.Name, []byte(r.Text))
		switch secret, _ := l.secret(r.Text); {
		case r.Text == "":
			s.NotLoadable = "its text was erased; promote it anew"
		case secret != "":
			s.NotLoadable = "it holds what is masked now (" + secret + "); take it out and promote it anew"
		case err != nil:
			s.NotLoadable = err.Error()
		default:
			s.Description, s.WhenToUse, s.Loadable = d.Description, d.WhenToUse, true
		}
	}
	if r.GeneratedFrom == "" {
		return s, nil
	}
	node, asked, err := l.serving(ctx, r.Project, r.From)
	if fault.Is(err, fault.Invalid) {
		s.Drift = "the project's questions can not be read" // a broken file hides no skill
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Serving = node
	switch {
	case !asked:
		s.Drift = "the question is asked no more"
	case node == "":
		s.Drift = "the memory is gone"
	case node != r.GeneratedFrom:
		s.Drift = "the memory has changed"
	}
	return s, nil
}
