// Package index holds the ports to the search projections: Graph (nodes,
// edges, occurrences and the dense leg) and Lexical (BM25), the rule that cuts
// a node into passages, and the hash by which two projections are compared.
//
// Invariant: an index is a projection. It holds nothing that the log does not
// hold, can be wiped at any time, and after the same batches, in any order
// across streams and however often each is repeated, has the same Hash.
//
// Formats owned here, each with a golden vector in docs/FORMATS.md:
//
//	passage id  sha256 of {"n":0,"node":"<64 hex>","text_sha256":"<64 hex>"}
//	row hash    sha256 of {"level":"L0","node":…,"parents":[…],"passages":[…],"project":…,
//	            "spans":[…],"stream":…,"supersedes":[…],"text_sha256":…}
//	index hash  sha256 over the lines "<row hash>\n" in ascending order of node id
//
// The package talks to no database; drivers are sqliteindex, pgindex and
// bleveindex.
package index

import (
	"context"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Node is one text of one stream, with everything an answer needs: a query
// reads no object.
type Node struct {
	ID      memory.SHA // memory.NodeID of what stands below
	Level   memory.Level
	Tenant  string
	Project string
	Stream  string
	QueryID string
	Text    string
	TextSHA memory.SHA

	// First occurrence: it decides T, date and speaker.
	T          int // step in the stream, from 1; for raw the chunk's place in admission order
	Role       memory.Role
	Trust      memory.Trust
	Place      memory.Place
	SourceTime *time.Time // UTC; nil when the source has none

	Parents    []memory.SHA // one level down; L1 and L2 have at least one
	Supersedes []memory.SHA // nodes this one replaces, direction already resolved
	// SupersededBy names newer nodes that replace this one where this one was
	// admitted later (an old session uploaded late). It is stored as their
	// edge; Graph.Nodes leaves it empty.
	SupersededBy []memory.SHA

	// Occurrences says where the text stands: at least one with a span for L0
	// and raw. L1 and L2 may give theirs without a span, so that the last step
	// at which a memory was current is known.
	Occurrences []Occurrence

	// Passages in text order. Empty in a Batch means PassagesOf(node).
	Passages []Passage
}

// Occurrence is one statement of a node. It is identified by its step and its
// span.
type Occurrence struct {
	T      int
	Place  memory.Place
	Span   memory.Span // zero for L1 and L2
	Quote  string      // chunk text of the span, redacted
	Role   memory.Role
	TurnID string
}

// Passage is the unit that is embedded and searched.
type Passage struct {
	ID    memory.SHA
	N     int // from 0
	Start int // bytes [Start,End) of Node.Text
	End   int
	Embed string // "2026-01-31 user: text": what is embedded and indexed
}

// Batch is what one segment (question stream) or one admit line (raw) adds.
type Batch struct {
	Tenant  string
	Project string
	Stream  string // memory.AdmitStream for raw
	Space   string // memory.SpaceID; empty where there are no vectors (raw)
	Seq     int64  // from 1
	Nodes   []Node
	// Replace puts the nodes in the place of all that the stream stated before: a run
	// of a synthesis starts from nothing, and how many went before depends on when each
	// was triggered, so that they must leave no row. Where another space has applied
	// the stream past Seq, the nodes are outdated and none is stored.
	Replace bool
	// Vectors by passage id, all of the space's dimension. A passage without
	// one is found by the lexical leg alone. A vector whose passage is not one
	// of the stored node's is ignored: a node that stands already keeps the
	// passages of its first occurrence.
	Vectors map[memory.SHA][]float32
}

// ShareBackground is how many passages without the question's words are thought
// beside the index when Hit.IDFShare is taken. In a memory of thirty sentences
// about retries, each kept by several questions, "retry" stands nearly
// everywhere and its own idf is near 0, though it is what the question is about;
// over a background it weighs as a word of the subject does. From 1,000 to
// 30,000 the share of off-topic questions that pass the floor is the same
// (indextest.TestFusion); 10,000 also finds one matched word of two in a memory
// of a hundred passages.
const ShareBackground = 10_000

// Hit is one found node, by its best passage.
type Hit struct {
	Passage memory.SHA
	Node    memory.SHA
	// Score is the raw cosine, [-1,1], or the raw BM25 score, >= 0.
	Score float64
	// IDFShare, lexical leg only, is the share of the question's subject words
	// that this passage matched, [0,1], each weighed by its inverse document
	// frequency over the index and ShareBackground passages beside it. A word
	// that no passage holds counts with the greatest weight there is, so that
	// nonsense stays near 0.
	IDFShare float64
	// Max, lexical leg only, is the least upper bound of Score for this query
	// over any text: every word matched, each without end. The same for all hits.
	Max float64
}

// Filter restricts a search before anything is scored. The zero value sees
// nothing: tenant and projects come from the credential, and an empty scope is
// an empty answer.
type Filter struct {
	Tenant   string
	Projects []string       // empty sees nothing
	Levels   []memory.Level // empty means L0, L1 and L2, never raw
	// A node is seen when one of its occurrences has an effective time in
	// [Since, Until) that is not after AsOf. A zero time leaves that side open, and
	Since time.Time
	Until time.Time
	AsOf  time.Time
	// Sources, where there are any: that occurrence stands in an object whose name,
	// bucket/key, begins with one of them. Memories (L1, L2) have no object of their own.
	Sources []string
}

// Counts is what a tenant's projection holds.
type Counts struct {
	Nodes       int64 `json:"nodes"`
	Passages    int64 `json:"passages"`
	Occurrences int64 `json:"occurrences"`
	Edges       int64 `json:"edges"`
	Vectors     int64 `json:"vectors"` // over all spaces; not in the hash
}

// Graph stores nodes, edges, occurrences and passage vectors. All methods are
// safe for concurrent use.
type Graph interface {
	// Apply adds b in one transaction together with its position. Seq must be
	// Applied()+1 for (tenant, project, stream, space); a Seq at or below
	// Applied() is done already and returns nil; a gap is fault.Unavailable. A
	// node that stands merges: occurrences and edges are united, the first
	// occurrence stays. A node that cannot reach its source is fault.Invalid
	// and nothing of the batch is stored.
	Apply(ctx context.Context, b Batch) error
	// Applied is the last Seq applied, 0 before the first.
	Applied(ctx context.Context, tenant, project, stream, space string) (int64, error)
	// SearchDense returns up to k nodes by the cosine of their best passage to
	// vec, greatest first, ties by node id. A zero vec, an unknown space and an
	// empty scope find nothing; a wrong dimension is fault.Invalid. A memory
	// that another one of its stream has replaced is not found (see Succession).
	SearchDense(ctx context.Context, space string, vec []float32, f Filter, k int) ([]Hit, error)
	// Nodes returns whole rows, in the order of ids, unknown ids absent;
	// occurrences are sorted by (T, object, start).
	Nodes(ctx context.Context, tenant string, ids []memory.SHA) ([]Node, error)
	// Walk gives for each id the L0 nodes it rests on, through any number of
	// levels, sorted; an L0 or raw id gives itself. Unknown ids are absent.
	Walk(ctx context.Context, tenant string, ids []memory.SHA) (map[memory.SHA][]memory.SHA, error)
	// Superseded gives for each id that is not current the nodes that replace
	// it directly, sorted. A node that was stated again after its replacement
	// is current (see Newer).
	Superseded(ctx context.Context, tenant string, ids []memory.SHA) (map[memory.SHA][]memory.SHA, error)
	// Succession is Nodes of ids and of all that name them as replaced, over at most
	// steps steps, in one round trip; sorted by id, without passages. The rows may be
	// shared: the caller changes nothing of them. See Superseders.
	Succession(ctx context.Context, tenant string, ids []memory.SHA, steps int) ([]Node, error)
	// Below is Walk of ids, with Nodes of all that it names and of the ids' parents, in
	// one round trip; the nodes are sorted by id and without passages.
	Below(ctx context.Context, tenant string, ids []memory.SHA) (map[memory.SHA][]memory.SHA, []Node, error)
	// Hash is the index hash of a tenant and what it covers.
	Hash(ctx context.Context, tenant string) (memory.SHA, Counts, error)
	// Check lists what is wrong, sorted; none means sound.
	Check(ctx context.Context, tenant string) ([]string, error)
	// Wipe removes a project, or all of a tenant when project is empty, with
	// positions and vectors.
	Wipe(ctx context.Context, tenant, project string) error
	Close() error
}

// Maintainer is a Graph or Lexical that has work to do once many rows came in, as an
// index that is built faster over rows that stand. What it does changes no answer's
// content; it is called at the end of a rebuild and at each sweep.
type Maintainer interface {
	Maintain(ctx context.Context, tenant string) error
}

// Lexical stores passages for BM25. All methods are safe for concurrent use.
type Lexical interface {
	// Apply has the contract of Graph.Apply; vectors are ignored.
	Apply(ctx context.Context, b Batch) error
	// Applied is the last Seq applied, 0 before the first.
	Applied(ctx context.Context, tenant, project, stream, space string) (int64, error)
	// Search returns up to k nodes by the BM25 score of their best passage,
	// greatest first, ties by node id. A query without a word finds nothing, and
	// a replaced memory is not found (see Succession).
	Search(ctx context.Context, query string, f Filter, k int) ([]Hit, error)
	// Passages counts a tenant's searchable passages, raw ones included.
	Passages(ctx context.Context, tenant string) (int64, error)
	// Wipe removes a project, or all of a tenant when project is empty, with
	// positions.
	Wipe(ctx context.Context, tenant, project string) error
	Close() error
}
