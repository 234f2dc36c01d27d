package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/fault"
)

func (a *app) cmdReport() *cobra.Command {
	question := ""
	c := &cobra.Command{
		Use:   "report",
		Short: "What each question's stream did and cost: update rate, memory size, failures, cost per kept memory",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			p, err := a.scope(c.Context(), cl)
			if err != nil {
				return err
			}
			var out query.Reports
			if err := cl.get(c.Context(), "/memory/report"+queryString("project", p, "query", question), &out); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(out)
			}
			if len(out.Streams) == 0 {
				fmt.Fprintln(a.err, "mem: no stream has decided anything yet")
				return errNothing
			}
			for _, s := range out.Streams {
				a.printStreamReport(s)
			}
			return nil
		},
	}
	c.Flags().StringVarP(&question, "question", "q", "", "only this question id, or this stream")
	return c
}

func (a *app) printStreamReport(s query.StreamReport) {
	r, by := s.Figures, "the built-in policy"
	if len(s.Models) > 0 {
		by = strings.Join(s.Models, ", ")
	}
	serving := ""
	if !s.Serving {
		serving = ", not serving"
	}
	fmt.Fprintf(a.out, "%s/%s  by %s%s\n", s.Project, s.Stream, by, serving)
	fmt.Fprintf(a.out, "  steps          %d, %d open: update rate %.3f [%.3f, %.3f]\n", r.Steps, r.Open, r.UpdateRate, r.UpdateCI[0], r.UpdateCI[1])
	fmt.Fprintf(a.out, "  memory tokens  p50 %.0f, p95 %.0f, most %.0f, %+.2f a step\n", r.MemoryP50, r.MemoryP95, r.MemoryMax, r.MemorySlope)
	if len(s.Models) == 0 {
		return
	}
	fmt.Fprintf(a.out, "  unreadable     %d (%.3f), %d pending, %d asked again, %d second attempts, %d prompts cut by the server\n", r.BadFormat, r.FormatRate, r.Pending, r.Regated, r.Retried, r.Cut)
	fmt.Fprintf(a.out, "  exit gate      open %d times, first at step %d\n", r.Exits, r.FirstExit)
	fmt.Fprintf(a.out, "  tokens         %s prompt (own count %s), %s completion\n", thousands(r.PromptTokens), thousands(r.PromptTokensOwn), thousands(r.CompletionTokens))
	fmt.Fprintf(a.out, "  latency        p50 %.0f ms, p95 %.0f ms a step\n", r.LatencyP50, r.LatencyP95)
	fmt.Fprintf(a.out, "  cost           $%.4f; a kept memory $%.4f and %s tokens (%d kept)\n", r.USD, r.USDPerKept, thousands(int64(r.TokensPerKept)), r.Kept)
}

// regateFlags are those of mem regate.
type regateFlags struct {
	pending  bool
	question string
	dry      bool
	wait     bool
	timeout  time.Duration
}

func (a *app) cmdRegate() *cobra.Command {
	var f regateFlags
	c := &cobra.Command{
		Use:   "regate",
		Short: "Decide again: steps that a model left undecided (--pending)",
		Long: `Decide again: steps that a model left undecided.

--pending asks every step again of which no reply could be read, or whose prompt
the server cut. Each is a new step of its stream that names the old one; the log
keeps both. It waits until they are answered.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !f.pending {
				return usageError{errors.New("say what: --pending")}
			}
			return a.regatePending(c.Context(), f)
		},
	}
	c.Flags().BoolVar(&f.pending, "pending", false, "ask the undecided steps again")
	c.Flags().StringVarP(&f.question, "question", "q", "", "only this question id, or this stream")
	c.Flags().BoolVarP(&f.dry, "dry-run", "n", false, "list the undecided steps, and ask nothing")
	c.Flags().BoolVar(&f.wait, "wait", true, "wait until they are answered")
	c.Flags().DurationVar(&f.timeout, "timeout", time.Hour, "how long to wait")
	return c
}

func (a *app) regatePending(ctx context.Context, f regateFlags) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	project := ""
	if a.project != "" {
		if project, err = a.named(ctx, cl); err != nil {
			return err
		}
	}
	where := "/memory/regate" + queryString("project", project, "query", f.question)
	var list gate.Regated
	if f.dry {
		err = cl.get(ctx, where, &list)
	} else {
		err = cl.send(ctx, http.MethodPost, "/memory/regate", map[string]any{"project": project, "query": f.question}, &list)
	}
	if err != nil {
		return err
	}
	steps := 0
	for _, s := range list.Streams {
		steps += len(s.Pending)
	}
	if f.dry || steps == 0 || !f.wait {
		if a.json {
			return a.printJSON(list)
		}
		if steps == 0 {
			fmt.Fprintln(a.out, "no step is undecided")
		}
		for _, s := range list.Streams {
			fmt.Fprintf(a.out, "%s/%s: %d undecided, %d asked again\n", s.Project, s.Stream, len(s.Pending), s.Asked)
			for _, p := range s.Pending {
				fmt.Fprintf(a.out, "  t=%d  part %d, chunk %d [%d,%d)\n", p.T, p.Admit, p.I+1, p.Start, p.End)
			}
		}
		return nil
	}
	left, err := a.awaitRegate(ctx, cl, where, steps, f.timeout)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]int{"asked": steps, "answered": steps - left, "undecided": left})
	}
	fmt.Fprintf(a.out, "%d undecided steps asked again: %d answered, %d still undecided\n", steps, steps-left, left)
	if left > 0 {
		return errNothing
	}
	return nil
}

// awaitRegate waits until what was asked is answered, and counts what is undecided
// then.
func (a *app) awaitRegate(ctx context.Context, cl *client, where string, steps int, timeout time.Duration) (left int, err error) {
	m := a.meter("regate", int64(steps), false)
	defer m.done()
	end := time.Now().Add(timeout)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		var now gate.Regated
		if err := cl.get(ctx, where, &now); err != nil {
			return 0, err
		}
		asked := 0
		left = 0
		for _, s := range now.Streams {
			asked += s.Asked
			left += len(s.Pending)
		}
		m.set(int64(max(steps-asked, 0)), int64(steps))
		if asked == 0 {
			return left, nil
		}
		var st struct {
			Paused []gate.Paused `json:"paused"`
		}
		if err := cl.get(ctx, "/memory/status", &st); err == nil && len(st.Paused) > 0 {
			return left, &fault.Error{Kind: fault.Exhausted, Msg: "paused: " + st.Paused[0].Reason, Hint: st.Paused[0].Hint}
		}
		if time.Now().After(end) {
			return left, fault.At(fault.Unavailable, "regate", "mem dead and mem doctor say what is wrong; the request stands", "%d steps are not answered after %v", asked, timeout)
		}
		select {
		case <-ctx.Done():
			return left, ctx.Err()
		case <-time.After(pause):
		}
	}
}
