package redact_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/redact"
)

var key = []byte("tenant key of the tests")

var fingerprint = regexp.MustCompile(`:[0-9a-f]{6}\]`)

// masked is the redacted text with its fingerprints left out. Tests build
// tokens from parts, so that no scanner takes this file for a leak.
func masked(text string) string {
	out, _ := redact.New(key).Redact(text)
	return fingerprint.ReplaceAllString(out, "]")
}

const (
	rnd16 = "9fK2mQ7xR4tV8wZ1"
	rnd36 = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
	jwt   = "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0" + "." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
)

func TestMasks(t *testing.T) {
	t.Parallel()
	pem := "-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAx7Pq0000000000000000000000000000000000000000\nq1w2e3r4t5y6u7i8o9p0\n-----END " + "RSA PRIVATE KEY-----"
	for _, tt := range []struct{ name, in, want string }{
		{"anthropic", "key sk-" + "ant-api03-" + rnd36 + " end", "key [REDACTED:anthropic_key] end"},
		{"openai", "sk-" + rnd36, "[REDACTED:openai_key]"},
		{"openai project", "(sk-" + "proj-" + rnd36 + ")", "([REDACTED:openai_key])"},
		{"github", "ghp_" + rnd36, "[REDACTED:github_token]"},
		{"github fine-grained", "github_" + "pat_11ABCDEFG0_" + rnd36, "[REDACTED:github_token]"},
		{"gitlab", "glpat-" + rnd16 + "abcd", "[REDACTED:gitlab_token]"},
		{"slack", "xoxb-" + "123456789012-" + rnd16, "[REDACTED:slack_token]"},
		{"aws", "id AKIA" + "Z7WQ2JX4NB5VC6TR.", "id [REDACTED:aws_key_id]."},
		{"google", "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", "[REDACTED:google_key]"},
		{"huggingface", "hf_" + rnd36, "[REDACTED:huggingface_token]"},
		{"npm", "npm_" + rnd36, "[REDACTED:npm_token]"},
		{"pypi", "pypi-" + "AgEIcHlwaS5vcmc" + rnd36, "[REDACTED:pypi_token]"},
		{"stripe", "sk_" + "live_" + rnd16, "[REDACTED:stripe_key]"},
		{"sendgrid", "SG." + rnd16 + "abcdef." + rnd36, "[REDACTED:sendgrid_key]"},
		{"own", "mneme_" + rnd36, "[REDACTED:mneme_token]"},
		{"jwt", "cookie " + jwt + ";", "cookie [REDACTED:jwt];"},
		{"authorization bearer", "Authorization: Bearer " + rnd36, "Authorization: Bearer [REDACTED:authorization]"},
		{"authorization basic", "authorization: Basic dXNlcjpwYXNzd29yZA==", "authorization: Basic [REDACTED:authorization]"},
		{"authorization token", `-H "Authorization: token ` + rnd36 + `"`, `-H "Authorization: token [REDACTED:authorization]"`},
		{"authorization jwt", "Authorization: Bearer " + jwt, "Authorization: Bearer [REDACTED:jwt]"},
		{"authorization json", `{"Authorization": "Bearer ` + rnd36 + `"}`, `{"Authorization": "Bearer [REDACTED:authorization]"}`},
		{"authorization escaped json", `{\"Authorization\":\"Bearer ` + rnd36 + `\"}`, `{\"Authorization\":\"Bearer [REDACTED:authorization]\"}`},
		{"bearer in prose", "send Bearer " + rnd36 + " with it", "send Bearer [REDACTED:bearer_token] with it"},
		{"pem", "a\n" + pem + "\nb", "a\n[REDACTED:private_key]\nb"},
		{"pem escaped", `"key":"` + strings.ReplaceAll(pem, "\n", `\n`) + `\n"`, `"key":"[REDACTED:private_key]\n"`},
		{"pem cut off", "-----BEGIN " + "PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw", "[REDACTED:private_key]"},
		{"export", "export DB_PASSWORD=hunter2x", "export DB_PASSWORD=[REDACTED:password]"},
		{"export any word", "export APP_SECRET=correct-horse-battery", "export APP_SECRET=[REDACTED:secret]"},
		{"export quoted", `export API_TOKEN="` + rnd16 + `"`, `export API_TOKEN="[REDACTED:token]"`},
		{"env line after escape", `FOO=1\nSECRET_KEY=` + rnd16 + `\n`, `FOO=1\nSECRET_KEY=[REDACTED:api_key]\n`},
		{"aws secret", "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY", "AWS_SECRET_ACCESS_KEY=[REDACTED:api_key]"},
		{"vendor inside a name", "OPENAI_API_KEY=sk-" + rnd36, "OPENAI_API_KEY=[REDACTED:openai_key]"},
		{"suffix", "DB_PASSWORD_PROD=hunter2x", "DB_PASSWORD_PROD=[REDACTED:password]"},
		{"json", `{"user":"a","password": "s3cr3tpw"}`, `{"user":"a","password": "[REDACTED:password]"}`},
		{"json escaped", `{\"password\":\"s3cr3tpw\"}`, `{\"password\":\"[REDACTED:password]\"}`},
		{"json word", `{"password":"letmeinplease"}`, `{"password":"[REDACTED:password]"}`},
		{"camel case", `"clientSecret": "` + rnd16 + `"`, `"clientSecret": "[REDACTED:secret]"`},
		{"code", `apiKey := "` + rnd16 + `"`, `apiKey := "[REDACTED:api_key]"`},
		{"yaml", "  api_key: " + rnd16, "  api_key: [REDACTED:api_key]"},
		{"flag", "mysql --password=letmein -u root", "mysql --password=[REDACTED:password] -u root"},
		{"query string", "GET /x?access_token=" + rnd16 + "&a=1", "GET /x?access_token=[REDACTED:token]&a=1"},
		{"long value", "SESSION_TOKEN=" + strings.Repeat(rnd36, 40) + " x", "SESSION_TOKEN=[REDACTED:token] x"},
		{"url", "postgres://app:s3cr3t@db.local:5432/x", "postgres://app:[REDACTED:url_password]@db.local:5432/x"},
		{"url with at sign", "https://u:p@ss1@host/x", "https://u:[REDACTED:url_password]@host/x"},
		{"url plain word", "redis://user:letmein@cache", "redis://user:[REDACTED:url_password]@cache"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, masked(tt.in)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// Prose and code keep every byte.
func TestKeeps(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"commit 3f786850e387550fdab836ed7e6dc881de23001b fixes it",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"id 7f3c1a52-9d1e-4a6f-8b5e-0d7c6a1f2b3c",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
		"we ask the task-runner about risk-based-authentication-flows-in-2024",
		"sk-fading-circle-animation is a css class",
		"MAX_TOKENS=1024 TOKEN_LIMIT=4096 token_count: 500000",
		"password = os.environ[\"DB_PASSWORD\"]",
		"password: str = None",
		"token := getToken(ctx, 15*time.Minute)",
		"def login(user, password=password, token=token):",
		`"password": "password"`, `"password": "string"`, `"token": "identifier"`,
		"DB_PASSWORD=${DB_PASSWORD}", "DB_PASSWORD=$PW12345", "API_KEY=<your api key>", `api_key="your-api-key-here1"`,
		"Authorization: Bearer $TOKEN", "Authorization: Bearer <token>", "the Authorization: header is required",
		"if token == expected1234567 {", "the password: it must be long",
		"secretName: my-app-secret-2", "https://host:8080/a@b", "git@github.com:org/repo.git", "http://a.b/c:d@e",
		"hf_hub_download npm_config_registry pypi-publish mneme_transcripts_bucket",
		"-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\n-----END CERTIFICATE-----",
		"the line -----BEGIN " + "PRIVATE KEY----- opens it",
		"[REDACTED:password:a1b2c3]", "password=[REDACTED:password:a1b2c3]", "",
		"AKIAISNOTAKEY AKIA_CONSTANT_NAME_HERE",
		"time: 12:30:45, ratio 3:4, map[key:value1234]",
	} {
		if got, _ := redact.New(key).Redact(in); got != in {
			t.Errorf("changed:\n  %s\n  %s", in, got)
		}
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	secret := "ghp_" + rnd36
	a, _ := redact.New(key).Redact("one " + secret + " two " + secret)
	first := a[4:strings.IndexByte(a, ']')]
	if n := strings.Count(a, first); n != 2 {
		t.Errorf("the same secret has two marks: %s", a)
	}
	b, _ := redact.New([]byte("another tenant")).Redact(secret)
	if strings.HasPrefix(b, first) {
		t.Errorf("two tenants share the fingerprint %s", first)
	}
}

// check holds what must be true of any text.
func check(t *testing.T, text string) {
	t.Helper()
	r := redact.New(key)
	out, marks := r.Redact(text)
	from, outFrom := 0, 0
	for _, m := range marks {
		if m.Start < from || m.End <= m.Start || m.End > len(text) || m.OutStart < outFrom || m.OutEnd <= m.OutStart || m.OutEnd > len(out) {
			t.Fatalf("mark %+v out of order in %q -> %q", m, text, out)
		}
		if text[from:m.Start] != out[outFrom:m.OutStart] {
			t.Fatalf("text before %+v differs: %q -> %q", m, text, out)
		}
		if !strings.HasPrefix(out[m.OutStart:m.OutEnd], "[REDACTED:"+m.Kind+":") {
			t.Fatalf("mark %+v has no form: %q", m, out)
		}
		from, outFrom = m.End, m.OutEnd
	}
	if text[from:] != out[outFrom:] {
		t.Fatalf("text after the last mark differs: %q -> %q", text, out)
	}
	if utf8.ValidString(text) && !utf8.ValidString(out) {
		t.Fatalf("invalid UTF-8: %q -> %q", text, out)
	}
	if again, more := r.Redact(out); again != out || more != nil {
		t.Fatalf("not idempotent: %q\n-> %q\n-> %q", text, out, again)
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{
		"export DB_PASSWORD=hunter2x", "Authorization: Bearer " + rnd36, "postgres://app:s3cr3t@db/x", "https://u:p:q@r@s",
		`{"password":"s3cr3tpw","token":"` + rnd16 + `"}`, "-----BEGIN " + "PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw\n",
		"password=token=secret=" + rnd16, "a://b:[REDACTED:jwt:000000]@c", "[REDACTED:password:zzzzzz]", jwt + "." + jwt,
		"curl -u a:b1c2d3e4 x", "data:\n  a: YWJj\nkind: Secret", "TOKEN=abc1\\\ndef2", `k = "a1b2c3d4" + "e5f6"`, "a:b1c2d3e4@tcp(x)", "password: >-\n  ab1\n  cd2\n",
		"sk-" + rnd36 + "_password=abc12345", `SECRET="` + `\"` + rnd16 + `"`, "key-----BEGIN " + "PRIVATE KEY----------END ",
	} {
		f.Add(s)
	}
	f.Fuzz(check)
}

// A text made of beginnings takes linear time: 128 KiB of each is read well
// inside the test's own limit, where a quadratic reading takes most of a minute.
func TestLinear(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"token=", "password=\"", "SG.", "eyJ-", "eyJ.", "sk-proj-", "a://b:", "-----BEGIN " + "PRIVATE KEY-----", "Authorization: ", "Bearer ", "[REDACTED:", "\\", "x@:",
		"data:\n kind: Secret\n", "\"+\"", "ghp" + "_\\\n", "a\\\n", "--password ", "-p -u ", "name: \n", "token: >\n ", "password: |\n  a1b2c3d4e5f6\n", "echo a|", "s.", "SK", "hooks.slack.com/services/", "key=a1b2c3d4e5f6a7b8c9d0 ", "<password>", "basic YTpi", "\x1b[", "token is ", "("} {
		check(t, strings.Repeat(p, 1<<17/len(p)))
	}
}

func BenchmarkRedact(b *testing.B) {
	prose := strings.Repeat("We decided to retry three times with a backoff, because the upstream drops connections at 12:30.\n", 40)
	code := strings.Repeat("func (s *Server) handle(w http.ResponseWriter, r *http.Request) error { return s.store.Get(r.Context(), key) }\n", 40)
	secrets := prose + "export DB_PASSWORD=hunter2x\n" + code
	r := redact.New(key)
	for _, bb := range []struct{ name, text string }{{"prose", prose}, {"code", code}, {"one-secret", secrets}} {
		b.Run(bb.name, func(b *testing.B) {
			b.SetBytes(int64(len(bb.text)))
			b.ReportAllocs()
			for b.Loop() {
				r.Redact(bb.text)
			}
		})
	}
}
