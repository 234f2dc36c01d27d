package osindex

import (
	"context"
	"encoding/json"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

var _ index.Reader = (*Index)(nil)

// Read implements index.Reader.
func (ix *Index) Read(ctx context.Context, tenant string, passages []memory.SHA) (nodes []index.Node, err error) {
	defer fault.Wrap(&err, "osindex.Read(%s, %d)", tenant, len(passages))
	if len(passages) == 0 {
		return nil, nil
	}
	ids := make([]string, len(passages))
	for i, p := range passages {
		ids[i] = string(p)
	}
	docs, err := ix.mget(ctx, ix.passages, ids)
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		if !d.Found {
			continue
		}
		var p passage
		if err := json.Unmarshal(d.Source, &p); err != nil {
			return nil, fault.New(fault.Unavailable, "passage %s cannot be read: %v", d.ID, err)
		}
		if p.Tenant == tenant {
			nodes = append(nodes, p.node())
		}
	}
	return nodes, nil
}

// node is what a passage knows of its node.
func (p *passage) node() index.Node {
	text := p.Content[min(p.Row.Header, len(p.Content)):]
	n := index.Node{
		ID: memory.SHA(p.Node), Level: memory.Level(p.Level), Tenant: p.Tenant, Project: p.Project, Stream: p.Stream,
		QueryID: memory.QueryID(p.Stream), Text: text, TextSHA: memory.SumString(text),
		T: p.Row.T, Role: p.Row.Role, Trust: p.Row.Trust, SourceTime: p.CreatedAt,
	}
	for _, o := range p.Row.Occurrences {
		n.Occurrences = append(n.Occurrences, index.Occurrence{T: o.T, Place: o.Place, Span: o.Span, Quote: text, Role: o.Role})
	}
	return index.Sorted(n)
}
