package lazy_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/lazy"
)

// TestAsCompiled: a lazy expression answers as the compiled one.
func TestAsCompiled(t *testing.T) {
	t.Parallel()
	const expr, s = `(\w+)=(\d+)`, "a=1, bb=22, c=x"
	got, want := lazy.MustCompile(expr), regexp.MustCompile(expr)
	for name, pair := range map[string][2]any{
		"String":                     {got.String(), want.String()},
		"Match":                      {got.Match([]byte(s)), want.Match([]byte(s))},
		"MatchString":                {got.MatchString("="), want.MatchString("=")},
		"FindString":                 {got.FindString(s), want.FindString(s)},
		"FindStringIndex":            {got.FindStringIndex(s), want.FindStringIndex(s)},
		"FindSubmatch":               {got.FindSubmatch([]byte(s)), want.FindSubmatch([]byte(s))},
		"FindStringSubmatch":         {got.FindStringSubmatch(s), want.FindStringSubmatch(s)},
		"FindStringSubmatchIndex":    {got.FindStringSubmatchIndex(s), want.FindStringSubmatchIndex(s)},
		"FindAllIndex":               {got.FindAllIndex([]byte(s), -1), want.FindAllIndex([]byte(s), -1)},
		"FindAllString":              {got.FindAllString(s, 1), want.FindAllString(s, 1)},
		"FindAllStringIndex":         {got.FindAllStringIndex(s, -1), want.FindAllStringIndex(s, -1)},
		"FindAllSubmatchIndex":       {got.FindAllSubmatchIndex([]byte(s), -1), want.FindAllSubmatchIndex([]byte(s), -1)},
		"FindAllStringSubmatch":      {got.FindAllStringSubmatch(s, -1), want.FindAllStringSubmatch(s, -1)},
		"FindAllStringSubmatchIndex": {got.FindAllStringSubmatchIndex(s, -1), want.FindAllStringSubmatchIndex(s, -1)},
		"ReplaceAllString":           {got.ReplaceAllString(s, "$2"), want.ReplaceAllString(s, "$2")},
		"ReplaceAllStringFunc":       {got.ReplaceAllStringFunc(s, strings.ToUpper), want.ReplaceAllStringFunc(s, strings.ToUpper)},
	} {
		if d := cmp.Diff(pair[1], pair[0]); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// TestCompiledOnce: every use is of one expression.
func TestCompiledOnce(t *testing.T) {
	t.Parallel()
	re := lazy.MustCompile(`a`)
	if first := re.Regexp(); first != re.Regexp() {
		t.Error("an expression was compiled twice")
	}
}

func TestFromManyGoroutines(t *testing.T) {
	t.Parallel()
	re := lazy.MustCompile(`^a+$`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if !re.MatchString("aaa") || re.MatchString("ab") {
				t.Error("a wrong answer")
			}
		})
	}
	wg.Wait()
}

func TestWrongExpression(t *testing.T) {
	t.Parallel()
	re := lazy.MustCompile(`(`) // no panic yet
	defer func() {
		if recover() == nil {
			t.Error("a wrong expression was used")
		}
	}()
	re.MatchString("a")
}
