package serve

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Config is what a Service needs beside its function. The zero value serves a
// function that sends nothing on.
type Config struct {
	// Sink is the URL of the broker that gets every event a handler returns
	// (K_SINK of a SinkBinding). Empty: a returned event is an Internal error.
	Sink string
	// Client posts to Sink. `mem up` gives one over Local(broker), so that no
	// socket is needed. Default: a client of its own, without redirects.
	Client *http.Client
	// Extensions are set on every event sent (K_CE_OVERRIDES).
	Extensions map[string]string
	// HandlerTimeout bounds one call of Handle. Default 280 s: under the 290 s
	// that a delivery should allow and the 300 s of Knative's timeoutSeconds.
	HandlerTimeout time.Duration
	// SinkTimeout bounds one post to the broker. Default 10 s.
	SinkTimeout time.Duration
	// DrainTimeout bounds the wait for calls in flight at shutdown. Default:
	// HandlerTimeout, as Knative's grace period is its timeoutSeconds.
	DrainTimeout time.Duration
	// MaxEventBytes bounds the body of an event. Default MaxEventBytes.
	MaxEventBytes int64
	// Env is handed to the function's Start hook.
	Env map[string]string
	// Logger gets one line for each failed event. Default: none.
	Logger *slog.Logger
}

const (
	defaultHandlerTimeout = 280 * time.Second
	defaultSinkTimeout    = 10 * time.Second
	readTimeout           = 60 * time.Second // of a body; 1 MiB in 60 s is a slow modem
	readHeaderTimeout     = 5 * time.Second  // against clients that open and say nothing
	idleTimeout           = 5 * time.Minute  // over the broker's own keep-alive, so that it closes first
	maxHeaderBytes        = 64 << 10         // attributes of an event and a token are far less
)

// ConfigFromEnv reads K_SINK and K_CE_OVERRIDES, which Knative sets, and
// MNEME_HANDLER_TIMEOUT (a Go duration).
func ConfigFromEnv(getenv func(string) string) (Config, error) {
	c := Config{Sink: getenv("K_SINK")}
	var bad []error
	if s := getenv("K_CE_OVERRIDES"); s != "" {
		var o struct {
			Extensions map[string]string `json:"extensions"`
		}
		if err := json.Unmarshal([]byte(s), &o); err != nil {
			bad = append(bad, fault.At(fault.Invalid, "K_CE_OVERRIDES", `give {"extensions": {"name": "value"}}`, "%v", err))
		}
		c.Extensions = o.Extensions
	}
	if s := getenv("MNEME_HANDLER_TIMEOUT"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil || d <= 0 {
			bad = append(bad, fault.At(fault.Invalid, "MNEME_HANDLER_TIMEOUT", "give a duration such as 280s", "%q is not a positive duration", s))
		}
		c.HandlerTimeout = d
	}
	if err := c.Validate(); err != nil {
		bad = append(bad, err)
	}
	return c, joined(bad)
}

// Validate names every bad field at once.
func (c *Config) Validate() error {
	var bad []error
	if c.Sink != "" {
		if u, err := url.Parse(c.Sink); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			bad = append(bad, fault.At(fault.Invalid, "K_SINK", "give the broker's URL", "not an absolute http URL"))
		}
	}
	for _, d := range [...]struct {
		name string
		d    time.Duration
	}{{"HandlerTimeout", c.HandlerTimeout}, {"SinkTimeout", c.SinkTimeout}, {"DrainTimeout", c.DrainTimeout}} {
		if d.d < 0 {
			bad = append(bad, fault.At(fault.Invalid, d.name, "", "%v is negative", d.d))
		}
	}
	if c.MaxEventBytes < 0 {
		bad = append(bad, fault.At(fault.Invalid, "MaxEventBytes", "", "%d is negative", c.MaxEventBytes))
	}
	return joined(bad)
}

func joined(bad []error) error {
	if len(bad) == 0 {
		return nil
	}
	return fault.As(fault.Invalid, errors.Join(bad...))
}

func (c Config) withDefaults() Config {
	c.HandlerTimeout = or(c.HandlerTimeout, defaultHandlerTimeout)
	c.SinkTimeout = or(c.SinkTimeout, defaultSinkTimeout)
	c.DrainTimeout = or(c.DrainTimeout, c.HandlerTimeout)
	c.MaxEventBytes = or(c.MaxEventBytes, MaxEventBytes)
	c.Extensions = maps.Clone(c.Extensions)
	c.Env = maps.Clone(c.Env)
	c.Logger = orDiscard(c.Logger)
	if c.Client == nil {
		c.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return c
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
