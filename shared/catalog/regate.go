package catalog

import (
	"context"

	"github.com/mneme-ai/mneme/shared/fault"
)

// regate is the request to ask pending steps of a stream again. It is a bound and
// not a list: it is done when no step up to it is pending, whoever sees to that.
type regate struct {
	UpTo int `json:"up_to"`
}

func regatePointer(project, stream string) string { return project + "/regate/" + stream }

// Regate is the last step of a stream that was asked to be decided again where it
// is pending; 0 where nobody asked.
func (c *Catalog) Regate(ctx context.Context, project, stream string) (int, error) {
	var r regate
	_, err := c.log.Pointer(ctx, regatePointer(project, stream), &r)
	return r.UpTo, err
}

// AskRegate asks that the pending steps of a stream up to t are decided again.
func (c *Catalog) AskRegate(ctx context.Context, project, stream string, t int) (err error) {
	defer fault.Wrap(&err, "ask for pending steps of %s", stream)
	for range 5 { // each loss means that another asked too
		var r regate
		etag, err := c.log.Pointer(ctx, regatePointer(project, stream), &r)
		if err != nil || r.UpTo >= t {
			return err
		}
		if err := c.log.SetPointer(ctx, regatePointer(project, stream), regate{t}, etag); !fault.Is(err, fault.Conflict) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the request for %s keeps changing", stream)
}
