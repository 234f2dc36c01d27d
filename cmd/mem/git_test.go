package main_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	main "github.com/mneme-ai/mneme/cmd/mem"
)

func TestReadGitLog(t *testing.T) {
	t.Parallel()
	const out = "\x00aa\x00bb cc\x00Ada\x00ada@x.org\x002026-02-01T09:00:00+01:00\x00Merge\n\n:100644 not a file\n+func notOne()\n\x00\n" +
		"\x00bb\x00\x00A\xffda\x00\x002026-02-01T08:00:00Z\x00Subject\n\n  body\xff\n\n\x00\n" +
		"\n" +
		":000000 100644 0000000 1111111 A\ta b.go\n" +
		":100644 000000 1111111 0000000 D\t\"quo\\\"te\\303\\251.md\"\n" +
		"\n" +
		"diff --git a/a b.go b/a b.go\nnew file mode 100644\nindex 0000000..1111111\n--- /dev/null\n+++ b/a b.go\n" +
		"@@ -10,2 +12 @@ func (s *Store) Open(ctx context.Context) error {\n" +
		"-type Old struct {\n+type New struct {\n+\treturn call(x)\n+func Generic[T any](x T) {\r\n" +
		"+\t\x00func odd()\n" +
		"+" + "func " + "zz" + "(" + "LONG" + "\n" +
		"\\ No newline at end of file\n" +
		"diff --git \"a/quo\\\"te.md\" \"b/quo\\\"te.md\"\n--- \"a/quo\\\"te.md\"\n+++ /dev/null\n@@ -1 +0,0 @@ class Prose\n-class of its own\n"
	var got []main.GitCommit
	err := main.ReadGitLog(strings.NewReader(strings.Replace(out, "LONG", strings.Repeat("x", 1<<20), 1)), func(c main.GitCommit) error {
		got = append(got, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []main.GitCommit{
		{Type: "commit", SHA: "aa", Parents: []string{"bb", "cc"}, Author: "Ada", Email: "ada@x.org", Date: "2026-02-01T09:00:00+01:00",
			Message: "Merge\n\n:100644 not a file\n+func notOne()\n", Files: []main.GitFile{}, Symbols: []string{}},
		{Type: "commit", SHA: "bb", Parents: []string{}, Author: "A\uFFFDda", Date: "2026-02-01T08:00:00Z", Message: "Subject\n\n  body\uFFFD\n",
			Files:   []main.GitFile{{Status: "A", Path: "a b.go"}, {Status: "D", Path: "quo\"teé.md"}},
			Symbols: []string{"Open", "Old", "New", "Generic", "zz"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("commits (-want +got):\n%s", d)
	}
	if err := main.ReadGitLog(strings.NewReader(out[:20]), func(main.GitCommit) error { return nil }); err == nil {
		t.Error("a log that is cut off in a header is no error")
	}
	stop := errors.New("stop")
	if err := main.ReadGitLog(strings.NewReader(out), func(main.GitCommit) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the writer's error is lost: %v", err)
	}
}

// What is a declaration, in the languages that people use most.
func TestGitSymbols(t *testing.T) {
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
		out := "\x00aa\x00\x00A\x00\x00\x00S\x00\n\ndiff --git a/x b/x\n+" + line + "\n"
		var got []string
		if err := main.ReadGitLog(strings.NewReader(out), func(c main.GitCommit) error { got = c.Symbols; return nil }); err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%.60q: %q, want %q", line, got, want)
		}
	}
}

// No output of git makes the reader fail to end or give invalid text.
func FuzzReadGitLog(f *testing.F) {
	f.Add("\x00aa\x00bb cc\x00Ada\x00a\x00d\x00Subject\n\nbody\x00\n\n:1 2 a b M\tx\n\n@@ -1 @@ func x()\n+type Y\n")
	f.Add("\x00")
	f.Add("\n\n:\t\n@@ @@ \n+\n-\n:x\t\"\\777\"\n")
	f.Fuzz(func(t *testing.T, out string) {
		n := 0
		err := main.ReadGitLog(strings.NewReader(out), func(c main.GitCommit) error {
			n++
			for _, s := range append([]string{c.SHA, c.Author, c.Email, c.Date, c.Message}, c.Symbols...) {
				if strings.ToValidUTF8(s, "") != s {
					t.Fatalf("%q is no UTF-8", s)
				}
			}
			for _, x := range c.Files {
				if strings.ToValidUTF8(x.Path+x.Status, "") != x.Path+x.Status {
					t.Fatalf("%q is no UTF-8", x)
				}
			}
			if len(c.Files) > 100 || len(c.Symbols) > 100 {
				t.Fatalf("%d files, %d symbols", len(c.Files), len(c.Symbols))
			}
			return nil
		})
		if err == nil && n > strings.Count(out, "\x00") {
			t.Fatalf("%d commits", n)
		}
	})
}
