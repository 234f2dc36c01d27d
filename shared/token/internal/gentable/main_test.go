package main

import (
	"bytes"
	"os"
	"testing"
)

// The committed table is what the generator makes of the vendored vocabulary.
func TestTableIsFresh(t *testing.T) {
	t.Parallel()
	want, err := run("../../testdata/tokenizer.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../qwen2.5.bpe")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Error("qwen2.5.bpe is stale: run go generate ./shared/token")
	}
}

func TestAnotherVocabularyIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := run("main.go"); err == nil {
		t.Error("a file that is no vocabulary compiles")
	}
}
