package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

// A stream of many segments writes its folded state now and then, not with
// every append: the state is as large as all that the stream has kept.
func TestFoldCacheIsWrittenSeldom(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{})
	const parts = 40
	caches, segments := 0, 0
	for i := range parts {
		e := w.Put(fmt.Sprintf("shop/%d.jsonl", i), functest.Decision(fmt.Sprintf("s%d", i), start.AddDate(0, 0, i),
			fmt.Sprintf("We decided to keep the limit of queue q%d at %d messages, because the consumer falls behind.", i, 100+i)))
		w.Run(e)
	}
	for _, c := range w.Stores.Calls() {
		if c.Op != memstore.OpPut {
			continue
		}
		switch {
		case strings.HasPrefix(c.Key, "derived/fold/") && strings.Contains(c.Key, "decisions@"):
			caches++
		case strings.Contains(c.Key, "/questions/decisions@"):
			segments++
		}
	}
	if segments != parts {
		t.Fatalf("%d segments, want %d", segments, parts)
	}
	if want := parts / 16; caches != want { // replay writes one when 16 segments are past the last
		t.Errorf("%d folded states for %d segments, want %d", caches, segments, want)
	}
}

// All streams of a project read an admit line from the store once.
func TestAdmitLineIsReadOnce(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{})
	w.Ask("shop", "decisions", "causes", "rules")
	admit(t, w)
	for _, id := range []string{"decisions", "causes", "rules"} {
		w.Stores.Calls()
		if err := drive(t, w, requested(id, 1)); err != nil {
			t.Fatal(err)
		}
		reads := 0
		for _, c := range w.Stores.Calls() {
			if c.Op == memstore.OpGet && strings.HasSuffix(c.Key, "/admit/00000000000000000002.jsonl") {
				reads++
			}
		}
		if id != "decisions" && reads > 0 {
			t.Errorf("stream %s read the second admit line %d times more", id, reads)
		}
	}
}
