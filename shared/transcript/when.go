package transcript

import (
	"strconv"
	"strings"
	"time"
)

// layouts of times as transcripts write them; without a zone they are UTC.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02", "2006/01/02"}

// parseTime reads a time; the result is UTC.
func parseTime(s string) (time.Time, bool) {
	if len(s) == 24 && s[10] == 'T' && s[19] == '.' && s[23] == 'Z' { // every record of Claude Code
		if t, ok := isoMillis(s); ok {
			return t, true
		}
	}
	if len(s) > 64 {
		return time.Time{}, false
	}
	s = strings.TrimSpace(s)
	for _, l := range layouts {
		if t, err := time.Parse(l, s); err == nil {
			return inRange(t.UTC())
		}
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return numberTime(f)
	}
	return time.Time{}, false
}

// isoMillis is time.Parse for 2006-01-02T15:04:05.000Z.
func isoMillis(s string) (time.Time, bool) {
	var n [7]int
	for k, at := range [7][2]int{{0, 4}, {5, 7}, {8, 10}, {11, 13}, {14, 16}, {17, 19}, {20, 23}} {
		for _, c := range []byte(s[at[0]:at[1]]) {
			if c < '0' || c > '9' {
				return time.Time{}, false
			}
			n[k] = n[k]*10 + int(c-'0')
		}
	}
	if s[4] != '-' || s[7] != '-' || s[13] != ':' || s[16] != ':' || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[3] > 23 || n[4] > 59 || n[5] > 59 {
		return time.Time{}, false
	}
	t := time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], n[6]*1e6, time.UTC)
	return t, t.Day() == n[2]
}

// numberTime reads a Unix time whose unit its size tells: seconds, milli-,
// micro- or nanoseconds. Each bound is the year 5138 in the smaller unit, far
// under 1973 in the larger.
func numberTime(f float64) (time.Time, bool) {
	switch {
	case f >= 1e17:
		return inRange(time.Unix(0, int64(f)).UTC())
	case f >= 1e14:
		return inRange(time.UnixMicro(int64(f)).UTC())
	case f >= 1e11:
		return inRange(time.UnixMilli(int64(f)).UTC())
	case f > 0:
		sec := int64(f)
		return inRange(time.Unix(sec, int64((f-float64(sec))*1e9)).UTC())
	}
	return time.Time{}, false
}

// inRange refuses years that no record can have: JSON times end at 9999.
func inRange(t time.Time) (time.Time, bool) {
	return t, t.Year() >= 1 && t.Year() <= 9999
}

// timeOf reads a string or a number. raw is as it stands.
func timeOf(b []byte, v span) (t time.Time, raw string, ok bool) {
	if !v.ok() {
		return t, "", false
	}
	if b[v.s] == '"' {
		raw = text(b, v)
	} else {
		raw = string(b[v.s:min(v.e, v.s+64)])
	}
	t, ok = parseTime(raw)
	return t, raw, ok
}
