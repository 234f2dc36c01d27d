package forget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/scrub"
)

// Projections is what stands beside the log and follows from it.
type Projections interface {
	// Rows counts each index's rows of the tenant.
	Rows(ctx context.Context) (map[string]int64, error)
	// Rebuild brings indexes, exports and pages of a project to what the log says, and
	// takes out of the indexes' files what was deleted (index.Purger). It returns when that
	// is done.
	Rebuild(ctx context.Context, project string) error
	// Search looks each index through for words of a project.
	Search(ctx context.Context, project string, words []string, holds func(text string) bool) ([]Searched, error)
}

// Config is what forgetting is given.
type Config struct {
	Tenant string
	Log    *eventlog.Log
	Store  *objstore.Bucket // the log's
	Inbox  *objstore.Bucket
	Count  func(string) int // Qwen2.5 tokens
	// Asked gives the wordings of a project's questions, which people wrote.
	Asked func(ctx context.Context, project string) ([]string, error)
	// Projections are cleaned too; nil: another process has them, and is asked by event.
	Projections Projections
	// Lease is how long a stream is held, and Patience how long one that another holds
	// is waited for. 60 s and 2 min by default.
	Lease, Patience time.Duration
	Now             func() time.Time
	// Progress, when not nil, is called with what is done and how many parts or objects
	// so far.
	Progress func(Progress)
}

// Progress is one line of progress.
type Progress struct {
	Doing string `json:"doing"` // read | erase | rebuild | search
	Done  int    `json:"done"`
}

// Request is what to forget of a project.
type Request struct {
	Target memory.Target
	Inbox  bool // the uploads too
	DryRun bool // say what would go, and change nothing
}

// forgetter forgets in one project.
type forgetter struct {
	Config
	project   string
	report    Receipt
	all       map[memory.SHA]memory.Scrubbed // every scrubbed or forgotten blob of the project
	chunks    map[int64][]memory.SHA         // by admit seq: the chunks as they stand now
	words     wordSet
	tombstone memory.SHA
	last      eventlog.Scrub
	etag      string // of last
	doing     Progress
}

func (f *forgetter) progress() {
	if f.Progress != nil {
		f.doing.Done++
		f.Progress(f.doing)
	}
}

func (f *forgetter) begin(doing string) { f.doing = Progress{Doing: doing} }

// stream is the receipt's line of a stream.
func (f *forgetter) stream(name string) *Stream {
	s := f.report.Streams[name]
	if s == nil {
		s = &Stream{}
		f.report.Streams[name] = s
	}
	return s
}

func (f *forgetter) chunkOf(admit int64, i int) memory.SHA {
	if c := f.chunks[admit]; i >= 0 && i < len(c) {
		return c[i]
	}
	return ""
}

func open(ctx context.Context, cfg Config, project string) (_ *forgetter, err error) {
	if cfg.Lease == 0 {
		cfg.Lease = 60 * time.Second
	}
	if cfg.Patience == 0 {
		cfg.Patience = 2 * time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	f := &forgetter{Config: cfg, project: project, words: wordSet{}}
	f.report = Receipt{V: memory.Version, Type: TypeReceipt, Level: memory.LevelNone, Tenant: cfg.Tenant, Project: project, Objects: []string{}, Streams: map[string]*Stream{}, Proof: Proof{Searched: []Searched{}}}
	if f.all, err = cfg.Log.ScrubbedBlobs(ctx, project); err != nil {
		return nil, err
	}
	f.last, f.etag, err = cfg.Log.LastScrub(ctx, project)
	return f, err
}

// alone holds a project's forgetting to itself.
func alone(ctx context.Context, cfg Config, project string) (release func() error, err error) {
	ttl, patience := cmp.Or(cfg.Lease, 60*time.Second), cmp.Or(cfg.Patience, 2*time.Minute)
	l, err := cfg.Log.Acquire(ctx, cfg.Tenant+"/"+project+"/_forget", ttl)
	if errors.Is(err, eventlog.ErrHeld) {
		release, err := scrub.Hold(ctx, cfg.Log, cfg.Tenant+"/"+project+"/_forget", ttl, patience)
		if err != nil {
			return nil, fault.At(fault.Unavailable, "project "+project, "call it again when that one is done", "something else is being forgotten")
		}
		return release, nil
	}
	if err != nil {
		return nil, err
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // it may take longer than a lease
		defer close(done)
		t := time.NewTicker(ttl / 3)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				_ = l.Renew(context.WithoutCancel(ctx)) // a lost one is no reason to stop: the pointer is the fence
			}
		}
	}()
	return func() error {
		close(stop)
		<-done
		return l.Release(context.WithoutCancel(ctx))
	}, nil
}

// Run forgets, and gives the receipt. What an earlier call left is finished first.
func Run(ctx context.Context, cfg Config, project string, req Request) (_ Receipt, err error) {
	defer fault.Wrap(&err, "forget in %s", project)
	if !req.DryRun {
		release, err := alone(ctx, cfg, project)
		if err != nil {
			return Receipt{}, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	f, err := open(ctx, cfg, project)
	if err != nil {
		return Receipt{}, err
	}
	if !req.DryRun {
		if err := f.finish(ctx); err != nil {
			return f.report, err
		}
		if f, err = open(ctx, cfg, project); err != nil {
			return Receipt{}, err
		}
		if f.last.Kind != memory.TombstoneForget && f.last.Tombstone != "" && !f.last.Done {
			return f.report, fault.At(fault.Unavailable, "project "+project, "mem scrub -p "+project, "a scrub was interrupted and has to be finished first")
		}
	}
	f.report.Target, f.report.DryRun = req.Target, req.DryRun
	p, err := f.plan(ctx, req)
	if err != nil {
		return f.report, err
	}
	if req.DryRun {
		f.report.OK = true
		return f.report, nil
	}
	if err := f.write(ctx, p); err != nil {
		return f.report, err
	}
	return f.report, f.apply(ctx, p)
}

// Finish does what is left of an earlier call that came as far as its tombstone. It
// gives nil where there is nothing to finish.
func Finish(ctx context.Context, cfg Config, project string) (_ *Receipt, err error) {
	defer fault.Wrap(&err, "forget in %s", project)
	last, _, err := cfg.Log.LastScrub(ctx, project)
	if err != nil || last.Kind != memory.TombstoneForget || last.Proved {
		return nil, err
	}
	release, err := alone(ctx, cfg, project)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	f, err := open(ctx, cfg, project)
	if err != nil {
		return nil, err
	}
	if err := f.finish(ctx); err != nil || !f.report.Finished {
		return nil, err
	}
	return &f.report, nil
}

func (f *forgetter) finish(ctx context.Context) error {
	if f.last.Kind != memory.TombstoneForget || f.last.Proved {
		return nil
	}
	_, err := f.Log.Tombstone(ctx, f.project, f.last.Tombstone)
	if fault.Is(err, fault.NotFound) { // it died before its commit
		st := f.last
		st.Done, st.Proved = true, true
		return f.state(ctx, st)
	}
	if err != nil {
		return err
	}
	f.tombstone, f.report.Finished = f.last.Tombstone, true
	return f.apply(ctx, nil)
}

func (f *forgetter) state(ctx context.Context, st eventlog.Scrub) error {
	if err := f.Log.SetScrub(ctx, f.project, st, f.etag); err != nil {
		return err
	}
	f.last = st
	var err error
	f.etag, err = f.Log.ScrubState(ctx, f.project)
	return err
}

// plan is what is to be written.
type plan struct {
	tombstone *memory.Tombstone
	sources   []planned
}

// planned is a part that loses text.
type planned struct {
	*part
	next []memory.Chunk // without it; texts loaded
}

// text loads a chunk's text.
func (f *forgetter) text(ctx context.Context, c *memory.Chunk) error {
	if c.Text != "" || c.SizeBytes == 0 {
		return nil
	}
	b, err := f.Log.Blob(ctx, f.project, c.SHA256)
	c.Text = string(b)
	return err
}

// plan finds what goes, and the words by which it is told from what stays.
func (f *forgetter) plan(ctx context.Context, req Request) (*plan, error) {
	f.begin("read")
	c, err := f.choose(ctx, req.Target)
	if err != nil {
		return nil, err
	}
	t := &memory.Tombstone{
		Tenant: f.Tenant, Project: f.project, Kind: memory.TombstoneForget, Rules: policyForget, Target: &req.Target,
		Sources: []memory.Replacement{}, Blobs: []memory.Scrubbed{}, Inbox: req.Inbox, At: f.Now().UTC(),
	}
	p := &plan{tombstone: t}
	edits := map[memory.SHA][]memory.Edit{}
	f.chunks = map[int64][]memory.SHA{}
	for _, pt := range c.parts {
		gone := c.gone(pt)
		one := planned{part: pt}
		hit := false
		for i := range pt.chunks {
			ch := &pt.chunks[i]
			f.chunks[pt.line.Seq] = append(f.chunks[pt.line.Seq], ch.SHA256)
			any := c.whole[pt] && ch.SizeBytes > 0
			for ti := range ch.Turns {
				any = any || gone(&ch.Turns[ti])
			}
			if !any {
				one.next = append(one.next, *ch)
				continue
			}
			if err := f.text(ctx, ch); err != nil {
				return nil, err
			}
			n, es := without(ch, f.Count, gone)
			if c.whole[pt] {
				n, es = empty(ch)
			}
			if len(es) > 0 {
				hit = true
				edits[ch.SHA256] = es
				f.report.Removed.Chunks++
				for _, e := range es {
					f.words.add(ch.Text[e.Start:e.End], f.Count)
				}
				f.words.add(ch.Heading, f.Count)
				f.chunks[pt.line.Seq][i] = n.SHA256
			}
			one.next = append(one.next, n)
			ch.Text = ""
		}
		if c.whole[pt] {
			t.Raws = append(t.Raws, pt.src.RawSHA256)
		}
		if hit {
			p.sources = append(p.sources, one)
		}
		f.progress()
	}
	slices.Sort(t.Raws)
	t.Raws = slices.Compact(t.Raws)
	for n := range c.turns {
		t.Turns = append(t.Turns, memory.TurnKey(n.session, n.id))
	}
	slices.Sort(t.Turns)
	if err := f.remaining(ctx, p.sources, c.parts); err != nil {
		return nil, err
	}
	for _, sha := range slices.Sorted(maps.Keys(edits)) {
		now := memory.SumString("")
		for _, s := range p.sources {
			for i := range s.chunks {
				if s.chunks[i].SHA256 == sha {
					now = s.next[i].SHA256
				}
			}
		}
		b := memory.Scrubbed{Old: sha, New: now, Edits: edits[sha]}
		t.Blobs = append(t.Blobs, b)
		f.all[sha] = b
	}
	found, err := f.look(ctx, t)
	if err != nil {
		return nil, err
	}
	for _, pt := range c.parts {
		if n := pt.src.Counts.Duplicates; n > 0 && !c.whole[pt] && !slices.Contains(c.objects(), name(pt.src.Object)) && len(f.report.Kept) < maxPlaces {
			f.kept(fmt.Sprintf("the upload %s carried %d turns that were known: it may hold the same words", name(pt.src.Object), n))
		}
	}
	f.report.Objects, f.report.Also, f.report.Turns = c.objects(), c.also, len(c.turns)
	f.report.Removed.Sources = len(p.sources)
	f.report.Removed.Blobs = len(t.Blobs)
	if found == 0 && len(t.Blobs) == 0 && !req.Inbox {
		return nil, fault.At(fault.NotFound, "project "+f.project, "mem forget --list shows what was forgotten; --inbox removes the upload too", "it is forgotten already")
	}
	return p, nil
}

// look reads the streams: the replies of models that go too, and how many records.
func (f *forgetter) look(ctx context.Context, t *memory.Tombstone) (found int, err error) {
	seen := map[memory.SHA]bool{}
	err = f.each(ctx, func(name string, below lower) (*stream, error) {
		s, err := f.fold(ctx, name, "", below)
		if err != nil {
			return nil, err
		}
		found += s.fresh
		for i, sha := range slices.Concat(s.replies, s.others) {
			text, err := f.Log.Blob(ctx, f.project, sha)
			for range len(f.all) { // one that was scrubbed stands under another name
				b, ok := f.all[sha]
				if !ok || !fault.Is(err, fault.NotFound) {
					break
				}
				sha = b.New
				text, err = f.Log.Blob(ctx, f.project, sha)
			}
			if fault.Is(err, fault.NotFound) || err == nil && (seen[sha] || len(text) == 0) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if i >= len(s.replies) && !f.words.in(string(text)) && !f.words.find(string(text), true) {
				continue // of another step: one may say what its reason does not
			}
			seen[sha] = true
			t.Blobs = append(t.Blobs, memory.Scrubbed{Old: sha, New: memory.SumString(""), Edits: []memory.Edit{{End: len(text)}}})
			f.report.Removed.Replies++
		}
		if out := f.stream(name); s.fresh > 0 {
			out.Evidence, out.Memories, out.Gates = s.count()
		} else {
			delete(f.report.Streams, name)
		}
		return s, nil
	})
	for _, s := range f.report.Streams {
		f.report.Removed.Evidence += s.Evidence
		f.report.Removed.Memories += s.Memories
		f.report.Removed.Gates += s.Gates
	}
	return found, err
}

// each does something with every stream, those of a synthesis last: what they read of
// the others is known then.
func (f *forgetter) each(ctx context.Context, do func(name string, below lower) (*stream, error)) error {
	names, err := f.Log.Streams(ctx, f.project)
	if err != nil {
		return err
	}
	slices.SortStableFunc(names, func(a, b string) int {
		return b2i(memory.QueryID(a) == memory.SynthesisID) - b2i(memory.QueryID(b) == memory.SynthesisID)
	})
	below := lower{nodes: map[memory.SHA]bool{}, texts: map[memory.SHA]bool{}}
	for _, n := range names {
		s, err := do(n, below)
		if err != nil {
			return err
		}
		for m := range s.memories {
			below.nodes[m.node], below.texts[m.text] = true, true
		}
	}
	return nil
}

// remaining takes out of the words those that stand in a text that stays, and those that
// people wrote into names, notes and questions.
func (f *forgetter) remaining(ctx context.Context, changed []planned, parts []*part) error {
	next := map[*part][]memory.Chunk{}
	for _, c := range changed {
		next[c.part] = c.next
	}
	for _, p := range parts {
		f.words.without(p.src.Object + "\n" + p.src.Session)
		if !p.forgotten() && next[p] == nil {
			f.words.without(strings.Join(p.src.Cwds, "\n"))
		}
		chunks := p.chunks
		if n, ok := next[p]; ok {
			chunks = n
		}
		for i := range chunks {
			c := chunks[i]
			f.words.without(c.Heading)
			for ti := range c.Turns {
				f.words.without(c.Turns[ti].Tool)
			}
			if err := f.text(ctx, &c); err != nil {
				return err
			}
			f.words.without(c.Text)
		}
		f.progress()
	}
	return f.people(ctx)
}

// people names notes and questions that hold such words, and takes them out.
func (f *forgetter) people(ctx context.Context) error {
	mine := maps.Clone(f.words)
	if f.Asked != nil {
		asked, err := f.Asked(ctx, f.project)
		if err != nil {
			return err
		}
		for _, q := range asked {
			if mine.in(q) {
				f.kept("the wording of a question")
			}
			f.words.without(q)
		}
	}
	for n, err := range f.Log.Notes(ctx, f.project) {
		if err != nil {
			if fault.Is(err, fault.Unavailable) {
				return err
			}
			break // mem verify names it
		}
		if n.Note.Erased == "" {
			if mine.in(n.Note.Text) {
				f.kept("your note on the page " + n.Note.Note)
			}
			f.words.without(n.Note.Text)
		}
	}
	return nil
}

func (f *forgetter) kept(what string) {
	if !slices.Contains(f.report.Kept, what) {
		f.report.Kept = append(f.report.Kept, what)
	}
}

// write writes the source records without the text, and with the tombstone commits.
func (f *forgetter) write(ctx context.Context, p *plan) error {
	t := p.tombstone
	if _, err := f.Log.PutBlob(ctx, f.project, nil); err != nil {
		return err
	}
	for _, s := range p.sources {
		src := s.src
		whole := true
		src.Chunks = make([]memory.SHA, len(s.next))
		for i := range s.next {
			src.Chunks[i] = s.next[i].SHA256
			if s.next[i].Text != "" {
				if _, err := f.Log.PutBlob(ctx, f.project, []byte(s.next[i].Text)); err != nil {
					return err
				}
				s.next[i].Text = ""
			}
			whole = whole && s.next[i].SizeBytes == 0
		}
		if whole {
			src.Cwds, src.Counts.Dropped, src.Counts.Unknown = nil, nil, nil
		}
		src.Replaces = s.key()
		key, err := f.Log.PutSource(ctx, f.project, src, s.next)
		if err != nil {
			return err
		}
		for _, old := range s.keys {
			t.Sources = append(t.Sources, memory.Replacement{Old: old, New: key})
		}
	}
	recs := []eventlog.Record{t}
	key, err := eventlog.RecordsKey(recs)
	if err != nil {
		return err
	}
	if err := f.state(ctx, eventlog.Scrub{Kind: memory.TombstoneForget, N: f.last.N + 1, Tombstone: key, Rules: t.Rules}); err != nil {
		return err
	}
	f.tombstone = key
	_, err = f.Log.PutRecords(ctx, f.project, eventlog.Tombstones, recs)
	return err
}
