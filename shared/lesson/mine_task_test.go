package lesson_test

import (
	"testing"

	"github.com/mneme-ai/mneme/shared/lesson"
)

func TestSameCommand(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		wide, narrow string
		want         bool
	}{
		// One thing, spelled in other ways.
		{"go test ./...", "go test ./...", true},
		{"go test -v ./... 2>&1 | tail -50", "cd /w && go test ./...", true},
		{"timeout 120 go test -count=1 -timeout 30s ./...", "time go test ./... > out.log 2>&1", true},
		{"CI=1 FOO='a b' npm test", "npm run test", true},
		{"yarn test", "npm test", true},
		{"pnpm run test", "yarn run test", true},
		{"yarn lint", "npm run lint", true},
		{"pnpm i", "npm install", true},
		{"yarn", "npm i", true},
		{"npx jest --color", "./node_modules/.bin/jest", true},
		{"pnpm exec tsc --noEmit", "npx tsc --noEmit", true},
		{"python3 -m pytest -q", "pytest", true},
		{"uv run pytest -x", "poetry run pytest", true},
		{"python -m pip install x", "pip3 install x", true},
		{"uv pip install x", "pip install x", true},
		{"./mvnw -B test", "mvn test", true},
		{"./gradlew check --no-daemon", "gradle check", true},
		{"docker-compose up -d", "docker compose up -d", true},
		{"bash -lc 'go vet ./...'", "go vet ./...", true},
		{"(cd web && npm run build)", "cd web; npm run build", true},
		{"git commit -m 'a fix'", "git commit -m \"a\nmessage\"", true},
		{"sudo apt-get install -y jq", "apt-get install jq", true},
		{`go test "./..."`, `go test ./...`, true},
		{"go build ./... && echo done", "go build ./...", true},
		{"make -j8 all", "make all", true},
		{"set -euo pipefail; cargo test | tee log", "cargo test", true},
		{"source .venv/bin/activate && python app.py", "python app.py", true},
		{"/usr/local/go/bin/go vet .", "go vet .", true},

		// The wider covers the narrower, and not the other way round.
		{"go test ./...", "go test ./cart/...", true},
		{"go test ./...", "go test ./cart -run TestX", true},
		{"go test ./cart/...", "go test ./cart/sub", true},
		{"go test ./cart", "go test ./...", false},
		{"go test ./... -run TestX", "go test ./...", false},
		{"go test -short ./...", "go test ./...", false},
		{"go test ./cartoon/...", "go test ./cart", false},
		{"pytest", "pytest tests/test_a.py::test_b", true},
		{"pytest tests", "pytest tests/test_a.py", true},
		{"pytest tests/test_a.py", "pytest tests/test_a.py::test_b -k x", true},
		{"pytest -k other", "pytest", false},
		{"pytest --lf", "pytest", false},
		{"npx jest", "npx jest src/a.test.ts -t 'adds'", true},
		{"npx jest -t adds", "npx jest", false},
		{"cargo test", "cargo test parses", true},
		{"cargo test -p core", "cargo test", false},
		{"mvn -Dtest=ATest test", "mvn test", false},
		{"gradle test --tests A", "gradle test", false},
		{"gradle test", "gradle test --tests A", true},
		{"npm run fmt && npm run lint && npm test", "npm run lint", true},
		{"npm run lint", "npm run fmt && npm run lint", false},
		{"npm install --legacy-peer-deps", "npm install", true},
		{"go test -race ./...", "go test ./...", true},
		{"go test ./...", "go test -race ./...", false},

		// Other things.
		{"go test ./...", "go build ./...", false},
		{"npm test", "npm run test:unit", false},
		{"npm run build", "npm run lint", false},
		{"cd api && pytest", "cd web && pytest", false},
		{"python a.py", "python b.py", false},
		{"make test", "make", false},
		{"docker build -t a .", "docker run a", false},
		{"kubectl -n a apply -f x.yaml", "kubectl -n b apply -f x.yaml", false},
		{"echo go test ./...", "go test ./...", false},
		{"npm install left", "npm install right", false},
		{"node a.js --fast", "node a.js --slow", false},
		{"git commit --no-verify -m x", "git commit -m x", false},
	} {
		if got := lesson.Covers(tt.wide, tt.narrow); got != tt.want {
			t.Errorf("%q covers %q: %v, want %v", tt.wide, tt.narrow, got, tt.want)
		}
	}
}

func TestAlike(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"go test ./... -v | tail", "go test ./...", true},
		{"GOFLAGS=-mod=mod go build ./...", "go build ./...", false},
		{"npm install --legacy-peer-deps", "npm install", false},
		{"sudo make install", "make install", false},
		{"sleep 10 && pytest", "pytest", true},
		{"export DATABASE_URL=x; pytest", "pytest", false},
		{"source .venv/bin/activate && python app.py", "python app.py", false},
	} {
		if got := lesson.Alike(tt.a, tt.b); got != tt.want {
			t.Errorf("%q like %q: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestEffect(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"ls -la":                                  "none",
		"cat a | grep b":                          "none",
		"git status && git diff":                  "none",
		"go test ./... 2>&1 | tee log":            "none",
		"gofmt -l .":                              "none",
		"gofmt -w .":                              "strong",
		"npx eslint src":                          "none",
		"npx eslint --fix src":                    "strong",
		"sed -n 1,20p a.go":                       "none",
		"sed -i 's/a/b/' a.go":                    "strong",
		"sed -i.bak s/a/b/ a.go":                  "strong",
		"perl -pi -e 's/a/b/' a.go":               "strong",
		"git checkout -- a.go":                    "strong",
		"git stash pop":                           "strong",
		"git log -1":                              "none",
		"npm i left-pad":                          "strong",
		"npm ls":                                  "none",
		"go mod tidy":                             "strong",
		"go get x@latest":                         "strong",
		"python3 -m pip install x":                "strong",
		"pip list":                                "none",
		"pip install -r requirements.txt":         "strong",
		"uv pip install x":                        "strong",
		"apt-get update && apt-get install -y jq": "strong",
		"chmod +x run.sh":                         "strong",
		"cat > a.txt <<'EOF'\nx\nEOF":             "strong",
		"echo x >> .env":                          "strong",
		"echo x | sudo tee /etc/hosts":            "strong",
		"echo x":                                  "none",
		"docker compose up -d db":                 "strong",
		"docker ps":                               "none",
		"npm run build":                           "weak",
		"npm run lint":                            "none",
		"npm run db:migrate":                      "weak",
		"make":                                    "weak",
		"make test":                               "none",
		"./scripts/gen.sh":                        "opaque",
		"python -c 'print(1)'":                    "opaque",
		"python - <<'E'\nopen('a','w').write('x')\nE": "strong",
		"npm run dev &":                 "strong",
		"lsof -ti:3000 | xargs kill -9": "strong",
		"kill -9 123":                   "strong",
		"sleep 5":                       "none",
		"systemctl start docker":        "strong",
		"redis-server --daemonize yes":  "strong",
	} {
		if got := lesson.Effect(line); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

func TestMasked(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"go test ./...":                            false,
		"go test ./... 2>&1":                       false,
		"go test ./... | tail -5":                  true,
		"go test ./... || true":                    true,
		"go test ./...; echo done":                 true,
		"go vet ./... && go test ./...":            false,
		"set -o pipefail; go test ./... | tail -5": false,
		"if go test ./...; then echo ok; fi":       true,
		"echo yes | terraform apply":               false,
		"cd x && go test ./...":                    false,
		"go test ./... &":                          true,
		"set -e\ngo vet ./...\ngo test ./...":      false,
		"for i in 1 2 3; do go test ./...; done":   true,
	} {
		if got := lesson.Masked(line); got != want {
			t.Errorf("%q: masked %v, want %v", line, got, want)
		}
	}
}

func TestFrame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, body, code string }{
		{"plain\n", "plain\n", ""},
		{"Exit code 1\nboom\n", "boom\n", "1"},
		{"Error: Exit code 127\nbash: x: command not found", "bash: x: command not found", "127"},
		{"Exit code: 0\nWall time: 1.2 seconds\nOutput:\nok\n", "ok\n", "0"},
		{"Chunk ID: ab12\nWall time: 0.1 seconds\nProcess exited with code 2\nOriginal token count: 9\nOutput:\nmake: *** boom", "make: *** boom", "2"},
		{"boom\n\n\nCommand exited with code 1", "boom\n\n\n", "1"},
		{"Command: make\nDirectory: (root)\nStdout: cc x.c\nStderr: (empty)\nError: (none)\nExit Code: 2\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 77", "cc x.c\nStderr: (empty)\n", "2"},
		{"Command: go test\nDirectory: (root)\nOutput: FAIL x\nFAIL\nError: (none)\nExit Code: 1\nSignal: (none)\nProcess Group PGID: 9", "FAIL x\nFAIL\n", "1"},
		{"Output: ok\nProcess Group PGID: 9", "ok\n", ""},
		{"", "", ""},
	} {
		body, code := lesson.Frame(tt.text)
		if body != tt.body || code != tt.code {
			t.Errorf("%q: body %q, code %q; want %q, %q", tt.text, body, code, tt.body, tt.code)
		}
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"All tests pass. Let me commit.":                        "All tests pass.",
		"Now let me commit.":                                    "",
		"Let me see. The cause was a missing import. More.":     "The cause was a missing import.",
		"The cause was v1.2.3 of x, e.g. its parser. And more.": "The cause was v1.2.3 of x, e.g. its parser.",
		"":                                 "",
		"Done":                             "Done",
		"**Fixed.** The port was taken.\n": "**Fixed.** The port was taken.",
	} {
		if got := lesson.Verdict(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
