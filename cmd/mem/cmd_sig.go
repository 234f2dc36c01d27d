package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/signature"
)

func (a *app) cmdSig() *cobra.Command {
	var file, tool, baseline string
	c := &cobra.Command{
		Use: "sig", Short: "Print the signature of a failing log (standard input, or --file); no server is asked", Args: cobra.NoArgs,
		Long: `Print the signature of a failing log: the line that failed first, its class
(sig_sha) and the instance of it (detail_sha). The same failure has the same
signature on every machine and in every CI. Secrets are masked.

  npm ci 2>&1 | mem sig
  mem sig --tool go --file test.log --baseline green.log --json`,
		RunE: func(c *cobra.Command, _ []string) error { return a.sig(c.InOrStdin(), file, tool, baseline) },
	}
	f := c.Flags()
	f.StringVar(&file, "file", "", "the log (default standard input)")
	f.StringVar(&tool, "tool", "", "the tool that wrote it, such as npm, go, docker, gha (default: found out)")
	f.StringVar(&baseline, "baseline", "", "the log of a passing run: what it says too is no failure")
	c.AddCommand(a.cmdSigLearn(), a.cmdSigExplain(), a.cmdSigOutcome(), &cobra.Command{
		Use: "bench FOLDER", Short: "Hold the rules against a folder of labelled logs (manifest.json)", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.sigBench(args[0]) },
	})
	return c
}

func (a *app) sig(in io.Reader, file, tool, baseline string) error {
	// What a log needs is bounded; a collection would take longer than the rest.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	o := signature.Options{Tool: tool}
	if baseline != "" {
		green, err := readLog(nil, baseline)
		if err != nil {
			return err
		}
		o.Baseline = green
	}
	if f, ok := in.(*os.File); file == "" && ok && isTerminal(f) {
		return usageError{fmt.Errorf("no log: name one by --file, or pipe it in")}
	}
	l, err := readLog(in, file)
	if err != nil {
		return err
	}
	r, err := signature.Extract(l, o)
	if err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(r); err != nil {
			return err
		}
	} else {
		a.printSig(r)
	}
	if r.MatchedLine == 0 {
		return errNothing
	}
	return nil
}

// readLog reads file, or in where none is named, in bounded memory.
func readLog(in io.Reader, file string) (*signature.Log, error) {
	if file != "" && file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fault.As(fault.Invalid, err)
		}
		defer f.Close()
		in = f
	}
	l, err := signature.Read(in)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	return l, nil
}

func (a *app) printSig(r signature.Result) {
	tool := r.Tool
	if r.InnerTool != "" {
		tool += " (" + r.InnerTool + ")"
	}
	if r.MatchedLine == 0 {
		fmt.Fprintln(a.out, "the log says nothing")
		return
	}
	fmt.Fprintf(a.out, "%s, line %d, by %s (%.2f)\n  %s\n", tool, r.MatchedLine, r.Rule, r.Confidence, r.Raw)
	fmt.Fprintf(a.out, "class       %s\n  %s\n", r.SigSHA, r.Normalised)
	fmt.Fprintf(a.out, "instance    %s\n", r.DetailSHA)
	if r.Detail != "" {
		fmt.Fprintf(a.out, "  %s\n", r.Detail)
	}
	fmt.Fprintf(a.out, "all errors  %s\nsymptom     %s\n", r.SetSHA, r.SymSHA)
	fmt.Fprintf(a.out, "context\n  %s\n", strings.Join(r.Context, "\n  "))
	if r.Truncated {
		fmt.Fprintf(a.out, "looked at %d of %d bytes: the beginning and the end\n", r.BytesRead, r.Bytes)
	}
}

// maxManifestBytes bounds manifest.json.
const maxManifestBytes = 64 << 20

func (a *app) sigBench(folder string) error {
	b, err := readSmall(filepath.Join(folder, "manifest.json"), maxManifestBytes, "the manifest has %d bytes, at most %d are read")
	if err != nil {
		return err
	}
	rows, err := signature.ParseManifest(b)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(folder) // a manifest names no file outside its folder
	if err != nil {
		return fault.As(fault.Invalid, err)
	}
	defer root.Close()
	results := make([]signature.Result, len(rows))
	for i := range rows {
		if results[i], err = benchOne(root, &rows[i]); err != nil {
			return err
		}
	}
	s := signature.Score(rows, results)
	if a.json {
		return a.printJSON(s)
	}
	a.printScores(s)
	return nil
}

func benchOne(root *os.Root, row *signature.Labelled) (r signature.Result, err error) {
	defer fault.Wrap(&err, "%s", row.File)
	f, err := root.Open(filepath.FromSlash(row.File))
	if err != nil {
		return r, fault.As(fault.Invalid, err)
	}
	defer f.Close()
	l, err := signature.Read(f)
	if err != nil {
		return r, fault.As(fault.Invalid, err)
	}
	row.CountFrames(l)
	return signature.Extract(l, signature.Options{Tool: row.Tool})
}

func (a *app) printScores(s signature.Scores) {
	fmt.Fprintf(a.out, "%-12s %5s %11s %6s %7s %7s %11s\n", "tool", "logs", "root right", "pairs", "stable", "differ", "collisions")
	for _, t := range s.Tools {
		fmt.Fprintf(a.out, "%-12s %5d %11d %6d %7d %7d %11d\n", t.Tool, t.Logs, t.Right, t.Pairs, t.Stable, t.Differ, t.Collides)
	}
	fmt.Fprintf(a.out, "%-12s %5d %11d %6d %7d %7d %11d\n", "all", s.Logs, s.RootRight, s.Pairs, s.PairsStable, s.Differ, s.Collisions)
	fmt.Fprintf(a.out, "\nroot line right    %s\npairs stable       %s\nnot told apart     %s\n",
		share(s.RootRight, s.Logs), share(s.PairsStable, s.Pairs), share(s.Collisions, s.Differ))
	for _, w := range s.Wrong {
		switch w.What {
		case "root":
			fmt.Fprintf(a.out, "root       %s: line %d, labelled %d (%s)\n", w.File, w.Got, w.Want, w.Rule)
		default:
			fmt.Fprintf(a.out, "%-10s %s, %s (%s)\n", w.What, w.File, w.Other, w.Rule)
		}
	}
}

// share prints k of n with its 95 % interval.
func share(k, n int) string {
	if n == 0 {
		return "none"
	}
	lo, hi := signature.Wilson(k, n)
	return fmt.Sprintf("%d of %d = %.1f %% (95 %%: %.1f to %.1f)", k, n, 100*float64(k)/float64(n), 100*lo, 100*hi)
}
