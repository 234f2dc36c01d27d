// Package llm holds the ports to models that turn text into something else.
//
// Invariant: a vector never travels without the space it belongs to; vectors
// of two spaces are never compared.
//
// The package has no transport and no model of its own. shared/llm/static is
// the embedding table that ships with the program.
package llm

import (
	"context"
	"errors"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Embedder turns texts into vectors of one space.
//
// Contract: Embed answers one vector a text, in the order of the texts, each
// Space().Dims long and of Euclidean norm 1, or all zero where the text holds
// nothing that the model knows. A zero vector is near nothing, itself
// included, and must not win a search. The same text gives the same vector
// wherever it stands in a batch. An error means that no vector is to be used;
// a cancelled context gives the context's error. Implementations are safe for
// concurrent use.
type Embedder interface {
	Space() memory.Space
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// ErrWindow is in the chain of an error of a text that is longer than the model's
// window: a shorter one can succeed.
var ErrWindow = errors.New("the text is longer than the model's window")
