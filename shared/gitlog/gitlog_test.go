package gitlog_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/gitlog"
)

// What is a declaration, in the languages that people use most.
func TestDeclarations(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"func Open(name string) error {":                "Open",
		"func (a *app) learnGit(ctx context.Context) {": "learnGit",
		"type Store struct {":                           "Store",
		"    def retry(self, n=5):":                     "retry",
		"    async def fetch(self):":                    "fetch",
		"class RetryPolicy(Base):":                      "RetryPolicy",
		"pub(crate) async fn connect(url: &str) {":      "connect",
		"impl<T> Cache<T> {":                            "Cache",
		"export default function App() {":               "App",
		"export interface Props {":                      "Props",
		"public static int parse(String s) {":           "parse",
		"  private List<String> names(int a, int b) {":  "names",
		"static int parse(const char *s)":               "parse",
		"public final class Main {":                     "Main",
		"CREATE TABLE IF NOT EXISTS orders (":           "orders",
		"const maxAttempts = 5":                         "maxAttempts",
		"\tconst inner = 5":                             "",
		"module Billing":                                "Billing",
		"sub frobnicate {":                              "frobnicate",
		"interface ${":                                  "",
		"\treturn parse(s)":                             "",
		"return parse(s) {":                             "",
		"if ready(x) {":                                 "",
		"} else if ready(x) {":                          "",
		"\tfoo(bar)":                                    "",
		"// the function that opens it (see below)":     "",
		"": "",
		"func " + strings.Repeat("x", 2000) + "() {":     "",
		"func (s *Store) \xff() {":                       "",
		"type " + strings.Repeat("(", 500) + "x":         "",
		strings.Repeat("a ", 500) + "(" + "name(x) {":    "",
		"SELECT count(*) FROM a WHERE b(c) -- no symbol": "",
	} {
		var s gitlog.Symbols
		s.Touched("A", "x", nil, []byte(line+"\n"))
		if got := strings.Join(s.List(), " "); got != want {
			t.Errorf("%.60q: %q, want %q", line, got, want)
		}
	}
}

func TestSymbols(t *testing.T) {
	t.Parallel()
	const before = "package x\n\ntype Kept struct{}\n\nfunc Open() {\n\tone()\n\ttwo()\n}\n\nfunc Close() {\n\tthree()\n}\n"
	tests := map[string]struct {
		status, name  string
		before, after string
		want          string
	}{
		"stands in":                {"M", "x.go", before, strings.Replace(before, "two", "four", 1), "Open"},
		"the nearest before":       {"M", "x.go", before, strings.Replace(before, "three", "four", 1), "Close"},
		"new, under what precedes": {"M", "x.go", before, strings.Replace(before, "func Close", "func Sync() {\n}\n\nfunc Close", 1), "Open Sync"},
		"moved":                    {"M", "x.go", "func Aa() {}\nfunc Bb() {}\nfunc Cc() {}\n", "func Bb() {}\nfunc Cc() {}\nfunc Aa() {}\n", "Aa Cc"},
		"added":                    {"A", "x.go", "", before, "Kept Open Close"},
		"deleted":                  {"D", "x.go", before, "", "Kept Open Close"},
		"a link now":               {"T", "x.go", before, "func Open() {", "Kept Open Close"},
		"equal":                    {"M", "x.go", before, before, ""},
		"prose":                    {"A", "x.MD", "", before, ""},
		"binary":                   {"M", "x.go", before, "type New struct{}\n\x00", ""},
		"too long":                 {"A", "x.go", "", "type New struct{}\n" + strings.Repeat("x", gitlog.MaxBlobBytes), ""},
		"only the end is missing":  {"M", "x.go", "type A struct{}", "type A struct{}\n", ""},
		"CRLF":                     {"M", "x.go", "func Aa() {\r\n\tx\r\n", "func Aa() {\r\n\ty\r\n", "Aa"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s gitlog.Symbols
			var a, b []byte
			if tc.status != "A" {
				a = []byte(tc.before)
			}
			if tc.status != "D" {
				b = []byte(tc.after)
			}
			s.Touched(tc.status, tc.name, a, b)
			if got := strings.Join(s.List(), " "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	var many gitlog.Symbols
	var text strings.Builder
	for i := range 3 * gitlog.MaxSymbols {
		fmt.Fprintf(&text, "type T%d struct{}\n", i)
	}
	many.Touched("A", "x.go", nil, []byte(text.String()))
	if n := len(many.List()); n != gitlog.MaxSymbols || !many.Full() {
		t.Errorf("%d symbols", n)
	}
}

func TestDate(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"1769932800 +0100":     "2026-02-01T09:00:00+01:00",
		"1769932800 -0330":     "2026-02-01T04:30:00-03:30",
		"1769932800 +0000":     "2026-02-01T08:00:00+00:00",
		"1769932800":           "2026-02-01T08:00:00+00:00",
		"1769932800 +51800":    "2026-02-01T08:00:00+00:00",
		"1769932800 +0099":     "2026-02-01T08:00:00+00:00",
		"0 +0000":              "1970-01-01T00:00:00+00:00",
		"253370764799 +2359":   "9999-01-01T23:58:59+23:59",
		"253370764800 +0000":   "",
		"-62135596801 +0000":   "",
		"99999999999999999999": "",
		"":                     "",
		"noon":                 "",
	} {
		if got := gitlog.Date(raw); got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	c := gitlog.New(gitlog.Header{SHA: "9f2c", Author: "A\xff", Email: "<a>", Date: "1769932800 +0100", Message: "\n Cap & go\n\nwhy\n\n"})
	for i := range 2 * gitlog.MaxFiles {
		if ok := c.Touch("M", fmt.Sprint(i)); ok != (i < gitlog.MaxFiles) {
			t.Fatalf("file %d: %v", i, ok)
		}
	}
	c.Files = c.Files[:1]
	var out bytes.Buffer
	if err := gitlog.NewEncoder(&out).Encode(c); err != nil {
		t.Fatal(err)
	}
	want := `{"type":"commit","sha":"9f2c","parents":[],"author":"A�","email":"<a>","date":"2026-02-01T09:00:00+01:00",` +
		`"message":"Cap & go\n\nwhy\n","files":[{"status":"M","path":"0"}],"symbols":[]}` + "\n"
	want = strings.Replace(want, `\uFFFD`, "\uFFFD", 1)
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("line (-want +got):\n%s", d)
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"shop": "shop.git-log.jsonl", "shop.git": "shop.git-log.jsonl", "shop.bundle": "shop.git-log.jsonl",
		"shop.bundle.gz": "shop.git-log.jsonl", ".git": "repository.git-log.jsonl", "/": "repository.git-log.jsonl",
	} {
		if got := gitlog.FileName(base); got != want {
			t.Errorf("%q: %q, want %q", base, got, want)
		}
	}
}
