package osindex_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/index/indextest"
	"github.com/mneme-ai/mneme/shared/index/osindex"
	"github.com/mneme-ai/mneme/shared/memory"
)

const script = "../../../infra/local/services/opensearch.sh"

// secured starts a cluster with the security plugin, and gives its URL with the
// credentials of an administrator, and the key of its tokens.
func secured(t *testing.T) (url string, key []byte) {
	t.Helper()
	cluster(t) // says whether OpenSearch is to be had
	if testing.Short() {
		t.Skip("starts a cluster of its own; runs without -short")
	}
	dir, err := os.MkdirTemp("", "mneme-os-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command(script, "kill", dir).Run()
		os.RemoveAll(dir)
	})
	cmd := exec.Command(script, "start", dir, "0", "security")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("opensearch.sh start: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "config", "jwt.key"))
	if err != nil {
		t.Fatal(err)
	}
	if key, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(raw))); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(strings.TrimSpace(string(out)), "http://", "http://admin:admin@", 1), key
}

// token is a JSON Web Token with these roles.
func token(key []byte, subject string, roles ...string) string {
	enc := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	body := enc(map[string]string{"alg": "HS256", "typ": "JWT"}) + "." + enc(map[string]any{"sub": subject, "roles": roles, "exp": time.Now().Add(time.Hour).Unix()})
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(body))
	return body + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func put(t *testing.T, url, body string) {
	t.Helper()
	var code int
	for range 20 { // the plugin answers 503 until it has read its configuration
		req, err := http.NewRequest(http.MethodPut, url, bytes.NewReader([]byte(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if code = resp.StatusCode; code < 300 {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Fatalf("PUT %s: %d", url[strings.LastIndex(url, "@")+1:], code)
}

// TestSecurity: the caller's own token decides what is seen: a reader of one project
// finds that project alone whatever is asked for, may not write, and a token that is
// forged or has no role is refused.
func TestSecurity(t *testing.T) {
	t.Parallel()
	url, key := secured(t)
	api := url + "/_plugins/_security/api"
	put(t, api+"/roles/read_vault", `{"index_permissions":[{"index_patterns":["mneme-*"],"allowed_actions":["read"]}]}`)
	put(t, api+"/roles/read_vault_shop", `{"index_permissions":[{"index_patterns":["mneme-*"],"allowed_actions":["read"],"dls":"{\"term\":{\"project\":\"shop\"}}"}]}`)
	put(t, api+"/roles/write_vault", `{"cluster_permissions":["indices:data/write/bulk","indices:data/read/mget"],"index_permissions":[{"index_patterns":["mneme-*"],"allowed_actions":["crud","create_index","indices:admin/aliases*","indices:admin/get","indices:admin/refresh*"]}]}`)
	put(t, api+"/roles/read_vault_bank", `{"index_permissions":[{"index_patterns":["mneme-*"],"allowed_actions":["read"],"dls":"{\"term\":{\"project\":\"bank\"}}"}]}`)
	for _, role := range []string{"read_vault", "read_vault_shop", "read_vault_bank", "write_vault"} {
		put(t, api+"/rolesmapping/"+role, `{"backend_roles":["`+role+`"]}`)
	}
	ix, err := osindex.Open(t.Context(), osindex.Config{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	as := func(roles ...string) context.Context {
		return index.WithBearer(t.Context(), token(key, "caller", roles...))
	}
	for name, batches := range indextest.Story() {
		for _, b := range batches {
			if err := ix.Apply(as("write_vault"), b); err != nil {
				t.Fatalf("%s as a writer: %v", name, err)
			}
		}
	}
	f := index.Filter{Tenant: indextest.Tenant, Projects: []string{indextest.Project, "other"}}
	projects := func(ctx context.Context) map[string]bool {
		t.Helper()
		hits, err := ix.Search(ctx, "proxy archive rows port", f, 50)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]bool{}
		other := indextest.Evidence("other", "decisions@11111111", "We serve on port 8080 behind the proxy.", 1).ID
		mine := indextest.Evidence(indextest.Project, "decisions@11111111", "We serve on port 8080 behind the proxy.", 1).ID
		for _, h := range hits {
			out["other"] = out["other"] || h.Node == other
			out[indextest.Project] = out[indextest.Project] || h.Node == mine
		}
		return out
	}
	if got := projects(as("read_vault")); !got["other"] || !got[indextest.Project] {
		t.Errorf("a reader of all sees %v", got)
	}
	if got := projects(as("read_vault_shop")); got["other"] || !got[indextest.Project] {
		t.Errorf("a reader of one project sees %v", got)
	}
	b := index.Batch{Tenant: indextest.Tenant, Project: indextest.Project, Stream: "new@1", Space: indextest.Space, Seq: 1,
		Nodes: []index.Node{indextest.Evidence(indextest.Project, "new@1", "Logs rotate daily.", 1)}, Vectors: map[memory.SHA][]float32{}}
	if err := ix.Apply(as("read_vault"), b); !fault.Is(err, fault.Denied) {
		t.Errorf("a reader writes: %v", err)
	}
	for name, bad := range map[string]string{"no role": token(key, "caller"), "forged": token([]byte("another key"), "caller", "read_vault"), "no token at all": "x"} {
		if _, err := ix.Search(index.WithBearer(t.Context(), bad), "port", f, 5); !fault.Is(err, fault.Denied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	throughQuery(t, ix, key)
}

// throughQuery asks over the query function's route: each caller's own token decides what
// the words find, a token that is refused is named, and none is shown.
func throughQuery(t *testing.T, ix *osindex.Index, key []byte) {
	const header = "X-Mneme-Index-Token"
	w := functest.New(t, functest.Options{Lexical: ix, Caller: func(r *http.Request) string { return r.Header.Get(header) }})
	w.Ask("shop", "decisions")
	w.Ask("bank", "decisions")
	at := time.Date(2026, 2, 1, 9, 0, 0, 0, time.UTC)
	w.Learned("shop/a.jsonl", functest.Decision("a", at, "We decided to cap retries of the zebra gateway at 5 attempts, because the upstream bans us."))
	w.Learned("bank/b.jsonl", functest.Decision("b", at, "We decided that the zebra ledger is closed at 5 every day, because the audit asks for it."))
	mux := http.NewServeMux()
	w.Query.Routes(mux)
	ask := func(jwt, params string) (*httptest.ResponseRecorder, query.Answer) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/memory/query?project=shop,bank&level=L0&query=at+how+many+attempts+are+retries+of+the+zebra+gateway+capped,+and+when+is+the+zebra+ledger+closed+for+the+audit%3F&"+params, nil)
		r.Header.Set("Authorization", "Bearer the-program's-own")
		if jwt != "" {
			r.Header.Set(header, jwt)
		}
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, r)
		var a query.Answer
		_ = json.Unmarshal(rec.Body.Bytes(), &a)
		return rec, a
	}
	for role, want := range map[string][]string{"read_vault": {"bank", "shop"}, "read_vault_shop": {"shop"}, "read_vault_bank": {"bank"}} {
		rec, a := ask(token(key, "caller", role), "dense_weight=0")
		var got []string
		for _, r := range a.Results {
			got = append(got, r.Project)
		}
		slices.Sort(got)
		if d := cmp.Diff(want, slices.Compact(got)); rec.Code != http.StatusOK || d != "" || len(a.Degraded) > 0 {
			t.Errorf("%s: %d %s (-want +got):\n%s", role, rec.Code, rec.Body, d)
		}
	}
	for name, jwt := range map[string]string{"no role": token(key, "caller"), "forged": token([]byte("another key"), "caller", "read_vault"), "none": ""} {
		rec, _ := ask(jwt, "dense_weight=0")
		if rec.Code != http.StatusForbidden || jwt != "" && strings.Contains(rec.Body.String(), jwt) {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
		rec, a := ask(jwt, "") // meaning answers, and the answer says what words did not
		if rec.Code != http.StatusOK || len(a.Degraded) != 1 || a.Degraded[0].Leg != "lexical" || len(a.Results) == 0 || jwt != "" && strings.Contains(rec.Body.String(), jwt) {
			t.Errorf("%s: %d %s", name, rec.Code, rec.Body)
		}
	}
	// What one caller is refused makes no other one wait.
	if _, a := ask(token(key, "caller", "read_vault_shop"), ""); len(a.Degraded) != 0 {
		t.Errorf("%+v", a.Degraded)
	}
}
