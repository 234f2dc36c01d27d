// Package signature recognises a failure by its log: it finds the root line,
// the one line that says what failed, and gives it a name that is the same on
// every machine, in every CI and in every run.
//
//	npm error code ERESOLVE                                  matched_line 1, rule npm.eresolve
//	npm error ERESOLVE unable to resolve dependency tree     raw: both lines, as the class needs both
//	…
//	npm error Could not resolve dependency:
//	npm error peer react@"^15 || ^16" from react-mask@5.4.3  detail: which conflict it is
//
//	normalised  npm error code eresolve unable to resolve dependency tree
//	sig_sha     sha256(tool \n normalised)                   the class
//	detail_sha  sha256(tool \n normalised \n detail)         the instance
//	set_sha     sha256(sorted normal forms of all errors of the rule)
//	sym_sha     sha256(tool \n symptom of normalised)        what people's words come to as well
//
// # How
//
// The log is decoded (UTF-8, UTF-16) and cut into lines; each loses its colours,
// time stamps and the marks of whatever ran the tool (GitHub, GitLab, Jenkins,
// Azure, Buildkite, CircleCI, docker build, docker compose, klog). Lines of JSON
// and reports (go test -json, cargo, terraform, eslint, jest, vitest, mocha, tsc,
// ruff, mypy, gcc, npm, JUnit XML) become the lines that people would have read. One pass notes which
// literals stand in which lines; only there are expressions tried.
//
// Rules stand in tables (rules_*.go), one set a tool, in order of priority. A rule
// has its pattern, what it never takes (cascade lines), a pick policy, as "the
// first error" is chance where work runs side by side, where its detail stands,
// examples and counter-examples. What a runner says of an exit is never a root;
// where a recipe, a script or a build step ended without a line that any rule
// knows, the root is what it said last (said.go). A tool's own rules come first, then those of
// every tool, as most tools run others (inner_tool names the one that fits), then
// late and generic rules, then the last line with a confidence of 0.1. A
// confidence of 0.2 or less says that the log does not tell.
//
// What changes from run to run is masked in a fixed order (mask.go); names,
// codes, exit codes and ports that stand alone are identity. Versions are masked
// in the class and kept in the detail.
//
// # What it keeps
//
// The same bytes have the same result: no clock, no network, no environment, no
// order of maps. Secrets are masked before anything is normalised, hashed or
// given out, so that no hash is one of a secret. Any input ends in bounded time
// and memory: of more than 5 MB the first and the last are looked at
// (truncated), of a line its first 8 KB. A log's instructions are text.
//
// Version names rules and masks and is not hashed in: changed rules re-project
// from the log.
//
// The package reads no file, keeps no index and holds no lesson; it does not
// decide what a failure's cure is.
package signature
