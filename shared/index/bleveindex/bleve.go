// Package bleveindex is the embedded lexical leg: bleve's scorch index with
// Mneme's own analysis and BM25.
//
// bleve gives segments, postings, merges and crash safety. The score is
// computed here, because bleve's takes the square root of the term frequency
// and multiplies the idf in twice, and because one pass over the postings also
// gives the share of idf that matched and the bound that normalises.
//
// Invariant: a batch and its position are one bleve batch. After a kill an
// index opens as after some earlier batch; one that does not open is removed,
// and its positions with it, so that the next sweep fills it again.
//
// Format: <root>/version holds FormatVersion. <root>/<tenant>/<project>/mem is
// the scorch index of levels L0 to L2, …/raw that of level raw. One index a
// project: statistics of texts that a caller may not see never touch a score,
// and wiping a project removes a folder. <root>/.stage/<tenant> is an index that is built
// beside (see stage.go). Internal keys: "applied/<stream>\n<space>"
// (decimal), "head/<stream>" (decimal, the greatest of these), "tokens" (decimal, words of
// all passages) and "stands/<stream>" (8 bytes
// seq, then 32 bytes a node: what a replacing batch of the stream put in).
package bleveindex

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"

	bleve "github.com/blevesearch/bleve_index_api"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// FormatVersion is the version of layout and analysis.
//
// History: 1 — first. 2 — the objects of statements, and a stream's head over all spaces.
const FormatVersion = "2"

// Index is an open folder. It implements index.Lexical.
type Index struct {
	root  string
	queue *bleve.AnalysisQueue
	stems *stemmer

	mu     sync.RWMutex // guards shards and closed; held for reading by every call
	shards map[shardKey]*shard
	closed bool
}

var _ index.Lexical = (*Index)(nil)

type shardKey struct {
	tenant, project string
	raw             bool
}

// Open opens or creates the folder. No index is opened before it is needed. A
// version that is not FormatVersion is fault.Corrupt with its cure.
func Open(_ context.Context, root string) (ix *Index, err error) {
	defer fault.Wrap(&err, "bleveindex.Open(%s)", filepath.Base(root))
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	path := filepath.Join(root, "version")
	have, err := os.ReadFile(path)
	switch {
	case os.IsNotExist(err):
		if err := os.WriteFile(path, []byte(FormatVersion+"\n"), 0o600); err != nil {
			return nil, fault.As(fault.Unavailable, err)
		}
	case err != nil:
		return nil, fault.As(fault.Unavailable, err)
	case strings.TrimSpace(string(have)) != FormatVersion:
		return nil, fault.At(fault.Corrupt, path, "remove the folder and run `mem rebuild`: the index is rebuilt from the log, without a model call",
			"lexical index version %q, this program knows %s", strings.TrimSpace(string(have)), FormatVersion)
	}
	if err := settle(root); err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	return &Index{root: root, queue: bleve.NewAnalysisQueue(1), stems: newStemmer(), shards: map[shardKey]*shard{}}, nil
}

func (ix *Index) dir(k shardKey) string {
	kind := "mem"
	if k.raw {
		kind = "raw"
	}
	return filepath.Join(ix.root, k.tenant, k.project, kind)
}

// shard gives an open index; nil when there is none and create is false. The
// caller holds mu for reading until it is done with the shard.
func (ix *Index) shard(k shardKey, create bool) (*shard, error) {
	if !memory.ValidName(k.tenant) || !memory.ValidName(k.project) {
		return nil, nil // nothing can stand under such a name
	}
	for {
		if ix.closed {
			return nil, fault.New(fault.Unavailable, "the lexical index is closed")
		}
		if s := ix.shards[k]; s != nil {
			return s, nil
		}
		if _, err := os.Stat(ix.dir(k)); err != nil && !create {
			return nil, nil
		}
		ix.mu.RUnlock()
		err := ix.openShard(k)
		ix.mu.RLock()
		if err != nil {
			return nil, err
		}
		// Look again: Wipe or Close may have come between.
	}
}

func (ix *Index) openShard(k shardKey) error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed || ix.shards[k] != nil {
		return nil
	}
	s, err := openShard(ix.dir(k), ix.queue)
	if err == nil {
		ix.shards[k] = s
	}
	return err
}

// Apply implements index.Lexical.
func (ix *Index) Apply(ctx context.Context, b index.Batch) (err error) {
	defer fault.Wrap(&err, "bleveindex.Apply(%s/%s/%s, %d)", b.Tenant, b.Project, b.Stream, b.Seq)
	if err := ctx.Err(); err != nil {
		return err
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if !memory.ValidName(b.Tenant) || !memory.ValidName(b.Project) {
		return index.Validate(&b, 0)
	}
	s, err := ix.shard(keyOf(b.Tenant, b.Project, b.Stream), true)
	if err != nil {
		return err
	}
	return s.apply(ix.stems, &b)
}

func keyOf(tenant, project, stream string) shardKey {
	return shardKey{tenant, project, stream == memory.AdmitStream}
}

// Applied implements index.Lexical.
func (ix *Index) Applied(_ context.Context, tenant, project, stream, space string) (seq int64, err error) {
	defer fault.Wrap(&err, "bleveindex.Applied(%s/%s/%s)", tenant, project, stream)
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	s, err := ix.shard(keyOf(tenant, project, stream), false)
	if err != nil || s == nil {
		return 0, err
	}
	return s.number(appliedKey(stream, space))
}

// Passages implements index.Lexical.
func (ix *Index) Passages(_ context.Context, tenant string) (n int64, err error) {
	defer fault.Wrap(&err, "bleveindex.Passages(%s)", tenant)
	if !memory.ValidName(tenant) {
		return 0, nil
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	projects, err := os.ReadDir(filepath.Join(ix.root, tenant))
	if err != nil && !os.IsNotExist(err) {
		return 0, fault.As(fault.Unavailable, err)
	}
	for _, p := range projects {
		for _, raw := range []bool{false, true} {
			s, err := ix.shard(shardKey{tenant, p.Name(), raw}, false)
			if err != nil {
				return 0, err
			}
			if s == nil {
				continue
			}
			c, err := s.count()
			if err != nil {
				return 0, err
			}
			n += c
		}
	}
	return n, nil
}

// Wipe implements index.Lexical. It waits for searches under way.
func (ix *Index) Wipe(_ context.Context, tenant, project string) (err error) {
	defer fault.Wrap(&err, "bleveindex.Wipe(%s/%s)", tenant, project)
	if !memory.ValidName(tenant) || project != "" && !memory.ValidName(project) {
		return fault.New(fault.Invalid, "%q/%q is not a tenant and a project", tenant, project)
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for k, s := range ix.shards {
		if k.tenant == tenant && (project == "" || k.project == project) {
			if err := s.close(); err != nil {
				return err
			}
			delete(ix.shards, k)
		}
	}
	return fault.As(fault.Unavailable, os.RemoveAll(filepath.Join(ix.root, tenant, project)))
}

// Close implements index.Lexical. It waits for calls under way.
func (ix *Index) Close() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.closed {
		return nil
	}
	ix.closed = true
	var first error
	for _, s := range ix.shards {
		if err := s.close(); err != nil && first == nil {
			first = err
		}
	}
	ix.queue.Close()
	return first
}

func array(s memory.SHA) (a [32]byte) {
	hex.Decode(a[:], []byte(s)) // ids are validated before they come here
	return a
}

func sha(b []byte) memory.SHA { return memory.SHA(hex.EncodeToString(b)) }
