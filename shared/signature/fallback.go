package signature

import "strings"

// infra are the CI rules that beat everything: what stopped the whole job.
func infra(tb *table, _ *tool) []*compiled { return tb.sets["ci"] }

// Confidence of what no tool's rule knows.
const (
	unhelpfulConf = 0.2
	lastLineConf  = 0.1
	paragraphConf = 0.2
	ciErrorConf   = 0.5
)

// fallback is used where no tool's rule has a hit: what a CI runner marked as an
// error, then the generic rules, then the last line.
func (t *text) fallback(tb *table, tl *tool, ci bool) choice {
	if ci {
		if hs := t.marked(); len(hs) > 0 {
			return choice{found: found{at: hs[len(hs)-1].at, hits: hs}, name: "ci.error", conf: ciErrorConf}
		}
	}
	for _, span := range t.spans() {
		if f, ok := t.run(tb.sets["late"], span[0], span[1], ci); ok {
			return choice{found: f}
		}
		if f, ok := t.run(tb.sets["generic"], span[0], span[1], ci); ok {
			return choice{found: f}
		}
	}
	if tl != nil && tl.name == "shell" {
		if f, ok := t.run(tb.sets["program"], 0, len(t.lines), false); ok {
			return choice{found: f}
		}
	}
	end := t.lastLine(t.to)
	if end < 0 {
		end = t.lastLine(len(t.lines))
	}
	if end < 0 {
		return choice{found: found{at: -1}, name: "none"}
	}
	if ci {
		return choice{found: found{at: t.startOfParagraph(end)}, name: "generic.paragraph", conf: paragraphConf}
	}
	return choice{found: found{at: end}, name: "generic.last_line", conf: lastLineConf}
}

// marked are the lines that a runner marked as errors, wrapper lines left out.
func (t *text) marked() []hit {
	var out []hit
	for i := range t.lines {
		l := &t.lines[i]
		if l.mark == isError && strings.TrimSpace(l.text) != "" && !wrapper().MatchString(l.text) && !unhelpful(l.text) && !t.passing(i) {
			out = append(out, hit{at: i})
		}
	}
	return out
}

// lastLine is the last line before end that says something; -1 where none does.
func (t *text) lastLine(end int) int {
	for i := end - 1; i >= 0; i-- {
		l := &t.lines[i]
		if l.mark == isNoise || l.mark == isGroup || strings.TrimSpace(l.text) == "" || wrapper().MatchString(l.text) || t.passing(i) {
			continue
		}
		return i
	}
	// Only wrapper lines: the last of them.
	for i := end - 1; i >= 0; i-- {
		if strings.TrimSpace(t.lines[i].text) != "" {
			return i
		}
	}
	return -1
}

// startOfParagraph goes up from i to the first line of its paragraph: scripts
// say what is wrong first and what to do after it.
func (t *text) startOfParagraph(i int) int {
	const longest = 8
	for j := i; j > 0 && i-j < longest; j-- {
		if l := &t.lines[j-1]; strings.TrimSpace(l.text) == "" || l.mark == isGroup || l.mark == isNoise || echo(strings.TrimSpace(l.text)) {
			return j
		}
	}
	return i
}

// runnerLines are what CI runners say about the exit of what they ran: never
// the root, whatever rule would take them.
const runnerLines = `Process completed with exit code \d+|(?:Error: )?The process '.*' failed with exit code|(?:Bash|PowerShell|Cmd\.exe) exited with code|Script failed with exit code|Npm failed with return code|Dotnet command failed with` +
	`|(?:ERROR: |error: )?Job failed: exit (?:code|status)|(?:ERROR: |error: )?Job failed: command terminated|(?:ERROR: )?script returned exit code|Build step '.*' (?:marked build as failure|changed build result)|Finished: (?:FAILURE|ABORTED|UNSTABLE|SUCCESS)` +
	`|(?:🚨 )?Error: The command (?:exited with status|was interrupted)|\^\^\^ \+\+\+|user command error: exit status|Exited with code(?: exit status)? \d+|CircleCI received exit code` +
	`|Executing the custom container implementation failed|\[OSDC\] Step script exited|Docker (?:pull|build|run) failed with exit code|Error: Process completed with exit code`

var runnerLine = lazy(`^\s*(?:` + runnerLines + `)`)

// wrapper matches what runners and shells say about the exit of what they ran,
// and what they do behind it.
var wrapper = lazy(`^\s*(?:` + runnerLines + `|(?:ERROR: |error: )?Job failed(?::| \()` +
	`|(?:g?make|mingw32-make)(?:\[\d+\])?: \*\*\* .*Error \d+|ninja: build stopped|npm (?:error|ERR!) (?:A complete log|Lifecycle script|code ELIFECYCLE)|\s*ELIFECYCLE|error Command failed with exit code` +
	`|\d{2}:\d{2}$|Post job cleanup|Cleaning up|Uploading artifacts|section_(?:start|end)|exit status \d+$|Got exit code|\+ exit \d+|FAIL(?:\t.*)?$|\[Pipeline\]|Build was aborted|Evaluate and upload test results` +
	`|Upload(?:ing|ed) .* to s3|(?:real|user|sys)\s+\d+m|Node\.js v\d+\.|Node(?:\.js)? \d+ (?:is|actions are) )`)

// unhelpful lines say that something failed and not what (Treeherder keeps such
// a list too).
func unhelpful(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) <= 4 || unhelpfulLine().MatchString(s)
}

var unhelpfulLine = lazy(`(?i)^(?:traceback \(most recent call last\):|return code:? \d+|exit (?:status|code):? \d+|exited with (?:code|status).*|errors?:?|failed!?|failure!?|fatal:?|build failed!?|tests? failed!?|command failed!?|command failed with exit code \d+\.?|command .* returned non-zero exit status \d+\.?|process exited with code \d+\.?|one or more containers failed to start\.?|an? (?:unknown |unexpected )?error (?:has )?occurr?ed\.?|see (?:above|log).*|aborting\.*|stop\.)$`)
