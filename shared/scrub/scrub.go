package scrub

import (
	"context"
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
	Evidence   int            `json:"evidence"`             // statements stated anew
	Dropped    int            `json:"dropped"`              // statements erased whose redacted form can not be cited
	Memories   int            `json:"memories"`             // memory texts erased
	Reasons    int            `json:"reasons"`              // gate records whose words were erased
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
	last, etag, err := cfg.Log.LastScrub(ctx, project)
	if err != nil {
		return s.report, err
	}
	if last.Tombstone != "" && !last.Done && !dry {
		if etag, err = s.apply(ctx, last.Tombstone, etag); err != nil {
			return s.report, err
		}
		s.report.Finished = last.Tombstone
	}
	for {
		p, err := s.look(ctx, dry)
		if err != nil || dry {
			s.report.Blobs = len(p.blobs)
			return s.report, err
		}
		t, err := s.write(ctx, p)
		if err != nil || t == "" {
			return s.report, err
		}
		s.report.Tombstone = t
		if err := cfg.Log.SetScrub(ctx, project, eventlog.Scrub{Tombstone: t, Rules: s.report.Rules}, etag); err != nil {
			return s.report, err
		}
		if etag, err = cfg.Log.ScrubState(ctx, project); err != nil {
			return s.report, err
		}
		if etag, err = s.apply(ctx, t, etag); err != nil || !p.full {
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
}

func (s *scrubber) progress() {
	if s.Progress != nil {
		s.Progress(s.report)
	}
}

// now is where text [from,to) of a blob stands today.
func (s *scrubber) now(sha memory.SHA, from, to int) (_ memory.SHA, newFrom, newTo int) {
	for range len(s.all) {
		b, ok := s.all[sha]
		if !ok {
			break
		}
		sha = b.New
		from, to, _ = b.Moved(from, to)
	}
	return sha, from, to
}

// touched reports whether a scrub changed text [from,to) of a blob.
func (s *scrubber) touched(sha memory.SHA, from, to int) bool {
	for range len(s.all) {
		b, ok := s.all[sha]
		if !ok {
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

// apply does what a tombstone demands, "done" last.
func (s *scrubber) apply(ctx context.Context, key memory.SHA, etag string) (_ string, err error) {
	t, err := s.Log.Tombstone(ctx, s.project, key)
	if err != nil {
		return "", err
	}
	for _, b := range t.Blobs {
		s.all[b.Old] = b
	}
	pairs, err := s.secrets(ctx, t)
	if err != nil {
		return "", err
	}
	values := strings.NewReplacer(pairs...)
	for _, r := range t.Sources {
		if err := s.Log.EraseSource(ctx, s.project, r.Old, key); err != nil {
			return "", err
		}
	}
	streams, err := s.Log.Streams(ctx, s.project)
	if err != nil {
		return "", err
	}
	sources := map[int64]memory.SHA{}
	for line, err := range s.Log.Admits(ctx, s.project, 0) {
		if err != nil {
			return "", err
		}
		sources[line.Seq] = line.Source
	}
	for _, name := range streams {
		st := &stream{scrubber: s, name: name, tombstone: key, values: values, sources: sources}
		if err := st.scrub(ctx); err != nil {
			return "", err
		}
		s.progress()
	}
	for _, b := range t.Blobs {
		if b.Old != b.New {
			if err := s.Log.DropBlob(ctx, s.project, b.Old); err != nil {
				return "", err
			}
		}
	}
	if err := s.Log.SetScrub(ctx, s.project, eventlog.Scrub{Tombstone: key, Rules: t.Rules, Done: true}, etag); err != nil {
		return "", err
	}
	return s.Log.ScrubState(ctx, s.project)
}

// minSecret is the least length of a secret that is looked for in words of a
// model, where nothing around it says what it is.
const minSecret = 8

// secrets are the values that a tombstone's edits mask, with their marks, as far
// as the old blobs still stand: a memory or a reason in a model's own words may
// hold one without what gave it away.
func (s *scrubber) secrets(ctx context.Context, t *memory.Tombstone) (pairs []string, err error) {
	seen := map[string]bool{}
	for _, b := range t.Blobs {
		text, err := s.Log.Blob(ctx, s.project, b.Old)
		if fault.Is(err, fault.NotFound) {
			continue // an earlier try came as far as this
		}
		if err != nil {
			return nil, err
		}
		for _, e := range b.Edits {
			if v := string(text[e.Start:e.End]); len(v) >= minSecret && !seen[v] {
				seen[v] = true
				pairs = append(pairs, v, e.Mark)
			}
		}
	}
	return pairs, nil
}
