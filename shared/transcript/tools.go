package transcript

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// targetKeys are the arguments that say what a tool call is about, the most
// telling first: a file, a command, a pattern, an address, then words.
var targetKeys = []string{
	"file_path", "notebook_path", "filePath", "absolute_path", "command", "cmd", "pattern", "query", "url", "uri",
	"path", "file", "dir_path", "description", "subject", "skill", "prompt", "title",
}

// target is the piece of a call's arguments that says what it is about.
func target(b []byte, input span, base int64) (memory.Piece, bool) {
	if !isObject(b, input) {
		return memory.Piece{}, false
	}
	ms, _ := members(b, input.s, nil)
	best := targetOf(b, ms)
	if !best.ok() {
		return memory.Piece{}, false
	}
	return piece(b, best, base), true
}

// targetOf is the value of the most telling argument.
func targetOf(b []byte, ms []member) span {
	best, rank := span{}, len(targetKeys)
	for _, m := range ms {
		if !isString(b, m.val) || m.val.e-m.val.s <= 2 {
			continue
		}
		for k, name := range targetKeys[:rank] {
			if string(m.key) == name {
				best, rank = m.val, k
				break
			}
		}
	}
	return best
}

// maxTargetBytes is how much of a target Tool.Target repeats: it is a label;
// the whole stands in the turn's piece.
const maxTargetBytes = 200

func label(s string) string {
	if len(s) <= maxTargetBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxTargetBytes], "")
}

var webName = strings.NewReplacer("_", "", "-", "")

// isWeb says that a tool brings text from the open web, where anybody can
// write.
func isWeb(tool string) bool {
	switch tool {
	case "Bash", "Read", "Edit", "Write", "Grep", "Glob", "bash", "read", "edit", "write", "":
		return false // nearly every result
	}
	t := webName.Replace(strings.ToLower(tool))
	for _, w := range []string{"webfetch", "websearch", "fetchurl", "readurl", "browser", "playwright", "puppeteer"} {
		if strings.Contains(t, w) {
			return true
		}
	}
	return strings.HasPrefix(t, "mcpfetch") || t == "fetch"
}

var ownCommand = lazy.MustCompile(`(?:^|[;&|(\n]\s*)(?:\S*/)?mem\s+(?:query|why|log|synthesis|question\s+show|skills?\s+(?:draft|list|show|diff))\b`)

// isOwn says that a tool's result is what Mneme itself recalled.
func isOwn(tool, target string) bool {
	return strings.HasPrefix(tool, "mcp__mneme") || strings.Contains(target, "mem") && ownCommand.MatchString(target)
}
