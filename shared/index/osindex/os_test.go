package osindex_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/osindex"
)

// cluster is MNEME_TEST_OS, or the test is skipped with a message.
func cluster(t testing.TB) string {
	t.Helper()
	url := os.Getenv("MNEME_TEST_OS")
	if url == "" {
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), "os") {
			t.Fatal("MNEME_TEST_OS is required")
		}
		t.Skip("MNEME_TEST_OS is not set: MNEME_TEST_OS=$(infra/local/services/opensearch.sh start DIR)")
	}
	return url
}

// fresh is a configuration with indices of its own, deleted at the end.
func fresh(t testing.TB) osindex.Config {
	t.Helper()
	url := cluster(t)
	b := make([]byte, 6)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	c := osindex.Config{URLs: []string{url}, Prefix: "test-" + hex.EncodeToString(b)}
	t.Cleanup(func() {
		request(t, http.MethodDelete, url+"/"+c.Prefix+"-*", "") // staged ones have longer names
	})
	return c
}

func request(t testing.TB, method, url, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func open(t testing.TB, c osindex.Config) *osindex.Index {
	t.Helper()
	ix, err := osindex.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ix.Close() })
	return ix
}

func TestLexical(t *testing.T) {
	t.Parallel()
	cluster(t)
	indextest.RunLexicalByWords(t, func(t *testing.T) index.Lexical { return open(t, fresh(t)) })
}
