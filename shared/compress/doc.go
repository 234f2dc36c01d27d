// Package compress makes what Mneme hands to a model or an agent shorter without
// losing what matters: JSON, logs, diffs and text, and code where it is asked
// for. It sits behind retrieval; what is indexed never passes through it.
//
// Invariants, each a property test over all inputs:
//
//   - It never fails. On any doubt the original comes back, byte for byte, with
//     the reason.
//   - The same input and options give the same bytes, and compressing a result
//     again changes nothing.
//   - A result has under 90 % of the input's tokens (Qwen2.5), else it is not
//     given. It is valid UTF-8 where the input was.
//   - What is left out is marked where it stood, with how much it was. Result.Omissions
//     says the same as data. A line of the input that looks like a mark is a line
//     like any other: it protects nothing and nothing is looked up for it.
//   - JSON stays JSON: every key path, key order and number literal. A diff still
//     applies, with `git apply --unidiff-zero`. A failing log keeps its evidence.
//
// The marks:
//
//	[... 41 lines omitted: 12-52]                      log, text: lines of the original, from 1
//	[... 7 lines like the one above omitted: 3-9]      log
//	[... 99 frames omitted]                            log: what a progress bar drew over
//	[... 1200 bytes omitted]                           log, JSON: in a long line, of an encoded string
//	{"_omitted":85,"_ccr":"3fa9…"}                     JSON: 85 elements of this array, or lines of this stream
//	@@ -7 +7 @@ func f() [... 6 omitted]                diff: context around this hunk
//	[... 1601 lines omitted, +800 -800: diff --git …]  diff: the body of a lock file
//	[... 3 sentences omitted: said above]              text
//	[... 12 words omitted: fillers]                    text: at its end
//	...  # [... 3 lines omitted: 15-17]                code
//
// With Options.Original a mark in JSON carries the first 24 hex digits of the
// original's sha256 (`_ccr`), and other kinds end in one line that does:
//
//	[... 4960 of 5003 lines omitted; original 3fa9c1…]
//
// The caller stores the original before it shows such a result (shared/originals
// does both). Secrets are masked by the caller before: what comes in is what may
// be stored. The text that a retrieval gave back is not compressed again: the
// caller sets Options.Exact.
//
// What has no name is taken for a log only where it is sure (kind.go, written.go):
// programs, documents, tables, settings and lists of places come back whole.
//
// Parts (parts.go) reads a log that is too large to be looked at as a whole; with
// Options.Line the marks count the lines of the whole.
//
// Align (align.go) orders Mneme's own prompt so that its beginning is the same
// bytes from turn to turn.
//
// The package reads no file, clock, environment or network, and stores nothing.
package compress
