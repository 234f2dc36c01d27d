package lesson

// Covers reports whether the line `wide` runs all that may have failed in
// `narrow`, as Add judges it.
func Covers(wide, narrow string) bool {
	return coversRun(tasksOf(wide), &run{tasks: tasksOf(narrow)})
}

// Alike reports whether they differ in nothing that may be why one passes.
func Alike(a, b string) bool { return !differs(tasksOf(a), &run{tasks: tasksOf(b)}) }

func tasksOf(line string) []task {
	var out []task
	ps := parseShell(line)
	for i := range ps {
		if t := taskOf(&ps[i]); !dull[programOf(ps[i].words[0])] {
			out = append(out, t)
		}
	}
	return out
}

// Effect is the strongest effect of a line: none, opaque, weak or strong.
func Effect(line string) string {
	best := effectNone
	ps := parseShell(line)
	for i := range ps {
		t := taskOf(&ps[i])
		best = max(best, t.effect())
	}
	return [...]string{"none", "opaque", "weak", "strong"}[best]
}

// Masked reports whether the exit code of the line is not that of what it runs.
func Masked(line string) bool {
	for _, t := range tasksOf(line) {
		if t.part.masked {
			return true
		}
	}
	return false
}

// Held is how many things a miner holds.
func (m *Miner) Held() (threads, calls, fails, changes int) {
	for _, th := range m.threads {
		calls += len(th.calls)
		fails += len(th.fails)
		changes += len(th.changes)
		threads++
	}
	return threads, calls, fails, changes
}

// Frame is a result without what its harness wrote around it, and the exit code.
func Frame(text string) (body, code string) {
	f := frame(text)
	return text[f.from:f.to], f.code
}

// Limits for tests.
const (
	MaxThreads = maxThreads
	MaxCalls   = maxCalls
	MaxFails   = maxFails
	MaxDeeds   = maxDeeds
)

// Verdict is the sentence that is quoted of what the assistant says.
func Verdict(s string) string {
	from, to := verdict(s)
	return s[from:to]
}

// Judge is how a command ended by its result: unknown, passed, failed, not run,
// or cleared.
func Judge(line, text string, isError, exits bool) string {
	m := NewMiner(MinerOptions{})
	c := &call{shell: true, line: line}
	m.commands(&thread{}, c, false)
	r := result{text: text, isError: isError, exits: exits, frame: frame(text)}
	st, _, _ := m.judge(c, r, text[r.frame.from:r.frame.to])
	return [...]string{"unknown", "passed", "failed", "not run", "cleared"}[st]
}
