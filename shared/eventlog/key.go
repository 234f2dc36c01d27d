package eventlog

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// maxPart is the longest key part in bytes: with a suffix it still fits the 255
// bytes of a file name, and the key S3's 1,024 (DESIGN section 4).
const maxPart = 200

// partPattern is a key part: lower case, so that a file system that folds case
// keeps apart what S3 keeps apart. "@" stands in stream names.
var partPattern = regexp.MustCompile(`^[a-z0-9_][a-z0-9._@-]*$`)

// validPart reports whether s may be one part of a key.
func validPart(s string) bool { return len(s) <= maxPart && partPattern.MatchString(s) }

// checkParts refuses parts that may not stand in a key.
func checkParts(what string, parts ...string) error {
	for _, p := range parts {
		if !validPart(p) {
			return fault.At(fault.Invalid, what, "use lower-case letters, digits and . _ @ -, at most 200 bytes", "%q cannot be part of a key", clip([]byte(p)))
		}
	}
	return nil
}

// checkProject refuses a tenant or project that is no name.
func (l *Log) checkProject(project string) error {
	if !memory.ValidName(l.tenant) {
		return fault.New(fault.Invalid, "tenant %q is not a name", clip([]byte(l.tenant)))
	}
	if !memory.ValidName(project) {
		return fault.New(fault.Invalid, "project %q is not a name", clip([]byte(project)))
	}
	return nil
}

func (l *Log) checkStream(project, stream string) error {
	if err := l.checkProject(project); err != nil {
		return err
	}
	return checkParts("stream", stream)
}

// streamPrefix is where a stream's segments stand, with the last slash.
func (l *Log) streamPrefix(project, stream string) string {
	if stream == memory.AdmitStream {
		return "log/" + l.tenant + "/" + project + "/admit/"
	}
	return "log/" + l.tenant + "/" + project + "/questions/" + stream + "/"
}

// seqDigits is the width of a sequence number in a key: the most that an int64
// needs, so that byte order is number order.
const seqDigits = 20

func seqName(seq int64) string { return fmt.Sprintf("%0*d", seqDigits, seq) }

func (l *Log) segmentKey(project, stream string, seq int64) string {
	return l.streamPrefix(project, stream) + seqName(seq) + ".jsonl"
}

// seqOf reads the number out of a segment's or vector object's base name.
func seqOf(base string) (int64, bool) {
	digits := strings.TrimSuffix(base, ".jsonl")
	if len(digits) != seqDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n > 0
}

func (l *Log) sourceKey(project string, key memory.SHA) string {
	return "log/" + l.tenant + "/" + project + "/sources/" + string(key) + ".jsonl"
}

func (l *Log) blobKey(project string, sha memory.SHA) string {
	return "blob/" + l.tenant + "/" + project + "/" + string(sha)
}

func (l *Log) vectorPrefix(project, space, stream string) string {
	return "vector/" + l.tenant + "/" + project + "/" + space + "/" + stream + "/"
}

func (l *Log) vectorKey(project, space, stream string, seq int64) string {
	return l.vectorPrefix(project, space, stream) + seqName(seq)
}

func (l *Log) foldKey(project, stream string) string {
	return "derived/fold/" + l.tenant + "/" + project + "/" + stream + ".json"
}

// opsKey joins ops/<kind>/<tenant>/<name>; name may have several parts.
func (l *Log) opsKey(kind, name string) (string, error) {
	if !memory.ValidName(l.tenant) {
		return "", fault.New(fault.Invalid, "tenant %q is not a name", clip([]byte(l.tenant)))
	}
	if err := checkParts(kind+" name", strings.Split(name, "/")...); err != nil {
		return "", err
	}
	return "ops/" + kind + "/" + l.tenant + "/" + name + ".json", nil
}
