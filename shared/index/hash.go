package index

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"github.com/gowebpki/jcs"

	"github.com/mneme-ai/mneme/shared/memory"
)

// RowHash identifies everything of a node that a rebuild must give again. Step,
// time, run and vectors are not in it (DESIGN section 3).
func RowHash(n *Node) memory.SHA {
	row := struct {
		Level      memory.Level  `json:"level"`
		Node       memory.SHA    `json:"node"`
		Parents    []memory.SHA  `json:"parents"`
		Passages   []memory.SHA  `json:"passages"`
		Project    string        `json:"project"`
		Spans      []memory.Span `json:"spans"`
		Stream     string        `json:"stream"`
		Supersedes []memory.SHA  `json:"supersedes"`
		TextSHA    memory.SHA    `json:"text_sha256"`
	}{
		Level: n.Level, Node: n.ID, Project: n.Project, Stream: n.Stream, TextSHA: n.TextSHA,
		Parents: sortedSet(n.Parents), Supersedes: sortedSet(n.Supersedes),
		Passages: []memory.SHA{}, Spans: []memory.Span{},
	}
	for _, p := range n.Passages {
		row.Passages = append(row.Passages, p.ID)
	}
	for _, o := range n.Occurrences {
		if o.Span.Object != "" {
			row.Spans = append(row.Spans, o.Span)
		}
	}
	slices.SortFunc(row.Spans, compareSpans)
	row.Spans = slices.Compact(row.Spans)
	b, err := json.Marshal(row)
	if err != nil {
		panic("index: row hash: " + err.Error()) // plain values always encode
	}
	b, err = jcs.Transform(b)
	if err != nil {
		panic("index: row hash: " + err.Error()) // encoding/json gives valid JSON
	}
	return memory.Sum(b)
}

// AddRow writes one node's line of the index hash to h; rows come in ascending
// order of node id.
func AddRow(h io.Writer, n *Node) { io.WriteString(h, string(RowHash(n))+"\n") }

// compareSpans is a total order over spans.
func compareSpans(a, b memory.Span) int {
	return cmp.Or(
		cmp.Compare(a.Object, b.Object), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End),
		cmp.Compare(a.ETag, b.ETag), cmp.Compare(a.Codec, b.Codec), cmp.Compare(a.SHA256, b.SHA256),
		cmp.Compare(a.HMAC, b.HMAC), cmp.Compare(a.Chunk, b.Chunk),
		cmp.Compare(a.ChunkStart, b.ChunkStart), cmp.Compare(a.ChunkEnd, b.ChunkEnd),
		boolInt(a.Redacted)-boolInt(b.Redacted),
	)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sortedSet is ids sorted without repeats; never nil, so that it encodes as [].
func sortedSet(ids []memory.SHA) []memory.SHA {
	s := append([]memory.SHA{}, ids...)
	slices.Sort(s)
	return slices.Compact(s)
}
