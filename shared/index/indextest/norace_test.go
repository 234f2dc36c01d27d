//go:build !race

package indextest_test

const raceEnabled = false
