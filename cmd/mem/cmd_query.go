package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

type queryFlags struct {
	level        string
	limit        int
	since, until string
	asOf         string
	sources      []string
	also         []string // other projects
	budget       int      // tokens
}

func (a *app) cmdQuery() *cobra.Command {
	f := queryFlags{}
	c := &cobra.Command{
		Use:   "query QUESTION…",
		Short: "Ask; every answer cites the exact span it came from",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			p, err := a.scope(c.Context(), cl)
			if err != nil {
				return err
			}
			projects := []string{p}
			for _, name := range f.also {
				other := *a
				other.project = name
				if p, err = other.scope(c.Context(), cl); err != nil {
					return err
				}
				projects = append(projects, p)
			}
			return a.ask(c.Context(), cl, projects, strings.Join(args, " "), f)
		},
	}
	c.Flags().StringVar(&f.level, "level", "", "L0 evidence, L1 memory, L2 synthesis, raw; several with commas (default: memory and evidence)")
	c.Flags().IntVarP(&f.limit, "limit", "n", 10, "results, 1 to 100")
	c.Flags().StringVar(&f.since, "since", "", "only what was said from this day or time on")
	c.Flags().StringVar(&f.until, "until", "", "only what was said before this day or time")
	c.Flags().StringVar(&f.asOf, "as-of", "", "the answer of this day or time: nothing that was said later, and nothing replaced by it")
	c.Flags().StringArrayVar(&f.sources, "source", nil, "only what was said in this upload, by its name or what that begins with; may be given again")
	c.Flags().IntVar(&f.budget, "budget", 0, "at most so many tokens of texts and quotes, as an agent has room for; what is left out is named, and mem original gives it")
	c.Flags().StringArrayVar(&f.also, "also", nil, "another project that is asked too; may be given again")
	return c
}

func (a *app) ask(ctx context.Context, c *client, projects []string, question string, f queryFlags) error {
	body := map[string]any{"query": question, "projects": projects, "level": f.level, "since": f.since, "until": f.until, "as_of": f.asOf, "sources": f.sources}
	if f.limit != 0 {
		body["limit"] = f.limit
	}
	if f.budget != 0 {
		body["budget_tokens"] = f.budget
	}
	var raw json.RawMessage
	if err := c.send(ctx, http.MethodPost, "/memory/query", body, &raw); err != nil {
		return err
	}
	var ans query.Answer
	if err := json.Unmarshal(raw, &ans); err != nil {
		return err
	}
	if a.json {
		if _, err := a.out.Write(append(raw, '\n')); err != nil {
			return err
		}
	} else {
		a.printAnswer(ans)
	}
	if len(ans.Results) == 0 {
		return errNothing
	}
	return nil
}

// own begins what Mneme says, and gives what ends it. Read by a program, it may come
// back in its transcript: the marker says whose words these are.
func (a *app) own() (end func()) {
	if isTerminal(a.out) {
		return func() {}
	}
	fmt.Fprintln(a.out, transcript.MarkerOpen+">")
	return func() { fmt.Fprintln(a.out, transcript.MarkerClose) }
}

// shownCitations is how many citations people see of one result; --json has all.
const shownCitations = 3

func (a *app) printAnswer(ans query.Answer) {
	for _, d := range ans.Degraded {
		fmt.Fprintf(a.err, "note: %s: %s\n", shortOf(d.Leg), shown(d.Why))
	}
	for _, om := range ans.Omitted {
		how := "it is not kept"
		if om.Hash != "" {
			how = "mem original " + om.Hash[:compress.ShownHex]
		}
		fmt.Fprintf(a.err, "note: %d %s left out: %s\n", om.Count, shown(om.Unit), how)
	}
	if len(ans.Results) == 0 {
		fmt.Fprintln(a.out, ans.Notice)
		return
	}
	if ans.Notice != "" {
		fmt.Fprintln(a.out, ans.Notice)
	}
	defer a.own()()
	for i, r := range ans.Results {
		mark := ""
		if len(r.SupersededBy) > 0 {
			mark = "  (superseded)"
		}
		head := string(r.Level)
		if r.QueryID != "" {
			head += " " + r.QueryID
		}
		summary := r.Level == memory.L1 || r.Level == memory.L2
		text := indent(shown(r.Text), "   ")
		if summary {
			text = fmt.Sprintf("the memory of %q says, nearest first:", r.QueryID)
			if r.Level == memory.L2 {
				text = "the project's synthesis says, nearest first:"
			}
		}
		fmt.Fprintf(a.out, "%d. %s%s\n", i+1, text, mark)
		if !summary {
			fmt.Fprintf(a.out, "   %s · %s · score %.2f · %s\n", head, r.Project, r.Score, r.Reason)
		}
		for j, c := range r.Citations {
			if j == shownCitations {
				fmt.Fprintf(a.out, "   … and %d more\n", len(r.Citations)-j)
				break
			}
			if summary && c.Quote != "" {
				fmt.Fprintf(a.out, "   “%s”\n", indent(shown(c.Quote), "   "))
			}
			who := strings.TrimSpace(string(c.Role) + " " + age(c.Time))
			fmt.Fprintf(a.out, "   └ %s bytes %d-%d (%s)\n", shown(c.Object), c.Start, c.End, who)
		}
		if summary {
			fmt.Fprintf(a.out, "   %s · %s · score %.2f · %s\n", head, r.Project, r.Score, r.Reason)
		}
		fmt.Fprintln(a.out)
	}
}

// shortOf says what an answer had to do without.
func shortOf(leg string) string {
	switch leg {
	case "semantic":
		return "the search by meaning did not answer; words decided alone"
	case "lexical":
		return "the search by words did not answer; meaning decided alone"
	case "graph":
		return "the rows of the memory could not be read; this is what the index of words holds"
	case "rerank":
		return "the reranker did not answer; the order is that of the search"
	case "questions":
		return "a question file cannot be read; all streams of its project answered"
	case "project":
		return "a project was left out"
	}
	return leg
}

// indent puts a text's later lines under its first.
func indent(s, by string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n"+by)
}

func (a *app) cmdWhy() *cobra.Command {
	return &cobra.Command{
		Use:   "why SHA|FILE",
		Short: "Which chunks were kept or refused, and the reason",
		Long: `Which chunks were kept or refused, and the reason: the gate records of a file
that was uploaded, or of a chunk, a node or a memory by its hash.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.why(c.Context(), args[0]) },
	}
}

func (a *app) why(ctx context.Context, what string) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	sha := memory.SHA(what)
	if !sha.Valid() {
		if sha, err = rawSHA(what); err != nil {
			return err
		}
	}
	project := ""
	if a.project != "" {
		if project, err = a.scope(ctx, c); err != nil {
			return err
		}
	}
	n := 0
	err = c.lines(ctx, "/memory/why?sha256="+url.QueryEscape(string(sha))+strings.Replace(queryString("project", project), "?", "&", 1), func(line []byte) error {
		n++
		if a.json {
			_, err := a.out.Write(append(line, '\n'))
			return err
		}
		var g query.Why
		if err := json.Unmarshal(line, &g); err != nil {
			return err
		}
		verdict := "refused"
		if g.Update {
			verdict = "kept"
		}
		fmt.Fprintf(a.out, "%-7s  %s/%s t=%d  chunk %d of %d (%s)  %s\n         %s\n", verdict, g.Project, g.QueryID, g.T, g.I+1, g.TotalT, g.Chunk.Short(), g.Object, g.Reason)
		return nil
	})
	if err == nil && n == 0 {
		return errNothing
	}
	return err
}

func (a *app) cmdLog() *cobra.Command {
	var stream, kind string
	c := &cobra.Command{
		Use:   "log",
		Short: "Print the log: every record, one a line, as it is stored",
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
			n := 0
			err = cl.lines(c.Context(), "/memory/log"+queryString("project", p, "stream", stream, "type", kind), func(line []byte) error {
				n++
				_, err := a.out.Write(append(line, '\n'))
				return err
			})
			if err == nil && n == 0 {
				return errNothing
			}
			return err
		},
	}
	c.Flags().StringVar(&stream, "stream", "", "one stream, or a question's id (default: all; _admit is the order of admission)")
	c.Flags().StringVar(&kind, "type", "", "only records of this type: admit, run, gate, evidence, memory, run_end")
	return c
}

// exists reports whether path names something on this disk.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
