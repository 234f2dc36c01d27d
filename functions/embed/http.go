package embed

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/space"
)

// Routes adds what operators call: the embedding spaces and the change of the model.
func (f *Function) Routes(mux *http.ServeMux) {
	if f.cfg.Spaces == nil {
		return
	}
	mux.HandleFunc("GET /memory/models/spaces", func(w http.ResponseWriter, r *http.Request) {
		f.answer(w, r, nil)
	})
	mux.HandleFunc("POST /memory/models/embed", f.move(f.set))
	mux.HandleFunc("POST /memory/models/switch", f.move(func(ctx context.Context, _ moveRequest) error {
		_, err := f.cfg.Spaces.Update(ctx, space.State.Release)
		return err
	}))
	mux.HandleFunc("POST /memory/models/rollback", f.move(func(ctx context.Context, _ moveRequest) error {
		_, err := f.cfg.Spaces.Update(ctx, func(s space.State) (space.State, error) { return s.Back(f.cfg.Now()) })
		return err
	}))
	mux.HandleFunc("POST /memory/models/drop", f.move(f.drop))
}

// moveRequest is the body of what moves a space.
type moveRequest struct {
	Name  string `json:"name"`  // of a model
	Hold  bool   `json:"hold"`  // fill it, and let it serve by switch alone
	Space string `json:"space"` // name or id
}

// move reads the body, does what it asks, sends the event that goes on with it, and
// answers what stands then.
func (f *Function) move(do func(ctx context.Context, b moveRequest) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var b moveRequest
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&b); err != nil {
			serve.WriteError(w, fault.At(fault.Invalid, "body", "send {name, hold} or {space}", "%v", err))
			return
		}
		err := do(r.Context(), b)
		if err == nil && f.cfg.Publish != nil {
			at := f.next("")
			if st, serr := f.cfg.Spaces.State(r.Context()); serr == nil && st.Filling != nil {
				at = f.next(st.Filling.ID)
			}
			err = f.cfg.Publish(r.Context(), at)
		}
		f.answer(w, r, err)
	}
}

func (f *Function) answer(w http.ResponseWriter, r *http.Request, err error) {
	var out Status
	if err == nil {
		out, err = f.Status(r.Context())
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

// set asks for a model. Its server is asked for a vector before anything changes.
func (f *Function) set(ctx context.Context, b moveRequest) error {
	if b.Name == "" {
		_, err := f.cfg.Spaces.Find(ctx, "")
		return fault.At(fault.Invalid, "name", fault.HintOf(err), "name an embedding model")
	}
	e, err := f.cfg.Spaces.Find(ctx, b.Name)
	if err != nil {
		return err
	}
	if err := f.cfg.Spaces.Check(ctx, e); err != nil {
		return err
	}
	_, err = f.cfg.Spaces.Update(ctx, func(s space.State) (space.State, error) { return s.Set(e, b.Hold, f.cfg.Now()) })
	return err
}

func (f *Function) drop(ctx context.Context, b moveRequest) error {
	if b.Space == "" {
		return fault.At(fault.Invalid, "space", "mem model names them", "name a space")
	}
	st, err := f.cfg.Spaces.State(ctx)
	if err != nil {
		return err
	}
	others, err := f.others(ctx, st)
	if err != nil {
		return err
	}
	_, err = f.cfg.Spaces.Update(ctx, func(s space.State) (space.State, error) {
		next, _, err := s.Drop(b.Space, others, f.cfg.Now())
		return next, err
	})
	return err
}
