package export

import "slices"

// SchemaVersion is the version of the files' schemas; it stands in each file's key-value
// metadata and in the manifest.
//
// History: 1 — first.
const SchemaVersion = 1

// Program is the version of what turns records into rows. Equal logs, labels and
// options give equal bytes under an equal Program.
//
// History: x1 — first; x2 — nothing_new is in no trainer's file.
const Program = "x2"

// Names of what an export holds. The marker is written last.
const (
	Gates    = "gates.parquet"
	SFT      = "sft.parquet"
	SFTPC    = "sft_pc.parquet"
	KTO      = "kto.parquet"
	KTOFlat  = "kto_messages.parquet"
	DPO      = "dpo.parquet"
	DPOFlat  = "dpo_flat.parquet"
	VerlRL   = "verl_rl.parquet"
	Manifest = "manifest.json"
	Marker   = "_SUCCESS"
)

// Formats that an export may be asked for, and the files of each.
var formats = map[string][]string{
	"canonical": {Gates},
	"sft":       {SFT, SFTPC},
	"kto":       {KTO, KTOFlat},
	"dpo":       {DPO, DPOFlat},
	"verl":      {VerlRL},
	"all":       {Gates, SFT, SFTPC, KTO, KTOFlat, DPO, DPOFlat, VerlRL},
}

// Formats lists the names of formats.
func Formats() []string { return []string{"canonical", "sft", "kto", "dpo", "verl", "all"} }

// Files lists the Parquet files of a format; nil where there is no such format.
func Files(format string) []string { return slices.Clone(formats[format]) }

// Splits of rows, by the hash of (project, question id): two rows of one question are
// never in two splits, so that nearly equal chunks do not leak.
var Splits = []string{"train", "val", "test"}

// GateRow is a row of gates.parquet: one gate decision. Every other file follows from
// these rows. Times are UTC. A nullable column is null where the log does not say.
type GateRow struct {
	ID       string `parquet:"id"` // project/stream/t
	ExportID string `parquet:"export_id,dict"`
	Project  string `parquet:"project,dict"`
	Level    string `parquet:"level,dict"` // L1, L2
	Stream   string `parquet:"stream,dict"`
	QueryID  string `parquet:"query_id,dict"`
	Question string `parquet:"question,dict"`

	RunID      string `parquet:"run_id,dict"`
	Trajectory string `parquet:"trajectory,dict"` // run id of the run that ended it
	Cause      string `parquet:"cause,dict"`      // part, regate, synthesis
	Source     string `parquet:"source,dict"`     // source record of the part
	EndedUS    int64  `parquet:"ended,timestamp(microsecond)"`

	T      int64 `parquet:"t"`         // step in the stream, from 1
	TotalT int64 `parquet:"total_t"`   // T: steps that the part has
	TStep  int64 `parquet:"t_in_part"` // step in the trajectory, from 1
	Admit  int64 `parquet:"admit"`
	I      int64 `parquet:"i"`     // chunk's place in its part, from 0
	Start  int64 `parquet:"start"` // chunk text [start,end), bytes
	End    int64 `parquet:"end"`
	More   bool  `parquet:"more"`

	ChunkSHA        string  `parquet:"chunk_sha"`
	MemoryBeforeSHA string  `parquet:"memory_before_sha"` // "" for none
	FrozenSHA       string  `parquet:"frozen_sha"`        // of the memory that was shown, where another
	CandidateSHA    string  `parquet:"candidate_sha"`
	MemorySHA       string  `parquet:"memory_sha"`
	MemoryTokens    int64   `parquet:"memory_tokens"`
	ReplySHA        string  `parquet:"reply_sha"`
	PromptSystem    *string `parquet:"prompt_system,optional,dict"` // as the step's own wording has it; null where nothing was to be asked
	PromptUser      *string `parquet:"prompt_user,optional"`
	RawOutput       *string `parquet:"raw_output,optional"` // content of the model's last reply of the step
	RawReasoning    *string `parquet:"raw_reasoning,optional"`
	Completion      *string `parquet:"completion,optional"` // the training form, in tags
	CompletionOf    string  `parquet:"completion_of,dict"`  // raw, rendered, ""

	Update       bool   `parquet:"update"`
	Opened       bool   `parquet:"opened"` // update gate, whatever became of the candidate
	Exit         bool   `parquet:"exit"`
	ExitActed    bool   `parquet:"exit_acted"`
	FormatOK     bool   `parquet:"format_ok"`
	Pending      bool   `parquet:"pending"`
	Attempt      int64  `parquet:"attempt"`
	ReasonCode   string `parquet:"reason_code,dict"`
	Reason       string `parquet:"reason"`
	Think        string `parquet:"think"`
	FinishReason string `parquet:"finish_reason,dict"`
	RegateOf     int64  `parquet:"regate_of"`
	Neutralised  bool   `parquet:"neutralised"`
	Truncated    bool   `parquet:"truncated_by_server"`
	Dropped      int64  `parquet:"evidence_dropped"`
	Ungrounded   int64  `parquet:"ungrounded"`
	Parallel     int64  `parquet:"parallel"`

	Score           *float64 `parquet:"score,optional"`
	Policy          string   `parquet:"policy,dict"`
	Model           string   `parquet:"model,dict"`
	Adapter         string   `parquet:"adapter,dict"`
	PromptVersion   string   `parquet:"prompt_version,dict"`
	TagVersion      string   `parquet:"tag_version,dict"` // of the wording in which Completion answers
	Call            string   `parquet:"call,dict"`        // decide: four tags; gate: think, check, next
	Temperature     *float64 `parquet:"temperature,optional"`
	TopP            *float64 `parquet:"top_p,optional"`
	Seed            *int64   `parquet:"seed,optional"`
	MaxTokens       *int64   `parquet:"max_tokens,optional"`
	PromptTokens    int64    `parquet:"prompt_tokens"` // the server's count, all calls of the step
	PromptTokensOwn int64    `parquet:"prompt_tokens_own"`
	ReplyTokens     int64    `parquet:"completion_tokens"`
	LatencyMS       float64  `parquet:"latency_ms"`
	CostUSD         float64  `parquet:"cost_usd"`

	Evidence    *bool    `parquet:"evidence,optional"` // what the label that counts says
	LabelSource *string  `parquet:"label_source,optional,dict"`
	LabelModel  *string  `parquet:"label_model,optional,dict"`
	LabelConf   *float64 `parquet:"label_conf,optional"`
	LastStep    *int64   `parquet:"last_evidence,optional"` // step in the trajectory, from 1, with the last evidence

	RUpdate   *float64 `parquet:"r_update,optional"`
	RExit     *float64 `parquet:"r_exit,optional"`
	RFormat   *float64 `parquet:"r_format,optional"`
	RTraj     *float64 `parquet:"r_traj,optional"`
	ATraj     *float64 `parquet:"a_traj,optional"`
	ATurn     *float64 `parquet:"a_turn,optional"`
	Advantage *float64 `parquet:"advantage,optional"`
	Alpha     float64  `parquet:"alpha"`

	Split    string `parquet:"split,dict"`
	Excluded string `parquet:"excluded,dict"` // why no trainer's file has the row; "" where one may
}

// Message is a turn of a chat.
type Message struct {
	Role    string `parquet:"role,dict" json:"role"`
	Content string `parquet:"content" json:"content"`
}

// Meta are the flat columns that every trainer's row ends with.
type Meta struct {
	ID            string `parquet:"id"`
	Project       string `parquet:"project,dict"`
	Level         string `parquet:"level,dict"`
	Stream        string `parquet:"stream,dict"`
	QueryID       string `parquet:"query_id,dict"`
	PromptVersion string `parquet:"prompt_version,dict"` // of the wording in tags
	Call          string `parquet:"call,dict"`
	CompletionOf  string `parquet:"completion_of,dict"`
	Split         string `parquet:"split,dict"`
	ExportID      string `parquet:"export_id,dict"`
}

// SFTRow is a row of sft.parquet.
type SFTRow struct {
	Messages []Message `parquet:"messages,list"`
	Meta
}

// SFTPCRow is a row of sft_pc.parquet.
type SFTPCRow struct {
	Prompt     []Message `parquet:"prompt,list"`
	Completion []Message `parquet:"completion,list"`
	Meta
}

// KTORow is a row of kto.parquet.
type KTORow struct {
	Prompt     []Message `parquet:"prompt,list"`
	Completion []Message `parquet:"completion,list"`
	Label      bool      `parquet:"label"`
	Meta
}

// KTOFlatRow is a row of kto_messages.parquet, for LLaMA-Factory.
type KTOFlatRow struct {
	Messages []Message `parquet:"messages,list"`
	Label    bool      `parquet:"label"`
	Meta
}

// DPORow is a row of dpo.parquet; Chosen and Rejected hold one message each.
type DPORow struct {
	Prompt   []Message `parquet:"prompt,list"`
	Chosen   []Message `parquet:"chosen,list"`
	Rejected []Message `parquet:"rejected,list"`
	Meta
}

// DPOFlatRow is a row of dpo_flat.parquet, for Axolotl and LLaMA-Factory.
type DPOFlatRow struct {
	Messages []Message `parquet:"messages,list"`
	Chosen   Message   `parquet:"chosen"`
	Rejected Message   `parquet:"rejected"`
	Meta
}

// VerlRow is a row of verl_rl.parquet.
type VerlRow struct {
	DataSource  string      `parquet:"data_source,dict"`
	Prompt      []Message   `parquet:"prompt,list"`
	Context     string      `parquet:"context"` // the section alone
	Ability     string      `parquet:"ability,dict"`
	RewardModel RewardModel `parquet:"reward_model"`
	ExtraInfo   ExtraInfo   `parquet:"extra_info"`
}

// RewardModel is verl's.
type RewardModel struct {
	Style       string   `parquet:"style,dict"`
	GroundTruth []string `parquet:"ground_truth,list"` // one: yes or no
}

// ExtraInfo is what a reward function is given beside the answer.
type ExtraInfo struct {
	Index        int64    `parquet:"index"`
	Split        string   `parquet:"split,dict"`
	Question     string   `parquet:"question,dict"`
	T            int64    `parquet:"t"`       // step in the trajectory, from 1
	TotalT       int64    `parquet:"total_t"` // its steps
	Evidence     *bool    `parquet:"evidence,optional"`
	LastEvidence *int64   `parquet:"last_evidence,optional"`
	LabelSource  string   `parquet:"label_source,dict"`
	LabelConf    *float64 `parquet:"label_conf,optional"`
	ID           string   `parquet:"id"`
	Project      string   `parquet:"project,dict"`
	QueryID      string   `parquet:"query_id,dict"`
	Level        string   `parquet:"level,dict"`
	Call         string   `parquet:"call,dict"`
	ExportID     string   `parquet:"export_id,dict"`
}
