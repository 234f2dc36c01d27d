package forget

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// part is one admitted part as it stands now.
type part struct {
	line   memory.Admit
	keys   []memory.SHA // of its source records, the one that stands last
	src    memory.Source
	chunks []memory.Chunk
}

func (p *part) key() memory.SHA { return p.keys[len(p.keys)-1] }

// forgotten reports whether all of the part was forgotten before.
func (p *part) forgotten() bool {
	for i := range p.chunks {
		if p.chunks[i].SizeBytes > 0 {
			return false
		}
	}
	return len(p.keys) > 1
}

// parts reads the source records of a project in admit order.
func (f *forgetter) readParts(ctx context.Context) ([]*part, error) {
	var out []*part
	for line, err := range f.Log.Admits(ctx, f.project, 0) {
		if err != nil {
			return nil, err
		}
		p := &part{line: line}
		for key := line.Source; ; {
			next, src, chunks, err := f.Log.Next(ctx, f.project, key)
			if err != nil {
				return nil, err
			}
			p.keys = append(p.keys, key)
			if next == "" {
				p.src, p.chunks = src, chunks
				break
			}
			if slices.Contains(p.keys, next) {
				return nil, fault.New(fault.Corrupt, "source %s stands for itself; run mem verify", key.Short())
			}
			key = next
		}
		out = append(out, p)
		f.report.Parts++
		f.progress()
	}
	return out, nil
}

// turn names a turn of a part.
type turn struct{ session, id string }

// choice is what of the project is to be forgotten.
type choice struct {
	parts []*part
	whole map[*part]bool
	turns map[turn]bool // in parts that are not forgotten whole
	nodes map[memory.SHA]bool
	also  []string // other sources that hold the same
}

// name is an object as people name it: its key in the inbox.
func name(object string) string {
	_, key, _ := strings.Cut(object, "/")
	return key
}

// file is the last part of an object's name.
func file(object string) string { return path.Base(object) }

// choose finds what a target names. Nothing: fault.NotFound; several objects by one
// name: fault.Invalid with their names.
func (f *forgetter) choose(ctx context.Context, target memory.Target) (*choice, error) {
	parts, err := f.readParts(ctx)
	if err != nil {
		return nil, err
	}
	c := &choice{parts: parts, whole: map[*part]bool{}, turns: map[turn]bool{}, nodes: map[memory.SHA]bool{}}
	switch {
	case target.Project:
		for _, p := range parts {
			c.whole[p] = true
		}
	case target.Source != "":
		if err := c.source(f.project, target.Source, f.made(ctx, target.Source)); err != nil {
			return nil, err
		}
	case target.Node != "":
		if err := f.node(ctx, c, target.Node); err != nil {
			return nil, err
		}
	}
	c.same()
	return c, nil
}

// made is the object that was made of an upload and read in its place: the history of a
// git bundle. "" where there is none.
func (f *forgetter) made(ctx context.Context, want string) string {
	if f.Inbox == nil {
		return ""
	}
	for _, key := range []string{want, f.project + "/" + want} {
		if info, err := f.Inbox.Head(ctx, key); err == nil {
			if r, ok, err := f.Log.Receipt(ctx, f.Inbox.Name(), key, info.ETag); err == nil && ok && r.Derived != "" {
				return r.Derived
			}
		}
	}
	return ""
}

// source chooses the parts of what is named: an object by its key, with or without the
// bucket or the project; a session; a hash of the object or its source record, or the
// beginning of one; else an object by its file name.
func (c *choice) source(project, want, made string) error {
	pick := func(is func(*part) bool) (objects []string) {
		for _, p := range c.parts {
			if is(p) {
				c.whole[p] = true
				if !slices.Contains(objects, p.src.Object) {
					objects = append(objects, p.src.Object)
				}
			}
		}
		return objects
	}
	exact := func(p *part) bool {
		return p.src.Object == want || name(p.src.Object) == want || name(p.src.Object) == project+"/"+want || made != "" && name(p.src.Object) == made
	}
	if len(pick(exact)) > 0 || c.session(want) {
		return nil
	}
	if len(want) >= 8 && strings.Trim(want, "0123456789abcdef") == "" {
		is := func(s memory.SHA) bool { return strings.HasPrefix(string(s), want) }
		if len(pick(func(p *part) bool { return is(p.src.RawSHA256) || slices.ContainsFunc(p.keys, is) })) > 0 {
			return nil
		}
	}
	objects := pick(func(p *part) bool { return !p.forgotten() && file(p.src.Object) == want })
	if len(objects) == 0 { // its upload may have come back
		objects = pick(func(p *part) bool { return file(p.src.Object) == want })
	}
	switch len(objects) {
	case 0:
		return fault.At(fault.NotFound, "source "+want, "mem log shows what was read; name an object, a session or the hash of one", "nothing in project %s is called so", project)
	case 1:
		return nil
	}
	for i := range objects {
		objects[i] = name(objects[i])
	}
	slices.Sort(objects)
	return fault.At(fault.Invalid, "source "+want, "name one of them by its whole name", "several are called so: %s", strings.Join(objects, ", "))
}

// session chooses what is of a session: one object may hold several.
func (c *choice) session(want string) (found bool) {
	for _, p := range c.parts {
		of, others := 0, 0
		for i := range p.chunks {
			for ti := range p.chunks[i].Turns {
				if p.chunks[i].Turns[ti].Session == want {
					of++
				} else {
					others++
				}
			}
		}
		switch {
		case of > 0 && others > 0:
			for i := range p.chunks {
				for ti := range p.chunks[i].Turns {
					if t := &p.chunks[i].Turns[ti]; t.Session == want {
						c.turns[turn{t.Session, t.ID}] = true
					}
				}
			}
		case of > 0, others == 0 && p.src.Session == want:
			c.whole[p] = true
		default:
			continue
		}
		found = true
	}
	return found
}

// node chooses the turns that a node rests on.
func (f *forgetter) node(ctx context.Context, c *choice, want memory.SHA) error {
	streams, err := f.Log.Streams(ctx, f.project)
	if err != nil {
		return err
	}
	is := func(n memory.SHA) bool { return strings.HasPrefix(string(n), string(want)) }
	rests := map[memory.SHA]bool{} // nodes of which it is made
	for up := true; up; {          // L2 rests on L1, and L1 on L0
		up = false
		for _, s := range streams {
			for seg, err := range f.Log.Segments(ctx, f.project, s, 0) {
				if err != nil {
					return err
				}
				for _, r := range seg.Records {
					m, ok := r.(*memory.Memory)
					if !ok || !is(m.Node) && !rests[m.Node] {
						continue
					}
					for _, p := range m.Parents {
						up = up || !rests[p]
						rests[p] = true
					}
				}
			}
		}
	}
	found := false
	for _, s := range streams {
		for seg, err := range f.Log.Segments(ctx, f.project, s, 0) {
			if err != nil {
				return err
			}
			for _, r := range seg.Records {
				e, ok := r.(*memory.Evidence)
				if !ok || e.Forgotten || !is(e.Node) && !rests[e.Node] {
					continue
				}
				found = true
				if t, ok := c.turnOf(e); ok {
					c.turns[t] = true
				}
			}
		}
	}
	if !found {
		return fault.At(fault.NotFound, "node "+string(want), "mem query shows the node of each answer", "no statement or memory in project %s is called so, or it is forgotten already", f.project)
	}
	return nil
}

// turnOf is the turn that a statement was made of.
func (c *choice) turnOf(e *memory.Evidence) (turn, bool) {
	i := int(e.Place.Admit) - 1
	if i < 0 || i >= len(c.parts) || e.Place.I < 0 || e.Place.I >= len(c.parts[i].chunks) {
		return turn{}, false
	}
	turns := c.parts[i].chunks[e.Place.I].Turns
	for ti := range turns {
		if turns[ti].ID == e.TurnID {
			return turn{turns[ti].Session, turns[ti].ID}, true
		}
	}
	return turn{}, false
}

// same adds what carries the same bytes, turns or chunks as what is chosen, and names it.
func (c *choice) same() {
	type place struct {
		chunk memory.SHA
		start int
	}
	for grew := true; grew; {
		grew = false
		raws, places, turns := map[memory.SHA]bool{}, map[place]bool{}, map[turn]bool{}
		each := func(p *part, do func(turn, place)) {
			for i := range p.chunks {
				for ti := range p.chunks[i].Turns {
					t := &p.chunks[i].Turns[ti]
					do(turn{t.Session, t.ID}, place{p.chunks[i].SHA256, t.Start})
				}
			}
		}
		for _, p := range c.parts {
			if c.whole[p] && p.src.RawSHA256 != "" {
				raws[p.src.RawSHA256] = true
			}
			each(p, func(t turn, at place) {
				if c.whole[p] || c.turns[t] {
					turns[t], places[at] = true, true
				}
			})
		}
		for _, p := range c.parts {
			if c.whole[p] {
				continue
			}
			if raws[p.src.RawSHA256] {
				c.whole[p], grew = true, true
				c.also = append(c.also, name(p.src.Object))
				continue
			}
			hit := false
			each(p, func(t turn, at place) {
				if (turns[t] || places[at]) && !c.turns[t] {
					c.turns[t], hit = true, true
				}
			})
			if hit {
				grew = true
				c.also = append(c.also, name(p.src.Object))
			}
		}
	}
	slices.Sort(c.also)
	c.also = slices.Compact(c.also)
}

// gone reports whether a turn of a part is to be forgotten.
func (c *choice) gone(p *part) func(*memory.ChunkTurn) bool {
	return func(t *memory.ChunkTurn) bool { return c.whole[p] || c.turns[turn{t.Session, t.ID}] }
}

// objects are the names of what is chosen, each once.
func (c *choice) objects() []string {
	var out []string
	for _, p := range c.parts {
		if n := name(p.src.Object); c.whole[p] && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
