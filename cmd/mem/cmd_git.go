package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gitlog"
)

// learnGit uploads the history of a repository, or of a bundle, as far as HEAD
// reaches it. The server knows the commits that it has, so only new ones are
// admitted.
func (a *app) learnGit(ctx context.Context, repo, since string, f learnFlags) (err error) {
	if f.query != "" || f.chunk != 0 || len(f.picked()) > 0 {
		return usageError{errors.New("--git goes with neither --query and its models nor --chunk-size")}
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
	return gitlog.FileName(filepath.Base(repo))
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

// gitFormat begins each commit with a NUL at a line's start, where neither a
// message nor a diff can have one.
const gitFormat = "%x00%H%x00%P%x00%an%x00%ae%x00%ad%x00%B%x00"

// gitLogArgs fix everything that a person's configuration could change, so that
// the same commits give the same bytes on every machine, and run none of the
// programs that a repository may name for its diffs. The order is that of the
// history, the oldest first.
var gitLogArgs = []string{
	"-c", "core.quotePath=false", "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "log.showRoot=true",
	"-c", "core.fsmonitor=false", "-c", "diff.suppressBlankEmpty=false", "-c", "log.follow=false",
	"log", "--reverse", "--author-date-order", "--no-color", "--no-decorate", "--no-notes", "--no-show-signature", "--encoding=UTF-8", "--date=raw",
	"-O/dev/null", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=none",
	"--raw", "-r", "--no-abbrev", "--format=tformat:" + gitFormat,
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
	enc := gitlog.NewEncoder(w)
	blobs := gitBlobs{repo: g}
	defer func() { err = errors.Join(err, blobs.close()) }()
	readErr := readGitLog(pipe, func(oid string) ([]byte, error) { return blobs.read(ctx, oid) }, func(c gitlog.Commit) error {
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

// gitLog reads what git log prints.
type gitLog struct {
	r *bufio.Reader
}

// readGitLog gives each commit to f; blob reads the text of a file, nil where
// there is none to look at.
func readGitLog(r io.Reader, blob func(oid string) ([]byte, error), f func(gitlog.Commit) error) error {
	l := gitLog{bufio.NewReaderSize(r, 256<<10)}
	var c gitlog.Commit
	var syms gitlog.Symbols
	begun := false
	flush := func() error {
		if !begun {
			return nil
		}
		c.Symbols = syms.List()
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
			syms, begun = gitlog.Symbols{}, true
		}
		line, err := l.r.ReadString('\n')
		if err != nil && err != io.EOF {
			return err
		}
		file, ok := rawFile(strings.TrimSuffix(line, "\n"))
		if !ok || !c.Touch(file.status, file.path) {
			continue
		}
		if err := file.symbols(&syms, blob); err != nil {
			return err
		}
	}
}

// header reads the fields of gitFormat.
func (l gitLog) header() (c gitlog.Commit, err error) {
	if _, err := l.r.Discard(1); err != nil {
		return c, err
	}
	var f [6]string
	for i := range f {
		s, err := l.r.ReadString(0)
		if err != nil {
			return c, fmt.Errorf("git log is cut off: %w", err)
		}
		f[i] = s[:len(s)-1]
	}
	return gitlog.New(gitlog.Header{SHA: f[0], Parents: strings.Fields(f[1]), Author: f[2], Email: f[3], Date: f[4], Message: f[5]}), nil
}

// changed is a file as git log --raw names it. A side that has no text, such as
// a submodule or a file that is not there, has no id.
type changed struct{ status, path, before, after string }

// rawFile reads ":100644 100644 <id> <id> M<tab>path". A path that holds
// quotes, controls or line ends is quoted as in C.
func rawFile(line string) (changed, bool) {
	head, path, ok := strings.Cut(line, "\t")
	fields := strings.Fields(strings.TrimPrefix(head, ":"))
	if !ok || !strings.HasPrefix(head, ":") || len(fields) != 5 || fields[4] == "" {
		return changed{}, false
	}
	if s, err := strconv.Unquote(path); err == nil && path[0] == '"' {
		path = s // Go's escapes hold all of git's: \a \b \t \n \v \f \r \" \\ and octal
	}
	c := changed{status: fields[4][:1], path: path}
	if hasText(fields[0]) {
		c.before = fields[2]
	}
	if hasText(fields[1]) {
		c.after = fields[3]
	}
	return c, true
}

// hasText tells a file's or a link's mode from that of a submodule and of none.
func hasText(mode string) bool { return strings.HasPrefix(mode, "10") || mode == "120000" }

func (c changed) symbols(syms *gitlog.Symbols, blob func(oid string) ([]byte, error)) error {
	if syms.Full() || !gitlog.Declares(c.path) || c.before == c.after { // a mode alone
		return nil
	}
	var sides [2][]byte
	for i, oid := range []string{c.before, c.after} {
		if oid == "" {
			continue
		}
		b, err := blob(oid)
		if err != nil {
			return err
		}
		if b == nil {
			return nil
		}
		sides[i] = b
	}
	syms.Touched(c.status, c.path, sides[0], sides[1])
	return nil
}

// gitBlobs reads texts by one git cat-file, which starts with the first.
type gitBlobs struct {
	repo gitRepo
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
}

// read gives the text of a blob, nil where it is over gitlog.MaxBlobBytes or the
// repository does not have it.
func (g *gitBlobs) read(ctx context.Context, oid string) ([]byte, error) {
	if g.cmd == nil {
		cmd := g.repo.command(ctx, "cat-file", "--batch")
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		g.cmd, g.in, g.out = cmd, in, bufio.NewReaderSize(out, 64<<10)
	}
	if _, err := io.WriteString(g.in, oid+"\n"); err != nil {
		return nil, err
	}
	head, err := g.out.ReadString('\n')
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(head)
	if len(fields) != 3 {
		return nil, nil // "<id> missing"
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return nil, err
	}
	if fields[1] != "blob" || size > gitlog.MaxBlobBytes {
		_, err := io.CopyN(io.Discard, g.out, size+1)
		return nil, err
	}
	b := make([]byte, size+1) // an LF follows
	if _, err := io.ReadFull(g.out, b); err != nil {
		return nil, err
	}
	return b[:size], nil
}

// close ends the program, which has given all that was asked of it.
func (g *gitBlobs) close() error {
	if g.cmd == nil {
		return nil
	}
	err := g.in.Close()
	_ = g.cmd.Wait() // killed, where the reading was given up
	return err
}
