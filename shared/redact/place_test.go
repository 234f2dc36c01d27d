package redact_test

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/redact"
)

// Secrets whose name stands in a place of its own, or that stand beside bytes
// that are no ASCII.
func TestPlaces(t *testing.T) {
	t.Parallel()
	red := redact.New(key)
	var r seeded
	enc := base64.StdEncoding.EncodeToString
	for name, f := range map[string]func(v, pw string) (text string, gone []string){
		"curly quotes":           func(v, _ string) (string, []string) { return "use “ghp_" + v + "” now", []string{v} },
		"no-break space":         func(v, _ string) (string, []string) { return "key:\u00a0ghp_" + v + "\u00a0ok", []string{v} },
		"a script without space": func(v, _ string) (string, []string) { return "令牌是ghp_" + v + "。", []string{v} },
		"type":                   func(v, _ string) (string, []string) { return "export const apiKey: string = `" + v + "`;", []string{v} },
		"type of Go":             func(v, _ string) (string, []string) { return "\tvar apiKey string = \"" + v + "\"", []string{v} },
		"type of Rust":           func(v, _ string) (string, []string) { return "const API_KEY: &str = \"" + v + "\";", []string{v} },
		"bold":                   func(v, _ string) (string, []string) { return "**API_KEY:** " + v, []string{v} },
		"table":                  func(v, _ string) (string, []string) { return "|---|---|\n| API_KEY | " + v + " |", []string{v} },
		"table in code":          func(v, _ string) (string, []string) { return "|---|---|\n| `API_KEY` | `" + v + "` |", []string{v} },
		"csv":                    func(v, _ string) (string, []string) { return "key,value\nAPI_KEY," + v + "\n", []string{v} },
		"set to":                 func(v, _ string) (string, []string) { return "set `API_KEY` to `" + v + "` there", []string{v} },
		"plist": func(v, _ string) (string, []string) {
			return "<key>API_KEY</key>\n\t<string>" + v + "</string>", []string{v}
		},
		"property": func(_, pw string) (string, []string) {
			return "<name>db.password</name><value>" + pw + "</value>", []string{pw}
		},
		"fish":      func(v, _ string) (string, []string) { return "set -gx API_KEY " + v, []string{v} },
		"gh secret": func(v, _ string) (string, []string) { return "gh secret set DEPLOY --body \"" + v + "\"", []string{v} },
		"default":   func(_, pw string) (string, []string) { return "PW=${DB_PASSWORD:-" + pw + "}", []string{pw} },
		"compared":  func(_, pw string) (string, []string) { return "if (password === '" + pw + "') {", []string{pw} },
		"netrc": func(_, pw string) (string, []string) {
			return "machine git.acme.dev\n  login ada\n  password " + pw, []string{pw}
		},
		"pgpass":     func(_, pw string) (string, []string) { return "db.acme.dev:5432:shop:app:" + pw + "\n", []string{pw} },
		"pgpass any": func(_, pw string) (string, []string) { return "*:*:*:app:" + pw + "\n", []string{pw} },
		"sql alter": func(_, pw string) (string, []string) {
			return "ALTER USER app WITH PASSWORD '" + pw + "';", []string{pw}
		},
		"sql create": func(_, pw string) (string, []string) {
			return "CREATE USER 'a'@'%' IDENTIFIED BY '" + pw + "';", []string{pw}
		},
		"redis": func(_, pw string) (string, []string) { return "requirepass " + pw + "\nport 6379", []string{pw} },
		"keygen": func(_, pw string) (string, []string) {
			return "ssh-keygen -t ed25519 -N '" + pw + "' -f k", []string{pw}
		},
		"smb":  func(_, pw string) (string, []string) { return "smbclient //h/s -U ada%" + pw, []string{pw} },
		"lftp": func(_, pw string) (string, []string) { return "lftp -u ada," + pw + " ftp.acme.dev", []string{pw} },
		"7z at the end": func(_, pw string) (string, []string) {
			return "7z x a.zip -p" + pw + "\nls", []string{pw}
		},
		"auth tuple": func(_, pw string) (string, []string) { return "get(u, auth=('ada', '" + pw + "'))", []string{pw} },
		"basic auth": func(_, pw string) (string, []string) { return `req.SetBasicAuth("ada", "` + pw + `")`, []string{pw} },
		"docker config": func(_, pw string) (string, []string) {
			b := enc([]byte("ada:" + pw))
			return `{"auths":{"r.acme.dev":{"auth":"` + b + `"}}}`, []string{b, pw}
		},
		"docker config in base64": func(_, pw string) (string, []string) {
			b := enc([]byte(`{"auths":{"r.acme.dev":{"auth":"` + enc([]byte("ada:"+pw)) + `"}}}`))
			return "  .dockerconfigjson: " + b, []string{b}
		},
		"webhook over a joint": func(v, _ string) (string, []string) {
			a, b := "T"+strings.ToUpper(r.of(small+digits, 6)), r.of(caps+digits, 4)+"/B"+r.of(caps+digits, 10)+"/"+v[:24]
			return "url = 'https://hooks.slack.com/services/" + a + "' +\n  '" + b + "'", []string{b}
		},
		"PowerShell's line end": func(v, _ string) (string, []string) {
			return "$env:API_KEY = \"" + v[:18] + "\" + `\n  \"" + v[18:] + "\"", []string{v[:18], v[18:]}
		},
		"file in folders": func(v, _ string) (string, []string) {
			return "cat /home/ada/projects/shop/secrets/ghp_" + v + ".txt", []string{v}
		},
		"folders behind": func(v, _ string) (string, []string) {
			return "/srv/npm_" + v + "/packages/of/the/whole/team", []string{v}
		},
		"letters like a stub's": func(v, _ string) (string, []string) {
			return "https://discord.com/api/webhooks/123456789012345678/" + v[:30] + "xXXx" + v, []string{v}
		},
		"joined list": func(v, pw string) (string, []string) {
			return `const apiKey = ["` + v[:18] + `", "` + v[18:] + `"].join("")`, []string{v[:18], v[18:]}
		},
		"joined list of a token": func(v, pw string) (string, []string) {
			return `t = "".join(["ghp_` + v[:18] + `", "` + v[18:] + `"])`, []string{v[:18], v[18:]}
		},
		"literal with a prefix": func(_, pw string) (string, []string) {
			return "headers={'Authorization': f'Bearer " + pw + "'}", []string{pw}
		},
		"coloured bot token": func(v, _ string) (string, []string) {
			return "\x1b[31mM" + v[:25] + "." + v[:6] + "." + v + "ab\x1b[0m", []string{v}
		},
		"Django": func(v, _ string) (string, []string) {
			return `["K=django-insecure-` + v[:20] + "!(#%&*)" + v[:24] + `"]`, []string{v[:20]}
		},
	} {
		r = seeded{rand.New(rand.NewPCG(uint64(len(name)), 77))}
		for range 20 {
			v, pw := r.of(base62, 36), r.of(base62, 6)+r.of(digits, 2)+r.of(base62, 5)
			text, gone := f(v, pw)
			text = "It says:\n" + text + "\nand fails."
			out, _ := red.Redact(text)
			for _, g := range gone {
				if strings.Contains(out, g) {
					t.Errorf("%s: %q stays in\n%s", name, g, out)
				}
			}
			if again, _ := red.Redact(out); again != out {
				t.Errorf("%s: redacted again\n%s\ngives\n%s", name, out, again)
			}
		}
	}
}

// A key's lines stand behind something of their own on each.
func TestFramedKeys(t *testing.T) {
	t.Parallel()
	red := redact.New(key)
	r := seeded{rand.New(rand.NewPCG(8, 88))}
	for _, kind := range []string{"RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"} {
		var lines []string
		for range 12 {
			lines = append(lines, r.of(b64Set, 64))
		}
		lines = append(lines, r.of(b64Set, 22)+"==")
		body := lines
		if strings.HasPrefix(kind, "PGP") {
			body = append(append([]string{""}, lines...), "="+r.of(b64Set, 4))
		}
		pem := append(append([]string{"-----BEGIN " + kind + "-----"}, body...), "-----END "+kind+"-----")
		each := func(format string, numbered bool) string {
			var b strings.Builder
			for i, l := range pem {
				if numbered {
					fmt.Fprintf(&b, format, i+1, l)
				} else {
					fmt.Fprintf(&b, format, l)
				}
			}
			return b.String()
		}
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Join(pem, "\n")))
		var wrapped strings.Builder
		for i := 0; i < len(whole); i += 76 {
			wrapped.WriteString(whole[i:min(len(whole), i+76)] + "\n")
		}
		for name, text := range map[string]string{
			"arrow":      each("%6d→%s\n", true),
			"bar":        each("%4d | %s\n", true),
			"dot":        each("%d. %s\n", true),
			"grep":       each("deploy/server.key:%d:%s\n", true),
			"grep alone": each("deploy/server_key.pem:%s\n", false),
			"cut off":    strings.Join(strings.Split(each("%6d→%s\n", true), "\n")[:9], "\n"),
			"kubeconfig": "    client-key-data: " + whole + "\n",
			"wrapped":    "cat key.b64\n" + wrapped.String(),
		} {
			out, _ := red.Redact("I ran it:\n" + text + "\nand it failed.")
			for i, l := range lines {
				if strings.Contains(text, l) && strings.Contains(out, l) {
					t.Errorf("%s, %s: line %d stays:\n%s", kind, name, i, out)
					break
				}
			}
			if strings.Contains(out, whole[:64]) || strings.Contains(out, whole[len(whole)-40:]) {
				t.Errorf("%s, %s: base64 stays:\n%.300s", kind, name, out)
			}
			if !strings.Contains(out, "and it failed.") {
				t.Errorf("%s, %s: the words behind it are gone:\n%s", kind, name, out)
			}
		}
	}
}

// What looks the same and is none stays.
func TestPlacesNoAlarm(t *testing.T) {
	t.Parallel()
	red := redact.New(key)
	for _, text := range []string{
		"the block between '-----BEGIN RSA PRIVATE KEY-----' and\n        '-----END RSA PRIVATE KEY-----' markers",
		"const begin = \"-----BEGIN PRIVATE KEY-----\"\n\nfunc parsePrivateKeyFromFileOrEnvironmentVariable() error {\n\treturn errUnsupportedPrivateKeyEncodingInThisVersion\n}\n// -----END PRIVATE KEY-----",
		"-H \"Authorization: AWS4-HMAC-SHA256 Credential=$aws_access_key_id/$date\"",
		`"AWS::IAM::AccessKey": "62d91b17309e76c8",`,
		"| API_KEY | required, 32 characters |\n| `password` | string |\n| token | Base64Encoder |",
		"key,value\nAPI_KEY,required\nMAX_TOKENS,4096\n",
		"<key>API_KEY</key>\n<string>${API_KEY}</string>",
		"set `API_KEY` to `your-api-key`, and PATH to /usr/bin2",
		"add a token to sha256sum",
		"aa:5432:33:44:55:66 and 12:3456:78:90:ab:cd",
		"server.go:1234:found:here:nothing",
		"GRANT ALL ON USER app BY 'admin'",
		"grouped by 'team42' and ordered BY \"name1\"",
		"auth=('ada', password)",
		`client.SetBasicAuth("user", "pass")`,
		"if password == 'password1' || token === \"\" {",
		"    client-certificate-data: " + base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMIIDBTCCAe2gAwIBAgIIX0aGYxVbWlkwDQYJKoZIhvcNAQELBQAwFTETMBEGA1UE\n")),
		"naïveAKIA is no key",
		"integrity: sha512-cX7iRSEXdPZps6/oy2kd83jr0qmz7vpawct5ylxnfubghe4sxort9zkq1ib5cd/6a8c30CLz2yHGD9sXMf/5w==",
		"for production set auth.existingSecret instead of storing it",
		"('http', 'user', 'password', 'localhost:22')",
	} {
		if out, marks := red.Redact(text); len(marks) > 0 {
			t.Errorf("%q becomes %q", text, out)
		}
	}
}
