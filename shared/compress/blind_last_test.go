package compress_test

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/compress"
)

// blindLast were written last, to measure and not to mend.
func blindLast() (out []blind) {
	for _, l := range lastLogs {
		text := times(180, l.noise) + l.fails + times(l.after, func(i int) string { return l.noise(180 + i) }) + l.ending
		ratio := .5
		switch {
		case len(text) >= 50<<10:
			ratio = .15
		case len(text) > 8<<10:
			ratio = .35
		}
		out = append(out, blind{name: "last: " + l.tool, path: strings.ReplaceAll(l.tool, " ", "-") + ".log", text: text, keep: l.keep, ratio: ratio, kind: compress.Log})
		if l.tool == "etcd" { // its log is JSON
			out[len(out)-1].kind = compress.JSONL
		}
	}
	const j, jl = compress.JSON, compress.JSONL
	return append(out, []blind{
		{"last: deployments", "deploy.json", sp(`{"deployments":%s,"count":110}`, rowsOf(110, func(i int) string {
			return sp(`{"id":"dep-%03d","env":"prod","sha":"%07x","state":"%s","duration_s":%s}`, i, i*7919, at(i, 64, "rolled_back", "active"), at(i, 64, "1912", sp("%d", 60+i%11)))
		})), []string{"rolled_back", "1912", `"count":110`, "dep-064"}, .35, j},
		{"last: queue depths", "queues.json", rowsOf(140, func(i int) string {
			return sp(`{"queue":"q.%s.%d","depth":%s,"consumers":%s}`, name(i), i, at(i, 91, "1048576", sp("%d", i%7)), at(i, 91, "0", "3"))
		}), []string{"1048576", `"consumers":0`}, .35, j},
		{"last: graph", "graph.json", sp(`{"nodes":%s,"edges":%s}`, rowsOf(120, func(i int) string { return sp(`{"id":%d,"kind":"service"}`, i) }), rowsOf(300, func(i int) string {
			return sp(`{"from":%d,"to":%d,"kind":"%s"}`, i%120, (i*7)%120, at(i, 210, "cycle", "calls"))
		})), []string{"cycle", `"nodes"`, `"edges"`}, .35, j},
		{"last: results of a probe", "probe.json", sp(`{"results":{"eu":%s,"us":%s}}`, rowsOf(90, func(i int) string { return sp(`{"t":%d,"code":200,"ms":%d}`, i, 30+i%8) }), rowsOf(90, func(i int) string {
			return sp(`{"t":%d,"code":%s,"ms":%d}`, i, at(i, 40, "503", "200"), 80+i%8)
		})), []string{"503", `"eu"`, `"us"`}, .4, j},
		{"last: SSE chunks", "chunks.jsonl", times(220, func(i int) string {
			return sp(`{"id":"chat-1","object":"chunk","choices":[{"delta":{"content":"w%d"},"finish_reason":%s}]}`+"\n", i%9, at(i, 219, `"length"`, "null"))
		}), []string{`"finish_reason":"length"`}, .3, jl},
		{"last: audit lines", "audit.jsonl", times(180, func(i int) string {
			return sp(`{"ts":%d,"actor":"svc-%d","verb":"%s","target":"obj/%d","allowed":%s}`+"\n", 1772600000+i, i%5, at(i, 99, "purge", "read"), i, at(i, 99, "false", "true"))
		}), []string{"purge", `"allowed":false`}, .35, jl},
		{"last: strings of a stack", "err.json", sp(`{"error":"boom","stack":%s,"ok":false}`, rowsOf(70, func(i int) string { return sp(`"at f%d (/w/src/%s.js:%d:%d)"`, i, name(i), i, i%9) })), []string{`"error":"boom"`, "at f0 (", `"ok":false`}, 1, j},
		{"last: CRLF in rows", "crlf.json", strings.ReplaceAll("[\n"+strings.TrimSuffix(times(120, func(i int) string {
			return sp("  {\"id\": %d, \"state\": \"%s\"},\n", i, at(i, 71, "wedged", "idle"))
		}), ",\n")+"\n]\n", "\n", "\r\n"), []string{"wedged"}, .4, j},
	}...)
}

var lastLogs = []toolLog{
	{"circleci", func(i int) string { return sp("[%s] step %d of cache restore: %d MB\n", clock(i), i, i) }, "#!/bin/bash -eo pipefail\nyarn lint\n/home/circleci/repo/src/pay.tsx\n  12:3  error  React Hook \"useRate\" is called conditionally  react-hooks/rules-of-hooks\n\n✖ 1 problem (1 error, 0 warnings)\n\n\nExited with code exit status 1\n", []string{"React Hook \"useRate\" is called conditionally", "Exited with code exit status 1", "src/pay.tsx"}, 0, ""},
	{"buildkite", func(i int) string {
		return sp("~~~ Running step %d\n\x1b[90m$\x1b[0m echo %s\n%s\n", i, name(i), name(i))
	}, "+++ :bash: test\nbundler: failed to load command: rspec (/usr/local/bin/rspec)\n/app/lib/cart.rb:7:in `require': cannot load such file -- totl (LoadError)\n🚨 Error: The command exited with status 1\n", []string{"cannot load such file -- totl (LoadError)", "exited with status 1"}, 0, ""},
	{"swift test", func(i int) string { return sp("Test Case 'CartTests.testCase%d' passed (0.00%d seconds)\n", i, i%9) }, "/w/Tests/CartTests.swift:41: error: CartTests.testTotal : XCTAssertEqual failed: (\"10.0\") is not equal to (\"8.5\")\nTest Case 'CartTests.testTotal' failed (0.012 seconds)\n", []string{"XCTAssertEqual failed: (\"10.0\") is not equal to (\"8.5\")", "CartTests.swift:41"}, 20, "\t Executed 201 tests, with 1 failure (0 unexpected) in 1.2 (1.3) seconds\n"},
	{"stack haskell", func(i int) string { return sp("%s-%d> [ %d of 190] Compiling Data.%s%d\n", name(i), i, i, name(i), i) }, "/w/src/Cart.hs:41:20: error: [GHC-83865]\n    • Couldn't match expected type ‘Int’ with actual type ‘Double’\n    • In the expression: total * rate\n   |\n41 | net = total * rate\n   |       ^^^^^^^^^^^^\n", []string{"Cart.hs:41:20: error: [GHC-83865]", "Couldn't match expected type ‘Int’ with actual type ‘Double’"}, 0, "Error: [S-7282]\n       Stack failed to execute the build plan.\n"},
	{"elm", func(i int) string { return sp("Compiling (%d)\n", i) }, "-- TYPE MISMATCH ------------------------------------------------ src/Cart.elm\n\nThe 2nd argument to `total` is not what I expect:\n\n41|     total items \"3\"\n                    ^^^\nThis argument is a string of type:\n\n    String\n\nBut `total` needs the 2nd argument to be:\n\n    Float\n", []string{"TYPE MISMATCH", "src/Cart.elm", "The 2nd argument to `total` is not what I expect"}, 0, ""},
	{"clang-tidy", func(i int) string {
		return sp("[%d/190] clang-tidy -p build src/%s%d.cpp\n%d warnings generated.\n", i, name(i), i, i*31)
	}, "/w/src/cart.cpp:41:12: error: Access to field 'n' results in a dereference of a null pointer (loaded from variable 'c') [clang-analyzer-core.NullDereference,-warnings-as-errors]\n", []string{"dereference of a null pointer (loaded from variable 'c')"}, 10, ""},
	{"rubocop", func(i int) string { return sp("Scanning /w/app/%s_%d.rb\n", name(i), i) }, "Offenses:\n\napp/cart.rb:41:5: E: Lint/Syntax: unexpected token kEND\n    end\n    ^^^\n\n", []string{"app/cart.rb:41:5: E: Lint/Syntax: unexpected token kEND"}, 0, "191 files inspected, 1 offense detected\n"},
	{"ktlint", func(i int) string { return sp("%s DEBUG Checking with baseline file %d\n", clock(i), i) }, "/w/src/Cart.kt:41:1: Unexpected indentation (8) (should be 4) (standard:indent)\n", []string{"Cart.kt:41:1: Unexpected indentation (8)"}, 10, ""},
	{"terraform validate", func(i int) string {
		return sp("- Reusing previous version of hashicorp/%s%d from the dependency lock file\n", name(i), i)
	}, "╷\n│ Error: Unsupported argument\n│ \n│   on main.tf line 41, in resource \"aws_s3_bucket\" \"b\":\n│   41:   acll = \"private\"\n│ \n│ An argument named \"acll\" is not expected here. Did you mean \"acl\"?\n╵\n", []string{"Unsupported argument", "An argument named \"acll\" is not expected here", "main.tf line 41"}, 0, ""},
	{"serverless", func(i int) string { return sp("  %s-%d: dev-%s-%d (%d MB)\n", name(i), i, name(i), i, i) }, "✖ Stack shop-dev failed to deploy (31s)\n\nError:\nCREATE_FAILED: CartTable (AWS::DynamoDB::Table)\nResource handler returned message: \"Table already exists: cart\"\n", []string{"CREATE_FAILED: CartTable", "Table already exists: cart"}, 0, ""},
	{"flyway", func(i int) string { return sp("Successfully applied migration V%d__step_%s.sql\n", i, name(i)) }, "ERROR: Migration of schema \"public\" to version \"181 - totals\" failed! Changes successfully rolled back.\nMigration V181__totals.sql failed\n---------------------------------\nSQL State  : 42703\nError Code : 0\nMessage    : ERROR: column \"totl\" does not exist\nLine       : 3\nStatement  : UPDATE cart SET total = totl\n", []string{"column \"totl\" does not exist", "V181__totals.sql failed", "42703"}, 0, ""},
	{"alembic", func(i int) string {
		return sp("INFO  [alembic.runtime.migration] Running upgrade %07x -> %07x, step %d\n", i*31, (i+1)*31, i)
	}, "Traceback (most recent call last):\n" + times(14, func(i int) string {
		return sp("  File \"/usr/lib/python3/site-packages/sqlalchemy/x%d.py\", line %d, in f%d\n    return g(%d)\n", i, 100+i, i, i)
	}) + "sqlalchemy.exc.ProgrammingError: (psycopg.errors.DuplicateColumn) column \"total\" of relation \"cart\" already exists\n[SQL: ALTER TABLE cart ADD COLUMN total NUMERIC]\n(Background on this error at: https://sqlalche.me/e/20/f405)\n", []string{"column \"total\" of relation \"cart\" already exists", "ALTER TABLE cart ADD COLUMN total NUMERIC"}, 0, ""},
	{"k6", func(i int) string {
		return sp("running (0m%02d.%ds), %d/50 VUs, %d complete and 0 interrupted iterations\n", i/3, i%10, i%50, i*7)
	}, "time=\"2026-03-04T09:00:00Z\" level=error msg=\"thresholds on metrics 'http_req_duration' have been crossed\"\n", []string{"thresholds on metrics 'http_req_duration' have been crossed"}, 0, "     http_req_duration..............: avg=812ms p(95)=2.1s\n"},
	{"systemd units", func(i int) string {
		return sp("Mar  4 %s host1 systemd[1]: Started Session %d of User deploy.\n", clock(i), i)
	}, "Mar  4 08:03:00 host1 shopd[991]: bind: address already in use\nMar  4 08:03:00 host1 systemd[1]: shopd.service: Failed with result 'exit-code'.\n", []string{"bind: address already in use", "shopd.service: Failed with result 'exit-code'"}, 150, ""},
	{"etcd", func(i int) string {
		return sp(`{"level":"info","ts":"2026-03-04T%sZ","caller":"mvcc/hash.go:151","msg":"storing new hash","revision":%d}`+"\n", clock(i), i)
	}, "", []string{"storing new hash"}, 0, ""},
	{"vault", func(i int) string {
		return sp("2026-03-04T%s.000Z [INFO]  expiration: revoked lease: lease_id=auth/token/%d\n", clock(i), i)
	}, "2026-03-04T08:03:00.000Z [WARN]  core: pre-seal teardown\n2026-03-04T08:03:00.100Z [ERROR] core: barrier init check failed: error=\"dial tcp 10.0.0.9:8500: i/o timeout\"\n", []string{"barrier init check failed", "10.0.0.9:8500: i/o timeout"}, 150, ""},
	{"cron mail", func(i int) string { return sp("rotated /var/log/shop/%s.%d.gz\n", name(i), i) }, "gzip: /var/log/shop/cart.log: file size changed while zipping\n", []string{"file size changed while zipping"}, 120, ""},
	{"unity", func(i int) string {
		return sp("Refreshing native plugins compatible for Editor in %d.%d ms, found %d plugins.\n", i%9, i, i%5)
	}, "Assets/Scripts/Cart.cs(41,20): error CS1002: ; expected\n", []string{"Cart.cs(41,20): error CS1002: ; expected"}, 40, "Scripts have compiler errors.\nExiting without the bug reporter. Application will terminate with return code 1\n"},
	{"conda", func(i int) string {
		return sp("%s-%d              | %d KB    | ########## | 100%% \n", name(i), i, i*3)
	}, "LibMambaUnsatisfiableError: Encountered problems while solving:\n  - package scipy-1.11 requires python >=3.9,<3.13, but none of the providers can be installed\n", []string{"LibMambaUnsatisfiableError", "scipy-1.11 requires python >=3.9,<3.13"}, 0, ""},
	{"dart", func(i int) string { return sp("[INFO] Generating build script %d, took %dms\n", i, i) }, "lib/cart.dart:41:20: Error: A value of type 'double' can't be assigned to a variable of type 'int'.\n  int t = sum;\n          ^\n", []string{"A value of type 'double' can't be assigned to a variable of type 'int'"}, 10, "Failed to compile\n"},
	{"perl", func(i int) string { return sp("t/%s_%d.t .. ok\n", name(i), i) }, "\n#   Failed test 'total'\n#   at t/cart.t line 41.\n#          got: '10'\n#     expected: '8.5'\n# Looks like you failed 1 test of 3.\nt/cart.t .. Dubious, test returned 1 (wstat 256, 0x100)\nFailed 1/3 subtests \n", []string{"Failed test 'total'", "got: '10'", "expected: '8.5'", "t/cart.t line 41"}, 0, "\nTest Summary Report\n-------------------\nt/cart.t (Wstat: 256 Tests: 3 Failed: 1)\n  Failed test:  2\nResult: FAIL\n"},
	{"openocd", func(i int) string { return sp("Info : [stm32.cpu] step %d, pc 0x0800%04x\n", i, i*4) }, "Error: [stm32.cpu] Cortex-M PART # is wrong, timed out while waiting for target halted\n", []string{"timed out while waiting for target halted"}, 60, ""},
	{"vitest in a monorepo", func(i int) string {
		return sp("@shop/%s%d:test:  ✓ src/%d.test.ts (%d tests) %dms\n", name(i), i, i, i%9+1, i%40)
	}, "@shop/cart:test:  FAIL  src/cart.test.ts > keeps the discount\n@shop/cart:test: AssertionError: expected 10 to be 8.5 // Object.is equality\n@shop/cart:test:  ❯ src/cart.test.ts:40:19\n", []string{"keeps the discount", "expected 10 to be 8.5", "src/cart.test.ts:40:19"}, 40, " Failed:    @shop/cart#test\n"},
	{"all is well, with words of failure", func(i int) string { return sp("test_error_handling_%d ... ok\ntest_failed_login_%d ... ok\n", i, i) }, "", []string{"Ran 360 tests in 1.2s", "OK"}, 0, "\nRan 360 tests in 1.2s\n\nOK\n"},
}
