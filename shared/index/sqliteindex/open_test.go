package sqliteindex_test

import (
	"database/sql"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/sqliteindex"
	"github.com/mneme-ai/mneme/shared/memory"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		write func(path string) error
	}{
		{"a newer schema", func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.Exec("CREATE TABLE node (id); PRAGMA user_version = 99")
			return err
		}},
		{"another program's database", func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.Exec("CREATE TABLE bookmarks (id)")
			return err
		}},
		{"no database", func(path string) error {
			return os.WriteFile(path, []byte(strings.Repeat("just some text\n", 100)), 0o600)
		}},
	} {
		path := filepath.Join(t.TempDir(), "graph.db")
		if err := tt.write(path); err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		ix, err := sqliteindex.Open(t.Context(), path)
		if !fault.Is(err, fault.Corrupt) || !strings.Contains(fault.HintOf(unwrapTo(err)), "mem rebuild") {
			t.Errorf("%s: got %v, want corrupt with the cure `mem rebuild`", tt.name, err)
		}
		if ix != nil {
			ix.Close()
		}
		if tt.name != "no database" {
			continue
		}
		if after, _ := os.ReadFile(path); string(after) != string(before) {
			t.Errorf("%s: the file was changed", tt.name)
		}
	}
}

// unwrapTo is the fault in err's chain.
func unwrapTo(err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e
	}
	return err
}

func TestReopen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "graph.db")
	n := indextest.Evidence(indextest.Project, "q@1", "Logs rotate daily.", 1)
	state := func(ix *sqliteindex.Index) []any {
		hash, counts, err := ix.Hash(t.Context(), indextest.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		hits, err := ix.SearchDense(t.Context(), indextest.Space, indextest.Embed("logs"), index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}, 3)
		if err != nil {
			t.Fatal(err)
		}
		return []any{hash, counts, hits}
	}
	ix := open(t, path)
	if err := ix.Apply(t.Context(), indextest.Batch(1, n)); err != nil {
		t.Fatal(err)
	}
	want := state(ix)
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	ix = open(t, path)
	defer ix.Close()
	if d := cmp.Diff(want, state(ix)); d != "" {
		t.Errorf("after opening again (-want +got):\n%s", d)
	}
}

// The first pass and the rescoring agree with an exact scan, however the rows
// came into memory: loaded at once, or added batch by batch after a search.
func TestDenseAgreesWithExactScan(t *testing.T) {
	t.Parallel()
	const rows, dims, queries, k = 1500, 70, 30, 10 // two words of code
	r := rand.New(rand.NewPCG(5, 6))
	centre := make([]float64, dims)
	for i := range centre {
		centre[i] = r.NormFloat64()
	}
	vector := func() []float32 {
		v := make([]float32, dims)
		var sum float64
		for i := range v {
			x := 0.7*centre[i] + r.NormFloat64()/(1+float64(i)/20) // neither centred nor even
			v[i] = float32(x)
			sum += x * x
		}
		for i := range v {
			v[i] /= float32(math.Sqrt(sum))
		}
		return v
	}
	var batches []index.Batch
	vectors := map[memory.SHA][]float32{}
	for seq := int64(1); len(vectors) < rows; seq++ {
		b := index.Batch{Tenant: indextest.Tenant, Project: indextest.Project, Stream: "q@1", Space: "s", Seq: seq, Vectors: map[memory.SHA][]float32{}}
		for i := range 250 {
			n := indextest.Evidence(indextest.Project, "q@1", "row "+time.Duration(int(seq)*10000+i).String(), 1)
			v := vector()
			b.Vectors[index.PassagesOf(&n)[0].ID] = v
			b.Nodes = append(b.Nodes, n)
			vectors[n.ID] = v
		}
		batches = append(batches, b)
	}
	path := filepath.Join(t.TempDir(), "graph.db")
	grown := open(t, path)
	defer grown.Close()
	f := index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}
	for seq, b := range batches {
		if err := grown.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if seq == 0 {
			grown.Rescore(t.Context(), indextest.Tenant, "s", rows*2/5)
		}
		if _, err := grown.SearchDense(t.Context(), "s", vector(), f, k); err != nil {
			t.Fatal(err)
		}
	}
	loaded := open(t, path)
	defer loaded.Close()
	loaded.Rescore(t.Context(), indextest.Tenant, "s", rows*2/5)
	for name, ix := range map[string]*sqliteindex.Index{"grown": grown, "loaded": loaded} {
		found := 0
		for range queries {
			q := vector()
			hits, err := ix.SearchDense(t.Context(), "s", q, f, k)
			if err != nil || len(hits) != k {
				t.Fatalf("%s: %d hits, %v", name, len(hits), err)
			}
			better := 0
			for _, v := range vectors {
				if dot(q, v) > hits[k-1].Score+1e-6 {
					better++
				}
			}
			found += k - max(0, better-(k-1))
			for i, h := range hits {
				if want := dot(q, vectors[h.Node]); math.Abs(h.Score-want) > 1e-5 || i > 0 && h.Score > hits[i-1].Score {
					t.Fatalf("%s: place %d has score %v, exactly %v", name, i, h.Score, want)
				}
			}
		}
		if recall := float64(found) / (queries * k); recall < .98 { // by chance it is 0.4
			t.Errorf("%s: recall@10 is %.3f", name, recall)
		}
	}
}

func dot(a, b []float32) (s float64) {
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

// A start reads no vector, so that a function is ready at once.
func BenchmarkOpen(b *testing.B) {
	b.Run("1k-nodes", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "graph.db")
		ix := open(b, path)
		var nodes []index.Node
		for i := range 1000 {
			nodes = append(nodes, indextest.Evidence(indextest.Project, "q@1", "row "+time.Duration(i).String(), 1))
		}
		if err := ix.Apply(b.Context(), indextest.Batch(1, nodes...)); err != nil {
			b.Fatal(err)
		}
		ix.Close()
		for b.Loop() {
			ix := open(b, path)
			if _, err := ix.Applied(b.Context(), indextest.Tenant, indextest.Project, "q@1", indextest.Space); err != nil {
				b.Fatal(err)
			}
			ix.Close()
		}
	})
}

func TestCrash(t *testing.T) {
	indextest.RunCrash(t, "TestCrash", 5,
		func(dir string) (indextest.Projection, error) {
			return sqliteindex.Open(t.Context(), filepath.Join(dir, "graph.db"))
		},
		func(t *testing.T, want, got indextest.Projection) {
			t.Helper()
			w, _, err := want.(*sqliteindex.Index).Hash(t.Context(), indextest.Tenant)
			if err != nil {
				t.Fatal(err)
			}
			g, _, err := got.(*sqliteindex.Index).Hash(t.Context(), indextest.Tenant)
			if err != nil || g != w {
				t.Errorf("hash after the kill: %s, %v; undisturbed: %s", g, err, w)
			}
			if problems, err := got.(*sqliteindex.Index).Check(t.Context(), indextest.Tenant); err != nil || len(problems) > 0 {
				t.Errorf("check after the kill: %q, %v", problems, err)
			}
		})
}

// Check names what is wrong with rows that were changed behind its back.
func TestCheckFindsChangedRows(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]string{
		"text does not match its hash":        `UPDATE node SET text = 'Logs rotate weekly.'`,
		"id is not that of its content":       `UPDATE node SET level = 'raw'`,
		"passages are not those of its text":  `DELETE FROM passage`,
		"has no span":                         `UPDATE occurrence SET span = ''`,
		"has no vector in space":              `DELETE FROM vector`,
		"is not in the index and has an edge": `INSERT INTO edge VALUES (x'01', 1, x'02', 'acme', 'shop')`,
		"replaces 02, which is not":           `INSERT INTO edge SELECT id, 1, x'02', 'acme', 'shop' FROM node`,
		"parent 02 is not in the index":       `INSERT INTO edge SELECT id, 0, x'02', 'acme', 'shop' FROM node`,
		"has no evidence (L0) below it":       `UPDATE node SET level = 'L1'`,
		"has no memory (L1) below it":         `UPDATE node SET level = 'L2'`,
	} {
		path := filepath.Join(t.TempDir(), "graph.db")
		ix := open(t, path)
		if err := ix.Apply(t.Context(), indextest.Batch(1, indextest.Evidence(indextest.Project, "q@1", "Logs rotate daily.", 1))); err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(change); err != nil {
			t.Fatal(err)
		}
		db.Close()
		got, err := ix.Check(t.Context(), indextest.Tenant)
		if err != nil || !strings.Contains(strings.Join(got, "\n"), name) {
			t.Errorf("%s: got %q, %v; want %q", change, got, err, name)
		}
		ix.Close()
	}
}
