package catalog

import (
	"context"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Refusal is why the models that a request picked cannot decide. It stands until
// the request is made again: nobody else asked for them.
type Refusal struct {
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
}

func refusedPointer(project, stream string) string { return project + "/refused/" + stream }

// Refused says whether, and why, an ad-hoc stream's own models cannot decide it.
func (c *Catalog) Refused(ctx context.Context, project, stream string) (r Refusal, refused bool, err error) {
	_, err = c.log.Pointer(ctx, refusedPointer(project, stream), &r)
	return r, r.Reason != "", err
}

// Refuse keeps why the stream's models cannot decide it.
func (c *Catalog) Refuse(ctx context.Context, project, stream string, r Refusal) (err error) {
	defer fault.Wrap(&err, "refuse %s", stream)
	_, err = c.setRefused(ctx, project, stream, r)
	return err
}

// Reopen lets a refused stream be tried again; was says that it was refused.
func (c *Catalog) Reopen(ctx context.Context, project, stream string) (was bool, err error) {
	defer fault.Wrap(&err, "ask %s again", stream)
	return c.setRefused(ctx, project, stream, Refusal{})
}

func (c *Catalog) setRefused(ctx context.Context, project, stream string, r Refusal) (was bool, err error) {
	name := refusedPointer(project, stream)
	for range 5 { // each loss means that another request, or another run of it, came between
		var old Refusal
		etag, err := c.log.Pointer(ctx, name, &old)
		if err != nil || old == r {
			return old.Reason != "", err
		}
		if err := c.log.SetPointer(ctx, name, r, etag); !fault.Is(err, fault.Conflict) {
			return old.Reason != "", err
		}
	}
	return false, fault.New(fault.Unavailable, "the answer about %s keeps changing", stream)
}
