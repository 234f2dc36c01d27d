package functest

// Stride is the step of a loop that breaks a run at each of its calls in turn:
// 1, and under the race detector n. What such a loop shows, that every place is
// safe to break off at, the plain run shows at each; races show in a few.
func Stride(n int) int {
	if Race {
		return n
	}
	return 1
}
