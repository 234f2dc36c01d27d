package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/scrub"
)

func (a *app) cmdScrub() *cobra.Command {
	dry := false
	c := &cobra.Command{
		Use:   "scrub",
		Short: "Mask in what is stored what the present redaction rules find, with no model call",
		Long: `Texts that came in under older redaction rules, or before a pattern of your own
stood in redact.yaml, are looked at again. What holds a secret is erased from the
log, whose chain stays valid, and stated anew with a mark in the secret's place;
then the indexes are rebuilt. Nothing is decided anew and no model is called.

The uploaded objects in the bucket "transcripts" stay as they are: they are yours.
A scrub that was interrupted goes on when it is called again.`,
		Example: "  mem scrub --dry-run\n  mem scrub -p shop",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			project := ""
			if a.project != "" {
				if project, err = a.named(c.Context(), cl); err != nil {
					return err
				}
			}
			body := map[string]any{"project": project, "dry_run": dry}
			m := a.meter("scrub", -1, false)
			var out learn.Scrubbed
			err = cl.long(c.Context(), http.MethodPost, "/memory/scrub", body, func(p json.RawMessage) {
				var r scrub.Report
				if json.Unmarshal(p, &r) == nil {
					m.set(int64(r.Chunks), -1)
				}
			}, &out)
			m.done()
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(out)
			}
			fmt.Fprintf(a.out, "rules %s\n", out.Rules)
			for i := range out.Projects {
				a.printScrub(&out.Projects[i], dry)
			}
			return nil
		},
	}
	c.Flags().BoolVarP(&dry, "dry-run", "n", false, "say what would be masked, and change nothing")
	return c
}

func (a *app) printScrub(r *scrub.Report, dry bool) {
	places := 0
	for _, n := range r.Secrets {
		places += n
	}
	fmt.Fprintf(a.out, "%s: %d chunks looked at, %d secrets in %d of them\n", r.Project, r.Chunks, places, r.Blobs)
	for _, k := range slices.Sorted(maps.Keys(r.Secrets)) {
		fmt.Fprintf(a.out, "  %6d  %s\n", r.Secrets[k], k)
	}
	if r.Finished != "" {
		fmt.Fprintf(a.out, "  finished the scrub %s, which had been interrupted\n", r.Finished.Short())
	}
	if !dry && (r.Tombstone != "" || r.Finished != "") {
		fmt.Fprintf(a.out, "  %d statements stated anew, %d that can no longer be cited dropped, %d memory texts erased; the indexes are being rebuilt (mem wait)\n", r.Evidence, r.Dropped, r.Memories)
	}
	if !dry && r.Skills > 0 {
		fmt.Fprintf(a.out, "  %d promoted skills erased: take the secret out of their files, which agents still load, and promote them again (mem skill list)\n", r.Skills)
	}
	if !dry && r.Lessons > 0 {
		fmt.Fprintf(a.out, "  %d lessons masked: they are found as before\n", r.Lessons)
	}
	if !dry && r.Notes > 0 {
		fmt.Fprintf(a.out, "  %d notes of yours masked: sync your folder with mem vault\n", r.Notes)
	}
	for _, n := range r.Names {
		fmt.Fprintf(a.out, "  cannot be erased: a secret in the %s\n", n)
	}
	for _, u := range r.Unreadable {
		fmt.Fprintf(a.out, "  not looked at: %s\n", u)
	}
}
