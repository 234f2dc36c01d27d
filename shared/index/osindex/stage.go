package osindex

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// This file builds a tenant's index beside the one that serves: three indices without an
// alias,
//
//	mneme-passages-v1-<8 hex of the tenant's sha256>-a   or -b, whichever does not serve
//
// and so on. Switch moves the three aliases to them in one request, which also puts what
// they replace under the aliases mneme-passages-old and so on, and deletes that once no
// search reads it any more. What a process that is killed in between leaves there is
// deleted by the next Open or Stage.

var (
	_ index.LexicalStager = (*Index)(nil)
	_ index.Named         = (*Index)(nil)
)

// Name implements index.Named.
func (ix *Index) Name() string { return "os" }

type staged struct {
	*Index // its aliases are the names of the staged indices
	of     *Index
	tenant string
	gone   bool // switched or dropped
}

// Stage implements index.LexicalStager.
func (ix *Index) Stage(ctx context.Context, tenant string) (_ index.StagedLexical, err error) {
	defer fault.Wrap(&err, "osindex.Stage(%s)", tenant)
	if tenant == "" {
		return nil, fault.New(fault.Invalid, "a tenant is needed")
	}
	if err := ix.ensureAll(ctx); err != nil { // they may have been deleted
		return nil, err
	}
	if err := ix.clean(ctx); err != nil {
		return nil, err
	}
	serving, err := ix.under(ctx, ix.passages)
	if err != nil {
		return nil, err
	}
	own := fmt.Sprintf("-v%d-%s-", SchemaVersion, memory.SumString(tenant)[:8])
	slot := own + "a"
	if slices.Contains(serving, ix.passages+slot) {
		slot = own + "b"
	}
	s := &staged{Index: &Index{client: ix.client, passages: ix.passages + slot, nodes: ix.nodes + slot, positions: ix.positions + slot}, of: ix, tenant: tenant}
	// Positions last: where they stand, the others do.
	anew := false
	for _, x := range []struct {
		name    string
		mapping []byte
	}{{s.passages, passagesMapping}, {s.nodes, nodesMapping}, {s.positions, positionsMapping}} {
		if x.name == s.positions && anew { // positions of a former one say nothing
			if err := s.delete(ctx, s.positions); err != nil {
				return nil, err
			}
		}
		body, err := unsearched(x.mapping)
		if err != nil {
			return nil, err
		}
		err = ix.call(ctx, http.MethodPut, "/"+x.name, body, nil)
		if err != nil && !exists(err) {
			return nil, err
		}
		anew = anew || err == nil
	}
	s.dirty.Store(true) // what a former process applied was never refreshed
	return s, nil
}

// unsearched is a mapping without a refresh every second, which would be for nothing.
func unsearched(mapping []byte) (body map[string]any, err error) {
	if err := json.Unmarshal(mapping, &body); err != nil {
		return nil, err
	}
	if settings, ok := body["settings"].(map[string]any); ok {
		if ix, ok := settings["index"].(map[string]any); ok {
			ix["refresh_interval"] = "-1"
		}
	}
	return body, nil
}

func exists(err error) bool {
	return err != nil && strings.Contains(err.Error(), "resource_already_exists_exception")
}

func (ix *Index) delete(ctx context.Context, names ...string) error {
	return ix.call(ctx, http.MethodDelete, "/"+strings.Join(names, ",")+"?ignore_unavailable=true", nil, nil)
}

// Close implements index.Lexical: the connection is the serving one's.
func (s *staged) Close() error { return nil }

// Drop implements index.Staged.
func (s *staged) Drop(ctx context.Context) error {
	if s.gone {
		return nil
	}
	s.gone = true
	return s.delete(ctx, s.positions, s.nodes, s.passages)
}

// Switch implements index.Staged. Documents of other tenants are copied before, positions
// first: what another process writes meanwhile has a position that was not copied, and is
// applied again.
func (s *staged) Switch(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "osindex.Switch(%s)", s.tenant)
	if s.gone {
		return fault.New(fault.Internal, "switched or dropped already")
	}
	pairs := []struct{ alias, name string }{{s.of.positions, s.positions}, {s.of.nodes, s.nodes}, {s.of.passages, s.passages}}
	for _, p := range pairs {
		if err := s.copyOthers(ctx, p.alias, p.name); err != nil {
			return err
		}
	}
	all := "/" + s.passages + "," + s.nodes + "," + s.positions
	if err := s.call(ctx, http.MethodPut, all+"/_settings", map[string]any{"index": map[string]any{"refresh_interval": nil}}, nil); err != nil {
		return err
	}
	if err := s.call(ctx, http.MethodPost, all+"/_refresh", nil, nil); err != nil {
		return err
	}
	var actions []any
	for _, p := range pairs {
		serving, err := s.under(ctx, p.alias)
		if err != nil {
			return err
		}
		for _, name := range serving {
			actions = append(actions, map[string]any{"remove": map[string]any{"index": name, "alias": p.alias}}, map[string]any{"add": map[string]any{"index": name, "alias": p.alias + "-old"}})
		}
		actions = append(actions, map[string]any{"add": map[string]any{"index": p.name, "alias": p.alias}})
	}
	if err := s.call(ctx, http.MethodPost, "/_aliases", map[string]any{"actions": actions}, nil); err != nil {
		return err
	}
	s.gone = true
	if err := s.of.idle(ctx); err != nil {
		return err
	}
	return s.of.clean(ctx)
}

// under lists the indices of an alias.
func (ix *Index) under(ctx context.Context, alias string) (names []string, err error) {
	var have map[string]json.RawMessage
	err = ix.call(ctx, http.MethodGet, "/_alias/"+alias, nil, &have)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return slices.Sorted(maps.Keys(have)), err
}

// A search that found an index behind the alias before the switch reads it for some
// milliseconds after.
const (
	idlePause = 100 * time.Millisecond
	idleTries = 100
)

// idle waits until nobody searches what was replaced, for ten seconds at most.
func (ix *Index) idle(ctx context.Context) error {
	names, err := ix.under(ctx, ix.passages+"-old")
	if err != nil || len(names) == 0 {
		return err
	}
	for quiet, try := 0, 0; quiet < 2 && try < idleTries; try++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(idlePause):
		}
		var out struct {
			All struct {
				Total struct {
					Search struct {
						Query int64 `json:"query_current"`
						Fetch int64 `json:"fetch_current"`
					} `json:"search"`
				} `json:"total"`
			} `json:"_all"`
		}
		if err := ix.call(ctx, http.MethodGet, "/"+strings.Join(names, ",")+"/_stats/search", nil, &out); err != nil {
			return err
		}
		if quiet++; out.All.Total.Search.Query+out.All.Total.Search.Fetch > 0 {
			quiet = 0
		}
	}
	return nil
}

// clean deletes what a switch replaced.
func (ix *Index) clean(ctx context.Context) error {
	var old []string
	for _, alias := range []string{ix.passages, ix.nodes, ix.positions} {
		names, err := ix.under(ctx, alias+"-old")
		if err != nil {
			return err
		}
		old = append(old, names...)
	}
	if len(old) == 0 {
		return nil
	}
	return ix.delete(ctx, old...)
}

// copyOthers copies what other tenants have under an alias.
func (s *staged) copyOthers(ctx context.Context, alias, name string) error {
	others := map[string]any{"bool": map[string]any{"must_not": []any{term("tenant", s.tenant)}}}
	if err := s.call(ctx, http.MethodPost, "/"+alias+"/_refresh", nil, nil); err != nil {
		return err
	}
	var some struct {
		Count int64 `json:"count"`
	}
	if err := s.call(ctx, http.MethodPost, "/"+alias+"/_count", map[string]any{"query": others}, &some); err != nil || some.Count == 0 {
		return err
	}
	var out struct {
		Failures []json.RawMessage `json:"failures"`
	}
	// Versions are kept: a passage's is the number of its batch.
	err := s.call(ctx, http.MethodPost, "/_reindex?refresh=true", map[string]any{
		"conflicts": "proceed", "source": map[string]any{"index": alias, "query": others}, "dest": map[string]any{"index": name, "version_type": "external"},
	}, &out)
	if err == nil && len(out.Failures) > 0 {
		err = fault.New(fault.Unavailable, "%d documents of other tenants could not be copied, the first: %s", len(out.Failures), out.Failures[0])
	}
	return err
}
