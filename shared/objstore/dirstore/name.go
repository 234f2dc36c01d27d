package dirstore

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// maxNameBytes is the longest file name written; file systems hold 255 bytes,
// and a copying tool may add a suffix of its own.
const maxNameBytes = 240

const (
	escape    = '%'
	otherMark = "%"  // ends the name of a folder with a dot, and of a file without one
	longMark  = "%#" // begins a name kept in the names folder
)

// names maps key parts to file names and back.
//
// A part keeps its own name wherever it can. The exceptions, in the order in
// which they are applied:
//
//	"%"                        -> "%25"
//	a leading ".mneme"         -> "%2Emneme", so that no key meets sysDir
//	more than maxNameBytes     -> "%#" + sha256 of the part; the part itself stands in names/<sha256>
//	a folder with a dot in it, and a file without one, gets "%" at its end,
//	so that the objects "a" and "a/b" stand side by side
//
// A file name that no part maps to is not an object and is not listed.
type names struct{ dir string } // where long parts are kept

// encode is the file name of part, a folder's when isDir.
func (names) encode(part string, isDir bool) string {
	name := strings.ReplaceAll(part, "%", "%25")
	if strings.HasPrefix(name, sysPrefix) {
		name = "%2E" + name[1:]
	}
	dotted := strings.Contains(part, ".")
	if len(name) > maxNameBytes {
		sum := sha256.Sum256([]byte(part))
		name, dotted = longMark+hex.EncodeToString(sum[:]), true
	}
	if dotted == isDir {
		name += otherMark
	}
	return name
}

// decode is the part that has this file name; false when none has.
func (n names) decode(name string, isDir bool) (string, bool) {
	bare := strings.TrimSuffix(name, otherMark)
	var part string
	if sum, long := strings.CutPrefix(bare, longMark); long {
		data, err := os.ReadFile(filepath.Join(n.dir, filepath.Base(sum)))
		if err != nil {
			return "", false
		}
		part = string(data)
	} else {
		part = strings.ReplaceAll(strings.ReplaceAll(bare, "%2E", "."), "%25", "%")
	}
	return part, n.encode(part, isDir) == name
}

// path is the file of key, relative to the data or the metadata folder.
func (n names) path(key string) string {
	var b strings.Builder
	for {
		part, rest, more := strings.Cut(key, "/")
		if !more {
			b.WriteString(n.encode(part, false))
			return b.String()
		}
		b.WriteString(n.encode(part, true))
		b.WriteByte(filepath.Separator)
		key = rest
	}
}

// folder is the folder in which the keys that begin with dirKey lie; dirKey is
// empty or ends with "/".
func (n names) folder(dirKey string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimSuffix(dirKey, "/"), "/") {
		if part == "" {
			continue
		}
		b.WriteString(n.encode(part, true))
		b.WriteByte(filepath.Separator)
	}
	return b.String()
}

// longParts are the parts of key that stand in the names folder.
func (n names) longParts(key string) []string {
	if len(key) <= maxNameBytes/3 { // every byte escaped would still fit
		return nil
	}
	var long []string
	for part := range strings.SplitSeq(key, "/") {
		if strings.HasPrefix(n.encode(part, false), longMark) {
			long = append(long, part)
		}
	}
	return long
}
