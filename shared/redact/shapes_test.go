package redact_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/redact"
)

// pem is a made-up key block.
func pem(r seeded) (block, first string) {
	var b strings.Builder
	b.WriteString("-----BEGIN " + "RSA PRIVATE KEY-----\n")
	for i := range 6 {
		line := r.of(b64Set, 64)
		if i == 0 {
			first = line
		}
		b.WriteString(line + "\n")
	}
	b.WriteString(r.of(b64Set, 20) + "==\n-----END " + "RSA PRIVATE KEY-----")
	return b.String(), first
}

// A private key is masked in every form, and each form has the same mark.
func TestPrivateKeyForms(t *testing.T) {
	t.Parallel()
	block, first := pem(seeded{rand.New(rand.NewPCG(1, 2))})
	prefix := func(p string) string { return p + strings.ReplaceAll(block, "\n", "\n"+p) }
	red := redact.New(key)
	want, _ := red.Redact(block)
	for name, text := range map[string]string{
		"plain":         block,
		"windows":       strings.ReplaceAll(block, "\n", "\r\n"),
		"escaped":       strings.ReplaceAll(block, "\n", `\n`),
		"twice escaped": strings.ReplaceAll(block, "\n", `\\n`),
		"indented":      "key: |\n" + prefix("    "),
		"diff":          prefix("+"),
		"quoted mail":   prefix("> "),
		"json":          `{"private_key": ` + quoteJSON(block) + `}`,
		"one line":      "export KEY='" + strings.ReplaceAll(block, "\n", " ") + "'",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, marks := red.Redact(text)
			if strings.Contains(out, first[:16]) || len(marks) != 1 {
				t.Fatalf("%d marks: %s", len(marks), out)
			}
			m := marks[0]
			if name != "one line" {
				if d := cmp.Diff(want, out[m.OutStart:m.OutEnd]); d != "" {
					t.Errorf("-plain +%s:\n%s", name, d)
				}
			}
		})
	}
}

// The same secret has the same fingerprint, whole or over a joint or escaped.
func TestSameSecretOverJoints(t *testing.T) {
	t.Parallel()
	r := seeded{rand.New(rand.NewPCG(3, 4))}
	tok := "gh" + "p_" + r.of(base62, 36)
	slash := r.of(base62, 20) + "/" + r.of(base62, 19)
	red := redact.New(key)
	print := func(text string) string {
		out, marks := red.Redact(text)
		if len(marks) == 0 {
			t.Fatalf("no mark in %s", out)
		}
		m := out[marks[0].OutStart:marks[0].OutEnd]
		return m[len(m)-7:]
	}
	for _, tt := range []struct{ name, a, b string }{
		{"continuation", "T=" + tok, "T=" + tok[:20] + "\\\n" + tok[20:]},
		{"literals", "t = \"" + tok + "\"", "t = \"" + tok[:9] + "\" +\n  \"" + tok[9:] + "\""},
		{"a wrapped line", tok, "  " + tok[:30] + "\n  " + tok[30:] + "\n  done"},
		{"escaped slash", `{"secret":"` + slash + `"}`, `{"secret":"` + strings.ReplaceAll(slash, "/", `\/`) + `"}`},
		{"escaped by code", `{"secret":"` + slash + `"}`, `{"secret":"` + strings.ReplaceAll(slash, "/", `\u002f`) + `"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(print(tt.a), print(tt.b)); d != "" {
				t.Errorf("-whole +split:\n%s", d)
			}
		})
	}
}

// A value that one line names as a secret is gone from the others.
func TestElsewhereInTheText(t *testing.T) {
	t.Parallel()
	r := seeded{rand.New(rand.NewPCG(5, 6))}
	v := r.of(base62, 14)
	out, marks := redact.New(key).Redact("psql says " + v + " is wrong\nexport DB_PASSWORD=" + v + "\nx" + v + "y stays\n" + v)
	if len(marks) != 3 || !strings.Contains(out, "x"+v+"y") {
		t.Errorf("%d marks: %s", len(marks), out)
	}
}

// Shapes that the planted set has not, with the counter-example beside each.
func TestShapes(t *testing.T) {
	t.Parallel()
	r := seeded{rand.New(rand.NewPCG(7, 8))}
	pw, tok, hexed := r.of(base62, 12), r.of(base62, 30), r.of(hexSet, 40)
	word := func(n int) string { return r.of(base62, n) }
	telegramTail := "A" + r.of(urlSet, 34)
	for _, tt := range []struct{ name, hit, secret, keep string }{
		{"curl user", "curl -s -u me:" + pw + " https://x", pw, "ls -u me:mine"},
		{"sshpass", "sshpass -p '" + pw + "' ssh h", pw, "mkdir -p 'a1b2c3d4e5f6'"},
		{"mysql", "mysql -uroot -p" + pw + " db", pw, "tar -p" + pw},
		{"redis", "redis-cli -a " + pw + " ping", pw, "ls -a " + pw},
		{"docker login", "docker login -u me -p " + pw + " r.io", pw, "docker run -p 8080:80 img"},
		{"password-stdin", "echo " + pw + " | docker login -u me --password-stdin", pw, "echo " + pw + " | wc -c"},
		{"powershell secure string", `ConvertTo-SecureString "` + pw + `" -AsPlainText -Force`, pw, `ConvertTo-SecureString $pw -AsPlainText`},
		{"powershell parameter", `Connect-X -Password "` + pw + `"`, pw, `Connect-X -Password $pw`},
		{"args list", `["mysqldump", "--password", "` + pw + `"]`, pw, `["tool", "--name", "` + pw + `"]`},
		{"netrc", "machine h login me password " + pw, pw, "the password " + "changed in build7"},
		{"xml attribute", `<add key="DbPassword" value="` + pw + `" />`, pw, `<add key="Theme" value="` + pw + `" />`},
		{"xml tag", "<password>" + pw + "</password>", pw, "<version>" + pw + "</version>"},
		{"call", `client.setApiKey("` + tok + `")`, tok, `client.setTitle("` + tok + `")`},
		{"go dsn", "app:" + pw + "@tcp(127.0.0.1:3306)/db", pw, "git@github.com:org/repo.git"},
		{"proxy without scheme", "proxy me:" + pw + "@proxy.local:3128", pw, "2020-01-19:20200119135241.GA4970@gmail.com"},
		{"url token", "git clone https://" + hexed + "@git.acme.dev/x", hexed, "https://cdn.acme.dev/" + hexed + "/x@2"},
		{"url with a slash", "amqp://u:" + pw[:6] + "/" + pw[6:] + "@mq:5672", pw[6:], "http://h:8080/" + pw + "@x"},
		{"slack webhook", "https://hooks.slack.com/services/T0" + word(9) + "/B0" + word(9) + "/" + tok, tok, "https://hooks.slack.com/services/T000/B000/XXXX"},
		{"discord webhook", "https://discord.com/api/webhooks/" + r.of("123456789", 18) + "/" + word(68), "webhooks/1", "https://discord.com/api/webhooks/ID/TOKEN"},
		{"telegram", "https://api.telegram.org/bot" + r.of("123456789", 9) + ":" + telegramTail + "/getMe", telegramTail, "12:34:56 " + telegramTail[:20]},
		{"discord bot", "M" + word(23) + "." + r.of(urlSet, 6) + "." + r.of(urlSet, 38), ".", "Module.exports.handlers"},
		{"terraform", word(14) + ".atlasv1." + word(64), "atlasv1", "x.atlasv1.json"},
		{"old vault", "s." + "Ab3" + word(20) + "7", "Ab3", "s.ReadUint16LengthPrefixed(x)"},
		{"aws csv", "id,secret\nAK" + "IA" + r.of(caps+"234567", 16) + "," + word(20) + "/" + word(18) + "1\n", "/", "commit " + hexed},
		{"sas", "https://x.blob.core.windows.net/c?sv=2022&sig=" + word(42) + "%3D&se=2026", "%3D", "doc?page=2&sig=no"},
		{"docker config", `{"auths":{"r.io":{"auth":"` + "bWU6" + word(24) + `"}}}`, "bWU6", `{"auth":"basic"}`},
		{"npmrc", "//registry.acme.dev/:_authToken=" + tok, tok, "//registry.acme.dev/:always-auth=true"},
		{"quoted mail", "> password: " + pw, pw, "> password: it must be long"},
		{"markdown", "**Password**: " + pw, pw, "**Password**: required"},
		{"escaped equals", `https://x/?a=1\u0026access_token=` + tok, tok, `a\u0026b`},
		{"passphrase", "DB_PASSWORD=\"two words 12\"", "two words", "NAME=\"two words 12\""},
		{"brackets in an env file", "DB_PASSWORD=p@ss(" + pw + ")&x1\n", "&x1", "db_password=get_pass(a, b1)\n"},
		{"terraform default", "variable \"db_password\" {\n  default = \"" + tok + "\"\n}", tok, "variable \"region\" {\n  default = \"" + tok + "\"\n}"},
		{"stand-in", "process.env.API_KEY || '" + tok + "'", tok, "process.env.TITLE || '" + tok + "'"},
		{"prompt", "AWS Secret Access Key [None]: " + tok + "a1", tok, "Default region name [None]: " + tok + "a1"},
		{"putty", "Private-Lines: 2\n" + r.of(b64Set, 64) + "\n" + r.of(b64Set, 40) + "\nPrivate-MAC: 1", "/", "Public-Lines: 2\n" + r.of(b64Set, 64) + "\n"},
		{"cookie", "Cookie: theme=dark; sid=" + tok, tok, "Cookie: theme=dark; lang=" + tok},
		{"a star inside", "password: '" + pw[:6] + "*-" + pw[6:] + "'", pw[6:], "password: '***" + "'"},
		{"percent escape", "redirect=https%3A%2F%2Fx%3Ftoken%3Dgh" + "p_" + word(36), "p_", "x%3Ftoken%3Dnone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.hit)
			if out := masked(tt.hit); strings.Contains(strings.ReplaceAll(out, "[REDACTED", ""), tt.secret) && out == tt.hit {
				t.Errorf("stays: %s", out)
			}
			if d := cmp.Diff(tt.keep, masked(tt.keep)); d != "" {
				t.Errorf("counter-example (-want +got):\n%s", d)
			}
		})
	}
}

// Placeholders stand for secrets and are none.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	for _, v := range []string{
		"example-key-123", "changeme", "changeme123", "<your-key>", "${DB_PASSWORD}", "$DB_PASSWORD", "$(cat pw)", "%PASSWORD%", "{{ .Values.password }}",
		"xxxxxxxxxxxx", "XXXXXXXXXXXXXXXX", "************", "process.env.DB_PASSWORD", "os.getenv(\"X\")", "os.environ['X']", "your_api_key_here", "my-secret-1",
		"sk-...", "REDACTED", "1234567890", "0123456789abcdef0123456789abcdef", "aaaaaaaaaaaaaaaa", "null", "None", "vault:secret/data/x#pw", "op://vault/item/pw", "dummy-token-1", "arn:aws:secretsmanager:eu-west-1:1:secret:x",
	} {
		for _, f := range []string{"DB_PASSWORD=%", "api_key: %", `{"secret": "%"}`, "export API_TOKEN='%'", "Authorization: Bearer %"} {
			text := strings.Replace(f, "%", v, 1)
			if d := cmp.Diff(text, masked(text)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		}
	}
}
