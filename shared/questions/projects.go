package questions

import (
	"path"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// MaxMappings bounds config/<tenant>/projects.yaml; each is tried for each cwd.
const MaxMappings = 1024

// Projects is the mapping from working directories to projects,
// config/<tenant>/projects.yaml. The first mapping that matches counts:
//
//	mappings:
//	  - cwd: /home/ada/src/shop       # this folder and all below it
//	    project: shop
//	  - cwd: /home/*/work/**/billing  # "*" within a name, "**" over any number of folders
//	    project: billing
type Projects struct {
	Mappings []Mapping
}

// Mapping gives the folders that CWD names, and all below them, to a project.
type Mapping struct {
	CWD     string
	Project string
}

// How Resolve found the name.
const (
	HowMapping = "mapping" // a line of projects.yaml
	HowRemote  = "remote"  // the repository's remote
	HowCWD     = "cwd"     // the folder's name and the hash of its path
	HowNone    = "none"    // neither remote nor cwd is known
)

// ParseProjects reads projects.yaml as strictly as Parse reads a question file.
func ParseProjects(name string, data []byte) (Projects, error) {
	f := newFile(name)
	root, err := f.Root(data)
	if err != nil {
		return Projects{}, err
	}
	var p Projects
	err = f.Mapping(root, "the project mapping", strictyaml.Fields{
		"mappings": func(n *strictyaml.Node) error {
			return f.Sequence(n, "mappings", MaxMappings, func(n *strictyaml.Node) error {
				m, err := f.projectMapping(n)
				p.Mappings = append(p.Mappings, m)
				return err
			})
		},
	})
	if err != nil {
		return Projects{}, err
	}
	return p, nil
}

func (f file) projectMapping(n *strictyaml.Node) (Mapping, error) {
	var m Mapping
	err := f.Mapping(n, "a mapping", strictyaml.Fields{
		"cwd": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "cwd")
			if err != nil {
				return err
			}
			parts := split(v)
			if parts == nil {
				return f.Fault(n, "write the whole path; the server does not know anyone's home folder", "cwd %q is not an absolute path", v)
			}
			for _, part := range parts {
				if _, err := path.Match(part, ""); err != nil {
					return f.Fault(n, `close the "[", or write "\[" for a bracket in a name`, "cwd %q is not a valid pattern", v)
				}
			}
			m.CWD = v
			return nil
		},
		"project": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "project")
			if err != nil {
				return err
			}
			if !memory.ValidName(v) {
				return f.Fault(n, `use a-z, 0-9, ".", "_" and "-", at most 63 characters`, "project %q is not a valid name", v)
			}
			m.Project = v
			return nil
		},
	})
	if err != nil {
		return Mapping{}, err
	}
	if m.CWD == "" || m.Project == "" {
		return Mapping{}, f.Fault(n, "write both `cwd` and `project`", "a mapping lacks one of its two fields")
	}
	return m, nil
}

// Resolve names the project of a record by the rule of DESIGN section 3: the
// mapping, else the repository's remote, else slug(basename)-sha8(cwd). The
// name is always valid, the same on every machine, and never holds a
// credential of the remote. With neither it is "" and HowNone.
func (p Projects) Resolve(cwd, remote string) (project, how string) {
	return p.ResolveIn(cwd, "", remote)
}

// ResolveIn is Resolve for who sees more than the record: root is the folder
// that all worktrees of the repository share, "" when it is not known. The
// mapping is tried for the folder itself, then for the root; a name made of a
// path is the root's.
func (p Projects) ResolveIn(cwd, root, remote string) (project, how string) {
	if root == "" {
		root = worktreeRoot(cwd)
	}
	for _, dir := range []string{cwd, root} {
		parts := split(dir)
		if parts == nil {
			continue
		}
		for _, m := range p.Mappings {
			if covers(split(m.CWD), parts) {
				return m.Project, HowMapping
			}
		}
	}
	if name := remoteName(remote); name != "" {
		return name, HowRemote
	}
	if strings.TrimSpace(root) != "" {
		cwd = root
	}
	if strings.TrimSpace(cwd) != "" {
		return cwdName(cwd), HowCWD
	}
	return "", HowNone
}

// worktreesDir is where Claude Code makes the worktrees of a repository: the
// path alone tells which one it belongs to.
const worktreesDir = "/.claude/worktrees/"

// worktreeRoot is the repository of such a worktree, or "".
func worktreeRoot(cwd string) string {
	slashed := cwd
	if isWindows(cwd) {
		slashed = strings.ReplaceAll(cwd, `\`, "/")
	}
	if i := strings.Index(slashed, worktreesDir); i > 0 && len(slashed) > i+len(worktreesDir) {
		return cwd[:i]
	}
	return ""
}

// covers reports whether pattern matches dir or a folder above it. Only the
// last "**" is ever tried again, so the cost is the product of both lengths.
func covers(pattern, dir []string) bool {
	p, d := 0, 0
	star, mark := -1, 0
	for p < len(pattern) {
		if pattern[p] == "**" {
			star, mark = p, d
			p++
			continue
		}
		if d < len(dir) {
			if ok, err := path.Match(pattern[p], dir[d]); err == nil && ok {
				p++
				d++
				continue
			}
		}
		if star < 0 || mark == len(dir) {
			return false
		}
		mark++
		p, d = star+1, mark
	}
	return true
}

// split cuts an absolute path into its names; nil when it is not absolute. A
// Windows path keeps its drive, in lower case, as first name. "/" has no names
// and matches everything.
func split(p string) []string {
	p = strings.TrimSpace(p)
	if isWindows(p) {
		p = "/" + strings.ToLower(p[:1]) + p[1:]
		p = strings.ReplaceAll(p, `\`, "/")
	}
	if !strings.HasPrefix(p, "/") {
		return nil
	}
	parts := strings.Split(path.Clean(p), "/")
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}

func isWindows(p string) bool {
	return len(p) >= 3 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') &&
		(p[0] >= 'a' && p[0] <= 'z' || p[0] >= 'A' && p[0] <= 'Z')
}
