package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/questions"
	"github.com/mneme-ai/mneme/shared/transcript"
)

func (a *app) cmdImport() *cobra.Command {
	var yes, dry bool
	c := &cobra.Command{
		Use:   "import [DIR]",
		Short: "Import the history of a coding agent; shows first what would go where",
		Long: `Import the history of a coding agent, such as ~/.claude/projects (the default).

It first shows projects, files and bytes, which folder belongs to which project,
where the text goes and what it costs; with --yes it uploads, the oldest session
first, long outputs of its tools right after it. Files that are in the log
already cost nothing, so an interrupted import goes on when run again.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := ""
			if len(args) == 1 {
				dir = args[0]
			} else if home, err := os.UserHomeDir(); err == nil {
				dir = filepath.Join(home, ".claude", "projects")
			}
			return a.importDir(c.Context(), dir, yes && !dry)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "upload")
	c.Flags().BoolVar(&dry, "dry-run", false, "only show (the default without --yes)")
	return c
}

// importPlan is what one project would get.
type importPlan struct {
	Project string   `json:"project"`
	Folders []string `json:"folders"`
	Files   int      `json:"files"`
	Bytes   int64    `json:"bytes"`
	Turns   int      `json:"turns"`
}

// planned is what one file holds.
type planned struct {
	file    string
	project string
	cwds    []string
	turns   int
	first   time.Time         // of the first turn that tells one, else of the file
	spilled map[string]string // the projects of outputs that stand in files of their own, by their names
}

// oldestFirst is the order of upload: by first time, then by name. Memory is
// folded in the order of admission, so history is told in the order in which
// it happened.
func oldestFirst(a, b planned) int {
	return cmp.Or(a.first.Compare(b.first), strings.Compare(a.file, b.file))
}

func (a *app) importDir(ctx context.Context, dir string, upload bool) error {
	files, err := a.files([]string{dir})
	if err != nil {
		return err
	}
	mapped, err := a.mappings(ctx, upload)
	if err != nil {
		return err
	}
	plans := map[string]*importPlan{}
	var queue, outputs []planned
	sessions, homes := map[string]planned{}, map[string]string{}
	skippedFiles := 0
	m := a.meter("reading", int64(len(files)), false)
	for _, f := range files {
		m.add(1)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p, err := planFile(mapped, f)
		if err != nil {
			skippedFiles++
			fmt.Fprintf(a.err, "%s: not read: %v\n", f, err)
			continue
		}
		if p.turns == 0 {
			skippedFiles++
			continue
		}
		if _, ok := spilled(f); ok {
			outputs = append(outputs, p)
			continue
		}
		sessions[absolute(f)] = p
		maps.Copy(homes, p.spilled)
		queue = append(queue, p)
	}
	m.done()
	for _, p := range outputs {
		queue = append(queue, p.beside(sessions, homes))
	}
	for i := range queue {
		p := &queue[i]
		if a.project != "" {
			p.project = a.project
		}
		pl := plans[p.project]
		if pl == nil {
			pl = &importPlan{Project: p.project, Folders: []string{}}
			plans[p.project] = pl
		}
		for _, c := range p.cwds {
			if !slices.Contains(pl.Folders, c) {
				pl.Folders = append(pl.Folders, c)
			}
		}
		if st, err := os.Stat(p.file); err == nil {
			pl.Bytes += st.Size()
		}
		pl.Files++
		pl.Turns += p.turns
	}
	names := slices.Sorted(maps.Keys(plans))
	estimates, err := a.importCosts(ctx, queue, names)
	if err != nil {
		return err
	}
	if err := a.printPlan(dir, plans, names, skippedFiles, upload, estimates); err != nil {
		return err
	}
	if !upload || len(names) == 0 {
		return nil
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	slices.SortFunc(queue, oldestFirst)
	m = a.meter("import", int64(len(queue)), false)
	defer m.done()
	done, bad := map[string]int{}, 0
	for _, p := range queue {
		l, err := a.upload(ctx, c, p.project, p.file, false)
		m.add(1)
		if err != nil {
			if _, ok := errors.AsType[noServer](err); ok || ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			bad++
			fmt.Fprintf(a.err, "%s: %v\n", p.file, err)
			continue
		}
		done[l.Outcome]++
	}
	if a.json {
		return a.printJSON(map[string]any{"done": done, "failed": bad})
	}
	for _, k := range sortedKeys(done) {
		fmt.Fprintf(a.out, "%d %s\n", done[k], k)
	}
	if bad > 0 {
		return fault.New(fault.Unavailable, "%d files were not uploaded; run it again to go on", bad)
	}
	return nil
}

func (a *app) printPlan(dir string, plans map[string]*importPlan, names []string, skippedFiles int, upload bool, estimates []gate.Estimate) error {
	where, low, high := "this Mneme only", 0.0, 0.0
	for _, e := range estimates {
		where = "this Mneme, and the model servers under estimates"
		low, high = low+e.Estimate.Low.USD, high+e.Estimate.High.USD
	}
	if a.json {
		list := make([]*importPlan, 0, len(names))
		for _, n := range names {
			list = append(list, plans[n])
		}
		return a.printJSON(map[string]any{
			"dir": dir, "projects": list, "skipped": skippedFiles, "destination": where, "cost_usd": high, "cost_usd_low": low, "estimates": estimates, "upload": upload,
		})
	}
	if len(names) == 0 {
		fmt.Fprintf(a.out, "%s: nothing to import (%d files hold no conversation)\n", dir, skippedFiles)
		return errNothing
	}
	for _, n := range names {
		p := plans[n]
		fmt.Fprintf(a.out, "%-32s %4d files  %8s  %6d turns\n", n, p.Files, sizeText(p.Bytes), p.Turns)
		for _, f := range p.Folders {
			fmt.Fprintf(a.out, "    %s\n", f)
		}
	}
	if skippedFiles > 0 {
		fmt.Fprintf(a.out, "%d files hold no conversation\n", skippedFiles)
	}
	if len(estimates) == 0 {
		fmt.Fprintln(a.out, "The text goes to this Mneme only; secrets are redacted before it is stored; no model is called, so it costs nothing.")
	} else {
		fmt.Fprintln(a.out, "The text goes to this Mneme, and from there, with secrets redacted, to these models:")
		for _, e := range estimates {
			a.printEstimate(e)
		}
	}
	if !upload {
		fmt.Fprintln(a.out, "Run it again with --yes to import.")
	}
	return nil
}

// importCosts are the estimates of the projects in which a model decides. Chunks are
// planned only for them: it means to read every file once more.
func (a *app) importCosts(ctx context.Context, queue []planned, names []string) ([]gate.Estimate, error) {
	out := []gate.Estimate{}
	c, err := a.client()
	if err != nil {
		return out, nil // a plan needs no server; without one nothing is sent either
	}
	asked := map[string]bool{}
	for _, n := range names {
		if !memory.ValidName(n) {
			continue // `_auto`: each record's own folder decides
		}
		var e gate.Estimate
		if err := c.send(ctx, http.MethodPost, "/memory/estimate", map[string]any{"project": n, "chunks": []int{}}, &e); err != nil {
			if _, ok := errors.AsType[noServer](err); ok {
				return out, nil
			}
			return nil, err
		}
		asked[n] = len(e.Sends) > 0
	}
	var plans []chunkPlan
	var count func(string) int
	for _, p := range queue {
		if !asked[p.project] {
			continue
		}
		if count == nil {
			if count, err = wire.Counter(); err != nil {
				return nil, err
			}
		}
		pl, err := planChunks(p.file, count, 0)
		if err != nil {
			return nil, err
		}
		pl.Project = p.project
		plans = append(plans, pl)
	}
	return a.estimates(ctx, c, plans, "")
}

// mappings are the server's. To show a plan needs no server: without one there
// are none.
func (a *app) mappings(ctx context.Context, needed bool) (questions.Projects, error) {
	c, err := a.client()
	if err == nil {
		_, err = c.known(ctx)
	}
	if err != nil {
		if _, ok := errors.AsType[noServer](err); ok && !needed {
			return questions.Projects{}, nil
		}
		return questions.Projects{}, err
	}
	return c.mapped, nil
}

// planFile reads one transcript and names its project: that of its first
// folder, seen on this disk where it still exists. A file of several projects
// goes to `_auto`, where each record's own folder decides.
func planFile(mapped questions.Projects, path string) (p planned, err error) {
	p.file, p.spilled = path, map[string]string{}
	f, r, err := read(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	projects, names, name := map[string]bool{}, map[string]string{}, ""
	for t, err := range r.Turns() {
		if err != nil {
			return p, err
		}
		p.turns++
		if p.first.IsZero() {
			p.first = t.Time
		}
		if known, ok := names[t.Cwd]; ok {
			name = known
		} else if t.Cwd != "" {
			p.cwds = append(p.cwds, t.Cwd)
			name, _ = mapped.ResolveIn(t.Cwd, t.Root, t.Remote)
			if exists(t.Cwd) {
				name = projectIn(mapped, t.Cwd)
			}
			names[t.Cwd], projects[name] = name, true
			if p.project == "" {
				p.project = name
			}
		}
		if key, ok := transcript.SpilledTo(&t); ok && name != "" {
			p.spilled[key] = name
		}
	}
	if len(projects) != 1 {
		p.project = "_auto"
	}
	if st, err := f.Stat(); err == nil && p.first.IsZero() {
		p.first = st.ModTime()
	}
	return p, nil
}

// transcriptOf is the transcript beside whose folder an output stands:
// <session>.jsonl of <session>/tool-results/<id>.txt.
func transcriptOf(output string) string {
	return filepath.Dir(filepath.Dir(absolute(output))) + ".jsonl"
}

// beside gives an output, which names neither folder nor time, the project of
// the call that it is the result of, else of its session, and the session's
// place in time.
func (p planned) beside(sessions map[string]planned, homes map[string]string) planned {
	key, _ := spilled(p.file)
	if s, ok := sessions[transcriptOf(p.file)]; ok {
		p.project, p.first = s.project, s.first
	}
	if home, ok := homes[key]; ok {
		p.project = home
	}
	return p
}
