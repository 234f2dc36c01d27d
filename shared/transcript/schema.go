package transcript

import (
	"bytes"
	"embed"
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Schema says where a format of JSON records keeps what a turn needs, so that
// a new format needs no code. It is made by ParseSchema from YAML:
//
//	name: my-agent                 # the format's name: a-z, 0-9 and "-"
//	files: ["*.chat.json"]         # optional: one of these fits the key's last element
//	match:                         # all must hold of a record
//	  - path: kind
//	    equals: [chat, thread]
//	  - path: entries
//	    is: array                  # array, object, string, number, bool, null, any
//	conversations: data.threads    # optional: a list of conversations in a record
//	conversation:                  # paths from the conversation (default: the record)
//	  id: id
//	  cwd: meta.dir
//	  branch: meta.branch
//	  remote: meta.origin
//	  time: started_at
//	messages: entries              # absent: each record is one message
//	message:                       # paths from a message; role and text are needed
//	  role: [author.role, who]
//	  text: [body, "parts.*.text"]
//	  time: ts
//	  id: id
//	  parent: reply_to
//	  cwd: dir
//	  branch: branch
//	  tool: tool.name
//	  call_id: tool.id
//	  error: tool.failed
//	calls:                         # optional: tool calls inside a message
//	  list: tool_calls
//	  id: id
//	  name: function.name
//	  arguments: function.arguments
//	roles:                         # what the file calls the speakers; without it the usual names
//	  customer: user
//	  robot: assistant
//	  noise: skip
//
// A path is keys joined by dots; `*` stands for every element of an array.
// A list of paths means the first that leads to something. Roles map to user,
// assistant, tool_call, tool_result, system, injected, summary, feedback,
// review (a model's feedback), command or skip. A time is RFC 3339 or a Unix time in seconds to nanoseconds.
type Schema struct {
	// Name is the format's name, as Stats.Format has it.
	Name string

	files         []string
	match         []rule
	conversations paths
	conv          struct{ id, cwd, branch, remote, time paths }
	messages      paths
	msg           struct{ role, text, time, id, parent, cwd, branch, tool, callID, failed paths }
	calls         struct{ list, id, name, arguments paths }
	roles         map[string]string
}

// rule is one condition on a record.
type rule struct {
	path   paths
	is     string   // kind of value; "" for any
	equals []string // one of these, as a string, number or word stands
}

// paths are alternatives, each a list of keys.
type paths [][]string

const (
	// maxSchemaBytes bounds a schema file; a full one has under 2 KB.
	maxSchemaBytes = 64 << 10
	// maxSchemaList bounds each list in it.
	maxSchemaList = 100
	// maxPathKeys bounds the depth of one path.
	maxPathKeys = 16
)

//go:embed schemas/*.yaml
var schemaFiles embed.FS

// builtin are the schemas of formats that are read by nothing else, in the
// order in which they are tried.
var builtin = sync.OnceValue(func() []Schema {
	var out []Schema
	for _, name := range []string{FormatOpenAI, FormatShareGPT, FormatClaudeAI, "agent-loop", "agent-loop-coder", "agent-loop-reviewer", FormatFlat} {
		b, err := schemaFiles.ReadFile("schemas/" + name + ".yaml")
		if err == nil {
			var s Schema
			if s, err = ParseSchema(name+".yaml", b); err == nil {
				out = append(out, s)
			}
		}
		if err != nil {
			panic(err) // the embedded files are the program's own; a test reads them all
		}
	}
	return out
})

// roleWords are what a role may map to.
var roleWords = map[string]speaker{
	"user": speakUser, "assistant": speakAssistant, "tool_call": speakCall, "tool_result": speakResult, "system": speakSystem,
	"review": speakReview, "injected": speakInjected, "summary": speakSummary, "feedback": speakFeedback, "command": speakCommand, "skip": {},
}

var kindBytes = map[string]string{"array": "[", "object": "{", "string": `"`, "number": "-0123456789", "bool": "tf", "null": "n", "any": ""}

var schemaName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// ParseSchema reads a schema; name stands in errors as "name:line". It is
// strict: an unknown or repeated field, a wrong kind of value, an unknown role
// and an anchor are fault.Invalid, with the line.
func ParseSchema(name string, data []byte) (Schema, error) {
	f := schemaFile{name}
	root, err := f.root(data)
	if err != nil {
		return Schema{}, err
	}
	var s Schema
	err = f.mapping(root, "a schema", fields{
		"name": func(n *yaml.Node) error {
			v, err := f.text(n)
			if err == nil && !schemaName.MatchString(v) {
				err = f.fault(n, `use a-z, 0-9 and "-", at most 40 characters`, "%q is no name of a format", v)
			}
			s.Name = v
			return err
		},
		"files": func(n *yaml.Node) (err error) {
			s.files, err = f.list(n)
			for _, g := range s.files {
				if _, bad := path.Match(g, ""); bad != nil && err == nil {
					err = f.fault(n, "write it as *.json", "%q is no file pattern", g)
				}
			}
			return err
		},
		"match":         func(n *yaml.Node) (err error) { s.match, err = f.rules(n); return err },
		"conversations": f.paths(&s.conversations),
		"conversation": func(n *yaml.Node) error {
			return f.mapping(n, "conversation", fields{
				"id": f.paths(&s.conv.id), "cwd": f.paths(&s.conv.cwd), "branch": f.paths(&s.conv.branch),
				"remote": f.paths(&s.conv.remote), "time": f.paths(&s.conv.time),
			})
		},
		"messages": f.paths(&s.messages),
		"message": func(n *yaml.Node) error {
			return f.mapping(n, "message", fields{
				"role": f.paths(&s.msg.role), "text": f.paths(&s.msg.text), "time": f.paths(&s.msg.time), "id": f.paths(&s.msg.id),
				"parent": f.paths(&s.msg.parent), "cwd": f.paths(&s.msg.cwd), "branch": f.paths(&s.msg.branch),
				"tool": f.paths(&s.msg.tool), "call_id": f.paths(&s.msg.callID), "error": f.paths(&s.msg.failed),
			})
		},
		"calls": func(n *yaml.Node) error {
			err := f.mapping(n, "calls", fields{
				"list": f.paths(&s.calls.list), "id": f.paths(&s.calls.id),
				"name": f.paths(&s.calls.name), "arguments": f.paths(&s.calls.arguments),
			})
			if err == nil && s.calls.list == nil {
				err = f.fault(n, "add `list: PATH`", "calls names no list")
			}
			return err
		},
		"roles": func(n *yaml.Node) (err error) { s.roles, err = f.roles(n); return err },
	})
	switch {
	case err != nil:
		return Schema{}, err
	case s.Name == "":
		return Schema{}, f.fault(root, "add `name: NAME`", "the schema names no format")
	case len(s.match) == 0:
		return Schema{}, f.fault(root, "add `match:` with at least one rule", "nothing tells records of this format")
	case s.msg.role == nil || s.msg.text == nil:
		return Schema{}, f.fault(root, "add `message:` with `role` and `text`", "the schema does not say where role and text are")
	}
	return s, nil
}

// schemaFile names the bytes in errors.
type schemaFile struct{ name string }

// fields maps the known keys of a mapping to what reads their value.
type fields map[string]func(*yaml.Node) error

func (f schemaFile) fault(n *yaml.Node, hint, format string, args ...any) error {
	return fault.At(fault.Invalid, f.name+":"+strconv.Itoa(n.Line), hint, format, args...)
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// root parses one YAML document.
func (f schemaFile) root(data []byte) (*yaml.Node, error) {
	if len(data) > maxSchemaBytes {
		return nil, fault.At(fault.Invalid, f.name, "", "the schema has %d bytes, at most %d are allowed", len(data), maxSchemaBytes)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	err := dec.Decode(&doc)
	if err == nil {
		if err = dec.Decode(&next); err == nil {
			return nil, f.fault(&next, "keep one schema a file", "a second YAML document begins here")
		}
	}
	switch {
	case !errors.Is(err, io.EOF):
		line, msg := "1", err.Error()
		if m := yamlLine.FindStringSubmatch(msg); m != nil {
			if msg = msg[len(m[0]):]; m[1] != "" {
				line = m[1]
			}
		}
		return nil, fault.At(fault.Invalid, f.name+":"+line, "", "not YAML at or below this line: %s", msg)
	case len(doc.Content) != 1:
		return nil, fault.At(fault.Invalid, f.name+":1", "", "the schema is empty")
	}
	return doc.Content[0], nil
}

// plain refuses another kind of node, and anchors and aliases, by which a
// small file can stand for a huge one.
func (f schemaFile) plain(n *yaml.Node, kind yaml.Kind, want string) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return f.fault(n, "write the value out", "anchors and aliases are not allowed")
	}
	if n.Kind != kind {
		return f.fault(n, "", "this must be %s", want)
	}
	return nil
}

func (f schemaFile) mapping(n *yaml.Node, what string, known fields) error {
	if err := f.plain(n, yaml.MappingNode, "a mapping of fields"); err != nil {
		return err
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		read, ok := known[k.Value]
		if k.Kind != yaml.ScalarNode || !ok {
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

// text reads a scalar as it stands.
func (f schemaFile) text(n *yaml.Node) (string, error) {
	if err := f.plain(n, yaml.ScalarNode, "text"); err != nil {
		return "", err
	}
	if n.ShortTag() == "!!null" || n.Value == "" {
		return "", f.fault(n, "", "this must not be empty")
	}
	return n.Value, nil
}

// list reads one text or a list of texts.
func (f schemaFile) list(n *yaml.Node) ([]string, error) {
	if n.Kind == yaml.ScalarNode {
		v, err := f.text(n)
		return []string{v}, err
	}
	if err := f.plain(n, yaml.SequenceNode, "text or a list of texts"); err != nil {
		return nil, err
	}
	if len(n.Content) == 0 || len(n.Content) > maxSchemaList {
		return nil, f.fault(n, "", "a list of %d: 1 to %d are allowed", len(n.Content), maxSchemaList)
	}
	var out []string
	for _, c := range n.Content {
		v, err := f.text(c)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// paths reads one path or a list of alternatives.
func (f schemaFile) paths(dst *paths) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		list, err := f.list(n)
		for _, v := range list {
			keys := strings.Split(v, ".")
			if slices.Contains(keys, "") || len(keys) > maxPathKeys {
				return f.fault(n, `join 1 to 16 keys by "."`, "%q is no path", v)
			}
			*dst = append(*dst, keys)
		}
		return err
	}
}

func (f schemaFile) rules(n *yaml.Node) ([]rule, error) {
	if err := f.plain(n, yaml.SequenceNode, "a list of rules"); err != nil {
		return nil, err
	}
	if len(n.Content) > maxSchemaList {
		return nil, f.fault(n, "", "%d rules, at most %d are allowed", len(n.Content), maxSchemaList)
	}
	var out []rule
	for _, c := range n.Content {
		var r rule
		err := f.mapping(c, "a rule", fields{
			"path": f.paths(&r.path),
			"is": func(n *yaml.Node) error {
				v, err := f.text(n)
				if _, ok := kindBytes[v]; err == nil && !ok {
					err = f.fault(n, "array, object, string, number, bool, null or any", "unknown kind of value %q", v)
				}
				r.is = v
				return err
			},
			"equals": func(n *yaml.Node) (err error) { r.equals, err = f.list(n); return err },
		})
		if err == nil && r.path == nil {
			err = f.fault(c, "add `path: PATH`", "the rule names no path")
		}
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func (f schemaFile) roles(n *yaml.Node) (map[string]string, error) {
	if err := f.plain(n, yaml.MappingNode, "a mapping of the file's roles"); err != nil {
		return nil, err
	}
	if len(n.Content) > 2*maxSchemaList {
		return nil, f.fault(n, "", "%d roles, at most %d are allowed", len(n.Content)/2, maxSchemaList)
	}
	out := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, err := f.text(n.Content[i])
		if err != nil {
			return nil, err
		}
		v, err := f.text(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		if _, ok := roleWords[v]; !ok {
			words := make([]string, 0, len(roleWords))
			for w := range roleWords {
				words = append(words, w)
			}
			slices.Sort(words)
			return nil, f.fault(n.Content[i+1], "use "+strings.Join(words, ", "), "unknown role %q", v)
		}
		if _, dup := out[lower(k)]; dup {
			return nil, f.fault(n.Content[i], "remove one of them", "role %q stands twice", k)
		}
		out[lower(k)] = v
	}
	return out, nil
}
