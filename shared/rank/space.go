package rank

// Defaults are the options of the static table's space.
func Defaults() Options {
	return Options{DenseWeight: 0.4, LexicalWeight: 0.6, FloorCosine: 0.5, FloorIDF: 0.3}
}
