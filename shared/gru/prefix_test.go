package gru_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestPrefixStays: over ten chunks whose gates stay closed, at other times of other
// runs, the loop's prompts are the same bytes to the end of the memory, so that a server
// finds its work for them again; where the memory changes they are to its beginning.
func TestPrefixStays(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"t1", "t2", "j1", "j2"} {
		for _, opens := range []bool{false, true} {
			var prefixes []string
			for turn := range 10 {
				prefixes = append(prefixes, prefixOf(t, version, turn, opens))
			}
			hashes := map[[32]byte]bool{}
			for _, p := range prefixes {
				hashes[sha256.Sum256([]byte(p))] = true
			}
			if len(hashes) != 1 {
				t.Errorf("%s, memory changes %v: %d prefixes over 10 turns:\n%q\n%q", version, opens, len(hashes), prefixes[0], prefixes[9])
			}
			if !strings.Contains(prefixes[0], "What was decided?") || strings.Contains(prefixes[0], "retries are") == opens {
				t.Errorf("%s: the prefix is %q", version, prefixes[0])
			}
		}
	}
}

// prefixOf is what the prompt of a turn begins with: to the end of the memory, or to
// its beginning where that changes.
func prefixOf(t *testing.T, version string, turn int, changes bool) string {
	t.Helper()
	cfg := &gru.Config{
		Tenant: "local", Project: "shop", Stream: "s", Question: "What was decided?", Level: memory.L1, BudgetTokens: 300, Count: words,
		Model: &gru.Model{Policy: "p", Name: "m", WindowTokens: 4000, ReplyTokens: 100, TokenFactor: 1, JSON: version[0] == 'j', Prompt: version},
	}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	mem := "fact 1: retries are 5 [1f0a77c2]"
	if changes {
		mem = fmt.Sprintf("fact %d: retries are %d [1f0a77c2]", turn, turn)
	}
	at := epoch.Add(time.Duration(turn) * 31 * time.Hour)
	part := partOf(int64(turn)+1, 1)
	s, _ := gru.Begin(gru.State{MemoryText: mem}, cfg, part, at)
	if s.MemoryText != mem {
		t.Fatalf("the memory is %q", s.MemoryText)
	}
	_, effects := gru.Step(s, gru.Input{Config: cfg, Part: part, Event: gru.ReadChunk{ChunkInput: gru.ChunkInput{Chunk: chunkOf(s.Open.Next, at, fmt.Sprintf("user: turn %d says something else at %s", turn, at))}}})
	call, ok := effects[0].(*gru.Call)
	if !ok {
		t.Fatalf("%T", effects[0])
	}
	whole := call.Prompt.System + call.Prompt.User
	end := "</memory>"
	if changes {
		end = "<memory>"
	}
	head, _, ok := strings.Cut(whole[len(call.Prompt.System):], end)
	if !ok {
		t.Fatalf("no %s in %q", end, call.Prompt.User)
	}
	return call.Prompt.System + head + end
}
