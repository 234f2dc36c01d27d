package eventlog_test

import (
	"context"
	"os"
	"testing"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
)

// On a folder the log is the same log, and a plain copy of the folder is a
// back-up: it verifies to the same hashes.
func TestFolder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	want, _ := hashes(t, build(t, newBucket(), "w", 2, 5, stream, second))
	dir, copied := t.TempDir(), t.TempDir()
	open := func(dir string) *objstore.Bucket {
		s, err := dirstore.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return objstore.NewBucket("mneme", s)
	}
	build(t, open(dir), "w", 2, 5, stream, second)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]string{"folder": dir, "copy": copied} {
		l := eventlog.Open(open(d), tenant, "v")
		rep, err := l.Verify(ctx, nil)
		if err != nil || !rep.OK || rep.LogHash != want {
			t.Errorf("%s: %v, %v, log hash %s; want %s", name, rep.Problems, err, rep.LogHash, want)
		}
	}
}
