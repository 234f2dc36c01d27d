package wire_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/llm/llmtest"
	"github.com/mneme-ai/mneme/shared/memory"
)

// labelled is a world whose six chunks were decided, and how many calls that took.
func labelled(t *testing.T, b *brain, form wireForm) (w *functest.World, decided int) {
	t.Helper()
	w = faultWorld(t, b, form, false, nil)
	if errs := suffer(t, w, w.Put("shop/a.jsonl", faultSession())); len(errs) > 0 {
		t.Fatal(errs)
	}
	return w, len(b.asked())
}

func labelsOf(t *testing.T, w *functest.World) (out []*memory.Label) {
	t.Helper()
	if err := labels.Each(t.Context(), w.Log, "shop", func(_ memory.SHA, l *memory.Label) error { out = append(out, l); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLabelFaults: a model server that misbehaves in the middle of labelling costs no
// label that was answered and gives none that was not; the run goes on where it ended,
// and the log's ledger of the labels is the server's.
func TestLabelFaults(t *testing.T) {
	t.Parallel()
	for _, form := range wireForms {
		for _, m := range misbehaviours() {
			if m.skip != nil && m.skip(form) || m.stalls {
				continue
			}
			t.Run(form.name+"/"+m.name, func(t *testing.T) {
				t.Parallel()
				b := &brain{}
				w, before := labelled(t, b, form)
				hashes := w.Hashes()
				b.mu.Lock()
				b.sick = func(n int, right llmtest.Chat) (llmtest.Play, *llmtest.Chat) {
					if n != before+3 {
						return nil, nil
					}
					if m.said == nil {
						return m.play(right), nil
					}
					said := m.said(right)
					return m.play(right), &said
				}
				b.mu.Unlock()
				ask := gate.LabelRequest{Project: "shop", Model: llmtest.Model}
				fails := 0
				for {
					out, err := w.Gate.Label(t.Context(), ask, func(int, int) {})
					if err == nil {
						if out.Pieces != 6 || out.Standing+out.Asked != 6 {
							t.Errorf("%+v", out)
						}
						break
					}
					if fails++; fails > 3 || m.once != ends && m.once != cuts {
						t.Fatalf("after %d: %v", fails, err)
					}
					if m.once == ends && !fault.Is(err, m.kind) {
						t.Errorf("%v: kind %s, want %s", err, fault.KindOf(err), m.kind)
					}
					wait(w, 11*time.Minute)
					b.servers.Age(wire.LookAgain)
				}
				if want := m.once == ends || m.once == cuts; (fails > 0) != want {
					t.Errorf("%d calls of Label failed, want some: %v", fails, want)
				}
				judgeLabels(t, w, b.asked()[before:], m)
				if after := w.Hashes(); after.Log != hashes.Log || after.Index != hashes.Index {
					t.Error("labels changed the memory")
				}
				asked := len(b.asked())
				if out, err := w.Gate.Label(t.Context(), ask, func(int, int) {}); err != nil || out.Asked != 0 || len(b.asked()) != asked {
					t.Errorf("asked again: %+v %v", out, err)
				}
			})
		}
	}
}

// judgeLabels holds the labels against the decisions of a model that is right, and
// against what the server was asked for them.
func judgeLabels(t *testing.T, w *functest.World, calls []asked, m misbehaviour) {
	t.Helper()
	truth := map[string]bool{}
	for _, g := range gatesOf(w) {
		truth[fmt.Sprint(g.Chunk, g.Start, g.End)] = g.Update
	}
	prompt, completion := 0, 0
	for _, c := range calls {
		if c.rewrite {
			t.Errorf("a label wanted a memory: %.200s", c.body)
		}
		prompt, completion = prompt+c.prompt, completion+c.completion
	}
	list := labelsOf(t, w)
	for _, l := range list {
		key := fmt.Sprint(l.Chunk, l.Start, l.End)
		want, ok := truth[key]
		if !ok || l.Evidence != want || !l.FormatOK || l.Basis != memory.BasisChunk {
			t.Errorf("%+v, want %v", l, want)
		}
		delete(truth, key)
		prompt, completion = prompt-l.PromptTokens, completion-l.CompletionTokens
	}
	if len(truth) > 0 {
		t.Errorf("%d pieces have no label", len(truth))
	}
	// A cut prompt's answer is paid for and says nothing: no label holds it.
	if m.once != cuts && (prompt != 0 || completion != 0) {
		t.Errorf("the labels lack %d prompt and %d completion tokens of what the server counts", prompt, completion)
	}
}

// TestLabelUnreadable: a model that never answers readably leaves labels that say
// nothing; they are asked again only when that is wanted.
func TestLabelUnreadable(t *testing.T) {
	t.Parallel()
	for _, form := range wireForms[2:] {
		b := &brain{}
		w, before := labelled(t, b, form)
		sulks := true
		b.mu.Lock()
		b.sick = func(n int, right llmtest.Chat) (llmtest.Play, *llmtest.Chat) {
			if !sulks || n <= before {
				return nil, nil
			}
			right.Content = "I would rather not say."
			right.Tokens = weighed(right.Content)
			return right.Play(), &right
		}
		b.mu.Unlock()
		ask := gate.LabelRequest{Project: "shop", Model: llmtest.Model}
		out, err := w.Gate.Label(t.Context(), ask, func(int, int) {})
		if err != nil || out.Asked != 6 || out.Unreadable != 6 || out.Evidence != 0 {
			t.Fatalf("%+v %v", out, err)
		}
		if rows, err := w.Gate.Labels(t.Context(), "shop", "", "", ""); err != nil || len(rows) != 0 {
			t.Errorf("what could not be read is given out: %v %v", rows, err)
		}
		if out, err := w.Gate.Label(t.Context(), ask, func(int, int) {}); err != nil || out.Asked != 0 || out.Standing != 6 {
			t.Errorf("%+v %v", out, err)
		}
		b.mu.Lock()
		sulks = false
		b.mu.Unlock()
		ask.Again = true
		if out, err := w.Gate.Label(t.Context(), ask, func(int, int) {}); err != nil || out.Asked != 6 || out.Evidence != 4 || out.Unreadable != 0 {
			t.Errorf("%+v %v", out, err)
		}
		if out, err := w.Gate.Label(t.Context(), ask, func(int, int) {}); err != nil || out.ToAsk != 0 {
			t.Errorf("an unreadable answer counts before a readable one: %+v %v", out, err)
		}
	}
}
