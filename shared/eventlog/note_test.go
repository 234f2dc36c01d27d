package eventlog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

func TestNotes(t *testing.T) {
	t.Parallel()
	l := eventlog.Open(newBucket(), tenant, "writer")
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	first := memory.Note{Tenant: "local", Project: "shop", Note: "limits", Stream: "limits@1a2b3c4d", Text: "mine\r\n\u0645 [[x]] <b>", Origin: "vault", At: at}
	key, err := l.PutNote(t.Context(), &first)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.PutNote(t.Context(), &first); err != nil || again != key {
		t.Errorf("the same note again: %s %v", again, err)
	}
	second := first
	second.Text, second.Prev, second.At = "mine, later", []memory.SHA{key}, at.Add(time.Hour)
	next, err := l.PutNote(t.Context(), &second)
	if err != nil {
		t.Fatal(err)
	}
	tombstone := memory.SumString("tombstone")
	for range 2 { // once more changes nothing
		if err := l.EraseRecords(t.Context(), "shop", eventlog.Notes, key, tombstone); err != nil {
			t.Fatal(err)
		}
	}
	got := map[memory.SHA]string{}
	for n, err := range l.Notes(t.Context(), "shop") {
		if err != nil {
			t.Fatal(err)
		}
		got[n.Key] = n.Note.Text + "|" + string(n.Note.Erased)
		if n.TextSHA != memory.SumString(map[memory.SHA]string{key: first.Text, next: second.Text}[n.Key]) {
			t.Errorf("%s: another sha of its text", n.Key)
		}
	}
	if diff := cmp.Diff(map[memory.SHA]string{key: "|" + string(tombstone), next: "mine, later|"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []func(*memory.Note){
		func(n *memory.Note) { n.Text = "x\xff" },
		func(n *memory.Note) { n.Text = strings.Repeat("x", 2*memory.MaxNoteBytes+1) },
		func(n *memory.Note) { n.Note = "" },
		func(n *memory.Note) { n.Origin = "" },
	} {
		n := first
		bad(&n)
		if _, err := l.PutNote(t.Context(), &n); !fault.Is(err, fault.Invalid) {
			t.Errorf("%.40q: %v", n.Text, err)
		}
	}
	if n, err := l.Note(t.Context(), "shop", memory.SumString("none")); !fault.Is(err, fault.NotFound) {
		t.Errorf("%v %v", n, err)
	}
	if err := l.EraseRecords(t.Context(), "shop", eventlog.Notes, "x", tombstone); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}
