package transcript

import (
	"bytes"
	"regexp"
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// cline reads api_conversation_history.json of Cline and Roo: one array of
// messages as the Anthropic API has them. The user's messages hold what the
// person said between tags (<task>, <feedback>, <answer>, <user_message>),
// results of tools as text ("[read_file for 'a.go'] Result:"), and what the
// editor adds (<environment_details>, "[ERROR] …").
type cline struct {
	x   *schemaReader
	cwd string
	res string // tool whose result the next text is
}

// isCline tells the message array of Cline and Roo from any other.
func isCline(base string, head []byte) bool {
	return base == "api_conversation_history.json" || bytes.Contains(head, []byte("<environment_details>"))
}

func newCline(r *Reader) parser {
	h := &cline{x: newSchemaReader(r, &builtin()[0])}
	h.x.talk.say = h.say
	return newValues(r, h, func(b []byte, ms []member) bool { return field(ms, "role").ok() && field(ms, "content").ok() })
}

func (c *cline) record(rec *record) {
	x := c.x
	x.count.record(rec)
	if !field(rec.ms, "role").ok() {
		bump(x.r.stats.Unknown, "?")
		return
	}
	c.res = ""
	base := memory.Turn{TimeQuality: memory.TimeNone, Cwd: c.cwd}
	if at, raw, ok := timeOf(rec.b, field(rec.ms, "ts")); ok { // Roo
		base.Time, base.TimeRaw, base.TimeQuality = at, raw, memory.TimeExact
		x.r.stats.time(at, raw)
	}
	if c.cwd == "" {
		if base.Cwd = workspace(rec.b); base.Cwd != "" {
			c.cwd = base.Cwd
			x.r.stats.cwd(c.cwd)
		}
	}
	x.message(rec, base, rec.at, rec.ms)
}

// workspaceLine is compiled at its first use: a thousand repeats take 4 ms, which every function's
// start would pay.
var workspaceLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`# Current (?:Working|Workspace) Directory \(([^()\\"]{1,1000})\)`)
})

// workspace is the folder that the editor's details name, "" when they do not.
// It is read from the raw message: a path has no character that JSON escapes,
// or is left alone (a Windows path: its backslashes are escaped).
func workspace(b []byte) string {
	i := bytes.Index(b, []byte("<environment_details>"))
	if i < 0 {
		return ""
	}
	if m := workspaceLine().FindSubmatch(b[i:]); m != nil {
		return string(m[1])
	}
	return ""
}

var (
	clineResult = lazy.MustCompile(`^\[([A-Za-z_][\w-]{0,60})(?: for [^\n]*?)?\] Result:`)
	clineTags   = []struct {
		name string
		who  speaker
	}{
		{"task", speakUser}, {"feedback", speakFeedback}, {"answer", speakUser}, {"user_message", speakUser},
	}
)

// say gives the parts of a message's text to who said them.
func (c *cline) say(m *utterance, ps []memory.Piece) {
	t := &c.x.talk
	if m.t.Role != memory.RoleUser {
		t.finish(m, m.t, ps)
		return
	}
	for _, p := range ps {
		c.user(m, p)
	}
}

func (c *cline) user(m *utterance, p memory.Piece) {
	t := &c.x.talk
	const open, end = "<environment_details>", "</environment_details>"
	at := 0
	for n := 0; n < maxPassages; n++ {
		from, to, ok := tagged(p.Text[at:], "environment_details")
		if !ok {
			break
		}
		t.r.stats.drop("environment_details")
		if q, ok := trimmed(p, at, at+from-len(open)); ok {
			c.part(m, q)
		}
		at += to + len(end)
	}
	if q, ok := trimmed(p, at, len(p.Text)); ok {
		c.part(m, q)
	}
}

// part is user for a text without the editor's details.
func (c *cline) part(m *utterance, p memory.Piece) {
	t := &c.x.talk
	said := false
	for _, tag := range clineTags {
		from, to, ok := tagged(p.Text, tag.name)
		if !ok {
			continue
		}
		if q, ok := trimmed(p, from, to); ok {
			t.finish(m, m.as(tag.who), []memory.Piece{q})
			said = true
		}
	}
	head := strings.TrimLeft(p.Text, " \n")
	res := clineResult.FindStringSubmatch(head)
	switch {
	case said:
		c.res = ""
	case res != nil:
		c.res = ""
		at := len(p.Text) - len(head) + len(res[0])
		if q, ok := trimmed(p, at, len(p.Text)); ok {
			c.result(m, res[1], q)
		} else {
			c.res = res[1] // its text is the next block
		}
	case c.res != "":
		c.result(m, c.res, p)
		c.res = ""
	case strings.HasPrefix(head, "[ERROR]"), strings.HasPrefix(head, "[TASK RESUMPTION]"), strings.HasPrefix(head, "[NOTE]"), strings.HasPrefix(head, "Current time:"):
		t.finish(m, m.as(speakInjected), []memory.Piece{p})
	default:
		t.finish(m, m.t, []memory.Piece{p})
	}
}

func (c *cline) result(m *utterance, tool string, p memory.Piece) {
	turn := m.as(speakResult)
	head := p.Text[:min(len(p.Text), 80)]
	turn.Tool = &memory.Tool{Name: tool, IsError: strings.Contains(head, "<error>") || strings.Contains(head, "<tool_error>")}
	if isWeb(tool) {
		turn.Trust = memory.TrustWeb
	}
	c.x.r.stats.g.toolResult++
	c.x.talk.finish(m, turn, []memory.Piece{p})
}

func (c *cline) end() {}
