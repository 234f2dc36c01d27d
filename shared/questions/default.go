package questions

import (
	_ "embed"
	"sync"
)

//go:embed default.yaml
var defaultYAML []byte

var parsedDefault = sync.OnceValue(func() Set {
	s, err := Parse("default.yaml", defaultYAML)
	if err != nil {
		panic(err) // the file is part of the program; a test parses it
	}
	return s
})

// Default is the question set of a project that has no file of its own: nine
// questions that fit work by coding agents, and a synthesis. project must be a
// valid name.
func Default(project string) Set {
	s := parsedDefault()
	s.Project = project
	s.Queries = append([]Query(nil), s.Queries...)
	syn := *s.Synthesis
	s.Synthesis = &syn
	return s
}
