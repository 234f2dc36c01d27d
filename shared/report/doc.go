// Package report folds the records of one question stream into what people ask of a
// run (brief P17, P18): how often the gate opened, how large the memory was at each
// step, what failed, what it cost, and, where labels say which chunks hold evidence,
// how right the gate was beside a gate that is always open and one that never is, and
// whether the exit gate opened early, exactly or late.
//
// Invariant: every figure follows from the log and the labels alone; the same records
// give the same report, and no reward is stored. A figure that is not defined (the
// precision of a gate that never opened) is absent and never a number.
//
// An answer is JSON, a stream each:
//
//	{"project":"shop","stream":"limits@1f2e3d4c","query_id":"limits","figures":{"steps":29,"open":8,…},
//	 "memory":{"budget_tokens":1024,"points":[{"t":1,"steps":1,"min":0,"max":0,"last":0,"open":0,"bad":0}]},
//	 "gates":[{"who":"gate","update_rate":0.28,"labelled":{"both":3,…},"precision":0.43,…},{"who":"always_yes",…},{"who":"always_no",…}],
//	 "labels":{"decided":29,"steps":29,"evidence":4,"by_kind":{"human":29}},"exits":{"early":0,"exact":1,"late":2,…}}
//
// WriteSVG draws the memory over the steps, WriteHTML the whole report as one page that
// loads nothing.
//
// The package reads no store, decides nothing and knows no price.
package report
