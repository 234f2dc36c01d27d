package scrub

import (
	"context"
	"maps"
	"slices"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// plan is what the rules change in one project.
type plan struct {
	blobs map[memory.SHA][]memory.Edit // by blob
	parts []planned                    // in admit order
	edits int
	loose []memory.SHA // blobs with a secret that nothing names
	dead  []memory.SHA // dead letters whose body holds one
	words bool         // records hold a secret, or quote one, that no text of a chunk holds any more
	full  bool         // there is more than one tombstone should hold
}

// maxEdits bounds one tombstone: some 30 MB of them. What is left is found by the
// next look.
var maxEdits = 200_000

// planned is a part with the blobs of its chunks.
type planned struct {
	key    memory.SHA // of the source record that stands for it now
	chunks []memory.SHA
}

// look reads every text of the project once and notes what the rules change.
// What can not be read is named in the report and holds up nothing else.
func (s *scrubber) look(ctx context.Context, dry bool) (plan, error) {
	p := plan{blobs: map[memory.SHA][]memory.Edit{}}
	seen, named := map[memory.SHA]bool{}, map[memory.SHA]bool{}
	s.parts = map[int64][]memory.SHA{}
	s.report.Parts, s.report.Chunks, s.report.Names, s.report.Unreadable = 0, 0, nil, nil
	for line, err := range s.Log.Admits(ctx, s.project, 0) {
		if err != nil {
			return p, err
		}
		key, src, chunks, err := s.Log.PartKey(ctx, s.project, line.Source)
		if err == nil && !seen[key] {
			seen[key] = true
			err = s.texts(ctx, chunks)
		}
		if err != nil {
			if err := s.unreadable(err); err != nil {
				return p, err
			}
			continue
		}
		s.report.Parts++
		s.report.Chunks += len(chunks)
		s.names(&src, chunks)
		edits, kinds := Finds(chunks, s.Rules.Redact)
		for k, n := range kinds {
			s.report.Secrets[k] += n
		}
		part := planned{key: key}
		for i := range chunks {
			part.chunks = append(part.chunks, chunks[i].SHA256)
			named[chunks[i].SHA256] = true
			if len(edits[i]) > 0 {
				p.edits += len(edits[i])
				p.blobs[chunks[i].SHA256] = Union(slices.Concat(p.blobs[chunks[i].SHA256], edits[i]))
			}
		}
		p.parts = append(p.parts, part)
		s.parts[line.Seq] = part.chunks
		s.progress()
		if p.full = !dry && p.edits > maxEdits; p.full {
			return p, nil
		}
	}
	if err := s.records(ctx, &p, named); err != nil {
		return p, err
	}
	inSkills, err := s.skillSecrets(ctx)
	if err != nil {
		return p, err
	}
	p.words = p.words || inSkills
	inNotes, err := s.noteSecrets(ctx)
	if err != nil {
		return p, err
	}
	p.words = p.words || inNotes
	inLessons, err := s.lessonSecrets(ctx)
	if err != nil {
		return p, err
	}
	p.words = p.words || inLessons
	for id, text := range s.Log.SetAside(ctx, s.project) {
		if s.masks(text) {
			p.dead = append(p.dead, id)
		}
	}
	return p, s.loose(ctx, &p, named)
}

// loose finds the blobs that no part and no gate record names, though the rules
// would change them: an admission or a scrub died before its commit. Where
// something could not be read nobody knows what it names.
func (s *scrubber) loose(ctx context.Context, p *plan, named map[memory.SHA]bool) error {
	if len(s.report.Unreadable) > 0 {
		return nil
	}
	for sha, err := range s.Log.Blobs(ctx, s.project) {
		if err != nil {
			return err
		}
		if named[sha] {
			continue
		}
		text, err := s.Log.Blob(ctx, s.project, sha)
		if err != nil && !damaged(err) {
			return err
		}
		if _, scrubbed := s.all[sha]; scrubbed || s.masks(string(text)) {
			p.loose = append(p.loose, sha)
		}
	}
	return nil
}

func (s *scrubber) masks(text string) bool {
	if text == "" {
		return false
	}
	out, _ := s.Rules.Redact.Redact(text)
	return out != text
}

// reply reads a raw reply as it stands now.
func (s *scrubber) reply(ctx context.Context, sha memory.SHA) (memory.SHA, []byte, error) {
	for range len(s.all) {
		b, ok := s.all[sha]
		if !ok {
			break
		}
		text, err := s.Log.Blob(ctx, s.project, sha)
		if !fault.Is(err, fault.NotFound) {
			return sha, text, err
		}
		sha = b.New
	}
	text, err := s.Log.Blob(ctx, s.project, sha)
	return sha, text, err
}

// records looks at the raw replies of models that the gate records name, and at
// the words of all records: what a model wrote need not stand in a chunk, and a
// writer that lost its lease unknowingly may have appended the words of a text
// that was scrubbed meanwhile.
func (s *scrubber) records(ctx context.Context, p *plan, named map[memory.SHA]bool) error {
	streams, err := s.Log.Streams(ctx, s.project)
	if err != nil {
		return err
	}
	seen := map[memory.SHA]bool{}
	for _, stream := range streams {
		for seg, err := range s.Log.Segments(ctx, s.project, stream, 0) {
			if err != nil {
				return err
			}
			for _, r := range seg.Records {
				// With edits every stream is looked at again.
				p.words = p.words || len(p.blobs) == 0 && s.hidden(r)
				g, ok := r.(*memory.Gate)
				if !ok || g.Reply == "" || seen[g.Reply] {
					continue
				}
				seen[g.Reply] = true
				sha, text, err := s.reply(ctx, g.Reply)
				if named[sha] {
					continue
				}
				named[sha] = true
				if err != nil {
					if err := s.unreadable(err); err != nil {
						return err
					}
					continue
				}
				out, marks := s.Rules.Redact.Redact(string(text))
				for _, k := range marks {
					s.report.Secrets[k.Kind]++
					p.blobs[sha] = append(p.blobs[sha], memory.Edit{Start: k.Start, End: k.End, Mark: out[k.OutStart:k.OutEnd]})
				}
			}
		}
	}
	return nil
}

// hidden reports whether a record holds what is to be erased.
func (s *scrubber) hidden(r eventlog.Record) bool {
	switch r := r.(type) {
	case *memory.Run:
		return r.Erased == "" && s.masks(r.Question)
	case *memory.Gate:
		return r.Erased == "" && (s.masks(r.Reason) || s.masks(r.Think))
	case *memory.Memory:
		return r.Erased == "" && s.masks(r.Text)
	case *memory.Evidence:
		return s.stale(r)
	}
	return false
}

// unreadable notes an object that is damaged or missing: Verify says more. A
// store that does not answer is an error.
func (s *scrubber) unreadable(err error) error {
	if !damaged(err) {
		return err
	}
	s.report.Unreadable = append(s.report.Unreadable, err.Error())
	return nil
}

// damaged reports whether err is about an object that is damaged or missing.
func damaged(err error) bool {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.Corrupt, fault.Invalid:
		return true
	}
	return false
}

// texts loads the chunks' texts.
func (s *scrubber) texts(ctx context.Context, chunks []memory.Chunk) error {
	for i := range chunks {
		b, err := s.Log.Blob(ctx, s.project, chunks[i].SHA256)
		if err != nil {
			return err
		}
		chunks[i].Text = string(b)
	}
	return nil
}

// names reports what the rules would mask of names: they stand in records that
// can not be erased.
func (s *scrubber) names(src *memory.Source, chunks []memory.Chunk) {
	found := map[string]bool{}
	look := func(field string, values ...string) {
		for _, v := range values {
			if out, _ := s.Rules.Redact.Redact(v); out != v {
				found[field] = true
			}
		}
	}
	look("key", src.Object)
	look("session", src.Session)
	look("cwds", src.Cwds...)
	look("turn_ids", src.TurnIDs...)
	for i := range chunks {
		look("heading", chunks[i].Heading)
		for ti := range chunks[i].Turns {
			look("tool", chunks[i].Turns[ti].Tool)
		}
	}
	object, _ := s.Rules.Redact.Redact(src.Object) // of its key, which may be the one
	for _, f := range slices.Sorted(maps.Keys(found)) {
		s.report.Names = append(s.report.Names, f+" of "+object)
	}
}

// write writes the new blobs and source records, and with the tombstone commits
// to them. It gives "" where there is nothing to change. The pointer names the
// tombstone first: were it written and nobody knew, another one, of other rules,
// would say something else of the same texts.
func (s *scrubber) write(ctx context.Context, p plan) (memory.SHA, error) {
	t := &memory.Tombstone{
		Tenant: s.Tenant, Project: s.project, Kind: memory.TombstoneScrub, Rules: s.Rules.Redact.Version(),
		Sources: []memory.Replacement{}, Blobs: []memory.Scrubbed{},
	}
	made := map[memory.SHA]memory.SHA{} // old blob -> new
	put := func(old memory.SHA, text string) error {
		if _, ok := made[old]; ok {
			return nil
		}
		sha, err := s.Log.PutBlob(ctx, s.project, []byte(text))
		made[old] = sha
		return err
	}
	for _, part := range p.parts {
		if !slices.ContainsFunc(part.chunks, func(c memory.SHA) bool { return p.blobs[c] != nil }) {
			continue
		}
		key, err := s.writeSource(ctx, part.key, p.blobs, put)
		if err != nil {
			return "", err
		}
		t.Sources = append(t.Sources, memory.Replacement{Old: part.key, New: key})
		s.progress()
	}
	for _, old := range slices.Sorted(maps.Keys(p.blobs)) {
		if _, ok := made[old]; !ok { // a reply
			text, err := s.Log.Blob(ctx, s.project, old)
			if err != nil {
				return "", err
			}
			if err := put(old, Apply(string(text), p.blobs[old])); err != nil {
				return "", err
			}
		}
		t.Blobs = append(t.Blobs, memory.Scrubbed{Old: old, New: made[old], Edits: p.blobs[old]})
	}
	if len(t.Blobs) == 0 && len(p.loose) == 0 && len(p.dead) == 0 && !p.words {
		return "", nil
	}
	s.report.Blobs += len(t.Blobs)
	recs := []eventlog.Record{t}
	key, err := eventlog.RecordsKey(recs)
	if err != nil {
		return "", err
	}
	if err := s.begin(ctx, key, t.Rules); err != nil {
		return "", err
	}
	return s.Log.PutRecords(ctx, s.project, eventlog.Tombstones, recs)
}

// writeSource writes the newly redacted form of one source record.
func (s *scrubber) writeSource(ctx context.Context, key memory.SHA, blobs map[memory.SHA][]memory.Edit, put func(memory.SHA, string) error) (memory.SHA, error) {
	src, chunks, err := s.Log.Source(ctx, s.project, key)
	if err != nil {
		return "", err
	}
	next := make([]memory.Chunk, len(chunks))
	src.Chunks = slices.Clone(src.Chunks)
	for i := range chunks {
		old := chunks[i].SHA256
		next[i] = chunks[i]
		if blobs[old] == nil {
			continue
		}
		text, err := s.Log.Blob(ctx, s.project, old)
		if err != nil {
			return "", err
		}
		chunks[i].Text = string(text)
		c := s.Rules.Chunk(&chunks[i], blobs[old])
		if err := put(old, c.Text); err != nil {
			return "", err
		}
		next[i], src.Chunks[i] = c, c.SHA256
		next[i].Text, chunks[i].Text = "", ""
	}
	src.Replaces, src.RedactRules = key, s.Rules.Redact.Version()
	return s.Log.PutSource(ctx, s.project, src, next)
}
