package embedding_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/llm/embedding"
)

func cached(t *testing.T, s embedding.Source, bytes int) *embedding.Cache {
	t.Helper()
	c, err := embedding.Cached(open(t, s, nil), bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCacheAsksOnce(t *testing.T) {
	t.Parallel()
	s := &source{}
	c := cached(t, s, embedding.QueryBytes)
	first, err := c.Embed(t.Context(), []string{"one", "two words", " "})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(first)
	for _, v := range first {
		v[0] = 7 // the caller's own
	}
	again, err := c.Embed(t.Context(), []string{"one", "two words", " "})
	if err != nil || len(s.asked) != 1 {
		t.Fatalf("%d requests, %v", len(s.asked), err)
	}
	if d := cmp.Diff(want, fmt.Sprint(again)); d != "" {
		t.Errorf("a caller changed what is kept (-want +got):\n%s", d)
	}
	again[0][0] = 9
	third, err := c.Embed(t.Context(), []string{"new", "one"})
	if err != nil || fmt.Sprint(third[1]) == fmt.Sprint(again[0]) {
		t.Errorf("%v %v", third, err)
	}
	if d := cmp.Diff([]string{"new"}, s.asked[1]); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
	if c.Space() != open(t, s, nil).Space() {
		t.Error("the cache has another space")
	}
}

// What does not fit is pushed out, the oldest first.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	s := &source{}
	c := cached(t, s, 2*(4*3+150)) // two vectors of three
	for _, text := range []string{"a", "b", "c", "c", "b", "a"} {
		if _, err := c.Embed(t.Context(), []string{text}); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([][]string{{"a"}, {"b"}, {"c"}, {"a"}}, s.asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
}

// A bad text is named by its place in the call and asked again; the others are
// kept. An error of the endpoint keeps nothing.
func TestCacheAndFaults(t *testing.T) {
	t.Parallel()
	s := &source{}
	c := cached(t, s, embedding.QueryBytes)
	if _, err := c.Embed(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err := c.Embed(t.Context(), []string{"a", "nan", "b"})
		bad, ok := errors.AsType[*embedding.BadTexts](err)
		if !ok || !cmp.Equal(bad.Index, []int{1}) || bad.Vectors[0] == nil || bad.Vectors[1] != nil || bad.Vectors[2] == nil || !fault.Is(err, fault.Invalid) {
			t.Fatalf("%v", err)
		}
	}
	if d := cmp.Diff([][]string{{"a"}, {"nan", "b"}, {"nan"}}, s.asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
	s.answer = func([]string) ([][]float32, error) { return nil, fault.New(fault.Unavailable, "down") }
	if v, err := c.Embed(t.Context(), []string{"a", "new"}); v != nil || !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v %v", v, err)
	}
	if v, err := c.Embed(t.Context(), []string{"a", "b"}); err != nil || len(v) != 2 {
		t.Errorf("what is kept needs no server: %v %v", v, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// locked is a source for several callers.
type locked struct {
	mu sync.Mutex
	s  source
}

func (l *locked) Vectors(ctx context.Context, model string, texts []string, dims int) ([][]float32, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s.Vectors(ctx, model, texts, dims)
}

func TestCacheSideBySide(t *testing.T) {
	t.Parallel()
	c := cached(t, &locked{}, 4*(4*3+150))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				text := fmt.Sprintf("%0*d", 1+(i+g)%6, 1) // its length is its vector
				v, err := c.Embed(t.Context(), []string{text})
				if err != nil || len(v[0]) != 3 {
					t.Errorf("%v %v", v, err)
					return
				}
				want, got := float32(len(text)), v[0][0]/v[0][2]
				if got < want-0.01 || got > want+0.01 {
					t.Errorf("%q has the vector of another: %v", text, v[0])
				}
				v[0][0] = -1
			}
		})
	}
	wg.Wait()
}
