package bleveindex

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
