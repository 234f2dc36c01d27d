package memory

import "time"

// TypeSkill is the type of a Skill record.
const TypeSkill = "skill"

// What a Skill record says was done.
const (
	SkillPromoted  = "promoted"
	SkillWithdrawn = "withdrawn"
)

// Skill is what a person did with a skill: promoted it, so that agents load it, or
// withdrew it. Records are appended and never overwritten; Prev chains those of one
// name.
type Skill struct {
	V             int       `json:"v"`
	Type          string    `json:"type"` // "skill"
	Level         Level     `json:"level"`
	Tenant        string    `json:"tenant"`
	Project       string    `json:"project"`
	Name          string    `json:"name"`
	Action        string    `json:"action"`                   // promoted | withdrawn
	From          string    `json:"from,omitempty"`           // id of the question whose memory it was made of
	GeneratedFrom SHA       `json:"generated_from,omitempty"` // node of that memory; absent where a person wrote all of it
	SHA256        SHA       `json:"sha256"`                   // of the SKILL.md; of a withdrawal that of what is withdrawn
	Text          string    `json:"text,omitempty"`           // the SKILL.md; absent of a withdrawal
	PromotedBy    string    `json:"promoted_by"`              // who did it, as they say
	At            time.Time `json:"at"`                       // the server's clock
	Prev          SHA       `json:"prev,omitempty"`           // key of the record that this one follows
	Erased        SHA       `json:"erased,omitempty"`
}
