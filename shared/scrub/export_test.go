package scrub

// SetMaxEdits makes tombstones small.
func SetMaxEdits(n int) (undo func()) {
	old := maxEdits
	maxEdits = n
	return func() { maxEdits = old }
}
