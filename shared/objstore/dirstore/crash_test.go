package dirstore_test

import (
	"bufio"
	"crypto/md5"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
)

func start(t *testing.T, what, root string) (*exec.Cmd, *bufio.Scanner, io.WriteCloser) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+what+" "+root)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, bufio.NewScanner(out), in
}

// TestProcessesRace: a key is won by one writer, whatever process it is in.
func TestProcessesRace(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	open(t, root) // the folder stands before the race begins
	wins := map[string]int{}
	var outs []*bufio.Scanner
	for range 4 {
		_, out, _ := start(t, "race", root)
		outs = append(outs, out)
	}
	for _, out := range outs {
		for out.Scan() {
			wins[out.Text()]++
		}
	}
	if len(wins) != raceKeys {
		t.Errorf("%d keys were won, want %d", len(wins), raceKeys)
	}
	for key, n := range wins {
		if n != 1 {
			t.Errorf("%s was won %d times", key, n)
		}
	}
}

// TestKilled: what a writer was told is stored is there and whole after
// kill -9, and nothing half-written is listed.
func TestKilled(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{30 * time.Millisecond, 110 * time.Millisecond, 250 * time.Millisecond} {
		root := t.TempDir()
		cmd, out, _ := start(t, "write", root)
		if !out.Scan() {
			t.Fatal("the writer wrote nothing")
		}
		acked := []string{out.Text()}
		timer := time.AfterFunc(after, func() { cmd.Process.Kill() })
		defer timer.Stop()
		for out.Scan() {
			acked = append(acked, out.Text())
		}
		s := open(t, root)
		listed := map[string]bool{}
		infos, err := s.List(t.Context(), "", "", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range infos {
			listed[info.Key] = true
			r, got, err := s.Get(t.Context(), info.Key, 0, -1)
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(r)
			r.Close()
			sum := md5.Sum(data)
			if err != nil || got != info || info.ETag != hex.EncodeToString(sum[:]) {
				t.Errorf("%s: Info %+v, listed as %+v, MD5 %x, %v", info.Key, got, info, sum, err)
			}
			first, _, _ := strings.Cut(string(data), "\n")
			i, err := strconv.Atoi(strings.TrimPrefix(first, "line "))
			if err != nil || string(data) != crashText(i) {
				t.Errorf("%s is not whole: %d bytes, first line %q", info.Key, len(data), first)
			}
		}
		for _, key := range acked {
			if !listed[key] {
				t.Errorf("%s was answered and is gone", key)
			}
		}
		if extra := len(listed) - len(acked); extra > 2 { // k/over, and one stored but not yet said
			t.Errorf("%d objects, %d answered", len(listed), len(acked))
		}
	}
}

func TestLockDir(t *testing.T) {
	t.Parallel()
	root := t.TempDir() + "/data"
	cmd, out, _ := start(t, "lock", root)
	if !out.Scan() || out.Text() != "locked" {
		t.Fatalf("the child does not lock: %q", out.Text())
	}
	_, err := dirstore.LockDir(root)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "pid "+strconv.Itoa(cmd.Process.Pid)) || !strings.Contains(err.Error(), root) || fault.HintOf(err) == "" {
		t.Errorf("a second owner gets %v (hint %q), want its folder and pid %d", err, fault.HintOf(err), cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	release, err := dirstore.LockDir(root)
	if err != nil {
		t.Fatalf("after its owner was killed: %v", err)
	}
	if _, err := dirstore.LockDir(root); err == nil {
		t.Error("locked twice in one process")
	}
	release()
	release()
	release, err = dirstore.LockDir(root)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	release()
}
