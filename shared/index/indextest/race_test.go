//go:build race

package indextest_test

// raceEnabled says that the race detector slows this build about tenfold.
const raceEnabled = true
