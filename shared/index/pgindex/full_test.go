package pgindex_test

import (
	"fmt"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/pgindex"
)

// TestFullDisk: the disk runs full while a graph is staged. The error says so and what to
// do, the serving graph answers on, and once the staged one is dropped another fits.
func TestFullDisk(t *testing.T) {
	c := fresh(t)
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := osexec.Command("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := osexec.Command("umount", disk).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	if u, err := user.Lookup("postgres"); err == nil {
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		for _, p := range []string{disk, filepath.Dir(disk), filepath.Dir(filepath.Dir(disk))} {
			if err := os.Chmod(p, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(disk, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	space := "small_" + c.Schema
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `CREATE TABLESPACE `+space+` LOCATION '`+disk+`'`); err != nil {
		t.Skipf("the server cannot use a disk of this machine: %v", err)
	}
	t.Cleanup(func() {
		exec(t, c.URL, `DROP SCHEMA IF EXISTS `+c.Schema+` CASCADE`)
		exec(t, c.URL, `DROP TABLESPACE `+space)
	})
	url := c.URL
	if strings.Contains(url, "?") {
		url += "&"
	} else {
		url += "?"
	}
	ix := open(t, pgindex.Config{URL: url + "default_tablespace=" + space, Schema: c.Schema})
	serving := indextest.Batch(1, indextest.Evidence(indextest.Project, "q@1", "The archive keeps orders.", 1))
	if err := ix.Apply(t.Context(), serving); err != nil {
		t.Fatal(err)
	}
	finds := func() {
		t.Helper()
		hits, err := ix.SearchDense(t.Context(), indextest.Space, indextest.Embed("orders"), index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project}}, 5)
		if err != nil || len(hits) != 1 {
			t.Errorf("%d hits, %v", len(hits), err)
		}
	}
	next, err := ix.Stage(t.Context(), indextest.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	for seq := int64(1); seq <= 200 && err == nil; seq++ {
		var nodes []index.Node
		for i := range 200 {
			nodes = append(nodes, indextest.Evidence(indextest.Project, "q@1", fmt.Sprintf("Batch %d says %d. %s", seq, i, strings.Repeat("It goes to the archive. ", 8)), i+1))
		}
		err = next.Apply(t.Context(), indextest.Batch(seq, nodes...))
	}
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "disk is full") || !strings.Contains(fault.HintOf(err), "free space") {
		t.Fatalf("%v (%s)", err, fault.HintOf(err))
	}
	finds()
	if err := next.Drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if next, err = ix.Stage(t.Context(), indextest.Tenant); err != nil {
		t.Fatal(err)
	}
	if err := next.Apply(t.Context(), serving); err != nil {
		t.Fatal(err)
	}
	if err := next.Switch(t.Context()); err != nil {
		t.Fatal(err)
	}
	finds()
}
