package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/embed"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/fault"
)

func (a *app) cmdModel() *cobra.Command {
	c := &cobra.Command{
		Use: "model", Short: "Which models decide, embed and rerank, and what was found of them", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			var found gate.ModelsFound
			if err := cl.get(c.Context(), "/memory/models", &found); err != nil {
				return err
			}
			var st embed.Status
			if err := cl.get(c.Context(), "/memory/models/spaces", &st); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(struct {
					gate.ModelsFound
					Embedding embed.Status `json:"embedding"`
				}{found, st})
			}
			if err := a.printSpaces(st); err != nil {
				return err
			}
			return a.printModels(found)
		},
	}
	c.AddCommand(a.spaceCommands()...)
	c.AddCommand(&cobra.Command{
		Use:   "reload",
		Short: "Take over a changed models file (MNEME_MODELS) now",
		Long: `Take over a changed models file (MNEME_MODELS) now; each sweep does it by itself.

New parts are decided by what the file names now; what was decided stands, until mem
regate --apply decides it again. A file that cannot be used changes nothing. Another embedding
model fills its space while the present one serves (mem model set embed); what reranks is
exchanged by a new start alone.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			var r gate.Reloaded
			if err := cl.send(c.Context(), http.MethodPost, "/memory/models/reload", map[string]any{}, &r); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(r)
			}
			if !r.Changed {
				fmt.Fprintln(a.out, "nothing changed")
			}
			return a.printModels(r.ModelsFound)
		},
	})
	return c
}

func (a *app) printModels(found gate.ModelsFound) error {
	if a.json {
		return a.printJSON(found)
	}
	fmt.Fprintf(a.out, "new parts are decided by %s\n", found.Policy)
	for _, m := range found.Models {
		state := "ok"
		if err := m.Err(); err != nil {
			state = err.Error()
		}
		fmt.Fprintf(a.out, "  %-8s %s: %s\n", or(m.Use, "decides"), m.Server, state)
	}
	if found.Error != "" {
		return fault.At(fault.Unavailable, "models", found.Hint, "%s", found.Error)
	}
	return nil
}

// regateFlags are those of mem regate.
type regateFlags struct {
	pending  bool
	question string
	dry      bool
	wait     bool
	timeout  time.Duration
	shadow   bool
	apply    bool
	yes      bool
	model    string
	url      string
	limit    int
}

func (a *app) cmdRegate() *cobra.Command {
	var f regateFlags
	c := &cobra.Command{
		Use:   "regate",
		Short: "Decide again: undecided steps (--pending), or what another model would decide (--shadow)",
		Long: `Decide again.

--pending asks every step again of which no reply could be read, or whose prompt
the server cut. Each is a new step of its stream that names the old one; the log
keeps both. It waits until they are answered.

--model X --shadow asks another model the gate's question about every step that was
decided, with the memory as it was then, and compares: agreement, where they differ,
what it cost. Its answers are kept as labels; the memory stays as it is. A call that
was interrupted goes on where it was.

--apply decides everything once more, by --model X or by the models that are
configured now: each question gets a new stream, which is back-filled over all that is
admitted while the present one answers, and then takes its place (mem wait). The log
keeps both. It shows what that costs, and needs --yes.`,
		Example: "  mem regate --pending\n  mem regate --model qwen2.5:7b-instruct --shadow -q decisions --limit 100\n  mem regate --model qwen2.5:7b-instruct --apply --yes",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case countTrue(f.pending, f.shadow, f.apply) != 1:
				return usageError{errors.New("say what: --pending, --model MODEL --shadow, or --apply")}
			case f.shadow && f.model == "":
				return usageError{errors.New("--shadow needs the other model: --model MODEL")}
			case f.pending && (f.model != "" || f.url != "" || f.limit != 0):
				return usageError{errors.New("--model, --url and --limit do not go with --pending: pending steps are asked of the project's own models")}
			case f.shadow:
				return a.regateShadow(c.Context(), f)
			case f.apply:
				return a.regateApply(c.Context(), f)
			}
			return a.regatePending(c.Context(), f)
		},
	}
	c.Flags().BoolVar(&f.shadow, "shadow", false, "compare another model with what was decided")
	c.Flags().BoolVar(&f.apply, "apply", false, "decide everything once more, in new streams")
	c.Flags().BoolVar(&f.yes, "yes", false, "with --apply: do it, and not only show what it costs")
	c.Flags().StringVar(&f.model, "model", "", "with --shadow and --apply: the other model")
	c.Flags().StringVar(&f.url, "url", "", "where the other model is, a configured endpoint (default the project's own)")
	c.Flags().IntVar(&f.limit, "limit", 0, "with --shadow: only the latest steps of each stream")
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
		for _, u := range now.Streams {
			if p := pausedFor(ctx, cl, u.Project); u.Asked > 0 && p != nil {
				return left, p
			}
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

func countTrue(bs ...bool) (n int) {
	for _, b := range bs {
		if b {
			n++
		}
	}
	return n
}

func (a *app) regateApply(ctx context.Context, f regateFlags) error {
	cl, project, err := a.inOne(ctx)
	if err != nil {
		return err
	}
	var out gate.Reopened
	err = cl.send(ctx, http.MethodPost, "/memory/regate", map[string]any{
		"project": project, "query": f.question, "apply": true, "model": f.model, "base_url": f.url, "dry_run": f.dry || !f.yes,
	}, &out)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	a.printEstimate(out.Estimate)
	if f.dry || !f.yes {
		fmt.Fprintf(a.out, "%s would decide %s once more; run it again with --yes\n", out.Model, strings.Join(out.Streams, ", "))
		return nil
	}
	fmt.Fprintf(a.out, "%s decides in %s; the present streams answer until they have caught up (mem wait)\n", out.Model, strings.Join(out.Streams, ", "))
	return nil
}

func (a *app) regateShadow(ctx context.Context, f regateFlags) error {
	cl, project, err := a.inOne(ctx)
	if err != nil {
		return err
	}
	m := a.meter("shadow", -1, false)
	var out gate.Shadowed
	err = cl.long(ctx, http.MethodPost, "/memory/shadow", gate.ShadowRequest{Project: project, Query: f.question, Model: f.model, BaseURL: f.url, Limit: f.limit}, func(p json.RawMessage) {
		var s struct{ Done, Of int64 }
		if json.Unmarshal(p, &s) == nil {
			m.set(s.Done, s.Of)
		}
	}, &out)
	m.done()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	if len(out.Streams) == 0 {
		fmt.Fprintln(a.err, "mem: no stream has decided anything yet")
		return errNothing
	}
	return a.printShadow(out)
}

// printShadow is the table of a comparison, and where the two differ.
func (a *app) printShadow(s gate.Shadowed) error {
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "stream\tby\tsteps\tboth open\tboth closed\tonly now\tonly %s\tunreadable\tagreement\tkappa\n", s.Model)
	for _, c := range s.Streams {
		kappa := "-"
		if c.Kappa != nil {
			kappa = fmt.Sprintf("%.2f", *c.Kappa)
		}
		by := cmp.Or(c.Model, "policy")
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.3f [%.3f, %.3f]\t%s\n", c.Stream, by, c.Table.N()+c.Unread,
			c.Table.Both, c.Table.Neither, c.Table.OnlyA, c.Table.OnlyB, c.Unread, c.Agreement, c.CI[0], c.CI[1], kappa)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	fmt.Fprintf(t, "cost\tprompt tokens now\t%s\tcompletion now\t%s\tUSD now\t%s\tms a step now\t%s\n", s.Model, s.Model, s.Model, s.Model)
	for _, c := range s.Streams {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%.4f\t%.4f\t%.0f\t%.0f\n", c.Stream, thousands(c.Now.PromptTokens), thousands(c.Then.PromptTokens),
			thousands(c.Now.CompletionTokens), thousands(c.Then.CompletionTokens), c.Now.USD, c.Then.USD, c.Now.LatencyMS, c.Then.LatencyMS)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	asked := 0
	fmt.Fprintln(a.out)
	for _, c := range s.Streams {
		asked += c.Asked
		for _, d := range c.Differ {
			now, then := "closed", "open"
			if d.Now {
				now, then = "open", "closed"
			}
			fmt.Fprintf(a.out, "%s t=%d  now %s, %s %s  chunk %s  %s\n", c.Stream, d.T, now, s.Model, then, d.Chunk, d.Reason)
		}
	}
	fmt.Fprintf(a.out, "%d steps were asked now; the answers are kept as labels, and the memory is as it was. mem why CHUNK shows a step.\n", asked)
	return nil
}
