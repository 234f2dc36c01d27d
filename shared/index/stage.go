package index

import (
	"context"
	"iter"

	"github.com/mneme-ai/mneme/shared/memory"
)

// This file holds what a rebuild asks of an index, each an optional part of a driver.

// Staged is an index of one tenant that is built beside the one that serves. It is a
// whole index: filled by Apply, asked by all that its port has. No search of the serving
// index sees it before Switch.
//
// Close leaves it where it stands, so that the next Stage goes on with it. After Switch
// and Drop it is closed.
type Staged interface {
	// Switch puts it in the place of the tenant's rows in the serving index: whoever
	// searches sees all of the old or all of the new, and a process that is killed
	// meanwhile leaves one of both. The old rows are removed with what held them (tables,
	// indices, files). Rows of other tenants stay.
	Switch(ctx context.Context) error
	// Drop removes it.
	Drop(ctx context.Context) error
}

// StagedGraph is a Graph that is built beside another.
type StagedGraph interface {
	Graph
	Staged
}

// StagedLexical is a Lexical that is built beside another.
type StagedLexical interface {
	Lexical
	Staged
}

// GraphStager is a Graph beside which another can be built.
type GraphStager interface {
	// Stage opens the tenant's staged graph, with all that a former process put there;
	// one that cannot be read is begun anew. There is one a tenant: who asks for it sees
	// to it that nobody else does.
	Stage(ctx context.Context, tenant string) (StagedGraph, error)
}

// LexicalStager is a Lexical beside which another can be built; see GraphStager.
type LexicalStager interface {
	Stage(ctx context.Context, tenant string) (StagedLexical, error)
}

// Named is an index that people know by a name: sqlite, pg, bleve, os.
type Named interface{ Name() string }

// Row is a node's line of the index hash and where it stands.
type Row struct {
	Project string
	Stream  string
	Level   memory.Level
	ID      memory.SHA
	Hash    memory.SHA // RowHash
}

// Rower is a Graph that gives the lines of its hash, in ascending order of ID.
type Rower interface {
	Rows(ctx context.Context, tenant string) iter.Seq2[Row, error]
}

// Searchable is a Graph that knows how many passages a Lexical of the same batches
// holds: the raw ones, and those with a vector in the space, as both leave out a memory
// that another one has replaced.
type Searchable interface {
	Searchable(ctx context.Context, tenant, space string) (int64, error)
}
