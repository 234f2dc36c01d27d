package main_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	main "github.com/mneme-ai/mneme/cmd/mem"
	"github.com/mneme-ai/mneme/shared/gitbundle"
	"github.com/mneme-ai/mneme/shared/gitbundle/gitbundletest"
	"github.com/mneme-ai/mneme/shared/gitlog"
)

// unpacked are the lines that a bundle gives without git.
func unpacked(t *testing.T, bundle []byte) ([]byte, gitbundle.Stats) {
	t.Helper()
	var out bytes.Buffer
	enc := gitlog.NewEncoder(&out)
	st, err := gitbundle.Read(t.Context(), bytes.NewReader(bundle), gitbundle.Limits{}, enc.Encode)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), st
}

// TestBundleIsTheRepository: a bundle read without git gives, byte for byte, the
// lines that git gives of the repository, and of the bundle.
func TestBundleIsTheRepository(t *testing.T) {
	t.Parallel()
	story := gitbundletest.Story(t)
	tests := map[string]struct {
		pack []string // configuration under which the bundle is made
		revs []string
		repo bool // the repository's HEAD has the same commits
	}{
		"HEAD":          {nil, []string{"HEAD"}, true},
		"main":          {nil, []string{"main"}, true},
		"all":           {nil, []string{"--all"}, false},
		"two branches":  {nil, []string{"left", "side"}, false},
		"a tag":         {nil, []string{"v1.0.0"}, false},
		"no deltas":     {[]string{"pack.window=0"}, []string{"HEAD"}, true},
		"deep deltas":   {[]string{"pack.window=250", "pack.depth=4000"}, []string{"--all"}, false},
		"version 3":     {nil, []string{"--version=3", "HEAD"}, true},
		"a side branch": {nil, []string{"side"}, false},
	}
	for name, tc := range tests {
		for _, set := range tc.pack {
			story.Git("-c", set, "repack", "-q", "-a", "-d", "-f")
		}
		bundle := story.Bundle(tc.revs...)
		got, st := unpacked(t, bundle)
		if st.Partial+st.Lost+st.Unresolved > 0 {
			t.Errorf("%s: %+v of a whole bundle", name, st)
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "story.bundle")
		if err := os.WriteFile(file, bundle, 0o600); err != nil {
			t.Fatal(err)
		}
		from := []string{file}
		if tc.repo {
			from = append(from, story.Dir)
		}
		for _, from := range from {
			want, err := main.ExportGit(t.Context(), from, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if len(want) == 0 {
				t.Errorf("%s: git gives nothing of %s", name, from)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("%s: %s by git and the bundle without (-git +bundle):\n%s", name, from, d)
			}
		}
	}
}

// The same law over histories that nobody would write.
func TestRandomBundles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		repo := gitbundletest.Random(t, rand.New(rand.NewPCG(seed, 1)), 60)
		bundle := repo.Bundle("--all")
		file := filepath.Join(t.TempDir(), "random.bundle")
		if err := os.WriteFile(file, bundle, 0o600); err != nil {
			t.Fatal(err)
		}
		want, err := main.ExportGit(t.Context(), file, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		got, _ := unpacked(t, bundle)
		if n := bytes.Count(want, []byte("\n")); n != 60 {
			t.Errorf("seed %d: git gives %d commits", seed, n)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Fatalf("seed %d: (-git +bundle):\n%s", seed, d)
		}
	}
}
