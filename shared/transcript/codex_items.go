package transcript

import (
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// item reads a response_item.
func (c *codex) item(v *codexRecord) {
	s := &c.r.stats
	b := v.rec.b
	if v.field("encrypted_content").ok() && !isNull(b, v.field("encrypted_content")) {
		s.drop("encrypted_content")
	}
	switch v.typ {
	case "message":
		c.message(v)
	case "reasoning":
		s.g.thinking++
		s.drop("reasoning")
	case "function_call":
		c.call(v, c.r.names.text(b, v.field("name")), v.field("arguments"))
	case "custom_tool_call":
		c.call(v, c.r.names.text(b, v.field("name")), v.field("input"))
	case "local_shell_call":
		c.call(v, "local_shell", v.field("action"))
	case "web_search_call", "tool_search_call", "image_generation_call":
		args := v.field("action")
		if !args.ok() {
			args = v.field("arguments")
		}
		c.call(v, strings.TrimSuffix(v.typ, "_call"), args)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		c.output(v)
	case "tool_search_output", "ghost_snapshot", "compaction", "compaction_summary", "context_compaction", "agent_message":
		s.drop(v.typ)
	default:
		bump(s.Unknown, "response_item/"+v.typ)
	}
}

// message reads a message of any role.
func (c *codex) message(v *codexRecord) {
	s := &c.r.stats
	ps := c.content(v, v.field("content"))
	if blank(ps) {
		s.drop("no_content")
		return
	}
	switch v.role {
	case "user":
		c.heard(v, ps, false)
	case "assistant":
		c.settle(&c.agent, "event_msg/agent_message")
		t := c.turn(v, memory.RoleAssistant, memory.KindText, memory.TrustAssistant)
		t.Pieces = ps
		c.emit(v, t)
	case "developer", "system":
		t := c.turn(v, memory.RoleSystem, memory.KindText, memory.TrustInjected)
		t.Pieces = ps
		c.emit(v, t)
	default:
		bump(s.Unknown, "role:"+v.role)
	}
}

// content gives the texts of a string or of an array of parts.
func (c *codex) content(v *codexRecord, content span) (ps []memory.Piece) {
	s := &c.r.stats
	b := v.rec.b
	if isString(b, content) {
		return []memory.Piece{piece(b, content, v.rec.base)}
	}
	var ms []member
	elements(b, content, func(e span) bool {
		if isString(b, e) {
			ps = append(ps, piece(b, e, v.rec.base))
			return true
		}
		if !isObject(b, e) {
			s.drop("odd_block")
			return true
		}
		ms, _ = members(b, e.s, ms[:0])
		typ, txt := c.r.names.text(b, fieldOf(ms, "type")), fieldOf(ms, "text")
		switch {
		case typ == "input_image" || typ == "image":
			s.g.images++
			s.drop("block/" + typ)
		case isString(b, txt):
			ps = append(ps, piece(b, txt, v.rec.base))
		default:
			bump(s.Dropped, "block/"+typ)
		}
		return true
	})
	return ps
}

// settle notes that response_items hold the texts of a role, and takes back
// the event turns that stood in for them.
func (c *codex) settle(d *doubtful, name string) {
	if !d.over {
		d.over = true
		c.takeBack(d, name)
	}
}

// takeBack drops doubtful turns, as far as the window still holds them.
func (c *codex) takeBack(d *doubtful, name string) {
	if len(d.seqs) == 0 {
		return
	}
	muted := d.muted
	gone := c.r.retract(d.seqs, muted)
	if n := len(gone) - muted; n > 0 {
		c.r.stats.Dropped[name] += n
	}
	d.seqs, d.muted = nil, 0
	for _, o := range []*doubtful{&c.user, &c.agent, &c.guessed} {
		kept, early := o.seqs[:0], 0
		for i, seq := range o.seqs {
			k, out := slices.BinarySearch(gone, seq)
			if out {
				continue
			}
			if i < o.muted {
				early++
			}
			kept = append(kept, seq-k)
		}
		o.seqs, o.muted = kept, early
	}
	left := c.prompt[:0]
	for _, p := range c.prompt {
		k, out := slices.BinarySearch(gone, p.seq)
		if out {
			if k >= muted { // else not counted
				c.r.stats.g.human--
			}
			continue
		}
		left = append(left, prompt{p.id, p.seq - k})
	}
	c.prompt = left
}

// heard reads a text of the user role, of which the harness writes a part.
func (c *codex) heard(v *codexRecord, ps []memory.Piece, event bool) {
	s := &c.r.stats
	var own, injected []memory.Piece
	for _, p := range ps {
		if isImageTag(p.Text) {
			s.drop("image_tag")
			continue
		}
		if c.cwd == "" {
			if from, to, ok := tagged(p.Text, "cwd"); ok && strings.Contains(p.Text, "<environment_context>") {
				c.cwd = strings.TrimSpace(p.Text[from:to])
				s.cwd(c.cwd)
			}
		}
		if c.shell(v, p, event) {
			continue
		}
		at := spoken(p.Text)
		if at > 0 {
			if q, ok := trimmed(p, 0, at); ok {
				injected = append(injected, q)
			}
		}
		if at < len(p.Text) {
			if q, ok := trimmed(p, at, len(p.Text)); ok {
				own = append(own, q)
			}
		}
	}
	if len(injected) > 0 && !event {
		t := c.turn(v, memory.RoleInjected, memory.KindText, memory.TrustInjected)
		t.Pieces = injected
		c.emit(v, t)
	}
	if blank(own) {
		return
	}
	if !event {
		c.settle(&c.user, "event_msg/user_message")
	}
	t := c.turn(v, memory.RoleUser, memory.KindText, memory.TrustUser)
	t.Pieces = own
	seq := c.r.seq
	if id := c.emit(v, t); id != "" {
		s.g.human++
		if len(c.prompt) >= maxPrompts {
			c.prompt = slices.Delete(c.prompt, 0, maxPrompts/2)
		}
		c.prompt = append(c.prompt, prompt{id, seq})
	}
}

// isImageTag tells the words that stand around an attached image.
func isImageTag(s string) bool {
	s = strings.TrimSpace(s)
	return s == "</image>" || strings.HasPrefix(s, "<image") && strings.HasSuffix(s, ">") && strings.Count(s, "<") == 1
}

// injectedTags are the tags of what the harness writes in the user's role.
var injectedTags = []string{
	"environment_context", "user_instructions", "INSTRUCTIONS", "permissions instructions", "skills_instructions",
	"turn_aborted", "apps_instructions", "plugins_instructions", "collaboration_mode", "personality_spec", "model_switch",
	"subagent_notification", "skill", "recommended_plugins", "hook_prompt",
}

const (
	agentsHead  = "# AGENTS.md instructions"
	ideHead     = "# Context from my IDE setup:"
	ideRequest  = "## My request for Codex:"
	shellTag    = "<user_shell_command>"
	shellAnswer = "result"
)

// spoken is where the person's words begin in a text of the user role: behind
// what the harness put before them, or at the end when they wrote nothing.
func spoken(s string) int {
	at := 0
	for {
		i := at + len(s[at:]) - len(strings.TrimLeft(s[at:], " \t\r\n"))
		rest := s[i:]
		switch {
		case strings.HasPrefix(rest, agentsHead):
			k := strings.Index(rest, "</INSTRUCTIONS>")
			if k < 0 {
				return len(s)
			}
			at = i + k + len("</INSTRUCTIONS>")
			continue
		case strings.HasPrefix(rest, ideHead):
			if k := strings.Index(rest, ideRequest); k >= 0 {
				at = i + k + len(ideRequest)
				continue
			}
			return len(s)
		}
		end := 0
		for _, name := range injectedTags {
			tail, ok := strings.CutPrefix(rest, "<"+name)
			if !ok || tail == "" || tail[0] != '>' && tail[0] != ' ' {
				continue
			}
			end = len(s)
			if k := strings.Index(rest, "</"+name+">"); k >= 0 {
				end = i + k + len("</"+name+">")
			}
			break
		}
		if end == 0 {
			return at
		}
		at = end
	}
}

// shell reads a command that the person ran, with its output.
func (c *codex) shell(v *codexRecord, p memory.Piece, event bool) bool {
	if !strings.HasPrefix(strings.TrimSpace(p.Text), shellTag) {
		return false
	}
	if event {
		return true
	}
	command := ""
	if from, to, ok := tagged(p.Text, "command"); ok {
		if q, ok := trimmed(p, from, to); ok {
			t := c.turn(v, memory.RoleUser, memory.KindCommand, memory.TrustUser)
			t.Pieces = []memory.Piece{q}
			command = q.Text
			c.emit(v, t)
		}
	}
	if from, to, ok := tagged(p.Text, shellAnswer); ok {
		if q, ok := trimmed(p, from, to); ok {
			t := c.turn(v, memory.RoleTool, memory.KindToolResult, memory.TrustTool)
			t.Tool = &memory.Tool{Name: "shell", Target: label(command), IsError: failedText(q.Text)}
			t.Derived = isOwn("shell", command)
			t.Pieces = []memory.Piece{q}
			c.emit(v, t)
		}
	}
	return true
}

// knownEvents are read elsewhere or hold nothing to keep.
var knownEvents = map[string]bool{
	"agent_reasoning": true, "agent_reasoning_raw_content": true, "agent_reasoning_section_break": true, "token_count": true,
	"task_started": true, "turn_started": true, "task_complete": true, "turn_complete": true, "turn_aborted": true,
	"context_compacted": true, "thread_name_updated": true, "thread_settings_applied": true, "thread_goal_updated": true,
	"entered_review_mode": true, "exited_review_mode": true, "item_started": true, "item_completed": true,
	"exec_command_begin": true, "exec_command_end": true, "patch_apply_begin": true, "patch_apply_end": true,
	"mcp_tool_call_begin": true, "mcp_tool_call_end": true, "web_search_begin": true, "web_search_end": true,
	"image_generation_end": true, "view_image_tool_call": true, "plan_update": true, "turn_diff": true,
	"error": true, "stream_error": true, "warning": true, "background_event": true, "session_configured": true,
	"sub_agent_activity": true, "collab_agent_spawn_end": true, "collab_waiting_end": true, "collab_close_end": true,
	"dynamic_tool_call_request": true, "dynamic_tool_call_response": true, "undo_completed": true,
}

// event reads an event_msg.
func (c *codex) event(v *codexRecord) {
	s := &c.r.stats
	b := v.rec.b
	switch v.typ {
	case "user_message", "agent_message":
		w := &c.user
		if v.typ == "agent_message" {
			w = &c.agent
		}
		said := v.field("message")
		switch {
		case w.over:
			s.drop("event_msg/" + v.typ)
		case !isString(b, said) || said.e-said.s <= 2:
			s.drop("no_content")
		default:
			seq := c.r.seq
			ps := []memory.Piece{piece(b, said, v.rec.base)}
			if w == &c.user {
				c.heard(v, ps, true)
			} else {
				t := c.turn(v, memory.RoleAssistant, memory.KindText, memory.TrustAssistant)
				t.Pieces = ps
				c.emit(v, t)
			}
			for ; seq < c.r.seq; seq++ {
				w.add(c.r, seq)
			}
		}
	case "thread_rolled_back":
		c.rollback(intOf(b, v.field("num_turns")))
		s.drop("event_msg/" + v.typ)
	default:
		if v.typ == "agent_reasoning" {
			s.drop("thinking")
		}
		if knownEvents[v.typ] {
			s.drop("event_msg/" + v.typ)
		} else {
			bump(s.Unknown, "event_msg/"+v.typ)
		}
	}
}

// rollback marks the last n user turns, and all since, as abandoned, as far as
// the window still holds them.
func (c *codex) rollback(n int) {
	if n <= 0 || len(c.prompt) == 0 {
		return
	}
	n = min(n, len(c.prompt))
	from := c.prompt[len(c.prompt)-n].id
	c.prompt = c.prompt[:len(c.prompt)-n]
	held := c.r.win.held()
	at := slices.IndexFunc(held, func(t memory.Turn) bool { return t.ID == from })
	for i := max(at, 0); i < len(held); i++ {
		held[i].Abandoned = true
	}
}
