package learn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/chunk"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/questions"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// Outcomes of a receipt.
const (
	OutcomeAdmitted    = eventlog.OutcomeAdmitted
	OutcomeDuplicate   = eventlog.OutcomeDuplicate   // every turn, or the very bytes, are admitted already
	OutcomeRefused     = eventlog.OutcomeRefused     // the key or the content breaks a rule; Reason says which
	OutcomeEmpty       = eventlog.OutcomeEmpty       // nothing to look at: no bytes, or no evidence-bearing turn
	OutcomeUnsupported = eventlog.OutcomeUnsupported // a format that is known by name, or not at all
	OutcomeForgotten   = eventlog.OutcomeForgotten   // a tombstone bars it; mem learn --again reads it anew
)

// autoProject is the first key part under which each record's cwd names the
// project (DESIGN section 3).
const autoProject = "_auto"

// unsorted is the project of records of `_auto` uploads that name no folder.
const unsorted = "unsorted"

// maxChunks bounds one object: 500 million tokens of dialogue. Its chunk
// records, about 13 KiB each, are held until its hash is known.
const maxChunks = 100_000

// postDir is the folder of bodies and files that Mneme itself uploads:
// <project>/_post/<sha256>/<name>.
const postDir = "_post"

// splitKey takes an inbox key apart. name is the key without the project and
// without the _post/<sha256> part, so that the same document is recognised
// when it comes again with one section more.
func splitKey(key string) (project, name, origin string, err error) {
	project, rest, ok := strings.Cut(key, "/")
	if !ok || rest == "" {
		return "", "", "", fault.At(fault.Invalid, "key "+key, "upload to <project>/<name> or _auto/<name>", "names no project")
	}
	if project != autoProject && !memory.ValidName(project) {
		return "", "", "", fault.At(fault.Invalid, "key "+key, "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", project)
	}
	name, origin = rest, "upload"
	if dir, tail, ok := strings.Cut(rest, "/"); ok && dir == postDir {
		if sha, file, ok := strings.Cut(tail, "/"); ok && memory.SHA(sha).Valid() {
			name, origin = file, "post"
		}
	}
	return project, name, origin, nil
}

// admit reads the object whole and admits what is new in it. fault.Conflict
// means that another admission came between: read again.
func (f *Function) admit(ctx context.Context, o event.Object, opt objectOptions) (eventlog.Receipt, error) {
	r := eventlog.Receipt{Bucket: o.Bucket, Key: o.Key, ETag: o.ETag, Schemas: f.schemas.Version, At: f.cfg.Now().UTC()}
	refuse := func(outcome string, err error) (eventlog.Receipt, error) {
		r.Outcome, r.Reason = outcome, err.Error()
		if hint := fault.HintOf(err); hint != "" {
			r.Reason += " (" + hint + ")"
		}
		return r, nil
	}
	project, name, origin, err := splitKey(o.Key)
	if err != nil {
		if err := f.bury(ctx, r, err); err != nil {
			return r, err
		}
		return refuse(OutcomeRefused, err)
	}
	if strings.HasSuffix(o.Key, "/") {
		return refuse(OutcomeEmpty, fault.New(fault.Invalid, "a folder marker holds nothing"))
	}
	if what, ok := transcript.Companion("/" + name); ok {
		return refuse(OutcomeEmpty, fault.New(fault.Invalid, "%s, not a conversation", what))
	}
	body, info, err := f.cfg.Inbox.Get(ctx, o.Key)
	if errors.Is(err, objstore.ErrNotFound) {
		return r, fault.At(fault.Unavailable, o.Bucket+"/"+o.Key, "upload it again", "the object is not there")
	}
	if err != nil {
		return r, err
	}
	defer body.Close()
	r.ETag = info.ETag // what is read, should it have been replaced since the notification

	rd, err := transcript.Open(body, transcript.Options{Object: name, ModTime: info.ModTime, Schemas: f.schemas.Good()})
	if err != nil {
		if fault.Is(err, fault.Invalid) || fault.Is(err, fault.Corrupt) {
			return refuse(OutcomeUnsupported, err)
		}
		return r, err
	}
	if broken := f.schemas.Broken(); broken != nil && rd.Guessed() {
		// Read as a shape that many formats share it would be admitted for good,
		// perhaps with the wrong speakers. When the schema is mended it is read again.
		why := fault.At(fault.Invalid, "", "mend the schema: mem schema list", "put off, since it may be of a format whose schema can not be read: %v", broken)
		if err := f.bury(ctx, r, why); err != nil {
			return r, err
		}
		return refuse(OutcomeUnsupported, why)
	}
	in := &intake{f: f, opt: opt, name: name, project: project, info: info, parts: map[string]*part{}}
	if project == autoProject {
		if in.mappings, err = f.cfg.Catalog.Mappings(ctx); err != nil {
			return r, err
		}
		if _, _, ok := transcript.Spilled(name); ok {
			if err := in.standBeside(ctx, o.Key); err != nil {
				return r, err
			}
		}
	}
	for t, err := range rd.Turns() {
		if err != nil {
			return r, fault.As(fault.Unavailable, err)
		}
		if err := in.add(ctx, t); err != nil {
			return r, err
		}
	}
	if rd.Format() == transcript.FormatBundle {
		return r, errBundle
	}
	// The hash is over the whole object: what the reader left unread counts.
	if _, err := io.Copy(io.Discard, body); err != nil {
		return r, fault.As(fault.Unavailable, err)
	}
	st := rd.Stats()
	st.Unknown, st.Dropped = f.maskedKeys(st.Unknown), f.maskedKeys(st.Dropped)
	r.Counts = &st.Counts
	if err := in.flush(ctx); err != nil {
		return r, err
	}
	return f.commit(ctx, r, in, rd, st, origin, info)
}

// commit writes source records and admit lines of the parts, in project order.
func (f *Function) commit(ctx context.Context, r eventlog.Receipt, in *intake, rd *transcript.Reader, st *transcript.Stats, origin string, info objstore.Info) (eventlog.Receipt, error) {
	if len(in.parts) == 0 {
		r.Outcome, r.Reason = OutcomeEmpty, "no turn to look at"
		hint := "mem read --stats FILE shows what is in it"
		switch {
		case st.Unsupported != "":
			r.Outcome, r.Reason = OutcomeUnsupported, "the format "+st.Unsupported+" is not read"
		case st.Damage != "":
			r.Outcome, r.Reason = OutcomeRefused, damaged(st)
		case rd.Format() == transcript.FormatUnknown && st.Counts.Bad+st.Counts.Records > 0:
			r.Outcome, r.Reason = OutcomeUnsupported, "in no format that is read"
		case rd.Guessed() && len(st.Unknown) > 0:
			r.Outcome, r.Reason = OutcomeUnsupported, "in no format that is read: it looks like "+rd.Format()+", and nothing in it is understood"
		case st.Counts.TooLong > 0:
			r.Outcome, r.Reason = OutcomeRefused, fmt.Sprintf("no line of at most %d MiB", transcript.MaxLineBytes>>20)
		}
		if r.Outcome == OutcomeEmpty {
			return r, nil
		}
		if rd.Guessed() && r.Outcome == OutcomeUnsupported {
			hint += "; mem schema add teaches its format"
		}
		return r, f.bury(ctx, r, fault.At(fault.Invalid, "", hint, "%s", r.Reason))
	}
	if st.Damage != "" {
		r.Reason = damaged(st) + "; what came before is kept"
	}
	admitted, duplicate, forgotten := 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(in.parts)) {
		p := in.parts[name]
		known, head, err := f.admits.fold(ctx, name)
		if err != nil {
			return r, err
		}
		whole := st.RawSHA256
		last, done := known.raw[whole]
		lines := known.begun[whole]
		barred := false
		if done {
			lines = append(slices.Clone(lines), last)
			if barred, err = f.admits.barred(ctx, name, last); err != nil {
				return r, err
			}
			if barred && p.again {
				done, barred, lines = false, false, nil
			}
		}
		for _, l := range lines {
			if barred {
				r.Parts = append(r.Parts, eventlog.ReceiptPart{Project: name, Seq: l.Seq, Source: l.Source, RawSHA256: whole})
				forgotten++
				continue
			}
			part := eventlog.ReceiptPart{Project: name, Seq: l.Seq, Source: l.Source, RawSHA256: whole}
			if l.Object == f.cfg.Inbox.Name()+"/"+info.Key && l.ETag == info.ETag {
				// An earlier delivery wrote the line and not the receipt: the
				// part is this object's own, and nobody was told of it.
				part.Chunks = l.Chunks
				admitted++
			} else {
				duplicate++
			}
			r.Parts = append(r.Parts, part)
		}
		if done {
			continue
		}
		if len(p.chunks) == 0 {
			if p.duplicates > 0 {
				of, err := f.barredSession(ctx, name, known, p)
				if err != nil {
					return r, err
				}
				forgotten += of
				duplicate += 1 - of
			}
			continue
		}
		if head.Seq != p.foldedTo {
			again, err := p.overtaken(ctx, f, known)
			if err != nil {
				return r, err
			}
			if again {
				return r, fault.New(fault.Conflict, "another part of the same session was admitted")
			}
		}
		if err := f.sameRules(ctx); err != nil {
			return r, err
		}
		if p.lifted > 0 {
			if err := f.lift(ctx, name, whole, head.Seq); err != nil {
				return r, err
			}
		}
		if _, err := p.putLessons(ctx, f); err != nil {
			return r, err
		}
		src := p.source(f, st, rd, origin, info)
		pieces := split(p.chunks, f.cfg.PartBytes)
		for i, chunks := range pieces {
			one := src
			if i > 0 || len(pieces) > 1 {
				one = p.pieceOf(src, chunks, i == len(pieces)-1)
			}
			line, next, err := f.admitPart(ctx, name, head, one, chunks, i < len(pieces)-1)
			if err != nil {
				return r, err
			}
			head = next
			admitted++
			r.Parts = append(r.Parts, eventlog.ReceiptPart{Project: name, Seq: line.Seq, Source: line.Source, RawSHA256: whole, Chunks: len(chunks)})
		}
	}
	switch {
	case admitted > 0:
		r.Outcome = OutcomeAdmitted
	case forgotten > 0:
		r.Outcome, r.Reason = OutcomeForgotten, reasonForgotten
	case duplicate > 0:
		r.Outcome, r.Reason = OutcomeDuplicate, "everything in it is admitted already"
	default:
		r.Outcome, r.Reason = OutcomeEmpty, "no turn that could be evidence"
	}
	return r, nil
}

// admitPart writes one source record and its admit line.
func (f *Function) admitPart(ctx context.Context, project string, head eventlog.Head, src memory.Source, chunks []memory.Chunk, more bool) (memory.Admit, eventlog.Head, error) {
	key, err := f.cfg.Log.PutSource(ctx, project, src, chunks)
	if err != nil {
		return memory.Admit{}, head, err
	}
	f.admits.wrote(key, src.TurnIDs)
	return f.cfg.Log.AppendAdmit(ctx, project, head, memory.Admit{
		V: memory.Version, Type: memory.TypeAdmit, Level: memory.LevelNone,
		Tenant: f.cfg.Tenant, Project: project, Source: key, RawSHA256: src.RawSHA256,
		Object: src.Object, ETag: src.ETag, Session: src.Session,
		From: src.From, To: src.To, PrefixSHA256: src.PrefixSHA256, Chunks: len(chunks), More: more,
	})
}

// damaged says what is wrong with a compressed object.
func damaged(st *transcript.Stats) string {
	return "the " + st.Compression + " stream is damaged: " + st.Damage
}

// bury lists an object that could not be read among the dead letters: who
// uploads by S3 has no answer but that list.
func (f *Function) bury(ctx context.Context, r eventlog.Receipt, why error) error {
	return f.cfg.Log.PutDead(ctx, eventlog.Dead{
		Function: f.Name(), EventType: string(event.ObjectCreated), Subject: r.Key, Key: r.Bucket + "/" + r.Key,
		Kind: fault.KindOf(why).String(), Error: why.Error(), Hint: fault.HintOf(why), Attempts: 1,
	})
}

// intake sorts the turns of one object into the parts of its projects.
type intake struct {
	f        *Function
	opt      objectOptions
	name     string // of the document, without _post/<sha256>
	project  string // or autoProject
	info     objstore.Info
	mappings questions.Projects
	parts    map[string]*part
	cwd      string // the last one named: records without one follow it
	root     string // of its worktree's repository
	remote   string
}

// part is what one object adds to one project.
type part struct {
	project    string
	chunker    *chunk.Chunker
	chunks     []memory.Chunk
	sessions   map[string]map[string]bool // turn ids already admitted, by session
	records    map[uint64]struct{}        // keys of records already admitted, under any session
	session    string                     // the first one
	cwds       []string
	turnIDs    []string
	duplicates int
	again      bool                       // what a tombstone bars is admitted anew
	stand      map[string]map[string]bool // with again: the turn ids that stand, by session
	standRecs  map[uint64]bool            // with again: the records
	lifted     int                        // turns that were barred
	from, to   int64
	tmin, tmax time.Time
	foldedTo   int64 // admit seq up to which every session was read
	miner      *lesson.Miner
	lessons    []lesson.Lesson
	gone       map[string]map[string]bool // turn ids that were forgotten, by session
}

// masked is a name without secrets: ids, folders, tools and types come from
// the file as its text does, and stand in records.
func (f *Function) masked(name string) string {
	out, _ := f.redact.Redact(name)
	return out
}

// maskedKeys masks the keys of counts.
func (f *Function) maskedKeys(counts map[string]int) map[string]int {
	if counts == nil {
		return nil
	}
	out := make(map[string]int, len(counts))
	for k, n := range counts {
		out[f.masked(k)] += n
	}
	return out
}

func (in *intake) add(ctx context.Context, t memory.Turn) error {
	t.Session, t.ID, t.Cwd, t.Root = in.f.masked(t.Session), in.f.masked(t.ID), in.f.masked(t.Cwd), in.f.masked(t.Root)
	if t.Tool != nil {
		tool := *t.Tool
		tool.Name = in.f.masked(tool.Name)
		t.Tool = &tool
	}
	if t.Session == "" {
		t.Session = "file:" + in.name // a document is its own session
	}
	if t.Cwd != "" {
		in.cwd, in.root = t.Cwd, t.Root
	}
	if t.Remote != "" {
		in.remote = t.Remote
	}
	name := in.project
	if name == autoProject {
		name, _ = in.mappings.ResolveIn(in.cwd, in.root, in.remote)
		if name == "" {
			name = unsorted
		}
	}
	p := in.parts[name]
	if p == nil {
		p = in.newPart(name, t)
		in.parts[name] = p
	}
	return p.add(ctx, in, t)
}

// standBeside gives a tool's output in a file of its own, which names no
// folder, that of the call in the transcript that stands beside it in the
// inbox, else the first one there. Without a transcript it stays unsorted.
func (in *intake) standBeside(ctx context.Context, key string) error {
	body, _, err := in.f.cfg.Inbox.Get(ctx, path.Dir(path.Dir(key))+".jsonl")
	if errors.Is(err, objstore.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer body.Close()
	rd, err := transcript.Open(body, transcript.Options{})
	if err != nil {
		return fault.As(fault.Unavailable, err)
	}
	for t, err := range rd.Turns() {
		if err != nil {
			return fault.As(fault.Unavailable, err)
		}
		name, ok := transcript.SpilledTo(&t)
		found := ok && strings.HasSuffix(key, "/"+name)
		if t.Cwd != "" && (found || in.cwd == "") {
			in.cwd, in.root, in.remote = in.f.masked(t.Cwd), in.f.masked(t.Root), t.Remote
		}
		if found {
			break
		}
	}
	return nil
}

func (in *intake) newPart(project string, t memory.Turn) *part {
	return &part{
		project: project, session: t.Session, from: t.From, again: in.opt.again,
		sessions: map[string]map[string]bool{}, gone: map[string]map[string]bool{}, stand: map[string]map[string]bool{},
		chunker: chunk.New(chunk.Options{
			Count: in.f.cfg.Count, Redact: in.f.redact, TenantKey: in.f.cfg.TenantKey, NoteChars: in.opt.noteChars,
		}),
	}
}

func (p *part) add(ctx context.Context, in *intake, t memory.Turn) error {
	f := in.f
	seen, ok := p.sessions[t.Session]
	if !ok {
		var to int64
		var err error
		if seen, to, err = f.admits.turns(ctx, p.project, t.Session); err != nil {
			return err
		}
		if len(p.sessions) == 0 || to < p.foldedTo {
			p.foldedTo = to
		}
		p.sessions[t.Session] = seen
	}
	if t.Cwd != "" && !slices.Contains(p.cwds, t.Cwd) && len(p.cwds) < 64 {
		p.cwds = append(p.cwds, t.Cwd)
	}
	known := seen[t.ID]
	if key, ok := uuidKey(t.ID); ok && !known {
		if p.records == nil {
			var err error
			if p.records, err = f.admits.records(ctx, p.project); err != nil {
				return err
			}
		}
		_, known = p.records[key]
	}
	if known && p.again {
		if _, ok := p.stand[t.Session]; !ok {
			ids, records, err := f.admits.standing(ctx, p.project, t.Session)
			if err != nil {
				return err
			}
			p.stand[t.Session], p.standRecs = ids, records
		}
		key, ok := uuidKey(t.ID)
		if known = p.stand[t.Session][t.ID] || ok && p.standRecs[key]; !known {
			p.lifted++
		}
	}
	if err := p.mine(ctx, in, &t, known); err != nil {
		return err
	}
	if known {
		p.duplicates++
		return nil
	}
	if len(p.turnIDs) == 0 {
		p.from = t.From
	}
	p.turnIDs = append(p.turnIDs, t.ID)
	p.to = max(p.to, t.To)
	if !t.Time.IsZero() {
		if p.tmin.IsZero() || t.Time.Before(p.tmin) {
			p.tmin = t.Time
		}
		if t.Time.After(p.tmax) {
			p.tmax = t.Time
		}
	}
	cs, err := p.chunker.Add(t)
	if err != nil {
		return err
	}
	return p.keep(ctx, f, cs)
}

// overtaken reports whether turns of the part were admitted since it was read.
func (p *part) overtaken(ctx context.Context, f *Function, known *admitted) (bool, error) {
	if known.touches(p.sessions, p.foldedTo) {
		return true, nil
	}
	if p.records == nil || p.again {
		return false, nil
	}
	records, err := f.admits.records(ctx, p.project)
	if err != nil {
		return false, err
	}
	for _, id := range p.turnIDs {
		if key, ok := uuidKey(id); ok {
			if _, ok := records[key]; ok {
				return true, nil
			}
		}
	}
	return false, nil
}

// keep stores the blobs of complete chunks and lets go of their text.
func (p *part) keep(ctx context.Context, f *Function, cs []memory.Chunk) error {
	for _, c := range cs {
		if len(p.chunks) >= maxChunks {
			return fault.At(fault.Invalid, "object", "split the file", "more than %d chunks in one part", maxChunks)
		}
		if p.duplicates > 0 && len(p.chunks) == 0 {
			c.Continues = true
			for i := range c.Turns {
				c.Turns[i].First = false
			}
		}
		sha, err := f.cfg.Log.PutBlob(ctx, p.project, []byte(c.Text))
		if err != nil {
			return err
		}
		if sha != c.SHA256 {
			return fault.New(fault.Internal, "chunk %d has sha %s, its text %s", c.I, c.SHA256.Short(), sha.Short())
		}
		c.Text = ""
		p.chunks = append(p.chunks, c)
	}
	return nil
}

func (in *intake) flush(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(in.parts)) {
		p := in.parts[name]
		cs, err := p.chunker.Flush()
		if err != nil {
			return err
		}
		if err := p.keep(ctx, in.f, cs); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) source(f *Function, st *transcript.Stats, rd *transcript.Reader, origin string, info objstore.Info) memory.Source {
	counts := st.Counts
	counts.Duplicates += p.duplicates
	counts.Redactions = p.chunker.Redactions()
	shas := make([]memory.SHA, len(p.chunks))
	for i := range p.chunks {
		shas[i] = p.chunks[i].SHA256
	}
	slices.Sort(p.cwds)
	return memory.Source{
		V: memory.Version, Type: memory.TypeSource, Level: memory.LevelNone,
		Tenant: f.cfg.Tenant, Project: p.project,
		Object: f.cfg.Inbox.Name() + "/" + info.Key, ETag: info.ETag,
		Format: rd.Format(), ReaderVersion: rd.Version(),
		RawSHA256: st.RawSHA256, SizeBytes: st.SizeBytes,
		Session: p.session, Cwds: p.cwds, From: p.from, To: st.Consumed, PrefixSHA256: st.PrefixSHA256,
		Origin: origin, ChunkPolicy: memory.ChunkPolicy, RedactRules: f.redact.Version(),
		TimeMin: p.tmin.UTC(), TimeMax: p.tmax.UTC(), Counts: counts, Chunks: shas, TurnIDs: p.turnIDs,
	}
}
