// Package osindex is the lexical index in OpenSearch: a document a passage, found by
// BM25 over words and their parts.
//
// Invariant: a batch's position is written after its passages, and only while nobody
// else wrote it since it was read. What a batch does to a passage is the same however
// often it is done: a passage's external version is the number of its batch, so that a
// late repeat changes nothing that a later batch did.
//
// Format: three indices behind the aliases <prefix>-passages, <prefix>-nodes and
// <prefix>-positions, of the mappings in the files of those names, the version of all in
// the name, and after a rebuild a tenant and a letter (stage.go). A node keeps the passages of its first statement, whose date is in their text:
//
//	mneme-passages-v1  _id: passage id   {"content":"2026-01-31 user: …","codes":["TS2322"],"tenant":…,"node":"<64 hex>","at":[nanoseconds],"said":[{"at":…,"source":…}],"row":{…}}
//	mneme-nodes-v1     _id: node id      {"tenant":…,"passages":["<64 hex>"]}
//	mneme-positions-v1 _id: sha256 of    {"tenant":…,"project":…,"stream":…,"spaces":{"<space>":3}}
//	                   tenant/project/stream
//
// Words are told apart by the server's analysers: an identifier is found whole and by its
// parts, an error code only as it is written, a misspelt word by one or two letters.
//
// What is applied is found by this process at once, by others after the index's refresh
// interval. A caller's own bearer token (index.WithBearer) takes the place of the
// configured credentials, so that the cluster's document level security decides what is
// seen. The package needs OpenSearch 2.
package osindex

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/opensearch-project/opensearch-go/v4"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
)

// SchemaVersion is in the names of the indices.
//
// History: 1 — first.
const SchemaVersion = 1

// Config says which cluster.
type Config struct {
	// URLs of its nodes, http(s)://[user:password@]host:port[/prefix].
	URLs []string
	// Prefix of the indices; where empty the path of a URL, and `mneme` without one.
	Prefix string
}

var (
	//go:embed passages.json
	passagesMapping []byte
	//go:embed nodes.json
	nodesMapping []byte
	//go:embed positions.json
	positionsMapping []byte
)

// Index is a cluster. It implements index.Lexical.
type Index struct {
	client *opensearch.Client
	// Aliases.
	passages, nodes, positions string

	dirty atomic.Bool // something was applied that a search may not see yet
}

var _ index.Lexical = (*Index)(nil)

var prefix = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,99}$`)

// Open connects and makes the indices where there are none.
func Open(ctx context.Context, c Config) (_ *Index, err error) {
	defer fault.Wrap(&err, "osindex.Open")
	cfg := opensearch.Config{DisableRetry: false, MaxRetries: 2}
	for _, raw := range c.URLs {
		u, err := url.Parse(raw)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fault.At(fault.Invalid, "the cluster's URL", "https://USER:PASSWORD@HOST:9200, several with commas", "it cannot be read")
		}
		if u.User != nil {
			cfg.Username = u.User.Username()
			cfg.Password, _ = u.User.Password()
			u.User = nil
		}
		if path := strings.Trim(u.Path, "/"); path != "" {
			if c.Prefix == "" {
				c.Prefix = path
			}
			u.Path = ""
		}
		cfg.Addresses = append(cfg.Addresses, u.String())
	}
	if len(cfg.Addresses) == 0 {
		return nil, fault.At(fault.Invalid, "the cluster's URL", "https://USER:PASSWORD@HOST:9200, several with commas", "there is none")
	}
	if c.Prefix == "" {
		c.Prefix = "mneme"
	}
	if !prefix.MatchString(c.Prefix) {
		return nil, fault.At(fault.Invalid, "the cluster's URL", "a prefix is of a-z, 0-9 and -", "%q is no prefix of an index", c.Prefix)
	}
	client, err := opensearch.NewClient(cfg)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the client cannot be made: %v", err)
	}
	ix := &Index{client: client, passages: c.Prefix + "-passages", nodes: c.Prefix + "-nodes", positions: c.Prefix + "-positions"}
	if err := ix.ensureAll(ctx); err != nil {
		return ix, err
	}
	return ix, ix.clean(ctx)
}

func (ix *Index) ensureAll(ctx context.Context) error {
	for _, x := range []struct {
		alias   string
		mapping []byte
	}{{ix.passages, passagesMapping}, {ix.nodes, nodesMapping}, {ix.positions, positionsMapping}} {
		if err := ix.ensure(ctx, x.alias, x.mapping); err != nil {
			return err
		}
	}
	return nil
}

// ensure makes the index of this version, and its alias, where they are missing.
func (ix *Index) ensure(ctx context.Context, alias string, mapping []byte) error {
	var have map[string]json.RawMessage
	switch err := ix.call(ctx, http.MethodGet, "/_alias/"+alias, nil, &have); {
	case fault.Is(err, fault.NotFound):
	case err != nil:
		return err
	default:
		for name := range have {
			if strings.HasPrefix(name, fmt.Sprintf("%s-v%d", alias, SchemaVersion)) {
				return ix.extend(ctx, alias, mapping)
			}
		}
		return fault.At(fault.Corrupt, "OpenSearch alias "+alias, "delete the alias and its index, and run `mem rebuild`: the index is filled from the log, without a model call", "it is of another version than %d", SchemaVersion)
	}
	var body map[string]any
	if err := json.Unmarshal(mapping, &body); err != nil {
		return err
	}
	body["aliases"] = map[string]any{alias: map[string]any{}}
	err := ix.call(ctx, http.MethodPut, fmt.Sprintf("/%s-v%d", alias, SchemaVersion), body, nil)
	if err != nil && strings.Contains(err.Error(), "resource_already_exists_exception") {
		return nil // another process was first
	}
	return err
}

// extend adds the fields that a later program of the same version knows. Rows that were
// written before have none of them until a rebuild.
func (ix *Index) extend(ctx context.Context, alias string, mapping []byte) error {
	type properties struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var want struct {
		Mappings properties `json:"mappings"`
	}
	if err := json.Unmarshal(mapping, &want); err != nil {
		return err
	}
	var have map[string]struct {
		Mappings properties `json:"mappings"`
	}
	if err := ix.call(ctx, http.MethodGet, "/"+alias+"/_mapping", nil, &have); err != nil {
		return err
	}
	missing := properties{map[string]json.RawMessage{}}
	for _, index := range have {
		for name, field := range want.Mappings.Properties {
			if _, ok := index.Mappings.Properties[name]; !ok {
				missing.Properties[name] = field
			}
		}
	}
	if len(missing.Properties) == 0 {
		return nil
	}
	return ix.call(ctx, http.MethodPut, "/"+alias+"/_mapping", missing, nil)
}

// Close implements index.Lexical.
func (ix *Index) Close() error { return ix.client.Close() }

// call sends one request with a JSON body, or with lines of it, and reads the answer. An
// answer of 300 and more is an error of its kind.
func (ix *Index) call(ctx context.Context, method, path string, body, into any) error {
	var b []byte
	kind := "application/json"
	switch v := body.(type) {
	case nil:
	case []byte:
		b, kind = v, "application/x-ndjson"
	default:
		var err error
		if b, err = json.Marshal(v); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	if b != nil {
		req.Header.Set("Content-Type", kind)
	}
	if token := index.Bearer(ctx); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := ix.client.Stream(req)
	if err != nil {
		if resp != nil {
			resp.Body.Close()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault.As(fault.Unavailable, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		return refused(resp.StatusCode, text)
	}
	if into == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fault.New(fault.Unavailable, "the answer to %s %s breaks off: %v", method, path, err)
	}
	return nil
}

// refused is the error of an answer.
func refused(status int, body []byte) error {
	var e struct {
		Error json.RawMessage `json:"error"`
	}
	var what struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(body, &e)
	if json.Unmarshal(e.Error, &what) != nil {
		what.Reason = strings.TrimSpace(string(body[:min(len(body), 300)]))
	}
	return errorOf(status, what.Type, what.Reason)
}

func errorOf(status int, kind, reason string) error {
	msg := fmt.Sprintf("%s: %s (%d)", kind, reason, status)
	switch {
	case strings.Contains(reason, "read-only") || kind == "cluster_block_exception":
		return fault.At(fault.Unavailable, "OpenSearch", "free space on its disks, then set index.blocks.read_only_allow_delete to null; nothing is lost, the log holds everything", "it takes no writes: %s", msg)
	case status == http.StatusNotFound && kind == "index_not_found_exception":
		return fault.At(fault.Corrupt, "OpenSearch", "run `mem rebuild`: the index is filled from the log, without a model call", "%s", msg)
	case status == http.StatusNotFound:
		return fault.New(fault.NotFound, "%s", msg)
	case status == http.StatusConflict:
		return fault.New(fault.Conflict, "%s", msg)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.At(fault.Denied, "OpenSearch", "look at the user's roles", "%s", msg)
	case status == http.StatusTooManyRequests || status >= 500:
		return fault.New(fault.Unavailable, "%s", msg)
	}
	return fault.New(fault.Internal, "%s", msg)
}
