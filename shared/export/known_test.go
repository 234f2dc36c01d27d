package export_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestKnownFacts: where the built-in policy closes its gate as it knows what the section
// says, no trainer is told that the section says nothing: with a label neither.
func TestKnownFacts(t *testing.T) {
	t.Parallel()
	w := world(t, functest.Options{}, "shop")
	w.Learned("shop/again.jsonl", functest.Decision("again", start.Add(72*time.Hour), "We decided to keep blobs as zstd, because the bucket grew too fast."))
	var known []string
	for _, g := range rows[export.GateRow](t, first(write(t, w, export.Options{})), export.Gates) {
		if g.ReasonCode == "nothing_new" {
			known = append(known, g.ID)
			label(t, w, "shop", memory.Label{Stream: g.Stream, QueryID: g.QueryID, Chunk: memory.SHA(g.ChunkSHA), Evidence: true})
		}
	}
	if len(known) == 0 {
		t.Fatal("no fact is known: the test proves nothing")
	}
	dir, r := write(t, w, export.Options{})
	if r.Excluded["nothing_new"] != len(known) {
		t.Errorf("the manifest excludes %v, want %d known ones", r.Excluded, len(known))
	}
	for _, g := range rows[export.GateRow](t, dir, export.Gates) {
		if is := slices.Contains(known, g.ID); is != (g.Excluded == "nothing_new") || is && g.Completion != nil {
			t.Errorf("%s (%s): excluded %q", g.ID, g.ReasonCode, g.Excluded)
		}
	}
	var trained []string
	for _, row := range rows[export.SFTRow](t, dir, export.SFT) {
		trained = append(trained, row.ID)
	}
	for _, row := range rows[export.SFTPCRow](t, dir, export.SFTPC) {
		trained = append(trained, row.ID)
	}
	for _, row := range rows[export.KTORow](t, dir, export.KTO) {
		trained = append(trained, row.ID)
	}
	for _, row := range rows[export.DPORow](t, dir, export.DPO) {
		trained = append(trained, row.ID)
	}
	for _, row := range rows[export.VerlRow](t, dir, export.VerlRL) {
		trained = append(trained, row.ExtraInfo.ID)
	}
	for _, id := range known {
		if slices.Contains(trained, id) {
			t.Errorf("%s is in a trainer's file", id)
		}
	}
	if len(trained) == 0 {
		t.Error("no decision is in a trainer's file")
	}
}

func first(dir string, _ export.Report) string { return dir }
