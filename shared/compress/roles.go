package compress

import "strings"

// role is what a field's name says its value is.
type role uint8

const (
	failure role = 1 << iota // what went wrong: any value but an empty one, zero and false
	outcome                  // how something came out, in words
	code                     // a number that is 0 where all is well
	http                     // a status of HTTP
	good                     // true where all is well
	unnamed                  // an element of an array without a name
)

var roles = func() map[string]role {
	m := map[string]role{"": unnamed}
	for _, r := range []struct {
		role  role
		names string
	}{
		{failure, "error errors err exception exceptions failure failures failed fault stderr traceback stack_trace stacktrace panic error_message errormessage error_code errorcode error_count errorcount num_errors failed_count fatal crashed timed_out timedout"},
		{outcome, "level lvl severity status state result outcome conclusion message msg m reason detail details description log text type kind event phase health title summary output stdout action"},
		{code, "exit_code exitcode exit_status exitstatus returncode return_code rc exit"},
		{http, "status status_code statuscode http_status httpstatus code response_code"},
		{good, "success succeeded ok passed healthy valid ready"},
	} {
		for n := range strings.FieldsSeq(r.names) {
			m[n] |= r.role
		}
	}
	return m
}()

// role is that of a name in any letter case.
func (s *survey) role(name string) role {
	if r, ok := s.roles[name]; ok {
		return r
	}
	r := roles[strings.ToLower(name)]
	if len(s.roles) < maxFields {
		s.roles[name] = r
	}
	return r
}

// nothing are the words for no failure, in a field of failures.
var nothing = map[string]bool{"": true, "none": true, "null": true, "0": true, "false": true, "no": true, "ok": true, "no error": true, "success": true}

// failureValue reports that a scalar tells of a failure: by its value, the name
// says only what kind of value it is.
func failureValue(is role, raw string, kind byte) bool {
	switch {
	case is == 0:
		return false
	case is&failure != 0 && kind == '"':
		return !nothing[strings.ToLower(strings.TrimSpace(raw[1:len(raw)-1]))]
	case is&failure != 0 && kind == 'n', is&code != 0 && kind == 'n':
		return strings.Trim(raw, "-0.") != ""
	case is&failure != 0:
		return raw == "true"
	case kind == 'n':
		return is&http != 0 && len(raw) == 3 && (raw[0] == '4' || raw[0] == '5')
	case kind == 'l':
		return is&good != 0 && raw == "false"
	case kind != '"' || len(raw) < 5 || is&(outcome|unnamed) == 0:
		return false
	}
	v := raw[1 : len(raw)-1]
	switch li := classify(v); li.level {
	case strong:
		return true
	case weak:
		return is&outcome != 0 && (len(v) <= 40 && !li.common || hasFailWord(v))
	}
	return false
}

// hasFailWord reports a word of failWords anywhere in a value.
func hasFailWord(v string) bool {
	for w := range strings.FieldsFuncSeq(strings.ToLower(v), func(r rune) bool { return r < 0x80 && !alnum[byte(r)] }) {
		if words[w]&(fails|always) != 0 {
			return true
		}
	}
	return false
}
