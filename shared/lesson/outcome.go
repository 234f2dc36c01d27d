package lesson

import (
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TypeOutcome is the type of an Outcome.
const TypeOutcome = "lesson_outcome"

// Outcome says what came of using a lesson. It stands on the shelf of lessons and is never
// overwritten; two with the same use are one.
type Outcome struct {
	Lesson memory.SHA `json:"lesson"` // key of the lesson's record
	Use    string     `json:"use"`    // what makes this use another one than the next; chosen by who tells
	Worked bool       `json:"worked"`
	Time   string     `json:"time"` // RFC 3339 UTC
}

var usePattern = lazy.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// Check refuses what is no outcome.
func (o *Outcome) Check() error {
	if !o.Lesson.Valid() {
		return fault.At(fault.Invalid, "lesson", "take it from mem sig explain", "a lesson is named by its sha256")
	}
	if !usePattern.MatchString(o.Use) {
		return fault.At(fault.Invalid, "use", "letters, digits and . _ : -, at most 64", "%.80q is no name of a use", o.Use)
	}
	if _, err := time.Parse(time.RFC3339, o.Time); err != nil {
		return fault.New(fault.Invalid, "the outcome's time is none")
	}
	return nil
}
