package signature

// Go: a panic or a race is the root of the tests that it ends; the compiler's
// first line is the root of a build.
var goRules = []rule{
	{
		name: "go.race", lits: []string{"warning: data race"}, re: `^WARNING: DATA RACE`, conf: 0.95,
		detail: detail{how: after, re: `^\s+([\w./*()-]+\.[\w.()*]+)\(`, lines: 4},
		yes:    []string{"WARNING: DATA RACE"},
		no:     []string{"    testing.go:1712: race detected during execution of test"},
	},
	{
		name: "go.test_timeout", lits: []string{"panic: test timed out"}, re: `^panic: test timed out after`, conf: 0.96,
		detail: detail{how: after, re: `^\s+(Test\w+(?:/\S+)?) \(`, lines: 6},
		yes:    []string{"panic: test timed out after 1s"},
		no:     []string{"panic: runtime error"},
	},
	{
		name: "go.panic", lits: []string{"panic: ", "fatal error: "}, re: `^\s*(?:panic|fatal error): `, not: `^\s+panic: .*\[recovered\]\s*$|fatal error: .*(?:No such file|file not found)|^panic: test executed panic`, conf: 0.95,
		yes: []string{"panic: assignment to entry in nil map [recovered, repanicked]", "fatal error: all goroutines are asleep - deadlock!", "panic: runtime error: index out of range [5] with length 3"},
		no:  []string{"goroutine 6 [running]:", "x.c:1:10: fatal error: openssl/nope.h: No such file or directory"},
	},
	{
		name: "go.compile", lits: []string{".go:", ".s:", ".y:"}, re: `^(?:vet: |#\s*)?(?:\./|\.\./|/|[A-Za-z]:\\)?[\w./\\@+~-]*\.go:\d+:\d+: `, not: `_test\.go:\d+: |: warning: |level=warn|\bnote: `, conf: 0.95,
		yes: []string{"./main.go:3:15: undefined: undefinedFn", "store/store_test.go:4:2: declared and not used: n", "vet: ./a.go:3:4: undefined: x", `main.go:4:2: no required module provides package github.com/a/b; to add it:`},
		no:  []string{"    store_test.go:9: got 1, want 2", "\t/usr/local/go/src/testing/testing.go:1974 +0x232"},
	},
	{
		name: "go.compile_line", lits: []string{".go:"}, re: `^(?:\./|\.\./|/)?[\w./@+-]*\.go:\d+: `, not: `_test\.go`, conf: 0.85,
		yes: []string{"./main.go:3: syntax error", "go.go:1: x"},
		no:  []string{"    store_test.go:9: got 1, want 2"},
	},
	{
		name: "go.mod", lits: []string{"import cycle not allowed", "directory not found", "pattern ", "no go files in", "no required module", "cannot find ", "go: ", "go.mod:", "go.sum", "package ", "build constraints"}, re: `^(?:go: (?:errors parsing \S+ \S|module|cannot|updates to|unknown|inconsistent|.*: (?:reading|invalid|unrecognized|no matching|module|unknown|missing|verifying|Get |git |not a|parsing|checksum|unexpected|no such)|could not|no such|RPC|no module|go\.mod)|go\.mod:\d+|verifying .*checksum mismatch|missing go\.sum entry|.*missing go\.sum entry|package \S+ is not in (?:std|GOROOT)|package \S+: build constraints|imports \S+: build constraints|.*build constraints exclude all Go files|pattern \S+: |stat .+: directory not found|.*: import cycle not allowed|no Go files in |no required module|cannot find (?:package|module))`, conf: 0.93,
		detail: detail{how: after, re: `^\s*((?:imports|reading|server response|fatal:|unknown revision|invalid version).*)`, lines: 4},
		yes:    []string{"go: example.com/x@v1.0.0: reading https://proxy/example.com/x: 404 Not Found", "go: cannot find main module, but found .git/config in /x", "go: updates to go.mod needed", "package foo/bar is not in std (/usr/local/go/src/foo/bar)", "main.go: missing go.sum entry for module providing package x"},
		no:     []string{"go: downloading github.com/a/b v1.2.3", "go: finding module for package x"},
	},
	{
		// What a test logs before it fails looks the same: words of failure first.
		name: "go.test_says", lits: []string{"_test.go:"}, re: `^\s+\S*_test\.go:\d+: .*(?:(?i:\b(?:got|want|wanted|expect|expected|expecting|unexpected|actual|fail|failed|failure|error|errors|err|cannot|can't|couldn't|could not|mismatch|diff|differs?|invalid|missing|not|no|nil|panic|timeout|timed out|should|must|wrong|bad|unable|denied|refused)\b)|!=|≠|\+got|-want)`, conf: 0.935, failed: true,
		detail: detail{how: before, re: `^\s*(?:--- FAIL: |=== RUN\s+|=== NAME\s+)(\S+)`, lines: 400},
		yes:    []string{"    store_test.go:9: got 1, want 2", "    a_test.go:3: cannot open fixture: missing.json"},
		no:     []string{"    a_test.go:3: starting"},
	},
	{
		name: "go.test_assert", lits: []string{".go:"}, re: `^\s+\S*_test\.go:\d+: `, not: `^\s+testing\.go`, conf: 0.93, failed: true,
		detail: detail{how: before, re: `^\s*(?:--- FAIL: |=== RUN\s+|=== NAME\s+)(\S+)`, lines: 400},
		yes:    []string{"    store_test.go:9: got 1, want 2"},
		no:     []string{"    testing.go:1712: race detected during execution of test", "--- FAIL: TestPut (0.00s)"},
	},
	{
		name: "go.test_helper", lits: []string{".go:"}, re: `^\s{4,}\S*\.go:\d+: `, not: `^\s+(?:testing\.go|\S*_test\.go:)`, need: "--- fail: ", conf: 0.92, failed: true,
		detail: detail{how: before, re: `^\s*(?:--- FAIL: |=== RUN\s+|=== NAME\s+)(\S+)`, lines: 400},
		yes:    []string{"    controller.go:97: missing call(s) to *mocks.MockMailer.Send(is equal to a)"},
		no:     []string{"    testing.go:1712: race detected during execution of test"},
	},
	{
		name: "go.testify", lits: []string{"error:"}, re: `^\s+Error:\s+\S`, need: "error trace:", conf: 0.9,
		detail: detail{how: after, re: `^\s+Test:\s+(\S+)`, lines: 10},
		yes:    []string{"        \tError:      \tNot equal: "},
		no:     []string{"        \tError Trace:\t/x/a_test.go:9"},
	},
	{
		name: "go.ginkgo", lits: []string{"[failed] ", "[panicked] ", "[timedout] "}, re: `^\s+\[(?:FAILED|PANICKED|TIMEDOUT)\] \S`, need: "ran ", conf: 0.93,
		join:   detail{how: para, lines: 4},
		detail: detail{how: before, re: `^(\S.* \[(?:It|BeforeEach|AfterEach|BeforeSuite|AfterSuite|JustBeforeEach)\].*)`, lines: 40},
		yes:    []string{"  [FAILED] Expected", "  [FAILED] Unexpected error:"},
		no:     []string{"• [FAILED] [0.001 seconds]"},
	},
	{
		name: "go.example", lits: []string{"--- fail: "}, re: `^\s*--- FAIL: (\S+)`, conf: 0.85,
		detail: detail{how: after, re: `^((?:\s+\S+\.go:\d+: .+)|got:)`, lines: 4},
		yes:    []string{"--- FAIL: ExampleAdd (0.00s)"},
		no:     []string{"FAIL\texample.com/svc\t0.004s"},
	},
	{
		name: "go.build_failed", lits: []string{"build failed]", "setup failed]", "link: ", "ld returned", "cgo: "}, re: `\[(?:build|setup) failed\]|^(?:link|/\S+/link): |^cgo: `, conf: 0.6,
		yes: []string{"FAIL\texample.com/svc [build failed]"},
		no:  []string{"ok  \texample.com/svc\t0.004s"},
	},
	{
		name: "go.log_fatal", lits: []string{"2024/", "2025/", "2026/", "2027/", "2028/", "2029/", "2030/"}, re: `^20\d{2}/\d{2}/\d{2} \d{2}:\d{2}:\d{2}(?:\.\d+)? \S`, need: "exit status |fail\t", conf: 0.58, pick: last,
		yes: []string{"2026/03/04 09:15:02 open config.yaml: no such file or directory"},
		no:  []string{"2026-03-04 x"},
	},
	{
		name: "golangci.row", lits: []string{".go:"}, re: `\.go:\d+(?::\d+)?: .+ \([\w-]+\)$`, conf: 0.9,
		yes: []string{"a.go:3:4: ineffectual assignment to err (ineffassign)"},
		no:  []string{"a.go:3:4"},
	},
}
