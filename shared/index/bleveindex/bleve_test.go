package bleveindex_test

import (
	"context"
	"slices"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/bleveindex"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

func open(t testing.TB, dir string) *bleveindex.Index {
	t.Helper()
	ix, err := bleveindex.Open(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	return ix
}

// apply puts one node a text into a fresh index.
func apply(t testing.TB, ix *bleveindex.Index, texts ...string) {
	t.Helper()
	var nodes []index.Node
	for i, text := range texts {
		nodes = append(nodes, indextest.Evidence(indextest.Project, "q@1", text, i+1))
	}
	if err := ix.Apply(context.Background(), indextest.Batch(1, nodes...)); err != nil {
		t.Fatal(err)
	}
}

var scope = index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}

// search gives the texts found, best first.
func search(t testing.TB, ix *bleveindex.Index, texts []string, query string) []string {
	t.Helper()
	hits, err := ix.Search(context.Background(), query, scope, 10)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range hits {
		i := slices.IndexFunc(texts, func(s string) bool {
			return indextest.Evidence(indextest.Project, "q@1", s, 1).ID == h.Node
		})
		if i < 0 {
			t.Fatalf("unknown node %s", h.Node)
		}
		out = append(out, texts[i])
	}
	return out
}

func TestLexical(t *testing.T) {
	t.Parallel()
	indextest.RunLexical(t, func(t *testing.T) index.Lexical { return open(t, t.TempDir()) })
}

// The cases of a search over code: specs C4.
func TestSearchCode(t *testing.T) {
	t.Parallel()
	texts := []string{
		"The lookup get_user_by_id caches misses for a minute.",
		"The lookup list_orders never caches anything.",
		"npm install stops with ERESOLVE because of the peer of eslint.",
		"npm install stops with ENOENT because the lock file is gone.",
		"The build fails with TS2322 in the cart component.",
		"The build fails with TS2345 in the list component.",
		"We moved the router from src/app.ts into its own module.",
		"We moved the worker from src/job.ts into its own module.",
		"The server listens on port 8080 behind the proxy.",
		"The server listens on port 9090 behind the ingress.",
		"The hot loop was written again in C++ for speed.",
		"Vitamin C is good for you, and plan C is not.",
		"The image is node:20-alpine as node:18 is out of support.",
		"The image is python:3.12-slim as alpine breaks wheels.",
		"The borrow checker reports E0308 mismatched types.",
		"The borrow checker reports E0309 lifetime trouble.",
		"Every retry waits twice as long as the one before.",
		"pnpm ends with ERR_PNPM_OUTDATED_LOCKFILE on the runner.",
		"東京都の天気は晴れです。",
		"Configuration lives in .env and is never committed.",
		"The chart is installed by helm into kubernetes.",
	}
	ix := open(t, t.TempDir())
	apply(t, ix, texts...)
	for _, tt := range []struct {
		query string
		want  int   // index of the text that comes first
		not   []int // texts that must not be found
	}{
		{"getUserById", 0, []int{1}},
		{"get-user-by-id", 0, []int{1}},
		{"ERESOLVE", 2, []int{3}},
		{"eresolve", 2, []int{3}},
		{"TS2322", 4, []int{5}},
		{"ts2322", 4, []int{5}},
		{"src/app.ts", 6, nil},
		{"app.ts", 6, nil},
		{"port 8080", 8, nil},
		{"C++", 10, []int{11}},
		{"c++", 10, []int{11}},
		{"node:20-alpine", 12, nil},
		{"E0308", 14, []int{15}},
		{"retries", 16, nil},
		{"retrying", 16, nil},
		{"ERR_PNPM_OUTDATED_LOCKFILE", 17, nil},
		{"東京", 18, nil},
		{"天気", 18, nil},
		{".env", 19, nil},
		{"kubernets", 20, nil},
		{"Käches wait: what is cached a minute?", 0, nil},
	} {
		got := search(t, ix, texts, tt.query)
		if len(got) == 0 || got[0] != texts[tt.want] {
			t.Errorf("%q: first is %q, want %q", tt.query, got, texts[tt.want])
		}
		for _, i := range tt.not {
			if slices.Contains(got, texts[i]) {
				t.Errorf("%q finds %q", tt.query, texts[i])
			}
		}
	}
	for _, nonsense := range []string{"", "   ", "?!", "flurble wozzit grank"} {
		if got := search(t, ix, texts, nonsense); len(got) > 0 {
			t.Errorf("%q finds %q", nonsense, got)
		}
	}
}
