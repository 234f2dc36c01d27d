package signature_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/signature"
)

// TestDrain3 holds Drain3, which clusters log lines, against the signature on
// the labelled logs: MNEME_TEST_DRAIN3=1, or the path of a Python that has it.
func TestDrain3(t *testing.T) {
	python := os.Getenv("MNEME_TEST_DRAIN3")
	if python == "" {
		t.Skip("MNEME_TEST_DRAIN3 is not set: 1 makes an environment for it with pip, in a temporary folder")
	}
	if python == "1" {
		env := filepath.Join(t.TempDir(), "venv")
		python = filepath.Join(env, "bin", "python")
		for _, args := range [][]string{{"python3", "-m", "venv", env}, {python, "-m", "pip", "install", "-q", "drain3==0.9.11"}} {
			if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
		}
	}
	rows, logs := labelled(t)
	results := make([]signature.Result, len(rows))
	size := 0
	var took time.Duration
	for range 2 { // the second time, as Drain3's expressions are compiled too
		start := time.Now()
		size = 0
		for i := range rows {
			results[i] = extract(t, rows[i].Tool, string(logs[i]))
			size += len(logs[i])
		}
		took = time.Since(start)
	}
	own := signature.Score(rows, results)
	t.Logf("signature: %d of %d pairs stable, %d of %d not told apart, %.1f MB/s", own.PairsStable, own.Pairs, own.Collisions, own.Differ, float64(size)/1e6/took.Seconds())
	for _, args := range [][]string{nil, {"--all"}} {
		cmd := exec.CommandContext(t.Context(), python, append([]string{filepath.Join("testdata", "drain3", "run.py"), samples(t)}, args...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			MBPerS float64 `json:"mb_per_s"`
			AsRead struct {
				Pairs       int
				PairsStable int `json:"pairs_stable"`
				Collisions  int
			} `json:"as_read"`
			Changed int `json:"logs_whose_identity_changed"`
		}
		if err := json.Unmarshal(out, &d); err != nil {
			t.Fatal(err)
		}
		t.Logf("drain3 %v: %s", args, out)
		if d.AsRead.Pairs == 0 || own.PairsStable < d.AsRead.PairsStable || own.Collisions > d.AsRead.Collisions {
			t.Errorf("drain3 is better: %s", out)
		}
	}
}
