package lesson_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/lesson"
)

// How commands ended, where the transcript tells their exit code.
func TestJudgeByCode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command, text string
		isError       bool
		want          string
	}{
		{"go test ./...", "Exit code 1\n--- FAIL: TestA\nFAIL", true, "failed"},
		{"go test ./...", "ok  \tx\t0.1s", false, "passed"},
		{"./anything", "", false, "passed"},
		{"./anything", "prints error: of a test", false, "passed"},
		{"make", "0 errors, 0 failures\nCommand exited with code 2", true, "failed"},
		{"make", "Exit code: 0\nWall time: 1 seconds\nOutput:\nmake: Nothing to be done", false, "passed"},
		{"make | tail -3", "hm", false, "unknown"},
		{"make || true", "make: *** [a] Error 1", false, "failed"},
		{"npm run build && grep -q main dist/index.html", "Exit code 1\nerror: of a plugin, ignored", true, "unknown"},
		{"npm run build && grep -q main dist/index.html", "Exit code 2\nsrc/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.", true, "failed"},
		{"ls /nowhere", "Exit code 2\nls: cannot access", true, "failed"},
		{"git commit -m x", "Exit code 1\nOn branch main\nnothing to commit, working tree clean", true, "unknown"},
		{"go test ./...", "The user doesn't want to proceed with this tool use. The tool use was rejected", true, "not run"},
		{"go test ./...", "Command timed out after 2m 0.0s", true, "not run"},
		{"npm run dev", "Command running in background with ID: b1", false, "not run"},
		{"npm run dev &", "started", false, "unknown"},
		{"go vet ./... | grep -v vendor", "", true, "unknown"},
		{"npm run check | grep error", "", true, "cleared"},
		{"npm run check | grep error", "(no output)", false, "cleared"},
		{"npm run check | grep -c error", "0", false, "unknown"},
		{"npx tsc --noEmit | head -20", "", false, "passed"},
		{"npx tsc --noEmit | head -20", "\nShell cwd was reset to /w", false, "passed"},
		{"npm run lint 2>&1 | tail -5", "> shop@1.0.0 lint\n> eslint .\n", false, "passed"},
		{"npm run check 2>&1 | tail -5", "> shop@1.0.0 check\n> run-everything\n", false, "unknown"},
		{"npm run check 2>&1 | head -2", "> shop@1.0.0 check\n> tsc --noEmit\n", false, "unknown"},
		{"npx tsc; echo \"exit: $?\"", "a.ts(1,2): error TS2322: Type 'a'.\nexit: 2", false, "failed"},
		{"npx tsc; echo $?", "0", false, "passed"},
	} {
		if got := lesson.Judge(tt.command, tt.text, tt.isError, true); got != tt.want {
			t.Errorf("%q printed %q: %s, want %s", tt.command, tt.text, got, tt.want)
		}
	}
}

// What tools print tells how they ended, where no exit code does.
func TestJudgeByText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ command, text, want string }{
		{"go test ./...", "ok  \tx/a\t0.1s\n?   \tx/b\t[no test files]", "passed"},
		{"go test ./...", "--- FAIL: TestA (0.00s)\n    a_test.go:9: got 1\nFAIL\nFAIL\tx/a\t0.1s\nok  \tx/b\t0.1s", "failed"},
		{"cargo test", "test result: ok. 5 passed; 0 failed; 0 ignored", "passed"},
		{"cargo test", "test a ... FAILED\nthread 'a' panicked at src/lib.rs:4:5:\nassertion failed: x\ntest result: FAILED. 1 passed; 1 failed", "failed"},
		{"cargo build", "    Finished `dev` profile [unoptimized + debuginfo] target(s) in 0.2s", "passed"},
		{"cargo build", "error[E0425]: cannot find value `x` in this scope\n --> src/main.rs:2:5\nerror: could not compile `a`", "failed"},
		{"pytest", "===== 5 passed, 1 warning in 0.1s =====", "passed"},
		{"pytest", "E   AssertionError: assert 1 == 2\nFAILED tests/a.py::t - AssertionError\n===== 1 failed, 5 passed in 0.1s =====", "failed"},
		{"python -m unittest", "Ran 3 tests in 0.001s\n\nOK", "passed"},
		{"npx jest", "Tests:       7 passed, 7 total", "passed"},
		{"npx jest", "  ● sum › adds\n\n    Expected: 3\n    Received: 2\n\nTests:       1 failed, 6 passed, 7 total", "failed"},
		{"npx mocha", "  5 passing (12ms)", "passed"},
		{"npx mocha", "  4 passing (12ms)\n  1 failing\n\n  1) sum adds:\n     AssertionError: expected 2 to equal 3", "failed"},
		{"node --test", "ℹ tests 3\nℹ pass 3\nℹ fail 0", "passed"},
		{"bundle exec rspec", "5 examples, 0 failures", "passed"},
		{"mvn test", "[INFO] BUILD SUCCESS\n[INFO] Total time:  1.2 s", "passed"},
		{"gradle build", "BUILD SUCCESSFUL in 3s", "passed"},
		{"dotnet build", "Build succeeded.\n    0 Warning(s)\n    0 Error(s)", "passed"},
		{"ctest", "100% tests passed, 0 tests failed out of 4", "passed"},
		{"npm run build", "vite v5 building\n✓ 34 modules transformed.\n✓ built in 1.2s", "passed"},
		{"npm run build", "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.", "failed"},
		{"npm install", "added 120 packages, and audited 121 packages in 3s\nfound 0 vulnerabilities", "passed"},
		{"npm install", "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree", "failed"},
		{"pip install x", "Successfully installed x-1.0", "passed"},
		{"docker build .", "#9 naming to docker.io/library/shop done", "passed"},
		{"terraform validate", "Success! The configuration is valid.", "passed"},
		{"golangci-lint run", "0 issues.", "passed"},
		{"ruff check .", "All checks passed!", "passed"},
		{"mypy .", "Success: no issues found in 3 source files", "passed"},
		{"mypy .", "a.py:3: error: Incompatible return value type (got \"int\", expected \"str\")  [return-value]\nFound 1 error in 1 file (checked 3 source files)", "failed"},
		{"npx vitest run", "\x1b[2m Test Files \x1b[22m \x1b[1m\x1b[32m1 passed\x1b[39m\x1b[22m\x1b[90m (1)\x1b[39m\r\n", "passed"},
		{"go test ./a", "PASS\r\nok  \tx/a\t0.1s\r\n", "passed"},
		{"./run.sh", "it said something", "unknown"},
		{"./run.sh", "", "unknown"},
		{"./run.sh", "0 errors, 0 failures", "passed"},
	} {
		if got := lesson.Judge(tt.command, tt.text, false, false); got != tt.want {
			t.Errorf("%q printed %q: %s, want %s", tt.command, tt.text, got, tt.want)
		}
	}
}
