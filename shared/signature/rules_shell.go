package signature

var gitRules = []rule{
	{
		name: "git.command", lits: []string{"is not a git command"}, re: `^git: '.+' is not a git command`, conf: 0.95,
		yes: []string{"git: 'frob' is not a git command. See 'git --help'."},
		no:  []string{"git version 2.47.3"},
	},
	{
		name: "git.conflict", lits: []string{"conflict (", "konflikt (", "conflit ("}, re: `^(?:CONFLICT|KONFLIKT|CONFLIT) ?\(`, conf: 0.96,
		yes: []string{"CONFLICT (content): Merge conflict in f"},
		no:  []string{"Automatic merge failed; fix conflicts and then commit the result."},
	},
	{
		name: "git.rejected", lits: []string{"rejected]"}, re: `^\s*! \[(?:remote )?rejected\]`, conf: 0.95,
		yes: []string{" ! [rejected]        main -> main (fetch first)", " ! [remote rejected] main -> main (protected branch hook declined)"},
		no:  []string{"error: failed to push some refs to 'x'"},
	},
	{
		name: "git.access", lits: []string{"permission denied (", "host key verification failed", "could not resolve hostname", "ssh: connect", "permission to", "repository not found", "authentication failed", "remote: error", "remote: fatal", "smudge error", "error downloading object"}, re: `^Error downloading object|Smudge error|Permission denied \((?:publickey|password|keyboard)|Host key verification failed|^ssh: |^remote: (?:error|fatal|ERROR|Permission|Repository not found|HTTP Basic|Support for password|Invalid)|^ERROR: (?:Repository not found|Permission to)`, conf: 0.95,
		yes: []string{"git@github.com: Permission denied (publickey).", "ssh: Could not resolve hostname github.com: Temporary failure in name resolution", "remote: Repository not found."},
		no:  []string{"fatal: Could not read from remote repository.", "remote: Counting objects: 100%"},
	},
	{
		name: "git.fatal", lits: []string{"fatal: ", "schwerwiegend: ", "fatal : "}, re: `^(?:[Ff]atal|Schwerwiegend) ?: `, not: `Could not read from remote repository|^fatal: the remote end hung up|fatal error|[Nn]eed to specify how to reconcile`, conf: 0.93,
		yes: []string{"fatal: unable to access 'http://x/': Failed to connect to x port 80", "fatal: not a git repository (or any of the parent directories): .git", "fatal: couldn't find remote ref refs/tags/x"},
		no:  []string{"fatal: Could not read from remote repository."},
	},
	{
		name: "git.error", lits: []string{"error: "}, re: `^error: (?:Your local changes|pathspec|cannot |could not apply|unable to|RPC failed|object file|patch failed|The following untracked|src refspec|failed to push|remote |commit |Pulling|Merging|insufficient|inflate|invalid|You have|short read|gpg|no such|update_ref|corrupt)`, not: `failed to push some refs`, need: "git|commit|branch|merge|checkout|refs|rebase|patch|local changes|pathspec|upstream|remote", conf: 0.9,
		detail: detail{how: after, re: `^(?:\t(\S.+)|fatal: .+)`, lines: 2},
		yes:    []string{"error: Your local changes to the following files would be overwritten by merge:", "error: pathspec 'nope' did not match any file(s) known to git", "error: could not apply 1a2b3c4... fix", "error: src refspec main does not match any"},
		no:     []string{"error: failed to push some refs to 'x'"},
	},
	{
		name: "git.nothing", lits: []string{"nothing to commit", "nothing added to commit", "no changes added to commit"}, re: `^(?:nothing (?:to commit|added to commit)|no changes added to commit)`, conf: 0.72,
		yes: []string{`nothing to commit (create/copy files and use "git add" to track)`, "nothing to commit, working tree clean"},
		no:  []string{"On branch main"},
	},
	{
		name: "git.other", lits: []string{"fatal: ", "error: ", "batch response:", "smudge"}, re: `^fatal: |^error: failed to push|^error: No valid patches|^error: \S+: |^batch response: |smudge filter lfs failed`, conf: 0.7,
		yes: []string{"fatal: Could not read from remote repository."},
		no:  []string{"Already up to date."},
	},
}

// programRules read what programs say after their own name: for logs of a shell
// alone, as in other logs that is no failure.
var programRules = []rule{
	{
		name: "shell.program", lits: []string{": "}, re: `^(?:/\S+/)?[a-z][\w.+-]*: \S`, not: noFailure + `|^(?:https?|note|info|warning|debug|usage|hint|total|real|user|sys|ok)\b`, conf: 0.5,
		yes: []string{"grep: Unmatched ( or \\(", "sed: -e expression #1, char 3: unterminated `s' command"},
		no:  []string{"warning: x", "usage: cp [-R] a b", "ok: 3"},
	},
}

// sysErrors are what strerror and shells say, at the end of a line.
const sysErrors = `(?:[Nn]o such file or directory|[Pp]ermission denied|No space left on device|Is a directory|Not a directory|File exists|Operation not permitted|Read-only file system|Connection refused|Connection reset by peer|Connection timed out|Argument list too long|Text file busy|Exec format error|cannot execute binary file(?:: Exec format error)?|Device or resource busy|Too many open files|Input/output error|Broken pipe|Disk quota exceeded|Directory not empty|Cannot allocate memory|Host is unreachable|Network is unreachable|File name too long|Invalid argument|Bad file descriptor|Stale file handle|required file not found|Datei oder Verzeichnis nicht gefunden|Keine Berechtigung|Aucun fichier ou dossier de ce type|Permission non accordée|No existe el fichero o el directorio|Permiso denegado|command not found|not found|bad interpreter|unbound variable|parameter not set|Name or service not known)`

var shellRules = []rule{
	{
		name: "shell.check", lits: []string{"sc1", "sc2", "sc3"}, re: `\bSC\d{4}(?: \((?:error|warning|info|style)\))?: |: (?:error|warning|note): .* \[SC\d{4}\]$`, conf: 0.89,
		detail: detail{how: before, re: `^In (\S+) line \d+:`, lines: 12},
		yes:    []string{"     ^-- SC2086 (info): Double quote to prevent globbing and word splitting."},
		no:     []string{"  https://www.shellcheck.example/wiki/SC2154 -- x is referenced but not assigned."},
	},
	{
		name: "shell.command_not_found", lits: []string{"not found", "is not recognized", "no such command", "unknown command: ", "nicht gefunden", "introuvable", "no encontrada"}, re: `(?:Kommando|Befehl) nicht gefunden|commande introuvable|orden no encontrada|^(?:.*\b(?:ba|z|k|da|fi)?sh(?:\.exe)?: |\S+\.sh: |/\S+: |[\w.-]+: )?(?:line \d+: |\d+: )?.*(?:command not found|: not found)(?:: \S+)?$|is not recognized as (?:an internal|the name|a name)|^Unknown command: `, not: `(?i)^\s*(?:error|npm|warning|go|#|>)|: \d+ not found|modules? not found`, conf: 0.88,
		yes: []string{"bash: line 1: helmfile: command not found", "/bin/sh: 1: foo: not found", "zsh: command not found: foo", "'foo' is not recognized as an internal or external command,", "sh: tsc: not found"},
		no:  []string{"npm error 404 Not Found", "page not found here"},
	},
	{
		name: "shell.killed", lits: []string{"segmentation fault", "killed", "bus error", "aborted (core", "illegal instruction", "floating point exception", "stack smashing", "double free", "core dumped", "addresssanitizer", "terminated"}, re: `Segmentation fault|^\s*(?:.*: (?:line )?\d+:\s+\d+ )?(?:Killed|Terminated)\b|Bus error|Aborted \(core|Illegal instruction|Floating point exception|stack smashing|double free|ERROR: AddressSanitizer|core dumped`, not: `Killed: \d`, conf: 0.8,
		yes: []string{"Segmentation fault (core dumped)", "run.sh: line 3: 12345 Killed                  ./app"},
		no:  []string{"killed 3 birds"},
	},
	{
		name: "shell.syntax", lits: []string{"syntax error", "unexpected end of file", "bad substitution", "unexpected token", "unmatched", "unbound variable", "parameter not set"}, re: `^\S+: (?:line \d+: |\d+: |-c: line \d+: )?(?:\S+: )?(?:[Ss]yntax error|unexpected EOF|[Bb]ad substitution|unbound variable|parameter not set|Unterminated)|^\S+: line \d+: \S+: (?:unbound variable|bad substitution)`, conf: 0.9,
		yes: []string{"run.sh: line 3: syntax error near unexpected token `fi'", "run.sh: line 9: TOKEN: unbound variable", "sh: 1: Syntax error: Unterminated quoted string"},
		no:  []string{"SyntaxError: x"},
	},
	{
		name: "shell.net", lits: []string{"curl: (", "wget: ", "ssh: ", "rsync error", "rsync: ", "scp: ", "nc: ", "failed: connection", "unable to resolve host"}, re: `^curl: \(\d+\) |^wget: (?:unable|server|bad|can't|error)|^ssh: |^rsync(?: error)?: |^scp: |^nc: |failed: Connection |unable to resolve host`, conf: 0.88,
		yes: []string{"curl: (7) Failed to connect to 127.0.0.1 port 8080 after 0 ms: Couldn't connect to server", "wget: unable to resolve host address 'x'"},
		no:  []string{"curl 8.0"},
	},
	{
		name: "shell.errno", lits: []string{"no such file or directory", "permission denied", "no space left on device", "is a directory", "not a directory", "file exists", "operation not permitted", "read-only file system", "connection refused", "connection reset", "connection timed out", "argument list too long", "text file busy", "exec format error", "cannot execute", "resource busy", "too many open files", "input/output error", "quota exceeded", "directory not empty", "cannot allocate memory", "is unreachable", "name too long", "bad interpreter", "name or service not known", "verzeichnis nicht gefunden", "keine berechtigung", "aucun fichier", "non accord", "no existe el fichero", "permiso denegado"},
		re: `^(?:\S+(?: \S+){0,4}: ).*` + sysErrors + `(?:\.| \([^)]*\))?$|^sudo: `, not: `(?i)^\s*(?:warning|info|debug|note|npm|tar: Removing)`, conf: 0.78,
		yes: []string{"dd: error writing '/dev/full': No space left on device", "bash: ./run.sh: Permission denied", "cat: nope.txt: No such file or directory", "mkdir: cannot create directory 'x': File exists"},
		no:  []string{"warning: x: No such file or directory", "no such file or directory"},
	},
	{
		name: "shell.usage", lits: []string{"invalid option", "unrecognized option", "missing operand", "illegal option", "unknown option", "extra operand", "cannot stat", "cannot access", "cannot remove", "cannot open", "cannot create", "invalid argument"}, re: `^[\w./-]+: (?:invalid option|unrecognized option|missing operand|illegal option|extra operand|unknown option|cannot (?:stat|access|remove|open|create)|.*[Ii]nvalid argument)`, conf: 0.78,
		yes: []string{"ls: invalid option -- 'y'", "cp: missing operand"},
		no:  []string{"usage: cp"},
	},
}
