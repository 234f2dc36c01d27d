package pgindex_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/pgindex"
	"github.com/mneme-ai/mneme/shared/memory"
)

// schemaOf names a schema after a test's folder, so that a process that is killed and
// its heir meet the same one.
func schemaOf(dir string) string {
	return "test_" + strings.ToLower(memory.SumString(filepath.Clean(dir)).Short())
}

func TestCrash(t *testing.T) {
	url := database(t)
	same := func(t *testing.T, want, got indextest.Projection) {
		t.Helper()
		w, _, err := want.(*pgindex.Index).Hash(t.Context(), indextest.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		g, _, err := got.(*pgindex.Index).Hash(t.Context(), indextest.Tenant)
		if err != nil || g != w {
			t.Errorf("hash after the kill: %s, %v; undisturbed: %s", g, err, w)
		}
		if problems, err := got.(*pgindex.Index).Check(t.Context(), indextest.Tenant); err != nil || len(problems) > 0 {
			t.Errorf("check after the kill: %q, %v", problems, err)
		}
	}
	var schemas []string
	t.Cleanup(func() {
		for _, s := range schemas {
			exec(t, url, `DROP SCHEMA IF EXISTS `+s+` CASCADE`)
		}
	})
	indextest.RunCrash(t, "TestCrash", 5, func(dir string) (indextest.Projection, error) {
		schemas = append(schemas, schemaOf(dir))
		return pgindex.Open(t.Context(), pgindex.Config{URL: url, Schema: schemaOf(dir)})
	}, same)
}

// TestFilteredWalk: of 20,000 passages 1 % are in the project asked for. A walk of the
// graph finds ten, nearly those of the exact scan; without the iterative scan it does not.
func TestFilteredWalk(t *testing.T) {
	t.Parallel()
	ix := open(t, fresh(t))
	const all, share, dims = 20_000, 100, 32
	r := rand.New(rand.NewPCG(3, 4))
	vector := func() []float32 {
		v := make([]float32, dims)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		return v
	}
	fill := func(project string, n int) {
		b := index.Batch{Tenant: indextest.Tenant, Project: project, Stream: "q@1", Space: "walk", Vectors: map[memory.SHA][]float32{}}
		for i := range n {
			node := indextest.Evidence(project, "q@1", fmt.Sprintf("Passage %d of %s.", i, project), i+1)
			node.Passages = index.PassagesOf(&node)
			b.Nodes = append(b.Nodes, node)
			b.Vectors[node.Passages[0].ID] = vector()
			if len(b.Nodes) == 5000 || i == n-1 {
				b.Seq++
				if err := ix.Apply(t.Context(), b); err != nil {
					t.Fatal(err)
				}
				b.Nodes, b.Vectors = nil, map[memory.SHA][]float32{}
			}
		}
	}
	fill("large", all-all/share)
	fill("small", all/share)
	ix.SetExact(all - 1)
	if err := ix.Maintain(t.Context(), indextest.Tenant); err != nil {
		t.Fatal(err)
	}
	f := index.Filter{Tenant: indextest.Tenant, Projects: []string{"small"}}
	const k, questions = 10, 20
	found := map[string]int{}
	rows := map[string]int{}
	for range questions {
		q := vector()
		exact, err := ix.SearchDense(t.Context(), "walk", q, f, k) // 200 rows: a scan
		if err != nil || len(exact) != k {
			t.Fatalf("%d rows, %v", len(exact), err)
		}
		want := map[memory.SHA]bool{}
		for _, h := range exact {
			want[h.Node] = true
		}
		for _, mode := range []string{"relaxed_order", "off"} {
			hits := ix.WalkOnly(t.Context(), t, "walk", q, f, k, mode)
			rows[mode] += len(hits)
			for i, h := range hits {
				if want[h.Node] {
					found[mode]++
				}
				if i > 0 && h.Score > hits[i-1].Score {
					t.Fatalf("hit %d is nearer than the one before", i)
				}
			}
		}
	}
	recall := func(mode string) float64 { return float64(found[mode]) / (k * questions) }
	t.Logf("iterative: %d rows, recall %.3f; off: %d rows, recall %.3f", rows["relaxed_order"], recall("relaxed_order"), rows["off"], recall("off"))
	if rows["relaxed_order"] != k*questions || recall("relaxed_order") < 0.95 {
		t.Errorf("%d rows of %d, recall %.3f", rows["relaxed_order"], k*questions, recall("relaxed_order"))
	}
	if rows["off"] == k*questions || recall("off") >= 0.95 {
		t.Errorf("without the iterative scan %d rows, recall %.3f: this test shows nothing", rows["off"], recall("off"))
	}
	// What a walk does not come to is found by the scan behind it.
	ix.SetExact(1)
	hits, err := ix.SearchDense(t.Context(), "walk", vector(), f, all/share)
	if err != nil || len(hits) != all/share {
		t.Errorf("all of the small project: %d hits, %v", len(hits), err)
	}
}

// TestMaintain: an index is made once the space is large, again where its making was
// cut off, and never twice.
func TestMaintain(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	ix := open(t, c)
	for seq, n := range []string{"Logs rotate daily.", "Backups run at noon."} {
		if err := ix.Apply(t.Context(), indextest.Batch(int64(seq+1), indextest.Evidence(indextest.Project, "q@1", n, seq+1))); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	indexes := func() (oids []uint32) {
		rows, err := conn.Query(t.Context(), `SELECT i.indexrelid::oid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace s ON s.oid = c.relnamespace JOIN pg_am a ON a.oid = c.relam
			WHERE s.nspname = $1 AND a.amname = 'hnsw' AND i.indisvalid`, c.Schema)
		if err != nil {
			t.Fatal(err)
		}
		if oids, err = pgx.CollectRows(rows, pgx.RowTo[uint32]); err != nil {
			t.Fatal(err)
		}
		return oids
	}
	maintain := func(want int) []uint32 {
		t.Helper()
		if err := ix.Maintain(t.Context(), indextest.Tenant); err != nil {
			t.Fatal(err)
		}
		got := indexes()
		if len(got) != want {
			t.Fatalf("%d indexes, want %d", len(got), want)
		}
		return got
	}
	maintain(0)
	ix.SetExact(1)
	first := maintain(1)
	if d := cmp.Diff(first, maintain(1)); d != "" {
		t.Errorf("made twice:\n%s", d)
	}
	if _, err := conn.Exec(t.Context(), `UPDATE pg_index SET indisvalid = false WHERE indexrelid = $1`, first[0]); err != nil {
		t.Fatal(err)
	}
	if again := maintain(1); again[0] == first[0] {
		t.Error("an index that was not finished stays")
	}
	hits, err := ix.SearchDense(t.Context(), indextest.Space, indextest.Embed("logs daily"), index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}, 2)
	if err != nil || len(hits) != 2 {
		t.Errorf("%v %v", hits, err)
	}
}

// TestSpaces: each space has a table with its own dimension, over 2,000 as halfvec, over
// 4,000 without an index; nothing of another dimension comes in.
func TestSpaces(t *testing.T) {
	t.Parallel()
	ix := open(t, fresh(t))
	ix.SetExact(0)
	n := indextest.Evidence(indextest.Project, "q@1", "Logs rotate daily.", 1)
	zero := indextest.Evidence(indextest.Project, "q@1", "Nothing is known of this.", 1)
	for _, dims := range []int{3, 2000, 2001, 4000, 4001} {
		b := indextest.Batch(1, n, zero)
		b.Space = fmt.Sprint("dims", dims)
		for i, id := range []memory.SHA{index.PassagesOf(&n)[0].ID, index.PassagesOf(&zero)[0].ID} {
			b.Vectors[id] = make([]float32, dims)
			if i == 0 {
				b.Vectors[id][dims-1], b.Vectors[id][0] = 3, 4
			}
		}
		if err := ix.Apply(t.Context(), b); err != nil {
			t.Fatalf("%d dimensions: %v", dims, err)
		}
		if err := ix.Maintain(t.Context(), indextest.Tenant); err != nil {
			t.Fatalf("%d dimensions: %v", dims, err)
		}
		q := make([]float32, dims)
		q[0] = 2
		f := index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}
		hits, err := ix.SearchDense(t.Context(), b.Space, q, f, 5)
		if err != nil || len(hits) != 2 || hits[0].Node != n.ID || hits[0].Score < .799 || hits[0].Score > .801 || hits[1].Score != 0 {
			t.Errorf("%d dimensions: %+v %v", dims, hits, err)
		}
		wrong := indextest.Batch(2, indextest.Evidence(indextest.Project, "q@1", "Another.", 2))
		wrong.Space = b.Space
		if err := ix.Apply(t.Context(), wrong); !fault.Is(err, fault.Invalid) {
			t.Errorf("%d dimensions in a space of %d: %v", indextest.Dims, dims, err)
		}
	}
	if problems, err := ix.Check(t.Context(), indextest.Tenant); err != nil || len(problems) > 0 {
		t.Errorf("%q %v", problems, err)
	}
}

// TestOddTexts: what PostgreSQL's text cannot hold comes back as it was.
func TestOddTexts(t *testing.T) {
	t.Parallel()
	ix := open(t, fresh(t))
	var nodes []index.Node
	for i, text := range []string{"a NUL \x00 in it", "no UTF-8 \xff\xfe", `quotes ' " \ $1 {a,b}`, "日本語 🚀\u2028", strings.Repeat("long ", 20000)} {
		n := indextest.Evidence(indextest.Project, "q@1", text, i+1)
		n.Occurrences[0].TurnID = "turn \x00 '"
		n.Occurrences[0].Span.Object = "a \x00 b/" + strings.Repeat("x", 1000)
		nodes = append(nodes, n)
	}
	if err := ix.Apply(t.Context(), indextest.Batch(1, nodes...)); err != nil {
		t.Fatal(err)
	}
	ref := indextest.NewGraph()
	if err := ref.Apply(t.Context(), indextest.Batch(1, nodes...)); err != nil {
		t.Fatal(err)
	}
	var ids []memory.SHA
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	want, _ := ref.Nodes(t.Context(), indextest.Tenant, ids)
	got, err := ix.Nodes(t.Context(), indextest.Tenant, ids)
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	w, _, _ := ref.Hash(t.Context(), indextest.Tenant)
	if g, _, err := ix.Hash(t.Context(), indextest.Tenant); err != nil || g != w {
		t.Errorf("%s %v, want %s", g, err, w)
	}
	if problems, err := ix.Check(t.Context(), indextest.Tenant); err != nil || len(problems) > 0 {
		t.Errorf("%q %v", problems, err)
	}
}

// TestRefused: what cannot be used says what to do, and shows no password.
func TestRefused(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	open(t, c)
	exec(t, c.URL, `UPDATE `+c.Schema+`.schema_version SET version = 99`)
	if _, err := pgindex.Open(t.Context(), c); !fault.Is(err, fault.Corrupt) || !strings.Contains(fault.HintOf(err), "mem rebuild") {
		t.Errorf("a version of tomorrow: %v, %s", err, fault.HintOf(err))
	}
	exec(t, c.URL, `DROP TABLE `+c.Schema+`.schema_version`)
	if _, err := pgindex.Open(t.Context(), c); !fault.Is(err, fault.Corrupt) {
		t.Errorf("tables of somebody else: %v", err)
	}
	u, err := url.Parse(c.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("mneme", "hunter2secret")
	for name, bad := range map[string]string{
		"nobody there":  strings.Replace(u.String(), u.Host, "127.0.0.1:1", 1),
		"not a URL":     "postgres://mneme:hunter2secret@host:port/x",
		"no database":   strings.Replace(u.String(), "/mneme", "/nobody", 1),
		"not key=value": "hunter2secret",
	} {
		_, err := pgindex.Open(t.Context(), pgindex.Config{URL: bad})
		if err == nil || strings.Contains(err.Error(), "hunter2secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadOnly: a standby is an error that says so, and nothing is half stored.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	open(t, c)
	u, _ := url.Parse(c.URL)
	q := u.Query()
	q.Set("default_transaction_read_only", "on")
	u.RawQuery = q.Encode()
	c.URL = u.String()
	ix, err := pgindex.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	err = ix.Apply(t.Context(), indextest.Batch(1, indextest.Evidence(indextest.Project, "q@1", "Logs rotate daily.", 1)))
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("%v", err)
	}
	if n, c, err := ix.Hash(t.Context(), indextest.Tenant); err != nil || c.Nodes != 0 {
		t.Errorf("%s %+v %v", n, c, err)
	}
}
