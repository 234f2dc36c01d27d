package index_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

func node(text string) index.Node {
	sum := memory.SumString(text)
	return index.Node{
		ID:     memory.NodeID("acme", "shop", memory.L0, "q@1", sum),
		Tenant: "acme", Project: "shop", Level: memory.L0, Stream: "q@1", Text: text, TextSHA: sum,
	}
}

// words is n numbered words, with a full stop after each of the given ones.
func words(n int, stops ...int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		if i > 1 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "w%d", i)
		for _, s := range stops {
			if s == i {
				b.WriteByte('.')
			}
		}
	}
	return b.String()
}

func TestPassagesOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string // first and last word of each passage
	}{
		{"empty", "", nil},
		{"space alone", " \n\t ", nil},
		{"one word", "hello", []string{"hello hello"}},
		{"just 150", words(150), []string{"w1 w150"}},
		{"151 without a border", words(151), []string{"w1 w150", "w151 w151"}},
		{"at the last sentence of the second half", words(200, 60, 90, 120), []string{"w1 w120.", "w121 w200"}},
		{"not at one in the first half", words(200, 60), []string{"w1 w150", "w151 w200"}},
		{"at a line", strings.Replace(words(160), "w100 ", "w100\n", 1), []string{"w1 w100", "w101 w160"}},
		{"surrounding space is left out", "\n\n  " + words(3) + "  \n", []string{"w1 w3"}},
		{"a long run without spaces", strings.Repeat("x", 40*151), []string{strings.Repeat("x", 40*150) + " " + strings.Repeat("x", 40*150), strings.Repeat("x", 40) + " " + strings.Repeat("x", 40)}},
		{"CJK: a character is a word", strings.Repeat("東", 160), []string{strings.Repeat("東", 150) + " " + strings.Repeat("東", 150), strings.Repeat("東", 10) + " " + strings.Repeat("東", 10)}},
		{"CJK: at a full stop", strings.Repeat("東", 99) + "。" + strings.Repeat("京", 60), []string{strings.Repeat("東", 99) + "。 " + strings.Repeat("東", 99) + "。", strings.Repeat("京", 60) + " " + strings.Repeat("京", 60)}},
	} {
		n := node(tt.text)
		var got []string
		for i, p := range index.PassagesOf(&n) {
			f := strings.Fields(p.Embed)
			got = append(got, f[0]+" "+f[len(f)-1])
			if p.N != i || p.ID != index.PassageID(n.ID, i, p.Embed) {
				t.Errorf("%s: passage %d is numbered %d, id %s", tt.name, i, p.N, p.ID)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// Date and speaker stand in the embedded text, each where it is known.
func TestEmbedHeader(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 31, 23, 30, 0, 0, time.FixedZone("", -3600))
	for _, tt := range []struct {
		at   *time.Time
		role memory.Role
		want string
	}{
		{&at, memory.RoleUser, "2026-02-01 user: Hi."},
		{&at, "", "2026-02-01 Hi."},
		{nil, memory.RoleAssistant, "assistant: Hi."},
		{nil, "", "Hi."},
	} {
		n := node("Hi.")
		n.SourceTime, n.Role = tt.at, tt.role
		if got := index.PassagesOf(&n)[0].Embed; got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func FuzzPassagesOf(f *testing.F) {
	for _, s := range []string{"", "a b c", words(400, 80, 149, 300), "東京。" + words(200), "\xff\xfe x\n\ny", strings.Repeat("x.", 9000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := node(text)
		pos := 0
		blank := func(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) == "" }
		for _, p := range index.PassagesOf(&n) {
			if p.Start < pos || p.End <= p.Start || p.End > len(text) {
				t.Fatalf("passage [%d,%d) after %d of %d bytes", p.Start, p.End, pos, len(text))
			}
			if !blank(text[pos:p.Start]) {
				t.Fatalf("[%d,%d) is in no passage: %q", pos, p.Start, text[pos:p.Start])
			}
			if utf8.ValidString(text) && !utf8.ValidString(p.Embed) {
				t.Fatalf("[%d,%d) cuts a character", p.Start, p.End)
			}
			if k := len(strings.Fields(p.Embed)); k > index.PassageWords {
				t.Fatalf("[%d,%d) holds %d words", p.Start, p.End, k)
			}
			pos = p.End
		}
		if !blank(text[pos:]) {
			t.Fatalf("the end is in no passage: %q", text[pos:])
		}
	})
}

// The golden vectors of docs/FORMATS.md: a change of any is a new format.
func TestGoldenHashes(t *testing.T) {
	t.Parallel()
	n := goldenNode()
	n.Passages = index.PassagesOf(&n)
	for _, tt := range []struct {
		name      string
		got, want memory.SHA
	}{
		{"node id", n.ID, "ec495c918028c56cdd45c4d199e807b9928eb64547ed04f901665b2f6156a73e"},
		{"passage id", n.Passages[0].ID, "f71c1a935f619f6b5ea54ac0f20715a49c81e6d385093eaec7c01fd6dabd03bd"},
		{"row hash", index.RowHash(&n), "94e96bb231360919aaf839e6c263ce8b0b8f5b38b25a92ff8a9ca526f18241ec"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, tt.got, tt.want)
		}
	}
}

func goldenNode() index.Node {
	n := node("We serve on port 8080.")
	at := time.Date(2026, 1, 31, 9, 0, 0, 0, time.UTC)
	n.Role, n.SourceTime = memory.RoleUser, &at
	n.Parents = nil
	n.Supersedes = []memory.SHA{memory.SumString("older")}
	n.Occurrences = []index.Occurrence{{T: 1, Span: memory.Span{
		Object: "transcripts/shop/a.jsonl", ETag: "e1", Start: 10, End: 32, Codec: memory.CodecJSONString,
		SHA256: memory.SumString("We serve on port 8080."), Chunk: memory.SumString("chunk"), ChunkStart: 6, ChunkEnd: 28,
	}}}
	return n
}

// The row hash does not depend on order, repeats, step, place or run.
func TestRowHash(t *testing.T) {
	t.Parallel()
	base := goldenNode()
	second := base.Occurrences[0]
	second.T, second.Span.Start = 7, 99
	base.Occurrences = append(base.Occurrences, second)
	base.Supersedes = append(base.Supersedes, memory.SumString("oldest"))
	base = index.Normal(base)
	want := index.RowHash(&base)
	for _, tt := range []struct {
		name string
		same bool
		edit func(n *index.Node)
	}{
		{"order of spans", true, func(n *index.Node) { n.Occurrences[0], n.Occurrences[1] = n.Occurrences[1], n.Occurrences[0] }},
		{"order and repeats of edges", true, func(n *index.Node) {
			n.Supersedes = []memory.SHA{n.Supersedes[1], n.Supersedes[0], n.Supersedes[1]}
		}},
		{"the same span at another step", true, func(n *index.Node) {
			o := n.Occurrences[0]
			o.T = 40
			n.Occurrences = append(n.Occurrences, o)
		}},
		{"step and place", true, func(n *index.Node) { n.T, n.Place.Admit, n.Occurrences[0].Place.I = 9, 9, 9 }},
		{"a span", false, func(n *index.Node) { n.Occurrences[0].Span.End++ }},
		{"an edge", false, func(n *index.Node) { n.Supersedes = n.Supersedes[:1] }},
		{"a parent", false, func(n *index.Node) { n.Parents = append(n.Parents, n.ID) }},
		{"a passage", false, func(n *index.Node) { n.Passages[0].ID = n.ID }},
		{"the project", false, func(n *index.Node) { n.Project = "other" }},
	} {
		n := index.Merge(base, base) // its own slices
		n.Passages = append([]index.Passage(nil), base.Passages...)
		n.Supersedes = append([]memory.SHA(nil), base.Supersedes...)
		n.Occurrences = append([]index.Occurrence(nil), base.Occurrences...)
		tt.edit(&n)
		if got := index.RowHash(&n); (got == want) != tt.same {
			t.Errorf("%s: same hash is %v, want %v", tt.name, got == want, tt.same)
		}
	}
}

func TestValidateVectors(t *testing.T) {
	t.Parallel()
	nan := float32(0)
	nan /= nan
	for _, tt := range []struct {
		name  string
		space string
		dims  int
		v     []float32
	}{
		{"without a space", "", 0, []float32{1}},
		{"of another dimension", "s", 3, []float32{1, 0}},
		{"of none", "s", 0, nil},
		{"not finite", "s", 2, []float32{nan, 1}},
	} {
		b := index.Batch{Tenant: "acme", Project: "shop", Stream: "q@1", Seq: 1, Space: tt.space, Vectors: map[memory.SHA][]float32{memory.SumString("p"): tt.v}}
		if err := index.Validate(&b, tt.dims); !fault.Is(err, fault.Invalid) {
			t.Errorf("a vector %s: got %v, want invalid", tt.name, err)
		}
	}
}

func TestFilterRange(t *testing.T) {
	t.Parallel()
	day := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC) }
	in := func(f index.Filter, at time.Time) bool {
		from, to := f.Range()
		n := index.Nano(at)
		return n >= from && n < to
	}
	for _, tt := range []struct {
		name string
		f    index.Filter
		at   time.Time
		want bool
	}{
		{"open", index.Filter{}, time.Time{}, true},
		{"since is in", index.Filter{Since: day(2)}, day(2), true},
		{"before since", index.Filter{Since: day(2)}, day(1), false},
		{"until is out", index.Filter{Until: day(2)}, day(2), false},
		{"as of is in", index.Filter{AsOf: day(2)}, day(2), true},
		{"after as of", index.Filter{AsOf: day(2)}, day(3), false},
		{"as of within until", index.Filter{Until: day(9), AsOf: day(2)}, day(5), false},
		{"no time is oldest", index.Filter{Since: day(1)}, time.Time{}, false},
		{"year 9999", index.Filter{Since: day(1)}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), true},
	} {
		if got := in(tt.f, tt.at); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}
