package osindex

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	// k1 is Lucene's BM25 parameter. Its score leaves the factor k1+1 out, which the port
	// has; contentBoost is that of the field in the query.
	k1           = 1.2
	contentBoost = 2
	scale        = (k1 + 1) / contentBoost

	codeBoost  = 6   // an exact code beside the same word in the text
	fuzzyBoost = 0.3 // a word that is one or two letters away

	// maxWords bounds a query: a question has 10 to 30, a pasted log thousands.
	maxWords = 64
)

// queryWord is one word of a question.
type queryWord struct {
	text string
	code string // where it has the form of one
	stop bool   // it says nothing about the subject
}

var functionWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range index.FunctionWords() {
		m[w] = true
	}
	return m
}()

func parse(query string) (out []queryWord) {
	seen := map[string]bool{}
	for _, w := range strings.FieldsFunc(query, unicode.IsSpace) {
		w = strings.Trim(w, ".,;:?!\"'()[]{}<>`“”’‘…")
		lower := strings.ToLower(w)
		if w == "" || seen[lower] {
			continue
		}
		seen[lower] = true
		q := queryWord{text: w, stop: functionWords[lower]}
		for _, c := range codesOf(w) {
			q.code = c
		}
		if out = append(out, q); len(out) == maxWords {
			break
		}
	}
	// Function words order nothing, but where there is nothing else.
	if slices.ContainsFunc(out, func(q queryWord) bool { return !q.stop }) {
		out = slices.DeleteFunc(out, func(q queryWord) bool { return q.stop })
	}
	return out
}

// exact matches the word, whole or by its parts or by its stem.
func (w *queryWord) exact() map[string]any {
	return map[string]any{"multi_match": map[string]any{"query": w.text, "type": "best_fields", "fields": []string{"content^2", "content.std"}}}
}

func named(query map[string]any, name string) map[string]any {
	return map[string]any{"bool": map[string]any{"must": []any{query}, "_name": name}}
}

// Search implements index.Lexical. One request brings the hits and, over the scope that
// is seen, how many passages hold each word.
func (ix *Index) Search(ctx context.Context, query string, f index.Filter, k int) (hits []index.Hit, err error) {
	defer fault.Wrap(&err, "osindex.Search(%s)", f.Tenant)
	words := parse(query)
	if k <= 0 || f.Tenant == "" || len(f.Projects) == 0 || len(words) == 0 {
		return nil, nil
	}
	if err := ix.refresh(ctx); err != nil {
		return nil, err
	}
	// Statistics are of what could be found: raw text, where it is asked for, is part of it.
	in := []any{term("tenant", f.Tenant), map[string]any{"terms": map[string]any{"project": f.Projects}}}
	raw := false
	var levels []string
	for _, l := range f.Scope() {
		levels = append(levels, string(l))
		raw = raw || l == memory.LevelRaw
	}
	if !raw {
		in = append(in, map[string]any{"terms": map[string]any{"level": []string{"L0", "L1", "L2"}}})
	}
	post := []any{map[string]any{"terms": map[string]any{"level": levels}}}
	if f.Timed() {
		from, to := f.Range()
		post = append(post, map[string]any{"range": map[string]any{"at": map[string]any{"gte": from, "lt": to}}})
	}
	var should []any
	counts := map[string]any{}
	for i := range words {
		w := &words[i]
		should = append(should, named(w.exact(), "w"+strconv.Itoa(i)))
		counts["w"+strconv.Itoa(i)] = map[string]any{"filter": w.exact()}
		if w.code != "" {
			should = append(should, map[string]any{"term": map[string]any{"codes": map[string]any{"value": w.code, "boost": codeBoost}}})
		} else if !w.stop {
			should = append(should, map[string]any{"match": map[string]any{"content": map[string]any{
				"query": w.text, "fuzziness": "AUTO", "prefix_length": 1, "max_expansions": 50, "boost": fuzzyBoost,
			}}})
		}
	}
	var out answer
	err = ix.call(ctx, http.MethodPost, "/"+ix.passages+"/_search", map[string]any{
		"size": k, "_source": []string{"node"}, "track_total_hits": false,
		"query":       map[string]any{"bool": map[string]any{"filter": in, "should": should, "minimum_should_match": 1}},
		"post_filter": map[string]any{"bool": map[string]any{"filter": post}},
		"collapse":    map[string]any{"field": "node"},
		"sort":        []any{map[string]any{"_score": "desc"}, map[string]any{"node": "asc"}},
		"aggs": map[string]any{"all": map[string]any{"global": map[string]any{}, "aggs": map[string]any{
			"scope": map[string]any{"filter": map[string]any{"bool": map[string]any{"filter": in}}, "aggs": counts},
		}}},
	}, &out)
	if err != nil {
		return nil, err
	}
	return out.hits(words)
}

// answer is what Search reads of OpenSearch's.
type answer struct {
	Hits struct {
		Hits []struct {
			ID      string   `json:"_id"`
			Score   float64  `json:"_score"`
			Matched []string `json:"matched_queries"`
			Source  struct {
				Node memory.SHA `json:"node"`
			} `json:"_source"`
		} `json:"hits"`
	} `json:"hits"`
	Aggregations struct {
		All struct {
			Scope map[string]json.RawMessage `json:"scope"`
		} `json:"all"`
	} `json:"aggregations"`
}

func (a *answer) hits(words []queryWord) ([]index.Hit, error) {
	var total float64
	if err := json.Unmarshal(a.Aggregations.All.Scope["doc_count"], &total); err != nil {
		return nil, fault.New(fault.Unavailable, "the answer has no count: %v", err)
	}
	known := map[string]float64{}
	var subject, bound float64
	for i := range words {
		name := "w" + strconv.Itoa(i)
		var c struct {
			N float64 `json:"doc_count"`
		}
		if err := json.Unmarshal(a.Aggregations.All.Scope[name], &c); err != nil {
			return nil, fault.New(fault.Unavailable, "the answer has no count of %s: %v", name, err)
		}
		if idf := math.Log(1 + (total-c.N+0.5)/(c.N+0.5)); c.N > 0 || !words[i].stop {
			bound += idf * (k1 + 1)
			if words[i].code != "" && c.N > 0 {
				bound += codeBoost * idf * scale
			}
		}
		if !words[i].stop {
			known[name] = math.Log(1 + (index.ShareBackground+total-c.N+0.5)/(c.N+0.5))
			subject += known[name]
		}
	}
	out := make([]index.Hit, 0, len(a.Hits.Hits))
	for _, h := range a.Hits.Hits {
		hit := index.Hit{Passage: memory.SHA(h.ID), Node: h.Source.Node, Score: h.Score * scale}
		for _, name := range h.Matched {
			hit.IDFShare += known[name]
		}
		if subject > 0 {
			hit.IDFShare /= subject
		}
		bound = max(bound, hit.Score)
		out = append(out, hit)
	}
	for i := range out {
		out[i].Max = bound
	}
	return out, nil
}
