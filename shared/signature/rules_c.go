package signature

// C and its builders. The first error of each file is a root, all that follows
// in the file may follow from it; of files that were compiled side by side the
// smallest decides, as their order is chance.
const cFile = `^(?:In file included from )?(<(?:stdin|built-in|command-line)>|(?:[A-Za-z]:)?[^\s:()][^:()\n]*\.(?:c|cc|cpp|cxx|c\+\+|C|h|hh|hpp|hxx|inc|ipp|m|mm|cu|cuh|S|s|f90|f|F90|def|tcc|l|y|pch|ixx|cppm))`

var gccRules = []rule{
	{
		name: "gcc.fatal", lits: []string{"fatal error:", "fatal error c", "schwerwiegender fehler:", "erreur fatale"}, re: cFile + `(?::\d+(?::\d+)?: fatal error: |:\d+:\d+: (?:schwerwiegender Fehler|erreur fatale) ?: |\(\d+(?:,\d+)?\) ?: fatal error C?\d*: )`, conf: 0.96, pick: least,
		yes: []string{"src/tls.c:1:10: fatal error: openssl/nope.h: No such file or directory", "C:\\a\\b.cpp(3): fatal error C1083: Cannot open include file: 'x.h': No such file or directory"},
		no:  []string{"compilation terminated.", "src/a.c:1:2: error: x"},
	},
	{
		name: "gcc.error", lits: []string{": error:", "error: ", "error c", "fehler:", "erreur:", "erreur :"}, re: cFile + `(?::\d+(?::\d+)?: (?:internal compiler )?error: |:\d+:\d+: (?:Fehler|erreur ?): |\(\d+(?:,\d+)?\) ?: error(?: [A-Z]+\d+)?: )`, conf: 0.95, pick: least,
		yes: []string{"a.c:3:5: error: expected ';' before 'return'", `C:\x\y.h(89): error C2143: syntax error: missing ',' before '*'`, "kernel.cu(12): error: identifier \"x\" is undefined", "a.cc:1:2: internal compiler error: Segmentation fault"},
		no:  []string{"a.c:3:5: warning: unused variable 'x'", "a.c:3:5: note: declared here", "collect2: error: ld returned 1 exit status"},
	},
	{
		name: "gcc.assert", lits: []string{"assertion "}, re: `^\S+: \S+:\d+: .*Assertion .+ failed\.?$|^Assertion failed: .+, (?:function|file) `, conf: 0.9,
		yes: []string{"app: ../job.c:186: transition: Assertion `s0[s1]' failed.", "Assertion failed: (n > 0), function f, file a.c, line 3."},
		no:  []string{"  Assertion failed"},
	},
	{
		name: "gcc.sanitizer", lits: []string{"runtime error: "}, re: `^\S+:\d+:\d+: runtime error: `, conf: 0.91,
		yes: []string{"/x/src/cart.cc:14:12: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'"},
		no:  []string{"panic: runtime error: x"},
	},
	{
		name: "gcc.gtest", lits: []string{": failure", ": error: value of", "unknown file: failure"}, re: `^(?:\S+[:(]\d+\)?|unknown file): (?:Failure|error: Value of)`, need: "[  failed  ]|[ run      ]", conf: 0.92,
		detail: detail{how: before, re: `^\[ RUN +\] (\S+)`, lines: 400},
		yes:    []string{"/x/test/cart_test.cc:9: Failure"},
		no:     []string{"[  FAILED  ] Cart.Total (0 ms)"},
	},
	{
		name: "gcc.driver", lits: []string{"fatal error:", ": error:"}, re: `^(?:\S*/)?(?:gcc|g\+\+|cc|c\+\+|cc1(?:plus)?|clang(?:\+\+)?(?:-\d+)?|[\w-]+-(?:gcc|g\+\+|clang(?:\+\+)?)(?:-\d+)?|nvcc|as)(?:\.exe)?: (?:fatal error|error|internal compiler error): `, not: `linker command failed|ld returned|no input files`, conf: 0.9,
		yes: []string{"gcc: error: unrecognized command-line option '-fwhatever'", "clang: error: no such file or directory: 'a.c'", "cc1: fatal error: x.c: No such file or directory"},
		no:  []string{"clang: error: linker command failed with exit code 1 (use -v to see invocation)"},
	},
}

var ldRules = []rule{
	{
		name: "ld.undefined", lits: []string{"undefined reference to", "undefined symbol", "unresolved external symbol", "undefined symbols for architecture", "nicht definierter verweis", "référence indéfinie"}, re: `undefined reference to |undefined symbol: |unresolved external symbol|^Undefined symbols for architecture|undefined hidden symbol|[Nn]icht definierter Verweis|référence indéfinie`, not: `^\s*= note: .*linking`, conf: 0.93, pick: least,
		detail: detail{how: after, re: `^\s+"(.+)", referenced from`, lines: 1},
		yes:    []string{"/usr/bin/ld: /tmp/ccRp0x3B.o: in function `main': a.c:(.text+0x5): undefined reference to `foo'", "ld.lld: error: undefined symbol: foo", `a.obj : error LNK2019: unresolved external symbol _foo referenced in function _main`},
		no:     []string{"collect2: error: ld returned 1 exit status"},
	},
	{
		name: "ld.error", lits: []string{"cannot find -l", "multiple definition of", "ld: ", "ld.lld: error", "library not found", "duplicate symbol", "lnk1", "lnk2", "ld.gold: ", "mold: ", "rust-lld: error"}, re: `cannot find -l|multiple definition of|(?:^|/)ld(?:\.\w+)?: (?:error: |cannot|.*: (?:cannot open|file format not recognized|No such file|undefined)|library not found|framework not found|symbol)|error LNK[12]\d{3}|duplicate symbol|(?:rust-lld|mold|wasm-ld): (?:error|fatal): `, not: `ld: warning|ld returned|LNK1120|LNK1181: cannot open input file ''`, conf: 0.91, pick: least,
		yes: []string{"/usr/bin/ld: cannot find -lfoo: No such file or directory", "ld: library not found for -lfoo", "LINK : fatal error LNK1104: cannot open file 'x.lib'; error LNK1104", "/usr/bin/ld: b.o: multiple definition of `x'; a.o: first defined here"},
		no:  []string{"ld: warning: directory not found for option", "collect2: error: ld returned 1 exit status"},
	},
}

var makeRules = []rule{
	{
		name: "make.no_rule", lits: []string{"no rule to make target", "keine regel", "pas de règle"}, re: `\*\*\* (?:No rule to make target|Keine Regel|Pas de règle)`, conf: 0.95, pick: least,
		yes: []string{"make: *** No rule to make target 'gen', needed by 'all'.  Stop."},
		no:  []string{"make: *** [Makefile:4: tls] Error 1"},
	},
	{
		name: "make.file", lits: []string{"***"}, re: `^\S+:\d+: \*\*\* `, conf: 0.95,
		yes: []string{"Makefile:3: *** missing separator.  Stop.", "Makefile:9: *** VERSION is not set.  Stop."},
		no:  []string{"make: *** [Makefile:4: tls] Error 1"},
	},
	{
		name: "make.error", lits: []string{"make: ", "]: "}, re: `^(?:g?make|mingw32-make|bmake)(?:\[\d+\])?: (?:\S+: (?:No such file or directory|Command not found|Permission denied)|\*\*\* No targets|\*\*\* (?:empty variable|mixed implicit|multiple target|recipe commences))|Circular .* dependency`, not: `dropped`, conf: 0.85,
		yes: []string{"make: foo: No such file or directory", "make: *** No targets specified and no makefile found.  Stop."},
		no:  []string{"make: *** [all] Error 2", "make: Nothing to be done for 'all'."},
	},
	{
		name: "ninja.error", lits: []string{"ninja: error:", "ninja: fatal:"}, re: `^ninja: (?:error|fatal): `, conf: 0.93,
		yes: []string{"ninja: error: 'gen.c', needed by 'gen.o', missing and no known rule to make it"},
		no:  []string{"ninja: build stopped: subcommand failed.", "ninja: warning: x"},
	},
}

// ninjaLast and its like are tried after the rules of inner tools.
var ninjaLast = []rule{
	{
		name: "ninja.failed", lits: []string{"failed: "}, re: `^FAILED: (?:\[code=\d+\] )?\S`, conf: 0.7, pick: least,
		detail: detail{how: after, re: `^(\S.*(?:[Ee]rror|not found|[Ff]ailed|Killed).*)$`, lines: 20},
		yes:    []string{"FAILED: CMakeFiles/app.dir/a.c.o ", "FAILED: [code=2] third_party/x.cpp.obj"},
		no:     []string{"FAILED tests/test_a.py::test_b"},
	},
	{
		name: "make.recipe", lits: []string{"***"}, re: `^(?:g?make|mingw32-make)(?:\[\d+\])?: \*\*\* \[(.+)\] (?:Error \d+|Fehler \d+|Erreur \d+|Killed|Terminated|Segmentation fault|Aborted)`, conf: 0.5, said: true,
		detail: detail{how: before, re: `^(\S.+)`, lines: 1},
		yes:    []string{"make: *** [Makefile:4: tls] Error 1", "make[1]: *** [Makefile:7: run] Killed"},
		no:     []string{"make: *** No rule to make target 'gen'."},
	},
}

var cmakeRules = []rule{
	{
		name: "cmake.error", lits: []string{"cmake error"}, re: `^\s*CMake Error(?: at .+:\d+ \(.+\):| in .+:| at .+:|: |:)`, not: `Generator: execution of make failed`, conf: 0.95,
		detail: detail{how: para, re: `^\s*(?:Call Stack|-- (?:Configuring|Generating)|See also )`},
		yes:    []string{"CMake Error at CMakeLists.txt:3 (find_package):", "CMake Error: The source directory \"/x\" does not appear to contain CMakeLists.txt.", "CMake Error in CMakeLists.txt:"},
		no:     []string{"CMake Warning at CMakeLists.txt:3 (message):", "-- Configuring incomplete, errors occurred!"},
	},
	{
		name: "ctest.failed", lits: []string{"***"}, re: `(?:\*\*\*(?:Failed|Timeout|Exception|Not Run|Skipped)|^\s*\d+ - \S+ \((?:Failed|Timeout|SEGFAULT|Subprocess aborted|Not Run)\))`, conf: 0.85, pick: least,
		yes: []string{"1/3 Test #1: adds .............................***Failed    0.01 sec"},
		no:  []string{"1/3 Test #1: adds ...   Passed    0.01 sec"},
	},
}
