package gitbundle_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gitbundle"
	"github.com/mneme-ai/mneme/shared/gitbundle/gitbundletest"
	"github.com/mneme-ai/mneme/shared/gitlog"
)

// The equality with git itself is proven in cmd/mem, which knows both ways.

func read(t testing.TB, b []byte, l gitbundle.Limits) ([]gitlog.Commit, gitbundle.Stats, error) {
	t.Helper()
	var out []gitlog.Commit
	st, err := gitbundle.Read(t.Context(), bytes.NewReader(b), l, func(c gitlog.Commit) error {
		out = append(out, c)
		return nil
	})
	return out, st, err
}

func mustRead(t *testing.T, b []byte) ([]gitlog.Commit, gitbundle.Stats) {
	t.Helper()
	cs, st, err := read(t, b, gitbundle.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return cs, st
}

// header makes a bundle's header.
func header(lines ...string) string { return "# v2 git bundle\n" + strings.Join(lines, "\n") + "\n\n" }

// object is one object of a made-up pack.
type object struct {
	kind    byte // 1 commit, 2 tree, 3 blob, 4 tag, 6 delta by offset, 7 delta by id
	base    string
	content string
	size    int // where the header lies
}

// writers spares the tests the making of a megabyte for each pack.
var writers = sync.Pool{New: func() any { return zlib.NewWriter(nil) }}

// pack makes a packfile.
func pack(objects ...object) string {
	var out bytes.Buffer
	out.WriteString("PACK")
	_ = binary.Write(&out, binary.BigEndian, uint32(2))
	_ = binary.Write(&out, binary.BigEndian, uint32(len(objects)))
	z := writers.Get().(*zlib.Writer)
	defer writers.Put(z)
	for _, o := range objects {
		size := uint64(len(o.content))
		if o.size != 0 {
			size = uint64(o.size)
		}
		c := o.kind<<4 | byte(size&15)
		for size >>= 4; size > 0; size >>= 7 {
			out.WriteByte(c | 0x80)
			c = byte(size & 0x7f)
		}
		out.WriteByte(c)
		out.WriteString(o.base)
		z.Reset(&out)
		_, _ = io.WriteString(z, o.content)
		_ = z.Close()
	}
	sum := sha1.Sum(out.Bytes())
	return out.String() + string(sum[:])
}

// id is the name of an object.
func id(kind, content string) [20]byte {
	return sha1.Sum([]byte(fmt.Sprintf("%s %d\x00%s", kind, len(content), content)))
}

const people = "author Ada <ada@example.org> 1769932800 +0100\ncommitter Ada <ada@example.org> 1769932800 +0100\n"

// commit is a commit's content.
func commit(tree [20]byte, message string, parents ...[20]byte) string {
	s := fmt.Sprintf("tree %x\n", tree)
	for _, p := range parents {
		s += fmt.Sprintf("parent %x\n", p)
	}
	return s + people + "\n" + message
}

func entry(mode, name string, id [20]byte) string { return mode + " " + name + "\x00" + string(id[:]) }

// TestThin: an incremental bundle, whose deltas are against objects that it
// leaves out, gives every commit; of those whose parent it leaves out it gives
// the paths that it can know.
func TestThin(t *testing.T) {
	t.Parallel()
	r := gitbundletest.Story(t)
	old := r.Git("rev-parse", "HEAD")
	r.Write("new.go", "package shop\n\nfunc New() {}\n")
	r.Write("x/y.go", "package shop\n\nfunc Y() {}\n")
	first := r.Commit("New things\n\nThey were asked for.")
	r.Write("new.go", "package shop\n\nfunc Newer() {}\n")
	second := r.Commit("Newer things")
	whole, _ := mustRead(t, r.Bundle("HEAD"))
	byID := map[string]gitlog.Commit{}
	for _, c := range whole {
		byID[c.SHA] = c
	}
	got, st := mustRead(t, r.Bundle("HEAD", "^"+old))
	if len(got) != 2 || got[0].SHA != first || got[1].SHA != second {
		t.Fatalf("commits %+v", got)
	}
	if st.Lost != 0 || st.Commits != 2 || st.Partial == 0 || st.PartialSHAs[0] != first {
		t.Errorf("%+v", st)
	}
	for _, c := range got {
		want := byID[c.SHA]
		known := map[string]bool{}
		for _, f := range want.Files {
			known[f.Path] = true
		}
		for _, f := range c.Files {
			if !known[f.Path] {
				t.Errorf("%s touches %s, which it does not: %+v", c.SHA, f.Path, want.Files)
			}
		}
		want.Files, want.Symbols = nil, nil
		c.Files, c.Symbols = nil, nil
		if d := cmp.Diff(want, c); d != "" {
			t.Errorf("(-whole +thin):\n%s", d)
		}
	}
	// A bundle whose pack has the new objects whole knows the new paths, though
	// not what stood there before.
	r.Git("repack", "-q", "-a", "-d", "-f", "--window=0")
	r.Git("config", "pack.window", "0")
	got, st = mustRead(t, r.Bundle("HEAD", "^"+old))
	want := []gitlog.File{{Status: "M", Path: "new.go"}, {Status: "M", Path: "x/y.go"}}
	if d := cmp.Diff(want, got[0].Files); d != "" || len(got[0].Symbols) != 0 {
		t.Errorf("files (-want +got):\n%s, symbols %v", d, got[0].Symbols)
	}
	if d := cmp.Diff(byID[second], got[1]); d != "" {
		t.Errorf("the second has both its trees (-want +got):\n%s", d)
	}
	if st.Partial != 1 || st.Unresolved != 0 {
		t.Errorf("%+v", st)
	}
}

// TestRandomThin: of increments of histories that nobody would write every
// commit is given, and no commit is said to touch what it does not.
func TestRandomThin(t *testing.T) {
	t.Parallel()
	partial, listed := 0, 0
	for seed := range uint64(10) {
		r := gitbundletest.Random(t, rand.New(rand.NewPCG(seed, 2)), 40)
		whole, _ := mustRead(t, r.Bundle("--all"))
		byID := map[string]gitlog.Commit{}
		for _, c := range whole {
			byID[c.SHA] = c
		}
		for _, since := range []string{"^b10", "^b20", "^b35"} {
			want := strings.Fields(r.Git("rev-list", "--all", since))
			got, st := mustRead(t, r.Bundle("--all", since))
			if len(got) != len(want) || st.Lost > 0 {
				t.Errorf("seed %d, %s: %d commits, git lists %d: %+v", seed, since, len(got), len(want), st)
			}
			partial += st.Partial
			for _, c := range got {
				w, ok := byID[c.SHA]
				if !ok {
					t.Fatalf("seed %d, %s: %s is none of the history", seed, since, c.SHA)
				}
				status := map[string]string{}
				for _, f := range w.Files {
					status[f.Path] = f.Status
				}
				for _, f := range c.Files {
					listed++
					if is, ok := status[f.Path]; !ok || f.Status != is && f.Status != "M" {
						t.Errorf("seed %d, %s: %s: %s %s, git says %q of it", seed, since, c.SHA, f.Status, f.Path, is)
					}
				}
			}
		}
	}
	if partial == 0 || listed == 0 {
		t.Errorf("%d commits are partial, %d files are listed: nothing is tried", partial, listed)
	}
	t.Logf("%d commits are partial, %d files are listed", partial, listed)
}

// TestShallow: a repository that is cut off says in no prerequisite what it
// lacks.
func TestShallow(t *testing.T) {
	t.Parallel()
	r := gitbundletest.New(t)
	for i := range 5 {
		r.Write("x.go", fmt.Sprintf("package x\n\nfunc F%d() {}\n", i))
		r.Commit(fmt.Sprintf("Step %d", i))
	}
	c := gitbundletest.New(t)
	c.Git("fetch", "-q", "--depth", "2", "file://"+r.Dir, "main:in")
	got, st := mustRead(t, c.Bundle("in"))
	if len(got) != 2 || st.Lost != 1 || len(st.LostSHAs) != 1 || st.LostSHAs[0] != got[0].Parents[0] || st.Partial != 1 {
		t.Errorf("%d commits, %+v", len(got), st)
	}
	if len(got[0].Files) != 0 {
		t.Errorf("%+v touches what may have been there", got[0])
	}
	if d := cmp.Diff([]string{"F3", "F4"}, got[1].Symbols); d != "" {
		t.Errorf("symbols:\n%s", d)
	}
}

// TestRefs: what is no history of the project is not read.
func TestRefs(t *testing.T) {
	t.Parallel()
	r := gitbundletest.New(t)
	r.Write("x", "x\n")
	main := r.Commit("Kept")
	r.Git("notes", "add", "-m", "a note", "HEAD")
	r.Write("x", "y\n")
	r.Git("stash", "-q")
	r.Git("update-ref", "refs/remotes/origin/gone", "refs/stash")
	r.Git("tag", "of-a-blob", "HEAD:x")
	r.Git("tag", "-a", "-m", "a tag", "one", "HEAD")
	r.Git("tag", "-a", "-m", "a tag of a tag", "two", "one")
	got, st := mustRead(t, r.Bundle("--all"))
	if len(got) != 1 || got[0].SHA != main || st.Lost != 0 {
		t.Errorf("%+v, %+v", got, st)
	}
	r.Git("update-ref", "-d", "refs/stash")
	got, _ = mustRead(t, r.Bundle("--remotes"))
	if len(got) == 0 {
		t.Error("of a bundle of nothing but a remote's branch nothing is read")
	}
	got, _ = mustRead(t, r.Bundle("two"))
	if len(got) != 1 {
		t.Errorf("a tag of a tag gives %d commits", len(got))
	}
}

// TestDamage: no commit is given of a bundle that is not whole, and the error
// says so.
func TestDamage(t *testing.T) {
	t.Parallel()
	r := gitbundletest.New(t)
	for i := range 6 {
		r.Write("x.go", strings.Repeat("package x\n", 30)+fmt.Sprintf("\nfunc F%d() {}\n", i))
		r.Commit(fmt.Sprintf("Step %d", i))
	}
	b := r.Bundle("HEAD", "main")
	check := func(what string, b []byte) {
		t.Helper()
		cs, _, err := read(t, b, gitbundle.Limits{})
		if !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.Invalid) || len(cs) != 0 || fault.HintOf(err) == "" {
			t.Errorf("%s: %d commits, error %v, hint %q", what, len(cs), err, fault.HintOf(err))
		}
	}
	for at := range b {
		check(fmt.Sprintf("cut at %d of %d", at, len(b)), b[:at])
	}
	body := bytes.Index(b, []byte("PACK"))
	for at := body; at < len(b); at++ {
		c := bytes.Clone(b)
		c[at] ^= 0x55
		check(fmt.Sprintf("a wrong byte at %d", at), c)
	}
	check("a byte more", append(bytes.Clone(b), 'x'))
	check("garbage", []byte("# v2 git bundle\n\x00\x01\x02"))
	check("no pack", []byte(header(strings.Repeat("0a", 20)+" HEAD")))
	check("garbage for a pack", []byte(header(strings.Repeat("0a", 20)+" HEAD")+strings.Repeat("garbage", 1000)))
	check("no bundle", []byte("hello"))
}

// TestForms: a form that is not read is refused by its name.
func TestForms(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("0a", 20)
	for name, tc := range map[string]struct{ bundle, want string }{
		"sha256":     {"# v3 git bundle\n@object-format=sha256\n" + id + id[:24] + " HEAD\n\n", "sha256"},
		"capability": {"# v3 git bundle\n@magic=yes\n" + id + " HEAD\n\n", `"magic"`},
		"version":    {"# v4 git bundle\n" + id + " HEAD\n\n", "version 2 or 3"},
		"many refs":  {header(strings.Repeat(id+" refs/heads/x\n", 1<<18)), "refs"},
		"thin alone": {header(id+" HEAD") + pack(object{kind: 7, base: id[:20], content: "\x01\x01\x01x"}), "no commit"},
	} {
		_, _, err := read(t, []byte(tc.bundle), gitbundle.Limits{})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want) || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := read(t, []byte("# v3 git bundle\n@object-format=sha1\n@filter=blob:none\n\n"+pack()), gitbundle.Limits{}); err != nil {
		t.Errorf("a version 3 with known capabilities: %v", err)
	}
}

// TestOneBadObject: the objects of a pack whose sum is right do not fall for one
// that is wrong.
func TestOneBadObject(t *testing.T) {
	t.Parallel()
	blob := "package x\n\nfunc Good() {}\n"
	good := entry("100644", "x.go", id("blob", blob))
	badTree := "100644 torn"
	root := commit(id("tree", good), "Root\n")
	second := commit(id("tree", badTree), "A tree that is torn\n", id("commit", root))
	third := commit(id("tree", good), "Good again\n", id("commit", second))
	fourth := "tree nonsense\nauthor nobody\n\nNo person and no tree\n"
	fifth := commit(id("tree", good), "After that\n", id("commit", fourth))
	delta := "\x05\x05\xff\xff\xff\xff\xff\xff\xff"
	b := header(fmt.Sprintf("%x refs/heads/main", id("commit", third)), fmt.Sprintf("%x refs/heads/two", id("commit", fifth)),
		fmt.Sprintf("%x refs/heads/gone", id("commit", "gone"))) +
		pack(object{kind: 3, content: blob}, object{kind: 2, content: good}, object{kind: 2, content: badTree},
			object{kind: 1, content: root}, object{kind: 1, content: second}, object{kind: 1, content: third},
			object{kind: 1, content: fourth}, object{kind: 1, content: fifth},
			object{kind: 7, base: string(idOf("blob", blob)), content: delta})
	got, st := mustRead(t, []byte(b))
	var messages []string
	for _, c := range got {
		messages = append(messages, strings.TrimSpace(c.Message))
	}
	if len(got) != 5 || st.Commits != 5 || st.Unresolved != 1 || st.Lost != 1 || st.LostSHAs[0] != fmt.Sprintf("%x", id("commit", "gone")) {
		t.Errorf("%q, %+v", messages, st)
	}
	for _, c := range got {
		if c.Message == "Root\n" && (len(c.Files) != 1 || strings.Join(c.Symbols, " ") != "Good") {
			t.Errorf("root: %+v", c)
		}
	}
}

// TestFiltered: a bundle of a version 3 may leave out texts, or folders, that
// nobody has; what is in it then tells nothing of what is new.
func TestFiltered(t *testing.T) {
	t.Parallel()
	sub := entry("100644", "a.go", id("blob", "here"))
	one := entry("40000", "sub", id("tree", "left out")) + entry("100644", "x.go", id("blob", "one"))
	two := entry("40000", "sub", id("tree", sub)) + entry("100644", "x.go", id("blob", "two"))
	root := commit(id("tree", one), "Root\n")
	next := commit(id("tree", two), "Next\n", id("commit", root))
	b := fmt.Sprintf("# v3 git bundle\n@filter=tree:1\n-%s x\n%x HEAD\n\n", strings.Repeat("0a", 20), id("commit", next)) +
		pack(object{kind: 1, content: root}, object{kind: 1, content: next}, object{kind: 2, content: one}, object{kind: 2, content: two},
			object{kind: 2, content: sub}, object{kind: 3, content: "here"})
	got, st := mustRead(t, []byte(b))
	if len(got) != 2 || st.Partial != 2 || st.Lost != 0 {
		t.Fatalf("%+v, %+v", got, st)
	}
	for i, status := range []string{"A", "M"} {
		if d := cmp.Diff([]gitlog.File{{Status: status, Path: "x.go"}}, got[i].Files); d != "" || len(got[i].Symbols) > 0 {
			t.Errorf("commit %d: files (-want +got):\n%s, symbols %v", i, d, got[i].Symbols)
		}
	}
}

func idOf(kind, content string) []byte { b := id(kind, content); return b[:] }

// TestBombs: what is small and unpacks to much ends at a limit, soon, and says
// which.
func TestBombs(t *testing.T) {
	t.Parallel()
	ref := strings.Repeat("0a", 20) + " HEAD"
	zeros := strings.Repeat("\x00", 8<<20)
	var same []object // many objects that unpack to much
	for range 40 {
		same = append(same, object{kind: 3, content: zeros})
	}
	// A chain of deltas, each a copy of the whole of its base.
	blob := strings.Repeat("x", 60_000)
	chain := []object{{kind: 3, content: blob}}
	for i := range 5000 {
		base := id("blob", blob)
		blob = blob[:len(blob)-5] + fmt.Sprintf("%05d", i)
		chain = append(chain, object{kind: 7, base: string(base[:]), content: "\xe0\xd4\x03\xe0\xd4\x03\xb0\x5b\xea" + "\x05" + blob[len(blob)-5:]})
	}
	// A tree that holds ten times another, and so on: 10^30 empty folders.
	tree := entry("40000", "a", id("tree", ""))
	trees := []object{{kind: 2}, {kind: 2, content: tree}}
	for range 30 {
		next := ""
		for i := range 10 {
			next += entry("40000", string(rune('a'+i)), id("tree", tree))
		}
		tree = next
		trees = append(trees, object{kind: 2, content: tree})
	}
	top := commit(id("tree", tree), "Many folders\n")
	// The same with files: a hundred are listed.
	files := entry("100644", "a.go", id("blob", "x"))
	leaves := []object{{kind: 3, content: "x"}, {kind: 2, content: files}}
	for range 30 {
		next := ""
		for i := range 10 {
			next += entry("40000", string(rune('a'+i)), id("tree", files))
		}
		files = next
		leaves = append(leaves, object{kind: 2, content: files})
	}
	many := commit(id("tree", files), "Many files\n")
	// A tree in a tree, ten thousand deep.
	deep := entry("100644", "a.go", id("blob", "x"))
	nested := []object{{kind: 3, content: "x"}, {kind: 2, content: deep}}
	for range 10_000 {
		deep = entry("40000", "a", id("tree", deep))
		nested = append(nested, object{kind: 2, content: deep})
	}
	far := commit(id("tree", deep), "Deep\n")
	lie := "\x01\xff\xff\xff\xff\x7f\x01x" // says that its result has 34 GB
	small := gitbundle.Limits{WorkBytes: 256 << 20, ObjectBytes: 16 << 20, PackBytes: 64 << 20, Objects: 200_000}
	for name, tc := range map[string]struct {
		bundle, want string
		commits      int
	}{
		"zeros":           {header(ref) + pack(same...), "256 MiB to unpack", 0},
		"a claimed size":  {header(ref) + pack(object{kind: 3, content: "x", size: 1 << 40}), "damaged", 0},
		"a claimed count": {header(ref) + "PACK\x00\x00\x00\x02\xff\xff\xff\xff" + strings.Repeat("x", 100), "at most 200000", 0},
		"a long chain":    {header(ref) + pack(chain...), "904 objects", 0},
		"a lying delta":   {header(ref) + pack(object{kind: 3, content: "x"}, object{kind: 7, base: string(idOf("blob", "x")), content: lie}), "no commit", 0},
		"folders":         {header(fmt.Sprintf("%x HEAD", id("commit", top))) + pack(append(trees, object{kind: 1, content: top})...), "256 MiB to unpack", 0},
		"files":           {header(fmt.Sprintf("%x HEAD", id("commit", many))) + pack(append(leaves, object{kind: 1, content: many})...), "", 1},
		"deep":            {header(fmt.Sprintf("%x HEAD", id("commit", far))) + pack(append(nested, object{kind: 1, content: far})...), "", 1},
		"a long header":   {"# v2 git bundle\n" + strings.Repeat("x", 9<<20), "refs", 0},
		"a large pack":    {header(ref) + strings.Repeat("x", 65<<20), "64 MiB", 0},
	} {
		start := time.Now()
		cs, st, err := read(t, []byte(tc.bundle), small)
		if d := time.Since(start); d > 30*time.Second {
			t.Errorf("%s: takes %v", name, d)
		}
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) || len(cs) != tc.commits {
			t.Errorf("%s: %d commits, %v", name, len(cs), err)
		}
		if tc.want != "" && err != nil && fault.HintOf(err) == "" {
			t.Errorf("%s: %v has no hint", name, err)
		}
		if name == "files" && (len(cs) != 1 || len(cs[0].Files) != gitlog.MaxFiles) || name == "deep" && st.Partial != 1 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// TestEnds: a context that ends, a source that breaks and a writer that fails
// are no fault of the bundle; no temporary file is left behind.
func TestEnds(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	r := gitbundletest.New(t)
	r.Write("x.go", "package x\n")
	r.Commit("One")
	r.Commit("Two")
	b := r.Bundle("HEAD")
	all := func(gitlog.Commit) error { return nil }
	ctx, cancel := context.WithCancelCause(t.Context())
	broken := errors.New("broken")
	cancel(broken)
	if _, err := gitbundle.Read(ctx, bytes.NewReader(b), gitbundle.Limits{}, all); !fault.Is(err, fault.Unavailable) || !errors.Is(err, broken) {
		t.Errorf("an ended context: %v", err)
	}
	for _, at := range []int{0, 10, len(b) / 2, len(b)} {
		in := io.MultiReader(bytes.NewReader(b[:at]), iotest.ErrReader(broken))
		if _, err := gitbundle.Read(t.Context(), in, gitbundle.Limits{}, all); !fault.Is(err, fault.Unavailable) || !errors.Is(err, broken) {
			t.Errorf("a source that breaks at %d: %v", at, err)
		}
	}
	n := 0
	_, err := gitbundle.Read(t.Context(), bytes.NewReader(b), gitbundle.Limits{}, func(gitlog.Commit) error { n++; return broken })
	if !errors.Is(err, broken) || n != 1 {
		t.Errorf("a writer that fails: %v after %d", err, n)
	}
	left, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if strings.HasPrefix(e.Name(), "mneme-bundle-") {
			t.Errorf("%s is left behind", e.Name())
		}
	}
	t.Setenv("TMPDIR", tmp+"/none")
	if _, err := gitbundle.Read(t.Context(), bytes.NewReader(b), gitbundle.Limits{}, all); !fault.Is(err, fault.Unavailable) || fault.HintOf(err) == "" {
		t.Errorf("no place for a temporary file: %v", err)
	}
}

// checkFuzzed holds what any bytes give against the laws of the reader.
func checkFuzzed(t *testing.T, b []byte) {
	small := gitbundle.Limits{WorkBytes: 64 << 20, ObjectBytes: 1 << 20, CacheBytes: 1 << 20, PackBytes: 16 << 20, Objects: 1000}
	start := time.Now()
	got, st, err := read(t, b, small)
	if d := time.Since(start); d > 10*time.Second {
		t.Fatalf("takes %v", d)
	}
	again, _, err2 := read(t, b, small)
	if d := cmp.Diff(got, again); d != "" || fmt.Sprint(err) != fmt.Sprint(err2) {
		t.Fatalf("read twice: %s, %v, %v", d, err, err2)
	}
	if err == nil && st.Commits != len(got) {
		t.Fatalf("%d commits, counted %d", len(got), st.Commits)
	}
	if err != nil && !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.Invalid) {
		t.Fatalf("error %v", err)
	}
	at := map[string]int{}
	for i, c := range got {
		if _, twice := at[c.SHA]; twice {
			t.Fatalf("%s comes twice", c.SHA)
		}
		at[c.SHA] = i
		if len(c.Files) > gitlog.MaxFiles || len(c.Symbols) > gitlog.MaxSymbols || len(c.Parents) > 1 && len(c.Files) > 0 {
			t.Fatalf("%+v", c)
		}
		for _, s := range append([]string{c.Author, c.Email, c.Date, c.Message}, c.Symbols...) {
			if strings.ToValidUTF8(s, "") != s {
				t.Fatalf("%q is no UTF-8", s)
			}
		}
	}
	for _, c := range got {
		for _, p := range c.Parents {
			if i, ok := at[p]; ok && i > at[c.SHA] {
				t.Fatalf("%s stands before its parent %s", c.SHA, p)
			}
		}
	}
}

// FuzzRead: whatever stands in header and pack, the reader ends without a panic
// and by its laws. The sum is made right, so that more than it is tried.
func FuzzRead(f *testing.F) {
	tree := entry("100644", "x.go", id("blob", "func X() {}\n"))
	root := commit(id("tree", tree), "Root\n")
	head := header(fmt.Sprintf("%x HEAD", id("commit", root)))
	body := pack(object{kind: 3, content: "func X() {}\n"}, object{kind: 2, content: tree}, object{kind: 1, content: root},
		object{kind: 6, base: "\x7f", content: "\x0c\x01\x01x"}, object{kind: 7, base: string(idOf("tree", tree)), content: "\x01\x01\x01x"})
	f.Add([]byte(head), []byte(body[:len(body)-20]))
	f.Add([]byte("# v3 git bundle\n@object-format=sha1\n-"+strings.Repeat("0a", 20)+" x\n\n"), []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, head, body []byte) {
		sum := sha1.Sum(body)
		checkFuzzed(t, append(append(bytes.Clone(head), body...), sum[:]...))
	})
}

// FuzzObjects tries the contents of objects, which compression hides from
// FuzzRead.
func FuzzObjects(f *testing.F) {
	tree := entry("100644", "x.go", id("blob", "func X() {}\n"))
	f.Add(tree, entry("40000", "d", id("tree", tree))+entry("120000", "l", id("blob", "func X() {}\n")), people, "Message\n", "func X() {}\n", "\x0c\x01\x01x")
	f.Add("", "100644 a\x00", "encoding latin1\nauthor A <\xff> 99999999999999999999 +9999\n", "\x00\xff", "", "\x00\x00")
	f.Fuzz(func(t *testing.T, before, after, headers, message, blob, delta string) {
		root := fmt.Sprintf("tree %x\n%s\n%s", id("tree", before), headers, message)
		next := fmt.Sprintf("tree %x\nparent %x\n%s\n%s", id("tree", after), id("commit", root), headers, message)
		tag := fmt.Sprintf("object %x\ntype commit\n", id("commit", next))
		b := header(fmt.Sprintf("%x refs/tags/x", id("tag", tag))) +
			pack(object{kind: 1, content: next}, object{kind: 1, content: root}, object{kind: 2, content: before}, object{kind: 2, content: after},
				object{kind: 3, content: blob}, object{kind: 4, content: tag},
				object{kind: 7, base: string(idOf("blob", blob)), content: delta}, object{kind: 7, base: string(idOf("tree", before)), content: delta},
				object{kind: 7, base: string(idOf("commit", root)), content: delta})
		checkFuzzed(t, []byte(b))
		got, _, err := read(t, []byte(b), gitbundle.Limits{})
		if err != nil || len(got) == 0 {
			t.Fatalf("%d commits, %v", len(got), err)
		}
	})
}
