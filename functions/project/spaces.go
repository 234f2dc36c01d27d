package project

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/space"
)

// Spaces are the embedding spaces that live beside each other.
type Spaces interface {
	State(ctx context.Context) (space.State, error)
	Update(ctx context.Context, change func(space.State) (space.State, error)) (space.State, error)
}

// fixed is one space for good.
type fixed string

func (s fixed) State(context.Context) (space.State, error) {
	var st space.State
	st.Serving.ID = string(s)
	return st, nil
}

func (s fixed) Update(ctx context.Context, _ func(space.State) (space.State, error)) (space.State, error) {
	return s.State(ctx)
}

// spaces are the ids of the live embedding spaces, the one that serves first: each has
// the vectors of every stream, or will have.
func (f *Function) spaces(ctx context.Context) ([]string, error) {
	st, err := f.cfg.Spaces.State(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, l := range st.Live() {
		out = append(out, l.ID)
	}
	return out, nil
}

// spacesOf are the spaces under which a stream's positions are kept: raw rows have no
// vectors.
func (f *Function) spacesOf(ctx context.Context, stream string) ([]string, error) {
	if stream == memory.AdmitStream {
		return []string{""}, nil
	}
	return f.spaces(ctx)
}

// turning is what is known between two looks at a space that is being filled.
type turning struct {
	sync.Mutex
	lags [2]string // the stream that was found behind last
}

// turn lets the filled space serve once its rows are complete, and removes what was
// dropped. It is asked at each event that may have completed them, and by the sweep.
func (f *Function) turn(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "embedding spaces")
	st, err := f.cfg.Spaces.State(ctx)
	if err != nil {
		return err
	}
	if err := f.dropSpaces(ctx, st); err != nil {
		return err
	}
	if st.Filling == nil || st.Hold && st.Filling.Recall != nil {
		return nil
	}
	f.turning.Lock() // two that compare would do the same work
	defer f.turning.Unlock()
	id := st.Filling.ID
	complete, err := f.complete(ctx, id, st.Serving.ID)
	if err != nil || !complete {
		return err
	}
	r := st.Filling.Recall
	if r == nil && !st.Filling.Served { // one that served before was compared then
		got, err := f.recall(ctx, id, st.Serving.ID)
		if err != nil {
			return err
		}
		r = &got
	}
	switched := false
	after, err := f.cfg.Spaces.Update(ctx, func(s space.State) (space.State, error) {
		if r != nil {
			s = s.Compared(id, *r)
		}
		s, switched = s.Switch(id, f.cfg.Now())
		return s, nil
	})
	if err != nil {
		return err
	}
	attrs := []any{slog.String("space", id), slog.Bool("serves", switched)}
	if r != nil {
		attrs = append(attrs, slog.Int("probes", r.Probes), slog.Float64("recall_at_10", r.At10), slog.Float64("cosine", r.Cosine), slog.Float64("cosine_before", r.Was))
	}
	f.cfg.Logger.InfoContext(ctx, "embedding space complete", append(attrs, slog.String("model", after.Serving.Name))...)
	return nil
}

// lagging applies, for one slice, the stream that keeps the filling space id from being
// complete.
func (f *Function) lagging(ctx context.Context, id string) ([]ce.Event, error) {
	st, err := f.cfg.Spaces.State(ctx)
	if err != nil || st.Filling == nil || st.Filling.ID != id {
		return nil, err
	}
	f.turning.Lock()
	at := f.turning.lags
	f.turning.Unlock()
	if at[0] == "" {
		return nil, nil
	}
	es, err := f.apply(ctx, at[0], at[1], id)
	if err == nil && len(es) > 0 {
		err = f.turn(ctx)
	}
	return append(es, f.goOn(id, len(es) > 0)...), err
}

// goOn is the event that applies more of a space, where something was applied and a
// stream is known to lag still.
func (f *Function) goOn(id string, moved bool) []ce.Event {
	f.turning.Lock()
	defer f.turning.Unlock()
	if !moved || f.turning.lags[0] == "" {
		return nil
	}
	return []ce.Event{event.New(event.ModelChanged, f.Name(), event.Model{Tenant: f.cfg.Tenant, At: f.cfg.Now().UTC().Format(time.RFC3339Nano), Space: id})}
}

var errLags = errors.New("a stream lags")

// complete reports whether the indexes have of space id all that they have of serving.
func (f *Function) complete(ctx context.Context, id, serving string) (bool, error) {
	lags := func(project, stream string) error {
		if stream == memory.AdmitStream {
			return nil
		}
		has, err := f.cfg.Graph.Applied(ctx, f.cfg.Tenant, project, stream, id)
		if err != nil {
			return err
		}
		needs, err := f.cfg.Graph.Applied(ctx, f.cfg.Tenant, project, stream, serving)
		if err == nil && has < needs {
			f.turning.lags, err = [2]string{project, stream}, errLags
		}
		return err
	}
	if l := f.turning.lags; l[0] != "" {
		if err := lags(l[0], l[1]); err != nil {
			return false, ignoreLag(err)
		}
	}
	f.turning.lags = [2]string{}
	err := f.each(ctx, lags)
	return err == nil, ignoreLag(err)
}

func ignoreLag(err error) error {
	if errors.Is(err, errLags) {
		return nil
	}
	return err
}

const (
	probes  = 200 // passages that are compared: a share of 0.95 is known to 0.015 (one standard error of 200 means of ten)
	nearest = 10
)

// recall compares the nearest nodes of stored passages in two spaces. No model is asked:
// both have the passages' vectors.
func (f *Function) recall(ctx context.Context, id, other string) (space.Recall, error) {
	out := space.Recall{Against: other}
	type part struct {
		project, stream string
		segments        int64
	}
	var parts []part
	var total int64
	err := f.each(ctx, func(project, stream string) error {
		if stream == memory.AdmitStream {
			return nil
		}
		n, err := f.cfg.Graph.Applied(ctx, f.cfg.Tenant, project, stream, id)
		parts, total = append(parts, part{project, stream, n}), total+n
		return err
	})
	if err != nil || total == 0 {
		return out, err
	}
	looks := min(probes, total) // segments, evenly over all
	each := int((probes + looks - 1) / looks)
	var overlap float64
	var cosines, was []float64
	var before int64 // segments of the parts before this one
	k := int64(0)
	for _, p := range parts {
		for ; k < looks && k*total/looks < before+p.segments; k++ {
			a, b, err := f.pairs(ctx, p.project, p.stream, k*total/looks-before+1, id, other, each, int(k))
			if err != nil {
				return out, err
			}
			for i := range a {
				began := time.Now()
				x, cx, err := f.near(ctx, id, p.project, a[i])
				if err != nil {
					return out, err
				}
				y, cy, err := f.near(ctx, other, p.project, b[i])
				if err != nil {
					return out, err
				}
				if len(y) == 0 {
					continue
				}
				found := 0
				for _, n := range y {
					if slices.Contains(x, n) {
						found++
					}
				}
				overlap += float64(found) / float64(len(y))
				cosines, was = append(cosines, cx), append(was, cy)
				out.Probes++
				select { // those who ask come first
				case <-ctx.Done():
					return out, ctx.Err()
				case <-time.After(min(turnRest*time.Since(began), maxRest)):
				}
			}
		}
		before += p.segments
	}
	if out.Probes > 0 {
		out.At10 = overlap / float64(out.Probes)
	}
	out.Cosine, out.Was = median(cosines), median(was)
	return out, nil
}

func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return xs[len(xs)/2]
}

// pairs are the vectors, in two spaces, of up to n passages of a segment, beginning with
// one that offset draws.
func (f *Function) pairs(ctx context.Context, project, stream string, seq int64, a, b string, n, offset int) (as, bs [][]float32, err error) {
	va, ok, err := f.cfg.Log.Vectors(ctx, project, a, stream, seq)
	if err != nil || !ok {
		return nil, nil, err
	}
	vb, ok, err := f.cfg.Log.Vectors(ctx, project, b, stream, seq)
	if err != nil || !ok {
		return nil, nil, err
	}
	at := make(map[memory.SHA]int, len(vb.Passages))
	for i, p := range vb.Passages {
		at[p] = i
	}
	for k := range len(va.Passages) {
		i := (k + offset) % len(va.Passages)
		if j, ok := at[va.Passages[i]]; ok && len(as) < n {
			as, bs = append(as, va.Row(i)), append(bs, vb.Row(j))
		}
	}
	return as, bs, nil
}

// near are the nodes nearest to a stored passage, and the cosine of the first; what has
// the very vector of the passage is left out.
func (f *Function) near(ctx context.Context, id, project string, v []float32) (nodes []memory.SHA, cosine float64, err error) {
	hits, err := f.cfg.Graph.SearchDense(ctx, id, v, index.Filter{Tenant: f.cfg.Tenant, Projects: []string{project}}, nearest+twins)
	if err != nil {
		return nil, 0, err
	}
	for _, h := range hits {
		if h.Score > 1-1e-6 || len(nodes) == nearest {
			continue
		}
		if len(nodes) == 0 {
			cosine = h.Score
		}
		nodes = append(nodes, h.Node)
	}
	return nodes, cosine, nil
}

// twins is about how many nodes have the words of one: each standing question that keeps
// a sentence has a node of it.
const twins = 16

// dropSpaces removes what nothing uses any more: vectors from the log, then from the
// index; the pointer forgets them last.
func (f *Function) dropSpaces(ctx context.Context, st space.State) error {
	for _, e := range st.Due(f.cfg.Now(), f.cfg.Grace) {
		projects, err := f.cfg.Log.Projects(ctx)
		if err != nil {
			return err
		}
		n := 0
		for _, p := range projects {
			k, err := f.cfg.Log.DropSpace(ctx, p, e.ID)
			if n += k; err != nil {
				return err
			}
		}
		if d, ok := f.cfg.Graph.(index.SpaceDropper); ok {
			if err := d.DropSpace(ctx, f.cfg.Tenant, e.ID); err != nil {
				return err
			}
		}
		if _, err := f.cfg.Spaces.Update(ctx, func(s space.State) (space.State, error) { return s.Dropped(e.ID), nil }); err != nil {
			return err
		}
		f.cfg.Logger.InfoContext(ctx, "embedding space removed", slog.String("space", e.ID), slog.String("model", e.Name), slog.Int("objects", n))
	}
	return nil
}

// turnsLeft counts what a sweep would do about spaces: a switch, and removals.
func (f *Function) turnsLeft(ctx context.Context) (int, error) {
	st, err := f.cfg.Spaces.State(ctx)
	if err != nil {
		return 0, err
	}
	n := len(st.Due(f.cfg.Now(), f.cfg.Grace))
	if st.Filling != nil && (!st.Hold || st.Filling.Recall == nil) {
		n++
	}
	return n, nil
}
