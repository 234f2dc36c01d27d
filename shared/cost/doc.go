// Package cost says what decisions cost: before, as an estimate with a range; while
// they are made, against a budget for each project and day; and after, as figures
// over the log.
//
// Invariant: a call is reserved at the most that it can cost before it is made, and
// the reservation is in the store first, so that no crash, restart or second process
// spends more than the budget. What a process reserved and did not settle counts as
// spent. Days are UTC.
//
//	ops/pointer/<tenant>/<project>/spend/2026-11-30   {"usd":0.0123,"tokens":48210,"calls":9}
//
// The package makes no call, knows no price and decides nothing.
package cost
