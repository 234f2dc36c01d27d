package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestReplacedEverywhere: a sentence that one question knows to be replaced is replaced
// in every question of its project that keeps it, unless it was said again since.
func TestReplacedEverywhere(t *testing.T) {
	t.Parallel()
	const a, b, c, d = "decisions@1", "architecture@1", "causes@1", "old@1"
	node := func(project, stream, text string, at int) *index.Node {
		n := indextest.Evidence(project, stream, text, at)
		return &n
	}
	sixty, thirty := node("shop", a, "Capped at 60 seconds.", 1), node("shop", a, "Capped at 30 seconds.", 3)
	twin := node("shop", b, sixty.Text, 2)
	again := node("shop", c, sixty.Text, 4)
	unserved := node("shop", d, sixty.Text, 1)
	elsewhere := node("other", b, sixty.Text, 1)
	other := node("shop", b, "Ports are 8080.", 1)
	also := node("shop", b, thirty.Text, 3) // knows it is newer by an edge of its own
	also2 := node("shop", "rules@1", sixty.Text, 1)
	nodes := map[memory.SHA]*index.Node{}
	for _, n := range []*index.Node{sixty, thirty, twin, again, unserved, elsewhere, other, also, also2} {
		nodes[n.ID] = n
	}
	serving := map[string]bool{"shop/" + a: true, "shop/" + b: true, "shop/" + c: true, "shop/rules@1": true, "other/" + b: true}
	got := map[memory.SHA][]memory.SHA{sixty.ID: {thirty.ID}, also2.ID: {also.ID}}
	query.Everywhere(got, nodes, serving)
	for id, by := range got {
		if len(by) != 1 {
			t.Errorf("%s is replaced by %d nodes of one text", nodes[id].Stream, len(by))
		}
	}
	replaced := map[memory.SHA]memory.SHA{}
	for id, by := range got {
		replaced[id] = nodes[by[0]].TextSHA
	}
	want := map[memory.SHA]memory.SHA{sixty.ID: thirty.TextSHA, twin.ID: thirty.TextSHA, also2.ID: thirty.TextSHA}
	if diff := cmp.Diff(want, replaced); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
