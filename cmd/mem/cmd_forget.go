package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/forget"
)

type forgetFlags struct {
	source, node          string
	inbox, dry, yes, list bool
}

func (a *app) cmdForget() *cobra.Command {
	var f forgetFlags
	c := &cobra.Command{
		Use:   "forget --source NAME | --node SHA | --project P",
		Short: "Take a source, a statement or a project out of what is stored, with a receipt that it is gone",
		Long: `Erase a source and all that descends from it: texts, statements, memories, replies
of models, vectors, rows, pages and exports. What remains is folded again, with no
model call. The receipt counts what was removed where, and says where its words were
looked for and not found; it ends with 1 where one was.

--source takes an object as answers show it, a session, a file name or the hash of
one; --node a statement or a memory, and with it what was said in the same turns;
--project alone all of a project. Without --project it is looked for in all.

What is forgotten stays away: the upload in the bucket "transcripts" is not read again,
nor the same file when it comes again, until mem learn --again FILE. --inbox removes the
upload too. What only you can clean, as back-ups and the WAL of a database server, stands
in docs/FORGET.md.`,
		Example: "  mem forget -p shop --source notes.md --dry-run\n  mem forget -p shop --source notes.md --inbox --yes\n  mem forget -p shop --node 1f0a77c2 --yes\n  mem forget --list",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return a.forget(c.Context(), f) },
	}
	c.Flags().StringVar(&f.source, "source", "", "an object, a session, a file name, or the hash of an object")
	c.Flags().StringVar(&f.node, "node", "", "a statement or memory, by 8 digits of its node or more")
	c.Flags().BoolVar(&f.inbox, "inbox", false, "remove the upload too, every version of it")
	c.Flags().BoolVarP(&f.dry, "dry-run", "n", false, "say what would go, and change nothing")
	c.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&f.list, "list", false, "show the receipts of what was forgotten")
	return c
}

func (a *app) forget(ctx context.Context, f forgetFlags) error {
	switch {
	case f.list && (f.source != "" || f.node != "" || f.inbox || f.dry || f.yes):
		return usageError{fmt.Errorf("--list goes with --project alone")}
	case f.list:
		return a.forgotten(ctx)
	case f.source != "" && f.node != "":
		return usageError{fmt.Errorf("name a source or a node, not both")}
	case f.source == "" && f.node == "" && a.project == "":
		return usageError{fmt.Errorf("name what to forget: --source, --node, or --project for all of one")}
	}
	c, err := a.client()
	if err != nil {
		return err
	}
	body := map[string]any{"source": f.source, "node": strings.ToLower(f.node), "all": f.source == "" && f.node == "", "inbox": f.inbox, "dry_run": true}
	if body["project"], err = a.holder(ctx, c, body); err != nil {
		return err
	}
	var out forget.Receipt
	if f.dry || !f.yes {
		if err := a.callForget(ctx, c, body, &out); err != nil {
			return err
		}
		if f.dry {
			return a.printForgotten(&out, true)
		}
		if !a.json {
			if err := a.printForgotten(&out, true); err != nil {
				return err
			}
		}
		ok, err := a.confirm("forget it? It can not be brought back")
		if err != nil {
			return err
		}
		if !ok {
			return usageError{errors.New("nothing was forgotten; run it again with --yes")}
		}
	}
	body["dry_run"] = false
	out = forget.Receipt{}
	if err := a.callForget(ctx, c, body, &out); err != nil {
		return err
	}
	if err := a.printForgotten(&out, false); err != nil {
		return err
	}
	if !out.OK {
		return fault.At(fault.Internal, "receipt", "the places stand above; run it again, and report it if they stay", "words of what was forgotten were found")
	}
	return nil
}

// holder is the project that is meant: the one named, that of the working directory, or
// the only one that has what body names.
func (a *app) holder(ctx context.Context, c *client, body map[string]any) (string, error) {
	if p, err := a.scope(ctx, c); err != nil || p != "" {
		return p, err
	}
	known, err := c.known(ctx)
	if err != nil {
		return "", err
	}
	var in []string
	for _, p := range known {
		ask := maps.Clone(body)
		ask["project"] = p
		err := a.callForget(ctx, c, ask, &forget.Receipt{})
		switch {
		case err == nil:
			in = append(in, p)
		case !fault.Is(err, fault.NotFound):
			return "", fmt.Errorf("project %s: %w", p, err)
		}
	}
	switch len(in) {
	case 1:
		return in[0], nil
	case 0:
		return "", fault.At(fault.NotFound, "", "mem log -p PROJECT shows what was read; name an object, a session, a node or the hash of one", "nothing is called so in any project (%s)", strings.Join(known, ", "))
	}
	return "", usageError{fmt.Errorf("name one with --project: it is in %s", strings.Join(in, ", "))}
}

func (a *app) callForget(ctx context.Context, c *client, body map[string]any, out *forget.Receipt) error {
	m := a.meter("forget", -1, false)
	defer m.done()
	return c.long(ctx, http.MethodPost, "/memory/forget", body, func(p json.RawMessage) {
		var l forget.Progress
		if json.Unmarshal(p, &l) == nil {
			m.set(int64(l.Done), -1)
		}
	}, out)
}

func (a *app) forgotten(ctx context.Context) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	project := ""
	if a.project != "" {
		if project, err = a.named(ctx, c); err != nil {
			return err
		}
	}
	var out struct {
		Receipts []forget.Receipt `json:"receipts"`
	}
	if err := c.get(ctx, "/memory/forget"+queryString("project", project), &out); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	if len(out.Receipts) == 0 {
		fmt.Fprintln(a.out, "nothing was forgotten")
	}
	for i := range out.Receipts {
		fmt.Fprintf(a.out, "%s  ", out.Receipts[i].At.Format(time.RFC3339))
		if err := a.printForgotten(&out.Receipts[i], false); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printForgotten(r *forget.Receipt, dry bool) error {
	if a.json {
		return a.printJSON(r)
	}
	what := r.Target.Source
	switch {
	case r.Target.Project:
		what = "all of it"
	case r.Target.Node != "":
		what = "node " + string(r.Target.Node)
	}
	did := "forgotten"
	if dry {
		did = "would be forgotten"
	}
	fmt.Fprintf(a.out, "%s: %s, %s\n", r.Project, what, did)
	if r.Finished {
		fmt.Fprintln(a.out, "  an earlier call had begun it; this finished it, and counts what was left")
	}
	for _, o := range r.Objects {
		fmt.Fprintf(a.out, "  %s\n", o)
	}
	for _, o := range r.Also {
		fmt.Fprintf(a.out, "  the same text in %s\n", o)
	}
	if r.Turns > 0 {
		fmt.Fprintf(a.out, "  %d turns\n", r.Turns)
	}
	m := &r.Removed
	fmt.Fprintf(a.out, "  %d sources, %d chunks, %d statements, %d memories, %d decisions' reasons, %d replies of models", m.Sources, m.Chunks, m.Evidence, m.Memories, m.Gates, m.Replies)
	if !dry {
		fmt.Fprintf(a.out, ", %d vectors, %d blobs", m.Vectors, m.Blobs+m.Loose)
	}
	fmt.Fprintln(a.out)
	for _, s := range slices.Sorted(maps.Keys(r.Streams)) {
		fmt.Fprintf(a.out, "    %s: %d statements, %d memories", s, r.Streams[s].Evidence, r.Streams[s].Memories)
		if t := r.Streams[s].Step; t > 0 {
			fmt.Fprintf(a.out, "; the rest is stated as step %d", t)
		}
		fmt.Fprintln(a.out)
	}
	for _, k := range m.Inbox {
		fmt.Fprintf(a.out, "  removed the upload %s\n", k)
	}
	for _, s := range m.Skills {
		fmt.Fprintf(a.out, "  the promoted skill %s was erased: agents still load its file until you withdraw it (mem skill list)\n", s)
	}
	if n := len(m.Lessons); n > 0 {
		fmt.Fprintf(a.out, "  %d lessons that rested on it\n", n)
	}
	for _, k := range r.Kept {
		fmt.Fprintf(a.out, "  not erased, as it is yours: %s\n", k)
	}
	if dry {
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(r.Rows)) {
		fmt.Fprintf(a.out, "  %s: %d, %d before\n", k, r.Rows[k].After, r.Rows[k].Before)
	}
	fmt.Fprintf(a.out, "  looked for %d words that stood there alone", r.Proof.Words)
	if r.Proof.Words == 0 {
		fmt.Fprint(a.out, " (none of its words did: what proves it are the hashes of its texts)")
	}
	fmt.Fprintln(a.out)
	for _, s := range r.Proof.Searched {
		if s.Skipped != "" {
			fmt.Fprintf(a.out, "    %s: not searched: %s\n", s.Where, s.Skipped)
			continue
		}
		fmt.Fprintf(a.out, "    %s: searched %d, found %d\n", s.Where, s.Searched, s.Found)
		for _, p := range s.Places {
			fmt.Fprintf(a.out, "      %s\n", p)
		}
	}
	return nil
}
