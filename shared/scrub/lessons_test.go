package scrub_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
)

// A secret in a lesson is masked there as everywhere; the lesson keeps its hashes, is there
// once, and a process that dies at any write of it comes to the same.
func TestScrubOfLessons(t *testing.T) {
	t.Parallel()
	for kill := 0; ; kill++ {
		w := taught(t, reference(), bodies()[7])
		var told struct {
			DetailSHA string `json:"detail_sha"`
		}
		w.Post("/memory/sig/lessons", map[string]string{
			"project": "shop", "tool": "git", "solution": "Log in with " + secret + " again.",
			"log": "fatal: unable to access 'https://git.example.com/x.git/': Could not resolve host: git.example.com\n",
		}, http.StatusCreated, &told)
		w.Published()
		forbid(t, w)
		left, killed := kill, false
		w.Stores.Fail(func(c functest.Call) error {
			if c.Write() && strings.Contains(c.Key, "/lessons/") {
				if left--; left == 0 {
					killed = true
					return fault.New(fault.Internal, "killed")
				}
			}
			return nil
		}, nil)
		_, err := w.Learn.Scrub(t.Context(), "", false, nil)
		w.Stores.Fail(nil, nil)
		if killed != (err != nil) {
			t.Fatalf("killed %t: %v", killed, err)
		}
		if killed {
			scrubbed(t, w)
		} else {
			w.Run(w.Published()...)
		}
		if got := leaks(t, w); len(got) > 0 {
			t.Errorf("killed at %d: %v", kill, got)
		}
		stands, gone := 0, 0
		for key, err := range w.Log.RecordKeys(t.Context(), "shop", eventlog.Lessons) {
			if err != nil {
				t.Fatal(err)
			}
			recs, err := w.Log.Records(t.Context(), "shop", eventlog.Lessons, key)
			if err != nil {
				t.Fatal(err)
			}
			l, erased, ok, err := eventlog.AsLesson(recs[0])
			switch {
			case err != nil || !ok:
				t.Fatal(ok, err)
			case l.DetailSHA != told.DetailSHA:
				t.Error("the lesson has another hash")
			case erased:
				gone++
			case strings.HasPrefix(l.Text, "Log in with [REDACTED:user_acme:"):
				stands++
			default:
				t.Errorf("it says %q", l.Text)
			}
		}
		if stands != 1 || gone != 1 {
			t.Errorf("killed at %d: %d stand, %d are erased, want one each", kill, stands, gone)
		}
		if !killed && kill > 0 {
			if kill < 3 {
				t.Errorf("only %d writes of lessons were killed", kill-1)
			}
			return
		}
	}
}
