// Package strictyaml reads YAML files that people write, field by field, so
// that a slip is an error with its line and never a setting that is silently
// not in force.
//
// Invariant: every value of a file was read by somebody. An unknown or repeated
// field, another kind of value than is asked for, a second document, an anchor
// and an alias are fault.Invalid, whose place is "name:line" and whose message
// names the field. Nothing is expanded, so that what a file stands for is never
// larger than the file.
//
// A reader is a table of its fields:
//
//	f := strictyaml.File{Name: "team.yaml", Noun: "file", MaxBytes: 64 << 10}
//	root, err := f.Root(data)
//	…
//	err = f.Mapping(root, "a team", strictyaml.Fields{
//		"name":    func(n *strictyaml.Node) (err error) { t.Name, err = f.Text(n, "name"); return err },
//		"members": func(n *strictyaml.Node) error {
//			return f.Sequence(n, "members", 100, func(n *strictyaml.Node) error { … })
//		},
//	})
//
// `nmae: x` then says: team.yaml:1: unknown field "nmae"; its hint lists the
// fields there are.
//
// The package does not decode into structs, knows no defaults and no field that
// must be there, and writes nothing.
package strictyaml

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
)

// Node is one value, and the line where it stands.
type Node = yaml.Node

// Kinds of values that Plain asks for.
const (
	Scalar  = yaml.ScalarNode
	List    = yaml.SequenceNode
	Mapping = yaml.MappingNode
)

// File is a file being read.
type File struct {
	Name     string // stands in errors as "name:line"
	Noun     string // what it is, in errors: "the file is empty"
	MaxBytes int    // more is refused unread
}

// Fields maps the known fields of a mapping to what reads their value.
type Fields map[string]func(*Node) error

// Fault is a fault.Invalid at the line of n.
func (f File) Fault(n *Node, hint, format string, args ...any) error {
	return f.fault(n.Line, hint, format, args...)
}

func (f File) fault(line int, hint, format string, args ...any) error {
	return fault.At(fault.Invalid, f.Name+":"+strconv.Itoa(line), hint, format, args...)
}

// At moves an error about a value to the line where the value stands.
func (f File) At(n *Node, err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return f.Fault(n, e.Hint, "%s", e.Msg)
	}
	return err
}

// Root is the value of the file's one document; an empty file is refused.
func (f File) Root(data []byte) (*Node, error) {
	n, err := f.Document(data)
	if err == nil && n == nil {
		err = f.fault(1, "", "the %s is empty", f.Noun)
	}
	return n, err
}

// Document is Root for files that may be empty: nil where nothing stands but
// comments.
func (f File) Document(data []byte) (*Node, error) {
	if len(data) > f.MaxBytes {
		return nil, fault.At(fault.Invalid, f.Name, "", "the %s has %d bytes, at most %d are allowed", f.Noun, len(data), f.MaxBytes)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, f.syntax(err)
	}
	if err := dec.Decode(&next); err == nil {
		return nil, f.Fault(&next, "keep one document a file", "a second YAML document begins here")
	} else if !errors.Is(err, io.EOF) {
		return nil, f.syntax(err)
	}
	if len(doc.Content) != 1 {
		return nil, nil
	}
	return doc.Content[0], nil
}

var (
	yamlLine   = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)
	parserSays = regexp.MustCompile(`^did not find expected (?:node content|key|<document start>|'-' indicator|',' or '[\]}]')$`)
)

// syntax gives a parser's error its line. The library counts lines from 1 for
// what its scanner finds and from 0 for what its parser finds, and names the
// line where a broken block begins rather than the one that breaks it.
func (f File) syntax(err error) error {
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
	return f.fault(line, "", "not YAML at or below this line: %s", msg)
}

// Plain refuses another kind of value than want, and anchors and aliases, by
// which a small file can stand for a huge one.
func (f File) Plain(n *Node, what string, kind yaml.Kind, want string) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return f.Fault(n, "write the value out", "anchors and aliases are not allowed")
	}
	if n.Kind != kind {
		return f.Fault(n, "", "%s must be %s", what, want)
	}
	return nil
}

// Mapping reads the fields of a mapping in the order in which they stand. what
// names it in errors, as in "a query".
func (f File) Mapping(n *Node, what string, known Fields) error {
	return f.Each(n, what, "a mapping of fields", func(k, v *Node) error {
		read, ok := known[k.Value]
		if !ok {
			return f.Fault(k, "the fields of "+what+" are "+Words(known), "unknown field %q", k.Value)
		}
		return read(v)
	})
}

// Each reads a mapping whose keys are the file's own: any text, each once. want
// says in errors what it must be.
func (f File) Each(n *Node, what, want string, read func(key, value *Node) error) error {
	if err := f.Plain(n, what, Mapping, want); err != nil {
		return err
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Anchor != "" {
			return f.Plain(k, "", Scalar, "")
		}
		if k.Kind != Scalar {
			return f.Fault(k, "", "a field's name is one word")
		}
		if first, dup := seen[k.Value]; dup {
			return f.Fault(k, "remove one of them", "field %q stands twice, first at line %d", k.Value, first)
		}
		seen[k.Value] = k.Line
		if err := read(k, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// Words are the keys of m in order, for hints.
func Words[V any](m map[string]V) string {
	out := make([]string, 0, len(m))
	for w := range m {
		out = append(out, w)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// Sequence reads a list of at most max entries; `queries:` with nothing after
// it is an empty one.
func (f File) Sequence(n *Node, what string, max int, read func(*Node) error) error {
	if null(n) && n.Anchor == "" {
		return nil
	}
	if err := f.Plain(n, what, List, "a list"); err != nil {
		return err
	}
	if len(n.Content) > max {
		return f.Fault(n, "", "%s has %d entries, at most %d are allowed", what, len(n.Content), max)
	}
	for _, c := range n.Content {
		if err := read(c); err != nil {
			return err
		}
	}
	return nil
}

// Text reads a scalar as the words that stand there, without white space at its
// ends: `id: 7` is "7". Nothing, or null, is refused.
func (f File) Text(n *Node, what string) (string, error) {
	if err := f.Plain(n, what, Scalar, "text"); err != nil {
		return "", err
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
	default:
		return "", f.Fault(n, "", "%s must be text", what)
	}
	v := strings.TrimSpace(n.Value)
	if v == "" {
		return "", f.Fault(n, "", "%s is empty", what)
	}
	return v, nil
}

// String reads what YAML itself takes for text, with all its white space:
// `regexp: 12` is refused.
func (f File) String(n *Node, what string) (string, error) {
	if err := f.Plain(n, what, Scalar, "text"); err != nil {
		return "", err
	}
	switch {
	case n.ShortTag() != "!!str":
		return "", f.Fault(n, "put it between quotes", "%s must be text", what)
	case n.Value == "":
		return "", f.Fault(n, "", "%s is empty", what)
	}
	return n.Value, nil
}

// Bool reads true or false.
func (f File) Bool(n *Node, what string) (bool, error) {
	if err := f.Plain(n, what, Scalar, "true or false"); err != nil {
		return false, err
	}
	var v bool
	if n.ShortTag() != "!!bool" || n.Decode(&v) != nil {
		return false, f.Fault(n, "", "%s must be true or false, not %q", what, n.Value)
	}
	return v, nil
}

// null says that nothing stands there.
func null(n *Node) bool { return n.Kind == Scalar && n.ShortTag() == "!!null" }
