package compress_test

import "github.com/mneme-ai/mneme/shared/compress"

// blindBuilds are logs of what builds, installs and rolls out.
func blindBuilds() []blind {
	const l = compress.Log
	return []blind{
		{"build: maven", "mvn.log", "[INFO] Scanning for projects...\n" + times(120, func(i int) string {
			return sp("[INFO] Downloading from central: https://repo.example/maven2/org/%s/%s/1.%d/%s-1.%d.pom\n[INFO] Downloaded from central: https://repo.example/maven2/org/%s/%s-1.%d.pom (4.%d kB at 90 kB/s)\n", name(i), name(i+1), i, name(i+1), i, name(i), name(i+1), i, i%10)
		}) + "[INFO] --- compiler:3.11.0:compile (default-compile) @ billing ---\n[INFO] Compiling 48 source files with javac [debug target 17] to target/classes\n[INFO] -------------------------------------------------------------\n[ERROR] COMPILATION ERROR : \n[INFO] -------------------------------------------------------------\n[ERROR] /build/billing/src/main/java/org/shop/Invoice.java:[42,17] cannot find symbol\n  symbol:   variable taxRat\n  location: class org.shop.Invoice\n[INFO] 1 error\n[INFO] -------------------------------------------------------------\n" + times(6, func(i int) string { return sp("[INFO] module-%d ................................ SKIPPED\n", i) }) +
			"[INFO] BUILD FAILURE\n[INFO] Total time:  31.2 s\n[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.11.0:compile (default-compile) on project billing: Compilation failure\n[ERROR] -> [Help 1]\n", []string{"Invoice.java:[42,17] cannot find symbol", "symbol:   variable taxRat", "BUILD FAILURE"}, .35, l},
		{"build: gradle and Kotlin", "gradle.log", times(90, func(i int) string { return sp("> Task :lib-%s:compileKotlin UP-TO-DATE\n", name(i)+sp("%d", i)) }) +
			"> Task :app:compileDebugKotlin FAILED\ne: file:///w/app/src/main/java/Cart.kt:57:21 Unresolved reference: totl\n\nFAILURE: Build failed with an exception.\n\n* What went wrong:\nExecution failed for task ':app:compileDebugKotlin'.\n> Compilation error. See log for more details\n\n* Try:\n> Run with --stacktrace option to get the stack trace.\n\nBUILD FAILED in 41s\n91 actionable tasks: 1 executed, 90 up-to-date\n", []string{"Cart.kt:57:21 Unresolved reference: totl", "BUILD FAILED in 41s"}, .5, l},
		{"build: cargo", "cargo.log", times(110, func(i int) string { return sp("   Compiling %s%d v0.%d.%d\n", name(i), i, i%9, i%4) }) +
			"error[E0308]: mismatched types\n  --> src/price.rs:18:20\n   |\n17 | fn net(g: u64) -> u64 {\n   |                   --- expected `u64` because of return type\n18 |     g as f64 / 1.19\n   |     ^^^^^^^^^^^^^^^ expected `u64`, found `f64`\n\nwarning: unused variable: `x`\n  --> src/lib.rs:3:9\n\nFor more information about this error, try `rustc --explain E0308`.\nerror: could not compile `shop` (bin \"shop\") due to 1 previous error; 1 warning emitted\n", []string{"error[E0308]: mismatched types", "src/price.rs:18:20", "could not compile `shop`"}, .5, l},
		{"build: buildkit", "docker.log", times(60, func(i int) string {
			return sp("#%d [stage-%d %d/9] RUN apk add %s\n#%d CACHED\n", i+2, i%3, i%9, name(i), i+2)
		}) + "#63 [build 7/9] RUN make dist\n" + times(80, func(i int) string { return sp("#63 %d.%03d   CC  obj/%s_%d.o\n", i/10, i*7%1000, name(i), i) }) +
			"#63 9.101 src/net/tls.c:77:10: fatal error: openssl/ssl.h: No such file or directory\n#63 9.101    77 | #include <openssl/ssl.h>\n#63 9.102 compilation terminated.\n#63 9.113 make: *** [Makefile:31: obj/tls.o] Error 1\n#63 ERROR: process \"/bin/sh -c make dist\" did not complete successfully: exit code: 2\n------\n > [build 7/9] RUN make dist:\n9.113 make: *** [Makefile:31: obj/tls.o] Error 1\n------\nDockerfile:19\n--------------------\n  19 | >>> RUN make dist\n--------------------\nERROR: failed to solve: process \"/bin/sh -c make dist\" did not complete successfully: exit code: 2\n", []string{"openssl/ssl.h: No such file or directory", "Makefile:31", "exit code: 2"}, .4, l},
		{"build: npm install", "npm.log", times(40, func(i int) string {
			return sp("npm warn deprecated %s@1.%d.0: no longer kept up\n", name(i)+sp("%d", i), i)
		}) +
			"npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error\nnpm error While resolving: shop@2.0.0\nnpm error Found: react@19.0.0\nnpm error node_modules/react\nnpm error   react@\"^19.0.0\" from the root project\nnpm error\nnpm error Could not resolve dependency:\nnpm error peer react@\"^17.0.0\" from old-grid@4.2.1\nnpm error\nnpm error A complete log of this run can be found in: /root/.npm/_logs/x-debug-0.log\n", []string{"ERESOLVE unable to resolve dependency tree", "react@19.0.0", "peer react@\"^17.0.0\" from old-grid@4.2.1"}, .6, l},
		{"build: ninja and C++", "ninja.log", times(400, func(i int) string {
			return sp("[%d/612] Building CXX object src/%s/CMakeFiles/%s.dir/%s_%d.cc.o\n", i+1, name(i), name(i), name(i), i)
		}) + "[401/612] Building CXX object src/geo/CMakeFiles/geo.dir/hull.cc.o\nFAILED: src/geo/CMakeFiles/geo.dir/hull.cc.o \n/usr/bin/c++ -DNDEBUG -I../include -O2 -std=c++20 -o hull.cc.o -c ../src/geo/hull.cc\n../src/geo/hull.cc: In function 'double geo::area(const Hull&)':\n../src/geo/hull.cc:96:14: error: 'class geo::Hull' has no member named 'pointz'; did you mean 'points'?\n   96 |   return h.pointz.size();\n      |            ^~~~~~\n" +
			times(30, func(i int) string {
				return sp("[%d/612] Building CXX object src/%s/CMakeFiles/%s.dir/%s_%d.cc.o\n", 402+i, name(i), name(i), name(i), 402+i)
			}) + "ninja: build stopped: subcommand failed.\n", []string{"hull.cc:96:14: error:", "did you mean 'points'?", "ninja: build stopped"}, .2, l},
		{"build: make, several jobs", "make.log", times(200, func(i int) string {
			return sp("make[%d]: Entering directory '/w/%s'\n  LD  lib%s_%d.so\n", 1+i%3, name(i), name(i), i)
		}) + "/usr/bin/ld: obj/main.o: in function `main':\nmain.c:(.text+0x1d): undefined reference to `shop_init'\ncollect2: error: ld returned 1 exit status\nmake[2]: *** [Makefile:14: shop] Error 1\n" + times(20, func(i int) string { return sp("  CC  late_%d.o\n", i) }) + "make[1]: *** [Makefile:5: all] Error 2\nmake: *** [Makefile:9: build] Error 2\n", []string{"undefined reference to `shop_init'", "[Makefile:14: shop] Error 1"}, .35, l},
		{"build: dotnet", "dotnet.log", times(70, func(i int) string {
			return sp("  %s.%d -> /w/src/%s/bin/Release/net8.0/%s.%d.dll\n", name(i), i, name(i), name(i), i)
		}) + "/w/src/Shop/Basket.cs(31,25): error CS0103: The name 'totl' does not exist in the current context [/w/src/Shop/Shop.csproj]\n" + times(20, func(i int) string {
			return sp("/w/src/%s/F%d.cs(%d,9): warning CS0168: The variable 'e' is declared but never used [/w/src/%s.csproj]\n", name(i), i, i+3, name(i))
		}) + "\nBuild FAILED.\n\n/w/src/Shop/Basket.cs(31,25): error CS0103: The name 'totl' does not exist in the current context [/w/src/Shop/Shop.csproj]\n    20 Warning(s)\n    1 Error(s)\n\nTime Elapsed 00:00:11.02\n", []string{"Basket.cs(31,25): error CS0103: The name 'totl' does not exist", "1 Error(s)", "Build FAILED."}, .5, l},
		{"build: xcodebuild", "xcode.log", times(150, func(i int) string {
			return sp("CompileSwift normal arm64 /w/App/%s%d.swift (in target 'App' from project 'App')\n    cd /w\n", name(i), i)
		}) + "/w/App/CartView.swift:63:9: error: cannot find 'CartModl' in scope\n        CartModl()\n        ^~~~~~~~\n" + times(10, func(i int) string {
			return sp("Ld /w/build/%s%d.o normal (in target 'App' from project 'App')\n", name(i), i)
		}) + "\n** BUILD FAILED **\n\n\nThe following build commands failed:\n\tCompileSwift normal arm64 /w/App/CartView.swift (in target 'App' from project 'App')\n(1 failure)\n", []string{"CartView.swift:63:9: error: cannot find 'CartModl' in scope", "** BUILD FAILED **"}, .35, l},
		{"build: bazel", "bazel.log", times(200, func(i int) string {
			return sp("[%d / 900] Compiling %s/%s_%d.cc; 2s linux-sandbox\n", i*4, name(i), name(i+2), i)
		}) + "ERROR: /w/geo/BUILD.bazel:12:11: Compiling geo/hull.cc failed: (Exit 1): gcc failed: error executing command (from target //geo:hull) /usr/bin/gcc -U_FORTIFY_SOURCE ... (remaining 31 arguments skipped)\ngeo/hull.cc:20:3: error: use of undeclared identifier 'sqrtt'\nTarget //geo:hull failed to build\nUse --verbose_failures to see the command lines of failed build steps.\nINFO: Elapsed time: 44.1s, Critical Path: 12.20s\nINFO: 210 processes: 12 internal, 198 linux-sandbox.\nERROR: Build did NOT complete successfully\n", []string{"use of undeclared identifier 'sqrtt'", "//geo:hull", "Build did NOT complete successfully"}, .35, l},
		{"build: pip", "pip.log", times(60, func(i int) string {
			return sp("Collecting %s%d==1.%d\n  Downloading %s%d-1.%d-py3-none-any.whl (%d kB)\n     ━━━━━━━━━━━━━━━━━━ %d.1/%d.1 kB 2.1 MB/s eta 0:00:00\n", name(i), i, i, name(i), i, i, 20+i, 20+i, 20+i)
		}) + "ERROR: Cannot install -r requirements.txt (line 4) and numpy==2.1.0 because these package versions have conflicting dependencies.\n\nThe conflict is caused by:\n    The user requested numpy==2.1.0\n    oldlib 1.4 depends on numpy<2.0\n\nTo fix this you could try to:\n1. loosen the range of package versions you've specified\n\nERROR: ResolutionImpossible: for help visit https://pip.example/topics\n", []string{"numpy==2.1.0", "oldlib 1.4 depends on numpy<2.0", "ResolutionImpossible"}, .35, l},
		{"build: terraform apply", "tf.log", times(80, func(i int) string {
			return sp("aws_route53_record.r[%d]: Creating...\naws_route53_record.r[%d]: Creation complete after %ds [id=Z0%d]\n", i, i, i%9, i)
		}) + "╷\n│ Error: creating RDS DB Instance (shop-main): InvalidParameterCombination: Cannot find version 14.99 for postgres\n│ \n│   with aws_db_instance.main,\n│   on db.tf line 7, in resource \"aws_db_instance\" \"main\":\n│    7: resource \"aws_db_instance\" \"main\" {\n│ \n╵\n", []string{"Cannot find version 14.99 for postgres", "db.tf line 7"}, .35, l},
		{"build: ansible", "ansible.log", times(12, func(k int) string {
			return sp("\nTASK [%s : step %d] ****************************************************\n", name(k), k) + times(25, func(i int) string {
				if k == 7 && i == 13 {
					return "fatal: [db13.internal]: FAILED! => {\"changed\": false, \"msg\": \"No package matching 'postgresql-17' found available, installed or updated\", \"rc\": 126}\n"
				}
				return sp("ok: [db%02d.internal]\n", i)
			})
		}) + "\nPLAY RECAP *********************************************************************\n" + times(25, func(i int) string {
			return sp("db%02d.internal              : ok=12   changed=0    unreachable=0    failed=%s\n", i, at(i, 13, "1", "0"))
		}), []string{"No package matching 'postgresql-17' found", "db13.internal]: FAILED!", "db13.internal              : ok=12   changed=0    unreachable=0    failed=1"}, .35, l},
		{"build: helm", "helm.log", times(40, func(i int) string {
			return sp("client.go:%d: [debug] Patch ConfigMap \"cfg-%d\" in namespace shop\n", 300+i, i)
		}) + "upgrade.go:443: [debug] warning: Upgrade \"shop\" failed: cannot patch \"web\" with kind Deployment: Deployment.apps \"web\" is invalid: spec.selector: Invalid value: field is immutable\nError: UPGRADE FAILED: cannot patch \"web\" with kind Deployment: Deployment.apps \"web\" is invalid: spec.selector: Invalid value: field is immutable\n", []string{"spec.selector: Invalid value: field is immutable", "UPGRADE FAILED"}, .5, l},
		{"build: a workflow", "actions.log", times(300, func(i int) string {
			return sp("2026-03-04T09:%02d:%02d.1234567Z %s\n", i/60, i%60, []string{"##[group]Run actions/setup", "with:", "  node-version: 22", "##[endgroup]", "added " + sp("%d", i) + " packages"}[i%5])
		}) + "2026-03-04T09:05:01.0000000Z > shop@2.0.0 lint\n2026-03-04T09:05:01.0000000Z > eslint .\n2026-03-04T09:05:09.0000000Z \n2026-03-04T09:05:09.0000000Z /home/runner/work/shop/src/cart.ts\n2026-03-04T09:05:09.0000000Z   88:7  error  'total' is assigned a value but never used  @typescript-eslint/no-unused-vars\n2026-03-04T09:05:09.0000000Z \n2026-03-04T09:05:09.0000000Z ✖ 1 problem (1 error, 0 warnings)\n2026-03-04T09:05:09.0000000Z \n2026-03-04T09:05:09.0000000Z ##[error]Process completed with exit code 1.\n" + times(60, func(i int) string {
			return sp("2026-03-04T09:05:%02d.5000000Z %s\n", i, []string{"Post job cleanup.", "[command]/usr/bin/git version", "git version 2.43.0", "Temporarily overriding HOME='/tmp/" + sp("%d", i) + "'"}[i%4])
		}), []string{"'total' is assigned a value but never used", "src/cart.ts", "Process completed with exit code 1"}, .35, l},
		{"build: tsc in a monorepo", "tsc.log", times(60, func(i int) string {
			return sp("@shop/%s%d:build: cache hit, replaying output %016x\n@shop/%s%d:build: > tsc -p .\n", name(i), i, i*7919, name(i), i)
		}) + "@shop/web:build: src/api/orders.ts(114,9): error TS2345: Argument of type 'string | undefined' is not assignable to parameter of type 'string'.\n@shop/web:build:   Type 'undefined' is not assignable to type 'string'.\n@shop/web:build: npm error Lifecycle script `build` failed with error:\n" + times(20, func(i int) string { return sp("@shop/z%d:build: cache hit, replaying output %016x\n", i, i*31) }) + " Tasks:    80 successful, 81 total\nCached:    80 cached, 81 total\n  Time:    21.3s \nFailed:    @shop/web#build\n\n ERROR  run failed: command  exited (2)\n", []string{"orders.ts(114,9): error TS2345", "Type 'undefined' is not assignable", "@shop/web#build"}, .4, l},
		{"build: git merge", "merge.log", times(90, func(i int) string { return sp("Auto-merging src/%s/%d.go\n", name(i), i) }) + "CONFLICT (content): Merge conflict in src/pay/ledger.go\nAutomatic merge failed; fix conflicts and then commit the result.\n", []string{"Merge conflict in src/pay/ledger.go", "Automatic merge failed"}, .4, l},
		{"build: a crane that gives no word for it", "deploy.log", times(160, func(i int) string {
			return sp("%s [deploy] node-%03d drained, image pulled, restarted in %d.%ds\n", clock(i), i, 3+i%4, i%10)
		}) + "08:02:41 [deploy] node-160 drained, image pulled, waits for quorum (2 of 3)\n" + times(160, func(i int) string {
			return sp("%s [deploy] node-%03d drained, image pulled, restarted in %d.%ds\n", clock(200+i), 161+i, 3+i%4, i%10)
		}), []string{"waits for quorum (2 of 3)"}, .3, l},
	}
}
