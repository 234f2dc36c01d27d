package indextest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/index"
)

// Projection is what Graph and Lexical share.
type Projection interface {
	Apply(ctx context.Context, b index.Batch) error
	Applied(ctx context.Context, tenant, project, stream, space string) (int64, error)
	Close() error
}

const (
	crashEnv     = "MNEME_CRASH_DIR" // set in the process that is to be killed
	crashBatches = 100
	crashStream  = "q@1"
)

// crashBatch is the batch of seq: a few nodes, one of them said before.
func crashBatch(seq int64) index.Batch {
	t := int(seq)
	return Batch(seq,
		Evidence(Project, crashStream, fmt.Sprintf("Batch %d copies the orders to the archive.", seq), t),
		Evidence(Project, crashStream, fmt.Sprintf("Batch %d reports rows and errors to the channel.", seq), t),
		Evidence(Project, crashStream, "Every batch says this again.", t))
}

// RunCrash kills a process that applies batches, with SIGKILL and at a random
// moment, and tests that what it leaves opens, holds every batch that was
// acknowledged, and ends in the same state as an undisturbed run. The test
// that calls it must be called name, as the process to be killed is this test
// again. same reports whether two projections that hold all batches are equal.
func RunCrash(t *testing.T, name string, rounds int, open func(dir string) (Projection, error), same func(t *testing.T, want, got Projection)) {
	if dir := os.Getenv(crashEnv); dir != "" {
		applyUntilKilled(t, dir, open)
		return
	}
	must := func(dir string) Projection {
		p, err := open(dir)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return p
	}
	want := must(t.TempDir())
	defer want.Close()
	for seq := int64(1); seq <= crashBatches; seq++ {
		if err := want.Apply(t.Context(), crashBatch(seq)); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(8, 9))
	for range rounds {
		dir := t.TempDir()
		acked := kill(t, name, dir, 1+r.Int64N(crashBatches/2), time.Duration(r.IntN(3000))*time.Microsecond)
		p := must(dir)
		seq, err := p.Applied(t.Context(), Tenant, Project, crashStream, Space)
		if err != nil {
			t.Fatal(err)
		}
		if seq < acked || seq > acked+1 {
			t.Errorf("%d batches were acknowledged, %d are applied", acked, seq)
		}
		for seq := int64(1); seq <= crashBatches; seq++ {
			if err := p.Apply(t.Context(), crashBatch(seq)); err != nil {
				t.Fatal(err)
			}
		}
		same(t, want, p)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func applyUntilKilled(t *testing.T, dir string, open func(dir string) (Projection, error)) {
	p, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for seq := int64(1); seq <= crashBatches; seq++ { // what the undisturbed run has, and no more
		if err := p.Apply(t.Context(), crashBatch(seq)); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("applied %d\n", seq)
	}
	time.Sleep(time.Minute) // the kill is late on a busy machine
}

// kill runs the test again over dir, waits until it acknowledged after batches
// and a moment more, kills it, and gives the last batch it acknowledged.
func kill(t *testing.T, name, dir string, after int64, more time.Duration) (acked int64) {
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
	for s := bufio.NewScanner(out); s.Scan(); {
		var seq int64
		if _, err := fmt.Sscanf(s.Text(), "applied %d", &seq); err != nil {
			continue
		}
		acked = seq
		if seq == after {
			time.AfterFunc(more, func() { cmd.Process.Kill() })
		}
	}
	cmd.Wait() // its error is the kill
	if acked < after {
		t.Fatalf("the process ended after %d batches", acked)
	}
	return acked
}
