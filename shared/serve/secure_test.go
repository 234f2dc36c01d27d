package serve_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Who reaches a memory and who does not: DESIGN section 10.
func TestSecure(t *testing.T) {
	t.Parallel()
	const token = "tok-1234567890"
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	var log bytes.Buffer
	h := serve.Secure(serve.SecureConfig{
		Token: token, Hosts: serve.LocalHosts(addr), MaxBodyBytes: 64, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Rules: []serve.Rule{{Prefix: "/memory/upload", Types: []string{"application/x-ndjson", "application/json"}, MaxBodyBytes: 128}, {Prefix: "/ui/", Open: true}},
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			return
		}
		w.WriteHeader(http.StatusOK)
	}))
	bearer := []string{"Authorization", "Bearer " + token}
	js := []string{"Content-Type", "application/json"}
	with := func(lists ...[]string) []string {
		var all []string
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	for _, tc := range []struct {
		name         string
		method, path string
		host         string
		header       []string
		body         string
		want         int
		where        string
	}{
		{name: "a read", header: bearer, want: 200},
		{name: "by apikey", header: []string{"apikey", token}, want: 200},
		{name: "scheme in other case", header: []string{"Authorization", "bearer " + token}, want: 200},
		{name: "by name", host: "localhost:8080", header: bearer, want: 200},
		{name: "by name in capitals", host: "LOCALHOST:8080", header: bearer, want: 200},
		{name: "by IPv6", host: "[::1]:8080", header: bearer, want: 200},
		{name: "health", path: "/healthz", want: 200},

		{name: "no token", want: 401, where: "Authorization"},
		{name: "wrong token", header: []string{"Authorization", "Bearer x"}, want: 401, where: "Authorization"},
		{name: "prefix of the token", header: []string{"Authorization", "Bearer " + token[:5]}, want: 401, where: "Authorization"},
		{name: "empty bearer", header: []string{"Authorization", "Bearer "}, want: 401, where: "Authorization"},
		{name: "basic", header: []string{"Authorization", "Basic " + token}, want: 401, where: "Authorization"},
		{name: "two tokens", header: with([]string{"Authorization", "Bearer x"}, bearer), want: 401, where: "Authorization"},
		{name: "two ways", header: with(bearer, []string{"apikey", token}), want: 401, where: "Authorization"},
		{name: "token in the query", path: "/memory/query?token=" + token, want: 401, where: "Authorization"},
		{name: "longer name than an open one", path: "/healthzz", want: 401, where: "Authorization"},
		{name: "dots behind an open one", path: "/healthz/../memory/query", want: 401, where: "Authorization"},
		{name: "dots behind an open folder", path: "/ui/%2e%2e/memory/query", want: 401, where: "Authorization"},

		{name: "rebound name", host: "evil.example:8080", header: bearer, want: 403, where: "Host"},
		{name: "rebound name, open path", host: "evil.example:8080", path: "/healthz", want: 403, where: "Host"},
		{name: "another port", host: "localhost:9000", header: bearer, want: 403, where: "Host"},
		{name: "no port", host: "localhost", header: bearer, want: 403, where: "Host"},
		{name: "no host", host: "-", header: bearer, want: 403, where: "Host"},
		{name: "trailing dot", host: "localhost.:8080", header: bearer, want: 403, where: "Host"},
		{name: "all interfaces", host: "0.0.0.0:8080", header: bearer, want: 403, where: "Host"},
		{name: "user in the host", host: "localhost:8080@evil.example", header: bearer, want: 403, where: "Host"},

		{name: "own origin", header: with(bearer, []string{"Origin", "http://127.0.0.1:8080", "Sec-Fetch-Site", "same-origin"}), want: 200},
		{name: "typed address", path: "/ui/", header: []string{"Sec-Fetch-Site", "none"}, want: 200},
		{name: "foreign origin", header: with(bearer, []string{"Origin", "https://evil.example"}), want: 403, where: "Origin"},
		{name: "foreign origin, open path", path: "/healthz", header: []string{"Origin", "https://evil.example"}, want: 403, where: "Origin"},
		{name: "null origin", header: with(bearer, []string{"Origin", "null"}), want: 403, where: "Origin"},
		{name: "empty origin", header: with(bearer, []string{"Origin", ""}), want: 403, where: "Origin"},
		{name: "another local port", header: with(bearer, []string{"Origin", "http://127.0.0.1:3000"}), want: 403, where: "Origin"},
		{name: "own name by TLS", header: with(bearer, []string{"Origin", "https://127.0.0.1:8080"}), want: 403, where: "Origin"},
		{name: "two origins", header: with(bearer, []string{"Origin", "http://127.0.0.1:8080", "Origin", "https://evil.example"}), want: 403, where: "Origin"},
		{name: "preflight", method: "OPTIONS", header: []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "POST"}, want: 403, where: "Origin"},
		{name: "image on a foreign page", header: with(bearer, []string{"Sec-Fetch-Site", "cross-site"}), want: 403, where: "Origin"},
		{name: "page of the same site", header: with(bearer, []string{"Sec-Fetch-Site", "same-site"}), want: 403, where: "Origin"},

		{name: "JSON", method: "POST", header: with(bearer, js), body: `{}`, want: 200},
		{name: "JSON with charset", method: "POST", header: with(bearer, []string{"Content-Type", "Application/JSON; charset=utf-8"}), body: `{}`, want: 200},
		{name: "no body, no type", method: "POST", header: bearer, want: 200},
		{name: "form", method: "POST", header: with(bearer, []string{"Content-Type", "application/x-www-form-urlencoded"}), body: `a=b`, want: 415, where: "Content-Type"},
		{name: "plain text", method: "POST", header: with(bearer, []string{"Content-Type", "text/plain"}), body: `{}`, want: 415, where: "Content-Type"},
		{name: "multipart", method: "POST", header: with(bearer, []string{"Content-Type", "multipart/form-data; boundary=x"}), body: `{}`, want: 415, where: "Content-Type"},
		{name: "no type", method: "POST", header: bearer, body: `{}`, want: 415, where: "Content-Type"},
		{name: "two types", method: "POST", header: with(bearer, js, []string{"Content-Type", "text/plain"}), body: `{}`, want: 415, where: "Content-Type"},
		{name: "broken type", method: "POST", header: with(bearer, []string{"Content-Type", "application/json; ="}), body: `{}`, want: 415, where: "Content-Type"},
		{name: "text by PUT", method: "PUT", header: with(bearer, []string{"Content-Type", "text/plain"}), body: `{}`, want: 415, where: "Content-Type"},
		{name: "an event, structured", method: "POST", path: serve.EventsPath, header: with(bearer, []string{"Content-Type", "application/cloudevents+json"}), body: `{}`, want: 200},
		{name: "an event elsewhere", method: "POST", header: with(bearer, []string{"Content-Type", "application/cloudevents+json"}), body: `{}`, want: 415, where: "Content-Type"},
		{name: "an event without a token", method: "POST", path: serve.EventsPath, header: []string{"Content-Type", "application/cloudevents+json"}, body: `{}`, want: 401, where: "Authorization"},
		{name: "a store's hook", method: "POST", path: serve.HookPath + "t", header: []string{"Content-Type", "text/xml"}, body: `<a/>`, want: 200},
		{name: "a hook from a page", method: "POST", path: serve.HookPath + "t", header: []string{"Origin", "https://evil.example"}, body: `{}`, want: 403, where: "Origin"},
		{name: "a path's own type", method: "POST", path: "/memory/upload", header: with(bearer, []string{"Content-Type", "application/x-ndjson"}), body: "{}\n", want: 200},

		{name: "body over the limit", method: "POST", header: with(bearer, js), body: strings.Repeat(" ", 65), want: 413},
		{name: "a path's own limit", method: "POST", path: "/memory/upload", header: with(bearer, js), body: strings.Repeat(" ", 128), want: 200},
		{name: "over a path's own limit", method: "POST", path: "/memory/upload", header: with(bearer, js), body: strings.Repeat(" ", 129), want: 413},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(or(tc.method, "GET"), or(tc.path, "/memory/query"), strings.NewReader(tc.body))
			r.Host = strings.TrimPrefix(or(tc.host, "127.0.0.1:8080"), "-")
			for i := 0; i < len(tc.header); i += 2 {
				r.Header.Add(tc.header[i], tc.header[i+1])
			}
			w := do(h, r)
			if w.Code != tc.want {
				t.Fatalf("status %d, want %d: %s", w.Code, tc.want, w.Body)
			}
			if tc.where != "" {
				if p := problem(t, w); p.Where != tc.where || p.Hint == "" || p.Message == "" || p.Code == "" {
					t.Errorf("%+v", p)
				}
			}
			if (w.Code == 401) != (w.Header().Get("WWW-Authenticate") != "") {
				t.Errorf("WWW-Authenticate %q", w.Header().Get("WWW-Authenticate"))
			}
			for k, v := range w.Header() {
				if strings.HasPrefix(k, "Access-Control-") {
					t.Errorf("%s: %s", k, v)
				}
			}
			if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("X-Frame-Options") != "DENY" {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
	for _, secret := range []string{token, token[:5], "Bearer", "/memory"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	if !strings.Contains(log.String(), "request refused") {
		t.Error("refusals are not logged")
	}
}

func TestSecureWithoutToken(t *testing.T) {
	t.Parallel()
	h := serve.Secure(serve.SecureConfig{Hosts: []string{"x"}}, http.NotFoundHandler())
	for _, auth := range []string{"", "Bearer ", "Bearer x"} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = "x"
		r.Header.Set("Authorization", auth)
		if w := do(h, r); w.Code != 401 {
			t.Errorf("%q: %d", auth, w.Code)
		}
	}
}

func TestLocalHosts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		addr string
		want []string
	}{
		{"127.0.0.1:8080", []string{"localhost:8080", "127.0.0.1:8080", "[::1]:8080"}},
		{"[::1]:80", []string{"localhost:80", "localhost", "127.0.0.1:80", "127.0.0.1", "[::1]:80", "[::1]"}},
		{"127.1.2.3:9", []string{"localhost:9", "127.0.0.1:9", "[::1]:9", "127.1.2.3:9"}},
	} {
		a, err := net.ResolveTCPAddr("tcp", tc.addr)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.want, serve.LocalHosts(a)); d != "" {
			t.Error(d)
		}
	}
}

func TestCheckBind(t *testing.T) {
	t.Parallel()
	for addr, ok := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.1:0": true, "[::1]:1": true, "localhost:65535": true, "LOCALHOST:1": true, "127.9.9.9:1": true, "[::ffff:127.0.0.1]:1": true,
		":8080": false, "0.0.0.0:8080": false, "[::]:8080": false, "192.168.1.5:80": false, "example.com:80": false, "127.0.0.1": false, "127.0.0.1:x": false, "127.0.0.1:65536": false,
		"127.0.0.1:-1": false, "": false, "127.1:80": false, "0x7f.1:80": false, "[::ffff:10.0.0.1]:1": false, "localhost.evil.example:1": false,
	} {
		err := serve.CheckBind(addr)
		if ok != (err == nil) {
			t.Errorf("%q: %v", addr, err)
		}
		if err != nil && (!fault.Is(err, fault.Invalid) || fault.HintOf(err) == "") {
			t.Errorf("%q: kind or hint of %v", addr, err)
		}
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	first, err := serve.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := serve.Listen(first.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	a, b := first.Addr().(*net.TCPAddr), second.Addr().(*net.TCPAddr)
	if a.Port == b.Port || !b.IP.Equal(a.IP) {
		t.Errorf("%v and %v", a, b)
	}
	if _, err := serve.Listen("0.0.0.0:0"); !fault.Is(err, fault.Invalid) {
		t.Errorf("all interfaces: %v", err)
	}
	if _, err := serve.Listen("127.0.0.1"); !fault.Is(err, fault.Invalid) {
		t.Errorf("no port: %v", err)
	}
}

func TestWriteError(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err   error
		want  int
		after string
		p     serve.Problem
	}{
		{fault.At(fault.Invalid, "q.yaml:3", "remove it", "unknown field"), 400, "", serve.Problem{Code: "invalid", Message: "q.yaml:3: unknown field", Hint: "remove it", Where: "q.yaml:3"}},
		{fault.New(fault.NotFound, "no job"), 404, "", serve.Problem{Code: "not_found", Message: "no job"}},
		{fault.New(fault.Conflict, "taken"), 409, "", serve.Problem{Code: "conflict", Message: "taken"}},
		{fault.New(fault.Denied, "no"), 403, "", serve.Problem{Code: "denied", Message: "no"}},
		{&fault.Error{Kind: fault.Exhausted, Msg: "slow down", RetryAfter: 90 * time.Second}, 429, "90", serve.Problem{Code: "exhausted", Message: "slow down"}},
		{fault.New(fault.Unavailable, "store"), 503, "1", serve.Problem{Code: "unavailable", Message: "store"}},
		{fmt.Errorf("append: %w", fault.New(fault.Corrupt, "bad <hash>")), 422, "", serve.Problem{Code: "corrupt", Message: "append: bad <hash>"}},
		{errors.New("boom"), 500, "", serve.Problem{Code: "internal", Message: "boom"}},
	} {
		w := httptest.NewRecorder()
		w.Header().Set("ETag", `"old"`)
		serve.WriteError(w, tc.err)
		if w.Code != tc.want || w.Header().Get("Retry-After") != tc.after || w.Header().Get("ETag") != "" || w.Header().Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%v: %d %v", tc.err, w.Code, w.Header())
		}
		if d := cmp.Diff(tc.p, problem(t, w)); d != "" {
			t.Errorf("%v: %s", tc.err, d)
		}
	}
}

// ETag = sha256 on reads: brief P15.
func TestETag(t *testing.T) {
	t.Parallel()
	v := map[string]string{"text": "a < b && c"}
	h := serve.Conditional(serve.Conditional(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := 200
		if r.URL.Path == "/accepted" {
			status = 202
		}
		serve.WriteJSON(w, status, v)
	})))
	const wantBody = "{\"text\":\"a < b && c\"}\n"
	etag := `"` + string(memory.Sum([]byte(wantBody))) + `"`
	for _, tc := range []struct {
		name, method, path string
		ifNoneMatch        []string
		want               int
		etag, body         string
	}{
		{"read", "GET", "/", nil, 200, etag, wantBody},
		{"known", "GET", "/", []string{etag}, 304, etag, ""},
		{"known, weak, in a list", "GET", "/", []string{`"x", W/` + etag}, 304, etag, ""},
		{"known, second field", "GET", "/", []string{`"x"`, etag}, 304, etag, ""},
		{"any", "HEAD", "/", []string{"*"}, 304, etag, ""},
		{"old", "GET", "/", []string{`"x"`}, 200, etag, wantBody},
		{"write", "POST", "/", []string{etag}, 200, "", wantBody},
		{"not done yet", "GET", "/accepted", []string{etag}, 202, "", wantBody},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(tc.method, tc.path, nil)
			r.Header["If-None-Match"] = tc.ifNoneMatch
			w := do(h, r)
			if w.Code != tc.want || w.Header().Get("ETag") != tc.etag || w.Body.String() != tc.body {
				t.Errorf("%d %q %q", w.Code, w.Header().Get("ETag"), w.Body)
			}
		})
	}
	w := httptest.NewRecorder()
	serve.WriteJSON(w, 200, v)
	if w.Header().Get("ETag") != etag {
		t.Errorf("without Conditional: %v", w.Header())
	}
	w = httptest.NewRecorder()
	serve.WriteJSON(w, 200, func() {})
	if w.Code != 500 || problem(t, w).Code != "internal" {
		t.Errorf("what JSON cannot hold: %d %s", w.Code, w.Body)
	}
}

// A stream keeps flowing through the wrapper of Conditional.
func TestConditionalFlushes(t *testing.T) {
	t.Parallel()
	w := do(serve.Conditional(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Flusher); !ok {
			t.Error("no Flusher")
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
	})), httptest.NewRequest("GET", "/", nil))
	if !w.Flushed {
		t.Error("not flushed")
	}
}
