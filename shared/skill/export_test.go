package skill

// Clean is clean, for tests that need texts as a Doc may hold them.
func Clean(s string) string { return clean(s) }
