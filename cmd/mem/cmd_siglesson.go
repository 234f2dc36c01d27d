package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/functions/sig"
	"github.com/mneme-ai/mneme/shared/cures"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/signature"
)

func (a *app) cmdSigLearn() *cobra.Command {
	var file, tool, solution string
	c := &cobra.Command{
		Use: "learn", Short: "Keep what cured the failure of a log (standard input, or --file)", Args: cobra.NoArgs,
		Long: `Keep what cured the failure of a log. It is stored under the signature of the
failure, with secrets masked, in one project; mem sig explain finds it there when the
same failure comes again. The same lesson again writes nothing (docs/LESSONS.md).`,
		Example: "  mem sig learn --file npm.log --tool npm --solution 'Pin react to 16: react-mask has no newer release.'",
		RunE: func(c *cobra.Command, _ []string) error {
			if strings.TrimSpace(solution) == "" {
				return usageError{errors.New("say what cured it: --solution TEXT")}
			}
			log, err := logBytes(c.InOrStdin(), file)
			if err != nil {
				return err
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			p, err := a.target(c.Context(), cl)
			if err != nil {
				return err
			}
			if p == "_auto" {
				return usageError{errors.New("name a project with --project")}
			}
			var out sig.Learned
			if err := cl.send(c.Context(), http.MethodPost, "/memory/sig/lessons", sig.LearnRequest{Project: p, Tool: tool, Solution: solution, Log: sig.Log{Data: log}}, &out); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(out)
			}
			a.printLesson(out)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&file, "file", "", "the log (default standard input)")
	f.StringVar(&tool, "tool", "", "the tool that wrote it (default: found out)")
	f.StringVar(&solution, "solution", "", "what cured it, in words")
	return c
}

func (a *app) printLesson(out sig.Learned) {
	what := "stored"
	if !out.Stored {
		what = "known already, nothing stored"
	}
	fmt.Fprintf(a.out, "%s: lesson %s of project %s\n", what, out.Lesson.Short(), out.Project)
	fmt.Fprintf(a.out, "  failure   %s (%s, %.2f)\n            %s\n", out.Tool, out.Rule, out.Confidence, shown(out.Failure))
	fmt.Fprintf(a.out, "  class     %s\n  instance  %s\n", out.SigSHA, out.DetailSHA)
	fmt.Fprintf(a.out, "  solution  %s\n", shown(out.Solution))
	if !out.Visible {
		fmt.Fprintln(a.out, "  it is found when the index has caught up (mem wait)")
	}
}

func (a *app) cmdSigExplain() *cobra.Command {
	var file, sha, tool, words string
	var limit int
	c := &cobra.Command{
		Use: "explain [FILE]", Short: "What cured a failure before: by its log, its sig_sha, or in words", Args: cobra.MaximumNArgs(1),
		Long: `What cured a failure before, in this project: first lessons of this very failure,
then of its class, then of what is said of it. A success rate is given from three uses on.`,
		Example: "  mem sig explain npm.log\n  npm ci 2>&1 | mem sig explain --tool npm\n  mem sig explain --tool npm --query 'unable to resolve dependency tree'",
		RunE: func(c *cobra.Command, args []string) error {
			b := sig.ExplainRequest{SigSHA: sha, Tool: tool, Query: words, Limit: limit}
			if len(args) == 1 {
				file = args[0]
			}
			cl, err := a.failing(c, file, file != "" || sha == "" && words == "", &b.Data, &b.Project)
			if err != nil {
				return err
			}
			return a.sigExplain(c.Context(), cl, b)
		},
	}
	f := c.Flags()
	f.StringVar(&file, "file", "", "the log")
	f.StringVar(&sha, "sig-sha", "", "a sig_sha or detail_sha, as mem sig prints it")
	f.StringVar(&tool, "tool", "", "the tool (default: found out)")
	f.StringVar(&words, "query", "", "what failed, in words")
	f.IntVarP(&limit, "limit", "n", 0, "solutions (default 20)")
	return c
}

// failing reads the failing log, where the question has one, and the one project that it
// is about.
func (a *app) failing(c *cobra.Command, file string, has bool, log *[]byte, project *string) (cl *client, err error) {
	if has {
		if *log, err = logBytes(c.InOrStdin(), file); err != nil {
			return nil, err
		}
	}
	cl, *project, err = a.inOne(c.Context())
	return cl, err
}

func (a *app) sigExplain(ctx context.Context, cl *client, b sig.ExplainRequest) error {
	var out sig.Explained
	if err := cl.send(ctx, http.MethodPost, "/memory/sig/explain", b, &out); err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
	} else {
		a.printExplained(out)
	}
	if !out.Found {
		return errNothing
	}
	return nil
}

// byWords are the tiers of an answer as people read them.
var byWords = map[cures.By]string{
	cures.ByDetail: "this very failure", cures.ByClass: "failures of this class", cures.BySymptom: "failures that these words describe",
}

func (a *app) printExplained(out sig.Explained) {
	if out.Failure != "" {
		fmt.Fprintf(a.out, "%s\n", shown(out.Failure))
	}
	if !out.Found {
		fmt.Fprintf(a.out, "nothing is known: %s\n", out.Why)
		return
	}
	defer a.own()()
	n := "1 lesson"
	if out.Count != 1 {
		n = fmt.Sprintf("%d lessons", out.Count)
	}
	fmt.Fprintf(a.out, "%s of %s (%s)\n", n, byWords[out.By], out.By)
	for _, s := range out.Solutions {
		a.printSolution(s)
	}
}

func (a *app) printSolution(s lesson.Solution) {
	rate := "too few uses to say how often it works"
	if s.SuccessRate != nil {
		rate = fmt.Sprintf("worked %d of %d times", s.Successes, s.Uses)
	}
	fmt.Fprintf(a.out, "\n%s\n  %s, %s; %s; lesson %s\n", shown(s.Solution), shown(s.Source), s.Timestamp, rate, s.Lesson.Short())
	if out := shown(s.Failure); out != "" {
		fmt.Fprintf(a.out, "  it was: %s\n", out)
	}
	if s.Command != "" {
		fmt.Fprintf(a.out, "  command: %s\n", shown(s.Command))
	}
	for _, c := range s.Changes {
		what := c.Path
		if what == "" {
			what = c.Quote
		}
		fmt.Fprintf(a.out, "  %s %s", c.Kind, shown(what))
		if c.Added+c.Removed > 0 {
			fmt.Fprintf(a.out, " (+%d -%d)", c.Added, c.Removed)
		}
		fmt.Fprintln(a.out)
	}
	for _, sp := range s.Spans[:min(len(s.Spans), maxShownSpans)] {
		fmt.Fprintf(a.out, "  %s: %s bytes %d-%d\n", sp.Role, shown(sp.Object), sp.Start, sp.End)
	}
}

// maxShownSpans is how many spans people see of one solution; --json has all.
const maxShownSpans = 4

func (a *app) cmdSigOutcome() *cobra.Command {
	var worked, failed bool
	var use string
	c := &cobra.Command{
		Use: "outcome LESSON", Short: "Say whether a lesson cured the failure this time", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if worked == failed {
				return usageError{errors.New("say which: --worked, or --failed")}
			}
			cl, p, err := a.inOne(c.Context())
			if err != nil {
				return err
			}
			var out sig.Told
			if err := cl.send(c.Context(), http.MethodPost, "/memory/sig/outcomes", sig.OutcomeRequest{Project: p, Lesson: args[0], Worked: &worked, Use: use}, &out); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(out)
			}
			what := "failed"
			if out.Worked {
				what = "worked"
			}
			fmt.Fprintf(a.out, "lesson %s of project %s %s (use %s)\n", out.Lesson.Short(), out.Project, what, out.Use)
			return nil
		},
	}
	f := c.Flags()
	f.BoolVar(&worked, "worked", false, "it cured the failure")
	f.BoolVar(&failed, "failed", false, "it did not")
	f.StringVar(&use, "use", "", "a name of this use, such as a CI run: telling of it twice is one")
	return c
}

// logBytes reads file, or in where none is named: of a log over signature.MaxBytes its
// beginning and its end, which is what is looked at.
func logBytes(in io.Reader, file string) ([]byte, error) {
	if file != "" && file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fault.As(fault.Invalid, err)
		}
		defer f.Close()
		in = f
	} else if f, ok := in.(*os.File); ok && isTerminal(f) {
		return nil, usageError{fmt.Errorf("no log: name one by --file, or pipe it in")}
	}
	const most = signature.MaxBytes - 64
	head, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	if len(head) < most {
		return head, nil
	}
	head = head[:signature.HeadSize]
	const keep = most - signature.HeadSize
	var tail []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := in.Read(chunk)
		if tail = append(tail, chunk[:n]...); len(tail) > 2*keep {
			tail = append(tail[:0], tail[len(tail)-keep:]...)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fault.As(fault.Invalid, err)
		}
	}
	return bytes.Join([][]byte{head, tail[max(0, len(tail)-keep):]}, []byte("\n")), nil
}

func (a *app) cmdContext() *cobra.Command {
	var file, tool string
	var limit int
	c := &cobra.Command{
		Use: "context [QUESTION…]", Short: "What is known of a failure: lessons first, then what was said, then documents",
		RunE: func(c *cobra.Command, args []string) error {
			b := query.ContextRequest{Query: strings.Join(args, " "), Tool: tool, Limit: limit}
			cl, err := a.failing(c, file, file != "" || b.Query == "", &b.Data, &b.Project)
			if err != nil {
				return err
			}
			var out query.Context
			if err := cl.send(c.Context(), http.MethodPost, "/memory/context", b, &out); err != nil {
				return err
			}
			if a.json {
				if err := a.printJSON(out); err != nil {
					return err
				}
			} else {
				a.printContext(out)
			}
			if len(out.Results) == 0 {
				return errNothing
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&file, "file", "", "the failing log, - for standard input")
	f.StringVar(&tool, "tool", "", "the tool (default: found out)")
	f.IntVarP(&limit, "limit", "n", 10, "results, 1 to 100")
	return c
}

func (a *app) printContext(out query.Context) {
	for _, d := range out.Degraded {
		fmt.Fprintf(a.err, "note: %s: %s\n", shortOf(d.Leg), shown(d.Why))
	}
	fmt.Fprintf(a.out, "tier %d, confidence %s: %s\n", out.Tier, out.Confidence, out.Why)
	if len(out.Results) == 0 {
		return
	}
	defer a.own()()
	for _, r := range out.Results {
		fmt.Fprintf(a.out, "\n%s\n", shown(r.Text))
		if r.SuccessRate != nil {
			fmt.Fprintf(a.out, "  worked in %.0f %% of %d uses\n", 100**r.SuccessRate, r.Uses)
		}
		for _, q := range r.Citations[:min(len(r.Citations), maxShownSpans)] {
			fmt.Fprintf(a.out, "  %s: %s", q.Shows, shown(q.Object))
			if q.End > q.Start {
				fmt.Fprintf(a.out, " bytes %d-%d", q.Start, q.End)
			}
			fmt.Fprintln(a.out)
		}
	}
}
