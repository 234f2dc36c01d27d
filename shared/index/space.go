package index

import "context"

// SpaceDropper is a Graph that can give up one embedding space: its vectors and
// positions, and nothing else. What is searched in it afterwards finds nothing; filled
// again, it begins at the first batch. A space that does not stand is no error.
type SpaceDropper interface {
	DropSpace(ctx context.Context, tenant, space string) error
}
