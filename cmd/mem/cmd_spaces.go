package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/embed"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/space"
)

// moveFlags are those of the commands that change what embeds.
type moveFlags struct {
	hold    bool
	wait    bool
	timeout time.Duration
}

func (f *moveFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.wait, "wait", true, "wait until it is done")
	c.Flags().DurationVar(&f.timeout, "timeout", 24*time.Hour, "how long to wait")
}

// spaceCommands are the subcommands of mem model about embedding spaces.
func (a *app) spaceCommands() []*cobra.Command {
	var f moveFlags
	set := &cobra.Command{
		Use:   "set embed NAME",
		Short: "Let another model embed, without downtime",
		Long: `Let another model embed, without downtime.

NAME is a model of the models file (embed: or embeds:), or a table of the program: static,
static-128, static-256. Its space is filled from the log while the present one serves; when
it has everything, the nearest texts of both are compared, and it serves. What served is
kept up to date for a week: mem model rollback leads back at once.

With --hold the new space waits for mem model switch. A name that serves already ends a
change under way.`,
		Example: "  mem model set embed nomic-embed-text-v2-moe\n  mem model set embed static-128 --hold\n  mem model switch",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] != "embed" {
				return usageError{errors.New("only what embeds is set this way: mem model set embed NAME; what decides stands in the models file")}
			}
			return a.move(c.Context(), "/memory/models/embed", map[string]any{"name": args[1], "hold": f.hold}, f)
		},
	}
	set.Flags().BoolVar(&f.hold, "hold", false, "fill and compare, and let it serve by mem model switch alone")
	f.add(set)

	sw := &cobra.Command{
		Use: "switch", Short: "Let the filled embedding space serve (after set --hold)", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.move(c.Context(), "/memory/models/switch", map[string]any{}, f)
		},
	}
	back := &cobra.Command{
		Use: "rollback", Short: "Let the embedding model serve that served before", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.move(c.Context(), "/memory/models/rollback", map[string]any{}, f)
		},
	}
	f.add(sw)
	f.add(back)
	drop := &cobra.Command{
		Use:   "drop NAME|SPACE",
		Short: "Remove the vectors of an embedding space that does not serve",
		Long: `Remove the vectors of an embedding space that does not serve, from the log and from the
indexes. They are gone within a minute; a model that is asked for again embeds anew.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.wait = false
			return a.move(c.Context(), "/memory/models/drop", map[string]any{"space": args[0]}, f)
		},
	}
	status := &cobra.Command{
		Use: "status", Short: "The embedding spaces: which serves, how far another is filled", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			var st embed.Status
			if err := cl.get(c.Context(), "/memory/models/spaces", &st); err != nil {
				return err
			}
			return a.spaces(st)
		},
	}
	return []*cobra.Command{set, sw, back, drop, status}
}

// move asks for a change and waits until it is done.
func (a *app) move(ctx context.Context, where string, body map[string]any, f moveFlags) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	var before, st embed.Status
	if err := cl.get(ctx, "/memory/models/spaces", &before); err != nil {
		return err
	}
	if err := cl.send(ctx, http.MethodPost, where, body, &st); err != nil {
		return err
	}
	if !f.wait {
		return a.spaces(st)
	}
	if st, err = a.awaitFilled(ctx, cl, st, f.timeout); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(st)
	}
	serves := serving(st)
	switch r := serves.Recall; {
	case st.Hold:
		for _, s := range st.Spaces {
			if s.Role == string(space.Filling) {
				fmt.Fprintf(a.out, "%s (space %s) is filled and waits: mem model switch\n", s.Name, s.ID)
				fmt.Fprintln(a.out, s.Recall)
			}
		}
	case st.Serving == before.Serving:
		fmt.Fprintf(a.out, "%s (space %s) serves, as before\n", serves.Name, serves.ID)
	default:
		fmt.Fprintf(a.out, "%s (space %s) serves now; before: %s\n", serves.Name, serves.ID, serving(before).Name)
		if r != nil {
			fmt.Fprintln(a.out, r)
		}
	}
	return nil
}

func serving(st embed.Status) embed.SpaceStatus {
	for _, s := range st.Spaces {
		if s.ID == st.Serving {
			return s
		}
	}
	return embed.SpaceStatus{}
}

// awaitFilled waits until nothing is being filled, or what is held is complete.
func (a *app) awaitFilled(ctx context.Context, cl *client, st embed.Status, timeout time.Duration) (embed.Status, error) {
	m := a.meter("fill", -1, false)
	defer m.done()
	end := time.Now().Add(timeout)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var filling *embed.SpaceStatus
		for i := range st.Spaces {
			if st.Spaces[i].Role == string(space.Filling) {
				filling = &st.Spaces[i]
			}
		}
		if filling == nil || st.Hold && filling.Recall != nil {
			return st, nil
		}
		m.set(filling.Segments, filling.Of)
		if filling.Error != "" {
			return st, fault.At(fault.Unavailable, "model "+filling.Model, "it goes on by itself once the model answers; mem model status says how far it is", "%s", filling.Error)
		}
		if time.Now().After(end) {
			return st, fault.At(fault.Unavailable, "model "+filling.Model, "it goes on by itself; mem model status says how far it is", "its space is not filled after %v", timeout)
		}
		select {
		case <-ctx.Done():
			return st, ctx.Err()
		case <-time.After(pause):
		}
		var now embed.Status // a new one: what is decoded into an old one keeps what is left out
		if err := cl.get(ctx, "/memory/models/spaces", &now); err != nil {
			return st, err
		}
		st = now
	}
}

func (a *app) spaces(st embed.Status) error {
	if a.json {
		return a.printJSON(st)
	}
	return a.printSpaces(st)
}

func (a *app) printSpaces(st embed.Status) error {
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "embedding\tspace\tdims\tis\tsegments\tsince\n")
	for _, s := range st.Spaces {
		is := s.Role
		if s.Role == string(space.Filling) && st.Hold {
			is = "filling, held"
		}
		n := fmt.Sprintf("%s of %s", thousands(s.Segments), thousands(s.Of))
		if s.Role == "dropping" {
			n = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\n", s.Name, s.ID, s.Dims, is, n, s.Since.Format(time.RFC3339))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range st.Spaces {
		if s.Rate > 0 {
			fmt.Fprintf(a.out, "%s: %s passages, %.0f a second, about %v left\n", s.Name, thousands(s.Passages), s.Rate, time.Duration(s.Left*float64(time.Second)).Round(time.Second))
		}
		if s.Recall != nil {
			fmt.Fprintf(a.out, "%s: %s\n", s.Name, s.Recall)
		}
		if s.Error != "" {
			fmt.Fprintf(a.out, "%s: %s\n", s.Name, s.Error)
		}
	}
	if len(st.Others) > 0 {
		fmt.Fprintf(a.out, "vectors of spaces that nothing uses: %s (mem model drop SPACE)\n", strings.Join(st.Others, ", "))
	}
	return nil
}
