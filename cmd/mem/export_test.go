package main

// Visible is visible, for tests.
var Visible = visible

// GitCommit and GitFile are a line of a git log.
type (
	GitCommit = gitCommit
	GitFile   = gitFile
)

// ReadGitLog reads what git log prints in gitFormat.
var ReadGitLog = readGitLog
