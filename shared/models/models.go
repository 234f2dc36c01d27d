// Package models reads what an operator says of model servers: which endpoints
// there are, which model gates, which rewrites, embeds and reranks, and what they
// cost. Each may be named without the others, but for rewrite.
//
// Invariant: only what stands in this configuration is ever called. A key is
// named by the environment variable that holds it, never written down; it
// belongs to the endpoint's scheme, host and port.
//
//	endpoints:
//	  - name: local
//	    url: http://127.0.0.1:11434
//	    kind: ollama               # ollama, vllm, openai, openrouter, openai-compatible; by the URL where it is left out
//	  - name: router
//	    url: https://openrouter.ai/api/v1
//	    kind: openrouter
//	    auth: bearer               # bearer, apikey, none; by the URL where it is left out
//	    key_env: OPENROUTER_KEY    # LLM_API_KEY where it is left out
//	    in_flight: 4               # calls at a time; 2 for a local endpoint, else 4
//	    timeout: 20m               # of one call; 10m where it is left out
//	gate:
//	  endpoint: local
//	  model: qwen2.5:3b-instruct
//	  window: 12288                # tokens of prompt and reply together
//	rewrite:                       # asked for open gates alone; left out: the gate's model writes too
//	  endpoint: router
//	  model: qwen/qwen-2.5-72b-instruct
//	projects:                      # what decides in these, in the place of both above
//	  notes: {gate: {endpoint: local, model: "qwen2.5:7b-instruct"}}
//	  private: {gate: none}        # the built-in policy, no model
//	prices:                        # US dollars for a million tokens
//	  qwen/qwen-2.5-72b-instruct: {prompt: 0.12, completion: 0.39}
//	parallel: 8                    # gates of a part asked side by side; left out: one after the other
//	budgets:                       # of a project's calls in a day (UTC); default is for those not named
//	  default: {usd: 1.50, tokens: 2000000}
//
// The package parses and checks; it opens no connection and reads no key.
package models

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/baseurl"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// MaxFileBytes bounds the file: some hundred endpoints and prices.
const MaxFileBytes = 64 << 10

const (
	maxEndpoints = 32
	maxInFlight  = 256
	// A prompt of 8,000 tokens takes a large model on a CPU half an hour.
	minTimeout = time.Second
	maxTimeout = 2 * time.Hour
	// DefaultWindow holds the paper's budgets: a prompt of 8,192 and a reply of
	// 2,048 tokens are 10,240 (specs of GRU-Mem and MemAgent), and slack.
	DefaultWindow = 12288
	minWindow     = 4096 // instructions, question, memory, a piece of a chunk and a reply
	maxWindow     = 1 << 20
	// DefaultKeyEnv holds the key of an endpoint that names no other (brief D5).
	DefaultKeyEnv = "LLM_API_KEY"
)

// Kind and Auth are those of a base URL; see baseurl for the defaults.
type (
	Kind = baseurl.Kind
	Auth = baseurl.Auth
)

// The kinds of endpoints.
const (
	Ollama     = baseurl.Ollama
	VLLM       = baseurl.VLLM
	OpenAI     = baseurl.OpenAI
	OpenRouter = baseurl.OpenRouter
	Compatible = baseurl.Compatible
)

// The ways to send a key.
const (
	Bearer = baseurl.Bearer
	APIKey = baseurl.APIKey
	None   = baseurl.None
)

var (
	kinds = map[Kind]bool{Ollama: true, VLLM: true, OpenAI: true, OpenRouter: true, Compatible: true}
	auths = map[Auth]bool{Bearer: true, APIKey: true, None: true}
)

// Endpoint is one server.
type Endpoint struct {
	Name     string
	URL      string // without a slash at its end
	Kind     Kind
	Auth     Auth
	KeyEnv   string
	InFlight int
	Timeout  time.Duration // of one call; 0: 10 min
}

// Use is one model at one endpoint.
type Use struct {
	Endpoint string // its name
	Model    string
	Adapter  string // LoRA
	Prompt   string // version of the wording that an adapter was trained on; "": the newest
	Window   int    // tokens of prompt and reply together
}

// Price is US dollars for a million tokens.
type Price struct{ Prompt, Completion float64 }

// Config is the whole file.
type Config struct {
	Endpoints []Endpoint
	Gate      *Use              // nil: the built-in policy decides
	Rewrite   *Use              // nil: Gate writes too
	Projects  map[string]Choice // what decides in these in the place of Gate and Rewrite
	Embed     *Embed            // nil: the table that ships with the program
	Embeds    map[string]*Embed // others that may serve in its place, by name
	EmbedName string            // of what embeds, where it is one of these or a table
	Rerank    *Rerank           // nil: nothing is reranked
	Prices    map[string]Price
	Budgets   map[string]Budget // by project, or DefaultBudget
	Parallel  int               // gates asked side by side; 0: one after the other
	// FreeURLs lets a request name any base URL of this machine; it is no part of
	// the file (MNEME_ALLOW_URLS).
	FreeURLs bool
}

// Endpoint finds one by name.
func (c *Config) Endpoint(name string) (Endpoint, bool) {
	for _, e := range c.Endpoints {
		if e.Name == name {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Cost is what a call costs, in US dollars; 0 for a model without a price.
func (c *Config) Cost(model string, promptTokens, completionTokens int) float64 {
	p := c.Prices[model]
	return (p.Prompt*float64(promptTokens) + p.Completion*float64(completionTokens)) / 1e6
}

// FromEnv is the configuration of the environment alone: MNEME_GATE_MODEL,
// MNEME_REWRITE_MODEL, LLM_API_BASE (an Ollama on this machine where it is left
// out) and LLM_API_KEY (brief D5), MNEME_EMBED_MODEL and MNEME_RERANK_MODEL at the
// same place. It is empty where no model is named.
func FromEnv(getenv func(string) string) (Config, error) {
	gate := strings.TrimSpace(getenv("MNEME_GATE_MODEL"))
	if !namesModel(getenv) {
		return Config{}, nil
	}
	base := strings.TrimRight(strings.TrimSpace(getenv("LLM_API_BASE")), "/")
	kind := Compatible
	if base == "" {
		base, kind = "http://127.0.0.1:11434", Ollama
	} else if u, err := baseurl.Parse(base); err == nil {
		kind = kindOf(u)
	}
	window := DefaultWindow
	if w := getenv("MNEME_GATE_WINDOW"); w != "" {
		n, err := strconv.Atoi(w)
		if err != nil || n < minWindow || n > maxWindow {
			return Config{}, fault.At(fault.Invalid, "MNEME_GATE_WINDOW", "", "%q is no number of tokens from %d to %d", w, minWindow, maxWindow)
		}
		window = n
	}
	e := Endpoint{Name: "env", URL: base, Kind: kind}
	if getenv(DefaultKeyEnv) == "" && kind != OpenRouter && kind != OpenAI {
		e.Auth = None // as of a server inside one's own network
	}
	if err := e.fill(); err != nil {
		return Config{}, fault.At(fault.Invalid, "LLM_API_BASE", "", "%v", err)
	}
	budget, err := budgetFromEnv(getenv)
	if err != nil {
		return Config{}, err
	}
	c := Config{Endpoints: []Endpoint{e}, Budgets: budget}
	if err := c.vectorsFromEnv(getenv, e); err != nil || gate == "" {
		return c, err
	}
	c.Gate = &Use{Endpoint: e.Name, Model: gate, Window: window}
	if m := strings.TrimSpace(getenv("MNEME_REWRITE_MODEL")); m != "" {
		c.Rewrite = &Use{Endpoint: e.Name, Model: m, Window: window}
	}
	return c, c.priced()
}

// kindOf is the kind of a URL that nobody can say more of: the OpenAI form has a
// path, an Ollama on this machine has none, whatever its port.
func kindOf(u *url.URL) Kind {
	kind, path := baseurl.KindOf(u), strings.TrimRight(u.Path, "/")
	switch {
	case path == "" && baseurl.Local(u.Hostname()):
		return Ollama
	case path != "" && kind == Ollama:
		return Compatible
	}
	return kind
}

// fill checks an endpoint and fills what it leaves out.
func (e *Endpoint) fill() error {
	u, err := baseurl.Parse(e.URL)
	if err != nil {
		return err
	}
	local := baseurl.Local(u.Hostname())
	e.URL = strings.TrimRight(e.URL, "/")
	if e.Kind == "" {
		e.Kind = baseurl.KindOf(u)
	}
	if e.Auth == "" {
		e.Auth = baseurl.AuthOf(u)
	}
	if e.KeyEnv == "" {
		e.KeyEnv = DefaultKeyEnv
	}
	if e.InFlight == 0 {
		e.InFlight = 4
		if local {
			e.InFlight = 2
		}
	}
	if !local && u.Scheme == "http" && e.Auth != None {
		return fault.New(fault.Invalid, "a key is not sent over http: use https, or auth: none")
	}
	return nil
}

// Parse reads the file; name stands in errors as "name:line". prompts are the versions
// that prompt: may name; none: any.
func Parse(name string, data []byte, prompts ...string) (c Config, err error) {
	f := strictyaml.File{Name: name, Noun: "file", MaxBytes: MaxFileBytes}
	root, err := f.Root(data)
	if err != nil {
		return c, err
	}
	c.Prices = map[string]Price{}
	var general Choice
	fields, checkGeneral := choice(f, &general, prompts)
	readProjects, checkProjects := projects(f, &c, prompts)
	var parallel, inDollars *strictyaml.Node
	all := strictyaml.Fields{
		"endpoints": func(n *strictyaml.Node) error {
			return f.Sequence(n, "endpoints", maxEndpoints, func(n *strictyaml.Node) error {
				e, err := endpoint(f, n)
				if err != nil {
					return err
				}
				if _, dup := c.Endpoint(e.Name); dup {
					return f.Fault(n, "give each its own name", "endpoint %q stands twice", e.Name)
				}
				c.Endpoints = append(c.Endpoints, e)
				return nil
			})
		},
		"gate": fields["gate"], "rewrite": fields["rewrite"], "projects": readProjects,
		"prices": func(n *strictyaml.Node) error {
			return f.Each(n, "prices", "a mapping of models", func(k, v *strictyaml.Node) error {
				var p Price
				err := f.Mapping(v, "a price", strictyaml.Fields{
					"prompt": func(n *strictyaml.Node) (err error) { p.Prompt, err = dollars(f, n, "prompt", aMillion); return err },
					"completion": func(n *strictyaml.Node) (err error) {
						p.Completion, err = dollars(f, n, "completion", aMillion)
						return err
					},
				})
				c.Prices[k.Value] = p
				return err
			})
		},
		"parallel": func(n *strictyaml.Node) (err error) {
			parallel = n
			c.Parallel, err = number(f, n, "parallel", 2, maxInFlight)
			return err
		},
		"budgets": func(n *strictyaml.Node) (err error) { inDollars, err = c.budgets(f, n); return err },
	}
	checkVectors := c.vectors(f, all)
	if err := f.Mapping(root, "a file of models", all); err != nil {
		return c, err
	}
	c.Gate, c.Rewrite = general.Gate, general.Rewrite
	for _, check := range []func(*Config) error{checkGeneral, checkProjects, func(*Config) error { return checkVectors() }} {
		if err := check(&c); err != nil {
			return c, err
		}
	}
	if err := c.wide(); err != nil {
		return c, f.Fault(parallel, fault.HintOf(err), "%v", err)
	}
	if err := c.priced(); err != nil {
		return c, f.Fault(inDollars, fault.HintOf(err), "%v", err)
	}
	return c, nil
}

// wide refuses gates side by side at an endpoint that takes fewer calls at a time:
// they would wait for each other and nobody would know why.
func (c *Config) wide() error {
	for _, u := range c.Uses() {
		if e, _ := c.Endpoint(u.Endpoint); c.Parallel > e.InFlight {
			return fault.At(fault.Invalid, "endpoint "+e.Name, fmt.Sprintf("in_flight: %d, and a server that takes them (OLLAMA_NUM_PARALLEL; vLLM batches by itself)", c.Parallel),
				"parallel is %d, and the endpoint takes %d calls at a time", c.Parallel, e.InFlight)
		}
	}
	return nil
}

func endpoint(f strictyaml.File, n *strictyaml.Node) (e Endpoint, err error) {
	text := func(to *string, what string) func(*strictyaml.Node) error {
		return func(n *strictyaml.Node) (err error) { *to, err = f.Text(n, what); return err }
	}
	err = f.Mapping(n, "an endpoint", strictyaml.Fields{
		"name": text(&e.Name, "name"), "url": text(&e.URL, "url"), "key_env": text(&e.KeyEnv, "key_env"),
		"kind": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "kind")
			if e.Kind = Kind(v); err == nil && !kinds[e.Kind] {
				return f.Fault(n, "one of "+words(kinds), "kind %q is not known", v)
			}
			return err
		},
		"auth": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "auth")
			if e.Auth = Auth(v); err == nil && !auths[e.Auth] {
				return f.Fault(n, "one of "+words(auths), "auth %q is not known", v)
			}
			return err
		},
		"timeout": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "timeout")
			if err != nil {
				return err
			}
			if e.Timeout, err = time.ParseDuration(v); err != nil || e.Timeout < minTimeout || e.Timeout > maxTimeout {
				return f.Fault(n, "such as 20m", "timeout must be a duration from %v to %v, not %q", minTimeout, maxTimeout, v)
			}
			return nil
		},
		"in_flight": func(n *strictyaml.Node) (err error) {
			e.InFlight, err = number(f, n, "in_flight", 1, maxInFlight)
			return err
		},
	})
	switch {
	case err != nil:
		return e, err
	case e.Name == "":
		return e, f.Fault(n, "add name: NAME", "an endpoint without a name")
	case e.URL == "":
		return e, f.Fault(n, "add url: URL", "endpoint %q has no url", e.Name)
	}
	if err := e.fill(); err != nil {
		return e, f.Fault(n, "", "endpoint %q: %v", e.Name, err)
	}
	return e, nil
}

func use(f strictyaml.File, n *strictyaml.Node, what string, prompts []string) (*Use, error) {
	u := Use{Window: DefaultWindow}
	text := func(to *string, what string) func(*strictyaml.Node) error {
		return func(n *strictyaml.Node) (err error) { *to, err = f.Text(n, what); return err }
	}
	err := f.Mapping(n, what, strictyaml.Fields{
		"endpoint": text(&u.Endpoint, "endpoint"), "model": text(&u.Model, "model"), "adapter": text(&u.Adapter, "adapter"),
		"prompt": func(n *strictyaml.Node) (err error) {
			u.Prompt, err = f.Text(n, "prompt")
			if err == nil && len(prompts) > 0 && !slices.Contains(prompts, u.Prompt) {
				return f.Fault(n, "one of "+strings.Join(prompts, ", "), "prompt version %q is not known", u.Prompt)
			}
			return err
		},
		"window": func(n *strictyaml.Node) (err error) {
			u.Window, err = number(f, n, "window", minWindow, maxWindow)
			return err
		},
	})
	if err == nil && (u.Endpoint == "" || u.Model == "") {
		err = f.Fault(n, "", "%s needs an endpoint and a model", what)
	}
	return &u, err
}

func number(f strictyaml.File, n *strictyaml.Node, what string, low, high int) (int, error) {
	v, err := f.Text(n, what)
	if err != nil {
		return 0, err
	}
	i, err := strconv.Atoi(v)
	if err != nil || i < low || i > high {
		return 0, f.Fault(n, "", "%s must be a number from %d to %d, not %q", what, low, high, v)
	}
	return i, nil
}

// What dollars are for.
const (
	aMillion = "for a million tokens"
	aDay     = "a day"
)

func dollars(f strictyaml.File, n *strictyaml.Node, what, of string) (float64, error) {
	v, err := f.Text(n, what)
	if err != nil {
		return 0, err
	}
	d, err := strconv.ParseFloat(v, 64)
	if err != nil || !(d >= 0 && d < 1e6) {
		return 0, f.Fault(n, "", "%s must be dollars %s, not %q", what, of, v)
	}
	return d, nil
}

func words[K ~string](m map[K]bool) string {
	out := map[string]bool{}
	for k := range m {
		out[string(k)] = true
	}
	return strictyaml.Words(out)
}
