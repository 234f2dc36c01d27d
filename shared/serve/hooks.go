package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// HookPath is where stores post: "/hooks/object/<token>".
const HookPath = "/hooks/object/"

// UnreadNotification is the type of the event inside a dead letter of Hooks;
// its data is what was posted, cut at MaxUnreadBytes. Nothing handles it.
const UnreadNotification event.Type = "dev.mneme.notification.unread.v1"

// MaxUnreadBytes is how much of a notification that cannot be read is kept.
const MaxUnreadBytes = 64 << 10

// HooksConfig is what Hooks needs.
type HooksConfig struct {
	Token   string                                      // of the path; empty refuses all
	Publish func(ctx context.Context, e ce.Event) error // Broker.Publish, or a post to K_SINK
	Dead    func(ctx context.Context, d Dead) error     // keeps what cannot be read
	Logger  *slog.Logger
}

// Hooks serves "POST /hooks/object/<token>": each object of a notification
// becomes object.created. What cannot be read is a dead letter and answered 2xx
// all the same: a store with a queue (MinIO with queue_dir) repeats the same
// notification every 3 s for ever on any other answer, and all later ones wait
// behind it. For the same reason 503 is answered only where repeating helps.
func Hooks(cfg HooksConfig) http.Handler {
	h := &hooks{cfg: cfg}
	h.cfg.Logger = orDiscard(cfg.Logger)
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+HookPath+"{token}", h.serve)
	return mux
}

type hooks struct{ cfg HooksConfig }

func (h *hooks) serve(w http.ResponseWriter, r *http.Request) {
	if !sameSecret(h.cfg.Token, r.PathValue("token")) {
		writeProblem(w, http.StatusForbidden, 0, Problem{Code: fault.Denied.String(), Message: "wrong hook token", Hint: "`mem token` prints the hook's address"})
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxEventBytes))
	tooLarge := false
	if err != nil {
		if _, tooLarge = errors.AsType[*http.MaxBytesError](err); !tooLarge {
			answerBroker(w, fault.New(fault.Unavailable, "notification was cut off"))
			return
		}
		err = fault.New(fault.Invalid, "notification over %d bytes", MaxEventBytes)
	}
	var objects []event.Object
	if !tooLarge {
		objects, err = ParseNotification(body)
	}
	if err != nil {
		h.cfg.Logger.WarnContext(r.Context(), "notification cannot be read", KeyError, err.Error())
		if err := h.bury(r.Context(), body, err); err != nil {
			answerBroker(w, &fault.Error{Kind: fault.Unavailable, RetryAfter: fault.RetryAfterOf(err), Err: err})
			return
		}
	}
	for _, o := range objects {
		if err := h.cfg.Publish(r.Context(), ObjectEvent(o)); err != nil {
			h.cfg.Logger.WarnContext(r.Context(), "notification not passed on", KeyKind, fault.KindOf(err).String(), KeyError, err.Error())
			answerBroker(w, &fault.Error{Kind: fault.Unavailable, RetryAfter: fault.RetryAfterOf(err), Err: err})
			return
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// bury keeps a body that cannot be read, under an id from its content, so that
// a store that repeats it does not fill the dead letters.
func (h *hooks) bury(ctx context.Context, body []byte, why error) error {
	e := ce.New()
	e.SetType(string(UnreadNotification))
	e.SetSource("/mneme/hooks")
	e.SetID(string(memory.Sum(body)))
	if err := e.SetData("application/octet-stream", body[:min(len(body), MaxUnreadBytes)]); err != nil {
		return fault.New(fault.Internal, "dead letter: %v", err)
	}
	data := head([]byte(why.Error()))
	return h.cfg.Dead(ctx, Dead{Event: e, Subscriber: "hooks", Attempts: 1, Code: fault.BrokerStatus(why), Data: data, Time: time.Now().UTC()})
}

// sameSecret compares in constant time whatever the lengths; an empty want
// matches nothing.
func sameSecret(want, got string) bool {
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(got))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && want != ""
}
