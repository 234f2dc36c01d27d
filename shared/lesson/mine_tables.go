package lesson

// Tables of what is known of commands. Names are those of the programs, without
// their folders.

// wrapper is a program that runs another.
type wrapper struct {
	sub     []string // subcommands that make it one; none: always
	valued  []string // flags that a value follows
	args    int      // words before the command
	assigns bool     // NAME=value may stand before it
	kept    bool     // that it was used may be why a command passes
}

var wrappers = map[string]wrapper{
	"timeout":    {valued: []string{"-k", "-s", "--signal", "--kill-after"}, args: 1},
	"gtimeout":   {valued: []string{"-k", "-s"}, args: 1},
	"time":       {},
	"nice":       {valued: []string{"-n"}},
	"ionice":     {valued: []string{"-c", "-n"}},
	"nohup":      {},
	"xargs":      {valued: []string{"-I", "-n", "-P", "-L", "-d"}},
	"stdbuf":     {valued: []string{"-o", "-e", "-i"}},
	"unbuffer":   {},
	"command":    {},
	"exec":       {},
	"caffeinate": {},
	"env":        {valued: []string{"-u", "-C"}, assigns: true},
	"cross-env":  {assigns: true},
	"sudo":       {valued: []string{"-u", "-g"}, assigns: true, kept: true},
	"doas":       {valued: []string{"-u"}, kept: true},
	"xvfb-run":   {valued: []string{"-n", "-s", "--server-args"}, kept: true},
	"npx":        {valued: []string{"-p", "--package"}},
	"bunx":       {},
	"pnpx":       {},
	"pnpm":       {sub: []string{"exec", "dlx"}},
	"yarn":       {sub: []string{"exec", "dlx"}},
	"poetry":     {sub: []string{"run"}},
	"uv":         {sub: []string{"run"}, valued: []string{"--with", "--python", "-p", "--extra", "--group", "--package"}},
	"pipenv":     {sub: []string{"run"}},
	"pdm":        {sub: []string{"run"}},
	"rye":        {sub: []string{"run"}},
	"hatch":      {sub: []string{"run"}},
	"conda":      {sub: []string{"run"}, valued: []string{"-n", "--name", "-p"}},
	"bundle":     {sub: []string{"exec"}},
	"direnv":     {sub: []string{"exec"}, args: 1},
	"dotenv":     {valued: []string{"-e", "-f"}},
}

func set(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// filters read what another prints; cutters of them take lines away that are
// not at its end.
var (
	filters = set("tail", "head", "grep", "egrep", "fgrep", "rg", "ag", "sed", "awk", "gawk", "cut", "tr", "sort", "uniq",
		"wc", "tee", "cat", "less", "more", "jq", "yq", "column", "fold", "nl", "tac", "rev", "strings", "ts", "ansi2txt",
		"Select-String", "Select-Object", "Out-String", "findstr", "bat", "pino-pretty", "tap-spec", "xcpretty")
	cutters = set("grep", "egrep", "fgrep", "rg", "ag", "awk", "gawk", "cut", "wc", "uniq", "sort", "jq", "yq", "findstr", "Select-String")
	feeders = set("echo", "printf", "yes", "cat", "true")
	shells  = set("bash", "sh", "zsh", "dash", "ksh")
)

// dull commands look at or move files: their failures teach nothing.
var dull = set("ls", "cat", "head", "tail", "grep", "egrep", "rg", "ag", "find", "fd", "echo", "printf", "pwd", "which",
	"whereis", "type", "test", "[", "[[", "stat", "file", "wc", "du", "df", "ps", "pgrep", "top", "free", "env", "printenv",
	"date", "sleep", "wait", "true", "false", "tree", "less", "more", "diff", "cmp", "md5sum", "sha256sum", "shasum", "jq",
	"yq", "awk", "sed", "sort", "uniq", "cut", "tr", "xxd", "hexdump", "od", "strings", "basename", "dirname", "realpath",
	"readlink", "id", "whoami", "uname", "hostname", "history", "man", "help", "curl", "wget", "ping", "nc", "dig",
	"nslookup", "lsof", "netstat", "ss", "gh", "glab", "tty", "seq", "exit", "return", "kill", "pkill", "killall", "read",
	"bat", "nl", "open", "clear", "jobs", "fg", "bg", "let", "expr", "xargs", "column", "mem", "Get-Content", "Get-ChildItem",
	"dir", "where", "Select-String", "apply_patch", "mkdir", "rm", "rmdir", "mv", "cp", "touch", "ln", "tee", "cd", "unset", "ulimit")

// finders fail where they find nothing.
var finders = set("grep", "egrep", "fgrep", "rg", "ag", "diff", "cmp", "test", "[", "[[", "ls", "which", "pgrep", "find", "fd", "stat")

// effect is what a command does to what is around it.
type effect int

const (
	effectNone   effect = iota // looks, or checks
	effectOpaque               // nobody can say
	effectWeak                 // may be a cure where nothing else was done
	effectStrong
)

// effects of programs, the most telling form first: "program", or
// "program subcommand". A program that is in no table is opaque, one with
// subcommands whose subcommand is in none has the program's effect.
var effects = map[string]effect{
	"cp": effectStrong, "mv": effectStrong, "rm": effectStrong, "rmdir": effectStrong, "mkdir": effectWeak, "touch": effectWeak,
	"ln": effectStrong, "chmod": effectStrong, "chown": effectStrong, "patch": effectStrong, "rsync": effectStrong,
	"unzip": effectStrong, "tar": effectWeak, "dos2unix": effectStrong, "truncate": effectStrong, "install": effectStrong,
	"kill": effectStrong, "pkill": effectStrong, "killall": effectStrong, "fuser": effectWeak, "systemctl": effectStrong,
	"service": effectStrong, "launchctl": effectStrong, "ssh-add": effectStrong, "ssh-keygen": effectStrong,
	"open": effectWeak, // an application, on a Mac
	"wget": effectWeak, "envsubst": effectWeak,
	"createdb": effectStrong, "dropdb": effectStrong, "psql": effectStrong, "mysql": effectStrong, "sqlite3": effectStrong,
	"redis-server": effectStrong, "redis-cli": effectStrong, "alembic": effectStrong, "rustup": effectStrong, "nvm": effectStrong, "fnm": effectStrong,
	"volta": effectStrong, "asdf": effectStrong, "pyenv": effectStrong, "corepack": effectStrong, "virtualenv": effectStrong,
	"playwright install": effectStrong, "prisma": effectStrong, "prisma validate": effectNone,
	"sysctl": effectStrong, "modprobe": effectStrong, "mount": effectStrong, "useradd": effectStrong, "usermod": effectStrong,

	"apt": effectStrong, "apt-get": effectStrong, "dnf": effectStrong, "yum": effectStrong, "apk": effectStrong, "brew": effectStrong,
	"pacman": effectStrong, "zypper": effectStrong, "snap": effectStrong, "choco": effectStrong, "winget": effectStrong, "scoop": effectStrong, "port": effectStrong,
	"apt list": effectNone, "apt search": effectNone, "brew list": effectNone, "brew info": effectNone, "apt-cache": effectNone, "dpkg": effectWeak,

	"pip install": effectStrong, "pip uninstall": effectStrong, "pip": effectNone,
	"uv add": effectStrong, "uv remove": effectStrong, "uv sync": effectStrong, "uv lock": effectStrong, "uv venv": effectStrong, "uv python": effectStrong,
	"poetry add": effectStrong, "poetry remove": effectStrong, "poetry install": effectStrong, "poetry update": effectStrong, "poetry lock": effectStrong,
	"pipenv install": effectStrong, "pdm add": effectStrong, "pdm install": effectStrong, "conda install": effectStrong, "conda create": effectStrong, "mamba install": effectStrong,
	"pipx install": effectStrong, "pre-commit install": effectStrong, "pre-commit autoupdate": effectStrong,
	"npm install": effectStrong, "npm ci": effectStrong, "npm uninstall": effectStrong, "npm update": effectStrong, "npm audit fix": effectStrong, "npm dedupe": effectStrong,
	"npm config": effectStrong, "npm rebuild": effectStrong, "npm cache": effectStrong, "npm link": effectStrong, "npm pkg": effectStrong,
	"npm audit": effectNone, "npm ls": effectNone, "npm view": effectNone, "npm outdated": effectNone, "npm why": effectNone, "npm run": effectWeak, "npm start": effectWeak,
	"bundle install": effectStrong, "bundle update": effectStrong, "bundle add": effectStrong, "gem install": effectStrong,
	"composer install": effectStrong, "composer update": effectStrong, "composer require": effectStrong, "composer dump-autoload": effectStrong,
	"go get": effectStrong, "go install": effectStrong, "go generate": effectStrong, "go mod": effectStrong, "go work": effectStrong, "go fmt": effectStrong, "go fix": effectStrong, "go clean": effectStrong,
	"go env -w": effectStrong, "go env": effectNone, "go build": effectNone, "go vet": effectNone, "go test": effectNone, "go list": effectNone, "go version": effectNone, "go doc": effectNone, "go tool": effectNone, "go run": effectWeak,
	"cargo add": effectStrong, "cargo update": effectStrong, "cargo fmt": effectStrong, "cargo fix": effectStrong, "cargo install": effectStrong, "cargo clean": effectStrong, "cargo generate-lockfile": effectStrong, "cargo remove": effectStrong,
	"cargo build": effectNone, "cargo check": effectNone, "cargo test": effectNone, "cargo clippy": effectNone, "cargo tree": effectNone, "cargo doc": effectNone, "cargo run": effectWeak,
	"dotnet add": effectStrong, "dotnet restore": effectStrong, "dotnet tool": effectStrong, "dotnet build": effectNone, "dotnet test": effectNone,
	"flutter pub": effectStrong, "dart pub": effectStrong, "pod install": effectStrong, "swift package": effectStrong, "mix deps.get": effectStrong, "terraform init": effectStrong,
	"terraform": effectNone, "terraform apply": effectStrong, "terraform import": effectStrong, "terraform state": effectStrong, "terraform fmt": effectStrong,

	"git checkout": effectStrong, "git switch": effectStrong, "git restore": effectStrong, "git stash": effectStrong, "git reset": effectStrong, "git revert": effectStrong,
	"git merge": effectStrong, "git rebase": effectStrong, "git pull": effectStrong, "git cherry-pick": effectStrong, "git apply": effectStrong, "git am": effectStrong,
	"git clean": effectStrong, "git config": effectStrong, "git submodule": effectStrong, "git lfs": effectStrong, "git worktree": effectStrong, "git rm": effectStrong,
	"git mv": effectStrong, "git clone": effectStrong, "git init": effectWeak, "git remote": effectStrong, "git fetch": effectWeak, "git branch": effectWeak, "git tag": effectWeak, "git add": effectWeak, "git commit": effectWeak, "git": effectNone,

	"docker": effectNone, "docker run": effectStrong, "docker start": effectStrong, "docker stop": effectStrong, "docker rm": effectStrong, "docker rmi": effectStrong, "docker pull": effectStrong,
	"docker compose": effectStrong, "docker login": effectStrong, "docker network": effectStrong, "docker volume": effectStrong, "docker system": effectStrong, "docker builder": effectStrong, "docker build": effectWeak, "docker restart": effectStrong, "docker context": effectStrong,
	"podman": effectWeak, "colima": effectStrong, "minikube": effectStrong, "kind": effectStrong,
	"kubectl": effectNone, "kubectl apply": effectStrong, "kubectl create": effectStrong, "kubectl delete": effectStrong, "kubectl patch": effectStrong, "kubectl set": effectStrong, "kubectl scale": effectStrong, "kubectl rollout": effectStrong, "kubectl config": effectStrong, "kubectl label": effectStrong, "kubectl replace": effectStrong,
	"helm": effectStrong, "helm list": effectNone, "helm status": effectNone, "helm template": effectNone, "helm lint": effectNone, "aws configure": effectStrong, "gcloud auth": effectStrong, "gcloud config": effectStrong, "az login": effectStrong,

	"gofmt": effectNone, "goimports": effectNone, "prettier": effectNone, "eslint": effectNone, "biome": effectNone, "black": effectStrong, "isort": effectStrong, "ruff": effectNone, "ruff format": effectStrong, "rustfmt": effectStrong,
	"clang-format": effectNone, "autopep8": effectNone, "buf generate": effectStrong, "protoc": effectStrong, "sqlc": effectStrong, "rubocop": effectNone, "stylelint": effectNone, "golangci-lint": effectNone, "shfmt": effectNone,

	"pytest": effectNone, "unittest": effectNone, "tox": effectNone, "nox": effectNone, "mypy": effectNone, "pyright": effectNone, "flake8": effectNone, "pylint": effectNone, "pre-commit": effectNone, "coverage": effectNone,
	"tsc": effectNone, "tsgo": effectNone, "vue-tsc": effectNone, "jest": effectNone, "vitest": effectNone, "mocha": effectNone, "ava": effectNone, "playwright": effectNone, "cypress": effectNone, "tap": effectNone, "svelte-check": effectNone,
	"npm test": effectNone, "staticcheck": effectNone, "gotestsum": effectNone, "shellcheck": effectNone, "hadolint": effectNone, "actionlint": effectNone, "yamllint": effectNone, "markdownlint": effectNone, "tflint": effectNone,
	"rspec": effectNone, "phpunit": effectNone, "phpstan": effectNone, "ctest": effectNone, "mvn test": effectNone, "mvn verify": effectNone, "mvn compile": effectNone, "gradle test": effectNone, "gradle check": effectNone,
	"deno": effectNone, "bun": effectWeak, "swift": effectNone, "xcodebuild": effectNone, "bazel": effectNone, "ruby": effectOpaque,
	"make": effectWeak, "ninja": effectNone, "cmake": effectWeak, "mvn": effectWeak, "gradle": effectWeak, "gcc": effectNone, "g++": effectNone, "clang": effectNone, "rustc": effectNone, "javac": effectNone, "webpack": effectNone, "vite": effectNone, "meson": effectWeak,
	"mise": effectWeak, "just": effectWeak, "task": effectWeak, "direnv": effectStrong,
}

// changing flags make a checker a change: gofmt -w, eslint --fix.
var changing = map[string][]string{
	"gofmt": {"-w"}, "goimports": {"-w"}, "shfmt": {"-w"}, "prettier": {"--write", "-w"}, "eslint": {"--fix"}, "biome": {"--write", "--fix", "--apply"},
	"ruff": {"--fix"}, "clang-format": {"-i"}, "autopep8": {"-i", "--in-place"}, "rubocop": {"-a", "-A", "--autocorrect"}, "stylelint": {"--fix"},
	"golangci-lint": {"--fix"}, "sed": {"-i", "--in-place"}, "perl": {"-i", "-pi", "-pie"}, "yq": {"-i"}, "cargo clippy": {"--fix"}, "dart": {"--apply"}, "curl": {"-o", "-O"},
	"jest": {"-u", "--updateSnapshot"}, "vitest": {"-u", "--update"}, "go test": {"-update"}, "pytest": {"--snapshot-update"}, "tar": {"-x", "-xf", "-xzf", "xf", "xzf"},
}

// checkers are the programs whose names a changed state is not asked of in
// scripts: `npm run lint` looks, whatever runs it.
var checkTasks = set("test", "tests", "lint", "check", "typecheck", "type-check", "types", "tsc", "verify", "unit", "e2e", "ci", "validate", "spec", "vet", "build", "compile")

// canonical gives one name to what is one program.
var canonical = map[string]string{
	"python3": "python", "py": "python", "pip3": "pip", "mvnw": "mvn", "gradlew": "gradle", "gmake": "make", "nodejs": "node",
	"docker-compose": "docker compose", "podman-compose": "docker compose", "py.test": "pytest", "tofu": "terraform", "clang++": "clang",
	"c++": "g++", "cc": "gcc", "bazelisk": "bazel",
}

// managers run the scripts of package.json; what one runs another does too.
var managers = set("npm", "yarn", "pnpm", "bun")

// managerSubs are subcommands of package managers that are one thing under
// several names; a name that is none of them is a script's.
var managerSubs = map[string]string{
	"i": "install", "in": "install", "install": "install", "add": "install", "ci": "ci", "clean-install": "ci", "un": "uninstall", "uninstall": "uninstall",
	"remove": "uninstall", "rm": "uninstall", "up": "update", "update": "update", "upgrade": "update", "t": "test", "test": "test", "tst": "test",
	"audit": "audit", "ls": "ls", "list": "ls", "why": "why", "explain": "why", "view": "view", "info": "view", "outdated": "outdated", "publish": "publish",
	"pack": "pack", "link": "link", "config": "config", "cache": "cache", "init": "init", "create": "create", "start": "start", "rebuild": "rebuild", "dedupe": "dedupe",
	"version": "version", "login": "login", "pkg": "pkg", "set": "config", "import": "import", "prune": "prune",
}

// subcommands: programs of which the second word says what they do.
var subcommands = set("go", "cargo", "git", "docker", "docker compose", "kubectl", "helm", "terraform", "dotnet", "pip", "uv", "poetry", "pipenv", "pdm",
	"conda", "mamba", "pipx", "bundle", "gem", "composer", "flutter", "dart", "pod", "swift", "mix", "apt", "brew", "ruff", "pre-commit",
	"buf", "playwright", "prisma", "mvn", "gradle", "aws", "gcloud", "az", "golangci-lint", "biome", "mise", "deno", "podman", "rails", "php", "alembic", "next", "vite")

// noise are flags that change how a command speaks, not what it does; valued
// ones have their value in the next word.
var (
	noise = set("-v", "-vv", "-vvv", "--verbose", "-q", "--quiet", "-s", "--silent", "--color", "--colors", "--no-color", "--no-colors", "--colour", "-x", "--bail",
		"--ci", "--no-coverage", "--coverage", "--progress", "--no-progress", "-B", "--batch-mode", "--no-daemon", "--stacktrace", "--info", "--debug", "-e", "-X",
		"--no-header", "--nocapture", "--show-output", "--no-fail-fast", "-l", "--showlocals", "--pretty", "--no-pretty", "--run", "--passWithNoTests",
		"--forceExit", "--detectOpenHandles", "--runInBand", "-i", "--no-audit", "--no-fund", "-y", "--yes", "--no-cache-dir", "-json", "--json", "--failfast", "-failfast", "-fullpath")
	noisePrefix = []string{"--color=", "--tb=", "--reporter=", "--reporters=", "-count=", "-timeout=", "--timeout=", "--maxWorkers=", "-parallel=", "-p=", "--loglevel=", "--log-level=",
		"-cover", "--cov", "--durations", "--max-warnings=", "--logger", "--verbosity", "-test.v", "--format=", "--output-format=", "--progress=", "--console=", "-j", "--jobs=", "--maxfail", "-W", "-rA", "-vet=", "--message-format", "-T"}
	noiseValued = set("-count", "-timeout", "--timeout", "-parallel", "-j", "--jobs", "--reporter", "--maxWorkers", "--workers", "--tb", "--color", "--loglevel", "--test-threads",
		"--format", "--maxfail", "-o", "--output-format", "-coverprofile", "--progress", "-m", "--message", "-F", "--logger")
)

// narrowing flags take a part of what would run, by program.
var narrowing = map[string][]string{
	"go test":    {"-run", "-skip", "-short", "-bench"},
	"pytest":     {"-k", "-m", "--lf", "--last-failed", "--deselect", "--ignore", "--sw", "--stepwise"},
	"python":     {"-k"},
	"jest":       {"-t", "--testNamePattern", "--testPathPattern", "--testPathPatterns", "--testPathIgnorePatterns", "--onlyChanged", "-o", "--onlyFailures", "-f", "--findRelatedTests", "--selectProjects"},
	"vitest":     {"-t", "--testNamePattern", "--project", "--changed", "--exclude", "--dir"},
	"mocha":      {"-g", "--grep", "-f", "--fgrep"},
	"playwright": {"-g", "--grep", "--project", "--grep-invert", "--last-failed"},
	"cargo":      {"--test", "--lib", "--bin", "-p", "--package", "--example", "--exclude", "--skip"},
	"gradle":     {"--tests", "-x"},
	"mvn":        {"-Dtest", "-pl", "-DskipTests", "-Dmaven.test.skip", "-Dit.test", "-rf"},
	"dotnet":     {"--filter"},
	"rspec":      {"-e", "--example", "--tag", "-t"},
	"phpunit":    {"--filter", "--group", "--testsuite"},
	"ctest":      {"-R", "-L", "-E"},
	"bazel":      {"--test_filter"},
	"swift":      {"--filter"},
	"script":     {"-t", "--grep", "-g", "--testNamePattern", "--testPathPattern", "-k", "--filter", "-run", "--workspace", "-w"},
	"make":       {"TEST", "TESTS", "RUN", "ARGS"},
	"git":        {"--no-verify", "--dry-run"},
	"":           {"--dry-run", "--help", "-h", "--version", "--list", "--collect-only", "--no-verify", "--skip-tests", "--exclude", "--ignore"},
}

// wholeWithout: without a target these take all there is.
var wholeWithout = set("pytest", "jest", "vitest", "mocha", "cargo test", "rspec", "phpunit", "playwright", "script test", "cargo nextest", "ctest", "cypress", "mypy", "eslint", "golangci-lint run")

// silent programs print nothing when they pass.
var silent = set("go build", "go vet", "tsc", "tsgo", "eslint", "gofmt", "make", "gcc", "g++", "clang", "rustc", "javac", "shellcheck", "staticcheck", "ruff", "flake8", "pyright", "python", "node", "git commit", "git push", "mkdir", "bash", "sh")
