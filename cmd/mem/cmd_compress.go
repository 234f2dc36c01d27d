package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/originals"
	"github.com/mneme-ai/mneme/shared/redact"
)

// maxCompress bounds the text of mem compress that is looked at as a whole.
const maxCompress = 64 << 20

func (a *app) cmdCompress() *cobra.Command {
	question := ""
	c := &cobra.Command{
		Use: "compress [FILE]", Short: "Print a log, JSON, a diff or text as short as a model needs it (standard input where no file is named)", Args: cobra.MaximumNArgs(1),
		Long: `Print a log, JSON, a diff or text as short as a model needs it.

What is left out is marked where it stood. A log over 64 MiB is read in parts,
each shortened by itself; anything else of that size is refused. Secrets are masked first. Where
"mem up" serves the folder, the original is stored for an hour and the result
says under which hash: mem original HASH. No server is needed otherwise.

Switches, on or off: MEM_CONTEXT_OPTIMIZER, MEM_COMPRESS_JSON, MEM_COMPRESS_LOGS,
MEM_COMPRESS_DIFF, MEM_COMPRESS_TEXT; off by default: MEM_COMPRESS_CODE, which
leaves the bodies of functions out.`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.compress(c.Context(), c.InOrStdin(), args, question)
		},
	}
	c.Flags().StringVar(&question, "query", "", "what is asked of the text; what it names stays")
	c.AddCommand(&cobra.Command{
		Use: "bench FOLDER", Short: "Compress the inputs of a labelled folder (inputs.json or manifest.json) and judge the results", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.compressBench(args[0]) },
	})
	return c
}

// compressed is the answer of mem compress --json.
type compressed struct {
	File      string     `json:"file,omitempty"`
	Kind      string     `json:"kind"`
	Changed   bool       `json:"changed"`
	Reason    string     `json:"reason,omitempty"` // why it is the original
	BytesIn   int        `json:"bytes_in"`
	BytesOut  int        `json:"bytes_out"`
	TokensIn  int        `json:"tokens_in"` // 0 where the text was read in parts: not counted
	TokensOut int        `json:"tokens_out"`
	Masked    int        `json:"masked"` // secrets
	SHA256    string     `json:"sha256,omitempty"`
	Stored    bool       `json:"stored"`
	NotStored string     `json:"not_stored,omitempty"` // why
	Omissions []omission `json:"omissions"`
	Text      string     `json:"text"`
	result    compress.Result
}

type omission struct {
	From  int    `json:"from,omitempty"`
	To    int    `json:"to,omitempty"`
	Count int    `json:"count"`
	Unit  string `json:"unit"`
}

func (a *app) compress(ctx context.Context, in io.Reader, args []string, question string) error {
	o, err := compress.FromEnv(a.getenv)
	if err != nil {
		return err
	}
	o.Query, o.Evidence = question, compress.RootLine
	name := ""
	if len(args) > 0 {
		name = args[0]
		f, err := os.Open(name)
		if err != nil {
			return fault.As(fault.Invalid, err)
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, maxCompress+1))
	if err != nil {
		return fault.As(fault.Invalid, err)
	}
	o.Path = name
	if len(b) > maxCompress {
		return a.compressParts(ctx, io.MultiReader(bytes.NewReader(b), in), o)
	}
	out, err := a.shorten(ctx, string(b), o)
	if err != nil {
		return err
	}
	out.File = name
	if a.json {
		return a.printJSON(out)
	}
	if _, err := io.WriteString(a.out, out.Text); err != nil {
		return err
	}
	switch {
	case !out.Changed:
		fmt.Fprintf(a.err, "# %s, as it was: %s\n", out.Kind, out.Reason)
	case out.Stored:
		fmt.Fprintf(a.err, "# %s, %d of %d bytes, %d of %d tokens; the original: mem original %s\n", out.Kind, out.BytesOut, out.BytesIn, out.TokensOut, out.TokensIn, out.SHA256[:compress.ShownHex])
	default:
		fmt.Fprintf(a.err, "# %s, %d of %d bytes, %d of %d tokens; the original is not stored: %s\n", out.Kind, out.BytesOut, out.BytesIn, out.TokensOut, out.TokensIn, out.NotStored)
	}
	return nil
}

// shorten masks and compresses a text. Where a server stores the original, its
// masks are the server's, and the marks name the hash that it stands under.
func (a *app) shorten(ctx context.Context, text string, o compress.Options) (compressed, error) {
	masked, marks := redact.New([]byte("mem compress")).Redact(text)
	r := compress.Compress(masked, o)
	out := compressed{Masked: len(marks), result: r, BytesIn: len(masked)}
	if r.Changed {
		whole, err := a.storeOriginal(ctx, text)
		switch {
		case err == nil:
			o.Original = true
			if with := compress.Compress(whole, o); with.Changed {
				out.result, masked, out.Stored, out.BytesIn = with, whole, true, len(whole)
			} else {
				out.NotStored = with.Reason
			}
		case ctx.Err() != nil:
			return out, ctx.Err()
		default:
			out.NotStored = err.Error()
		}
	}
	r = out.result
	out.Kind, out.Changed, out.Reason, out.SHA256, out.Text = r.Kind.String(), r.Changed, r.Reason, r.SHA256, r.Text
	out.BytesOut, out.TokensIn, out.TokensOut = len(r.Text), compress.Tokens(masked), compress.Tokens(r.Text)
	out.Omissions = []omission{}
	for _, x := range r.Omissions {
		out.Omissions = append(out.Omissions, omission(x))
	}
	return out, nil
}

// storeOriginal gives a text to the server, and back as it stands there.
func (a *app) storeOriginal(ctx context.Context, text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", fault.New(fault.Invalid, "the text is no UTF-8")
	}
	if len(text) > originals.MaxBytes {
		return "", fault.New(fault.Invalid, "over %d MiB", originals.MaxBytes>>20)
	}
	c, err := a.client()
	if err != nil {
		return "", err
	}
	p, err := a.one(ctx, c)
	if err != nil {
		return "", err
	}
	var stored query.Original
	if err := c.send(ctx, http.MethodPost, "/memory/original", map[string]string{"project": p, "text": text}, &stored); err != nil {
		return "", err
	}
	if !stored.Masked {
		return text, nil
	}
	var got query.Original
	if err := c.get(ctx, "/memory/original/"+stored.SHA256+queryString("project", p), &got); err != nil {
		return "", err
	}
	if got.Text == nil {
		return "", fault.New(fault.Corrupt, "the server gave another text back")
	}
	return *got.Text, nil
}

func (a *app) cmdOriginal() *cobra.Command {
	at := ""
	c := &cobra.Command{
		Use: "original HASH", Short: "Print what a mark of mem compress left out: the original text, or some of its lines", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cl, p, err := a.inOne(c.Context())
			if err != nil {
				return err
			}
			var got query.Original
			if err := cl.get(c.Context(), "/memory/original/"+args[0]+queryString("project", p, "lines", at), &got); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(got)
			}
			if got.Text != nil {
				got.Data = []byte(*got.Text)
			}
			_, err = a.out.Write(got.Data)
			return err
		},
	}
	c.Flags().StringVar(&at, "lines", "", "only these lines, such as 12-52, as the mark says")
	return c
}
