package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/redact"
)

// Alphabets of the made-up secrets.
const (
	small  = "abcdefghijklmnopqrstuvwxyz"
	digits = "0123456789"
	caps   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	hexSet = "0123456789abcdef"
	base62 = small + caps + digits
	urlSet = base62 + "-_"
	b64Set = base62 + "+/"
)

// seeded makes secrets of a seed, so that none stands in this file.
type seeded struct{ *rand.Rand }

func (r seeded) of(set string, n int) string {
	for {
		b := make([]byte, n)
		for i := range b {
			b[i] = set[r.IntN(len(set))]
		}
		// A digit, as n random bytes of these sets nearly always have.
		if n < 8 || strings.ContainsAny(string(b), digits) || !strings.ContainsAny(set, digits) {
			return string(b)
		}
	}
}

// planted is a kind of secret. named ones have no shape of their own: the name
// before them tells.
type planted struct {
	kind  string
	name  string // of a variable that holds it
	named bool
	make  func(r seeded) string
}

func join(parts ...string) string { return strings.Join(parts, "") }

var plantedKinds = []planted{
	{"aws key id", "AWS_ACCESS_KEY_ID", false, func(r seeded) string { return join("AK", "IA", r.of(caps+"234567", 16)) }},
	{"aws secret", "AWS_SECRET_ACCESS_KEY", true, func(r seeded) string { return r.of(b64Set, 40) }},
	{"github pat", "GITHUB_TOKEN", false, func(r seeded) string { return join("gh", "p_", r.of(base62, 36)) }},
	{"github fine-grained", "GH_TOKEN", false, func(r seeded) string { return join("github", "_pat_", r.of(base62, 22), "_", r.of(base62, 59)) }},
	{"gitlab pat", "GITLAB_TOKEN", false, func(r seeded) string { return join("gl", "pat-", r.of(urlSet, 20)) }},
	{"slack bot", "SLACK_BOT_TOKEN", false, func(r seeded) string {
		return join("xo", "xb-", r.of(digits, 12), "-", r.of(digits, 12), "-", r.of(base62, 24))
	}},
	{"stripe", "STRIPE_SECRET_KEY", false, func(r seeded) string { return join("sk", "_live_", r.of(base62, 24)) }},
	{"openai project", "OPENAI_API_KEY", false, func(r seeded) string { return join("sk", "-proj-", r.of(urlSet, 48)) }},
	{"openai old", "OPENAI_KEY", false, func(r seeded) string { return join("sk", "-", r.of(base62, 48)) }},
	{"anthropic", "ANTHROPIC_API_KEY", false, func(r seeded) string { return join("sk", "-ant-api03-", r.of(urlSet, 93), "AA") }},
	{"google api", "GOOGLE_API_KEY", false, func(r seeded) string { return join("AI", "za", r.of(urlSet, 35)) }},
	{"huggingface", "HF_TOKEN", false, func(r seeded) string { return join("h", "f_", r.of(base62, 34)) }},
	{"npm", "NPM_TOKEN", false, func(r seeded) string { return join("np", "m_", r.of(base62, 36)) }},
	{"pypi", "PYPI_TOKEN", false, func(r seeded) string { return join("py", "pi-AgEIcHlwaS5vcmc", r.of(urlSet, 120)) }},
	{"sendgrid", "SENDGRID_API_KEY", false, func(r seeded) string { return join("S", "G.", r.of(urlSet, 22), ".", r.of(urlSet, 43)) }},
	{"twilio key", "TWILIO_API_KEY", false, func(r seeded) string { return join("S", "K", r.of(hexSet, 32)) }},
	{"twilio auth token", "TWILIO_AUTH_TOKEN", true, func(r seeded) string { return r.of(hexSet, 32) }},
	{"jwt", "SESSION_JWT", false, func(r seeded) string {
		enc := base64.RawURLEncoding.EncodeToString
		return join(enc([]byte(`{"alg":"HS256"}`)), ".", enc(fmt.Appendf(nil, `{"sub":"%s"}`, r.of(digits, 10))), ".", r.of(urlSet, 43))
	}},
	{"digitalocean", "DO_TOKEN", false, func(r seeded) string { return join("dop", "_v1_", r.of(hexSet, 64)) }},
	{"shopify", "SHOPIFY_TOKEN", false, func(r seeded) string { return join("shp", "at_", r.of(hexSet, 32)) }},
	{"databricks", "DATABRICKS_TOKEN", false, func(r seeded) string { return join("da", "pi", r.of(hexSet, 32)) }},
	{"vault", "VAULT_TOKEN", false, func(r seeded) string { return join("hv", "s.", r.of(urlSet, 95)) }},
	{"telegram", "TELEGRAM_BOT_TOKEN", false, func(r seeded) string { return join(r.of("123456789", 9), ":A", "A", r.of(urlSet, 33)) }},
	{"mailgun", "MAILGUN_API_KEY", false, func(r seeded) string { return join("ke", "y-", r.of(hexSet, 32)) }},
	{"heroku", "HEROKU_API_KEY", true, func(r seeded) string {
		return join(r.of(hexSet, 8), "-", r.of(hexSet, 4), "-4", r.of(hexSet, 3), "-a", r.of(hexSet, 3), "-", r.of(hexSet, 12))
	}},
	{"azure client secret", "AZURE_CLIENT_SECRET", false, func(r seeded) string { return join(r.of(base62, 3), "8Q~", r.of(base62+"_.~-", 33), "x") }},
	{"azure storage key", "AZURE_STORAGE_KEY", true, func(r seeded) string { return join(r.of(b64Set, 86), "==") }},
	{"linear", "LINEAR_API_KEY", false, func(r seeded) string { return join("lin", "_api_", r.of(base62, 40)) }},
	{"notion", "NOTION_TOKEN", false, func(r seeded) string { return join("nt", "n_", r.of(digits, 11), r.of(base62, 35)) }},
	{"datadog", "DATADOG_API_KEY", true, func(r seeded) string { return r.of(hexSet, 32) }},
	{"password of letters and digits", "DB_PASSWORD", true, func(r seeded) string { return r.of(base62, 12) }},
	{"password with signs", "ADMIN_PASSWORD", true, func(r seeded) string { return join(r.of(base62, 8), "!", r.of(base62, 3), "#", r.of(digits, 2)) }},
	{"password of a person", "SMTP_PASSWORD", true, func(r seeded) string { return join(r.of(caps, 1), r.of(small, 7), r.of(digits, 4), "!") }},
	{"client secret", "OAUTH_CLIENT_SECRET", true, func(r seeded) string { return r.of(urlSet, 40) }},
	{"hex token", "API_TOKEN", true, func(r seeded) string { return r.of(hexSet, 40) }},
	{"signing key", "JWT_SIGNING_KEY", true, func(r seeded) string { return r.of(b64Set, 44) }},
}

// shape writes a secret as people's transcripts hold it; want says which
// strings must be gone.
type shape struct {
	name   string
	prefix bool // fits only secrets that show by themselves
	write  func(name, v string) (text string, gone []string)
}

func quoteJSON(v string) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a string always marshals
	}
	return string(b)
}

func plain(f func(name, v string) string) func(string, string) (string, []string) {
	return func(name, v string) (string, []string) { return f(name, v), []string{v} }
}

// cut halves a secret; the halves must be gone, each but for its ends.
func cut(f func(name, a, b string) string) func(string, string) (string, []string) {
	return func(name, v string) (string, []string) {
		k := len(v)/2 + 1
		return f(name, v[:k], v[k:]), []string{v[:k], v[k:]}
	}
}

func lowerName(name string) string { return strings.ToLower(name) }

func camel(name string) string {
	parts := strings.Split(strings.ToLower(name), "_")
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
	}
	return strings.Join(parts, "")
}

var plantedShapes = []shape{
	{"export", false, plain(func(n, v string) string { return "$ export " + n + "=" + v + "\n$ make deploy" })},
	{"export quoted", false, plain(func(n, v string) string { return "export " + n + "='" + v + "'\n" })},
	{"env file", false, plain(func(n, v string) string { return "PORT=8080\n" + n + "=" + v + "\nDEBUG=1\n" })},
	{"env file quoted", false, plain(func(n, v string) string { return "PORT=8080\n" + n + "=\"" + v + "\"\nDEBUG=1\n" })},
	{"json", false, plain(func(n, v string) string {
		return `{"port": 8080, "` + lowerName(n) + `": ` + quoteJSON(v) + `, "debug": true}`
	})},
	{"json camel", false, plain(func(n, v string) string { return "{\n  \"" + camel(n) + "\": " + quoteJSON(v) + "\n}" })},
	{"json in json", false, plain(func(n, v string) string {
		return quoteJSON(`{"` + lowerName(n) + `":"` + v + `","a":1}`)
	})},
	{"json in json in json", false, plain(func(n, v string) string {
		return quoteJSON(quoteJSON(`{"` + lowerName(n) + `": "` + v + `"}`))
	})},
	{"yaml", false, plain(func(n, v string) string { return "app:\n  " + lowerName(n) + ": " + v + "\n  port: 80\n" })},
	{"yaml quoted", false, plain(func(n, v string) string { return "app:\n  " + lowerName(n) + ": \"" + v + "\"\n" })},
	{"yaml name and value", false, plain(func(n, v string) string {
		return "env:\n  - name: " + n + "\n    value: " + v + "\n  - name: PORT\n    value: \"80\"\n"
	})},
	{"json name and value", false, plain(func(n, v string) string { return `[{"name": "` + n + `", "value": "` + v + `"}]` })},
	{"toml", false, plain(func(n, v string) string { return "[db]\n" + lowerName(n) + " = \"" + v + "\"\n" })},
	{"ini", false, plain(func(n, v string) string { return "[default]\n" + lowerName(n) + " = " + v + "\nregion = eu\n" })},
	{"diff added", false, plain(func(n, v string) string {
		return "@@ -1,2 +1,3 @@\n PORT=80\n-" + n + "=changeme\n+" + n + "=" + v + "\n"
	})},
	{"diff removed", false, plain(func(n, v string) string {
		return "-  " + lowerName(n) + ": \"" + v + "\"\n+  " + lowerName(n) + ": ${" + n + "}\n"
	})},
	{"docker run", false, plain(func(n, v string) string { return "docker run -d -e " + n + "=" + v + " --name db postgres:16" })},
	{"dockerfile", false, plain(func(n, v string) string { return "FROM alpine\nENV " + n + " " + v + "\nRUN true\n" })},
	{"compose", false, plain(func(n, v string) string { return "    environment:\n      - " + n + "=" + v + "\n" })},
	{"powershell", false, plain(func(n, v string) string { return "PS C:\\> $env:" + n + " = \"" + v + "\"" })},
	{"cmd", false, plain(func(n, v string) string { return "C:\\> set " + n + "=" + v + "\r\n" })},
	{"python", false, plain(func(n, v string) string { return "os.environ[\"" + n + "\"] = \"" + v + "\"\n" })},
	{"javascript", false, plain(func(n, v string) string { return "const " + camel(n) + " = '" + v + "';\n" })},
	{"go", false, plain(func(n, v string) string { return "\t" + camel(n) + " := \"" + v + "\"\n" })},
	{"ruby", false, plain(func(n, v string) string { return "  :" + lowerName(n) + " => '" + v + "',\n" })},
	{"java properties", false, plain(func(n, v string) string {
		return "spring.datasource." + strings.ReplaceAll(lowerName(n), "_", ".") + "=" + v + "\n"
	})},
	{"setenv call", false, plain(func(n, v string) string { return "os.Setenv(\"" + n + "\", \"" + v + "\")" })},
	{"flag", false, plain(func(n, v string) string {
		return "deploy --" + strings.ReplaceAll(lowerName(n), "_", "-") + "=" + v + " --yes"
	})},
	{"flag apart", false, plain(func(n, v string) string {
		return "deploy --" + strings.ReplaceAll(lowerName(n), "_", "-") + " " + v + " --yes"
	})},
	{"xml", false, plain(func(n, v string) string { return "<" + camel(n) + ">" + v + "</" + camel(n) + ">" })},
	{"query string", false, func(n, v string) (string, []string) {
		e := url.QueryEscape(v)
		return "GET https://api.acme.dev/v1/x?page=2&" + lowerName(n) + "=" + e + "&z=1 HTTP/1.1", []string{v, e}
	}},
	{"bearer header", false, plain(func(n, v string) string { return "curl -H 'Authorization: Bearer " + v + "' https://api.acme.dev/v1" })},
	{"basic header", false, func(n, v string) (string, []string) {
		b := base64.StdEncoding.EncodeToString([]byte("deploy:" + v))
		return "> GET / HTTP/1.1\n> Authorization: Basic " + b + "\n> Accept: */*", []string{b, v}
	}},
	{"api key header", false, plain(func(n, v string) string { return "curl -H \"X-Api-Key: " + v + "\" https://api.acme.dev" })},
	{"curl user", false, plain(func(n, v string) string { return "curl -u deploy:" + v + " https://api.acme.dev" })},
	{"url", false, func(n, v string) (string, []string) {
		e := url.QueryEscape(v)
		return "postgres://app:" + e + "@db.acme.dev:5432/app?sslmode=disable", []string{v, e}
	}},
	{"connection string", false, plain(func(n, v string) string { return "Server=db,1433;User Id=sa;Password=" + v + ";Encrypt=true" })},
	{"kubernetes secret", false, func(n, v string) (string, []string) {
		b := base64.StdEncoding.EncodeToString([]byte(v))
		return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: app\ntype: Opaque\ndata:\n  " + lowerName(n) + ": " + b + "\n", []string{b, v}
	}},
	{"kubectl literal", false, plain(func(n, v string) string {
		return "kubectl create secret generic app --from-literal=" + lowerName(n) + "=" + v
	})},
	{"continuation", false, cut(func(n, a, b string) string { return "export " + n + "=" + a + "\\\n" + b + "\nmake\n" })},
	{"continuation in json", false, cut(func(n, a, b string) string {
		return `{"command":` + quoteJSON("export "+n+"="+a+"\\\n"+b+"\nmake") + `}`
	})},
	{"continuation in quotes", false, cut(func(n, a, b string) string { return n + "=\"" + a + "\\\n" + b + "\" make\n" })},
	{"concatenation", false, cut(func(n, a, b string) string { return camel(n) + " = \"" + a + "\" +\n    \"" + b + "\";\n" })},
	{"concatenation in python", false, cut(func(n, a, b string) string { return lowerName(n) + " = (\"" + a + "\"\n    \"" + b + "\")\n" })},
	{"diff and continuation", false, cut(func(n, a, b string) string { return "+export " + n + "=" + a + "\\\n+" + b + "\n+make\n" })},
	{"yaml folded", false, cut(func(n, a, b string) string { return lowerName(n) + ": >-\n  " + a + "\n  " + b + "\nport: 80\n" })},
	{"escaped slash", false, func(n, v string) (string, []string) {
		e := strings.ReplaceAll(v, "/", `\/`)
		return `{"` + lowerName(n) + `":"` + e + `"}`, []string{v, e}
	}},
	{"colours", true, plain(func(n, v string) string { return "\x1b[32m" + v + "\x1b[0m ok" })},
	{"prose", true, plain(func(n, v string) string { return "The key is " + v + ", please do not commit it." })},
	{"bare line", true, plain(func(n, v string) string { return v + "\n" })},
	{"markdown", true, plain(func(n, v string) string { return "use `" + v + "` for staging" })},
	{"log", true, plain(func(n, v string) string { return "2026-01-02T03:04:05Z WARN auth failed (" + v + ")" })},
	{"csv", true, plain(func(n, v string) string { return "name,value\nci," + v + ",x\n" })},
	{"array", true, plain(func(n, v string) string { return `["` + v + `","b"]` })},
	{"prose with a name", false, plain(func(n, v string) string {
		return "my " + strings.ReplaceAll(lowerName(n), "_", " ") + " is " + v + " ok?"
	})},
}

// misfit are pairs of kind and shape that nobody writes, or that say nothing.
func misfit(k planted, s shape, v string) bool {
	switch {
	case k.named && s.prefix:
		return true
	case s.name == "prose with a name" && k.name == "JWT_SIGNING_KEY":
		return false
	// A shell or a URL parser would read another value.
	case strings.ContainsAny(v, "!#") && (s.name == "curl user" || s.name == "continuation in quotes"):
		return false
	}
	return false
}

// No planted secret stays, in any shape; the figures are printed by -v.
func TestPlanted(t *testing.T) {
	t.Parallel()
	red := redact.New(key)
	total, missed := 0, map[string]int{}
	for ki, k := range plantedKinds {
		r := seeded{rand.New(rand.NewPCG(uint64(ki), 41))}
		for _, s := range plantedShapes {
			for range 6 {
				v := k.make(r)
				if misfit(k, s, v) {
					continue
				}
				text, gone := s.write(k.name, v)
				text = "Here is what I ran:\n" + text + "\nand it failed."
				total++
				out, _ := red.Redact(text)
				for _, g := range gone {
					if left(out, g) {
						missed[k.kind+" / "+s.name]++
						if missed[k.kind+" / "+s.name] == 1 {
							t.Errorf("%s as %s stays:\n%s\n-> %s", k.kind, s.name, text, out)
						}
						break
					}
				}
			}
		}
	}
	t.Logf("%d planted: %d kinds, %d shapes; missed in %d pairs", total, len(plantedKinds), len(plantedShapes), len(missed))
}

// left says that the secret, or eight bytes of it in a row, is still there.
func left(out, secret string) bool {
	const telling = 8
	if len(secret) <= telling {
		return strings.Contains(out, secret)
	}
	for i := 0; i+telling <= len(secret); i++ {
		w := secret[i : i+telling]
		if strings.Contains(out, w) && !strings.HasPrefix(secret, w) {
			return true
		}
	}
	return false
}
