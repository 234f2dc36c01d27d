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
	"unicode/utf8"

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

// queryWord is one word of a question, or one part of a name in it.
type queryWord struct {
	text string
	code string // where it has the form of one
	stop bool   // it says nothing about the subject
	// whole is the name that this is a part of, an index into query.wholes; -1 without.
	whole int
}

// query is a question: its words, and the names whose parts some of them are.
type query struct {
	words  []queryWord
	wholes []string
	bare   bool // it has function words alone
}

var functionWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range index.FunctionWords() {
		m[w] = true
	}
	return m
}()

func parse(text string) *query {
	q := &query{}
	seen := map[string]bool{}
	add := func(w queryWord) {
		lower := strings.ToLower(w.text)
		if w.text == "" || seen[lower] || len(q.words) == maxWords {
			return
		}
		seen[lower] = true
		w.stop = functionWords[lower]
		q.words = append(q.words, w)
	}
	for w := range strings.FieldsFuncSeq(text, unicode.IsSpace) {
		if len(q.words) == maxWords {
			break
		}
		w = strings.Trim(w, ".,;:?!\"'()[]{}<>`“”’‘…")
		if code := codesOf(w); len(code) > 0 {
			add(queryWord{text: w, code: code[len(code)-1], whole: -1})
			continue
		}
		parts := partsOf(w)
		if len(parts) < 2 {
			add(queryWord{text: w, whole: -1})
			continue
		}
		for _, p := range parts {
			add(queryWord{text: p, whole: len(q.wholes)})
		}
		q.wholes = append(q.wholes, w)
	}
	q.bare = !slices.ContainsFunc(q.words, func(w queryWord) bool { return !w.stop })
	return q
}

// partsOf takes a path or an identifier apart as the index's analyser does: at what is
// neither letter nor digit, and before a capital. The server would look for the parts as a
// phrase, and find nothing of a name that is written another way.
func partsOf(w string) (out []string) {
	for _, piece := range strings.FieldsFunc(w, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' && r != '’' }) {
		from := 0
		var prev rune
		for i, r := range piece {
			next, _ := utf8.DecodeRuneInString(piece[i+utf8.RuneLen(r):])
			if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(prev) || unicode.IsUpper(prev) && unicode.IsLower(next)) {
				out = append(out, piece[from:i])
				from = i
			}
			prev = r
		}
		out = append(out, piece[from:])
	}
	return out
}

// exact matches the word as it is written or by its stem, in the text or as a part of a name.
func (q *query) exact(w *queryWord) map[string]any {
	if w.stop && !q.bare {
		return match("content.std", w.text, contentBoost) // the most common are no words to it
	}
	return either(match("content", w.text, contentBoost), match("content.std", w.text, contentBoost))
}

// wholly matches a name or a path as one, or any of the names in it.
func wholly(name string) map[string]any {
	return either(map[string]any{"term": map[string]any{"content": map[string]any{"value": strings.ToLower(name), "boost": contentBoost}}}, match("content.std", name, contentBoost))
}

// clauses are the parts of the query that an answer tells about, by name: w0 the first word, n0
// the first whole name.
func (q *query) clauses() map[string]any {
	out := map[string]any{}
	for i := range q.words {
		out["w"+strconv.Itoa(i)] = q.exact(&q.words[i])
	}
	for i, whole := range q.wholes {
		out["n"+strconv.Itoa(i)] = wholly(whole)
	}
	return out
}

// match finds any of the terms that the field's analyser makes of the text.
func match(field, text string, boost float64) map[string]any {
	return map[string]any{"match": map[string]any{field: map[string]any{"query": text, "boost": boost}}}
}

// either scores by the better of its queries.
func either(queries ...any) map[string]any {
	return map[string]any{"dis_max": map[string]any{"queries": queries}}
}

func named(query map[string]any, name string) map[string]any {
	return map[string]any{"bool": map[string]any{"must": []any{query}, "_name": name}}
}

// Search implements index.Lexical. One request brings the hits and, over the scope that
// is seen, how many passages hold each word.
func (ix *Index) Search(ctx context.Context, text string, f index.Filter, k int) (hits []index.Hit, err error) {
	defer fault.Wrap(&err, "osindex.Search(%s)", f.Tenant)
	q := parse(text)
	if k <= 0 || f.Tenant == "" || len(f.Projects) == 0 || len(q.words) == 0 {
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
	from, to := f.Range()
	switch {
	case len(f.Sources) > 0:
		var prefixes []any
		for _, s := range f.Sources {
			prefixes = append(prefixes, map[string]any{"prefix": map[string]any{"said.source": map[string]any{"value": s}}})
		}
		post = append(post, map[string]any{"nested": map[string]any{"path": "said", "query": map[string]any{"bool": map[string]any{
			"filter": timed("said.at", from, to), "should": prefixes, "minimum_should_match": 1,
		}}}})
	case f.Timed():
		post = append(post, timed("at", from, to))
	}
	var should []any
	counts := map[string]any{}
	for name, clause := range q.clauses() {
		counts[name] = map[string]any{"filter": clause}
	}
	for i := range q.words {
		w := &q.words[i]
		exact := named(q.exact(w), "w"+strconv.Itoa(i))
		switch {
		case w.code != "":
			should = append(should, exact, map[string]any{"term": map[string]any{"codes": map[string]any{"value": w.code, "boost": codeBoost}}})
		case w.stop:
			should = append(should, exact)
		default:
			// Beside the word itself what is like it adds nothing.
			should = append(should, either(exact, map[string]any{"match": map[string]any{"content": map[string]any{
				"query": w.text, "fuzziness": "AUTO", "prefix_length": 1, "max_expansions": 50, "boost": fuzzyBoost,
			}}}))
		}
	}
	for i, whole := range q.wholes {
		should = append(should, named(wholly(whole), "n"+strconv.Itoa(i)))
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
	if err := ix.matched(ctx, q, &out); err != nil {
		return nil, err
	}
	return out.hits(q)
}

// matched finds which words each hit holds where the answer does not say so: document
// level security puts its own query around the caller's, and the names of the parts are
// lost on the way.
func (ix *Index) matched(ctx context.Context, q *query, a *answer) error {
	var ids []string
	at := map[memory.SHA]int{}
	for i, h := range a.Hits.Hits {
		if len(h.Matched) > 0 {
			return nil
		}
		ids, at[h.Source.Node] = append(ids, h.ID), i
	}
	if len(ids) == 0 || index.Bearer(ctx) == "" {
		return nil
	}
	aggs := map[string]any{}
	for name, clause := range q.clauses() {
		aggs[name] = map[string]any{"filter": clause, "aggs": map[string]any{
			"nodes": map[string]any{"terms": map[string]any{"field": "node", "size": len(ids)}},
		}}
	}
	var out struct {
		Aggregations map[string]struct {
			Nodes struct {
				Buckets []struct {
					Key memory.SHA `json:"key"`
				} `json:"buckets"`
			} `json:"nodes"`
		} `json:"aggregations"`
	}
	err := ix.call(ctx, http.MethodPost, "/"+ix.passages+"/_search", map[string]any{
		"size": 0, "query": map[string]any{"bool": map[string]any{"filter": map[string]any{"ids": map[string]any{"values": ids}}}}, "aggs": aggs,
	}, &out)
	if err != nil {
		return err
	}
	for name, word := range out.Aggregations {
		for _, b := range word.Nodes.Buckets {
			if i, ok := at[b.Key]; ok {
				a.Hits.Hits[i].Matched = append(a.Hits.Hits[i].Matched, name)
			}
		}
	}
	return nil
}

func timed(field string, from, to int64) map[string]any {
	return map[string]any{"range": map[string]any{field: map[string]any{"gte": from, "lt": to}}}
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

func (a *answer) hits(q *query) ([]index.Hit, error) {
	count := func(name string) (float64, error) {
		var c struct {
			N float64 `json:"doc_count"`
		}
		if err := json.Unmarshal(a.Aggregations.All.Scope[name], &c); err != nil {
			return 0, fault.New(fault.Unavailable, "the answer has no count of %s: %v", name, err)
		}
		return c.N, nil
	}
	var total float64
	if err := json.Unmarshal(a.Aggregations.All.Scope["doc_count"], &total); err != nil {
		return nil, fault.New(fault.Unavailable, "the answer has no count: %v", err)
	}
	known := make([]float64, len(q.words))
	var subject, bound float64
	for i := range q.words {
		w := &q.words[i]
		n, err := count("w" + strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		if idf := math.Log(1 + (total-n+0.5)/(n+0.5)); n > 0 || !w.stop {
			bound += idf * (k1 + 1)
			if w.code != "" && n > 0 {
				bound += codeBoost * idf * scale
			}
		}
		if !w.stop {
			known[i] = math.Log(1 + (index.ShareBackground+total-n+0.5)/(n+0.5))
			subject += known[i]
		}
	}
	for i := range q.wholes {
		n, err := count("n" + strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		if n > 0 {
			bound += math.Log(1+(total-n+0.5)/(n+0.5)) * (k1 + 1)
		}
	}
	out := make([]index.Hit, 0, len(a.Hits.Hits))
	for _, h := range a.Hits.Hits {
		hit := index.Hit{Passage: memory.SHA(h.ID), Node: h.Source.Node, Score: h.Score * scale}
		for i := range q.words {
			if slices.Contains(h.Matched, "w"+strconv.Itoa(i)) || q.words[i].whole >= 0 && slices.Contains(h.Matched, "n"+strconv.Itoa(q.words[i].whole)) {
				hit.IDFShare += known[i]
			}
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
