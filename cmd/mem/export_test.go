package main

// Visible is visible, for tests.
var Visible = visible

// ReadGitLog reads what git log prints in gitFormat.
var ReadGitLog = readGitLog
