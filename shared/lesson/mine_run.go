package lesson

import (
	"regexp"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/signature"
)

// sure is the confidence from which a log alone, without an exit code, says
// that something failed.
const sure = 0.5

// result is what came back from a command.
type result struct {
	text    string // as the tool printed it
	frame   framed
	isError bool
	exits   bool // the transcript says whether it failed
	pieces  []memory.Piece
	nested  bool
}

// quietResult is that of a command that printed nothing and was no error.
var quietResult = result{exits: true}

// exitFormats are those whose results say whether they are errors.
var exitFormats = map[string]bool{"claude-code": true, "pi": true, "codex": true, "gemini": true}

// answered reads a tool's result.
func (m *Miner) answered(th *thread, t *memory.Turn, known bool) {
	id := ""
	if t.Tool != nil {
		id = t.Tool.CallID
	}
	c := th.take(id)
	if c == nil {
		return
	}
	r := result{text: plain(t), isError: t.Tool != nil && t.Tool.IsError, exits: exitFormats[t.Format], pieces: t.Pieces, nested: nested(t)}
	if !c.shell {
		if r.isError || strings.HasPrefix(r.text, "<tool_use_error>") {
			m.undo(th, c)
		}
		return
	}
	r.frame = frame(r.text)
	m.ended(th, c, t, r, known)
}

// ended judges a command by its result.
func (m *Miner) ended(th *thread, c *call, t *memory.Turn, r result, known bool) {
	if !c.shell {
		return
	}
	body := r.text[r.frame.from:r.frame.to]
	st, sig, told := m.judge(c, r, body)
	switch st {
	case notRun:
		m.undo(th, c)
	case failed:
		if len(c.tasks) == 0 {
			m.undo(th, c)
			return
		}
		// What stood before the part that failed was done.
		blame := blamed(c.tasks, &sig, told)
		for _, d := range c.deeds {
			d.undone = d.undone || d.task != nil && (!before(d.task, c.tasks) || len(blame) == 1 && d.task.covers(&blame[0]))
		}
		m.failed(th, c, r, body, sig, told)
	case passed, cleared:
		if len(th.fails) > 0 {
			m.passed(th, c, t, r, body, known, st == cleared)
		}
	}
}

// before says that a command changes what is around it and is not itself what
// failed.
func before(t *task, tasks []task) bool {
	return t.effect() == effectStrong && len(tasks) > 1 || dull[programOf(t.part.words[0])]
}

// judge tells how a command ended. The signature comes with it where the log
// was read for one.
func (m *Miner) judge(c *call, r result, body string) (st status, sig signature.Result, told bool) {
	if r.text != "" && refusedOrRunning(r.text) {
		return notRun, sig, false
	}
	if len(c.tasks) == 0 && !r.isError {
		return unknown, sig, false
	}
	code, masked, cut := r.frame.code, false, false
	looked, lines := len(c.tasks) > 0, strings.Count(strings.TrimRight(body, "\n"), "\n")+1
	short := false // the end of the output may not be there
	for i := range c.tasks {
		p := c.tasks[i].part
		masked, cut = masked || p.masked, cut || p.filter
		looked = looked && p.grep != ""
		short = short || p.head > 0 && lines >= p.head
		if p.behind {
			return unknown, sig, false
		}
	}
	if asksExit(c.line) {
		if x, ok := saidExit(body); ok {
			code, masked, cut = x, false, false
		}
	}
	bad := code != "" && code != "0" || code == "" && r.isError
	good := code == "0" || code == "" && r.exits && !r.isError
	switch {
	case bad && !(cut && masked) && !(looked && noOutput(body)):
		if nothingToDo(body) {
			return unknown, sig, false
		}
		sig, told = m.sign(c, body)
		if c.looks && (!told || sig.Confidence < sure) {
			return unknown, sig, false
		}
		return failed, sig, told
	case good && !masked:
		return passed, sig, false
	}
	// The exit code is another's, or there is none: the text has to tell.
	fails := failLine.MatchString(plainLines(body[max(0, len(body)-maxTail):]))
	succeeds := !short && lastMatch(body) >= 0
	switch {
	case noOutput(body):
		switch {
		case looked && (r.exits || code != ""):
			return cleared, sig, false // grep's own exit code is 1 then
		case good && !cut && allSilent(c.tasks):
			return passed, sig, false
		}
		return unknown, sig, false
	case (succeeds || !short && endsWithBanner(body)) && !fails && !cut:
		return passed, sig, false
	}
	if sig, told = m.sign(c, body); told && sig.Confidence >= sure && (fails || !succeeds) {
		return failed, sig, told
	}
	return unknown, sig, false
}

// noOutput tells what harnesses write where a command printed nothing.
func noOutput(body string) bool {
	switch strings.TrimSpace(body) {
	case "", "(no output)", "(Bash completed with no output)", "(empty)", "Tool ran without output", "(eval):1":
		return true
	}
	return false
}

// maxTail is how much of an output's end is looked at for what it says of
// success.
const maxTail = 64 << 10

func allSilent(tasks []task) bool {
	for i := range tasks {
		first, _, _ := strings.Cut(tasks[i].name, " ")
		if !silent[tasks[i].name] && !silent[first] {
			return false
		}
	}
	return len(tasks) > 0
}

// sign recognises the failure. The tool is found in the log, so that the log
// alone finds the lesson again; only where that does not tell the command's program
// helps.
func (m *Miner) sign(c *call, body string) (signature.Result, bool) {
	if strings.TrimSpace(body) == "" {
		return signature.Result{}, false
	}
	log := signature.FromBytes([]byte(body))
	r, err := signature.Extract(log, signature.Options{Redactor: m.opt.Redactor})
	if err != nil {
		return signature.Result{}, false
	}
	if !Usable(&r) {
		for i := range c.tasks {
			tool := toolOf(&c.tasks[i])
			if tool == "" {
				continue
			}
			if s, err := signature.Extract(signature.FromBytes([]byte(body)), signature.Options{Redactor: m.opt.Redactor, Tool: tool}); err == nil && Usable(&s) {
				r = s
				break
			}
		}
	}
	r.Context = nil
	return r, Usable(&r)
}

// programTools names the signature's tool of a program.
var programTools = map[string]string{
	"go": "go", "golangci-lint": "go", "gotestsum": "go", "staticcheck": "go", "cargo": "cargo", "rustc": "cargo", "pytest": "pytest", "python": "python", "mypy": "python", "ruff": "python",
	"pip": "pip", "uv": "pip", "poetry": "pip", "npm": "npm", "tsc": "tsc", "vue-tsc": "tsc", "eslint": "eslint", "jest": "jest", "vitest": "vitest", "mocha": "mocha", "node": "node", "tsx": "node",
	"mvn": "maven", "gradle": "gradle", "javac": "java", "java": "java", "docker": "docker", "kubectl": "kubectl", "helm": "kubectl", "terraform": "terraform", "cmake": "cmake", "ctest": "cmake",
	"gcc": "gcc", "g++": "gcc", "clang": "gcc", "make": "make", "ninja": "make", "git": "git",
}

func toolOf(t *task) string {
	if strings.HasPrefix(t.name, "script ") {
		return ""
	}
	first, _, _ := strings.Cut(t.name, " ")
	return programTools[first]
}

// failed notes a failing run.
func (m *Miner) failed(th *thread, c *call, r result, body string, sig signature.Result, told bool) {
	x := &run{pos: c.pos, tasks: blamed(c.tasks, &sig, told), told: told, sig: sig, cwd: c.cwd}
	if told {
		x.span = m.rootLine(r, body, sig.MatchedLine)
	}
	if len(th.fails) >= maxFails {
		th.fails = th.fails[1:]
	}
	th.fails = append(th.fails, x)
	th.forget()
}

// rootLine cites the line that says what failed.
func (m *Miner) rootLine(r result, body string, line int) quoted {
	at := 0
	for n := 1; n < line && at < len(body); n++ {
		_, end := lineAt(body, at)
		at += end - at
	}
	q := m.quoter(r.pieces)
	if !r.nested {
		return q.line(RoleFailed, min(r.frame.from+at, len(q.text)), 4*maxQuote)
	}
	// Escapes made the text longer; its lines are the same.
	n := strings.Count(r.text[:min(r.frame.from+at, len(r.text))], "\n")
	at = 0
	for ; n > 0 && at < len(q.text); n-- {
		_, at = lineAt(q.text, at)
	}
	return q.line(RoleFailed, min(at, len(q.text)), 4*maxQuote)
}

// blamed are the commands of a line that may have failed: those of the tool
// whose log it is and those that run any tool.
func blamed(tasks []task, sig *signature.Result, told bool) []task {
	if !told || len(tasks) < 2 {
		return tasks
	}
	var out []task
	for i := range tasks {
		if tool := toolOf(&tasks[i]); tool == "" || runners[tool] || tool == sig.Tool || tool == sig.InnerTool {
			out = append(out, tasks[i])
		}
	}
	if len(out) == 0 {
		return tasks
	}
	return out
}

// runners are tools whose logs are those of what they run.
var runners = map[string]bool{"make": true, "docker": true, "cmake": true}

// forget drops what was done before the oldest failing run.
func (th *thread) forget() {
	oldest := th.n
	for _, f := range th.fails {
		oldest = min(oldest, f.pos)
	}
	k := 0
	for k < len(th.changes) && th.changes[k].pos < oldest {
		k++
	}
	th.changes = th.changes[k:]
}

// coversRun says that all that may have failed in f is among tasks.
func coversRun(tasks []task, f *run) bool {
	for i := range f.tasks {
		ok := false
		for k := range tasks {
			ok = ok || tasks[k].covers(&f.tasks[i])
		}
		if !ok {
			return false
		}
	}
	return true
}

// passed gives the lessons of what failed before and passes now.
//
// Of a run whose output was searched for errors, and that shows none, only those
// pass that the search would have shown.
func (m *Miner) passed(th *thread, c *call, t *memory.Turn, r result, body string, known, searched bool) {
	var cured []*run
	kept := th.fails[:0:0]
	for _, f := range th.fails {
		if f.pos < c.pos && coversRun(c.tasks, f) && (!searched || shows(c.tasks, f)) {
			cured = append(cured, f)
		} else {
			kept = append(kept, f)
		}
	}
	if len(cured) == 0 {
		return
	}
	th.fails = kept
	if !known {
		end := ending{c: c, t: t, tasks: c.tasks, span: m.passing(c, r, body)}
		for i, f := range cured {
			if f.told && lastOf(cured, i) {
				if l, ok := m.lesson(th, cured, i, &end); ok {
					th.waiting = append(th.waiting, l)
				}
			}
		}
	}
	th.forget()
	if len(th.fails) == 0 {
		th.changes = nil
	}
}

// shows says that the searches of all commands would have shown the root line
// of f.
func shows(tasks []task, f *run) bool {
	if !f.told {
		return false
	}
	for i := range tasks {
		x, err := regexp.Compile(tasks[i].part.grep)
		if err != nil || x.MatchString("") || !x.MatchString(f.sig.Raw) {
			return false
		}
	}
	return true
}

// lastOf says that no later run of them shows the same failure.
func lastOf(runs []*run, i int) bool {
	for _, f := range runs[i+1:] {
		if f.told && f.sig.DetailSHA == runs[i].sig.DetailSHA {
			return false
		}
	}
	return true
}

// passing cites what shows that the command passed: the last line that it
// printed, else the command itself.
func (m *Miner) passing(c *call, r result, body string) quoted {
	if trimmed := strings.TrimRight(body, " \t\r\n"); !noOutput(body) && len(r.pieces) > 0 {
		q := m.quoter(r.pieces)
		at := r.frame.from + len(trimmed) - 1
		if loc := lastMatch(body); loc >= 0 {
			at = r.frame.from + loc
		}
		if r.nested {
			n := strings.Count(r.text[:at], "\n")
			for at = 0; n > 0; n-- {
				_, at = lineAt(q.text, at)
			}
		}
		if x := q.line(RolePassed, min(at, len(q.text)), maxQuote); x.ok {
			return x
		}
	}
	q := m.quoter(c.pieces)
	return q.line(RolePassed, firstLine(q.text), maxQuote)
}

// successLines is how many lines at the end are looked at for success: what
// stands before may be of an earlier step.
const successLines = 30

// lastMatch is where the last line stands that says success; -1 where none
// does.
func lastMatch(body string) int {
	off := len(body)
	for n := 0; n < successLines && off > 0; n++ {
		off = strings.LastIndexByte(body[:off], '\n')
		off = max(off, 0)
	}
	all := successLine.FindAllStringIndex(plainLines(body[off:]), -1)
	if len(all) == 0 {
		return -1
	}
	return off + all[len(all)-1][1] - 1
}
