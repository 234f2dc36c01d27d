package compress

import (
	"strconv"
	"strings"
)

// patch is a unified diff as its lines: what stands between files (a commit, a
// mail) and the files' parts.
type patch struct {
	lines []string
	files []fileDiff
}

// fileDiff is the part of one file, lines [from, to).
type fileDiff struct {
	from, to int
	names    []string // as the header gives them, without a/ and b/
	plain    bool     // nothing but changed lines: no rename, mode, creation or deletion
	hunks    []hunk
}

// hunk is lines [at, to): its header at `at`, then its body.
type hunk struct {
	at, to             int
	oldStart, oldCount int
	newStart, newCount int
	section            string // what follows the second @@
}

// parseDiff reads by the counts of the headers. ok is false for what is not
// understood to the letter: combined diffs, counts that lie, unknown body lines.
func parseDiff(text string) (p patch, ok bool) {
	p.lines = strings.Split(text, "\n")
	f := -1 // the open file
	closeFile := func(at int) {
		if f >= 0 {
			p.files[f].to = at
			f = -1
		}
	}
	for i := 0; i < len(p.lines); {
		l := p.lines[i]
		switch {
		case strings.HasPrefix(l, "diff --cc "), strings.HasPrefix(l, "diff --combined "), strings.HasPrefix(l, "@@@"):
			return p, false
		case strings.HasPrefix(l, "diff --git "):
			closeFile(i)
			p.files = append(p.files, fileDiff{from: i, plain: true})
			f = len(p.files) - 1
			i++
		case strings.HasPrefix(l, "--- ") && i+1 < len(p.lines) && strings.HasPrefix(p.lines[i+1], "+++ "):
			if f < 0 || len(p.files[f].hunks) > 0 { // no git header before it
				closeFile(i)
				p.files = append(p.files, fileDiff{from: i, plain: true})
				f = len(p.files) - 1
			}
			p.files[f].name(l[4:])
			p.files[f].name(p.lines[i+1][4:])
			i += 2
		case strings.HasPrefix(l, "@@ -"):
			if f < 0 {
				return p, false
			}
			h, next, ok := p.hunk(i)
			if !ok {
				return p, false
			}
			p.files[f].hunks = append(p.files[f].hunks, h)
			i = next
		default:
			if f >= 0 && len(p.files[f].hunks) > 0 {
				if strings.HasPrefix(l, "+") || strings.HasPrefix(l, "-") && l != "-- " && l != "--" || strings.HasPrefix(l, `\`) {
					return p, false // more body than the counts say
				}
				closeFile(i)
			}
			if f >= 0 && !strings.HasPrefix(l, "index ") {
				p.files[f].plain = false
			}
			i++
		}
	}
	closeFile(len(p.lines))
	return p, len(p.files) > 0
}

func (f *fileDiff) name(s string) {
	s, _, _ = strings.Cut(strings.TrimSuffix(s, "\r"), "\t")
	s = strings.Trim(s, `"`)
	if s == "/dev/null" {
		f.plain = false
		return
	}
	if strings.HasPrefix(s, "a/") || strings.HasPrefix(s, "b/") {
		s = s[2:]
	}
	f.names = append(f.names, s)
}

// hunk reads the header at i and as many lines as it counts.
func (p *patch) hunk(i int) (h hunk, next int, ok bool) {
	if h, ok = parseHeader(p.lines[i]); !ok {
		return h, 0, false
	}
	h.at = i
	old, now := h.oldCount, h.newCount
	for i++; old > 0 || now > 0; i++ {
		if i >= len(p.lines) {
			return h, 0, false
		}
		l := p.lines[i]
		switch {
		case l == "" || l == "\r" || l[0] == ' ': // a context line that lost its blank counts as one
			if i == len(p.lines)-1 && l == "" {
				return h, 0, false // the end of the text, not a line
			}
			old--
			now--
		case l[0] == '-':
			old--
		case l[0] == '+':
			now--
		case l[0] == '\\':
		default:
			return h, 0, false
		}
		if old < 0 || now < 0 {
			return h, 0, false
		}
	}
	if i < len(p.lines) && strings.HasPrefix(p.lines[i], `\`) {
		i++
	}
	h.to = i
	return h, i, true
}

// parseHeader reads @@ -l[,n] +l[,n] @@[ section].
func parseHeader(l string) (h hunk, ok bool) {
	rest, ok := strings.CutPrefix(l, "@@ -")
	if !ok {
		return h, false
	}
	old, rest, ok := strings.Cut(rest, " +")
	if !ok {
		return h, false
	}
	now, section, ok := strings.Cut(rest, " @@")
	if !ok {
		return h, false
	}
	if h.oldStart, h.oldCount, ok = lineRange(old); !ok {
		return h, false
	}
	h.newStart, h.newCount, ok = lineRange(now)
	h.section = section
	return h, ok
}

func lineRange(s string) (start, count int, ok bool) {
	a, b, two := strings.Cut(s, ",")
	start, err := strconv.Atoi(a)
	if err != nil || start < 0 || a[0] == '+' {
		return 0, 0, false
	}
	if !two {
		return start, 1, true
	}
	count, err = strconv.Atoi(b)
	return start, count, err == nil && count >= 0 && b[0] != '+'
}
