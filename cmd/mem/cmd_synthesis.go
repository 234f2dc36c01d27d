package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/fault"
)

func (a *app) cmdSynthesis() *cobra.Command {
	var again bool
	timeout := 10 * time.Minute
	c := &cobra.Command{
		Use:   "synthesis",
		Short: "What a project's memories come to, each sentence with its sources",
		Long: `What a project's memories come to, each sentence with the question that keeps it and
the exact span it came from.

It is made by itself when every standing question has read what was admitted and one of
their memories changed, and each night. --again makes a run over the same memories, as
after a change of the model; it waits for it.`,
		Example: "  mem synthesis -p shop\n  mem synthesis -p shop --again",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.synthesis(c.Context(), again, timeout)
		},
	}
	c.Flags().BoolVar(&again, "again", false, "make it once more, though no memory changed")
	c.Flags().DurationVar(&timeout, "timeout", timeout, "with --again: how long to wait")
	return c
}

func (a *app) synthesis(ctx context.Context, again bool, timeout time.Duration) error {
	cl, project, err := a.inOne(ctx)
	if err != nil {
		return err
	}
	where := "/memory/synthesis" + queryString("project", project)
	if again {
		if err := a.synthesizeAgain(ctx, cl, project, where, timeout); err != nil {
			return err
		}
	}
	var s query.Synthesis
	if err := cl.get(ctx, where, &s); err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(s)
	} else {
		a.printSynthesis(s)
	}
	if err == nil && len(s.Lines) == 0 {
		return errNothing
	}
	return err
}

// synthesizeAgain returns when a run has completed that was not there before.
func (a *app) synthesizeAgain(ctx context.Context, cl *client, project, where string, timeout time.Duration) error {
	var asked gate.SynthesisAsked
	if err := cl.send(ctx, http.MethodPost, "/memory/synthesis", map[string]any{"project": project, "again": true}, &asked); err != nil {
		return err
	}
	end := time.Now().Add(timeout)
	for pause := 50 * time.Millisecond; asked.Due; pause = min(2*pause, 2*time.Second) {
		var now query.Synthesis
		if err := cl.get(ctx, where, &now); err != nil {
			return err
		}
		if now.Run != asked.Run {
			return nil
		}
		if p := pausedFor(ctx, cl, project); p != nil {
			return p
		}
		if time.Now().After(end) {
			return fault.At(fault.Unavailable, "synthesis", "mem wait, mem dead and mem doctor say what is wrong; the request stands", "it is not made after %v", timeout)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return nil
}

func (a *app) printSynthesis(s query.Synthesis) {
	if s.Run != "" {
		by := s.Model
		if by == "" {
			by = s.Policy
		}
		fmt.Fprintf(a.out, "%s: %s\n%d memories read, %d used, %d tokens, %s by %s\n\n", s.Project, s.Question, s.Read, s.Used, s.Tokens, age(s.Ended), by)
	}
	if s.Notice != "" {
		fmt.Fprintln(a.out, s.Notice)
	}
	if len(s.Lines) == 0 {
		return
	}
	defer a.own()()
	for _, l := range s.Lines {
		fmt.Fprintf(a.out, "- %s\n", shown(l.Text))
		var of []string
		for _, m := range l.Memories {
			of = append(of, m.QueryID)
		}
		for i, c := range l.Citations {
			if i == shownCitations {
				fmt.Fprintf(a.out, "  … and %d more\n", len(l.Citations)-i)
				break
			}
			fmt.Fprintf(a.out, "  └ %s · %s bytes %d-%d (%s)\n", strings.Join(of, ", "), shown(c.Object), c.Start, c.End, strings.TrimSpace(string(c.Role)+" "+age(c.Time)))
		}
	}
}
