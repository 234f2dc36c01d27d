package bleveindex

import "testing"

// Terms is the analysis of a text: per word its terms, its code last.
func Terms(text string) (out [][]string) {
	newStemmer().words(text, func(w *word) {
		var one []string
		one = append(one, w.wholes...)
		one = append(one, w.parts...)
		if w.code != "" {
			one = append(one, "="+w.code)
		}
		out = append(out, one)
	})
	return out
}

// MaxTerm is the longest term, in bytes.
const MaxTerm = maxWhole

// Terms are the words in the segments of a project's memory, those of deleted passages
// included.
func (ix *Index) Terms(t *testing.T, tenant, project string) (out []string) {
	t.Helper()
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	s, err := ix.shard(shardKey{tenant, project, false}, false)
	if err != nil || s == nil {
		t.Fatal(err)
	}
	snap, err := s.snapshot()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	dict, err := snap.FieldDict(fieldText)
	if err != nil {
		t.Fatal(err)
	}
	defer dict.Close()
	for {
		e, err := dict.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return out
		}
		out = append(out, e.Term)
	}
}
