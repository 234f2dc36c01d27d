package osindex

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// passage is a document of the passages.
type passage struct {
	Content   string     `json:"content"`
	Codes     []string   `json:"codes,omitempty"`
	Tenant    string     `json:"tenant"`
	Project   string     `json:"project"`
	Stream    string     `json:"stream"`
	Level     string     `json:"level"`
	Source    string     `json:"source,omitempty"`
	Node      string     `json:"node"`
	At        []int64    `json:"at"` // effective times of its statements, sorted
	CreatedAt *time.Time `json:"created_at,omitempty"`
	Said      []said     `json:"said"`
	Row       row        `json:"row"`
}

// said is one statement, for the filters that look at time and object together.
type said struct {
	At     int64  `json:"at"`
	Source string `json:"source,omitempty"`
}

// row is what Read gives of the node; it is not indexed.
type row struct {
	Header int          `json:"header"` // bytes of content before the text
	T      int          `json:"t"`
	Role   memory.Role  `json:"role,omitempty"`
	Trust  memory.Trust `json:"trust,omitempty"`
	// Statements of evidence.
	Occurrences []occurrence `json:"occurrences,omitempty"`
}

type occurrence struct {
	T     int          `json:"t"`
	Place memory.Place `json:"place"`
	Span  memory.Span  `json:"span"`
	Role  memory.Role  `json:"role,omitempty"`
}

// state brings a later statement of the same text in.
func (p *passage) state(at []int64, said []said, all []occurrence) {
	p.At = slices.Compact(slices.Sorted(slices.Values(append(p.At, at...))))
	for _, s := range said {
		if !slices.Contains(p.Said, s) {
			p.Said = append(p.Said, s)
		}
	}
	for _, o := range all {
		if !slices.ContainsFunc(p.Row.Occurrences, func(x occurrence) bool { return x.T == o.T && x.Span == o.Span }) {
			p.Row.Occurrences = append(p.Row.Occurrences, o)
		}
	}
}

// position is a document of the positions: how far each space of a stream is.
type position struct {
	Tenant  string           `json:"tenant"`
	Project string           `json:"project"`
	Stream  string           `json:"stream"`
	Spaces  map[string]int64 `json:"spaces"`
}

// epoch counts the wipes of a tenant, or of one of its projects: the versions of passages
// begin above those that were deleted.
type epoch struct {
	Tenant  string `json:"tenant"`
	Project string `json:"project"`
	Epoch   int64  `json:"epoch"`
}

func positionID(b *index.Batch) string {
	return string(memory.SumString(b.Tenant + "/" + b.Project + "/" + b.Stream))
}

func epochID(tenant, project string) string {
	return "epoch-" + string(memory.SumString(tenant+"/"+project))
}

// state is what is known before a batch: its stream's position, and how often its scope
// was wiped.
type state struct {
	position
	found       bool
	seqNo, term int64
	epoch       int64
}

// got is a document of an answer to _mget.
type got struct {
	ID     string          `json:"_id"`
	Found  bool            `json:"found"`
	SeqNo  int64           `json:"_seq_no"`
	Term   int64           `json:"_primary_term"`
	Source json.RawMessage `json:"_source"`
}

func (ix *Index) mget(ctx context.Context, alias string, ids []string) ([]got, error) {
	var out struct {
		Docs []got `json:"docs"`
	}
	err := ix.call(ctx, http.MethodPost, "/"+alias+"/_mget", map[string]any{"ids": ids}, &out)
	return out.Docs, err
}

func (ix *Index) state(ctx context.Context, b *index.Batch) (s state, err error) {
	docs, err := ix.mget(ctx, ix.positions, []string{positionID(b), epochID(b.Tenant, ""), epochID(b.Tenant, b.Project)})
	if err != nil || len(docs) != 3 {
		return s, err
	}
	s.Spaces = map[string]int64{}
	if d := docs[0]; d.Found {
		if err := json.Unmarshal(d.Source, &s.position); err != nil {
			return s, err
		}
		s.found, s.seqNo, s.term = true, d.SeqNo, d.Term
	}
	for _, d := range docs[1:] {
		if d.Found {
			var e epoch
			if err := json.Unmarshal(d.Source, &e); err != nil {
				return s, err
			}
			s.epoch += e.Epoch
		}
	}
	return s, nil
}

// Apply implements index.Lexical. What a stream's passages are does not depend on a
// space: one that is filled later finds them as they are.
func (ix *Index) Apply(ctx context.Context, b index.Batch) (err error) {
	defer fault.Wrap(&err, "osindex.Apply(%s/%s/%s, %d)", b.Tenant, b.Project, b.Stream, b.Seq)
	s, err := ix.state(ctx, &b)
	if err != nil {
		return err
	}
	seq := s.Spaces[b.Space]
	if b.Seq >= 1 && b.Seq <= seq {
		return nil
	}
	if err := index.Validate(&b, 0); err != nil {
		return err
	}
	if b.Seq != seq+1 {
		return fault.New(fault.Unavailable, "seq %d is not next: %d is applied", b.Seq, seq)
	}
	ahead := int64(0)
	for _, n := range s.Spaces {
		ahead = max(ahead, n)
	}
	if ahead < b.Seq {
		if err := ix.write(ctx, &b, s.epoch<<40|b.Seq); err != nil {
			return err
		}
	}
	s.Tenant, s.Project, s.Stream = b.Tenant, b.Project, b.Stream
	s.Spaces[b.Space] = b.Seq
	only := "op_type=create"
	if s.found {
		only = fmt.Sprintf("if_seq_no=%d&if_primary_term=%d", s.seqNo, s.term)
	}
	err = ix.call(ctx, http.MethodPut, "/"+ix.positions+"/_doc/"+positionID(&b)+"?"+only, s.position, nil)
	if fault.Is(err, fault.Conflict) {
		return fault.As(fault.Unavailable, err) // another process applied it: the next try sees how far
	}
	return err
}

// maxBulk is about how many bytes one bulk request has; OpenSearch advises 5 to 15 MB.
const maxBulk = 8 << 20

// node is a document of the nodes.
type node struct {
	Tenant   string   `json:"tenant"`
	Project  string   `json:"project"`
	Stream   string   `json:"stream"`
	Passages []string `json:"passages"`
}

// write brings the batch's passages to version.
func (ix *Index) write(ctx context.Context, b *index.Batch, version int64) error {
	nodes := index.Distinct(b.Nodes)
	current := index.Succession(b.Nodes)
	// Passages are written before the nodes that name them: a node that stands has all of
	// its own, whatever was refused half-way.
	w, names := &bulk{ix: ix, version: version}, &bulk{ix: ix, version: version}
	stood, err := ix.stood(ctx, nodes, current)
	if err != nil {
		return err
	}
	times, err := ix.times(ctx, nodes, stood)
	if err != nil {
		return err
	}
	kept := []string{}
	for i := range nodes {
		n := &nodes[i]
		id := string(n.ID)
		kept = append(kept, id)
		if is, ok := current[n.ID]; ok && !is {
			continue // the batch itself replaces it
		}
		if old := stood[id]; old == nil {
			doc := node{Tenant: n.Tenant, Project: n.Project, Stream: n.Stream, Passages: []string{}}
			for j := range n.Passages {
				doc.Passages = append(doc.Passages, string(n.Passages[j].ID))
			}
			if err := names.gather(ix.nodes, "index", id, doc); err != nil {
				return err
			}
		} else if n.Level == memory.L0 || n.Level == memory.LevelRaw {
			// It was said before: its passages gain times, and stay as they are.
			for _, pid := range old.Passages {
				if p := times[pid]; p != nil {
					p.state(timesOf(n), saidOf(n), occurrencesOf(n))
					if err := w.add(ctx, ix.passages, "index", pid, p); err != nil {
						return err
					}
				}
			}
			continue
		}
		for j := range n.Passages {
			doc := documentOf(n, &n.Passages[j])
			if p := times[string(n.Passages[j].ID)]; p != nil {
				doc.state(p.At, p.Said, p.Row.Occurrences)
			}
			if err := w.add(ctx, ix.passages, "index", string(n.Passages[j].ID), doc); err != nil {
				return err
			}
		}
	}
	for id, is := range current {
		if is || stood[string(id)] == nil {
			continue
		}
		for _, pid := range stood[string(id)].Passages {
			if err := w.add(ctx, ix.passages, "delete", pid, nil); err != nil {
				return err
			}
		}
	}
	if err := w.send(ctx); err != nil {
		return err
	}
	if err := names.send(ctx); err != nil {
		return err
	}
	if b.Replace {
		if err := ix.dropOthers(ctx, b, kept); err != nil {
			return err
		}
	}
	ix.dirty.Store(true)
	return nil
}

// stood are the nodes of the batch that stand already, and those that it replaces.
func (ix *Index) stood(ctx context.Context, nodes []index.Node, current map[memory.SHA]bool) (map[string]*node, error) {
	set := map[string]bool{}
	for i := range nodes {
		set[string(nodes[i].ID)] = true
	}
	for id := range current {
		set[string(id)] = true
	}
	return read[node](ctx, ix, ix.nodes, slices.Sorted(maps.Keys(set)))
}

// times are the passages that may gain some.
func (ix *Index) times(ctx context.Context, nodes []index.Node, stood map[string]*node) (map[string]*passage, error) {
	var ids []string
	for i := range nodes {
		if old := stood[string(nodes[i].ID)]; old != nil {
			ids = append(ids, old.Passages...)
		}
	}
	return read[passage](ctx, ix, ix.passages, ids)
}

// read gets documents by id, as they are at this moment.
func read[T any](ctx context.Context, ix *Index, alias string, ids []string) (map[string]*T, error) {
	out := map[string]*T{}
	for part := range slices.Chunk(ids, 5000) {
		docs, err := ix.mget(ctx, alias, part)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			if d.Found {
				v := new(T)
				if err := json.Unmarshal(d.Source, v); err != nil {
					return nil, err
				}
				out[d.ID] = v
			}
		}
	}
	return out, nil
}

func documentOf(n *index.Node, p *index.Passage) passage {
	d := passage{
		Content: p.Embed, Codes: codesOf(n.Text[p.Start:p.End]), Tenant: n.Tenant, Project: n.Project, Stream: n.Stream, Level: string(n.Level),
		Source: n.Occurrences[0].Span.Object, Node: string(n.ID), CreatedAt: n.SourceTime, At: timesOf(n),
		Said: saidOf(n), Row: row{Header: len(p.Embed) - (p.End - p.Start), T: n.T, Role: n.Role, Trust: n.Trust, Occurrences: occurrencesOf(n)},
	}
	return d
}

func saidOf(n *index.Node) (out []said) {
	for _, o := range n.Occurrences {
		if s := (said{index.Nano(o.Place.Time), o.Span.Object}); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func occurrencesOf(n *index.Node) (out []occurrence) {
	if n.Level != memory.L0 {
		return nil
	}
	for _, o := range n.Occurrences {
		out = append(out, occurrence{o.T, o.Place, o.Span, o.Role})
	}
	return out
}

func timesOf(n *index.Node) (at []int64) {
	for _, o := range n.Occurrences {
		at = append(at, index.Nano(o.Place.Time))
	}
	return slices.Compact(slices.Sorted(slices.Values(at)))
}

// codesOf lists the error codes and constants of a text.
func codesOf(text string) (out []string) {
	seen := map[string]bool{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool {
		return !(r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}) {
		if c := index.Code(w); c != "" && !seen[c] {
			seen[c] = true
			out = append(out, c)
		}
	}
	return out
}

// dropOthers deletes what a synthesis' stream stated before the batch.
func (ix *Index) dropOthers(ctx context.Context, b *index.Batch, kept []string) error {
	stream := []any{term("tenant", b.Tenant), term("project", b.Project), term("stream", b.Stream)}
	for _, x := range []struct {
		alias string
		but   map[string]any
	}{
		{ix.passages, map[string]any{"terms": map[string]any{"node": kept}}},
		{ix.nodes, map[string]any{"ids": map[string]any{"values": kept}}},
	} {
		if err := ix.call(ctx, http.MethodPost, "/"+x.alias+"/_refresh", nil, nil); err != nil {
			return err
		}
		if err := ix.deleteBy(ctx, x.alias, map[string]any{"bool": map[string]any{"filter": stream, "must_not": []any{x.but}}}); err != nil {
			return err
		}
	}
	return nil
}

func (ix *Index) deleteBy(ctx context.Context, alias string, query any) error {
	return ix.call(ctx, http.MethodPost, "/"+alias+"/_delete_by_query?conflicts=proceed&refresh=true", map[string]any{"query": query}, nil)
}

func term(field, value string) map[string]any {
	return map[string]any{"term": map[string]any{field: value}}
}

const (
	// lanes is how many bulk requests are under way at a time: a shard takes each with one
	// thread. laneOps operations each are worth it.
	lanes   = 2
	laneOps = 100
)

// bulk gathers operations and sends them in requests of about maxBulk. No two are about
// one document: it does not matter in which order they are done.
type bulk struct {
	ix      *Index
	version int64
	body    bytes.Buffer
	starts  []int // of the operations in body
}

func (w *bulk) add(ctx context.Context, alias, op, id string, doc any) error {
	if err := w.gather(alias, op, id, doc); err != nil || w.body.Len() < maxBulk {
		return err
	}
	return w.send(ctx)
}

// gather adds an operation without sending any.
func (w *bulk) gather(alias, op, id string, doc any) error {
	w.starts = append(w.starts, w.body.Len())
	lines := []any{map[string]any{op: map[string]any{"_index": alias, "_id": id, "version": w.version, "version_type": "external_gte"}}}
	if doc != nil {
		lines = append(lines, doc)
	}
	for _, v := range lines {
		j, err := json.Marshal(v)
		if err != nil {
			return err
		}
		w.body.Write(j)
		w.body.WriteByte('\n')
	}
	return nil
}

// send sends what is gathered.
func (w *bulk) send(ctx context.Context) error {
	n := min(lanes, max(1, len(w.starts)/laneOps))
	g, ctx := errgroup.WithContext(ctx)
	for i := range n {
		from, to := len(w.starts)*i/n, len(w.starts)*(i+1)/n
		if from == to {
			continue
		}
		end := w.body.Len()
		if to < len(w.starts) {
			end = w.starts[to]
		}
		part := w.body.Bytes()[w.starts[from]:end]
		g.Go(func() error { return w.ix.bulk(ctx, part) })
	}
	err := g.Wait()
	w.body.Reset()
	w.starts = w.starts[:0]
	return err
}

// bulk sends one request; what an item was refused for is the error, but for a version
// that a later batch wrote.
func (ix *Index) bulk(ctx context.Context, body []byte) error {
	var out struct {
		Errors bool `json:"errors"`
		Items  []map[string]struct {
			Status int `json:"status"`
			Error  struct {
				Type   string `json:"type"`
				Reason string `json:"reason"`
			} `json:"error"`
		} `json:"items"`
	}
	err := ix.call(ctx, http.MethodPost, "/_bulk?filter_path=errors,items.*.status,items.*.error", body, &out)
	if err != nil || !out.Errors {
		return err
	}
	var worst error
	failed := 0
	for _, item := range out.Items {
		for op, r := range item {
			if r.Status < 300 || r.Status == http.StatusConflict || op == "delete" && r.Status == http.StatusNotFound {
				continue
			}
			failed++
			if worst == nil || fault.KindOf(worst) == fault.Unavailable {
				worst = errorOf(r.Status, r.Error.Type, r.Error.Reason)
			}
		}
	}
	if worst == nil {
		return nil
	}
	return fault.At(fault.KindOf(worst), "OpenSearch", fault.HintOf(worst), "%d of %d operations of a bulk were refused, the first: %v", failed, len(out.Items), worst)
}

// refresh makes what this process applied visible to its searches.
func (ix *Index) refresh(ctx context.Context) error {
	if !ix.dirty.Swap(false) {
		return nil
	}
	ctx = index.WithBearer(ctx, "") // a reader need not have the right to
	err := ix.call(ctx, http.MethodPost, "/"+ix.passages+"/_refresh", nil, nil)
	if err != nil {
		ix.dirty.Store(true)
	}
	return err
}

// Applied implements index.Lexical.
func (ix *Index) Applied(ctx context.Context, tenant, project, stream, space string) (_ int64, err error) {
	defer fault.Wrap(&err, "osindex.Applied(%s/%s/%s)", tenant, project, stream)
	s, err := ix.state(ctx, &index.Batch{Tenant: tenant, Project: project, Stream: stream})
	return s.Spaces[space], err
}

// Wipe implements index.Lexical. The epoch goes up first: what a batch that is under way
// writes then is older than what follows.
func (ix *Index) Wipe(ctx context.Context, tenant, project string) (err error) {
	defer fault.Wrap(&err, "osindex.Wipe(%s/%s)", tenant, project)
	if tenant == "" {
		return fault.New(fault.Invalid, "a tenant is needed")
	}
	if err := ix.ensureAll(ctx); err != nil { // they may have been deleted
		return err
	}
	docs, err := ix.mget(ctx, ix.positions, []string{epochID(tenant, project)})
	if err != nil {
		return err
	}
	e := epoch{Tenant: tenant, Project: project}
	if len(docs) == 1 && docs[0].Found {
		if err := json.Unmarshal(docs[0].Source, &e); err != nil {
			return err
		}
	}
	e.Epoch++
	if err := ix.call(ctx, http.MethodPut, "/"+ix.positions+"/_doc/"+epochID(tenant, project)+"?refresh=true", e, nil); err != nil {
		return err
	}
	for _, alias := range []string{ix.passages, ix.nodes, ix.positions} {
		if err := ix.call(ctx, http.MethodPost, "/"+alias+"/_refresh", nil, nil); err != nil {
			return err
		}
	}
	scope := []any{term("tenant", tenant)}
	if project != "" {
		scope = append(scope, term("project", project))
	}
	for _, alias := range []string{ix.passages, ix.nodes} {
		if err := ix.deleteBy(ctx, alias, map[string]any{"bool": map[string]any{"filter": scope}}); err != nil {
			return err
		}
	}
	return ix.deleteBy(ctx, ix.positions, map[string]any{"bool": map[string]any{
		"filter": scope, "must_not": []any{map[string]any{"exists": map[string]any{"field": "epoch"}}},
	}})
}

// Passages implements index.Lexical.
func (ix *Index) Passages(ctx context.Context, tenant string) (_ int64, err error) {
	defer fault.Wrap(&err, "osindex.Passages(%s)", tenant)
	if err := ix.refresh(ctx); err != nil {
		return 0, err
	}
	var out struct {
		Count int64 `json:"count"`
	}
	err = ix.call(ctx, http.MethodPost, "/"+ix.passages+"/_count", map[string]any{"query": term("tenant", tenant)}, &out)
	return out.Count, err
}
