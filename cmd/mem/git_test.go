package main_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	main "github.com/mneme-ai/mneme/cmd/mem"
	"github.com/mneme-ai/mneme/shared/gitlog"
)

func TestReadGitLog(t *testing.T) {
	t.Parallel()
	const out = "\x00aa\x00bb cc\x00Ada\x00ada@x.org\x001769932800 +0100\x00Merge\n\n:100644 not a file\n\x00\n" +
		"\x00bb\x00\x00A\xffda\x00\x001769932800 +0000\x00Subject\n\n  body\xff\n\n\x00\n" +
		"\n" +
		":100644 100644 1111 2222 M\ta b.go\n" +
		":100755 100644 1111 1111 M\tmode.go\n" +
		":100644 000000 1111 0000 D\t\"quo\\\"te\\303\\251.md\"\n" +
		":100644 120000 4444 5555 T\tlink\n" +
		":160000 160000 6666 7777 M\tsub\n" +
		":000000 100644 0000 8888 A\tgone.go\n"
	texts := map[string]string{
		"1111": "func (s *Store) Open() error {\n\ttype Old struct {\n}\n",
		"2222": "func (s *Store) Open() error {\n\ttype New struct {\n}\n",
		"4444": "def was():\n",
		"5555": "target(",
	}
	blob := func(oid string) ([]byte, error) {
		if s, ok := texts[oid]; ok {
			return []byte(s), nil
		}
		if oid != "8888" {
			t.Errorf("asks for %s", oid)
		}
		return nil, nil
	}
	var got []gitlog.Commit
	err := main.ReadGitLog(strings.NewReader(out), blob, func(c gitlog.Commit) error {
		got = append(got, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []gitlog.Commit{
		{Type: "commit", SHA: "aa", Parents: []string{"bb", "cc"}, Author: "Ada", Email: "ada@x.org", Date: "2026-02-01T09:00:00+01:00",
			Message: "Merge\n\n:100644 not a file\n", Files: []gitlog.File{}, Symbols: []string{}},
		{Type: "commit", SHA: "bb", Parents: []string{}, Author: "A\uFFFDda", Date: "2026-02-01T08:00:00+00:00", Message: "Subject\n\n  body\uFFFD\n",
			Files: []gitlog.File{{Status: "M", Path: "a b.go"}, {Status: "M", Path: "mode.go"}, {Status: "D", Path: "quo\"teé.md"},
				{Status: "T", Path: "link"}, {Status: "M", Path: "sub"}, {Status: "A", Path: "gone.go"}},
			Symbols: []string{"Open", "Old", "New", "was"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("commits (-want +got):\n%s", d)
	}
	if err := main.ReadGitLog(strings.NewReader(out[:20]), blob, func(gitlog.Commit) error { return nil }); err == nil {
		t.Error("a log that is cut off in a header is no error")
	}
	stop := errors.New("stop")
	if err := main.ReadGitLog(strings.NewReader(out), blob, func(gitlog.Commit) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the writer's error is lost: %v", err)
	}
	broken := func(string) ([]byte, error) { return nil, stop }
	if err := main.ReadGitLog(strings.NewReader(out), broken, func(gitlog.Commit) error { return nil }); !errors.Is(err, stop) {
		t.Errorf("the error of reading a text is lost: %v", err)
	}
}

// No output of git makes the reader fail to end or give invalid text.
func FuzzReadGitLog(f *testing.F) {
	f.Add("\x00aa\x00bb cc\x00Ada\x00a\x00d\x00Subject\n\nbody\x00\n\n:1 2 a b M\tx\n\n@@ -1 @@ func x()\n+type Y\n")
	f.Add("\x00")
	f.Add("\n\n:\t\n::\t\n:x\t\"\\777\"\n:100644 100644 a b M\t\"\\777\"\n:1 2 3 4 \t\n")
	f.Fuzz(func(t *testing.T, out string) {
		n := 0
		blob := func(oid string) ([]byte, error) { return []byte(oid), nil }
		err := main.ReadGitLog(strings.NewReader(out), blob, func(c gitlog.Commit) error {
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
