package signature

// cargo: the compiler's code first; `linking with cc failed` and `could not
// compile` only follow. Tests run side by side, so that the smallest name decides.
var cargoRules = []rule{
	{
		name: "cargo.code", lits: []string{"error[e"}, re: `^(?:\s*|\S+\.rs:\d+:\d+: )error\[(E\d{4})\]: `, conf: 0.96, pick: first,
		detail: detail{how: after, re: `^\s*(?:\| +[\s|]*(?:\^+|-+) (.*(?:expected|not found|cannot|undeclared|no method|found|missing|unresolved|use of|value).*)|= note: (expected .+)|= help: (the trait .+|.*))`, lines: 14},
		yes:    []string{"error[E0308]: mismatched types", "error[E0432]: unresolved import `x`"},
		no:     []string{"For more information about this error, try `rustc --explain E0308`.", "warning[E0308]: x"},
	},
	{
		name: "cargo.link", lits: []string{"undefined symbol", "undefined reference", "cannot find -l", "unable to find library", "symbol(s) not found", "library not found", "lnk"}, re: `(?:error: )?undefined symbol: |undefined reference to |cannot find -l|unable to find library|library not found for|LNK\d{4}|symbol\(s\) not found`, conf: 0.95, need: "linking with",
		yes: []string{"  = note: rust-lld: error: undefined symbol: missing_symbol_xyz", "          /usr/bin/ld: cannot find -lfoo: No such file or directory", "          main.c:(.text+0x5): undefined reference to `foo'"},
		no:  []string{"error: linking with `cc` failed: exit status: 1"},
	},
	{
		name: "cargo.panic", lits: []string{"panicked at"}, re: `^\s*thread '([^']*)'(?: \(\d+\))? panicked at `, conf: 0.94, pick: least,
		detail: detail{how: after, re: `^(\s*(?:assertion .+|left: .+|[^\s].*))$`, lines: 2},
		yes:    []string{"thread 'store::tests::adds' (24476) panicked at src/store.rs:5:17:", "thread 'main' panicked at 'boom', src/main.rs:2:5"},
		no:     []string{"note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace"},
	},
	{
		name: "cargo.should_panic", lits: []string{"test did not panic as expected"}, re: `^note: test did not panic as expected`, conf: 0.9,
		detail: detail{how: before, re: `^---- (\S+) stdout ----`, lines: 4},
		yes:    []string{"note: test did not panic as expected at src/lib.rs:1:27"},
		no:     []string{"test tests::a - should panic ... FAILED"},
	},
	{
		name: "cargo.test_error", lits: []string{"error: "}, re: `^Error: `, need: "test result: failed", conf: 0.85,
		detail: detail{how: before, re: `^---- (\S+) stdout ----`, lines: 4},
		yes:    []string{`Error: ParseIntError { kind: InvalidDigit }`},
		no:     []string{"error: test failed, to rerun pass `--lib`"},
	},
	{
		name: "cargo.error", lits: []string{"error: "}, re: `^(?:\s*|\S+\.rs:\d+:\d+: )error: `, not: `could not compile|linking with |aborting due to|build failed|test failed, to rerun|\d+ targets? failed|process didn't exit successfully|Recipe |^error: command |doctest failed|build failed, waiting|failed to compile`, conf: 0.88, need: "cargo|rust|.rs:|crate|could not compile|   compiling",
		detail: detail{how: after, re: `^\s*(?:Caused by:|(?:required by|location searched|perhaps you meant|candidate versions found|if you are looking|the following|failed to|no matching|process didn't|error: ).*|--> .*)$`, lines: 8},
		yes:    []string{"error: cannot find macro `foo` in this scope", "error: no matching package named `leftpad` found", "error: expected one of `!` or `::`, found `}`", "error: failed to parse manifest at `/x/Cargo.toml`"},
		no:     []string{"error: could not compile `ledger` (bin \"ledger\") due to 1 previous error", "error: aborting due to 2 previous errors", "error: linking with `cc` failed: exit status: 1"},
	},
	{
		name: "cargo.fmt", lits: []string{"diff in "}, re: `^Diff in .+:\d+:$`, conf: 0.85,
		yes: []string{"Diff in /home/ci/w/src/main.rs:1:"},
		no:  []string{"Diff in progress"},
	},
	{
		name: "cargo.test_failed", lits: []string{"... failed", "failed to run custom build command"}, re: `^test (\S+) .*\.\.\. FAILED$|failed to run custom build command`, conf: 0.8, pick: least,
		yes: []string{"test tests::adds ... FAILED"},
		no:  []string{"test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out"},
	},
}
