package pgindex_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

func TestStages(t *testing.T) {
	t.Parallel()
	database(t)
	indextest.RunGraphStages(t, func(t *testing.T) index.Graph { return open(t, fresh(t)) })
}

// TestDroppedConnections: connections that end while a graph is staged and switched leave
// the serving one whole; what is tried again ends in the same rows.
func TestDroppedConnections(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	name := "mneme-" + c.Schema
	sep := "?"
	if strings.Contains(c.URL, "?") {
		sep = "&"
	}
	c.URL += sep + "application_name=" + name
	ix := open(t, c)
	want := indextest.NewGraph()
	var batches []index.Batch
	for seq := int64(1); seq <= 60; seq++ {
		b := indextest.Batch(seq, indextest.Evidence(indextest.Project, "q@1", fmt.Sprintf("Batch %d goes to the archive.", seq), int(seq)))
		batches = append(batches, b)
		if err := want.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if err := ix.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	hash, _, err := want.Hash(t.Context(), indextest.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	var end atomic.Bool
	killer, killed := make(chan error, 1), 0
	go func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, database(t))
		if err == nil {
			defer conn.Close(ctx)
			r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
			for !end.Load() && err == nil {
				time.Sleep(time.Duration(30+r.IntN(250)) * time.Millisecond)
				var n int
				err = conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1`, name).Scan(&n)
				killed += n
			}
		}
		killer <- err
	}()
	failed, switched := 0, 0
	deadline := time.Now().Add(20 * time.Second)
	for switched < 2 && time.Now().Before(deadline) {
		err := func() error {
			next, err := ix.Stage(t.Context(), indextest.Tenant)
			if err != nil {
				return err
			}
			defer next.Close()
			for _, b := range batches {
				if err := next.Apply(t.Context(), b); err != nil {
					return err
				}
			}
			return next.Switch(t.Context())
		}()
		if err == nil {
			switched++
			continue
		}
		failed++
		if k := fault.KindOf(err); k != fault.Unavailable {
			t.Fatalf("%v: %v", k, err)
		}
	}
	end.Store(true)
	if err := <-killer; err != nil {
		t.Fatal(err)
	}
	var got string
	for range 5 { // connections of the pool that are dead are told apart by their use
		h, _, err := ix.Hash(t.Context(), indextest.Tenant)
		if got = string(h); err == nil {
			break
		}
	}
	t.Logf("%d connections ended, %d tries failed, %d switches", killed, failed, switched)
	if got != string(hash) || switched == 0 || killed == 0 {
		t.Errorf("hash %s, want %s; %d switches, %d connections ended", got, hash, switched, killed)
	}
}

// TestRenewedSchema: tables staged beside a schema that was dropped since are begun anew,
// as their spaces' numbers may be given again.
func TestRenewedSchema(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	ix := open(t, c)
	b := indextest.Batch(1, indextest.Evidence(indextest.Project, "q@1", "The archive keeps orders.", 1))
	stage := func() index.StagedGraph {
		t.Helper()
		next, err := ix.Stage(t.Context(), indextest.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	next := stage()
	if err := next.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	next.Close()
	exec(t, c.URL, `DROP SCHEMA `+c.Schema+` CASCADE`)
	next = stage()
	if n, err := next.Applied(t.Context(), indextest.Tenant, indextest.Project, "q@1", indextest.Space); err != nil || n != 0 {
		t.Errorf("applied %d, %v", n, err)
	}
	if err := next.Apply(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := next.Switch(t.Context()); err != nil {
		t.Fatal(err)
	}
	hits, err := ix.SearchDense(t.Context(), indextest.Space, indextest.Embed("orders"), index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}, 5)
	if err != nil || len(hits) != 1 {
		t.Errorf("%v, %v", hits, err)
	}
}
