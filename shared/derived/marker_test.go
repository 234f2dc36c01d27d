package derived_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/derived"
)

// The line is part of what stands on people's disks.
func TestMarkerLine(t *testing.T) {
	t.Parallel()
	if got, want := derived.Marker(derived.KindSkill), "<!-- mneme:derived kind=skill -->"; got != want {
		t.Errorf("marker %q, want %q", got, want)
	}
}

func TestMarked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		derived.Marker("vault"): "vault",
		"---\nname: a\n---\n\n" + derived.Marker("skill") + "\r\n# A\n":         "skill",
		"> > " + derived.Marker("skill") + " \n> a":                             "skill",
		"+" + derived.Marker("skill") + "\n":                                    "skill",
		"<!-- mneme:derived version=2 kind=vault project=shop -->\n":            "vault",
		"<!-- mneme:derived -->":                                                "-",
		"<!-- mneme:derived\nkind=skill -->":                                    "",
		"<!-- mneme:derivedkind=skill -->":                                      "",
		"Put " + derived.Marker("skill") + " at the top.":                       "",
		"`" + derived.Marker("skill") + "`":                                     "",
		derived.MarkerClose:                                                     "",
		"<!-- mneme:derived kind=" + strings.Repeat("a", 600) + " -->":          "",
		"Put " + derived.Marker("skill") + " here:\n" + derived.Marker("vault"): "vault",
	} {
		kind, ok := derived.Marked(text)
		if wantOK := want != ""; ok != wantOK || kind != strings.Trim(want, "-") {
			t.Errorf("%q: %q, %t", text, kind, ok)
		}
	}
	for line, want := range map[string]bool{
		derived.MarkerClose: true, "> " + derived.MarkerClose + "\r": true, " " + derived.MarkerClose + " x": false, derived.Marker("skill"): false,
	} {
		if derived.Closes(line) != want {
			t.Errorf("%q closes: %t", line, !want)
		}
	}
}

// Any bytes are read, and what is found begins and ends as a marker does.
func FuzzNextMarker(f *testing.F) {
	f.Add("a\n" + derived.Marker("skill") + "\nb\n" + derived.MarkerClose)
	f.Add("<!-- mneme:derived <!-- mneme:derived kind=a -->")
	f.Fuzz(func(t *testing.T, text string) {
		for at, n := 0, 0; ; n++ {
			from, to, _, ok := derived.NextMarker(text, at)
			if !ok {
				break
			}
			if from < at || to <= from || !strings.HasPrefix(text[from:to], "<!-- mneme:derived") || !strings.HasSuffix(text[from:to], "-->") || n > len(text) {
				t.Fatalf("marker [%d,%d) from %d on of %q", from, to, at, text)
			}
			at = to
		}
		derived.Marked(text)
		for at := range text {
			if to, ok := derived.Refilled(text, at); ok && (to <= at || !strings.HasSuffix(text[:to], "-->")) {
				t.Fatalf("document [%d,%d) of %q", at, to, text)
			}
		}
	})
}

// A document is known though its lines were filled anew, and words about the marks are
// not taken for one.
func TestRefilled(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("one two three four ", 10)
	open, end := derived.Marker("vault"), derived.MarkerClose
	for text, want := range map[string]bool{
		open + " # A " + long + end + " and on":                                           true,
		"<!--\n> mneme:derived\n> kind=vault\n> --> " + long + "<!--\n/mneme:derived -->": true,
		open + " " + strings.TrimSpace(strings.TrimSuffix(long, "four ")) + " " + end:     false, // 39 words
		open + " and " + end:                   false,
		open + long:                            false,
		"<!-- mneme:derivedx -->" + long + end: false,
		"<!-- mneme:derived -->" + long + end:  false,
		"mneme:derived " + long + end:          false,
	} {
		to, ok := derived.Refilled(text, 0)
		if ok != want || ok && !strings.HasSuffix(text[:to], "-->") {
			t.Errorf("%q: %d, %t", text, to, ok)
		}
	}
	if _, ok := derived.Refilled("`"+open+"` "+long+end, 1); ok {
		t.Error("a mark that is quoted as code")
	}
}
