package project_test

import (
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

var vaultDay = time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)

func story(t *testing.T) *functest.World {
	t.Helper()
	w := functest.New(t, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	w.Ask("shop", "decisions", "limits")
	w.Learned("shop/a.jsonl", functest.Decision("s1", vaultDay, "We decided to keep the limit of queue orders at 100 messages, because the consumer falls behind."))
	w.Learned("shop/b.jsonl", functest.Decision("s2", vaultDay.AddDate(0, 0, 1), "From now on the limit of queue orders is 250 messages instead of 100, because the consumer got faster."))
	w.Learned("shop/c.jsonl", functest.Decision("s3", vaultDay.AddDate(0, 0, 2), "We decided to sign releases with the new key, never with [[the old one]] or #legacy %%keys%%."))
	return w
}

func TestPrint(t *testing.T) {
	w := story(t)
	for info, err := range w.Bucket.List(t.Context(), "derived/vault/") {
		if err != nil {
			t.Fatal(err)
		}
		b, _, _ := w.Bucket.ReadAll(t.Context(), info.Key, 1<<20)
		t.Logf("== %s\n%s", info.Key, b)
	}
	v, err := w.Project.Vault(t.Context(), "shop", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range v.Files {
		t.Log(f.Path)
	}
}
