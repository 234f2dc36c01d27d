package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/guptarohit/asciigraph"
	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/report"
)

// reportFlags are those of mem report.
type reportFlags struct {
	question, run, svg, html string
	last, human              bool
	runs                     int
}

func (a *app) cmdReport() *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report [RUN]",
		Short: "What each question's stream did and cost: update rate, memory over the steps, failures, cost, right and wrong gates",
		Long: `What each question's stream did and cost, or one run of it: RUN is the first digits
of a run's id (--runs lists them), --last the last run of each stream.

Beside the gate stand a gate that always opens and one that never does; where labels
say which steps hold evidence (mem label), so do precision, recall, F1, Matthews'
coefficient, the mean reward of the update gate, and how many parts the exit gate ended
early, exactly or late.`,
		Example: "  mem report -q decisions\n  mem report --last --html report.html\n  mem report 1f0a77c2 --svg memory.svg",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				f.run = args[0]
			}
			if f.run != "" && f.last {
				return usageError{errors.New("RUN or --last, not both")}
			}
			if f.runs < 0 {
				return usageError{fmt.Errorf("--runs %d", f.runs)}
			}
			return a.report(c.Context(), f)
		},
	}
	c.Flags().StringVarP(&f.question, "question", "q", "", "only this question id, or this stream")
	c.Flags().BoolVar(&f.last, "last", false, "only the last run of each stream")
	c.Flags().IntVar(&f.runs, "runs", 0, "list the latest runs, 20 or --runs=N, of each stream")
	c.Flags().Lookup("runs").NoOptDefVal = "20"
	c.Flags().BoolVar(&f.human, "human", false, "take people's labels alone")
	c.Flags().StringVar(&f.svg, "svg", "", "draw the memory over the steps into this file (- for standard output)")
	c.Flags().StringVar(&f.html, "html", "", "write the report as a page into this file (- for standard output)")
	return c
}

// seriesPoints is how many points of a series are asked for: as many as the pictures
// have units of width, about.
const seriesPoints = 600

func (a *app) report(ctx context.Context, f reportFlags) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	p, err := a.scope(ctx, cl)
	if err != nil {
		return err
	}
	flag := func(b bool) string {
		if b {
			return "true"
		}
		return ""
	}
	runs := ""
	if f.runs > 0 {
		runs = strconv.Itoa(f.runs)
	}
	var out query.Reports
	if err := cl.get(ctx, "/memory/report"+queryString("project", p, "query", f.question, "run", f.run, "last", flag(f.last),
		"human", flag(f.human), "runs", runs, "points", strconv.Itoa(seriesPoints)), &out); err != nil {
		return err
	}
	if len(out.Streams) == 0 && !a.json {
		if f.question != "" {
			fmt.Fprintf(a.err, "mem: no stream of question %s has decided anything yet\n", f.question)
		} else {
			fmt.Fprintln(a.err, "mem: no stream has decided anything yet")
		}
		return errNothing
	}
	for path, write := range map[string]func(io.Writer) error{
		f.svg:  func(w io.Writer) error { return report.WriteSVG(w, out.Streams) },
		f.html: func(w io.Writer) error { return report.WriteHTML(w, out.Streams) },
	} {
		switch path {
		case "":
			continue
		case "-":
			err = write(a.out)
		default:
			if err = writeFile(path, write); err == nil {
				fmt.Fprintf(a.err, "%s written\n", path)
			}
		}
		if err != nil {
			return err
		}
	}
	switch {
	case f.svg == "-" || f.html == "-":
		return nil
	case a.json:
		return a.printJSON(out)
	}
	for i := range out.Streams {
		s := &out.Streams[i]
		if f.runs > 0 {
			a.printRuns(s)
			continue
		}
		if err := a.printStreamReport(s, len(out.Streams) == 1 || f.run != "" || f.last); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printRuns(s *report.Stream) {
	fmt.Fprintf(a.out, "%s/%s\n", s.Project, s.Stream)
	for _, r := range s.Runs {
		how := "runs"
		switch {
		case r.Exited:
			how = "ended by its exit gate"
		case !r.Ended.IsZero():
			how = "ended"
		}
		fmt.Fprintf(a.out, "  %s  %-9s part %-5d %4d steps from t=%-5d %4d open  %s  %s\n", r.Run.Short(), r.Cause, r.Admit, r.Steps, r.FirstT, r.Open, r.Started.Format("2006-01-02T15:04:05Z"), how)
	}
}

func (a *app) printStreamReport(s *report.Stream, plot bool) error {
	r := s.Figures
	fmt.Fprintf(a.out, "%s/%s  by %s", s.Project, s.Stream, s.By())
	if s.Run != nil {
		fmt.Fprintf(a.out, ", run %s (%s %d)", s.Run.Run.Short(), s.Run.Cause, s.Run.Admit)
	}
	if !s.Serving {
		fmt.Fprint(a.out, ", not serving")
	}
	fmt.Fprintln(a.out)
	fmt.Fprintf(a.out, "  steps          %d, %d open: update rate %.3f [%.3f, %.3f]\n", r.Steps, r.Open, r.UpdateRate, r.UpdateCI[0], r.UpdateCI[1])
	fmt.Fprintf(a.out, "  memory tokens  p50 %.0f, p95 %.0f, most %.0f, %+.2f a step", r.MemoryP50, r.MemoryP95, r.MemoryMax, r.MemorySlope)
	if s.Memory.BudgetTokens > 0 {
		fmt.Fprintf(a.out, ", of %s", thousands(int64(s.Memory.BudgetTokens)))
	}
	fmt.Fprintln(a.out)
	if plot {
		a.printPlot(s.Memory)
	} else if len(s.Memory.Points) > 0 {
		fmt.Fprintf(a.out, "                 %s\n", sparkline(s.Memory, 60))
	}
	if len(s.Models) > 0 {
		fmt.Fprintf(a.out, "  unreadable     %d (%.3f), %d pending, %d asked again, %d second attempts, %d prompts cut by the server\n", r.BadFormat, r.FormatRate, r.Pending, r.Regated, r.Retried, r.Cut)
		fmt.Fprintf(a.out, "  exit gate      open %d times, first at step %d\n", r.Exits, r.FirstExit)
		fmt.Fprintf(a.out, "  tokens         %s prompt (own count %s), %s completion\n", thousands(r.PromptTokens), thousands(r.PromptTokensOwn), thousands(r.CompletionTokens))
		fmt.Fprintf(a.out, "  latency        p50 %.0f ms, p95 %.0f ms a step\n", r.LatencyP50, r.LatencyP95)
		fmt.Fprintf(a.out, "  cost           $%.4f; a kept memory $%.4f and %s tokens (%d kept)\n", r.USD, r.USDPerKept, thousands(int64(r.TokensPerKept)), r.Kept)
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	if s.Labels.Steps == 0 {
		fmt.Fprint(t, "  baselines    ")
		for i, g := range s.Gates {
			if i > 0 {
				fmt.Fprint(t, ", ")
			}
			fmt.Fprintf(t, "%s %.3f", report.WhoText(g.Who), g.UpdateRate)
		}
		fmt.Fprintln(t, " open;", s.Labels.Text())
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "  bases          %s\n", s.Bases())
		return nil
	}
	fmt.Fprintf(a.out, "  labels         %s\n", s.Labels.Text())
	fmt.Fprintln(t, "  \topen\tprecision\trecall\tF1\tMCC\tr_update")
	for _, g := range s.Gates {
		fmt.Fprintf(t, "  %-13s\t%.3f\t%s\t%s\t%s\t%s\t%s\n", report.WhoText(g.Who), g.UpdateRate, report.ShareText(g.Precision, g.PrecisionCI), report.ShareText(g.Recall, g.RecallCI),
			report.MaybeText(g.F1), report.MaybeText(g.MCC), report.MaybeText(g.Reward))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "  bases          %s\n", s.Bases())
	fmt.Fprintf(a.out, "  exits          %s\n", s.Exits.Text())
	return nil
}

// Sizes of the plot in a terminal: it stands in 80 columns.
const (
	plotColumns = 60
	plotRows    = 7
)

// printPlot draws the memory over the steps.
func (a *app) printPlot(m report.Series) {
	if len(m.Points) < 2 {
		return
	}
	ys := make([]float64, 0, len(m.Points))
	for _, p := range m.Points {
		ys = append(ys, float64(p.Max))
	}
	first, last := m.Points[0], m.Points[len(m.Points)-1]
	g := asciigraph.Plot(ys, asciigraph.Width(plotColumns), asciigraph.Height(plotRows), asciigraph.LowerBound(0), asciigraph.UpperBound(1), asciigraph.Precision(0), asciigraph.Offset(6))
	for line := range strings.Lines(g) {
		fmt.Fprintln(a.out, strings.TrimRight(line, " \n"))
	}
	from, to := fmt.Sprintf("t=%d", first.T-first.Steps+1), fmt.Sprintf("t=%d", last.T)
	fmt.Fprintf(a.out, "%*s%s%*s\n", 9, "", from, max(1, plotColumns-len(from)), to)
}

// sparkline draws the memory in one line of at most n signs, from an empty memory to
// the largest.
func sparkline(m report.Series, n int) string {
	const signs = "▁▂▃▄▅▆▇█"
	bars := []rune(signs)
	most := 1
	for _, p := range m.Points {
		most = max(most, p.Max)
	}
	n = min(n, len(m.Points))
	var b strings.Builder
	for i := range n {
		high := 0
		for _, p := range m.Points[i*len(m.Points)/n : (i+1)*len(m.Points)/n] {
			high = max(high, p.Max)
		}
		b.WriteRune(bars[high*(len(bars)-1)/most])
	}
	return b.String()
}

// writeFile writes a file whole or not at all. Its errors name the path that was
// asked for, and not the file beside it that takes its place at the end.
func writeFile(path string, write func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = writeFault(path, err)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(path), ".mem-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := errors.Join(write(f), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// writeFault says what is wrong with a file that can not be written.
func writeFault(path string, err error) error {
	cause := err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		cause = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		cause = e.Err
	} else {
		return err // what gave the bytes, not the file
	}
	kind, hint := fault.Unavailable, "free some space, or name another file"
	switch {
	case errors.Is(cause, fs.ErrNotExist):
		kind, hint = fault.Invalid, "make its folder first, or name another"
	case errors.Is(cause, fs.ErrPermission):
		kind, hint = fault.Invalid, "name a file in a folder that you may write to"
	case errors.Is(cause, fs.ErrExist), errors.Is(cause, syscall.EISDIR), errors.Is(cause, syscall.ENOTDIR):
		kind, hint = fault.Invalid, "name a file in a folder"
	}
	return fault.At(kind, path, hint, "can not be written: %v", cause)
}
