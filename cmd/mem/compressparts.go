package main

import (
	"context"
	"fmt"
	"io"

	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/redact"
)

// partBytes is how much of a log over maxCompress is looked at at once.
const partBytes = 16 << 20

// maxParts bounds the output that --json holds in memory.
const maxParts = 64 << 20

// compressParts shortens a log that is too large to be looked at as a whole, part by
// part. Its original is not stored.
func (a *app) compressParts(ctx context.Context, in io.Reader, o compress.Options) error {
	red := redact.New([]byte("mem compress"))
	out := compressed{File: o.Path, Omissions: []omission{}, NotStored: fmt.Sprintf("over %d MiB", maxCompress>>20)}
	var b []byte
	read := int64(0)
	for p, err := range compress.Parts(in, partBytes) {
		if err != nil {
			return fault.As(fault.Invalid, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.Byte == 0 {
			if k := compress.Detect(p.Text, o.Path); k != compress.Log && k != compress.JSONL {
				return fault.At(fault.Invalid, o.Path, "cut it into parts", "%s over %d MiB, of which %d bytes were read; nothing is compressed", k, maxCompress>>20, maxCompress)
			}
		}
		masked, marks := red.Redact(p.Text)
		o.Line = p.Line
		r := compress.Compress(masked, o)
		out.Masked += len(marks)
		out.BytesIn += len(masked)
		out.BytesOut += len(r.Text)
		out.TokensOut += compress.Tokens(r.Text[:min(len(r.Text), 1<<20)])
		out.Changed = out.Changed || r.Changed
		if r.Changed || out.Kind == "" {
			out.Kind = r.Kind.String()
		}
		read = p.Byte + int64(len(p.Text))
		if !a.json {
			if _, err := io.WriteString(a.out, r.Text); err != nil {
				return err
			}
			continue
		}
		if b = append(b, r.Text...); len(b) > maxParts {
			return fault.At(fault.Invalid, o.Path, "leave out --json", "over %d MiB of result after %d bytes", maxParts>>20, read)
		}
		for _, x := range r.Omissions {
			out.Omissions = append(out.Omissions, omission(x))
		}
	}
	if a.json {
		out.Text = string(b)
		out.Reason = ""
		if !out.Changed {
			out.Reason = compress.ReasonNoGain
		}
		return a.printJSON(out)
	}
	fmt.Fprintf(a.err, "# %s, %d bytes read in parts of %d MiB, %d bytes left; the original is not stored: %s\n", out.Kind, read, partBytes>>20, out.BytesOut, out.NotStored)
	return nil
}
