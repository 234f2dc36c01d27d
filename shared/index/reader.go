package index

import (
	"context"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Reader is a Lexical that can say what it found while the graph does not answer.
type Reader interface {
	// Read gives, for each passage that stands, what the index knows of its node: where it
	// stands, the passage as its text, and of evidence the statements with their spans. It
	// knows no edges. A passage that is unknown is absent.
	Read(ctx context.Context, tenant string, passages []memory.SHA) ([]Node, error)
}
