package derived_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/derived"
)

// The last statement alone has more than derived.MinWords words.
var statements = []string{
	"We decided that retries stop after exactly 5 attempts, because the upstream bans us for more.",
	"Deploys never start on a Friday; the on-call team is too small at weekends.",
	"The export is written as UTF-8 with a write-once header, since the auditor's tool can't read anything else.",
	"The cache keeps its entries for exactly 15 minutes.",
	"From now on every change of the billing schema needs a migration that runs in both directions, a note in the change log that names the tables it touches, a review by somebody of the finance team who knows the monthly close, and a dry run on last night's copy of production, because the March rollback took us two days and cost us a customer.",
}

func indexOf(list ...string) *derived.Index {
	x := &derived.Index{}
	for _, s := range list {
		x.Add(s)
	}
	return x
}

// memoryText is what a memory of these statements reads like.
func memoryText(places ...int) string {
	var b strings.Builder
	for _, i := range places {
		fmt.Fprintf(&b, "- %s [%08x]\n", statements[i], 0x1f0a77c2+i)
	}
	return b.String()
}

// wrap fills lines of width characters, breaking at hyphens too.
func wrap(s string, width int, prefix string) string {
	var b strings.Builder
	n := 0
	for w := range strings.FieldsSeq(strings.ReplaceAll(s, "-", "- ")) {
		if n > 0 && n+1+len(w) > width {
			b.WriteString("\n")
			n = 0
		}
		if n == 0 {
			b.WriteString(prefix)
		} else if !strings.HasSuffix(b.String(), "-") {
			b.WriteByte(' ')
		}
		b.WriteString(w)
		n += len(w) + 1
	}
	return b.String()
}

func first(s string, from, to int) string { return strings.Join(strings.Fields(s)[from:to], " ") }

func TestPassages(t *testing.T) {
	t.Parallel()
	row := statements[0] + " " + statements[1] + " " + statements[2]
	tests := []struct {
		name, text string
		want       []string // the passages' first and last words
	}{
		{"a memory as it is given out", memoryText(0, 1, 2), []string{"We … else.*"}},
		{"in another order, with others between that it held before", memoryText(3, 2, 0, 1), []string{"The … weekends.*"}},
		{"without its node suffixes", row, []string{"We … else."}},
		{"wrapped at 30 columns", wrap(row, 30, ""), []string{"We … else."}},
		{"quoted and wrapped", wrap(row, 44, "> "), []string{"We … else."}},
		{"indented and wrapped with suffixes", wrap(memoryText(0, 1, 2), 61, "      "), []string{"We … else.*"}},
		{"a numbered list", "1. " + statements[0] + "\n2. " + statements[1] + "\n3) " + statements[2], []string{"We … else."}},
		{"in a JSON string", strings.ReplaceAll(memoryText(0, 1, 2), "\n", `\n`), []string{"We … else.*"}},
		{"upper case and emphasis", strings.ToUpper("**" + row + "**"), []string{"WE … ELSE."}},
		{"between a person's own words", "That is what it says: " + row + " I read it twice.", []string{"We … else."}},
		{"two rows apart", memoryText(0, 1, 2) + "and then\n" + memoryText(2, 1, 0), []string{"We … else.*", "The … more.*"}},
		{"an excerpt that begins and ends anywhere", wrap(first(row, 4, 45), 50, ""), []string{"stop … can't"}},
		{"an excerpt under forty words", first(row, 6, 45), nil},
		{"two statements are under forty words", statements[0] + " " + statements[1], nil},
		{"forty words of one statement, its sentence with it", "Well. " + first(statements[4], 0, 41) + " and then some.", []string{"From … some."}},
		{"forty words from the middle of one", wrap(first(statements[4], 7, 48), 40, "\t"), []string{"billing … last"}},
		{"thirty-nine words of one", first(statements[4], 0, 39), nil},
		{"one statement on one line", statements[1], nil},
		{"one statement over two lines", wrap(statements[1], 50, ""), []string{"Deploys … weekends."}},
		{"within a sentence that goes on, over two lines", "I doubt that\n" + strings.TrimSuffix(wrap(statements[1], 50, ""), ".") + " as of now", nil},
		{"statements with a word between each", strings.ReplaceAll(row, ". ", ". So: "), nil},
		{"another value in the middle breaks the row", strings.ReplaceAll(row, "Friday", "Monday"), nil},
		{"a number that wrapping brought to the front of a line",
			"We decided that retries stop after exactly\n5 attempts, because the upstream bans us for more. The cache keeps its entries for exactly\n15 minutes. " + statements[2],
			[]string{"We … else."}},
		{"one statement with its suffix", "As noted: " + statements[1] + " [1f0a77c2]\nYes.", []string{"Deploys … weekends.*"}},
		{"one with a suffix that is no node's", statements[1] + " [1f0a77]", nil},
		{"a suffix behind other words", statements[1] + " Really. [1f0a77c2]", nil},
		{"struck through, bold, checked, with links and line names",
			"- ~~" + statements[0] + "~~ [1f0a77c2](https://example.org/a_(b)) ^1f0a77c2\n- [x] **" + statements[1] + "** [[9c41d0e5]] ^fact-12\n> * _" + statements[2] + "_ [^1f0a77c2]\n",
			[]string{"We … else.*"}},
		{"with links to the lines of notes", "- " + statements[3] + " [[decisions#^1f0a77c2|decisions 1f0a77c2]] ^c5681184", []string{"The … 1f0a77c2]]*"}},
		{"with such links, filled anew", "- " + statements[3] + " [[decisions#^p-1f0a77c2|decisions\n> 1f0a77c2]] ^c5681184 - " + statements[1] + " [[rules#^1f0a77c2]] ^c5681184 Up", []string{"The … minutes.*", "Deploys … weekends.*"}},
		{"with a link to another line", statements[3] + " [[decisions#^retries|decisions 1f0a77c2]]", nil},
		{"with line names alone", "- " + statements[0] + " ^a1b2\n- " + statements[1] + " ^a1b3 \n- " + statements[2] + " ^a1b4", []string{"We … else."}},
		{"one with a node's suffix as the line's name", "- " + statements[3] + " ^1f0a77c2", []string{"The … minutes.*"}},
		{"a formula is no line's name", statements[0] + " ^2\n" + statements[1] + " ^2\n" + statements[2], nil},
		{"dated one by one", "- 2026-03-01 " + statements[0] + " [1f0a77c2]\n- 2026-03-02 " + statements[3] + " [1f0a77c2]", []string{"We … more.*", "The … minutes.*"}},
		{"nothing", "", nil},
		{"other text", strings.Repeat("Nothing of this was ever in a memory, whatever it says. ", 20), nil},
		{"no row is made of parts of statements",
			"We decided that retries stop after exactly 15 minutes. Deploys never start on a Friday; since the auditor's tool can't read anything else. " +
				"The cache keeps its entries for exactly 5 attempts, because the upstream bans us for more.", nil},
	}
	x := indexOf(statements...)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := show(tt.text, x.Passages(tt.text, x.Len(), 0))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("passages (-want +got):\n%s\nof:\n%s", diff, tt.text)
			}
		})
	}
}

func show(text string, ps []derived.Passage) (out []string) {
	for _, p := range ps {
		f := strings.Fields(strings.Trim(text[p.From:p.To], "*"))
		for len(f) > 1 && strings.ContainsAny(f[len(f)-1][:1], "[^") {
			f = f[:len(f)-1]
		}
		s := f[0] + " … " + strings.SplitN(strings.TrimRight(f[len(f)-1], "_~"), `\n`, 2)[0]
		if i := strings.IndexByte(f[len(f)-1], '['); i > 0 {
			s = f[0] + " … " + f[len(f)-1][:i]
		}
		if p.Cited {
			s += "*"
		}
		out = append(out, s)
	}
	return out
}

// An index that knows more than a state held decides as one that held no more.
func TestEarlierState(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		var list []string
		for range 20 {
			list = append(list, fmt.Sprintf("The %s of %s stays at %d.",
				[]string{"limit", "quota", "timeout for the nightly job"}[rnd.IntN(3)],
				[]string{"queue", "export", "cache and its mirror"}[rnd.IntN(3)], rnd.IntN(4)))
		}
		n := rnd.IntN(len(list))
		var b strings.Builder
		for range 30 {
			b.WriteString(list[rnd.IntN(len(list))])
			b.WriteString([]string{" ", "\n", "\n\n", " and "}[rnd.IntN(4)])
		}
		want := indexOf(list[:n]...).Passages(b.String(), n, 0)
		if diff := cmp.Diff(want, indexOf(list...).Passages(b.String(), n, 0)); diff != "" {
			t.Fatalf("seed %d, %d statements (-held +knows more):\n%s", seed, n, diff)
		}
	}
}

// Of a shingle the whole statement is known again, in a row with others, as if
// its text were there; and nothing before it was added.
func TestShingles(t *testing.T) {
	t.Parallel()
	if got := derived.Shingle("Yes, please."); got != "" {
		t.Errorf("two words have the shingle %q", got)
	}
	if a, b := derived.Shingle(statements[1]), derived.Shingle(wrap(strings.ToUpper(statements[1]), 80, "> ")); a != b {
		t.Errorf("shingle %s, in upper case and wrapped %s", a, b)
	}
	x := indexOf(statements[0])
	for _, s := range []string{derived.Shingle(statements[1]), "w0-1-1-4-4", "w1-x-1-4-4", "w1-1-1-99999999-1", "", derived.Shingle(statements[2])} {
		x.AddShingle(s)
	}
	text := wrap(memoryText(0, 1, 2), 44, "  ")
	if diff := cmp.Diff(indexOf(statements[:3]...).Passages(text, 3, 0), x.Passages(text, 1, 6)); diff != "" {
		t.Errorf("passages (-texts +shingles):\n%s", diff)
	}
	plain := statements[0] + " " + statements[1] + " " + statements[2]
	if got := x.Passages(plain, 1, 6); len(got) != 1 {
		t.Errorf("passages %v of %q", got, plain)
	}
	if got := x.Passages(plain, 1, 5); len(got) > 0 {
		t.Errorf("passages %v before the last shingle was added", got)
	}
	for i, want := range []bool{true, true, true, false} {
		if got := x.Knows(derived.Shingle(statements[i]), 1, 6); got != want {
			t.Errorf("statement %d known: %v", i, got)
		}
	}
	if x.Knows(derived.Shingle(statements[0]), 0, 6) || x.Knows(derived.Shingle(statements[2]), 1, 5) || x.Knows("", 1, 6) {
		t.Error("known before it was added")
	}
}

// Any bytes are read; passages are ascending, apart and inside the text; and a
// row of statements is found however it is wrapped.
func FuzzPassages(f *testing.F) {
	f.Add(statements[0]+"\n"+statements[1], memoryText(0, 1, 2), uint8(30))
	f.Add("a b c\na b c d", "a b c a b c d a b c", uint8(2))
	f.Add("日本語の設定は常に五分です", "日本語の設定は\n常に五分です\xff[deadbeef] 1. \\n", uint8(7))
	f.Fuzz(func(t *testing.T, list, text string, width uint8) {
		if len(list)+len(text) > 1<<13 {
			return
		}
		x := indexOf(strings.Split(list, "\n")...)
		for s := range strings.SplitSeq(list, "\n") {
			x.AddShingle(s)
			x.AddShingle(derived.Shingle(s))
		}
		for _, n := range []int{0, 1, x.Len(), x.Len() + 1} {
			at := 0
			for _, p := range x.Passages(text, n, n) {
				if p.From < at || p.To < p.From || p.To > len(text) {
					t.Fatalf("passage [%d,%d) behind %d in %d bytes", p.From, p.To, at, len(text))
				}
				at = p.To
			}
		}
		row := indexOf(statements...)
		all := wrap(strings.Join(statements, " "), int(width), "  ")
		ps := row.Passages(all, row.Len(), 0)
		if len(ps) != 1 || strings.TrimSpace(all[:ps[0].From]+all[ps[0].To:]) != "" {
			t.Errorf("wrapped at %d: passages %v of %d bytes", width, ps, len(all))
		}
	})
}

// What one look costs at a chunk of 5,000 tokens, none of it from the memory
// and all of it.
func BenchmarkPassages(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var list []string
	for i := range 2000 {
		list = append(list, fmt.Sprintf("We decided that the %s of queue %d stays at %d messages, because the consumer of region %d falls behind after that.",
			[]string{"limit", "quota", "timeout"}[rnd.IntN(3)], i, rnd.IntN(900), rnd.IntN(40)))
	}
	x := indexOf(list...)
	for name, text := range map[string]string{
		"20KB-other": strings.Repeat("We decided to look at the module and its callers in turn before anything else is said. ", 20<<10/88),
		"20KB-own":   wrap(strings.Join(list, " ")[:20<<10], 70, "  "),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				x.Passages(text, x.Len(), 0)
			}
		})
	}
}
