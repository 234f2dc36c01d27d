// Package transcript reads transcripts and notes of agents as a stream of
// turns, each with the exact bytes that its text was decoded from.
//
// Formats are told by content (formats.md section 5): Claude Code, pi v1 to
// v3, Codex rollouts, Gemini CLI, Cursor, agent loops, OpenAI messages,
// ShareGPT, TRL, ChatGPT, Claude.ai and OpenCode exports, Cline, Aider, flat lines,
// Markdown and plain text are read; others are named and not guessed at. gzip
// and zstd are undone first, with a bound on expansion.
//
// Invariants:
//   - A bad line never ends the reading. Every line stands in a count.
//   - Lines end at LF bytes only, and may be of any length up to a cap; longer
//     ones are skipped and counted. A line may hold several JSON values. What
//     encoding/json accepts is accepted, and nothing else.
//   - A piece's bytes are the object's bytes [Start,End), and its Encoding
//     gives exactly those bytes from its text.
//   - Turn ids follow from what stands before them in the object, so a longer
//     snapshot of a session gives the same ids, and a resumed reading too.
//     One turn may be taken back: a prompt typed ahead that left the queue, when
//     a later record of its own holds the same text.
//   - Memory does not grow with the object beyond hashes of ids: some tens of
//     megabytes for 2 GB.
//
// A Claude Code line such as
//
//	{"type":"user","uuid":"u1","sessionId":"s1","cwd":"/w","message":{"role":"user","content":"Use pgx v5."},…}
//
// gives a turn {ID "s1/u1", Role user, Kind text, Trust user} with the piece
// "Use pgx v5.", whose Start is the offset of the U.
//
// What a harness put into a text (system reminders, recalled memory of Mneme
// between MarkerOpen and MarkerClose) is cut out of it; what is not evidence at
// all (skill bodies, compaction summaries) is a turn of role injected or
// summary. Thinking, signatures, images, progress and the second copy of tool
// output are dropped and counted.
//
// The package does not redact, does not decide what is worth remembering and
// resolves no project: it hands on the cwd of each record.
package transcript
