package query

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/report"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Reports is the answer of GET /memory/report.
type Reports struct {
	Streams []report.Stream `json:"streams"`
}

// Bounds of what a report lists.
const (
	maxPoints = 2000
	maxRuns   = 200
)

var runPrefix = regexp.MustCompile(`^[0-9a-f]{4,64}$`)

// report folds the gate records of the streams asked for: ?project=, ?query= for a
// question id or a stream, ?run= for one run by a prefix of its id, ?last=true for the
// last run of each, ?points= for the memory over the steps, ?runs= for the latest runs,
// ?human=true for figures that rest on people's labels alone. It reads the log, segment
// after segment.
func (f *Function) report(w http.ResponseWriter, r *http.Request) {
	projects, err := f.asked(r)
	var o report.Options
	if err == nil {
		o, err = reportOptions(r)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	v := r.URL.Query()
	out := Reports{Streams: []report.Stream{}}
	for _, p := range projects {
		streams, err := f.reportProject(r.Context(), p, v.Get("query"), v.Get("human") == "true", o)
		if err != nil {
			serve.WriteError(w, err)
			return
		}
		out.Streams = append(out.Streams, streams...)
	}
	if o.Run != "" {
		if err := oneRun(o.Run, out.Streams); err != nil {
			serve.WriteError(w, err)
			return
		}
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

func reportOptions(r *http.Request) (o report.Options, err error) {
	v := r.URL.Query()
	o.Run, o.Last = strings.ToLower(v.Get("run")), v.Get("last") == "true"
	if o.Run != "" && !runPrefix.MatchString(o.Run) {
		return o, fault.At(fault.Invalid, "run", "the first digits of a run's id, at least four; mem report --runs lists them", "%q is not the id of a run", o.Run)
	}
	if o.Run != "" && o.Last {
		return o, fault.At(fault.Invalid, "run, last", "ask for one of them", "a run and the last run are asked for")
	}
	for name, to := range map[string]struct {
		n    *int
		most int
	}{"points": {&o.Points, maxPoints}, "runs": {&o.Runs, maxRuns}} {
		s := v.Get(name)
		if s == "" {
			continue
		}
		if *to.n, err = strconv.Atoi(s); err != nil || *to.n < 0 || *to.n > to.most {
			return o, fault.At(fault.Invalid, name, "a number from 0 to "+strconv.Itoa(to.most), "%q", s)
		}
	}
	return o, nil
}

// oneRun refuses a prefix of several runs, or of none.
func oneRun(prefix string, streams []report.Stream) error {
	switch {
	case len(streams) == 0:
		return fault.At(fault.NotFound, "run "+prefix, "mem report --runs lists them", "no run has this id")
	case len(streams) > 1 || streams[0].Run == nil:
		return fault.At(fault.Invalid, "run "+prefix, "give more digits; mem report --runs lists them", "several runs begin so")
	}
	return nil
}

// reportProject reports on one project's streams; with a run asked for, on those alone
// that hold it.
func (f *Function) reportProject(ctx context.Context, project, only string, human bool, o report.Options) ([]report.Stream, error) {
	streams, err := f.cfg.Log.Streams(ctx, project)
	if err != nil {
		return nil, err
	}
	serving, err := f.servingOf(ctx, project)
	if err != nil {
		return nil, err
	}
	set, err := labels.Read(ctx, f.cfg.Log, project, func(l *memory.Label) bool { return !human || l.Kind == memory.LabelHuman })
	if err != nil {
		return nil, err
	}
	judged := map[labels.Judge]bool{}
	trusted := func(j labels.Judge) bool {
		ok, known := judged[j]
		if !known {
			a := set.Agreement(j, labels.DefaultBound)
			ok, judged[j] = a.Trusted, a.Trusted
		}
		return ok
	}
	var out []report.Stream
	for _, s := range streams {
		if only != "" && only != s && only != memory.QueryID(s) {
			continue
		}
		fold := report.New(s, set, o)
		for seg, err := range f.cfg.Log.Segments(ctx, project, s, 0) {
			if err != nil {
				return nil, err
			}
			for _, rec := range seg.Records {
				fold.Add(rec)
			}
		}
		if o.Run != "" && len(fold.Picked()) == 0 {
			continue
		}
		cut, err := f.parts(ctx, project, fold.Cut())
		if err != nil {
			return nil, err
		}
		one := fold.Close(cut, trusted)
		one.Project, one.Serving = project, slices.Contains(serving.streams, s)
		out = append(out, one)
	}
	return out, nil
}

// sourcesAtOnce is how many source records are read side by side.
const sourcesAtOnce = 8

// parts reads the chunk lists of parts; one that is gone is not there.
func (f *Function) parts(ctx context.Context, project string, sources []memory.SHA) (map[memory.SHA][]memory.Chunk, error) {
	lists := make([][]memory.Chunk, len(sources))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(sourcesAtOnce)
	for i, sha := range sources {
		g.Go(func() error {
			_, chunks, err := f.cfg.Log.Source(ctx, project, sha)
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			lists[i] = chunks
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := map[memory.SHA][]memory.Chunk{}
	for i, sha := range sources {
		if lists[i] != nil {
			out[sha] = lists[i]
		}
	}
	return out, nil
}
