package lesson

import (
	"path"
	"slices"
	"strings"
)

// task is what a simple command does, in a form in which two spellings of one
// thing are equal: `timeout 60 npx jest --color -t x` and `yarn exec jest -t x`.
type task struct {
	name    string   // program, with its subcommand or its script
	flags   []string // what changes what it does, sorted
	narrow  []string // what it leaves out, sorted
	targets []string // operands, in order
	with    []string // assignments and sudo, sorted
	dir     string
	part    *part
}

// taskOf gives the task of a simple command.
func taskOf(p *part) task {
	t := task{part: p, dir: p.dir, with: sorted(p.with)}
	words := p.words
	name := programOf(words[0])
	rest := words[1:]
	switch {
	case name == "python" && len(rest) > 1 && rest[0] == "-m":
		name, rest = programOf(rest[1]), rest[2:]
	case name == "uv" && len(rest) > 0 && rest[0] == "pip":
		name, rest = "pip", rest[1:]
	case name == "docker" && len(rest) > 0 && rest[0] == "compose":
		name, rest = "docker compose", rest[1:]
	}
	switch {
	case managers[name]:
		t.name, rest = managed(name, rest)
	case name == "git" || name == "make" || name == "kubectl" || subcommands[name]:
		t.name = name
		if name != "make" {
			if sub, after, ok := subcommand(rest); ok {
				t.name, rest = name+" "+sub, after
			}
		}
	default:
		t.name = name
	}
	if t.name == "mise run" || t.name == "mise r" {
		t.name = "mise run"
	}
	if t.name == "git commit" {
		rest = nil // whatever the message, and what is in it
		if slices.Contains(p.words, "--no-verify") {
			t.narrow = []string{"--no-verify"}
		}
	}
	t.operands(rest)
	return t
}

func programOf(word string) string {
	name := path.Base(strings.ReplaceAll(word, `\`, "/"))
	for _, ext := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, ext)
	}
	if strings.HasPrefix(name, "python3.") {
		name = "python"
	}
	if c, ok := canonical[name]; ok {
		return c
	}
	return name
}

// subcommand is the first word that is no flag. Flags before it stay behind it.
func subcommand(words []string) (sub string, rest []string, ok bool) {
	for i, x := range words {
		switch {
		case strings.HasPrefix(x, "-"):
			if x == "-C" || x == "-c" || x == "-n" || x == "--namespace" || x == "--context" || x == "-f" {
				continue // its value is found to be the subcommand: not so
			}
		case i > 0 && slices.Contains([]string{"-C", "-c", "-n", "--namespace", "--context", "-f"}, words[i-1]):
		case strings.HasPrefix(x, "+"): // a toolchain of cargo
		default:
			return x, append(slices.Clone(words[:i]), words[i+1:]...), true
		}
	}
	return "", words, false
}

// managed is the task of a package manager: `npm test`, `yarn run test` and
// `pnpm test` run one script.
func managed(name string, words []string) (string, []string) {
	sub, rest, ok := subcommand(words)
	if !ok {
		if name == "yarn" || name == "pnpm" {
			return "npm install", words
		}
		return "npm", words
	}
	if sub == "run" || sub == "run-script" {
		sub, rest, ok = subcommand(rest)
		if !ok {
			return "npm run", rest
		}
		return "script " + sub, rest
	}
	if sub == "workspace" || sub == "workspaces" || sub == "--filter" {
		return "npm workspace", words
	}
	if known, ok := managerSubs[sub]; ok {
		if known == "test" || known == "start" {
			return "script " + known, rest
		}
		return "npm " + known, rest
	}
	if name == "npm" {
		return "npm " + sub, rest
	}
	return "script " + sub, rest
}

// family is the name under which the tables of flags know a task.
func (t *task) family() string {
	switch {
	case strings.HasPrefix(t.name, "script "):
		return "script"
	case narrowing[t.name] != nil:
		return t.name
	}
	first, _, _ := strings.Cut(t.name, " ")
	return first
}

func (t *task) operands(words []string) {
	narrow := narrowing[t.family()]
	for i := 0; i < len(words); i++ {
		x := words[i]
		if x == "--" || x == "" {
			continue
		}
		flag, _, hasValue := strings.Cut(x, "=")
		isNarrow := slices.Contains(narrow, flag) || slices.Contains(narrowing[""], flag)
		switch {
		case isNarrow && (strings.HasPrefix(x, "-") || hasValue):
			if !hasValue && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") && !bare[flag] {
				i++
				x = flag + "=" + words[i]
			}
			t.narrow = append(t.narrow, x)
		case !strings.HasPrefix(x, "-"):
			t.targets = append(t.targets, strings.TrimPrefix(x, "./"))
		case noiseValued[x] && i+1 < len(words):
			i++
		case noise[x] || isNoise(x):
		default:
			t.flags = append(t.flags, x)
		}
	}
	slices.Sort(t.flags)
	slices.Sort(t.narrow)
}

// bare narrowing flags have no value.
var bare = set("-short", "--lf", "--last-failed", "--sw", "--stepwise", "--lib", "--onlyChanged", "-o", "--onlyFailures", "-DskipTests", "--dry-run", "--help", "-h",
	"--version", "--list", "--collect-only", "--no-verify", "--skip-tests", "--changed", "-Dmaven.test.skip")

func isNoise(x string) bool {
	for _, p := range noisePrefix {
		if strings.HasPrefix(x, p) {
			return true
		}
	}
	return false
}

func sorted(words []string) []string {
	out := slices.Clone(words)
	slices.Sort(out)
	return slices.Compact(out)
}

// covers reports whether u would have failed as part of t: t does the same, on
// all that u did, and leaves no more out.
func (t *task) covers(u *task) bool {
	if t.name != u.name || !sameDir(t, u) {
		return false
	}
	for _, n := range t.narrow {
		if !slices.Contains(u.narrow, n) {
			return false
		}
	}
	for _, f := range u.flags {
		if !slices.Contains(t.flags, f) {
			return false
		}
	}
	if len(t.targets) == 0 {
		return len(u.targets) == 0 || wholeWithout[t.name]
	}
	if len(u.targets) == 0 {
		return false
	}
	for _, x := range u.targets {
		if !slices.ContainsFunc(t.targets, func(y string) bool { return within(t.name, x, y) }) {
			return false
		}
	}
	return true
}

// sameDir: a folder that is not known may be any.
func sameDir(t, u *task) bool {
	if t.dir == u.dir || t.dir == "" || u.dir == "" {
		return true
	}
	a, b := path.Clean(t.dir), path.Clean(u.dir)
	return strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a) || a == b
}

// within reports whether target x is a part of target y.
func within(name, x, y string) bool {
	if x == y {
		return true
	}
	switch {
	case strings.HasPrefix(name, "go "):
		base, all := strings.CutSuffix(y, "...")
		if !all {
			return false
		}
		base = strings.TrimSuffix(base, "/")
		return base == "" || base == "." || x == base || strings.HasPrefix(x, base+"/")
	case y == ".":
		return true
	case strings.HasPrefix(x, y+"::"), strings.HasPrefix(x, strings.TrimSuffix(y, "/")+"/"):
		return true // pytest's nodes, folders of files
	}
	return false
}

// alike reports whether two runs differ in nothing that could be why one
// passes: assignments, sudo, flags that are no noise.
func (t *task) alike(u *task) bool {
	return slices.Equal(t.with, u.with) && slices.Equal(t.flags, u.flags)
}

// effect is what the command does to what is around it.
func (t *task) effect() effect {
	p := t.part
	if p == nil || len(p.words) == 0 {
		return effectNone
	}
	name := programOf(p.words[0])
	if flags := append(slices.Clone(changing[name]), changing[t.name]...); len(flags) > 0 {
		for _, f := range flags {
			for _, x := range p.words[1:] {
				if x == f || (len(f) == 2 && name == "sed" && strings.HasPrefix(x, f)) || strings.HasPrefix(x, f+"=") || name == "perl" && strings.HasPrefix(x, "-") && strings.Contains(x, "i") {
					return effectStrong
				}
			}
		}
	}
	if len(p.writes) > 0 && (name == "cat" || name == "echo" || name == "printf" || name == "sed" || name == "awk" || name == "jq" || name == "yq" || name == "tee" || name == "envsubst") {
		return effectStrong
	}
	if name == "tee" && len(p.words) > 1 {
		return effectStrong
	}
	if p.behind {
		return effectStrong // it was started, and goes on
	}
	if script, ok := strings.CutPrefix(t.name, "script "); ok {
		head, _, _ := strings.Cut(script, ":")
		switch {
		case head == "build" || head == "compile":
			return effectWeak
		case checkTasks[head]:
			return effectNone
		}
		return effectWeak
	}
	switch first, _, _ := strings.Cut(t.name, " "); first {
	case "make", "just", "task", "mise":
		for _, x := range append(t.targets, "") {
			if head, _, _ := strings.Cut(x, ":"); checkTasks[head] && head != "build" {
				return effectNone
			}
		}
	case "python", "node", "ruby", "perl", "php":
		if text := p.input + " " + strings.Join(p.words[1:], " "); writesFiles(text) {
			return effectStrong
		}
		return effectOpaque
	}
	// The longest form that a table knows.
	form := t.name
	if len(p.words) > 2 {
		form = t.name + " " + p.words[2]
	}
	for form != "" {
		if e, ok := effects[form]; ok {
			return e
		}
		k := strings.LastIndexByte(form, ' ')
		form = form[:max(k, 0)]
	}
	if e, ok := effects[name]; ok {
		return e
	}
	if dull[name] {
		return effectNone
	}
	return effectOpaque
}

// writesFiles tells a script that changes files.
func writesFiles(script string) bool {
	for _, w := range []string{".write(", "write_text(", "writeFileSync", "writeFile(", "File.write", "file_put_contents", "os.remove(", "shutil.", "os.rename("} {
		if strings.Contains(script, w) {
			return true
		}
	}
	return false
}

// String is the command as a lesson names it.
func (t *task) String() string {
	words := append(slices.Clone(t.with), t.part.words...)
	for i, x := range words {
		if x == "" || strings.ContainsAny(x, " \t\n\"'$`|&;<>()*?") {
			words[i] = "'" + strings.ReplaceAll(x, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
