package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
)

// learnGit uploads the history of a repository, or of a bundle, as far as HEAD
// reaches it. The server knows the commits that it has, so only new ones are
// admitted.
func (a *app) learnGit(ctx context.Context, repo, since string, f learnFlags) (err error) {
	if f.query != "" || f.chunk != 0 {
		return usageError{errors.New("--git goes with neither --query nor --chunk-size")}
	}
	st, err := os.Stat(repo)
	if err != nil {
		return fault.At(fault.Invalid, repo, "name a repository's folder or a bundle", "%v", errors.Unwrap(err))
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	project, err := a.gitTarget(ctx, c, repo, st.IsDir())
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "mneme-git-")
	if err != nil {
		return fault.As(fault.Unavailable, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	g := gitRepo{dir: repo, revs: "HEAD"}
	if !st.IsDir() {
		if g, err = unbundle(ctx, repo, filepath.Join(tmp, "repo.git")); err != nil {
			return err
		}
	}
	file := filepath.Join(tmp, gitFileName(repo))
	m := a.meter("reading commits", -1, false)
	n, err := g.export(ctx, file, since, func() { m.add(1) })
	m.done()
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.At(fault.Invalid, repo, "commit something, or name an earlier --since", "no commit")
	}
	if g.shallow(ctx) {
		fmt.Fprintf(a.err, "%s is a shallow clone: commits before it are not read (git fetch --unshallow)\n", repo)
	}
	l, err := a.learnFile(ctx, c, project, file, f)
	if err != nil {
		return fmt.Errorf("%s: %w", repo, err)
	}
	l.File = repo
	if err := a.printLearned(l, f); err != nil {
		return err
	}
	if l.Status == "refused" {
		return fault.New(fault.Invalid, "%s: %s", repo, l.Reason)
	}
	return nil
}

// gitTarget is the project named, else that of the repository; a bundle is of
// no place, so it goes where other files go.
func (a *app) gitTarget(ctx context.Context, c *client, repo string, folder bool) (string, error) {
	if a.project == "" && folder {
		if _, err := c.known(ctx); err != nil { // which notes the mappings
			return "", err
		}
		return projectIn(c.mapped, repo), nil
	}
	project, err := a.target(ctx, c)
	if err == nil && project == "_auto" {
		err = usageError{errors.New("name a project with --project: a bundle does not say whose it is")}
	}
	return project, err
}

// gitFileName is what the uploaded history is called.
func gitFileName(repo string) string {
	if abs, err := filepath.Abs(repo); err == nil {
		repo = abs
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(repo), ".git"), ".bundle")
	if name == "" || name == "." || name == string(filepath.Separator) {
		name = "repository"
	}
	return name + ".git-log.jsonl"
}

// gitRepo runs git on a folder.
type gitRepo struct {
	dir  string
	revs string // what is read: HEAD, or --all for a bundle, which need not have one
}

// unbundle makes a repository of a bundle.
func unbundle(ctx context.Context, bundle, dir string) (gitRepo, error) {
	g := gitRepo{dir: dir, revs: "--all"}
	abs, err := filepath.Abs(bundle) // no URL
	if err != nil {
		return g, fault.As(fault.Invalid, err)
	}
	if _, err := (gitRepo{}).run(ctx, "clone", "--bare", "--quiet", "--", abs, dir); err != nil {
		if fault.HintOf(err) != "" {
			return g, err
		}
		return g, fault.At(fault.Invalid, bundle, "name a repository's folder or a whole bundle (git bundle create FILE HEAD)", "no git bundle: %v", err)
	}
	return g, nil
}

// gitEnv is the environment without what would make git look elsewhere or
// print otherwise.
func gitEnv() []string {
	var out []string
	for _, e := range os.Environ() {
		switch name, _, _ := strings.Cut(e, "="); name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS",
			"GIT_PAGER", "GIT_TERMINAL_PROMPT", "LC_ALL", "LANGUAGE":
		default:
			out = append(out, e)
		}
	}
	return append(out, "LC_ALL=C", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0")
}

func (g gitRepo) command(ctx context.Context, args ...string) *exec.Cmd {
	all := []string{"--no-pager"}
	if g.dir != "" {
		all = append(all, "-C", g.dir)
	}
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Env = gitEnv()
	return cmd
}

// gitError is what git says, in one line; exec.ErrNotFound is a machine
// without git.
func gitError(err error, stderr []byte) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fault.At(fault.Invalid, "git", "install git and see that it is in PATH", "git is not installed")
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(stderr)), "\n")
	if line = strings.TrimPrefix(line, "fatal: "); line != "" {
		return fault.New(fault.Invalid, "%s", line)
	}
	return fault.As(fault.Invalid, err)
}

func (g gitRepo) run(ctx context.Context, args ...string) (string, error) {
	cmd := g.command(ctx, args...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return "", gitError(err, stderr.Bytes())
	}
	return strings.TrimSpace(out.String()), nil
}

// shallow reports whether the history is cut; an old git that cannot tell has
// no say.
func (g gitRepo) shallow(ctx context.Context) bool {
	out, err := g.run(ctx, "rev-parse", "--is-shallow-repository")
	return err == nil && out == "true"
}

// gitCommit is one line of a git log (shared/transcript, format git-log).
type gitCommit struct {
	Type    string    `json:"type"` // commit
	SHA     string    `json:"sha"`
	Parents []string  `json:"parents"`
	Author  string    `json:"author"`
	Email   string    `json:"email"`
	Date    string    `json:"date"`    // of the author, with the offset of the place
	Message string    `json:"message"` // subject, blank line, body; ends with LF
	Files   []gitFile `json:"files"`
	Symbols []string  `json:"symbols"` // names that the diff declares or stands in
}

type gitFile struct {
	Status string `json:"status"` // A, M, D or T, as git log --name-status
	Path   string `json:"path"`
}

// Bounds on what one commit lists: a commit of more files is one of vendored or
// generated ones.
const (
	maxGitFiles   = 100
	maxGitSymbols = 100
)

// gitFormat begins each commit with a NUL at a line's start, where neither a
// message nor a diff can have one.
const gitFormat = "%x00%H%x00%P%x00%an%x00%ae%x00%aI%x00%B%x00"

// gitLogArgs fix everything that a person's configuration could change, so that
// the same commits give the same bytes on every machine, and run none of the
// programs that a repository may name for its diffs. The order is that of the
// history, the oldest first. Renames are a deletion and an addition: to find
// them is a guess that depends on limits.
var gitLogArgs = []string{
	"-c", "core.quotePath=false", "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "log.showRoot=true",
	"-c", "core.fsmonitor=false", "-c", "diff.suppressBlankEmpty=false", "-c", "log.follow=false",
	"log", "--reverse", "--author-date-order", "--no-color", "--no-decorate", "--no-notes", "--no-show-signature", "--encoding=UTF-8",
	"-O/dev/null", "--no-ext-diff", "--no-textconv", "--no-renames", "--diff-algorithm=myers", "--submodule=short", "--ignore-submodules=none",
	"--raw", "--abbrev=7", "--patch", "--unified=0", "--inter-hunk-context=0", "--no-indent-heuristic", "--format=tformat:" + gitFormat,
}

// export writes the history into a file and gives the number of its commits.
func (g gitRepo) export(ctx context.Context, file, since string, each func()) (n int, err error) {
	if _, err := g.run(ctx, "rev-parse", "--git-dir"); err != nil {
		if fault.HintOf(err) != "" {
			return 0, err
		}
		return 0, fault.At(fault.Invalid, g.dir, "name a repository's folder", "%v", err)
	}
	if _, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil && g.revs == "HEAD" {
		return 0, nil // nothing is committed yet
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, fault.As(fault.Unavailable, err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	args := gitLogArgs
	if since != "" {
		args = append(args[:len(args):len(args)], "--since="+since)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := g.command(ctx, append(args, g.revs, "--")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 0, fault.As(fault.Unavailable, err)
	}
	if err := cmd.Start(); err != nil {
		return 0, gitError(err, nil)
	}
	w := bufio.NewWriterSize(out, 1<<20)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	readErr := readGitLog(pipe, func(c gitCommit) error {
		n++
		each()
		return enc.Encode(c)
	})
	if readErr != nil {
		cancel() // git may be waiting for a reader
	}
	if err := cmd.Wait(); err != nil && readErr == nil {
		return n, gitError(err, stderr.Bytes())
	}
	if readErr == nil {
		readErr = w.Flush()
	}
	if readErr != nil {
		return n, fault.As(fault.Unavailable, readErr)
	}
	return n, nil
}

// maxGitLine is how much of a diff's line is looked at: declarations are
// short, lines of generated files are not.
const maxGitLine = 1 << 10

// gitLog reads what git log prints.
type gitLog struct {
	r *bufio.Reader
}

// readGitLog gives each commit to f.
func readGitLog(r io.Reader, f func(gitCommit) error) error {
	l := gitLog{bufio.NewReaderSize(r, 256<<10)}
	var c gitCommit
	var syms symbols
	begun, prose := false, false
	flush := func() error {
		if !begun {
			return nil
		}
		c.Symbols = syms.list
		return f(c)
	}
	for {
		b, err := l.r.Peek(1)
		if err == io.EOF {
			return flush()
		}
		if err != nil {
			return err
		}
		if b[0] == 0 {
			if err := flush(); err != nil {
				return err
			}
			if c, err = l.header(); err != nil {
				return err
			}
			syms, begun = symbols{list: []string{}}, true
		}
		line, err := l.line()
		if err != nil {
			return err
		}
		switch {
		case len(line) == 0:
		case line[0] == ':' && len(c.Files) < maxGitFiles:
			if f, ok := rawFile(line); ok {
				c.Files = append(c.Files, f)
			}
		case bytes.HasPrefix(line, []byte("diff --git ")):
			prose = proseFiles[strings.ToLower(strings.TrimRight(filepath.Ext(string(line)), `"`))]
		case prose:
		case line[0] == '+' || line[0] == '-':
			if !bytes.HasPrefix(line, []byte("+++ ")) && !bytes.HasPrefix(line, []byte("--- ")) {
				syms.declared(line[1:])
			}
		case bytes.HasPrefix(line, []byte("@@ ")):
			if _, where, ok := bytes.Cut(line[3:], []byte(" @@ ")); ok {
				syms.declared(where)
			}
		}
	}
}

// proseFiles declare nothing, whatever their lines begin with.
var proseFiles = map[string]bool{
	".md": true, ".markdown": true, ".txt": true, ".rst": true, ".adoc": true, ".org": true, ".tex": true, ".html": true, ".htm": true, ".csv": true,
	".json": true, ".jsonl": true, ".yaml": true, ".yml": true, ".toml": true, ".xml": true, ".svg": true, ".lock": true, ".sum": true, ".txtar": true,
}

// header reads the fields of gitFormat.
func (l gitLog) header() (c gitCommit, err error) {
	if _, err := l.r.Discard(1); err != nil {
		return c, err
	}
	var f [6]string
	for i := range f {
		s, err := l.r.ReadString(0)
		if err != nil {
			return c, fmt.Errorf("git log is cut off: %w", err)
		}
		f[i] = strings.ToValidUTF8(s[:len(s)-1], "\uFFFD")
	}
	return gitCommit{
		Type: "commit", SHA: f[0], Parents: append([]string{}, strings.Fields(f[1])...), Author: f[2], Email: f[3], Date: f[4],
		Message: strings.TrimSpace(f[5]) + "\n", Files: []gitFile{},
	}, nil
}

// line reads one line, of a long one its first bytes. The slice is valid until
// the next call.
func (l gitLog) line() ([]byte, error) {
	b, err := l.r.ReadSlice('\n')
	b = bytes.TrimSuffix(b, []byte("\n"))
	if err == bufio.ErrBufferFull {
		b = bytes.Clone(b[:maxGitLine])
		for err == bufio.ErrBufferFull {
			_, err = l.r.ReadSlice('\n')
		}
	}
	if err == io.EOF {
		err = nil
	}
	return b[:min(len(b), maxGitLine)], err
}

// rawFile reads ":100644 100644 0a1b2c3 4d5e6f7 M<tab>path". A path that holds
// quotes, controls or line ends is quoted as in C.
func rawFile(line []byte) (gitFile, bool) {
	head, path, ok := strings.Cut(string(line), "\t")
	if !ok || head == "" {
		return gitFile{}, false
	}
	if s, err := strconv.Unquote(path); err == nil && path[0] == '"' {
		path = s // Go's escapes hold all of git's: \a \b \t \n \v \f \r \" \\ and octal
	}
	return gitFile{head[len(head)-1:], strings.ToValidUTF8(path, "\uFFFD")}, true
}

// symbols are the names that a diff declares or stands in, each once, in the
// order of their appearance.
type symbols struct {
	list []string
	seen map[string]bool
}

// declaration finds the name in a line that declares one, in the languages that
// say so by a word; receivers, modifiers and generics stand between.
var declaration = regexp.MustCompile(`^[ \t]*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([a-z]+\))?|unsafe|extern|override|open|sealed|data|virtual|inline|const|declare|partial|readonly|suspend) +)*` +
	`(?:func|fn|def|class|interface|trait|struct|enum|type|function\*?|module|namespace|protocol|object|record|macro_rules!|macro|fun|sub|impl|union|CREATE (?:OR REPLACE )?(?:TABLE|VIEW|FUNCTION|INDEX)(?: IF NOT EXISTS)?)(?:<[^>]*>)?[ \t]+` +
	`(?:\([^)]*\)[ \t]*)?(?:<[^>]*>[ \t]*)?([\p{L}_$][\p{L}\p{N}_$.:]*)`)

// method finds the name before the parameters, for languages that declare by a
// type: `static int parse(char *s)`. Calls begin with no type, statements with
// a keyword. Inside a class one is told by a word of access.
var method = regexp.MustCompile(`^(?:[ \t]+(?:public|private|protected|internal)[ \t]+)?[\p{L}_][\p{L}\p{N}_<>\[\],.:*& \t]*?[ \t*&]([\p{L}_][\p{L}\p{N}_:~]*)[ \t]*\([^;]*$`)

// constant finds a name that a file declares at its outermost level.
var constant = regexp.MustCompile(`^(?:export +)?(?:const|var|let|val)[ \t]+([\p{L}_$][\p{L}\p{N}_$]*)`)

// notMethods begin a line that only looks like a method.
var notMethods = regexp.MustCompile(`^(?:return|if|else|for|while|switch|case|throw|new|await|yield|assert|print|defer|go|var|let|const|import|from|using|package|use|select|insert|update|delete|and|or|not|the|a|an)\b`)

func (s *symbols) declared(line []byte) {
	if len(s.list) >= maxGitSymbols {
		return
	}
	m := declaration.FindSubmatch(line)
	if m == nil {
		m = constant.FindSubmatch(line)
	}
	if m == nil && !notMethods.Match(bytes.ToLower(line)) {
		if m = method.FindSubmatch(line); m != nil && !bytes.ContainsAny(line, "{") && !bytes.HasSuffix(bytes.TrimSpace(line), []byte(")")) {
			m = nil
		}
	}
	if m == nil || len(m[1]) > 80 || len(m[1]) < 2 {
		return
	}
	name := strings.TrimRight(strings.ToValidUTF8(string(m[1]), ""), ".:")
	if s.seen[name] {
		return
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[name] = true
	s.list = append(s.list, name)
}
