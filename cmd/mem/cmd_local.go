package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/functions/learn"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gru/gateeval"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/preflight"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// read opens a transcript of this disk. schemas are formats that the caller
// describes, in the order in which they are tried.
func read(path string, schemas ...transcript.Schema) (*os.File, *transcript.Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fault.As(fault.Invalid, err)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = fault.At(fault.Invalid, path, "name a file", "is a folder")
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	r, err := transcript.Open(f, transcript.Options{Object: absolute(path), ModTime: st.ModTime(), Schemas: schemas})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return f, r, nil
}

// rawSHA is the hash by which the log knows a file: over its decompressed bytes.
func rawSHA(path string) (sha memory.SHA, err error) {
	f, r, err := read(path)
	if err != nil {
		if !exists(path) {
			return "", fault.At(fault.Invalid, path, "give a hash of 64 hex digits or a file", "neither a hash nor a file")
		}
		return "", err
	}
	defer f.Close()
	for _, err := range r.Turns() {
		if err != nil {
			return "", err
		}
	}
	return r.Stats().RawSHA256, nil
}

func (a *app) cmdRead() *cobra.Command {
	var stats bool
	var files []string
	c := &cobra.Command{
		Use:   "read FILE…",
		Short: "Read a transcript without a server: its turns, or what it holds (--stats)",
		Long: `Read a transcript without a server: its turns, or what it holds (--stats).

--schema tries a description of a format before it is stored by mem schema add;
repeat it to try several together. They are tried in the order of their names,
as the server does.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			schemas, err := readSchemas(files)
			if err != nil {
				return err
			}
			for _, path := range args {
				if err := a.read(path, stats, schemas); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&stats, "stats", false, "print counts instead of turns")
	c.Flags().StringArrayVar(&files, "schema", nil, "also read the format that this YAML file describes")
	return c
}

func (a *app) read(path string, stats bool, schemas []transcript.Schema) error {
	f, r, err := read(path, schemas...)
	if err != nil {
		return err
	}
	defer f.Close()
	// The marks of this command are its own: no tenant key is at hand.
	red := redact.New([]byte("mem read: local marks"))
	for t, err := range r.Turns() {
		if err != nil {
			return fault.As(fault.Invalid, fmt.Errorf("%s: %w", path, err))
		}
		if stats {
			continue
		}
		text, _ := red.Redact(t.Text())
		if a.json {
			masked := func(s string) string { out, _ := red.Redact(s); return out }
			if t.Tool != nil {
				t.Tool.Name, t.Tool.CallID, t.Tool.Target = masked(t.Tool.Name), masked(t.Tool.CallID), masked(t.Tool.Target)
			}
			t.ID, t.Session, t.Cwd = masked(t.ID), masked(t.Session), masked(t.Cwd)
			err = a.printJSON(map[string]any{
				"id": t.ID, "session": t.Session, "role": t.Role, "kind": t.Kind, "trust": t.Trust, "time": t.TimeRaw,
				"cwd": t.Cwd, "line": t.Line, "from": t.From, "to": t.To, "text": text, "tool": t.Tool, "abandoned": t.Abandoned,
			})
		} else {
			_, err = fmt.Fprintf(a.out, "[%s %s] line %d\n%s\n\n", t.Role, strings.TrimSpace(string(t.Kind)+" "+t.TimeRaw), t.Line, text)
		}
		if err != nil {
			return err
		}
	}
	st := r.Stats()
	if len(schemas) > 0 && r.Version() == transcript.ReaderVersion {
		fmt.Fprintf(a.err, "mem: %s is read as %s, by none of the schemas given\n", path, r.Format())
	}
	why := st.Unsupported
	if !stats && r.Format() == transcript.FormatUnknown && st.Bad+st.Records > 0 {
		why = "in no format that is read"
	}
	if why != "" {
		if stats && a.json {
			if err := a.printJSON(st); err != nil {
				return err
			}
		}
		return fault.At(fault.Invalid, path, cmp.Or(transcript.Hint(st.Unsupported), "docs/UPLOAD.md lists the formats that are read, and how to describe another"), "%s", why)
	}
	if !stats {
		return nil
	}
	if a.json {
		return a.printJSON(st)
	}
	b, err := json.Marshal(st)
	if err != nil {
		return err
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s (%s)\n", path, r.Format())
	for _, k := range sortedKeys(m) {
		v, err := json.Marshal(m[k])
		if err != nil {
			return err
		}
		fmt.Fprintf(a.out, "  %-22s %s\n", k, v)
	}
	return nil
}

func (a *app) cmdTokens() *cobra.Command {
	return &cobra.Command{
		Use:   "tokens FILE…",
		Short: "Count Qwen2.5 tokens without a server; - reads standard input",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			count, err := wire.Counter()
			if err != nil {
				return err
			}
			for _, path := range args {
				var b []byte
				if path == "-" {
					b, err = io.ReadAll(a.in)
				} else {
					b, err = os.ReadFile(path)
				}
				if err != nil {
					return fault.As(fault.Invalid, err)
				}
				n := count(string(b))
				if a.json {
					err = a.printJSON(map[string]any{"file": path, "tokens": n, "bytes": len(b)})
				} else {
					_, err = fmt.Fprintf(a.out, "%d\t%s\n", n, path)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) cmdEval() *cobra.Command {
	c := &cobra.Command{
		Use: "eval", Short: "Measure, without a server", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use:   "gate PATH…",
		Short: "Recall and false-open of the built-in gate on labelled chats",
		Long: `Recall and false-open of the built-in gate on labelled chats.

PATH is a folder of SDE-bench's shape (decisions.jsonl, decoys.jsonl,
tasks.jsonl) or JSON Lines of {id, open, messages | text}; lines whose open is
null are left out. Intervals are exact 95 % binomial ones.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, path := range args {
				rep, err := gateeval.Run(path)
				if err != nil {
					return err
				}
				if a.json {
					if err := a.printJSON(rep); err != nil {
						return err
					}
					continue
				}
				a.printReport(path, rep)
			}
			return nil
		},
	})
	c.AddCommand(a.cmdEvalRetrieval())
	return c
}

// printReport shows every figure beside its interval.
func (a *app) printReport(path string, r gateeval.Report) {
	fmt.Fprintln(a.out, path)
	fmt.Fprintf(a.out, "  recall      %.3f [%.3f, %.3f]  of %d that should open\n", r.Recall, r.RecallLow, r.RecallHigh, r.Open)
	fmt.Fprintf(a.out, "  false open  %.3f [%.3f, %.3f]  of %d that should stay closed\n", r.FalseOpen, r.FalseOpenLow, r.FalseOpenHigh, r.Closed)
	if t := r.Retrieval; t != nil {
		fmt.Fprintf(a.out, "  R@1 plain   %.3f [%.3f, %.3f]  %d of %d\n", t.Plain.R1, t.Plain.Low, t.Plain.High, t.Plain.Hits, t.Plain.N)
		fmt.Fprintf(a.out, "  R@1 amended %.3f [%.3f, %.3f]  %d of %d\n", t.Amended.R1, t.Amended.Low, t.Amended.High, t.Amended.Hits, t.Amended.N)
	}
}

func (a *app) cmdDoctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check that everything works, and say what to do where it does not",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.doctor(c.Context()) },
	}
}

type finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Msg   string `json:"msg"`
	Cure  string `json:"cure,omitempty"`
}

// doctorModels has the server look at its models: each finding is a line of its
// own. The first look loads them.
func (a *app) doctorModels(ctx context.Context, c *client, add func(check string, err error, ok string) bool) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	var found gate.ModelsFound
	const looking = "looking at the models; a cold one is loaded first"
	stop := a.meter(looking, -1, false).spin()
	if !a.json && !isTerminal(a.err) {
		fmt.Fprintln(a.err, looking)
	}
	err := c.get(ctx, "/memory/models", &found)
	stop()
	if err != nil {
		add("models", err, "")
		return
	}
	if found.Error != "" {
		add("models", fault.At(fault.Unavailable, "", found.Hint, "%s", found.Error), "")
		return
	}
	if !slices.ContainsFunc(found.Models, func(r preflight.Result) bool { return r.Use == "" }) {
		add("models", nil, "none: the built-in policy "+found.Policy+" decides")
	}
	for _, m := range found.Models {
		for _, f := range m.Findings {
			var err error
			if !f.OK {
				err = fault.At(fault.Invalid, m.Server, f.Cure, "%s", f.Found)
			}
			good := m.Server + ": " + f.Found
			if f.OK && f.Cure != "" {
				good += " (" + f.Cure + ")"
			}
			add(cmp.Or(m.Use, "model")+" "+f.Check, err, good)
		}
	}
}

func (a *app) doctor(ctx context.Context) error {
	var out []finding
	add := func(check string, err error, ok string) bool {
		f := finding{Check: check, OK: err == nil, Msg: ok}
		if err != nil {
			f.Msg, f.Cure = err.Error(), fault.HintOf(err)
		}
		out = append(out, f)
		return err == nil
	}
	count, err := wire.Counter()
	if add("tokenizer", err, "Qwen2.5 vocabulary, hash checked") && count("Hello world") != 2 {
		add("tokenizer", fault.New(fault.Corrupt, "counts wrong"), "")
	}
	space, err := wire.EmbeddingSpace()
	add("embedding", err, fmt.Sprintf("%s, %d dimensions, space %s; where no server is configured to embed", space.Model, space.Dims, space.ID))
	c, err := a.client()
	if add("server", err, "addresses found") {
		whole := ctx // to load a model takes longer than all else
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		resp, err := c.do(ctx, http.MethodGet, "/healthz", "", nil, -1)
		if err == nil {
			err = resp.Body.Close()
		}
		answers := add("api", err, c.base+" answers")
		if answers {
			var st struct {
				Pending map[string]any `json:"pending"`
			}
			err = c.get(ctx, "/memory/status", &st)
			add("token", err, "accepted")
			if err == nil {
				if p := pausedFor(ctx, c, ""); p != nil {
					add("paused", p, "")
				}
			}
			var dead struct {
				Dead []json.RawMessage `json:"dead"`
			}
			err = c.get(ctx, "/memory/dead", &dead)
			if err == nil && len(dead.Dead) > 0 {
				err = fault.At(fault.Unavailable, "", "mem dead lists them", "%d dead letters", len(dead.Dead))
			}
			add("dead letters", err, "none")
			var schemas learn.Schemas
			err = c.get(ctx, "/memory/schemas", &schemas)
			for _, s := range schemas.Schemas {
				if s.Error != "" && err == nil {
					err = fault.At(fault.Invalid, "", cmp.Or(s.Hint, "mem schema list"), "%s", s.Error)
				}
			}
			add("schemas", err, fmt.Sprintf("%d, all read", len(schemas.Schemas)))
		}
		if a.getenv("MNEME_URL") == "" || a.dir != "" {
			add("s3 endpoint", wire.ProbeS3(ctx, a.folder()), "answers, and takes the key")
		}
		if answers {
			a.doctorModels(whole, c, add) // last: the first look may load a model for minutes
		}
	}
	bad := false
	for _, f := range out {
		bad = bad || !f.OK
		if a.json {
			continue
		}
		mark := "ok  "
		if !f.OK {
			mark = "FAIL"
		}
		fmt.Fprintf(a.out, "%s  %-16s %s\n", mark, f.Check, f.Msg)
		if f.Cure != "" {
			fmt.Fprintf(a.out, "                       cure: %s\n", f.Cure)
		}
	}
	if a.json {
		if err := a.printJSON(map[string]any{"ok": !bad, "checks": out}); err != nil {
			return err
		}
	}
	if bad {
		return errNothing
	}
	return nil
}
