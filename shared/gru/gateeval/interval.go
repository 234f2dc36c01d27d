package gateeval

import "math"

// Interval is the exact two-sided 95 % binomial interval of k hits in n
// (Clopper and Pearson 1934): the shares at which k or more, and k or fewer,
// hits have a chance of 2.5 %. Both ends are in [0,1]; n of 0 gives [0,1], as
// nothing is known.
func Interval(k, n int) (low, high float64) {
	low, high = 0, 1
	if n <= 0 {
		return low, high
	}
	const tail = 0.025
	if k > 0 { // P(X >= k) rises with p
		low = bisect(func(p float64) bool { return 1-cdf(k-1, n, p) < tail })
	}
	if k < n { // P(X <= k) falls with p
		high = bisect(func(p float64) bool { return cdf(k, n, p) >= tail })
	}
	return low, high
}

// bisect finds where below turns from true to false on [0,1]; 60 halvings
// leave less than a float64's precision.
func bisect(below func(p float64) bool) float64 {
	lo, hi := 0.0, 1.0
	for range 60 {
		mid := (lo + hi) / 2
		if below(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// cdf is P(X <= k) of the binomial distribution, summed through logarithms so
// that large n neither overflow nor vanish.
func cdf(k, n int, p float64) float64 {
	switch {
	case p <= 0:
		return 1
	case p >= 1:
		if k >= n {
			return 1
		}
		return 0
	}
	lgN, _ := math.Lgamma(float64(n + 1))
	var sum float64
	for i := 0; i <= k; i++ {
		lgI, _ := math.Lgamma(float64(i + 1))
		lgR, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(lgN - lgI - lgR + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(1, sum)
}
