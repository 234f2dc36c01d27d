package transcript

// Formats that detection can name. Of those that are not read
// Turns yields nothing, and Stats.Unsupported gives the name.
const (
	FormatClaude   = "claude-code"
	FormatPi       = "pi"
	FormatFlat     = "flat"
	FormatMarkdown = "markdown"
	FormatText     = "text" // paragraphs without headings
	FormatCodex    = "codex"
	FormatGemini   = "gemini"
	FormatCursor   = "cursor"

	FormatAider    = "aider"
	FormatOpenAI   = "openai-messages"
	FormatShareGPT = "sharegpt"
	FormatTRL      = "trl"
	FormatChatGPT  = "chatgpt-export"
	FormatClaudeAI = "claude-ai-export"
	FormatOpenCode = "opencode-export"
	FormatLoop     = "agent-loop"
	FormatCline    = "cline"       // and Roo
	FormatGit      = "git-log"     // commits, as `mem learn --git` writes them
	FormatBundle   = "git-bundle"  // packed: learn makes a git-log of one in the inbox
	FormatOutput   = "tool-output" // that Claude Code wrote into a file of its own
	FormatUnknown  = "unknown"
	FormatEmpty    = "empty"
)

// Hint says what cures a format that is known and not read; "" where nothing
// does.
func Hint(format string) string {
	if format == FormatBundle {
		return "mem learn reads a bundle, and so does learn in the bucket"
	}
	return ""
}

// Marker tags around every block of recalled memory that Mneme puts into a
// prompt. A block between them is Mneme's own output: it is cut out of the
// text that surrounds it, and a turn that is nothing else is Derived. The open
// tag may carry attributes: `<mneme-memory project="shop">`.
const (
	MarkerOpen  = "<mneme-memory"
	MarkerClose = "</mneme-memory>"
)

// DerivedFrontMatter is the front matter line by which a Markdown file says
// that Mneme wrote it; all its sections are Derived.
const DerivedFrontMatter = "generated_by: mneme"

// derivedFromKey is the front matter field that says the same by naming the node
// that a file was made of, as a skill does.
const derivedFromKey = "generated_from"
