package scrub

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Config is what a scrub is given.
type Config struct {
	Tenant string
	Log    *eventlog.Log
	Rules  Rules
	// Lease is how long a stream is held, and Patience how long one that
	// another holds is waited for. 60 s and 2 min by default.
	Lease, Patience time.Duration
	Now             func() time.Time
	// Progress, when not nil, is called now and then with the report so far.
	Progress func(Report)
}

// Report is what a scrub of one project found and did.
type Report struct {
	Project   string     `json:"project"`
	Rules     string     `json:"rules"`               // version that was applied
	Tombstone memory.SHA `json:"tombstone,omitempty"` // empty: nothing was found, or a dry run
	Finished  memory.SHA `json:"finished,omitempty"`  // of an earlier scrub that had not come to its end
	Parts     int        `json:"parts"`               // looked at
	Chunks    int        `json:"chunks"`              // looked at
	// Secrets are the marks set, by kind: one for each place, though a chunk that
	// stands in two parts counts twice.
	Secrets    map[string]int `json:"secrets"`
	Blobs      int            `json:"blobs"`                // chunk texts and model replies that were replaced
	Loose      int            `json:"loose,omitempty"`      // blobs that nothing names, of work that died before its commit, and bodies of dead letters, removed
	Evidence   int            `json:"evidence"`             // statements stated anew
	Dropped    int            `json:"dropped"`              // statements erased whose redacted form can not be cited
	Memories   int            `json:"memories"`             // memory texts erased
	Reasons    int            `json:"reasons"`              // gate records whose words were erased
	Skills     int            `json:"skills,omitempty"`     // promoted ones whose text was erased
	Lessons    int            `json:"lessons,omitempty"`    // erased, and stated anew in their masked form
	Notes      int            `json:"notes,omitempty"`      // of people, erased; present ones stand anew
	Vectors    int            `json:"vectors"`              // removed
	Names      []string       `json:"names,omitempty"`      // hold what the rules would mask, and can not be erased
	Unreadable []string       `json:"unreadable,omitempty"` // damaged or missing; see mem verify
	Streams    []string       `json:"streams,omitempty"`    // that were changed
}

// Project scrubs one project. With dry it only looks. A store that fails leaves
// what is done so far, and the next call goes on from there.
func Project(ctx context.Context, cfg Config, project string, dry bool) (_ Report, err error) {
	defer fault.Wrap(&err, "scrub %s", project)
	if cfg.Lease == 0 {
		cfg.Lease = 60 * time.Second
	}
	if cfg.Patience == 0 {
		cfg.Patience = 2 * time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &scrubber{Config: cfg, project: project, report: Report{Project: project, Rules: cfg.Rules.Redact.Version(), Secrets: map[string]int{}}}
	if s.all, err = cfg.Log.ScrubbedBlobs(ctx, project); err != nil {
		return s.report, err
	}
	if s.last, s.etag, err = cfg.Log.LastScrub(ctx, project); err != nil {
		return s.report, err
	}
	if s.last.Kind == memory.TombstoneForget && !s.last.Proved && !dry {
		return s.report, fault.At(fault.Unavailable, "project "+project, "the next sweep finishes it, or mem forget does; then call it again", "something is being forgotten")
	}
	if last := s.last.Tombstone; last != "" && !s.last.Done && !dry {
		_, err := cfg.Log.Tombstone(ctx, project, last)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return s.report, err
		}
		if err == nil { // else it died before its commit, and left loose blobs at most
			if err := s.begin(ctx, last, s.last.Rules); err != nil {
				return s.report, err
			}
			if err := s.apply(ctx, last, plan{}); err != nil {
				return s.report, err
			}
			s.report.Finished = last
		}
	}
	for {
		p, err := s.look(ctx, dry)
		if err != nil || dry {
			s.report.Blobs = len(p.blobs)
			s.report.Loose = len(p.loose) + len(p.dead)
			return s.report, err
		}
		t, err := s.write(ctx, p)
		if err != nil || t == "" {
			return s.report, err
		}
		s.report.Tombstone = t
		if err := s.apply(ctx, t, p); err != nil || !p.full {
			return s.report, err
		}
	}
}

// scrubber is one scrub of one project.
type scrubber struct {
	Config
	project string
	report  Report
	all     map[memory.SHA]memory.Scrubbed // every scrubbed blob of the project
	parts   map[int64][]memory.SHA         // by admit seq: the chunks as they stand now; none of a part that can not be read
	last    eventlog.Scrub
	etag    string // of last
}

// begin says that a tombstone is about to be written, or to be followed again.
func (s *scrubber) begin(ctx context.Context, t memory.SHA, rules string) error {
	return s.state(ctx, eventlog.Scrub{N: s.last.N + 1, Tombstone: t, Rules: rules})
}

func (s *scrubber) state(ctx context.Context, st eventlog.Scrub) error {
	if err := s.Log.SetScrub(ctx, s.project, st, s.etag); err != nil {
		return err
	}
	s.last = st
	var err error
	s.etag, err = s.Log.ScrubState(ctx, s.project)
	return err
}

func (s *scrubber) progress() {
	if s.Progress != nil {
		s.Progress(s.report)
	}
}

// chunkOf is the chunk that stands now for chunk i of a part; "" where that part
// can not be read.
func (s *scrubber) chunkOf(admit int64, i int) memory.SHA {
	if c := s.parts[admit]; i >= 0 && i < len(c) {
		return c[i]
	}
	return ""
}

// now is where text [from,to) of a blob stands today. The way ends at stop, the
// chunk that the part has now: its text may have been scrubbed in another part,
// and learned again under rules that leave it as it is.
func (s *scrubber) now(stop, sha memory.SHA, from, to int) (_ memory.SHA, newFrom, newTo int) {
	for range len(s.all) {
		b, ok := s.all[sha]
		if !ok || sha == stop {
			break
		}
		sha = b.New
		from, to, _ = b.Moved(from, to)
	}
	return sha, from, to
}

// touched reports whether a scrub changed text [from,to) of a blob on its way
// to stop.
func (s *scrubber) touched(stop, sha memory.SHA, from, to int) bool {
	for range len(s.all) {
		b, ok := s.all[sha]
		if !ok || sha == stop {
			return false
		}
		hit := false
		sha = b.New
		if from, to, hit = b.Moved(from, to); hit {
			return true
		}
	}
	return false
}

// stale reports whether a statement that stands quotes what is to be erased.
func (s *scrubber) stale(e *memory.Evidence) bool {
	return e.Erased == "" && s.touched(s.chunkOf(e.Place.Admit, e.Place.I), e.Span.Chunk, e.Span.ChunkStart, e.Span.ChunkEnd)
}

// apply does what a tombstone demands, and removes what p found that no record
// leads to; "done" last.
func (s *scrubber) apply(ctx context.Context, key memory.SHA, p plan) error {
	t, err := s.Log.Tombstone(ctx, s.project, key)
	if err != nil {
		return err
	}
	for _, b := range t.Blobs {
		s.all[b.Old] = b
	}
	pairs, err := s.secrets(ctx, t)
	if err != nil {
		return err
	}
	values := strings.NewReplacer(pairs...)
	for _, r := range t.Sources {
		if err := s.Log.EraseSource(ctx, s.project, r.Old, key); err != nil {
			return err
		}
	}
	// What a slice of the gate read before this it holds under an older state,
	// and its stream's lease: no slice that begins later uses it.
	st := s.last
	st.Marked = true
	if err := s.state(ctx, st); err != nil {
		return err
	}
	sources, live := map[int64]memory.SHA{}, map[memory.SHA]bool{}
	s.parts = map[int64][]memory.SHA{}
	for line, err := range s.Log.Admits(ctx, s.project, 0) {
		if err != nil {
			return err
		}
		sources[line.Seq] = line.Source
		src, _, err := s.Log.Part(ctx, s.project, line.Source)
		if err != nil {
			if !damaged(err) {
				return err
			}
			continue
		}
		s.parts[line.Seq] = src.Chunks
		for _, c := range src.Chunks {
			live[c] = true
		}
	}
	streams, err := s.Log.Streams(ctx, s.project)
	if err != nil {
		return err
	}
	for _, name := range streams {
		st := &stream{scrubber: s, name: name, tombstone: key, values: values, sources: sources}
		if err := st.scrub(ctx); err != nil {
			return err
		}
		s.progress()
	}
	if err := s.skills(ctx, key, values); err != nil {
		return err
	}
	if err := s.notes(ctx, key, values); err != nil {
		return err
	}
	if err := s.lessons(ctx, key, values); err != nil {
		return err
	}
	for _, b := range t.Blobs {
		if b.Old != b.New && !live[b.Old] { // one may have been learned again since an earlier try
			if err := s.Log.DropBlob(ctx, s.project, b.Old); err != nil {
				return err
			}
		}
	}
	for _, id := range p.dead {
		if err := s.Log.EraseDead(ctx, id, key); err != nil {
			return err
		}
		s.report.Loose++
	}
	for _, sha := range p.loose {
		if err := s.Log.DropBlob(ctx, s.project, sha); err != nil {
			return err
		}
		s.report.Loose++
	}
	st.Done = true
	return s.state(ctx, st)
}

// minSecret is the least length of a secret that is looked for in words of a
// model, where nothing around it says what it is.
const minSecret = 8

// secrets are the values that a tombstone's edits mask, with their marks, as far
// as the old blobs still stand: a memory or a reason in a model's own words may
// hold one without what gave it away.
func (s *scrubber) secrets(ctx context.Context, t *memory.Tombstone) (pairs []string, err error) {
	marks := map[string]string{}
	for _, b := range t.Blobs {
		text, err := s.Log.Blob(ctx, s.project, b.Old)
		if fault.Is(err, fault.NotFound) {
			continue // an earlier try came as far as this
		}
		if err != nil {
			return nil, err
		}
		for _, e := range b.Edits {
			if v := string(text[e.Start:e.End]); len(v) >= minSecret && marks[v] == "" {
				marks[v] = e.Mark
			}
		}
	}
	// The longer first: one may begin with another.
	for _, v := range slices.SortedFunc(maps.Keys(marks), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	}) {
		pairs = append(pairs, v, marks[v])
	}
	return pairs, nil
}
