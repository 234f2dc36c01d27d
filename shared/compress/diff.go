package compress

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Of a diff every line that changes something stays, and every header. Context
// goes: hunks are cut anew around their changes, with counts of their own, so
// that `git apply --unidiff-zero` makes the same tree. Context of at most
// joinContext lines between two changes stays, as a header would cost as much.
const joinContext = 2

// hunkCost is about what a header and its mark take, in bytes.
const hunkCost = 40

// leastContext is the least context in bytes that is worth a hunk cut anew.
const leastContext = 48

// lockFiles are written by programs: of a change to one its size tells enough.
var lockFiles = map[string]bool{
	"package-lock.json": true, "npm-shrinkwrap.json": true, "yarn.lock": true, "pnpm-lock.yaml": true, "bun.lock": true, "deno.lock": true, "Cargo.lock": true, "go.sum": true, "go.work.sum": true,
	"poetry.lock": true, "Pipfile.lock": true, "uv.lock": true, "pdm.lock": true, "pixi.lock": true, "composer.lock": true, "Gemfile.lock": true, "mix.lock": true, "rebar.lock": true, "flake.lock": true, "pubspec.lock": true,
	"Podfile.lock": true, "Package.resolved": true, "Cartfile.resolved": true, "packages.lock.json": true, "gradle.lockfile": true, ".terraform.lock.hcl": true, "conan.lock": true, "Chart.lock": true, "MODULE.bazel.lock": true, "stack.yaml.lock": true, "Manifest.toml": true,
}

// lockLines is the least body of a lock file that is left out.
const lockLines = 20

func (o *Options) compressDiff(text, hash string) (draft, bool) {
	p, ok := parseDiff(text)
	if !ok {
		return draft{}, false
	}
	w := diffWriter{p: &p, out: make([]string, 0, len(p.lines)/2)}
	at := 0
	for i := range p.files {
		f := &p.files[i]
		w.out = append(w.out, p.lines[at:f.from]...)
		w.file(f, o)
		at = f.to
	}
	w.out = append(w.out, p.lines[at:]...)
	if len(w.omissions) == 0 {
		return draft{text: text}, true
	}
	out := strings.Join(w.out, "\n")
	if hash != "" { // git passes over it, as over all that stands behind a patch
		n := 0
		for _, om := range w.omissions {
			n += om.Count
		}
		out = lastLine(out, footerLine(n, len(p.lines), "lines", hash))
	}
	return draft{text: out, omissions: w.omissions}, true
}

type diffWriter struct {
	p         *patch
	out       []string
	omissions []Omission

	sides  []side // of the hunk that is written, kept for the next
	groups []group
	head   []byte
}

func (w *diffWriter) omit(from, to int) int {
	if to > from {
		w.omissions = append(w.omissions, Omission{From: from + 1, To: to, Count: to - from, Unit: "lines"})
	}
	return to - from
}

func (w *diffWriter) file(f *fileDiff, o *Options) {
	if f.plain && f.locked(o.Query) && f.to-f.from >= lockLines {
		w.lock(f)
		return
	}
	at := f.from
	for _, h := range f.hunks {
		w.out = append(w.out, w.p.lines[at:h.at]...)
		w.hunk(h)
		at = h.to
	}
	w.out = append(w.out, w.p.lines[at:f.to]...)
}

// locked reports a lock file that the question does not name.
func (f *fileDiff) locked(query string) bool {
	if len(f.names) != 2 || len(f.hunks) == 0 {
		return false
	}
	base := path.Base(f.names[1])
	return lockFiles[base] && path.Base(f.names[0]) == base && !strings.Contains(query, base)
}

// lock puts one line in the place of a file's part. git passes over it: it is no
// header.
func (w *diffWriter) lock(f *fileDiff) {
	plus, minus := 0, 0
	for _, h := range f.hunks {
		for _, l := range w.p.lines[h.at+1 : h.to] {
			switch {
			case strings.HasPrefix(l, "+"):
				plus++
			case strings.HasPrefix(l, "-"):
				minus++
			}
		}
	}
	n := w.omit(f.from, f.to)
	w.out = append(w.out, fmt.Sprintf("[... %d lines omitted, +%d -%d: %s]", n, plus, minus, strings.TrimSuffix(w.p.lines[f.from], "\r")))
}

// hunk writes a hunk's changes as hunks of their own.
func (w *diffWriter) hunk(h hunk) {
	body := w.p.lines[h.at+1 : h.to]
	w.sides = sidesOf(w.sides[:0], body)
	w.groups = groupsOf(w.groups[:0], w.sides)
	whole, kept := hunkCost, 0
	for _, l := range body {
		whole += len(l) + 1
	}
	for _, g := range w.groups {
		kept += hunkCost
		for _, l := range body[g.from:g.to] {
			kept += len(l) + 1
		}
	}
	if len(w.groups) == 0 || whole-kept < leastContext {
		w.out = append(w.out, w.p.lines[h.at:h.to]...)
		return
	}
	cr := strings.HasSuffix(h.section, "\r")
	section := strings.TrimSuffix(h.section, "\r")
	at := 0
	for k, g := range w.groups {
		n := w.omit(h.at+1+at, h.at+1+g.from)
		if k == len(w.groups)-1 { // what is left out behind the last change is told here too
			n += w.omit(h.at+1+g.to, h.to)
		}
		b := w.head[:0]
		b = appendPosition(append(b, "@@ -"...), h.oldStart, h.oldCount, g.old, g.oldN)
		b = appendPosition(append(b, " +"...), h.newStart, h.newCount, g.now, g.newN)
		b = append(append(b, " @@"...), section...)
		if n > 0 {
			b = append(strconv.AppendInt(append(b, " [... "...), int64(n), 10), " omitted]"...)
		}
		if cr {
			b = append(b, '\r')
		}
		w.head = b
		w.out = append(append(w.out, string(b)), body[g.from:g.to]...)
		at = g.to
	}
}

// group is a run of changes in a hunk, lines [from, to) of its body: how many
// lines of each file stand before it, and how many it has.
type group struct{ from, to, old, now, oldN, newN int }

func groupsOf(groups []group, sides []side) []group {
	old, now := 0, 0
	for i := 0; i < len(sides); {
		if sides[i] == both || sides[i] == noteBoth {
			old, now = old+sides[i].old(), now+sides[i].now()
			i++
			continue
		}
		g := group{from: i, old: old, now: now}
		for last := i; i < len(sides); i++ { // to the last change with no more context than joinContext before it
			if sides[i] != both && sides[i] != noteBoth {
				last = i
			} else if i-last > joinContext {
				break
			}
			g.to = last + 1
		}
		for i = g.from; i < g.to; i++ {
			g.oldN, g.newN = g.oldN+sides[i].old(), g.newN+sides[i].now()
		}
		old, now = old+g.oldN, now+g.newN
		groups = append(groups, g)
	}
	return groups
}

// appendPosition writes the range of n lines after the first `before` lines of a range
// that begins at start. A range of no lines is named by the line before it, and
// a hunk that had none at all begins one line later than it says.
func appendPosition(b []byte, start, count, before, n int) []byte {
	if count == 0 {
		start++
	}
	at := start + before
	if n == 0 {
		at--
	}
	b = strconv.AppendInt(b, int64(at), 10)
	if n == 1 {
		return b
	}
	return strconv.AppendInt(append(b, ','), int64(n), 10)
}

// side tells which of the two files a line of a hunk is of.
type side uint8

const (
	both side = iota
	oldOnly
	newOnly
	note     // that there is no line feed at the end of the file, of a changed line
	noteBoth // the same, of context
)

func (s side) old() int {
	if s == both || s == oldOnly {
		return 1
	}
	return 0
}

func (s side) now() int {
	if s == both || s == newOnly {
		return 1
	}
	return 0
}

func sidesOf(sides []side, body []string) []side {
	for i, l := range body {
		sides = append(sides, both)
		switch {
		case l == "" || l[0] == ' ' || l[0] == '\r':
		case l[0] == '-':
			sides[i] = oldOnly
		case l[0] == '+':
			sides[i] = newOnly
		case i > 0 && sides[i-1] == both:
			sides[i] = noteBoth
		default:
			sides[i] = note
		}
	}
	return sides
}
