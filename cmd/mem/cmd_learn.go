package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/questions"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// learned is what the server says of one file.
type learned struct {
	learn.Learned
	File string `json:"file,omitempty"`
}

type learnFlags struct {
	wait    bool
	timeout time.Duration
	query   string
	budget  int
	chunk   int
	dry     bool
	again   bool
	models  map[string]*string // what decides a --query, by field of the request
}

// modelFlags are the flags of learnFlags.models.
var modelFlags = []struct{ field, flag, usage string }{
	{"model", "model", "with --query: the one model that decides; extractive is the built-in policy"},
	{"gate_model", "gate-model", "with --query: the model that gates"},
	{"rewrite_model", "rewrite-model", "with --query: the model that writes the memory, behind open gates"},
	{"gate_base_url", "gate-url", "with --query: where the gate's model is, a configured endpoint"},
	{"rewrite_base_url", "rewrite-url", "with --query: where the rewrite model is"},
}

// picked are the models that the flags name, by field of the request.
func (f *learnFlags) picked() map[string]string {
	out := map[string]string{}
	for field, v := range f.models {
		if *v != "" {
			out[field] = *v
		}
	}
	return out
}

func (a *app) cmdLearn() *cobra.Command {
	var f learnFlags
	var repo, since string
	c := &cobra.Command{
		Use:   "learn FILE|DIR…",
		Short: "Upload transcripts and notes, in the order given",
		Long: `Upload transcripts and notes, in the order given; a folder gives its files in
name order. It returns when the last one stands in the log; --wait also waits
until every standing question has looked at them, and prints what they kept.

Without --project the files belong to the project of the repository you stand
in; outside one, each record's own working directory decides. "-" reads text
from standard input.

--git uploads the commits of a repository or of a bundle, as far as its HEAD
reaches: messages, files, names of functions and types. Merges, bots and bare
version bumps are left out. Run it again for new commits: known ones cost nothing.

--query answers a question of your own from the file alone, and waits for it.
--model, or --gate-model and --rewrite-model, then say which of the configured
models decide (docs/MODELS.md); standing questions keep those of the project.`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case repo != "" && f.dry:
				return errors.New("--dry-run shows the plan of files: it does not go with --git")
			case repo == "" && since != "":
				return errors.New("--since goes with --git")
			case repo == "":
				return cobra.MinimumNArgs(1)(c, args)
			}
			if len(args) > 0 {
				return errors.New("--git names what is read: no file goes with it")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if f.dry {
				return a.learnDry(c.Context(), args, f)
			}
			if repo != "" {
				return a.learnGit(c.Context(), repo, since, f)
			}
			return a.learn(c.Context(), args, f)
		},
	}
	c.Flags().StringVar(&repo, "git", "", "upload the history of this repository (a folder or a bundle)")
	c.Flags().StringVar(&since, "since", "", "with --git: only commits after this date, as git log reads it")
	c.Flags().BoolVar(&f.wait, "wait", false, "wait for the gate and print what was kept")
	c.Flags().BoolVar(&f.again, "again", false, "read anew what was forgotten")
	c.Flags().BoolVarP(&f.dry, "dry-run", "n", false, "show chunks, tokens, where text would go and what it would cost; upload nothing, call no model")
	c.Flags().DurationVar(&f.timeout, "timeout", 10*time.Minute, "how long --wait or --query waits for one file")
	c.Flags().StringVarP(&f.query, "query", "q", "", "answer this question from the file alone (an ad-hoc stream)")
	c.Flags().IntVar(&f.budget, "memory-budget", 0, "tokens of the ad-hoc memory (default 4096)")
	c.Flags().IntVar(&f.chunk, "chunk-size", 0, "characters of a note's chunk (default 2000)")
	f.models = map[string]*string{}
	for _, m := range modelFlags {
		f.models[m.field] = c.Flags().String(m.flag, "", m.usage)
	}
	return c
}

func (a *app) learn(ctx context.Context, args []string, f learnFlags) error {
	if f.budget != 0 && f.query == "" {
		return usageError{errors.New("--memory-budget is that of a --query: the budget of standing questions belongs to them")}
	}
	if f.query == "" && len(f.picked()) > 0 {
		return usageError{errors.New("models are named for a --query: standing questions keep those of their project")}
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	files, err := a.files(args)
	if err != nil {
		return err
	}
	project, err := a.target(ctx, c)
	if err != nil {
		return err
	}
	m := a.meter("learn", int64(len(files)), false)
	defer m.done()
	var bad []error
	for _, file := range files {
		l, err := a.learnFile(ctx, c, homeOf(c.mapped, project, file), file, f)
		m.add(1)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if _, ok := errors.AsType[noServer](err); ok {
				return err
			}
			bad = append(bad, fmt.Errorf("%s: %w", file, err))
			if len(files) > 1 { // the error of a single one ends the command
				fmt.Fprintf(a.err, "%s: %v\n", file, err)
			}
			continue
		}
		l.File = file
		if err := a.printLearned(l, f); err != nil {
			return err
		}
		if l.Status == "refused" {
			bad = append(bad, fault.At(fault.Invalid, file, l.Hint, "%s", l.Reason))
		}
	}
	if len(bad) > 0 {
		if len(files) == 1 {
			return bad[0]
		}
		return fault.As(fault.KindOf(bad[0]), fmt.Errorf("%d of %d files were not learned; the others are kept", len(bad), len(files)))
	}
	return nil
}

// target is where files go: the project named, else that of the repository,
// else `_auto`.
func (a *app) target(ctx context.Context, c *client) (string, error) {
	if a.project != "" {
		p, err := a.named(ctx, c)
		if err == nil && !memory.ValidName(p) {
			err = usageError{fmt.Errorf("--project %q: a project is [a-z0-9][a-z0-9._-]{0,62}", p)}
		}
		return p, err
	}
	if _, err := c.known(ctx); err != nil {
		return "", err
	}
	if p, ok := workingProject(c.mapped); ok {
		return p, nil
	}
	return "_auto", nil
}

// homeOf is where a file goes: a tool's output names no folder, so in `_auto`
// the transcript beside it decides.
func homeOf(mapped questions.Projects, project, file string) string {
	if _, ok := spilled(file); !ok || project != "_auto" {
		return project
	}
	s, err := planFile(mapped, transcriptOf(file))
	if err != nil {
		return project // it stands alone
	}
	return planned{file: file, project: project}.beside(map[string]planned{s.file: s}, s.spilled).project
}

// skipped are files of a transcript folder that hold no conversation.
func skipped(path string) bool {
	_, companion := transcript.Companion(filepath.ToSlash(path))
	return companion || strings.HasPrefix(filepath.Base(path), ".")
}

// files lists what the arguments name: files as they are, folders walked in
// name order.
func (a *app) files(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		if arg == "-" {
			out = append(out, arg)
			continue
		}
		st, err := os.Stat(arg)
		if err != nil {
			return nil, fault.At(fault.Invalid, arg, "name a file or a folder", "%v", errors.Unwrap(err))
		}
		if !st.IsDir() {
			out = append(out, arg)
			continue
		}
		n := len(out)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != arg && strings.HasPrefix(d.Name(), "."):
				return filepath.SkipDir
			case d.Type().IsRegular() && !skipped(path):
				out = append(out, path)
			}
			return nil
		})
		if err != nil {
			return nil, fault.As(fault.Invalid, err)
		}
		if len(out) == n {
			return nil, fault.At(fault.Invalid, arg, "name a folder that holds transcripts or notes", "no file in it")
		}
		slices.Sort(out[n:]) // s.jsonl before what stands in the folder s
	}
	return out, nil
}

func (a *app) learnFile(ctx context.Context, c *client, project, file string, f learnFlags) (learned, error) {
	if file == "-" || f.query != "" || f.chunk != 0 {
		return a.learnText(ctx, c, project, file, f)
	}
	l, err := a.upload(ctx, c, project, file, f.again)
	if err != nil || !f.wait {
		return l, err
	}
	return awaitJob(ctx, c, l, f.timeout, time.Now().Add(f.timeout))
}

// upload streams one file; its hash names it, so that the same file twice is
// one object.
func (a *app) upload(ctx context.Context, c *client, project, file string, again bool) (l learned, err error) {
	h, err := os.Open(file)
	if err != nil {
		return l, fault.As(fault.Invalid, err)
	}
	defer h.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, h)
	if err != nil {
		return l, fault.As(fault.Invalid, err)
	}
	if _, err := h.Seek(0, io.SeekStart); err != nil {
		return l, fault.As(fault.Invalid, err)
	}
	var body io.Reader = h
	if size == 0 {
		body = http.NoBody
	} else if size > 8<<20 {
		m := a.meter(filepath.Base(file), size, true)
		defer m.done()
		body = io.NopCloser(m.reader(h))
	}
	path := "/memory/files/" + url.PathEscape(project) + "/" + (&url.URL{Path: uploadName(file)}).EscapedPath() + "?sha256=" + hex.EncodeToString(sum.Sum(nil))
	if again {
		path += "&again=true"
	}
	resp, err := c.do(ctx, http.MethodPut, path, "application/octet-stream", body, size)
	if err != nil {
		return l, err
	}
	return l, decode(resp, &l)
}

// uploadName is what a file is called in the inbox: its own name, and for a
// tool's output the folders that say so.
func uploadName(file string) string {
	if key, ok := spilled(file); ok {
		return key
	}
	return filepath.Base(file)
}

// spilled is the name of a tool's output that stands in a file of its own:
// <session>/tool-results/<id>.txt.
func spilled(file string) (key string, ok bool) {
	parts := strings.Split(absolute(file), "/")
	if _, _, ok = transcript.Spilled(strings.Join(parts, "/")); !ok {
		return "", false
	}
	return strings.Join(parts[len(parts)-3:], "/"), true
}

// absolute is the whole path with slashes; the path itself where the working
// folder is not known.
func absolute(file string) string {
	if abs, err := filepath.Abs(file); err == nil {
		file = abs
	}
	return filepath.ToSlash(file)
}

func (a *app) learnText(ctx context.Context, c *client, project, file string, f learnFlags) (l learned, err error) {
	if project == "_auto" {
		return l, usageError{errors.New("name a project with --project")}
	}
	var b []byte
	name := "note.md"
	if file == "-" {
		b, err = io.ReadAll(io.LimitReader(a.in, 16<<20))
	} else {
		b, err = os.ReadFile(file)
		name = uploadName(file)
	}
	if err != nil {
		return l, fault.As(fault.Invalid, err)
	}
	body := map[string]any{"project": project, "text": string(bytes.ToValidUTF8(b, []byte("\uFFFD"))), "name": name}
	if f.query != "" {
		body["query"] = f.query
	}
	if f.budget != 0 {
		body["memory_budget"] = f.budget
	}
	if f.again {
		body["again"] = true
	}
	if f.chunk != 0 {
		body["chunk_size"] = f.chunk
	}
	for field, v := range f.picked() {
		body[field] = v
	}
	end := time.Now().Add(f.timeout)
	if err := c.send(ctx, http.MethodPost, "/memory/learn?wait="+lookFor(end), body, &l); err != nil {
		return l, err
	}
	if f.query == "" && f.wait || f.query != "" && l.Status == "running" {
		return awaitJob(ctx, c, l, f.timeout, end)
	}
	return l, nil
}

// lookMost bounds one long poll: a project may pause within it, and whoever waits is
// told so after it.
const lookMost = 2 * time.Second

// lookFor is how long the server is to wait before it answers, as ?wait= says it.
func lookFor(end time.Time) string {
	return max(0, min(time.Until(end), lookMost)).Round(time.Millisecond).String()
}

// awaitJob asks the log until the part is done in every stream, or in that of
// the request's own question. The first look does not wait.
func awaitJob(ctx context.Context, c *client, l learned, timeout time.Duration, end time.Time) (learned, error) {
	stored, wait := l.Stored, "0s"
	stream, own := "", false
	if _, stream, own = strings.Cut(l.StatusURL, "?stream="); own {
		stream = "&stream=" + stream
	}
	for l.JobID != "" {
		last := !time.Now().Before(end)
		var next learned
		if err := c.get(ctx, "/memory/ingest/"+l.JobID+"?wait="+wait+stream, &next); err != nil {
			return l, err
		}
		next.Stored = stored
		if !stored && !own {
			next.ChunksUsed = 0 // a repeat uses none (brief D8)
		}
		if next.Status != "running" {
			return next, nil
		}
		if next.Hint != "" { // it waits for something: for longer than the next look?
			if p := pausedFor(ctx, c, next.Project); p != nil {
				return next, p
			}
		}
		if last {
			msg := fmt.Sprintf("still running after %v", timeout)
			if next.Hint != "" {
				msg += ": " + next.Reason
			}
			return next, fault.At(fault.Unavailable, "job "+l.JobID, cmp.Or(next.Hint, "ask again with: mem wait"), "%s", msg)
		}
		wait = lookFor(end)
	}
	return l, nil
}

// pausedFor is why a project decides nothing for a while; nil where it does, or where
// nobody knows: on a cluster no single process does.
func pausedFor(ctx context.Context, c *client, project string) error {
	var st struct {
		Paused []gate.Paused `json:"paused"`
	}
	if c.get(ctx, "/memory/status", &st) != nil {
		return nil
	}
	for _, p := range st.Paused {
		if project == "" || p.Project == project {
			return &fault.Error{Kind: fault.Exhausted, Msg: "paused until " + age(&p.Until) + " UTC: " + p.Reason, Hint: p.Hint}
		}
	}
	return nil
}

func (a *app) printLearned(l learned, f learnFlags) error {
	if a.json {
		return a.printJSON(l)
	}
	asked := f.query != "" && len(l.Questions) > 0
	switch {
	case asked && l.Status == "refused":
		return nil // the error says why
	case asked:
		fmt.Fprintf(a.out, "%s  project %s: %d chunks seen, %d used, memory of %d tokens, by %s\n", l.File, l.Project, l.ChunksSeen, l.ChunksUsed, l.MemoryTokens, l.Model)
	case l.Outcome == learn.OutcomeAdmitted:
		if f.wait {
			fmt.Fprintf(a.out, "%s  project %s: %d chunks seen, %d used, memory of %d tokens\n", l.File, l.Project, l.ChunksSeen, l.ChunksUsed, l.MemoryTokens)
		} else {
			fmt.Fprintf(a.out, "%s  project %s: %d chunks\n", l.File, l.Project, l.ChunksSeen)
		}
	case l.Outcome == learn.OutcomeDuplicate:
		fmt.Fprintf(a.out, "%s  project %s: known already, 0 chunks used\n", l.File, l.Project)
	default:
		fmt.Fprintf(a.out, "%s  %s: %s\n", l.File, l.Outcome, l.Reason)
	}
	if l.Outcome == learn.OutcomeAdmitted && l.Reason != "" {
		fmt.Fprintf(a.out, "  %s\n", l.Reason)
	}
	undecided := 0
	for _, q := range l.Questions {
		undecided += q.Pending
	}
	if undecided > 0 {
		fmt.Fprintf(a.out, "  the model left %d steps undecided: mem report says why, mem regate --pending asks again\n", undecided)
	}
	if found := oddities(l.Counts); found != "" {
		fmt.Fprintf(a.out, "  %s\n", found)
	}
	if (f.wait || f.query != "") && l.Memory != "" {
		fmt.Fprintf(a.out, "\n%s\n\n", strings.TrimSpace(l.Memory))
	}
	return nil
}

// oddities names what the reader found wrong in a file; the rest of the file
// was read.
func oddities(c *memory.Counts) string {
	if c == nil {
		return ""
	}
	unknown := 0
	for _, n := range c.Unknown {
		unknown += n
	}
	var out []string
	for _, o := range []struct {
		n         int
		one, many string
	}{
		{c.Bad, "line that is no record", "lines that are no record"},
		{c.Pending, "last line cut off", "last lines cut off"},
		{c.TooLong, "line too long, left out", "lines too long, left out"},
		{c.Joined, "line of several records", "lines of several records"},
		{c.BadUTF8, "line of wrong UTF-8", "lines of wrong UTF-8"},
		{unknown, "record of unknown type", "records of unknown types"},
	} {
		switch {
		case o.n == 1:
			out = append(out, "1 "+o.one)
		case o.n > 1:
			out = append(out, fmt.Sprintf("%d %s", o.n, o.many))
		}
	}
	if unknown > 0 {
		out[len(out)-1] += " (" + strings.Join(sortedKeys(c.Unknown), ", ") + ")"
	}
	return strings.Join(out, ", ")
}

func (a *app) cmdWait() *cobra.Command {
	timeout := 60 * time.Second
	c := &cobra.Command{
		Use:   "wait",
		Short: "Return when nothing is in flight",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			project := a.project
			if project != "" { // one that nothing is known of yet keeps the name given
				if p, err := a.named(c.Context(), cl); err == nil {
					project = p
				}
			}
			err = waitIn(c.Context(), cl, project, timeout)
			if err == nil && a.json {
				err = a.printJSON(map[string]bool{"done": true})
			}
			return err
		},
	}
	c.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait")
	return c
}

// waitDone returns when a sweep would find nothing.
func waitDone(ctx context.Context, c *client, timeout time.Duration) error {
	return waitIn(ctx, c, "", timeout)
}

// waitIn is waitDone for who asks about one project: that another one is paused is no
// error to them; "" is all.
func waitIn(ctx context.Context, c *client, project string, timeout time.Duration) error {
	end := time.Now().Add(timeout)
	for {
		left := max(0, min(time.Until(end), 30*time.Second))
		var out struct {
			Done    bool           `json:"done"`
			Pending map[string]any `json:"pending"`
			Paused  []gate.Paused  `json:"paused"`
		}
		if err := c.get(ctx, "/memory/wait?timeout="+left.Round(time.Millisecond).String(), &out); err != nil {
			return err
		}
		if out.Done && len(out.Paused) > 0 {
			return pausedFor(ctx, c, project)
		}
		if out.Done {
			return nil
		}
		if time.Now().After(end) {
			var what []string
			for k, v := range out.Pending {
				if v != float64(0) && v != false {
					what = append(what, fmt.Sprintf("%s: %v", k, v))
				}
			}
			slices.Sort(what)
			return fault.At(fault.Unavailable, "wait", "mem dead lists what was given up", "still in flight after %v (%s)", timeout, strings.Join(what, ", "))
		}
	}
}
