package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/chunk"
	"github.com/mneme-ai/mneme/shared/cost"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
)

// chunkPlan is what one file would give: chunks by policy c1, with the built-in
// redaction rules. Turns that the log holds already are not known here.
type chunkPlan struct {
	File    string `json:"file"`
	Format  string `json:"format"`
	Project string `json:"project"`
	Turns   int    `json:"turns"`
	Chunks  []int  `json:"chunks"` // tokens of each
	Error   string `json:"error,omitempty"`
}

// planChunks reads a file as the server would.
func planChunks(path string, count func(string) int, noteChars int) (p chunkPlan, err error) {
	p = chunkPlan{File: path, Chunks: []int{}}
	f, r, err := read(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	key := []byte("a plan stores nothing")
	c := chunk.New(chunk.Options{Count: count, Redact: redact.New(key), TenantKey: key, NoteChars: noteChars})
	add := func(done []memory.Chunk, err error) error {
		for i := range done {
			p.Chunks = append(p.Chunks, done[i].Tokens)
		}
		return err
	}
	for t, err := range r.Turns() {
		if err != nil {
			return p, fault.As(fault.Invalid, fmt.Errorf("%s: %w", path, err))
		}
		p.Turns++
		if err := add(c.Add(t)); err != nil {
			return p, err
		}
	}
	p.Format = string(r.Format())
	return p, add(c.Flush())
}

// learnDry shows what learn would do. It uploads nothing and calls no model.
func (a *app) learnDry(ctx context.Context, args []string, f learnFlags) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	files, err := a.files(args)
	if err != nil {
		return err
	}
	if slices.Contains(files, "-") {
		return usageError{errors.New("--dry-run reads files, not standard input")}
	}
	project, err := a.target(ctx, c)
	if err != nil {
		return err
	}
	count, err := wire.Counter()
	if err != nil {
		return err
	}
	m := a.meter("reading", int64(len(files)), false)
	plans := make([]chunkPlan, 0, len(files))
	bad := 0
	for _, file := range files {
		m.add(1)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p, err := planChunks(file, count, f.chunk)
		if err != nil {
			p.Error = err.Error()
			bad++
		}
		if p.Project = homeOf(c.mapped, project, file); p.Project == "_auto" {
			if pl, err := planFile(c.mapped, file); err == nil {
				p.Project = pl.project
			}
		}
		plans = append(plans, p)
	}
	m.done()
	estimates, err := a.estimates(ctx, c, plans, f.query)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"files": plans, "histogram": histogram(plans), "projects": estimates})
	}
	for _, p := range plans {
		if p.Error != "" {
			fmt.Fprintf(a.out, "%s  not read: %s\n", p.File, p.Error)
			continue
		}
		fmt.Fprintf(a.out, "%s  %s  project %s: %d turns, %d chunks, %d tokens\n", p.File, p.Format, p.Project, p.Turns, len(p.Chunks), sum(p.Chunks))
	}
	a.printHistogram(plans)
	for _, e := range estimates {
		a.printEstimate(e)
	}
	if bad == len(plans) {
		return fault.New(fault.Invalid, "no file can be read")
	}
	return nil
}

// estimates asks the server what the chunks of each project would cost.
func (a *app) estimates(ctx context.Context, c *client, plans []chunkPlan, query string) ([]gate.Estimate, error) {
	by := map[string][]int{}
	for _, p := range plans {
		by[p.Project] = append(by[p.Project], p.Chunks...)
	}
	out := []gate.Estimate{}
	for _, project := range sortedKeys(by) {
		if !memory.ValidName(project) {
			continue // `_auto`: each record's own folder decides
		}
		var e gate.Estimate
		if err := c.send(ctx, http.MethodPost, "/memory/estimate", map[string]any{"project": project, "chunks": by[project], "query": query}, &e); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func sum(xs []int) (n int) {
	for _, x := range xs {
		n += x
	}
	return n
}

// bucket is one bar of the histogram of chunk sizes.
type bucket struct {
	UpTo int `json:"up_to"` // tokens
	N    int `json:"chunks"`
}

// chunkBuckets: notes lie in the first three, dialogue fills the last.
var chunkBuckets = []int{100, 500, 1000, 2000, 3000, 4000, 5000}

func histogram(plans []chunkPlan) []bucket {
	out := make([]bucket, len(chunkBuckets)+1)
	for i, up := range chunkBuckets {
		out[i].UpTo = up
	}
	most := 0
	for _, p := range plans {
		for _, n := range p.Chunks {
			i, _ := slices.BinarySearch(chunkBuckets, n)
			out[i].N++
			most = max(most, n)
		}
	}
	if last := &out[len(out)-1]; last.N > 0 {
		last.UpTo = most // a message is never cut for its size
		return out
	}
	return out[:len(out)-1]
}

func (a *app) printHistogram(plans []chunkPlan) {
	h := histogram(plans)
	most := 0
	for _, b := range h {
		most = max(most, b.N)
	}
	if most == 0 {
		return
	}
	fmt.Fprintln(a.out, "tokens a chunk")
	for _, b := range h {
		const width = 40
		fmt.Fprintf(a.out, "  up to %5d  %6d  %s\n", b.UpTo, b.N, strings.Repeat("#", (b.N*width+most-1)/most))
	}
}

// sent says what of a text goes to a model that does not get all of it. What
// embedding and reranking cost is in no estimate.
var sent = map[string]string{
	"rewrite": ", chunks whose gate is open only",
	"embed":   ", what is kept, and questions",
	"rerank":  ", what a question finds",
}

// printEstimate says where text goes and what it costs.
func (a *app) printEstimate(e gate.Estimate) {
	if len(e.Sends) == 0 {
		fmt.Fprintf(a.out, "project %s: %d questions over %d chunks by the built-in policy %s: no model is called, it costs nothing, the text goes to this Mneme only\n", e.Project, e.Questions, e.Chunks, e.Policy)
		return
	}
	decided := ""
	if !slices.ContainsFunc(e.Sends, func(d gate.Destination) bool { return d.Use == "gate" }) {
		decided = ", by the built-in policy " + e.Policy
	}
	fmt.Fprintf(a.out, "project %s: %d questions over %d chunks of %d tokens%s\n", e.Project, e.Questions, e.Chunks, e.Tokens, decided)
	for _, d := range e.Sends {
		fmt.Fprintf(a.out, "  %-8s %s at %s (%s)%s\n", d.Use, d.Model, d.Endpoint, d.URL, sent[d.Use])
	}
	if decided != "" {
		return
	}
	r := e.Estimate
	fmt.Fprintf(a.out, "  %d to %d calls, %s to %s prompt tokens, %s to %s completion tokens, $%.4f to $%.4f", r.Low.Calls, r.High.Calls,
		thousands(r.Low.PromptTokens), thousands(r.High.PromptTokens), thousands(r.Low.CompletionTokens), thousands(r.High.CompletionTokens), r.Low.USD, r.High.USD)
	if r.High.Seconds > 0 {
		fmt.Fprintf(a.out, ", %v to %v", seconds(r.Low.Seconds), seconds(r.High.Seconds))
	}
	fmt.Fprintln(a.out)
	if r.Steps > 0 {
		fmt.Fprintf(a.out, "  as the last %d steps of this model went\n", r.Steps)
	} else {
		fmt.Fprintln(a.out, "  by bounds: from every gate closed to every gate open; after 50 steps of the model its own rates narrow it")
	}
	if e.Budget != nil {
		fmt.Fprintf(a.out, "  budget of a day:%s; today: $%.4f and %s tokens are spent\n", budgetText(*e.Budget), e.Spent.USD, thousands(e.Spent.Tokens))
	}
}

func budgetText(b cost.Budget) (s string) {
	if b.USD > 0 {
		s += fmt.Sprintf(" $%.2f", b.USD)
	}
	if b.Tokens > 0 {
		s += " " + thousands(b.Tokens) + " tokens"
	}
	return s
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(time.Second)
}

// thousands is a number as people read it: 12,345.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
