package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/project"
	"github.com/mneme-ai/mneme/shared/eventlog"
)

func (a *app) cmdVerify() *cobra.Command {
	var filter, rebuild bool
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check the whole log and the indexes, and print their hashes",
		Long: `Check the whole log and the indexes, and print their hashes.

--derived-filter checks besides that nothing which Mneme gave out is evidence: not in
the log, and not if every memory, synthesis, skill and draft came back as a file, a
message, a tool's result or a paste. It writes nothing and calls no model.

--rebuild proves besides that a rebuild gives what serves: every index is built anew
from the log beside the serving one, the two are compared by hash, counts and passages,
every page of the vault byte by byte, and the new ones are dropped. What differs is named
by project, stream and node.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			m := a.meter("verify", -1, false)
			var v project.Verified
			path := "/memory/verify"
			if rebuild {
				path += "?rebuild=true"
			}
			err = cl.long(c.Context(), http.MethodGet, path, nil, func(p json.RawMessage) {
				if !m.rebuild(p) {
					m.add(1)
				}
			}, &v)
			m.done()
			if err != nil {
				return err
			}
			var d *gate.DerivedFilter
			if filter {
				if d, err = a.derivedFilter(c.Context(), cl); err != nil {
					return err
				}
			}
			if a.json {
				err = a.printJSON(struct {
					project.Verified
					Filter *gate.DerivedFilter `json:"derived_filter,omitempty"`
				}{v, d})
			} else {
				fmt.Fprintf(a.out, "log_hash    %s\nindex_hash  %s\n", v.LogHash, v.IndexHash)
				for _, s := range sortedKeys(v.Streams) {
					fmt.Fprintf(a.out, "  %s  %s\n", v.Streams[s], s)
				}
				for _, p := range v.Problems {
					fmt.Fprintln(a.out, "problem:", p)
				}
				if n := v.Counts["without_vector"]; n > 0 {
					fmt.Fprintf(a.out, "%d passages have no vector, as a model had none for them: they are found by their words alone\n", n)
				}
				if v.Rebuild != nil {
					a.printComparison(v.Rebuild)
				}
				if d != nil {
					a.printDerivedFilter(d)
				}
				if v.OK && (d == nil || d.OK) {
					fmt.Fprintln(a.out, "ok")
				}
			}
			if err == nil && (!v.OK || d != nil && !d.OK) {
				return errNothing
			}
			return err
		},
	}
	c.Flags().BoolVar(&filter, "derived-filter", false, "check too that nothing which Mneme gave out is evidence")
	c.Flags().BoolVar(&rebuild, "rebuild", false, "build every index anew beside the serving one, and compare")
	return c
}

// printComparison prints what a rebuild beside the serving indexes showed.
func (a *app) printComparison(c *project.Comparison) {
	for _, d := range c.Differences {
		fmt.Fprintln(a.out, "difference:", d)
	}
	if c.Omitted > 0 {
		fmt.Fprintf(a.out, "difference: and %d more\n", c.Omitted)
	}
	is := "equal"
	if !c.OK {
		is = "not equal"
	}
	fmt.Fprintf(a.out, "rebuilt     %s, %s: %d nodes, %d passages, %d vectors, %d passages by words, %d pages byte by byte; %d segments, %d policy calls, %d model calls\n",
		c.IndexHash, is, c.Index.Nodes, c.Index.Passages, c.Index.Vectors, c.LexicalPassages, c.Pages, c.Segments, c.PolicyCalls, c.ModelCalls)
}

// derivedFilter asks of the project that is named, or of all.
func (a *app) derivedFilter(ctx context.Context, cl *client) (*gate.DerivedFilter, error) {
	p := ""
	if a.project != "" {
		var err error
		if p, err = a.named(ctx, cl); err != nil {
			return nil, err
		}
	}
	m := a.meter("derived filter", -1, false)
	defer m.done()
	out := &gate.DerivedFilter{}
	return out, cl.long(ctx, http.MethodGet, "/memory/derived"+queryString("project", p), nil, func(json.RawMessage) { m.add(1) }, out)
}

func (a *app) printDerivedFilter(d *gate.DerivedFilter) {
	for _, r := range d.Projects {
		var kinds []string
		total := 0
		for _, k := range sortedKeys(r.Artifacts) {
			total += r.Artifacts[k]
			kinds = append(kinds, fmt.Sprintf("%d %s", r.Artifacts[k], k))
		}
		fmt.Fprintf(a.out, "derived filter, %s: %d statements in the log; %d texts given out (%s), fed back in %d forms to %d questions: %d new evidence\n",
			r.Project, r.Statements, total, strings.Join(kinds, ", "), r.Fed, r.Streams, r.Evidence)
		if len(r.ByModel) > 0 {
			fmt.Fprintf(a.out, "  a model decides %s: %d of the forms would reach it unmarked, and what it would keep is not known before; once it has, a statement that is a memory's own text is named here as a problem\n",
				strings.Join(r.ByModel, ", "), r.Unmarked)
		}
		for _, p := range r.Problems {
			fmt.Fprintln(a.out, "problem:", p)
		}
		if r.Omitted > 0 {
			fmt.Fprintf(a.out, "problem: and %d more\n", r.Omitted)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (a *app) cmdRebuild() *cobra.Command {
	fromLog, only := true, ""
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "Build every index anew from the log, with no model call, while the old one serves",
		Long: `Build every index anew from the log, with no model call, while the old one serves.

Each is built beside the one that serves, checked, and switched in one step: a query sees
all of the old or all of the new. One that was interrupted goes on where it was. While one
runs, another is refused.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !fromLog {
				return usageError{errors.New("the log is the only source there is")}
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			m := a.meter("rebuild", -1, false)
			var out project.Rebuilt
			err = cl.long(c.Context(), http.MethodPost, "/memory/rebuild"+queryString("only", only), nil, func(p json.RawMessage) { m.rebuild(p) }, &out)
			m.done()
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(out)
			}
			if out.IndexHash != "" {
				fmt.Fprintf(a.out, "index_hash  %s\n", out.IndexHash)
			}
			if out.Only == "lessons" {
				fmt.Fprintf(a.out, "%d lessons\n", out.Lessons)
				return nil
			}
			fmt.Fprintf(a.out, "%d nodes, %d passages, %d policy calls, %d model calls\n", out.Nodes, out.Passages, out.PolicyCalls, out.ModelCalls)
			if out.Resumed > 0 {
				fmt.Fprintf(a.out, "went on after %d segments of an interrupted rebuild\n", out.Resumed)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&fromLog, "from-log", true, "the log is the only source there is")
	c.Flags().StringVar(&only, "only", "", "rebuild one alone: sqlite or pg, bleve or os, vault")
	return c
}

func (a *app) cmdStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "What is in flight, and what was done since the start",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			var raw map[string]json.RawMessage
			if err := cl.get(c.Context(), "/memory/status", &raw); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(raw)
			}
			for _, k := range sortedKeys(raw) {
				fmt.Fprintf(a.out, "%-13s %s\n", k, raw[k])
			}
			return nil
		},
	}
}

func (a *app) cmdDead() *cobra.Command {
	return &cobra.Command{
		Use:   "dead",
		Short: "List dead letters: events and objects that were given up",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			var raw struct {
				Dead []json.RawMessage `json:"dead"`
			}
			if err := cl.get(c.Context(), "/memory/dead", &raw); err != nil {
				return err
			}
			if len(raw.Dead) == 0 && !a.json {
				fmt.Fprintln(a.out, "none")
			}
			for _, line := range raw.Dead {
				if a.json {
					fmt.Fprintln(a.out, string(line))
					continue
				}
				var d eventlog.Dead
				if err := json.Unmarshal(line, &d); err != nil {
					return err
				}
				fmt.Fprintf(a.out, "%s  %s %s %s after %d: %s: %s", age(&d.At), d.Function, d.EventType, d.Subject, d.Attempts, d.Kind, d.Error)
				if d.Hint != "" {
					fmt.Fprintf(a.out, " (%s)", d.Hint)
				}
				fmt.Fprintln(a.out)
			}
			return nil
		},
	}
}

func (a *app) cmdToken() *cobra.Command {
	return &cobra.Command{
		Use:   "token",
		Short: "Print the API token of the folder",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			creds, err := wire.ReadCredentials(a.folder())
			if err != nil {
				return noServer{err}
			}
			if a.json {
				return a.printJSON(map[string]string{"token": creds.Token.Reveal()})
			}
			fmt.Fprintln(a.out, creds.Token.Reveal())
			return nil
		},
	}
}

func (a *app) cmdS3() *cobra.Command {
	c := &cobra.Command{
		Use: "s3", Short: "The S3 endpoint of mem up", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "env",
		Short: "Print what S3 clients need, as shell exports",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			creds, err := wire.ReadCredentials(a.folder())
			if err != nil {
				return noServer{err}
			}
			r, err := wire.ReadReady(a.folder())
			if err != nil {
				return noServer{err}
			}
			env := [][2]string{
				{"AWS_ENDPOINT_URL", r.S3}, {"AWS_ACCESS_KEY_ID", creds.S3AccessKey.Reveal()},
				{"AWS_SECRET_ACCESS_KEY", creds.S3SecretKey.Reveal()}, {"AWS_REGION", "us-east-1"},
			}
			if a.json {
				m := map[string]string{}
				for _, e := range env {
					m[e[0]] = e[1]
				}
				return a.printJSON(m)
			}
			for _, e := range env {
				fmt.Fprintf(a.out, "export %s=%s\n", e[0], e[1])
			}
			return nil
		},
	})
	return c
}

func (a *app) cmdVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the formats it writes",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := wire.Versions()
			v["mem"] = version
			if bi, ok := debug.ReadBuildInfo(); ok {
				v["go"] = bi.GoVersion
			}
			if a.json {
				return a.printJSON(v)
			}
			for _, k := range sortedKeys(v) {
				fmt.Fprintf(a.out, "%-14s %s\n", k, v[k])
			}
			return nil
		},
	}
}

func (a *app) cmdQuestion() *cobra.Command {
	c := &cobra.Command{
		Use: "question", Aliases: []string{"questions"}, Short: "The standing questions of a project", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	call := func(do func(ctx context.Context, cl *client, project string, args []string) error) func(*cobra.Command, []string) error {
		return func(c *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			p, err := a.one(c.Context(), cl)
			if err != nil {
				return err
			}
			return do(c.Context(), cl, p, args)
		}
	}
	var exitGate bool
	add := &cobra.Command{
		Use: "add ID QUESTION…", Short: "Ask a new question, or give one a new wording; it is back-filled over all that is admitted",
		Args: cobra.MinimumNArgs(2),
		RunE: call(func(ctx context.Context, cl *client, project string, args []string) error {
			var out gate.Questions
			err := cl.send(ctx, http.MethodPost, "/memory/questions", map[string]any{
				"project": project, "id": args[0], "question": strings.Join(args[1:], " "), "exit_gate": exitGate,
			}, &out)
			if err != nil {
				return err
			}
			return a.printQuestions(out, args[0])
		}),
	}
	add.Flags().BoolVar(&exitGate, "exit-gate", false, "act on the exit gate")
	c.AddCommand(add,
		&cobra.Command{
			Use: "list", Short: "List them", Args: cobra.NoArgs,
			RunE: call(func(ctx context.Context, cl *client, project string, _ []string) error {
				var out gate.Questions
				if err := cl.get(ctx, "/memory/questions"+queryString("project", project), &out); err != nil {
					return err
				}
				return a.printQuestions(out, "")
			}),
		},
		&cobra.Command{
			Use: "show ID", Short: "Show one, with the stream that answers it", Args: cobra.ExactArgs(1),
			RunE: call(func(ctx context.Context, cl *client, project string, args []string) error {
				var out gate.Questions
				if err := cl.get(ctx, "/memory/questions"+queryString("project", project), &out); err != nil {
					return err
				}
				return a.printQuestions(out, args[0])
			}),
		},
		&cobra.Command{
			Use: "export on|off", Short: "Say whether the project's decisions may be exported for training; they may until you say off", Args: cobra.ExactArgs(1),
			RunE: call(func(ctx context.Context, cl *client, project string, args []string) error {
				if args[0] != "on" && args[0] != "off" {
					return usageError{fmt.Errorf("say on or off, not %q", args[0])}
				}
				var out gate.Questions
				if err := cl.send(ctx, http.MethodPut, "/memory/questions/export", map[string]any{"project": project, "export": args[0] == "on"}, &out); err != nil {
					return err
				}
				return a.printQuestions(out, "")
			}),
		},
		&cobra.Command{
			Use: "rm ID", Short: "Stop asking one; what the log holds of it stays", Args: cobra.ExactArgs(1),
			RunE: call(func(ctx context.Context, cl *client, project string, args []string) error {
				var out gate.Questions
				resp, err := cl.do(ctx, http.MethodDelete, "/memory/questions/"+url.PathEscape(args[0])+queryString("project", project), "", nil, -1)
				if err != nil {
					return err
				}
				if err := decode(resp, &out); err != nil {
					return err
				}
				return a.printQuestions(out, "")
			}),
		},
	)
	return c
}

// printQuestions prints the set, or the one with the given id.
func (a *app) printQuestions(s gate.Questions, only string) error {
	if only != "" {
		for _, q := range s.Questions {
			if q.ID != only {
				continue
			}
			if a.json {
				return a.printJSON(q)
			}
			fmt.Fprintf(a.out, "%s\n  %s\n  stream %s, served by %s, caught up: %t\n", q.ID, q.Question, q.Stream, q.Serving, q.CaughtUp)
			return nil
		}
		fmt.Fprintf(a.err, "mem: project %s has no question %q\n", s.Project, only)
		return errNothing
	}
	if a.json {
		return a.printJSON(s)
	}
	if s.Default {
		fmt.Fprintf(a.out, "project %s (the default set)\n", s.Project)
	} else {
		fmt.Fprintf(a.out, "project %s\n", s.Project)
	}
	for _, q := range s.Questions {
		fmt.Fprintf(a.out, "  %-14s %s\n", q.ID, q.Question)
	}
	if !s.Export {
		fmt.Fprintln(a.out, "no decision of it is exported for training")
	}
	return nil
}
