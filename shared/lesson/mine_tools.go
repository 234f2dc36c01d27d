package lesson

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// kind is what a tool of an agent is to the miner.
type kind int

const (
	kindOther kind = iota // nobody can say what it does
	kindShell
	kindLook // reads, plans, asks
)

// shellNames stand in the names of tools that run commands.
var shellNames = []string{"bash", "shell", "exec", "terminal", "run_command", "runcommand", "run_terminal_cmd", "execute_command", "cmd", "powershell"}

// lookNames stand in the names of tools that change nothing.
var lookNames = []string{
	"read", "grep", "glob", "search", "list", "ls", "find", "view", "fetch", "todo", "plan", "question", "ask", "think", "web", "browser_snapshot",
	"screenshot", "output", "get", "task_list", "tasklist", "taskcreate", "taskupdate", "taskget", "memory", "codebase", "diagnostics", "skill", "wait", "stdin", "notebookread",
}

// toolKind tells what a tool is by its name, as agents name theirs.
func toolKind(name string) kind {
	name = strings.ToLower(name)
	for _, look := range []string{"bashoutput", "bash_output", "killshell", "killbash", "write_stdin", "read_terminal"} {
		if name == look {
			return kindLook
		}
	}
	for _, w := range shellNames {
		if strings.Contains(name, w) {
			return kindShell
		}
	}
	for _, w := range lookNames {
		if strings.Contains(name, w) {
			return kindLook
		}
	}
	return kindOther
}

// commandOf is the command of a call: the target where that is whole, else the
// text, in which nested JSON leaves one level of escapes.
func commandOf(t *memory.Turn) string {
	const whole = 190 // a label of more bytes may be cut
	if n := len(t.Tool.Target); n > 0 && n < whole {
		return t.Tool.Target
	}
	return clip(strings.TrimSpace(plain(t)), maxCommandBytes)
}

// plain is the turn's text as its tool printed it.
func plain(t *memory.Turn) string {
	text := t.Text()
	if !nested(t) || !strings.Contains(text, `\`) {
		return text
	}
	return unescaper.Replace(text)
}

// nested tells a text that stood as JSON inside a JSON string: its line ends
// are three bytes there. A single line does not tell.
func nested(t *memory.Turn) bool {
	for i := 1; i < len(t.Pieces); i++ {
		if t.Pieces[i].Start-t.Pieces[i-1].End == 3 {
			return true
		}
	}
	return false
}

// unescaper never changes the number of lines.
var unescaper = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\t`, "\t", `\/`, "/", `\u001b`, "\x1b", `\u001B`, "\x1b", `\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\r`, "")
