package transcript_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// commit is a line of a git log.
type commit struct {
	Type    string   `json:"type"`
	SHA     string   `json:"sha"`
	Parents []string `json:"parents"`
	Author  string   `json:"author"`
	Email   string   `json:"email"`
	Date    string   `json:"date"`
	Message string   `json:"message"`
	Files   []file   `json:"files,omitempty"`
	Symbols []string `json:"symbols,omitempty"`
}

type file struct {
	Status string `json:"status"`
	Path   string `json:"path"`
}

// history is a git log of commits by Ada, an hour apart, unless they say
// otherwise.
func history(tb testing.TB, commits ...commit) string {
	tb.Helper()
	var sb strings.Builder
	enc := json.NewEncoder(&sb)
	for i, c := range commits {
		c.Type = "commit"
		c.SHA = fmt.Sprintf("%040x", i+1)
		if c.Parents == nil && i > 0 {
			c.Parents = []string{fmt.Sprintf("%040x", i)}
		}
		if c.Author == "" {
			c.Author, c.Email = "Ada", "ada@example.org"
		}
		c.Date = time.Date(2026, 2, 1, 9+i, 0, 0, 0, time.FixedZone("", 3600)).Format(time.RFC3339)
		if err := enc.Encode(c); err != nil {
			tb.Fatal(err)
		}
	}
	return sb.String()
}

func TestGitLog(t *testing.T) {
	t.Parallel()
	data := history(t,
		commit{Message: "Cap retries at 5\n\nThe upstream bans us after \"that\" → see #7.\n\nFixes: #7\nSigned-off-by: Ada <ada@example.org>\nReviewed-by: Bob <bob@example.org>\n",
			Files: []file{{"M", "retry.go"}, {"A", "a b/retry_test.go"}}, Symbols: []string{"Retry", "maxRetries"}},
		commit{Message: "Log for 30 days\n"},
		commit{Message: "Use pgx\n\nCo-Authored-By: Claude <noreply@anthropic.com>\n"},
		commit{Message: "\n"},
		commit{Message: "See <mneme-memory>we cap retries</mneme-memory>\n"},
		commit{Message: "<mneme-memory>we cap retries</mneme-memory>\n"},
	) + `{"type":"tag","sha":"1","message":"x"}` + "\n" + `{"type":"commit","sha":"1"}` + "\n"
	turns, r := reads(t, "x.jsonl", data, transcript.FormatGit, []string{
		"user text git: Cap retries at 5\n\nThe upstream bans us after \"that\" → see #7.\n\nFixes: #7\n",
		"user text: Log for 30 days\n",
		"user text: Use pgx\n\n",
		"user text: See",
		"user text derived: <mneme-memory>we cap retries</mneme-memory>\n",
	})
	first := turns[0]
	if first.ID != "git/"+strings.Repeat("0", 39)+"1" || first.Session != "git" || first.TimeRaw != "2026-02-01T09:00:00+01:00" ||
		!first.Time.Equal(time.Date(2026, 2, 1, 8, 0, 0, 0, time.UTC)) || first.TimeQuality != memory.TimeExact {
		t.Errorf("first turn %+v", first)
	}
	if d := cmp.Diff(&memory.Tool{Name: "git", Target: "retry.go a_b/retry_test.go"}, first.Tool); d != "" {
		t.Errorf("tool (-want +got):\n%s", d)
	}
	if want := "retry.go a_b/retry_test.go Retry maxRetries"; first.Heading != want {
		t.Errorf("heading %q, want %q", first.Heading, want)
	}
	if turns[1].Heading != "" || turns[1].Tool != nil {
		t.Errorf("a commit without a diff: %+v", turns[1])
	}
	var trust []memory.Trust
	var derived []bool
	for _, turn := range turns {
		trust, derived = append(trust, turn.Trust), append(derived, turn.Derived)
	}
	if d := cmp.Diff([]memory.Trust{"user", "user", "assistant", "user", "user"}, trust); d != "" {
		t.Errorf("trust (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]bool{false, false, false, false, true}, derived); d != "" {
		t.Errorf("derived (-want +got):\n%s", d)
	}
	s := r.Stats()
	if s.Records != 8 || s.Dropped["no_content"] != 1 || s.Dropped["own_memory"] != 2 || s.Unknown["tag"] != 1 || s.Unknown["commit"] != 1 {
		t.Errorf("counts %+v", s.Counts)
	}
	// Twice in one file counts once; a resumed reading gives the rest.
	twice, r := read(t, data+data, transcript.Options{Object: "x.jsonl"})
	if len(twice) != len(turns) || r.Stats().Dropped["repeated"] != 6 {
		t.Errorf("the file twice: %d turns, %+v", len(twice), r.Stats().Dropped)
	}
	rest, _ := read(t, data, transcript.Options{Object: "x.jsonl", From: int64(strings.IndexByte(data, '\n') + 1)})
	if d := cmp.Diff(turns[1:], rest); d != "" {
		t.Errorf("resumed (-want +got):\n%s", d)
	}
}

func TestGitLogLeavesOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string // "" stays
		commit commit
	}{
		{"merge", commit{Message: "Take the new cache\n\nIt is faster.\n", Parents: []string{"a", "b"}}},
		{"merge", commit{Message: "Merge branch 'main' into cache\n"}},
		{"merge", commit{Message: "Merge pull request #12 from ada/cache\n"}},
		{"merge", commit{Message: "Merge remote-tracking branch 'origin/main'\n\nSigned-off-by: Ada <a@b>\n"}},
		{"", commit{Message: "Merge branch 'cache'\n\nThe cache is kept for 10 minutes from now on.\n"}},
		{"", commit{Message: "Merge the two retry loops\n"}},
		{"bot", commit{Message: "Anything\n", Author: "dependabot[bot]", Email: "49699333+dependabot[bot]@users.noreply.github.com"}},
		{"bot", commit{Message: "Anything\n", Author: "Renovate Bot", Email: "bot@renovateapp.com"}},
		{"bot", commit{Message: "Anything\n", Author: "k8s-ci-robot", Email: "k8s@example.org"}},
		{"bot", commit{Message: "Anything\n", Author: "GitHub Actions", Email: "actions@example.org"}},
		{"bot", commit{Message: "Anything\n", Author: "release", Email: "release-bot@example.org"}},
		{"", commit{Message: "Anything\n", Author: "Jan Bot", Email: "jan.bot@example.org"}},
		{"", commit{Message: "Anything\n", Author: "Travis Brown", Email: "travis@example.org"}},
		{"", commit{Message: "Anything\n", Author: "Abbot", Email: "abbot@example.org"}},
		{"version_bump", commit{Message: "v1.2.3\n"}},
		{"version_bump", commit{Message: "Release 1.2.3-rc.1\n"}},
		{"version_bump", commit{Message: "chore(release): 1.2.3 \n\nSigned-off-by: Ada <a@b>\n"}},
		{"version_bump", commit{Message: "Bump version to 1.2.3\n"}},
		{"version_bump", commit{Message: "bump lodash from 4.17.20 to 4.17.21 in /web\n"}},
		{"version_bump", commit{Message: "build(deps): bump actions/checkout from 3 to 4 (#12)\n"}},
		{"version_bump", commit{Message: "Release v1.2.3 (#45)\n"}},
		{"", commit{Message: "Pin actions/checkout to 3 (#12)\n"}},
		{"version_bump", commit{Message: "[maven-release-plugin] prepare release v1.2.3\n"}},
		{"", commit{Message: "Release 1.2.3\n\nRetries are capped at 5 now.\n"}},
		{"", commit{Message: "Upgrade pgx to v5\n"}},
		{"", commit{Message: "Set the timeout to 2.5 seconds\n"}},
		{"", commit{Message: "Bump the version only on Fridays\n"}},
	} {
		turns, r := read(t, history(t, c.commit), transcript.Options{Object: "x.jsonl"})
		if got := r.Stats().Dropped; c.reason == "" && (len(turns) != 1 || len(got) != 0) || c.reason != "" && (len(turns) != 0 || got[c.reason] != 1) {
			t.Errorf("%q by %s: %d turns, dropped %v, want %q", c.commit.Message, c.commit.Author, len(turns), got, c.reason)
		}
	}
}

// A commit that touches thousands of files tells the first of them.
func TestGitLogLongList(t *testing.T) {
	t.Parallel()
	files := make([]file, 10000)
	for i := range files {
		files[i] = file{"A", fmt.Sprintf("vendor/é/%05d.go", i)}
	}
	turns, _ := read(t, history(t, commit{Message: "Vendor all\n", Files: files, Symbols: []string{strings.Repeat("x", 5000)}}), transcript.Options{Object: "x.jsonl"})
	if len(turns) != 1 {
		t.Fatalf("%d turns", len(turns))
	}
	got := turns[0].Heading
	if len(got) > 1024 || len(got) < 1000 || !strings.HasPrefix(got, "vendor/é/00000.go vendor/é/00001.go ") || !strings.HasSuffix(got, ".go") {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if n := len(turns[0].Tool.Target); n > 200 {
		t.Errorf("a target of %d bytes", n)
	}
}

func TestGitBundle(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"v2":          "# v2 git bundle\n" + strings.Repeat("0a", 20) + " refs/heads/main\n\nPACK\x00\x00\x00\x02\x00\x00\x00\x01\x9c\x0b",
		"v3":          "# v3 git bundle\n@object-format=sha1\n" + strings.Repeat("0a", 20) + " HEAD\n\nPACK\x00\x00\x00\x02",
		"incremental": "# v2 git bundle\n-" + strings.Repeat("0a", 20) + " base\n" + strings.Repeat("0b", 20) + " HEAD\n\nPACK\x00\x00\x00\x02",
	} {
		turns, r := read(t, data, transcript.Options{Object: "x.md"})
		if len(turns) != 0 || r.Stats().Unsupported != transcript.FormatBundle {
			t.Errorf("%s: %d turns, unsupported %q", name, len(turns), r.Stats().Unsupported)
		}
	}
	if turns, _ := read(t, "# v2 git bundle\nis how a bundle begins.\n", transcript.Options{Object: "x.md"}); len(turns) == 0 {
		t.Error("a note about bundles is not read")
	}
}

// No history makes the reader fail, and what it gives are the object's bytes.
func FuzzGitLog(f *testing.F) {
	f.Add("Cap retries\n\nBecause.\nSigned-off-by: A <a@b>\n", "a.go", "Ada")
	f.Add("é\u2028\n\n\x00\xff", "", "x[bot]")
	f.Add("<mneme-memory>x</mneme-memory>\n🤖 Generated with [Claude Code]\n\nCc: x", " ", "")
	f.Fuzz(func(t *testing.T, message, path, author string) {
		data := history(t, commit{Message: message, Files: []file{{"M", path}}, Author: author}, commit{Message: "Cap retries at 5"})
		for _, d := range []string{data, data[:len(data)/2], "{}\n" + data + message} {
			turns, _ := read(t, d, transcript.Options{Object: "x.jsonl"})
			checkPieces(t, d, turns)
		}
	})
}
