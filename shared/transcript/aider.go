package transcript

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// aider reads .aider.chat.history.md. A run begins at its header; "#### " is
// what the person typed, "> " what the program says or ran, and the rest is the
// assistant's. Inside a code fence of the assistant these marks are content.
//
// The header's time is local and names no zone: it is taken as UTC, of quality
// "header". The file does not say in which folder it lies.
type aider struct {
	r       *Reader
	session string
	index   int
	run     memory.Turn // its time fields

	kind  aiderKind
	lines []memory.Piece // of a person or the program
	no    int            // line of the turn's beginning
	buf   []byte         // of the assistant
	start int64
	size  int
	fence []byte
}

type aiderKind uint8

const (
	aiderNone aiderKind = iota
	aiderUser
	aiderTool
	aiderText
)

var (
	aiderHeader = lazy.MustCompile(`^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*$`)
	// aiderTokens ends every reply: a fence that is open before it was never
	// closed by the model.
	aiderTokens = lazy.MustCompile(`^> Tokens: \S+ sent, `)
	// aiderWords are commands whose argument is a message.
	aiderWords = map[string]bool{"/ask": true, "/code": true, "/architect": true, "/context": true, "/help": true}
)

const (
	aiderHead   = "# aider chat started at "
	aiderPrompt = "####"
)

func newAider(r *Reader) *aider { return &aider{r: r, run: memory.Turn{TimeQuality: memory.TimeNone}} }

func (a *aider) line(ln line) {
	raw := trimBOM(ln)
	off := ln.off + int64(len(ln.b)-len(raw))
	b := bytes.TrimRight(raw, " \t\r")
	blank := len(b) == 0
	if blank {
		a.r.stats.Blank++
	}
	header := aiderHeader.FindSubmatch(b)
	if header != nil || aiderTokens.Match(b) {
		a.fence = nil
	}
	switch {
	case header != nil:
		a.flush()
		a.begin(string(header[1]))
	case a.fence != nil:
		if closesFence(bytes.TrimLeft(b, " "), a.fence) {
			a.fence = nil
		}
		a.text(ln, raw, off)
	case bytes.HasPrefix(b, []byte(aiderPrompt)) && (len(b) == len(aiderPrompt) || b[len(aiderPrompt)] == ' '):
		a.marked(aiderUser, ln, b, off, len(aiderPrompt))
	case bytes.HasPrefix(b, []byte("> ")) || string(b) == ">":
		a.marked(aiderTool, ln, b, off, 1)
	case blank && a.kind != aiderText:
		a.flush()
	default:
		if f := opensFence(bytes.TrimLeft(b, " ")); f != nil {
			a.fence = f
		}
		a.text(ln, raw, off)
	}
}

// begin starts a run.
func (a *aider) begin(stamp string) {
	a.session = string(memory.SumString(a.r.base + "\x00" + stamp))[:16]
	a.index = 0
	a.r.stats.session(a.session)
	a.run = memory.Turn{TimeQuality: memory.TimeNone}
	if t, ok := parseTime(stamp); ok {
		a.run.Time, a.run.TimeRaw, a.run.TimeQuality = t, stamp, memory.TimeHeader
		a.r.stats.time(t, stamp)
	}
}

// marked takes a line of a person or of the program, without its mark.
func (a *aider) marked(k aiderKind, ln line, b []byte, off int64, mark int) {
	if a.kind != k || a.size > maxBlockBytes {
		a.flush()
		a.kind, a.no = k, ln.no
	}
	if mark < len(b) && b[mark] == ' ' {
		mark++
	}
	a.size += len(b)
	a.lines = append(a.lines, rawPiece(b[mark:], off+int64(mark)))
}

// text takes a line of the assistant.
func (a *aider) text(ln line, raw []byte, off int64) {
	if a.kind != aiderText || a.size > maxBlockBytes || off != a.start+int64(len(a.buf)) {
		a.flush()
		a.kind, a.start, a.no = aiderText, off, ln.no
	}
	a.size += len(raw) + 1
	a.buf = append(a.buf, raw...)
	if ln.ended {
		a.buf = append(a.buf, '\n')
	}
}

// flush emits what is held as one turn.
func (a *aider) flush() {
	t := a.run
	ps := a.lines
	who := speakUser
	switch a.kind {
	case aiderUser:
		if w, _, _ := strings.Cut(strings.TrimSpace(ps[0].Text), " "); len(w) > 1 && (w[0] == '/' && !aiderWords[w] || w[0] == '!') {
			who = speakCommand
		}
	case aiderTool:
		who = speakResult
		t.Tool = &memory.Tool{Name: "aider"}
	case aiderText:
		who = speakAssistant
		from := len(a.buf) - len(bytes.TrimLeft(a.buf, " \t\r\n"))
		to := len(bytes.TrimRight(a.buf, " \t\r\n"))
		if from < to {
			ps = []memory.Piece{rawPiece(a.buf[from:to], a.start+int64(from))}
			a.no += bytes.Count(a.buf[:from], []byte("\n"))
		}
	}
	a.kind, a.size = aiderNone, 0
	a.lines, a.buf = nil, a.buf[:0]
	if blank(ps) {
		return
	}
	s := &a.r.stats
	s.Records++
	t.Role, t.Kind, t.Trust = who.role, who.kind, who.trust
	t.Line, t.From, t.To = a.no, ps[0].Start, ps[len(ps)-1].End
	kept, injected, own := cutAll(ps)
	if injected {
		s.drop("system_reminder")
	}
	if own {
		s.drop("own_memory")
	}
	if blank(kept) {
		t.Derived, kept = own, ps
	}
	t.Pieces = kept
	if a.session == "" { // text before the first header
		a.session = string(memory.SumString(a.r.base + "\x00" + t.Text()))[:16]
		s.session(a.session)
	}
	t.Session = a.session
	id := memory.SumString(a.session + "\x00" + strconv.Itoa(a.index) + "\x00" + string(t.Role) + "\x00" + t.Text())
	a.index++
	t.ID = a.r.ids.unique(a.session + "/" + string(id)[:32])
	a.r.emit(t)
}

func (a *aider) end() { a.flush() }
