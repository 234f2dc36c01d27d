package wire

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

// worker counts what reaches a function.
type worker struct{ events, requests int }

func (w *worker) Name() string { return "gate" }
func (w *worker) Handle(context.Context, ce.Event) ([]ce.Event, error) {
	w.events++
	return nil, nil
}
func (w *worker) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /memory/questions", func(http.ResponseWriter, *http.Request) { w.requests++ })
}

func TestProving(t *testing.T) {
	t.Parallel()
	for name, ignore := range map[string]bool{"honours conditions": false, "ignores conditions": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket := objstore.NewBucket(LogBucket, memstore.NewWith(memstore.Hooks{IgnoreConditions: ignore}))
			var refused error
			w := &worker{}
			f := newProving(w, bucket, func(err error) { refused = err })
			if err := f.Start(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			_, err := f.Handle(t.Context(), ce.New())
			mux := http.NewServeMux()
			f.Routes(mux)
			rec := httptest.NewRecorder()
			mux.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/memory/questions", nil))
			if ignore {
				if !fault.Is(err, fault.Unavailable) || refused == nil || w.events+w.requests > 0 || rec.Code != http.StatusServiceUnavailable {
					t.Errorf("a store without conditions: %v, process %v, %d events, %d requests, status %d", err, refused, w.events, w.requests, rec.Code)
				}
				return
			}
			if err != nil || refused != nil || w.events != 1 || w.requests != 1 {
				t.Errorf("%v, process %v, %d events, %d requests", err, refused, w.events, w.requests)
			}
		})
	}
}
