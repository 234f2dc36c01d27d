package sqliteindex

import "context"

// Rescore makes a space rescore n rows, so that a small one has a first pass.
func (ix *Index) Rescore(ctx context.Context, tenant, space string, n int) {
	d, err := ix.load(ctx, tenant, space)
	if err != nil || d == nil {
		panic("no such space")
	}
	d.rescore = n
}
