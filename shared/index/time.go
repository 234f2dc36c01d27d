package index

import "time"

const (
	minNano = -1 << 63
	maxNano = 1<<63 - 1
)

// Nano is t as nanoseconds since 1970, cut off at the years 1678 and 2261 that
// an int64 reaches; a zero time is the least value, older than everything.
func Nano(t time.Time) int64 {
	switch y := t.Year(); {
	case y < 1679:
		return minNano
	case y > 2260:
		return maxNano - 1
	}
	return t.UnixNano()
}
