// Package memory holds the domain values of Mneme: what a turn, a chunk, a
// span, a node and a log record are, and how each is identified.
//
// Invariant: identity is content. An id is a sha256 over canonical bytes and
// never holds a run id, a time or a place; the same words in the same stream
// of the same project are the same node on every machine.
//
// The package is pure and imports the standard library only. It does not read
// files, does not talk to a store and does not know any transcript format.
package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// SHA is a sha256 in lower-case hex, 64 characters.
type SHA string

// Sum returns the sha256 of b.
func Sum(b []byte) SHA {
	h := sha256.Sum256(b)
	return SHA(hex.EncodeToString(h[:]))
}

// SumString returns the sha256 of s.
func SumString(s string) SHA { return Sum([]byte(s)) }

// Valid reports whether s is 64 lower-case hex digits.
func (s SHA) Valid() bool {
	if len(s) != 64 {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Short returns the first eight hex digits, the form used in stream names.
func (s SHA) Short() string {
	if len(s) < 8 {
		return string(s)
	}
	return string(s[:8])
}

// Level says how far a text is from its source.
type Level string

const (
	L0        Level = "L0"  // evidence: a verbatim span
	L1        Level = "L1"  // memory of one standing question
	L2        Level = "L2"  // project synthesis over L1 memories
	LevelRaw  Level = "raw" // redacted chunk text, seen and perhaps not kept
	LevelNone Level = "-"   // a record for which a level has no meaning
)

// Role is who speaks in a turn.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleInjected  Role = "injected" // put into the prompt by the harness: reminders, skill bodies
	RoleSummary   Role = "summary"  // a compaction summary: a second copy of known turns
	RoleSystem    Role = "system"
	RoleNote      Role = "note" // Markdown and plain documents
)

// Kind is what a turn is.
type Kind string

const (
	KindText       Kind = "text"
	KindToolCall   Kind = "tool_call"
	KindToolResult Kind = "tool_result"
	KindFeedback   Kind = "feedback" // a person's words inside a rejected tool result
	KindSteering   Kind = "steering" // typed while the agent was working
	KindCommand    Kind = "command"  // a command the user ran
)

// Trust is where a text comes from, carried from the source to the prompt.
type Trust string

const (
	TrustUser      Trust = "user"
	TrustAssistant Trust = "assistant"
	TrustTool      Trust = "tool"
	TrustWeb       Trust = "web"
	TrustInjected  Trust = "injected"
)

// MaxName is the longest tenant or project name, in bytes (DESIGN section 3).
const MaxName = 63

var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`) })

// ValidName reports whether s may name a tenant or a project:
// [a-z0-9][a-z0-9._-]{0,62}.
func ValidName(s string) bool { return namePattern().MatchString(s) }

// LocalTenant is the tenant of `mem up`.
const LocalTenant = "local"

var questionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`) })

// ValidQuestionID reports whether s may be the id of a standing question. A
// leading "_" is reserved for Mneme's own streams, "adhoc-" for requests.
func ValidQuestionID(s string) bool {
	return questionPattern().MatchString(s) && !strings.HasPrefix(s, "adhoc-")
}

// StreamName is the question stream of one wording: "<id>@<sha8 of wording>".
// A new wording is a new stream.
func StreamName(id, wording string) string {
	return id + "@" + SumString(strings.TrimSpace(wording)).Short()
}

// AdhocStream names the stream of one request: "adhoc-<sha8>" over the wording
// and the raw sha of the part it asks about, as it folds that part alone.
func AdhocStream(wording string, raw SHA) string { return AdhocStreamBy(wording, raw, "") }

// AdhocStreamBy is AdhocStream of a request that chose what decides: the key of
// the choice is hashed too, so that another choice is another stream.
func AdhocStreamBy(wording string, raw SHA, choice string) string {
	if choice != "" {
		choice = "\n" + choice
	}
	return "adhoc-" + SumString(strings.TrimSpace(wording)+"\n"+string(raw)+choice).Short()
}

// SynthesisID is the reserved id of a project's synthesis: its stream is
// "_synthesis@<sha8 of the wording>". No question's id begins with "_".
const SynthesisID = "_synthesis"

// AdmitStream is the name under which projections keep the position they have
// reached in the admit stream (raw rows).
const AdmitStream = "_admit"

// QueryID is the question id of a stream name: what stands before "@".
func QueryID(stream string) string {
	id, _, _ := strings.Cut(stream, "@")
	return id
}

// NodeID is sha256 over the RFC 8785 form of {tenant, project, level, stream,
// text_sha}: {"level":…,"project":…,"stream":…,"tenant":…,"text_sha256":…}.
// All values are ASCII without characters that JSON escapes, so the
// encoding/json form of a sorted map is the canonical one; shared/eventlog has
// a test against the RFC 8785 library.
func NodeID(tenant, project string, level Level, stream string, textSHA SHA) SHA {
	b, err := json.Marshal(map[string]string{
		"tenant": tenant, "project": project, "level": string(level),
		"stream": stream, "text_sha256": string(textSHA),
	})
	if err != nil {
		panic(fmt.Sprintf("memory: node id: %v", err)) // a map of strings always encodes
	}
	return Sum(b)
}
