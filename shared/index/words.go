package index

import (
	"iter"
	"strings"
)

// functionWords are words of a question that say nothing about its subject. They count
// in a score, where their idf is small, but not in the share of idf that the floor
// tests: in a small index a word like "which" stands nowhere and would weigh like a name.
const functionWords = `a about after again all also am an and any are as at be because been before being
		but by can cannot could did do does doing don dont done down during each ever for from get give got had has have having he her here him his
		how i if im in into is isnt it its just let me more most my no nor not of off on once one only or other our out over own
		please same say says said she should so some such tell than that the their them then there these they this those through to too
		under until up us use used very was we were what whats
		much many often long far soon big small few need want like think know happen thing things way ways make makes made take takes took taken allow allowed come
		comes came go goes going went mean means kind sort exactly currently now still never always anything something everything nothing people someone when where which while who whom whose why will with would you your`

// FunctionWords gives them, in lower case.
func FunctionWords() iter.Seq[string] { return strings.FieldsSeq(functionWords) }

// maxCode is the longest code, in bytes: a sha256 in hex fits, a base64 blob does not.
const maxCode = 64

// Code is s when it has the form of an error code, an issue key or a constant:
//
//	TS2322 E0308 YN0000 PGRST116    letters, then two digits or more
//	ABC-123                         the same with a hyphen
//	ERESOLVE ENOENT                 E and three capitals or more
//	ERR_PNPM_X MAX_ATTEMPTS         capitals joined by _
func Code(s string) string {
	if len(s) < 3 || len(s) > maxCode {
		return ""
	}
	upper, digits, joins := 0, 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z':
			if digits > 0 && joins == 0 {
				return ""
			}
			upper++
		case c >= '0' && c <= '9':
			digits++
		case c == '_' && i > 0, c == '-' && i > 0 && digits == 0 && joins == 0:
			joins++
		default:
			return ""
		}
	}
	switch {
	case s[0] < 'A' || s[0] > 'Z':
		return ""
	case joins > 0 && strings.Contains(s, "_"):
		return s
	case digits >= 2 && upper <= 10:
		return s
	case digits == 0 && joins == 0 && s[0] == 'E' && len(s) >= 4 && s != "ERROR":
		return s
	}
	return ""
}
