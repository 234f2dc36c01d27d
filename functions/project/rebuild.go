package project

import (
	"context"
	"net/http"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Rebuilt is what a rebuild did.
type Rebuilt struct {
	IndexHash   memory.SHA `json:"index_hash"`
	Nodes       int64      `json:"nodes"`
	Passages    int64      `json:"passages"`
	PolicyCalls int64      `json:"policy_calls"` // made meanwhile in this process: 0, as the log holds every decision
	ModelCalls  int64      `json:"model_calls"`  // likewise: the log holds every vector
}

// Rebuild drops every row of the tenant and fills both indexes again from the
// log. progress is called with the streams done and their number.
func (f *Function) Rebuild(ctx context.Context, progress func(done, of int)) (Rebuilt, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	policy, model := f.calls()
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return Rebuilt{}, err
	}
	if err := f.rebuild(ctx, projects, progress); err != nil {
		return Rebuilt{}, err
	}
	hash, counts, err := f.cfg.Graph.Hash(ctx, f.cfg.Tenant)
	p, m := f.calls()
	return Rebuilt{IndexHash: hash, Nodes: counts.Nodes, Passages: counts.Passages, PolicyCalls: p - policy, ModelCalls: m - model}, err
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

// built notes that the rows of a project are no older than its scrub n.
func (f *Function) built(ctx context.Context, project string, n int64) error {
	for seq := int64(1); seq <= n; seq++ { // positions have no gap
		b := index.Batch{Tenant: f.cfg.Tenant, Project: project, Stream: scrubStream, Seq: seq}
		if err := f.cfg.Graph.Apply(ctx, b); err != nil {
			return err
		}
		if err := f.cfg.Lexical.Apply(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (f *Function) rebuild(ctx context.Context, projects []string, progress func(done, of int)) (err error) {
	defer fault.Wrap(&err, "rebuild")
	var work [][2]string
	scrubs := map[string]int64{}
	for _, p := range projects {
		if scrubs[p], err = f.scrubs(ctx, p); err != nil {
			return err
		}
		streams, err := f.streams(ctx, p)
		if err != nil {
			return err
		}
		for _, s := range streams {
			work = append(work, [2]string{p, s})
		}
		if err := f.cfg.Graph.Wipe(ctx, f.cfg.Tenant, p); err != nil {
			return err
		}
		if err := f.cfg.Lexical.Wipe(ctx, f.cfg.Tenant, p); err != nil {
			return err
		}
	}
	for i, w := range work {
		if progress != nil {
			progress(i, len(work))
		}
		if _, err := f.catchUp(ctx, w[0], w[1]); err != nil {
			return err
		}
	}
	for _, p := range projects {
		if err := f.built(ctx, p, scrubs[p]); err != nil {
			return err
		}
		if err := f.writeVault(ctx, p, true); err != nil && !f.beyond(ctx, p, err) {
			return err
		}
	}
	return f.maintain(ctx)
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
		out, err := f.Rebuild(r.Context(), func(done, of int) { s.Line(map[string]int{"done": done, "of": of}) })
		s.End(out, err)
	})
	mux.HandleFunc("GET /memory/verify", func(w http.ResponseWriter, r *http.Request) {
		s := serve.NewProgress(w, r)
		out, err := f.Verify(r.Context(), func(done int) { s.Line(map[string]int{"done": done}) })
		s.End(out, err)
	})
}
