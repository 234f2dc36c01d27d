package project

import (
	"context"
	"net/http"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Rebuilt is what a rebuild did.
type Rebuilt struct {
	Only        string     `json:"only,omitempty"`       // what alone was rebuilt
	IndexHash   memory.SHA `json:"index_hash,omitempty"` // where the graph was rebuilt
	Nodes       int64      `json:"nodes"`
	Passages    int64      `json:"passages"`
	Lessons     int64      `json:"lessons,omitempty"` // where they alone were rebuilt
	Segments    int64      `json:"segments"`          // applied by this rebuild, each once a space
	Resumed     int64      `json:"resumed,omitempty"` // that an interrupted one had applied
	PolicyCalls int64      `json:"policy_calls"`      // made meanwhile in this process: 0, as the log holds every decision
	ModelCalls  int64      `json:"model_calls"`       // likewise: the log holds every vector
}

// Rebuild builds every index anew from the log, beside the one that serves, and puts it in
// its place; then every page of the vault. progress is called with the segments done and
// their number.
func (f *Function) Rebuild(ctx context.Context, progress func(done, of int)) (Rebuilt, error) {
	return f.RebuildOnly(ctx, "", func(p RebuildProgress) {
		if progress != nil && p.Phase == phaseFill {
			progress(int(p.Done), int(p.Of))
		}
	})
}

// RebuildOnly is Rebuild of one part: an index by its name, or the vault. "" is all. While
// another rebuild is under way it is fault.Conflict; one that was interrupted goes on where
// it was.
func (f *Function) RebuildOnly(ctx context.Context, only string, progress func(RebuildProgress)) (out Rebuilt, err error) {
	what, err := f.partsOf(only)
	if err != nil {
		return Rebuilt{}, err
	}
	policy, model := f.calls()
	out.Only = only
	if out.Resumed, out.Segments, err = f.rebuild(ctx, what, nil, progress); err != nil {
		return Rebuilt{}, err
	}
	switch {
	case what.graph:
		var c index.Counts
		if out.IndexHash, c, err = f.cfg.Graph.Hash(ctx, f.cfg.Tenant); err != nil {
			return Rebuilt{}, err
		}
		out.Nodes, out.Passages = c.Nodes, c.Passages
	case what.lessons:
		if _, out.Lessons, err = f.cfg.Lessons.Hash(ctx, f.cfg.Tenant); err != nil {
			return Rebuilt{}, err
		}
	case what.lexical:
		if out.Passages, err = f.cfg.Lexical.Passages(ctx, f.cfg.Tenant); err != nil {
			return Rebuilt{}, err
		}
	}
	p, m := f.calls()
	out.PolicyCalls, out.ModelCalls = p-policy, m-model
	return out, nil
}

func (f *Function) calls() (policy, model int64) {
	if f.cfg.Calls == nil {
		return 0, 0
	}
	return f.cfg.Calls()
}

// scrubStream is under whose name an index keeps after which scrub the rows of a
// project were built, as its position. No question stream begins so.
const scrubStream = "_scrub"

// scrubs is the number of the project's last scrub, 0 before the first. One
// that is not done asks for nothing yet.
func (f *Function) scrubs(ctx context.Context, project string) (int64, error) {
	s, _, err := f.cfg.Log.LastScrub(ctx, project)
	if err != nil || !s.Done {
		return 0, err
	}
	return s.N, nil
}

// stale lists the projects whose rows are older than their last scrub: they may
// hold what was erased, and nobody may have said so.
func (f *Function) stale(ctx context.Context) ([]string, error) {
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range projects {
		n, err := f.scrubs(ctx, p)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			continue
		}
		g, err := f.cfg.Graph.Applied(ctx, f.cfg.Tenant, p, scrubStream, "")
		if err != nil {
			return nil, err
		}
		l, err := f.cfg.Lexical.Applied(ctx, f.cfg.Tenant, p, scrubStream, "")
		if err != nil {
			return nil, err
		}
		if min(g, l) < n {
			out = append(out, p)
		}
	}
	return out, nil
}

// builtIn notes in indexes that the rows of a project are no older than its scrub n.
func (f *Function) builtIn(ctx context.Context, in pair, project string, n int64) error {
	at, err := in.applied(ctx, f.cfg.Tenant, project, scrubStream, "")
	if err != nil {
		return err
	}
	for seq := at + 1; seq <= n; seq++ { // positions have no gap
		if err := in.apply(ctx, index.Batch{Tenant: f.cfg.Tenant, Project: project, Stream: scrubStream, Seq: seq}); err != nil {
			return err
		}
	}
	return nil
}

// rebuild is a rebuild of the tenant's indexes, and of the pages of the projects; of all
// where projects is nil. It gives how many segments an interrupted one had applied, and how
// many this one.
func (f *Function) rebuild(ctx context.Context, what parts, projects []string, progress func(RebuildProgress)) (resumed, applied int64, err error) {
	defer fault.Wrap(&err, "rebuild")
	err = f.alone(ctx, func(ctx context.Context) error {
		if what.graph || what.lexical {
			if resumed, applied, err = f.beside(ctx, what, progress); err != nil {
				return err
			}
			if err := f.after(ctx, what); err != nil {
				return err
			}
		}
		if what.lessons {
			if err := f.rebuildLessons(ctx, projects); err != nil {
				return err
			}
		}
		if what.vault {
			return f.rebuildVaults(ctx, projects, progress)
		}
		return nil
	})
	return resumed, applied, err
}

func (f *Function) rebuildVaults(ctx context.Context, projects []string, progress func(RebuildProgress)) (err error) {
	if projects == nil {
		if projects, err = f.cfg.Log.Projects(ctx); err != nil {
			return err
		}
	}
	for i, p := range projects {
		if progress != nil {
			progress(RebuildProgress{Phase: phaseVault, Done: int64(i), Of: int64(len(projects))})
		}
		if err := f.writeVault(ctx, p, true); err != nil && !f.beyond(ctx, p, err) {
			return err
		}
	}
	return nil
}

// erasedWait is how long rebuildErased waits for the end of another rebuild, erasedPause
// how often it looks.
const (
	erasedWait  = 30 * time.Second
	erasedPause = time.Second
)

// rebuildErased rebuilds because something was erased in the projects. Where another
// rebuild goes on for long it is fault.Unavailable, to be tried again.
func (f *Function) rebuildErased(ctx context.Context, projects []string) error {
	for begun := time.Now(); ; {
		_, _, err := f.rebuild(ctx, parts{true, true, true, true}, projects, nil)
		if !fault.Is(err, fault.Conflict) {
			return err
		}
		if time.Since(begun) > erasedWait {
			return fault.As(fault.Unavailable, err)
		}
		select {
		case <-ctx.Done():
			return fault.As(fault.Unavailable, context.Cause(ctx))
		case <-time.After(erasedPause):
		}
	}
}

// maintain gives each index time for what it does over many rows at once.
func (f *Function) maintain(ctx context.Context) error {
	for _, ix := range []any{f.cfg.Graph, f.cfg.Lexical} {
		if m, ok := ix.(index.Maintainer); ok {
			if err := m.Maintain(ctx, f.cfg.Tenant); err != nil {
				return err
			}
		}
	}
	return nil
}

// Verified is what a verification found.
type Verified struct {
	OK        bool                  `json:"ok"`
	LogHash   memory.SHA            `json:"log_hash"`
	IndexHash memory.SHA            `json:"index_hash"`
	Streams   map[string]memory.SHA `json:"streams"`
	Problems  []string              `json:"problems"`
	Counts    map[string]int        `json:"counts"`
	Lexical   int64                 `json:"lexical_passages"`
	Index     index.Counts          `json:"index"`
	Lessons   int                   `json:"lessons,omitempty"` // whose rows are what their records say, but for problems
	Rebuild   *Comparison           `json:"rebuild,omitempty"` // where it was asked for
}

// Verify checks the whole log and the rows of the indexes.
func (f *Function) Verify(ctx context.Context, progress func(done int)) (Verified, error) {
	rep, err := f.cfg.Log.Verify(ctx, progress)
	if err != nil {
		return Verified{}, err
	}
	v := Verified{LogHash: rep.LogHash, Streams: rep.Streams, Counts: rep.Counts, Problems: []string{}}
	for _, p := range rep.Problems {
		v.Problems = append(v.Problems, p.String())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if v.IndexHash, v.Index, err = f.cfg.Graph.Hash(ctx, f.cfg.Tenant); err != nil {
		return v, err
	}
	problems, err := f.cfg.Graph.Check(ctx, f.cfg.Tenant)
	if err != nil {
		return v, err
	}
	v.Problems = append(v.Problems, problems...)
	passages, err := f.cfg.Lexical.Passages(ctx, f.cfg.Tenant)
	if err != nil {
		return v, err
	}
	v.Lexical = passages
	err = f.eachLessons(ctx, func(project string) error {
		n, problems, err := f.cures.Verify(ctx, project)
		v.Lessons += n
		v.Problems = append(v.Problems, problems...)
		return err
	})
	if err != nil {
		return v, err
	}
	v.OK = len(v.Problems) == 0
	return v, nil
}

// Routes adds what operators and people call.
func (f *Function) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /memory/vault", f.getVault)
	mux.HandleFunc("POST /memory/vault/pages", f.postPages)
	mux.HandleFunc("POST /memory/vault/notes", f.postNotes)
	f.exportRoutes(mux)
	mux.HandleFunc("POST /memory/rebuild", func(w http.ResponseWriter, r *http.Request) {
		s := serve.NewProgress(w, r)
		out, err := f.RebuildOnly(r.Context(), r.URL.Query().Get("only"), func(p RebuildProgress) { s.Line(p) })
		s.End(out, err)
	})
	mux.HandleFunc("GET /memory/verify", func(w http.ResponseWriter, r *http.Request) {
		s := serve.NewProgress(w, r)
		out, err := f.Verify(r.Context(), func(done int) { s.Line(map[string]int{"done": done}) })
		if err == nil && r.URL.Query().Get("rebuild") == "true" {
			var c Comparison
			if c, err = f.Compare(r.Context(), func(p RebuildProgress) { s.Line(p) }); err == nil {
				out.Rebuild, out.OK = &c, out.OK && c.OK
			}
		}
		s.End(out, err)
	})
}
