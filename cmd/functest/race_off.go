//go:build !race

package functest

// Race says that the race detector slows this build, ten to thirty times.
const Race = false
