package lesson

import (
	"cmp"
	"slices"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Found is one lesson as the index gives it, with what people said of its use.
type Found struct {
	Key          memory.SHA
	Lesson       Lesson
	Told, Worked int // uses that people told of, and those that they say cured
}

// Solution is lessons of one failure with the same cure.
type Solution struct {
	Source      string     `json:"source"`       // object of the newest lesson; "person" where it was told
	Timestamp   string     `json:"timestamp"`    // of the newest lesson
	Solution    string     `json:"solution"`     // its words
	SuccessRate *float64   `json:"success_rate"` // Successes of Uses; null under MinUses
	Successes   int        `json:"successes"`
	Uses        int        `json:"uses"`
	Lesson      memory.SHA `json:"lesson"` // key of the newest lesson's record
	Lessons     int        `json:"lessons"`
	Tool        string     `json:"tool"`
	Failure     string     `json:"failure"` // the root line then
	DetailSHA   string     `json:"detail_sha"`
	SigSHA      string     `json:"sig_sha"`
	Command     string     `json:"command,omitempty"`
	Changes     []Change   `json:"changes,omitempty"`
	Outcome     string     `json:"outcome"`
	Origin      string     `json:"origin"`
	Spans       []Span     `json:"spans"`
}

// MinUses is how many uses a rate needs: of fewer it says nothing (95 % of one success in
// one use is anything from 0.2 to 1).
const MinUses = 3

// Solutions groups lessons by failure and cure, and orders them: what worked more often
// first, then what a person said, then the newest; what passed without a change last.
//
// A use is a lesson that was mined (the command failed, this was done, it passed: a
// success; nothing was done: neither) and what people told by an outcome. Telling a lesson
// is no use.
func Solutions(found []Found) []Solution {
	type group struct {
		s    Solution
		at   time.Time
		seen map[memory.SHA]bool
	}
	groups := map[[2]string]*group{}
	var order []*group
	sorted := slices.Clone(found)
	slices.SortFunc(sorted, func(a, b Found) int {
		return cmp.Or(b.Lesson.At().Compare(a.Lesson.At()), cmp.Compare(a.Key, b.Key))
	})
	for i := range sorted {
		f := &sorted[i]
		l := &f.Lesson
		id := [2]string{l.DetailSHA, string(l.Cure())}
		g := groups[id]
		if g == nil {
			g = &group{at: l.At(), seen: map[memory.SHA]bool{}, s: Solution{
				Source: source(l), Timestamp: l.Time, Solution: l.Text, Lesson: f.Key, Tool: l.Tool, Failure: l.Failure,
				DetailSHA: l.DetailSHA, SigSHA: l.SigSHA, Command: l.Command, Changes: l.Changes, Outcome: l.Outcome, Origin: l.Origin, Spans: l.Spans,
			}}
			if g.s.Spans == nil {
				g.s.Spans = []Span{}
			}
			groups[id] = g
			order = append(order, g)
		}
		g.s.Uses += f.Told
		g.s.Successes += f.Worked
		if id := l.Identity(); !g.seen[id] { // the same session uploaded twice is one lesson
			g.seen[id] = true
			g.s.Lessons++
			if l.Origin == Mined && l.Outcome == Passed {
				g.s.Uses++
				g.s.Successes++
			}
		}
	}
	out := make([]Solution, len(order))
	for i, g := range order {
		if g.s.Uses >= MinUses {
			rate := float64(g.s.Successes) / float64(g.s.Uses)
			g.s.SuccessRate = &rate
		}
		out[i] = g.s
	}
	slices.SortStableFunc(out, func(a, b Solution) int {
		return cmp.Or(
			cmp.Compare(flaky(a), flaky(b)),
			cmp.Compare(b.worth(), a.worth()),
			cmp.Compare(told(b), told(a)),
		) // newest first, as they came
	})
	return out
}

// worth is the rate with one success and one failure added: a solution without uses
// stands in the middle, and one use moves it a little.
func (s *Solution) worth() float64 { return float64(s.Successes+1) / float64(s.Uses+2) }

func flaky(s Solution) int {
	if s.Outcome == Flaky {
		return 1
	}
	return 0
}

func told(s Solution) int {
	if s.Origin == Person {
		return 1
	}
	return 0
}

func source(l *Lesson) string {
	if l.Origin == Person || len(l.Spans) == 0 {
		return Person
	}
	return l.Spans[0].Object
}
