package gru

// SectionRoom is the tokens of chunk text that one call can look at beside a memory of
// that size: a longer chunk is read in pieces. It is never less than what Check asks for.
func (cfg *Config) SectionRoom(memoryTokens int) int {
	return max(cfg.sectionRoom(memoryTokens), minSectionTokens)
}
