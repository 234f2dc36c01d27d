package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/baseurl"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
)

func (a *app) cmdLabel() *cobra.Command {
	c := &cobra.Command{
		Use:   "label",
		Short: "Say of chunks whether they hold evidence: by a model, by rules, by hand; and how far they agree",
		Long: `Say of the pieces of chunks that were decided whether they hold evidence for a
question. A label is a record beside the decisions: it is never overwritten, and no
memory follows from it. Training exports and the rewards in mem report rest on labels.

  run         a larger model, or rules, label what was decided
  review      you label one piece at a time
  agreement   how far models and rules agree with what people said
  export      write labels as JSON lines or CSV
  import      take labels in`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.cmdLabelRun(), a.cmdLabelReview(), a.cmdLabelAgreement(), a.cmdLabelExport(), a.cmdLabelImport())
	return c
}

// labelRun is what mem label run is told.
type labelRun struct {
	question, model, url, rules string
	limit                       int
	reviewed, again, yes, dry   bool
}

func (a *app) cmdLabelRun() *cobra.Command {
	var f labelRun
	c := &cobra.Command{
		Use:   "run",
		Short: "Label by a model (--model) or by rules (--rules)",
		Long: `Label what was decided.

--model X asks the gate's question about every piece, with no memory beside it. What
it will cost is shown first; where it costs something, or the text leaves this
machine, it needs --yes. What is labelled is not asked again, so that a run which was
interrupted goes on. Pieces that a person labelled come first; with --reviewed only
those are asked, which tells how good the model is (mem label agreement) before the
rest is paid for.

--rules FILE labels by words, and costs nothing:

  rules:
    - id: a-number-of-requests
      question: limits
      all: [rate limit]                      # words in this order, in any case
      any: [{regex: '\d+ (requests|calls)'}] # RE2
      evidence: yes
      confidence: 0.9

The first rule that matches a piece labels it; the same rules again write nothing.`,
		Example: "  mem label run --model qwen2.5:14b-instruct --reviewed\n  mem label run --model qwen2.5:14b-instruct -q decisions --limit 500 --yes\n  mem label run --rules limits.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case (f.model == "") == (f.rules == ""):
				return usageError{errors.New("say who labels: --model MODEL, or --rules FILE")}
			case f.rules != "" && (f.url != "" || f.limit != 0 || f.reviewed || f.again):
				return usageError{errors.New("--url, --limit, --reviewed and --again go with --model")}
			case f.rules != "":
				return a.labelByRules(c.Context(), f)
			}
			return a.labelByModel(c.Context(), f)
		},
	}
	c.Flags().StringVar(&f.model, "model", "", "the model that labels")
	c.Flags().StringVar(&f.url, "url", "", "where it is, a configured endpoint (default the project's own)")
	c.Flags().StringVar(&f.rules, "rules", "", "a file of rules")
	c.Flags().StringVarP(&f.question, "question", "q", "", "only this question id, or this stream")
	c.Flags().IntVar(&f.limit, "limit", 0, "only the latest pieces of each question")
	c.Flags().BoolVar(&f.reviewed, "reviewed", false, "only pieces that a person labelled")
	c.Flags().BoolVar(&f.again, "again", false, "ask again where the model's answer could not be read")
	c.Flags().BoolVar(&f.yes, "yes", false, "do it whatever it costs")
	c.Flags().BoolVarP(&f.dry, "dry-run", "n", false, "only show what it would cost, or what the rules match")
	return c
}

func (a *app) labelByModel(ctx context.Context, f labelRun) error {
	cl, project, err := a.inOne(ctx)
	if err != nil {
		return err
	}
	req := gate.LabelRequest{Project: project, Query: f.question, Model: f.model, BaseURL: f.url, Limit: f.limit, Reviewed: f.reviewed, Again: f.again, DryRun: true}
	var plan, out gate.Labelled
	if err := cl.send(ctx, http.MethodPost, "/memory/labels/run", req, &plan); err != nil {
		return err
	}
	if !a.json || f.dry {
		if err := a.printLabelPlan(plan); err != nil {
			return err
		}
	}
	switch {
	case f.dry:
		return nil
	case plan.ToAsk > 0 && !f.yes && !isFree(plan):
		ok, err := a.confirm(fmt.Sprintf("ask %s about %d pieces?", f.model, plan.ToAsk))
		if err != nil {
			return err
		}
		if !ok {
			fmt.Fprintln(a.err, "mem: nothing was asked; run it again with --yes")
			if a.json {
				return a.printJSON(plan)
			}
			return nil
		}
	}
	req.DryRun = false
	m := a.meter("label", int64(plan.ToAsk), false)
	err = cl.long(ctx, http.MethodPost, "/memory/labels/run", req, func(p json.RawMessage) { m.progress(p) }, &out)
	m.done()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	fmt.Fprintf(a.out, "%d pieces asked: %d evidence, %d not, %d unreadable; %d stood before", out.Asked, out.Evidence, out.Asked-out.Evidence-out.Unreadable, out.Unreadable, out.Standing)
	if out.Gone > 0 {
		fmt.Fprintf(a.out, ", %d are gone", out.Gone)
	}
	fmt.Fprintln(a.out)
	if out.Asked > 0 {
		fmt.Fprintf(a.out, "%s prompt and %s completion tokens, $%.4f, %.0f ms a piece\n", thousands(out.Took.PromptTokens), thousands(out.Took.CompletionTokens), out.Took.USD, out.Took.LatencyMS)
	}
	return nil
}

// progress reads a line {done, of}.
func (m *meter) progress(p json.RawMessage) {
	var s struct{ Done, Of int64 }
	if json.Unmarshal(p, &s) == nil {
		m.set(s.Done, s.Of)
	}
}

// isFree reports whether asking costs no money and the text stays on this machine.
func isFree(l gate.Labelled) bool {
	if l.Estimate.High.USD > 0 || len(l.Sends) == 0 {
		return false
	}
	return !slices.ContainsFunc(l.Sends, func(d gate.Destination) bool {
		u, err := url.Parse(d.URL)
		return err != nil || !baseurl.Local(u.Hostname())
	})
}

func (a *app) printLabelPlan(l gate.Labelled) error {
	if a.json {
		return a.printJSON(l)
	}
	fmt.Fprintf(a.out, "project %s: %d pieces, %d labelled by %s before, %d to ask\n", l.Project, l.Pieces, l.Standing, l.Model, l.ToAsk)
	for _, d := range l.Sends {
		if d.Use == "gate" {
			fmt.Fprintf(a.out, "  %s at %s (%s)\n", d.Model, d.Endpoint, d.URL)
		}
	}
	if l.ToAsk == 0 {
		return nil
	}
	r := l.Estimate
	fmt.Fprintf(a.out, "  %d to %d calls, %s to %s prompt tokens, %s to %s completion tokens, $%.4f to $%.4f\n", r.Low.Calls, r.High.Calls,
		thousands(r.Low.PromptTokens), thousands(r.High.PromptTokens), thousands(r.Low.CompletionTokens), thousands(r.High.CompletionTokens), r.Low.USD, r.High.USD)
	if l.Budget != nil {
		fmt.Fprintf(a.out, "  budget of a day:%s; today: $%.4f and %s tokens are spent\n", budgetText(*l.Budget), l.Spent.USD, thousands(l.Spent.Tokens))
	}
	return nil
}

// confirm asks a person at a terminal; without one the answer is no.
func (a *app) confirm(question string) (bool, error) {
	if f, ok := a.in.(*os.File); !ok || a.json || !isTerminal(f) || !isTerminal(a.err) {
		return false, nil
	}
	fmt.Fprintf(a.err, "%s [y/N] ", question)
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

func (a *app) labelByRules(ctx context.Context, f labelRun) error {
	data, err := readRules(f.rules)
	if err != nil {
		return err
	}
	cl, project, err := a.inOne(ctx)
	if err != nil {
		return err
	}
	m := a.meter("label", -1, false)
	var out gate.RulesRun
	err = cl.long(ctx, http.MethodPost, "/memory/labels/rules", gate.RulesRequest{
		Project: project, Query: f.question, Name: filepath.Base(f.rules), Rules: string(data), DryRun: f.dry,
	}, func(p json.RawMessage) { m.progress(p) }, &out)
	m.done()
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	for _, id := range sortedKeys(out.ByRule) {
		fmt.Fprintf(a.out, "%6d  %s\n", out.ByRule[id], id)
	}
	wrote := fmt.Sprintf("%d labels written", out.Written)
	if f.dry {
		wrote = fmt.Sprintf("%d labels would be written", out.Matched-out.Standing)
	}
	fmt.Fprintf(a.out, "%d pieces: %d match a rule, %d of them as evidence; %s, %d stood before\n", out.Pieces, out.Matched, out.Evidence, wrote, out.Standing)
	return nil
}

// readRules reads a rules file, and holds it against the grammar before anything is
// sent.
func readRules(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.At(fault.Invalid, path, "", "%v", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, labels.MaxRulesBytes+1))
	if err != nil {
		return nil, fault.At(fault.Invalid, path, "", "%v", err)
	}
	_, err = labels.ParseRules(path, data)
	return data, err
}

// agreementFlags are those of mem label agreement, and of an export that asks for it.
type agreementFlags struct {
	question, model string
	rules           bool
	bound           labels.Bound
}

func (a *app) cmdLabelAgreement() *cobra.Command {
	f := agreementFlags{bound: labels.DefaultBound}
	c := &cobra.Command{
		Use:   "agreement",
		Short: "How far models and rules agree with what people said",
		Long: `How far each judge agrees with the people, over the pieces that both labelled:
Cohen's kappa, precision and recall, each with its 95 % interval. The people are taken
for right. What the gate decided is held against them too.

A judge is trusted when kappa reaches --min-kappa over at least --min-pairs pieces.
The exit code is 1 where one is not; exports take labels of trusted models only.

mem label review shows as many open gates as closed ones, so that its pieces are no
random sample: evidence is more frequent among them than in the log.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.rules && f.model != "" {
				return usageError{errors.New("--model or --rules, not both")}
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			project, err := a.one(c.Context(), cl)
			if err != nil {
				return err
			}
			out, err := agreement(c.Context(), cl, project, f)
			if err != nil {
				return err
			}
			return a.printAgreement(out)
		},
	}
	c.Flags().StringVarP(&f.question, "question", "q", "", "only this question id, or this stream")
	c.Flags().StringVar(&f.model, "model", "", "only this model")
	c.Flags().BoolVar(&f.rules, "rules", false, "only the rules")
	boundFlags(c, &f.bound)
	return c
}

func boundFlags(c *cobra.Command, b *labels.Bound) {
	c.Flags().Float64Var(&b.Kappa, "min-kappa", b.Kappa, "kappa from which a judge is trusted")
	c.Flags().IntVar(&b.Pairs, "min-pairs", b.Pairs, "pieces that it and a person must both have labelled")
}

func agreement(ctx context.Context, cl *client, project string, f agreementFlags) (out gate.Agreements, err error) {
	err = cl.get(ctx, "/memory/labels/agreement"+queryString("project", project, "query", f.question, "model", f.model,
		"min_kappa", strconv.FormatFloat(f.bound.Kappa, 'g', -1, 64), "min_pairs", strconv.Itoa(f.bound.Pairs)), &out)
	if f.rules {
		out.Judges = slices.DeleteFunc(out.Judges, func(j labels.Agreement) bool { return j.Kind != memory.LabelRule })
	}
	return out, err
}

func (a *app) printAgreement(out gate.Agreements) error {
	var refused error
	for _, j := range out.Judges {
		refused = errors.Join(refused, j.Refusal())
	}
	if a.json {
		if err := a.printJSON(out); err != nil {
			return err
		}
		if refused != nil || len(out.Judges) == 0 {
			return errNothing
		}
		return nil
	}
	if len(out.Judges) == 0 {
		fmt.Fprintf(a.err, "mem: no model and no rule has labelled anything: mem label run (%d labels of people)\n", out.Human)
		return errNothing
	}
	t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "judge\tpieces\tboth yes\tonly people\tonly judge\tboth no\tkappa\tprecision\trecall")
	rows := slices.Clone(out.Judges)
	if out.Gate.N > 0 {
		rows = append(rows, out.Gate)
	}
	for _, j := range rows {
		name := j.Judge.Name()
		if j.Kind == out.Gate.Kind {
			name = "the gate"
		}
		kappa := "-"
		if j.Kappa != nil {
			kappa = interval(*j.Kappa, j.KappaCI)
		}
		precision, recall := "-", "-"
		if j.Table.Both+j.Table.OnlyB > 0 {
			precision = interval(j.Precision, j.PrecisionCI)
		}
		if j.Table.Both+j.Table.OnlyA > 0 {
			recall = interval(j.Recall, j.RecallCI)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", name, j.N, j.Table.Both, j.Table.OnlyA, j.Table.OnlyB, j.Table.Neither, kappa, precision, recall)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, j := range out.Judges {
		if j.Unreadable > 0 {
			fmt.Fprintf(a.out, "%s gave no readable answer about %d pieces\n", j.Judge.Name(), j.Unreadable)
		}
		if j.WithMemory > 0 {
			fmt.Fprintf(a.out, "%s saw a memory beside %d of the pieces: mem label run asks without one\n", j.Judge.Name(), j.WithMemory)
		}
	}
	fmt.Fprintf(a.out, "%d labels of people; intervals are of 95 %%\n", out.Human)
	for _, j := range out.Judges {
		if j.Trusted {
			fmt.Fprintf(a.out, "%s is trusted: kappa is at least %.2f over %d pieces\n", j.Judge.Name(), out.Bound.Kappa, j.N)
		}
	}
	if refused != nil {
		for _, j := range out.Judges {
			if err := j.Refusal(); err != nil {
				fmt.Fprintf(a.err, "mem: refused: %v\n", err)
			}
		}
		fmt.Fprintf(a.err, "  hint: %s\n", "label more of the same pieces by hand (mem label review), or use a better judge; --min-kappa and --min-pairs move the bound")
		return errNothing
	}
	return nil
}

func interval(v float64, ci [2]float64) string {
	return fmt.Sprintf("%.2f [%.2f, %.2f]", v, ci[0], ci[1])
}

// labelExport is what mem label export is told.
type labelExport struct {
	agreementFlags
	format, out, kind string
	untrusted         bool
}

func (a *app) cmdLabelExport() *cobra.Command {
	f := labelExport{agreementFlags: agreementFlags{bound: labels.DefaultBound}}
	c := &cobra.Command{
		Use:   "export",
		Short: "Write labels as JSON lines or CSV",
		Long: `Write labels, a row each, in a fixed order, without any text of a chunk. mem label
import takes the same file in again.

Labels of a model that is not trusted (mem label agreement) are not exported: the
export is refused, unless --untrusted says to write them all the same, or --kind and
--model leave them out.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.format == "" {
				f.format = labels.Format(f.out, []byte("{"))
			}
			if f.format != labels.JSONL && f.format != labels.CSV {
				return usageError{fmt.Errorf("--format is jsonl or csv, not %q", f.format)}
			}
			switch f.kind {
			case "", memory.LabelHuman, memory.LabelModel, memory.LabelRule:
			default:
				return usageError{fmt.Errorf("--kind is %s, %s or %s, not %q", memory.LabelHuman, memory.LabelModel, memory.LabelRule, f.kind)}
			}
			return a.labelExport(c.Context(), f)
		},
	}
	c.Flags().StringVar(&f.format, "format", "", "jsonl or csv (default by the name of --out, else jsonl)")
	c.Flags().StringVarP(&f.out, "out", "o", "", "write into this file (default standard output)")
	c.Flags().StringVarP(&f.question, "question", "q", "", "only this question id, or this stream")
	c.Flags().StringVar(&f.kind, "kind", "", "only labels of this kind: human, model, rule")
	c.Flags().StringVar(&f.model, "model", "", "only this model's")
	c.Flags().BoolVar(&f.untrusted, "untrusted", false, "also labels of models that are not trusted")
	boundFlags(c, &f.bound)
	return c
}

func (a *app) labelExport(ctx context.Context, f labelExport) error {
	cl, project, err := a.inOne(ctx)
	if err != nil {
		return err
	}
	var rows []labels.Row
	by := map[string]int{}
	err = cl.lines(ctx, "/memory/labels"+queryString("project", project, "query", f.question, "kind", f.kind, "model", f.model), func(line []byte) error {
		var r labels.Row
		if err := json.Unmarshal(line, &r); err != nil {
			return fault.New(fault.Unavailable, "the server's answer broke off: %v", err)
		}
		if r.Kind == memory.LabelModel {
			by[r.Model]++
		}
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		return err
	}
	if len(by) > 0 && !f.untrusted {
		if err := a.trusted(ctx, cl, project, f.agreementFlags, by); err != nil {
			return err
		}
	}
	write := func(w io.Writer) error { return labels.WriteRows(w, f.format, slices.Values(rows)) }
	if f.out == "" || f.out == "-" {
		err = write(a.out)
	} else {
		err = writeFile(f.out, write)
	}
	if err != nil {
		return err
	}
	if f.out != "" && f.out != "-" {
		fmt.Fprintf(a.err, "%d labels in %s\n", len(rows), f.out)
	}
	if len(rows) == 0 {
		fmt.Fprintln(a.err, "mem: there are no such labels")
		return errNothing
	}
	return nil
}

// trusted refuses where a model whose labels are in by is not.
func (a *app) trusted(ctx context.Context, cl *client, project string, f agreementFlags, by map[string]int) error {
	f.model, f.rules = "", false
	out, err := agreement(ctx, cl, project, f)
	if err != nil {
		return err
	}
	refused := false
	for _, j := range out.Judges {
		if err := j.Refusal(); err != nil && j.Kind == memory.LabelModel && by[j.Model] > 0 {
			refused = true
			fmt.Fprintf(a.err, "mem: refused: %v (%d labels)\n", err, by[j.Model])
		}
	}
	if refused {
		fmt.Fprintln(a.err, "  hint: --untrusted writes them all the same, --kind human leaves them out; mem label agreement shows where they stand")
		return errNothing
	}
	return nil
}

func (a *app) cmdLabelImport() *cobra.Command {
	by, format := "", ""
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Take labels in from JSON lines or CSV",
		Long: `Take labels in, a row each: JSON lines, or CSV with a header.

Columns: stream or question (its id), chunk (sha256) and evidence (yes or no) must be
there; start and end (bytes of the chunk's text; left out for all of it), kind (human,
model, rule), by, model, adapter, prompt_version, rule, confidence, exit, basis and at
may be. A column note is read and not kept.

A row without a kind is a person's: name yourself with --by, or each in the column by.
A row that names a model or a rule must say its kind.

A row that cannot be used, or is about a chunk or a question that the project does not
have, is named with its line and field, and the rest is kept. The same file again
writes nothing. "-" reads standard input.`,
		Example: "  mem label import labels.csv --by ada",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return a.labelImport(c.Context(), args[0], format, by) },
	}
	c.Flags().StringVar(&by, "by", "", "whose labels the rows without a kind are")
	c.Flags().StringVar(&format, "format", "", "jsonl or csv (default by the file's name, else by what it holds)")
	return c
}

// Bounds of a file of labels, and errors that are printed.
const (
	maxLabelFile  = 256 << 20
	maxRowsBytes  = 30 << 20 // of one request: its body may hold 32 MiB
	shownRowError = 100
)

func (a *app) labelImport(ctx context.Context, path, format, by string) error {
	if format != "" && format != labels.JSONL && format != labels.CSV {
		return usageError{fmt.Errorf("--format is jsonl or csv, not %q", format)}
	}
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return fault.At(fault.Invalid, path, "", "%v", err)
		}
		defer f.Close()
		if st, err := f.Stat(); err != nil || st.IsDir() || st.Size() > maxLabelFile {
			return fault.At(fault.Invalid, path, fmt.Sprintf("a file of at most %s", sizeText(maxLabelFile)), "no file of labels")
		}
		in = f
	}
	r := bufio.NewReaderSize(in, 64<<10)
	head, err := r.Peek(512)
	if err != nil && err != io.EOF && !errors.Is(err, bufio.ErrBufferFull) {
		return fault.At(fault.Invalid, path, "", "%v", err)
	}
	format = cmp.Or(format, labels.Format(path, head))
	cl, project, err := a.inOne(ctx)
	if err != nil {
		return err
	}
	im := &importing{a: a, cl: cl, path: path, req: gate.ImportRequest{Project: project, By: by}}
	im.total.Project, im.total.Errors = project, []labels.RowError{}
	for row, err := range labels.ReadRows(io.LimitReader(r, maxLabelFile), format, by) {
		if bad, ok := errors.AsType[*labels.RowError](err); ok {
			im.total.Rows++
			im.bad(*bad)
			continue
		}
		if err != nil {
			if e, ok := errors.AsType[*fault.Error](err); ok {
				return errors.Join(fault.At(e.Kind, path+", "+e.Where, e.Hint, "%s", e.Msg), im.send(ctx))
			}
			return errors.Join(err, im.send(ctx))
		}
		im.req.Labels = append(im.req.Labels, row)
		im.bytes += rowBytes(&row)
		if len(im.req.Labels) == gate.MaxRows || im.bytes > maxRowsBytes {
			if err := im.send(ctx); err != nil {
				return err
			}
		}
	}
	if err := im.send(ctx); err != nil {
		return err
	}
	t := im.total
	if a.json {
		if err := a.printJSON(t); err != nil {
			return err
		}
	} else {
		if t.Bad > shownRowError {
			fmt.Fprintf(a.err, "… and %d more\n", t.Bad-shownRowError)
		}
		fmt.Fprintf(a.out, "%d rows: %d labels written, %d stood before, %d left out\n", t.Rows, t.Written, t.Standing, t.Bad)
	}
	if t.Bad > 0 && t.Written+t.Standing == 0 {
		return fault.At(fault.Invalid, path, "mem label import --help names the columns", "no row can be used")
	}
	return nil
}

// importing sends a file's rows in bounded requests, and adds up what became of them.
type importing struct {
	a     *app
	cl    *client
	path  string
	req   gate.ImportRequest
	bytes int // of its rows, at most
	total gate.Imported
}

// rowBytes is the most that a row takes as JSON, which may write a byte in six.
func rowBytes(r *labels.Row) int {
	return 500 + 6*(len(r.Stream)+len(r.Question)+len(r.By)+len(r.Model)+len(r.Adapter)+len(r.PromptVersion)+len(r.Rule))
}

func (im *importing) bad(e labels.RowError) {
	im.total.Bad++
	if im.a.json {
		if len(im.total.Errors) < gate.MaxRowErrors {
			im.total.Errors = append(im.total.Errors, e)
		}
		return
	}
	if im.total.Bad <= shownRowError {
		fmt.Fprintf(im.a.err, "%s:%d: %s: %s\n", im.path, e.Line, e.Field, visible([]byte(e.Problem)))
	}
}

func (im *importing) send(ctx context.Context) error {
	if len(im.req.Labels) == 0 {
		return nil
	}
	var got gate.Imported
	if err := im.cl.send(ctx, http.MethodPost, "/memory/labels", im.req, &got); err != nil {
		return err
	}
	im.req.Labels, im.bytes = im.req.Labels[:0], 0
	t := &im.total
	t.Rows, t.Written, t.Standing = t.Rows+got.Rows, t.Written+got.Written, t.Standing+got.Standing
	for _, e := range got.Errors {
		im.bad(e)
	}
	t.Bad += got.Bad - len(got.Errors)
	return nil
}

// shown is a text of a transcript as people read it, on a terminal or through a pipe:
// what would move the cursor, hide or turn words stands there as a sign.
func shown(text string) string {
	var b bytes.Buffer
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r) // control pictures
		case r == 0x7f:
			b.WriteRune(0x2421)
		case r >= 0x80 && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
			fmt.Fprintf(&b, "<U+%04X>", r) // C1; marks that turn the direction
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
