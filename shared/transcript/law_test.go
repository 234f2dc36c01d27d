package transcript_test

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// checkPieces checks that every piece is the object's bytes: Encoding gives
// them from the text, and the standard decoder gives the text from them.
func checkPieces(tb testing.TB, data string, turns []memory.Turn) {
	tb.Helper()
	ids := map[string]bool{}
	for i, t := range turns {
		if ids[t.ID] || t.ID == "" {
			tb.Fatalf("turn %d: id %q is not unique", i, t.ID)
		}
		ids[t.ID] = true
		if t.From < 0 || t.To > int64(len(data)) || t.From > t.To {
			tb.Fatalf("turn %s: record [%d,%d)", t.ID, t.From, t.To)
		}
		for _, p := range withEdits(tb, &t) {
			if p.Start < 0 || p.End > int64(len(data)) || p.Start > p.End {
				tb.Fatalf("turn %s: piece [%d,%d) of %d bytes", t.ID, p.Start, p.End, len(data))
			}
			raw := data[p.Start:p.End]
			b, err := p.Enc.Append(nil, p.Text, 0, len(p.Text))
			if err != nil {
				tb.Fatalf("turn %s: %v", t.ID, err)
			}
			if string(b) != raw {
				tb.Fatalf("turn %s: encoding gives\n%q, the object has\n%q", t.ID, b, raw)
			}
			want := string([]rune(raw))
			if p.Enc.Codec == memory.CodecJSONString {
				if err := json.Unmarshal([]byte(`"`+raw+`"`), &want); err != nil {
					tb.Fatalf("turn %s: %q: %v", t.ID, raw, err)
				}
			}
			if p.Text != want {
				tb.Fatalf("turn %s: text %q, want %q", t.ID, p.Text, want)
			}
		}
	}
}

// withEdits are the pieces of a turn and of what it edits.
func withEdits(tb testing.TB, t *memory.Turn) []memory.Piece {
	if t.Tool == nil {
		return t.Pieces
	}
	ps := slices.Clone(t.Pieces)
	for _, e := range t.Tool.Edits {
		if e.From < 0 || e.To < e.From || e.To > len(e.Text.Text) || e.Added < 0 || e.Removed < 0 {
			tb.Fatalf("turn %s: edit %+v", t.ID, e)
		}
		if e.Text.Text != "" {
			ps = append(ps, e.Text)
		}
	}
	return ps
}

func TestPiecesOverSamples(t *testing.T) {
	t.Parallel()
	pieces := 0
	for _, f := range sampleFiles(t) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		turns, r := read(t, string(b), transcript.Options{Object: f})
		checkPieces(t, string(b), turns)
		for _, turn := range turns {
			pieces += len(turn.Pieces)
		}
		// The same bytes elsewhere give the same turns, and a resumed reading
		// gives the rest of them.
		again, _ := read(t, string(b), transcript.Options{Object: "other/" + f})
		if !reflect.DeepEqual(turns, again) {
			t.Errorf("%s: read again (-want +got):\n%s", f, cmp.Diff(turns, again))
		}
		if r.Format() != transcript.FormatClaude {
			continue
		}
		half := bytes.IndexByte(b[len(b)/2:], '\n') + len(b)/2 + 1
		rest, r2 := read(t, string(b), transcript.Options{Object: f, From: int64(half)})
		want := turns[len(turns)-len(rest):]
		for i := range want {
			want[i].Abandoned = rest[i].Abandoned // the window begins at From
		}
		if !reflect.DeepEqual(want, rest) {
			t.Errorf("%s: resumed (-want +got):\n%s", f, cmp.Diff(want, rest))
		}
		if sum := memory.Sum(b[:half]); r2.Stats().FromSHA256 != sum {
			t.Errorf("%s: prefix hash %s, want %s", f, r2.Stats().FromSHA256, sum)
		}
		if n := bytes.Count(b[half:], []byte("\n")) + 1; r2.Stats().Lines != n {
			t.Errorf("%s: %d lines after the resume, want %d", f, r2.Stats().Lines, n)
		}
	}
	if pieces < 2000 {
		t.Errorf("only %d pieces", pieces)
	}
}

// seeds are the things that broke other readers (formats.md section 8).
var seeds = []string{
	`{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"lone \ud83d, pair \ud83d\ude00, slash \/, \u00E9 é, nul \u0000, \u2028"}}`,
	`{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"\u00e9\u4e2d\ud83d\ude00\u007f ascii"}}` + "\n\n" + `{"type":"x"}{"type":"y"} {`,
	"{\"type\":\"user\",\"sessionId\":\"s\",\"message\":{\"role\":\"user\",\"content\":\"bad \xff\xc3 utf8 \xed\xa0\x80\u2028\"}}\r\n",
	`{"type":"assistant","sessionId":"s","message":{"id":"m","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls\n"}},3,null,"x"]}}`,
	`{"type":"user","sessionId":"s","uuid":"a","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"The user doesn't want to proceed. To tell you how to proceed, the user said:\nuse tabs"}]}}`,
	`{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":"wait"}` + "\n" + `{"type":"queue-operation","operation":"remove","sessionId":"s"}`,
	`{"type":"queue-operation","operation":"enqueue","sessionId":"s","content":["wait",{"text":"for it"},7]}` + "\n" + `{"type":"queue-operation","operation":"remove","sessionId":"s"}` + "\n" + `{"type":"user","uuid":"u","parentUuid":"p","sessionId":"s","message":{"content":"wait\nfor it"}}`,
	`{"type":"worktree-state","sessionId":"s","worktreeSession":{"originalCwd":"/a","worktreePath":"/b/"}}` + "\n" + `{"type":"system","subtype":"informational","sessionId":"s","cwd":"/b/c","content":"Original prompt: x"}{"type":"attachment","uuid":"a","attachment":{"type":"queued_command","prompt":["x"]}}`,
	`{"type":"session","id":"p","version":3}` + "\n" + `{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":[{"type":"text","text":"<system-reminder>x</system-reminder> hi <mneme-memory a>y</mneme-memory>"}]}}`,
	`{"role":"user","content":["a",{"type":"text","text":"b"}],"ts":1767323045000}`,
	"---\nupdated: 2026-01-05\n---\n# A\r\n\ntext \xff\n\nTitle\n===\n\n```\n# no\n```\n| a | b |\n|---|---|\n",
	"\ufeff# BOM\n", "\x89PNG\r\n\x1a\n\x00\x00", "\x1f\x8b\x08", "\x28\xb5\x2f\xfd\x00", "", "[1,2]\n", "{\"messages\":[]}\n",
	`{"type":"user","type":"user","\u0073essionId":"esc","message":{"role":"user","content":null}}` + "\x00\x00\n",
}

func FuzzRead(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, data string, note bool) {
		object := "x.jsonl"
		if note {
			object = "x.md"
		}
		turns, r := read(t, data, transcript.Options{Object: object, NoteChars: 40})
		s := r.Stats()
		if s.Compression != "" {
			return
		}
		checkPieces(t, data, turns)
		if s.SizeBytes != int64(len(data)) || s.RawSHA256 != memory.SumString(data) {
			t.Fatalf("size %d, hash %s", s.SizeBytes, s.RawSHA256)
		}
		end := strings.LastIndexByte(data, '\n') + 1
		if s.Consumed != int64(end) || s.PrefixSHA256 != memory.SumString(data[:end]) {
			t.Fatalf("consumed %d, want %d", s.Consumed, end)
		}
		// A longer snapshot gives the same turns and more.
		if r.Format() == transcript.FormatClaude && end > 0 {
			part, r := read(t, data[:end], transcript.Options{Object: object})
			if r.Format() == transcript.FormatClaude {
				// A prompt out of the queue gives way to a later record of its text.
				queued := func(t memory.Turn) bool { return strings.Contains(t.ID, "/queue-") }
				part, turns = slices.DeleteFunc(part, queued), slices.DeleteFunc(turns, queued)
				for i := range part {
					if part[i].ID != turns[i].ID {
						t.Fatalf("turn %d: id %s in the prefix, %s in the whole", i, part[i].ID, turns[i].ID)
					}
				}
			}
		}
	})
}

// The scanner takes what encoding/json takes.
func FuzzScan(f *testing.F) {
	for _, s := range append(seeds, `-0.5e+10`, `01`, `1.`, `"\u12"`, `"\x"`, `[1,]`, `{"a":}`, `{"a":1,}`, `tru`, "\"\x1f\"", `[[[[]]]]`, `{"a" : [ 1 , {} ] }`) {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.TrimLeft(b, " \t\r\n")
		end := transcript.ScanValue(b)
		d := json.NewDecoder(bytes.NewReader(b))
		var raw json.RawMessage
		err := d.Decode(&raw)
		if (err == nil) != (end >= 0) {
			// The decoder reads past a number to see its end; an error there
			// is the next value's.
			if end >= 0 && json.Valid(b[:end]) {
				return
			}
			t.Fatalf("%q: scanner %d, decoder %v", b, end, err)
		}
		if err == nil && int64(end) != d.InputOffset() {
			t.Fatalf("%q: scanner ends at %d, decoder at %d", b, end, d.InputOffset())
		}
	})
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for _, n := range []int{9999, 10000, 10001, 200000} {
		b := []byte(strings.Repeat("[", n) + strings.Repeat("]", n))
		if got, want := transcript.ScanValue(b) >= 0, json.Valid(b); got != want {
			t.Errorf("depth %d: scanner %v, encoding/json %v", n, got, want)
		}
	}
}
