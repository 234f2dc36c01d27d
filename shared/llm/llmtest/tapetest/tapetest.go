// Package tapetest records what a real model server answered and plays it again,
// so that tests hold an adapter against the server's own words without one. For
// tests only.
//
// Invariant: a request is answered from the tape or fails the test. Requests are
// told apart by method, path and body, whatever the order in which they come; each
// entry is played once, equal requests in the order in which they were recorded,
// and what is never asked for fails the test too: the tape is stale.
//
// A tape is a file of JSON lines, one an exchange, to be read by people:
//
//	{"method":"POST","path":"/api/chat","request":{"model":"small",…},"status":200,"header":{"Content-Type":"application/x-ndjson"},"body":"{\"model\":…}\n"}
//
// The request's body is canonical: keys sorted, no white space. Of the headers
// only Content-Type and Retry-After of the answer are kept. No key is: request
// headers are not written, and where an answer repeats one it is masked. Fields
// that hold a machine's paths or long lists nobody reads are left out, see leftOut.
//
// Tapes are made anew, against the server that infra/local/services/ollama.sh
// starts, by `make tapes`: MNEME_RECORD=1 MNEME_TEST_OLLAMA=URL go test ….
package tapetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// maxBytes is the largest tape: one of more is not read by people, and stands in
// every clone.
const maxBytes = 512 << 10

// leftOut are fields of an answer: the first two hold paths of the machine that
// recorded, the others some 20 KB that no adapter reads.
var leftOut = []string{"modelfile", "parent_model", "tensors", "license"}

// kept are the headers of an answer that an adapter reads.
var kept = []string{"Content-Type", "Retry-After"}

// Tape is a server that plays or records.
type Tape struct {
	URL string

	t    testing.TB
	file string

	mu      sync.Mutex
	entries []entry
	left    map[string][]entry // when playing: by request
}

type entry struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Request json.RawMessage   `json:"request,omitempty"`
	Status  int               `json:"status"`
	Header  map[string]string `json:"header,omitempty"`
	Body    string            `json:"body"`
}

func (e entry) key() string { return e.Method + " " + e.Path + " " + string(e.Request) }

// Open plays the file; with MNEME_RECORD set it records it from the server that
// MNEME_TEST_OLLAMA names.
func Open(t testing.TB, file string) *Tape {
	t.Helper()
	if os.Getenv("MNEME_RECORD") == "" {
		return Play(t, file)
	}
	upstream := os.Getenv("MNEME_TEST_OLLAMA")
	if upstream == "" {
		t.Fatal("MNEME_RECORD is set, and MNEME_TEST_OLLAMA names no server to record from")
	}
	return Record(t, file, upstream)
}

// Play answers from the file.
func Play(t testing.TB, file string) *Tape {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &Tape{t: t, file: file, left: map[string][]entry{}}
	for line := range bytes.Lines(data) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s:%d: %v", file, len(p.entries)+1, err)
		}
		if e.Request, err = canonical(e.Request); err != nil {
			t.Fatalf("%s:%d: %v", file, len(p.entries)+1, err)
		}
		p.entries = append(p.entries, e)
		p.left[e.key()] = append(p.left[e.key()], e)
	}
	s := httptest.NewServer(http.HandlerFunc(p.play))
	p.URL = s.URL
	t.Cleanup(func() {
		s.Close()
		if !t.Failed() {
			p.stale()
		}
	})
	return p
}

func (p *Tape) play(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	asked := entry{Method: r.Method, Path: r.URL.Path}
	if asked.Request, err = canonical(body); err != nil {
		p.t.Errorf("%s %s: a request that is no JSON: %v", r.Method, r.URL.Path, err)
		w.WriteHeader(http.StatusNotImplemented)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.left[asked.key()]
	if len(list) == 0 {
		p.t.Errorf("not on the tape %s, or not this often: %s %s\n%s", p.file, asked.Method, asked.Path, p.nearest(asked))
		w.WriteHeader(http.StatusNotImplemented) // which no adapter repeats
		return
	}
	p.left[asked.key()] = list[1:]
	for name, v := range list[0].Header {
		w.Header().Set(name, v)
	}
	w.WriteHeader(list[0].Status)
	_, _ = io.WriteString(w, list[0].Body) // the client may be gone
}

// nearest says where a request leaves the entry that it shares most with.
func (p *Tape) nearest(asked entry) string {
	best, at := "", -1
	for _, e := range p.entries {
		if e.Method != asked.Method || e.Path != asked.Path {
			continue
		}
		n := 0
		for n < min(len(e.Request), len(asked.Request)) && e.Request[n] == asked.Request[n] {
			n++
		}
		if n > at {
			best, at = string(e.Request), n
		}
	}
	if at < 0 {
		return "no entry has this path"
	}
	cut := func(s string) string { return s[max(0, at-40):min(len(s), at+80)] }
	return fmt.Sprintf("on tape: …%s…\nasked:   …%s…", cut(best), cut(string(asked.Request)))
}

func (p *Tape) stale() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, list := range p.left {
		for _, e := range list {
			p.t.Errorf("the tape %s is stale: nobody asks for %s %s %.200s", p.file, e.Method, e.Path, e.Request)
		}
	}
}

// Record passes requests on to a server and writes the file at the test's end,
// unless the test failed.
func Record(t testing.TB, file, upstream string) *Tape {
	t.Helper()
	p := &Tape{t: t, file: file}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.record(w, r, upstream) }))
	p.URL = s.URL
	t.Cleanup(func() {
		s.Close()
		if !t.Failed() {
			p.write()
		}
	})
	return p
}

func (p *Tape) record(w http.ResponseWriter, r *http.Request, upstream string) {
	fail := func(err error) {
		if r.Context().Err() == nil {
			p.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		w.WriteHeader(http.StatusNotImplemented)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(err)
		return
	}
	on, err := http.NewRequestWithContext(r.Context(), r.Method, strings.TrimRight(upstream, "/")+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		fail(err)
		return
	}
	on.Header = r.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(on)
	if err != nil {
		fail(err)
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		fail(err)
		return
	}
	e := entry{Method: r.Method, Path: r.URL.Path, Status: resp.StatusCode, Header: map[string]string{}, Body: masked(string(without(answer)), r.Header)}
	if e.Request, err = canonical([]byte(masked(string(body), r.Header))); err != nil {
		fail(err)
		return
	}
	for _, name := range kept {
		if v := resp.Header.Get(name); v != "" {
			e.Header[name] = v
			w.Header().Set(name, v)
		}
	}
	p.mu.Lock()
	p.entries = append(p.entries, e)
	p.mu.Unlock()
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(answer) // the client may be gone
}

func (p *Tape) write() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for _, e := range p.entries {
		if err := enc.Encode(e); err != nil {
			p.t.Error(err)
			return
		}
	}
	if out.Len() > maxBytes {
		p.t.Errorf("a tape of %d bytes is more than %d: ask for less", out.Len(), maxBytes)
		return
	}
	if err := os.MkdirAll(filepath.Dir(p.file), 0o755); err != nil {
		p.t.Error(err)
		return
	}
	if err := os.WriteFile(p.file, out.Bytes(), 0o644); err != nil {
		p.t.Error(err)
	}
}

// canonical is JSON with sorted keys and no white space; nothing stays nothing.
func canonical(body []byte) (json.RawMessage, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, nil
	}
	v, err := decode(body)
	if err != nil {
		return nil, err
	}
	return encode(v)
}

func decode(body []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // durations are larger than a float64 holds exactly
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

func encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // a prompt is full of <tags>
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// without is an answer without the fields of leftOut. One that has none of them,
// or is not one JSON value, is kept byte for byte.
func without(answer []byte) []byte {
	v, err := decode(answer)
	if err != nil || !prune(v) {
		return answer
	}
	if out, err := encode(v); err == nil {
		return out
	}
	return answer
}

func prune(v any) (changed bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			if slices.Contains(leftOut, name) {
				delete(v, name)
				changed = true
			} else if prune(field) {
				changed = true
			}
		}
	case []any:
		for _, field := range v {
			if prune(field) {
				changed = true
			}
		}
	}
	return changed
}

// masked is a text without the keys of a request's headers.
func masked(text string, h http.Header) string {
	for _, v := range []string{strings.TrimPrefix(h.Get("Authorization"), "Bearer "), h.Get("Apikey")} {
		if v != "" {
			text = strings.ReplaceAll(text, v, "(key)")
		}
	}
	return text
}
