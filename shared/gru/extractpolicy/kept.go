package extractpolicy

import (
	"slices"
	"sync"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
)

// keptIndex holds the fingerprints of what one stream has kept, in the order of
// State.Kept, so that a step compares its picks with the few statements they
// may be about and not with all. It is a function of the texts: what it saves
// is time, and a state of another history makes it start anew.
type keptIndex struct {
	mu    sync.Mutex
	kept  []*gru.Kept // what the places of prints belong to
	index *extractive.Index
	// own holds the same statements, and those that the streams of other
	// questions may have kept, to know them in what comes back.
	own    derived.Index
	passed []string
}

// sync brings the index to the state: it may hold more than kept, when the
// state is an earlier one of the same stream, and never anything else. A Kept
// is copied before a change, so that an equal pointer is an equal statement.
func (x *keptIndex) sync(p *Policy, s *gru.State) {
	kept := s.Kept
	for i := range min(len(kept), len(x.kept)) {
		if x.kept[i] == kept[i] {
			continue
		}
		if x.kept[i].Node != kept[i].Node || x.kept[i].Text != kept[i].Text {
			x.kept, x.index, x.passed, x.own = nil, nil, nil, derived.Index{}
			break
		}
		x.kept[i] = kept[i]
	}
	if n := min(len(s.Shingles), len(x.passed)); x.index != nil && !slices.Equal(s.Shingles[:n], x.passed[:n]) {
		x.kept, x.index, x.passed, x.own = nil, nil, nil, derived.Index{}
	}
	if x.index == nil {
		x.index = extractive.NewIndex()
	}
	for _, k := range kept[min(len(kept), len(x.kept)):] {
		x.index.Add(p.print(k.Text))
		x.own.Add(k.Text)
		x.kept = append(x.kept, k)
	}
	for _, e := range s.Shingles[min(len(s.Shingles), len(x.passed)):] {
		x.own.AddShingle(e)
		x.passed = append(x.passed, e)
	}
}

// print is the fingerprint of a text. The streams of a project keep the same
// sentences, each under a node of its own.
func (p *Policy) print(text string) extractive.Fingerprint {
	fp, ok := p.prints.get(text)
	if !ok {
		fp = extractive.FingerprintOf(text)
		p.prints.put(text, fp)
	}
	return fp
}

// indexOf is the index of the stream that a step belongs to.
func (p *Policy) indexOf(cfg *gru.Config) *keptIndex {
	p.indexing.Lock()
	defer p.indexing.Unlock()
	key := stream{cfg.Tenant, cfg.Project, cfg.Stream}
	x, ok := p.indexes.get(key)
	if !ok {
		x = &keptIndex{}
		p.indexes.put(key, x)
	}
	return x
}

type stream struct{ tenant, project, name string }
