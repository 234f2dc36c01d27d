package serve

import (
	"context"

	ce "github.com/cloudevents/sdk-go/v2/event"
)

// Publish posts events that no event caused: what an HTTP route of the
// function found to do. It returns at the first that was not accepted.
func (s *Service) Publish(ctx context.Context, es ...ce.Event) error {
	for _, e := range es {
		e = e.Clone()
		for k, v := range s.cfg.Extensions {
			e.SetExtension(k, v)
		}
		if err := s.post(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
