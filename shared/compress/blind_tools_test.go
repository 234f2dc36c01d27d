package compress_test

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/compress"
)

// toolLog is a failure as a tool prints it, among what it prints else.
type toolLog struct {
	tool   string
	noise  func(i int) string
	fails  string
	keep   []string
	after  int // lines of noise behind the failure
	ending string
}

// blindTools are logs of one failure each, in the middle of 150 lines and more.
func blindTools() (out []blind) {
	for _, l := range toolLogs {
		text := times(150, l.noise) + l.fails + times(l.after, func(i int) string { return l.noise(150 + i) }) + l.ending
		ratio := .5
		switch {
		case len(text) >= 50<<10:
			ratio = .15
		case len(text) > 8<<10:
			ratio = .35
		}
		out = append(out, blind{name: "tool: " + l.tool, path: strings.Fields(l.tool)[0] + ".log", text: text, keep: l.keep, ratio: ratio, kind: compress.Log})
		if l.tool == "mongod" { // its log is JSON
			out[len(out)-1].kind = compress.JSONL
		}
	}
	return out
}

var toolLogs = []toolLog{
	{"sbt", func(i int) string {
		return sp("[info] compiling %d Scala sources to /w/%s/target/scala-3/classes ...\n", i, name(i))
	}, "[error] -- [E007] Type Mismatch Error: /w/core/src/main/scala/Cart.scala:41:20 \n[error] 41 |  val total: Int = sum.toString\n[error]    |                   ^^^^^^^^^^^^\n[error]    |                   Found:    String\n[error]    |                   Required: Int\n", []string{"Cart.scala:41:20", "Found:    String", "Required: Int"}, 30, "[error] one error found\n[error] (core / Compile / compileIncremental) Compilation failed\n[error] Total time: 31 s\n"},
	{"golangci-lint", func(i int) string {
		return sp("level=info msg=\"[runner] linter %s took %dms\"\n", name(i), i)
	}, "internal/pay/round.go:57:2: ineffectual assignment to err (ineffassign)\n\terr = f()\n\t^\n", []string{"internal/pay/round.go:57:2: ineffectual assignment to err"}, 0, "1 issues:\n* ineffassign: 1\n"},
	{"mypy", func(i int) string { return sp("LOG:  Parsing shop/%s_%d.py (shop.%s_%d)\n", name(i), i, name(i), i) }, "shop/cart.py:88: error: Incompatible return value type (got \"float\", expected \"int\")  [return-value]\n", []string{"shop/cart.py:88: error: Incompatible return value type"}, 20, "Found 1 error in 1 file (checked 170 source files)\n"},
	{"webpack", func(i int) string { return sp("  ./src/%s/%d.js %d.1 KiB [built] [code generated]\n", name(i), i, i%9) }, "\nERROR in ./src/cart/index.js 3:0-31\nModule not found: Error: Can't resolve './totl' in '/w/src/cart'\nresolve './totl' in '/w/src/cart'\n  using description file: /w/package.json (relative path: ./src/cart)\n", []string{"Module not found: Error: Can't resolve './totl'", "ERROR in ./src/cart/index.js"}, 20, "\nwebpack 5.90.0 compiled with 1 error in 4102 ms\n"},
	{"esbuild", func(i int) string { return sp("  dist/%s-%d.js  %d.1kb\n", name(i), i, i%90) }, "✘ [ERROR] Could not resolve \"./totl\"\n\n    src/cart.ts:2:20:\n      2 │ import { total } from \"./totl\"\n        ╵                       ~~~~~~~~\n\n", []string{"Could not resolve \"./totl\"", "src/cart.ts:2:20"}, 0, "1 error\n"},
	{"apt-get", func(i int) string {
		return sp("Get:%d http://deb.example/debian bookworm/main amd64 lib%s%d amd64 1.%d-1 [%d kB]\n", i+1, name(i), i, i, i*3)
	}, "E: Unable to locate package libfooo-dev\n", []string{"E: Unable to locate package libfooo-dev"}, 0, ""},
	{"yarn berry", func(i int) string {
		return sp("➤ YN0013: │ %s-%d@npm:1.%d.0 can't be found in the cache and will be fetched\n", name(i), i, i)
	}, "➤ YN0001: │ RequestError: getaddrinfo ENOTFOUND npm.internal\n", []string{"RequestError: getaddrinfo ENOTFOUND npm.internal"}, 30, "➤ YN0000: Failed with errors in 31s 20ms\n"},
	{"pnpm", func(i int) string {
		return sp("Progress: resolved %d, reused %d, downloaded 0, added %d\n", i*4, i*4, i)
	}, " ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with \"frozen-lockfile\" because pnpm-lock.yaml is not up to date with package.json\n", []string{"ERR_PNPM_OUTDATED_LOCKFILE", "pnpm-lock.yaml is not up to date"}, 0, "\nNote that in CI environments this setting is true by default.\n"},
	{"bundler", func(i int) string {
		return sp("Using %s%d 1.%d.0\nFetching %s%d 2.%d.0\n", name(i), i, i, name(i+1), i, i)
	}, "Could not find compatible versions\n\nBecause rails >= 7.2 depends on rack >= 3.0\n  and Gemfile depends on rack ~> 2.2,\n  version solving has failed.\n", []string{"depends on rack >= 3.0", "version solving has failed"}, 0, ""},
	{"nix", func(i int) string {
		return sp("copying path '/nix/store/%032x-%s-1.%d' from 'https://cache.example'...\n", i*7919, name(i), i)
	}, "error: builder for '/nix/store/9s8d-shop-0.1.drv' failed with exit code 2;\n       last 3 log lines:\n       > src/cart.c:12:5: error: implicit declaration of function 'totl'\n       > make: *** [Makefile:4: cart.o] Error 1\n       For full logs, run 'nix log /nix/store/9s8d-shop-0.1.drv'.\n", []string{"implicit declaration of function 'totl'", "failed with exit code 2"}, 0, ""},
	{"mocha", func(i int) string { return sp("    ✔ handles case %d (%dms)\n", i, i%40) }, "    1) keeps the discount\n", []string{"keeps the discount", "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:", "10 !== 8.5", "cart.test.js:40:12"}, 60, "\n\n  210 passing (3s)\n  1 failing\n\n  1) cart\n       keeps the discount:\n\n      AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n\n10 !== 8.5\n\n      + expected - actual\n\n      -10\n      +8.5\n      \n      at Context.<anonymous> (test/cart.test.js:40:12)\n\n"},
	{"node:test", func(i int) string { return sp("✔ handles case %d (%d.%dms)\n", i, i%9, i) }, "✖ keeps the discount (4.1ms)\n", []string{"keeps the discount", "10 !== 8.5", "ℹ fail 1"}, 40, "ℹ tests 191\nℹ suites 0\nℹ pass 190\nℹ fail 1\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 912.1\n\n✖ failing tests:\n\ntest at test/cart.test.js:38:1\n✖ keeps the discount (4.1ms)\n  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n  \n  10 !== 8.5\n  \n      at TestContext.<anonymous> (file:///w/test/cart.test.js:40:10)\n"},
	{"cypress", func(i int) string { return sp("      ✓ shows page %d (%dms)\n", i, 200+i) }, "      1) pays\n", []string{"Timed out retrying after 4000ms: Expected to find element: `[data-cy=pay]`, but never found it."}, 10, "\n  160 passing (2m)\n  1 failing\n\n  1) shop\n       pays:\n     AssertionError: Timed out retrying after 4000ms: Expected to find element: `[data-cy=pay]`, but never found it.\n      at Context.eval (webpack://shop/./cypress/e2e/pay.cy.js:12:7)\n"},
	{"mix test", func(i int) string { return sp("  * test handles %s %d (%d.1ms) [L#%d]\n", name(i), i, i%9, i) }, "\n  1) test keeps the discount (Shop.CartTest)\n     test/cart_test.exs:17\n     Assertion with == failed\n     code:  assert Cart.total(c) == 8.5\n     left:  10\n     right: 8.5\n     stacktrace:\n       test/cart_test.exs:19: (test)\n\n", []string{"Assertion with == failed", "assert Cart.total(c) == 8.5", "left:  10"}, 30, "\nFinished in 0.3 seconds\n180 tests, 1 failure\n"},
	{"flutter", func(i int) string { return sp("00:%02d +%d: handles case %d\n", i/10, i, i) }, "00:15 +150 -1: keeps the discount [E]\n  Expected: <8.5>\n    Actual: <10>\n  package:test_api                                   expect\n  test/cart_test.dart 40:5                           main.<fn>\n", []string{"keeps the discount [E]", "Expected: <8.5>", "Actual: <10>", "test/cart_test.dart 40:5"}, 30, "00:18 +180 -1: Some tests failed.\n"},
	{"robot", func(i int) string {
		return sp("Page %d Opens                                                        | PASS |\n------------------------------------------------------------------------------\n", i)
	}, "Pays                                                                  | FAIL |\nElement 'id=pay' not visible after 5 seconds\n------------------------------------------------------------------------------\n", []string{"| FAIL |", "Element 'id=pay' not visible after 5 seconds"}, 10, "Shop                                                                  | FAIL |\n161 tests, 160 passed, 1 failed\n"},
	{"jenkins", func(i int) string {
		return sp("[Pipeline] { (stage %d)\n[Pipeline] sh\n+ echo %s\n%s\n[Pipeline] }\n", i, name(i), name(i))
	}, "[Pipeline] sh\n+ ./deploy.sh shop\n./deploy.sh: line 14: kubctl: command not found\n", []string{"line 14: kubctl: command not found", "script returned exit code 127"}, 10, "[Pipeline] End of Pipeline\nERROR: script returned exit code 127\nFinished: FAILURE\n"},
	{"gitlab", func(i int) string {
		return sp("\x1b[0Ksection_start:17726%05d:step_%d\r\x1b[0K\x1b[32;1m$ echo step %d\x1b[0;m\nstep %d\n\x1b[0Ksection_end:17726%05d:step_%d\r\x1b[0K\n", i, i, i, i, i, i)
	}, "\x1b[32;1m$ composer install\x1b[0;m\nYour requirements could not be resolved to an installable set of packages.\n  Problem 1\n    - shop/core 2.0 requires ext-intl * -> it is missing from your system. Install or enable PHP's intl extension.\n", []string{"requires ext-intl *", "exit code 2"}, 0, "\x1b[0KCleaning up project directory and file based variables\n\x1b[31;1mERROR: Job failed: exit code 2\n\x1b[0;m\n"},
	{"azure", func(i int) string {
		return sp("2026-03-04T09:%02d:%02d.0000000Z [command]/usr/bin/step %d\n2026-03-04T09:%02d:%02d.0000000Z done %d\n", i/60, i%60, i, i/60, i%60, i)
	}, "2026-03-04T09:03:00.0000000Z ##[error]No file matches to specific pattern: /home/vsts/work/1/a/**/*.zip\n", []string{"##[error]No file matches to specific pattern"}, 40, "2026-03-04T09:04:00.0000000Z ##[section]Finishing: Deploy\n"},
	{"nginx error", func(i int) string {
		return sp("2026/03/04 %s [notice] 31#31: signal %d (SIGCHLD) received from %d\n", clock(i), 17, i)
	}, "2026/03/04 08:02:30 [error] 31#31: *991 connect() failed (111: Connection refused) while connecting to upstream, client: 10.0.0.1, server: shop, request: \"GET /cart HTTP/1.1\", upstream: \"http://10.0.0.9:8080/cart\"\n", []string{"connect() failed (111: Connection refused) while connecting to upstream", "10.0.0.9:8080"}, 150, ""},
	{"apache error", func(i int) string {
		return sp("[Wed Mar 04 %s.000000 2026] [mpm_event:notice] [pid %d:tid 1] AH00489: Apache/2.4 configured\n", clock(i), i)
	}, "[Wed Mar 04 08:02:30.000000 2026] [proxy:error] [pid 99:tid 1] (111)Connection refused: AH00957: http: attempt to connect to 10.0.0.9:8080 (10.0.0.9:8080) failed\n", []string{"AH00957", "10.0.0.9:8080"}, 150, ""},
	{"mysqld", func(i int) string {
		return sp("2026-03-04T%s.000000Z %d [Note] [MY-010051] [Server] Event Scheduler: scheduler thread %d\n", clock(i), i, i)
	}, "2026-03-04T08:02:30.000000Z 7 [ERROR] [MY-012592] [InnoDB] Operating system error number 28 in a file operation.\n", []string{"[MY-012592]", "error number 28"}, 150, ""},
	{"mongod", func(i int) string {
		return sp(`{"t":{"$date":"2026-03-04T%sZ"},"s":"I","c":"NETWORK","id":22943,"ctx":"listener","msg":"Connection accepted","attr":{"connectionId":%d}}`+"\n", clock(i), i)
	}, `{"t":{"$date":"2026-03-04T08:02:30Z"},"s":"F","c":"STORAGE","id":28595,"ctx":"initandlisten","msg":"Terminating.","attr":{"reason":"95: Operation not supported"}}` + "\n", []string{"Terminating.", "95: Operation not supported"}, 100, ""},
	{"redis", func(i int) string {
		return sp("31:M 04 Mar 2026 %s.000 * %d changes in 60 seconds. Saving...\n", clock(i), i)
	}, "31:M 04 Mar 2026 08:02:30.000 # Can't save in background: fork: Cannot allocate memory\n", []string{"Can't save in background: fork: Cannot allocate memory"}, 150, ""},
	{"rabbitmq", func(i int) string {
		return sp("2026-03-04 %s.000000+00:00 [info] <0.%d.0> accepting AMQP connection <0.%d.0>\n", clock(i), i, i)
	}, "2026-03-04 08:02:30.000000+00:00 [error] <0.9.0> Channel error on connection: operation queue.declare caused a channel exception precondition_failed: inequivalent arg 'durable'\n", []string{"precondition_failed: inequivalent arg 'durable'"}, 150, ""},
	{"kafka", func(i int) string {
		return sp("[2026-03-04 %s,000] INFO [Partition orders-%d broker=1] Log loaded for partition orders-%d (kafka.cluster.Partition)\n", clock(i), i, i)
	}, "[2026-03-04 08:02:30,000] ERROR Disk error while locking directory /var/lib/kafka (kafka.server.LogDirFailureChannel)\njava.nio.file.AccessDeniedException: /var/lib/kafka/.lock\n\tat sun.nio.fs.UnixException.translate(UnixException.java:90)\n", []string{"Disk error while locking directory /var/lib/kafka", "AccessDeniedException: /var/lib/kafka/.lock"}, 150, ""},
	{"iis", func(i int) string {
		return sp("2026-03-04 %s 10.0.0.1 GET /items/%d - 443 - 10.1.0.%d Mozilla/5.0 - 200 0 0 %d\n", clock(i), i, i, i%90)
	}, "2026-03-04 08:02:30 10.0.0.1 POST /pay - 443 - 10.1.0.7 Mozilla/5.0 - 500 19 5 31\n", []string{"POST /pay - 443 - 10.1.0.7 Mozilla/5.0 - 500"}, 150, ""},
	{"haproxy", func(i int) string {
		return sp("Mar  4 %s lb1 haproxy[31]: 10.1.0.%d:%d [04/Mar/2026:%s.000] fe be/s%d 0/0/1/%d/%d 200 512 - - ---- 9/9/1/1/0 0/0 \"GET /i/%d HTTP/1.1\"\n", clock(i), i%200, 30000+i, clock(i), i%3, i%9, i%9, i)
	}, "Mar  4 08:02:30 lb1 haproxy[31]: 10.1.0.7:31000 [04/Mar/2026:08:02:30.000] fe be/<NOSRV> 0/-1/-1/-1/0 503 212 - - SC-- 9/9/1/0/0 0/0 \"GET /pay HTTP/1.1\"\n", []string{"be/<NOSRV> 0/-1/-1/-1/0 503", "GET /pay"}, 150, ""},
	{"gin", func(i int) string {
		return sp("[GIN] 2026/03/04 - %s | 200 |     %d.12ms |       10.1.0.%d | GET      \"/items/%d\"\n", clock(i), i%9, i%200, i)
	}, "[GIN] 2026/03/04 - 08:02:30 | 500 |     1.12ms |       10.1.0.7 | POST     \"/pay\"\n", []string{"| 500 |", "\"/pay\""}, 150, ""},
	{"rails", func(i int) string {
		return sp("I, [2026-03-04T%s.000000 #31]  INFO -- : [%08x] Completed 200 OK in %dms (Views: 0.2ms)\n", clock(i), i*7919, i%90)
	}, "F, [2026-03-04T08:02:30.000000 #31] FATAL -- : [00ab12] \nF, [2026-03-04T08:02:30.000000 #31] FATAL -- : [00ab12] ActiveRecord::StatementInvalid (PG::UndefinedColumn: column orders.totl does not exist):\nF, [2026-03-04T08:02:30.000000 #31] FATAL -- : [00ab12] app/models/cart.rb:41:in `total'\n", []string{"PG::UndefinedColumn: column orders.totl does not exist", "app/models/cart.rb:41"}, 150, ""},
	{"uvicorn", func(i int) string {
		return sp("INFO:     10.1.0.%d:%d - \"GET /items/%d HTTP/1.1\" 200 OK\n", i%200, 30000+i, i)
	}, "INFO:     10.1.0.7:31000 - \"POST /pay HTTP/1.1\" 500 Internal Server Error\nERROR:    Exception in ASGI application\nTraceback (most recent call last):\n  File \"/app/pay.py\", line 41, in pay\n    total = cart[\"totl\"]\nKeyError: 'totl'\n", []string{"KeyError: 'totl'", "pay.py\", line 41", "POST /pay HTTP/1.1\" 500"}, 150, ""},
	{"spark", func(i int) string {
		return sp("26/03/04 %s INFO TaskSetManager: Finished task %d.0 in stage 3.0 (TID %d) in %d ms on 10.0.0.%d (executor %d)\n", clock(i), i, i, i*3, i%9, i%4)
	}, "26/03/04 08:02:30 ERROR Executor: Exception in task 151.0 in stage 3.0 (TID 151)\norg.apache.spark.SparkException: [CAST_INVALID_INPUT] The value 'n/a' of the type \"STRING\" cannot be cast to \"INT\"\n\tat org.apache.spark.sql.errors.QueryExecutionErrors$.x(QueryExecutionErrors.scala:1)\n", []string{"[CAST_INVALID_INPUT] The value 'n/a'"}, 150, ""},
	{"php", func(i int) string {
		return sp("[04-Mar-2026 %s UTC] PHP Notice:  job %d done in /app/jobs.php on line 9\n", clock(i), i)
	}, "[04-Mar-2026 08:02:30 UTC] PHP Fatal error:  Uncaught TypeError: total(): Argument #1 ($c) must be of type array, null given, called in /app/pay.php on line 41 and defined in /app/cart.php:7\nStack trace:\n#0 /app/pay.php(41): total(NULL)\n#1 {main}\n  thrown in /app/cart.php on line 7\n", []string{"Uncaught TypeError: total(): Argument #1 ($c) must be of type array, null given", "/app/pay.php(41)"}, 100, ""},
	{"R", func(i int) string { return sp("[1] \"fitted model %d\"\n", i) }, "Error in solve.default(xtx) : \n  system is computationally singular: reciprocal condition number = 1.2e-18\nCalls: fit -> solve -> solve.default\nExecution halted\n", []string{"Error in solve.default(xtx)", "computationally singular", "Execution halted"}, 0, ""},
	{"julia", func(i int) string { return sp("   Installed %s%d ── v1.%d.0\n", name(i), i, i) }, "ERROR: LoadError: UndefVarError: `totl` not defined\nStacktrace:\n [1] cart(x::Int64)\n   @ Main ~/w/cart.jl:12\n [2] top-level scope\n   @ ~/w/run.jl:3\nin expression starting at /root/w/run.jl:3\n", []string{"UndefVarError: `totl` not defined", "cart.jl:12"}, 0, ""},
	{"torch", func(i int) string { return sp("epoch 1 step %d loss %d.%03d lr 0.0003\n", i, 3-i/80, 999-i) }, "Traceback (most recent call last):\n  File \"/w/train.py\", line 131, in <module>\n    loss.backward()\n  File \"/usr/lib/python3/site-packages/torch/_tensor.py\", line 522, in backward\n    torch.autograd.backward(\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.68 GiB of which 1.19 GiB is free.\n", []string{"CUDA out of memory. Tried to allocate 2.00 GiB", "train.py\", line 131"}, 0, ""},
	{"rsync", func(i int) string { return sp("photos/2026/%s_%d.jpg\n", name(i), i) }, "rsync: [sender] send_files failed to open \"/home/a/photos/private.raw\": Permission denied (13)\n", []string{"send_files failed to open", "Permission denied (13)", "(code 23)"}, 200, "sent 1,204,991 bytes  received 4,211 bytes\nrsync error: some files/attrs were not transferred (see previous errors) (code 23) at main.c(1338) [sender=3.2.7]\n"},
	{"aws", func(i int) string {
		return sp("upload: ./dist/%s_%d.js to s3://shop/%s_%d.js\n", name(i), i, name(i), i)
	}, "upload failed: ./dist/cart.js to s3://shop/cart.js An error occurred (AccessDenied) when calling the PutObject operation: Access Denied\n", []string{"(AccessDenied) when calling the PutObject operation"}, 100, ""},
	{"pulumi", func(i int) string { return sp(" +  aws:s3:BucketObject obj-%d created (%d.1s)\n", i, i%9) }, "  aws:rds:Instance (main):\n    error: 1 error occurred:\n    \t* creating RDS DB Instance (main): DBSubnetGroupDoesNotCoverEnoughAZs: The DB subnet group doesn't meet Availability Zone coverage requirement.\n", []string{"DBSubnetGroupDoesNotCoverEnoughAZs"}, 30, "Resources:\n    + 180 created\n    1 errored\n\nDuration: 3m1s\n"},
	{"kubectl", func(i int) string { return sp("configmap/cfg-%d unchanged\n", i) }, "The Deployment \"web\" is invalid: spec.template.spec.containers[0].image: Required value\n", []string{"spec.template.spec.containers[0].image: Required value"}, 60, ""},
	{"compose", func(i int) string { return sp("web-1     | 10.1.0.%d \"GET /i/%d\" ok\n", i%200, i) }, "db-1      | initdb: error: directory \"/var/lib/postgresql/data\" exists but is not empty\ndb-1 exited with code 1\n", []string{"exists but is not empty", "db-1 exited with code 1"}, 100, ""},
	{"valgrind", func(i int) string { return sp("==31== Reading syms from /usr/lib/lib%s%d.so\n", name(i), i) }, "==31== Invalid read of size 4\n==31==    at 0x4005A: total (cart.c:12)\n==31==    by 0x4006B: main (main.c:31)\n==31==  Address 0x5204044 is 0 bytes after a block of size 4 alloc'd\n", []string{"Invalid read of size 4", "total (cart.c:12)"}, 30, "==31== ERROR SUMMARY: 1 errors from 1 contexts (suppressed: 0 from 0)\n"},
	{"gdb", func(i int) string { return sp("[New Thread 0x7ffff%05x (LWP %d)]\n", i*16, 1000+i) }, "\nThread 9 \"worker\" received signal SIGSEGV, Segmentation fault.\n0x000055555 in total (c=0x0) at cart.c:12\n12\t  return c->n;\n#0  0x000055555 in total (c=0x0) at cart.c:12\n#1  0x000055556 in main () at main.c:31\n", []string{"received signal SIGSEGV", "cart.c:12"}, 0, ""},
	{"zig", func(i int) string { return sp("steps [%d/400] zig build-lib %s%d Debug native\n", i, name(i), i) }, "src/cart.zig:41:20: error: expected type 'u32', found 'f64'\n    const t: u32 = sum;\n                   ^~~\n", []string{"src/cart.zig:41:20: error: expected type 'u32', found 'f64'"}, 20, "Build Summary: 399/400 steps succeeded; 1 failed\n"},
	{"windows", func(i int) string { return sp("  %s%d.cpp\n  Generating Code...\n", name(i), i) }, "C:\\w\\src\\cart.cpp(41,20): error C2065: 'totl': undeclared identifier [C:\\w\\shop.vcxproj]\n", []string{"error C2065: 'totl': undeclared identifier"}, 30, "Build FAILED.\n    0 Warning(s)\n    1 Error(s)\n"},
	{"phpstan", func(i int) string { return sp(" %3d/170 [%s] %d%%\n", i, strings.Repeat("▓", i/6), i*100/170) }, "\n ------ ---------------------------------------------- \n  Line   src/Cart.php                                  \n ------ ---------------------------------------------- \n  41     Method Cart::total() should return int but    \n         returns float.                                \n ------ ---------------------------------------------- \n\n [ERROR] Found 1 error\n", []string{"Method Cart::total() should return int but", "Line   src/Cart.php", "[ERROR] Found 1 error"}, 0, ""},
	{"in German", func(i int) string { return sp("make[1]: Verzeichnis „/w/%s%d“ wird betreten\n", name(i), i) }, "cart.c:12:5: Fehler: »totl« nicht deklariert (erste Benutzung in dieser Funktion)\n   12 |     totl = 3;\n      |     ^~~~\nmake[1]: *** [Makefile:4: cart.o] Fehler 1\n", []string{"»totl« nicht deklariert", "[Makefile:4: cart.o] Fehler 1"}, 30, "make: *** [Makefile:2: all] Fehler 2\n"},
	{"in French", func(i int) string { return sp("make[1] : on entre dans le répertoire « /w/%s%d »\n", name(i), i) }, "cart.c:12:5: erreur: « totl » non déclaré (première utilisation dans cette fonction)\nmake[1]: *** [Makefile:4 : cart.o] Erreur 1\n", []string{"« totl » non déclaré", "Erreur 1"}, 30, ""},
}
