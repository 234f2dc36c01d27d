package pglookup_test

import (
	"context"
	"time"
)

// background outlives a test's own context: a clean-up runs after its end.
func background() (context.Context, func()) {
	return context.WithTimeout(context.Background(), 10*time.Second)
}
