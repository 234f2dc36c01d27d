package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/shared/fault"
)

type vaultFlags struct {
	out      string
	evidence bool
	check    bool
	every    time.Duration
}

func (a *app) cmdVault() *cobra.Command {
	f := vaultFlags{}
	c := &cobra.Command{
		Use:   "vault",
		Short: "Write what a project knows as Markdown pages for Obsidian or any editor",
		Long: `Writes a folder of Markdown pages for each project: index.md, a page for each
standing question, and timeline.md. The same log gives the same bytes.

What stands under "## Notes" on a page is yours. It is sent to the log before the
pages are written, so that a vault you drop comes back with it; it follows its
question under another name, and two versions that met stand side by side. Whatever
else you change in a page is kept beside it as NAME.local-1.md.

With --check nothing is written: what leads nowhere is named with its page and line,
and so is what differs from the pages as the log has them now, citation by citation
(object, bytes, sha256). Pages that are only behind the log are counted.

Without --project: that of the working directory, else every project.`,
		Example: "  mem vault\n  mem vault -p shop --out ~/notes --emit-evidence-notes\n  mem vault --check --out ~/notes\n  mem vault watch --out ~/notes",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.check {
				return a.checkVault(c.Context(), f.out)
			}
			return a.syncVaults(c.Context(), f)
		},
	}
	flags := c.PersistentFlags()
	flags.StringVarP(&f.out, "out", "o", "vault", "folder that holds a folder for each project")
	flags.BoolVar(&f.evidence, "emit-evidence-notes", false, "a page for each statement too, in evidence/")
	c.Flags().BoolVar(&f.check, "check", false, "write nothing: look whether every link and block of the folder leads somewhere, and every page and citation is what would be written now")
	watch := &cobra.Command{
		Use:   "watch",
		Short: "Keep the folder in step until Ctrl-C: your notes go to the log, new memory comes to the pages",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.every < 100*time.Millisecond {
				return usageError{fmt.Errorf("--every %v: at least 100ms", f.every)}
			}
			return a.watchVaults(c.Context(), f)
		},
	}
	watch.Flags().DurationVar(&f.every, "every", 2*time.Second, "time between two looks at the folder and at the server")
	c.AddCommand(watch)
	return c
}

// vaultProjects are the projects that a command means.
func (a *app) vaultProjects(ctx context.Context, cl *client) ([]string, error) {
	p, err := a.scope(ctx, cl)
	if err != nil {
		return nil, err
	}
	if p != "" {
		return []string{p}, nil
	}
	return cl.known(ctx)
}

func (a *app) syncVaults(ctx context.Context, f vaultFlags) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	projects, err := a.vaultProjects(ctx, cl)
	if err != nil {
		return err
	}
	if len(projects) == 0 {
		fmt.Fprintln(a.err, "mem: nothing is learned yet; see: mem learn --help")
		return errNothing
	}
	var first error
	refused := false
	for _, p := range projects {
		v := &vaultSync{client: cl, project: p, out: f.out, evidence: f.evidence}
		r, err := v.sync(ctx)
		v.close()
		if err != nil {
			if len(projects) == 1 || ctx.Err() != nil {
				return err
			}
			if first == nil { // one project's broken file does not keep the others
				first = err
			}
			fmt.Fprintf(a.err, "mem: %s: %v\n", p, err)
			continue
		}
		refused = refused || len(r.Refused) > 0
		if err := a.printVault(r); err != nil {
			return err
		}
	}
	if first == nil && refused {
		first = errNothing
	}
	return first
}

// printVault says what was done to one folder.
func (a *app) printVault(r *vaultReport) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%s: %d pages in %s: %d written, %d removed", r.Project, r.Pages, r.Folder, r.Written, r.Removed)
	if r.Saved > 0 {
		fmt.Fprintf(a.out, ", %d notes of yours saved", r.Saved)
	}
	fmt.Fprintln(a.out)
	for _, x := range r.Masked {
		fmt.Fprintf(a.out, "  %s: secrets in your notes were masked (%s); your text is in %s\n", x.Path, x.Reason, x.Kept)
	}
	for _, x := range r.Conflicts {
		fmt.Fprintf(a.out, "  %s: versions of its notes were written side by side; all stand there, edit them into one\n", x)
	}
	for _, x := range r.Aside {
		fmt.Fprintf(a.out, "  %s: %s; kept as %s\n", x.Path, x.Reason, x.Kept)
	}
	for _, x := range r.Refused {
		fmt.Fprintf(a.out, "  %s: left alone: %s\n", x.Path, x.Reason)
	}
	if n := r.Stats.Unresolved; n > 0 {
		fmt.Fprintf(a.out, "  %d source ids of memories lead nowhere; they are plain text\n", n)
	}
	return nil
}

// checkVault looks at the folders that were written below out.
func (a *app) checkVault(ctx context.Context, out string) error {
	folders, err := vaultFolders(out)
	if err != nil {
		return err
	}
	if len(folders) == 0 {
		return fault.At(fault.NotFound, out, "write one with: mem vault --out "+out, "no vault stands there")
	}
	cl, err := a.client()
	if err != nil {
		return err
	}
	bad := 0
	for _, at := range folders {
		if a.project != "" && !strings.HasPrefix(filepath.Base(at), a.project) {
			continue
		}
		r, err := checkFolder(ctx, cl, at)
		if err != nil {
			return err
		}
		bad += len(r.Problems)
		if a.json {
			if err := a.printJSON(r); err != nil {
				return err
			}
			continue
		}
		for _, p := range r.Problems {
			fmt.Fprintf(a.out, "%s/%s\n", at, p)
		}
		fmt.Fprintf(a.out, "%s: %d pages, %d links, %d citations, %d problems\n", at, r.Pages, r.Links, r.Citations, len(r.Problems))
		if r.Behind > 0 {
			fmt.Fprintf(a.out, "  %d pages are behind the log; mem vault brings them in step\n", r.Behind)
		}
	}
	if bad > 0 {
		return errNothing
	}
	return nil
}
