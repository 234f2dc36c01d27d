package indextest

import (
	"bufio"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/index"
)

// StagedProjection is what staged graphs and words share.
type StagedProjection interface {
	Projection
	index.Staged
}

// Stages is how RunStageCrash uses a driver.
type Stages struct {
	Open  func(dir string) (Projection, error)
	Stage func(Projection) (StagedProjection, error)
	// Holds reports which of two texts, of which one generation has each, is found.
	Holds func(t *testing.T, p Projection, text string) bool
	// Sound tests what a driver can tell beside.
	Sound func(t *testing.T, p Projection)
}

// RunStageCrash kills a process, with SIGKILL and at a random moment, that builds a
// generation beside the other and switches, over and over. What it leaves opens with one
// of the two whole; what is staged is gone on with and switched. The test that calls it
// must be called name.
func RunStageCrash(t *testing.T, name string, rounds int, s Stages) {
	if dir := os.Getenv(crashEnv); dir != "" {
		switchUntilKilled(t, dir, s)
		return
	}
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for round := range rounds {
		dir := t.TempDir()
		killSwitching(t, name, dir, 1+r.IntN(4), time.Duration(r.IntN(40_000))*time.Microsecond)
		p, err := s.Open(dir)
		if err != nil {
			t.Fatalf("round %d: open: %v", round, err)
		}
		was, is := oldText, newText
		if s.Holds(t, p, newText) {
			was, is = is, was
		}
		if !s.Holds(t, p, was) || s.Holds(t, p, is) {
			t.Errorf("round %d: neither generation stands whole", round)
		}
		wantPosition(t, p, Project, "q@1", 2)
		s.Sound(t, p)
		next, err := s.Stage(p)
		if err != nil {
			t.Fatalf("round %d: stage: %v", round, err)
		}
		applyAll(t, next, generation(is))
		if err := next.Switch(t.Context()); err != nil {
			t.Fatalf("round %d: switch: %v", round, err)
		}
		if s.Holds(t, p, was) || !s.Holds(t, p, is) {
			t.Errorf("round %d: the switch after the kill did not switch", round)
		}
		s.Sound(t, p)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		notInFiles(t, dir, was)
	}
}

func switchUntilKilled(t *testing.T, dir string, s Stages) {
	p, err := s.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	applyAll(t, p, generation(oldText))
	for n := 1; n <= 40; n++ {
		next, err := s.Stage(p)
		if err != nil {
			t.Fatal(err)
		}
		applyAll(t, next, generation([]string{oldText, newText}[n%2]))
		if err := next.Switch(t.Context()); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("switched %d\n", n)
	}
	time.Sleep(time.Minute) // the kill is late on a busy machine
}

func killSwitching(t *testing.T, name, dir string, after int, more time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+name+"$", "-test.v")
	cmd.Env = append(os.Environ(), crashEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for sc := bufio.NewScanner(out); sc.Scan(); {
		var n int
		if _, err := fmt.Sscanf(sc.Text(), "switched %d", &n); err != nil {
			continue
		}
		if seen = n; n == after {
			time.AfterFunc(more, func() { cmd.Process.Kill() })
		}
	}
	cmd.Wait() // its error is the kill
	if seen < after {
		t.Fatalf("the process ended after %d switches", seen)
	}
}

// notInFiles tests that no file under dir holds the text as it is.
func notInFiles(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), text) {
			t.Errorf("%s still holds what was replaced", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
