// Package archtest proves the tree's import rules: which package may import
// which, and which package owns which third-party module. Its test runs
// `go list` over the whole module, so a broken rule fails `make test`.
//
// The rules:
//
//   - Every package has a rank in the table Ranks; an unlisted one fails.
//   - A package imports packages of a lower rank only. Siblings of the same
//     rank may meet where the table Siblings says so.
//   - shared/memory imports the standard library only.
//   - functions/* import neither one another nor an adapter: they meet through
//     events and the log, and wire hands them their adapters.
//   - A package whose name ends in "test" is imported by _test.go files only.
//   - What a package is kept out of (table Bars) does not need it, however far
//     down: indexes never see compressed text.
//   - A third-party module is imported by its owners alone (table Modules), so
//     that replacing one touches one package.
//
// Tests may import any package of the module, and the third-party modules that
// the tables allow them. The package checks imports, not behaviour.
package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// Package is what the rules need to know of one package, as `go list -json`
// gives it.
type Package struct {
	ImportPath   string
	Imports      []string // of non-test files
	TestImports  []string // of _test.go files inside the package
	XTestImports []string // of external test packages
}

// Check holds the packages against the tables and returns one line for each
// broken rule, sorted, with the cure in it.
func Check(pkgs []Package) []string {
	var c checker
	for _, p := range pkgs {
		rel, ok := strings.CutPrefix(p.ImportPath, Module+"/")
		if !ok {
			c.say("%s is outside the module %s", p.ImportPath, Module)
			continue
		}
		if _, ok := Ranks[rel]; !ok {
			c.say("%s has no rank: give it one in the table Ranks of shared/archtest", rel)
			continue
		}
		for _, imp := range p.Imports {
			c.code(rel, imp)
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			c.test(rel, imp)
		}
	}
	c.bars(pkgs)
	slices.Sort(c.broken)
	return slices.Compact(c.broken)
}

type checker struct{ broken []string }

func (c *checker) say(format string, args ...any) {
	c.broken = append(c.broken, fmt.Sprintf(format, args...))
}

// code judges one import of a non-test file.
func (c *checker) code(from, imp string) {
	to, inside := strings.CutPrefix(imp, Module+"/")
	if !inside {
		if strings.HasSuffix(from, "test") && from != "shared/archtest" {
			c.test(from, imp) // a conformance suite is test code
			return
		}
		c.foreign(from, imp, func(m Third) []string { return m.Owners })
		return
	}
	if from == "shared/memory" {
		c.say("shared/memory imports %s: it imports the standard library only", to)
		return
	}
	if strings.HasSuffix(to, "test") {
		c.say("%s imports %s outside its tests: a …test package is for _test.go files", from, to)
		return
	}
	if strings.HasPrefix(from, "functions/") {
		if strings.HasPrefix(to, "functions/") {
			c.say("%s imports %s: functions meet through events and the log", from, to)
			return
		}
		if Adapters[to] {
			c.say("%s imports the adapter %s: take the port, cmd/internal/wire hands in the adapter", from, to)
			return
		}
	}
	rank, ok := Ranks[to]
	if !ok {
		return // reported where the package itself is listed
	}
	if rank < Ranks[from] || slices.Contains(Siblings[from], to) {
		return
	}
	c.say("%s (rank %d) imports %s (rank %d): only lower ranks, or a pair listed in Siblings", from, Ranks[from], to, rank)
}

// bars follows imports down to what may not be met, and names the way.
func (c *checker) bars(pkgs []Package) {
	imports := map[string][]string{}
	for _, p := range pkgs {
		from := strings.TrimPrefix(p.ImportPath, Module+"/")
		for _, imp := range p.Imports {
			if to, inside := strings.CutPrefix(imp, Module+"/"); inside {
				imports[from] = append(imports[from], to)
			}
		}
	}
	for _, b := range Bars {
		for from := range imports {
			if !b.covers(from) {
				continue
			}
			if way := wayTo(imports, from, b.Path, map[string]bool{}); way != nil {
				c.say("%s needs %s (by %s): %s", from, b.Path, strings.Join(way, ", "), b.Why)
			}
		}
	}
}

func (b Bar) covers(pkg string) bool {
	for _, pattern := range b.From {
		if pattern == pkg || strings.HasSuffix(pattern, "/*") && strings.HasPrefix(pkg, strings.TrimSuffix(pattern, "*")) {
			return true
		}
	}
	return false
}

// wayTo is the imports that lead from one package to another, or nil.
func wayTo(imports map[string][]string, from, to string, seen map[string]bool) []string {
	if seen[from] {
		return nil
	}
	seen[from] = true
	for _, next := range imports[from] {
		if next == to {
			return []string{next}
		}
		if way := wayTo(imports, next, to, seen); way != nil {
			return append([]string{next}, way...)
		}
	}
	return nil
}

// test judges one import of a _test.go file.
func (c *checker) test(from, imp string) {
	if !strings.HasPrefix(imp, Module+"/") {
		c.foreign(from, imp, func(m Third) []string { return slices.Concat(m.Owners, m.Tests) })
	}
}

// foreign judges an import from outside the module.
func (c *checker) foreign(from, imp string, allowed func(Third) []string) {
	if standard(imp) {
		return
	}
	m, ok := owner(imp)
	if !ok {
		c.say("%s imports %s, which has no owner: give its module one in the table Modules of shared/archtest, with the reason in docs/ARCHITECTURE.md", from, imp)
		return
	}
	for _, pattern := range allowed(m) {
		if pattern == from || pattern == Everywhere || strings.HasSuffix(pattern, "/*") && strings.HasPrefix(from, strings.TrimSuffix(pattern, "*")) {
			return
		}
	}
	owners := "tests"
	if len(m.Owners) > 0 {
		owners = strings.Join(m.Owners, ", ")
	}
	c.say("%s imports %s: %s belongs to %s", from, imp, m.Path, owners)
}

// standard reports whether imp is of the standard library: its first element
// is no host name.
func standard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

// owner finds the module that imp is of; the longest path counts.
func owner(imp string) (Third, bool) {
	var best Third
	for _, m := range Modules {
		if (imp == m.Path || strings.HasPrefix(imp, m.Path+"/")) && len(m.Path) > len(best.Path) {
			best = m
		}
	}
	return best, best.Path != ""
}
