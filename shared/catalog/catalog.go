// Package catalog is what a project asks and which stream answers: standing
// questions, ad-hoc questions and serving pointers as they stand in the bucket;
// and what a tenant configures: mappings, redaction patterns, schemas.
//
// Invariant: the stream of a question follows from its wording (DESIGN section
// 3). A reworded question is a new stream, back-filled while the old one
// serves; the serving pointer moves when the new one has caught up.
//
// Objects owned here:
//
//	config/<tenant>/<project>/questions.yaml        standing questions (shared/questions); absent means the default set
//	config/<tenant>/projects.yaml                   mapping from folders to projects
//	config/<tenant>/spaces.yaml                     {embed: NAME, retention: 168h}: see SpaceWish; absent means the configuration's
//	config/<tenant>/redact.yaml                     the user's own redaction patterns (shared/redact); absent means none
//	config/<tenant>/_schemas/<name>.yaml            formats that the user describes (shared/transcript)
//	ops/pointer/<tenant>/_schemas/swept             {"version":"1a2b3c4d"}: see SweptSchemas
//	config/<tenant>/<project>/adhoc/<stream>.json   one request's question: {"stream":"adhoc-1a2b3c4d","question":…,"admit":7,…}
//	ops/pointer/<tenant>/<project>/questions        {"serving":{"decisions":"decisions@5e0c2f11"},"generations":{"decisions@5e0c2f11":{"n":2}}}
//	ops/pointer/<tenant>/<project>/regate/<stream>  {"up_to":17}: pending steps up to there are asked again
//	ops/pointer/<tenant>/<project>/refused/<stream> {"reason":…,"hint":…}: see Refusal; {} once it is asked again
//
// The package decides nothing about evidence and reads no log segment.
package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/questions"
	"github.com/mneme-ai/mneme/shared/redact"
)

// Memory budgets in tokens (DESIGN section 6): they belong to the stream.
const (
	StandingBudget = 1024 // GRU-Mem and MemAgent (specs/models.md 1.5)
	AdhocBudget    = 4096 // brief D1
	// MaxBudget bounds what one request may ask for: a memory must leave room
	// for a 5,000-token chunk in the window of the usual models.
	MaxBudget = 16384
	// maxAdhoc bounds one ad-hoc object: a question of 8 KiB and its envelope.
	maxAdhoc = 64 << 10
)

// Catalog reads and writes one tenant's questions.
type Catalog struct {
	bucket *objstore.Bucket
	log    *eventlog.Log
	tenant string
	adhoc  sync.Map // key -> Adhoc: such an object never changes

	files sync.Map // key -> questionFile, as last read

	schemas sync.Map // key -> SchemaFile, as last read: its ETag says whether it still stands
}

// New gives the catalog of a tenant in the log bucket.
func New(bucket *objstore.Bucket, log *eventlog.Log, tenant string) *Catalog {
	return &Catalog{bucket: bucket, log: log, tenant: tenant}
}

func (c *Catalog) prefix(project string) string { return "config/" + c.tenant + "/" + project + "/" }

// Questions returns the project's standing questions, and the ETag to edit
// them by. A project without a file has the default set and ETag "".
func (c *Catalog) Questions(ctx context.Context, project string) (_ questions.Set, etag string, err error) {
	defer fault.Wrap(&err, "questions of %s", project)
	key := c.prefix(project) + "questions.yaml"
	b, info, err := c.bucket.ReadAll(ctx, key, questions.MaxFileBytes)
	if errors.Is(err, objstore.ErrNotFound) {
		return questions.Default(project), "", nil
	}
	if err != nil {
		return questions.Set{}, "", err
	}
	if last, ok := c.files.Load(key); ok && bytes.Equal(last.(questionFile).src, b) {
		return last.(questionFile).set.Clone(), info.ETag, nil
	}
	s, err := questions.Parse(key, b)
	if err == nil {
		c.files.Store(key, questionFile{src: b, set: s.Clone()})
	}
	return s, info.ETag, err
}

// questionFile is a question file and what it says: each query reads the file, which
// rarely changes.
type questionFile struct {
	src []byte
	set questions.Set
}

// SaveQuestions writes the set; etag is that of Questions, "" where the file
// is new. A file that changed meanwhile gives fault.Conflict.
func (c *Catalog) SaveQuestions(ctx context.Context, project string, s questions.Set, etag string) (err error) {
	defer fault.Wrap(&err, "save questions of %s", project)
	key := c.prefix(project) + "questions.yaml"
	b := s.Marshal()
	if _, err := questions.Parse(key, b); err != nil {
		return err
	}
	if etag == "" {
		_, err = c.bucket.Create(ctx, key, b)
	} else {
		_, err = c.bucket.Replace(ctx, key, b, etag)
	}
	return err
}

// Mappings returns the tenant's folder mapping; empty when there is none.
func (c *Catalog) Mappings(ctx context.Context) (_ questions.Projects, err error) {
	defer fault.Wrap(&err, "project mappings")
	key := "config/" + c.tenant + "/projects.yaml"
	b, _, err := c.bucket.ReadAll(ctx, key, questions.MaxFileBytes)
	if errors.Is(err, objstore.ErrNotFound) {
		return questions.Projects{}, nil
	}
	if err != nil {
		return questions.Projects{}, err
	}
	return questions.ParseProjects(key, b)
}

// PatternFile is the file of the tenant's own redaction patterns.
type PatternFile struct {
	Data     []byte // as it stands; nil where there is none
	ETag     string
	Patterns []redact.Pattern
	Err      error // fault.Invalid with its line: nothing is admitted meanwhile
}

func (c *Catalog) patternKey() string { return "config/" + c.tenant + "/redact.yaml" }

// PatternFile reads the tenant's own redaction patterns, broken or not.
func (c *Catalog) PatternFile(ctx context.Context) (f PatternFile, err error) {
	defer fault.Wrap(&err, "redaction patterns")
	b, info, err := c.bucket.ReadAll(ctx, c.patternKey(), redact.MaxPatternFile)
	if errors.Is(err, objstore.ErrNotFound) {
		return f, nil
	}
	if err != nil {
		return f, err
	}
	f.Data, f.ETag = b, info.ETag
	f.Patterns, f.Err = redact.ParsePatterns(c.patternKey(), b)
	return f, nil
}

// Patterns returns the tenant's own redaction patterns; none when there is no
// file. A file that can not be read as it stands gives fault.Invalid with its
// line: what it was to mask must not be stored meanwhile.
func (c *Catalog) Patterns(ctx context.Context) ([]redact.Pattern, error) {
	f, err := c.PatternFile(ctx)
	if err == nil {
		err = f.Err
	}
	return f.Patterns, err
}

// SavePatterns writes the file, in the place of the one that stands; file names
// the bytes in errors. One that changes meanwhile gives fault.Conflict.
func (c *Catalog) SavePatterns(ctx context.Context, file string, data []byte) (_ []redact.Pattern, err error) {
	defer fault.Wrap(&err, "save redaction patterns")
	ps, err := redact.ParsePatterns(file, data)
	if err != nil {
		return nil, err
	}
	old, err := c.PatternFile(ctx)
	if err != nil {
		return nil, err
	}
	if old.ETag == "" {
		_, err = c.bucket.Create(ctx, c.patternKey(), data)
	} else {
		_, err = c.bucket.Replace(ctx, c.patternKey(), data, old.ETag)
	}
	return ps, err
}

// Adhoc is the question of one request.
type Adhoc struct {
	Stream       string     `json:"stream"`
	Question     string     `json:"question"`
	RawSHA256    memory.SHA `json:"raw_sha256"` // of the part it asks about
	Admit        int64      `json:"admit"`      // the part's place
	BudgetTokens int        `json:"memory_budget"`
	// Models is what the request chose to decide; absent: the project's models.
	Models *models.Pick `json:"models,omitempty"`
}

// PutAdhoc keeps the question of a request; the same one again changes nothing,
// and asked says that it was.
func (c *Catalog) PutAdhoc(ctx context.Context, project string, a Adhoc) (asked bool, err error) {
	defer fault.Wrap(&err, "keep question %s", a.Stream)
	b, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	key := c.adhocKey(project, a.Stream)
	if _, err := c.bucket.Head(ctx, key); err == nil {
		return true, nil // the first budget asked for stays: it belongs to the stream
	} else if !errors.Is(err, objstore.ErrNotFound) {
		return false, err
	}
	_, err = c.bucket.Create(ctx, key, b)
	if fault.Is(err, fault.Conflict) {
		return true, nil
	}
	return false, err
}

// Stream is one question stream of a project.
type Stream struct {
	Name         string
	QueryID      string
	Question     string
	ExitGate     bool
	BudgetTokens int
	// Only is the one admit seq that an ad-hoc stream folds; 0 means all.
	Only int64
	// Models is what an ad-hoc stream's request chose, or who opened a generation;
	// nil: the project's models.
	Models *models.Pick
}

// Streams lists the project's streams: standing questions in file order, then
// ad-hoc ones by name.
func (c *Catalog) Streams(ctx context.Context, project string) (_ []Stream, err error) {
	set, _, err := c.Questions(ctx, project)
	if err != nil {
		return nil, err
	}
	s, _, err := c.Serving(ctx, project)
	if err != nil {
		return nil, err
	}
	return c.streams(ctx, project, set, s)
}

func (c *Catalog) streams(ctx context.Context, project string, set questions.Set, s Serving) ([]Stream, error) {
	adhoc, err := c.Adhocs(ctx, project)
	if err != nil {
		return nil, err
	}
	return streamsOf(set, s, adhoc), nil
}

func streamsOf(set questions.Set, s Serving, adhoc []Adhoc) []Stream {
	out := make([]Stream, 0, len(set.Queries)+len(adhoc))
	for _, q := range set.Queries {
		out = append(out, s.Of(q))
	}
	for _, a := range adhoc {
		out = append(out, a.AsStream())
	}
	return out
}

func (c *Catalog) adhocKey(project, stream string) string {
	return c.prefix(project) + "adhoc/" + stream + ".json"
}

// AsStream is the stream that answers a.
func (a Adhoc) AsStream() Stream {
	return Stream{Name: a.Stream, QueryID: a.Stream, Question: a.Question, BudgetTokens: a.BudgetTokens, Only: a.Admit, Models: a.Models}
}

// Adhocs lists the project's ad-hoc questions by stream name.
func (c *Catalog) Adhocs(ctx context.Context, project string) (_ []Adhoc, err error) {
	defer fault.Wrap(&err, "ad-hoc questions of %s", project)
	var out []Adhoc
	for info, err := range c.bucket.List(ctx, c.prefix(project)+"adhoc/") {
		if err != nil {
			return nil, err
		}
		a, err := c.readAdhoc(ctx, info.Key)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// readAdhoc reads one ad-hoc question, from the store once a process.
func (c *Catalog) readAdhoc(ctx context.Context, key string) (a Adhoc, err error) {
	if v, ok := c.adhoc.Load(key); ok {
		return v.(Adhoc), nil
	}
	b, _, err := c.bucket.ReadAll(ctx, key, maxAdhoc)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fault.At(fault.Corrupt, key, "", "%v", err)
	}
	c.adhoc.Store(key, a)
	return a, nil
}

// Synthesis is the stream of the project's synthesis (L2); ok is false where its
// question file asks for none. Its name follows from the wording alone.
func (c *Catalog) Synthesis(ctx context.Context, project string) (s Stream, ok bool, err error) {
	set, _, err := c.Questions(ctx, project)
	if err != nil || set.Synthesis == nil {
		return Stream{}, false, err
	}
	return synthesisOf(set), true, nil
}

func synthesisOf(set questions.Set) Stream {
	q := set.Synthesis
	return Stream{Name: q.Stream(), QueryID: q.ID, Question: q.Question, ExitGate: q.ExitGate, BudgetTokens: StandingBudget}
}

// Stream finds one stream of the project by name; fault.NotFound when neither
// the question file nor a request asks it any more.
func (c *Catalog) Stream(ctx context.Context, project, name string) (Stream, error) {
	if strings.HasPrefix(name, "adhoc-") {
		a, err := c.readAdhoc(ctx, c.adhocKey(project, name))
		if err != nil {
			return Stream{}, err
		}
		return a.AsStream(), nil
	}
	set, _, err := c.Questions(ctx, project)
	if err != nil {
		return Stream{}, err
	}
	s, _, err := c.Serving(ctx, project)
	if err != nil {
		return Stream{}, err
	}
	for _, q := range set.Queries {
		if st := s.Of(q); st.Name == name {
			return st, nil
		}
	}
	if set.Synthesis != nil && set.Synthesis.Stream() == name {
		return synthesisOf(set), nil
	}
	return Stream{}, fault.New(fault.NotFound, "project %s asks no question with stream %s", project, name)
}

// Serving says which stream answers each question id, and which streams are the
// present ones of their wordings.
type Serving struct {
	Serving map[string]string `json:"serving"`
	// Generations are by the stream that a wording had first.
	Generations map[string]Generation `json:"generations,omitempty"`
}

// Generation is a stream that decides a question once more, from the start: of
// decisions@5e0c2f11 the second is decisions@5e0c2f11.2.
type Generation struct {
	N      int          `json:"n"`
	Models *models.Pick `json:"models,omitempty"` // absent: the project's
}

// Of is the present stream of a question.
func (s *Serving) Of(q questions.Query) Stream {
	// At L1 the exit gate is recorded and not acted on (brief P6): "all the X" needs a
	// full read. A question that says exit_gate: true asks for less: its parts end with
	// the first chunk after which the model has enough.
	st := Stream{Name: q.Stream(), QueryID: q.ID, Question: q.Question, ExitGate: q.ExitGate, BudgetTokens: StandingBudget}
	if g, ok := s.Generations[st.Name]; ok {
		st.Name, st.Models = fmt.Sprintf("%s.%d", st.Name, g.N), g.Models
	}
	return st
}

func pointer(project string) string { return project + "/questions" }

// Serving reads the pointer; etag "" when it was never set.
func (c *Catalog) Serving(ctx context.Context, project string) (s Serving, etag string, err error) {
	etag, err = c.log.Pointer(ctx, pointer(project), &s)
	if s.Serving == nil {
		s.Serving = map[string]string{}
	}
	return s, etag, err
}

// ServingStreams lists the streams that answer: for each question of the file
// the pointer's stream, else its own; and every ad-hoc stream.
func (c *Catalog) ServingStreams(ctx context.Context, project string) ([]Stream, error) {
	streams, _, err := c.Answering(ctx, project)
	return streams, err
}

// Answering is ServingStreams, and the stream of the synthesis, nil where the question
// file asks for none. All is read side by side: a query waits for it.
func (c *Catalog) Answering(ctx context.Context, project string) (streams []Stream, synthesis *Stream, err error) {
	var set questions.Set
	var s Serving
	var adhoc []Adhoc
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { set, _, err = c.Questions(ctx, project); return err })
	g.Go(func() (err error) { s, _, err = c.Serving(ctx, project); return err })
	g.Go(func() (err error) { adhoc, err = c.Adhocs(ctx, project); return err })
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	streams = streamsOf(set, s, adhoc)
	for i, st := range streams {
		if name := s.Serving[st.QueryID]; name != "" {
			streams[i].Name = name
		}
	}
	if set.Synthesis != nil {
		up := synthesisOf(set)
		synthesis = &up
	}
	return streams, synthesis, nil
}

// CaughtUp notes that stream name now answers question id. It is called once
// the stream has folded all that is admitted.
func (c *Catalog) CaughtUp(ctx context.Context, project, id, name string) (err error) {
	defer fault.Wrap(&err, "serve %s from %s", id, name)
	for range 5 { // each loss means that another question moved
		s, etag, err := c.Serving(ctx, project)
		if err != nil {
			return err
		}
		if s.Serving[id] == name {
			return nil
		}
		s.Serving[id] = name
		if err := c.log.SetPointer(ctx, pointer(project), s, etag); !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the serving pointer of %s keeps changing", project)
}

// OpenGenerations makes the next stream of each question that is asked for, all at
// once; the ones that answer serve until the new ones have caught up. A stream that
// was opened for the same models and has not caught up is the answer again: to ask
// twice throws nothing away. It returns the new streams.
func (c *Catalog) OpenGenerations(ctx context.Context, project string, asked func(Stream) bool, by *models.Pick) (out []Stream, err error) {
	defer fault.Wrap(&err, "open new streams of %s", project)
	for range 5 { // each loss means that another question moved
		set, _, err := c.Questions(ctx, project)
		if err != nil {
			return nil, err
		}
		s, etag, err := c.Serving(ctx, project)
		if err != nil {
			return nil, err
		}
		out = nil
		moved := false
		for _, q := range set.Queries {
			now := s.Of(q)
			if !asked(now) {
				continue
			}
			if g, ok := s.Generations[q.Stream()]; ok && s.Serving[q.ID] != now.Name && g.Models.Key() == by.Key() {
				out = append(out, now)
				continue
			}
			moved = true
			if s.Generations == nil {
				s.Generations = map[string]Generation{}
			}
			s.Generations[q.Stream()] = Generation{N: max(s.Generations[q.Stream()].N, 1) + 1, Models: by}
			out = append(out, s.Of(q))
		}
		if len(out) == 0 {
			return nil, fault.At(fault.NotFound, "project "+project, "mem question list shows them", "no such question")
		}
		if !moved {
			return out, nil
		}
		if err := c.log.SetPointer(ctx, pointer(project), s, etag); !fault.Is(err, fault.Conflict) {
			return out, err
		}
	}
	return nil, fault.New(fault.Unavailable, "the serving pointer of %s keeps changing", project)
}

// Known lists the projects that anything is known of: in the log, or with a
// question file.
func (c *Catalog) Known(ctx context.Context) ([]string, error) {
	out, err := c.log.Projects(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
