package transcript

import (
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// flat reads one {role, content, ts} object a line: one conversation an
// object. It has no ids; a turn's id is a hash over the object's base name,
// the conversation's first text, its place, role and text.
type flat struct {
	r       *Reader
	session string
	index   int
}

func newFlat(r *Reader) *flat { return &flat{r: r} }

// flatRoles maps what writers call the speakers, in lower case.
var flatRoles = map[string]struct {
	role  memory.Role
	kind  memory.Kind
	trust memory.Trust
}{
	"user":      {memory.RoleUser, memory.KindText, memory.TrustUser},
	"human":     {memory.RoleUser, memory.KindText, memory.TrustUser},
	"assistant": {memory.RoleAssistant, memory.KindText, memory.TrustAssistant},
	"model":     {memory.RoleAssistant, memory.KindText, memory.TrustAssistant},
	"ai":        {memory.RoleAssistant, memory.KindText, memory.TrustAssistant},
	"gpt":       {memory.RoleAssistant, memory.KindText, memory.TrustAssistant},
	"bot":       {memory.RoleAssistant, memory.KindText, memory.TrustAssistant},
	"tool":      {memory.RoleTool, memory.KindToolResult, memory.TrustTool},
	"function":  {memory.RoleTool, memory.KindToolResult, memory.TrustTool},
	"system":    {memory.RoleSystem, memory.KindText, memory.TrustInjected},
	"developer": {memory.RoleSystem, memory.KindText, memory.TrustInjected},
}

func (f *flat) record(rec *record) {
	s := &f.r.stats
	b := rec.b
	var role, content, stamp, cwd, name span
	for _, m := range rec.ms {
		switch string(m.key) {
		case "role":
			role = m.val
		case "content":
			content = m.val
		case "ts", "timestamp", "created_at", "time":
			stamp = m.val
		case "cwd":
			cwd = m.val
		case "name":
			name = m.val
		}
	}
	who := f.r.names.text(b, role)
	if isString(b, role) {
		bump(s.types, "role:"+who)
	} else {
		bump(s.types, "?")
	}
	t := memory.Turn{TimeQuality: memory.TimeNone, Line: rec.line, From: rec.from(), To: rec.to()}
	if at, raw, ok := timeOf(b, stamp); ok {
		t.Time, t.TimeRaw, t.TimeQuality = at, raw, memory.TimeExact
		s.time(at, raw)
	}
	if isString(b, cwd) {
		t.Cwd = f.r.names.text(b, cwd)
		s.cwd(t.Cwd)
	}
	index := f.index
	f.index++
	speaker, ok := flatRoles[strings.ToLower(who)]
	if !ok {
		bump(s.Unknown, "role:"+who)
		return
	}
	t.Role, t.Kind, t.Trust = speaker.role, speaker.kind, speaker.trust
	if t.Kind == memory.KindToolResult {
		t.Tool = &memory.Tool{Name: f.r.names.text(b, name)}
	}
	var ps []memory.Piece
	switch {
	case isString(b, content):
		ps = append(ps, piece(b, content, rec.base))
	case isArray(b, content):
		elements(b, content, func(e span) bool {
			switch {
			case isString(b, e):
				ps = append(ps, piece(b, e, rec.base))
			case isObject(b, e):
				if txt := textOf(b, e); isString(b, txt) {
					ps = append(ps, piece(b, txt, rec.base))
				} else {
					s.drop("block")
				}
			}
			return true
		})
	}
	if blank(ps) {
		s.drop("no_content")
		return
	}
	derived := false
	for _, p := range ps {
		kept, _, own := cut(p)
		derived = derived || own
		t.Pieces = append(t.Pieces, kept...)
	}
	if blank(t.Pieces) {
		if !derived {
			s.drop("system_reminder")
			return
		}
		t.Derived, t.Pieces = true, ps
	}
	all := t.Text()
	if f.session == "" {
		f.session = string(memory.SumString(f.r.base + "\x00" + all))[:16]
		s.session(f.session)
	}
	t.Session = f.session
	id := memory.SumString(f.session + "\x00" + strconv.Itoa(index) + "\x00" + strings.ToLower(who) + "\x00" + all)
	t.ID = f.r.ids.unique(f.session + "/" + string(id)[:32])
	f.r.emit(t)
}

func (f *flat) end() {}

// textOf is the `text` of a text block.
func textOf(b []byte, e span) span {
	ms, _ := members(b, e.s, nil)
	for _, m := range ms {
		if string(m.key) == "text" {
			return m.val
		}
	}
	return span{}
}
