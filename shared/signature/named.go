package signature

import "strings"

// ToolName is the name under which the rules know a tool: golang is go. One they do not
// know keeps its name, in lower case; "" stays "". What is no name is of kind Invalid.
func ToolName(name string) (string, error) {
	_, name, err := toolNamed(rules(), name)
	return name, err
}

// ToolsIn are the tools that a person's words name, in their order and at most four. Only
// whole words count: cargo is not go. An English word that is also a tool's name (go, make)
// is taken for the tool, which costs whoever looks a symptom up one look more.
func ToolsIn(words string) []string {
	tb := rules()
	var out []string
	seen := map[string]bool{}
	if len(words) > maxLine {
		words = cutRune(words, maxLine)
	}
	for _, w := range splitWords(strings.ToLower(words)) {
		tl, ok := tb.byName[w]
		if !ok || tl.own || tl.ci || strings.HasSuffix(tl.name, "-late") || seen[tl.name] {
			continue
		}
		seen[tl.name] = true
		if out = append(out, tl.name); len(out) == maxToolsIn {
			break
		}
	}
	return out
}

const maxToolsIn = 4
