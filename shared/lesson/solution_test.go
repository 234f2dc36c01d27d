package lesson_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/signature"
)

func told(text string, day int) lesson.Lesson {
	return lesson.Lesson{
		Tool: "npm", SigSHA: string(memory.SumString("class")), DetailSHA: string(memory.SumString("detail")), SymSHAs: []string{},
		Text: text, Failure: "npm error", Outcome: lesson.Told, Origin: lesson.Person, Time: fmt.Sprintf("2026-03-%02dT10:00:00Z", day),
	}
}

func mined(session string, day int, outcome string, changes ...lesson.Change) lesson.Lesson {
	l := told("changed something", day)
	l.Origin, l.Outcome, l.Session, l.Changes = lesson.Mined, outcome, session, changes
	l.Spans = []lesson.Span{{Role: "failed", Span: memory.Span{Object: "transcripts/shop/s.jsonl", Start: 1, End: 9}}}
	return l
}

func edit(path string, added int) lesson.Change {
	return lesson.Change{Kind: "edit", Path: path, Added: added}
}

func found(ls ...lesson.Lesson) (out []lesson.Found) {
	for i, l := range ls {
		out = append(out, lesson.Found{Key: memory.SumString(fmt.Sprint(i)), Lesson: l})
	}
	return out
}

// uses gives the solutions with their counts.
func uses(fs []lesson.Found) (out []string) {
	for _, s := range lesson.Solutions(fs) {
		rate := "null"
		if s.SuccessRate != nil {
			rate = fmt.Sprintf("%.2f", *s.SuccessRate)
		}
		out = append(out, fmt.Sprintf("%s %s: %d lessons, %d of %d, %s", s.Origin, s.Outcome, s.Lessons, s.Successes, s.Uses, rate))
	}
	return out
}

func TestSolutions(t *testing.T) {
	t.Parallel()
	toldOf := func(f []lesson.Found, told, worked int) []lesson.Found {
		f[0].Told, f[0].Worked = told, worked
		return f
	}
	for name, c := range map[string]struct {
		found []lesson.Found
		want  []string
	}{
		"telling is no use":               {found(told("pin it", 1)), []string{"person told: 1 lessons, 0 of 0, null"}},
		"said again":                      {found(told("pin it", 1), told(" Pin  it ", 2)), []string{"person told: 1 lessons, 0 of 0, null"}},
		"two things said":                 {found(told("pin it", 1), told("upgrade it", 2)), []string{"person told: 1 lessons, 0 of 0, null", "person told: 1 lessons, 0 of 0, null"}},
		"the same repair of three days":   {found(mined("a", 1, "passed", edit("x.go", 1)), mined("b", 2, "passed", edit("x.go", 7)), mined("c", 3, "passed", edit("x.go", 2))), []string{"mined passed: 3 lessons, 3 of 3, 1.00"}},
		"one session in two uploads":      {found(mined("a", 1, "passed", edit("x.go", 1)), mined("a", 1, "passed", edit("x.go", 1))), []string{"mined passed: 1 lessons, 1 of 1, null"}},
		"other repairs":                   {found(mined("a", 1, "passed", edit("x.go", 1)), mined("b", 2, "passed", edit("y.go", 1))), []string{"mined passed: 1 lessons, 1 of 1, null", "mined passed: 1 lessons, 1 of 1, null"}},
		"a flaky one is no use, and last": {found(mined("a", 9, "flaky"), told("pin it", 1)), []string{"person told: 1 lessons, 0 of 0, null", "mined flaky: 1 lessons, 0 of 0, null"}},
		"failures told":                   {toldOf(found(mined("a", 1, "passed", edit("x.go", 1)), told("pin it", 2)), 3, 0), []string{"person told: 1 lessons, 0 of 0, null", "mined passed: 1 lessons, 1 of 4, 0.25"}},
		"successes told":                  {toldOf(found(told("pin it", 1), mined("a", 2, "passed", edit("x.go", 1))), 4, 4), []string{"person told: 1 lessons, 4 of 4, 1.00", "mined passed: 1 lessons, 1 of 1, null"}},
	} {
		if d := cmp.Diff(c.want, uses(c.found)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// The order in which an index gives lessons changes nothing.
func TestSolutionsOfAnyOrder(t *testing.T) {
	t.Parallel()
	fs := found(mined("a", 1, "passed", edit("x.go", 1)), mined("b", 2, "passed", edit("x.go", 2)), told("pin it", 3), told("pin it", 3), mined("c", 3, "flaky"), mined("d", 4, "passed", edit("y.go", 1), edit("x.go", 2)))
	fs[1].Told, fs[1].Worked = 2, 1
	want := lesson.Solutions(fs)
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		mixed := slices.Clone(fs)
		r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if d := cmp.Diff(want, lesson.Solutions(mixed)); d != "" {
			t.Fatal(d)
		}
	}
}

// The order of changes is not part of a cure; what was changed is.
func TestCure(t *testing.T) {
	t.Parallel()
	a, b := mined("a", 1, "passed", edit("x.go", 1), edit("y.go", 1)), mined("b", 2, "passed", edit("y.go", 5), edit("x.go", 2), edit("x.go", 1))
	if a.Cure() != b.Cure() {
		t.Error("the same changes in another order are another cure")
	}
	c := mined("a", 1, "passed", edit("x.go", 1))
	d := mined("a", 1, "passed", lesson.Change{Kind: "command", Quote: "npm install react@16"})
	e := mined("a", 1, "passed", lesson.Change{Kind: "command", Quote: "npm  install react@16 "})
	f := mined("a", 1, "passed", lesson.Change{Kind: "command", Quote: "npm install react@17"})
	if a.Cure() == c.Cure() || c.Cure() == d.Cure() || d.Cure() != e.Cure() || d.Cure() == f.Cure() {
		t.Error("cures are not told apart by what was done")
	}
}

// Every phrasing of one failure meets its lesson.
func TestPhrasings(t *testing.T) {
	t.Parallel()
	log := "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error\nnpm error peer react@\"^16\" from react-mask@5.4.3\n"
	r, err := signature.Extract(signature.FromBytes([]byte(log)), signature.Options{Tool: "npm"})
	if err != nil {
		t.Fatal(err)
	}
	l := lesson.Of(&r)
	met := func(tool, words string) bool {
		var ask lesson.Ask
		if err := ask.AddWords(tool, words); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(ask.Symptoms, func(s memory.SHA) bool { return slices.Contains(l.SymSHAs, string(s)) })
	}
	for _, q := range [][2]string{
		{"npm", "unable to resolve dependency tree"}, {"npm", "cannot resolve dependency tree"}, {"npm", "can't resolve the dependency tree"}, {"npm", "could not resolve dependency tree"},
		{"npm", "npm error: unable to resolve dependency tree"}, {"npm", "NPM ERR! ERESOLVE unable to resolve dependency tree"}, {"npm", "npm error eresolve dependency tree"},
		{"npx", "failed to resolve dependency tree"}, {"", "npm is unable to resolve the dependency tree"}, {"", "why can't npm resolve my dependency tree?"}, {"", "npm ERR! ERESOLVE unable to resolve dependency tree"},
	} {
		if !met(q[0], q[1]) {
			t.Errorf("%q of %q does not meet the lesson", q[1], q[0])
		}
	}
	for _, q := range [][2]string{
		{"npm", "error"}, {"npm", "it fails"}, {"", ""}, {"npm", "dependency tree resolved and found"}, {"pip", "unable to resolve dependency tree"}, {"npm", "module not found"},
	} {
		if met(q[0], q[1]) {
			t.Errorf("%q of %q meets a lesson that it does not describe", q[1], q[0])
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := told("pin it", 1)
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*lesson.Lesson){
		"no class":    func(l *lesson.Lesson) { l.SigSHA = "x" },
		"no symptom":  func(l *lesson.Lesson) { l.SymSHAs = []string{"x"} },
		"no time":     func(l *lesson.Lesson) { l.Time = "yesterday" },
		"no outcome":  func(l *lesson.Lesson) { l.Outcome = "" },
		"no origin":   func(l *lesson.Lesson) { l.Origin = "rumour" },
		"no words":    func(l *lesson.Lesson) { l.Text = " \n" },
		"bytes":       func(l *lesson.Lesson) { l.Text = "\xff" },
		"no evidence": func(l *lesson.Lesson) { l.Origin = lesson.Mined },
		"too many":    func(l *lesson.Lesson) { l.Changes = make([]lesson.Change, 1000) },
	} {
		l := good
		spoil(&l)
		if l.Check() == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// Whatever words are asked, asking ends, and asks for no more than a few hashes.
func FuzzAskWords(f *testing.F) {
	f.Add("npm", "unable to resolve")
	f.Add("", "go make npm yarn cargo docker can't\x00\xff")
	f.Fuzz(func(t *testing.T, tool, words string) {
		var a lesson.Ask
		if err := a.AddWords(tool, words); err != nil {
			return
		}
		if len(a.Symptoms) > 5 || len(a.Details)+len(a.Sigs) > 0 {
			t.Errorf("%d symptoms of words", len(a.Symptoms))
		}
		b := lesson.Ask{}
		if err := b.AddWords(tool, words); err != nil || !slices.Equal(a.Symptoms, b.Symptoms) {
			t.Error("asked twice, two answers")
		}
	})
}
