package index

import "context"

// Purger is a Graph or Lexical whose files still hold what was deleted: in free pages,
// in segments that are not merged, in a journal.
type Purger interface {
	// Purge rewrites its files, so that of deleted rows nothing is left in them. It takes
	// time and room as the rows that stand do, and may keep writers waiting. What only an
	// administrator can rewrite (docs/FORGET.md) it leaves.
	Purge(ctx context.Context) error
}

// Holder is a Graph that can be looked through for texts.
type Holder interface {
	// Holding gives every text of a project's rows to holds, and counts the texts and
	// those of which it is true.
	Holding(ctx context.Context, tenant, project string, holds func(text string) bool) (searched, found int64, err error)
}
