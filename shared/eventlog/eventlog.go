// Package eventlog is Mneme's log: append-only JSONL streams over an object
// store, with the blobs, source records, vectors, receipts, leases and pointers
// that stand beside them. It is the authority from which everything else is
// rebuilt.
//
// Invariants:
//
//   - A stream is a chain of segments 1, 2, 3, … without a gap. A segment is one
//     create-only write: that write is both the commit and the fence. A writer
//     that lost reads the stream again and starts from the new state; nothing
//     else keeps two writers apart, and nothing else is needed.
//   - A segment's footer is a sha256 over its header and the sealed form of its
//     records, and each header holds the footer of the segment before. In the
//     sealed form texts are replaced by their sha256, so that forgetting a text
//     moves no hash.
//   - What stands in the log is never changed or deleted, but for Erase, which
//     takes texts out.
//   - What this program does not know (record types, fields) stays byte for
//     byte; what a newer program wrote under a newer version is refused with the
//     cure named. Every object is verified where it is read.
//
// A segment, shortened:
//
//	{"v":1,"type":"header","level":"-","tenant":"local","project":"shop","stream":"decisions@0a1b2c3d","seq":2,"prev":"…","run":"…","writer":"w1","count":3}
//	{"v":1,"type":"gate","level":"L1","t":4,"T":7,"chunk":"…","update":true,"exit":false,…}
//	{"v":1,"type":"evidence","level":"L0","t":4,"text":"We keep blobs as zstd.","span":{…},…}
//	{"v":1,"type":"memory","level":"L1","t":4,"text":"…","parents":["…"],…}
//	{"v":1,"type":"footer","level":"-","sha256":"…"}
//
// docs/FORMATS.md has every key and field and a golden vector for each hash;
// testdata/v1 holds frozen samples of version 1 that must read for ever.
//
// The usual loop of a writer:
//
//	head, err := log.Head(ctx, project, stream)      // or the head of a fold
//	…decide, from the records up to head…
//	next, err := log.Append(ctx, project, stream, head, recs)
//	// fault.Conflict: another was first; read from head on and decide again
//	// fault.Unavailable: append the same records again, or start over
//
// The package does not decide anything, reads no transcript, builds no index,
// and does not redact: what it is given must be redacted already.
package eventlog
