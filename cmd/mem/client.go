package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/questions"
	"github.com/mneme-ai/mneme/shared/serve"
)

// client talks to a Mneme over HTTP.
type client struct {
	base  string
	token string
	http  *http.Client

	indexToken string // MNEME_INDEX_TOKEN, the caller's own for the lexical index's cluster

	mapped questions.Projects // as known found them
}

// newHTTP follows no redirect: a token never does.
func newHTTP() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// client finds the server: MNEME_URL and MNEME_TOKEN, else the folder.
func (a *app) client() (*client, error) {
	c := &client{http: newHTTP(), indexToken: a.getenv("MNEME_INDEX_TOKEN")}
	if u := a.getenv("MNEME_URL"); u != "" && a.dir == "" {
		c.base, c.token = strings.TrimSuffix(u, "/"), a.getenv("MNEME_TOKEN")
		if c.token == "" {
			return nil, usageError{errors.New("MNEME_URL is set and MNEME_TOKEN is not")}
		}
		return c, nil
	}
	r, err := wire.ReadReady(a.folder())
	if err != nil {
		return nil, noServer{err}
	}
	creds, err := wire.ReadCredentials(a.folder())
	if err != nil {
		return nil, noServer{err}
	}
	c.base, c.token = r.HTTP, creds.Token.Reveal()
	return c, nil
}

// do sends one request; a status over 299 becomes the error that the server
// described.
func (c *client) do(ctx context.Context, method, path string, contentType string, body io.Reader, size int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if size >= 0 && body != nil {
		req.ContentLength = size
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if c.indexToken != "" {
		req.Header.Set(wire.IndexTokenHeader, c.indexToken)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if method == http.MethodPut {
		req.Header.Set("Expect", "100-continue") // a refused body is not sent
	}
	if contentType == ndjson {
		req.Header.Set("Accept", ndjson)
		req.Header.Del("Content-Type")
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, noServer{fault.At(fault.Unavailable, c.base, "start it with: mem up", "%v", errors.Unwrap(err))}
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, problem(resp)
}

// ndjson asks for an answer in lines, with progress.
const ndjson = "application/x-ndjson"

func problem(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fault.As(fault.Unavailable, err)
	}
	var p serve.Problem
	if json.Unmarshal(b, &p) != nil || p.Message == "" {
		p.Message = fmt.Sprintf("the server answered %s", resp.Status)
	}
	return asError(p, resp.StatusCode)
}

func asError(p serve.Problem, status int) error {
	kind := map[int]fault.Kind{
		400: fault.Invalid, 401: fault.Denied, 403: fault.Denied, 404: fault.NotFound, 409: fault.Conflict,
		413: fault.Invalid, 415: fault.Invalid, 422: fault.Corrupt, 429: fault.Exhausted, 503: fault.Unavailable,
	}[status]
	return &fault.Error{Kind: kind, Msg: p.Message, Hint: p.Hint}
}

// kindOf is the kind that an answer names, which began before its status was known.
func kindOf(code string) fault.Kind {
	for k := fault.Internal; k <= fault.Denied; k++ {
		if k.String() == code {
			return k
		}
	}
	return fault.Unavailable
}

// get decodes a JSON answer.
func (c *client) get(ctx context.Context, path string, into any) error {
	resp, err := c.do(ctx, http.MethodGet, path, "", nil, -1)
	if err != nil {
		return err
	}
	return decode(resp, into)
}

func decode(resp *http.Response, into any) error {
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fault.New(fault.Unavailable, "the server's answer broke off: %v", err)
	}
	return nil
}

// send posts JSON and decodes the answer.
func (c *client) send(ctx context.Context, method, path string, body, into any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	resp, err := c.do(ctx, method, path, "application/json", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	return decode(resp, into)
}

// long runs a call that reports progress in lines; the last holds the result.
// body, when not nil, is sent as JSON.
func (c *client) long(ctx context.Context, method, path string, body any, progress func(json.RawMessage), into any) error {
	var r io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r = bytes.NewReader(b)
	}
	resp, err := c.do(ctx, method, path, ndjson, r, -1)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	for {
		var line struct {
			Progress json.RawMessage `json:"progress"`
			Result   json.RawMessage `json:"result"`
			Error    *serve.Problem  `json:"error"`
		}
		if err := dec.Decode(&line); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fault.New(fault.Unavailable, "the server's answer broke off: %v", err)
		}
		switch {
		case line.Error != nil:
			return &fault.Error{Kind: kindOf(line.Error.Code), Msg: line.Error.Message, Hint: line.Error.Hint}
		case line.Result != nil:
			return json.Unmarshal(line.Result, into)
		case progress != nil:
			progress(line.Progress)
		}
	}
}

// lines copies an NDJSON answer line by line.
func (c *client) lines(ctx context.Context, path string, each func([]byte) error) error {
	resp, err := c.do(ctx, http.MethodGet, path, "", nil, -1)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 256<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := each(bytes.TrimRight(line, "\n")); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fault.New(fault.Unavailable, "the server's answer broke off: %v", err)
		}
	}
}

// known lists the projects the server knows, and notes its mappings.
func (c *client) known(ctx context.Context) ([]string, error) {
	var out struct {
		Projects []struct {
			Project string `json:"project"`
		} `json:"projects"`
		Mappings []struct {
			CWD     string `json:"cwd"`
			Project string `json:"project"`
		} `json:"mappings"`
		MappingsError string `json:"mappings_error"`
	}
	if err := c.get(ctx, "/memory/projects", &out); err != nil {
		return nil, err
	}
	if out.MappingsError != "" {
		return nil, fault.At(fault.Invalid, "projects.yaml", "correct the file", "%s", out.MappingsError)
	}
	c.mapped.Mappings = nil
	for _, m := range out.Mappings {
		c.mapped.Mappings = append(c.mapped.Mappings, questions.Mapping{CWD: m.CWD, Project: m.Project})
	}
	names := make([]string, len(out.Projects))
	for i, p := range out.Projects {
		names[i] = p.Project
	}
	return names, nil
}

// byPrefix finds the one known name that want is or begins; want itself when
// none does, so that a new project can be named.
func byPrefix(known []string, want string) (string, error) {
	if slices.Contains(known, want) {
		return want, nil
	}
	var hits []string
	for _, k := range known {
		if strings.HasPrefix(k, want) {
			hits = append(hits, k)
		}
	}
	switch len(hits) {
	case 0:
		return want, nil
	case 1:
		return hits[0], nil
	}
	return "", usageError{fmt.Errorf("--project %s means %s: type more of the name", want, strings.Join(hits, ", "))}
}

// named is the project that --project means. A name typed in full is taken as
// it is where the list can not be had: the broken file of one project does not
// keep the others from being asked.
func (a *app) named(ctx context.Context, c *client) (string, error) {
	known, err := c.known(ctx)
	switch kind := fault.KindOf(err); {
	case err == nil:
		return byPrefix(known, a.project)
	case (kind == fault.Invalid || kind == fault.Corrupt) && memory.ValidName(a.project):
		return a.project, nil
	}
	return "", err
}

// scope is the project a reading command means: the one named, else that of
// the working directory where the server knows it, else "" for all.
func (a *app) scope(ctx context.Context, c *client) (string, error) {
	if a.project != "" {
		return a.named(ctx, c)
	}
	known, err := c.known(ctx)
	if err != nil {
		return "", err
	}
	if name, ok := workingProject(c.mapped); ok && slices.Contains(known, name) {
		return name, nil
	}
	return "", nil
}

// inOne is the client and the project of a command that needs exactly one.
func (a *app) inOne(ctx context.Context) (*client, string, error) {
	c, err := a.client()
	if err != nil {
		return nil, "", err
	}
	p, err := a.one(ctx, c)
	return c, p, err
}

// one is scope for commands that need exactly one project.
func (a *app) one(ctx context.Context, c *client) (string, error) {
	p, err := a.scope(ctx, c)
	if err != nil || p != "" {
		return p, err
	}
	known, err := c.known(ctx)
	if err != nil {
		return "", err
	}
	if len(known) == 1 {
		return known[0], nil
	}
	return "", usageError{fmt.Errorf("name a project with --project; known: %s", strings.Join(known, ", "))}
}

func queryString(kv ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i+1] != "" {
			v.Set(kv[i], kv[i+1])
		}
	}
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}

// printJSON prints one value.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// age is a time as people read it.
func age(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04")
}
