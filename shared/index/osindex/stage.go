package osindex

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// This file builds a tenant's index beside the one that serves: three indices without an
// alias,
//
//	mneme-passages-v1-<8 hex of the tenant's sha256>-a   or -b, whichever does not serve
//
// and so on. Switch moves the three aliases to them and deletes what they replace, in one
// request.

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
	var serving map[string]json.RawMessage
	if err := ix.call(ctx, http.MethodGet, "/_alias/"+ix.passages, nil, &serving); err != nil {
		return nil, err
	}
	own := fmt.Sprintf("-v%d-%s-", SchemaVersion, memory.SumString(tenant)[:8])
	slot := own + "a"
	if _, ok := serving[ix.passages+slot]; ok {
		slot = own + "b"
	}
	s := &staged{Index: &Index{client: ix.client, passages: ix.passages + slot, nodes: ix.nodes + slot, positions: ix.positions + slot}, of: ix, tenant: tenant}
	// Positions last: where they stand, the others do.
	for _, x := range []struct {
		name    string
		mapping []byte
	}{{s.passages, passagesMapping}, {s.nodes, nodesMapping}, {s.positions, positionsMapping}} {
		err := ix.call(ctx, http.MethodPut, "/"+x.name, json.RawMessage(x.mapping), nil)
		if err != nil && !exists(err) {
			return nil, err
		}
		if err == nil && x.name != s.positions { // begun anew: positions of a former one say nothing
			if err := s.delete(ctx, s.positions); err != nil {
				return nil, err
			}
		}
	}
	// Nobody searches it: a refresh every second would be for nothing.
	return s, s.settings(ctx, "-1")
}

func exists(err error) bool {
	return err != nil && strings.Contains(err.Error(), "resource_already_exists_exception")
}

// settings sets the refresh interval; nil is the server's default.
func (s *staged) settings(ctx context.Context, interval any) error {
	return s.call(ctx, http.MethodPut, "/"+s.passages+","+s.nodes+","+s.positions+"/_settings", map[string]any{"index": map[string]any{"refresh_interval": interval}}, nil)
}

func (s *staged) delete(ctx context.Context, names ...string) error {
	return s.call(ctx, http.MethodDelete, "/"+strings.Join(names, ",")+"?ignore_unavailable=true", nil, nil)
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
	if err := s.settings(ctx, nil); err != nil {
		return err
	}
	if err := s.call(ctx, http.MethodPost, "/"+s.passages+","+s.nodes+","+s.positions+"/_refresh", nil, nil); err != nil {
		return err
	}
	var actions []any
	for _, p := range pairs {
		var serving map[string]json.RawMessage
		if err := s.call(ctx, http.MethodGet, "/_alias/"+p.alias, nil, &serving); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		for name := range serving {
			actions = append(actions, map[string]any{"remove_index": map[string]any{"index": name}})
		}
		actions = append(actions, map[string]any{"add": map[string]any{"index": p.name, "alias": p.alias}})
	}
	if err := s.call(ctx, http.MethodPost, "/_aliases", map[string]any{"actions": actions}, nil); err != nil {
		return err
	}
	s.gone = true
	return nil
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
