package tapetest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/llm/llmtest/tapetest"
)

// inner is a test inside the test, whose failures are what is tested.
type inner struct {
	testing.TB
	mu       sync.Mutex
	errs     []string
	cleanups []func()
}

func (i *inner) Errorf(format string, args ...any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.errs = append(i.errs, fmt.Sprintf(format, args...))
}
func (i *inner) Error(args ...any) { i.Errorf("%s", fmt.Sprint(args...)) }
func (i *inner) Cleanup(f func())  { i.cleanups = append(i.cleanups, f) }
func (i *inner) Failed() bool      { i.mu.Lock(); defer i.mu.Unlock(); return len(i.errs) > 0 }
func (i *inner) end() []string {
	for _, f := range i.cleanups {
		f()
	}
	return i.errs
}

func ask(t *testing.T, url, body string) string {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer sk-much-too-secret")
	r.Header.Set("apikey", "another-secret")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s %s", resp.StatusCode, resp.Header.Get("Retry-After"), b)
}

// TestTape records a made-up server and plays it back.
func TestTape(t *testing.T) {
	t.Parallel()
	n := 0
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Machine", "build-7")
		switch r.URL.Path {
		case "/busy":
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(http.StatusTooManyRequests)
		case "/show":
			io.WriteString(w, `{"n":12345678901234567890,"modelfile":"FROM /home/ada/x.gguf","details":{"parent_model":"/home/ada/x.gguf","family":"llama"}}`)
			return
		case "/lines":
			io.WriteString(w, "{\"a\": \"<1>\"}\n{\"a\": 2}\n")
			return
		}
		fmt.Fprintf(w, `{"n":%d,"you":%q,"said":%q}`, n, r.Header.Get("Authorization")+r.Header.Get("Apikey"), b)
	}))
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "testdata", "x.tape")
	asks := []struct{ path, body string }{
		{"/chat", `{"b":1, "a":"<x>"}`}, {"/chat", `{"b":2}`}, {"/chat", `{"a":"<x>","b":1}`}, {"/list", ""}, {"/busy", `{}`}, {"/show", `{"m":"x"}`}, {"/lines", `{}`},
	}
	rec := &inner{TB: t}
	tp := tapetest.Record(rec, file, up.URL+"/")
	var heard []string
	for _, a := range asks {
		heard = append(heard, ask(t, tp.URL+a.path, a.body))
	}
	if errs := rec.end(); len(errs) > 0 {
		t.Fatal(errs)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"secret", "/home/ada", "build-7", "Authorization", "apikey"} {
		if strings.Contains(string(data), bad) {
			t.Errorf("the tape holds %q:\n%s", bad, data)
		}
	}
	if want := `{"method":"POST","path":"/chat","request":{"a":"<x>","b":1},"status":200,"header":{"Content-Type":"application/json"},`; !strings.HasPrefix(string(data), want) || strings.Count(string(data), "\n") != len(asks) {
		t.Errorf("the tape begins otherwise than %s:\n%s", want, data)
	}

	// What is heard from the tape is what the server said, but for what is masked
	// and left out.
	clean := strings.NewReplacer("Bearer sk-much-too-secret", "Bearer (key)", "another-secret", "(key)")
	played := func(order []int) (errs []string) {
		in := &inner{TB: t}
		p := tapetest.Play(in, file)
		for _, i := range order {
			want := clean.Replace(heard[i])
			if asks[i].path == "/show" {
				want = `200  {"details":{"family":"llama"},"n":12345678901234567890}`
			}
			if got := ask(t, p.URL+asks[i].path, asks[i].body); got != want {
				errs = append(errs, cmp.Diff(want, got))
			}
		}
		return append(errs, in.end()...)
	}
	if errs := played([]int{6, 5, 4, 3, 1, 0, 2}); len(errs) > 0 { // any order, but equal requests in theirs
		t.Error(errs)
	}
	if errs := played([]int{0, 1, 2, 3, 4, 5}); len(errs) != 1 || !strings.Contains(errs[0], "stale") || !strings.Contains(errs[0], "/lines") {
		t.Errorf("an entry that nobody asks for: %q", errs)
	}
	for name, tc := range map[string]struct {
		path, body, want string
		times            int
	}{
		"another body":    {"/chat", `{"b":3}`, `on tape: …{"b":2}…`, 1},
		"another path":    {"/nowhere", `{}`, "no entry has this path", 1},
		"once too often":  {"/list", "", "not this often", 2},
		"no JSON":         {"/chat", `{`, "no JSON", 1},
		"another method":  {"/chat", "", "no entry has this path", 1},
		"two JSON values": {"/chat", `{"b":2}{"b":2}`, "no JSON", 1},
	} {
		in := &inner{TB: t}
		p := tapetest.Play(in, file)
		got := ""
		for range tc.times {
			got = ask(t, p.URL+tc.path, tc.body)
		}
		if errs := in.end(); len(errs) != 1 || !strings.Contains(errs[0], tc.want) || !strings.HasPrefix(got, "501") {
			t.Errorf("%s: %q, failures %q", name, got, errs)
		}
	}
}

// TestFailedTestRecordsNothing: a tape of a test that failed would be believed.
func TestFailedTestRecordsNothing(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{}`) }))
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "x.tape")
	in := &inner{TB: t}
	p := tapetest.Record(in, file, up.URL)
	ask(t, p.URL+"/chat", `{}`)
	in.Errorf("something else")
	in.end()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("there is a tape: %v", err)
	}
}
