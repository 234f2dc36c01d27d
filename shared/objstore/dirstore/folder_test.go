package dirstore_test

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
	"github.com/mneme-ai/mneme/shared/objstore/objstoretest"
)

func put(t testing.TB, s *dirstore.Store, key, text string) objstore.Info {
	t.Helper()
	info, err := s.Put(t.Context(), key, strings.NewReader(text), int64(len(text)), objstore.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func list(t testing.TB, s *dirstore.Store) []objstore.Info {
	t.Helper()
	infos, err := s.List(t.Context(), "", "", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return infos
}

func md5hex(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// TestPlainFiles: the folder can be read with cat, and its names are the keys.
func TestPlainFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	for key, file := range map[string]string{
		"p/2026/a session.jsonl":              "p/2026/a session.jsonl",
		"log/local/p.x/admit/00001.jsonl":     "log/local/p.x%/admit/00001.jsonl",
		"blob/local/p/0123abcd":               "blob/local/p/0123abcd%",
		"日本/é.md":                             "日本/é.md",
		"a+b=c&d/100%.md":                     "a+b=c&d/100%25.md",
		".mneme-store/format":                 "%2Emneme-store%/format%",
		".claude/x.json":                      ".claude%/x.json",
		"long/" + strings.Repeat("n", 241):    "long/%#" + sha(strings.Repeat("n", 241)),
		strings.Repeat("n", 241) + "/in.json": "%#" + sha(strings.Repeat("n", 241)) + "%/in.json",
	} {
		info := put(t, s, key, key)
		if got, err := os.ReadFile(filepath.Join(root, file)); err != nil || string(got) != key {
			t.Errorf("%s: file %s holds %q, %v", key, file, got, err)
		}
		if info.ETag != md5hex(key) {
			t.Errorf("%s: ETag %s, want the MD5 %s", key, info.ETag, md5hex(key))
		}
	}
}

// TestCopyIsABackup: a copy that keeps neither times nor anything else but
// names and bytes serves the same, ETags of multipart uploads included.
func TestCopyIsABackup(t *testing.T) {
	t.Parallel()
	root, moved := t.TempDir(), t.TempDir()
	s := open(t, root)
	for _, key := range objstoretest.OddKeys {
		put(t, s, key, "text of "+key)
	}
	attrs := dirstore.Attrs{ETag: "9a0364b9e99bb480dd25e1f0284c8555-3", ContentType: "text/plain", Meta: map[string]string{"tool": "pi"}, Headers: map[string]string{"cache-control": "no-store"}}
	if _, err := s.PutAttrs(t.Context(), "multi", strings.NewReader("parts"), 5, objstore.Condition{}, attrs); err != nil {
		t.Fatal(err)
	}
	want := list(t, s)
	if err := os.CopyFS(moved, os.DirFS(root)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // at first with the copy's times, then mended
		again := open(t, moved)
		if diff := cmp.Diff(want, list(t, again)); diff != "" {
			t.Errorf("the copy lists (-want +got):\n%s", diff)
		}
		info, got, err := again.Stat(t.Context(), "multi")
		attrs.ETag = ""
		if diff := cmp.Diff(attrs, got); err != nil || diff != "" || info.ETag != "9a0364b9e99bb480dd25e1f0284c8555-3" {
			t.Errorf("ETag %s, attributes (-want +got):\n%s%v", info.ETag, diff, err)
		}
	}
	if st, err := os.Stat(filepath.Join(moved, "a/b%")); err != nil || !st.ModTime().Equal(infoOf(want, "a/b").ModTime) {
		t.Errorf("the copy's file is dated %v, want %v mended", st.ModTime(), infoOf(want, "a/b").ModTime)
	}
}

func infoOf(infos []objstore.Info, key string) objstore.Info {
	for _, info := range infos {
		if info.Key == key {
			return info
		}
	}
	return objstore.Info{}
}

// TestSidecar: whatever happens to a sidecar, the object is described by its
// bytes.
func TestSidecar(t *testing.T) {
	t.Parallel()
	const key = "p/a.jsonl"
	for name, spoil := range map[string]func(file, side string) error{
		"lost":             func(_, side string) error { return os.Remove(side) },
		"empty":            func(_, side string) error { return os.Truncate(side, 0) },
		"not JSON":         func(_, side string) error { return os.WriteFile(side, []byte("{"), 0o600) },
		"later version":    func(_, side string) error { return os.WriteFile(side, []byte(`{"v":99}`), 0o600) },
		"another object's": func(_, side string) error { return edit(side, `"p/a.jsonl"`, `"p/b.jsonl"`) },
		"all sidecars":     func(_, side string) error { return os.RemoveAll(filepath.Dir(side)) },
		"edited file, same size": func(file, _ string) error {
			return os.WriteFile(file, []byte("other"), 0o600)
		},
		"longer file": func(file, _ string) error { return os.WriteFile(file, []byte("hello, world"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s := open(t, root)
			put(t, s, key, "hello")
			file, side := filepath.Join(root, key), filepath.Join(root, ".mneme-store/meta", key)
			if err := spoil(file, side); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time from the mended sidecar
				info, err := s.Head(t.Context(), key)
				if err != nil || info.ETag != md5hex(string(data)) || info.SizeBytes != int64(len(data)) {
					t.Errorf("%+v, %v; want ETag %s", info, err, md5hex(string(data)))
				}
				if diff := cmp.Diff([]objstore.Info{info}, list(t, s)); diff != "" {
					t.Errorf("listed otherwise (-head +list):\n%s", diff)
				}
			}
			if _, err := s.Put(t.Context(), key, strings.NewReader("new"), 3, objstore.Condition{IfMatch: md5hex(string(data))}); err != nil {
				t.Errorf("replace by the ETag it has: %v", err)
			}
		})
	}
}

func edit(path, from, to string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.Replace(data, []byte(from), []byte(to), 1), 0o600)
}

// TestByHand: files put into the folder are objects; what no key can name,
// links and empty folders are none.
func TestByHand(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	for file, text := range map[string]string{"p/by hand.jsonl": "one", "p/no-ext": "not a name that a key has", "p/bad%zz.md": "x", "p/new\nline.md": "x"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(root, "p/link.md")); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, info := range list(t, s) {
		keys = append(keys, info.Key)
	}
	if diff := cmp.Diff([]string{"p/by hand.jsonl"}, keys); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if _, _, err := s.Get(t.Context(), "p/link.md", 0, -1); !errors.Is(err, objstore.ErrNotFound) {
		t.Errorf("a link out of the folder is read: %v", err)
	}
}

// TestLeavesNothing: refused, broken and deleted writes leave no file.
func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root)
	put(t, s, "a/b/c/d.md", "x")
	if _, err := s.Put(t.Context(), "a/b/c/d.md", strings.NewReader("y"), 1, objstore.Condition{Create: true}); !errors.Is(err, objstore.ErrPrecondition) {
		t.Error(err)
	}
	if _, err := s.Put(t.Context(), "q/w/e.md", strings.NewReader("y"), 2, objstore.Condition{}); err == nil {
		t.Error("a short body is stored")
	}
	if err := s.Delete(t.Context(), "a/b/c/d.md"); err != nil {
		t.Fatal(err)
	}
	// A dead writer's file goes at the next start, a live writer's stays.
	dead, young := filepath.Join(root, ".mneme-store/tmp/dead"), filepath.Join(root, ".mneme-store/tmp/young")
	for _, f := range []string{dead, young} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(dead, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	open(t, root)
	var files []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !strings.Contains(path, "/lock/") && path != root {
			rel, _ := filepath.Rel(root, path)
			files = append(files, rel)
		}
		return err
	})
	want := []string{".mneme-store", ".mneme-store/format", ".mneme-store/lock", ".mneme-store/meta", ".mneme-store/names", ".mneme-store/tmp", ".mneme-store/tmp/young"}
	if diff := cmp.Diff(want, files); err != nil || diff != "" {
		t.Errorf("left (-want +got):\n%s%v", diff, err)
	}
}

func TestUnknownFormat(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	open(t, root)
	if err := os.WriteFile(filepath.Join(root, ".mneme-store/format"), []byte("7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dirstore.Open(root); !fault.Is(err, fault.Corrupt) || fault.HintOf(err) == "" {
		t.Errorf("a folder of another format opens: %v", err)
	}
}

// TestDiskFull: the message says so, what stood before stands, and the write
// goes through once there is room.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(root, syscall.MNT_DETACH) })
	s := open(t, root)
	put(t, s, "old.md", "old")
	big := strings.Repeat("x", 600<<10)
	put(t, s, "half.md", big)
	for _, key := range []string{"new.md", "old.md"} {
		_, err := s.Put(t.Context(), key, strings.NewReader(big), int64(len(big)), objstore.Condition{})
		if !fault.Is(err, fault.Unavailable) || !errors.Is(err, objstore.ErrFull) || !strings.Contains(err.Error(), "disk full") || fault.HintOf(err) == "" {
			t.Errorf("%s: %v (hint %q)", key, err, fault.HintOf(err))
		}
	}
	r, info, err := s.Get(t.Context(), "old.md", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if data, err := io.ReadAll(r); string(data) != "old" || info.ETag != md5hex("old") || err != nil {
		t.Errorf("old.md holds %q: %+v, %v", data, info, err)
	}
	if err := s.Delete(t.Context(), "half.md"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "new.md", big)
}

// FuzzNames: a key that is stored is listed as itself, and no file of it lies
// outside the folder.
func FuzzNames(f *testing.F) {
	for _, key := range objstoretest.OddKeys {
		f.Add(key)
	}
	f.Add("../x")
	f.Add("a/./b")
	f.Add("%2E%2E/x")
	f.Add("%#0000/x")
	root := f.TempDir()
	s := open(f, root)
	f.Fuzz(func(t *testing.T, key string) {
		_, err := s.Put(t.Context(), key, strings.NewReader("x"), 1, objstore.Condition{Create: true})
		if objstore.ValidKey(key) != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("an invalid key %q: %v", key, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		got := list(t, s)
		if len(got) != 1 || got[0].Key != key {
			t.Errorf("stored %q, listed %q", key, fmt.Sprint(got))
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if left := list(t, s); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}
