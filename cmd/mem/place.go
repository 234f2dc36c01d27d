package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"github.com/mneme-ai/mneme/shared/questions"
)

// repo is what the disk says of a folder: the root that all worktrees of one
// repository share, and its remote.
type repo struct {
	root   string
	remote string
}

// findRepo walks up from dir to a repository. It reads files only: git itself
// need not be there.
func findRepo(dir string) (repo, bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return repo{}, false
	}
	for {
		dot := filepath.Join(dir, ".git")
		st, err := os.Stat(dot)
		if err == nil {
			common := dot
			root := dir
			if !st.IsDir() { // a worktree: the file names its own folder under the common one
				if c, ok := commonDir(dir, dot); ok {
					common = c
					if filepath.Base(c) == ".git" {
						root = filepath.Dir(c)
					}
				}
			}
			return repo{root, remoteOf(filepath.Join(common, "config"))}, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return repo{}, false
		}
		dir = up
	}
}

// commonDir follows "gitdir: …" and the commondir file beside it.
func commonDir(dir, file string) (string, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	gitdir, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir:")
	if !ok {
		return "", false
	}
	gitdir = strings.TrimSpace(gitdir)
	if !filepath.IsAbs(gitdir) {
		gitdir = filepath.Join(dir, gitdir)
	}
	c, err := os.ReadFile(filepath.Join(gitdir, "commondir"))
	if err != nil {
		return gitdir, true // a submodule: its folder is its own
	}
	common := strings.TrimSpace(string(c))
	if !filepath.IsAbs(common) {
		common = filepath.Join(gitdir, common)
	}
	return filepath.Clean(common), true
}

// remoteOf reads the URL of origin, else of the first remote, from a git config.
func remoteOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	section, first := "", ""
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line := strings.TrimSpace(sc.Text())
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(key) != "url" || !strings.HasPrefix(section, `[remote "`) {
			continue
		}
		value = strings.TrimSpace(value)
		if section == `[remote "origin"]` {
			return value
		}
		if first == "" {
			first = value
		}
	}
	return first
}

// projectIn names the project of a folder of this disk, by the rule that the
// server uses for a record's cwd, but seeing repository, worktree and remote.
// mapped are the server's mappings.
func projectIn(mapped questions.Projects, dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if r, ok := findRepo(dir); ok {
		name, _ := mapped.ResolveIn(dir, r.root, r.remote)
		return name
	}
	name, _ := mapped.Resolve(dir, "")
	return name
}

// workingProject is the project of the working directory; false where neither
// a repository nor a mapping says what belongs together.
func workingProject(mapped questions.Projects) (string, bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	if _, ok := findRepo(dir); !ok {
		name, how := mapped.Resolve(dir, "")
		return name, how == questions.HowMapping
	}
	return projectIn(mapped, dir), true
}
