package signature_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/signature"
)

// TestSymptomGolden: the values that lessons are stored under (signatures.md A5).
func TestSymptomGolden(t *testing.T) {
	t.Parallel()
	const sha = "f0268cf18f91101bc9dda587bebf9f347d8b68e1449c5588b9de4ad0b6e0e417"
	for _, s := range []string{"npm error: unable to resolve dependency tree", "NPM ERR! ERESOLVE unable to resolve dependency tree", "npm error eresolve dependency tree"} {
		sym := signature.Symptom("npm", s)
		if sym != "dependency error npm resolve tree" || signature.SymSHA("npm", sym) != sha {
			t.Errorf("%q gives %q", s, sym)
		}
	}
	if got := signature.SigSHA("npm", "npm error eresolve dependency tree"); got != "d449b61bab759059fe84c3c2546c1b4c6db5fdb9da33aa8b21f6d76df4e0be8c" {
		t.Errorf("sig_sha %s", got)
	}
	// A real log's class has the symptom that people's words have.
	r := extract(t, "npm", "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error\n")
	if r.SymSHA != sha {
		t.Errorf("a real log: %q", signature.Symptom("npm", r.Normalised))
	}
}

func TestSymptom(t *testing.T) {
	t.Parallel()
	same := [][]string{
		{"cannot resolve dependencies", "Cannot resolve the dependency", "can't resolve dependencies"},
		{"connection refused", "ECONNREFUSED", "the connection was refused"},
		{"module not found", "Modules not found", "ModuleNotFoundError"},
		{"permission denied", "EACCES", "permissions denied!"},
		{"out of memory", "OOM", "we are out of memory"},
		{"timed out", "timeout", "ETIMEDOUT"},
	}
	for _, g := range same {
		for _, s := range g[1:] {
			if a, b := signature.Symptom("npm", g[0]), signature.Symptom("npm", s); a != b {
				t.Errorf("%q is %q, %q is %q", g[0], a, s, b)
			}
		}
	}
	for _, p := range [][2]string{{"module found", "module not found"}, {"file exists", "no such file exists"}, {"can connect", "cannot connect"}, {"with lock", "without lock"}} {
		if signature.Symptom("", p[0]) == signature.Symptom("", p[1]) {
			t.Errorf("%q and %q are one", p[0], p[1])
		}
	}
	if a, b := signature.Symptom("npm", "not found"), signature.Symptom("go", "not found"); a == b {
		t.Error("two tools are one")
	}
}

// TestAliases: people say a failure in many words; each finds the lesson.
func TestAliases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool, log string
		said      []string
	}{
		{"npm", "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\n", []string{
			"npm error: unable to resolve dependency tree", "npm can't resolve the dependency tree", "cannot resolve dependency tree", "ERESOLVE dependency tree", "resolving dependency tree failed",
			"npm failed to resolve dependency tree", "dependency tree resolution error", "npm error eresolve dependency tree", "unable to resolve dependency tree", "npm: could not resolve dependency tree",
		}},
		{"node", "Error: Cannot find module 'tslib'\n    at x (a.js:1:1)\n", []string{
			"can't find module tslib", "cannot find module 'tslib'", "Cannot find module tslib", "node cannot find module tslib", "Error: Cannot find module 'tslib'",
			"node can't find tslib module", "could not find module tslib", "module tslib cannot be found", "unable to find module tslib", "tslib module not found",
		}},
		{"go", "# x\n./main.go:3:15: undefined: helper\n", []string{
			"undefined helper", "go undefined: helper", "undefined: helper", "main.go: undefined: helper", "go: undefined helper", "helper undefined", "helper is undefined in go", "go build undefined helper", "error undefined helper", "go says undefined: helper",
		}},
		{"docker", "docker: Error response from daemon: pull access denied for acme/api, repository does not exist or may require 'docker login'.\n", []string{
			"pull access denied", "docker pull access denied", "access denied on pull", "pull access denied for acme/api", "docker: pull access denied for acme/api", "access to pull was denied", "Error response from daemon: pull access denied", "docker daemon pull access denied", "docker error pull access denied", "pull access denied error",
		}},
		{"pip", "ERROR: Could not find a version that satisfies the requirement acme-sdk==9 (from versions: 1.0)\n", []string{
			"could not find a version that satisfies the requirement acme-sdk==9", "pip could not find a version that satisfies the requirement", "cannot find a version that satisfies the requirement acme-sdk", "can't find version that satisfies requirement", "pip can't find a version that satisfies the requirement",
			"no version satisfies the requirement", "could not find version satisfying requirement", "pip: could not find a version", "unable to find a version that satisfies the requirement", "pip error could not find version that satisfies requirement",
		}},
	} {
		r := extract(t, c.tool, c.log)
		aliases := signature.Aliases(r)
		missing := 0
		for _, s := range c.said {
			if !slices.Contains(aliases, signature.Symptom(c.tool, s)) {
				missing++
				t.Logf("%s: %q is %q", c.tool, s, signature.Symptom(c.tool, s))
			}
		}
		// Words that are neither said nor written are not guessed.
		if missing > len(c.said)/5 {
			t.Errorf("%s: %d of %d phrasings miss the lesson's aliases:\n%s", c.tool, missing, len(c.said), strings.Join(aliases, "\n"))
		}
	}
}

func FuzzSymptom(f *testing.F) {
	f.Add("npm", "npm ERR! ERESOLVE unable to resolve dependency tree")
	f.Add("", "can't won't <p>/x.js:<l> ‘a’")
	f.Fuzz(func(t *testing.T, tool, s string) {
		sym := signature.Symptom(tool, s)
		words := strings.Split(sym, " ")
		if !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) {
			if !strings.Contains(tool, " ") {
				t.Fatalf("%q is no sorted set", sym)
			}
		}
	})
}
