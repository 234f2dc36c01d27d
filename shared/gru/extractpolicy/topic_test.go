package extractpolicy

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/questions"
)

func TestFocus(t *testing.T) {
	t.Parallel()
	tests := []struct{ question, want string }{
		{"What rules, decisions and constraints were set, and why?", ""},
		{"What do we know about the database?", ""},
		{"Which databases and drivers are used, and how are they set up?", ""},
		{"What does the team prefer?", "preferences"},
		{"What was the root cause of each failure?", "causes"},
		{"Which problems are still open?", "open"},
	}
	for _, tt := range tests {
		if got := focusOf(tt.question).String(); got != tt.want {
			t.Errorf("%q is about %q, want %q", tt.question, got, tt.want)
		}
	}
	// The set that ships: two questions keep everything, each other has a topic
	// of its own.
	all, seen := 0, map[string]bool{}
	for _, q := range questions.Default("p").Queries {
		name := focusOf(q.Question).String()
		if name == "" {
			all++
		} else if seen[name] {
			t.Errorf("two questions are about %s", name)
		}
		seen[name] = true
	}
	if all != 2 {
		t.Errorf("%d default questions keep every pick, want decisions and rules", all)
	}
}

func TestFocusWants(t *testing.T) {
	t.Parallel()
	tests := []struct {
		question, text string
		cues           []string
		want           bool
	}{
		{"What does the user prefer?", "I'd rather have table tests.", []string{"pref"}, true},
		{"What does the user prefer?", "The quota in eu-west-3 is 400 vCPU.", []string{"abs", "numu"}, false},
		{"Root causes of failures?", "Tokens looked expired because of clock skew.", []string{"reason"}, true},
		{"What rules hold?", "Tokens looked expired because of clock skew.", []string{"reason"}, true},
	}
	for _, tt := range tests {
		if got := focusOf(tt.question).wants(tt.cues, tt.text); got != tt.want {
			t.Errorf("%q wants %q: %t, want %t", tt.question, tt.text, got, tt.want)
		}
	}
}

// A decision in the middle of a long chunk of chatter is found: scored whole it
// drowns in the chances that so many sentences have.
func TestWindows(t *testing.T) {
	t.Parallel()
	var c conversation
	c.turn = map[int]int{}
	say := func(role memory.Role, text string) {
		c.turn[len(c.list)] = len(c.list)
		c.list = append(c.list, extractive.Message{Role: role, Text: text, First: len(c.list) == 0})
	}
	for i := range 40 {
		say(memory.RoleUser, "Could you open the next file and show me what it does?")
		say(memory.RoleAssistant, strings.Repeat("I am reading the module and its callers in turn. ", 8))
		if i == 20 {
			say(memory.RoleUser, "From now on every export must use UTF-8 with `\\n` line ends, because the ERP rejects anything else.")
			say(memory.RoleAssistant, "Understood.")
		}
	}
	p := New(extractive.Options{})
	res, all := p.result(&c)
	if !res.Open || len(res.Picks) == 0 {
		t.Fatalf("closed: %s", res.Reason)
	}
	for _, i := range res.Picks {
		s := res.Sentences[i]
		m := all.list[s.Message]
		if at := all.turn[s.Message]; c.list[at].Text != m.Text {
			t.Errorf("a pick points into turn %d, whose text it is not", at)
		}
		if !strings.Contains(m.Text[s.Start:s.End], "UTF-8") {
			t.Errorf("picked %q", m.Text[s.Start:s.End])
		}
	}
	// Every turn stands in exactly one window; contexts are never evidence.
	n := 0
	for _, w := range c.windows() {
		n += len(w.turn)
		for i, m := range w.list {
			if _, ok := w.turn[i]; ok == m.Context {
				t.Error("a context message may be evidence, or a turn may not")
			}
		}
	}
	if n != len(c.list) {
		t.Errorf("%d turns in windows, want %d", n, len(c.list))
	}
	// A short conversation is scored whole, exactly as the measured figures are.
	short := conversation{list: c.list[:6], turn: map[int]int{0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5}}
	if ws := short.windows(); len(ws) != 1 || len(ws[0].list) != 6 {
		t.Errorf("a short conversation has %d windows", len(ws))
	}
}
