package signature_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/signature"
)

func extract(t testing.TB, tool, log string) signature.Result {
	t.Helper()
	r, err := signature.Extract(signature.FromBytes([]byte(log)), signature.Options{Tool: tool})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const eresolve = `npm error code ERESOLVE
npm error ERESOLVE unable to resolve dependency tree
npm error
npm error While resolving: shop-ui@1.4.2
npm error Found: react@18.2.0
npm error node_modules/react
npm error   react@"18.2.0" from the root project
npm error
npm error Could not resolve dependency:
npm error peer react@"^15 || ^16" from react-mask@5.4.3
npm error node_modules/react-mask
npm error A complete log of this run can be found in: /home/ci/.npm/_logs/2026-03-04T09_15_02_378Z-debug-0.log
`

const goPanic = "ok  \texample.com/svc/a\t0.004s\n--- FAIL: TestPut (0.00s)\npanic: assignment to entry in nil map [recovered, repanicked]\n\ngoroutine 6 [running]:\ntesting.tRunner.func1.2({0x55a7a0, 0x6cad10})\n\t/usr/local/go/src/testing/testing.go:1974 +0x232\nFAIL\texample.com/svc/store\t0.005s\nFAIL\n"

const tscErrors = "src/app.ts(1,23): error TS2307: Cannot find module './parser' or its corresponding type declarations.\nsrc/app.ts(3,7): error TS2322: Type 'number' is not assignable to type 'string'.\n"

// github wraps a log as GitHub's runner does.
func github(command, log string, code int) string {
	var b strings.Builder
	n := 0
	say := func(s string) {
		n++
		fmt.Fprintf(&b, "2026-03-04T09:15:%02d.%07dZ %s\n", n/60%60, n*12347%10000000, s)
	}
	say("##[group]Run " + command)
	say("\x1b[36;1m" + command + "; echo 'error: not this'\x1b[0m")
	say("shell: /usr/bin/bash -e {0}")
	say("##[endgroup]")
	for l := range strings.SplitSeq(strings.TrimSuffix(log, "\n"), "\n") {
		say(l)
	}
	say(fmt.Sprintf("##[error]Process completed with exit code %d.", code))
	say("Post job cleanup.")
	return b.String()
}

// TestSameInEveryDress: one failure is one signature, however its log was
// wrapped (signatures.md A6).
func TestSameInEveryDress(t *testing.T) {
	t.Parallel()
	passing := strings.Repeat("  compiled module ok in 3 ms\n", 5000)
	for _, c := range []struct{ tool, command, log string }{
		{"npm", "npm ci", eresolve}, {"go", "go test ./...", goPanic}, {"tsc", "npx tsc -p .", tscErrors},
	} {
		want := extract(t, c.tool, c.log)
		if want.Confidence < 0.9 {
			t.Errorf("%s: %s", c.tool, want.Rule)
		}
		for name, log := range map[string]string{
			"crlf":           strings.ReplaceAll(c.log, "\n", "\r\n"),
			"github":         github(c.command, c.log, 1),
			"npm 8":          strings.ReplaceAll(c.log, "npm error", "npm ERR!"),
			"colours":        strings.ReplaceAll(c.log, "error", "\x1b[31merror\x1b[0m"),
			"jenkins":        stamp(c.log, func(i int) string { return fmt.Sprintf("09:15:%02d  ", i%60) }),
			"jenkins, iso":   stamp(c.log, func(i int) string { return fmt.Sprintf("[2026-03-04T09:15:%02d.881Z] ", i%60) }),
			"gitlab, stamps": stamp(c.log, func(i int) string { return fmt.Sprintf("2026-03-04T09:15:%02d.881234Z 01O ", i%60) }),
			"lerna":          stamp(c.log, func(int) string { return "@acme/shop: " }),
			"turbo":          stamp(c.log, func(int) string { return "shop:build: " }),
			"compose":        stamp(c.log, func(int) string { return "shop-1  | " }),
			"docker build":   stamp(c.log, func(i int) string { return fmt.Sprintf("#12 %d.%03d ", i, i*7) }),
			"5,000 before":   passing + c.log,
			"5,000 behind":   c.log + passing,
			"twice":          c.log + c.log,
			"no line end":    strings.TrimSuffix(c.log, "\n"),
			"utf-16":         utf16(c.log, false),
			"utf-16, big":    utf16(c.log, true),
			"mark":           "\ufeff" + c.log,
		} {
			got := extract(t, c.tool, log)
			if got.SigSHA != want.SigSHA || got.DetailSHA != want.DetailSHA {
				t.Errorf("%s, %s: by %s\n%q %q, want\n%q %q", c.tool, name, got.Rule, got.Normalised, got.Detail, want.Normalised, want.Detail)
			}
			if auto := extract(t, "", log); auto.Tool != c.tool || auto.SigSHA != want.SigSHA {
				t.Errorf("%s, %s: the tool was taken for %s (%s)", c.tool, name, auto.Tool, auto.Rule)
			}
		}
	}
}

func stamp(log string, prefix func(i int) string) string {
	var b strings.Builder
	i := 0
	for l := range strings.SplitSeq(strings.TrimSuffix(log, "\n"), "\n") {
		b.WriteString(prefix(i) + l + "\n")
		i++
	}
	return b.String()
}

func utf16(s string, big bool) string {
	b := []byte{0xff, 0xfe}
	if big {
		b = []byte{0xfe, 0xff}
	}
	for _, r := range s {
		if big {
			b = append(b, byte(r>>8), byte(r))
		} else {
			b = append(b, byte(r), byte(r>>8))
		}
	}
	return string(b)
}

func TestClassAndInstance(t *testing.T) {
	t.Parallel()
	a := extract(t, "npm", eresolve)
	other := extract(t, "npm", strings.ReplaceAll(eresolve, "react-mask", "react-virtualized"))
	if a.SigSHA != other.SigSHA || a.DetailSHA == other.DetailSHA {
		t.Errorf("two packages are one class and two instances: %q %q", a.Detail, other.Detail)
	}
	next := extract(t, "npm", strings.ReplaceAll(eresolve, "5.4.3", "5.4.4"))
	if a.SigSHA != next.SigSHA || a.DetailSHA == next.DetailSHA {
		t.Errorf("two versions are one class and two instances: %q %q", a.Detail, next.Detail)
	}
	if x, y := extract(t, "npm", goPanic), extract(t, "yarn", goPanic); x.SigSHA == y.SigSHA || x.InnerTool != "go" || x.InnerSigSHA != y.InnerSigSHA || x.InnerSigSHA != extract(t, "go", goPanic).SigSHA {
		t.Errorf("the tool is of the identity, and the inner tool finds its own lesson: %+v", x)
	}
	one, two := "make -j2\n/b/x/src/b.c:1:10: fatal error: zmq.h: No such file or directory\ncompilation terminated.\n/b/x/src/a.c:4:1: fatal error: nope.h: No such file or directory\ncompilation terminated.\n", ""
	l := strings.SplitAfter(one, "\n")
	two = l[0] + l[3] + l[4] + l[1] + l[2]
	if x, y := extract(t, "make", one), extract(t, "make", two); x.SigSHA != y.SigSHA || x.SetSHA != y.SetSHA {
		t.Errorf("the order of errors that were printed side by side counts: %q %q", x.Normalised, y.Normalised)
	}
	tests := []string{"thread 'store::tests::sums' (7) panicked at src/store.rs:9:5:\nattempt to add with overflow\n", "thread 'store::tests::adds' (8) panicked at src/store.rs:5:17:\nassertion `left == right` failed\n  left: 1\n right: 2\n"}
	if x, y := extract(t, "cargo", tests[0]+"\n"+tests[1]), extract(t, "cargo", tests[1]+"\n"+tests[0]); x.DetailSHA != y.DetailSHA || x.SetSHA != y.SetSHA || !strings.Contains(x.Normalised, "adds") {
		t.Errorf("the order of tests counts: %q %q", x.Normalised, y.Normalised)
	}
	daemon := extract(t, "docker", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n")
	for _, s := range []string{"ERROR: Cannot connect to the Docker daemon at tcp://10.0.0.3:2375. Is the docker daemon running?", "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and if the daemon is running: dial unix /var/run/docker.sock: connect: no such file or directory", "error during connect: this error may indicate that the docker daemon is not running: Get \"http://%2F%2F.%2Fpipe%2Fdocker_engine/_ping\": open //./pipe/docker_engine: The system cannot find the file specified."} {
		if r := extract(t, "docker", s); r.DetailSHA != daemon.DetailSHA {
			t.Errorf("%s: %q %q", s, r.Normalised, r.Detail)
		}
	}
	if r := extract(t, "docker", "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial unix /var/run/docker.sock: connect: permission denied"); r.SigSHA == daemon.SigSHA {
		t.Error("no right to the socket is another failure than no daemon")
	}
	if c := extract(t, "shell", "ok 1 - a\nok 2 - b\n0 errors, 0 failures\n"); c.Confidence > 0.2 {
		t.Errorf("a passing log: %+v", c)
	}
	if u := extract(t, "frobnicate", "starting\nERROR: the flux is inverted\nbye\n"); u.Tool != "frobnicate" || u.MatchedLine != 2 || u.Confidence > 0.5 {
		t.Errorf("an unknown tool: %+v", u)
	}
	if _, err := signature.Extract(signature.FromBytes([]byte("x")), signature.Options{Tool: "rm -rf /"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("no tool's name: %v", err)
	}
}

// TestForms: reports for programs have the signature of the lines for people.
func TestForms(t *testing.T) {
	t.Parallel()
	var stream strings.Builder
	for l := range strings.SplitSeq(strings.TrimSuffix(goPanic, "\n"), "\n") {
		b, err := json.Marshal(map[string]string{"Action": "output", "Package": "example.com/svc/store", "Test": "TestPut", "Output": l + "\n"})
		if err != nil {
			t.Fatal(err)
		}
		stream.Write(append(b, '\n'))
	}
	rendered := "error[E0308]: mismatched types\n --> src/main.rs:2:18\n  |\n2 |     let x: u32 = \"a\";\n  |            ---   ^^^ expected `u32`, found `&str`\n"
	compiler, err := json.Marshal(map[string]any{"reason": "compiler-message", "message": map[string]any{"rendered": rendered, "level": "error"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, tool, plain, form string }{
		{"go test -json", "go", goPanic, stream.String()},
		{"cargo json", "cargo", rendered, `{"reason":"compiler-artifact"}` + "\n" + string(compiler) + "\n" + `{"reason":"build-finished","success":false}` + "\n"},
		{"tsc items", "tsc", tscErrors, `[{"type":"Item","value":{"path":{"type":"Path","value":"src/app.ts"},"cursor":{"type":"Cursor","value":{"line":1,"col":23}},"tsError":{"type":"TsError","value":{"type":"error","errorString":"TS2307"}},"message":{"type":"Message","value":"Cannot find module './parser' or its corresponding type declarations."}}},{"type":"Item","value":{"path":{"value":"src/app.ts"},"cursor":{"value":{"line":3,"col":7}},"tsError":{"value":{"errorString":"TS2322"}},"message":{"value":"Type 'number' is not assignable to type 'string'."}}}]`},
		{"tsc rows", "tsc", tscErrors, `[{"file":"src/app.ts","line":1,"column":23,"code":2307,"message":"Cannot find module './parser' or its corresponding type declarations."},{"file":"src/app.ts","line":3,"column":7,"code":"TS2322","message":"Type 'number' is not assignable to type 'string'."}]`},
		{"eslint json", "eslint", "\n/home/ci/a/src/a.js\n  3:1  error  Parsing error: Unexpected token\n", `[{"filePath":"/home/ci/b/src/a.js","messages":[{"ruleId":null,"fatal":true,"severity":2,"message":"Parsing error: Unexpected token","line":3,"column":1}]}]`},
		{"npm --json", "npm", "npm error code E404\nnpm error 404 Not Found - GET https://r.example/x - Not found\n", "{\n  \"error\": {\n    \"code\": \"E404\",\n    \"summary\": \"404 Not Found - GET https://r.example/x - Not found\",\n    \"detail\": \"\"\n  }\n}\n"},
		{"terraform -json", "terraform", "Terraform\n\nError: Reference to undeclared input variable\n\n  on main.tf line 2, in resource \"x\" \"y\":\n   2: a = var.b\n\nAn input variable with the name \"b\" has not been\ndeclared.\n", `{"@level":"info","@message":"Terraform 1.9.8","type":"version"}` + "\n" + `{"@level":"error","@message":"Error: x","type":"diagnostic","diagnostic":{"severity":"error","summary":"Reference to undeclared input variable","detail":"An input variable with the name \"b\" has not been declared."}}` + "\n"},
		{"junit, pytest", "pytest", "____ test_a ____\n\n>       assert 1 == 2\nE       assert 1 == 2\n\ntests/test_a.py:2: AssertionError\n", `<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" errors="0" failures="1"><testcase classname="tests.test_a" name="test_a" time="0.001"><failure message="assert 1 == 2">def test_a():` + "\n&gt;       assert 1 == 2\nE       assert 1 == 2\n\ntests/test_a.py:2: AssertionError</failure></testcase></testsuite></testsuites>"},
	} {
		want, got := extract(t, c.tool, c.plain), extract(t, c.tool, c.form)
		if got.SigSHA != want.SigSHA || strings.Contains(c.name, "pytest") && got.DetailSHA != want.DetailSHA {
			t.Errorf("%s: by %s %q, plain by %s %q", c.name, got.Rule, got.Normalised, want.Rule, want.Normalised)
		}
		if got.MatchedLine < 1 || got.MatchedLine > strings.Count(c.form, "\n")+1 {
			t.Errorf("%s: line %d", c.name, got.MatchedLine)
		}
	}
	j := extract(t, "java", "<testsuite tests=\"1\">\n <testcase name=\"totals\" classname=\"com.acme.CartTest\">\n  <failure message=\"expected: &lt;3&gt; but was: &lt;4&gt;\" type=\"org.opentest4j.AssertionFailedError\"><![CDATA[org.opentest4j.AssertionFailedError: expected: <3> but was: <4>\n\tat com.acme.CartTest.totals(CartTest.java:12)\n]]></failure>\n </testcase>\n</testsuite>\n")
	if j.MatchedLine != 3 || j.Normalised != "org.opentest4j.assertionfailederror: expected: <3> but was: <4>" {
		t.Errorf("surefire's report: line %d, %q", j.MatchedLine, j.Normalised)
	}
}

func TestBaseline(t *testing.T) {
	t.Parallel()
	green := "ERROR: cache miss for key 17\nERROR: metrics endpoint 10.0.0.1:9090 unreachable\nall done\n"
	red := "ERROR: cache miss for key 17\nERROR: metrics endpoint 10.9.8.7:9090 unreachable\nERROR: table orders is locked\n"
	r, err := signature.Extract(signature.FromBytes([]byte(red)), signature.Options{Baseline: signature.FromBytes([]byte(green))})
	if err != nil || r.MatchedLine != 3 {
		t.Errorf("line %d, %v", r.MatchedLine, err)
	}
	if r := extract(t, "", red); r.MatchedLine != 1 {
		t.Errorf("without the passing run: line %d", r.MatchedLine)
	}
}

func TestRedaction(t *testing.T) {
	t.Parallel()
	log := func(secret string) string {
		return "export DB_PASSWORD=" + secret + "\nERROR: login with password=" + secret + " was refused\n"
	}
	r := extract(t, "", log("hunter2-Zx81qqWw"))
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "hunter2") || strings.Contains(string(b), "zx81") || !strings.Contains(r.Raw, "[REDACTED:") {
		t.Errorf("%s", b)
	}
	if o := extract(t, "", log("another-Secret-9931")); o.SigSHA != r.SigSHA || o.DetailSHA != r.DetailSHA {
		t.Errorf("a secret is of the identity: %q %q", r.Normalised, o.Normalised)
	}
}

func TestDeterministic(t *testing.T) {
	t.Parallel()
	log := github("npm ci", eresolve, 1)
	want := extract(t, "", log)
	var wg sync.WaitGroup
	bad := make(chan string, 8)
	for range 8 {
		wg.Go(func() {
			for range 125 {
				r, err := signature.Extract(signature.FromBytes([]byte(log)), signature.Options{})
				if err != nil || !cmp.Equal(r, want) {
					select {
					case bad <- cmp.Diff(want, r):
					default:
					}
					return
				}
			}
		})
	}
	wg.Wait()
	close(bad)
	for d := range bad {
		t.Error(d)
	}
}
