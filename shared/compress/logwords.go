package compress

// level is how much a line says that something failed.
type level uint8

const (
	info   level = iota
	warn         // a warning
	weak         // a word that failures are told with
	strong       // the form in which programs announce a failure
)

// words are single words, in lower case, by what they say. A word of failWords
// counts as strong where it stands as programs announce failures: in capitals, at
// the beginning of the message, or with one of : ! [ ] behind it; else as weak.
var words = func() map[string]wordClass {
	m := map[string]wordClass{}
	for _, w := range failWords {
		m[w] = fails
	}
	for _, w := range doubtWords {
		m[w] = doubts
	}
	for _, w := range warnWords {
		m[w] = warns
	}
	for _, w := range alwaysWords {
		m[w] = always
	}
	for _, w := range countedWords {
		m[w] |= counted
	}
	for _, w := range levelWords {
		m[w] |= levelWord
	}
	for _, w := range closingWords {
		m[w] |= closing
	}
	return m
}()

type wordClass uint8

const (
	fails wordClass = 1 << iota
	doubts
	warns
	always    // strong wherever it stands
	counted   // with a number beside it, part of a summary
	levelWord // names a level: the line is a log's
	closing   // endings are told with it
)

// failWords announce a failure: levels, verbs of results, and the same in other
// languages that compilers and runtimes are translated into.
var failWords = []string{
	"error", "errors", "err", "errored", "fail", "fails", "failed", "failing", "failure", "failures", "fatal", "panic", "panicked", "exception", "exceptions",
	"traceback", "abort", "aborted", "aborting", "assertion", "assert", "crash", "crashed", "critical", "severe", "emerg", "unrecoverable", "fault",
	"ошибка", "Ошибка", "ошибки", "сбой", "Сбой", "fehler", "fehlgeschlagen", "erreur", "erreurs", "échec", "errore", "erro", "falha", "fout", "fallo", "błąd", "hata", "virhe", "fel", "chyba", "hiba",
	"错误", "錯誤", "失败", "失敗", "异常", "エラー", "오류", "실패",
}

// alwaysWords are said of failures only.
var alwaysWords = []string{
	"panicked", "segfault", "segv", "sigsegv", "sigabrt", "sigkill", "sigbus", "sigill", "oomkilled", "oomkill", "coredump", "deadlock", "crashloopbackoff", "imagepullbackoff", "errimagepull",
	"createcontainerconfigerror", "createcontainererror", "runcontainererror", "failedscheduling", "failedmount", "failedattachvolume", "elifecycle", "eresolve", "enoent", "eacces", "eperm",
	"econnrefused", "econnreset", "etimedout", "enotfound", "eaddrinuse", "eintegrity", "epipe", "eexist", "enospc", "enomem", "emfile", "ehostunreach", "etarget", "enotempty",
	"eisdir", "enotdir", "erofs", "eio", "ecanceled", "einval", "ebusy", "eusage", "ebadplatform", "enoversions", "epublishconflict", "eotp", "eneedauth",
}

// doubtWords stand in messages of failures and elsewhere.
var doubtWords = []string{
	"cannot", "unable", "denied", "refused", "timeout", "timed", "timedout", "missing", "undefined", "unexpected", "invalid", "mismatch", "mismatched", "unresolved", "conflict", "conflicts",
	"canceled", "cancelled", "canceling", "cancelling", "dirty", "unauthorized", "unauthenticated", "forbidden", "exceeded", "exceeds", "rejected", "unreachable", "unsupported", "illegal", "corrupt", "corrupted", "broken",
	"incompatible", "terminated", "terminating", "killed", "backoff", "evicted", "unhealthy", "overflow", "duplicate", "lost", "hang", "hung", "stuck", "nonexistent", "malformed", "unrecognized", "unrecognised",
	"unknown", "expected", "actual", "received", "required", "undeclared", "redefinition", "redeclared", "ambiguous", "uncaught", "unhandled", "unmet", "unsatisfiable", "unsatisfied", "insufficient", "exhausted",
	"disconnected", "notfound", "dumped", "violation", "violates", "violated", "stalled", "outdated", "expired", "bad", "nil", "null", "deprecated", "rollback", "oom", "interrupted",
	"inconsistent", "disallowed", "nonzero", "wrong", "could", "couldn", "can", "must", "no", "not", "never", "unused", "stopped",
}

// warnWords are levels below failure.
var warnWords = []string{"warning", "warnings", "warn", "warned", "wrn", "предупреждение", "warnung", "avertissement", "警告"}

// countedWords stand beside numbers in summaries of a run.
var countedWords = []string{
	"passed", "pass", "passing", "failed", "fail", "failing", "failures", "errors", "error", "skipped", "skip", "warnings", "warning", "tests", "test", "suites", "problems", "problem", "vulnerabilities",
	"examples", "assertions", "ok", "todo", "pending", "cancelled", "deselected", "xfailed", "destroyed", "succeeded", "tasks", "ran", "targets", "total", "unreachable",
}

// levelWords are the names of levels that loggers print.
var levelWords = []string{"info", "debug", "trace", "warn", "warning", "error", "fatal", "notice", "critical", "err", "dbg", "inf", "wrn"}

// weakest are doubt words so common that alone they say little: they count
// among the last of the weak.
var weakest = map[string]bool{
	"expected": true, "actual": true, "received": true, "required": true, "unknown": true, "bad": true, "nil": true, "null": true, "deprecated": true, "could": true, "can": true, "must": true,
	"no": true, "not": true, "never": true, "unused": true, "stopped": true, "missing": true, "duplicate": true, "lost": true, "expired": true, "outdated": true, "interrupted": true,
}

// forms begin a message, after its time and its colours, in the words of one tool.
var forms = []struct {
	text  string
	level level
}{
	{"##[error]", strong}, {"::error", strong}, {"##[warning]", warn}, {"::warning", warn},
	{"npm ERR!", strong}, {"npm error", strong}, {"ERR!", strong}, {"ERR_", strong}, {"npm WARN", warn}, {"npm warn", warn},
	{"--- FAIL", strong}, {"FAIL\t", strong}, {"not ok ", strong}, {"panic:", strong}, {"Traceback (", strong}, {"E   ", strong}, {"E  ", weak},
	{"Caused by:", strong}, {"* What went wrong", strong}, {"FAILURE:", strong}, {"BUILD FAILED", strong}, {"make: ***", strong}, {"gmake: ***", strong}, {"CMake Error", strong},
	{"✕", strong}, {"✗", strong}, {"✘", strong}, {"×", strong}, {"●", strong}, {"⨯", strong}, {"❌", strong}, {"!!!", strong}, {"> ", info},
	{"Segmentation fault", strong}, {"Killed", strong}, {"Aborted", strong}, {"Bus error", strong}, {"Terminated", strong}, {"Exception in thread", strong}, {"Unhandled", strong}, {"Uncaught", strong},
	{"thread '", weak}, {"undefined reference", strong}, {"fatal:", strong}, {"rejected", weak}, {"CONFLICT", strong}, {"Process completed with exit code", strong}, {"The operation was", weak},
	{"Invalid read of size", strong}, {"Invalid write of size", strong}, {"Invalid free()", strong}, {"Mismatched free()", strong}, {"Conditional jump or move depends", strong}, {"Use of uninitialised value", strong}, {"Process terminating with", strong},
	{"│ Error", strong}, {"╷", info}, {"▲ [WARNING]", warn}, {"✖", strong}, {"error[", strong}, {"Assertion", strong}, {"AssertionError", strong}, {"nginx: [emerg]", strong}, {"ld: ", weak}, {"collect2:", weak},
}

// results are beginnings of lines that say how a run came out; they stay
// whatever it was.
var results = []string{
	"PASS", "FAIL", "ok  ", "ok \t", "OK", "FAILED", "# pass", "# fail", "# tests", "# skipped", "# suites", "1..", "test result:", "Tests:", "Test Suites:", "Tests ", "Test Files", "Snapshots:", "Ran ", "BUILD ", "[INFO] BUILD", "[ERROR] BUILD",
	"Tests run:", "[INFO] Tests run:", "[ERROR] Tests run:", "Finished:", "Plan:", "Apply complete!", "Destroy complete!", "exit status", "exit code", "Exit code", "Job succeeded", "Job failed", "ERROR: Job failed", "Error: Process completed", "##[error]Process completed", "Process finished", "make: ***", "ninja: build stopped",
	"Command failed", "Command exited", "returned non-zero", "Done in", "up to date", "warning: unused", "BUILD SUCCESSFUL", "build failed", "Build failed", "Build succeeded",
}

// closingWords stand in endings, which are looked for in lines that have one.
var closingWords = []string{"exit", "exited", "exitcode", "zero", "returned", "return", "errorlevel"}

// byFirst are texts by their first byte.
type byFirst [256][]int

func index(n int, text func(int) string) (t byFirst) {
	for i := range n {
		b := text(i)[0]
		t[b] = append(t[b], i)
	}
	return t
}

var (
	formsBy   = index(len(forms), func(i int) string { return forms[i].text })
	resultsBy = index(len(results), func(i int) string { return results[i] })
)

// endings say the same, anywhere in a line.
var endings = []string{"exit code", "exit status", "exited with", "exitcode", "non-zero", "returned status", "return code", "errorlevel"}
