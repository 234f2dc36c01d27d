package main_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/llm/llmtest"
)

// TestDoctorOfVectors: the doctor shows what it finds of the models that embed and
// rerank, with cures, beside the policy that decides.
func TestDoctorOfVectors(t *testing.T) {
	t.Parallel()
	m := llmtest.New(t) // its vectors have four numbers, its reranker likes what comes first
	s := start(t, filepath.Join(t.TempDir(), "d"), "LLM_API_BASE="+m.URL+"/v1", "LLM_API_KEY=",
		"MNEME_EMBED_MODEL="+llmtest.Model, "MNEME_EMBED_DIMS=5", "MNEME_RERANK_MODEL="+llmtest.Model)
	out, code := s.mem("doctor")
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{
		"ok    models        none: the built-in policy extractive/",
		"ok    embed reach   env/small: env answers",
		"FAIL  embed dims    env/small: its vectors have 4 numbers, and 5 are configured\n                    cure: dims: 4 in",
		"FAIL  rerank rerank env/small: the text that answers has",
		"cure: serve a cross-encoder",
		"ok    s3 endpoint",
	} {
		if !strings.Contains(plain(out), plain(want)) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if st := s.must("status"); !strings.Contains(st, "without_vector 0") {
		t.Errorf("status:\n%s", st)
	}
}

// plain is a text without its columns.
func plain(s string) string { return strings.Join(strings.Fields(s), " ") }
