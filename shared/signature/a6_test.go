package signature_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/signature"
)

// handWritten are the hand-written logs without their marks, those of CI
// runners left out.
func handWritten(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, f := range hand(t) {
		switch tool, _, _ := strings.Cut(f.Name, "/"); tool {
		case "gha", "gitlab", "jenkins", "buildkite", "azure", "circleci", "ci":
			continue
		}
		out[f.Name] = strings.ReplaceAll("\n"+string(f.Data), "\n>>> ", "\n")[1:]
	}
	return out
}

// dresses are what runners make of a log. Dates, paths and ids differ in each.
var dresses = map[string]func(string) string{
	"github": func(s string) string { return github("./ci/step.sh", s, 1) },
	"gitlab": func(s string) string {
		return "Running with gitlab-runner 17.2.0 (abcdef12)\nsection_start:1770106268:step_script\r\x1b[0K\x1b[36;1mExecuting \"step_script\" stage of the job script\x1b[0;m\n\x1b[32;1m$ ./ci/step.sh\x1b[0;m\n" +
			s + "section_end:1770106290:step_script\r\x1b[0K\x1b[31;1mERROR: Job failed: exit code 1\n\x1b[0;m"
	},
	"jenkins": func(s string) string {
		return stamp("Started by user X\n[Pipeline] sh\n+ ./ci/step.sh\n"+s+"[Pipeline] }\n[Pipeline] End of Pipeline\nERROR: script returned exit code 1\nFinished: FAILURE\n",
			func(i int) string { return fmt.Sprintf("[2026-04-02T07:%02d:%02d.881Z] ", i/60%60, i%60) })
	},
	"azure": func(s string) string {
		return stamp("##[section]Starting: Step\n[command]/bin/bash /home/vsts/work/_temp/x.sh\n"+s+"##[error]Bash exited with code '1'.\n##[section]Finishing: Step\n",
			func(i int) string { return fmt.Sprintf("2026-05-02T07:%02d:%02d.0000000Z ", i/60%60, i%60) })
	},
	"buildkite": func(s string) string {
		return "~~~ Running commands\n$ ./ci/step.sh\n" + s + "🚨 Error: The command exited with status 1\n^^^ +++\nuser command error: exit status 1\n"
	},
	"circleci": func(s string) string {
		return "#!/bin/bash -eo pipefail\n./ci/step.sh\n" + s + "\nExited with code exit status 1\n"
	},
	"crlf": func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
}

// TestHandWrittenInEveryDress: the bare log and the one that a runner wrapped
// are one failure (signatures.md A6).
func TestHandWrittenInEveryDress(t *testing.T) {
	t.Parallel()
	pairs := 0
	for name, log := range handWritten(t) {
		tool, _, _ := strings.Cut(name, "/")
		log = strings.TrimRight(log, "\n") + "\n"
		want := extract(t, tool, log)
		for dress, put := range dresses {
			pairs++
			if got := extract(t, tool, put(log)); got.SigSHA != want.SigSHA || got.DetailSHA != want.DetailSHA {
				t.Errorf("%s, %s: by %s\n%q %q, bare by %s\n%q %q", name, dress, got.Rule, got.Normalised, got.Detail, want.Rule, want.Normalised, want.Detail)
			}
		}
	}
	if pairs < 500 {
		t.Errorf("%d pairs", pairs)
	}
}

var (
	lineAndColumn = regexp.MustCompile(`(\.\w{1,4}):\d{1,4}:\d{1,4}\b`)
	quotedName    = regexp.MustCompile(`['"\x60]([A-Za-z][\w-]{3,30})['"\x60]`)
)

// TestDigitsOfPlaces: the same error on another line of the file is the same
// failure.
func TestDigitsOfPlaces(t *testing.T) {
	t.Parallel()
	n := 0
	for name, log := range handWritten(t) {
		tool, _, _ := strings.Cut(name, "/")
		want := extract(t, tool, log)
		moved := lineAndColumn.ReplaceAllString(log, "${1}:4711:12")
		if moved == log || !lineAndColumn.MatchString(want.Raw) {
			continue
		}
		n++
		if got := extract(t, tool, moved); got.SigSHA != want.SigSHA || got.DetailSHA != want.DetailSHA {
			t.Errorf("%s: %q, want %q", name, got.Normalised, want.Normalised)
		}
	}
	if n < 10 {
		t.Errorf("%d logs have a place in their root", n)
	}
}

// TestNamesOfRoots: the same error about another name is another failure.
func TestNamesOfRoots(t *testing.T) {
	t.Parallel()
	n := 0
	for name, log := range handWritten(t) {
		tool, _, _ := strings.Cut(name, "/")
		want := extract(t, tool, log)
		m := quotedName.FindStringSubmatch(want.Raw)
		if m == nil || strings.Contains(want.Rule, "generic") {
			continue
		}
		n++
		other := strings.ReplaceAll(log, m[1], "zz"+m[1][1:]+"q")
		if got := extract(t, tool, other); got.DetailSHA == want.DetailSHA && got.Raw != want.Raw {
			t.Errorf("%s: %q and another name are one: %q", name, m[1], got.Normalised)
		}
	}
	if n < 20 {
		t.Errorf("%d logs have a name in their root", n)
	}
}

// TestOrderOfErrors: what runs side by side ends in any order.
func TestOrderOfErrors(t *testing.T) {
	t.Parallel()
	for tool, parts := range map[string][2]string{
		"make":  {"b.c:3:5: error: 'x' undeclared (first use in this function)\nmake: *** [Makefile:4: b.o] Error 1\n", "a.c:9:1: error: unknown type name 'foo_t'\nmake: *** [Makefile:4: a.o] Error 1\n"},
		"cargo": {"thread 'store::tests::sums' (7) panicked at src/store.rs:9:5:\nattempt to add with overflow\n\n", "thread 'store::tests::adds' (8) panicked at src/store.rs:5:17:\nassertion `left == right` failed\n  left: 1\n right: 2\n\n"},
		"ninja": {"FAILED: a.o\n/w/a.cpp:3:5: error: no member named 'x' in 'S'\n", "FAILED: b.o\n/w/b.cpp:3:5: error: no member named 'y' in 'S'\n"},
		"ctest": {"1/2 Test #1: adds ...***Failed    0.01 sec\n", "2/2 Test #2: sums ...***Failed    0.02 sec\n"},
	} {
		a, b := extract(t, tool, parts[0]+parts[1]), extract(t, tool, parts[1]+parts[0])
		if a.SigSHA != b.SigSHA || a.DetailSHA != b.DetailSHA || a.SetSHA != b.SetSHA {
			t.Errorf("%s: %q or %q", tool, a.Normalised, b.Normalised)
		}
		one := extract(t, tool, parts[0])
		if one.SetSHA == a.SetSHA {
			t.Errorf("%s: one error and two are one set", tool)
		}
	}
}

// TestVersionOfRules: a changed rule re-projects, so its version is said.
func TestVersionOfRules(t *testing.T) {
	t.Parallel()
	if r := extract(t, "", "error: x"); r.SigVersion != signature.Version {
		t.Errorf("version %q", r.SigVersion)
	}
}
