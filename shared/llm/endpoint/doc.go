// Package endpoint is what every adapter to a model server shares: the
// configuration of an endpoint, and an HTTP client that is safe to hand a key
// and a prompt.
//
// Invariants, each a test:
//
//   - The key goes to the configured scheme, host and port and nowhere else. A
//     redirect is an error and is not followed.
//   - No link-local address is dialled, also not one that a name resolves to:
//     cloud machines serve their credentials there.
//   - Nothing is read from the environment: no proxy, no OPENAI_*.
//   - At most InFlight calls run at a time; the wait for a place ends with the
//     context.
//   - An answer is read whole, up to MaxBodyBytes, and one that falls silent is
//     given up after Stall.
//   - No error holds the key, a prompt or a reply: of what a server says only
//     its status, its short error code and the numbers of a window are repeated.
//   - A request is sent again only where the server cannot have answered it
//     (refused, reset before the first byte) or asks for it (408, 429, 500, 502,
//     503, 504), byte for byte the same.
//
// A request as it leaves, with Auth "bearer":
//
//	POST /v1/chat/completions HTTP/1.1
//	Host: openrouter.ai
//	Accept: application/json
//	Authorization: Bearer …
//	Content-Type: application/json
//	User-Agent: mneme
//
// and no other header, whatever the library above would add.
//
// Errors: 401 and 403 are fault.Denied; 404 with a word about a model is
// NotFound, without it Invalid; 402, 429 and a full queue are Exhausted with
// RetryAfter; 408, 5xx, silence and a broken connection are Unavailable; every
// other answer is Invalid. What a status hides is told from the text: a prompt
// over the window and a vector that is not a number come as 400 or 500 and are
// Invalid, a model that is not there is NotFound under any status.
//
// The package does not know the form of a request or a reply, and does not go
// through a proxy.
package endpoint
