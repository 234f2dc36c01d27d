// Package chunk turns turns into the chunks that the gate reads, by policy c1
// (DESIGN section 6).
//
// What people and the assistant wrote, steering and feedback stand whole. A
// tool call is its name and target. Of a tool result stand its first and last
// 20 lines, at most 400 tokens with the cut marked; an error likewise.
// Injected text, summaries and system records are left out and counted.
// Dialogue is cut at 5,000 tokens between messages; one longer message is
// split at lines, and its chunks say so. A note is one chunk; over 2,000
// characters it is split at paragraphs, outside fences and tables.
//
// Layout of a chunk's text: for each turn a header line, the turn's redacted
// text, and a blank line between turns:
//
//	[user 2026-01-13T00:00:39Z]
//	Use pgx v5, never lib/pq.
//
//	[assistant 2026-01-13T00:00:42Z]
//	Understood.
//
//	[tool_call Bash 2026-01-13T00:00:43Z]
//	go test ./...
//
//	[tool_result Bash error 2026-01-13T00:00:50Z]
//	FAIL shared/store
//	[... 212 lines, 9120 characters left out ...]
//	exit status 1
//
// The header holds the role (or the kind of a tool's turn, with its name), then
// feedback, steering, command, error, abandoned, recalled, the part of a split
// message, a note's heading path, and the time to the second in UTC where the
// record itself or its session has one. It is no part of the turn's
// [Start,End) and can not be cited.
//
// Invariants:
//   - Redaction runs over the whole turn before anything is cut, so a secret
//     across a cut is still caught.
//   - Each ChunkPiece gives the source bytes of its text exactly. Lines that
//     hold a redaction are sealed by an HMAC of their bytes; a seal is kept only
//     when redacting its decoded bytes gives the chunk text again, else it is
//     widened, and at last those lines are not citable.
//   - The same turns and options give the same chunks byte for byte. Neither
//     the object's name nor its modification time is in a chunk's text.
package chunk
