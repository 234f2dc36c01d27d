package compress

import "github.com/mneme-ai/mneme/shared/signature"

// sureRoot is the confidence from which on a signature's root line is evidence:
// below it the log does not tell.
const sureRoot = 0.2

// RootLine is Options.Evidence by the log's signature. It costs about as much time
// again as the rest; without it a log's failures are found by the forms in which
// programs announce them.
func RootLine(text string) []int {
	r, err := signature.Extract(signature.FromBytes([]byte(text)), signature.Options{})
	if err != nil || r.Confidence <= sureRoot || r.MatchedLine < 1 {
		return nil
	}
	return []int{r.MatchedLine - 1}
}
