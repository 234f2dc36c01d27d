package lesson

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/lazy"
)

// status is how a command ended, as far as its result tells.
type status int

const (
	unknown status = iota
	passed
	failed
	notRun  // refused, interrupted, or still running
	cleared // what was looked for in its output is not there
)

// notRunHeads begin results of commands that were refused, cut off, or go on.
var notRunHeads = []string{
	"The user doesn't want to", "[Request interrupted", "Request interrupted", "<tool_use_error>", "Command running in background",
	"Process running with session ID", "Permission to use", "Claude requested permissions", "This command requires approval",
	"Command aborted", "Command timed out", "command timed out", "exec command rejected", "execution error", "exec_command failed",
	"failed to parse function arguments", "patch rejected", "Tool execution was cancelled", "[Tool use interrupted", "Error: Permission",
	"<status>running</status>", "User aborted", "aborted by user", "The user rejected", "Operation cancelled", "Cancelled:",
}

// Lines by which harnesses say how a command ended: before its output, as
// Claude Code, Codex and Gemini do, or behind it, as pi does.
var (
	headExit = lazy.MustCompile(`^(?:Error: )?(?:Exit code:? |Process exited with code |exit status |Command failed with exit code |Exit Code: )(-?\d{1,5})\b`)
	tailExit = lazy.MustCompile(`^\s*(?:Command exited with code |Exit Code: |Process exited with code |\[?[Ee]xit(?:ed with)? code:? ?|Process Group PGID|<exit_code>|\(exit code )(-?\d{1,5})\)?\]?(?:</exit_code>)?\s*$`)
	// A line of the agent's own: `; echo "exit: $?"`.
	echoExit = lazy.MustCompile(`(?i)^\W*(?:[a-z_]+[ _-]?)?(?:exit(?:[ _-]?(?:code|status))?|rc|ret|status|code|result)\W{1,4}(\d{1,3})\W*$`)
)

// Frame lines of harnesses, that are no output.
var frameHeads = []string{"Wall time:", "Chunk ID:", "Original token count:", "Total output lines:", "Output:", "Command:", "Directory:", "Stdout:"}

var frameTails = []string{"Signal:", "Background PIDs:", "Process Group PGID:", "Error: (none)", "Shell cwd was reset to ", "<shell_metadata>", "<bash_metadata>"}

const maxFrameLines = 10

// framed is a result without what its harness wrote around it.
type framed struct {
	from, to int    // of the command's own output
	code     string // exit code; "" where nothing says it
}

// frame takes a result apart.
func frame(text string) framed {
	f := framed{to: len(text)}
	for range maxFrameLines {
		line, end := lineAt(text, f.from)
		trim := strings.TrimSpace(line)
		if m := headExit.FindStringSubmatch(trim); m != nil && f.code == "" {
			f.code = m[1]
			f.from = end
			continue
		}
		if !hasPrefix(trim, frameHeads) {
			break
		}
		if label, rest, ok := strings.Cut(trim, ": "); ok && (label == "Stdout" || label == "Output") && rest != "(empty)" {
			f.from += strings.Index(line, label) + len(label) + len(": ")
			break
		}
		f.from = end
		if trim == "Output:" {
			break
		}
	}
	for range 6 {
		start := strings.LastIndexByte(strings.TrimRight(text[f.from:f.to], "\n\r \t"), '\n') + 1 + f.from
		line := strings.TrimSpace(text[start:f.to])
		m := tailExit.FindStringSubmatch(line)
		if m == nil && !hasPrefix(line, frameTails) {
			break
		}
		if m != nil && f.code == "" {
			f.code = m[1]
		}
		f.to = start
		if start == f.from {
			break
		}
	}
	f.to = max(f.to, f.from)
	return f
}

func hasPrefix(s string, of []string) bool {
	for _, h := range of {
		if strings.HasPrefix(s, h) {
			return true
		}
	}
	return false
}

// plainLines is a text without colours and carriage returns at line ends; blanks
// stand in their places, so that offsets stay.
func plainLines(s string) string {
	if !strings.ContainsAny(s, "\x1b\r") {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", " \n")
	return colour.ReplaceAllStringFunc(s, func(x string) string { return strings.Repeat(" ", len(x)) })
}

var colour = lazy.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

func lineAt(s string, from int) (line string, end int) {
	if k := strings.IndexByte(s[from:], '\n'); k >= 0 {
		return s[from : from+k], from + k + 1
	}
	return s[from:], len(s)
}

// refusedOrRunning tells results of commands that did not run to their end.
func refusedOrRunning(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	if hasPrefix(text, notRunHeads) {
		return true
	}
	tail := text[max(0, len(text)-200):]
	return strings.Contains(tail, "[Request interrupted by user") || strings.Contains(tail, "Command aborted") || strings.HasPrefix(strings.TrimSpace(lastLine(tail)), "Command timed out after")
}

func lastLine(s string) string {
	s = strings.TrimRight(s, " \t\r\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// Lines by which tools say that they passed, where the exit code is not to be
// had. Each is printed at the end, and not when the tool fails, or a line of
// failLine contradicts it.
var successLine = alternatives(
	`^ok  ?\t`, `^ok +[\w./-]+/`, `^PASS$`, `^OK \(`, `^OK$`, `^test result: ok`, // go, phpunit, unittest, cargo
	`\b[1-9]\d* pass(?:ed|ing)\b`, `\b0 failures\b`, `\b0 failed\b`, `^[#ℹ] fail 0$`, `\b100% tests passed`, `Passed!`, // pytest, jest, mocha, rspec, node, ctest, dotnet
	`All (?:\d+ )?(?:tests|checks|files|matched files)\b.* (?:pass|use|format)`, `All checks passed`, `Success: no issues`, `\b\d+ files? (?:would be )?left unchanged`,
	`^0 issues`, `\b0 errors\b`, `\b0 Error\(s\)`, `\b[Nn]o (?:issues|errors|problems|lint errors) found`, `Checked \d+ files? .*No fixes`,
	`BUILD SUCCESS`, `Build succeeded`, `Finished .*(?:profile|target)`, `[Cc]ompiled (?:successfully|with warnings)`, `\b[Bb]uilt in \d`, `Done in \d`,
	`[Ss]uccessfully (?:built|tagged|installed|compiled|deployed|rebased|uninstalled)`, `naming to \S+(?: \S+)? done$`,
	`\badded \d+ packages?`, `\bup to date\b`, `found 0 vulnerabilities`, `Already up[ -]to[ -]date`, `Everything up-to-date`,
	`Apply complete!`, `No changes\. (?:Your )?[Ii]nfrastructure`, `Success! The configuration is valid`, `Initialized? complete|successfully initialized`,
	`\b[Ee][Xx][Ii][Tt](?: code)?[:=] ?0$`,
)

// alternatives is one expression over the lines of a text.
func alternatives(of ...string) *lazy.Regexp {
	for i, x := range of {
		if rest, ok := strings.CutPrefix(x, "^"); ok {
			x = `^[ \t]*` + rest
		}
		if rest, ok := strings.CutSuffix(x, "$"); ok {
			x = rest + `[ \t]*$`
		}
		of[i] = x
	}
	return lazy.MustCompile(`(?m)(?:` + strings.Join(of, "|") + `)`)
}

// failLine tells that something failed, whatever else the output says: what
// tools print once, at the end, and never when they pass.
var failLine = alternatives(
	`^--- FAIL`, `^FAIL\b`, `^FAILED\b`, `^test result: FAILED`, `ERROR task failed`, `BUILD FAIL`, `Build failed`, `Build FAILED`,
	`\b[1-9]\d* (?:failed|failing|errors?|failures?|problems?)\b`, `\b[1-9]\d* Error\(s\)`, `^[#ℹ] fail [1-9]`, `Tests? Failed`, `Failed!`,
	`^error(?:\[E\d|: could not compile)`, `error TS\d+`, `^fatal:`, `panic:`, `^make(?:\[\d+\])?: \*\*\* `, `^ninja: build stopped`,
	`npm (?:ERR!|error)`, `ELIFECYCLE`, `[Ff]ailed to compile`, `Command failed`, `✖ [1-9]`, `^ERROR: failed to (?:solve|build)`, `^FAILURE: `,
	`^Segmentation fault`, `^Killed$`, `command not found$`,
)

// noFailure are what commands say that had nothing to do.
var noFailure = []string{"nothing to commit", "no changes added to commit", "nothing added to commit", "Everything up-to-date", "no test files to run"}

// nothingToDo tells a command that exits with an error and did not fail.
func nothingToDo(body string) bool {
	tail := body[max(0, len(body)-512):]
	for _, s := range noFailure {
		if strings.Contains(tail, s) {
			return true
		}
	}
	return false
}

// endsWithBanner says that an output ends with the line by which a script
// runner names the command that it runs, and that the command then said nothing, as
// it does when it passes.
func endsWithBanner(body string) bool {
	for range 8 {
		line := strings.TrimSpace(lastLine(body))
		switch {
		case line == "Waiting for the debugger to disconnect..." || line == "Debugger attached.":
			body = strings.TrimRight(body, " \t\r\n")
			body = body[:len(body)-len(lastLine(body))]
			continue
		case strings.HasPrefix(line, "> ") || strings.HasPrefix(line, "$ "):
			ps := parseShell(line[2:])
			if len(ps) == 0 {
				return false
			}
			t := taskOf(&ps[len(ps)-1])
			return allSilent([]task{t})
		}
		return false
	}
	return false
}

// saidExit is the exit code that the agent had its shell print at the end.
func saidExit(text string) (code string, ok bool) {
	if line := strings.TrimSpace(lastLine(text)); line != "" && len(line) <= 3 && strings.Trim(line, "0123456789") == "" {
		return line, true
	}
	for range 3 {
		line := lastLine(text)
		if m := echoExit.FindStringSubmatch(line); m != nil {
			return m[1], true
		}
		k := strings.LastIndex(text, line)
		if k <= 0 {
			break
		}
		text = text[:k]
	}
	return "", false
}

// asksExit says that the command prints its own exit code.
func asksExit(command string) bool {
	return strings.Contains(command, "$?") || strings.Contains(command, "PIPESTATUS") || strings.Contains(command, "LASTEXITCODE")
}
