package query

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/originals"
)

// An answer is as long as what was found, unless its reader asks for less: `optimize`
// shortens texts and quotes, `budget_tokens` bounds them too. Neither changes what is
// found or its order, and what is indexed never passes here. Nothing is left out
// silently: it is stored first, and Answer.Omitted says how to get it.

// Bounds of budget_tokens: below the one no quote fits, above the other no answer of
// maxLimit results reaches.
const (
	minBudget = 50
	maxBudget = 1_000_000
)

// Tokens are those of texts and quotes, by the Qwen2.5 vocabulary: what a model reads.
// Names, hashes and scores are not counted.
type Tokens struct {
	Found int `json:"found"`
	Given int `json:"given"`
}

// optimizing is one answer on its way to a reader with little room.
type optimizing struct {
	*Function
	q      *Request
	a      *Answer
	found  []Result                   // of a.Results, as found
	short  map[string]compress.Result // by project and text
	stored bool                       // originals are kept
}

func (f *Function) optimize(ctx context.Context, q *Request, a *Answer) error {
	o := optimizing{Function: f, q: q, a: a, short: map[string]compress.Result{}, stored: f.cfg.Originals != nil && !f.cfg.Originals.Off()}
	a.Omitted, a.Tokens = []originals.Omitted{}, &Tokens{}
	for i := range a.Results {
		r := &a.Results[i]
		a.Tokens.Found += tokensOf(r)
		whole := *r
		whole.Citations = slices.Clone(r.Citations)
		o.found = append(o.found, whole)
		if err := o.result(ctx, r); err != nil {
			return err
		}
	}
	if q.BudgetTokens > 0 {
		o.fit(ctx)
	}
	for i := range a.Results {
		a.Tokens.Given += tokensOf(&a.Results[i])
		o.tell(&a.Results[i], &o.found[i])
	}
	return nil
}

// tell says what is left out of the texts and quotes that are given.
func (o *optimizing) tell(r, found *Result) {
	of := func(field, text string) {
		o.a.Omitted = append(o.a.Omitted, originals.OmittedOf(r.Project, r.SHA256, field, o.short[r.Project+"\x00"+text], o.stored)...)
	}
	if r.Shortened {
		of("text", found.Text)
	}
	told := map[string]bool{}
	for k := range r.Citations {
		if q := found.Citations[k].Quote; r.Citations[k].Shortened && !told[q] {
			told[q] = true
			of("quote", q)
		}
	}
}

func tokensOf(r *Result) int {
	n := compress.Tokens(r.Text)
	for i := range r.Citations {
		n += compress.Tokens(r.Citations[i].Quote)
	}
	return n
}

// result shortens one result's text and quotes. A quote that is the text is not given
// twice.
func (o *optimizing) result(ctx context.Context, r *Result) error {
	text := r.Text
	short, err := o.shorten(ctx, r.Project, text)
	if err != nil {
		return err
	}
	if short.Changed {
		r.Text, r.Shortened = short.Text, true
	}
	for i := range r.Citations {
		c := &r.Citations[i]
		if c.Quote == text && text != "" && !o.cfg.Optimizer.Off {
			c.Quote, c.QuoteIsText = "", true
			continue
		}
		short, err := o.shorten(ctx, r.Project, c.Quote)
		if err != nil {
			return err
		}
		if short.Changed {
			c.Quote, c.Shortened = short.Text, true
		}
	}
	return nil
}

func (o *optimizing) shorten(ctx context.Context, project, text string) (compress.Result, error) {
	key := project + "\x00" + text
	if r, ok := o.short[key]; ok {
		return r, nil
	}
	opt := o.cfg.Optimizer
	opt.Query, opt.Evidence = o.q.Query, compress.RootLine
	var r compress.Result
	var err error
	if o.cfg.Originals == nil {
		r = compress.Compress(text, opt)
	} else if r, err = o.cfg.Originals.Compress(ctx, project, text, opt); err != nil {
		return r, err
	}
	o.short[key] = r
	return r, nil
}

// fit leaves out what is over the budget: first every result has its text and first
// quote, in the order of rank, then those that have a place get their other quotes. A
// later result that is shorter may fit where an earlier one does not.
func (o *optimizing) fit(ctx context.Context) {
	left := o.q.BudgetTokens
	take := func(n int) bool {
		if n > left {
			return false
		}
		left -= n
		return true
	}
	kept, out := []Result{}, []Result{}
	var before []Result // the kept ones as found
	for i, r := range o.a.Results {
		n := compress.Tokens(r.Text)
		if len(r.Citations) > 0 {
			n += compress.Tokens(r.Citations[0].Quote)
		}
		if take(n) {
			kept, before = append(kept, r), append(before, o.found[i])
		} else {
			out = append(out, o.found[i])
		}
	}
	for i := range kept {
		r := &kept[i]
		lost := []Citation{}
		for k := 1; k < len(r.Citations); k++ {
			c := &r.Citations[k]
			if c.Quote == "" || take(compress.Tokens(c.Quote)) {
				continue
			}
			lost = append(lost, before[i].Citations[k])
			c.Quote, c.Shortened, c.QuoteOmitted = "", false, true
		}
		if len(lost) > 0 {
			o.leave(ctx, r.Project, originals.Omitted{Of: r.SHA256, Field: "quotes", Count: len(lost), Unit: "quotes"}, jsonLines(lost))
		}
	}
	found := len(o.found)
	o.a.Results, o.found = kept, before
	for len(out) > 0 {
		project := out[0].Project
		same := []Result{}
		out = slices.DeleteFunc(out, func(r Result) bool {
			if r.Project == project {
				same = append(same, r)
			}
			return r.Project == project
		})
		o.leave(ctx, project, originals.Omitted{Field: "results", Count: len(same), Unit: "results"}, jsonLines(same))
	}
	if len(kept) == 0 && found > 0 {
		o.a.Notice = "nothing of what was found fits in the budget"
	}
}

// leave stores what is left out as a whole, and says so. Where it cannot be stored the
// answer says that it is left out all the same.
func (o *optimizing) leave(ctx context.Context, project string, what originals.Omitted, text string) {
	if o.stored {
		put, err := o.cfg.Originals.Put(ctx, project, text)
		if err == nil {
			what = what.At(project, put)
		} else {
			o.cfg.Logger.WarnContext(ctx, "what an answer leaves out is not stored", "err", err)
		}
	}
	o.a.Omitted = append(o.a.Omitted, what)
}

func jsonLines[T any](list []T) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, v := range list {
		if enc.Encode(v) != nil {
			return "" // texts and numbers alone
		}
	}
	return b.String()
}

func checkBudget(n int) error {
	if n != 0 && (n < minBudget || n > maxBudget) {
		return fault.At(fault.Invalid, "budget_tokens", "a number from 50 to 1000000", "%d", n)
	}
	return nil
}
