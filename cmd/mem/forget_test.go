package main_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/mneme-ai/mneme/shared/forget"
)

// secretNote holds words that stand nowhere else.
const secretNote = `# Quillfeather plan

We decided to move the brambleport server to zorvath.example.org, because the snorkelwood rack is loud.
From now on the vexillary cache is kept for 77 minutes, never longer, since Wombledon asked for it.
`

var secretWords = []string{"quillfeather", "brambleport", "zorvath", "snorkelwood", "vexillary", "wombledon"}

// grepped names the files under dir that hold one of the words, in their bytes or in a
// zstd frame in them.
func grepped(t *testing.T, dir string) (out []string) {
	t.Helper()
	dec, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dec.Close()
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			if os.IsNotExist(err) {
				return nil
			}
			return err
		}
		b, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		texts := [][]byte{b}
		for at := 0; ; {
			i := bytes.Index(b[at:], frame)
			if i < 0 {
				break
			}
			if dec.Reset(bytes.NewReader(b[at+i:])) == nil {
				plain, _ := io.ReadAll(io.LimitReader(dec, 64<<20))
				texts = append(texts, plain)
			}
			at += i + len(frame)
		}
		for _, x := range texts {
			low := bytes.ToLower(x)
			for _, w := range secretWords {
				if bytes.Contains(low, []byte(w)) {
					rel, _ := filepath.Rel(dir, path)
					out = append(out, rel+": "+w)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// learnSecret learns the note, and waits until everything is made of it.
func learnSecret(t *testing.T, s *server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.md")
	if err := os.WriteFile(file, []byte(secretNote), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("learn", "-p", "shop", "--wait", file)
	s.must("wait", "--timeout", "60s")
	return file
}

func (s *server) receipt(args ...string) (r forget.Receipt) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must(append([]string{"forget", "-p", "shop", "--json", "--yes"}, args...)...)), &r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// TestForget: after mem forget no file of the data folder holds a word of the source,
// compressed or not; the log verifies; and neither a rebuild, nor a restart, nor the same
// file brings it back.
func TestForget(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "data"))
	src := t.TempDir()
	sessions(t, src, 3)
	s.ingest(src)
	file := learnSecret(t, s)
	if n := len(grepped(t, s.dir)); n < 20 {
		t.Fatalf("%d files hold the words before: the test proves nothing", n)
	}
	if out := s.must("query", "-p", "shop", "where is the brambleport server?"); !strings.Contains(out, "zorvath") {
		t.Fatalf("not found before: %s", out)
	}
	if out := s.must("forget", "-p", "shop", "--source", "plan.md", "--dry-run"); !strings.Contains(out, "would be forgotten") || !strings.Contains(out, "/plan.md") {
		t.Errorf("dry run: %s", out)
	}
	if out, code := s.mem("forget", "-p", "shop", "--source", "plan.md"); code != 2 || len(grepped(t, s.dir)) < 20 {
		t.Errorf("without --yes and no terminal: exit %d %s", code, out)
	}
	begun := time.Now()
	r := s.receipt("--source", "plan.md", "--inbox")
	t.Logf("%v: %d words, %+v", time.Since(begun).Round(time.Millisecond), r.Proof.Words, r.Removed)
	if !r.OK || r.Proof.Words < 5 || len(r.Removed.Inbox) != 1 || r.Removed.Evidence == 0 || r.Removed.Memories == 0 {
		t.Errorf("%+v", r)
	}
	gone := func(when string) {
		t.Helper()
		for _, g := range grepped(t, s.dir) {
			t.Errorf("%s: %s", when, g)
		}
	}
	s.must("wait", "--timeout", "60s")
	gone("forgotten")
	want := s.verify()
	if want.Counts["erased"] == 0 {
		t.Error("nothing was erased")
	}
	s.must("rebuild")
	sameHashes(t, "rebuilt", want, s.verify())
	gone("rebuilt")
	if out, _ := s.mem("query", "-p", "shop", "where is the brambleport server?"); strings.Contains(out, "zorvath") {
		t.Errorf("found after: %s", out)
	}
	if out := s.must("learn", "-p", "shop", file); !strings.Contains(out, "forgotten") {
		t.Errorf("the same file: %s", out)
	}
	gone("the same file")
	if out := s.must("forget", "--list"); !strings.Contains(out, "plan.md") {
		t.Errorf("list: %s", out)
	}
	s.stop()
	s = start(t, s.dir)
	s.must("wait", "--timeout", "60s")
	sameHashes(t, "started again", want, s.verify())
	gone("started again")
	if out := s.must("learn", "-p", "shop", "--again", "--wait", file); strings.Contains(out, "forgotten") {
		t.Errorf("again: %s", out)
	}
	s.must("wait", "--timeout", "60s")
	if out := s.must("query", "-p", "shop", "where is the brambleport server?"); !strings.Contains(out, "zorvath") {
		t.Errorf("learned again and not found: %s", out)
	}
	s.verify()
	s.stop()
}

// TestCrashForget kills `mem up` at a random moment of forgetting and starts it again:
// the sweep finishes it, with the hashes of the undisturbed one.
func TestCrashForget(t *testing.T) {
	runs := (crashRuns(t) + 3) / 4
	src, learned := t.TempDir(), filepath.Join(t.TempDir(), "learned")
	sessions(t, src, 3)
	s := start(t, learned)
	s.ingest(src)
	learnSecret(t, s)
	s.stop()
	begin := func(name string) *server {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(dir, os.DirFS(learned)); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "ready.json")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return start(t, dir)
	}
	calm := begin("calm")
	begun := time.Now()
	calm.receipt("--source", "plan.md", "--inbox")
	took := time.Since(begun)
	calm.must("wait", "--timeout", "120s")
	want := calm.verify()
	calm.stop()

	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range runs {
		s := begin("crash")
		after := time.Duration(rng.Int64N(int64(took)))
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.mem("forget", "-p", "shop", "--source", "plan.md", "--inbox", "--yes") // it loses its server, or is done before
		}()
		time.Sleep(after)
		s.kill()
		<-done
		again := start(t, s.dir)
		again.mem("forget", "-p", "shop", "--source", "plan.md", "--inbox", "--yes") // or it is forgotten already
		again.must("wait", "--timeout", "120s")
		got := again.verify()
		again.stop()
		sameHashes(t, "run "+strconv.Itoa(i)+", killed after "+after.Round(time.Millisecond).String(), want, got)
		for _, g := range grepped(t, s.dir) {
			t.Errorf("killed after %v: %s", after, g)
		}
		if t.Failed() {
			t.Fatalf("seed %d, run %d", seed, i)
		}
	}
}
