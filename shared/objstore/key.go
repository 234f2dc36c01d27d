package objstore

import (
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
)

// MaxKeyBytes is the longest key S3 stores (AWS "Naming Amazon S3 objects":
// 1,024 bytes of UTF-8).
const MaxKeyBytes = 1024

const keyHint = `a key is parts joined by "/": no part empty, "." or "..", no control characters, at most 1,024 bytes of UTF-8`

// ValidKey refuses, as fault.Invalid, a key that some driver could not hold:
// empty, longer than MaxKeyBytes, not UTF-8, with a control character, or with
// a part that is empty, "." or "..".
func ValidKey(key string) error {
	if key == "" {
		return fault.At(fault.Invalid, "key", keyHint, "the key is empty")
	}
	if err := validChars(key); err != nil {
		return err
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part == "." || part == ".." {
			return fault.At(fault.Invalid, "key", keyHint, "the key %q has a part %q", clip(key), part)
		}
	}
	return nil
}

// validPrefix is ValidKey for a prefix, which may be empty and may end inside
// a part.
func validPrefix(prefix string) error {
	if err := validChars(prefix); err != nil {
		return err
	}
	if strings.HasPrefix(prefix, "/") || strings.Contains(prefix, "//") {
		return fault.At(fault.Invalid, "prefix", keyHint, "the prefix %q has an empty part", clip(prefix))
	}
	return nil
}

func validChars(s string) error {
	switch {
	case len(s) > MaxKeyBytes:
		return fault.At(fault.Invalid, "key", keyHint, "the key %q… has %d bytes", clip(s), len(s))
	case !utf8.ValidString(s):
		return fault.At(fault.Invalid, "key", keyHint, "the key %q is not UTF-8", clip(s))
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f || r == 0xfffe || r == 0xffff { // the last two are not in XML, S3's listing
			return fault.At(fault.Invalid, "key", keyHint, "the key %q has a control character", clip(s))
		}
	}
	return nil
}

// clip keeps a hostile key from filling a log line.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80]
	}
	return s
}
