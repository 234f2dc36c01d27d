package query_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
)

func TestOriginals(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)
	w := functest.New(t, functest.Options{Now: func() time.Time { return now }})
	secret := "ghp_" + strings.Repeat("aB3dE5fG7h", 4)[:36]
	text := "one\ntwo\nAuthorization: Bearer " + secret + "\nfour"

	decode := func(body []byte) query.Original {
		t.Helper()
		var o query.Original
		if err := json.Unmarshal(body, &o); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return o
	}
	rec := w.Call(http.MethodPost, "/memory/original", map[string]string{"project": "api", "text": text})
	if rec.Code != http.StatusOK {
		t.Fatal(rec.Code, rec.Body)
	}
	stored := decode(rec.Body.Bytes())
	if !stored.Masked || stored.Lines != 4 || stored.Project != "api" {
		t.Errorf("stored %+v", stored)
	}

	short := stored.SHA256[:24]
	rec = w.Call(http.MethodGet, "/memory/original/"+short+"?project=api", nil)
	got := decode(rec.Body.Bytes())
	if rec.Code != http.StatusOK || got.Text == nil || strings.Contains(*got.Text, secret) || !strings.HasPrefix(*got.Text, "one\ntwo\nAuthorization: Bearer [REDACTED:") || !strings.HasSuffix(*got.Text, "\nfour") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	for lines, want := range map[string]string{"2": "two\n", "1-2": "one\ntwo\n", "4-9": "four"} {
		rec = w.Call(http.MethodGet, "/memory/original/"+short+"?project=api&lines="+lines, nil)
		if got := decode(rec.Body.Bytes()); got.Text == nil || *got.Text != want {
			t.Errorf("lines %s: %s", lines, rec.Body)
		}
	}

	for _, c := range []struct {
		name, target, code string
		status             int
	}{
		{"another project", "/memory/original/" + short + "?project=web", "not_found", 404},
		{"no project", "/memory/original/" + short, "invalid", 400},
		{"never stored", "/memory/original/" + strings.Repeat("0", 24) + "?project=api", "not_found", 404},
		{"no hash", "/memory/original/xyz?project=api", "invalid", 400},
		{"lines that are none", "/memory/original/" + short + "?project=api&lines=9-2", "invalid", 400},
		{"lines past the end", "/memory/original/" + short + "?project=api&lines=7", "invalid", 400},
	} {
		rec := w.Call(http.MethodGet, c.target, nil)
		if rec.Code != c.status || !strings.Contains(rec.Body.String(), `"code":"`+c.code+`"`) {
			t.Errorf("%s: %d %s", c.name, rec.Code, rec.Body)
		}
	}
	now = now.Add(2 * time.Hour)
	rec = w.Call(http.MethodGet, "/memory/original/"+short+"?project=api", nil)
	if rec.Code != http.StatusGone || !strings.Contains(rec.Body.String(), `"code":"expired"`) {
		t.Errorf("after its time: %d %s", rec.Code, rec.Body)
	}
	rec = w.Call(http.MethodPost, "/memory/original", map[string]string{"project": "../x", "text": "x"})
	if rec.Code != http.StatusBadRequest {
		t.Errorf("a project that is none: %d %s", rec.Code, rec.Body)
	}
}
