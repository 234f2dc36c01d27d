package transcript

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Stats says what was read. Every line of the object stands in one of the
// counts.
type Stats struct {
	memory.Counts
	File         string // the object's last key element
	Format       string
	Unsupported  string     // the format's name when it is known and not read; else ""
	Compression  string     // "", "gzip" or "zstd"
	Damage       string     // how the compressed stream is damaged; what came before it is kept
	SizeBytes    int64      // decompressed
	RawSHA256    memory.SHA // of the decompressed bytes
	Consumed     int64      // bytes up to and with the last LF: where a later read resumes
	PrefixSHA256 memory.SHA // of [0, Consumed)
	FromSHA256   memory.SHA // of [0, Options.From), to prove that a resumed object only grew; "" when From is 0 or past the end
	Session      string     // first session id
	Cwds         []string   // distinct, in order of appearance
	TimeMin      time.Time
	TimeMax      time.Time
	Turns        int // turns yielded
	Steering     int // of them, prompts typed while the agent worked
	Feedback     int // and a person's words in answers and refusals

	maxLine  int64
	endsLF   bool
	types    map[string]int
	versions set
	cwds     set
	sessions set
	minRaw   string
	maxRaw   string
	g        claudeCounts
}

// claudeCounts are what only Claude Code transcripts have.
type claudeCounts struct {
	messageNotObject, assistantLines, messageIDs int
	toolUse, toolResult, toolErrors              int
	orphanUse, orphanResult                      int
	human, reject, thinking, images              int
}

func (s *Stats) init() {
	s.types = map[string]int{}
	s.Dropped, s.Unknown = map[string]int{}, map[string]int{}
	s.versions, s.cwds, s.sessions = set{}, set{}, set{}
}

// restart drops the counts of the part before Options.From.
func (s *Stats) restart() {
	*s = Stats{File: s.File, Format: s.Format, Unsupported: s.Unsupported, Compression: s.Compression, Session: s.Session}
	s.init()
}

// maxNames bounds each table of names that a file fills.
const maxNames = 1000

// set holds distinct names.
type set map[string]struct{}

// add reports whether name is new and there is room.
func (s set) add(name string) bool {
	if _, ok := s[name]; ok || len(s) >= maxNames {
		return false
	}
	s[name] = struct{}{}
	return true
}

func (s set) sorted() []string {
	out := make([]string, 0, len(s))
	for k := range s {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// otherName stands for every name past maxNames.
const otherName = "(other)"

// bump counts under a name, in bounded memory.
func bump(m map[string]int, name string) {
	if _, ok := m[name]; !ok {
		if len(m) >= maxNames {
			name = otherName
		} else if len(name) > 64 {
			name = name[:64]
		}
	}
	m[name]++
}

func (s *Stats) drop(reason string) { s.Dropped[reason]++ }

func (s *Stats) cwd(name string) {
	if name != "" && s.cwds.add(name) {
		s.Cwds = append(s.Cwds, name)
	}
}

func (s *Stats) session(id string) {
	if id == "" {
		return
	}
	if s.Session == "" {
		s.Session = cleanID(id)
	}
	s.sessions.add(id)
}

// time takes a record's time into the range; records are not in time order.
func (s *Stats) time(t time.Time, raw string) {
	if s.TimeMin.IsZero() || t.Before(s.TimeMin) {
		s.TimeMin, s.minRaw = t, raw
	}
	if s.TimeMax.IsZero() || t.After(s.TimeMax) {
		s.TimeMax, s.maxRaw = t, raw
	}
}

// Golden is what the published sample counts hold of a file; `mem read --stats
// --json` prints it, and more (MarshalJSON).
type Golden struct {
	File                string         `json:"file"`
	Bytes               int64          `json:"bytes"`
	SHA256              string         `json:"sha256"` // first 16 hex digits
	LFLines             int            `json:"lf_lines"`
	EndsWithNewline     bool           `json:"ends_with_newline"`
	MaxLine             int64          `json:"max_line"` // bytes, without the LF
	Records             int            `json:"records"`
	BadLines            int            `json:"bad_lines"` // a cut-off last line included
	JoinedLines         int            `json:"joined_lines"`
	MessageNotObject    int            `json:"message_not_object"`
	Types               map[string]int `json:"types"`
	Versions            []string       `json:"versions"`
	Cwds                []string       `json:"cwds"`
	SessionIDs          []string       `json:"session_ids"`
	AssistantLines      int            `json:"assistant_lines"`
	AssistantMessageIDs int            `json:"assistant_message_ids"`
	ToolUse             int            `json:"tool_use"`
	ToolResult          int            `json:"tool_result"`
	ToolResultErrors    int            `json:"tool_result_errors"`
	OrphanToolUse       int            `json:"orphan_tool_use"`
	OrphanToolResult    int            `json:"orphan_tool_result"`
	HumanPrompts        int            `json:"human_prompts"`
	RejectFeedback      int            `json:"reject_feedback"`
	ThinkingBlocks      int            `json:"thinking_blocks"`
	Images              int            `json:"images"`
	TSMin               string         `json:"ts_min,omitempty"`
	TSMax               string         `json:"ts_max,omitempty"`
}

// Golden gives the counts under the keys of the published sample counts. file
// is copied.
func (s *Stats) Golden(file string) Golden {
	sha := string(s.RawSHA256)
	if len(sha) > 16 {
		sha = sha[:16]
	}
	return Golden{
		File: file, Bytes: s.SizeBytes, SHA256: sha,
		LFLines: s.Lines, EndsWithNewline: s.endsLF, MaxLine: s.maxLine,
		Records: s.Records, BadLines: s.Bad + s.Pending, JoinedLines: s.Joined,
		MessageNotObject: s.g.messageNotObject, Types: s.types,
		Versions: s.versions.sorted(), Cwds: s.cwds.sorted(), SessionIDs: s.sessions.sorted(),
		AssistantLines: s.g.assistantLines, AssistantMessageIDs: s.g.messageIDs,
		ToolUse: s.g.toolUse, ToolResult: s.g.toolResult, ToolResultErrors: s.g.toolErrors,
		OrphanToolUse: s.g.orphanUse, OrphanToolResult: s.g.orphanResult,
		HumanPrompts: s.g.human, RejectFeedback: s.g.reject,
		ThinkingBlocks: s.g.thinking, Images: s.g.images,
		TSMin: s.minRaw, TSMax: s.maxRaw,
	}
}

// MarshalJSON gives the sample counts' keys first and then what only a reader
// of this program knows.
func (s *Stats) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Golden
		Format      string         `json:"format"`
		Unsupported string         `json:"unsupported,omitempty"`
		Compression string         `json:"compression,omitempty"`
		Damage      string         `json:"damage,omitempty"`
		Turns       int            `json:"turns"`
		Steering    int            `json:"steering_turns"`
		Feedback    int            `json:"feedback_turns"`
		Pending     int            `json:"pending"`
		TooLong     int            `json:"too_long"`
		BadUTF8     int            `json:"bad_utf8"`
		Blank       int            `json:"blank"`
		Dropped     map[string]int `json:"dropped"`
		Unknown     map[string]int `json:"unknown_types"`
	}{s.Golden(s.File), s.Format, s.Unsupported, s.Compression, s.Damage, s.Turns, s.Steering, s.Feedback, s.Pending, s.TooLong, s.BadUTF8, s.Blank, s.Dropped, s.Unknown})
}
