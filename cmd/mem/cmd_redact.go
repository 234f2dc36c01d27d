package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/redact"
)

func (a *app) cmdRedact() *cobra.Command {
	c := &cobra.Command{
		Use: "redact", Short: "Patterns of your own that are masked before anything is stored", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	patterns := ""
	try := &cobra.Command{
		Use: "try [FILE]", Short: "Print a text as it would be stored (standard input where no file is named); no server is asked", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.redactTry(c.InOrStdin(), patterns, args) },
	}
	try.Flags().StringVar(&patterns, "patterns", "", "a file of patterns, beside the built-in rules")
	c.AddCommand(
		&cobra.Command{
			Use: "show", Short: "Print the rules' version and your patterns", Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				cl, err := a.client()
				if err != nil {
					return err
				}
				var out learn.Patterns
				if err := cl.get(c.Context(), "/memory/redact", &out); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(out)
				}
				fmt.Fprintf(a.out, "# rules %s, %d patterns of your own\n%s", out.Rules, len(out.Patterns), out.YAML)
				if out.Error != "" {
					return fault.At(fault.Invalid, "", out.Hint, "%s", out.Error)
				}
				return nil
			},
		},
		&cobra.Command{
			Use: "set FILE", Short: "Store a file of patterns in the place of the present one; mem scrub applies it to what is stored", Args: cobra.ExactArgs(1),
			Example: `  patterns:
    - name: account             # the mark is [REDACTED:user_account:3fa9c1]
      regexp: 'ACME-([0-9]{6})'  # RE2; the first group, where there is one, is the secret
      keyword: ACME-            # optional: texts without it are not searched`,
			RunE: func(c *cobra.Command, args []string) error {
				_, data, err := readPatterns(args[0])
				if err != nil {
					return err
				}
				cl, err := a.client()
				if err != nil {
					return err
				}
				var out learn.Patterns
				if err := cl.send(c.Context(), http.MethodPost, "/memory/redact", map[string]string{"file": filepath.Base(args[0]), "yaml": string(data)}, &out); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(out)
				}
				fmt.Fprintf(a.out, "rules %s: %s\nwhat comes in from now on is masked by them; for what is stored: mem scrub\n", out.Rules, strings.Join(append(out.Patterns, "built-in rules"), ", "))
				return nil
			},
		},
		try,
	)
	return c
}

// redactTry masks under a key of its own: marks have other fingerprints than
// those that are stored.
func (a *app) redactTry(in io.Reader, patterns string, args []string) error {
	var o redact.Options
	if patterns != "" {
		ps, _, err := readPatterns(patterns)
		if err != nil {
			return err
		}
		o.Patterns = ps
	}
	if len(args) > 0 {
		f, err := os.Open(args[0])
		if err != nil {
			return fault.As(fault.Invalid, err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxTry+1))
	if err != nil {
		return fault.As(fault.Invalid, err)
	}
	if len(b) > maxTry {
		return fault.New(fault.Invalid, "more than %d MiB of text", maxTry>>20)
	}
	red := redact.NewWith([]byte("mem redact try"), o)
	out, marks := red.Redact(string(b))
	if a.json {
		kinds := map[string]int{}
		for _, m := range marks {
			kinds[m.Kind]++
		}
		return a.printJSON(map[string]any{"rules": red.Version(), "text": out, "redactions": kinds})
	}
	fmt.Fprint(a.out, out)
	return nil
}

// maxTry bounds the text of mem redact try: the greatest message that is read.
const maxTry = 64 << 20

// readPatterns reads and checks a file of patterns of this disk.
func readPatterns(path string) ([]redact.Pattern, []byte, error) {
	data, err := readSmall(path, redact.MaxPatternFile, "the file has %d bytes, at most %d are read")
	if err != nil {
		return nil, nil, err
	}
	ps, err := redact.ParsePatterns(path, data)
	return ps, data, err
}
