package signature_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/signature"
)

// TestNormalise has a line for each mask and for each of its guards
// (signatures.md A3).
func TestNormalise(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"lower case and npm's names", "npm ERR! code ERESOLVE", "npm error code eresolve"},
		{"typographic quotes", "expected ‘,’ or “;”", `expected ',' or ";"`},
		{"bullets and rules", "● slow › adds │ x", "slow adds x"},
		{"path keeps its name", "open /home/ci/src/build-8f21c/npm4/package.json failed", "open <p>/package.json failed"},
		{"windows path", `C:\Users\Jane Doe\app\main.cs(3,4): x`, "<p>/main.cs:<l>: x"},
		{"file url", "e: file:///home/x/A.kt:42:17 y", "e: <p>/a.kt:<l> y"},
		{"home", "in ~/src/x/go.mod", "in <p>/go.mod"},
		{"masks and stars inside a path", "/tmp/***/_work/<uuid>/a.js gone", "<p>/a.js gone"},
		{"uuid in a directory", "/w/9c1e44d0-3f1b-4f0e-8b7a-1d2c3e4f5a6b/a.js", "<p>/a.js"},
		{"full stop is no name", "not in /a/b/c.txt.", "not in <p>/c.txt."},
		{"relative paths stay", "openssl/nope.h and github.com/x/y", "openssl/nope.h and github.com/x/y"},
		{"one segment stays", "get /health", "get /health"},
		{"climbing path", "cannot find '../../x/y.js'", "cannot find '<p>/y.js'"},
		{"dot path stays", "cannot find './parser'", "cannot find './parser'"},
		{"uuid", "lock d3cf1fca-9f87-45c6-af5b-72ad4f890c3b held", "lock <uuid> held"},
		{"iso time", "at 2026-03-04T09:15:02.378Z it", "at <time> it"},
		{"npm's log name", "2026-11-30t05_38_56_271z-debug-0.log", "<time>-debug-0.log"},
		{"go's time", "2026/03/04 09:15:02 it", "<time> it"},
		{"clock", "at 09:15:02 it", "at <time> it"},
		{"line and column are no clock", "app.ts:1:23: x", "app.ts:<l>: x"},
		{"digest", "sha256:0f343b0931126a20f133d67c2b018a3b", "<digest>"},
		{"address", "object at 0x7f8f7fde97d0", "object at <addr>"},
		{"java object", "com.acme.Foo@7344699f", "com.acme.foo@<addr>"},
		{"package and version are no address", "left-pad@1.2.3", "left-pad@<v>"},
		{"long hex", "image 768f3d5eb00e gone", "image <hex> gone"},
		{"short hex", "commit 283a204 gone", "commit <hex> gone"},
		{"codes are no hex", "e0308 ts2307 yn0035 deadbeef c2143 lnk2019", "e0308 ts2307 yn0035 deadbeef c2143 lnk2019"},
		{"ip and port", "dial tcp 10.1.2.3:8022: x", "dial tcp <ip>: x"},
		{"localhost", "http://localhost:3000/x", "http://<ip>/x"},
		{"ipv6", "dial tcp [::1]:5432: x", "dial tcp <ip>: x"},
		{"cpp name is no ipv6", "foo::bar", "foo::bar"},
		{"bare port stays", "port 8080", "port 8080"},
		{"port of a host stays", "redis:6379", "redis:6379"},
		{"line and column", "src/a.c:7:8: x", "src/a.c:<l>: x"},
		{"tsc", "src/app.ts(1,23): error TS2307: x", "src/app.ts:<l>: error ts2307: x"},
		{"tsc, pretty", "src/app.ts:1:23 - error TS2307: x", "src/app.ts:<l>: error ts2307: x"},
		{"maven", "Invoice.java:[41,25] cannot", "invoice.java:<l> cannot"},
		{"python", `File "a.py", line 12, in f`, `file "a.py", line <n>, in f`},
		{"klog", "memcache.go:265] x", "memcache.go:<l>] x"},
		{"eslint", "  3:1  error  Parsing error", "<l> error parsing error"},
		{"code in brackets stays", "error[E0308]: x", "error[e0308]: x"},
		{"duration", "timeout of 200 ms after 2m21s, 0.35s and 3 seconds", "timeout of <t> after <t>, <t> and <t>"},
		{"goroutine and pid", "goroutine 17 pid 4242", "goroutine <n> pid <n>"},
		{"offset", "main.go +0x1a", "main.go <addr>"},
		{"age of an event", "warning failed 52m (x4 over 53m) kubelet", "warning failed <t> kubelet"},
		{"age without count", "warning failed 8s kubelet", "warning failed <t> kubelet"},
		{"counts", "3 errors and 1 warning, 0/12 nodes", "<n> error and <n> warning, <n> node"},
		{"preemption", "12 No preemption victims, 3 Insufficient cpu", "<n> no preemption victims, <n> insufficient cpu"},
		{"long integer", "epoch 1796017169", "epoch <n>"},
		{"exit and http codes stay", "exit status 3, 404", "exit status 3, 404"},
		{"compiler's file", "/tmp/ccRp0x3B.o: in", "<p>/<tmp>.o: in"},
		{"pod", "pod api-7f9c5d8b6-x2k9p dead", "pod api-<pod> dead"},
		{"build ref", "ref ZPLLZ46X:5XJ2::l7kjkv2j4c2cbllrbzcfkwld7: no", "ref <id>: no"},
		{"request id", "RequestID: 6S4QGJ9LW5SQGQVPKFMPPZJGCB62TXB876, x", "requestid: <id>, x"},
		{"session", "assumed-role/ci-deploy/GitHubActions-5193050708 is", "assumed-role/ci-deploy/<id> is"},
		{"version", "billing-client:2.7.1", "billing-client:<v>"},
		{"recovered", "panic: x [recovered, repanicked]", "panic: x"},
		{"secret", "key [REDACTED:password:3fa9c1] bad", "key <secret> bad"},
		{"spaces", "  a \u2009 b\t", "a b"},
	} {
		if got := signature.Normalise(c.in); got != c.want {
			t.Errorf("%s: %q\n got %q\nwant %q", c.name, c.in, got, c.want)
		}
	}
	if got := signature.NormaliseDetail("peer react@15.0.1 from x@5.4.3"); got != "peer react@15.0.1 from x@5.4.3" {
		t.Errorf("a detail keeps its versions: %q", got)
	}
}

// TestMaskedDigits: another number in a masked field is the same failure.
func TestMaskedDigits(t *testing.T) {
	t.Parallel()
	for _, form := range []string{
		"/builds/job-%s/src/a.go:%s:%s: undefined: x", "after %s ms", "goroutine %s [running]", "at 0x%s%s%s%s", "thread 'main' (%s%s%s) panicked",
		"object at 0x7f%s%s%s", "2026-03-%s 09:15:%s it", "10.0.%s.%s refused", "line %s, column %s", "%s errors generated", "pid=%s%s", "(x%s over %sm)",
	} {
		fill := func(d string) string { return strings.ReplaceAll(form, "%s", d) }
		if a, b := signature.Normalise(fill("12")), signature.Normalise(fill("27")); a != b {
			t.Errorf("%q\n%q", a, b)
		}
	}
}

// TestIdentifiersCount: another name is another failure.
func TestIdentifiersCount(t *testing.T) {
	t.Parallel()
	for _, p := range [][2]string{
		{"undefined: fooBar", "undefined: fooBaz"}, {"error TS2307: x", "error TS2308: x"}, {"exit status 3", "exit status 137"}, {"port 8080", "port 8081"},
		{"cannot find '/a/b/x.js'", "cannot find '/a/b/y.js'"}, {"openssl/nope.h", "zmq/nope.h"}, {"HTTP 404", "HTTP 403"}, {"found", "not found"},
	} {
		if signature.Normalise(p[0]) == signature.Normalise(p[1]) {
			t.Errorf("%q and %q are one", p[0], p[1])
		}
	}
}

func FuzzNormalise(f *testing.F) {
	for _, s := range []string{"/a/b/c.txt.", `C:\x y\z`, "../../x", "file:///a/b", "<p>/<uuid>", "npm ERR! x@1.2.3", "\xff\xfe", "2026-03-04T09:15:02Z", "e: ‘x’ 10.0.0.1:80 0x1f (x4 over 5m)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		one := signature.Normalise(s)
		if two := signature.Normalise(s); one != two {
			t.Fatalf("%q then %q", one, two)
		}
		if strings.Join(strings.Fields(one), " ") != one {
			t.Fatalf("spaces are left in %q", one)
		}
	})
}
