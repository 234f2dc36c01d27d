package lesson

import (
	"regexp"
	"strings"
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
	headExit = regexp.MustCompile(`^(?:Error: )?(?:Exit code:? |Process exited with code |exit status |Command failed with exit code |Exit Code: )(-?\d{1,5})\b`)
	tailExit = regexp.MustCompile(`^\s*(?:Command exited with code |Exit Code: |Process exited with code |\[?[Ee]xit(?:ed with)? code:? ?|Process Group PGID|<exit_code>|\(exit code )(-?\d{1,5})\)?\]?(?:</exit_code>)?\s*$`)
	// A line of the agent's own: `; echo "exit: $?"`.
	echoExit = regexp.MustCompile(`(?i)^\W*(?:[a-z_]+[ _-]?)?(?:exit(?:[ _-]?(?:code|status))?|rc|ret|status|code|result)\W{1,4}(\d{1,3})\W*$`)
)

// Frame lines of harnesses, that are no output.
var frameHeads = []string{"Wall time:", "Chunk ID:", "Original token count:", "Total output lines:", "Output:", "Command:", "Directory:", "Stdout:"}

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
		if !isFrame(trim) {
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
		if m == nil && !strings.HasPrefix(line, "Signal:") && !strings.HasPrefix(line, "Background PIDs:") && !strings.HasPrefix(line, "Process Group PGID:") && !strings.HasPrefix(line, "Error: (none)") {
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

func isFrame(line string) bool {
	for _, h := range frameHeads {
		if strings.HasPrefix(line, h) {
			return true
		}
	}
	return false
}

func lineAt(s string, from int) (line string, end int) {
	if k := strings.IndexByte(s[from:], '\n'); k >= 0 {
		return s[from : from+k], from + k + 1
	}
	return s[from:], len(s)
}

// refusedOrRunning tells results of commands that did not run to their end.
func refusedOrRunning(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	for _, h := range notRunHeads {
		if strings.HasPrefix(text, h) {
			return true
		}
	}
	tail := text[max(0, len(text)-200):]
	return strings.Contains(tail, "[Request interrupted by user") || strings.Contains(tail, "Command aborted") || strings.HasPrefix(strings.TrimSpace(lastLine(tail)), "Command timed out after")
}

func lastLine(s string) string {
	s = strings.TrimRight(s, " \t\r\n")
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// successLine tells that a tool passed, where its exit code is not to be had.
// Each is what the tool prints and does not print when it fails, or failLine
// contradicts it.
var successLine = regexp.MustCompile(`(?m)(?:^ok  ?\t|^\s*ok +[\w./-]+/|^PASS$|\b[1-9]\d* pass(?:ed|ing)\b|^0 issues|\b0 errors\b|\b[Nn]o (?:issues|errors|problems) found|BUILD SUCCESS|^test result: ok|^OK \(|^OK$|^\s*Finished .*(?:profile|target)|[Cc]ompiled successfully|✓ built in|[Bb]uilt in \d|All (?:tests|checks|files|matched files)\b.* (?:pass|use|format)|All checks passed|[Ss]uccessfully (?:built|tagged|installed|compiled|deployed)|Success: no issues|Build succeeded|up to date|Passed!|\badded \d+ packages|found 0 vulnerabilities|Checked \d+ files? .*No fixes|Done in \d)`)

// failLine tells that something failed, whatever else the output says: what
// tools print once, at the end, and never when they pass.
var failLine = regexp.MustCompile(`(?m)(?:^\s*--- FAIL|^FAIL\b|^\s*FAIL\s|ERROR task failed|\b[1-9]\d* (?:failed|failing|errors?|failures?|problems?)\b|BUILD FAIL|^test result: FAILED|^FAILED\b|^error(?:\[E\d|: could not compile)|npm (?:ERR!|error)|ELIFECYCLE|panic:|make(?:\[\d+\])?: \*\*\* |[Ff]ailed to compile|Build failed|Command failed|error TS\d+|✖ \d|Tests? Failed|^fatal:)`)

// saidExit is the exit code that the agent had its shell print at the end.
func saidExit(text string) (code string, ok bool) {
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
