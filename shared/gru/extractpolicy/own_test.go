package extractpolicy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	retries = "We decided that retries stop after exactly 5 attempts, because the upstream bans us for more."
	fridays = "From now on deploys never start on a Friday, because the on-call team is too small at weekends."
	ttl     = "We decided that the cache TTL must be exactly 15 minutes, never longer, since stale prices cost us an incident."
	ttlNew  = "From now on the cache TTL must be exactly 40 minutes instead of 15, because the price feed is slow."
	quota   = "We decided that the export queue must never hold more than 90 jobs, because the ERP rejects the rest."
)

// kept is a stream whose first memory held ttl, which ttlNew replaced.
func kept(t *testing.T, cfg *gru.Config) (s gru.State, before string, log []any) {
	t.Helper()
	s, log = fold(gru.State{}, cfg, 1, epoch, "", "user: "+retries+"\nuser: "+fridays+"\nuser: "+ttl)
	before = s.MemoryText
	s, recs := fold(s, cfg, 2, epoch.AddDate(0, 0, 1), "", "user: "+ttlNew)
	if len(s.Kept) != 4 || strings.Contains(s.MemoryText, ttl) || !strings.Contains(before, ttl) {
		t.Fatalf("kept %d, memory before:\n%s\nand now:\n%s", len(s.Kept), before, s.MemoryText)
	}
	return s, before, append(log, recs...)
}

// fill wraps s at width columns, each line behind prefix.
func fill(s string, width int, prefix string) string {
	var b strings.Builder
	n := 0
	for w := range strings.FieldsSeq(s) {
		switch {
		case b.Len() == 0:
			b.WriteString(prefix)
		case n+1+len(w) > width:
			b.WriteString("\n" + prefix)
			n = 0
		default:
			b.WriteByte(' ')
		}
		b.WriteString(w)
		n += 1 + len(w)
	}
	return b.String()
}

func evidence(recs []any) (out []string) {
	for _, r := range recs {
		if e, ok := r.(*memory.Evidence); ok {
			out = append(out, e.Text)
		}
	}
	return out
}

func TestOwnWordsAreNoEvidence(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s, before, _ := kept(t, cfg)
	forms := map[string]func(string) string{
		"verbatim":   func(m string) string { return m },
		"wrapped":    func(m string) string { return fill(m, 37, "") },
		"indented":   func(m string) string { return fill(m, 52, "      ") },
		"quoted":     func(m string) string { return fill(m, 60, "> ") },
		"one line":   func(m string) string { return strings.Join(strings.Fields(m), " ") },
		"numbered":   func(m string) string { return strings.ReplaceAll(m, "- ", "1. ") },
		"introduced": func(m string) string { return "This is what the memory says:\n\n" + fill(m, 47, "  ") },
	}
	for name, form := range forms {
		for which, text := range map[string]string{"present": s.MemoryText, "past": before} {
			for _, role := range []string{"assistant", "tool", "injected"} {
				next, recs := fold(s, cfg, 3, epoch.AddDate(0, 0, 9), "", role+": "+form(text))
				if got := evidence(recs); len(got) > 0 || next.MemoryText != s.MemoryText {
					t.Errorf("%s, %s memory from %s: evidence %q", name, which, role, got)
				}
				if g := recs[1].(*memory.Gate); role == "assistant" && (g.Update || g.ReasonCode != "derived") {
					t.Errorf("%s, %s memory: update %v, %s: %s", name, which, g.Update, g.ReasonCode, g.Reason)
				}
			}
		}
	}
	// A note with the memory's node suffixes was written by the memory.
	for name, form := range forms {
		if name == "introduced" {
			continue // the introduction is a sentence of its own, as in any note
		}
		if _, recs := fold(s, cfg, 3, epoch.AddDate(0, 0, 9), "", "note: "+form(before)); len(evidence(recs)) > 0 {
			t.Errorf("%s, in a note: evidence %q", name, evidence(recs))
		}
	}
}

// What is new beside it counts, whoever says it, in its own bytes.
func TestNewWordsBesideOwn(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s, before, _ := kept(t, cfg)
	fresh := quota + " We decided that node pools stay at exactly 12 machines, because the quota of the region is shared. " +
		"From now on every invoice must be archived for 10 years, because the auditor asks for it."
	_, recs := fold(s, cfg, 3, epoch.AddDate(0, 0, 9), "", "assistant: "+fresh)
	want := evidence(recs)
	if len(want) == 0 {
		t.Fatal("an assistant's decisions are no evidence: nothing is shown")
	}
	for name, chunk := range map[string]string{
		"behind, same message": "assistant: " + fill(before, 60, "  ") + "\n\n" + fresh,
		"before, same message": "assistant: " + fresh + "\n\n" + fill(before, 60, "  "),
		"another, next":        "assistant: " + fill(before, 60, "  ") + "\nassistant: " + fresh,
	} {
		_, recs := fold(s, cfg, 3, epoch.AddDate(0, 0, 9), "", chunk)
		if diff := cmp.Diff(want, evidence(recs)); diff != "" {
			t.Errorf("%s: evidence (-want +got):\n%s", name, diff)
		}
	}
}

// A person who restates a rule means it: what was replaced holds again.
func TestPersonRestates(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s, before, _ := kept(t, cfg)
	all := retries + " " + fridays + " " + ttl
	if n := len(strings.Fields(all)); n < 40 {
		t.Fatalf("%d words show nothing", n)
	}
	for name, text := range map[string]string{"a text": all, "a memory": before} {
		next, recs := fold(s, cfg, 3, epoch.AddDate(0, 0, 9), "", "user: "+text)
		if diff := cmp.Diff([]string{ttl}, evidence(recs)); diff != "" || !strings.Contains(next.MemoryText, ttl) {
			t.Errorf("%s: evidence of a person (-want +got):\n%s\nmemory:\n%s", name, diff, next.MemoryText)
		}
	}
	if next, recs := fold(s, cfg, 3, epoch.AddDate(0, 0, 9), "", "assistant: "+all); len(evidence(recs)) > 0 || strings.Contains(next.MemoryText, ttl) {
		t.Errorf("evidence of an assistant: %q", evidence(recs))
	}
}

// Going on from the log decides as never having stopped, wherever it stopped
// and whatever the policy saw meanwhile.
func TestOwnWordsAfterRestart(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s, before, log := kept(t, cfg)
	echo := "user: " + quota + "\nassistant: " + fill(before, 40, "  ") + "\nassistant: " + fill(s.MemoryText, 33, "> ")
	want, recs := fold(s, cfg, 3, epoch.AddDate(0, 0, 9), "", echo)
	fresh := *cfg
	fresh.Policy = extractpolicy.New(extractive.Options{})
	got, again := fold(gru.Fold(slices.Values(log)), &fresh, 3, epoch.AddDate(0, 0, 9), "", echo)
	if diff := cmp.Diff(recs, again); diff != "" {
		t.Errorf("after a restart (-never stopped +restarted):\n%s", diff)
	}
	if diff := cmp.Diff(want.Kept, got.Kept); diff != "" {
		t.Errorf("state (-never stopped +restarted):\n%s", diff)
	}
	// An earlier state does not know what was kept later.
	empty, _ := fold(gru.State{}, cfg, 1, epoch, "", "user: Hello there.")
	if _, recs := fold(empty, cfg, 2, epoch, "", "assistant: "+before); len(evidence(recs)) == 0 {
		t.Error("an assistant's decisions that no memory held are no evidence")
	}
}

// What the stream of another question keeps, and gives out, this one has
// passed over: it knows it all the same, from its own records.
func TestWordsOfOtherStreams(t *testing.T) {
	t.Parallel()
	all, prefs := config(t), config(t)
	prefs.Stream, prefs.QueryID, prefs.Question = "prefs@00000000", "prefs", "What does the user prefer?"
	said := "user: " + retries + "\nuser: " + quota + "\nuser: I prefer table tests over mocks, always, with at most 30 lines each."
	a, _ := fold(gru.State{}, all, 1, epoch, "", said)
	p, log := fold(gru.State{}, prefs, 1, epoch, "", said)
	if len(a.Kept) != 3 || len(p.Kept) == 0 || len(p.Kept) == len(a.Kept) || len(p.Shingles) != len(a.Kept)-len(p.Kept) || len(a.Shingles) > 0 {
		t.Fatalf("kept %d and %d, shingles %d and %d: nothing is shown", len(a.Kept), len(p.Kept), len(a.Shingles), len(p.Shingles))
	}
	echo := "assistant: " + fill(a.MemoryText, 37, "  ")
	for name, s := range map[string]gru.State{"never stopped": p, "restarted": gru.Fold(slices.Values(log))} {
		_, recs := fold(s, prefs, 2, epoch.AddDate(0, 0, 9), "", echo)
		if g := recs[1].(*memory.Gate); g.Update || g.ReasonCode != "derived" || len(g.Shingles) > 0 {
			t.Errorf("%s: update %v, %s: %s; %d shingles", name, g.Update, g.ReasonCode, g.Reason, len(g.Shingles))
		}
	}
	// Saying it again adds no second shingle.
	if again, _ := fold(p, prefs, 2, epoch, "", said); len(again.Shingles) != len(p.Shingles) {
		t.Errorf("%d shingles, %d after the same again", len(p.Shingles), len(again.Shingles))
	}
}

// The cost of one step with 2,000 statements kept, over a chunk that an
// assistant filled: without the look it is that of scoring alone.
func BenchmarkOwnWords(b *testing.B) {
	cfg := config(b)
	cfg.BudgetTokens = 1024
	var s gru.State
	for i := range 2000 {
		text := fmt.Sprintf("We decided that queue %d stays at %d messages, because the consumer of region %d falls behind after that.", i, i*7%900, i%40)
		s.Kept = append(s.Kept, &gru.Kept{
			Node: memory.NodeID(cfg.Tenant, cfg.Project, memory.L0, cfg.Stream, memory.SumString(text)), Text: text, T: i,
			Place: memory.Place{Time: epoch.Add(time.Duration(i) * time.Second), Admit: 1, I: i},
		})
	}
	chunk := "user: Look at the module, please.\nassistant: " + strings.Repeat("The step goes through the module and its callers in turn, as before. ", 300)
	part := &gru.Part{Admit: memory.Admit{Seq: 1, Source: memory.SumString("1"), StoredAt: epoch.AddDate(1, 0, 0)}, Chunks: 1}
	s, _ = gru.Begin(s, cfg, part, epoch)
	in := gru.ChunkInput{Chunk: chunkOf(0, epoch, chunk)}
	for _, n := range []int{0, 2000} {
		state := s
		state.Kept = s.Kept[:n]
		b.Run(fmt.Sprintf("20KB/%d-kept", n), func(b *testing.B) {
			gru.StepChunk(state, cfg, part, in) // builds the index, once a process
			b.ReportAllocs()
			for b.Loop() {
				gru.StepChunk(state, cfg, part, in)
			}
		})
	}
}
