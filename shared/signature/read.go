package signature

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
)

// read splits both parts of a log into lines.
func (t *text) read(head, tail string, gap int) {
	n := 1
	if head != "" {
		// The line that the cut goes through is dropped on both sides.
		if i := strings.LastIndexByte(head, '\n'); i >= 0 {
			head = head[:i+1]
		}
		n = t.split(head, n)
		n += gap
		if i := strings.IndexByte(tail, '\n'); i >= 0 {
			tail = tail[i+1:]
			n++
		}
	}
	// Of too many lines the first and the last are kept, as of too many bytes.
	if over := strings.Count(tail, "\n") + 1 - MaxLines; over > 0 {
		const keep = MaxLines / 5
		end := skipLines(tail, keep)
		n = t.split(tail[:end], n)
		tail = tail[end:]
		tail, n, t.cut = tail[skipLines(tail, over):], n+over, true
	}
	t.split(tail, n)
}

// skipLines is the offset behind the first n lines of s.
func skipLines(s string, n int) int {
	at := 0
	for ; n > 0; n-- {
		i := strings.IndexByte(s[at:], '\n')
		if i < 0 {
			return len(s)
		}
		at += i + 1
	}
	return at
}

// split adds the lines of s, the first of which is number n, and returns the
// number of the line that would follow.
func (t *text) split(s string, n int) int {
	if len(s) < 4<<20 || t.lines == nil {
		t.lines = growLines(t.lines, strings.Count(s, "\n")+1)
	}
	if doc, ok := document(s); ok {
		for _, l := range doc {
			l.n += int32(n - 1)
			t.lines = append(t.lines, l)
		}
		return n + strings.Count(s, "\n")
	}
	var x expander
	for s != "" {
		i := strings.IndexByte(s, '\n')
		raw := s
		if i >= 0 {
			raw, s = s[:i], s[i+1:]
		} else {
			s = ""
		}
		l := stripLine(raw, n)
		if strings.HasPrefix(l.text, "{\"") && len(raw) <= maxJSON {
			if len(raw) > maxLine {
				l.text = strings.TrimSpace(raw[strings.IndexByte(raw, '{'):])
			}
			t.lines = x.add(t.lines, l)
		} else {
			t.lines = append(t.lines, l)
		}
		if i >= 0 {
			n++
		}
	}
	t.lines = x.flush(t.lines)
	return n
}

func growLines(l []line, by int) []line {
	out := make([]line, len(l), len(l)+min(by, 2*MaxLines))
	copy(out, l)
	return out
}

// section finds the section that failed: of GitHub's steps the last that ended
// with an exit code, of GitLab's sections the last one before the job's verdict.
// What a step's header repeats of its script is no output.
func (t *text) section() {
	t.from, t.to, t.repeat = 0, len(t.lines), len(t.lines)
	start, sawGroup := 0, false
	for i := range t.lines {
		l := &t.lines[i]
		switch {
		case l.text == "------" && i+1 < len(t.lines) && strings.HasPrefix(strings.TrimSpace(t.lines[i+1].text), "> ["):
			t.repeat = min(t.repeat, i)
		case l.mark == isGroup && strings.HasPrefix(l.text, "Run "):
			start, sawGroup = i, true
			t.header(i)
		case l.mark == isGroup && strings.HasPrefix(l.text, "Executing \"step_script\""), l.mark == isGroup && strings.HasPrefix(l.text, "Executing \"build_script\""):
			start, sawGroup = i, true
		case sawGroup && exitOfStep(l):
			t.from, t.to = start, i+1
		}
	}
}

// exitOfStep reports whether the line ends a failed step.
func exitOfStep(l *line) bool {
	return l.mark == isError && strings.HasPrefix(l.text, "Process completed with exit code") || strings.HasPrefix(l.text, "ERROR: Job failed")
}

// maxHeader bounds the header of a step: its script, shell and environment.
const maxHeader = 400

// header silences what stands between `##[group]Run` and `##[endgroup]`.
func (t *text) header(i int) {
	for j := i + 1; j < len(t.lines) && j <= i+maxHeader; j++ {
		if t.lines[j].mark == isNoise && t.lines[j].text == "" {
			for k := i + 1; k < j; k++ {
				t.lines[k].mark = isNoise
			}
			return
		}
		if t.lines[j].mark == isGroup {
			return
		}
	}
}

// spans are the places to look at, in order: the failing section, then all.
func (t *text) spans() [][2]int {
	all := [2]int{0, len(t.lines)}
	if s := [2]int{t.from, t.to}; s != all {
		return [][2]int{s, all}
	}
	return [][2]int{all}
}

// wrapped reports whether a CI runner wrote the log.
func (t *text) wrapped() bool { return t.to != len(t.lines) }

// toolNamed looks up --tool. A name that no rules are known of is as good as
// any: identity includes it.
func toolNamed(tb *table, name string) (*tool, string, error) {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" || name == "auto" {
		return nil, "", nil
	}
	if tl, ok := tb.byName[name]; ok {
		return tl, tl.name, nil
	}
	if len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && r != '+' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}) {
		return nil, "", fault.At(fault.Invalid, "tool", "one word, such as npm, go or docker", "%.80q is no name of a tool", name)
	}
	return nil, name, nil
}

// greenForms are the normal forms of the lines of a passing run that some rule
// could take for a failure.
func greenForms(tb *table, l *Log) (map[string]bool, error) {
	head, tail, err := l.text()
	if err != nil {
		return nil, err
	}
	g := &text{}
	g.read(head, tail, l.gapLines)
	out := map[string]bool{}
	seen := map[string]bool{}
	for i := range g.lines {
		hit := false
		tb.auto.scan(g.lines[i].text, func(int32) { hit = true })
		if s := g.lines[i].text; hit && !seen[s] {
			seen[s] = true
			out[Normalise(s)] = true
		}
	}
	return out, nil
}
