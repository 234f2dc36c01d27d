package main

import (
	"context"
	"os"
	"path/filepath"
)

// Visible is visible, for tests.
var Visible = visible

// Typed and Shown are typed and shown, for tests.
var (
	Typed = typed
	Shown = shown
)

// ReadGitLog reads what git log prints in gitFormat.
var ReadGitLog = readGitLog

// ExportGit gives the lines that `mem learn --git` uploads of a repository or a
// bundle; tmp is an empty folder.
func ExportGit(ctx context.Context, repo, tmp string) ([]byte, error) {
	st, err := os.Stat(repo)
	if err != nil {
		return nil, err
	}
	g := gitRepo{dir: repo, revs: "HEAD"}
	if !st.IsDir() {
		if g, err = unbundle(ctx, repo, filepath.Join(tmp, "repo.git")); err != nil {
			return nil, err
		}
	}
	file := filepath.Join(tmp, "log.jsonl")
	if _, err := g.export(ctx, file, "", func() {}); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}
