package transcript

import (
	"embed"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/strictyaml"
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

	own           string // version: sha8 of the file; "" of an embedded one
	files         []string
	match         []rule
	conversations paths
	conv          struct{ id, cwd, branch, remote, time paths }
	messages      paths
	msg           struct{ role, text, time, id, parent, cwd, branch, tool, callID, failed paths }
	calls         struct{ list, id, name, arguments paths }
	roles         map[string]string
}

// Version tells two files of one name apart: the first eight hex digits of the
// sha256 of the file.
func (s *Schema) Version() string { return s.own }

// Rules says in words when a record is one of the schema's; all must hold.
func (s *Schema) Rules() []string {
	var out []string
	if len(s.files) > 0 {
		out = append(out, "the file is named "+strings.Join(s.files, " or "))
	}
	for _, r := range s.match {
		alternatives := make([]string, len(r.path))
		for i, keys := range r.path {
			alternatives[i] = strings.Join(keys, ".")
		}
		is := "is there"
		switch {
		case r.equals != nil:
			is = "is " + strings.Join(r.equals, " or ")
		case r.is != "" && r.is != "any":
			is = "is of kind " + r.is
		}
		out = append(out, strings.Join(alternatives, " or ")+" "+is)
	}
	return out
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
	// MaxSchemaBytes bounds a schema file; the embedded ones have under 2 KB.
	MaxSchemaBytes = 64 << 10
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
			if s, err = parseSchema(name+".yaml", b); err == nil {
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

var schemaName = lazy.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// reserved are the names of our own formats.
var reserved = []string{
	FormatClaude, FormatPi, FormatFlat, FormatMarkdown, FormatText, FormatCodex, FormatGemini, FormatCursor, FormatAider, FormatOpenAI, FormatShareGPT, FormatTRL,
	FormatChatGPT, FormatClaudeAI, FormatOpenCode, FormatLoop, FormatCline, FormatGit, FormatBundle, FormatUnknown, FormatEmpty,
}

// ValidSchemaName reports whether a user's schema may have this name: a-z, 0-9
// and "-", at most 40 characters, and no format of our own.
func ValidSchemaName(name string) bool {
	return schemaName.MatchString(name) && !slices.Contains(reserved, name)
}

// ParseSchema reads a schema; name stands in errors as "name:line". It is
// strict: what shared/strictyaml refuses, an unknown role or kind of value and
// the name of a format of our own are fault.Invalid, with the line.
func ParseSchema(name string, data []byte) (Schema, error) {
	s, err := parseSchema(name, data)
	if err == nil && !ValidSchemaName(s.Name) {
		err = fault.At(fault.Invalid, name, "choose another name", "%q is a format that is read without a schema", s.Name)
	}
	if err != nil {
		return Schema{}, err
	}
	s.own = string(memory.Sum(data))[:8]
	return s, nil
}

func parseSchema(name string, data []byte) (Schema, error) {
	f := schemaFile{strictyaml.File{Name: name, Noun: "schema", MaxBytes: MaxSchemaBytes}}
	root, err := f.Root(data)
	if err != nil {
		return Schema{}, err
	}
	var s Schema
	err = f.Mapping(root, "a schema", strictyaml.Fields{
		"name": func(n *strictyaml.Node) error {
			v, err := f.text(n, "name")
			if err == nil && !schemaName.MatchString(v) {
				err = f.Fault(n, `use a-z, 0-9 and "-", at most 40 characters`, "%q is no name of a format", v)
			}
			s.Name = v
			return err
		},
		"files": func(n *strictyaml.Node) (err error) {
			s.files, err = f.list(n, "files")
			for _, g := range s.files {
				if _, bad := path.Match(g, ""); bad != nil && err == nil {
					err = f.Fault(n, "write it as *.json", "%q is no file pattern", g)
				}
			}
			return err
		},
		"match":         func(n *strictyaml.Node) (err error) { s.match, err = f.rules(n); return err },
		"conversations": f.paths("conversations", &s.conversations),
		"conversation": func(n *strictyaml.Node) error {
			return f.Mapping(n, "conversation", strictyaml.Fields{
				"id": f.paths("id", &s.conv.id), "cwd": f.paths("cwd", &s.conv.cwd), "branch": f.paths("branch", &s.conv.branch),
				"remote": f.paths("remote", &s.conv.remote), "time": f.paths("time", &s.conv.time),
			})
		},
		"messages": f.paths("messages", &s.messages),
		"message": func(n *strictyaml.Node) error {
			return f.Mapping(n, "message", strictyaml.Fields{
				"role": f.paths("role", &s.msg.role), "text": f.paths("text", &s.msg.text), "time": f.paths("time", &s.msg.time), "id": f.paths("id", &s.msg.id),
				"parent": f.paths("parent", &s.msg.parent), "cwd": f.paths("cwd", &s.msg.cwd), "branch": f.paths("branch", &s.msg.branch),
				"tool": f.paths("tool", &s.msg.tool), "call_id": f.paths("call_id", &s.msg.callID), "error": f.paths("error", &s.msg.failed),
			})
		},
		"calls": func(n *strictyaml.Node) error {
			err := f.Mapping(n, "calls", strictyaml.Fields{
				"list": f.paths("list", &s.calls.list), "id": f.paths("id", &s.calls.id),
				"name": f.paths("name", &s.calls.name), "arguments": f.paths("arguments", &s.calls.arguments),
			})
			if err == nil && s.calls.list == nil {
				err = f.Fault(n, "add `list: PATH`", "calls names no list")
			}
			return err
		},
		"roles": func(n *strictyaml.Node) (err error) { s.roles, err = f.roles(n); return err },
	})
	switch {
	case err != nil:
		return Schema{}, err
	case s.Name == "":
		return Schema{}, f.Fault(root, "add `name: NAME`", "the schema names no format")
	case len(s.match) == 0:
		return Schema{}, f.Fault(root, "add `match:` with at least one rule", "nothing tells records of this format")
	case s.msg.role == nil || s.msg.text == nil:
		return Schema{}, f.Fault(root, "add `message:` with `role` and `text`", "the schema does not say where role and text are")
	}
	return s, nil
}

// schemaFile reads what a schema holds.
type schemaFile struct{ strictyaml.File }

// text reads a scalar as it stands: a key may begin with a space.
func (f schemaFile) text(n *strictyaml.Node, what string) (string, error) {
	if _, err := f.Text(n, what); err != nil {
		return "", err
	}
	return n.Value, nil
}

// list reads one text or a list of texts.
func (f schemaFile) list(n *strictyaml.Node, what string) (out []string, err error) {
	if n.Kind == strictyaml.Scalar {
		v, err := f.text(n, what)
		return []string{v}, err
	}
	if err := f.Plain(n, what, strictyaml.List, "text or a list of texts"); err != nil {
		return nil, err
	}
	if len(n.Content) == 0 {
		return nil, f.Fault(n, "", "%s is an empty list", what)
	}
	err = f.Sequence(n, what, maxSchemaList, func(c *strictyaml.Node) error {
		v, err := f.text(c, what)
		out = append(out, v)
		return err
	})
	return out, err
}

// paths reads one path or a list of alternatives.
func (f schemaFile) paths(what string, dst *paths) func(*strictyaml.Node) error {
	return func(n *strictyaml.Node) error {
		list, err := f.list(n, what)
		if err != nil {
			return err
		}
		for _, v := range list {
			keys := strings.Split(v, ".")
			if slices.Contains(keys, "") || len(keys) > maxPathKeys {
				return f.Fault(n, `join 1 to 16 keys by "."`, "%s: %q is no path", what, v)
			}
			*dst = append(*dst, keys)
		}
		return nil
	}
}

func (f schemaFile) rules(n *strictyaml.Node) (out []rule, err error) {
	err = f.Sequence(n, "match", maxSchemaList, func(c *strictyaml.Node) error {
		var r rule
		err := f.Mapping(c, "a rule", strictyaml.Fields{
			"path": f.paths("path", &r.path),
			"is": func(n *strictyaml.Node) error {
				v, err := f.text(n, "is")
				if _, ok := kindBytes[v]; err == nil && !ok {
					err = f.Fault(n, strictyaml.Words(kindBytes), "unknown kind of value %q", v)
				}
				r.is = v
				return err
			},
			"equals": func(n *strictyaml.Node) (err error) { r.equals, err = f.list(n, "equals"); return err },
		})
		if err == nil && r.path == nil {
			err = f.Fault(c, "add `path: PATH`", "the rule names no path")
		}
		out = append(out, r)
		return err
	})
	return out, err
}

func (f schemaFile) roles(n *strictyaml.Node) (map[string]string, error) {
	out := map[string]string{}
	err := f.Each(n, "roles", "a mapping of the file's roles", func(k, v *strictyaml.Node) error {
		role, err := f.text(k, "a role")
		if err != nil {
			return err
		}
		word, err := f.text(v, "role "+role)
		if err != nil {
			return err
		}
		if _, ok := roleWords[word]; !ok {
			return f.Fault(v, "use "+strictyaml.Words(roleWords), "unknown role %q", word)
		}
		if role = lower(role); out[role] != "" {
			return f.Fault(k, "remove one of them", "role %q stands twice", role)
		}
		if out[role] = word; len(out) > maxSchemaList {
			return f.Fault(k, "", "roles has more than %d entries", maxSchemaList)
		}
		return nil
	})
	return out, err
}
