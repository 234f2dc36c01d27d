package signature

// dotnet prints each compiler error where it happens and again behind `Build
// FAILED.`, and in square brackets the project that it built.
var dotnetRules = []rule{
	{
		name: "dotnet.code", lits: []string{": error "}, re: `^(?:\S.*\(\d+(?:,\d+)*\)|[A-Za-z]:?[\w./\\ -]+|\S+) ?: error (?:CS|FS|BC|MSB|NU|NETSDK|CA|IDE|SA|RZ|BL|XA|MT|AD)\d+: `, keep: `^(.*?)(?: \[[^\[\]]+proj(?:::[^\]]*)?\])?$`, conf: 0.95, pick: least,
		yes: []string{"/x/Shop/Cart.cs(14,16): error CS0103: The name 'taxx' does not exist in the current context [/x/Shop/Shop.csproj]", "/x/Shop.csproj : error NU1101: Unable to find package Acme.Nope. No packages exist with this id in source(s): feed.example", "MSBUILD : error MSB1003: Specify a project or solution file."},
		no:  []string{"    1 Error(s)", "src/a.ts(1,2): error TS1005: ';' expected."},
	},
	{
		name: "dotnet.test", lits: []string{"failed "}, re: `^\s+(?:\[xUnit\.net [\d:.]+\]\s+)?Failed \S.* \[[^\]]*(?:ms|s|m)\]$`, keep: `Failed (\S.*) \[`, conf: 0.94,
		detail: detail{how: below, re: `^\s*Error Message:`, lines: 3},
		yes:    []string{"  Failed Adds_tax [12 ms]", "  Failed Shop.Tests.CartTests.Adds_tax [< 1 ms]"},
		no:     []string{"Failed!  - Failed:     1, Passed:    14, Skipped:     0, Total:    15", "  Passed Adds_one [3 ms]"},
	},
	{
		name: "dotnet.exception", lits: []string{"unhandled exception"}, re: `^Unhandled exception\. \S`, conf: 0.93,
		yes: []string{"Unhandled exception. System.InvalidOperationException: queue is closed"},
		no:  []string{"   at Shop.Program.Main(String[] args)"},
	},
}
