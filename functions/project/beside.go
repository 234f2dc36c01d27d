package project

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/projection"
)

// This file builds indexes beside those that serve. The serving ones are asked and fed as
// ever; the staged ones are filled from the log, at last once more while nothing is
// applied, checked, and switched. There is one rebuild of a tenant at a time, by a lease in
// the log's bucket: its staged indexes have one owner.

// pair are a graph and words that are filled together; either may be missing.
type pair struct {
	graph   index.Graph
	lexical index.Lexical
}

// applied is the lowest position of the two.
func (p pair) applied(ctx context.Context, tenant, project, stream, space string) (seq int64, err error) {
	seq = -1
	if p.graph != nil {
		if seq, err = p.graph.Applied(ctx, tenant, project, stream, space); err != nil {
			return 0, err
		}
	}
	if p.lexical != nil {
		l, err := p.lexical.Applied(ctx, tenant, project, stream, space)
		if err != nil {
			return 0, err
		}
		if seq < 0 || l < seq {
			seq = l
		}
	}
	return max(seq, 0), nil
}

func (p pair) apply(ctx context.Context, b index.Batch) error {
	if p.graph != nil {
		if err := p.graph.Apply(ctx, b); err != nil {
			return err
		}
	}
	if p.lexical != nil {
		return p.lexical.Apply(ctx, b)
	}
	return nil
}

// Parts of a rebuild that --only names beside the indexes' own names.
const (
	partVault   = "vault"
	partLessons = "lessons"
)

// parts are what a rebuild is to do.
type parts struct{ graph, lexical, vault, lessons bool }

// nameOf is how people call an index.
func nameOf(ix any, otherwise string) string {
	if n, ok := ix.(index.Named); ok {
		return n.Name()
	}
	return otherwise
}

// partsOf reads --only; "" is all.
func (f *Function) partsOf(only string) (parts, error) {
	graph, lexical := nameOf(f.cfg.Graph, "graph"), nameOf(f.cfg.Lexical, "lexical")
	switch only {
	case "":
		return parts{true, true, true, true}, nil
	case graph:
		return parts{graph: true}, nil
	case lexical:
		return parts{lexical: true}, nil
	case partVault:
		return parts{vault: true}, nil
	case partLessons:
		if f.cures != nil {
			return parts{lessons: true}, nil
		}
	}
	names := []string{graph, lexical}
	if f.cures != nil {
		names = append(names, partLessons)
	}
	return parts{}, fault.At(fault.Invalid, "only", "name one of these, or none for all", "%q is not configured here: %s and %s are", only, strings.Join(names, ", "), partVault)
}

// Phases of a rebuild.
const (
	phaseFill   = "fill"
	phaseCheck  = "check"
	phaseSwitch = "switch"
	phaseVault  = "vault"
)

// RebuildProgress says how far a rebuild is. Segments are counted once a space.
type RebuildProgress struct {
	Phase       string  `json:"phase"` // fill, check, switch, vault
	Done        int64   `json:"done"`
	Of          int64   `json:"of"`
	PerSecond   float64 `json:"per_second,omitempty"`
	LeftSeconds int64   `json:"left_seconds,omitempty"`
}

// task is one stream in one space.
type task struct {
	project, stream, space string
	head                   int64 // of the log, when it was looked up
	at                     int64 // of the staged indexes, likewise
}

// build is a rebuild under way.
type build struct {
	f       *Function
	to      pair
	graph   index.StagedGraph // nil where it is not rebuilt
	lexical index.StagedLexical
	// erased is for each project the scrub after which what is staged was read.
	erased  map[string]int64
	resumed int64        // segments that a former process had applied
	live    []string     // spaces when it began
	serving string       // the space that serves
	waiting atomic.Int64 // streams that wait for vectors of it

	mu sync.Mutex
	at map[[3]string]int64 // positions by project, stream, space, once they were asked for

	report  func(RebuildProgress)
	begun   time.Time
	of      int64
	done    atomic.Int64 // of this process
	said    time.Time
	applied atomic.Int64
}

// lease of the tenant's rebuild: a dead owner's is taken over after rebuildLease, one of
// the same data folder at once.
const (
	rebuildLease = time.Minute
	rebuildName  = "_rebuild/index"
)

// alone runs fn while this process holds the lease; fault.Conflict where another does.
func (f *Function) alone(ctx context.Context, fn func(context.Context) error) (err error) {
	lease, err := f.cfg.Log.Acquire(ctx, f.cfg.Tenant+"/"+rebuildName, rebuildLease)
	if errors.Is(err, eventlog.ErrHeld) {
		who := "another process"
		if e, ok := errors.AsType[*fault.Error](err); ok {
			who = e.Msg
		}
		return fault.At(fault.Conflict, "", "wait for its end; one that was killed on another machine is free after a minute", "another one is under way, %s", who)
	}
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		t := time.NewTicker(rebuildLease / 4)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if err := lease.Renew(ctx); errors.Is(err, eventlog.ErrHeld) {
					stop(fault.At(fault.Conflict, "", "run it again", "it was taken over by another process"))
					return
				}
			}
		}
	}()
	defer func() {
		stop(nil)
		<-renewed
		free, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if rerr := lease.Release(free); err == nil {
			err = rerr
		}
	}()
	if err := fn(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			return cause
		}
		return err
	}
	return nil
}

// stage opens what is to be rebuilt. anew drops what a former process left.
func (f *Function) stage(ctx context.Context, what parts, anew bool) (_ *build, err error) {
	b := &build{f: f, erased: map[string]int64{}, begun: time.Now(), report: func(RebuildProgress) {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	for range 2 {
		if what.graph {
			s, ok := f.cfg.Graph.(index.GraphStager)
			if !ok {
				return nil, fault.New(fault.Internal, "beside %T none can be built", f.cfg.Graph)
			}
			if b.graph, err = s.Stage(ctx, f.cfg.Tenant); err != nil {
				return nil, err
			}
			b.to.graph = b.graph
		}
		if what.lexical {
			s, ok := f.cfg.Lexical.(index.LexicalStager)
			if !ok {
				return nil, fault.New(fault.Internal, "beside %T none can be built", f.cfg.Lexical)
			}
			if b.lexical, err = s.Stage(ctx, f.cfg.Tenant); err != nil {
				return nil, err
			}
			b.to.lexical = b.lexical
		}
		usable, err := b.usable(ctx)
		if err != nil {
			return nil, err
		}
		if usable && !(anew && b.resumed > 0) {
			break
		}
		// It may hold what was erased since, and must not come to serve.
		if err := b.drop(ctx); err != nil {
			return nil, err
		}
	}
	for p, n := range b.erased {
		if err := f.builtIn(ctx, b.to, p, n); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// usable reports whether what a former process staged was read after each project's last
// scrub. An empty one always is.
func (b *build) usable(ctx context.Context) (bool, error) {
	tasks, err := b.tasks(ctx)
	if err != nil {
		return false, err
	}
	b.resumed = 0
	for _, t := range tasks {
		b.resumed += min(t.at, t.head)
	}
	projects, err := b.f.cfg.Log.Projects(ctx)
	if err != nil {
		return false, err
	}
	clear(b.erased)
	same := true
	for _, p := range projects {
		n, err := b.f.scrubs(ctx, p)
		if err != nil {
			return false, err
		}
		b.erased[p] = n
		at, err := b.to.applied(ctx, b.f.cfg.Tenant, p, scrubStream, "")
		if err != nil {
			return false, err
		}
		same = same && at == n
	}
	return same || b.resumed == 0, nil
}

// current reports whether nothing was erased since the log was read, and no space dropped.
func (b *build) current(ctx context.Context) (bool, error) {
	spaces, err := b.f.spaces(ctx)
	if err != nil {
		return false, err
	}
	for _, s := range b.live {
		if !slices.Contains(spaces, s) {
			return false, nil
		}
	}
	projects, err := b.f.cfg.Log.Projects(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range projects {
		n, err := b.f.scrubs(ctx, p)
		if err != nil || n != b.erased[p] {
			return false, err
		}
	}
	return true, nil
}

func (b *build) close() (err error) {
	if b.graph != nil {
		err = b.graph.Close()
	}
	if b.lexical != nil {
		err = errors.Join(err, b.lexical.Close())
	}
	return err
}

func (b *build) drop(ctx context.Context) (err error) {
	b.at, b.live = nil, nil
	if b.graph != nil {
		err = b.graph.Drop(ctx)
	}
	if b.lexical != nil {
		err = errors.Join(err, b.lexical.Drop(ctx))
	}
	return err
}

// tasks lists every stream of the tenant in every live space.
func (b *build) tasks(ctx context.Context) (out []task, err error) {
	spaces, err := b.f.spaces(ctx)
	if err != nil {
		return nil, err
	}
	b.serving = spaces[0]
	if b.live == nil {
		b.live = spaces
	}
	err = b.f.each(ctx, func(project, stream string) error {
		head, err := b.f.cfg.Log.Head(ctx, project, stream)
		if err != nil {
			return err
		}
		in := spaces
		if stream == memory.AdmitStream {
			in = []string{""}
		}
		for _, space := range in {
			at, err := b.position(ctx, project, stream, space)
			if err != nil {
				return err
			}
			out = append(out, task{project, stream, space, head.Seq, at})
		}
		return nil
	})
	return out, err
}

// position is how far a stream is in a space. Nobody else writes to what is staged, so
// that each is asked for once.
func (b *build) position(ctx context.Context, project, stream, space string) (int64, error) {
	b.mu.Lock()
	at, ok := b.at[[3]string{project, stream, space}]
	b.mu.Unlock()
	if ok {
		return at, nil
	}
	at, err := b.to.applied(ctx, b.f.cfg.Tenant, project, stream, space)
	if err == nil {
		b.moved(project, stream, space, at)
	}
	return at, err
}

func (b *build) moved(project, stream, space string, to int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at == nil {
		b.at = map[[3]string]int64{}
	}
	b.at[[3]string{project, stream, space}] = to
}

// fillers is how many streams are read and applied at once.
const fillers = 4

// fill applies what the log holds beyond the staged positions and gives how many segments
// that were.
func (b *build) fill(ctx context.Context) (n int64, err error) {
	tasks, err := b.tasks(ctx)
	if err != nil {
		return 0, err
	}
	b.of, b.said = 0, time.Time{}
	b.done.Store(0)
	b.waiting.Store(0)
	for _, t := range tasks {
		b.of += max(t.head-t.at, 0)
	}
	b.begun = time.Now()
	before := b.applied.Load()
	b.say(phaseFill)
	var g errgroup.Group
	g.SetLimit(fillers)
	gctx, stop := context.WithCancel(ctx)
	defer stop()
	ticks := make(chan struct{}, 1)
	said := make(chan struct{})
	go func() { // one voice for all
		defer close(said)
		for range ticks {
			if time.Since(b.said) > 100*time.Millisecond {
				b.say(phaseFill)
			}
		}
	}()
	for _, t := range tasks {
		if t.at >= t.head {
			continue
		}
		g.Go(func() error {
			err := b.fillStream(gctx, t, ticks)
			if err != nil {
				stop()
			}
			return err
		})
	}
	err = g.Wait()
	close(ticks)
	<-said
	if err == nil {
		b.say(phaseFill)
	}
	return b.applied.Load() - before, err
}

func (b *build) fillStream(ctx context.Context, t task, ticks chan<- struct{}) (err error) {
	defer fault.Wrap(&err, "project %s/%s", t.project, t.stream)
	var gone *projection.Gone // of a stream in which something was erased
	for seg, err := range b.f.cfg.Log.Segments(ctx, t.project, t.stream, t.at) {
		if err != nil {
			return err
		}
		if gone == nil && projection.Tombs(&seg) {
			if gone, err = b.f.gone(ctx, t.project, t.stream); err != nil {
				return err
			}
		}
		batch, ready, err := b.f.batch(ctx, &seg, gone, t.space)
		if err != nil {
			return err
		}
		if !ready {
			if t.space == b.serving {
				b.waiting.Add(1)
			}
			return nil // its vectors are not written yet
		}
		if err := b.to.apply(ctx, batch); err != nil {
			return err
		}
		b.moved(t.project, t.stream, t.space, batch.Seq)
		b.applied.Add(1)
		b.done.Add(1)
		select {
		case ticks <- struct{}{}:
		default:
		}
	}
	return nil
}

// say reports how far the phase is.
func (b *build) say(phase string) {
	b.said = time.Now()
	p := RebuildProgress{Phase: phase}
	if phase == phaseFill || phase == phaseVault {
		p.Done, p.Of = min(b.done.Load(), b.of), b.of
	}
	if phase == phaseFill && p.Of == 0 {
		return // nothing came meanwhile
	}
	if took := time.Since(b.begun).Seconds(); took > 0.5 && p.Done > 0 {
		p.PerSecond = float64(p.Done) / took
		p.LeftSeconds = int64(float64(p.Of-p.Done)/p.PerSecond + 0.5)
	}
	b.report(p)
}

// A pass that applied few segments is the last before the switch: what comes meanwhile is
// applied while the function applies nothing else.
const (
	fewSegments = 20
	maxPasses   = 10
)

// catchUp fills until hardly anything is left.
func (b *build) catchUp(ctx context.Context) error {
	for pass := 1; ; pass++ {
		n, err := b.fill(ctx)
		if err != nil {
			return err
		}
		if pass == 1 {
			b.say(phaseCheck)
			if m, ok := b.to.graph.(index.Maintainer); ok {
				if err := m.Maintain(ctx, b.f.cfg.Tenant); err != nil {
					return err
				}
			}
		}
		if n <= fewSegments || pass == maxPasses {
			return nil
		}
	}
}

// check refuses a staged pair that is not sound: an edge to nothing, a passage without its
// vector, words that are not those of the graph. While a stream waits for vectors what
// rests on it has nothing to rest on yet, and only the rows themselves can be told.
func (b *build) check(ctx context.Context) error {
	if b.waiting.Load() > 0 {
		return nil
	}
	tenant := b.f.cfg.Tenant
	if b.graph != nil {
		problems, err := b.graph.Check(ctx, tenant)
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			return fault.At(fault.Corrupt, "rebuild", "run `mem verify`, which names all that is wrong in the log; the index that serves is as it was",
				"what the log gives has %d faults, the first: %s", len(problems), strings.Join(problems[:min(3, len(problems))], "; "))
		}
	}
	if c, ok := b.to.graph.(index.Searchable); ok && b.lexical != nil {
		want, err := c.Searchable(ctx, tenant, b.serving)
		if err != nil {
			return err
		}
		have, err := b.lexical.Passages(ctx, tenant)
		if err != nil {
			return err
		}
		if want != have {
			return fault.At(fault.Corrupt, "rebuild", "run it again with --only for each index; the indexes that serve are as they were",
				"%s has %d passages to be found, %s has %d", nameOf(b.f.cfg.Graph, "graph"), want, nameOf(b.f.cfg.Lexical, "lexical"), have)
		}
	}
	return nil
}

// finish applies the rest and switches, while nothing else is applied here. It reports
// false where something was erased meanwhile: what is staged may hold it.
func (b *build) finish(ctx context.Context) (bool, error) {
	f := b.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := b.fill(ctx); err != nil {
		return false, err
	}
	if ok, err := b.current(ctx); err != nil || !ok {
		return false, err
	}
	b.say(phaseSwitch)
	if b.graph != nil {
		if err := b.graph.Switch(ctx); err != nil {
			return false, err
		}
	}
	if b.lexical != nil {
		if err := b.lexical.Switch(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}

// maxRestarts bounds how often a rebuild begins anew because something was erased while
// it read.
const maxRestarts = 5

// beside rebuilds what is named beside what serves and switches.
func (f *Function) beside(ctx context.Context, what parts, report func(RebuildProgress)) (resumed, applied int64, err error) {
	for range maxRestarts {
		b, err := f.stage(ctx, what, false)
		if err != nil {
			return 0, 0, err
		}
		if report != nil {
			b.report = report
		}
		if resumed = b.resumed; resumed > 0 {
			f.cfg.Logger.InfoContext(ctx, "a rebuild goes on where it was interrupted", slog.Int64("segments", resumed))
		}
		err = b.catchUp(ctx)
		if err == nil {
			err = b.check(ctx)
		}
		done := false
		if err == nil {
			done, err = b.finish(ctx)
		}
		applied = b.applied.Load()
		if err == nil && !done {
			err = b.drop(ctx)
		}
		if cerr := b.close(); err == nil {
			err = cerr
		}
		if err != nil || done {
			return resumed, applied, err
		}
	}
	return 0, 0, fault.At(fault.Unavailable, "rebuild", "run it again when nothing is being erased", "the log was changed %d times while it was read", maxRestarts)
}

// after applies to the serving indexes what another process applied to the old ones at the
// moment of the switch.
func (f *Function) after(ctx context.Context, what parts) error {
	b := &build{f: f, report: func(RebuildProgress) {}}
	if what.graph {
		b.to.graph = f.cfg.Graph
	}
	if what.lexical {
		b.to.lexical = f.cfg.Lexical
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := b.fill(ctx)
	return err
}

// Comparison is what a rebuild beside the serving indexes showed.
type Comparison struct {
	OK              bool         `json:"ok"`
	IndexHash       memory.SHA   `json:"index_hash"` // of the one built beside
	Index           index.Counts `json:"index"`
	LexicalPassages int64        `json:"lexical_passages"`
	Pages           int          `json:"pages"` // of the vault, compared byte by byte
	Segments        int64        `json:"segments"`
	PolicyCalls     int64        `json:"policy_calls"`
	ModelCalls      int64        `json:"model_calls"`
	Differences     []string     `json:"differences"`
	Omitted         int          `json:"omitted,omitempty"` // differences that are not listed
}

// maxDifferences bounds the list.
const maxDifferences = 100

func (c *Comparison) differs(format string, args ...any) {
	if len(c.Differences) == maxDifferences {
		c.Omitted++
		return
	}
	c.Differences = append(c.Differences, fmt.Sprintf(format, args...))
}

// Compare builds every index anew beside the one that serves, from the first segment on,
// compares the two and drops the new one. Pages of the vault are rendered anew and compared
// byte by byte.
func (f *Function) Compare(ctx context.Context, progress func(RebuildProgress)) (c Comparison, err error) {
	defer fault.Wrap(&err, "compare with a rebuild")
	c.Differences = []string{}
	policy, model := f.calls()
	err = f.alone(ctx, func(ctx context.Context) (err error) {
		b, err := f.stage(ctx, parts{graph: true, lexical: true}, true)
		if err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, b.drop(context.WithoutCancel(ctx)), b.close())
		}()
		if progress != nil {
			b.report = progress
		}
		if err := b.catchUp(ctx); err != nil {
			return err
		}
		if err := f.compareIndexes(ctx, b, &c); err != nil {
			return err
		}
		c.Segments = b.applied.Load()
		return f.compareVaults(ctx, b, &c)
	})
	if err != nil {
		return c, err
	}
	p, m := f.calls()
	c.PolicyCalls, c.ModelCalls = p-policy, m-model
	c.OK = len(c.Differences) == 0
	return c, nil
}

// compareIndexes brings both to the same segment first, and keeps them there.
func (f *Function) compareIndexes(ctx context.Context, b *build, c *Comparison) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	serving := &build{f: f, to: pair{f.cfg.Graph, f.cfg.Lexical}, report: func(RebuildProgress) {}}
	if _, err := serving.fill(ctx); err != nil {
		return err
	}
	if _, err := b.fill(ctx); err != nil {
		return err
	}
	b.say(phaseCheck)
	graph, lexical := nameOf(f.cfg.Graph, "graph"), nameOf(f.cfg.Lexical, "lexical")
	hash, counts, err := f.cfg.Graph.Hash(ctx, f.cfg.Tenant)
	if err != nil {
		return err
	}
	if c.IndexHash, c.Index, err = b.graph.Hash(ctx, f.cfg.Tenant); err != nil {
		return err
	}
	if hash != c.IndexHash {
		c.differs("index_hash of %s is %s, rebuilt %s", graph, hash, c.IndexHash)
		if err := f.compareRows(ctx, b, c); err != nil {
			return err
		}
	}
	if counts != c.Index {
		c.differs("%s holds %+v, rebuilt %+v", graph, counts, c.Index)
	}
	have, err := f.cfg.Lexical.Passages(ctx, f.cfg.Tenant)
	if err != nil {
		return err
	}
	if c.LexicalPassages, err = b.lexical.Passages(ctx, f.cfg.Tenant); err != nil {
		return err
	}
	if have != c.LexicalPassages {
		c.differs("%s holds %d passages, rebuilt %d", lexical, have, c.LexicalPassages)
	}
	return nil
}

// compareRows names the nodes that differ.
func (f *Function) compareRows(ctx context.Context, b *build, c *Comparison) error {
	a, ok := f.cfg.Graph.(index.Rower)
	z, also := b.to.graph.(index.Rower)
	if !ok || !also {
		return nil
	}
	// The serving rows are held, 150 bytes each: two cursors at once would need two
	// snapshots of one pool.
	serving := map[memory.SHA]index.Row{}
	for row, err := range a.Rows(ctx, f.cfg.Tenant) {
		if err != nil {
			return err
		}
		serving[row.ID] = row
	}
	at := func(r index.Row) string {
		return fmt.Sprintf("%s/%s: node %s (%s)", r.Project, r.Stream, r.ID, r.Level)
	}
	for row, err := range z.Rows(ctx, f.cfg.Tenant) {
		if err != nil {
			return err
		}
		is, ok := serving[row.ID]
		delete(serving, row.ID)
		switch {
		case !ok:
			c.differs("%s is missing", at(row))
		case is != row:
			c.differs("%s differs in its spans, edges or passages", at(row))
		}
	}
	left := make([]index.Row, 0, len(serving))
	for _, row := range serving {
		left = append(left, row)
	}
	slices.SortFunc(left, func(x, y index.Row) int { return strings.Compare(string(x.ID), string(y.ID)) })
	for _, row := range left {
		c.differs("%s is not in the log", at(row))
	}
	return nil
}
