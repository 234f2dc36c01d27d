package questions

import (
	"net/url"
	"path"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// remoteName is the name of a project by its repository's remote: owner and
// repository joined by ".", which owners' names never hold, so that two
// repositories never share a memory. A name that had to be altered gets the
// sha8 of the remote's path. "" when the remote names no host: a folder on a
// disk says no more than the cwd does.
//
//	git@github.com:Acme/Shop.git             acme.shop
//	https://user:token@git.acme.dev/a/b/c/   a.b.c
func remoteName(remote string) string {
	p := strings.ToLower(remotePath(strings.TrimSpace(remote)))
	p = strings.TrimSuffix(strings.Trim(p, "/"), ".git")
	if p == "" {
		return ""
	}
	dotted := strings.ReplaceAll(p, "/", ".")
	if memory.ValidName(dotted) {
		return dotted
	}
	return withHash(dotted, p)
}

// remotePath is the path of a remote URL or of git's host:path form.
func remotePath(remote string) string {
	if scheme, _, ok := strings.Cut(remote, "://"); ok {
		u, err := url.Parse(remote)
		if err != nil || u.Host == "" || scheme == "file" {
			return ""
		}
		return u.Path
	}
	host, p, ok := strings.Cut(remote, ":")
	if !ok || len(host) < 2 || strings.ContainsAny(host, `/\`) || strings.HasPrefix(p, `\`) {
		return "" // a path, or a Windows drive
	}
	return p
}

// cwdName is slug(basename)-sha8(cwd). The hash is over the path as it stands,
// without trailing slashes.
func cwdName(cwd string) string {
	cwd = strings.TrimSpace(cwd)
	base := cwd
	if isWindows(cwd) || strings.HasPrefix(cwd, `\\`) {
		base = strings.ReplaceAll(cwd, `\`, "/")
	}
	if trimmed := strings.TrimRight(cwd, "/"); trimmed != "" {
		cwd = trimmed
	}
	return withHash(path.Base(path.Clean(base)), cwd)
}

// withHash is "<slug of name>-<sha8 of identity>", at most memory.MaxName long.
func withHash(name, identity string) string {
	const hash = 1 + 8 // "-" and sha8
	s := slug(name)
	if len(s) > memory.MaxName-hash {
		s = strings.TrimRight(s[:memory.MaxName-hash], "-._")
	}
	return s + "-" + memory.SumString(identity).Short()
}

// slug puts name into the letters a project's name may have; runs of others
// become one "-". A name with none of them is "project".
func slug(name string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(name) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
			continue
		}
		dash = true
	}
	s := strings.Trim(b.String(), "-._")
	if s == "" {
		return "project"
	}
	return s
}
