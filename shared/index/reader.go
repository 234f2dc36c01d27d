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

// Preparer is a Graph that keeps rows it read. Prepare reads those of ids, and who replaces
// them, which a question that is on its way will ask for; what cannot be read is read
// later. It returns at once where all are kept.
type Preparer interface {
	Prepare(ctx context.Context, tenant string, ids []memory.SHA)
}
