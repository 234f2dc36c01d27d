package main

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/transcript"
)

func (a *app) cmdSchema() *cobra.Command {
	c := &cobra.Command{
		Use: "schema", Aliases: []string{"schemas"}, Short: "Formats that you describe by YAML, so that they are read without code", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	call := func(do func(c *cobra.Command, cl *client, arg string) error) func(*cobra.Command, []string) error {
		return func(c *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			arg := ""
			if len(args) > 0 {
				arg = args[0]
			}
			return do(c, cl, arg)
		}
	}
	c.AddCommand(
		&cobra.Command{
			Use: "add FILE", Short: "Store a schema under its name; uploads that were refused are then read again", Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				_, data, err := readSchema(args[0])
				if err != nil {
					return err
				}
				cl, err := a.client()
				if err != nil {
					return err
				}
				var out learn.Schema
				if err := cl.send(c.Context(), http.MethodPost, "/memory/schemas", map[string]string{"file": filepath.Base(args[0]), "yaml": string(data)}, &out); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(out)
				}
				a.printSchema(out)
				return nil
			},
		},
		&cobra.Command{
			Use: "list", Short: "List them, with what each fits, or why it reads nothing", Args: cobra.NoArgs,
			RunE: call(func(c *cobra.Command, cl *client, _ string) error {
				var out learn.Schemas
				if err := cl.get(c.Context(), "/memory/schemas", &out); err != nil {
					return err
				}
				return a.printSchemas(out)
			}),
		},
		&cobra.Command{
			Use: "show NAME", Short: "Print one as it is stored", Args: cobra.ExactArgs(1),
			RunE: call(func(c *cobra.Command, cl *client, name string) error {
				var out learn.Schema
				if err := cl.get(c.Context(), "/memory/schemas/"+url.PathEscape(name), &out); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(out)
				}
				fmt.Fprint(a.out, out.YAML)
				if out.Error != "" {
					return fault.At(fault.Invalid, "", out.Hint, "%s", out.Error)
				}
				return nil
			}),
		},
		&cobra.Command{
			Use: "rm NAME", Short: "Remove one; what was read by it stays", Args: cobra.ExactArgs(1),
			RunE: call(func(c *cobra.Command, cl *client, name string) error {
				resp, err := cl.do(c.Context(), http.MethodDelete, "/memory/schemas/"+url.PathEscape(name), "", nil, -1)
				if err != nil {
					return err
				}
				var out learn.Schemas
				if err := decode(resp, &out); err != nil {
					return err
				}
				return a.printSchemas(out)
			}),
		},
	)
	return c
}

// readSchema reads and checks a schema of this disk.
func readSchema(path string) (s transcript.Schema, data []byte, err error) {
	data, err = readSmall(path, transcript.MaxSchemaBytes, "the schema has %d bytes, at most %d are allowed")
	if err != nil {
		return s, nil, err
	}
	s, err = transcript.ParseSchema(path, data)
	return s, data, err
}

// readSmall reads a whole file of this disk that has at most most bytes; tooLarge
// is the error's format for one that has more, of its size and the bound.
func readSmall(path string, most int64, tooLarge string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fault.As(fault.Invalid, err)
	case st.IsDir():
		return nil, fault.At(fault.Invalid, path, "name a file", "is a folder")
	case st.Size() > most:
		return nil, fault.At(fault.Invalid, path, "", tooLarge, st.Size(), most)
	}
	data, err := os.ReadFile(path)
	return data, fault.As(fault.Invalid, err)
}

// readSchemas reads several in the order of their names; one name twice is refused.
func readSchemas(paths []string) ([]transcript.Schema, error) {
	var out []transcript.Schema
	from := map[string]string{}
	for _, path := range paths {
		s, _, err := readSchema(path)
		if err != nil {
			return nil, err
		}
		if first, dup := from[s.Name]; dup {
			return nil, fault.At(fault.Invalid, path, "give each its own name", "the name %q stands in %s too", s.Name, first)
		}
		from[s.Name] = path
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b transcript.Schema) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (a *app) printSchemas(s learn.Schemas) error {
	if a.json {
		return a.printJSON(s)
	}
	if len(s.Schemas) == 0 {
		fmt.Fprintln(a.out, "none")
	}
	for _, one := range s.Schemas {
		a.printSchema(one)
	}
	return nil
}

func (a *app) printSchema(s learn.Schema) {
	if s.Error != "" {
		fmt.Fprintf(a.out, "%s  reads nothing: %s\n", s.Name, s.Error)
		if s.Hint != "" {
			fmt.Fprintf(a.out, "  hint: %s\n", s.Hint)
		}
		return
	}
	fmt.Fprintln(a.out, strings.TrimSpace(s.Name+"  "+s.Version+"  "+s.Stored))
	fmt.Fprintf(a.out, "  fits where %s\n", strings.Join(s.Rules, "; "))
}
