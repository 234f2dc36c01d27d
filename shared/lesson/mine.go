package lesson

import (
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/signature"
)

// Roles of the spans of a mined lesson.
const (
	RoleFailed = "failed" // the root line of the failing log
	RoleChange = "change" // what was changed, or the command that changed it
	RolePassed = "passed" // what the command said when it passed
	RoleSaid   = "said"   // the assistant's own sentence after that
)

// MinerOptions say whose text is mined.
type MinerOptions struct {
	Object, ETag string // of the transcript, for the spans
	TenantKey    []byte // of the HMACs of spans that hold a secret
	Redactor     *redact.Redactor
	Time         time.Time // of the object, for formats that give none
}

// Miner finds lessons in the turns of transcripts, by rules: a command failed,
// something was changed, the same command passed.
//
//	go test ./...                     exit 1: a_test.go:9: got 1, want 2      a failing run
//	edit a.go                         - return 1  + return 2                  a deed
//	go test ./a -run TestA            ok                                      narrower: no pass of the wide one
//	timeout 60 go test ./... | tail   ok  x/a  0.01s                          covers it: a lesson
//
// Which commands are one is told by their shell syntax (mine_shell.go,
// mine_task.go): wrappers, redirections, filters and noise are taken away, one of the
// same name with no narrower filter on no fewer targets covers another. How one ended
// is told by the exit code where it is that of the command, else by what tools print
// (mine_status.go). What a deed is stands in tables (mine_tables.go): edits and
// commands that change something; those that may, such as a build, count where nothing
// else was done; of what nobody can say no lesson is made.
//
// Of several failures before one pass each is a lesson, with the deeds between its
// last run and the next that shows another failure. One that passes with no deed is
// flaky; where the passing command has other assignments or flags these are the deed.
// The words are a frame around paths, commands and lines that stood in the transcript.
//
// It is a fold over the turns in file order, each of which it looks at once.
// Of a session that grew it wants the turns from the beginning, those known
// from before marked: it gives the lessons whose pass is not among them, so
// that the lessons of all parts together are those of the whole. (One
// difference is left: where a part ends with the pass, the sentence that the
// assistant says after it is not in the lesson.)
//
// Turns off the active path, Mneme's own output and what a harness wrote are
// not looked at. The session and each of its sub-agents are threads of their
// own. What it holds is bounded, however long the session: see the limits below.
// It is not safe for concurrent use.
type Miner struct {
	opt     MinerOptions
	threads map[string]*thread
	order   []string // of threads, least recently used first
	ready   []Lesson
}

// Limits of what is held.
const (
	maxThreads = 32
	maxCalls   = 256 // of a thread, that wait for a result
	maxFails   = 64  // failing runs of a thread that have not passed
	maxDeeds   = 256 // of a thread, since its oldest failing run
	maxListed  = 20  // changes in one lesson
	maxCure    = 40  // changes over which nobody can say which was the cure
	maxQuote   = 300 // bytes
)

// thread is one line of work: a session's own, or that of a sub-agent.
type thread struct {
	n       int
	calls   map[string]*call
	waits   []string // ids of calls, oldest first
	last    *call    // the newest call without an id
	fails   []*run
	changes []*deed
	lost    int      // position up to which changes were let go
	waiting []Lesson // passed; the assistant may yet say something of it
	session string
}

// call is a tool call whose result has not come.
type call struct {
	pos    int
	shell  bool
	line   string // the command
	tasks  []task // what it runs that can teach
	looks  bool   // its last command only looks, and fails where it finds nothing
	deeds  []*deed
	pieces []memory.Piece
	cwd    string
}

// deed is one thing done that may be why a command passes.
type deed struct {
	pos    int
	effect effect
	change Change
	span   Span
	cited  bool
	task   *task // of a command
	undone bool  // it failed, or was refused
}

// run is one failing run of a command.
type run struct {
	pos   int
	tasks []task
	told  bool // the log says what failed
	sig   signature.Result
	span  quoted
	cwd   string
}

// NewMiner begins. Without a redactor the built-in rules mask secrets.
func NewMiner(o MinerOptions) *Miner {
	if o.Redactor == nil {
		o.Redactor = redact.New(o.TenantKey)
	}
	return &Miner{opt: o, threads: map[string]*thread{}}
}

// Mine gives the lessons of one transcript.
func Mine(turns []memory.Turn, o MinerOptions) []Lesson {
	m := NewMiner(o)
	for i := range turns {
		m.Add(&turns[i], false)
	}
	return m.Flush()
}

// Lessons gives those that are complete, each once.
func (m *Miner) Lessons() []Lesson {
	out := m.ready
	m.ready = nil
	return out
}

// Flush ends the transcript and gives the lessons that are left.
func (m *Miner) Flush() []Lesson {
	for _, key := range m.order {
		m.settle(m.threads[key])
	}
	return m.Lessons()
}

// settle hands on lessons that wait for nothing more.
func (m *Miner) settle(th *thread) {
	m.ready = append(m.ready, th.waiting...)
	th.waiting = nil
}

// Add looks at the next turn. known says that it was looked at before, as a
// part of a shorter copy of the session.
func (m *Miner) Add(t *memory.Turn, known bool) {
	if t.Abandoned || t.Derived {
		return
	}
	switch t.Kind {
	case memory.KindToolCall:
		th := m.thread(t)
		m.settle(th)
		m.called(th, t, known)
	case memory.KindToolResult:
		if t.Trust == memory.TrustWeb {
			return
		}
		m.answered(m.thread(t), t, known)
	case memory.KindCommand:
		th := m.thread(t)
		m.settle(th)
		m.typed(th, t)
	case memory.KindText:
		switch t.Role {
		case memory.RoleAssistant:
			m.spoke(m.thread(t), t)
		case memory.RoleUser:
			m.opaque(m.thread(t))
		}
	case memory.KindFeedback, memory.KindSteering:
		th := m.thread(t)
		m.opaque(th)
		if t.Tool != nil { // a call that the person refused
			m.undo(th, th.take(t.Tool.CallID))
		}
	}
}

// thread is the one that the turn is of.
func (m *Miner) thread(t *memory.Turn) *thread {
	key := t.Session + "\x00" + t.Agent
	th := m.threads[key]
	if th == nil {
		if len(m.order) >= maxThreads {
			old := m.order[0]
			m.settle(m.threads[old])
			delete(m.threads, old)
			m.order = m.order[1:]
		}
		th = &thread{calls: map[string]*call{}, session: t.Session}
		m.threads[key] = th
		m.order = append(m.order, key)
	} else if m.order[len(m.order)-1] != key {
		k := slices.Index(m.order, key)
		m.order = append(slices.Delete(m.order, k, k+1), key)
	}
	th.n++
	return th
}

// opaque notes that something happened whose effect nobody can tell.
func (m *Miner) opaque(th *thread) {
	m.settle(th)
	if len(th.fails) > 0 {
		th.did(&deed{pos: th.n, effect: effectOpaque})
	}
}

// open says that what is done may matter: a command failed, or may just have.
func (th *thread) open() bool { return len(th.fails) > 0 || len(th.calls) > 0 }

func (th *thread) did(d *deed) {
	if len(th.changes) >= maxDeeds {
		th.lost = th.changes[maxDeeds/4-1].pos
		th.changes = slices.Delete(th.changes, 0, maxDeeds/4)
	}
	th.changes = append(th.changes, d)
}

// wait keeps a call until its result comes.
func (th *thread) wait(id string, c *call) {
	if id == "" {
		th.last = c
		return
	}
	if len(th.waits) >= maxCalls {
		delete(th.calls, th.waits[0])
		th.waits = th.waits[1:]
	}
	th.calls[id] = c
	th.waits = append(th.waits, id)
}

// take gives the call that a result answers.
func (th *thread) take(id string) *call {
	if id == "" {
		c := th.last
		th.last = nil
		return c
	}
	c := th.calls[id]
	if c != nil {
		delete(th.calls, id)
		if k := slices.Index(th.waits, id); k >= 0 {
			th.waits = slices.Delete(th.waits, k, k+1)
		}
	}
	return c
}

// called reads a tool call.
func (m *Miner) called(th *thread, t *memory.Turn, known bool) {
	if t.Tool == nil {
		return
	}
	c := &call{pos: th.n, cwd: t.Cwd}
	open := th.open()
	for i := range t.Tool.Edits {
		if open {
			c.deeds = append(c.deeds, m.edited(th, &t.Tool.Edits[i], t))
		}
	}
	name := toolKind(t.Tool.Name)
	switch {
	case len(t.Tool.Edits) > 0 && !strings.Contains(commandOf(t), "apply_patch"):
	case name == kindShell:
		c.shell, c.line, c.pieces = true, commandOf(t), t.Pieces
		m.commands(th, c, open)
	case name == kindOther && open:
		c.deeds = append(c.deeds, &deed{pos: th.n, effect: effectOpaque})
	}
	for _, d := range c.deeds {
		th.did(d)
	}
	if t.Tool.Quiet {
		m.ended(th, c, t, quietResult, known)
		return
	}
	if c.shell || len(c.deeds) > 0 {
		th.wait(t.Tool.CallID, c)
	}
}

// typed reads a command that the person ran.
func (m *Miner) typed(th *thread, t *memory.Turn) {
	c := &call{pos: th.n, shell: true, line: clip(t.Text(), maxCommandBytes), pieces: t.Pieces, cwd: t.Cwd}
	m.commands(th, c, th.open())
	for _, d := range c.deeds {
		th.did(d)
	}
	th.wait("", c)
}

func (m *Miner) redacted(s string) string {
	out, _ := m.opt.Redactor.Redact(s)
	return out
}

// undo takes back what a call did not do.
func (m *Miner) undo(th *thread, c *call) {
	if c == nil {
		return
	}
	for _, d := range c.deeds {
		d.undone = true
	}
}

// spoke reads what the assistant says: of a pass just before, it is the
// lesson's own sentence.
func (m *Miner) spoke(th *thread, t *memory.Turn) {
	if len(th.waiting) == 0 {
		return
	}
	q := m.quoter(t.Pieces)
	if from, to := verdict(q.text); to > from {
		if said := q.trimmed(RoleSaid, from, to, maxQuote); said.ok {
			for i := range th.waiting {
				l := &th.waiting[i]
				l.Text += " The agent said: “" + oneLine(said.text) + "”"
				l.Spans = append(l.Spans, said.span)
			}
		}
	}
	m.settle(th)
}
