package lesson

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// part is one simple command of a shell line, without what does not say what
// it does: wrappers, redirections and the filters behind it.
type part struct {
	words  []string // the program first
	with   []string // assignments and sudo before it, `source` and `export` before the line
	dir    string   // what `cd` said; "" where nothing did
	masked bool     // its exit code is not the line's
	writes []string // files that it is redirected to
	input  string   // of a here-document
	filter bool     // a filter behind it may have taken lines out of its output
	grep   string   // the pattern of the one filter that did, as a regular expression
	head   int      // no more than so many lines of its output are there; 0: all
	behind bool     // it goes on in the background
}

// Limits of what is parsed. A longer line is one command of its own words.
const (
	maxCommandBytes = 16 << 10
	maxNested       = 200
	maxParts        = 64
	maxShellDepth   = 3
)

// parseShell takes a line apart. What no shell would read is one command of
// its words.
func parseShell(line string) []part {
	w := &shellWalk{}
	w.line(line, false, 0)
	return w.parts
}

type shellWalk struct {
	parts    []part
	dir      string
	with     []string
	pipefail bool
	errexit  bool
}

func (w *shellWalk) line(line string, masked bool, depth int) {
	if len(line) > maxCommandBytes || strings.Count(line, "(")+strings.Count(line, "{") > maxNested {
		w.add(part{words: clipWords(strings.Fields(line[:min(len(line), maxCommandBytes)])), masked: masked})
		return
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		// A cut or foreign line; its first line still says what was run.
		head, _, _ := strings.Cut(strings.TrimSpace(line), "\n")
		w.add(part{words: clipWords(strings.Fields(head)), masked: true})
		return
	}
	w.stmts(f.Stmts, masked, depth)
}

func clipWords(words []string) []string { return words[:min(len(words), 256)] }

func (w *shellWalk) add(p part) {
	if len(w.parts) < maxParts && len(p.words) > 0 {
		w.parts = append(w.parts, p)
	}
}

// stmts walks a list: of statements that stand after one another only the last
// gives the exit code.
func (w *shellWalk) stmts(list []*syntax.Stmt, masked bool, depth int) {
	for i, s := range list {
		w.stmt(s, masked || i < len(list)-1 && !w.errexit, depth)
	}
}

func (w *shellWalk) stmt(s *syntax.Stmt, masked bool, depth int) {
	if s == nil || s.Cmd == nil {
		return
	}
	at := len(w.parts)
	masked = masked || s.Negated || s.Background
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		w.call(c, masked, depth)
	case *syntax.DeclClause:
		for _, a := range c.Args {
			if a.Name != nil && a.Value != nil {
				w.with = append(w.with, a.Name.Value+"="+wordText(a.Value))
			}
		}
	case *syntax.BinaryCmd:
		w.binary(c, masked, depth)
	case *syntax.Subshell:
		dir := w.dir
		w.stmts(c.Stmts, masked, depth)
		w.dir = dir
	case *syntax.Block:
		w.stmts(c.Stmts, masked, depth)
	case *syntax.TimeClause:
		w.stmt(c.Stmt, masked, depth)
	case *syntax.IfClause:
		for x := c; x != nil; x = x.Else {
			w.stmts(x.Cond, true, depth)
			w.stmts(x.Then, true, depth)
		}
	case *syntax.WhileClause:
		w.stmts(c.Cond, true, depth)
		w.stmts(c.Do, true, depth)
	case *syntax.ForClause:
		w.stmts(c.Do, true, depth)
	case *syntax.CaseClause:
		for _, it := range c.Items {
			w.stmts(it.Stmts, true, depth)
		}
	}
	for i := at; i < len(w.parts); i++ {
		p := &w.parts[i]
		p.behind = p.behind || s.Background
		for _, r := range s.Redirs {
			w.redirect(p, r)
		}
	}
}

func (w *shellWalk) redirect(p *part, r *syntax.Redirect) {
	switch r.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.ClbOut, syntax.RdrAll, syntax.AppAll:
		if r.N != nil && r.N.Value == "2" {
			return
		}
		if to := wordText(r.Word); to != "" && !strings.HasPrefix(to, "/dev/") && len(p.writes) < 8 {
			p.writes = append(p.writes, to)
		}
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil {
			p.input = wordText(r.Hdoc)
		}
	}
}

func (w *shellWalk) binary(c *syntax.BinaryCmd, masked bool, depth int) {
	switch c.Op {
	case syntax.AndStmt:
		w.stmt(c.X, masked, depth)
		w.stmt(c.Y, masked, depth)
	case syntax.OrStmt:
		w.stmt(c.X, true, depth)
		w.stmt(c.Y, true, depth)
	default: // a pipe
		at := len(w.parts)
		w.stmt(c.X, masked || !w.pipefail, depth)
		mid := len(w.parts)
		w.stmt(c.Y, masked, depth)
		if mid == len(w.parts) {
			return
		}
		// `x | tail`, `x | tee log`: a filter behind. `echo x | y`, `yes | y`: one
		// before, that is no more than y's input.
		if y := &w.parts[mid]; filters[path.Base(y.words[0])] {
			takes := cutters[path.Base(y.words[0])]
			pattern, head := "", headLines(y.words)
			if takes {
				pattern = grepPattern(y.words)
			}
			files := y.writes
			if path.Base(y.words[0]) == "tee" {
				files = append(files, operands(y.words[1:])...)
			}
			w.parts = w.parts[:mid]
			for i := at; i < mid; i++ {
				p := &w.parts[i]
				if takes && p.filter {
					pattern = "" // two of them
				}
				if takes {
					p.grep = pattern
				}
				if head > 0 && (p.head == 0 || head < p.head) {
					p.head = head
				}
				p.filter = p.filter || takes
				p.writes = append(p.writes, files[:min(len(files), 8)]...)
			}
		} else if mid == at+1 && feeders[path.Base(w.parts[at].words[0])] {
			w.parts = slices.Delete(w.parts, at, mid)
		}
	}
}

func operands(words []string) (out []string) {
	for _, x := range words {
		if !strings.HasPrefix(x, "-") {
			out = append(out, x)
		}
	}
	return out
}

func (w *shellWalk) call(c *syntax.CallExpr, masked bool, depth int) {
	var with []string
	for _, a := range c.Assigns {
		if a.Name != nil && a.Value != nil {
			with = append(with, a.Name.Value+"="+wordText(a.Value))
		}
	}
	words := make([]string, 0, len(c.Args))
	for _, a := range c.Args {
		words = append(words, wordText(a))
	}
	words = clipWords(words)
	if len(words) == 0 {
		w.with = append(w.with, with...)
		return
	}
	words, with = unwrap(words, with)
	if len(words) == 0 {
		return
	}
	switch name := path.Base(words[0]); {
	case name == "cd" || name == "pushd":
		if len(words) > 1 {
			w.dir = joinDir(w.dir, words[1])
		}
	case name == "source" || name == ".":
		w.with = append(w.with, strings.Join(words, " "))
	case name == "set":
		all := strings.Join(words[1:], " ")
		w.pipefail = w.pipefail || strings.Contains(all, "pipefail")
		w.errexit = w.errexit || strings.HasPrefix(all, "-e") || strings.Contains(all, "errexit")
	case shells[name] && depth < maxShellDepth && scriptOf(words) != "":
		w.line(scriptOf(words), masked, depth+1)
	default:
		w.add(part{words: words, with: append(slices.Clone(w.with), with...), dir: w.dir, masked: masked})
	}
}

// scriptOf is the script of `bash -lc SCRIPT`.
func scriptOf(words []string) string {
	for i, x := range words[1:] {
		if strings.HasPrefix(x, "-") && !strings.HasPrefix(x, "--") && strings.HasSuffix(x, "c") && i+2 < len(words) {
			return words[i+2]
		}
		if !strings.HasPrefix(x, "-") {
			break
		}
	}
	return ""
}

func joinDir(from, to string) string {
	if from == "" || strings.HasPrefix(to, "/") || strings.HasPrefix(to, "~") || strings.HasPrefix(to, "$") {
		return path.Clean(to)
	}
	return path.Join(from, to)
}

// unwrap takes away what runs a command: timeout, env, sudo, npx, uv run …
// What may be the reason that it passes goes to with.
func unwrap(words, with []string) (rest, env []string) {
	env = with
	for range 8 {
		if len(words) == 0 {
			return words, env
		}
		name := path.Base(words[0])
		w, ok := wrappers[name]
		if !ok {
			break
		}
		if len(w.sub) > 0 {
			if len(words) < 2 || !slices.Contains(w.sub, words[1]) {
				break
			}
		}
		i := 1 + min(len(w.sub), 1)
		for i < len(words) {
			x := words[i]
			if strings.HasPrefix(x, "-") {
				if slices.Contains(w.valued, x) {
					i++
				}
				i++
				if x == "--" {
					break
				}
				continue
			}
			if k := strings.IndexByte(x, '='); w.assigns && k > 0 && !strings.ContainsAny(x[:k], "/.") {
				env = append(env, x)
				i++
				continue
			}
			break
		}
		i += w.args
		if i >= len(words) {
			break // the wrapper alone
		}
		if w.kept {
			env = append(env, name)
		}
		words = words[i:]
	}
	return words, env
}
