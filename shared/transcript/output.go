package transcript

import (
	"bytes"
	"path"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Spilled takes the key of a tool's output apart that Claude Code wrote into a
// file of its own because it is long (formats.md 1.8):
// <session>/tool-results/<id>.txt, or .json for a list of content blocks. Only
// the key counts: such a file may hold whatever a tool printed, transcripts
// and notes among them, and none of it is a person's word.
func Spilled(key string) (session, id string, ok bool) {
	dir, name := path.Split(key)
	id = baseOf(name)
	ext := path.Ext(id)
	dir = strings.TrimSuffix(dir, "/")
	if ext != ".txt" && ext != ".json" || path.Base(dir) != spillFolder {
		return "", "", false
	}
	session = path.Base(path.Dir(dir))
	id = strings.TrimSuffix(id, ext)
	if session == "." || session == "/" || id == "" {
		return "", "", false
	}
	return session, id, true
}

const (
	spillFolder = "tool-results"
	// stubOpen begins what stands in the transcript in the output's place.
	stubOpen = "<persisted-output>"
	stubFile = "Full output saved to: "
)

// SpilledTo is the key, as Spilled reads it, of the file that holds the whole
// of a result of which the transcript has the beginning only.
func SpilledTo(t *memory.Turn) (key string, ok bool) {
	if t.Kind != memory.KindToolResult || len(t.Pieces) == 0 {
		return "", false
	}
	s := t.Pieces[0].Text
	if !strings.HasPrefix(s, stubOpen) {
		return "", false
	}
	_, s, ok = strings.Cut(s, stubFile)
	s, _, _ = strings.Cut(s, "\n")
	s = strings.ReplaceAll(strings.TrimSpace(s), `\`, "/")
	session, _, spilled := Spilled(s)
	if !ok || !spilled {
		return "", false
	}
	return session + "/" + spillFolder + "/" + path.Base(s), true
}

// output reads a spilled output: one turn, the tool's result. Of a text over
// the cap on lines the first and the last half of the cap are kept, as whole
// lines: a chunk holds no more than the ends anyway.
type output struct {
	r           *Reader
	session, id string
	blocks      bool // may be a list of content blocks

	head, tail run
	rest       bool // the head is full
}

// run is consecutive bytes of the object.
type run struct {
	b     []byte
	start int64
}

func (x *run) end() int64 { return x.start + int64(len(x.b)) }

func newOutput(r *Reader) *output {
	session, id, _ := Spilled(r.opt.Object)
	return &output{r: r, session: cleanID(session), id: cleanID(id), blocks: path.Ext(r.base) == ".json"}
}

func (o *output) line(ln line) {
	if len(bytes.TrimSpace(ln.b)) == 0 {
		o.r.stats.Blank++
	}
	b, off := ln.b, ln.off
	if off == 0 {
		b = bytes.TrimPrefix(b, []byte("\ufeff"))
		off += int64(len(ln.b) - len(b))
	}
	x := &o.head
	if limit := max(o.r.opt.MaxLineBytes/2, 1); !o.rest && len(x.b) > 0 && (x.end() != off || len(x.b)+len(b) > limit) {
		o.rest = true
	}
	if o.rest {
		x = &o.tail
		o.shorten(len(b))
		if x.end() != off { // a line over the cap was skipped
			x.b = x.b[:0]
		}
	}
	if len(x.b) == 0 {
		x.start = off
	}
	x.b = append(x.b, b...)
	if ln.ended {
		x.b = append(x.b, '\n')
	}
}

// shorten drops lines at the tail's front, half of it at a time, when n more
// bytes would pass the cap.
func (o *output) shorten(n int) {
	x := &o.tail
	if len(x.b) == 0 || len(x.b)+n <= o.r.opt.MaxLineBytes/2 {
		return
	}
	k := len(x.b) / 2
	if e := bytes.IndexByte(x.b[k:], '\n'); e >= 0 {
		k += e + 1
	} else {
		k = len(x.b)
	}
	x.start += int64(k)
	x.b = append(x.b[:0], x.b[k:]...)
}

func (o *output) end() {
	ps, ok := o.list()
	if !ok {
		for _, x := range []run{o.head, o.tail} {
			if b := bytes.TrimRight(x.b, "\r\n"); len(b) > 0 {
				ps = append(ps, rawPiece(b, x.start))
			}
		}
	}
	if o.head.start < o.r.opt.From {
		return
	}
	s := &o.r.stats
	kept, injected, derived := cutAll(ps)
	if injected {
		s.drop("system_reminder")
	}
	if derived {
		s.drop("own_memory")
	}
	if blank(kept) {
		if len(ps) > 0 {
			s.drop("empty_result")
		}
		return
	}
	s.Records++
	s.g.toolResult++
	s.session(o.session)
	t := memory.Turn{
		Session: o.session, ID: o.session + "/" + spillFolder + "/" + o.id,
		Role: memory.RoleTool, Kind: memory.KindToolResult, Trust: memory.TrustTool,
		Pieces: kept, Tool: &memory.Tool{CallID: o.id},
		// The object's own time is that of its upload: by it an old output would
		// be newer than all that was said since.
		TimeQuality: memory.TimeNone,
		// Outputs of MCP tools are named for server and tool.
		Derived: strings.HasPrefix(o.id, "mcp-mneme"),
		Line:    1, From: kept[0].Start, To: kept[len(kept)-1].End,
	}
	o.r.emit(t)
}

// list reads the file as the content blocks of a result: a JSON array of texts
// and other blocks, as far as it is held whole.
func (o *output) list() (ps []memory.Piece, ok bool) {
	if !o.blocks || o.rest {
		return nil, false
	}
	b := o.head.b
	from := skipSpace(b, 0)
	if from == len(b) || b[from] != '[' {
		return nil, false
	}
	e := skipValue(b, from, 0)
	if e < 0 || skipSpace(b, e) != len(b) {
		return nil, false
	}
	odd := map[string]int{}
	elements(b, span{from, e}, func(v span) bool {
		if !isObject(b, v) {
			ok = false
			return false
		}
		ms, _ := members(b, v.s, nil)
		typ := text(b, field(ms, "type"))
		switch txt := field(ms, "text"); {
		case typ == "text" && isString(b, txt):
			ps = append(ps, piece(b, txt, o.head.start))
		case typ == "":
			ok = false
			return false
		default:
			odd[typ]++
		}
		ok = true
		return len(ps) < maxPieces
	})
	if !ok {
		return nil, false
	}
	for typ, n := range odd {
		for range n {
			if typ == "image" {
				o.r.stats.g.images++
			}
			bump(o.r.stats.Dropped, "block/"+typ)
		}
	}
	return ps, true
}
