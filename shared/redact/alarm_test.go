package redact_test

import (
	"encoding/base64"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/redact"
)

// Texts full of random-looking values that are no secrets: not one alarm.
func TestNoAlarms(t *testing.T) {
	t.Parallel()
	r := seeded{rand.New(rand.NewPCG(11, 12))}
	uuid := func() string {
		return join(r.of(hexSet, 8), "-", r.of(hexSet, 4), "-4", r.of(hexSet, 3), "-b", r.of(hexSet, 3), "-", r.of(hexSet, 12))
	}
	b64 := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.IntN(256))
		}
		return base64.StdEncoding.EncodeToString(b)
	}
	semver := func() string { return fmt.Sprintf("%d.%d.%d", r.IntN(9), r.IntN(20), r.IntN(40)) }
	name := func() string { return r.of(small, 4+r.IntN(8)) }
	vendors := []string{"sentry", "twitter", "facebook", "linear", "mapbox", "algolia", "datadog", "stripe", "auth-token", "jwt-secret", "password-hash", "key-store", "token-bucket"}
	vendor := func() string { return vendors[r.IntN(len(vendors))] }
	for kind, line := range map[string]func() string{
		"go.sum": func() string {
			return fmt.Sprintf("github.com/%s/%s v%s h1:%s\n", name(), vendor(), semver(), b64(32))
		},
		"package-lock": func() string {
			n := name()
			if r.IntN(3) == 0 {
				n = vendor()
			}
			v := semver()
			return fmt.Sprintf("    \"node_modules/%s\": {\n      \"version\": \"%s\",\n      \"resolved\": \"https://registry.npmjs.org/%s/-/%s-%s.tgz\",\n      \"integrity\": \"sha512-%s\",\n      \"license\": \"MIT\"\n    },\n", n, v, n, n, v, b64(64))
		},
		"yarn.lock": func() string {
			n := vendor()
			return fmt.Sprintf("%s@^%s:\n  version \"%s\"\n  resolved \"https://registry.yarnpkg.com/%s/-/%s-1.0.0.tgz#%s\"\n  integrity sha512-%s\n", n, semver(), semver(), n, n, r.of(hexSet, 40), b64(64))
		},
		"Cargo.lock": func() string {
			return fmt.Sprintf("[[package]]\nname = %q\nversion = %q\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"%s\"\n\n", vendor(), semver(), r.of(hexSet, 64))
		},
		"requirements": func() string {
			return fmt.Sprintf("%s==%s \\\n    --hash=sha256:%s \\\n    --hash=sha256:%s\n", vendor(), semver(), r.of(hexSet, 64), r.of(hexSet, 64))
		},
		"git log": func() string {
			return fmt.Sprintf("commit %s\nAuthor: A <a@acme.dev>\n\n    %s: rotate token, fix key of %s (#%d)\n", r.of(hexSet, 40), name(), name(), r.IntN(900))
		},
		"git diff": func() string {
			return fmt.Sprintf("diff --git a/%s.go b/%s.go\nindex %s..%s 100644\n--- a/x\n+++ b/x\n", name(), name(), r.of(hexSet, 10), r.of(hexSet, 10))
		},
		"docker": func() string {
			return fmt.Sprintf("%s@sha256:%s\nsha256:%s: Pulling\n", vendor(), r.of(hexSet, 64), r.of(hexSet, 12))
		},
		"checksums": func() string { return fmt.Sprintf("%s  %s-%s.tar.gz\n", r.of(hexSet, 64), vendor(), semver()) },
		"md5":       func() string { return fmt.Sprintf("MD5 (%s) = %s\n", name(), r.of(hexSet, 32)) },
		"uuids":     func() string { return uuid() + "\n" },
		"uuid field": func() string {
			return fmt.Sprintf("{\"id\": %q, \"sessionId\": %q, \"parentUuid\": %q}\n", uuid(), uuid(), uuid())
		},
		"tool ids": func() string {
			return fmt.Sprintf("{\"tool_use_id\":\"toolu_%s\",\"requestId\":\"req_%s\"}\n", r.of(base62, 24), r.of(base62, 24))
		},
		"image":   func() string { return "data:image/png;base64,iVBORw0KGgo" + b64(3000) + "\n" },
		"wrapped": func() string { return b64(57) + "\n" },
		"etag":    func() string { return fmt.Sprintf("ETag: \"%s\"\nX-Request-Id: %s\n", r.of(hexSet, 32), uuid()) },
		"hex dump": func() string {
			return fmt.Sprintf("%08x  %s  |%s|\n", r.IntN(1<<30), r.of(hexSet, 32), r.of(base62, 16))
		},
		"minified": func() string {
			return fmt.Sprintf("function %s(e,t){var n=e.%s,r=t.token;return n.key===r&&(e.password=t.p,n.secret=null),{%s:%d,auth:n}}", r.of(base62[:26], 2), name(), name(), r.IntN(1000))
		},
		"test log": func() string {
			return fmt.Sprintf("--- PASS: Test%s/%d (0.0%ds)\n    PASS: %s\n", strings.ToUpper(name()), r.IntN(99), r.IntN(9), name())
		},
		"tokens": func() string {
			return fmt.Sprintf("max_tokens=%d input_tokens: %d, \"cache_read_input_tokens\":%d next_token: %s\n", r.IntN(9999), r.IntN(9999), r.IntN(99999), b64(18))
		},
		"schema": func() string {
			return fmt.Sprintf("  %s_token: string;\n  password?: string;\n  api_key VARCHAR(%d) NOT NULL,\n  \"secret\": {\"type\": \"string\"},\n", name(), r.IntN(200))
		},
		"fields": func() string {
			return fmt.Sprintf("\tToken: cfg.%sToken,\n\tPassword: opts.Password2,\n\tsecret := newSecret%d(ctx)\n\tkey = keys[%d]\n", name(), r.IntN(9), r.IntN(9))
		},
		"snapshot": func() string {
			return fmt.Sprintf("exports[`%s 1`] = `<div class=\"css-%s\" data-key=\"%s\" />`;\n", name(), r.of(small+digits, 7), name())
		},
		"urls": func() string {
			return fmt.Sprintf("https://cdn.acme.dev/%s/%s.js?v=%s#%s\n", r.of(hexSet, 20), name(), r.of(hexSet, 8), name())
		},
		"publickey": func() string {
			return fmt.Sprintf("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI%s me@host\nSHA256:%s me (ED25519)\n", r.of(b64Set, 43), r.of(b64Set, 43))
		},
	} {
		t.Run(kind, func(t *testing.T) {
			var b strings.Builder
			for b.Len() < 200<<10 {
				b.WriteString(line())
			}
			text := b.String()
			_, marks := redact.New(key).Redact(text)
			for i, m := range marks {
				if i < 5 {
					t.Errorf("%s: %s in %q", m.Kind, text[m.Start:m.End], text[max(0, m.Start-60):min(len(text), m.End+20)])
				}
			}
			if n := len(marks); n > 0 {
				t.Errorf("%d alarms in %d KiB", n, len(text)>>10)
			}
		})
	}
}

// corpus is Go source of the standard library, without the parts that are
// about credentials.
func corpus(tb testing.TB) string {
	tb.Helper()
	var b strings.Builder
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Skipf("go env GOROOT: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	for _, dir := range []string{"go", "runtime", "encoding/json", "database", "text", "html", "time", "reflect", "image", "math", "sort", "strings", "os"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || b.Len() > 5<<20 {
				return err
			}
			src, err := os.ReadFile(p)
			b.Write(src)
			return err
		})
		if err != nil {
			tb.Skipf("the source of the standard library: %v", err)
		}
	}
	return b.String()
}

// At most one alarm a megabyte of ordinary code.
func TestAlarmsInCode(t *testing.T) {
	t.Parallel()
	text := corpus(t)
	_, marks := redact.New(key).Redact(text)
	t.Logf("%d alarms in %.1f MB", len(marks), float64(len(text))/1e6)
	if float64(len(marks)) > float64(len(text))/1e6 {
		for _, m := range marks {
			t.Errorf("%s in %q", m.Kind, text[max(0, m.Start-60):min(len(text), m.End+20)])
		}
	}
}

func BenchmarkRedactCode(b *testing.B) {
	text := corpus(b)
	r := redact.New(key)
	for _, size := range []struct {
		name string
		n    int
	}{{"8KB", 8 << 10}, {"4MB", 4 << 20}} {
		b.Run(size.name, func(b *testing.B) {
			part := text[:min(len(text), size.n)]
			b.SetBytes(int64(len(part)))
			b.ReportAllocs()
			for b.Loop() {
				r.Redact(part)
			}
		})
	}
}
