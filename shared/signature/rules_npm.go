package signature

// npm prints `npm ERR!` up to version 9 and `npm error` from 10 on. Its code is
// the class; the package, path or lock entry on another line is the instance.
const npmP = `^(?:\S+ )?npm (?:error|ERR!) `

var npmRules = []rule{
	{
		name: "npm.eresolve", lits: []string{"code eresolve"}, re: npmP + `code ERESOLVE\b`, conf: 0.97,
		join:   detail{how: after, re: `npm (?:error|ERR!) ERESOLVE (.+)`, lines: 6},
		detail: detail{how: below, re: `(?:Could not resolve dependency|[Cc]onflicting peer dependency):?`, lines: 60},
		yes:    []string{"npm error code ERESOLVE", "npm ERR! code ERESOLVE"},
		no:     []string{"npm warn ERESOLVE overriding peer dependency", "npm error code E404"},
	},
	{
		name: "npm.code", lits: []string{"npm error code ", "npm err! code "}, re: npmP + `code (\S+)`, not: `code (?:ELIFECYCLE|\d+)$`, conf: 0.95,
		detail: detail{how: within, re: npmP + `(?:(404 +Not Found - .+)|(Invalid: lock file.+)|(Missing: .+ from lock file)|(path .+)|(?:FetchError: |network )(request .+)|notarget (No matching .+)|(?:JSON\.parse|Failed to parse) (.+)|engine (.+)|(Unsupported .+|The \x60npm ci\x60 command can only .+|request to .+ failed.*|canceled due to .+|Refusing to .+|Invalid (?:package|tag|version|name).+|You must .+|Incorrect or missing .+|Unable to authenticate.*|(?:sha512|sha1)-\S+ integrity.+))`, orNext: true},
		yes:    []string{"npm error code E404", "npm ERR! code ECONNREFUSED"},
		no:     []string{"npm ERR! code ELIFECYCLE", "npm error code 1", "npm warn code E404", "npm error errno -2"},
	},
	{
		name: "npm.missing_script", lits: []string{"missing script"}, re: `(?i)(?:^|npm (?:error|err!) )missing script:? `, conf: 0.97,
		yes: []string{`npm error Missing script: "deploy"`, "npm ERR! missing script: build"},
		no:  []string{"To see a list of missing scripts, run:"},
	},
	{
		name: "npm.unknown_command", lits: []string{"unknown command: "}, re: `^(?:npm (?:error|ERR!) )?Unknown command: `, need: "npm", conf: 0.93,
		yes: []string{`Unknown command: "frobnicate"`},
		no:  []string{"To see a list of supported npm commands, run:"},
	},
	{
		name: "npm.cannot_run", lits: []string{"npm error could not", "npm err! could not", "npm error unknown", "npm err! unknown", "npm error workspaces", "npm error no workspaces", "npm error cb()", "npm err! cb()", "npm err! no workspaces", "npm error invalid", "npm err! invalid", "npm error exit handler", "npm err! exit handler"},
		re: npmP + `(?:could not|Unknown|No workspaces|cb\(\) never called|Invalid|Workspaces|Exit handler)`, not: `Invalid: lock file`, conf: 0.9,
		yes: []string{`npm error could not determine executable to run`, `npm ERR! cb() never called!`, "npm error Exit handler never called!"},
		no:  []string{"npm error A complete log of this run can be found in: /x"},
	},
}

var yarnRules = []rule{
	{
		name: "yarn.berry_code", lits: []string{"yn0", "yn1"}, re: `^\s*(?:➤ )?YN(?:0[0-9]{3}|1[0-9]{3})?(YN\d{4}|\d{4})?: `, not: `YN00(?:00|13|60|50|07|19|86|87|02|05|76|85|68|09)|Failed with errors|^\s*(?:➤ )?YN\d{4}: (?:│ |· |┌ |└ )*(?:Response Code|Request Method|Request URL)`, conf: 0.95,
		detail: detail{how: after, re: `YN\d{4}: (?:[│·] *)+((?:Response Code|Request URL).+|[-+] .+)`, lines: 12},
		yes:    []string{"➤ YN0035: │ left-pad@npm:1.3.0: Package not found", "➤ YN0001: │ RequestError: connect ECONNREFUSED 127.0.0.1:1", "➤ YN0028: │ The lockfile would have been modified by this install, which is explicitly forbidden."},
		no:     []string{"➤ YN0000: · Failed with errors in 0s 107ms", "➤ YN0013: │ 2 packages were added", "➤ YN0060: │ react is listed by your project with version 17"},
	},
	{
		name: "yarn.error", lits: []string{"error "}, re: `^error \S`, not: `Command failed with exit code|^error Command "?.*"? exited|Found incompatible module|^error (?:TS\d|in |CS\d)`, conf: 0.93, need: "yarn",
		detail: detail{how: after, re: `^(?:info|Error:) .*(?:https?://\S+|ENOENT|EACCES).*`, lines: 3},
		yes:    []string{"error Error: http://127.0.0.1:22039/left-pad: Not found", `error Couldn't find package "left-padx" on the "npm" registry.`, "error Your lockfile needs to be updated, but yarn was run with `--frozen-lockfile`.", `error An unexpected error occurred: "https://x/y: connect ECONNREFUSED"`},
		no:     []string{"error Command failed with exit code 1.", "error: unknown option"},
	},
	{
		name: "yarn.berry_build", lits: []string{"yn0009"}, re: `YN0009: `, conf: 0.8,
		yes: []string{"➤ YN0009: │ sqlite3@npm:5.1.7 couldn't be built successfully (exit code 1, logs can be found here: /tmp/xfs-1a2b3c4d/build.log)"},
		no:  []string{"➤ YN0007: │ sqlite3@npm:5.1.7 must be built"},
	},
	{
		name: "yarn.usage", lits: []string{"usage error:", "internal error:"}, re: `^(?:Usage|Internal) Error: `, conf: 0.93, need: "yarn",
		yes: []string{`Usage Error: Couldn't find a script named "deploy".`, "Internal Error: api@workspace:.: This package doesn't seem to be present in your lockfile; run \"yarn install\" to update the lockfile"},
		no:  []string{"Error: usage"},
	},
}

var pnpmRules = []rule{
	{
		name: "pnpm.code", lits: []string{"err_pnpm_"}, re: `(?:^|[\s\x{2009}])\[?(ERR_PNPM_[A-Z0-9_]+)`, not: `ERR_PNPM_RECURSIVE_(?:RUN_FIRST_FAIL|EXEC_FIRST_FAIL|FAIL)|ERR_PNPM_META_FETCH_FAIL.*will retry|WARN`, conf: 0.96,
		detail: detail{how: after, re: `^\s*(?:- |\* |specifiers in the lockfile|This error happened while|The latest release|✕ |├─|└─|Failure reason:).*(?:[:{@"'].*)`, lines: 8},
		yes:    []string{"\u2009ERR_PNPM_FETCH_404\u2009 GET http://127.0.0.1:22039/left-pad: Not Found - 404", " ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with \"frozen-lockfile\" because pnpm-lock.yaml is not up to date", " ERR_PNPM_NO_SCRIPT  Missing script: deploy", "[ERR_PNPM_FETCH_404] GET http://x/y: Not Found - 404"},
		no:     []string{"\u2009ERR_PNPM_RECURSIVE_RUN_FIRST_FAIL\u2009 api@1.0.0 build: `tsc`", " ELIFECYCLE  Command failed with exit code 1."},
	},
	{
		name: "pnpm.exec", lits: []string{"err_pnpm_recursive_exec_first_fail"}, re: `ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL\S*\s+Command "\S+" not found`, conf: 0.93,
		yes: []string{"\u2009ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL\u2009 Command \"nosuchbin\" not found"},
		no:  []string{"\u2009ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL\u2009 Command failed with exit code 1: x"},
	},
	{
		name: "pnpm.error", lits: []string{"err_", "error"}, re: `^\s*(?:ERROR\s{2}|ERR_(?:INVALID|UNKNOWN|SOCKET|MODULE|DLOPEN)\S*\s)`, conf: 0.85, need: "pnpm",
		yes: []string{" ERROR  Unknown option: 'recursve'", " ERR_INVALID_THIS  Value of \"this\" must be of type URLSearchParams"},
		no:  []string{"ERROR: x"},
	},
}

const jsException = `^(?:Uncaught |Unhandled |\(node:\d+\) )?(?:\S+ )?\[?((?:[A-Z][A-Za-z0-9]*)?(?:Error|Exception|Warning))(?: \[[A-Z_0-9]+\])?(?: \([^)]*\))?: `

var nodeRules = []rule{
	{
		name: "node.oom", lits: []string{"javascript heap out of memory"}, re: `heap out of memory`, conf: 0.95,
		yes: []string{"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory"},
		no:  []string{"out of memory"},
	},
	{
		name: "node.esm", lits: []string{"require() of es module", "cannot use import statement", "cannot find package", "cannot find module"}, re: `^(?:\w+ )?(?:Error|SyntaxError|TypeError)(?: \[\w+\])?: (?:require\(\) of ES Module|Cannot use import statement|Cannot find (?:package|module) )`, conf: 0.9,
		detail: detail{how: after, re: `^- (.+)$`, lines: 3},
		yes:    []string{"Error: Cannot find module './config'", "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'x' imported from /a/b.js", "SyntaxError: Cannot use import statement outside a module"},
		no:     []string{"    Cannot find module '../calculator' from 'test/calc.test.js'"},
	},
	{
		name: "node.bundler", lits: []string{"module not found: ", "could not resolve \"", "failed to resolve import", "failed to resolve entry", "type error: ", "no matching export"}, re: `^(?:Module not found: |(?:✘ |x |\[vite\]:? |error: |\[ERROR\] )*(?:\[ERROR\] )?(?:Could not resolve "|No matching export)|.*(?:Rollup f|F|f)ailed to resolve (?:import|entry)|Type error: )`, not: `^\s*(?:warning|▲)`, conf: 0.88,
		yes: []string{"Module not found: Error: Can't resolve './missing' in '/x/shop/src'", `✘ [ERROR] Could not resolve "./missing"`, `[vite]: Rollup failed to resolve import "lodash-ess" from "/x/src/cart.ts".`, "Type error: Property 'titel' does not exist on type 'Props'."},
		no:  []string{"ERROR in ./src/index.js 1:0-25"},
	},
	{
		name: "node.exception", lits: []string{"error: ", "exception: ", "error ["}, re: jsException, not: `^\(node:\d+\) \[?\w*Warning|^Error: Process completed|\(reading 'jobPod'\)`, conf: 0.75,
		detail: detail{how: after, re: `^\s+at ((?:async |new )?[\w.<>$\[\] ]+) \((?:node:)?[^)]*\)`, lines: 4},
		yes:    []string{"TypeError: Cannot read properties of undefined (reading 'id')", "Uncaught ReferenceError: x is not defined", "Error [ERR_SOCKET]: closed", "AggregateError [ECONNREFUSED]: x"},
		no:     []string{"(node:12) [DEP0169] DeprecationWarning: `url.parse()`", "error: unknown option", "  Error: indented"},
	},
	{
		name: "node.rejection", lits: []string{"unhandledpromiserejection", "] {"}, re: `^\[(?:UnhandledPromiseRejection|(?:[A-Z]\w*)?Error(?: \[\w+\])?): `, conf: 0.74,
		yes: []string{`[UnhandledPromiseRejection: This error originated either by throwing inside of an async function] {`, "[Error: ENOENT: no such file] {"},
		no:  []string{"[UnhandledPromise]"},
	},
	{
		name: "node.listen", lits: []string{"eaddrinuse", "eacces", "enoent:", "econnrefused"}, re: `\bE(?:ADDRINUSE|ACCES|NOENT|CONNREFUSED)\b`, not: `^npm |^\s*(?:code|errno|syscall):`, conf: 0.6,
		yes: []string{"listen EADDRINUSE: address already in use :::3000"},
		no:  []string{"  code: 'EADDRINUSE',"},
	},
}

var tscRules = []rule{
	{
		name: "tsc.code", lits: []string{"error ts"}, re: `(?:^|[\s:-])error (TS\d+): `, not: `^ERROR in `, conf: 0.96,
		yes: []string{"src/app.ts(1,23): error TS2307: Cannot find module './parser'", "src/app.ts:1:23 - error TS2307: Cannot find module './parser'", "error TS5023: Unknown compiler option 'x'.", "packages/api build: src/a.ts(1,2): error TS1005: ';' expected."},
		no:  []string{"Found 3 errors in 2 files."},
	},
	{
		name: "tsc.code_ts", lits: []string{"ts"}, re: `^(?:\s*)?(?:TS\d{4,5}: |ERROR in .*\bTS\d{4,5}\b|.*\bTS\d{4,5}: )`, conf: 0.85,
		yes: []string{"TS2307: Cannot find module './parser'", "TS2322: Type 'string' is not assignable to type 'number'."},
		no:  []string{"tests passed"},
	},
}

var eslintRules = []rule{
	{
		name: "eslint.row", lits: []string{"error"}, re: `^\s*\d+:\d+\s+error\s+\S`, conf: 0.95,
		detail: detail{how: before, re: `^(?:\s*)((?:/|[A-Za-z]:\\|[\w.@-]+/)?\S*\.\w+)$`, lines: 400},
		yes:    []string{"  3:1  error  Parsing error: Unexpected token", "  12:7   error    'x' is assigned a value but never used  no-unused-vars"},
		no:     []string{"  3:1  warning  Unexpected console statement  no-console", "✖ 1 problem (1 error, 0 warnings)"},
	},
	{
		name: "eslint.unix", lits: []string{"[error", "error - ", "error,"}, re: `^(?:\S+:\d+:\d+: .+ \[Error(?:/[\w/@-]+)?\]|\S+: line \d+, col \d+, Error - .+)$`, conf: 0.95,
		yes: []string{"/x/a.js:3:1: Parsing error: Unexpected token [Error]", "/x/a.js: line 3, col 1, Error - 'x' is not defined. (no-undef)"},
		no:  []string{"/x/a.js:3:1: y [Warning/no-console]"},
	},
	{
		name: "eslint.config", lits: []string{"oops! something went wrong", "eslint couldn't", "eslint config", "no files matching", "all files matched by", "failed to load plugin", "failed to load config", "definition for rule"}, re: `ESLint couldn't|No files matching|All files matched by|Failed to load (?:plugin|config)|Cannot find (?:ESLint|config)|^\s*Definition for rule|Error: Cannot read config`, conf: 0.9,
		detail: detail{how: after, re: `(.*(?:eslint\.config|ESLint couldn't find|Referenced from).*)`, lines: 6},
		yes:    []string{"ESLint couldn't find a configuration file. To set up a configuration file for this project, please run:", "No files matching the pattern 'src' were found.", "ESLint couldn't find the plugin \"eslint-plugin-react\"."},
		no:     []string{"Oops! Something went wrong! :("},
	},
	{
		name: "eslint.exception", lits: []string{"error: "}, re: `^(?:[A-Z]\w*)?Error: `, need: "oops! something went wrong", conf: 0.88,
		yes: []string{`TypeError: Key "rules": Key "no-foo": Could not find "no-foo" in plugin "@".`},
		no:  []string{"Oops! Something went wrong! :("},
	},
	{
		name: "eslint.crash", lits: []string{"oops! something went wrong"}, re: `Oops! Something went wrong`, conf: 0.6,
		detail: detail{how: after, re: `^((?:[A-Z]\w*)?Error: .+)`, lines: 8},
		yes:    []string{"Oops! Something went wrong! :("},
		no:     []string{"went wrong"},
	},
}

var jestRules = []rule{
	{
		name: "jest.suite", lits: []string{"cannot find module", "test suite failed to run"}, re: `^\s{2,}(?:Cannot find module '.+' from '.+'|Could not locate module )`, need: "test suite failed to run", conf: 0.96,
		yes: []string{"    Cannot find module '../calculator' from 'test/calc.test.js'"},
		no:  []string{"  ● Test suite failed to run"},
	},
	{
		name: "jest.syntax", lits: []string{"syntaxerror: "}, re: `^\s{4,}SyntaxError: `, need: "test suite failed to run", conf: 0.945,
		yes: []string{"    SyntaxError: /x/a.js: Unexpected token (1:2)", "    SyntaxError: Cannot use import statement outside a module"},
		no:  []string{"    Jest encountered an unexpected token"},
	},
	{
		name: "jest.suite_error", lits: []string{"error: ", "your test suite must", "jest encountered", "details:", "error ts", "unexpected token", " ts"}, re: `^\s{4,}(?:(?:[A-Z]\w*)?Error: |Your test suite must contain at least one test|Jest encountered an unexpected token|\S+\.tsx?:\d+:\d+ - error TS)`, need: "test suite failed to run", conf: 0.94,
		detail: detail{how: after, re: `^\s*(?:SyntaxError: |Details:)(.+)`, lines: 40},
		yes:    []string{"    SyntaxError: /x/a.js: Unexpected token (1:2)", "    Your test suite must contain at least one test.", "    Jest encountered an unexpected token", "    src/a.ts:1:23 - error TS2307: Cannot find module './b'"},
		no:     []string{"Test Suites: 1 failed, 1 total"},
	},
	{
		name: "jest.suite_said", lits: []string{"test suite failed to run"}, re: `● Test suite failed to run`, conf: 0.935, then: true,
		yes: []string{"  ● Test suite failed to run"},
		no:  []string{"Test Suites: 1 failed, 1 total"},
	},
	{
		name: "jest.test", lits: []string{"●"}, re: `^\s*● (.+)`, not: `● (?:Test suite failed to run|Console|Cannot log after|process\.exit called|Deprecation Warning|Validation Warning|Multiple configs)|^\s*●\s*$|obsolete`, conf: 0.95,
		detail: detail{how: after, re: `^\s*(Expected.*|Received.*|thrown: .+|(?:[A-Z]\w*)?Error: .+|Snapshot name: .+|Error: .+)`, lines: 10},
		yes:    []string{"  ● slow", "  ● calc › adds numbers"},
		no:     []string{"  ● Test suite failed to run", "  ● Console", "  ✕ slow (202 ms)"},
	},
	{
		name: "jest.threshold", lits: []string{"coverage threshold", "no tests found"}, re: `^(?:Jest: "?.+"? coverage threshold|No tests found)`, conf: 0.9,
		yes: []string{`Jest: "global" coverage threshold for branches (80%) not met: 71.2%`, "No tests found, exiting with code 1"},
		no:  []string{"Ran all test suites."},
	},
	{
		name: "jest.config", lits: []string{"validation error", "● validation"}, re: `^● Validation Error:`, conf: 0.9,
		detail: detail{how: next},
		yes:    []string{"● Validation Error:"},
		no:     []string{"Validation failed"},
	},
}

var vitestRules = []rule{
	{
		name: "vitest.assertion", lits: []string{"error: "}, re: `^\s*((?:[A-Z]\w*)?Error): `, need: "vitest|failed tests|failed suites|test files  ", conf: 0.93,
		detail: detail{how: before, re: `FAIL\s+(.+)`, lines: 6},
		yes:    []string{"AssertionError: expected 3 to be 5 // Object.is equality", "Error: Failed to resolve import \"./x\" from \"test/a.test.js\". Does the file exist?", "TypeError: x is not a function"},
		no:     []string{" FAIL  test/calc.test.js > adds", " ❯ test/calc.test.js:4:20"},
	},
	{
		name: "vitest.fail", lits: []string{"fail "}, re: `^\s*FAIL\s+\S+\.(?:test|spec)\.\w+(?: > | \[)`, conf: 0.9,
		detail: detail{how: after, re: `^\s*((?:[A-Z]\w*)?Error: .+)`, lines: 4},
		yes:    []string{" FAIL  test/calc.test.js > adds"},
		no:     []string{"FAIL test/calc.test.js"},
	},
}

var mochaRules = []rule{
	{
		name: "mocha.assertion", lits: []string{"error", "error ["}, re: `^\s{2,}(?:Uncaught )?((?:[A-Z]\w*)?(?:AssertionError|Error))(?: \[\w+\])?: `, need: " failing", conf: 0.93,
		detail: detail{how: before, re: `^\s{2,}\d+\) (.+)`, lines: 6},
		yes:    []string{"      AssertionError [ERR_ASSERTION]: 3 == 5", "     AssertionError: expected 3 to equal 5", "     Error: Timeout of 2000ms exceeded.", "     TypeError: x is not a function"},
		no:     []string{"  1 failing", "  1) calc"},
	},
	{
		name: "mocha.test", lits: []string{") "}, re: `^\s{2,}\d+\) \S`, need: " failing", conf: 0.85,
		detail: detail{how: after, re: `^\s{4,}(\S.*Error.*)`, lines: 6},
		yes:    []string{"  1) calc"},
		no:     []string{"  1 failing"},
	},
	{
		name: "tap.not_ok", lits: []string{"not ok "}, re: `^\s*not ok \d+`, not: `# (?:TODO|SKIP)`, conf: 0.9,
		detail: detail{how: after, re: `^\s+(?:error|message|failureType): (.+)`, lines: 12},
		yes:    []string{"not ok 3 - adds numbers"},
		no:     []string{"ok 1 - a", "not ok 2 - b # TODO later"},
	},
}
