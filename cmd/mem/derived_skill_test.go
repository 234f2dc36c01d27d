package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDerivedSkills feeds skills, drafts, their differences, the memories, the synthesis
// and answers back for five rounds: as files, messages, tools' results and pastes,
// wrapped anew, quoted, and stripped of their markers. No statement comes of it, and mem
// verify --derived-filter says the same.
func TestDerivedSkills(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	files := sessions(t, src, 5)
	s := start(t, filepath.Join(t.TempDir(), "d"))
	vault := filepath.Join(t.TempDir(), "vault")
	skill := func(args ...string) string { return s.must(append([]string{"skill", "--vault", vault}, args...)...) }

	s.must(append([]string{"learn", "-p", "shop"}, files[:4]...)...)
	s.must("wait", "--timeout", "120s")
	skill("draft", "--from", "shop/decisions")
	skill("promote", "shop-decisions", "--by", "Ada")
	skill("draft", "--from", "shop")
	skill("promote", "shop-synthesis", "--by", "Ada")
	s.ingest(src) // the skills drift
	evidence, memories := s.texts("evidence"), s.texts("memory")
	if !strings.Contains(skill("list"), "drift: the memory has changed") || len(evidence) == 0 {
		t.Fatalf("nothing is shown: %d statements\n%s", len(evidence), skill("list"))
	}
	for round := range 5 {
		var marked []string // texts that say themselves whose they are
		for _, from := range []string{"shop/decisions", "shop/rules", "shop"} {
			var d struct{ Path string }
			if err := json.Unmarshal([]byte(skill("draft", "--json", "--force", "--from", from, "--name", fmt.Sprintf("round-%d-%s", round, strings.TrimPrefix(strings.ReplaceAll(from, "/", "-"), "-")))), &d); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(d.Path)
			if err != nil {
				t.Fatal(err)
			}
			marked = append(marked, string(text))
		}
		marked = append(marked, skill("show", "shop-decisions"), skill("show", "shop-synthesis"))
		diff, code := s.mem("skill", "diff", "--vault", vault, "shop-decisions")
		if code != 1 || !strings.Contains(diff, "\n+- ") {
			t.Fatalf("diff: exit %d\n%s", code, diff)
		}
		diff = diff[:strings.Index(diff, "mem: take it in")] // what standard error said
		plain := []string{diff, skill("show", "--json", "shop-synthesis")}
		for _, text := range marked { // without the lines that say so
			plain = append(plain, strings.NewReplacer("<!-- mneme:derived kind=skill -->\n", "", "<!-- /mneme:derived -->\n", "").Replace(text[strings.Index(text, "<!-- mneme"):]))
		}
		mems := s.texts("memory")
		plain = append(plain, mems[max(0, len(mems)-3):]...)
		plain = append(plain, s.must("query", "-p", "shop", "how many retry attempts are allowed, and why?"), s.must("query", "--level", "L2", "-p", "shop", "what is our caching policy?"), s.must("synthesis", "-p", "shop"))

		dir := t.TempDir()
		put := func(name string, b []byte) {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Date(2026, 4, 1+round, 9, 0, 0, 0, time.UTC)
		for i, text := range append(marked, plain...) {
			if !strings.HasPrefix(text, "{") { // JSON is no document, whatever the file's name
				put(fmt.Sprintf("back-%d-%d.md", round, i), []byte(text))
			}
			forms := recited(text)
			if round > 0 { // all of them in the first round, then another each time
				forms = forms[round : round+1]
			}
			put(fmt.Sprintf("back-%d-%d.jsonl", round, i), echoSession(t, fmt.Sprintf("back-%d-%d", round, i), at, "What do we know so far?", forms...))
		}
		for i, text := range marked {
			put(fmt.Sprintf("paste-%d-%d.jsonl", round, i), echoSession(t, fmt.Sprintf("paste-%d-%d", round, i), at, "Hold to this skill:\n\n"+text, "I will."))
		}
		s.ingest(dir)
		if got := s.texts("evidence"); len(got) != len(evidence) {
			t.Fatalf("round %d: %d statements, %d before; new:\n%s", round, len(got), len(evidence), strings.Join(got[len(evidence):], "\n"))
		}
		if got := s.texts("memory"); len(got) != len(memories) {
			t.Fatalf("round %d: %d memories, %d before", round, len(got), len(memories))
		}
	}
	out := s.must("verify", "--derived-filter")
	if !strings.Contains(out, ": 0 new evidence") || !strings.Contains(out, "2 skill") || !strings.HasSuffix(out, "ok\n") {
		t.Errorf("verify:\n%s", out)
	}
	var v struct {
		OK     bool `json:"ok"`
		Filter struct {
			OK       bool `json:"ok"`
			Projects []struct{ Fed, Evidence int }
		} `json:"derived_filter"`
	}
	if err := json.Unmarshal([]byte(s.must("verify", "--derived-filter", "--json", "-p", "shop")), &v); err != nil || !v.OK || !v.Filter.OK || len(v.Filter.Projects) != 1 || v.Filter.Projects[0].Fed == 0 || v.Filter.Projects[0].Evidence != 0 {
		t.Errorf("%v: %+v", err, v)
	}
	s.verify()
	s.stop()
}
