// Package gru is the gated loop: chunk after chunk it keeps what answers a
// standing question and throws the rest away, on record (GRU-Mem, arXiv
// 2602.10560; DESIGN section 7).
//
//	U, M̂, E = φ(Q, C_t, M_{t-1})
//	M_t     = M̂ if U, else M_{t-1} byte for byte
//
// Everything here is pure: no clock, no store, no network, no randomness. A
// step takes a state and an input and gives the next state and the effects to
// perform; a model call is an effect and its reply an input. The effects'
// order is the caller's duty: append records before anything is sent.
//
// Invariants: the state is the fold of the stream's records alone, so that
// going on from Fold gives the same bytes as never having stopped; every chunk
// that was looked at has a gate record; a reply that is cut off or unreadable
// changes nothing and is recorded as such; a candidate over the budget is
// refused, never cut; a closed gate leaves the memory as it was, byte for byte.
//
// Two forms of policy: a Policy decides at once (the built-in one is
// extractpolicy), a Model by one call for all four tags, or by a small gate
// model and a rewrite model that is asked only where the gate is open. The
// contract of a reply (ParseReply), with text in place of the dots:
//
//	<think>…</think>
//	<check>yes</check>
//	<update>…</update>
//	<next>continue</next>
//
// The package knows no transcript format and calls no model; functions/gate
// performs the effects.
package gru
