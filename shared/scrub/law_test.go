package scrub_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/projection"
	"github.com/mneme-ai/mneme/shared/redact"
)

// wordRules mask words, some over a line's end, that are common enough to stand at
// every odd place of a text.
const wordRules = "patterns:\n  - name: word\n    regexp: '\\bqu[a-z]+(?:\\n[a-z]+)?'\n"

var lawTexts = map[string]string{
	"plain":            "We quote the query, and quit.\nNothing here.\nquiet\n",
	"escapes":          "tab\there \"quite\" back\\slash quick \u2028 \x01 quiz\n\"quest\"\n",
	"wide":             "日本語 quorum の文 🙂quota🙂\né quantum é\n",
	"over lines":       "a queue\nwith words and quarks\nin it\nthe rest\n",
	"beside a mark":    "export GITHUB_TOKEN=ghp_a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5f6G7h8 and quite so\nquick\n",
	"around a mark":    "the queue\nghp_a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5f6G7h8 is here\nquality\n",
	"long line":        strings.Repeat("some quiet words and then more of them that fill the line ", 700),
	"many lines":       strings.Repeat("a quiet line\nand another\n", 900),
	"nothing":          "no such word here\n",
	"all":              "quit",
	"carriage returns": "one quid\r\ntwo\r\nthree quilts\r\n",
}

func TestLaws(t *testing.T) {
	t.Parallel()
	for name, text := range lawTexts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			laws(t, text)
		})
	}
}

func FuzzLaws(f *testing.F) {
	for _, text := range lawTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 20_000 || strings.TrimSpace(text) == "" || strings.ContainsAny(text, "<>") { // tags are the reader's own business
			t.Skip("too long, blank, or with tags, which are the reader's business")
		}
		laws(t, text)
	})
}

// laws: of a scrubbed part every citation lies in its object, has the hash of
// its bytes, and reads as the bytes do under the rules; the chunk text is what
// the rules make of the old one; turns and pieces lie in order.
func laws(t *testing.T, text string) {
	t.Helper()
	w := functest.New(t, reference())
	body := functest.Session("s1", day, functest.User(text), functest.Assistant("I have seen it: "+text))
	if _, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", body)); err != nil {
		t.Fatal(err)
	}
	lines := w.Admits("shop")
	if len(lines) == 0 {
		return
	}
	ps, err := redact.ParsePatterns("rules", []byte(wordRules))
	if err != nil {
		t.Fatal(err)
	}
	red := redact.NewWith(functest.TenantKey, redact.Options{Patterns: ps})
	if _, err := w.Bucket.Put(t.Context(), "config/"+functest.Tenant+"/redact.yaml", []byte(wordRules)); err != nil {
		t.Fatal(err)
	}
	out, err := w.Learn.Scrub(t.Context(), "", false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := w.Log.Verify(t.Context(), nil); err != nil || !v.OK {
		t.Fatalf("%v %+v", err, v.Problems)
	}
	for _, line := range lines {
		src, chunks, err := w.Log.Part(t.Context(), "shop", line.Source)
		if err != nil {
			t.Fatal(err)
		}
		for i := range chunks {
			b, err := w.Log.Blob(t.Context(), "shop", chunks[i].SHA256)
			if err != nil {
				t.Fatal(err)
			}
			chunks[i].Text = string(b)
			ordered(t, &chunks[i], int64(len(body)))
			for _, turn := range chunks[i].Turns {
				if got, _ := red.Redact(chunks[i].Text[turn.Start:turn.End]); got != chunks[i].Text[turn.Start:turn.End] && !chunks[i].Split {
					t.Errorf("a turn still holds what the rules mask: %q", chunks[i].Text[turn.Start:turn.End])
				}
			}
		}
		for _, n := range projection.Raw(&line, &src, chunks) {
			for _, o := range n.Occurrences {
				s := o.Span
				raw := body[s.Start:s.End]
				if s.Redacted && memory.HMAC(functest.TenantKey, raw) != s.HMAC || !s.Redacted && memory.Sum(raw) != s.SHA256 {
					t.Errorf("the hash of %q is another (redacted %t)", raw, s.Redacted)
				}
				var plain string
				if err := json.Unmarshal([]byte(`"`+string(raw)+`"`), &plain); err != nil {
					t.Errorf("%q: %v", raw, err)
				}
				if got, _ := red.Redact(plain); got != n.Text[s.ChunkStart:s.ChunkEnd] {
					t.Errorf("the bytes read %q, the chunk %q", got, n.Text[s.ChunkStart:s.ChunkEnd])
				}
			}
		}
	}
	if again, err := w.Learn.Scrub(t.Context(), "", false, nil); err != nil || again.Projects[0].Blobs != 0 {
		t.Errorf("once more finds %+v, %v, after %+v", again.Projects, err, out.Projects)
	}
}

func ordered(t *testing.T, c *memory.Chunk, size int64) {
	t.Helper()
	if c.SHA256 != memory.SumString(c.Text) || c.SizeBytes != len(c.Text) {
		t.Error("the chunk is not its text")
	}
	at, src := 0, int64(0)
	for _, turn := range c.Turns {
		if turn.Start < at || turn.End < turn.Start || turn.End > len(c.Text) {
			t.Fatalf("turn at [%d,%d) after %d of %d", turn.Start, turn.End, at, len(c.Text))
		}
		at = turn.Start
		for _, p := range turn.Pieces {
			if p.C0 < at || p.C1 <= p.C0 || p.C1 > turn.End || p.O0 < src || p.O1 < p.O0 || p.O1 > size {
				t.Fatalf("piece [%d,%d) of bytes [%d,%d) after %d and %d", p.C0, p.C1, p.O0, p.O1, at, src)
			}
			at, src = p.C1, p.O1
			in := p.C0
			for _, s := range p.Seals {
				if s.C0 < in || s.C1 <= s.C0 || s.C1 > p.C1 || s.O0 < p.O0 || s.O1 > p.O1 || s.HMAC == "" {
					t.Fatalf("seal %+v in piece [%d,%d) of bytes [%d,%d)", s, p.C0, p.C1, p.O0, p.O1)
				}
				in = s.C1
			}
		}
		at = turn.End
	}
}
