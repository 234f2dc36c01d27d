package baseurl_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/baseurl"
	"github.com/mneme-ai/mneme/shared/fault"
)

// TestDefaults is the table of brief D5: providers are told apart by base URL.
func TestDefaults(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://openrouter.ai/api/v1":             "bearer openrouter",
		"https://OpenRouter.AI./api/v1":            "bearer openrouter",
		"https://api.openai.com":                   "bearer openai",
		"https://API.OpenAI.com:443/v1/":           "bearer openai",
		"https://api.openai.com.example.org/v1":    "apikey openai-compatible",
		"https://evil-openrouter.ai/v1":            "apikey openai-compatible",
		"https://openrouter.ai.localhost/v1":       "none openai-compatible local",
		"https://gateway.example.org/llm/v1":       "apikey openai-compatible",
		"http://vllm.models.svc:8000/v1":           "apikey openai-compatible",
		"http://10.0.0.7:11434":                    "apikey ollama",
		"http://ollama:11434/v1":                   "apikey ollama",
		"http://localhost":                         "none openai-compatible local",
		"http://LOCALHOST.:11434":                  "none ollama local",
		"http://models.localhost:8000/v1":          "none openai-compatible local",
		"http://127.0.0.1:8000":                    "none openai-compatible local",
		"http://127.8.9.10:11434":                  "none ollama local",
		"http://[::1]:11434":                       "none ollama local",
		"http://[::ffff:127.0.0.1]:8000/v1":        "none openai-compatible local",
		"http://localhost.example.org/v1":          "apikey openai-compatible",
		"http://128.0.0.1/v1":                      "apikey openai-compatible",
		"http://2130706433/v1":                     "apikey openai-compatible", // some resolvers read it as 127.0.0.1
		"http://127.0.0.1.nip.example:11434":       "apikey ollama",
		"https://[2001:db8::1]:8000/v1/models/../": "apikey openai-compatible",
	} {
		u, err := baseurl.Parse(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		got := fmt.Sprint(baseurl.AuthOf(u), " ", baseurl.KindOf(u))
		if baseurl.Local(u.Hostname()) {
			got += " local"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"localhost:11434":                            "must be http",
		"ftp://host":                                 "must be http",
		"http://":                                    "must be http",
		"http://:8000/v1":                            "must be http",
		"//host/v1":                                  "must be http",
		"file:///etc/passwd":                         "must be http",
		"http://ho st/":                              "must be http",
		"https://me:sk-secret@host/v1":               "must not hold a user",
		"https://host/v1?key=sk-secret":              "must not hold a user, a query",
		"https://host/v1#sk-secret":                  "a fragment",
		"http://169.254.169.254/v1":                  "link-local",
		"http://169.254.0.1:11434":                   "link-local",
		"http://[fe80::1]:8000/v1":                   "link-local",
		"http://[fe80::1%25eth0]:8000/v1":            "link-local",
		"http://[::ffff:169.254.169.254]/v1":         "link-local",
		"http://[64:ff9b::169.254.169.254]/v1":       "link-local",
		"http://[2002:a9fe:a9fe::1]/v1":              "link-local",
		"http://[fd00:ec2::254]/latest/meta-data":    "link-local",
		"http://169.254.169.254.:80/v1":              "link-local",
		"http://224.0.0.1/v1":                        "link-local",
		" https://169.254.169.254/computeMetadata/ ": "link-local",
	} {
		_, err := baseurl.Parse(url)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q", url, err, want)
		}
	}
	if baseurl.Refused(netip.MustParseAddr("10.0.0.1")) || baseurl.Refused(netip.MustParseAddr("::1")) || baseurl.RefusedHost("metadata.example.org") {
		t.Error("an ordinary address is refused")
	}
}

func TestSame(t *testing.T) {
	t.Parallel()
	first := map[string]string{}
	for _, group := range [][]string{
		{"https://openrouter.ai/api/v1", "https://openrouter.ai:443/api/v1/", "HTTPS://OpenRouter.ai./api/v1"},
		{"http://openrouter.ai/api/v1", "http://openrouter.ai:80/api/v1"},
		{"https://openrouter.ai/api", "https://openrouter.ai/api/"},
		{"https://openrouter.ai", "https://openrouter.ai/"},
		{"https://openrouter.ai/API/v1"}, // a path has its case
		{"https://openrouter.ai/api/v1/../v2"},
		{"https://openrouter.ai:8443/api/v1"},
		{"http://127.0.0.1:11434", " http://127.0.0.1:11434/ "},
		{"http://localhost:11434"}, // may be another address than 127.0.0.1
		{"http://[::1]:11434", "http://[0:0:0:0:0:0:0:1]:11434"},
	} {
		for i, s := range group {
			u, err := baseurl.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			same := baseurl.Same(u)
			switch other, dup := first[same]; {
			case i == 0 && dup:
				t.Errorf("%s and %s are both %s", s, other, same)
			case i == 0:
				first[same] = s
			case other != group[0]:
				t.Errorf("%s is %s, and not as %s", s, same, group[0])
			}
		}
	}
}
