package questions

import (
	"bytes"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// Parse reads a question file; name stands in errors as "name:line". Anything
// the format does not know is fault.Invalid: an unknown or repeated field, an
// invalid or repeated id, a second document, an anchor.
func Parse(name string, data []byte) (Set, error) {
	f := newFile(name)
	root, err := f.Root(data)
	if err != nil {
		return Set{}, err
	}
	var s Set
	err = f.Mapping(root, "a question file", strictyaml.Fields{
		"project": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "project")
			if err != nil {
				return err
			}
			if !memory.ValidName(v) {
				return f.Fault(n, `use a-z, 0-9, ".", "_" and "-", at most 63 characters`, "project %q is not a valid name", v)
			}
			s.Project = v
			return nil
		},
		"sources": func(n *strictyaml.Node) (err error) { s.Sources, err = f.sources(n); return err },
		"export": func(n *strictyaml.Node) error {
			v, err := f.Bool(n, "export")
			s.NoExport = err == nil && !v
			return err
		},
		"queries": func(n *strictyaml.Node) (err error) { s.Queries, err = f.queries(n); return err },
		"synthesis": func(n *strictyaml.Node) error {
			q, err := f.query(n, "synthesis")
			if err != nil {
				return err
			}
			q.ID = SynthesisID
			s.Synthesis = &q
			return nil
		},
	})
	if err != nil {
		return Set{}, err
	}
	if s.Project == "" {
		return Set{}, f.Fault(root, "add `project: NAME`", "the file names no project")
	}
	s.src = bytes.Clone(data)
	return s, nil
}

// file reads what question files and projects.yaml hold.
type file struct{ strictyaml.File }

func newFile(name string) file {
	return file{strictyaml.File{Name: name, Noun: "file", MaxBytes: MaxFileBytes}}
}

func (f file) sources(n *strictyaml.Node) ([]string, error) {
	var out []string
	err := f.Sequence(n, "sources", MaxSources, func(n *strictyaml.Node) error {
		v, err := f.Text(n, "a source")
		if err != nil {
			return err
		}
		if len(v) > MaxSourceBytes || strings.ContainsAny(v, "\n\r\x00") {
			return f.Fault(n, "", "a source is one line of at most %d bytes", MaxSourceBytes)
		}
		if slices.Contains(out, v) {
			return f.Fault(n, "remove one of them", "source %q stands twice", v)
		}
		out = append(out, v)
		return nil
	})
	return out, err
}

func (f file) queries(n *strictyaml.Node) ([]Query, error) {
	var out []Query
	lines := map[string]int{}
	err := f.Sequence(n, "queries", MaxQueries, func(n *strictyaml.Node) error {
		q, err := f.query(n, "a query")
		if err != nil {
			return err
		}
		if first, dup := lines[q.ID]; dup {
			return f.Fault(n, "give each question its own id", "id %q stands twice, first at line %d", q.ID, first)
		}
		lines[q.ID] = n.Line
		out = append(out, q)
		return nil
	})
	return out, err
}

// query reads {id, question, exit_gate?}; the synthesis has no id of its own.
func (f file) query(n *strictyaml.Node, what string) (Query, error) {
	var q Query
	want := strictyaml.Fields{
		"question": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "question")
			if err != nil {
				return err
			}
			if q.Question = strings.TrimSpace(v); q.Question == "" {
				return f.Fault(n, "say what the memory should answer", "the question has no words")
			}
			return f.At(n, checkWording(q.Question))
		},
		"exit_gate": func(n *strictyaml.Node) (err error) { q.ExitGate, err = f.Bool(n, "exit_gate"); return err },
	}
	if what != "synthesis" {
		want["id"] = func(n *strictyaml.Node) error {
			v, err := f.Text(n, "id")
			if err != nil {
				return err
			}
			if !memory.ValidQuestionID(v) {
				return f.Fault(n, idHint, "id %q is not valid", v)
			}
			q.ID = v
			return nil
		}
	}
	if err := f.Mapping(n, what, want); err != nil {
		return Query{}, err
	}
	if want["id"] != nil && q.ID == "" {
		return Query{}, f.Fault(n, "add `id: NAME`", "%s has no id", what)
	}
	if q.Question == "" {
		return Query{}, f.Fault(n, "add `question: …`", "%s has no question", what)
	}
	return q, nil
}
