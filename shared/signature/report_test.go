package signature_test

import "testing"

// TestReports: a report for programs has the signature, and the instance, of
// the lines that the same tool prints for people.
func TestReports(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, tool, plain, form string }{
		{"eslint, full stop", "eslint", "\n/home/ci/a/src/a.js\n  1:1  error  'foo' is not defined  no-undef\n", `[{"filePath":"/home/ci/b/src/a.js","messages":[{"ruleId":"semi","severity":1,"message":"Missing semicolon.","line":1,"column":6},{"ruleId":"no-undef","severity":2,"message":"'foo' is not defined.","line":1,"column":1}]}]`},
		{"jest, matcher", "jest", "FAIL src/a.test.js\n  ● cart › adds\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 3\n    Received: 2\n\nTest Suites: 1 failed, 1 total\n", `{"numFailedTests":1,"testResults":[{"name":"/x/src/a.test.js","status":"failed","message":"","assertionResults":[{"ancestorTitles":["cart"],"fullName":"cart adds","status":"failed","title":"adds","failureMessages":["Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: 3\nReceived: 2\n    at Object.toBe (/x/src/a.test.js:3:9)"]}]}]}`},
		{"vitest", "vitest", "⎯⎯⎯ Failed Tests 1 ⎯⎯⎯\n\n FAIL  a.test.js > cart > adds\nAssertionError: expected 2 to be 3 // Object.is equality\n ❯ a.test.js:4:20\n", `{"numFailedTests":1,"testResults":[{"name":"/x/a.test.js","status":"failed","message":"","assertionResults":[{"ancestorTitles":["cart"],"fullName":"cart adds","status":"failed","title":"adds","failureMessages":["AssertionError: expected 2 to be 3 // Object.is equality\n    at /x/a.test.js:4:20"],"meta":{}}]}]}`},
		{"mocha", "mocha", "\n  0 passing (3ms)\n  1 failing\n\n  1) calc\n       adds:\n     ReferenceError: undefinedFn is not defined\n      at Context.<anonymous> (test/a.js:1:60)\n", "{\n  \"stats\": {\"failures\": 1},\n  \"failures\": [\n    {\"title\": \"adds\", \"fullTitle\": \"calc adds\", \"err\": {\"message\": \"undefinedFn is not defined\", \"stack\": \"ReferenceError: undefinedFn is not defined\\n    at Context.<anonymous> (test/a.js:1:60)\"}}\n  ]\n}\n"},
		{"ruff", "python", "app/db.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n", `[{"cell":null,"code":"F401","filename":"app/db.py","fix":{"applicability":"safe"},"location":{"column":8,"row":1},"message":"` + "`os` imported but unused" + `"}]`},
		{"mypy", "python", "app/db.py:2: error: Incompatible return value type (got \"int\", expected \"str\")  [return-value]\nFound 1 error in 1 file (checked 1 source file)\n", `{"file": "app/db.py", "line": 2, "column": 11, "message": "Incompatible return value type (got \"int\", expected \"str\")", "hint": null, "code": "return-value", "severity": "error"}` + "\n"},
		{"terraform validate", "terraform", "Error: Reference to undeclared input variable\n\n  on main.tf line 1, in output \"x\":\n   1: output \"x\" { value = var.region }\n\nAn input variable with the name \"region\" has not been declared. This\nvariable can be declared with a block.\n", "{\n  \"format_version\": \"1.0\",\n  \"valid\": false,\n  \"diagnostics\": [\n    {\"severity\": \"error\", \"summary\": \"Reference to undeclared input variable\", \"detail\": \"An input variable with the name \\\"region\\\" has not been declared. This variable can be declared with a block.\", \"range\": {\"filename\": \"main.tf\", \"start\": {\"line\": 1}}}\n  ]\n}\n"},
		{"gcc", "gcc", "a.c: In function 'main':\na.c:1:24: error: 'foo' undeclared (first use in this function)\n", `[{"kind": "error", "message": "'foo' undeclared (first use in this function)", "locations": [{"caret": {"file": "a.c", "line": 1, "column": 24}}]}]`},
		{"npm, 404", "npm", "npm error code E404\nnpm error 404 Not Found - GET https://r.example/x - Not found\n", "{\n  \"error\": {\n    \"code\": \"E404\",\n    \"summary\": \"Not Found - GET https://r.example/x - Not found\",\n    \"detail\": \"\"\n  }\n}\n"},
	} {
		want, got := extract(t, c.tool, c.plain), extract(t, c.tool, c.form)
		if got.SigSHA != want.SigSHA || got.DetailSHA != want.DetailSHA || want.Confidence < 0.8 {
			t.Errorf("%s: by %s %q %q, plain by %s %q %q", c.name, got.Rule, got.Normalised, got.Detail, want.Rule, want.Normalised, want.Detail)
		}
	}
}
