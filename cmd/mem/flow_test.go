package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

type result struct {
	SHA256    string  `json:"sha256"`
	Level     string  `json:"level"`
	Project   string  `json:"project"`
	Text      string  `json:"text"`
	Score     float64 `json:"score"`
	Kept      bool    `json:"kept"`
	Citations []struct {
		Object     string `json:"object"`
		ETag       string `json:"etag"`
		Start      int64  `json:"start"`
		End        int64  `json:"end"`
		Codec      string `json:"codec"`
		SHA256     string `json:"sha256"`
		Quote      string `json:"quote"`
		Redacted   bool   `json:"redacted"`
		Chunk      string `json:"chunk"`
		ChunkStart int    `json:"chunk_start"`
		ChunkEnd   int    `json:"chunk_end"`
	} `json:"citations"`
}

func (s *server) query(question string, args ...string) []result {
	s.t.Helper()
	out, code := s.mem(append([]string{"query", "--json", question}, args...)...)
	if code > 1 {
		s.t.Fatalf("query: exit %d\n%s", code, out)
	}
	var a struct {
		Results []result `json:"results"`
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return a.Results
}

// TestFlow is the spine from end to end: learn, query, cite, repeat, rebuild, a
// new question, a folder moved away.
func TestFlow(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	files := sessions(t, src, 5)
	dir := filepath.Join(t.TempDir(), "d")
	s := start(t, dir)
	s.ingest(src)
	first := s.verify()

	t.Run("cited answer", func(t *testing.T) {
		rs := s.query("how many retry attempts are allowed and why?", "-p", "shop")
		if len(rs) == 0 || len(rs[0].Citations) == 0 {
			t.Fatalf("no cited answer: %+v", rs)
		}
		if !strings.Contains(rs[0].Text, "retries") {
			t.Errorf("first answer is %q", rs[0].Text)
		}
		for _, r := range rs {
			if len(r.Citations) == 0 {
				t.Errorf("%s has no citation", r.SHA256)
			}
			for _, c := range r.Citations {
				_, key, _ := strings.Cut(c.Object, "/")
				raw, err := os.ReadFile(filepath.Join(dir, "buckets", "transcripts", filepath.FromSlash(key)))
				if err != nil {
					t.Fatal(err)
				}
				var text string
				if err := json.Unmarshal([]byte(`"`+string(raw[c.Start:c.End])+`"`), &text); err != nil || text != c.Quote {
					t.Errorf("bytes %d-%d decode to %q (%v), quote %q", c.Start, c.End, text, err, c.Quote)
				}
			}
		}
	})
	// A small memory about few things: the question's word stands nearly
	// everywhere in it, and is what the question is about all the same.
	t.Run("short questions of a small memory", func(t *testing.T) {
		for question, want := range map[string]string{
			"how many retry attempts are allowed, and why?": "retries", "how often do we retry?": "retries",
			"what is our caching policy?": "cache TTL", "when may we deploy?": "deploy", "why did tokens look expired?": "clock skew",
		} {
			rs := s.query(question, "-p", "shop")
			if len(rs) == 0 || !rs[0].Kept || !strings.Contains(rs[0].Text, want) {
				t.Errorf("%q: %+v, want %q first", question, rs, want)
			}
		}
	})
	t.Run("nonsense", func(t *testing.T) {
		if rs := s.query("the of and to", "-p", "shop"); len(rs) > 0 {
			t.Errorf("function words alone found %+v", rs)
		}
		out, code := s.mem("query", "-p", "shop", "zorble quux fnordwick blathering")
		if code != 1 || !strings.Contains(out, "nothing is known") {
			t.Errorf("exit %d, %s", code, out)
		}
	})
	t.Run("why", func(t *testing.T) {
		out := s.must("why", "--json", files[0])
		n := 0
		for line := range strings.Lines(out) {
			var g struct {
				Type   string `json:"type"`
				Reason string `json:"reason"`
			}
			if err := json.Unmarshal([]byte(line), &g); err != nil || g.Type != "gate" || g.Reason == "" {
				t.Errorf("%v %s", err, line)
			}
			n++
		}
		if n == 0 {
			t.Error("no gate record")
		}
	})
	t.Run("again under the same and other names", func(t *testing.T) {
		before := s.policyCalls()
		s.ingest(src)
		other := t.TempDir()
		for i, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(other, "copy"+string(rune('a'+i))+".jsonl"), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.ingest(other)
		if after := s.policyCalls(); after != before {
			t.Errorf("%d policy calls for what was known", after-before)
		}
		sameHashes(t, "uploaded again", first, s.verify())
	})
	t.Run("rebuild", func(t *testing.T) {
		var r struct {
			IndexHash   string `json:"index_hash"`
			PolicyCalls int    `json:"policy_calls"`
		}
		if err := json.Unmarshal([]byte(s.must("rebuild", "--json")), &r); err != nil {
			t.Fatal(err)
		}
		if r.PolicyCalls != 0 || r.IndexHash != first.IndexHash {
			t.Errorf("rebuild %+v, want index_hash %s", r, first.IndexHash)
		}
		sameHashes(t, "rebuilt", first, s.verify())
	})
	t.Run("a new question back-fills", func(t *testing.T) {
		s.must("question", "add", "-p", "shop", "databases", "Which databases and drivers are used, and how are they set up?")
		s.must("wait")
		h := s.verify()
		for name, want := range first.Streams {
			if up := strings.Contains(name, "/_synthesis@"); (h.Streams[name] != want) != up {
				t.Errorf("stream %s moved: %v", name, !up)
			}
		}
		if len(h.Streams) != len(first.Streams)+1 {
			t.Errorf("%d streams, want %d", len(h.Streams), len(first.Streams)+1)
		}
		s.must("question", "rm", "-p", "shop", "databases")
	})
	t.Run("a copied folder is the back-up", func(t *testing.T) {
		want := s.query("when may we deploy?", "-p", "shop")
		s.stop()
		moved := filepath.Join(t.TempDir(), "elsewhere")
		if out, err := exec.Command("cp", "-r", dir, moved).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		m := start(t, moved)
		m.must("wait")
		got := m.query("when may we deploy?", "-p", "shop")
		if len(want) == 0 || len(got) != len(want) {
			t.Fatalf("%d answers, want %d", len(got), len(want))
		}
		for i := range want {
			if got[i].SHA256 != want[i].SHA256 {
				t.Errorf("answer %d differs", i)
			}
		}
		m.stop()
	})
}

// TestParallelFacts learns the same kind of fact about five things, one upload
// each: none replaces another.
func TestParallelFacts(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "d"))
	src := t.TempDir()
	ports := map[string]string{"checkout": "8081", "billing": "8082", "search": "9100", "profile": "7007", "cart": "6543"}
	for name, port := range ports {
		text := "We decided that the " + name + " service listens on port " + port + " because the firewall allows it."
		b, err := json.Marshal(map[string]any{
			"type": "user", "uuid": "u-" + name, "sessionId": "s-" + name, "cwd": "/home/ada/shop", "version": "2.1.42",
			"timestamp": "2026-03-0" + string(rune('1'+len(name)%5)) + "T09:00:00.000Z", "isSidechain": false, "parentUuid": nil,
			"message": map[string]any{"role": "user", "content": text},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(src, name+".jsonl"), append(b, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.ingest(src)
	for name, port := range ports {
		rs := s.query("which port does the "+name+" service listen on?", "-p", "shop")
		if len(rs) == 0 || !strings.Contains(rs[0].Text, name) || !strings.Contains(rs[0].Text, port) {
			t.Errorf("%s: first of %d answers is %+v", name, len(rs), rs[:min(1, len(rs))])
		}
	}
	s.stop()
}
