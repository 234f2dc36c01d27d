package extractpolicy

import "github.com/mneme-ai/mneme/shared/gru/extractive"

// NewExhaustive is New, but each pick is compared with everything that was ever
// kept: what the index must agree with.
func NewExhaustive(o extractive.Options) *Policy {
	p := New(o)
	p.everything = true
	return p
}
