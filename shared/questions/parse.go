package questions

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Parse reads a question file; name stands in errors as "name:line". Anything
// the format does not know is fault.Invalid: an unknown or repeated field, an
// invalid or repeated id, a second document, an anchor.
func Parse(name string, data []byte) (Set, error) {
	f := file{name}
	root, err := f.root(data)
	if err != nil {
		return Set{}, err
	}
	var s Set
	err = f.mapping(root, "a question file", fields{
		"project": func(n *yaml.Node) error {
			v, err := f.text(n, "project")
			if err != nil {
				return err
			}
			if !memory.ValidName(v) {
				return f.fault(n, `use a-z, 0-9, ".", "_" and "-", at most 63 characters`, "project %q is not a valid name", v)
			}
			s.Project = v
			return nil
		},
		"sources": func(n *yaml.Node) (err error) { s.Sources, err = f.sources(n); return err },
		"queries": func(n *yaml.Node) (err error) { s.Queries, err = f.queries(n); return err },
		"synthesis": func(n *yaml.Node) error {
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
		return Set{}, f.fault(root, "add `project: NAME`", "the file names no project")
	}
	s.src = bytes.Clone(data)
	return s, nil
}

func (f file) sources(n *yaml.Node) ([]string, error) {
	var out []string
	err := f.sequence(n, "sources", MaxSources, func(n *yaml.Node) error {
		v, err := f.text(n, "a source")
		if err != nil {
			return err
		}
		if len(v) > MaxSourceBytes || strings.ContainsAny(v, "\n\r\x00") {
			return f.fault(n, "", "a source is one line of at most %d bytes", MaxSourceBytes)
		}
		if slices.Contains(out, v) {
			return f.fault(n, "remove one of them", "source %q stands twice", v)
		}
		out = append(out, v)
		return nil
	})
	return out, err
}

func (f file) queries(n *yaml.Node) ([]Query, error) {
	var out []Query
	lines := map[string]int{}
	err := f.sequence(n, "queries", MaxQueries, func(n *yaml.Node) error {
		q, err := f.query(n, "a query")
		if err != nil {
			return err
		}
		if first, dup := lines[q.ID]; dup {
			return f.fault(n, "give each question its own id", "id %q stands twice, first at line %d", q.ID, first)
		}
		lines[q.ID] = n.Line
		out = append(out, q)
		return nil
	})
	return out, err
}

// query reads {id, question, exit_gate?}; the synthesis has no id of its own.
func (f file) query(n *yaml.Node, what string) (Query, error) {
	var q Query
	want := fields{
		"question": func(n *yaml.Node) error {
			v, err := f.text(n, "question")
			if err != nil {
				return err
			}
			if q.Question = strings.TrimSpace(v); q.Question == "" {
				return f.fault(n, "say what the memory should answer", "the question has no words")
			}
			return f.at(n, checkWording(q.Question))
		},
		"exit_gate": func(n *yaml.Node) (err error) { q.ExitGate, err = f.bool(n, "exit_gate"); return err },
	}
	if what != "synthesis" {
		want["id"] = func(n *yaml.Node) error {
			v, err := f.text(n, "id")
			if err != nil {
				return err
			}
			if !memory.ValidQuestionID(v) {
				return f.fault(n, idHint, "id %q is not valid", v)
			}
			q.ID = v
			return nil
		}
	}
	if err := f.mapping(n, what, want); err != nil {
		return Query{}, err
	}
	if want["id"] != nil && q.ID == "" {
		return Query{}, f.fault(n, "add `id: NAME`", "%s has no id", what)
	}
	if q.Question == "" {
		return Query{}, f.fault(n, "add `question: …`", "%s has no question", what)
	}
	return q, nil
}

// file names the bytes in errors.
type file struct{ name string }

// fields maps the known keys of a mapping to what reads their value.
type fields map[string]func(*yaml.Node) error

func (f file) fault(n *yaml.Node, hint, format string, args ...any) error {
	return fault.At(fault.Invalid, f.name+":"+strconv.Itoa(n.Line), hint, format, args...)
}

// at moves an error about a value to the line where the value stands.
func (f file) at(n *yaml.Node, err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return f.fault(n, e.Hint, "%s", e.Msg)
	}
	return err
}

var (
	yamlLine   = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	parserSays = regexp.MustCompile(`^did not find expected (?:node content|key|<document start>|'-' indicator|',' or '[\]}]')$`)
)

// root parses one YAML document that holds a mapping.
func (f file) root(data []byte) (*yaml.Node, error) {
	if len(data) > MaxFileBytes {
		return nil, fault.At(fault.Invalid, f.name, "", "the file has %d bytes, at most %d are allowed", len(data), MaxFileBytes)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, fault.At(fault.Invalid, f.name+":1", "", "the file is empty")
	} else if err != nil {
		return nil, f.syntax(err)
	}
	var next yaml.Node
	if err := dec.Decode(&next); err == nil {
		return nil, f.fault(&next, "keep one document a file", "a second YAML document begins here")
	} else if !errors.Is(err, io.EOF) {
		return nil, f.syntax(err)
	}
	if len(doc.Content) != 1 {
		return nil, fault.At(fault.Invalid, f.name+":1", "", "the file is empty")
	}
	return doc.Content[0], nil
}

// syntax gives a parser's error its line. The library counts lines from 1 for
// what its scanner finds and from 0 for what its parser finds, and names the
// line where a broken block begins rather than the one that breaks it.
func (f file) syntax(err error) error {
	msg, line := err.Error(), 1
	if m := yamlLine.FindStringSubmatch(msg); m != nil {
		msg = msg[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
			if parserSays.MatchString(msg) {
				line++
			}
		}
	}
	return fault.At(fault.Invalid, f.name+":"+strconv.Itoa(line), "", "not YAML at or below this line: %s", msg)
}

func (f file) mapping(n *yaml.Node, what string, known fields) error {
	if err := f.plain(n, what, yaml.MappingNode, "a mapping of fields"); err != nil {
		return err
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			return f.fault(k, "", "a field's name is one word")
		}
		read, ok := known[k.Value]
		if !ok {
			names := make([]string, 0, len(known))
			for name := range known {
				names = append(names, name)
			}
			slices.Sort(names)
			return f.fault(k, "the fields of "+what+" are "+strings.Join(names, ", "), "unknown field %q", k.Value)
		}
		if first, dup := seen[k.Value]; dup {
			return f.fault(k, "remove one of them", "field %q stands twice, first at line %d", k.Value, first)
		}
		seen[k.Value] = k.Line
		if err := read(v); err != nil {
			return err
		}
	}
	return nil
}

func (f file) sequence(n *yaml.Node, what string, max int, read func(*yaml.Node) error) error {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" && n.Anchor == "" {
		return nil // `queries:` with nothing after it
	}
	if err := f.plain(n, what, yaml.SequenceNode, "a list"); err != nil {
		return err
	}
	if len(n.Content) > max {
		return f.fault(n, "", "%s has %d entries, at most %d are allowed", what, len(n.Content), max)
	}
	for _, c := range n.Content {
		if err := read(c); err != nil {
			return err
		}
	}
	return nil
}

// text reads a scalar as the words that stand there: `id: 7` is "7".
func (f file) text(n *yaml.Node, what string) (string, error) {
	if err := f.plain(n, what, yaml.ScalarNode, "text"); err != nil {
		return "", err
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
	default:
		return "", f.fault(n, "", "%s must be text", what)
	}
	v := strings.TrimSpace(n.Value)
	if v == "" {
		return "", f.fault(n, "", "%s is empty", what)
	}
	return v, nil
}

func (f file) bool(n *yaml.Node, what string) (bool, error) {
	if err := f.plain(n, what, yaml.ScalarNode, "true or false"); err != nil {
		return false, err
	}
	var v bool
	if n.ShortTag() != "!!bool" || n.Decode(&v) != nil {
		return false, f.fault(n, "", "%s must be true or false, not %q", what, n.Value)
	}
	return v, nil
}

// plain refuses another kind of node, and anchors and aliases, by which a small
// file can stand for a huge one.
func (f file) plain(n *yaml.Node, what string, kind yaml.Kind, want string) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return f.fault(n, "write the value out", "anchors and aliases are not allowed")
	}
	if n.Kind != kind {
		return f.fault(n, "", "%s must be %s", what, want)
	}
	return nil
}
