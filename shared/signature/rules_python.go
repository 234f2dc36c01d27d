package signature

const pyName = `(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Warning|Timeout|Failure|Refused|NotFound|Exceeded|Unavailable|Denied|DoesNotExist|StopIteration)`

// pyWrapper are exceptions that say no more than that a program which was run
// has failed: what it said itself is the root.
const pyWrapper = `^(?:[\w.]*CalledProcessError: Command|SystemExit: |[\w.]*Error: [\w./ ]+ failed!$)`

var pytestRules = []rule{
	{
		name: "pytest.internal", lits: []string{"internalerror>"}, re: `^INTERNALERROR> ` + pyName + `\b`, conf: 0.95, pick: chain,
		yes: []string{"INTERNALERROR> KeyError: 'x'"},
		no:  []string{"INTERNALERROR> Traceback (most recent call last):"},
	},
	{
		name: "pytest.conftest", lits: []string{"while loading conftest"}, re: `^(?:ImportError|\w+Error) while loading conftest `, conf: 0.9,
		detail: detail{how: after, re: `^(?:E\s+)?(` + pyName + `\b.*)`, lines: 30},
		yes:    []string{"ImportError while loading conftest '/x/conftest.py'."},
		no:     []string{"conftest.py:3: in <module>"},
	},
	{
		name: "pytest.error", lits: []string{"e  "}, re: `^(?:\[gw\d+\] )?E   +(?:` + pyName + `\b|assert |fixture '|Failed: |recursive dependency|in "parametrize"|\S+: function uses)`, conf: 0.96,
		detail: detail{how: before, re: `^_{2,} (?:ERROR (?:collecting|at \w+ of) )?(.+?) _{2,}$|^JUnit (?:failure|error): (?:\S+\.)?(\w+(?:\[.*\])?): `, lines: 4000},
		yes:    []string{"E       AssertionError: assert '{}' == '[1]'", "E   ModuleNotFoundError: No module named 'x'", "E       fixture 'db' not found", "E       assert 1 == 2", "E   Failed: DID NOT RAISE <class 'ValueError'>"},
		no:     []string{"E         - [1]", "E         +  where 1 = f()", "E     File \"/x/a.py\", line 3"},
	},
	{
		name: "pytest.strict", lits: []string{"not found in `markers`", "[xpass(strict)]"}, re: "^(?:'\\S+' not found in `markers`|\\[XPASS\\(strict\\)\\])", conf: 0.94,
		detail: detail{how: before, re: `^_{2,} (?:ERROR collecting )?(.+?) _{2,}$`, lines: 400},
		yes:    []string{"'slwo' not found in `markers` configuration option", "[XPASS(strict)] "},
		no:     []string{"XPASS test_a.py::test_d"},
	},
	{
		name: "pytest.line", lits: []string{".py:"}, re: `^\S+\.py:\d+: ` + pyName + `: `, need: "failed|error", not: `Warning: `, conf: 0.85,
		yes: []string{"/x/tests/test_a.py:2: AssertionError: assert 1 == 2"},
		no:  []string{"tests/test_a.py:2: AssertionError", "/x/a.py:3: UserWarning: old"},
	},
	{
		name: "pytest.usage", lits: []string{"error: "}, re: `^(?:ERROR: (?:file or directory not found|not found|unknown|Error|Wrong|Module|Missing|found no collectors)|.*(?:pytest|py\.test|__main__\.py): error: )`, conf: 0.93,
		yes: []string{"ERROR: file or directory not found: tests/nope", "pytest: error: unrecognized arguments: --foo", "python -m pytest: error: unrecognized arguments: --foo", "ERROR: not found: /x/test_a.py::test_nope"},
		no:  []string{"ERROR tests/test_a.py"},
	},
}

// pytestLate are tried behind tracebacks: the summary is cut at the terminal's
// width.
var pytestLate = []rule{
	{
		name: "pytest.native", lits: []string{"error", "exception", "interrupt", "exit", "timeout", "failure"}, re: `^` + pyName + `(?:: .*)?$`, not: pyWrapper + `|^(?:Error|ERROR)`, need: "short test summary|= failures =|= errors =", under: `File "`, conf: 0.83,
		yes: []string{"AssertionError: assert 1 == 2"},
		no:  []string{"E   AssertionError: assert 1 == 2"},
	},
	{
		name: "pytest.summary", lits: []string{"failed ", "error "}, re: `^(?:\[gw\d+\] )?(?:FAILED|ERROR) (?:\[[\d.]+s\] )?\S+\.py(?:::\S+)?`, keep: `^(?:\[gw\d+\] )?(FAILED|ERROR) (?:\[[\d.]+s\] )?(\S+\.py(?:::\S+)?)`, conf: 0.8,
		yes: []string{"FAILED tests/test_a.py::test_latency - AssertionError: assert '{}' == '[1]'", "FAILED [310.0221s] distributed/test_c10d.py::T::test_a - RuntimeError", "ERROR tests/test_a.py"},
		no:  []string{"test_a.py::test_b PASSED [ 90%]"},
	},
	{
		name: "pytest.interrupt", lits: []string{"!!!!!!!!"}, re: `^!{4,} (?:KeyboardInterrupt|.*Interrupted: |_pytest\.outcomes\.Exit)`, conf: 0.7,
		yes: []string{"!!!!!!!!!!!!!!!!!!! KeyboardInterrupt !!!!!!!!!!!!!!!!!!!"},
		no:  []string{"!!!!!!!!! stopping after 1 failures !!!!!!!!!"},
	},
	{
		name: "pytest.none", lits: []string{"no tests ran", "collected 0 items"}, re: `^(?:=+ )?no tests ran in |^collected 0 items$`, conf: 0.6,
		yes: []string{"============= no tests ran in 0.01s ============="},
		no:  []string{"collected 3 items"},
	},
}

var pythonRules = []rule{
	{
		name: "python.unittest", lits: []string{"error", "exception"}, re: `^` + pyName + `(?:: .*)?$`, need: "failed (failures=|failed (errors=", conf: 0.92,
		detail: detail{how: before, re: `^(?:FAIL|ERROR): (.+)`, lines: 400},
		yes:    []string{"AssertionError: 1 != 2"},
		no:     []string{"FAIL: test_a (tests.test_a.T)"},
	},
	{
		name: "python.doctest", lits: []string{"failed example:"}, re: `^Failed example:`, conf: 0.9,
		join:   detail{how: next},
		detail: detail{how: below, re: `^Got:`, lines: 30},
		yes:    []string{"Failed example:"},
		no:     []string{"1 items had failures:"},
	},
	{
		name: "python.exception", lits: []string{"error", "exception", "interrupt", "exit", "warning", "timeout", "failure", "refused", "notfound", "exceeded", "unavailable", "denied", "doesnotexist", "stopiteration", "exceptiongroup"},
		re: `^[\s|+-]*(` + pyName + `|(?:Base)?ExceptionGroup)(?:: .*)?$`, not: `^(?:Error|Exception|Warning|ERROR|FATAL|Exit|Timeout|Failure|\s+.*Warning)(?::|$)|^\s+(?:raise|return|except|print)\b|^\S+ (?:Error|Exception):|` + pyWrapper, need: `file "`, conf: 0.82, pick: chain, under: `File "`,
		yes: []string{"KeyError: 'db.url'", "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>", "KeyboardInterrupt", "torch.OutOfMemoryError: CUDA out of memory."},
		no:  []string{"Traceback (most recent call last):", "Error: x", "    raise ValueError"},
	},
	{
		name: "python.raised", lits: []string{": "}, re: `^(?:[A-Za-z_]\w*\.)*[A-Z]\w*: \S`, not: `^(?:INFO|WARNING|ERROR|DEBUG|CRITICAL|NOTE|Hint|Note|Error|Warning|Command|Output)\b|` + pyWrapper, need: "traceback (most recent call last)", conf: 0.8, pick: chain, under: `File "`,
		yes: []string{"redis.exceptions.Busy: try later"},
		no:  []string{"INFO: started", "key: value"},
	},
	{
		name: "python.cannot_open", lits: []string{"can't open file", "no module named"}, re: `^\S*python[\d.]*(?:\.exe)?: (?:can't open file|No module named|Error while finding module)`, conf: 0.93,
		yes: []string{"python: can't open file '/x/nope.py': [Errno 2] No such file or directory", "/usr/bin/python3: No module named pip"},
		no:  []string{"ModuleNotFoundError: No module named 'x'"},
	},
	{
		name: "python.arguments", lits: []string{": error: "}, re: `^\S.*: error: (?:the following arguments|unrecognized arguments|argument |invalid choice|ambiguous option|one of the arguments|No such|Missing|Invalid)`, conf: 0.9,
		yes: []string{"arg.py: error: the following arguments are required: --n", "app: error: unrecognized arguments: --foo"},
		no:  []string{"a.c:3:4: error: x"},
	},
	{
		name: "python.format", lits: []string{"would reformat", "cannot format "}, re: `^(?:error: cannot format |[Ww]ould reformat:? )\S`, conf: 0.85,
		yes: []string{"would reformat /x/app/db.py", "Would reformat: a.py", "error: cannot format a.py: Cannot parse: 1:4: def f(:"},
		no:  []string{"1 file would be reformatted, 14 files would be left unchanged."},
	},
	{
		name: "python.ruff", lits: []string{"[*] ", "invalid-syntax:", "f40", "f50", "f54", "f63", "f70", "f81", "f82", "f84", "e40", "e50", "e70", "e71", "e72", "e74", "e90", "e99", "w29", "w60", "b00", "b90", "n80", "up0", "sim1", "plr", "plw", "ple", "c40", "c90", "ruf0", "s10", "d10", "ann"}, re: `^(?:[A-Z]{1,4}\d{3,4}(?: \[\*\])?|invalid-syntax:|SyntaxError:) \S`, need: " --> ", conf: 0.84,
		detail: detail{how: after, re: `^\s*--> (\S+?):`, lines: 1},
		yes:    []string{"F401 [*] `os` imported but unused", "E999 SyntaxError: x"},
		no:     []string{"Found 2 errors."},
	},
	{
		name: "python.lint", lits: []string{": error: ", ".py:"}, re: `^\S+\.pyi?:\d+(?::\d+)?: (?:error: |[A-Z]{1,4}\d{3,4}:? )`, conf: 0.9,
		yes: []string{"app/db.py:3: error: Incompatible return value type (got \"str\", expected \"int\")  [return-value]", "a.py:1:1: F401 'os' imported but unused", "a.py:1:80: E501 line too long"},
		no:  []string{"a.py:3: note: x", "tests/test_a.py:2: AssertionError"},
	},
}

var pipRules = []rule{
	{
		name: "pip.connection", lits: []string{"connection broken by", "max retries exceeded", "newconnectionerror", "readtimeouterror", "name or service not known"}, re: `connection broken by|Max retries exceeded|NewConnectionError|ReadTimeoutError|^ERROR: .*(?:Connection|Timeout|SSL|HTTPS?)`, need: "pip|retrying (retry(|no matching distribution|looking in indexes|collecting ", conf: 0.94,
		yes: []string{"WARNING: Retrying (Retry(total=1, connect=None)) after connection broken by 'NewConnectionError(...)': /simple/requests/"},
		no:  []string{"ERROR: No matching distribution found for requests==2.31.0"},
	},
	{
		name: "pip.no_version", lits: []string{"could not find a version"}, re: `^\s*(?:ERROR: )?Could not find a version that satisfies the requirement`, conf: 0.95,
		detail: detail{how: none},
		yes:    []string{"ERROR: Could not find a version that satisfies the requirement requests==99 (from versions: 1.0, 2.0)"},
		no:     []string{"ERROR: No matching distribution found for requests==99"},
		keep:   `(Could not find a version that satisfies the requirement \S+)`,
	},
	{
		name: "pip.conflict", lits: []string{"cannot install", "resolutionimpossible", "conflicting dependencies", "because these package versions have conf"}, re: `^\s*(?:ERROR: )?(?:Cannot install .*because|ResolutionImpossible)`, conf: 0.95,
		detail: detail{how: after, re: `^\s{4,}(\S+ \S+ depends on .+|The user requested .+)`, lines: 10},
		yes:    []string{"ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies."},
		no:     []string{"The conflict is caused by:"},
	},
	{
		name: "pip.build", lits: []string{"error: ", "error c"}, re: `^\s{4,}(?:` + pyName + `: \S|\S*: (?:fatal )?error(?: C\d+)?: |error: (?:Microsoft|can't|could not|linker|the following|in |invalid|cannot|unknown|no such|package|rust)|RuntimeError|\S+\(\d+\): (?:fatal )?error C\d+: )`, need: "subprocess-exited-with-error|failed building wheel|getting requirements to build|python setup.py", not: `subprocess-exited|error: command .* failed|Warning: `, conf: 0.93,
		detail: detail{how: within, re: `(?:Failed building wheel for (\S+)|Building wheel for (\S+) |× (.+) did not run successfully)`},
		yes:    []string{"      src/x.c:1:10: fatal error: Python.h: No such file or directory", "      ModuleNotFoundError: No module named 'numpy'", "      error: Microsoft Visual C++ 14.0 or greater is required."},
		no:     []string{"      error: command '/usr/bin/gcc' failed with exit code 1", "  error: subprocess-exited-with-error"},
	},
	{
		name: "pip.output", lits: []string{"lines of output]", "line of output]"}, re: `╰─> \[\d+ lines? of output\]`, conf: 0.87, then: true,
		detail: detail{how: within, re: `(?:Failed building wheel for (\S+)|Building wheel for (\S+) )`},
		yes:    []string{"  ╰─> [6 lines of output]"},
		no:     []string{"  [end of output]"},
	},
	{
		name: "pip.wheel", lits: []string{"failed building wheel", "failed to build", "could not build wheels", "subprocess-exited-with-error", "metadata-generation-failed"}, re: `^\s*(?:ERROR: )?(?:Failed building wheel for|Failed to build (?:\x60|installable|\S+$)|Could not build wheels|error: (?:subprocess-exited-with-error|metadata-generation-failed))`, conf: 0.88,
		detail: detail{how: within, re: `(?:Failed building wheel for (\S+)|Encountered error while .*|╰─> (\S.+))`},
		yes:    []string{"  ERROR: Failed building wheel for grpcio", "error: metadata-generation-failed"},
		no:     []string{"Building wheel for grpcio (setup.py): started"},
	},
	{
		name: "pip.error", lits: []string{"error: "}, re: `^(?:ERROR: )`, not: `No matching distribution|ERROR: Exception:|^ERROR: Process|Job failed|pip's dependency resolver|failed to solve`, need: "pip|.whl|requirement|collecting |no matching distribution|requires python", conf: 0.85,
		yes: []string{"ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'requirements.txt'", "ERROR: Package 'x' requires a different Python: 3.8.1 not in '>=3.9'", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."},
		no:  []string{"ERROR: No matching distribution found for requests==2.31.0"},
	},
	{
		name: "uv.solution", lits: []string{"no solution found", "because "}, re: `^\s*(?:× No solution found|╰─▶ Because |SolverProblemError|Because .+ depends on )`, conf: 0.93,
		detail: detail{how: after, re: `Because (.+)`, lines: 3},
		yes:    []string{"  × No solution found when resolving dependencies:"},
		no:     []string{"Resolved 3 packages"},
	},
}
