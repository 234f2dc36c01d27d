package pglookup_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/lookup/lookuptest"
	"github.com/mneme-ai/mneme/shared/lookup/pglookup"
	"github.com/mneme-ai/mneme/shared/memory"
)

// fresh is an empty schema of its own, dropped at the end, in the database of
// MNEME_TEST_PG; without one the test is skipped with a message.
func fresh(t testing.TB) pglookup.Config {
	t.Helper()
	url := os.Getenv("MNEME_TEST_PG")
	if url == "" {
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), "pg") {
			t.Fatal("MNEME_TEST_PG is required")
		}
		t.Skip("MNEME_TEST_PG is not set: MNEME_TEST_PG=$(infra/local/services/postgres.sh start DIR)")
	}
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	c := pglookup.Config{URL: url, Schema: "test_" + hex.EncodeToString(b)}
	t.Cleanup(func() { exec(t, url, `DROP SCHEMA IF EXISTS `+c.Schema+` CASCADE`) })
	return c
}

func exec(t testing.TB, url, sql string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, c pglookup.Config) *pglookup.Index {
	t.Helper()
	ix, err := pglookup.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	return ix
}

func TestSuite(t *testing.T) {
	t.Parallel()
	fresh(t)
	lookuptest.Run(t, func(t *testing.T) lookup.Index { return open(t, fresh(t)) })
}

// Two processes on one schema see each other's rows; another version is refused.
func TestShared(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	a, b := open(t, c), open(t, c)
	s := lookup.Scope{Tenant: "acme", Project: "shop"}
	if err := a.Apply(t.Context(), s, lookup.Batch{Rows: []lookup.Row{row(1)}}); err != nil {
		t.Fatal(err)
	}
	if ms, n, err := b.Find(t.Context(), s, lookup.Detail, []memory.SHA{memory.SumString("d1")}, 5); len(ms) != 1 || n != 1 || err != nil {
		t.Error(len(ms), n, err)
	}
	// Tables that somebody dropped are named, and made anew by what begins a rebuild.
	exec(t, c.URL, `DROP SCHEMA `+c.Schema+` CASCADE`)
	if _, _, err := b.Find(t.Context(), s, lookup.Detail, []memory.SHA{memory.SumString("d1")}, 5); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.HintOf(err), "mem rebuild") {
		t.Errorf("without tables: %v, %s", err, fault.HintOf(err))
	}
	if ps, err := b.Projects(t.Context(), "acme"); len(ps) != 0 || err != nil {
		t.Errorf("made anew: %v %v", ps, err)
	}
	if err := a.Replace(t.Context(), s, lookup.Batch{Rows: []lookup.Row{row(1)}}); err != nil {
		t.Error(err)
	}
	exec(t, c.URL, `UPDATE `+c.Schema+`.lesson_schema SET version = 99`)
	if _, err := pglookup.Open(t.Context(), c); !fault.Is(err, fault.Corrupt) {
		t.Errorf("another version: %v", err)
	}
	if _, err := pglookup.Open(t.Context(), pglookup.Config{URL: "nonsense://x y"}); !fault.Is(err, fault.Invalid) {
		t.Errorf("no URL: %v", err)
	}
}

func row(n int) lookup.Row {
	return lookup.Row{
		Key: memory.SumString(fmt.Sprint("k", n)), At: time.UnixMilli(int64(n)).UTC(), Body: []byte(`{"text":"cure"}`),
		Hashes: []lookup.Hash{{Kind: lookup.Detail, SHA: memory.SumString(fmt.Sprint("d", n))}, {Kind: lookup.Class, SHA: memory.SumString(fmt.Sprint("c", n/3))}, {Kind: lookup.Symptom, SHA: memory.SumString(fmt.Sprint("s", n/3))}},
	}
}

// BenchmarkFind looks one failure up among so many others.
func BenchmarkFind(b *testing.B) {
	const n = 100_000
	ix := open(b, fresh(b))
	s := lookup.Scope{Tenant: "acme", Project: "shop"}
	for at := 0; at < n; {
		var batch lookup.Batch
		for ; at < n && len(batch.Rows) < 5000; at++ {
			batch.Rows = append(batch.Rows, row(at))
		}
		if err := ix.Apply(b.Context(), s, batch); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("100k-signatures/detail", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			i++
			if ms, _, err := ix.Find(b.Context(), s, lookup.Detail, []memory.SHA{memory.SumString(fmt.Sprint("d", i*7919%n))}, 64); len(ms) != 1 || err != nil {
				b.Fatal(len(ms), err)
			}
		}
	})
}
