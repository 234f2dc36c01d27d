package query

import (
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/originals"
)

// Request is one question.
type Request struct {
	Query    string
	Projects []string // empty: every project of the tenant
	Levels   []memory.Level
	Limit    int
	Since    time.Time
	Until    time.Time
	AsOf     time.Time // only what was said by then, and what replaced it by then
	// Sources, where there are any: only statements of objects whose name begins with one
	// of them. Memories have no object of their own.
	Sources []string
	// NoFloor ranks whatever is nearest, however far: for evaluation.
	NoFloor bool
	// DenseWeight is the share of the semantic leg, [0,1], in the place of the embedding
	// space's own: 0 asks words alone, 1 meaning alone.
	DenseWeight *float64
	// Optimize shortens texts and quotes for a model or an agent.
	Optimize bool
	// BudgetTokens is the most that texts and quotes may have together; 0: no bound. It
	// implies Optimize.
	BudgetTokens int
}

// Answer is the answer to it.
type Answer struct {
	Query    string     `json:"query"`
	Project  string     `json:"project"`  // the one asked; "" for several
	Space    string     `json:"space"`    // the embedding space of every vector behind it
	Degraded []Degraded `json:"degraded"` // what the answer had to do without
	TookMS   float64    `json:"took_ms"`
	Results  []Result   `json:"results"`
	Notice   string     `json:"notice,omitempty"`
	// Tokens and Omitted stand in an answer that was to be short.
	Tokens  *Tokens             `json:"tokens,omitempty"`
	Omitted []originals.Omitted `json:"omitted,omitzero"`
}

// Result is one node.
type Result struct {
	SHA256       memory.SHA   `json:"sha256"`
	Level        memory.Level `json:"level"`
	Project      string       `json:"project"`
	QueryID      string       `json:"query_id"`
	Text         string       `json:"text"`
	Shortened    bool         `json:"shortened,omitempty"` // Text is; Answer.Omitted says of what
	Score        float64      `json:"score"`
	Components   Components   `json:"components"`
	Reason       string       `json:"reason"`
	T            int          `json:"t"`
	Time         *time.Time   `json:"time,omitempty"`
	Role         memory.Role  `json:"role,omitempty"`
	Trust        memory.Trust `json:"trust,omitempty"`
	Kept         bool         `json:"kept"` // false for raw: seen, not kept
	SupersededBy []memory.SHA `json:"superseded_by,omitempty"`
	// AlsoIn are other questions that keep the same words; of another project as
	// project/question.
	AlsoIn    []string   `json:"also_in,omitempty"`
	Citations []Citation `json:"citations"`
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
	// Rerank is the cross-encoder's score, by which the result has its place; of
	// results that one looked at.
	Rerank *float64 `json:"rerank,omitempty"`
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
	// What an answer that was to be short did with the quote: it is shortened, it is the
	// text above and stands there, it had no room.
	Shortened    bool `json:"shortened,omitempty"`
	QuoteIsText  bool `json:"quote_is_text,omitempty"`
	QuoteOmitted bool `json:"quote_omitted,omitempty"`

	Node memory.SHA  `json:"node"`
	Role memory.Role `json:"role,omitempty"`
	Time *time.Time  `json:"time,omitempty"`
}
