package endpoint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm/endpoint"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
)

const key = "sk-0123456789-the-key"

// open is a client of s whose pauses are short.
func open(t *testing.T, s *llmtest.Server, change func(*endpoint.Config)) *endpoint.Client {
	t.Helper()
	c := endpoint.Config{Name: "here", URL: s.URL, Kind: endpoint.Ollama, FirstPause: time.Millisecond, MaxPause: 2 * time.Second, MaxRetries: 2}
	if change != nil {
		change(&c)
	}
	cl, err := endpoint.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

type ask struct {
	Model string `json:"model"`
	User  string `json:"user"`
}

const prompt = "the secret words of the prompt"

func post(t *testing.T, c *endpoint.Client) ([]byte, error) {
	t.Helper()
	return c.Post(t.Context(), endpoint.Chat, "api/chat", ask{"small", prompt})
}

func TestAuthAndKind(t *testing.T) {
	t.Parallel()
	set := endpoint.NewSecret(key)
	for _, tc := range []struct {
		url  string
		key  endpoint.Secret
		auth endpoint.Auth
		kind endpoint.Kind
		base string
		in   int
	}{
		{"https://openrouter.ai/api/v1", set, endpoint.Bearer, endpoint.OpenAI, "https://openrouter.ai/api/v1/", 4},
		{"https://api.openai.com", set, endpoint.Bearer, endpoint.OpenAI, "https://api.openai.com/v1/", 4},
		{"https://API.OpenAI.com/v1/", set, endpoint.Bearer, endpoint.OpenAI, "https://API.OpenAI.com/v1/", 4},
		{"https://api.openai.com.example.org/v1", set, endpoint.APIKey, endpoint.OpenAI, "https://api.openai.com.example.org/v1/", 4},
		{"https://gateway.example.org/llm/v1", set, endpoint.APIKey, endpoint.OpenAI, "https://gateway.example.org/llm/v1/", 4},
		{"http://vllm.models.svc:8000/v1", endpoint.Secret{}, endpoint.None, endpoint.OpenAI, "http://vllm.models.svc:8000/v1/", 4},
		{"http://localhost:11434/v1", set, endpoint.None, endpoint.Ollama, "http://localhost:11434/", 2},
		{"http://127.0.0.1:8000", set, endpoint.None, endpoint.OpenAI, "http://127.0.0.1:8000/v1/", 2},
		{"http://[::1]:11434", endpoint.Secret{}, endpoint.None, endpoint.Ollama, "http://[::1]:11434/", 2},
	} {
		c, err := endpoint.Open(endpoint.Config{URL: tc.url, Key: tc.key})
		if err != nil {
			t.Errorf("%s: %v", tc.url, err)
			continue
		}
		r := c.Resolved()
		got := fmt.Sprint(r.Auth, r.Kind, c.Base(), r.InFlight)
		if want := fmt.Sprint(tc.auth, tc.kind, tc.base, tc.in); got != want {
			t.Errorf("%s: got %s, want %s", tc.url, got, want)
		}
	}
}

func TestOpenNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		c    endpoint.Config
		want []string
	}{
		{endpoint.Config{URL: "localhost:11434"}, []string{"URL"}},
		{endpoint.Config{URL: "ftp://host"}, []string{"URL"}},
		{endpoint.Config{URL: "https://me:" + key + "@host/v1?x=1", Auth: "basic", Kind: "grpc"}, []string{"holds a user", "Auth", "Kind"}},
		{endpoint.Config{URL: "https://host/v1?key=" + key}, []string{"query"}},
		{endpoint.Config{URL: "https://openrouter.ai/api/v1"}, []string{"Key (empty"}},
		{endpoint.Config{URL: "http://169.254.169.254/v1"}, []string{"link-local"}},
		{endpoint.Config{URL: "http://[fe80::1]:8000/v1"}, []string{"link-local"}},
		{endpoint.Config{URL: "https://host/v1", Auth: endpoint.Bearer, Key: endpoint.NewSecret("a\r\nX-Evil: 1")}, []string{"line break"}},
	} {
		_, err := endpoint.Open(tc.c)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", tc.c.Name, err)
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q does not say %q", err, w)
			}
		}
		if strings.Contains(err.Error(), key) {
			t.Errorf("%q holds the key", err)
		}
	}
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	c := endpoint.Config{Key: endpoint.NewSecret(key)}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "key", c.Key, "config", c)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", c.Key, "config", c)
	j, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{log.String(), string(j), fmt.Sprint(c), fmt.Sprintf("%+v %#v %s %q %x %d", c, c, c.Key, c.Key, c.Key, c.Key)} {
		if strings.Contains(s, key) || strings.Contains(s, fmt.Sprintf("%x", key)) {
			t.Errorf("the key prints: %s", s)
		}
		if !strings.Contains(s, "(set)") {
			t.Errorf("no word of the key's presence: %s", s)
		}
	}
}

func TestKeyAndHeaders(t *testing.T) {
	t.Parallel()
	for auth, header := range map[endpoint.Auth]string{endpoint.Bearer: "Authorization", endpoint.APIKey: "Apikey", endpoint.None: ""} {
		s := llmtest.New(t)
		c := open(t, s, func(c *endpoint.Config) { c.Auth, c.Key = auth, endpoint.NewSecret(key) })
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/api/chat", strings.NewReader(`{"model":"small"}`))
		req.Header.Set("X-Stainless-Os", "Linux")
		req.Header.Set("Authorization", "Bearer stray")
		resp, err := c.HTTP(endpoint.Chat).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		h := s.Calls()[0].Header
		h.Del("Content-Length")
		want := http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {"mneme"}}
		switch header {
		case "Authorization":
			want.Set(header, "Bearer "+key)
		case "Apikey":
			want.Set(header, key)
		}
		if d := cmp.Diff(want, h); d != "" {
			t.Errorf("%s: headers (-want +got):\n%s", auth, d)
		}
	}
}

func TestKeyStaysAtItsPlace(t *testing.T) {
	t.Parallel()
	s, other := llmtest.New(t), llmtest.New(t)
	c := open(t, s, func(c *endpoint.Config) { c.Auth, c.Key = endpoint.Bearer, endpoint.NewSecret(key) })
	s.Play(llmtest.Redirect(other.URL))
	if _, err := post(t, c); !fault.Is(err, fault.Invalid) {
		t.Errorf("a redirect gives %v", err)
	}
	for _, elsewhere := range []string{other.URL + "/api/chat", strings.Replace(s.URL, "http", "https", 1) + "/api/chat", strings.Replace(s.URL, "127.0.0.1", "localhost", 1)} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, elsewhere, strings.NewReader("{}"))
		if resp, err := c.HTTP(endpoint.Chat).Do(req); err == nil {
			resp.Body.Close()
			t.Errorf("a request to %s went out", elsewhere)
		} else if !fault.Is(c.Fault(t.Context(), err), fault.Internal) {
			t.Errorf("%s: %v", elsewhere, err)
		}
	}
	if n := len(other.All()); n != 0 {
		t.Errorf("the other host got %d requests", n)
	}
	if n := len(s.All()); n != 1 {
		t.Errorf("the host got %d requests, want the one that it redirected", n)
	}
}

// The proxy variables and OPENAI_* of the environment are not read.
func TestNoEnvironment(t *testing.T) {
	s, proxy := llmtest.New(t), llmtest.New(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	c := open(t, s, func(c *endpoint.Config) { c.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1) })
	if _, err := post(t, c); err != nil {
		t.Fatal(err)
	}
	// A host that is not on loopback: Go's own rule would send it to the proxy.
	far := open(t, s, func(c *endpoint.Config) { c.URL, c.MaxRetries = "http://model.invalid:8000", -1 })
	if _, err := post(t, far); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a host without an address gives %v", err)
	}
	if n := len(proxy.All()); n != 0 {
		t.Errorf("the proxy got %d requests", n)
	}
}

func TestLinkLocal(t *testing.T) {
	t.Parallel()
	for a, bad := range map[string]bool{
		"169.254.169.254": true, "169.254.0.1": true, "fe80::1": true, "febf::1": true, "::ffff:169.254.169.254": true,
		"64:ff9b::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true, "fd00:ec2::254": true, "ff02::1": true, "224.0.0.1": true,
		"127.0.0.1": false, "::1": false, "10.0.0.1": false, "192.168.1.1": false, "169.253.1.1": false, "2001:db8::1": false, "64:ff9b::808:808": false, "fd00::1": false,
	} {
		if got := endpoint.Refused(netip.MustParseAddr(a)) != nil; got != bad {
			t.Errorf("%s refused: %v, want %v", a, got, bad)
		}
	}
	// The check is on the address that is connected to, after the name was resolved.
	s := llmtest.New(t)
	c := open(t, s, func(c *endpoint.Config) { c.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1) })
	c.SetCheck(func(a netip.Addr) error {
		if a.IsLoopback() {
			return endpoint.ErrRefused
		}
		return nil
	})
	if _, err := post(t, c); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "link-local") {
		t.Errorf("a name that leads to a refused address gives %v", err)
	}
	if n := len(s.All()); n != 0 {
		t.Errorf("the refused address got %d requests", n)
	}
}

// TestLoopback: a client that may call this machine alone dials no other.
func TestLoopback(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	if _, err := post(t, open(t, s, func(c *endpoint.Config) { c.Loopback = true })); err != nil {
		t.Error(err)
	}
	for _, url := range []string{"http://192.0.2.1:9", "http://[2001:db8::1]:9"} { // RFC 5737, 3849: nobody's
		c, err := endpoint.Open(endpoint.Config{Name: "here", URL: url, Loopback: true, MaxRetries: -1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := post(t, c); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "another machine") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Each answer, what it becomes, and how often it is asked for.
func TestKinds(t *testing.T) {
	t.Parallel()
	const retried = 3 // the first attempt and MaxRetries
	for name, tc := range map[string]struct {
		play  llmtest.Play
		kind  fault.Kind
		calls int
		hint  string
	}{
		"400":              {llmtest.Status(400, "unknown option"), fault.Invalid, 1, ""},
		"400 window":       {llmtest.Status(400, "the input length exceeds the context length"), fault.Invalid, 1, "num_ctx"},
		"400 vllm window":  {llmtest.Body(400, `{"object":"error","message":"This model's maximum context length is 2048 tokens. However, you requested 2341 tokens","type":"BadRequestError","code":400}`), fault.Invalid, 1, "--max-model-len"},
		"400 cannot":       {llmtest.Status(400, `"small" does not support thinking`), fault.Invalid, 1, "option off"},
		"400 model":        {llmtest.Status(400, "small is not a valid model ID"), fault.NotFound, 1, "pull small"},
		"401":              {llmtest.Status(401, "bad key"), fault.Denied, 1, "auth is none"},
		"403":              {llmtest.Status(403, "no"), fault.Denied, 1, "key"},
		"402":              {llmtest.Status(402, "Insufficient credits"), fault.Exhausted, 1, "credit"},
		"404 model":        {llmtest.UnknownModel(), fault.NotFound, 1, "ollama pull small"},
		"404 path":         {llmtest.Body(404, "404 page not found"), fault.Invalid, 1, "URL"},
		"404 detail":       {llmtest.Body(404, `{"detail":"Not Found"}`), fault.Invalid, 1, "URL"},
		"408":              {llmtest.Status(408, "slow"), fault.Unavailable, retried, ""},
		"409":              {llmtest.Status(409, "no"), fault.Invalid, 1, ""},
		"422":              {llmtest.Status(422, "no"), fault.Invalid, 1, ""},
		"429":              {llmtest.TooMany(""), fault.Exhausted, retried, ""},
		"429 tokens":       {llmtest.Status(429, "too many tokens per minute, context length"), fault.Exhausted, retried, ""},
		"429 quota":        {llmtest.Body(429, `{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}`), fault.Exhausted, 1, "quota"},
		"500":              {llmtest.Status(500, "boom"), fault.Unavailable, retried, ""},
		"500 model":        {llmtest.Status(500, "model \"small\" not found, try pulling it first"), fault.NotFound, 1, "pull"},
		"500 NaN":          {llmtest.Status(500, "failed to encode response: json: unsupported value: NaN"), fault.Invalid, 1, "text"},
		"500 memory":       {llmtest.Status(500, "model requires more system memory (9 GiB) than is available"), fault.Unavailable, 1, "smaller model"},
		"501":              {llmtest.Status(501, "no"), fault.Unavailable, 1, ""},
		"502":              {llmtest.Status(502, "no"), fault.Unavailable, retried, ""},
		"503":              {llmtest.Status(503, "no"), fault.Unavailable, retried, ""},
		"503 queue":        {llmtest.QueueFull(), fault.Exhausted, retried, "OLLAMA_MAX_QUEUE"},
		"504":              {llmtest.Status(504, "no"), fault.Unavailable, retried, ""},
		"302":              {llmtest.Redirect("http://127.0.0.1:1"), fault.Invalid, 1, "redirects"},
		"reset":            {llmtest.Reset(), fault.Unavailable, retried, ""},
		"broken off":       {llmtest.BreaksOff(), fault.Unavailable, 1, ""},
		"quotes all (400)": {llmtest.Echo(400), fault.Invalid, 1, ""},
		"quotes all (401)": {llmtest.Echo(401), fault.Denied, 1, ""},
		"quotes all (500)": {llmtest.Echo(500), fault.Unavailable, retried, ""},
		"quotes all (404)": {llmtest.Echo(404), fault.NotFound, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := llmtest.New(t)
			s.Play(tc.play, tc.play, tc.play, tc.play)
			c := open(t, s, func(c *endpoint.Config) {
				if strings.HasPrefix(name, "quotes") {
					c.Auth, c.Key = endpoint.Bearer, endpoint.NewSecret(key)
				}
			})
			_, err := post(t, c)
			if err == nil || fault.KindOf(err) != tc.kind {
				t.Errorf("got %v (%s), want %s", err, fault.KindOf(err), tc.kind)
			}
			if got := len(s.Calls()); got != tc.calls {
				t.Errorf("%d calls, want %d", got, tc.calls)
			}
			if !strings.Contains(fault.HintOf(err), tc.hint) {
				t.Errorf("hint %q does not say %q", fault.HintOf(err), tc.hint)
			}
			for _, secret := range []string{key, "secret words", "boom"} {
				if strings.Contains(fmt.Sprintf("%v %+v %s", err, err, fault.HintOf(err)), secret) {
					t.Errorf("the error holds %q: %v", secret, err)
				}
			}
		})
	}
}

func TestRefusedConnection(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	c := open(t, s, nil)
	s.Close()
	_, err := post(t, c)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.HintOf(err), "ollama serve") {
		t.Errorf("got %v, hint %q", err, fault.HintOf(err))
	}
}

func TestRetrySucceeds(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Play(llmtest.Reset(), llmtest.TooMany(""))
	if _, err := post(t, open(t, s, nil)); err != nil {
		t.Fatal(err)
	}
	calls := s.Calls()
	if len(calls) != 3 || string(calls[0].Body) != string(calls[2].Body) || !strings.Contains(string(calls[0].Body), prompt) {
		t.Errorf("%d calls; the repeat differs: %q", len(calls), calls)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, " 3 ": 3 * time.Second, "0.5": 500 * time.Millisecond, "0": 0, "-1": 0, "soon": 0, "NaN": 0,
		"Sun, 01 Mar 2026 12:00:05 GMT": 5 * time.Second, "Sun, 01 Mar 2026 11:00:00 GMT": 0, "99999999999": 24 * time.Hour, "Inf": 24 * time.Hour,
	} {
		if got := endpoint.RetryAfter(http.Header{"Retry-After": {v}}, now); got != want {
			t.Errorf("%q: %s, want %s", v, got, want)
		}
	}
	// It is waited for,
	s := llmtest.New(t)
	s.Play(llmtest.TooMany("0.3"))
	begun := time.Now()
	if _, err := post(t, open(t, s, nil)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 300*time.Millisecond {
		t.Errorf("asked again after %s, want 300 ms", took)
	}
	// and where it is too long, handed on at once.
	s.Play(llmtest.Later(503, "3600"))
	if _, err := post(t, open(t, s, nil)); !fault.Is(err, fault.Unavailable) || fault.RetryAfterOf(err) != time.Hour {
		t.Errorf("got %v, retry after %s", err, fault.RetryAfterOf(err))
	}
	if got := len(s.Calls()); got != 3 {
		t.Errorf("%d calls, want 3", got)
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Play(llmtest.Stall(), llmtest.Silent())
	c := open(t, s, func(c *endpoint.Config) { c.Stall, c.Chat = 50*time.Millisecond, time.Minute })
	if _, err := post(t, c); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "silent") {
		t.Errorf("a stall gives %v", err)
	}
	// Silence before the first byte is thinking: the deadline alone ends it.
	c = open(t, s, func(c *endpoint.Config) { c.Stall, c.Chat = 10*time.Millisecond, 200*time.Millisecond })
	begun := time.Now()
	_, err := post(t, c)
	if !fault.Is(err, fault.Unavailable) || errors.Is(err, context.DeadlineExceeded) || time.Since(begun) < 200*time.Millisecond {
		t.Errorf("got %v after %s", err, time.Since(begun))
	}
	if got := len(s.Calls()); got != 2 {
		t.Errorf("%d calls, want 2: neither is repeated", got)
	}
	// Headers alone are no answer yet.
	s.Play(llmtest.Slow(150 * time.Millisecond))
	if b, err := post(t, open(t, s, func(c *endpoint.Config) { c.Stall = 30 * time.Millisecond })); err != nil || len(b) == 0 {
		t.Errorf("a server that thinks behind its headers gives %q, %v", b, err)
	}
}

// TestHugeChat: a server that ignores the bound of a reply is cut off early; vectors
// need the room.
func TestHugeChat(t *testing.T) {
	t.Parallel()
	const n = 9 << 20
	for class, ok := range map[endpoint.Class]bool{endpoint.Chat: false, endpoint.Embed: true} {
		s := llmtest.New(t)
		s.Play(llmtest.Huge(n))
		b, err := open(t, s, nil).Post(t.Context(), class, "api/x", ask{"small", prompt})
		if ok && (err != nil || len(b) != n) || !ok && !fault.Is(err, fault.Unavailable) {
			t.Errorf("class %d: %d bytes, %v", class, len(b), err)
		}
	}
}

func TestHugeBody(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	s.Play(llmtest.Huge(1<<20), llmtest.Huge(1<<20))
	if _, err := post(t, open(t, s, func(c *endpoint.Config) { c.MaxBodyBytes = 1<<20 - 1 })); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a byte too many gives %v", err)
	}
	if b, err := post(t, open(t, s, func(c *endpoint.Config) { c.MaxBodyBytes = 1 << 20 })); err != nil || len(b) != 1<<20 {
		t.Errorf("the most that is allowed gives %d bytes, %v", len(b), err)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	release := s.Hold()
	defer release()
	c := open(t, s, func(c *endpoint.Config) { c.InFlight = 1 })
	why := errors.New("the caller's own reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	got := make(chan error, 2)
	for range 2 { // one in flight, one that waits for its place
		go func() { _, err := c.Post(ctx, endpoint.Chat, "api/chat", ask{"small", prompt}); got <- err }()
	}
	for s.Running() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel(why)
	for range 2 {
		if err := <-got; !errors.Is(err, context.Canceled) || !errors.Is(err, why) || !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
	}
	if n := len(s.Calls()); n != 1 {
		t.Errorf("%d calls, want the one in flight", n)
	}
}

func TestInFlight(t *testing.T) {
	t.Parallel()
	s := llmtest.New(t)
	release := s.Hold()
	c := open(t, s, func(c *endpoint.Config) { c.InFlight = 3 })
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			resp, err := c.HTTP(endpoint.Chat).Post(s.URL+"/api/chat", "application/json", strings.NewReader(`{"model":"small"}`))
			if err != nil {
				t.Error(err)
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		})
	}
	for s.Running() < 3 {
		time.Sleep(time.Millisecond)
	}
	release()
	all.Wait()
	if got := s.Most(); got != 3 {
		t.Errorf("%d calls at a time, want 3", got)
	}
}
