package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/cost"
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
//
// MNEME_ALLOW_URLS lets requests name URLs of this machine beside them.
func ModelsFromEnv(getenv func(string) string) (cfg models.Config, err error) {
	if file := getenv("MNEME_MODELS"); file == "" {
		cfg, err = models.FromEnv(getenv)
	} else if b, e := readAtMost(file, models.MaxFileBytes); e != nil {
		err = e
	} else {
		cfg, err = models.Parse(file, b, slices.Concat(gru.PromptVersions(false), gru.PromptVersions(true))...)
	}
	switch v := getenv("MNEME_ALLOW_URLS"); v {
	case "1":
		cfg.FreeURLs = true
	case "", "0":
	default:
		err = errors.Join(err, fault.At(fault.Invalid, "MNEME_ALLOW_URLS", "1 allows them", "%q is neither 1 nor 0", v))
	}
	return cfg, err
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
	// lookPatience is how long others wait for a look under way, from when it began:
	// a model that is loaded answers it in a second or two, and a server that is silent must
	// not hold what gates other projects. They come again after lookBusy, which is
	// within the broker's patience with a look of 280 s.
	lookPatience = 3 * time.Second
	lookBusy     = 30 * time.Second
	// maxLooks and maxFree bound what requests can have kept: any name of a model,
	// any port of this machine.
	maxLooks = 256
	maxFree  = 16
)

// follow makes live what p.models is now, and lets it follow the file that MNEME_MODELS
// names; variables do not change while a process runs.
func (p *parts) follow(cfg models.Config, getenv func(string) string) {
	p.live.cfg, p.live.cur, p.live.log = cfg, p.models, p.logger
	if getenv == nil || getenv("MNEME_MODELS") == "" {
		return
	}
	p.live.read = func() (models.Config, error) { return ModelsFromEnv(getenv) }
	p.live.open = func(c models.Config) (*modelServers, error) {
		return newModelServers(c, p.count, p.logger, getenv)
	}
}

// server is one endpoint as a client.
type server interface {
	llm.Chatter
	llm.Prober
	embedding.Source
}

// served is one model at one endpoint.
type served struct {
	models.Endpoint
	models.Use
}

// key tells apart what is looked at: a window is asked for in the calls.
func (s served) key() string {
	return strings.Join([]string{s.Name, s.URL, s.Model, s.Adapter, strconv.Itoa(s.Window)}, "\n")
}

// modelServers are the configured endpoints and what was last found of each
// model that decides. One that does not answer holds up nobody but those whom it
// decides for.
type modelServers struct {
	cfg    models.Config
	count  func(string) int
	logger *slog.Logger
	getenv func(string) string
	tune   []func(*endpoint.Config)

	mu      sync.Mutex
	clients map[string]server // by name of the endpoint
	looks   map[string]*look  // by served.key

	vectors vectorLook
}

// look is what was last found of one model.
type look struct {
	turn   chan struct{} // one looks at a time; the others wait, and see what it saw
	at     time.Time     // zero: not looked at
	result preflight.Result
	doubt  bool      // a run met what the look did not see
	began  time.Time // of the look under way, else zero; guarded by modelServers.mu
}

// newModelServers makes the clients of all models that are used; it sends nothing.
// nil where no model can be asked. tune changes deadlines and pauses, which tests
// have shorter.
func newModelServers(cfg models.Config, count func(string) int, logger *slog.Logger, getenv func(string) string, tune ...func(*endpoint.Config)) (*modelServers, error) {
	if len(cfg.Endpoints) == 0 && !cfg.FreeURLs {
		return nil, nil
	}
	m := &modelServers{cfg: cfg, count: count, logger: logger, getenv: getenv, tune: tune, clients: map[string]server{}, looks: map[string]*look{}}
	for _, name := range used(cfg) {
		e, _ := cfg.Endpoint(name)
		if _, err := m.client(e); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// client is the client of an endpoint, made when it is first asked for: one that
// decides nowhere may lack its key.
func (m *modelServers) client(e models.Endpoint) (server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.clients[e.Name]; ok {
		return c, nil
	}
	_, configured := m.cfg.Endpoint(e.Name)
	var key endpoint.Secret
	if configured {
		key = endpoint.NewSecret(m.getenv(e.KeyEnv))
	} else if len(m.clients) >= len(m.cfg.Endpoints)+maxFree {
		for name := range m.clients { // any: a run that uses it keeps it
			if _, ok := m.cfg.Endpoint(name); !ok {
				delete(m.clients, name)
				break
			}
		}
	}
	c, err := newServer(m.cfg, e, key, !configured, m.tune...)
	if err != nil {
		return nil, err
	}
	m.clients[e.Name] = c
	return c, nil
}

// newServer is the client of an endpoint; a free one is of this machine and has
// no key.
func newServer(cfg models.Config, e models.Endpoint, key endpoint.Secret, free bool, tune ...func(*endpoint.Config)) (server, error) {
	kind := endpoint.OpenAI
	if e.Kind == models.Ollama {
		kind = endpoint.Ollama
	}
	if e.Auth != endpoint.None && key.Empty() {
		return nil, fault.At(fault.Invalid, "endpoint "+e.Name, "set "+e.KeyEnv+", or auth: none", "it wants a key by %s, and %s is empty", e.Auth, e.KeyEnv)
	}
	c := endpoint.Config{Name: e.Name, URL: e.URL, Kind: kind, Auth: e.Auth, Key: key, Loopback: free, InFlight: e.InFlight, Chat: e.Timeout}
	for _, f := range tune {
		f(&c)
	}
	ep, err := endpoint.Open(c)
	if err != nil {
		return nil, err
	}
	if kind == endpoint.Ollama {
		return ollama.New(ep, ollama.Config{EmbedWindow: embedWindow(cfg, e.Name)})
	}
	dialect := map[models.Kind]openaiapi.Dialect{models.VLLM: openaiapi.VLLM, models.OpenAI: openaiapi.OpenAI, models.OpenRouter: openaiapi.OpenRouter}[e.Kind]
	o, err := openaiapi.New(ep, openaiapi.Config{Dialect: dialect})
	if err != nil {
		return nil, err
	}
	return openaiapi.New(ep, withRerank(openaiapi.Config{Dialect: dialect}, cfg, e.Name, o.Capabilities()))
}

// look runs the preflight of one model, unless what was found lately counts:
// for looksGood where it was good, else for again.
func (m *modelServers) look(ctx context.Context, s served, again time.Duration) (preflight.Result, error) {
	c, err := m.client(s.Endpoint)
	if err != nil {
		return preflight.Result{}, err
	}
	m.mu.Lock()
	l := m.looks[s.key()]
	if l == nil {
		if len(m.looks) >= maxLooks {
			clear(m.looks) // each is looked at once more
		}
		l = &look{turn: make(chan struct{}, 1)}
		m.looks[s.key()] = l
	}
	m.mu.Unlock()
	asked := time.Now()
	leave, err := m.take(ctx, s, l)
	if err != nil {
		return preflight.Result{}, err
	}
	defer leave()
	counts := looksGood
	if !l.result.OK {
		counts = again
	} else if l.doubt {
		counts = lookAgain
	}
	if !l.at.IsZero() && (time.Since(l.at) < counts || l.at.After(asked)) {
		return l.result, nil
	}
	m.logger.InfoContext(ctx, "looking at a model; a cold one is loaded first", slog.String("model", s.Name+"/"+s.Model))
	r, err := preflight.Check(ctx, preflight.Server{Endpoint: s.Name, Kind: string(s.Kind), Model: s.Model, Adapter: s.Adapter, Chat: c, Probe: c},
		preflight.Needs{Window: s.Window, Least: min(leastWindow, s.Window), Count: m.count})
	if err != nil {
		return r, fault.As(fault.Unavailable, err) // of a context that ended
	}
	l.at, l.result, l.doubt = time.Now(), r, false
	m.logger.InfoContext(ctx, "model looked at", slog.String("model", r.Server), slog.Bool("ok", r.OK), slog.Int("window", r.Window), slog.Float64("token_factor", r.TokenFactor))
	return r, nil
}

// doubts makes good looks count no longer than bad ones do.
func (m *modelServers) doubts(by []served) {
	for _, s := range by {
		m.mu.Lock()
		l := m.looks[s.key()]
		m.mu.Unlock()
		if l == nil {
			continue
		}
		select {
		case l.turn <- struct{}{}:
			l.doubt = true
			<-l.turn
		default: // one looks anew already
		}
	}
}

// take waits for the place of who looks.
func (m *modelServers) take(ctx context.Context, s served, l *look) (leave func(), err error) {
	began := func(t time.Time) {
		m.mu.Lock()
		defer m.mu.Unlock()
		l.began = t
	}
	m.mu.Lock()
	patience := lookPatience
	if !l.began.IsZero() {
		patience = max(0, time.Until(l.began.Add(lookPatience)))
	}
	m.mu.Unlock()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case l.turn <- struct{}{}:
		began(time.Now())
		return func() { began(time.Time{}); <-l.turn }, nil
	case <-t.C:
		return nil, &fault.Error{Kind: fault.Unavailable, Where: "model " + s.Name + "/" + s.Model, Msg: "its server is being looked at, and has not answered yet", RetryAfter: lookBusy}
	case <-ctx.Done():
		return nil, fault.As(fault.Unavailable, context.Cause(ctx))
	}
}

// decide makes what decides of one model, or of a gate model and a rewrite model.
func (m *modelServers) decide(ctx context.Context, by []served, again time.Duration) (*gate.Models, error) {
	found := &gate.Models{Cost: m.cfg.Cost, Doubt: func() { m.doubts(by) }}
	out := gru.Model{Policy: "model/full", Sampling: gateSampling, Checks: true, JSON: true}
	for i, s := range by {
		r, err := m.look(ctx, s, again)
		if err != nil {
			return nil, err
		}
		if bad := r.Err(); bad != nil {
			return nil, wrong(bad, again)
		}
		c, err := m.client(s.Endpoint)
		if err != nil {
			return nil, err
		}
		out.JSON = out.JSON && s.Adapter == "" && r.Schema // seen, not only declared
		// The smaller window of the two, in our tokens, bounds a section; the smaller
		// factor notices a cut prompt at either.
		window := s.Window
		if r.Window > 0 {
			window = min(window, int(float64(r.Window-r.TemplateTokens)/max(r.MostFactor, 1)))
		}
		if out.WindowTokens == 0 || window < out.WindowTokens {
			out.WindowTokens = window
		}
		if i == 0 {
			out.Name, out.Adapter, out.Prompt = s.Model, s.Adapter, s.Prompt
			found.Gate, found.GateWindow, found.Logprobs = c, r.Ask, r.Logprobs
		} else {
			out.Policy, out.Rewrite, out.RewriteAdapter = "model/split", s.Model, s.Adapter
			found.Rewrite, found.RewriteWindow = c, r.Ask
		}
		out.TemplateTokens = max(out.TemplateTokens, r.TemplateTokens)
		if i == 0 {
			out.TokenFactor, out.DigitFactor, out.ForeignFactor = r.TokenFactor, r.DigitFactor, r.ForeignFactor
		} else {
			out.RewriteFactors = &gru.Factors{Token: r.TokenFactor, Digit: r.DigitFactor, Foreign: r.ForeignFactor}
		}
		out.MostFactor = max(out.MostFactor, r.MostFactor)
	}
	if out.Prompt != "" { // the wording says which form it is of
		asked := slices.Contains(gru.PromptVersions(true), out.Prompt)
		if asked && !out.JSON {
			return nil, fault.At(fault.Invalid, "model "+out.Name, "leave prompt out, or name one of "+strings.Join(gru.PromptVersions(false), ", "), "prompt %s asks for JSON, and the server was not seen to hold to a schema", out.Prompt)
		}
		out.JSON = asked
	}
	if n := m.cfg.Parallel; n > 1 {
		out.Policy, out.Parallel = fmt.Sprintf("model/parallel-%d", n), n
		if out.Rewrite == "" { // the gate's question alone can be asked ahead
			out.Rewrite, out.RewriteAdapter = out.Name, out.Adapter
		}
	}
	out.ReplyTokens = min(replyTokens, out.WindowTokens/4)
	found.Model = out
	return found, nil
}

// wrong is what a look found for who asks. A server that is down is asked again
// when the look does not count any more; a request that picked it (again is 0) is
// told at once, and decides itself whether to come again.
func wrong(err error, again time.Duration) error {
	e, ok := errors.AsType[*fault.Error](err)
	switch {
	case !ok || e.Kind != fault.Unavailable && e.Kind != fault.Exhausted:
	case again == 0:
		e.Kind, e.RetryAfter = fault.Invalid, 0
	default:
		e.RetryAfter = max(e.RetryAfter, again)
	}
	return err
}

// serving is where the models of uses are.
func (m *modelServers) serving(uses []*models.Use) []served {
	out := make([]served, 0, len(uses))
	for _, u := range uses {
		e, _ := m.cfg.Endpoint(u.Endpoint) // the file was checked
		out = append(out, served{e, *u})
	}
	return out
}

// models is gate.Config.Models.
func (m *modelServers) models(ctx context.Context, project string) (*gate.Models, error) {
	by := m.serving(m.cfg.For(project).Uses())
	if len(by) == 0 {
		return nil, nil
	}
	return m.decide(ctx, by, lookAgain)
}

// picked is gate.Config.Picked. Who picks a model asks anew about one that was
// not good: the cure may have come since.
func (m *modelServers) picked(ctx context.Context, project string, p *models.Pick) (*gate.Models, error) {
	var by []served
	for _, s := range p.Servers() {
		e, u, err := m.cfg.Find(project, s)
		if err != nil {
			return nil, err
		}
		by = append(by, served{e, u})
	}
	return m.decide(ctx, by, 0)
}

// plan is gate.Config.Plan: it sends nothing.
func (m *modelServers) plan(project string, pick *models.Pick) *gate.Plan {
	by := m.serving(m.cfg.For(project).Uses())
	if pick != nil {
		by = by[:0]
		for _, s := range pick.Servers() {
			e, u, err := m.cfg.Find(project, s)
			if err != nil {
				return nil // the look at it says why
			}
			by = append(by, served{e, u})
		}
	}
	if len(by) == 0 {
		return nil
	}
	p := &gate.Plan{Cost: m.cfg.Cost, Measured: true, Model: gru.Model{Policy: "model/full", JSON: true, TokenFactor: math.Inf(1)}}
	for i, s := range by {
		use := "gate"
		if i > 0 {
			use = "rewrite"
			p.Model.Policy, p.Model.Rewrite = "model/split", s.Model
		} else {
			p.Model.Name, p.Model.Prompt, p.Model.WindowTokens = s.Model, s.Prompt, s.Window
		}
		p.Sends = append(p.Sends, gate.Destination{Use: use, Endpoint: s.Name, URL: s.URL, Model: s.Model})
		p.Model.JSON = p.Model.JSON && s.Adapter == ""
		p.Model.WindowTokens = min(p.Model.WindowTokens, s.Window)
		r, ok := m.seen(s)
		if ok && r.Window > 0 { // as decide takes it
			p.Model.WindowTokens = min(p.Model.WindowTokens, int(float64(r.Window-r.TemplateTokens)/max(r.MostFactor, 1)))
		}
		p.Measured = p.Measured && ok && r.TokenFactor > 0
		p.Model.TokenFactor = min(p.Model.TokenFactor, r.TokenFactor)
		p.Model.MostFactor = max(p.Model.MostFactor, r.MostFactor)
		p.Model.TemplateTokens = max(p.Model.TemplateTokens, r.TemplateTokens)
	}
	if m.cfg.Parallel > 1 {
		p.Model.Policy = fmt.Sprintf("model/parallel-%d", m.cfg.Parallel)
		p.Model.Rewrite = cmp.Or(p.Model.Rewrite, p.Model.Name)
	}
	if p.Model.Prompt != "" {
		p.Model.JSON = slices.Contains(gru.PromptVersions(true), p.Model.Prompt)
	}
	p.Model.ReplyTokens = min(replyTokens, p.Model.WindowTokens/4)
	return p
}

// seen is what the last look at a model found; false where there was none, or one
// is under way.
func (m *modelServers) seen(s served) (preflight.Result, bool) {
	m.mu.Lock()
	l := m.looks[s.key()]
	m.mu.Unlock()
	if l == nil {
		return preflight.Result{}, false
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
		return l.result, !l.at.IsZero()
	default:
		return preflight.Result{}, false
	}
}

// budget is gate.Config.Budget.
func (m *modelServers) budget(project string) cost.Budget {
	return cost.Budget(m.cfg.BudgetOf(project))
}

// doctor is gate.Config.Doctor: what was found of each model, good or not.
func (m *modelServers) doctor(ctx context.Context) ([]preflight.Result, error) {
	var out []preflight.Result
	for _, s := range m.serving(m.cfg.Uses()) {
		r, err := m.look(ctx, s, lookAgain)
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	more, err := m.lookVectors(ctx)
	return append(out, more...), err
}

// Close gives up model loads under way.
func (m *modelServers) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.clients {
		if c, ok := c.(interface{ Close() }); ok {
			c.Close()
		}
	}
	return nil
}
