package forget_test

import (
	"context"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/forget"
	"github.com/mneme-ai/mneme/shared/index/osindex"
	"github.com/mneme-ai/mneme/shared/index/pgindex"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/s3store"
)

// TestOnServers: a source is forgotten of a log in an S3 server, rows in PostgreSQL and
// words in OpenSearch; no listing or search finds it. MNEME_TEST_FORGET_FILES names the servers' folders, separated by ":", where
// they are this test's own: their files are then looked through too, after what an
// administrator does for the WAL.
func TestOnServers(t *testing.T) {
	t.Parallel()
	dsn, cluster, s3 := os.Getenv("MNEME_TEST_PG"), os.Getenv("MNEME_TEST_OS"), os.Getenv("MNEME_TEST_S3")
	if dsn == "" || cluster == "" || s3 == "" {
		t.Skip("MNEME_TEST_PG, MNEME_TEST_OS or MNEME_TEST_S3 is not set")
	}
	ctx := t.Context()
	name := "forget" + strconv.FormatInt(time.Now().UnixNano(), 36)
	u, err := url.Parse(s3)
	if err != nil {
		t.Fatal(err)
	}
	pass, _ := u.User.Password()
	o := functest.Options{}
	for _, kind := range []string{"inbox", "log"} {
		c := s3store.Config{Endpoint: u.Scheme + "://" + u.Host, Bucket: name + "-" + kind, AccessKey: u.User.Username(), SecretKey: pass}
		if err := s3store.MakeBucket(ctx, c); err != nil {
			t.Fatal(err)
		}
		d, err := s3store.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		if kind == "inbox" {
			o.InboxDriver = d
		} else {
			o.LogDriver = d
		}
	}
	sep := "?"
	if strings.Contains(dsn, "?") {
		sep = "&"
	}
	pg, err := pgindex.Open(ctx, pgindex.Config{URL: dsn + sep + "search_path=" + name})
	if err != nil {
		t.Fatal(err)
	}
	lex, err := osindex.Open(ctx, osindex.Config{URLs: []string{cluster + "/" + name}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pg.Wipe(context.WithoutCancel(ctx), functest.Tenant, "")
		_ = pg.Close()
		_ = lex.Close()
		req, err := http.NewRequest(http.MethodDelete, cluster+"/"+name+"-*", nil)
		if err == nil {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	})
	o.Graph, o.Lexical = pg, lex
	w := taught(t, o, bodies()...)
	t.Cleanup(func() { emptied(t, w) })
	w.Hashes()
	if n := len(leaks(t, w)); n < 8 {
		t.Fatalf("%d places hold the words before: the test proves nothing", n)
	}
	files := os.Getenv("MNEME_TEST_FORGET_FILES")
	if files != "" {
		if _, bad := holding(t, files); len(bad) < 8 {
			t.Fatalf("before, %d files hold the words: %v", len(bad), bad)
		}
	}
	r := forgotten(t, w, forget.Request{Target: memory.Target{Source: target}, Inbox: true})
	if !r.OK || len(r.Removed.Inbox) != 1 || r.Removed.Vectors == 0 {
		t.Errorf("%+v", r)
	}
	clean(t, w)
	if _, err := w.Inbox.Head(ctx, target); !fault.Is(err, fault.NotFound) {
		t.Errorf("the upload is there: %v", err)
	}
	want := w.Hashes()
	if _, err := w.Project.Rebuild(ctx, nil); err != nil {
		t.Fatal(err)
	}
	w.Sweep()
	if got := w.Hashes(); got.Index != want.Index || got.Log != want.Log {
		t.Error("a rebuild and a sweep change the hashes")
	}
	if files == "" {
		return
	}
	if err := w.Project.Purge(ctx); err != nil { // the rebuild's rows were deleted and written anew
		t.Fatal(err)
	}
	for _, q := range []string{"ALTER SYSTEM SET wal_recycle = off", "SELECT pg_reload_conf()", "SELECT pg_switch_wal()", "CHECKPOINT", "SELECT pg_switch_wal()", "CHECKPOINT"} {
		if out, err := exec.CommandContext(ctx, "psql", dsn, "-qAtc", q).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", q, err, out)
		}
	}
	looked, bad := holding(t, files)
	for _, path := range bad {
		t.Error("holds what was forgotten: " + path)
	}
	t.Logf("%d files of the servers hold none of the words", looked)
}

// holding counts the files under folders, and names those that hold one of the words.
func holding(t *testing.T, dirs string) (looked int, bad []string) {
	t.Helper()
	for _, dir := range strings.Split(dirs, ":") {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) || err == nil && !d.Type().IsRegular() {
				return nil
			}
			if err != nil {
				return err
			}
			b, err := os.ReadFile(path)
			if os.IsNotExist(err) {
				return nil
			}
			looked++
			for _, word := range unique {
				if strings.Contains(strings.ToLower(string(b)), word) {
					bad = append(bad, path+": "+word)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return looked, bad
}

// emptied removes what stands in a store.
func emptied(t *testing.T, w *functest.World) {
	ctx := context.WithoutCancel(t.Context())
	for _, b := range []*objstore.Bucket{w.Inbox, w.Bucket} {
		for o, err := range b.List(ctx, "") {
			if err == nil {
				_ = b.Delete(ctx, o.Key)
			}
		}
	}
}
