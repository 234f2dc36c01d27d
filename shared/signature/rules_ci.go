package signature

// ciInfra stopped the job itself: whatever else failed before was tolerated, or
// failed because of it.
var ciInfra = []rule{
	{
		name: "ci.shutdown", lits: []string{"shutdown signal", "lost communication", "runner has been", "agent was lost", "agent lost", "system failure", "node was lost", "agent went offline", "removed or offline", "pod failed to come online", "cancelling node body"}, re: `cancelling node body|^(?:Error: )?pod failed to come online|received a shutdown signal|lost communication with the server|ERROR: Job failed \(system failure\)|[Aa]gent (?:was )?(?:lost|went offline)|marked offline|was removed or offline`, conf: 0.97, pick: last,
		yes: []string{"The runner has received a shutdown signal. This can happen when the runner service is stopped, or a manually started runner is canceled.", "The hosted runner: GitHub Actions 3 lost communication with the server.", "ERROR: Job failed (system failure): prepare environment: exit code 137"},
		no:  []string{"ERROR: Job failed: exit code 1"},
	},
	{
		name: "ci.timeout", lits: []string{"has timed out after", "exceeded the maximum execution time", "execution took longer than", "timeout has been exceeded", "ran longer than the maximum", "too long with no output", "job timed out", "timed out after", "exceeded the timeout"}, re: `^(?:The (?:action|job) '?.*'? has (?:timed out after \d+|exceeded the maximum execution time)|.*execution took longer than|.*Timeout has been exceeded|.*ran longer than the maximum time|Too long with no output|.*[Jj]ob (?:timed out|exceeded the timeout)|.*Build timed out \(after)`, conf: 0.97, pick: last,
		yes: []string{"The action 'Test' has timed out after 360 minutes.", "The job running on runner X has exceeded the maximum execution time of 360 minutes.", "ERROR: Job failed: execution took longer than 1h0m0s seconds", "Too long with no output (exceeded 10m0s): context deadline exceeded", "The job running on agent Azure Pipelines 3 ran longer than the maximum time of 60 minutes."},
		no:  []string{"subprocess.TimeoutExpired: Command timed out after 5 seconds"},
	},
	{
		name: "ci.canceled", lits: []string{"operation was canceled", "the run was canceled", "cancelled by user", "received cancellation signal", "sending interrupt signal", "aborted by", "received request to deprovision", "higher priority waiting request", "received sigint", "received sigterm"}, re: `^(?:received SIG(?:INT|TERM)$|The operation was canceled\.?|The run was canceled|# Received cancellation signal|Received cancellation signal|Aborted by|Cancell?ed by|Canceling since a higher priority)`, conf: 0.96, pick: last,
		yes: []string{"The operation was canceled.", "# Received cancellation signal, interrupting", "Aborted by Jane Doe"},
		no:  []string{"Error: The request was canceled due to the configured HttpClient.Timeout of 100 seconds elapsing."},
	},
}

// ciJob are the failures of a job's own steps, for logs whose tool is the CI
// runner. Each takes its last hit.
var ciJob = []rule{
	{
		name: "ci.download", lits: []string{"failed to download", "unable to resolve action", "unable to download", "download has timed out", "artifact not found", "failed to downloadartifact", "no artifact", "failed to restore", "unable to find any artifacts"}, re: `^(?:Failed to download (?:archive|action)|Unable to (?:resolve action|download artifact|find any artifacts)|Failed to (?:DownloadArtifact|CreateArtifact|FinalizeArtifact)|.*Artifact not found for name)`, conf: 0.95, pick: last,
		yes: []string{"Failed to download archive 'https://codeload.github.com/x' after 3 attempts.", "Unable to download artifact(s): Artifact not found for name: x", "Unable to resolve action `actions/nope@v1`, unable to find version `v1`"},
		no:  []string{"Download action repository 'x'"},
	},
	{
		name: "ci.job", lits: []string{"error: job failed"}, re: `^ERROR: Job failed(?: \(system failure\))?: (?:failed to pull image|prepare environment|start service|pod |unable to|runner_)`, conf: 0.955, pick: last,
		yes: []string{"ERROR: Job failed: failed to pull image \"x/y:7\" with specified policies [always]: Error response from daemon: manifest unknown"},
		no:  []string{"ERROR: Job failed: exit code 1"},
	},
	{
		name: "ci.access", lits: []string{"credentials could not be loaded", "is not authorized to perform", "could not load credentials", "could not assume role", "not authorized", "rate limit", "bad credentials", "resource not accessible", "input required and not supplied", "requires authentication", "no hosted parallelism"}, re: `Credentials could not be loaded|is not authorized to perform|Could not assume role|[Rr]ate limit exceeded|secondary rate limit|Bad credentials|Resource not accessible by|Input required and not supplied|No hosted parallelism`, not: `^(?:Failed|Unable|Could not) to (?:parse|upload|report|publish|send)`, conf: 0.95, pick: last,
		yes: []string{"Credentials could not be loaded, please check your action inputs: Could not load credentials from any providers", `"message": "API rate limit exceeded for user ID 1.`, "User: arn:aws:sts::1:assumed-role/x is not authorized to perform: s3:PutObject"},
		no:  []string{"credentials loaded", "Failed to upload metrics: User: x is not authorized to perform: s3:PutObject"}, // a job's own reports
	},
	{
		name: "ci.git_access", lits: []string{"permission denied (", "host key verification failed", "could not resolve hostname", "remote: permission to", "repository not found", "authentication failed", "remote: http basic", "remote: invalid username", "remote: support for password"}, re: `^(?:stderr: )?(?:\S+: Permission denied \((?:publickey|password|keyboard)|Host key verification failed|ssh: |remote: (?:Permission to|Repository not found|HTTP Basic|Invalid username|Support for password)|ERROR: (?:Repository not found|Permission to)|fatal: Authentication failed)`, conf: 0.945, pick: last,
		yes: []string{"stderr: git@git.acme.test: Permission denied (publickey).", "remote: Permission to acme/shop.git denied to github-actions[bot].", "ERROR: Repository not found."},
		no:  []string{"fatal: Could not read from remote repository."},
	},
	{
		name: "ci.git", lits: []string{"fatal: "}, re: `^fatal: `, not: `Could not read from remote|fatal: not a git repository|^fatal: No url found for submodule`, conf: 0.94, pick: last,
		yes: []string{"fatal: couldn't find remote ref refs/tags/ciflow/b200/190903"},
		no:  []string{"fatal: Could not read from remote repository."},
	},
	{
		name: "ci.compile", lits: []string{"error: ", "error c", "fatal error"}, re: cFile + `(?::\d+(?::\d+)?: (?:fatal |internal compiler )?error: |\(\d+(?:,\d+)?\) ?: (?:fatal )?error(?: [A-Z]+\d+)?: )`, conf: 0.95, pick: last,
		yes: []string{"/x/y.cpp:3:5: error: no member named 'z'", `C:\x\y.h(89): error C2143: syntax error: missing ',' before '*'`},
		no:  []string{"/x/y.cpp:3:5: warning: w"},
	},
	{
		name: "ci.pytest", lits: []string{"failed [", "error ["}, re: `^(?:\[gw\d+\] )?(?:FAILED|ERROR) \[[\d.]+s\] \S+\.py(?:::\S+)?`, keep: `^(?:\[gw\d+\] )?(FAILED|ERROR) (?:\[[\d.]+s\] )?(\S+\.py(?:::\S+)?)`, conf: 0.94, pick: last,
		yes: []string{"FAILED [310.0221s] distributed/test_c10d.py::T::test_a - RuntimeError: x"},
		no:  []string{"test_a.py::test_b PASSED [ 90%]"},
	},
	{
		name: "ci.lint", lits: []string{"error ("}, re: `^\s*(?:>>> )?Error \(([A-Z0-9_]+)\) `, conf: 0.94, pick: last,
		yes: []string{"  Error (CLANGTIDY) Linter failed"},
		no:  []string{"Error: x"},
	},
	{
		name: "ci.groovy", lits: []string{"groovy.lang.", "hudson.", "org.jenkinsci.", "workflowscript", "no such dsl method", "java.io.ioexception"}, re: `^(?:groovy\.lang\.\w+|hudson\.\w+(?:\.\w+)*(?:Exception|Error)|org\.jenkinsci\.\S+Exception|WorkflowScript: \d+: |java\.(?:io|lang)\.\w+Exception|.*No such DSL method)`, not: `script returned exit code`, conf: 0.9,
		yes: []string{"groovy.lang.MissingPropertyException: No such property: x for class: groovy.lang.Binding", "java.lang.NoSuchMethodError: No such DSL method 'foo' found among steps"},
		no:  []string{"hudson.AbortException: script returned exit code 1"},
	},
}

// late rules know the class and hardly the cause: they are tried where no tool
// has said more.
var lateRules = append(ninjaLast[:len(ninjaLast):len(ninjaLast)], []rule{
	{
		name: "docker.step", lits: []string{"error: "}, re: `^ERROR: \S`, not: `failed to solve|process ".*" did not complete`, need: "failed to solve", conf: 0.65,
		yes: []string{"ERROR: no match for platform in manifest: not found"},
		no:  []string{`ERROR: process "/bin/sh -c npm ci" did not complete successfully: exit code: 1`},
	},
	{
		name: "docker.solve", lits: []string{"failed to solve"}, re: `failed to solve: `, not: `did not complete successfully`, conf: 0.6,
		yes: []string{"ERROR: failed to solve: rpc error: code = Unknown desc = x"},
		no:  []string{`ERROR: failed to solve: process "/bin/sh -c x" did not complete successfully: exit code: 1`},
	},
}...)

var lateProcess = []rule{
	{
		name: "npm.install_script", lits: []string{"npm error ", "npm err! "}, re: npmP + `(?:\S.*: (?:fatal )?error: .+|(?:gyp ERR! )?(?:find \w+ You need|stack \w*Error: ).+|\w*Error: .+|.*(?:[Nn]o such file|not found|[Pp]ermission denied).*)`, not: `failed with exit code|command failed|complete log`, need: "npm error command ", conf: 0.85,
		detail: detail{how: within, re: npmP + `path (.+)`},
		yes:    []string{"npm error ../src/a.cc:3:1: fatal error: uv.h: No such file or directory", "npm error gyp ERR! find Python You need to install the latest version of Python.", "npm error sh: 1: node-gyp: not found"},
		no:     []string{"npm error gyp ERR! configure error", "npm error code 1"},
	},
	{
		name: "npm.exit", lits: []string{"npm error code ", "npm err! code "}, re: npmP + `code \d+$`, conf: 0.7, said: true,
		detail: detail{how: within, re: npmP + `(?:path (.*node_modules.*)|(gyp ERR! stack (?:Error|\w+Error): .+))`},
		yes:    []string{"npm error code 1"},
		no:     []string{"npm error code E404"},
	},
	{
		name: "python.wrapper", lits: []string{"calledprocesserror", "failed!", "systemexit"}, re: pyWrapper, need: `file "`, conf: 0.7, pick: last, under: `File "`,
		yes: []string{"subprocess.CalledProcessError: Command '['make']' returned non-zero exit status 2.", "RuntimeError: test_cuda 1/1 failed!"},
		no:  []string{"RuntimeError: boom"},
	},
	{
		name: "docker.process", lits: []string{"did not complete successfully", "returned a non-zero code"}, re: `did not complete successfully: exit code|returned a non-zero code`, conf: 0.5, said: true,
		yes: []string{`ERROR: process "/bin/sh -c x" did not complete successfully: exit code: 1`, "The command '/bin/sh -c x' returned a non-zero code: 2"},
		no:  []string{"completed successfully"},
	},
	{
		name: "npm.lifecycle", lits: []string{"elifecycle", "failed at the", "lifecycle script", "command failed with exit code"}, re: `(?:npm (?:error|ERR!) (?:Failed at the|Lifecycle script|code ELIFECYCLE))|ELIFECYCLE|^error Command failed with exit code`, conf: 0.3,
		yes: []string{"npm ERR! Failed at the api@1.0.0 build script.", "\u2009ELIFECYCLE\u2009 Command failed with exit code 1.", "error Command failed with exit code 1."},
		no:  []string{"npm error code E404"},
	},
}

// genericRules are for tools that nobody knows: how programs begin a line that
// says what is wrong.
var genericRules = []rule{
	{
		name: "generic.junit", lits: []string{"junit failure: ", "junit error: "}, re: `^JUnit (?:failure|error): `, conf: 0.7,
		detail: detail{how: next},
		yes:    []string{"JUnit failure: com.acme.CartTest.totals: AssertionError expected 1"},
		no:     []string{"junit ok"},
	},
	{
		name: "generic.rspec", lits: []string{"failure/error: "}, re: `^\s+Failure/Error: `, conf: 0.8,
		detail: detail{how: before, re: `^\s*\d+\) (.+)`, lines: 4},
		yes:    []string{"     Failure/Error: expect(cart.total).to eq(12)"},
		no:     []string{"6 examples, 1 failure"},
	},
	{
		name: "generic.fatal", lits: []string{"fatal", "panic", "critical", "emerg", "crit"}, re: `^\s*(?:\[?(?i:fatal|panic|critical|emerg(?:ency)?|crit)\]?(?: error)?[:\]]|.*\b(?:FATAL|PANIC|CRITICAL)\b[:\] ])`, not: noFailure, conf: 0.45,
		yes: []string{"FATAL: password authentication failed for user \"app\"", "fatal: cannot start", "[FATAL] no config", "2026 app FATAL could not open x"},
		no:  []string{"0 fatal: ok, no errors"},
	},
	{
		name: "generic.error", lits: []string{"error", "err:", "fehler", "erreur", "exception"}, re: `(?:^|[\s\]|)>-])(?:\[?(?:[Ee]rror|ERROR|[Ee]rr|ERR|Fehler|FEHLER|Erreur|ERREUR)\]?(?:\[[\w-]+\])?(?: ?[:\]]| [A-Z]{1,5}\d{2,5}\b| - )|ERROR\s|[Ee]rror (?:while|in|at|on|when|during|occurred|loading|reading|creating|opening|running|parsing|processing|connecting|building)\b)|^\s*(?:[\w.$]+)?(?:Error|Exception)(?:: |$)|(?:: |\s)error: `, not: noFailure, conf: 0.4,
		yes: []string{"error: cannot open display", "[ERROR] something broke", "foo.tex:3: error: Undefined control sequence", "MyException: x", "app ERROR db is down", "Error while loading shared libraries: libx.so", "x.proto:3:1: error: Expected \";\"", "error CS0103: The name 'x' does not exist"},
		no:  []string{"0 errors, 0 failures", "Errors: 0", "compiling thiserror v1.0", "no error: fine", "error_count=0"},
	},
	{
		name: "generic.failed", lits: []string{"fail", "cannot ", "can't ", "could not ", "couldn't", "unable to", "not found", "no such", "denied", "refused", "timed out", "timeout", "killed", "invalid", "unknown", "undefined", "missing", "not supported", "unsupported", "unexpected", "out of memory", "no space", "segmentation", "abort", "must ", "not allowed", "unauthorized", "forbidden", "expired", "mismatch", "violat"},
		re: `(?i)\b(?:failed|failure|fails?|cannot|can't|could not|couldn't|unable to|not found|no such|denied|refused|timed out|timeout (?:exceeded|expired|reached)|killed|invalid|unknown \w+|undefined|missing|unsupported|not supported|unexpected|out of memory|no space left|segmentation fault|abort(?:ed|ing)|not allowed|unauthorized|forbidden|expired|mismatch|violat(?:es|ed|ion)|must (?:be|have|not))\b`, not: noFailure, conf: 0.3,
		yes: []string{"Could not connect to database", "connection refused by 10.0.0.1", "Assertion failed", "unable to open file"},
		no:  []string{"0 failed, 3 passed", "0 errors, 0 failures", "no failures", "failed: 0", "ok 3 - handles missing files"},
	},
}

// noFailure is what a passing run says of failures.
const noFailure = `(?i)^\s*(?:undefined|null|none)\s*$|\b(?:0|no|without|zero) (?:\w+ )?(?:errors?|failures?|failed|fatal|problems?|issues?)\b|\b(?:errors?|failures?|failed|fatal)(?:=|: ?|\s+)0\b|\berror_count\b|^\s*(?:warning|warn|info|debug|note|notice|trace|hint)\b|\[(?:warning|warn|info|debug|note)\]|^\s*(?:ok \d|✓|✔|√|PASS|FAIL\s+\S+\.(?:test|spec)\.\w+$|ok\s|\+ |\$ |> )|--no-fail|fail-fast|thiserror|\b(?:warning|deprecated):|PASSED\b|retrying in`
