package questions

import (
	"bytes"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Marshal is the set as a question file. An unchanged set gives the bytes it
// was parsed from; a changed one keeps people's order of fields and questions
// and the comments of every entry that stays. Parse of the result equals s.
func (s Set) Marshal() []byte {
	var old Set
	doc := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
	if s.src != nil {
		if p, err := Parse("", s.src); err == nil {
			if p.Equal(s) {
				return bytes.Clone(s.src)
			}
			var n yaml.Node
			if yaml.Unmarshal(s.src, &n) == nil && n.Kind == yaml.DocumentNode {
				old, doc = p, &n
			}
		}
	}
	root := doc.Content[0]
	set(root, "project", old.Project == s.Project, true, func() *yaml.Node { return scalar(s.Project) })
	set(root, "sources", slices.Equal(old.Sources, s.Sources), len(s.Sources) > 0, func() *yaml.Node {
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, v := range s.Sources {
			n.Content = append(n.Content, scalar(v))
		}
		return n
	})
	sameExport := old.NoExport == s.NoExport
	set(root, "export", sameExport, s.NoExport || sameExport && find(root, "export") != nil, func() *yaml.Node { return boolean(!s.NoExport) })
	set(root, "queries", slices.Equal(old.Queries, s.Queries), true, func() *yaml.Node { return s.queriesNode(old, find(root, "queries")) })
	same := s.Synthesis != nil && old.Synthesis != nil && *s.Synthesis == *old.Synthesis
	set(root, "synthesis", same, s.Synthesis != nil, func() *yaml.Node { return queryNode(*s.Synthesis, "") })

	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		panic("questions: encode: " + err.Error()) // scalars, lists and mappings of our own always encode
	}
	return b.Bytes()
}

// queriesNode builds the list anew, reusing the node of every entry that has
// not changed and the comments of one that was reworded.
func (s Set) queriesNode(old Set, was *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	if was != nil && was.Kind == yaml.SequenceNode {
		n.HeadComment, n.LineComment, n.FootComment = was.HeadComment, was.LineComment, was.FootComment
	}
	for _, q := range s.Queries {
		item := queryNode(q, q.ID)
		if i := old.index(q.ID); i >= 0 && was != nil {
			if old.Queries[i] == q {
				item = was.Content[i]
			} else {
				item.HeadComment, item.LineComment, item.FootComment = was.Content[i].HeadComment, was.Content[i].LineComment, was.Content[i].FootComment
			}
		}
		n.Content = append(n.Content, item)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	return n
}

func queryNode(q Query, id string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if id != "" {
		n.Content = append(n.Content, scalar("id"), scalar(id))
	}
	n.Content = append(n.Content, scalar("question"), scalar(q.Question))
	if q.ExitGate {
		n.Content = append(n.Content, scalar("exit_gate"), boolean(true))
	}
	return n
}

func boolean(v bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}
}

func scalar(v string) *yaml.Node {
	var n yaml.Node
	n.SetString(v)
	return &n
}

func find(root *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == key {
			return root.Content[i+1]
		}
	}
	return nil
}

// set brings one field of the file to its value: left alone when it is the
// same, replaced, appended, or removed when it is not wanted.
func set(root *yaml.Node, key string, same, wanted bool, value func() *yaml.Node) {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != key {
			continue
		}
		switch {
		case !wanted:
			root.Content = slices.Delete(root.Content, i, i+2)
		case !same:
			root.Content[i+1] = value()
		}
		return
	}
	if wanted {
		root.Content = append(root.Content, scalar(key), value())
	}
}
