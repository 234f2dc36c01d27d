package bleveindex

import (
	"cmp"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/blevesearch/bleve/v2/index/scorch"
	bleve "github.com/blevesearch/bleve_index_api"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// lockWait is how long opening waits for another process that holds the index.
const lockWait = "2s"

const tokensKey = "tokens"

func appliedKey(stream, space string) string { return "applied/" + stream + "\n" + space }

// headKey holds how far any space has applied the stream.
func headKey(stream string) string { return "head/" + stream }

// shard is one scorch index.
type shard struct {
	idx *scorch.Scorch
	mu  sync.Mutex // one writer: a batch reads what stands, then adds
}

// openShard opens or creates the index at dir. One that is damaged is removed
// and made anew, empty and with positions 0.
func openShard(dir string, queue *bleve.AnalysisQueue) (*shard, error) {
	for attempt := 0; ; attempt++ {
		s, err := tryShard(dir, queue)
		switch {
		case err == nil:
			return s, nil
		case errors.Is(err, bolterrors.ErrTimeout):
			return nil, fault.At(fault.Unavailable, dir, "stop the other program that uses this folder", "index is locked")
		case errors.Is(err, os.ErrPermission) || attempt > 0:
			return nil, fault.As(fault.Unavailable, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, fault.As(fault.Unavailable, err)
		}
	}
}

func tryShard(dir string, queue *bleve.AnalysisQueue) (s *shard, err error) {
	// bolt maps its file and follows what stands there: a page past the end is a
	// fault, which ends the process where it is not asked to be a panic.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			s, err = nil, fault.New(fault.Corrupt, "opening panicked: %v", r)
		}
	}()
	if err := wholeBolt(filepath.Join(dir, "root.bolt")); err != nil {
		return nil, err
	}
	idx, err := scorch.NewScorch(scorch.Name, map[string]any{"path": dir, "bolt_timeout": lockWait}, queue)
	if err != nil {
		return nil, err
	}
	if err := idx.Open(); err != nil {
		return nil, err
	}
	return &shard{idx: idx.(*scorch.Scorch)}, nil
}

// wholeBolt refuses a bolt file that is shorter than its newest meta page says:
// opened, it would fault in whichever goroutine first reads a page that is
// gone. The meta page stands behind a page header of 16 bytes, twice: magic,
// version and page size (4 bytes each), flags, root (16 bytes), freelist, number
// of pages, transaction (8 bytes each), little-endian on every machine that this
// program is built for (bbolt, internal/common/meta.go). No file is no fault.
func wholeBolt(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	const header, magic, pages, tx, size = 16, 0xED0CDAED, 40, 48, 64
	var need, newest uint64
	at, pageSize := int64(0), int64(os.Getpagesize())
	for range 2 {
		var b [header + size]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			break // bolt says what an empty file, or half a page, is
		}
		if m := b[header:]; binary.LittleEndian.Uint32(m) == magic {
			if n := int64(binary.LittleEndian.Uint32(m[8:])); n >= 512 && n <= 1<<16 {
				pageSize = n
			}
			if t := binary.LittleEndian.Uint64(m[tx:]); t >= newest {
				newest, need = t, binary.LittleEndian.Uint64(m[pages:])
			}
		}
		at = pageSize
	}
	if need > uint64(st.Size()/pageSize) {
		return fault.New(fault.Corrupt, "root.bolt has %d pages of %d", st.Size()/pageSize, need)
	}
	return nil
}

func (s *shard) close() error { return fault.As(fault.Unavailable, s.idx.Close()) }

// snapshot is the index at one moment; the caller closes it.
func (s *shard) snapshot() (*scorch.IndexSnapshot, error) {
	r, err := s.idx.Reader()
	if err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	return r.(*scorch.IndexSnapshot), nil
}

func (s *shard) number(key string) (int64, error) {
	snap, err := s.snapshot()
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	return number(snap, key)
}

func number(snap *scorch.IndexSnapshot, key string) (int64, error) {
	b, err := snap.GetInternal([]byte(key))
	if err != nil || len(b) == 0 {
		return 0, fault.As(fault.Unavailable, err)
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, fault.As(fault.Corrupt, err)
}

func (s *shard) count() (int64, error) {
	snap, err := s.snapshot()
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	n, err := snap.DocCount()
	return int64(n), fault.As(fault.Unavailable, err)
}

// apply adds a batch and its position in one bleve batch, which returns when it
// is on disk.
func (s *shard) apply(st *stemmer, b *index.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap, err := s.snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	seq, err := number(snap, appliedKey(b.Stream, b.Space))
	if err != nil {
		return err
	}
	if b.Seq >= 1 && b.Seq <= seq {
		return nil
	}
	if err := index.Validate(b, 0); err != nil {
		return err
	}
	for i := range b.Nodes {
		if raw := b.Nodes[i].Level == memory.LevelRaw; raw != (b.Stream == memory.AdmitStream) {
			return fault.At(fault.Invalid, "node "+string(b.Nodes[i].ID), "", "level %s in stream %s", b.Nodes[i].Level, b.Stream)
		}
	}
	if b.Seq != seq+1 {
		return fault.New(fault.Unavailable, "seq %d is not next: %d is applied", b.Seq, seq)
	}
	batch := bleve.NewBatch()
	batch.SetInternal([]byte(appliedKey(b.Stream, b.Space)), strconv.AppendInt(nil, b.Seq, 10))
	head, err := number(snap, headKey(b.Stream))
	if err != nil {
		return err
	}
	if head >= b.Seq {
		// Another space brought these passages, and what replaced them since: they do not
		// depend on the space.
		return fault.As(fault.Unavailable, s.idx.Batch(batch))
	}
	batch.SetInternal([]byte(headKey(b.Stream)), strconv.AppendInt(nil, b.Seq, 10))
	tokens, err := number(snap, tokensKey)
	if err != nil {
		return err
	}
	if b.Replace {
		removed, err := replace(batch, snap, b)
		if err != nil {
			return err
		}
		tokens -= removed
	}
	current := index.Succession(b.Nodes)
	for _, n := range merged(b.Nodes) {
		if now, memory := current[n.ID]; memory && !now {
			continue // stated and replaced within the batch
		}
		added, err := addNode(batch, snap, st, &n, b.Replace)
		if err != nil {
			return err
		}
		tokens += added
	}
	for id, now := range current {
		if !now {
			removed, err := dropNode(batch, snap, id)
			if err != nil {
				return err
			}
			tokens -= removed
		}
	}
	batch.SetInternal([]byte(tokensKey), strconv.AppendInt(nil, tokens, 10))
	return fault.As(fault.Unavailable, s.idx.Batch(batch))
}

// merged is the batch's nodes with repeats united, in order.
func merged(nodes []index.Node) []index.Node {
	at := map[memory.SHA]int{}
	var out []index.Node
	for _, n := range nodes {
		n = index.Normal(n)
		if i, ok := at[n.ID]; ok {
			out[i] = index.Merge(out[i], n)
			continue
		}
		at[n.ID] = len(out)
		out = append(out, n)
	}
	return out
}

// addNode puts the node's passages into the batch and gives the words they add
// to the index. A node that stands keeps its passages and gains statements; with
// nothing new it is left alone. anew says that what stands of it goes.
func addNode(batch *bleve.Batch, snap *scorch.IndexSnapshot, st *stemmer, n *index.Node, anew bool) (int64, error) {
	var said []stated
	for _, o := range n.Occurrences {
		said = append(said, stated{index.Nano(o.Place.Time), o.Span.Object})
	}
	var was storedPart
	stands := false
	if !anew { // else what stood is taken out by the same batch
		var err error
		if was, stands, err = stored(snap, n.ID, 0); err != nil {
			return 0, err
		}
	}
	all := slices.Concat(was.said, said)
	slices.SortFunc(all, func(a, b stated) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.object, b.object)) })
	all = slices.Compact(all)
	if stands && len(all) == len(was.said) {
		return 0, nil
	}
	var words int64
	for i := range n.Passages {
		p := n.Passages[i]
		if stands {
			p.Embed = was.header + n.Text[p.Start:p.End]
			p.ID = index.PassageID(n.ID, p.N, p.Embed)
		}
		doc := newPassageDoc(st, n, &p, all)
		if !stands {
			words += int64(doc.fields[0].AnalyzedLength())
		}
		batch.Update(doc)
	}
	return words, nil
}

func standsKey(stream string) string { return "stands/" + stream }

// replace takes out what the last replacing batch of the stream put in, and gives the
// words that leave; see index.Batch. The batch keeps no node where another space is
// past it.
func replace(batch *bleve.Batch, snap *scorch.IndexSnapshot, b *index.Batch) (words int64, err error) {
	key := []byte(standsKey(b.Stream))
	was, err := snap.GetInternal(key)
	if err != nil {
		return 0, fault.As(fault.Unavailable, err)
	}
	if len(was) >= 8 && int64(binary.BigEndian.Uint64(was)) > b.Seq {
		b.Nodes = nil
		return 0, nil
	}
	for ids := was[min(8, len(was)):]; len(ids) >= 32; ids = ids[32:] {
		n, err := dropNode(batch, snap, sha(ids[:32]))
		if err != nil {
			return 0, err
		}
		words += n
	}
	now := binary.BigEndian.AppendUint64(nil, uint64(b.Seq))
	for i := range b.Nodes {
		a := array(b.Nodes[i].ID)
		now = append(now, a[:]...)
	}
	batch.SetInternal(key, now)
	return words, nil
}

// dropNode takes a node's passages out and gives the words that leave.
func dropNode(batch *bleve.Batch, snap *scorch.IndexSnapshot, node memory.SHA) (words int64, err error) {
	for n := 0; ; n++ {
		p, stands, err := stored(snap, node, n)
		if err != nil || !stands {
			return words, err
		}
		words += p.words
		batch.Delete(docID(node, n))
	}
}

// stored gives the stored part of a node's n-th passage; false when none stands.
func stored(snap *scorch.IndexSnapshot, node memory.SHA, n int) (p storedPart, stands bool, err error) {
	id := []string{docID(node, n)}
	for _, seg := range snap.Segments() {
		hits, err := seg.DocNumbers(id)
		if err != nil {
			return p, false, fault.As(fault.Unavailable, err)
		}
		if hits.IsEmpty() {
			continue
		}
		p, err = visitStored(seg, uint64(hits.Minimum()))
		return p, err == nil, err
	}
	return p, false, nil
}

func visitStored(seg *scorch.SegmentSnapshot, num uint64) (p storedPart, err error) {
	ok := false
	verr := seg.VisitDocument(num, func(field string, _ byte, value []byte, _ []uint64) bool {
		if field != fieldStore {
			return true
		}
		p, ok = unpackStored(value)
		return false
	})
	if verr != nil {
		return p, fault.As(fault.Unavailable, verr)
	}
	if !ok {
		return p, fault.At(fault.Corrupt, "lexical index", "run `mem rebuild`", "a passage without its stored part")
	}
	return p, nil
}
