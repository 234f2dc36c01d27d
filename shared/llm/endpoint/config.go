package endpoint

import (
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/baseurl"
	"github.com/mneme-ai/mneme/shared/fault"
)

// Kind is the form that a server speaks.
type Kind string

const (
	Ollama Kind = "ollama" // Ollama's own: /api/chat, /api/embed
	OpenAI Kind = "openai" // /v1/chat/completions and what goes with it
)

// Auth is how the key goes with a request.
type Auth = baseurl.Auth

const (
	None   = baseurl.None
	Bearer = baseurl.Bearer
	APIKey = baseurl.APIKey
)

// Secret is a key. It prints as its presence only, in every verb, log and
// encoding.
type Secret struct{ value string }

// NewSecret takes a key in.
func NewSecret(key string) Secret { return Secret{strings.TrimSpace(key)} }

func (s Secret) shown() string {
	if s.value == "" {
		return "(none)"
	}
	return "(set)"
}

func (s Secret) String() string               { return s.shown() }
func (s Secret) GoString() string             { return s.shown() }
func (s Secret) LogValue() slog.Value         { return slog.StringValue(s.shown()) }
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown()), nil }

// Format covers the verbs that would look into the struct.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.shown()) }

// Empty reports whether there is no key.
func (s Secret) Empty() bool { return s.value == "" }

// Config says where an endpoint is and what may be asked of it. The zero value
// of every field but URL is a default.
type Config struct {
	Name string // in errors and logs; default the URL's host
	// URL is the base: http or https, no user, query or fragment. For OpenAI a
	// URL without a path gets /v1; for Ollama a closing /v1 is dropped.
	URL  string
	Kind Kind // default by the URL: port 11434 is Ollama
	Auth Auth // default by the URL, see shared/baseurl
	Key  Secret
	// Loopback dials this machine alone, whatever a name resolves to.
	Loopback bool

	InFlight int // calls at a time; default 2 on loopback, 4 elsewhere

	// Deadlines of one attempt, from when it has its place in flight. A model is
	// loaded under Load: a client that gives up a load starts it anew.
	Chat  time.Duration // default 10 min: a prompt of 8,000 tokens on a CPU takes minutes
	Embed time.Duration // default 2 min
	Load  time.Duration // default 15 min: three times Ollama's own limit without progress
	Probe time.Duration // default 10 s

	// Stall is the longest silence inside an answer. Default 60 s. Silence before
	// the first byte is thinking, and under the deadline alone.
	Stall time.Duration

	MaxRetries int           // after the first attempt; default 3, negative for none
	FirstPause time.Duration // before the first retry, then doubled; default 500 ms
	// MaxPause bounds one pause. Default 30 s. A server that asks for more is not
	// asked again here: the error carries what it asked for.
	MaxPause time.Duration

	MaxBodyBytes int64 // of an answer; default 64 MiB, of a chat never over 8
}

const (
	defaultRetries   = 3
	defaultBodyBytes = 64 << 20 // 64 texts of 4,096 dimensions in decimal are 5 MiB
)

// authOf is that of the URL. Without a key it is none, but for the two that
// refuse to work without one.
func authOf(u *url.URL, key Secret) Auth {
	a := baseurl.AuthOf(u)
	if a == APIKey && key.Empty() {
		return None
	}
	return a
}

// kindOf is the form of the URL.
func kindOf(u *url.URL) Kind {
	if baseurl.KindOf(u) == baseurl.Ollama {
		return Ollama
	}
	return OpenAI
}

// resolved is c with its defaults, or what is wrong with it, all of it at once.
func (c Config) resolved() (Config, *url.URL, error) {
	var bad []string
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		// The URL may hold a password, so it is not repeated.
		return c, nil, fault.At(fault.Invalid, c.Name, "write it as http://host:port or https://host/v1", "the URL of the model endpoint is none")
	case u.User != nil:
		bad = append(bad, "URL (holds a user: the key goes into Key)")
	case u.RawQuery != "" || u.Fragment != "":
		bad = append(bad, "URL (holds a query or a fragment)")
	}
	if c.Name == "" {
		c.Name = u.Host
	}
	if c.Kind == "" {
		c.Kind = kindOf(u)
	}
	path := strings.TrimRight(u.Path, "/")
	switch c.Kind {
	case Ollama:
		path = strings.TrimSuffix(path, "/v1")
	case OpenAI:
		if path == "" {
			path = "/v1"
		}
	default:
		bad = append(bad, fmt.Sprintf("Kind %q (ollama or openai)", c.Kind))
	}
	base := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path + "/"}
	if baseurl.RefusedHost(u.Hostname()) {
		bad = append(bad, "URL (link-local: "+u.Hostname()+")")
	}
	switch c.Auth {
	case "":
		c.Auth = authOf(u, c.Key)
	case None, Bearer, APIKey:
	default:
		bad = append(bad, fmt.Sprintf("Auth %q (none, bearer or apikey)", c.Auth))
	}
	if c.Auth != None && c.Key.Empty() {
		bad = append(bad, "Key (empty, and "+string(c.Auth)+" needs one)")
	}
	if strings.ContainsAny(c.Key.value, "\r\n\x00") {
		bad = append(bad, "Key (holds a line break)")
	}
	if c.InFlight <= 0 {
		c.InFlight = 4
		if baseurl.Local(u.Hostname()) {
			c.InFlight = 2
		}
	}
	for _, d := range []struct {
		at    *time.Duration
		value time.Duration
	}{
		{&c.Chat, 10 * time.Minute}, {&c.Embed, 2 * time.Minute}, {&c.Load, 15 * time.Minute}, {&c.Probe, 10 * time.Second},
		{&c.Stall, time.Minute}, {&c.FirstPause, 500 * time.Millisecond}, {&c.MaxPause, 30 * time.Second},
	} {
		if *d.at <= 0 {
			*d.at = d.value
		}
	}
	switch {
	case c.MaxRetries == 0:
		c.MaxRetries = defaultRetries
	case c.MaxRetries < 0:
		c.MaxRetries = 0
	}
	if c.MaxBodyBytes <= 0 {
		c.MaxBodyBytes = defaultBodyBytes
	}
	if bad != nil {
		return c, nil, fault.At(fault.Invalid, c.Name, "", "wrong settings of the model endpoint: %s", strings.Join(bad, ", "))
	}
	return c, base, nil
}
