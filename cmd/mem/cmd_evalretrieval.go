package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/rank"
)

func (a *app) cmdEvalRetrieval() *cobra.Command {
	var limit int
	var misses bool
	c := &cobra.Command{
		Use:   "retrieval FOLDER",
		Short: "MRR, nDCG, precision and recall of answers on a judged set, by leg and weight",
		Long: `MRR, nDCG@10, precision and recall of answers on a judged set: words alone, meaning
alone, and both by the weight of meaning from 0.3 to 0.7.

The chats go through a memory of their own in a temporary folder, as uploads do: gated,
embedded, indexed. Models are those of the environment, indexes the embedded ones. A
chat's place is that of the first answer that cites it.

What is measured is one list of evidence and raw text, in which every question finds
what is nearest. "served" is beside it what an agent gets: memory alone, and nothing for
a question that the floor takes for unknown; there, unanswered is no wrong answer.

FOLDER is of SDE-bench's shape (decisions.jsonl, decoys.jsonl, tasks.jsonl), or holds a
folder corpus of transcripts or notes and queries.jsonl, a line each:
  {"query": "why three retries?", "relevant": ["a.jsonl"], "stale": ["old.jsonl"]}
"stale" are files whose statement the relevant one replaced.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.evalRetrieval(c.Context(), args[0], limit, misses)
		},
	}
	c.Flags().BoolVar(&misses, "misses", false, "name each question that the way in use, and the way served, does not answer in first place")
	c.Flags().IntVarP(&limit, "limit", "n", 20, "answers asked for, 10 to 100")
	return c
}

// judgedSet is documents and questions about them.
type judgedSet struct {
	names []string // of the documents, in the order they are learned
	files map[string]string
	asks  []judgedQuery
	// projects of the documents that are not in evalProject.
	projects map[string]string
}

type judgedQuery struct {
	Query    string   `json:"query"`
	Relevant []string `json:"relevant"`
	Stale    []string `json:"stale"`

	project string // asked beside evalProject
}

// evalProject holds the documents. Where the question's own stand in a project of their
// own, both are asked.
const evalProject = "eval"

func (a *app) evalRetrieval(ctx context.Context, folder string, limit int, misses bool) (err error) {
	if limit < 10 || limit > 100 {
		return usageError{errors.New("--limit is from 10 to 100")}
	}
	tmp, err := os.MkdirTemp("", "mneme-eval-")
	if err != nil {
		return fault.As(fault.Unavailable, err)
	}
	defer os.RemoveAll(tmp)
	set, err := readJudged(folder, filepath.Join(tmp, "files"))
	if err != nil {
		return err
	}
	cfg := wire.UpConfig{Dir: filepath.Join(tmp, "data"), HTTP: "127.0.0.1:0", S3: "127.0.0.1:0", Getenv: a.getenv, Logger: slog.New(slog.DiscardHandler)}
	if cfg.Models, err = wire.ModelsFromEnv(a.getenv); err != nil {
		return err
	}
	u, err := wire.Start(ctx, cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() { ended <- u.Run(ctx, func(wire.Ready) { close(ready) }) }()
	defer func() {
		cancel()
		if e := <-ended; err == nil && e != nil && !errors.Is(e, context.Canceled) {
			err = e
		}
	}()
	select {
	case <-ready:
	case e := <-ended:
		ended <- nil
		return e
	}
	b := *a
	b.dir, b.project = cfg.Dir, ""
	b.getenv = func(k string) string {
		if k == "MNEME_URL" || k == "MNEME_TOKEN" || k == "MNEME_DIR" {
			return "" // those name another memory
		}
		return a.getenv(k)
	}
	rows, err := b.evaluate(ctx, set, limit)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"folder": folder, "documents": len(set.names), "modes": rows})
	}
	a.printQuality(folder, len(set.names), rows)
	if misses {
		for _, r := range rows[len(rows)-2:] {
			fmt.Fprintf(a.out, "\nnot in first place, %s:\n", r.Mode)
			a.printMisses(set, r.judged)
		}
	}
	return nil
}

// evalRow is one way of asking.
type evalRow struct {
	Mode        string  `json:"mode"`
	DenseWeight float64 `json:"dense_weight"`
	rank.Quality
	// Plain questions have no statement that the answer replaced, amended ones have.
	Plain   evalShare `json:"plain"`
	Amended evalShare `json:"amended"`
	judged  []rank.Judged
}

// evalShare is recall@1 of a part of the questions.
type evalShare struct {
	N       int     `json:"n"`
	Recall1 float64 `json:"recall_at_1"`
}

func rowOf(mode string, weight float64, js []rank.Judged) evalRow {
	r := evalRow{Mode: mode, DenseWeight: weight, Quality: rank.Evaluate(js), judged: js}
	part := func(amended bool) evalShare {
		some := slices.DeleteFunc(slices.Clone(js), func(j rank.Judged) bool { return len(j.Stale) > 0 != amended })
		return evalShare{len(some), rank.Evaluate(some).Recall1}
	}
	r.Plain, r.Amended = part(false), part(true)
	return r
}

func (s evalShare) String() string {
	if s.N == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f of %d", s.Recall1, s.N)
}

// evaluate learns the documents and asks every question in every way.
func (a *app) evaluate(ctx context.Context, set *judgedSet, limit int) ([]evalRow, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	objects := map[string]string{} // the last part of the upload's key, to its document
	m := a.meter("learn", int64(len(set.names)), false)
	for _, name := range set.names {
		if _, err := a.upload(ctx, c, or(set.projects[name], evalProject), set.files[name], false); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects[filepath.Base(set.files[name])] = name
		m.add(1)
	}
	m.done()
	if err := waitDone(ctx, c, time.Hour); err != nil {
		return nil, err
	}
	ways := []struct {
		mode   string
		weight float64
	}{{"words", 0}, {"meaning", 1}, {"both", .3}, {"both", .4}, {"both", .5}, {"both", .6}, {"both", .7}, {"in use", -1}, {served, -1}}
	m = a.meter("ask", int64(len(ways)*len(set.asks)), false)
	defer m.done()
	var rows []evalRow
	for _, w := range ways {
		var js []rank.Judged
		weight := w.weight
		for i, q := range set.asks {
			v := url.Values{"query": {q.Query}, "project": {evalProject}, "limit": {strconv.Itoa(limit)}}
			if w.mode != served {
				v.Set("level", "L0,raw")
				v.Set("floor", "false")
			}
			if q.project != "" {
				v.Add("project", q.project)
			}
			if w.weight >= 0 {
				v.Set("dense_weight", strconv.FormatFloat(w.weight, 'g', -1, 64))
			}
			var ans query.Answer
			if err := c.get(ctx, "/memory/query?"+v.Encode(), &ans); err != nil {
				return nil, fault.At(fault.KindOf(err), fmt.Sprintf("question %d", i+1), fault.HintOf(err), "%v", err)
			}
			if len(ans.Degraded) > 0 {
				return nil, fault.New(fault.Unavailable, "question %d: the answer was degraded: %s: %s", i+1, ans.Degraded[0].Leg, ans.Degraded[0].Why)
			}
			js = append(js, judge(&q, &ans, objects))
			if len(ans.Results) > 0 && w.weight < 0 {
				weight = ans.Results[0].Components.SemanticWeight
			}
			m.add(1)
		}
		rows = append(rows, rowOf(w.mode, weight, js))
	}
	return rows, nil
}

// served is the mode of an agent's question.
const served = "served"

// judge ranks documents by the first answer that cites them.
func judge(q *judgedQuery, ans *query.Answer, objects map[string]string) rank.Judged {
	j := rank.Judged{Relevant: map[string]bool{}, Stale: q.Stale}
	for _, r := range q.Relevant {
		j.Relevant[r] = true
	}
	for _, r := range ans.Results {
		for _, c := range r.Citations {
			if name := objects[path.Base(c.Object)]; name != "" && !slices.Contains(j.Ranked, name) {
				j.Ranked = append(j.Ranked, name)
			}
		}
	}
	return j
}

func (a *app) printQuality(folder string, documents int, rows []evalRow) {
	fmt.Fprintf(a.out, "%s: %d questions over %d documents\n", folder, rows[0].Questions, documents)
	fmt.Fprintf(a.out, "%-9s %-7s  %6s %8s %6s %6s %6s %6s %6s  %-11s %-11s %s\n", "mode", "meaning", "MRR", "nDCG@10", "P@1", "P@10", "R@1", "R@5", "R@10", "plain R@1", "amended R@1", "stale first, unanswered")
	for _, r := range rows {
		fmt.Fprintf(a.out, "%-9s %-7.2f  %6.3f %8.3f %6.3f %6.3f %6.3f %6.3f %6.3f  %-11s %-11s %d, %d\n",
			r.Mode, r.DenseWeight, r.MRR, r.NDCG10, r.Precision1, r.Precision10, r.Recall1, r.Recall5, r.Recall10, r.Plain, r.Amended, r.StaleFirst, r.Unanswered)
	}
}

func (a *app) printMisses(set *judgedSet, js []rank.Judged) {
	for i, j := range js {
		if rank.PrecisionAt(j.Ranked, j.Relevant, 1) == 1 {
			continue
		}
		place := slices.IndexFunc(j.Ranked, func(n string) bool { return j.Relevant[n] })
		fmt.Fprintf(a.out, "\n%d. %s\n   relevant: %s", i+1, set.asks[i].Query, strings.Join(set.asks[i].Relevant, ", "))
		if place >= 0 {
			fmt.Fprintf(a.out, ", in place %d", place+1)
		}
		fmt.Fprintf(a.out, "\n   found: %s\n", strings.Join(j.Ranked[:min(3, len(j.Ranked))], ", "))
	}
}

// readJudged reads a judged set; documents that are lines of a file become files of
// their own in tmp.
func readJudged(folder, tmp string) (*judgedSet, error) {
	set := &judgedSet{files: map[string]string{}, projects: map[string]string{}}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "decisions.jsonl")); err == nil {
		return set, set.readBench(folder, tmp)
	}
	err := eachLine(filepath.Join(folder, "queries.jsonl"), func(where string, line []byte) error {
		var q judgedQuery
		if err := json.Unmarshal(line, &q); err != nil {
			return fault.At(fault.Invalid, where, `a line is {"query", "relevant", "stale"}`, "%v", err)
		}
		set.asks = append(set.asks, q)
		return nil
	})
	if err != nil {
		return nil, err
	}
	corpus := filepath.Join(folder, "corpus")
	err = filepath.WalkDir(corpus, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(corpus, p)
		if err != nil {
			return err
		}
		// The key of an upload keeps the file's name alone; a number tells two apart.
		name := filepath.Join(tmp, fmt.Sprintf("%06d-%s", len(set.names), filepath.Base(p)))
		if p, err = filepath.Abs(p); err != nil {
			return err
		}
		if err := os.Symlink(p, name); err != nil {
			return err
		}
		set.names = append(set.names, filepath.ToSlash(rel))
		set.files[filepath.ToSlash(rel)] = name
		return nil
	})
	if err != nil {
		return nil, fault.At(fault.Invalid, folder, "name a folder of SDE-bench's shape, or one with corpus/ and queries.jsonl", "%v", err)
	}
	return set, set.check(folder)
}

// readBench reads SDE-bench's three files. A task is asked over its own chats and the
// decoys: the chats of other tasks may tell another history of the same code.
func (s *judgedSet) readBench(folder, tmp string) error {
	for _, file := range []string{"decisions.jsonl", "decoys.jsonl"} {
		err := eachLine(filepath.Join(folder, file), func(where string, line []byte) error {
			var chat struct {
				ID    string `json:"id"`
				Turns []struct {
					Role string `json:"role"`
					Text string `json:"text"`
				} `json:"turns"`
			}
			if err := json.Unmarshal(line, &chat); err != nil || chat.ID == "" {
				return fault.At(fault.Invalid, where, `a line is {"id", "turns": [{"role", "text"}]}`, "not a chat: %v", err)
			}
			var b strings.Builder
			for _, t := range chat.Turns {
				l, err := json.Marshal(map[string]string{"role": t.Role, "content": t.Text})
				if err != nil {
					return err
				}
				b.Write(l)
				b.WriteByte('\n')
			}
			name := filepath.Join(tmp, fmt.Sprintf("%06d.jsonl", len(s.names)))
			if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
				return fault.As(fault.Unavailable, err)
			}
			s.names = append(s.names, chat.ID)
			s.files[chat.ID] = name
			return nil
		})
		if err != nil {
			return err
		}
	}
	err := eachLine(filepath.Join(folder, "tasks.jsonl"), func(where string, line []byte) error {
		var t struct {
			Question string   `json:"question"`
			Answer   string   `json:"answer"`
			Stale    []string `json:"stale"`
		}
		if err := json.Unmarshal(line, &t); err != nil {
			return fault.At(fault.Invalid, where, `a line is {"question", "answer", "stale"}`, "%v", err)
		}
		q := judgedQuery{Query: t.Question, Relevant: []string{t.Answer}, Stale: t.Stale, project: fmt.Sprintf("%s-task-%d", evalProject, len(s.asks)+1)}
		for _, id := range append(slices.Clone(t.Stale), t.Answer) {
			s.projects[id] = q.project
		}
		s.asks = append(s.asks, q)
		return nil
	})
	if err != nil {
		return err
	}
	return s.check(folder)
}

// check refuses a set whose judgements name what is not there: they would count as
// misses.
func (s *judgedSet) check(folder string) error {
	if len(s.asks) == 0 {
		return fault.At(fault.Invalid, folder, "", "no question in it")
	}
	for i, q := range s.asks {
		if strings.TrimSpace(q.Query) == "" || len(q.Relevant) == 0 {
			return fault.At(fault.Invalid, fmt.Sprintf("%s, question %d", folder, i+1), "", "it has no text, or no relevant document")
		}
		for _, name := range slices.Concat(q.Relevant, q.Stale) {
			if s.files[name] == "" {
				return fault.At(fault.Invalid, fmt.Sprintf("%s, question %d", folder, i+1), "", "document %q is not in the set", name)
			}
		}
	}
	return nil
}

// eachLine calls fn for every line that holds something.
func eachLine(name string, fn func(where string, line []byte) error) error {
	f, err := os.Open(name)
	if err != nil {
		return fault.At(fault.Invalid, name, "mem eval retrieval --help says what a judged set is", "%v", err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(make([]byte, 64<<10), 64<<20)
	for n := 1; sc.Scan(); n++ {
		if len(strings.TrimSpace(sc.Text())) == 0 {
			continue
		}
		if err := fn(name+":"+strconv.Itoa(n), sc.Bytes()); err != nil {
			return err
		}
	}
	if err := sc.Err(); err != nil {
		return fault.At(fault.Invalid, name, "", "%v", err)
	}
	return nil
}
