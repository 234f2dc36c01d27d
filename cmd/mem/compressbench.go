package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/redact"
)

// benchInput is a row of inputs.json, or of manifest.json, whose root line is
// what must stay.
type benchInput struct {
	File     string   `json:"file"`
	Kind     string   `json:"kind"`
	MustKeep []string `json:"must_keep"`
	MaxRatio *float64 `json:"max_out_ratio"` // of bytes
	Query    string   `json:"query"`
	RootText string   `json:"root_text"`
}

// benchResult is mem compress bench --json.
type benchResult struct {
	Inputs          int        `json:"inputs"`
	MustKeepLost    int        `json:"must_keep_lost"`    // strings of a row that stood in the input and do not in the result
	WorseThanTarget int        `json:"worse_than_target"` // rows whose result is larger than max_out_ratio allows
	BytesIn         int        `json:"bytes_in"`
	BytesOut        int        `json:"bytes_out"`
	TokensIn        int        `json:"tokens_in"`
	TokensOut       int        `json:"tokens_out"`
	Rows            []benchRow `json:"rows"`
}

type benchRow struct {
	File      string   `json:"file"`
	Kind      string   `json:"kind"` // as detected
	BytesIn   int      `json:"bytes_in"`
	BytesOut  int      `json:"bytes_out"`
	TokensIn  int      `json:"tokens_in"`
	TokensOut int      `json:"tokens_out"`
	MaxRatio  *float64 `json:"max_out_ratio,omitempty"`
	Lost      []string `json:"lost,omitempty"`
	Worse     bool     `json:"worse,omitempty"`
	Broken    []string `json:"broken,omitempty"` // what holds of every result and does not of this
	Reason    string   `json:"reason,omitempty"`
}

// maxLabels bounds a file of labels in bytes.
const maxLabels = 64 << 20

func (a *app) compressBench(dir string) error {
	inputs, err := readInputs(dir)
	if err != nil {
		return err
	}
	o, err := compress.FromEnv(a.getenv)
	if err != nil {
		return err
	}
	res := benchResult{Rows: []benchRow{}}
	broken := 0
	prefixes := map[string]string{} // of cache pairs, by their name without a and b
	for _, in := range inputs {
		path, err := inside(dir, in.File)
		if err != nil {
			return err
		}
		b, err := readSmall(path, maxCompress, "the file has %d bytes, at most %d are read")
		if err != nil {
			return err
		}
		row := in.run(string(b), o, prefixes)
		res.Inputs++
		res.MustKeepLost += len(row.Lost)
		broken += len(row.Broken)
		if row.Worse {
			res.WorseThanTarget++
		}
		res.BytesIn += row.BytesIn
		res.BytesOut += row.BytesOut
		res.TokensIn += row.TokensIn
		res.TokensOut += row.TokensOut
		res.Rows = append(res.Rows, row)
	}
	if a.json {
		err = a.printJSON(res)
	} else {
		err = a.printBench(res)
	}
	if err == nil && res.MustKeepLost+res.WorseThanTarget+broken > 0 {
		return errNothing
	}
	return err
}

// inside is the path of a file that a label names, which must lie in its folder.
func inside(dir, name string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fault.New(fault.Invalid, "%q is no file of the folder", name)
	}
	return filepath.Join(dir, filepath.FromSlash(name)), nil
}

func readInputs(dir string) ([]benchInput, error) {
	for _, name := range []string{"inputs.json", "manifest.json"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		b, err := readSmall(path, maxLabels, "the file has %d bytes, at most %d are read")
		if err != nil {
			return nil, err
		}
		var rows []benchInput
		if err := json.Unmarshal(b, &rows); err != nil {
			return nil, fault.At(fault.Invalid, path, "a list of {file, kind, must_keep, max_out_ratio} or {file, root_text}", "%v", err)
		}
		for i := range rows {
			if t := strings.TrimSpace(rows[i].RootText); t != "" {
				rows[i].MustKeep = append(rows[i].MustKeep, t)
			}
		}
		return rows, nil
	}
	return nil, fault.At(fault.Invalid, dir, "the folder holds inputs.json or manifest.json beside its files", "no labels")
}

// run compresses one input as it would be stored: masked. Code is compressed
// where the label says that it is code.
func (in benchInput) run(text string, o compress.Options, prefixes map[string]string) benchRow {
	if in.Kind == "cache-pair" {
		return in.align(text, prefixes)
	}
	o.Code = o.Code || in.Kind == "code"
	o.Path, o.Query, o.Evidence = in.File, in.Query, compress.RootLine
	masked, _ := redact.New([]byte("mem compress")).Redact(text)
	r := compress.Compress(masked, o)
	row := benchRow{
		File: in.File, Kind: r.Kind.String(), BytesIn: len(text), BytesOut: len(r.Text), TokensIn: compress.Tokens(text), TokensOut: compress.Tokens(r.Text),
		MaxRatio: in.MaxRatio, Reason: r.Reason,
	}
	for _, m := range in.MustKeep {
		if strings.Contains(masked, m) && !strings.Contains(r.Text, m) {
			row.Lost = append(row.Lost, m)
		}
	}
	row.Worse = in.MaxRatio != nil && float64(row.BytesOut) > *in.MaxRatio*float64(row.BytesIn)
	if again := compress.Compress(r.Text, o); again.Text != r.Text {
		row.Broken = append(row.Broken, "changes when it is compressed again")
	}
	if row.TokensOut > compress.Tokens(masked) {
		row.Broken = append(row.Broken, "more tokens")
	}
	if r.Kind == compress.JSON && !json.Valid([]byte(r.Text)) {
		row.Broken = append(row.Broken, "no JSON")
	}
	return row
}

// align checks one of two texts that differ in times and ids alone: both give the
// same prefix, and it can be turned back.
func (in benchInput) align(text string, prefixes map[string]string) benchRow {
	al := compress.Align(compress.Prompt{Memory: []compress.Block{{ID: "1", Text: text}}, Query: "What failed?"})
	row := benchRow{File: in.File, Kind: in.Kind, BytesIn: len(text), BytesOut: len(text), TokensIn: compress.Tokens(text), TokensOut: compress.Tokens(text)}
	for _, m := range in.MustKeep {
		if !strings.Contains(al.Text, m) {
			row.Lost = append(row.Lost, m)
		}
	}
	if strings.TrimSuffix(al.Restore(al.Prefix()), "\n") != strings.TrimSuffix(text, "\n") {
		row.Broken = append(row.Broken, "is not restored")
	}
	pair := strings.TrimRight(strings.TrimSuffix(in.File, filepath.Ext(in.File)), "ab")
	if other, ok := prefixes[pair]; ok && other != al.PrefixSHA256() {
		row.Broken = append(row.Broken, "another prefix than that of its pair")
	}
	prefixes[pair] = al.PrefixSHA256()
	return row
}

func (a *app) printBench(res benchResult) error {
	for _, r := range res.Rows {
		target := "-"
		if r.MaxRatio != nil {
			target = fmt.Sprintf("%.2f", *r.MaxRatio)
		}
		note := r.Reason
		if r.Worse {
			note += " WORSE"
		}
		for _, l := range r.Lost {
			note += fmt.Sprintf(" LOST %q", l)
		}
		for _, b := range r.Broken {
			note += " BROKEN: " + b
		}
		fmt.Fprintf(a.out, "%-40s %-10s %8d -> %7d bytes %5.3f (at most %s) %7d -> %6d tokens  %s\n",
			r.File, r.Kind, r.BytesIn, r.BytesOut, float64(r.BytesOut)/float64(max(1, r.BytesIn)), target, r.TokensIn, r.TokensOut, strings.TrimSpace(note))
	}
	_, err := fmt.Fprintf(a.out, "%d inputs, %d strings lost, %d over their target, %d -> %d bytes (%.3f), %d -> %d tokens (%.3f)\n",
		res.Inputs, res.MustKeepLost, res.WorseThanTarget, res.BytesIn, res.BytesOut, float64(res.BytesOut)/float64(max(1, res.BytesIn)), res.TokensIn, res.TokensOut, float64(res.TokensOut)/float64(max(1, res.TokensIn)))
	return err
}
