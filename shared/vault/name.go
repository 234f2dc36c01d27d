package vault

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/mneme-ai/mneme/shared/memory"
)

// maxStem bounds a file name without its ending, in bytes: with ".local-99.md" and
// a long path before it, Windows still takes it (260 characters of a whole path).
const maxStem = 100

// SafeName is s as a file name without ending that Windows, macOS, S3 and Obsidian
// all take: NFC, lower case, nothing that a link or a path reads, no name of a
// device, no dot at either end, at most maxStem bytes. A name that had to be
// changed has the hash of s behind it, so that two never meet.
func SafeName(s string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(`<>:"/\|?*#^[]%`+"`", r), unicode.IsControl(r), unicode.IsSpace(r), turns(r), r == utf8.RuneError, r == '\ufeff', r >= 0xfffe && r <= 0xffff:
			return '-'
		}
		return unicode.ToLower(r)
	}, norm.NFC.String(s))
	name = norm.NFC.String(name) // lower case may decompose
	if name == s && len(name) <= maxStem && name == strings.Trim(name, ". ") && !device(name) && name != "" {
		return name
	}
	return withHash(name, s)
}

func withHash(name, of string) string {
	if cut := maxStem - 9; len(name) > cut {
		for !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut]
	}
	name = strings.Trim(name, ". -")
	if device(name) { // a device's name counts up to the first dot: con.a-1a2b3c4d is one still
		name = strings.ReplaceAll(name, ".", "-")
	}
	if name != "" {
		name += "-"
	}
	return name + memory.SumString(of).Short()
}

// device reports the names that Windows keeps for devices, whatever stands behind
// a dot (Microsoft, "Naming Files, Paths, and Namespaces").
func device(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	base = strings.TrimRight(base, " ")
	switch base {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	r := []rune(base)
	if len(r) == 4 && (strings.HasPrefix(base, "com") || strings.HasPrefix(base, "lpt")) {
		return strings.ContainsRune("0123456789¹²³", r[3])
	}
	return false
}

// names gives out file names that differ where case does not count.
type names struct {
	taken map[string]bool
	met   []string // names that met another's and have a hash behind them
}

// folded is what a file system that folds case and normal form compares.
func foldName(s string) string { return strings.ToLower(norm.NFKC.String(s)) }

func (n *names) keep(stem string) { n.taken[foldName(stem)] = true }

// of gives the name of an id. Two ids never get one name.
func (n *names) of(id string) string {
	stem := SafeName(id)
	if n.taken[foldName(stem)] {
		n.met = append(n.met, id)
		stem = withHash(stem, id)
		for n.taken[foldName(stem)] {
			stem = withHash(stem, stem)
		}
	}
	n.keep(stem)
	return stem
}

// Folder is the name of a project's folder in a vault. "skills" is that of other
// pages.
func Folder(project string) string {
	n := names{taken: map[string]bool{"skills": true}}
	return n.of(project)
}
