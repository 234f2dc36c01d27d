package bleveindex_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

func hits(t testing.TB, find func(context.Context, string, index.Filter, int) ([]index.Hit, error), query string, k int) []index.Hit {
	t.Helper()
	out, err := find(context.Background(), query, scope, k)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The share of idf counts each subject word once, unknown ones with the most.
func TestIDFShare(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir())
	texts := []string{
		"The server listens on port 8080.", "The worker listens on a socket.", "The function getUserById caches.",
		"Backups run at night.", "Deploys run at noon.", "The server logs to stdout.",
	}
	apply(t, ix, texts...)
	idf := func(df float64) float64 { return math.Log(1 + (index.ShareBackground+6-df+.5)/(df+.5)) }
	for _, tt := range []struct {
		query string
		want  float64
	}{
		{"port 8080", 1},
		{"what is the port?", 1}, // function words do not count
		{"port zebra", idf(1) / (idf(1) + idf(0))},
		{"which port does the zebra use", idf(1) / (idf(1) + idf(0))},
		{"server port", 1},
		{"port port zebra zebra zebra", idf(1) / (idf(1) + idf(0))},
		{"get_user_by_id", 1},
		{"getUserByName", 1 - (idf(0)+0)/(idf(1)+idf(1)+idf(1)+idf(0))},
		{"the", 0}, // nothing but function words: no subject
	} {
		got := hits(t, ix.Search, tt.query, 3)
		if len(got) == 0 || math.Abs(got[0].IDFShare-tt.want) > 1e-9 {
			t.Errorf("%q: got %+v, want share %v", tt.query, got, tt.want)
		}
	}
	if got := hits(t, ix.Search, "zebra quagga", 3); len(got) > 0 {
		t.Errorf("nonsense: %+v", got)
	}
}

// No text scores above the bound, however often it repeats the question.
func TestBound(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir())
	apply(t, ix, strings.Repeat("retry budget ", 70), "retry budget", "unrelated words here", "more of the same")
	for _, q := range []string{"retry budget", "retry", "budget zebra", "TS2322 retry"} {
		for _, h := range hits(t, ix.Search, q, 5) {
			if h.Score <= 0 || h.Score > h.Max || h.Max != hits(t, ix.Search, q, 1)[0].Max {
				t.Errorf("%q: score %v, bound %v", q, h.Score, h.Max)
			}
		}
	}
	with, without := hits(t, ix.Search, "budget zebra", 1)[0], hits(t, ix.Search, "budget", 1)[0]
	if with.Max <= without.Max || with.Score != without.Score {
		t.Errorf("an unknown word must raise the bound alone: %+v, %+v", with, without)
	}
}

// In a large index words of more than 30 % of the passages are left out, unless
// nothing else is left; rare words and the number of terms decide the rest.
func TestCommonWords(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir())
	r := rand.New(rand.NewPCG(1, 1))
	var texts []string
	for i := range 1200 {
		text := fmt.Sprintf("row%d alpha%d", i, i%40)
		if i%2 == 0 {
			text += " common"
		}
		if r.IntN(10) == 0 {
			text += " tenth"
		}
		texts = append(texts, text)
	}
	apply(t, ix, texts...)
	both, rare := hits(t, ix.Search, "common row7", 5), hits(t, ix.Search, "row7", 5)
	if len(both) != 1 || both[0] != rare[0] {
		t.Errorf("with a common word: %+v, without: %+v", both, rare)
	}
	if got := hits(t, ix.Search, "common", 2000); len(got) != 600 {
		t.Errorf("a common word alone finds %d of 600", len(got))
	}
	if got := hits(t, ix.Search, "common zebra", 2000); len(got) != 600 {
		t.Errorf("a common word beside an unknown one finds %d of 600", len(got))
	}
	var long strings.Builder
	for i := range 500 {
		fmt.Fprintf(&long, "row%d ", i)
	}
	long.WriteString("tenth")
	if got := hits(t, ix.Search, long.String(), 2000); len(got) != 64 {
		t.Errorf("a query of 501 words finds %d, want those of its 64 rarest", len(got))
	}
}

// Many passages of one node must not crowd out the others.
func TestCollapseAsksForMore(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir())
	long := strings.Repeat("archive archive archive archive archive archive. ", 3000) // 120 passages, all better
	apply(t, ix, long, "archive of the orders and other things", "archive of the logs and other things", "archive of nothing else and so on")
	got := hits(t, ix.Search, "archive", 4)
	seen := map[memory.SHA]bool{}
	for _, h := range got {
		seen[h.Node] = true
	}
	if len(got) != 4 || len(seen) != 4 {
		t.Errorf("got %d hits of %d nodes, want 4 of 4", len(got), len(seen))
	}
}

// A question of any size and any bytes is answered.
func TestHugeQuery(t *testing.T) {
	t.Parallel()
	ix := open(t, t.TempDir())
	apply(t, ix, "The server listens on port 8080.", "Nothing here.")
	for name, q := range map[string]string{
		"a megabyte of one token":  strings.Repeat("aB.c_", 200_000),
		"a megabyte of words":      strings.Repeat("lorem ipsum ", 90_000),
		"a megabyte of CJK":        strings.Repeat("東京都", 110_000),
		"bytes that are no UTF-8":  strings.Repeat("\xff\xfe\x00", 1000),
		"a megabyte of separators": strings.Repeat("/", 1<<20),
	} {
		if got := hits(t, ix.Search, q+" port", 2); len(got) != 1 {
			t.Errorf("%s: got %d hits, want the one about the port", name, len(got))
		}
	}
}

// A start opens no index; the first call opens those it needs.
func BenchmarkOpen(b *testing.B) {
	b.Run("1k-nodes", func(b *testing.B) {
		dir := b.TempDir()
		var texts []string
		for i := range 1000 {
			texts = append(texts, fmt.Sprintf("row %d of the archive", i))
		}
		ix := open(b, dir)
		apply(b, ix, texts...)
		ix.Close()
		for b.Loop() {
			ix := open(b, dir)
			hits(b, ix.Search, "archive", 5)
			ix.Close()
		}
	})
}
