package bleveindex_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/index/bleveindex"
)

func TestAnalysis(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{"Retries, retried; retrying!", "retri|retri|retri"},
		{"getUserById", "getuserbyid get user by id"},
		{"get_user_by_id", "getuserbyid get user by id"},
		{"get-user-by-id", "getuserbyid get user by id"},
		{"HTTPServer", "httpserver http server"},
		{"e-mail", "email e mail"},
		{"src/app.ts", "src/app.ts app.ts src app ts"},
		{`C:\Users\me\notes.md`, "c:/users/me/notes.md notes.md c user me note md"},
		{"node:20-alpine", "node:20-alpine 20alpine node 20 alpin"},
		{"v1.2.3", "v1.2.3 v1 2 3"},
		{"127.0.0.1:8080", "127.0.0.1:8080 127 0 0 1 8080"},
		{"(foo.bar[0])", "foo.bar foo bar|0"},
		{"key=value", "key|valu"},
		{"TS2322:", "ts2322 =TS2322"},
		{"error[E0308]", "error|e0308 =E0308"},
		{"ERESOLVE", "eresolv =ERESOLVE"},
		{"ERR_PNPM_X", "errpnpmx err pnpm x =ERR_PNPM_X"},
		{"ABC-123", "abc123 abc 123 =ABC-123"},
		{"ERROR EXIT", "error|exit =EXIT"},
		{"C++ c# F#.", "c++|c#|f#"},
		{"#deploy @anna .env --force", "#deploy deploy|@anna anna|.env env|forc"},
		{"don't user's it’s", "dont|user|it"},
		{"café naïve Ａｂｃ", "cafe|naiv|abc"},
		{"東京都 に", "東京 京都|に"},
		{"Go言語", "go|言語"},
		{"... -- ///", ""},
		{strings.Repeat("x", 65), ""},
		{"2026-01-31", "20260131 2026 01 31"},
	} {
		var got []string
		for _, w := range bleveindex.Terms(tt.text) {
			got = append(got, strings.Join(w, " "))
		}
		if d := cmp.Diff(tt.want, strings.Join(got, "|")); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, d)
		}
	}
}

// A space ends every word, so that the analysis of two texts is that of both.
func FuzzAnalysis(f *testing.F) {
	for _, s := range []string{"", "getUserById src/app.ts", "C++ .env #tag", "東京都x天気", "\xff\xfe", "é́́", "İstanbul", "E0308-_/\\'’"} {
		f.Add(s, "a_b.C/d")
		f.Add("x", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		got := bleveindex.Terms(a + " " + b)
		want := slices.Concat(bleveindex.Terms(a), bleveindex.Terms(b))
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("(-parts +whole):\n%s", d)
		}
		for _, w := range got {
			if len(w) == 0 {
				t.Fatal("a word without a term")
			}
			for _, term := range w {
				if term == "" || len(term) > bleveindex.MaxTerm+1 || utf8.ValidString(a) && utf8.ValidString(b) && !utf8.ValidString(term) {
					t.Fatalf("term %q", term)
				}
			}
		}
	})
}
