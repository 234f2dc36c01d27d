package models

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/baseurl"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lazy"
)

// Builtin is the built-in policy where a request or an answer names a model.
const Builtin = "extractive"

// Request is what one request says of models (brief D1): Model alone is one for
// all, else GateModel gates and RewriteModel, where it is there, writes.
type Request struct {
	Model, GateModel, RewriteModel, GateBaseURL, RewriteBaseURL string
}

// Pick is the choice of one request as it is kept with its question, so that
// every slice of the run, whenever and wherever, is decided by the same:
//
//	{"gate":{"endpoint":"local","url":"http://127.0.0.1:11434","model":"qwen2.5:3b-instruct"},
//	 "rewrite":{"endpoint":"router","url":"https://openrouter.ai:443/api/v1","model":"qwen/qwen-2.5-72b-instruct"}}
//
// {} is the built-in policy. It holds no key.
type Pick struct {
	Gate    *Server `json:"gate,omitempty"`    // absent: the built-in policy decides
	Rewrite *Server `json:"rewrite,omitempty"` // absent: Gate writes too
}

// Server is one model at one base URL.
type Server struct {
	Endpoint string `json:"endpoint,omitempty"` // its name when it was picked; empty for a free URL
	URL      string `json:"url"`                // as baseurl.Same spells it
	Model    string `json:"model"`
	Adapter  string `json:"adapter,omitempty"`
}

// Key tells one choice from another; "" where there is none. What an endpoint is
// called is not in it.
func (p *Pick) Key() string {
	if p == nil {
		return ""
	}
	out := Pick{}
	for _, s := range []struct {
		from *Server
		to   **Server
	}{{p.Gate, &out.Gate}, {p.Rewrite, &out.Rewrite}} {
		if s.from != nil {
			c := *s.from
			c.Endpoint = ""
			*s.to = &c
		}
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic("models: key of a pick: " + err.Error()) // strings always encode
	}
	return string(b)
}

// Decides names the model that decides: the gate's.
func (p *Pick) Decides() string {
	if p.Gate == nil {
		return Builtin
	}
	return p.Gate.Model
}

// Servers are the models of a pick, the gate's first; none for the built-in
// policy.
func (p *Pick) Servers() []*Server {
	switch {
	case p.Gate == nil:
		return nil
	case p.Rewrite == nil:
		return []*Server{p.Gate}
	}
	return []*Server{p.Gate, p.Rewrite}
}

// modelName is how servers name models and adapters. It is bounded as it stands
// in every gate record.
var modelName = lazy.MustCompile(`^[A-Za-z0-9@_][A-Za-z0-9._:/@+-]{0,199}$`)

// Pick resolves what a request says in a project; nil where it says nothing. A
// base URL must be that of a configured endpoint, or one of this machine where
// FreeURLs allows it. A model without one is looked for at the project's own
// endpoint. The error names the field and lists the endpoints.
func (c *Config) Pick(project string, r Request) (*Pick, error) {
	bad := func(field, hint, format string, args ...any) (*Pick, error) {
		return nil, fault.At(fault.Invalid, "field "+field, hint, format, args...)
	}
	if r == (Request{}) {
		return nil, nil
	}
	for _, m := range []struct{ field, name string }{{"model", r.Model}, {"gate_model", r.GateModel}, {"rewrite_model", r.RewriteModel}} {
		if m.name != "" && !modelName.MatchString(m.name) {
			return bad(m.field, "name it as its server does", "is no name of a model")
		}
	}
	gateField := "gate_model"
	if r.Model != "" {
		switch {
		case r.GateModel != "" || r.RewriteModel != "":
			return bad("model", "send model, or gate_model and rewrite_model", "it is one model for all, and another one is named too")
		case r.RewriteBaseURL != "":
			return bad("rewrite_base_url", "send gate_model and rewrite_model", "model is one model for all, and gate_base_url says where it is")
		}
		gateField, r.GateModel = "model", r.Model
	}
	switch {
	case r.GateModel == Builtin:
		if r.RewriteModel != "" && r.RewriteModel != Builtin || r.GateBaseURL != "" || r.RewriteBaseURL != "" {
			return bad(gateField, "send model: "+Builtin+", or name a model", "the built-in policy decides alone")
		}
		return &Pick{}, nil
	case r.RewriteModel == Builtin:
		return bad("rewrite_model", "send model: "+Builtin+", or leave it out: the gate's model writes too", "the built-in policy decides alone")
	case r.GateBaseURL != "" && r.GateModel == "":
		return bad("gate_base_url", "send gate_model, or model, with it", "without a model")
	case r.RewriteBaseURL != "" && r.RewriteModel == "":
		return bad("rewrite_base_url", "send rewrite_model with it", "without a model")
	}
	own := c.For(project)
	p := &Pick{}
	var err error
	switch {
	case r.GateModel != "":
		p.Gate, err = c.server(gateField, "gate_base_url", r.GateModel, r.GateBaseURL, own, own.Gate)
	case own.Gate == nil:
		return bad("rewrite_model", "send gate_model too", "no model gates in project %s", project)
	default:
		e, _ := c.Endpoint(own.Gate.Endpoint)
		p.Gate = &Server{Endpoint: e.Name, URL: same(e.URL), Model: own.Gate.Model, Adapter: own.Gate.Adapter}
	}
	if err != nil {
		return nil, err
	}
	if r.RewriteModel == "" {
		return p, nil
	}
	at := own.Rewrite
	if at == nil {
		at = own.Gate
	}
	if at == nil && r.RewriteBaseURL == "" {
		r.RewriteBaseURL = p.Gate.URL
	}
	if p.Rewrite, err = c.server("rewrite_model", "rewrite_base_url", r.RewriteModel, r.RewriteBaseURL, own, at); err != nil {
		return nil, err
	}
	return p, nil
}

// server is a model at a base URL, else where at is, else at the only endpoint
// there is.
func (c *Config) server(modelField, urlField, model, base string, own Choice, at *Use) (*Server, error) {
	var e Endpoint
	switch {
	case base != "":
		u, err := baseurl.Parse(base)
		if err != nil {
			return nil, fault.At(fault.Invalid, "field "+urlField, c.listed(), "%v", err)
		}
		if e, err = c.at(u, own); err != nil {
			return nil, fault.At(fault.Invalid, "field "+urlField, fault.HintOf(err), "%v", err)
		}
	case at != nil:
		e, _ = c.Endpoint(at.Endpoint)
	case len(c.Endpoints) == 1:
		e = c.Endpoints[0]
	default:
		return nil, fault.At(fault.Invalid, "field "+modelField, "send "+urlField+" too; "+c.listed(), "the project has no endpoint of its own to look for it at")
	}
	s := &Server{Endpoint: e.Name, URL: same(e.URL), Model: model}
	for _, u := range c.known(own) {
		if u.Endpoint == e.Name && u.Model == model {
			s.Adapter = u.Adapter
			break
		}
	}
	return s, nil
}

// known are the models that the configuration says more of than their names, the
// project's first.
func (c *Config) known(own Choice) []*Use {
	return append(own.Uses(), Choice{c.Gate, c.Rewrite}.Uses()...)
}

// at is the endpoint with that base URL, one of the project's before others: two
// may differ by their keys. A free one has no name.
func (c *Config) at(u *url.URL, own Choice) (Endpoint, error) {
	base := baseurl.Same(u)
	for _, use := range own.Uses() {
		if e, ok := c.Endpoint(use.Endpoint); ok && same(e.URL) == base {
			return e, nil
		}
	}
	for _, e := range c.Endpoints {
		if same(e.URL) == base {
			return e, nil
		}
	}
	if c.FreeURLs && baseurl.Local(u.Hostname()) {
		e := Endpoint{URL: strings.TrimRight(u.String(), "/"), Kind: kindOf(u), Auth: None}
		return e, e.fill()
	}
	return Endpoint{}, fault.At(fault.Invalid, "", c.listed(), "only endpoints that the operator configured may be named, and this is none of them")
}

// listed is the hint that lists the endpoints, without their keys.
func (c *Config) listed() string {
	var all []string
	for _, e := range c.Endpoints {
		all = append(all, e.Name+" ("+e.URL+")")
	}
	hint := "configured: " + strings.Join(all, ", ")
	if len(all) == 0 {
		hint = "no endpoint is configured: see MNEME_MODELS"
	}
	if c.FreeURLs {
		hint += "; and any of this machine, as MNEME_ALLOW_URLS is set"
	}
	return hint
}

// same is baseurl.Same of a URL that was checked.
func same(base string) string {
	u, err := baseurl.Parse(base)
	if err != nil {
		return ""
	}
	return baseurl.Same(u)
}

// Find is where a picked model is now, and what the configuration says of it. An
// endpoint that is configured no more is refused: nothing else is ever called.
// The Name of a free one is its URL.
func (c *Config) Find(project string, s *Server) (Endpoint, Use, error) {
	u, err := baseurl.Parse(s.URL)
	if err != nil {
		return Endpoint{}, Use{}, err
	}
	own := c.For(project)
	e, ok := c.Endpoint(s.Endpoint)
	if !ok || same(e.URL) != s.URL {
		if e, err = c.at(u, own); err != nil {
			return e, Use{}, fault.At(fault.Invalid, "model "+s.Model, fault.HintOf(err), "the endpoint that was picked for it is configured no more")
		}
	}
	if e.Name == "" {
		e.Name = e.URL
	}
	use := Use{Endpoint: e.Name, Model: s.Model, Adapter: s.Adapter, Window: DefaultWindow}
	known := c.known(own)
	if i := slices.IndexFunc(known, func(k *Use) bool { return k.Endpoint == e.Name && k.Model == s.Model && k.Adapter == s.Adapter }); i >= 0 {
		use.Window = known[i].Window
	}
	return e, use, nil
}
