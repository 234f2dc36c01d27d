package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/project"
	"github.com/mneme-ai/mneme/shared/export"
)

func (a *app) cmdExport() *cobra.Command {
	var body project.ExportRequest
	var dir, check string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write gate decisions as Parquet files to train a gate model with",
		Long: `Write gate decisions, their labels and their rewards as Parquet files:

  canonical  gates.parquet, every decision with every field
  sft        sft.parquet, sft_pc.parquet           TRL, verl, Axolotl, LLaMA-Factory
  kto        kto.parquet, kto_messages.parquet     TRL; LLaMA-Factory
  dpo        dpo.parquet, dpo_flat.parquet         TRL; Axolotl, LLaMA-Factory
  verl       verl_rl.parquet                       verl, for reinforcement learning
  all        all of them

and a manifest.json that says what they follow from, what was left out and why.
Equal logs, labels and options give equal bytes. The same is written every night,
of the day before, into mneme/derived/exports/<day>/<tenant>/: mem export list
shows those, mem export get fetches one.

A project whose question file says "export: false" is left out. docs/TRAINING.md
shows how to train with the files.`,
		Example: "  mem export --out ./data\n  mem export --since 2026-05-01 --format kto --split train --out ./data\n  mem export --check ./data\n  mem export get 2026-05-01 --out ./night",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if check != "" {
				return a.checkExport(check)
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			if a.project != "" {
				if body.Project, err = a.named(c.Context(), cl); err != nil {
					return err
				}
			}
			body.Keep = dir == ""
			m := a.meter("gate decisions", -1, false)
			var out project.Exported
			err = cl.long(c.Context(), http.MethodPost, "/memory/export", body, func(p json.RawMessage) {
				var s struct{ Gates int64 }
				if json.Unmarshal(p, &s) == nil {
					m.set(s.Gates, -1)
				}
			}, &out)
			m.done()
			if err != nil {
				return err
			}
			where := "mneme/" + out.Prefix
			if dir != "" {
				where = dir
				if err := a.fetchExport(c.Context(), cl, dir, out.ExportID, &out.Report); err != nil {
					return err
				}
				a.forgetExport(c.Context(), cl, out.ExportID)
			}
			return a.printExport(&out, where)
		},
	}
	c.AddCommand(a.cmdExportList(), a.cmdExportGet())
	f := c.Flags()
	f.StringVar(&body.Since, "since", "", "runs that ended on this day (2026-01-31, UTC) or at this time, or later")
	f.StringVar(&body.Until, "until", "", "runs that ended on this day or before, or before this time")
	f.StringVar(&body.Format, "format", "all", strings.Join(export.Formats(), ", "))
	f.StringVar(&body.Split, "split", "", strings.Join(export.Splits, ", ")+"; all of them by default")
	f.StringVarP(&dir, "out", "o", "", "folder to write into; left in the server's bucket without it")
	f.StringVar(&check, "check", "", "check a file, a manifest or a folder of an export, with no server")
	return c
}

func (a *app) cmdExportList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the exports that were written at night, a day each", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			var out project.Nights
			if err := cl.get(c.Context(), "/memory/export", &out); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(out)
			}
			if len(out.Nights) == 0 {
				fmt.Fprintln(a.out, "no night's export stands: the first comes after midnight, UTC, of the day on which something is learned")
				return nil
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprint(t, "DAY\tSIZE\tEXPORT\n")
			for _, n := range out.Nights {
				fmt.Fprintf(t, "%s\t%s\t%s\n", n.Day, sizeText(n.SizeBytes), n.ExportID)
			}
			return t.Flush()
		},
	}
}

func (a *app) cmdExportGet() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "get DAY|ID --out DIR", Short: "Fetch and check the export of a night, or a kept one by its id", Args: cobra.ExactArgs(1),
		Example: "  mem export get 2026-05-01 --out ./night",
		RunE: func(c *cobra.Command, args []string) error {
			if dir == "" {
				return usageError{errors.New("--out is missing: the folder to write into")}
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			var out project.Exported
			if err := cl.get(c.Context(), exportPath(args[0]), &out); err != nil {
				return err
			}
			if err := a.fetchExport(c.Context(), cl, dir, args[0], &out.Report); err != nil {
				return err
			}
			if _, err := export.CheckPath(dir); err != nil {
				return err
			}
			return a.printExport(&out, dir)
		},
	}
	c.Flags().StringVarP(&dir, "out", "o", "", "folder to write into")
	return c
}

// exportPath is the route of an export by its id or its day.
func exportPath(name string) string { return "/memory/export/" + url.PathEscape(name) }

// fetchExport copies an export, by its id or its day, into a folder and checks it there.
func (a *app) fetchExport(ctx context.Context, cl *client, dir, name string, r *export.Report) error {
	var total int64
	for _, f := range r.Files {
		total += f.SizeBytes
	}
	m := a.meter("fetch", total, true)
	defer m.done()
	return export.Receive(ctx, dir, r, func(ctx context.Context, file string) (io.ReadCloser, error) {
		resp, err := cl.do(ctx, http.MethodGet, exportPath(name)+"/"+url.PathEscape(file), "", nil, -1)
		if err != nil {
			return nil, err
		}
		return struct {
			io.Reader
			io.Closer
		}{m.reader(resp.Body), resp.Body}, nil
	})
}

// forgetExport lets the server forget its copy of what was fetched.
func (a *app) forgetExport(ctx context.Context, cl *client, id string) {
	resp, err := cl.do(ctx, http.MethodDelete, exportPath(id), "", nil, -1)
	if err == nil {
		err = resp.Body.Close()
	}
	if err != nil {
		fmt.Fprintf(a.err, "mem: the server keeps its copy for a day, as it could not be removed: %v\n", err)
	}
}

func (a *app) printExport(out *project.Exported, where string) error {
	if a.json {
		return a.printJSON(struct {
			*project.Exported
			Where string `json:"where"`
		}{out, where})
	}
	r := &out.Report
	of := ""
	if r.Options.Split != "" {
		of = " of the split " + r.Options.Split
	}
	fmt.Fprintf(a.out, "%d gate decisions of %d runs%s in %s\n\n", r.Gates, r.Trajectories, of, where)
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "rows\tsize\t\n")
	for _, f := range r.Files {
		fmt.Fprintf(t, "%d\t%s\t %s\n", f.Rows, sizeText(f.SizeBytes), f.Name)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	only := "\nin no file, as no trainer should see them:"
	if slices.Contains(r.Options.Files, export.Gates) {
		only = "\nin gates.parquet alone, as no trainer should see them:"
	}
	a.counts(only, r.Excluded)
	a.counts("\nin no file:", r.Absent)
	s := r.Rewards
	fmt.Fprintf(a.out, "\n%d decisions have a label", s.Labelled)
	if s.Labelled > 0 {
		fmt.Fprintf(a.out, ", %d of them agree with it; exits: %d early, %d exact, %d late; format broken in %d runs", s.Right, s.ExitEarly, s.ExitExact, s.ExitLate, s.FormatBroken)
	}
	fmt.Fprintln(a.out)
	if s.Labelled == 0 && r.Gates > 0 {
		fmt.Fprintln(a.out, "without labels there is nothing for KTO, DPO and verl to learn from")
	}
	for _, l := range r.Labels {
		for _, j := range l.Untrusted {
			fmt.Fprintf(a.out, "labels of %s in %s did not count: they are not trusted\n", strings.TrimSpace(j.Kind+" "+j.Model), l.Project)
		}
	}
	for _, p := range r.Problems {
		fmt.Fprintf(a.out, "project %s is left out: %s\n", p.Project, p.Error)
		if p.Hint != "" {
			fmt.Fprintln(a.out, "  hint: "+p.Hint)
		}
	}
	fmt.Fprintf(a.out, "export %s, read to %d streams' ends\n", r.ExportID, len(r.Position))
	if len(r.Problems) > 0 {
		return errNothing
	}
	return nil
}

// reasons says in words what manifests say in codes.
var reasons = map[string]string{
	"truncated_prompt": "the server cut the prompt", "cut_reply": "the reply was cut off", "format": "the reply could not be read",
	"refused": "the reply was refused for what it said", "pending": "not decided yet", "nothing_asked": "nothing was asked: empty, or Mneme's own words",
	"unknown_wording": "asked in a wording that this version does not know",
	"nothing_new":     "what helps was known already: neither yes nor no would be true",
	"no_consent":      "the project's question file says export: false", "erased": "erased", "open": "their run has not ended",
	"restated": "no decisions: a scrub stated texts anew", "other_split": "of another split",
}

func (a *app) counts(title string, m map[string]int) {
	if len(m) == 0 {
		return
	}
	fmt.Fprintln(a.out, title)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		what := reasons[k]
		if what == "" {
			what = k
		}
		fmt.Fprintf(a.out, "  %6d  %s\n", m[k], what)
	}
}

// checkExport checks what stands on the disk.
func (a *app) checkExport(path string) error {
	begun := time.Now()
	m := a.meter("check", -1, false)
	stop := m.spin()
	got, err := export.CheckPath(path)
	stop()
	if a.json && err == nil {
		return a.printJSON(map[string]any{"files": got})
	}
	for _, c := range got {
		beside := "no manifest beside it"
		if c.Manifest {
			beside = "as its manifest says"
		}
		fmt.Fprintf(a.out, "ok  %s  %s, %d rows, %s, %s\n", c.Path, c.File, c.Rows, sizeText(c.SizeBytes), beside)
	}
	if err == nil {
		what := "files are"
		if len(got) == 1 {
			what = "file is"
		}
		fmt.Fprintf(a.out, "%d %s sound (%v)\n", len(got), what, time.Since(begun).Round(time.Millisecond))
	}
	return err
}
