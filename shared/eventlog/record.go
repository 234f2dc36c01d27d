package eventlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Record is one line of a segment: *memory.Admit, *memory.Run, *memory.Gate,
// *memory.Evidence, *memory.Memory, *memory.RunEnd, *memory.Tombstone or *Opaque. Append refuses
// anything else.
type Record interface {
	RecordType() string // the `type` field
}

// Opaque is a record whose type this program does not know, byte for byte.
// Appending one stores exactly Line.
type Opaque struct {
	Type string
	Line []byte // without the line feed
}

// RecordType is the record's `type` field.
func (o *Opaque) RecordType() string { return o.Type }

// olderVersions is how many record versions before memory.Version are read
// (DESIGN section 4: version n reads n-1).
const olderVersions = 1

// oldestVersion is the lowest `v` that is read; there never was a version 0.
const oldestVersion = max(memory.Version-olderVersions, 1)

// versionError says what cures a record of another version.
func versionError(v int) error {
	switch {
	case v > memory.Version:
		return fault.At(fault.Corrupt, "", "install a mem that reads this version; see `mem version`",
			"record version %d was written by a newer mem; this one reads up to %d", v, memory.Version)
	case v < oldestVersion:
		return fault.At(fault.Corrupt, "", "rewrite the log with the mem that came before this one",
			"record version %d is too old; this mem reads from %d", v, oldestVersion)
	}
	return nil
}

// marshal is json.Marshal with the characters <, > and & as themselves, so
// that people and jq read what was written. Text that is not UTF-8 is refused:
// encoding/json would replace it and the hash would be of other bytes.
func marshal(v any) ([]byte, error) {
	line, err := marshalLoose(v)
	if err == nil && holdsReplacement(line) {
		return nil, fault.New(fault.Invalid, "a record holds text that is not UTF-8")
	}
	return line, err
}

// marshalLoose is marshal that lets bytes which are not UTF-8 become U+FFFD: a
// dead letter is kept whatever it holds.
func marshalLoose(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fault.New(fault.Invalid, "encode a record: %w", err)
	}
	line := buf.Bytes()
	return line[:len(line)-1], nil
}

// holdsReplacement reports the escape \ufffd, which encoding/json writes for a
// byte that is not UTF-8 and for nothing else: the character U+FFFD itself is
// written literally.
func holdsReplacement(line []byte) bool {
	esc := []byte(`\ufffd`)
	for at := 0; ; {
		i := bytes.Index(line[at:], esc)
		if i < 0 {
			return false
		}
		i += at
		slashes := 0
		for i-slashes-1 >= 0 && line[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return true
		}
		at = i + 1
	}
}

// levels that a record may have.
var levels = map[memory.Level]bool{memory.L0: true, memory.L1: true, memory.L2: true, memory.LevelNone: true, memory.LevelRaw: true}

// stamp fills the three fields that every record has where they are empty and
// refuses wrong ones.
func stamp(v *int, typ *string, level *memory.Level, wantType string, want ...memory.Level) error {
	if *v == 0 {
		*v = memory.Version
	}
	if *v != memory.Version {
		return fault.New(fault.Invalid, "a %s record of version %d; this mem writes %d", wantType, *v, memory.Version)
	}
	if *typ == "" {
		*typ = wantType
	}
	if *typ != wantType {
		return fault.New(fault.Invalid, "a %s record says type %q", wantType, *typ)
	}
	if *level == "" {
		*level = want[0]
	}
	for _, w := range want {
		if *level == w {
			return nil
		}
	}
	return fault.New(fault.Invalid, "a %s record cannot have level %q", wantType, *level)
}

// encodeRecord gives the line of r, without the line feed, and the run it
// belongs to. r is not changed. Times are written in UTC.
func encodeRecord(r Record) (line []byte, run memory.SHA, err error) {
	switch r := r.(type) {
	case *memory.Admit:
		c := *r
		c.StoredAt = c.StoredAt.UTC()
		if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeAdmit, memory.LevelNone); err != nil {
			return nil, "", err
		}
		line, err = marshal(&c)
	case *memory.Run:
		c := *r
		c.Started = c.Started.UTC()
		if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeRun, memory.LevelNone, memory.L1, memory.L2); err != nil {
			return nil, "", err
		}
		run = c.Run
		line, err = marshal(&c)
	case *memory.Gate:
		c := *r
		if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeGate, memory.L1, memory.L2); err != nil {
			return nil, "", err
		}
		c.Newest = c.Newest.UTC()
		run = c.Run
		line, err = marshal(&c)
	case *memory.Evidence:
		c := *r
		if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeEvidence, memory.L0); err != nil {
			return nil, "", err
		}
		c.Place.Time, c.SourceTime = c.Place.Time.UTC(), utc(c.SourceTime)
		run = c.Run
		line, err = marshal(&c)
	case *memory.Memory:
		c := *r
		if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeMemory, memory.L1, memory.L2); err != nil {
			return nil, "", err
		}
		if c.Parents == nil {
			c.Parents = []memory.SHA{}
		}
		c.Place.Time = c.Place.Time.UTC()
		run = c.Run
		line, err = marshal(&c)
	case *memory.RunEnd:
		c := *r
		c.Ended = c.Ended.UTC()
		if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeRunEnd, memory.LevelNone, memory.L1, memory.L2); err != nil {
			return nil, "", err
		}
		run = c.Run
		line, err = marshal(&c)
	case *memory.Tombstone:
		c := *r
		if err := stamp(&c.V, &c.Type, &c.Level, memory.TypeTombstone, memory.LevelNone); err != nil {
			return nil, "", err
		}
		line, err = marshal(&c)
	case *Opaque:
		line, err = checkOpaque(r)
	default:
		return nil, "", fault.New(fault.Invalid, "a %T is no record of a segment", r)
	}
	return line, run, err
}

// checkNode refuses a node that cannot reach its source: one whose id is not
// that of its text, an evidence without a span in a chunk, a memory without a
// parent (DESIGN section 1, invariant 6).
func checkNode(h *Header, r Record) error {
	switch r := r.(type) {
	case *memory.Evidence:
		if r.Span.Object == "" || !r.Span.Chunk.Valid() || r.Span.End <= r.Span.Start {
			return fault.New(fault.Invalid, "evidence without a span in an object and a chunk")
		}
		return checkNodeID(h, memory.L0, r.Text, r.TextSHA, r.Node)
	case *memory.Memory:
		if len(r.Parents) == 0 {
			return fault.New(fault.Invalid, "a memory without a parent")
		}
		return checkNodeID(h, r.Level, r.Text, r.TextSHA, r.Node)
	}
	return nil
}

func checkNodeID(h *Header, level memory.Level, text string, sha, node memory.SHA) error {
	if memory.SumString(text) != sha {
		return fault.New(fault.Invalid, "text_sha is not that of the text")
	}
	if level == "" {
		level = memory.L1 // what encodeRecord writes for an empty one
	}
	if memory.NodeID(h.Tenant, h.Project, level, h.Stream, sha) != node {
		return fault.New(fault.Invalid, "the node id is not that of the text")
	}
	return nil
}

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// checkOpaque proves that an opaque line is one JSON object with v, type and
// level. Its version may be older than this program's, never newer.
func checkOpaque(o *Opaque) ([]byte, error) {
	if bytes.ContainsAny(o.Line, "\n\r") {
		return nil, fault.New(fault.Invalid, "an opaque record holds a line break")
	}
	h, err := sniff(o.Line)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	if h.Type != o.Type {
		return nil, fault.New(fault.Invalid, "an opaque record of type %q holds a line of type %q", o.Type, h.Type)
	}
	if !levels[h.Level] {
		return nil, fault.New(fault.Invalid, "a %s record has level %q", h.Type, h.Level)
	}
	if err := versionError(h.V); err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	return o.Line, nil
}

// lineHead is what every record has.
type lineHead struct {
	V     int          `json:"v"`
	Type  string       `json:"type"`
	Level memory.Level `json:"level"`
}

func sniff(line []byte) (lineHead, error) {
	var h lineHead
	if err := json.Unmarshal(line, &h); err != nil {
		return h, fault.New(fault.Corrupt, "the line is no record: %v", jsonFault(err))
	}
	if h.V == 0 || h.Type == "" {
		return h, fault.New(fault.Corrupt, "the record has no version or no type")
	}
	return h, nil
}

// jsonFault tells a JSON error without the text it is about.
func jsonFault(err error) string {
	switch e := err.(type) {
	case *json.UnmarshalTypeError:
		return fmt.Sprintf("field %s is a %s", e.Field, firstWord(e.Value))
	case *json.SyntaxError:
		return fmt.Sprintf("no JSON at byte %d", e.Offset)
	}
	return "no JSON record"
}

func firstWord(s string) string {
	w, _, _ := bytes.Cut([]byte(s), []byte(" "))
	return string(w)
}

// decodeRecord reads a line. Fields it does not know stay in the line and are
// not an error. An erased record comes back with its texts empty and Erased
// set: a hash is never taken for a text.
func decodeRecord(line []byte) (Record, error) {
	typ, ok := fastType(line)
	if !ok {
		h, err := sniff(line)
		if err != nil {
			return nil, err
		}
		if err := versionError(h.V); err != nil {
			return nil, err
		}
		typ = h.Type
	}
	switch typ {
	case memory.TypeAdmit:
		return decodeAs(line, &memory.Admit{}, nil)
	case memory.TypeRun:
		return decodeAs(line, &memory.Run{}, func(r *memory.Run) {
			if r.Erased != "" {
				r.Question = ""
			}
		})
	case memory.TypeGate:
		return decodeAs(line, &memory.Gate{}, func(r *memory.Gate) {
			if r.Erased != "" {
				r.Reason, r.Think = "", ""
			}
		})
	case memory.TypeEvidence:
		return decodeAs(line, &memory.Evidence{}, func(r *memory.Evidence) {
			if r.Erased != "" {
				r.Text = ""
			}
		})
	case memory.TypeMemory:
		return decodeAs(line, &memory.Memory{}, func(r *memory.Memory) {
			if r.Erased != "" {
				r.Text = ""
			}
		})
	case memory.TypeRunEnd:
		return decodeAs(line, &memory.RunEnd{}, nil)
	case memory.TypeTombstone:
		return decodeAs(line, &memory.Tombstone{}, nil)
	}
	return &Opaque{Type: typ, Line: line}, nil
}

func decodeAs[T Record](line []byte, into T, after func(T)) (Record, error) {
	if err := json.Unmarshal(line, into); err != nil {
		return nil, fault.New(fault.Corrupt, "the record does not decode: %v", jsonFault(err))
	}
	if after != nil {
		after(into)
	}
	return into, nil
}

// currentPrefix is how this program begins every record it writes.
var currentPrefix = fmt.Appendf(nil, `{"v":%d,"type":"`, memory.Version)

// fastType reads the type of a line that begins as this program writes it.
func fastType(line []byte) (string, bool) {
	rest, ok := bytes.CutPrefix(line, currentPrefix)
	if !ok {
		return "", false
	}
	i := bytes.IndexByte(rest, '"')
	if i <= 0 || bytes.IndexByte(rest[:i], '\\') >= 0 {
		return "", false
	}
	return string(rest[:i]), true
}
