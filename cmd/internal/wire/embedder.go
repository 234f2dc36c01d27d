package wire

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
	"github.com/mneme-ai/mneme/shared/llm/openaiapi"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/preflight"
)

// neededBy is the part of the configuration whose endpoints a function calls, and
// whose keys it must have. gate answers the doctor, which looks at all of them.
func neededBy(function string, c models.Config) models.Config {
	switch function {
	case "gate", "query":
	case "embed":
		c.Rerank = nil
	default: // learn and project call nobody
		return models.Config{}
	}
	return c
}

// nowhere is the server of a process that needs to know a space and embeds nothing.
type nowhere struct{}

func (nowhere) Vectors(context.Context, string, []string, int) ([][]float32, error) {
	return nil, fault.New(fault.Internal, "this process embeds nothing")
}

// textsOf is a configured embedding model. Its space follows from the
// configuration, so that nothing waits for a server to start.
func textsOf(e *models.Embed, src embedding.Source, count func(string) int) (*embedding.Embedder, error) {
	return embedding.New(src, embedding.Config{
		Model: e.Model, Revision: e.Revision, Dims: e.Dims, Scheme: e.Prefix, DenseWeight: e.DenseWeight, Floor: e.Floor,
		Count: count, WindowTokens: e.Window,
	})
}

// reranked adds the configured reranker to what query is given.
func (p *parts) reranked(c query.Config) (query.Config, error) {
	if p.models == nil || p.models.cfg.Rerank == nil {
		return c, nil
	}
	r := p.models.cfg.Rerank
	_, _, server, err := p.models.reranker(r)
	c.Reranker, c.RerankModel, c.RerankTop = llm.RestingReranker(server, llm.DefaultRest), r.Model, r.Top
	return c, err
}

// reranker is the server of the configured reranker.
func (m *modelServers) reranker(u *models.Rerank) (models.Endpoint, server, llm.Reranker, error) {
	e, _ := m.cfg.Endpoint(u.Endpoint)
	c, err := m.client(e)
	if err != nil {
		return e, nil, nil, err
	}
	r, ok := c.(llm.Reranker)
	if !ok {
		return e, c, nil, fault.At(fault.Invalid, "endpoint "+e.Name, "name an endpoint of kind vllm or openai-compatible", "it does not rerank")
	}
	return e, c, r, nil
}

// used names the endpoints that anything of the configuration calls.
func used(c models.Config) []string {
	var out []string
	for _, u := range c.Uses() {
		out = append(out, u.Endpoint)
	}
	if c.Embed != nil {
		out = append(out, c.Embed.Endpoint)
	}
	if c.Rerank != nil {
		out = append(out, c.Rerank.Endpoint)
	}
	return out
}

// sends is where texts go whatever decides.
func (m *modelServers) sends() (out []gate.Destination) {
	if u := m.cfg.Embed; u != nil {
		e, _ := m.cfg.Endpoint(u.Endpoint)
		out = append(out, gate.Destination{Use: "embed", Endpoint: e.Name, URL: e.URL, Model: u.Model})
	}
	if u := m.cfg.Rerank; u != nil {
		e, _ := m.cfg.Endpoint(u.Endpoint)
		out = append(out, gate.Destination{Use: "rerank", Endpoint: e.Name, URL: e.URL, Model: u.Model})
	}
	return out
}

// embedWindow is the window that a server of Ollama's form loads an embedding
// model with; 0 leaves it to the model.
func embedWindow(c models.Config, endpoint string) (window int) {
	if c.Embed != nil && c.Embed.Endpoint == endpoint {
		return c.Embed.Window
	}
	for _, e := range c.Embeds {
		if e.Endpoint == endpoint {
			window = max(window, e.Window)
		}
	}
	return window
}

// withRerank declares that the server reranks where the configuration says so by
// naming it: of any compatible server nobody else can.
func withRerank(o openaiapi.Config, c models.Config, endpoint string, has llm.Capabilities) openaiapi.Config {
	if c.Rerank != nil && c.Rerank.Endpoint == endpoint {
		has.Rerank = true
		o.Capabilities = &has
	}
	return o
}

// vectorLook is what was last found of the embedding model and the reranker. It
// is the doctor's alone: a server that does not embed stops no gate.
type vectorLook struct {
	mu      sync.Mutex
	at      time.Time
	results []preflight.Result
}

// lookVectors looks at both, unless a recent look stands.
func (m *modelServers) lookVectors(ctx context.Context) ([]preflight.Result, error) {
	l := &m.vectors
	l.mu.Lock()
	defer l.mu.Unlock()
	good := looksGood
	for _, r := range l.results {
		if !r.OK {
			good = lookAgain
		}
	}
	if !l.at.IsZero() && time.Since(l.at) < good {
		return l.results, nil
	}
	var results []preflight.Result
	for _, check := range []func(context.Context) (preflight.Result, error){m.checkEmbed, m.checkRerank} {
		r, err := check(ctx)
		if err != nil {
			return results, fault.As(fault.Unavailable, err)
		}
		if r.Server == "" {
			continue
		}
		results = append(results, r)
		m.logger.InfoContext(ctx, "model looked at", slog.String("use", r.Use), slog.String("model", r.Server), slog.Bool("ok", r.OK))
	}
	l.at, l.results = time.Now(), results
	return results, nil
}

func (m *modelServers) checkEmbed(ctx context.Context) (preflight.Result, error) {
	u := m.cfg.Embed
	if u == nil {
		return preflight.Result{}, nil
	}
	e, _ := m.cfg.Endpoint(u.Endpoint)
	c, err := m.client(e)
	if err != nil {
		return preflight.Result{}, err
	}
	texts, err := textsOf(u, c, m.count)
	if err != nil {
		return preflight.Result{}, err
	}
	return preflight.CheckEmbed(ctx, preflight.EmbedServer{
		Endpoint: e.Name, Kind: string(e.Kind), Model: u.Model, Source: c, Probe: c,
		Documents: texts, Queries: texts.Queries(), Longest: texts.Longest(), Count: m.count,
	})
}

func (m *modelServers) checkRerank(ctx context.Context) (preflight.Result, error) {
	u := m.cfg.Rerank
	if u == nil {
		return preflight.Result{}, nil
	}
	e, c, r, err := m.reranker(u)
	if err != nil {
		return preflight.Result{}, err
	}
	return preflight.CheckRerank(ctx, preflight.RerankServer{Endpoint: e.Name, Kind: string(e.Kind), Model: u.Model, Reranker: r, Probe: c})
}
