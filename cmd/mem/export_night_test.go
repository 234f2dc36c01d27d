package main_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/functions/project"
)

// TestExportNight: what `mem up` exports by itself is listed, fetched and checked by its
// day, and sound to the check where it lies in the store.
func TestExportNight(t *testing.T) {
	t.Parallel()
	src := t.TempDir()
	sessions(t, src, 2)
	s := start(t, filepath.Join(t.TempDir(), "data"), "MNEME_TEST_SWEEP=200ms")
	if out := s.must("export", "list"); !strings.Contains(out, "no night's export stands") {
		t.Errorf("at first: %s", out)
	}
	s.ingest(src)
	var list project.Nights
	for end := time.Now().Add(30 * time.Second); len(list.Nights) == 0; time.Sleep(100 * time.Millisecond) {
		if err := json.Unmarshal([]byte(s.must("export", "list", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatalf("yesterday is not exported\n%s", s.log)
		}
	}
	n := list.Nights[0]
	if out := s.must("export", "list"); !strings.Contains(out, n.Day+"  ") || !strings.Contains(out, n.ExportID) {
		t.Errorf("list: %s", out)
	}
	dir := filepath.Join(t.TempDir(), "night")
	if out := s.must("export", "get", n.Day, "--out", dir); !strings.Contains(out, "runs in "+dir) || !strings.Contains(out, "export "+n.ExportID) {
		t.Errorf("get: %s", out)
	}
	if out := s.must("export", "--check", dir); !strings.Contains(out, "8 files are sound") {
		t.Errorf("check of what was fetched: %s", out)
	}
	stored := filepath.Join(s.dir, "buckets", "mneme", "derived", "exports", n.Day, "local")
	if out := s.must("export", "--check", stored); !strings.Contains(out, "8 files are sound") {
		t.Errorf("check in the store: %s", out)
	}
	s.must("export", "get", n.Day, "--out", dir) // it still stands
	for code, args := range map[int][]string{2: {"export", "get", n.Day}, 4: {"export", "get", "yesterday", "--out", dir}, 1: {"export", "get", "2020-01-01", "--out", dir}} {
		if out, got := s.mem(args...); got != code {
			t.Errorf("%v: exit %d, want %d\n%s", args, got, code, out)
		}
	}
}
