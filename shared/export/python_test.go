package export_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/export"
)

// python gives an interpreter with packages, in a throwaway environment unless env names
// one: env is "1", or the path of an interpreter that has them. It skips the test aloud
// where there is none, and fails it where MNEME_TEST_REQUIRE lists need.
func python(t *testing.T, env, need string, packages ...string) string {
	t.Helper()
	skip := func(why string) {
		t.Helper()
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), need) {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	v := os.Getenv(env)
	switch v {
	case "":
		skip("set " + env + "=1 to install " + strings.Join(packages, ", ") + " for this test, or to an interpreter that has them")
	case "1":
	default:
		return v
	}
	base, err := exec.LookPath("python3")
	if err != nil {
		skip("there is no python3")
	}
	dir := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command(base, "-m", "venv", dir).CombinedOutput(); err != nil {
		skip("python3 makes no environment: " + lastLine(out))
	}
	python := filepath.Join(dir, "bin", "python")
	if out, err := exec.Command(python, append([]string{"-m", "pip", "install", "--quiet", "--no-cache-dir"}, packages...)...).CombinedOutput(); err != nil {
		skip("the packages can not be had: " + lastLine(out))
	}
	return python
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// script runs a Python program that must end well; its output is returned.
func script(t *testing.T, python string, args ...string) string {
	t.Helper()
	begun := time.Now()
	cmd := exec.Command(python, args...)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "HF_DATASETS_OFFLINE=1", "HF_HOME="+t.TempDir(), "PYTHONDONTWRITEBYTECODE=1", "TOKENIZERS_PARALLELISM=false", "CUDA_VISIBLE_DEVICES=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), e, out)
		}
		t.Fatal(err)
	}
	t.Logf("%s (%v): %s", filepath.Base(args[0]), time.Since(begun).Round(time.Millisecond), lastLine(out))
	return string(out)
}

// docs are the worked examples of docs/TRAINING.md.
var docs = filepath.Join("..", "..", "docs", "training")

// TestTrainers: the code of LLaMA-Factory and of Axolotl reads the files by the
// configurations of docs/training, and trains the assistant's answer alone.
func TestTrainers(t *testing.T) {
	t.Parallel()
	py := python(t, "MNEME_TEST_TRAINERS", "trainers", "llamafactory", "axolotl", "pyyaml")
	dir, _ := labelled(t)
	tiny := filepath.Join(t.TempDir(), "tiny")
	script(t, py, filepath.Join("testdata", "python", "tiny.py"), tiny)
	if out := script(t, py, filepath.Join("testdata", "python", "trainers.py"), dir, docs, tiny); strings.Contains(out, "\n0 trainers") {
		t.Errorf("no trainer read it:\n%s", out)
	}
}

// TestPython: pyarrow, datasets, DuckDB and polars read every file, with the types of
// specs/models.md 4.6 and the same contents; files without rows too.
func TestPython(t *testing.T) {
	t.Parallel()
	py := python(t, "MNEME_TEST_PYTHON", "python", "pyarrow", "datasets", "duckdb", "polars")
	dir, _ := labelled(t)
	empty, _ := write(t, world(t, functest.Options{}), export.Options{})
	for _, d := range []string{dir, empty} {
		if out := script(t, py, filepath.Join("testdata", "python", "read.py"), d, docs); !strings.Contains(out, "read 8 files") {
			t.Errorf("%s", out)
		}
	}
}

// TestTRL: the worked example of docs/TRAINING.md trains a tiny model with random weights
// for two steps on the very files: supervised, KTO and DPO.
func TestTRL(t *testing.T) {
	t.Parallel()
	py := python(t, "MNEME_TEST_TRL", "trl", "torch", "transformers", "trl", "peft", "datasets")
	dir, _ := labelled(t)
	tiny := filepath.Join(t.TempDir(), "tiny")
	script(t, py, filepath.Join("testdata", "python", "tiny.py"), tiny)
	for _, method := range []string{"sft", "kto", "dpo"} {
		out := filepath.Join(t.TempDir(), method)
		said := script(t, py, filepath.Join(docs, "trl_train.py"), method, dir,
			"--model", tiny, "--out", out, "--split", "all", "--max-steps", "2", "--batch", "2", "--accumulate", "1", "--rank", "4", "--cpu")
		if !strings.Contains(said, "2 steps, loss ") {
			t.Errorf("%s:\n%s", method, said)
		}
		for _, f := range []string{"adapter_model.safetensors", "adapter_config.json"} {
			if _, err := os.Stat(filepath.Join(out, f)); err != nil {
				t.Errorf("%s: %v", method, err)
			}
		}
	}
}
