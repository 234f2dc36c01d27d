package catalog

import (
	"context"
	"encoding/json"

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
	if refused = r.Reason != ""; refused {
		c.adhoc.Delete(c.adhocKey(project, stream)) // another process may ask again with another budget
	}
	return r, refused, err
}

// Refuse keeps why the stream's models cannot decide it.
func (c *Catalog) Refuse(ctx context.Context, project, stream string, r Refusal) (err error) {
	defer fault.Wrap(&err, "refuse %s", stream)
	_, err = c.setRefused(ctx, project, stream, r)
	c.adhoc.Delete(c.adhocKey(project, stream))
	return err
}

// Reopen lets a refused stream be tried again; was says that it was refused. The budget
// of a is the stream's from now on where nothing has been decided with another.
func (c *Catalog) Reopen(ctx context.Context, project string, a Adhoc) (was bool, err error) {
	defer fault.Wrap(&err, "ask %s again", a.Stream)
	if _, refused, err := c.Refused(ctx, project, a.Stream); err != nil || !refused {
		return false, err
	}
	if err := c.rebudget(ctx, project, a); err != nil {
		return false, err
	}
	return c.setRefused(ctx, project, a.Stream, Refusal{})
}

// rebudget puts a's budget in the place of the first one. It comes before the refusal
// is cleared, so that no run begins with the old one.
func (c *Catalog) rebudget(ctx context.Context, project string, a Adhoc) error {
	head, err := c.log.Head(ctx, project, a.Stream)
	if err != nil || head.Seq > 0 {
		return err
	}
	key := c.adhocKey(project, a.Stream)
	b, info, err := c.bucket.ReadAll(ctx, key, maxAdhoc)
	if err != nil {
		return err
	}
	var old Adhoc
	if err := json.Unmarshal(b, &old); err != nil {
		return fault.At(fault.Corrupt, key, "", "%v", err)
	}
	if old.BudgetTokens == a.BudgetTokens {
		return nil
	}
	old.BudgetTokens = a.BudgetTokens
	if b, err = json.Marshal(old); err != nil {
		return err
	}
	_, err = c.bucket.Replace(ctx, key, b, info.ETag)
	c.adhoc.Delete(key)
	if fault.Is(err, fault.Conflict) { // another request came between
		return fault.As(fault.Unavailable, err)
	}
	return err
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
