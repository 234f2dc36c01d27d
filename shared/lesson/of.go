package lesson

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/signature"
)

// Outcomes and origins of a lesson.
const (
	Passed = "passed" // the command that failed passed after the change
	Flaky  = "flaky"  // it passed with nothing changed
	Told   = "told"   // nobody saw it pass

	Mined  = "mined"
	Person = "person"
)

// MinConfidence is what a signature must be surer of than 0.2 to be learned under or
// looked up by: at 0.2 stand root lines that say only that something failed ("exit status
// 1"), and all failures would have the lessons of all.
const MinConfidence = 0.2

// Usable reports whether a lesson may be found by the signature.
func Usable(r *signature.Result) bool { return r.MatchedLine > 0 && r.Confidence > MinConfidence }

// Of begins the lesson of a failure: all that its signature says. The caller adds what
// cured it.
func Of(r *signature.Result) Lesson {
	l := Lesson{
		Tool: r.Tool, InnerTool: r.InnerTool, Rule: r.Rule, Confidence: r.Confidence, SigVersion: r.SigVersion,
		SigSHA: r.SigSHA, DetailSHA: r.DetailSHA, InnerSig: r.InnerSigSHA, InnerDetail: r.InnerDetailSHA, Failure: r.Raw,
		SymSHAs: []string{},
	}
	for _, s := range signature.Aliases(*r) {
		in := strings.Fields(s)
		for _, tool := range []string{r.Tool, r.InnerTool} {
			if tool != "" && slices.Contains(in, tool) {
				l.SymSHAs = append(l.SymSHAs, signature.SymSHA(tool, s))
			}
		}
		l.SymSHAs = append(l.SymSHAs, signature.SymSHA("", s)) // for who names no tool, or names it among the words
	}
	slices.Sort(l.SymSHAs)
	l.SymSHAs = slices.Compact(l.SymSHAs)
	return l
}

// Limits of what a lesson holds.
const (
	MaxText    = 8 << 10 // bytes of a solution: some paragraphs
	maxFailure = 8 << 10 // bytes of a root line
	maxChanges = 256
	maxSpans   = 256
	maxSyms    = 512
)

// Check refuses what is no lesson.
func (l *Lesson) Check() error {
	for _, s := range []string{l.SigSHA, l.DetailSHA} {
		if !memory.SHA(s).Valid() {
			return fault.New(fault.Invalid, "a lesson is named by sig_sha and detail_sha, each a sha256")
		}
	}
	for _, s := range slices.Concat([]string{l.InnerSig, l.InnerDetail}, l.SymSHAs) {
		if s != "" && !memory.SHA(s).Valid() {
			return fault.New(fault.Invalid, "a hash of the lesson is no sha256")
		}
	}
	_, err := time.Parse(time.RFC3339, l.Time)
	switch {
	case err != nil:
		return fault.New(fault.Invalid, "the lesson's time is none")
	case l.Outcome != Passed && l.Outcome != Flaky && l.Outcome != Told:
		return fault.New(fault.Invalid, "outcome %.20q is not %s, %s or %s", l.Outcome, Passed, Flaky, Told)
	case l.Origin != Mined && l.Origin != Person:
		return fault.New(fault.Invalid, "origin %.20q is not %s or %s", l.Origin, Mined, Person)
	case strings.TrimSpace(l.Text) == "":
		return fault.New(fault.Invalid, "a lesson without a solution")
	case len(l.Text) > MaxText:
		return fault.At(fault.Invalid, "solution", "say it shorter; a longer text is a note", "%d bytes, at most %d", len(l.Text), MaxText)
	case !utf8.ValidString(l.Text) || !utf8.ValidString(l.Failure) || !utf8.ValidString(l.Command):
		return fault.New(fault.Invalid, "a text of the lesson is not UTF-8")
	case len(l.Failure) > maxFailure || len(l.Changes) > maxChanges || len(l.Spans) > maxSpans || len(l.SymSHAs) > maxSyms:
		return fault.New(fault.Invalid, "the lesson is too large")
	case l.Origin == Mined && len(l.Spans) == 0:
		return fault.New(fault.Invalid, "a mined lesson without a span")
	}
	return nil
}

// Cure tells what was done from what else was: lessons of one failure with the same cure
// are one solution. Of changes their kinds and paths count, and the words of commands;
// how many lines differ does not, as the same repair of another day moves them. Without
// changes the words are the cure.
func (l *Lesson) Cure() memory.SHA {
	type change struct{ Kind, Path, Words string }
	var cs []change
	for _, c := range l.Changes {
		d := change{Kind: c.Kind, Path: c.Path}
		if c.Path == "" {
			d.Words = words(c.Quote)
		}
		cs = append(cs, d)
	}
	slices.SortFunc(cs, func(a, b change) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Path, b.Path), strings.Compare(a.Words, b.Words))
	})
	said := ""
	if len(cs) == 0 {
		said = words(l.Text)
	}
	b, err := json.Marshal([]any{l.Outcome == Flaky, slices.Compact(cs), said})
	if err != nil {
		panic("lesson: a cure always encodes: " + err.Error())
	}
	return memory.Sum(b)
}

// Identity is what happened once: the same failure cured in the same way in the same
// session at the same time, in however many uploads it stands. What a person says is one
// thing however often it is said.
func (l *Lesson) Identity() memory.SHA {
	s := l.Origin + "\n" + l.DetailSHA + "\n" + string(l.Cure())
	if l.Origin == Mined {
		s += "\n" + l.Session + "\n" + l.Time
	}
	return memory.SumString(s)
}

// At is the lesson's time, to the millisecond.
func (l *Lesson) At() time.Time {
	t, err := time.Parse(time.RFC3339, l.Time)
	if err != nil {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

func words(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// Texts are all words of a lesson that people and tools said.
func (l *Lesson) Texts() []string {
	out := []string{l.Text, l.Failure, l.Command}
	for _, c := range l.Changes {
		out = append(out, c.Path, c.Quote)
	}
	return out
}

// Map gives the lesson with each of its texts replaced.
func (l *Lesson) Map(text func(string) string) Lesson {
	out := *l
	out.Text, out.Failure, out.Command = text(l.Text), text(l.Failure), text(l.Command)
	out.Changes = slices.Clone(l.Changes)
	for i := range out.Changes {
		out.Changes[i].Path, out.Changes[i].Quote = text(out.Changes[i].Path), text(out.Changes[i].Quote)
	}
	return out
}
