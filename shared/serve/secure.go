package serve

import (
	"log/slog"
	"mime"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
)

// SecureConfig is what guards an HTTP front.
type SecureConfig struct {
	// Token is the bearer token; empty refuses every request that needs one.
	Token string
	// Hosts are the values of Host that are this server: LocalHosts.
	Hosts []string
	// Rules say where a path differs from the rest; the longest prefix wins.
	// DefaultRules stand behind them.
	Rules []Rule
	// MaxBodyBytes bounds a body where no rule does. Default 64 MiB: a transcript
	// as text in POST /memory/learn; larger ones go through the S3 endpoint.
	MaxBodyBytes int64
	// Logger gets a line for each refused request, without path or header.
	Logger *slog.Logger
}

// Rule is what holds under a path prefix.
type Rule struct {
	Prefix       string
	Open         bool     // no token needed
	Types        []string // media types of a body; nil: application/json
	MaxBodyBytes int64    // 0: SecureConfig.MaxBodyBytes
}

// EventsPath is where `mem up` takes in events from outside the process.
const EventsPath = "/events"

const defaultMaxBodyBytes = 64 << 20

// DefaultRules: health is open, a hook carries its token in the path and a
// store's media type, the ingress takes CloudEvents.
var DefaultRules = []Rule{
	{Prefix: "/healthz", Open: true},
	{Prefix: HookPath, Open: true, Types: []string{"*"}, MaxBodyBytes: MaxEventBytes + 1}, // the hook itself judges the size
	{Prefix: EventsPath, Types: []string{"application/json", "application/cloudevents+json"}, MaxBodyBytes: MaxEventBytes},
}

// Secure guards next, so that neither another program of the machine without
// the token nor a web page in a browser on it reaches a memory (DESIGN section
// 10). In this order: a Host that is not this server's (a name rebound to
// loopback), any Origin but the server's own, a missing or wrong token (as
// "Authorization: Bearer" or "apikey"), a body that is not JSON, a body over
// the limit. Every refusal is a Problem.
func Secure(cfg SecureConfig, next http.Handler) http.Handler {
	cfg.MaxBodyBytes = or(cfg.MaxBodyBytes, defaultMaxBodyBytes)
	cfg.Logger = orDiscard(cfg.Logger)
	s := &secure{cfg: cfg, rules: slices.Concat(cfg.Rules, DefaultRules), next: Conditional(next)}
	// Stable, so that a rule of the caller stands before the default of its length.
	slices.SortStableFunc(s.rules, func(a, b Rule) int { return len(b.Prefix) - len(a.Prefix) })
	return s
}

type secure struct {
	cfg   SecureConfig
	rules []Rule
	next  http.Handler
}

func (s *secure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'") // a page sets its own
	h.Set("Cache-Control", "private, no-cache")                                    // kept, but asked for again by its ETag
	rule := s.rule(r.URL.Path)
	if status, p := s.refuse(r, rule); status != 0 {
		s.cfg.Logger.WarnContext(r.Context(), "request refused", KeyStatus, status, KeyError, p.Message)
		if status == http.StatusUnauthorized {
			h.Set("WWW-Authenticate", `Bearer realm="mneme"`)
		}
		writeProblem(w, status, 0, p)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, or(rule.MaxBodyBytes, s.cfg.MaxBodyBytes))
	s.next.ServeHTTP(w, r)
}

// rule is that of the longest prefix; one without a trailing slash covers the
// path itself and what is below it, never a longer name. A path that is not in
// its shortest form ("/healthz/../memory") falls under no rule, as the router
// would read it otherwise.
func (s *secure) rule(p string) Rule {
	if c := path.Clean(p); c != p && c+"/" != p {
		return Rule{}
	}
	for _, r := range s.rules {
		if rest, ok := strings.CutPrefix(p, r.Prefix); ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(r.Prefix, "/")) {
			return r
		}
	}
	return Rule{}
}

// refuse gives the status and reason of a refusal, 0 when r may pass.
func (s *secure) refuse(r *http.Request, rule Rule) (int, Problem) {
	denied := fault.Denied.String()
	if !slices.Contains(s.cfg.Hosts, strings.ToLower(r.Host)) {
		return http.StatusForbidden, Problem{Code: denied, Message: "this server has another name", Where: "Host", Hint: "use the address that `mem up` printed"}
	}
	if !sameOrigin(r) {
		return http.StatusForbidden, Problem{Code: denied, Message: "requests of other origins are refused", Where: "Origin", Hint: "a web page cannot reach a memory; use the command line or an agent"}
	}
	if !rule.Open && !sameSecret(s.cfg.Token, credential(r.Header)) {
		return http.StatusUnauthorized, Problem{Code: "unauthorized", Message: "no valid token", Where: "Authorization", Hint: "send `Authorization: Bearer $(mem token)`"}
	}
	if !bodyAllowed(r, rule.Types) {
		return http.StatusUnsupportedMediaType, Problem{Code: fault.Invalid.String(), Message: "the body must be JSON", Where: "Content-Type", Hint: "send Content-Type: application/json"}
	}
	return 0, Problem{}
}

// sameOrigin: no Origin at all, as of programs, or exactly the server's own.
// Browsers send Sec-Fetch-Site even where they leave Origin out; "none" is a
// person who typed the address.
func sameOrigin(r *http.Request) bool {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	for _, o := range r.Header.Values("Origin") {
		if !strings.EqualFold(o, scheme+"://"+r.Host) {
			return false
		}
	}
	for _, f := range r.Header.Values("Sec-Fetch-Site") {
		if f != "same-origin" && f != "none" {
			return false
		}
	}
	return true
}

// credential is the token of the request; "" when there is none or more than
// one of a kind, which no honest client sends.
func credential(h http.Header) string {
	auth, key := h.Values("Authorization"), h.Values("Apikey")
	switch {
	case len(auth) == 1 && len(key) == 0:
		scheme, token, _ := strings.Cut(auth[0], " ")
		if strings.EqualFold(scheme, "Bearer") {
			return strings.TrimSpace(token)
		}
	case len(key) == 1 && len(auth) == 0:
		return strings.TrimSpace(key[0])
	}
	return ""
}

// bodyAllowed: a page of another origin can send, unasked, only the media types
// of a form; application/json it cannot. No body needs no type.
func bodyAllowed(r *http.Request, types []string) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || slices.Contains(types, "*") {
		return true
	}
	fields := r.Header.Values("Content-Type")
	if len(fields) == 0 {
		return r.ContentLength == 0
	}
	if types == nil {
		types = []string{"application/json"}
	}
	media, _, err := mime.ParseMediaType(fields[0])
	return err == nil && len(fields) == 1 && slices.Contains(types, media)
}

// LocalHosts are the values of Host by which a client reaches a server that
// listens on addr: the loopback names and addr itself, with the port.
func LocalHosts(addr net.Addr) []string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil
	}
	var hosts []string
	for _, h := range [...]string{"localhost", "127.0.0.1", "::1", host} {
		one := strings.ToLower(net.JoinHostPort(h, port))
		if !slices.Contains(hosts, one) {
			hosts = append(hosts, one)
		}
		if bare := strings.TrimSuffix(one, ":80"); port == "80" && !slices.Contains(hosts, bare) {
			hosts = append(hosts, bare) // clients leave the default port out
		}
	}
	return hosts
}
