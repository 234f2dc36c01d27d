package export

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Config is what an Exporter reads.
type Config struct {
	Tenant  string
	Log     *eventlog.Log
	Catalog *catalog.Catalog
	// Redactor gives the newest rules, and their version; nil masks nothing. It is asked
	// once an export: a rule that cannot be read stops it.
	Redactor func(ctx context.Context) (redact func(string) string, rules string, err error)
	// Untrusted gives the judges of a project whose labels do not count, as they do not
	// agree with people's well enough; nil: every label counts. It must follow from the
	// project's labels alone.
	Untrusted func(ctx context.Context, project string) ([]Judge, error)
}

// Judge gave labels: a model, by its name, or all rules.
type Judge struct {
	Kind  string `json:"kind"` // memory.LabelModel or LabelRule
	Model string `json:"model,omitempty"`
}

// Exporter writes exports of one tenant's log. It holds nothing between two.
type Exporter struct{ cfg Config }

// New checks cfg.
func New(cfg Config) (*Exporter, error) {
	if cfg.Log == nil || cfg.Catalog == nil || !memory.ValidName(cfg.Tenant) {
		return nil, fault.New(fault.Internal, "export: a dependency is missing")
	}
	return &Exporter{cfg: cfg}, nil
}

// Options say which decisions, and which files.
type Options struct {
	Since   time.Time // runs that ended at Since or later; zero: all before Until
	Until   time.Time // and before Until; zero: all from Since on
	Project string    // this one alone; "" for every one
	Format  string    // see Formats; "" is "all"
	Split   string    // see Splits; "" is all of them
}

// Day is the options of the runs that ended on a day, UTC.
func Day(day string) (Options, error) {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return Options{}, fault.At(fault.Invalid, "day", "2026-01-31", "%q is not a day", day)
	}
	return Options{Since: t, Until: t.AddDate(0, 0, 1)}, nil
}

func (o *Options) holds(ended time.Time) bool {
	return !ended.Before(o.Since) && (o.Until.IsZero() || ended.Before(o.Until))
}

// Check refuses options that name nothing.
func (o *Options) Check() error {
	switch {
	case o.Format != "" && formats[o.Format] == nil:
		return fault.At(fault.Invalid, "format", "one of "+strings.Join(Formats(), ", "), "%q is not a format", o.Format)
	case o.Split != "" && !slices.Contains(Splits, o.Split):
		return fault.At(fault.Invalid, "split", "one of "+strings.Join(Splits, ", "), "%q is not a split", o.Split)
	case o.Project != "" && !memory.ValidName(o.Project):
		return fault.At(fault.Invalid, "project", "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", o.Project)
	case !o.Since.IsZero() && !o.Until.IsZero() && !o.Since.Before(o.Until):
		return fault.At(fault.Invalid, "until", "give a later day", "nothing lies between since and until")
	}
	return nil
}

func (o *Options) files() []string {
	if o.Format == "" {
		return Files("all")
	}
	return Files(o.Format)
}

// Report is the manifest of an export: what its bytes follow from, what stands in
// it, and what was left out and why.
type Report struct {
	V        int        `json:"v"`
	Type     string     `json:"type"` // "export"
	Schema   int        `json:"schema"`
	Program  string     `json:"program"`
	ExportID string     `json:"export_id"`
	Tenant   string     `json:"tenant"`
	Options  OptionsOf  `json:"options"`
	Position []Position `json:"position"` // the log, as far as it was read
	Labels   []LabelsOf `json:"labels"`
	Erasures []Erasures `json:"erasures"` // what was erased before it was read
	Rules    string     `json:"redact_rules"`

	Gates        int            `json:"gates"`        // decisions of the runs, and of the split, that were asked for, in files or not
	Trajectories int            `json:"trajectories"` // of them
	Excluded     map[string]int `json:"excluded"`     // rows of gates.parquet by the reason in their column `excluded`
	Absent       map[string]int `json:"absent"`       // decisions that are in no file, by reason
	Rewards      RewardStats    `json:"rewards"`
	Files        []FileInfo     `json:"files"`
	Problems     []Problem      `json:"problems"` // projects that were left out
}

// OptionsOf are the options as the manifest has them.
type OptionsOf struct {
	Since   string   `json:"since,omitempty"` // RFC 3339, UTC
	Until   string   `json:"until,omitempty"`
	Project string   `json:"project,omitempty"`
	Split   string   `json:"split,omitempty"`
	Files   []string `json:"files"`
	Alpha   float64  `json:"alpha"`
}

// Position is the end of a stream as it was read.
type Position struct {
	Project string     `json:"project"`
	Stream  string     `json:"stream"`
	Seq     int64      `json:"seq"`
	Hash    memory.SHA `json:"hash"`
}

// LabelsOf says which labels of a project were read: how many objects, and sha256 over
// their keys, ascending, a line each.
type LabelsOf struct {
	Project   string     `json:"project"`
	Objects   int        `json:"objects"`
	Digest    memory.SHA `json:"digest"`
	Untrusted []Judge    `json:"untrusted,omitempty"` // whose labels did not count
}

// Erasures says which tombstones of a project had been written, as LabelsOf does of
// labels. An erased record keeps its place in the chain, so that the log's position
// alone does not tell.
type Erasures struct {
	Project string     `json:"project"`
	Objects int        `json:"objects"`
	Digest  memory.SHA `json:"digest"`
}

// Erased is what was erased of a project up to now.
func (e *Exporter) Erased(ctx context.Context, project string) (Erasures, error) {
	keys, err := shelfKeys(ctx, e.cfg.Log, project, eventlog.Tombstones)
	return Erasures{project, len(keys), digestOf(keys)}, err
}

// Stale reports whether the export may hold what was erased of the project since.
func (r *Report) Stale(now Erasures) bool {
	of := func(project string) bool { return project == now.Project }
	if !slices.ContainsFunc(r.Position, func(p Position) bool { return of(p.Project) }) {
		return false
	}
	i := slices.IndexFunc(r.Erasures, func(e Erasures) bool { return of(e.Project) })
	return i < 0 && now.Objects > 0 || i >= 0 && r.Erasures[i] != now
}

// Problem is a project that could not be exported; the others were.
type Problem struct {
	Project string `json:"project"`
	Error   string `json:"error"`
	Hint    string `json:"hint,omitempty"`
}

// RewardStats are over the exported trajectories and turns.
type RewardStats struct {
	Labelled     int `json:"labelled"` // turns with r_update
	Right        int `json:"right"`    // of them +1
	ExitEarly    int `json:"exit_early"`
	ExitExact    int `json:"exit_exact"`
	ExitLate     int `json:"exit_late"`
	FormatBroken int `json:"format_broken"` // trajectories with r_format 0
}

// Reasons of Report.Absent.
const (
	absentConsent  = "no_consent" // the project's question file says export: false
	absentErased   = "erased"     // the chunk, the memory or the record was forgotten
	absentOpen     = "open"       // the run has not ended
	absentRestated = "restated"   // not a decision: a scrub stated texts anew
	absentSplit    = "other_split"
)

// project is one project of a snapshot.
type project struct {
	name    string
	consent bool
	heads   []Position
	labels  [][sha256.Size]byte
	ignored []Judge
}

// Snapshot is what an export will read: the log as it stood, and no further.
type Snapshot struct {
	ID       string // of the export
	options  Options
	redact   func(string) string
	projects []project
	report   Report
}

// idBytes is how much of a hash an export id has: enough that two never meet.
const idBytes = 16

// Snapshot notes the ends of all streams and the labels. Its ID says what the export's
// bytes follow from: where it is that of an export which stands, that one is the same.
func (e *Exporter) Snapshot(ctx context.Context, o Options) (_ *Snapshot, err error) {
	defer fault.Wrap(&err, "export snapshot")
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := &Snapshot{options: o, redact: func(s string) string { return s }}
	rules := ""
	if e.cfg.Redactor != nil {
		if s.redact, rules, err = e.cfg.Redactor(ctx); err != nil {
			return nil, err
		}
	}
	r := &s.report
	*r = Report{
		V: memory.Version, Type: "export", Schema: SchemaVersion, Program: Program, Tenant: e.cfg.Tenant, Rules: rules,
		Options:  OptionsOf{Project: o.Project, Split: o.Split, Files: o.files(), Alpha: Alpha},
		Position: []Position{}, Labels: []LabelsOf{}, Erasures: []Erasures{}, Excluded: map[string]int{}, Absent: map[string]int{}, Problems: []Problem{},
	}
	if !o.Since.IsZero() {
		r.Options.Since = o.Since.UTC().Format(time.RFC3339)
	}
	if !o.Until.IsZero() {
		r.Options.Until = o.Until.UTC().Format(time.RFC3339)
	}
	names, err := e.cfg.Log.Projects(ctx)
	if err != nil {
		return nil, err
	}
	if o.Project != "" {
		if !slices.Contains(names, o.Project) {
			return nil, fault.At(fault.NotFound, "project "+o.Project, "mem status lists them", "nothing is known of it")
		}
		names = []string{o.Project}
	}
	hidden := []Position{} // of projects without consent: they count for the id and stand nowhere
	for _, name := range names {
		p, err := e.project(ctx, name, r)
		if fault.Is(err, fault.Invalid) { // nobody can tell whether it consents
			r.Problems = append(r.Problems, Problem{Project: name, Error: err.Error(), Hint: fault.HintOf(err)})
			continue
		}
		if err != nil {
			return nil, err
		}
		if !p.consent {
			hidden = append(hidden, p.heads...)
		}
		s.projects = append(s.projects, p)
	}
	b, err := json.Marshal(struct {
		R      Report
		Hidden []Position
	}{*r, hidden})
	if err != nil {
		return nil, fault.As(fault.Internal, err)
	}
	r.ExportID = string(memory.Sum(b))[:2*idBytes]
	s.ID = r.ExportID
	return s, nil
}

// project notes one project's part of a snapshot. A question file that cannot be read
// is fault.Invalid.
func (e *Exporter) project(ctx context.Context, name string, r *Report) (p project, err error) {
	p.name = name
	set, _, err := e.cfg.Catalog.Questions(ctx, name)
	if err != nil {
		return p, err
	}
	p.consent = !set.NoExport
	streams, err := e.cfg.Log.Streams(ctx, name)
	if err != nil {
		return p, err
	}
	for _, st := range streams {
		head, err := e.cfg.Log.Head(ctx, name, st)
		if err != nil {
			return p, err
		}
		if head.Seq > 0 {
			p.heads = append(p.heads, Position{name, st, head.Seq, head.Hash})
		}
	}
	if !p.consent {
		return p, nil
	}
	r.Position = append(r.Position, p.heads...)
	erased, err := e.Erased(ctx, name)
	if err != nil {
		return p, err
	}
	if erased.Objects > 0 {
		r.Erasures = append(r.Erasures, erased)
	}
	if p.labels, err = shelfKeys(ctx, e.cfg.Log, name, eventlog.Labels); err != nil || len(p.labels) == 0 {
		return p, err
	}
	if e.cfg.Untrusted != nil {
		if p.ignored, err = e.cfg.Untrusted(ctx, name); err != nil {
			return p, err
		}
	}
	r.Labels = append(r.Labels, LabelsOf{name, len(p.labels), digestOf(p.labels), p.ignored})
	return p, nil
}

// Write writes the export into dir, which exists: the files, then the manifest, then
// the marker. A marker that stands there is taken away first. progress, which may be
// nil, is told the decisions that were written.
func (e *Exporter) Write(ctx context.Context, s *Snapshot, dir string, progress func(gates int)) (_ Report, err error) {
	defer fault.Wrap(&err, "export %s", s.ID)
	if err := os.Remove(filepath.Join(dir, Marker)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Report{}, fault.As(fault.Unavailable, err)
	}
	w := &writing{e: e, s: s, o: &s.options, report: s.report, progress: progress, mask: newMasker(s.redact), texts: newTexts()}
	w.report.Excluded, w.report.Absent = map[string]int{}, map[string]int{} // a second Write counts anew
	if err := w.open(dir); err != nil {
		w.abandon()
		return w.report, err
	}
	for i := range s.projects {
		if err := w.project(ctx, &s.projects[i]); err != nil {
			w.abandon()
			return w.report, err
		}
	}
	if err := w.finish(); err != nil {
		w.abandon()
		return w.report, err
	}
	b, err := indented(w.report)
	if err != nil {
		return w.report, err
	}
	if err := writeWhole(dir, Manifest, b); err != nil {
		return w.report, err
	}
	return w.report, writeWhole(dir, Marker, []byte(s.ID+"\n"))
}

// splitOf is the split of a question: 8 in 10 train, 1 val, 1 test.
func splitOf(project, query string) string {
	sum := sha256.Sum256([]byte(project + "\n" + query))
	switch n := binary.BigEndian.Uint32(sum[:]) % 10; {
	case n < 8:
		return "train"
	case n < 9:
		return "val"
	}
	return "test"
}

// families groups a project's streams by wording: generations of one question are
// rollouts over the same parts.
func families(heads []Position) (out [][]Position) {
	for _, h := range heads { // sorted: a wording's generations stand side by side
		if n := len(out); n > 0 && labels.Wording(out[n-1][0].Stream) == labels.Wording(h.Stream) {
			out[n-1] = append(out[n-1], h)
			continue
		}
		out = append(out, []Position{h})
	}
	return out
}
