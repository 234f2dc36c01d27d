package compress_test

import "github.com/mneme-ai/mneme/shared/compress"

// blindTests are logs of what runs tests.
func blindTests() []blind {
	const l = compress.Log
	return []blind{
		{"test: pytest", "pytest.log", "============================= test session starts ==============================\nplatform linux -- Python 3.12.1, pytest-8.1.0\ncollected 801 items\n\n" + times(801, func(i int) string {
			return sp("tests/test_%s.py::test_case_%d %s\n", name(i/40), i, at(i, 432, "FAILED", "PASSED")+sp(" [%3d%%]", i/8))
		}) + "\n=================================== FAILURES ===================================\n________________________________ test_case_432 _________________________________\n\n    def test_case_432():\n        cart = Cart()\n        cart.add(3)\n>       assert cart.total() == 9.99\nE       assert 9.989999999999998 == 9.99\nE        +  where 9.989999999999998 = total()\n\ntests/test_cart.py:77: AssertionError\n=========================== short test summary info ============================\nFAILED tests/test_cart.py::test_case_432 - assert 9.989999999999998 == 9.99\n======================== 1 failed, 800 passed in 12.31s ========================\n", []string{"E       assert 9.989999999999998 == 9.99", "tests/test_cart.py:77: AssertionError", "1 failed, 800 passed"}, .2, l},
		{"test: pytest, all well", "green.log", "============================= test session starts ==============================\ncollected 640 items\n\n" + times(640, func(i int) string { return sp("tests/test_%s.py::test_error_case_%d PASSED\n", name(i/40), i) }) + "\n============================= 640 passed in 9.31s ==============================\n", []string{"640 passed in 9.31s"}, .2, l},
		{"test: go, all well", "gotest.log", times(400, func(i int) string { return sp("ok  \texample.org/shop/%s/p%d\t0.%03ds\n", name(i), i, i) }), []string{"ok  \texample.org/shop/" + name(399) + "/p399"}, .2, l},
		{"test: go, one of many", "gofail.log", times(250, func(i int) string {
			if i == 140 {
				return "--- FAIL: TestLedger (0.02s)\n    --- FAIL: TestLedger/closing (0.00s)\n        ledger_test.go:58: closing(2026-02) = 12.01, want 12.04\nFAIL\nFAIL\texample.org/shop/ledger\t0.031s\n"
			}
			return sp("ok  \texample.org/shop/%s/p%d\t0.%03ds\n", name(i), i, i)
		}) + "FAIL\n", []string{"--- FAIL: TestLedger/closing", "ledger_test.go:58: closing(2026-02) = 12.01, want 12.04", "FAIL\texample.org/shop/ledger"}, .2, l},
		{"test: jest", "jest.log", times(120, func(i int) string {
			return sp("PASS src/%s/%s.%d.test.ts (%d.2 s)\n  console.log\n    rendered %d\n\n", name(i), name(i+1), i, i%5, i)
		}) + "FAIL src/cart/cart.test.ts\n  ● cart › keeps the discount\n\n    expect(received).toEqual(expected) // deep equality\n\n    Expected: 8.5\n    Received: 10\n\n      39 |   const c = cart(10, .15)\n    > 40 |   expect(c.total).toEqual(8.5)\n         |                   ^\n\n      at Object.toEqual (src/cart/cart.test.ts:40:19)\n\nTest Suites: 1 failed, 120 passed, 121 total\nTests:       1 failed, 611 passed, 612 total\nSnapshots:   0 total\nTime:        31.1 s\n", []string{"● cart › keeps the discount", "Expected: 8.5", "Received: 10", "cart.test.ts:40:19", "1 failed, 120 passed"}, .35, l},
		{"test: rspec", "rspec.log", times(40, func(i int) string {
			return sp("%s\n  behaves\n  answers %d\n  keeps its state\n", name(i), i)
		}) + "Cart\n  adds up (FAILED - 1)\n\nFailures:\n\n  1) Cart adds up\n     Failure/Error: expect(cart.sum).to eq(7)\n\n       expected: 7\n            got: 6\n\n       (compared using ==)\n     # ./spec/cart_spec.rb:19:in `block (2 levels) in <top (required)>'\n\nFinished in 2.1 seconds (files took 0.9 seconds to load)\n121 examples, 1 failure\n\nFailed examples:\n\nrspec ./spec/cart_spec.rb:18 # Cart adds up\n", []string{"Failure/Error: expect(cart.sum).to eq(7)", "got: 6", "121 examples, 1 failure", "cart_spec.rb:19"}, .6, l},
		{"test: phpunit", "phpunit.log", "PHPUnit 10.5.1 by Sebastian Bergmann and contributors.\n\nRuntime:       PHP 8.3.0\n\n" + times(40, func(i int) string {
			return at(i, 22, "............................F...................................  ", "................................................................  ") + sp("%d / 2560 (%d%%)\n", 64*(i+1), i*100/40)
		}) + "\nTime: 00:03.310, Memory: 44.00 MB\n\nThere was 1 failure:\n\n1) Shop\\CartTest::testSum\nFailed asserting that 6 matches expected 7.\n\n/app/tests/CartTest.php:41\n\nFAILURES!\nTests: 2560, Assertions: 7001, Failures: 1.\n", []string{"Failed asserting that 6 matches expected 7.", "CartTest.php:41", "Failures: 1."}, .4, l},
		{"test: playwright", "pw.log", "Running 90 tests using 4 workers\n\n" + times(89, func(i int) string {
			return sp("  ✓  %d [chromium] › e2e/%s.spec.ts:%d:5 › page %d opens (%d.%ds)\n", i, name(i), i+3, i, i%3, i%9)
		}) + "  ✘  90 [chromium] › e2e/pay.spec.ts:12:5 › pays (30.0s)\n\n  1) [chromium] › e2e/pay.spec.ts:12:5 › pays\n\n    Test timeout of 30000ms exceeded.\n\n    Error: locator.click: Test timeout of 30000ms exceeded.\n    Call log:\n      - waiting for getByRole('button', { name: 'Pay now' })\n\n      14 |   await page.goto('/pay')\n    > 15 |   await page.getByRole('button', { name: 'Pay now' }).click()\n         |                                                       ^\n        at /w/e2e/pay.spec.ts:15:55\n\n  1 failed\n    [chromium] › e2e/pay.spec.ts:12:5 › pays\n  89 passed (1.2m)\n", []string{"Test timeout of 30000ms exceeded", "waiting for getByRole('button', { name: 'Pay now' })", "pay.spec.ts:15:55", "89 passed"}, .4, l},
		{"test: surefire", "surefire.log", times(90, func(i int) string {
			return sp("[INFO] Running org.shop.%s.T%dTest\n[INFO] Tests run: %d, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.%d s -- in org.shop.%s.T%dTest\n", name(i), i, i%9+1, i, name(i), i)
		}) + "[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.2 s <<< FAILURE! -- in org.shop.pay.RoundTest\n[ERROR] org.shop.pay.RoundTest.half -- Time elapsed: 0.01 s <<< FAILURE!\norg.opentest4j.AssertionFailedError: expected: <2.68> but was: <2.67>\n\tat org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:38)\n\tat org.shop.pay.RoundTest.half(RoundTest.java:29)\n" + times(40, func(i int) string {
			return sp("[INFO] Running org.shop.%s.U%dTest\n[INFO] Tests run: %d, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.%d s -- in org.shop.%s.U%dTest\n", name(i), i, i%9+1, i, name(i), i)
		}) + "[INFO] Results:\n[INFO] \n[ERROR] Failures: \n[ERROR]   RoundTest.half:29 expected: <2.68> but was: <2.67>\n[INFO] \n[ERROR] Tests run: 640, Failures: 1, Errors: 0, Skipped: 0\n[INFO] BUILD FAILURE\n", []string{"expected: <2.68> but was: <2.67>", "RoundTest.java:29", "Tests run: 640, Failures: 1"}, .3, l},
		{"test: TAP", "tap.log", "TAP version 13\n" + times(500, func(i int) string {
			if i == 301 {
				return "not ok 302 - rounds half to even\n  ---\n  operator: equal\n  expected: 2\n  actual:   3\n  at: Test.<anonymous> (/w/round.js:8:5)\n  ...\n"
			}
			return sp("ok %d - should handle error %d\n", i+1, i)
		}) + "\n1..500\n# tests 500\n# pass  499\n# fail  1\n", []string{"not ok 302 - rounds half to even", "expected: 2", "actual:   3", "# fail  1"}, .2, l},
		{"test: ctest", "ctest.log", times(200, func(i int) string {
			return sp("        Start %3d: unit_%s_%d\n%d/201 Test #%d: unit_%s_%d ...................   Passed    0.0%d sec\n", i+1, name(i), i, i+1, i+1, name(i), i, i%10)
		}) + "        Start 201: geo_hull\n201/201 Test #201: geo_hull .......................***Exception: SegFault  0.11 sec\n\n99% tests passed, 1 tests failed out of 201\n\nTotal Test time (real) =   9.20 sec\n\nThe following tests FAILED:\n\t201 - geo_hull (SEGFAULT)\nErrors while running CTest\n", []string{"geo_hull (SEGFAULT)", "1 tests failed out of 201"}, .2, l},
		{"test: sanitizer", "asan.log", times(150, func(i int) string {
			return sp("[ RUN      ] Hull.Case%d\n[       OK ] Hull.Case%d (%d ms)\n", i, i, i%7)
		}) + "[ RUN      ] Hull.Empty\n=================================================================\n==4711==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000018 at pc 0x55a bp 0x7ff sp 0x7fe\nREAD of size 8 at 0x602000000018 thread T0\n    #0 0x55a1 in geo::area(geo::Hull const&) /w/src/geo/hull.cc:44:12\n    #1 0x55a2 in Hull_Empty_Test::TestBody() /w/test/hull_test.cc:18:3\n    #2 0x55a3 in testing::Test::Run() /w/gtest/gtest.cc:2687\n\n0x602000000018 is located 0 bytes after 8-byte region [0x602000000010,0x602000000018)\nSUMMARY: AddressSanitizer: heap-buffer-overflow /w/src/geo/hull.cc:44:12 in geo::area(geo::Hull const&)\nShadow bytes around the buggy address:\n" + times(12, func(i int) string {
			return sp("  0x0c047fff%04x: fa fa fd fd fa fa fd fd fa fa fd fd fa fa fd fd\n", i*16)
		}) + "==4711==ABORTING\n", []string{"AddressSanitizer: heap-buffer-overflow", "hull.cc:44:12", "[ RUN      ] Hull.Empty"}, .35, l},
		{"test: vitest", "vitest.log", " RUN  v2.1.0 /w\n\n" + times(90, func(i int) string {
			return sp(" ✓ src/%s/%d.test.ts (%d tests) %dms\n", name(i), i, i%9+1, i%40)
		}) + " ❯ src/cart.test.ts (5 tests | 1 failed) 12ms\n   × cart > keeps the discount 4ms\n     → expected 10 to be 8.5 // Object.is equality\n\n⎯⎯⎯⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯⎯⎯⎯\n\n FAIL  src/cart.test.ts > cart > keeps the discount\nAssertionError: expected 10 to be 8.5 // Object.is equality\n\n- Expected\n+ Received\n\n- 8.5\n+ 10\n\n ❯ src/cart.test.ts:40:19\n     38|   const c = cart(10, .15)\n     40|   expect(c.total).toBe(8.5)\n\n Test Files  1 failed | 90 passed (91)\n      Tests  1 failed | 455 passed (456)\n   Duration  4.10s\n", []string{"expected 10 to be 8.5", "src/cart.test.ts:40:19", "1 failed | 90 passed (91)"}, .45, l},
		{"test: unittest", "unit.log", times(300, func(i int) string {
			return sp("test_%s_%d (tests.%s.T) ... %s\n", name(i), i, name(i), at(i, 200, "ERROR", "ok"))
		}) + "\n======================================================================\nERROR: test_" + name(200) + "_200 (tests." + name(200) + ".T)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/w/tests/t.py\", line 51, in test\n    load('rates.csv')\n  File \"/w/shop/rates.py\", line 9, in load\n    return open(p).read().split()[3]\nIndexError: list index out of range\n\n----------------------------------------------------------------------\nRan 300 tests in 1.204s\n\nFAILED (errors=1)\n", []string{"IndexError: list index out of range", "rates.py\", line 9", "FAILED (errors=1)"}, .25, l},
	}
}
