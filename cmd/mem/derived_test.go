package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// recited gives the forms in which a text comes back: as it is, wrapped anew,
// indented and quoted.
func recited(s string) []string {
	fill := func(width int, prefix string) string {
		var b strings.Builder
		n := width
		for w := range strings.FieldsSeq(s) {
			if n += 1 + len(w); n > width {
				b.WriteString("\n" + prefix)
				n = len(w)
			} else {
				b.WriteByte(' ')
			}
			b.WriteString(w)
		}
		return strings.TrimPrefix(b.String(), "\n")
	}
	return []string{s, fill(40, ""), fill(72, "      "), fill(57, "> "), fill(1<<20, "")}
}

// echoSession is a session in which a person speaks, and texts come back from an
// assistant and from a tool.
func echoSession(t *testing.T, id string, at time.Time, person string, texts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	n := 0
	emit := func(role string, content any) {
		n++
		uuid := fmt.Sprintf("%s-%06d", id, n)
		msg := map[string]any{"role": role, "content": content}
		if role == "assistant" {
			msg["id"], msg["type"], msg["model"] = "msg_"+uuid, "message", "m"
		}
		line, err := json.Marshal(map[string]any{
			"type": role, "uuid": uuid, "parentUuid": nil, "sessionId": id, "timestamp": at.Add(time.Duration(n) * time.Minute).Format(time.RFC3339),
			"cwd": "/home/ada/shop", "version": "2.1.42", "gitBranch": "main", "isSidechain": false, "userType": "external", "message": msg,
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	for i, text := range texts {
		emit("user", person)
		emit("assistant", []any{map[string]any{"type": "text", "text": text}})
		call := fmt.Sprintf("toolu_%s_%d", id, i)
		emit("assistant", []any{map[string]any{"type": "tool_use", "id": call, "name": "Bash", "input": map[string]any{"command": "cat answers.txt"}}})
		emit("user", []any{map[string]any{"type": "tool_result", "tool_use_id": call, "content": text}})
	}
	return b.Bytes()
}

// texts are those of the log's records of a type, over all streams.
func (s *server) texts(kind string) (out []string) {
	s.t.Helper()
	for line := range strings.Lines(s.must("log", "-p", "shop", "--type", kind)) {
		var r struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			s.t.Fatalf("%v\n%s", err, line)
		}
		if r.Type == kind {
			out = append(out, r.Text)
		}
	}
	return out
}

// TestDerived feeds the memory what it gave out for ten rounds, as people's
// tools do: nothing new comes of it. A person who says the same again is heard.
func TestDerived(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	sessions(t, src, 5)
	s := start(t, filepath.Join(t.TempDir(), "d"))
	s.ingest(src)
	evidence, memories := s.texts("evidence"), s.texts("memory")
	if len(evidence) == 0 || len(memories) == 0 {
		t.Fatalf("%d statements and %d memories: nothing is shown", len(evidence), len(memories))
	}
	for round := range 10 {
		texts := s.texts("memory")
		texts = texts[max(0, len(texts)-5):]
		questions := []string{"how many retry attempts are allowed, and why?", "what is our caching policy?", "when may we deploy?"}
		for _, q := range questions {
			texts = append(texts, s.must("query", "-p", "shop", q))
		}
		notes := len(texts)
		for _, q := range questions {
			texts = append(texts, s.must("query", "--json", "-p", "shop", q))
		}
		dir := t.TempDir()
		var forms [][]string
		for _, text := range texts {
			for i, f := range recited(text) {
				if len(forms) <= i {
					forms = append(forms, nil)
				}
				forms[i] = append(forms[i], f)
			}
		}
		for i, f := range forms {
			id := fmt.Sprintf("echo-%d-%d", round, i)
			if err := os.WriteFile(filepath.Join(dir, id+".jsonl"), echoSession(t, id, time.Date(2026, 4, 1+round, 9, 0, 0, 0, time.UTC), "What do we know so far?", f...), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, id+".md"), []byte("# Answers\n\n"+strings.Join(f[:notes], "\n\n## More\n\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s.ingest(dir)
		if got := s.texts("evidence"); len(got) != len(evidence) {
			t.Fatalf("round %d: %d statements, %d before; new:\n%s", round, len(got), len(evidence), strings.Join(got[len(evidence):], "\n"))
		}
		if got := s.texts("memory"); len(got) != len(memories) {
			t.Fatalf("round %d: %d memories, %d before", round, len(got), len(memories))
		}
	}
	dir := t.TempDir()
	said := ""
	for _, e := range evidence {
		if strings.Contains(e, "cache TTL is 3 minutes") { // replaced long ago
			said = e
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "person.jsonl"), echoSession(t, "person", time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC), said, "Understood, noted."), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ingest(dir)
	if got := s.texts("evidence"); len(got) <= len(evidence) {
		t.Errorf("a person said %q again, and nobody heard", said)
	}
	s.verify()
	s.stop()
}
