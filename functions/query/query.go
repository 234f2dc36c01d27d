// Package query answers a question with ranked nodes, each with the chain down
// to the exact source span.
//
// Invariant: scope comes from the credential; an empty scope sees nothing. A
// query reads index rows only, no object, except for questions about the log
// itself (why, log). Raw text that no gate kept is a last resort: it is flagged
// "seen, not kept" and never mixed with memory.
//
// The package writes nothing.
package query

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"golang.org/x/sync/errgroup"
	"golang.org/x/text/unicode/norm"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/llm"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/rank"
)

// Config is what the function is given.
type Config struct {
	Tenant   string
	Log      *eventlog.Log
	Catalog  *catalog.Catalog
	Graph    index.Graph
	Lexical  index.Lexical
	Embedder llm.Embedder
	FloorIDF float64 // share of the query's idf that must match where the cosine is under the space's floor
	Logger   *slog.Logger
	// LegTimeout bounds one leg; a leg that is late is left out and the answer
	// says so. 2 s by default, under the 5 s of brief P16.
	LegTimeout time.Duration
	Now        func() time.Time
}

// Function is the query function.
type Function struct{ cfg Config }

// New checks cfg and fills its defaults.
func New(cfg Config) (*Function, error) {
	if cfg.Log == nil || cfg.Catalog == nil || cfg.Graph == nil || cfg.Lexical == nil || cfg.Embedder == nil {
		return nil, fault.New(fault.Internal, "query: a dependency is missing")
	}
	if cfg.LegTimeout == 0 {
		cfg.LegTimeout = 2 * time.Second
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Function{cfg: cfg}, nil
}

// Name is the function's name.
func (f *Function) Name() string { return "query" }

// Handle refuses every event: query is asked over HTTP.
func (f *Function) Handle(_ context.Context, e ce.Event) ([]ce.Event, error) {
	return nil, fault.New(fault.Invalid, "query does not handle %s", e.Type())
}

// Limits of one request.
const (
	maxQuery     = 4 << 10 // bytes; a question, not a document
	maxLimit     = 100
	defaultLimit = 10
	candidates   = 50 // from each leg (brief U1)
	// maxCitations bounds what one result carries: a memory of 1,024 tokens
	// rests on about 40 sentences.
	maxCitations = 50
)

// Request is one question.
type Request struct {
	Query    string
	Projects []string // empty: every project of the tenant
	Levels   []memory.Level
	Limit    int
	Since    time.Time
	Until    time.Time
}

// Answer is the answer to it.
type Answer struct {
	Query    string   `json:"query"`
	Project  string   `json:"project"` // the one asked; "" for several
	Degraded []string `json:"degraded"`
	TookMS   float64  `json:"took_ms"`
	Results  []Result `json:"results"`
	Notice   string   `json:"notice,omitempty"`
}

// Result is one node.
type Result struct {
	SHA256       memory.SHA   `json:"sha256"`
	Level        memory.Level `json:"level"`
	Project      string       `json:"project"`
	QueryID      string       `json:"query_id"`
	Text         string       `json:"text"`
	Score        float64      `json:"score"`
	Components   Components   `json:"components"`
	Reason       string       `json:"reason"`
	T            int          `json:"t"`
	Time         *time.Time   `json:"time,omitempty"`
	Role         memory.Role  `json:"role,omitempty"`
	Trust        memory.Trust `json:"trust,omitempty"`
	Kept         bool         `json:"kept"` // false for raw: seen, not kept
	SupersededBy []memory.SHA `json:"superseded_by,omitempty"`
	AlsoIn       []string     `json:"also_in,omitempty"` // other questions that keep the same words
	Citations    []Citation   `json:"citations"`
}

// Components are the score's parts.
type Components struct {
	Lexical        float64 `json:"lexical"`
	Semantic       float64 `json:"semantic"`
	LexicalWeight  float64 `json:"lexical_weight"`
	SemanticWeight float64 `json:"semantic_weight"`
	Cosine         float64 `json:"cosine"`
	BM25           float64 `json:"bm25"`
	IDFShare       float64 `json:"idf_share"`
}

// Citation is a span of DESIGN section 5 with its quote.
type Citation struct {
	Object     string       `json:"object"`
	ETag       string       `json:"etag"`
	Start      int64        `json:"start"`
	End        int64        `json:"end"`
	Codec      memory.Codec `json:"codec"`
	SHA256     memory.SHA   `json:"sha256"`
	HMAC       string       `json:"hmac_sha256,omitempty"`
	Redacted   bool         `json:"redacted,omitempty"`
	Chunk      memory.SHA   `json:"chunk"`
	ChunkStart int          `json:"chunk_start"`
	ChunkEnd   int          `json:"chunk_end"`
	Quote      string       `json:"quote"`
	Node       memory.SHA   `json:"node"`
	Role       memory.Role  `json:"role,omitempty"`
	Time       *time.Time   `json:"time,omitempty"`
}

// Ask answers a request.
func (f *Function) Ask(ctx context.Context, q Request) (_ Answer, err error) {
	defer fault.Wrap(&err, "query")
	start := f.cfg.Now()
	if q.Limit == 0 {
		q.Limit = defaultLimit
	}
	text := normalise(q.Query)
	a := Answer{Query: q.Query, Degraded: []string{}, Results: []Result{}}
	if len(q.Projects) == 1 {
		a.Project = q.Projects[0]
	}
	projects, serving, err := f.scope(ctx, q.Projects)
	if err != nil {
		return a, err
	}
	if len(projects) > 0 {
		levels := q.Levels
		if len(levels) == 0 {
			levels = []memory.Level{memory.L0, memory.L1, memory.L2}
		}
		filter := index.Filter{Tenant: f.cfg.Tenant, Projects: projects, Levels: levels, Since: q.Since, Until: q.Until}
		if err := f.search(ctx, &a, text, filter, q.Limit, serving, len(q.Levels) == 0); err != nil {
			return a, err
		}
		if len(a.Results) == 0 && len(q.Levels) == 0 {
			filter.Levels = []memory.Level{memory.LevelRaw}
			if err := f.search(ctx, &a, text, filter, q.Limit, serving, false); err != nil {
				return a, err
			}
			if len(a.Results) > 0 {
				a.Notice = "no memory answers this; these passages were seen and not kept"
			}
		}
	}
	if len(a.Results) == 0 {
		a.Notice = "nothing is known about this"
	}
	a.TookMS = float64(f.cfg.Now().Sub(start).Microseconds()) / 1000
	return a, nil
}

// normalise trims, folds white space and brings the text to NFC.
func normalise(q string) string { return norm.NFC.String(strings.Join(strings.Fields(q), " ")) }

// scope resolves the projects and which streams serve in them.
func (f *Function) scope(ctx context.Context, names []string) ([]string, map[string]bool, error) {
	known, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		names = known
	}
	serving := map[string]bool{}
	var out []string
	for _, n := range names {
		if !slices.Contains(known, n) {
			continue
		}
		out = append(out, n)
		streams, err := f.cfg.Catalog.ServingStreams(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range streams {
			serving[n+"/"+s.Name] = true
		}
		serving[n+"/"+memory.AdmitStream] = true
	}
	return out, serving, nil
}

// lexicalOnly is the routing of brief U2: fewer than three words name things
// rather than describe them.
func lexicalOnly(q string) bool { return len(strings.Fields(q)) < 3 }

// search runs both legs side by side, fuses, and fills results.
func (f *Function) search(ctx context.Context, a *Answer, text string, filter index.Filter, limit int, serving map[string]bool, collapse bool) error {
	space := f.cfg.Embedder.Space()
	raw := slices.Equal(filter.Levels, []memory.Level{memory.LevelRaw})
	opt := rank.Options{
		DenseWeight: space.DenseWeight, LexicalWeight: 1 - space.DenseWeight,
		FloorCosine: space.Floor, FloorIDF: f.cfg.FloorIDF,
	}
	dense, lexical, err := f.legs(ctx, a, text, filter, raw || lexicalOnly(text), &opt)
	if err != nil {
		return err
	}
	ids := make([]memory.SHA, 0, len(dense)+len(lexical))
	for _, s := range dense {
		ids = append(ids, s.ID)
	}
	for _, s := range lexical {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return nil
	}
	if opt.Superseded, err = f.cfg.Graph.Superseded(ctx, f.cfg.Tenant, ids); err != nil {
		return err
	}
	if err := f.within(ctx, opt.Superseded, filter); err != nil {
		return err
	}
	fused := rank.Fuse(dense, lexical, opt)
	return f.fill(ctx, a, text, fused, limit, serving, collapse)
}

// within takes out of superseded the replacements that were not said in the time
// asked for: an answer of then neither holds nor hints at what came later.
func (f *Function) within(ctx context.Context, superseded map[memory.SHA][]memory.SHA, filter index.Filter) error {
	if !filter.Timed() || len(superseded) == 0 {
		return nil
	}
	var ids []memory.SHA
	for _, by := range superseded {
		ids = append(ids, by...)
	}
	slices.Sort(ids)
	nodes, err := f.nodes(ctx, slices.Compact(ids))
	if err != nil {
		return err
	}
	from, to := filter.Range()
	for id, by := range superseded {
		superseded[id] = slices.DeleteFunc(by, func(by memory.SHA) bool {
			n := nodes[by]
			return n == nil || !slices.ContainsFunc(n.Occurrences, func(o index.Occurrence) bool {
				at := index.Nano(o.Place.Time)
				return at >= from && at < to
			})
		})
		if len(superseded[id]) == 0 {
			delete(superseded, id)
		}
	}
	return nil
}

// legs runs the dense and the lexical search side by side, each with its own
// deadline; one that fails is named in the answer and the other decides alone.
func (f *Function) legs(ctx context.Context, a *Answer, text string, filter index.Filter, lexOnly bool, opt *rank.Options) (dense, lexical []rank.Scored, err error) {
	var dhits, lhits []index.Hit
	var derr, lerr error
	var g errgroup.Group
	if lexOnly {
		opt.LexicalOnly = true
	} else {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, f.cfg.LegTimeout)
			defer cancel()
			var v [][]float32
			if v, derr = f.cfg.Embedder.Embed(ctx, []string{text}); derr == nil {
				dhits, derr = f.cfg.Graph.SearchDense(ctx, f.cfg.Embedder.Space().ID, v[0], filter, candidates)
			}
			return nil
		})
	}
	g.Go(func() error {
		ctx, cancel := context.WithTimeout(ctx, f.cfg.LegTimeout)
		defer cancel()
		lhits, lerr = f.cfg.Lexical.Search(ctx, text, filter, candidates)
		return nil
	})
	_ = g.Wait() // both report through their own error
	if err := ctx.Err(); err != nil {
		return nil, nil, fault.As(fault.Unavailable, err)
	}
	if derr != nil && lerr != nil {
		return nil, nil, fault.As(fault.Unavailable, lerr)
	}
	if derr != nil {
		opt.DenseFailed = true
		a.Degraded = append(a.Degraded, "semantic")
		f.cfg.Logger.WarnContext(ctx, "semantic leg left out", slog.Any("err", derr))
	}
	if lerr != nil {
		opt.LexicalFailed = true
		a.Degraded = append(a.Degraded, "lexical")
		f.cfg.Logger.WarnContext(ctx, "lexical leg left out", slog.Any("err", lerr))
	}
	for _, h := range dhits {
		dense = append(dense, rank.Scored{ID: h.Node, Score: h.Score})
	}
	for _, h := range lhits {
		lexical = append(lexical, rank.Scored{ID: h.Node, Score: h.Score, Max: h.Max, IDFShare: h.IDFShare})
	}
	return dense, lexical, nil
}

// fill turns ranked ids into results: two round trips, whatever their number.
func (f *Function) fill(ctx context.Context, a *Answer, text string, fused []rank.Fused, limit int, serving map[string]bool, collapse bool) error {
	ids := make([]memory.SHA, len(fused))
	for i := range fused {
		ids[i] = fused[i].ID
	}
	nodes, err := f.nodes(ctx, ids)
	if err != nil {
		return err
	}
	var keep []rank.Fused
	also := map[memory.SHA][]string{}
	first := map[string]memory.SHA{}
	for _, r := range fused {
		n := nodes[r.ID]
		if n == nil || !serving[n.Project+"/"+n.Stream] || collapse && restsOn(n, nodes) {
			continue
		}
		// The same words under several questions are one answer.
		key := n.Project + "/" + string(n.Level) + "/" + string(n.TextSHA)
		if id, ok := first[key]; ok {
			also[id] = append(also[id], n.QueryID)
			continue
		}
		first[key] = r.ID
		if len(keep) < limit {
			keep = append(keep, r)
		}
	}
	kept := make([]memory.SHA, len(keep))
	for i := range keep {
		kept[i] = keep[i].ID
	}
	walk, err := f.cfg.Graph.Walk(ctx, f.cfg.Tenant, kept)
	if err != nil {
		return err
	}
	var leaves []memory.SHA
	for _, id := range kept {
		leaves = append(leaves, walk[id]...)
	}
	slices.Sort(leaves)
	sources, err := f.nodes(ctx, slices.Compact(leaves))
	if err != nil {
		return err
	}
	words := wordSet(text)
	for _, r := range keep {
		n := nodes[r.ID]
		res := Result{
			SHA256: n.ID, Level: n.Level, Project: n.Project, QueryID: n.QueryID, Text: n.Text,
			Score: r.Score, Reason: r.Reason, T: n.T, Role: n.Role, Trust: n.Trust, Kept: n.Level != memory.LevelRaw,
			Time: n.SourceTime, SupersededBy: r.SupersededBy, AlsoIn: also[r.ID],
			Components: Components{
				Lexical: r.Lexical, Semantic: r.Dense, LexicalWeight: r.LexicalWeight, SemanticWeight: r.DenseWeight,
				Cosine: r.Cosine, BM25: r.BM25, IDFShare: r.IDFShare,
			},
			Citations: []Citation{},
		}
		if n.Level == memory.LevelRaw {
			res.QueryID = ""
			res.Reason = "seen, not kept: " + res.Reason
			res.Text = ""
		}
		var cs []cited
		for _, id := range walk[r.ID] {
			if src := sources[id]; src != nil {
				cs = append(cs, citations(src, words)...)
			}
		}
		slices.SortStableFunc(cs, func(x, y cited) int { return cmp.Compare(y.match, x.match) })
		most := maxCitations
		if n.Level == memory.LevelRaw {
			most = 3 // the paragraphs that hold the words, not the whole chunk
		}
		for i, c := range cs {
			if i == most {
				break
			}
			res.Citations = append(res.Citations, c.Citation)
		}
		if n.Level == memory.LevelRaw && len(cs) > 0 {
			res.Text = cs[0].Quote
		}
		a.Results = append(a.Results, res)
	}
	return nil
}

// restsOn reports whether a memory rests on evidence that was found too. Where
// no level is asked for, the evidence answers: it is the exact sentence with
// its own citation, and the memory that holds it would only say it again.
func restsOn(n *index.Node, found map[memory.SHA]*index.Node) bool {
	for _, p := range n.Parents {
		if found[p] != nil {
			return true
		}
	}
	return false
}

func (f *Function) nodes(ctx context.Context, ids []memory.SHA) (map[memory.SHA]*index.Node, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := f.cfg.Graph.Nodes(ctx, f.cfg.Tenant, ids)
	if err != nil {
		return nil, err
	}
	out := make(map[memory.SHA]*index.Node, len(rows))
	for i := range rows {
		out[rows[i].ID] = &rows[i]
	}
	return out, nil
}

// cited is a citation and how many of the question's words its quote holds.
type cited struct {
	Citation
	match int
}

func citations(n *index.Node, words map[string]bool) []cited {
	out := make([]cited, 0, len(n.Occurrences))
	for _, o := range n.Occurrences {
		quote := o.Quote
		if quote == "" && o.Span.ChunkEnd <= len(n.Text) { // raw rows: the chunk's own text
			quote = n.Text[o.Span.ChunkStart:o.Span.ChunkEnd]
		}
		c := cited{Citation: Citation{
			Object: o.Span.Object, ETag: o.Span.ETag, Start: o.Span.Start, End: o.Span.End, Codec: o.Span.Codec,
			SHA256: o.Span.SHA256, HMAC: o.Span.HMAC, Redacted: o.Span.Redacted, Chunk: o.Span.Chunk,
			ChunkStart: o.Span.ChunkStart, ChunkEnd: o.Span.ChunkEnd, Quote: quote, Node: n.ID, Role: o.Role,
		}}
		if !o.Place.Time.IsZero() {
			t := o.Place.Time
			c.Time = &t
		}
		for w := range wordSet(quote) {
			if words[w] {
				c.match++
			}
		}
		out = append(out, c)
	}
	return out
}

// wordSet is the lower-case words of a text, for ordering citations only.
func wordSet(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return !(r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127)
	}) {
		if len(w) > 2 {
			out[w] = true
		}
	}
	return out
}
