package compress

import (
	"fmt"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
)

// switches are the variables that say what is compressed (brief U8), each on or
// off.
var switches = []struct {
	name  string
	usual bool
	set   func(o *Options, on bool)
}{
	{"MEM_CONTEXT_OPTIMIZER", true, func(o *Options, on bool) { o.Off = !on }},
	{"MEM_COMPRESS_JSON", true, func(o *Options, on bool) { o.Keep[JSON], o.Keep[JSONL] = !on, !on }},
	{"MEM_COMPRESS_LOGS", true, func(o *Options, on bool) { o.Keep[Log] = !on }},
	{"MEM_COMPRESS_DIFF", true, func(o *Options, on bool) { o.Keep[Diff] = !on }},
	{"MEM_COMPRESS_TEXT", true, func(o *Options, on bool) { o.Keep[Text] = !on }},
	// Off, as an outline of code is of no use to whoever must change it.
	{"MEM_COMPRESS_CODE", false, func(o *Options, on bool) { o.Code = on }},
}

// FromEnv reads the switches. All wrong ones are named at once.
func FromEnv(getenv func(string) string) (o Options, err error) {
	var bad []string
	for _, s := range switches {
		on, ok := parseSwitch(getenv(s.name), s.usual)
		if !ok {
			bad = append(bad, fmt.Sprintf("%s=%q", s.name, getenv(s.name)))
		}
		s.set(&o, on)
	}
	if len(bad) > 0 {
		return o, fault.At(fault.Invalid, "", "on or off", "not a switch: %s", strings.Join(bad, ", "))
	}
	return o, nil
}

func parseSwitch(v string, usual bool) (on, ok bool) {
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "":
		return usual, true
	case "on", "true", "1", "yes":
		return true, true
	case "off", "false", "0", "no":
		return false, true
	}
	return usual, false
}
