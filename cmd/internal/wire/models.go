package wire

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/ollama"
	"github.com/mneme-ai/mneme/shared/llm/openaiapi"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/models"
	"github.com/mneme-ai/mneme/shared/preflight"
)

// ModelsFromEnv is what is done by model calls: the file that MNEME_MODELS
// names, else the variables of models.FromEnv. Nothing set is the built-in policy
// and the table that ships with the program.
func ModelsFromEnv(getenv func(string) string) (models.Config, error) {
	file := getenv("MNEME_MODELS")
	if file == "" {
		return models.FromEnv(getenv)
	}
	b, err := readAtMost(file, models.MaxFileBytes)
	if err != nil {
		return models.Config{}, err
	}
	return models.Parse(file, b)
}

func readAtMost(file string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	return b, fault.As(fault.Invalid, err)
}

// gateSampling is the gate's: 0 is greedy, so that the same prompt gives the
// same reply as far as the server allows; a retry has another seed.
var gateSampling = memory.Sampling{Temperature: 0, TopP: 1, Seed: 7}

const (
	// replyTokens is the room for a reply (GRU-Mem, 2,048), at most a quarter of
	// the window.
	replyTokens = 2048
	// leastWindow holds instructions, the longest question, a memory of 1,024
	// tokens, a reply and a piece of a chunk.
	leastWindow = 4096
	// lookAgain is how long a look at a server that failed counts: a stream that is
	// asked for again and again must not ask the server each time.
	lookAgain = 30 * time.Second
	// looksGood is how long one that passed counts: a model may be replaced.
	looksGood = 10 * time.Minute
)

// server is one endpoint as a client.
type server interface {
	llm.Chatter
	llm.Prober
	embedding.Source
}

// modelServers are the configured endpoints and what was last found at them.
type modelServers struct {
	cfg     models.Config
	count   func(string) int
	logger  *slog.Logger
	clients map[string]server
	vectors vectorLook

	mu      sync.Mutex
	at      time.Time
	found   *gate.Models
	results []preflight.Result
	err     error
}

// newModelServers makes the clients; it sends nothing. nil where no model is
// configured.
func newModelServers(cfg models.Config, count func(string) int, logger *slog.Logger, getenv func(string) string) (*modelServers, error) {
	if cfg.Gate == nil && cfg.Embed == nil && cfg.Rerank == nil {
		return nil, nil
	}
	m := &modelServers{cfg: cfg, count: count, logger: logger, clients: map[string]server{}}
	for _, e := range cfg.Endpoints {
		if !uses(cfg, e.Name) {
			continue
		}
		c, err := newServer(cfg, e, endpoint.NewSecret(getenv(e.KeyEnv)))
		if err != nil {
			return nil, err
		}
		m.clients[e.Name] = c
	}
	return m, nil
}

func newServer(cfg models.Config, e models.Endpoint, key endpoint.Secret) (server, error) {
	auth := endpoint.Auth(e.Auth)
	kind := endpoint.OpenAI
	if e.Kind == models.Ollama {
		kind = endpoint.Ollama
	}
	if auth != endpoint.None && key.Empty() {
		return nil, fault.At(fault.Invalid, "endpoint "+e.Name, "set "+e.KeyEnv+", or auth: none", "it wants a key by %s, and %s is empty", auth, e.KeyEnv)
	}
	ep, err := endpoint.Open(endpoint.Config{Name: e.Name, URL: e.URL, Kind: kind, Auth: auth, Key: key, InFlight: e.InFlight})
	if err != nil {
		return nil, err
	}
	if kind == endpoint.Ollama {
		return ollama.New(ep, ollama.Config{EmbedWindow: embedWindow(cfg, e.Name)})
	}
	dialect := map[models.Kind]openaiapi.Dialect{models.VLLM: openaiapi.VLLM, models.OpenAI: openaiapi.OpenAI, models.OpenRouter: openaiapi.OpenRouter}[e.Kind]
	c, err := openaiapi.New(ep, openaiapi.Config{Dialect: dialect})
	if err != nil {
		return nil, err
	}
	return openaiapi.New(ep, withRerank(openaiapi.Config{Dialect: dialect}, cfg, e.Name, c.Capabilities()))
}

// look runs the preflight, unless a recent one stands.
func (m *modelServers) look(ctx context.Context) ([]preflight.Result, *gate.Models, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	good := looksGood
	if m.err != nil {
		good = lookAgain
	}
	if !m.at.IsZero() && time.Since(m.at) < good {
		return m.results, m.found, m.err
	}
	results, found, err := m.check(ctx)
	if ctx.Err() != nil {
		return results, nil, fault.As(fault.Unavailable, context.Cause(ctx))
	}
	m.at, m.results, m.found, m.err = time.Now(), results, found, err
	for _, r := range results {
		m.logger.InfoContext(ctx, "model looked at", slog.String("model", r.Server), slog.Bool("ok", r.OK), slog.Int("window", r.Window), slog.Float64("token_factor", r.TokenFactor))
	}
	return results, found, err
}

func (m *modelServers) check(ctx context.Context) (results []preflight.Result, _ *gate.Models, err error) {
	uses := []*models.Use{m.cfg.Gate}
	if m.cfg.Rewrite != nil {
		uses = append(uses, m.cfg.Rewrite)
	}
	found := &gate.Models{Cost: m.cfg.Cost}
	out := gru.Model{Policy: "model/full", Sampling: gateSampling, Checks: true, JSON: true, TokenFactor: math.Inf(1)}
	for _, u := range uses {
		e, _ := m.cfg.Endpoint(u.Endpoint)
		c := m.clients[u.Endpoint]
		r, err := preflight.Check(ctx, preflight.Server{Endpoint: e.Name, Kind: string(e.Kind), Model: u.Model, Adapter: u.Adapter, Chat: c, Probe: c}, preflight.Needs{Window: u.Window, Least: min(leastWindow, u.Window), Count: m.count})
		if err != nil {
			return results, nil, err
		}
		results = append(results, r)
		if bad := r.Err(); bad != nil {
			return results, nil, bad
		}
		out.JSON = out.JSON && u.Adapter == "" && c.Capabilities().Schema
		// The smaller window of the two, in our tokens, bounds a section; the smaller
		// factor notices a cut prompt at either.
		window := u.Window
		if r.Window > 0 {
			window = min(window, int(float64(r.Window-r.TemplateTokens)/max(r.TokenFactor, 1)))
		}
		if out.WindowTokens == 0 || window < out.WindowTokens {
			out.WindowTokens = window
		}
		if u == m.cfg.Gate {
			found.GateWindow = r.Ask
		} else {
			found.RewriteWindow = r.Ask
		}
		out.TemplateTokens = max(out.TemplateTokens, r.TemplateTokens)
		out.TokenFactor = min(out.TokenFactor, r.TokenFactor)
	}
	out.Name, out.Adapter = m.cfg.Gate.Model, m.cfg.Gate.Adapter
	found.Gate = m.clients[m.cfg.Gate.Endpoint]
	if m.cfg.Rewrite != nil {
		out.Policy, out.Rewrite = "model/split", m.cfg.Rewrite.Model
		found.Rewrite = m.clients[m.cfg.Rewrite.Endpoint]
	}
	out.ReplyTokens = min(replyTokens, out.WindowTokens/4)
	found.Model = out
	return results, found, nil
}

// models is gate.Config.Models.
func (m *modelServers) models(ctx context.Context, _ string) (*gate.Models, error) {
	_, found, err := m.look(ctx)
	return found, err
}

// doctor is gate.Config.Doctor: what was found, good or not.
func (m *modelServers) doctor(ctx context.Context) (results []preflight.Result, err error) {
	if m.cfg.Gate != nil {
		results, _, err = m.look(ctx)
	}
	more, verr := m.lookVectors(ctx)
	results, err = slices.Concat(results, more), cmp.Or(err, verr)
	if len(results) > 0 && ctx.Err() == nil {
		return results, nil
	}
	return results, err
}

// Close gives up model loads under way.
func (m *modelServers) Close() error {
	for _, c := range m.clients {
		if c, ok := c.(interface{ Close() }); ok {
			c.Close()
		}
	}
	return nil
}
