package memory

import "time"

// Version is the record format version that this program writes; it reads
// Version and Version-1.
//
// History: 1 — first.
const Version = 1

// Record types, the `type` field of every line of the log.
const (
	TypeSource    = "source"
	TypeAdmit     = "admit"
	TypeRun       = "run"
	TypeChunk     = "chunk"
	TypeGate      = "gate"
	TypeEvidence  = "evidence"
	TypeMemory    = "memory"
	TypeRunEnd    = "run_end"
	TypeLabel     = "label"
	TypeNote      = "note"
	TypeLesson    = "lesson"
	TypeTombstone = "tombstone"
	TypeSpace     = "space"
)

// Counts says what became of every line of an object. Nothing is lost without
// standing in one of these numbers.
type Counts struct {
	Lines      int            `json:"lines"`   // physical lines, blank ones included
	Records    int            `json:"records"` // decoded JSON values or Markdown sections
	Bad        int            `json:"bad"`     // lines that hold no JSON value
	Joined     int            `json:"joined"`  // lines that hold more than one
	Blank      int            `json:"blank,omitempty"`
	TooLong    int            `json:"too_long,omitempty"` // lines over the cap, skipped
	Pending    int            `json:"pending,omitempty"`  // 1 when the last line is cut off
	BadUTF8    int            `json:"bad_utf8,omitempty"`
	Duplicates int            `json:"duplicates,omitempty"`    // turns already admitted
	Dropped    map[string]int `json:"dropped,omitempty"`       // by reason
	Unknown    map[string]int `json:"unknown_types,omitempty"` // record types no reader knows
	Redactions map[string]int `json:"redactions,omitempty"`    // by kind
}

// Source describes one part of one object: what was read and which chunks it
// gave. It stands with its chunk records in log/…/sources/<sha>.jsonl.
type Source struct {
	V             int       `json:"v"`
	Type          string    `json:"type"` // "source"
	Level         Level     `json:"level"`
	Tenant        string    `json:"tenant"`
	Project       string    `json:"project"`
	Object        string    `json:"object"` // bucket/key
	ETag          string    `json:"etag"`
	Format        string    `json:"format"`
	ReaderVersion string    `json:"reader_version"`
	RawSHA256     SHA       `json:"raw_sha256"` // of the whole object
	SizeBytes     int64     `json:"size_bytes"`
	Session       string    `json:"session,omitempty"`
	Cwds          []string  `json:"cwds,omitempty"`
	From          int64     `json:"from"` // bytes [from,to) of the object that this part covers
	To            int64     `json:"to"`
	PrefixSHA256  SHA       `json:"prefix_sha256"` // of bytes [0,to); empty where further parts follow
	Origin        string    `json:"origin"`        // upload | post | ingest
	ChunkPolicy   string    `json:"chunk_policy"`
	RedactRules   string    `json:"redact_rules"`
	TimeMin       time.Time `json:"time_min,omitzero"`
	TimeMax       time.Time `json:"time_max,omitzero"`
	Counts        Counts    `json:"counts"`
	Chunks        []SHA     `json:"chunks"`
	TurnIDs       []string  `json:"turn_ids"`
	Replaces      SHA       `json:"replaces,omitempty"`  // the source record of which this is the newly redacted form, or what is left of it
	Erased        SHA       `json:"erased,omitempty"`    // the tombstone that names the record in its place
	Forgotten     bool      `json:"forgotten,omitempty"` // of the stub that stands where a forgotten record stood: it holds nothing else
}

// Admit is one line of the admit stream: THE order. Seq numbers start at 1 and
// have no gap; every question stream folds them in this order.
type Admit struct {
	V            int    `json:"v"`
	Type         string `json:"type"` // "admit"
	Level        Level  `json:"level"`
	Tenant       string `json:"tenant"`
	Project      string `json:"project"`
	Seq          int64  `json:"seq"`
	Source       SHA    `json:"source"`     // key of the source record
	RawSHA256    SHA    `json:"raw_sha256"` // of the whole object
	Object       string `json:"object"`
	ETag         string `json:"etag"`
	Session      string `json:"session,omitempty"`
	From         int64  `json:"from"`
	To           int64  `json:"to"`
	PrefixSHA256 SHA    `json:"prefix_sha256"`
	Chunks       int    `json:"chunks"`
	// More says that the object has further parts: it was too large for one. The
	// object as a whole is admitted with the first line of its raw sha that says
	// nothing of more.
	More     bool      `json:"more,omitempty"`
	StoredAt time.Time `json:"stored_at"` // the store's clock, not ours
}

// Kinds of a Cause.
const (
	CausePart      = "part"      // the next admitted part
	CauseTombstone = "tombstone" // texts that were erased are stated anew
	CauseRegate    = "regate"    // steps without a readable reply are asked again
	CauseSynthesis = "synthesis" // the present memories of a project, read one level up
)

// Cause names why a run exists when it is not the next admitted part: re-gated
// steps or a tombstone.
type Cause struct {
	Kind string `json:"kind"`          // part | regate | tombstone | synthesis
	Ref  string `json:"ref,omitempty"` // source sha, tombstone sha, digest of the inputs ("#<step>" behind it), or of the re-gated steps
}

// Run freezes what decides over one part: written at the first slice.
type Run struct {
	V             int       `json:"v"`
	Type          string    `json:"type"` // "run"
	Level         Level     `json:"level"`
	Run           SHA       `json:"run"` // see RunID
	Stream        string    `json:"stream"`
	Question      string    `json:"question"`
	Cause         Cause     `json:"cause"`
	Admit         int64     `json:"admit"` // seq of the part's admit line; 0 for L2
	Source        SHA       `json:"source,omitempty"`
	T             int       `json:"t"` // steps in the stream before this run
	Chunks        int       `json:"chunks"`
	Policy        string    `json:"policy"`
	Model         string    `json:"model,omitempty"`
	RewriteModel  string    `json:"rewrite_model,omitempty"`
	Adapter       string    `json:"adapter,omitempty"`
	PromptVersion string    `json:"prompt_version"`
	Sampling      *Sampling `json:"sampling,omitempty"`
	MemoryBudget  int       `json:"memory_budget"` // tokens
	ExitGate      bool      `json:"exit_gate"`     // whether the exit gate is acted on
	MemoryBefore  SHA       `json:"memory_before_sha,omitempty"`
	// From, Offset and Used say where in its part a run begins that goes on with one
	// which others had begun to decide: chunk, byte of its text, chunks used before.
	From    int       `json:"from,omitempty"`
	Offset  int       `json:"offset,omitempty"`
	Used    int       `json:"used,omitempty"`
	Started time.Time `json:"started"`
	Erased  SHA       `json:"erased,omitempty"` // the tombstone that erased its text
	// Forgotten stands beside Erased where nothing stands for what was erased.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Sampling is how a model was sampled.
type Sampling struct {
	Temperature float64 `json:"temperature"`
	TopP        float64 `json:"top_p"`
	Seed        int64   `json:"seed"`
	MaxTokens   int     `json:"max_tokens,omitempty"`
}

// Gate is the decision over one chunk: closed gates are records too.
type Gate struct {
	V                 int       `json:"v"`
	Type              string    `json:"type"`  // "gate"
	Level             Level     `json:"level"` // of the memory it decides about: L1 or L2
	T                 int       `json:"t"`     // step in the stream, from 1
	TotalT            int       `json:"T"`     // steps the part has
	Run               SHA       `json:"run"`
	QueryID           string    `json:"query_id"`
	Admit             int64     `json:"admit,omitempty"`
	I                 int       `json:"i"` // chunk's place in its part
	Chunk             SHA       `json:"chunk"`
	Start             int       `json:"start"` // chunk text [start,end) that was read
	End               int       `json:"end"`
	More              bool      `json:"more,omitempty"` // the chunk goes on after end, as a step of its own
	Update            bool      `json:"update"`
	Exit              bool      `json:"exit"`
	ExitActed         bool      `json:"exit_acted"`
	FormatOK          bool      `json:"format_ok"`
	Pending           bool      `json:"pending"`
	Attempt           int       `json:"attempt"`
	Reason            string    `json:"reason"`
	ReasonCode        string    `json:"reason_code"` // closed | kept | no_substance | budget_exceeded | format | empty | derived | abandoned
	Think             string    `json:"think,omitempty"`
	Score             *float64  `json:"score,omitempty"`
	Policy            string    `json:"policy"`
	Model             string    `json:"model,omitempty"`
	Adapter           string    `json:"adapter,omitempty"`
	PromptVersion     string    `json:"prompt_version"`
	Sampling          *Sampling `json:"sampling,omitempty"`
	MemoryBeforeSHA   SHA       `json:"memory_before_sha,omitempty"`
	CandidateSHA      SHA       `json:"candidate_sha,omitempty"`
	MemorySHA         SHA       `json:"memory_sha,omitempty"` // after this step
	PromptTokens      int       `json:"prompt_tokens"`        // the server's count; 0 without a model
	PromptTokensOwn   int       `json:"prompt_tokens_own"`
	CompletionTokens  int       `json:"completion_tokens"`
	MemoryTokens      int       `json:"memory_tokens"` // after this step, own count
	FinishReason      string    `json:"finish_reason,omitempty"`
	LatencyMS         float64   `json:"latency_ms"`
	CostUSD           float64   `json:"cost_usd"`
	Reply             SHA       `json:"reply,omitempty"` // blob of the raw reply
	RegateOf          int       `json:"regate_of,omitempty"`
	Neutralised       bool      `json:"neutralised,omitempty"` // reserved tags in the text were masked for the model
	TruncatedByServer bool      `json:"truncated_by_server,omitempty"`
	// Parallel is how many gates are asked side by side in this run, 0 for none: the
	// first of a batch and those after it see the memory as it was before the batch,
	// which FrozenSHA names where it is not that of MemoryBeforeSHA.
	Parallel        int `json:"parallel,omitempty"`
	FrozenSHA       SHA `json:"frozen_sha,omitempty"`
	EvidenceDropped int `json:"evidence_dropped,omitempty"` // picks refused because no citation could be computed
	Ungrounded      int `json:"ungrounded,omitempty"`       // sentences of the candidate dropped: they name what was not read
	// Shingles stand for the picks that this stream does not keep and others may:
	// with them it knows again what the memories of its project give out.
	Shingles []string  `json:"shingles,omitempty"`
	Gone     []SHA     `json:"gone,omitempty"`   // nodes whose text was erased and could not be stated anew
	Newest   time.Time `json:"newest,omitzero"`  // greatest effective time admitted up to this step
	Erased   SHA       `json:"erased,omitempty"` // the tombstone that erased its texts
	// Forgotten stands beside Erased where nothing stands for what was erased.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Place is a position in the total order "newest" of DESIGN section 3:
// (effective time, admit seq, chunk i, start).
type Place struct {
	Time  time.Time `json:"time"` // effective time, UTC
	Admit int64     `json:"admit"`
	I     int       `json:"i"`
	Start int       `json:"start"`
}

// Compare orders places; the greater is the newer.
func (p Place) Compare(q Place) int {
	if c := p.Time.Compare(q.Time); c != 0 {
		return c
	}
	if p.Admit != q.Admit {
		return cmpInt(p.Admit, q.Admit)
	}
	if p.I != q.I {
		return cmpInt(int64(p.I), int64(q.I))
	}
	return cmpInt(int64(p.Start), int64(q.Start))
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Occurrence names one statement of a node: which node, at which step.
type Occurrence struct {
	Node  SHA   `json:"node"`
	T     int   `json:"t"`
	Place Place `json:"place"`
}

// Evidence is a verbatim sentence or passage that a step kept: an L0 node's
// occurrence. Text equals the chunk text at the span, byte for byte.
type Evidence struct {
	V           int          `json:"v"`
	Type        string       `json:"type"` // "evidence"
	Level       Level        `json:"level"`
	T           int          `json:"t"`
	Run         SHA          `json:"run"`
	Node        SHA          `json:"node"`
	TextSHA     SHA          `json:"text_sha"`
	Text        string       `json:"text"`
	Span        Span         `json:"span"`
	Trust       Trust        `json:"trust"`
	Role        Role         `json:"role"`
	Rules       []string     `json:"rules,omitempty"` // cues that fired, or why the model kept it
	Score       float64      `json:"score"`
	TurnID      string       `json:"turn_id,omitempty"`
	Place       Place        `json:"place"`
	SourceTime  *time.Time   `json:"source_time,omitempty"` // nil when the source has none
	TimeRaw     string       `json:"time_raw,omitempty"`
	TimeQuality TimeQuality  `json:"time_quality,omitempty"`
	Supersedes  []Occurrence `json:"supersedes,omitempty"` // the other occurrence; Place decides which is the newer
	Restates    *Occurrence  `json:"restates,omitempty"`   // the erased statement of which this is the newly redacted form
	Erased      SHA          `json:"erased,omitempty"`     // the tombstone that erased its text
	// Forgotten stands beside Erased where nothing stands for the statement: a fold
	// passes over it, as if it had not been made.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Memory is the memory after a step that changed it: an L1 or L2 node.
type Memory struct {
	V          int    `json:"v"`
	Type       string `json:"type"` // "memory"
	Level      Level  `json:"level"`
	T          int    `json:"t"`
	Run        SHA    `json:"run"`
	QueryID    string `json:"query_id"`
	Node       SHA    `json:"node"`
	TextSHA    SHA    `json:"text_sha"`
	Text       string `json:"text"`
	Tokens     int    `json:"tokens"`
	Parents    []SHA  `json:"parents"`              // nodes one level down
	Supersedes []SHA  `json:"supersedes,omitempty"` // the memory node it replaces
	Place      Place  `json:"place"`                // newest of its evidence
	Erased     SHA    `json:"erased,omitempty"`     // the tombstone that erased its text
	// Forgotten stands beside Erased where the memory descended from what was
	// forgotten: a fold passes over it.
	Forgotten bool `json:"forgotten,omitempty"`
}

// Kinds of a Label: who said it.
const (
	LabelHuman = "human"
	LabelModel = "model"
	LabelRule  = "rule"
)

// Bases of a Label: what it looked at beside the chunk's text.
const (
	BasisChunk  = "chunk"  // nothing: no memory
	BasisMemory = "memory" // a memory, which is not named here: the label came from elsewhere
)

// Label is what somebody else than the stream's own policy says of a piece of a
// chunk: whether it holds evidence for a question. Labels are appended and never
// overwritten, and no memory follows from them. A label of a step (t) saw the
// memory as it was before that step; one with a Basis is of no step.
type Label struct {
	V                int       `json:"v"`
	Type             string    `json:"type"` // "label"
	Level            Level     `json:"level"`
	Kind             string    `json:"kind"`            // human | model | rule
	Basis            string    `json:"basis,omitempty"` // chunk | memory; empty: the memory before step T, of a model
	Stream           string    `json:"stream"`
	QueryID          string    `json:"query_id"`
	T                int       `json:"t,omitempty"` // of the stream's step over this piece
	Admit            int64     `json:"admit"`
	I                int       `json:"i"`
	Chunk            SHA       `json:"chunk"`
	Start            int       `json:"start"` // chunk text [start,end)
	End              int       `json:"end"`
	Evidence         bool      `json:"evidence"`
	Exit             bool      `json:"exit,omitempty"`       // the exit gate, where a model was asked
	Confidence       *float64  `json:"confidence,omitempty"` // that it is evidence, in [0,1]
	FormatOK         bool      `json:"format_ok"`
	ReasonCode       string    `json:"reason_code"`    // see Gate
	By               string    `json:"by,omitempty"`   // which person
	Rule             string    `json:"rule,omitempty"` // id of the rule
	Model            string    `json:"model,omitempty"`
	Adapter          string    `json:"adapter,omitempty"`
	PromptVersion    string    `json:"prompt_version,omitempty"`
	Sampling         *Sampling `json:"sampling,omitempty"`
	MemoryBeforeSHA  SHA       `json:"memory_before_sha,omitempty"`
	Attempt          int       `json:"attempt,omitempty"`
	PromptTokens     int       `json:"prompt_tokens"`
	PromptTokensOwn  int       `json:"prompt_tokens_own"`
	CompletionTokens int       `json:"completion_tokens"`
	LatencyMS        float64   `json:"latency_ms"`
	CostUSD          float64   `json:"cost_usd"`
	At               time.Time `json:"at"`
	Erased           SHA       `json:"erased,omitempty"`
}

// RunEnd says that a part is done in a stream, or, Continued, that another run goes on
// with it.
type RunEnd struct {
	V            int    `json:"v"`
	Type         string `json:"type"` // "run_end"
	Level        Level  `json:"level"`
	Run          SHA    `json:"run"`
	Admit        int64  `json:"admit"` // the cursor: parts up to here are folded
	T            int    `json:"t"`     // last step
	ChunksSeen   int    `json:"chunks_seen"`
	ChunksUsed   int    `json:"chunks_used"`
	Pending      int    `json:"pending"`
	MemorySHA    SHA    `json:"memory_sha,omitempty"`
	MemoryTokens int    `json:"memory_tokens"`
	Exited       bool   `json:"exited"`
	// Continued says that the part is not done: the next run goes on with it, decided by
	// others.
	Continued bool      `json:"continued,omitempty"`
	Ended     time.Time `json:"ended"`
}

// Space is an embedding space: vectors of different spaces never mix.
type Space struct {
	ID       string `json:"id"` // see SpaceID
	Model    string `json:"model"`
	Revision string `json:"revision"`
	Dims     int    `json:"dims"`
	Prefix   string `json:"prefix_scheme"`
	// DenseWeight is the dense leg's share in the fusion; it belongs to the
	// space (DESIGN section 8).
	DenseWeight float64 `json:"dense_weight"`
	// Floor is the raw cosine under which a dense hit counts as nothing.
	Floor float64 `json:"floor"`
}

// SpaceID is sha8 over (model, revision, dims, prefix scheme), readable in a key.
func SpaceID(model, revision string, dims int, prefix string) string {
	return SumString(model + "\n" + revision + "\n" + itoa(dims) + "\n" + prefix).Short()
}

func itoa(n int) string {
	var b [20]byte
	i := len(b)
	if n == 0 {
		return "0"
	}
	for n > 0 {
		i--
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return string(b[i:])
}
