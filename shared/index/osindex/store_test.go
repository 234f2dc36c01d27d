package osindex_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/osindex"
	"github.com/mneme-ai/mneme/shared/memory"
)

// prefixOf names indices after a test's folder, so that a process that is killed and its
// heir meet the same ones.
func prefixOf(dir string) string { return "test-" + memory.SumString(filepath.Clean(dir)).Short() }

func TestCrash(t *testing.T) {
	url := cluster(t)
	var prefixes []string
	t.Cleanup(func() {
		for _, p := range prefixes {
			for _, name := range []string{"-passages-v1", "-nodes-v1", "-positions-v1"} {
				request(t, http.MethodDelete, url+"/"+p+name, "")
			}
		}
	})
	f := index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}
	indextest.RunCrash(t, "TestCrash", 3, func(dir string) (indextest.Projection, error) {
		prefixes = append(prefixes, prefixOf(dir))
		return osindex.Open(t.Context(), osindex.Config{URLs: []string{url}, Prefix: prefixOf(dir)})
	}, func(t *testing.T, want, got indextest.Projection) {
		t.Helper()
		w, werr := want.(*osindex.Index).Passages(t.Context(), indextest.Tenant)
		g, gerr := got.(*osindex.Index).Passages(t.Context(), indextest.Tenant)
		if w != g || w == 0 || werr != nil || gerr != nil {
			t.Errorf("%d passages after the kill, %d undisturbed (%v %v)", g, w, gerr, werr)
		}
		for _, q := range []string{"batch 17 archive", "says this again"} {
			a, errA := want.(*osindex.Index).Search(t.Context(), q, f, 1)
			b, errB := got.(*osindex.Index).Search(t.Context(), q, f, 1)
			if errA != nil || errB != nil || len(a) != 1 || len(b) != 1 || a[0].Node != b[0].Node {
				t.Errorf("%q: %v, undisturbed %v (%v %v)", q, b, a, errB, errA)
			}
		}
	})
}

// TestCode: the cases of code and of misspelt words.
func TestCode(t *testing.T) {
	t.Parallel()
	ix := open(t, fresh(t))
	texts := []string{
		"The handler get_user_by_id returns 404 for deleted accounts.",
		"npm fails with ERESOLVE while resolving peers.",
		"The compiler reports TS2322 in the reducer.",
		"The compiler reports TS2345 in the selector.",
		"Routing lives in src/app.ts since the split.",
		"We run kubernetes on three nodes.",
		"The proxy listens on port 8080.",
		"The codec is written in C++ for speed.",
		"Images are built from node:20-alpine.",
		"rustc stops with E0308 here.",
		"rustc stops with E0309 there.",
		"Retries are capped at five attempts.",
		"部署在東京進行。",
	}
	var nodes []index.Node
	for i, text := range texts {
		nodes = append(nodes, indextest.Evidence(indextest.Project, "q@1", text, i+1))
	}
	if err := ix.Apply(t.Context(), indextest.Batch(1, nodes...)); err != nil {
		t.Fatal(err)
	}
	f := index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}
	for query, want := range map[string]int{
		"getUserById": 0, "ERESOLVE": 1, "TS2322": 2, "TS2345": 3, "src/app.ts": 4, "app.ts": 4, "kubernets": 5, "port 8080": 6,
		"C++": 7, "node:20-alpine": 8, "E0308": 9, "E0309": 10, "how often do we retry?": 11, "get_user_by_id": 0,
	} {
		hits, err := ix.Search(t.Context(), query, f, 3)
		if err != nil || len(hits) == 0 {
			t.Errorf("%s: %v %v", query, hits, err)
			continue
		}
		if hits[0].Node != nodes[want].ID {
			t.Errorf("%s finds %q first", query, texts[at(nodes, hits[0].Node)])
		}
	}
	for _, nonsense := range []string{"zorble quux fnord", "🚀", "'; DROP TABLE zebras; --", strings.Repeat("word ", 20000), "   ", "\x00"} {
		hits, err := ix.Search(t.Context(), nonsense, f, 3)
		if err != nil {
			t.Errorf("%.20q: %v", nonsense, err)
		}
		for _, h := range hits {
			if h.IDFShare > .2 {
				t.Errorf("%.20q finds %q with a share of %.2f", nonsense, texts[at(nodes, h.Node)], h.IDFShare)
			}
		}
	}
}

func at(nodes []index.Node, id memory.SHA) int {
	for i := range nodes {
		if nodes[i].ID == id {
			return i
		}
	}
	return 0
}

// TestRefused: a cluster that takes no writes, an index that is gone, one of another
// version: each says what to do, and a wipe makes the indices anew.
func TestRefused(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	ix := open(t, c)
	n := indextest.Evidence(indextest.Project, "q@1", "Logs rotate daily.", 1)
	settings := c.URLs[0] + "/" + c.Prefix + "-passages-v1/_settings"
	for name, block := range map[string]string{"a full disk": "index.blocks.read_only_allow_delete", "a write block": "index.blocks.write"} {
		if code := request(t, http.MethodPut, settings, fmt.Sprintf(`{%q: true}`, block)); code != 200 {
			t.Fatal(code)
		}
		err := ix.Apply(t.Context(), indextest.Batch(1, n))
		if !fault.Is(err, fault.Unavailable) || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
		if seq, err := ix.Applied(t.Context(), indextest.Tenant, indextest.Project, "q@1", indextest.Space); seq != 0 || err != nil {
			t.Errorf("%s: %d applied, %v", name, seq, err)
		}
		if code := request(t, http.MethodPut, settings, fmt.Sprintf(`{%q: null}`, block)); code != 200 {
			t.Fatal(code)
		}
	}
	if err := ix.Apply(t.Context(), indextest.Batch(1, n)); err != nil {
		t.Fatal(err)
	}
	request(t, http.MethodDelete, c.URLs[0]+"/"+c.Prefix+"-passages-v1", "")
	f := index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}
	if _, err := ix.Search(t.Context(), "logs", f, 3); !fault.Is(err, fault.Corrupt) || !strings.Contains(fault.HintOf(err), "mem rebuild") {
		t.Errorf("an index that is gone: %v (%s)", err, fault.HintOf(err))
	}
	if err := ix.Wipe(t.Context(), indextest.Tenant, ""); err != nil {
		t.Fatal(err)
	}
	if err := ix.Apply(t.Context(), indextest.Batch(1, n)); err != nil {
		t.Fatal(err)
	}
	if hits, err := ix.Search(t.Context(), "logs", f, 3); err != nil || len(hits) != 1 {
		t.Errorf("after the wipe: %v %v", hits, err)
	}
	for _, bad := range []string{"", "not a url", "ftp://host"} {
		if _, err := osindex.Open(t.Context(), osindex.Config{URLs: []string{bad}}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := osindex.Open(t.Context(), osindex.Config{URLs: []string{"http://user:hunter2secret@127.0.0.1:1"}}); !fault.Is(err, fault.Unavailable) || strings.Contains(err.Error(), "hunter2secret") {
		t.Errorf("nobody there: %v", err)
	}
}
