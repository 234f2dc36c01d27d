package pgindex_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/pgindex"
)

// database is MNEME_TEST_PG, or the test is skipped with a message.
func database(t testing.TB) string {
	t.Helper()
	url := os.Getenv("MNEME_TEST_PG")
	if url == "" {
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), "pg") {
			t.Fatal("MNEME_TEST_PG is required")
		}
		t.Skip("MNEME_TEST_PG is not set: MNEME_TEST_PG=$(infra/local/services/postgres.sh start DIR)")
	}
	return url
}

// fresh is an empty schema of its own, dropped at the end.
func fresh(t testing.TB) pgindex.Config {
	t.Helper()
	url := database(t)
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	c := pgindex.Config{URL: url, Schema: "test_" + hex.EncodeToString(b)}
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

func open(t testing.TB, c pgindex.Config) *pgindex.Index {
	t.Helper()
	ix, err := pgindex.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	return ix
}

func TestGraph(t *testing.T) {
	t.Parallel()
	database(t)
	indextest.RunGraph(t, func(t *testing.T) index.Graph { return open(t, fresh(t)) })
}
