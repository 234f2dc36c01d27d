package projection_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/projection"
)

var day = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

// TestSupersession: the record that was admitted later names the other
// statement; which of the two replaces which follows from their places alone.
func TestSupersession(t *testing.T) {
	t.Parallel()
	node := func(s string) memory.SHA { return memory.SumString(s) }
	at := memory.Place{Time: day, Admit: 5, I: 1, Start: 10}
	move := func(f func(p *memory.Place)) memory.Place { p := at; f(&p); return p }
	tests := map[string]struct {
		other memory.Place
		node  memory.SHA
		newer bool // this record is the newer
	}{
		"older by time":            {move(func(p *memory.Place) { p.Time = day.Add(-time.Hour) }), node("b"), true},
		"newer by time":            {move(func(p *memory.Place) { p.Time = day.Add(time.Hour) }), node("b"), false},
		"newer, admitted earlier":  {move(func(p *memory.Place) { p.Time, p.Admit = day.Add(time.Hour), 1 }), node("b"), false},
		"older, admitted later":    {move(func(p *memory.Place) { p.Time, p.Admit = day.Add(-time.Hour), 9 }), node("b"), true},
		"one time, part before":    {move(func(p *memory.Place) { p.Admit = 4 }), node("b"), true},
		"one part, chunk after":    {move(func(p *memory.Place) { p.I = 2 }), node("b"), false},
		"one chunk, offset before": {move(func(p *memory.Place) { p.Start = 3 }), node("b"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seg := &eventlog.Segment{
				Header: eventlog.Header{Tenant: "local", Project: "shop", Stream: "rules@00000000", Seq: 1},
				Records: []eventlog.Record{&memory.Evidence{
					Level: memory.L0, T: 3, Node: node("a"), Text: "a", TextSHA: node("a"), Place: at,
					Supersedes: []memory.Occurrence{{Node: tc.node, T: 1, Place: tc.other}, {Node: node("a"), T: 1, Place: tc.other}},
				}},
			}
			got := projection.Nodes(seg, nil)[0]
			var want, by []memory.SHA
			if tc.newer {
				want = []memory.SHA{tc.node}
			} else {
				by = []memory.SHA{tc.node}
			}
			if diff := cmp.Diff(want, got.Supersedes); diff != "" {
				t.Errorf("supersedes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(by, got.SupersededBy); diff != "" {
				t.Errorf("superseded by (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNodes: the rows of a real stream are valid ones, and carry what an answer
// needs.
func TestNodes(t *testing.T) {
	t.Parallel()
	w := functest.New(t, functest.Options{})
	w.Ask("shop", "decisions")
	w.Learned("shop/a.jsonl", functest.Long("s1", day, 2))
	stream := memory.StreamName("decisions", functest.Wording("decisions"))
	l0, l1 := 0, 0
	for seg, err := range w.Log.Segments(t.Context(), "shop", stream, 0) {
		if err != nil {
			t.Fatal(err)
		}
		nodes := projection.Nodes(&seg, nil)
		b := index.Batch{Tenant: "local", Project: "shop", Stream: stream, Space: w.Space.ID, Seq: seg.Header.Seq, Nodes: nodes}
		if err := index.Validate(&b, 0); err != nil {
			t.Error(err)
		}
		for _, n := range nodes {
			if n.QueryID != "decisions" || n.Project != "shop" || n.Stream != stream {
				t.Errorf("%+v", n)
			}
			switch n.Level {
			case memory.L0:
				l0++
				if len(n.Occurrences) != 1 || n.Occurrences[0].Quote != n.Text || n.SourceTime == nil {
					t.Errorf("%+v", n)
				}
			case memory.L1:
				l1++
				if len(n.Parents) == 0 {
					t.Errorf("memory %s rests on nothing", n.ID.Short())
				}
			}
		}
	}
	if l0 < 2 || l1 < 1 {
		t.Errorf("%d evidence and %d memory nodes", l0, l1)
	}
}

// hostile are texts that a paragraph cut must survive.
var hostile = map[string][]string{
	"short":             {"Use pgx."},
	"paragraphs":        {strings.Repeat("A sentence of some length that stands on a line.\n", 60)},
	"one long line":     {strings.Repeat("word ", 2000)},
	"blank lines":       {"a\n\n\n\nb\r\n\r\n" + strings.Repeat("\n", 900) + "c"},
	"wide runes":        {strings.Repeat("日本語の文章です。\n", 120)},
	"no line at all":    {strings.Repeat("🙂", 700)},
	"a secret":          {"Before it.\nexport API_TOKEN=sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH\nAfter it."},
	"secrets all over":  {strings.Repeat("key AKIA"+"QZWXECRVTBYNUM23 and some words around it that fill the line\nplain words\n", 40)},
	"a secret in a row": {strings.Repeat("long words ", 100) + "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U " + strings.Repeat("more words ", 100)},
	"escapes":           {"tab\there \"quoted\" back\\slash \u2028 \x01 control\n" + strings.Repeat("\\n literal\n", 100)},
	"several turns":     {"one", strings.Repeat("two\n", 400), "three"},
}

// TestRawLaws: every citation of a raw row lies in one piece of one turn, never
// cuts a seal, has source bytes that hash as it says, and all text that can be
// cited is covered once.
func TestRawLaws(t *testing.T) {
	t.Parallel()
	for name, texts := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			longest, redacted := rawLaws(t, texts...)
			if strings.Contains(texts[0], "\n") && longest > 2000 {
				t.Errorf("a citation of %d bytes, though the text has lines", longest)
			}
			if strings.Contains(name, "secret") != redacted {
				t.Errorf("redacted %t", redacted)
			}
		})
	}
}

// FuzzRaw holds the laws on any text.
func FuzzRaw(f *testing.F) {
	for _, texts := range hostile {
		f.Add(strings.Join(texts, "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 20_000 || strings.TrimSpace(text) == "" || strings.ContainsAny(text, "<>") { // tags are the reader's own business
			t.Skip()
		}
		rawLaws(t, text)
	})
}

// rawLaws learns a session of texts and checks every citation of its raw rows;
// it returns the longest one's size and whether any is redacted.
func rawLaws(t *testing.T, texts ...string) (longest int, redacted bool) {
	t.Helper()
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	var says []functest.Say
	for i, s := range texts {
		says = append(says, functest.Say{Role: []string{"user", "assistant"}[i%2], Text: s})
	}
	body := functest.Session("s1", day, says...)
	if _, err := w.Learn.Handle(t.Context(), w.Put("shop/a.jsonl", body)); err != nil {
		t.Fatal(err)
	}
	lines := w.Admits("shop")
	if len(lines) == 0 {
		return 0, false // nothing that could be evidence
	}
	line := lines[0]
	src, chunks, err := w.Log.Source(t.Context(), "shop", line.Source)
	if err != nil {
		t.Fatal(err)
	}
	for i := range chunks {
		text, err := w.Log.Blob(t.Context(), "shop", chunks[i].SHA256)
		if err != nil {
			t.Fatal(err)
		}
		chunks[i].Text = string(text)
	}
	nodes := projection.Raw(&line, &src, chunks)
	if err := index.Validate(&index.Batch{Tenant: "local", Project: "shop", Stream: memory.AdmitStream, Seq: 1, Nodes: nodes}, 0); err != nil {
		t.Error(err)
	}
	byChunk := map[memory.SHA]*memory.Chunk{}
	for i := range chunks {
		byChunk[chunks[i].SHA256] = &chunks[i]
	}
	covered := map[memory.SHA][]bool{}
	for _, n := range nodes {
		c := byChunk[n.TextSHA]
		if c == nil || n.Text != c.Text || n.Level != memory.LevelRaw {
			t.Fatalf("row %s is no chunk", n.ID.Short())
		}
		if covered[c.SHA256] == nil {
			covered[c.SHA256] = make([]bool, len(c.Text))
		}
		for _, o := range n.Occurrences {
			checkSpan(t, c, o.Span, body)
			for k := o.Span.ChunkStart; k < o.Span.ChunkEnd; k++ {
				if covered[c.SHA256][k] {
					t.Errorf("byte %d of chunk %d is cited twice", k, c.I)
					break
				}
				covered[c.SHA256][k] = true
			}
			longest, redacted = max(longest, o.Span.ChunkEnd-o.Span.ChunkStart), redacted || o.Span.Redacted
		}
	}
	for i := range chunks {
		c := &chunks[i]
		for _, turn := range c.Turns {
			for _, p := range turn.Pieces {
				for k := p.C0; k < p.C1; k++ {
					if strings.TrimSpace(c.Text[k:k+1]) != "" && !covered[c.SHA256][k] {
						t.Fatalf("chunk %d byte %d (%q) is in no citation", i, k, c.Text[k:min(k+20, len(c.Text))])
					}
				}
			}
		}
	}
	return longest, redacted
}

func checkSpan(t *testing.T, c *memory.Chunk, s memory.Span, object []byte) {
	t.Helper()
	for _, turn := range c.Turns {
		for _, p := range turn.Pieces {
			if s.ChunkStart < p.C0 || s.ChunkEnd > p.C1 {
				continue
			}
			sealed := false
			for _, seal := range p.Seals {
				outside := s.ChunkEnd <= seal.C0 || s.ChunkStart >= seal.C1
				whole := s.ChunkStart <= seal.C0 && s.ChunkEnd >= seal.C1
				if !outside && !whole {
					t.Errorf("[%d,%d) cuts the seal [%d,%d)", s.ChunkStart, s.ChunkEnd, seal.C0, seal.C1)
				}
				sealed = sealed || whole
			}
			if s.Start < p.O0 || s.End > p.O1 || s.Start >= s.End {
				t.Errorf("source bytes [%d,%d) outside the piece's [%d,%d)", s.Start, s.End, p.O0, p.O1)
				return
			}
			raw := object[s.Start:s.End]
			if sealed != s.Redacted || sealed == (s.SHA256 != "") {
				t.Errorf("redacted %t, sha %q, sealed %t", s.Redacted, s.SHA256, sealed)
			}
			if sealed && s.HMAC != memory.HMAC(functest.TenantKey, raw) {
				t.Error("the HMAC is not that of the source bytes")
			}
			if !sealed && s.SHA256 != memory.Sum(raw) {
				t.Errorf("the hash is not that of the source bytes %q", raw)
			}
			return
		}
	}
	t.Errorf("[%d,%d) lies in no piece of a turn: %s", s.ChunkStart, s.ChunkEnd, fmt.Sprintf("%q", c.Text[s.ChunkStart:s.ChunkEnd]))
}
