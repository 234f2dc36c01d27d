// Package scrub applies newer redaction rules to what a log holds already: it
// takes the secrets out that older rules let through, and states anew what
// stood around them, with no model and no policy call.
//
// Invariant: the chain of every stream stays valid and every span stays true.
// A text that holds a newly known secret is erased (its record keeps the hash),
// and its redacted form is appended, as a step of the same stream whose cause is
// the tombstone; a record that is not touched is not rewritten, and its place in
// a chunk is found through the tombstone's edits (memory.Scrubbed).
//
// The order of effects is: new blobs and source records; the pointer, which names
// the tombstone to come; the tombstone, which is the commit; then what it
// demands, each safe to repeat: the marks on the old source records, the new
// statements, the erasures from the last segment to the first, the vectors, the
// old blobs; "done" last. A scrub that died after its tombstone is finished by
// the next, under whatever rules; what one left that died before it is loose,
// and found as such.
//
//	admit line ──> source 1f0a… (erased: 8c11…) ──> tombstone 8c11… ──> source 77c2… (replaces 1f0a…)
//	step 12: evidence "… sk-live-…" (erased: 8c11…)  <──restates── step 31: evidence "… [REDACTED:…]"
//
// The package does not touch the inbox, whose objects are the uploader's own,
// nor names: ids, folders, tools and headings stand in records that cannot be
// erased; they are masked when they come in, and what newer rules would mask of
// them is reported. It rebuilds no index: whoever calls it asks for that.
package scrub
