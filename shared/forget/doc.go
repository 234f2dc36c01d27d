// Package forget takes out of a log what a person wants gone: the texts of a source and
// of all that descends from it. What is left is folded again over the statements that
// remain, and a receipt proves that the words are found nowhere any more.
//
// Invariant: the chain of every stream stays valid; a record that was forgotten is its
// sealed form with `erased` and `forgotten`, which every fold passes over, so that the
// state of a stream is that of a stream in which it was never made. A memory that rested
// on it is forgotten too, and the memory of what remains is stated as a new step of the
// stream whose cause is the tombstone. The built-in policy's memory follows from the
// statements alone; of a model's, which may say in its own words what it read, all is
// forgotten from the first step that read the source, and the memory before that step is
// stated again with the statements that others gave since. No model is called.
//
// The order of effects: the source records without the text; the pointer, which names
// the tombstone to come; the tombstone, which is the commit; then what it demands, each
// safe to repeat: stubs in the place of the old source records, the new steps, the
// erasures from the last segment to the first, vectors and folds, promoted skills, dead
// letters, blobs, receipts, uploads; "done"; then the indexes, exports and pages; the
// receipt, and "proved" last. What died in between is finished by Finish, which the
// sweep calls.
//
//	admit line ──> source 1f0a… (stub: 8c11…) ──> tombstone 8c11… ──> source 77c2… (no text)
//	step 12: evidence (forgotten: 8c11…)   step 13: memory (forgotten: 8c11…)
//	step 31: memory, cause tombstone 8c11…: what stands of the rest
//
// A tombstone bars the bytes of whole objects and turns, never words: a person may say
// the same again. What is barred is known again by what learn knows duplicates by.
//
// The package does not touch what people wrote themselves: notes and questions that hold
// such words are named. It decides nothing about what is asked later, and keeps no word
// of what it forgets: words are looked for while they are in memory, and the receipt has
// counts.
package forget
