package signature

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Labelled is one row of a manifest.json: a failing log and what is true of it.
//
//	{"file": "npm/e404.a.log", "tool": "npm", "group": "npm.e404", "root_line": 1, "detail": null, "differs_from": []}
type Labelled struct {
	File        string   `json:"file"`
	Tool        string   `json:"tool"`
	Group       string   `json:"group"`        // all rows of one group and tool are the same failure
	RootLine    *int     `json:"root_line"`    // 1-based; null: the log does not say what failed
	DiffersFrom []string `json:"differs_from"` // groups or files that must not share its detail_sha

	frames func(line int) int // the label's number of a line, where it is another
}

// maxManifest bounds the rows of a manifest.
const maxManifest = 100_000

// ParseManifest reads manifest.json.
func ParseManifest(b []byte) ([]Labelled, error) {
	var rows []Labelled
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, fault.At(fault.Invalid, "manifest.json", "an array of {file, tool, group, root_line, differs_from}", "manifest.json: %v", err)
	}
	if len(rows) == 0 || len(rows) > maxManifest {
		return nil, fault.New(fault.Invalid, "manifest.json has %d rows, from 1 to %d are read", len(rows), maxManifest)
	}
	return rows, nil
}

// Scores is what a folder of labelled logs says of the rules.
type Scores struct {
	Logs        int `json:"logs"`
	RootRight   int `json:"root_right"`
	Pairs       int `json:"pairs"`        // two rows of one group and tool
	PairsStable int `json:"pairs_stable"` // of those, sig_sha is equal, and detail_sha where they are runs of one failure
	Differ      int `json:"differ"`       // two rows that must not be one
	Collisions  int `json:"collisions"`   // of those, detail_sha is equal

	Wrong []Wrong   `json:"-"` // what is not right, in the manifest's order
	Tools []PerTool `json:"-"`
}

// Wrong is one row or pair that is not as its labels say.
type Wrong struct {
	File, Other string // Other: of a pair
	What        string // "root", "unstable", "collision"
	Want, Got   int    // lines
	Rule        string
	Normalised  string
}

// PerTool counts the rows of one tool.
type PerTool struct {
	Tool             string
	Logs, Right      int
	Pairs, Stable    int
	Differ, Collides int
}

// Score holds results, one a row, against their labels.
func Score(rows []Labelled, results []Result) Scores {
	var s Scores
	tools := map[string]*PerTool{}
	for i := range rows {
		name := rows[i].Tool
		if tools[name] == nil {
			tools[name] = &PerTool{Tool: name}
		}
		p := tools[name]
		s.Logs, p.Logs = s.Logs+1, p.Logs+1
		if right(&rows[i], &results[i]) {
			s.RootRight, p.Right = s.RootRight+1, p.Right+1
			continue
		}
		w := Wrong{File: rows[i].File, What: "root", Got: results[i].MatchedLine, Rule: results[i].Rule, Normalised: results[i].Normalised}
		if rows[i].RootLine != nil {
			w.Want = *rows[i].RootLine
		}
		s.Wrong = append(s.Wrong, w)
	}
	for i := range rows {
		for j := i + 1; j < len(rows); j++ {
			a, b := &rows[i], &rows[j]
			wrong := Wrong{File: a.File, Other: b.File, Normalised: results[i].Normalised, Rule: results[i].Rule}
			if a.Group == b.Group && a.Tool == b.Tool {
				s.Pairs++
				tools[a.Tool].Pairs++
				if results[i].SigSHA == results[j].SigSHA && (results[i].DetailSHA == results[j].DetailSHA || !sameFailure(a.File, b.File)) {
					s.PairsStable++
					tools[a.Tool].Stable++
				} else {
					wrong.What = "unstable"
					s.Wrong = append(s.Wrong, wrong)
				}
			}
			if differ(a, b) || differ(b, a) {
				s.Differ++
				tools[a.Tool].Differ++
				if results[i].DetailSHA == results[j].DetailSHA {
					s.Collisions++
					tools[a.Tool].Collides++
					wrong.What = "collision"
					s.Wrong = append(s.Wrong, wrong)
				}
			}
		}
	}
	for _, p := range tools {
		s.Tools = append(s.Tools, *p)
	}
	slices.SortFunc(s.Tools, func(a, b PerTool) int { return cmp.Compare(a.Tool, b.Tool) })
	return s
}

// right: the root line is found, or where there is none, nothing is claimed.
func right(row *Labelled, r *Result) bool {
	if row.RootLine == nil {
		return r.Confidence <= unhelpfulConf
	}
	return r.MatchedLine == *row.RootLine || r.MatchedLine > 0 && row.frames != nil && row.frames(r.MatchedLine) == *row.RootLine
}

// CountFrames lets a label count each carriage return that no line feed follows
// as the end of a line, as Python's splitlines does; matched_line never does,
// nor do editors.
func (row *Labelled) CountFrames(l *Log) {
	log := l.tail
	if l.head != nil || bytes.IndexByte(log, '\r') < 0 {
		return
	}
	row.frames = func(line int) int {
		n, at := 1, 1
		for i, c := range log {
			if at == line {
				// The line's own text is behind its last frame that is empty.
				for ; i < len(log) && log[i] != '\n'; i++ {
					if log[i] == '\r' && i+1 < len(log) && log[i+1] != '\n' {
						return 0
					}
				}
				return n
			}
			if c == '\n' {
				at++
				n++
			} else if c == '\r' && i+1 < len(log) && log[i+1] != '\n' {
				n++
			}
		}
		return n
	}
}

// sameFailure reports whether two files are runs of one failure: their names are
// equal up to the run, as npm/e404.a.log and npm/e404.b.log. Others of a group
// share the class and may be two instances.
func sameFailure(a, b string) bool { return failure(a) == failure(b) }

func failure(file string) string {
	s := strings.TrimPrefix(path.Base(file), "wrapped_")
	s = strings.TrimSuffix(s, path.Ext(s))
	return strings.TrimSuffix(s, path.Ext(s))
}

func differ(a, b *Labelled) bool {
	return slices.Contains(a.DiffersFrom, b.Group) || slices.Contains(a.DiffersFrom, b.File)
}

// Wilson is the 95 % interval of k of n (Wilson, 1927), in [0,1].
func Wilson(k, n int) (lo, hi float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959964 // the normal distribution's 97.5 % point
	p, nn := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*nn)) / (1 + z*z/nn)
	half := z / (1 + z*z/nn) * math.Sqrt(p*(1-p)/nn+z*z/(4*nn*nn))
	return max(0, mid-half), min(1, mid+half)
}
