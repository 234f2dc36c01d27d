// Package serve is what stands around a function: the HTTP front that receives
// an event and answers the broker, the in-process broker of `mem up`, the
// bridge from object-store notifications to events, and the guards of an HTTP
// front that people reach.
//
// Invariant: an event is answered 204 only when its handler has ended without
// an error and every event it returned stands at the broker; anything less is a
// status by which the broker delivers again or writes a dead letter. So a crash
// at any moment repeats work and never loses it, which the handlers allow, as
// each is idempotent.
//
//	broker ── POST / (CloudEvent) ──> Service ──> Function.Handle ──> []Event
//	  ^                                  │ 204 | 400 422 (dead letter) | 429 500 503 (again)
//	  └────── POST K_SINK, one each ─────┘
//
// The status of an error is the table of shared/fault, and its body is
// {"code","message","hint","where"}, which the broker keeps in the dead letter.
// A function never answers with an event: a broker behind Knative turns a reply
// that is not one into a 502, and one that is one can loop 255 times.
//
// A Service keeps the contract of knative.dev/func-go v0.22.0 (the hooks Start,
// Stop, Ready and Alive, the paths /health/readiness and /health/liveness, the
// configuration map) on func-go's own server value. It replaces the rest,
// because of what was measured there: the CloudEvents receiver strands requests
// for ever after clients cancel (cloudevents/sdk-go #1224, #1332), a write
// timeout of 30 s cuts every longer handler after its work is done, traffic is
// served before Start has returned, there is no body limit, and with PORT set
// the server listens on loopback only.
//
// The Broker gives the delivery rules of Knative Eventing v0.50: again on no
// response, 5xx, 404, 408, 409 and 429, a dead letter at once on any other 4xx
// or 3xx, 502 for a 2xx with a body. It differs where Knative's default hurts:
// waits have jitter and a cap, Retry-After is honoured, and an event that still
// waits takes in an identical one.
//
// The package stores nothing; dead letters go to a callback. It reads no
// environment: cmd/internal/wire passes what it needs.
package serve
