package export

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Sizes of what is held before it is written, in bytes of plain text: they bound the
// memory of an export, and follow from the rows alone, so that the bytes do too. The pages
// of a row group wait in temporary files; what a writer keeps of each group until the
// footer, some 2 KB a column, is why groups are large.
const (
	batchBytes    = 1 << 20
	batchRows     = 512
	rowGroupBytes = 128 << 20
	// dictionaryBytes bounds one column's dictionary; a column with more different
	// values goes on without one.
	dictionaryBytes = 1 << 20
)

// Keys of the files' key-value metadata.
const (
	metaFile   = "mneme.file"
	metaSchema = "mneme.schema"
	metaExport = "mneme.export_id"
)

// longColumns hold texts of any length: a page's least and greatest of them say
// nothing that a reader could skip by, and would stand in the footer in full.
var longColumns = map[string][][]string{
	Gates:   {{"prompt_system"}, {"prompt_user"}, {"raw_output"}, {"raw_reasoning"}, {"completion"}, {"reason"}, {"think"}, {"question"}},
	SFT:     {message("messages")},
	SFTPC:   {message("prompt"), message("completion")},
	KTO:     {message("prompt"), message("completion")},
	KTOFlat: {message("messages")},
	DPO:     {message("prompt"), message("chosen"), message("rejected")},
	DPOFlat: {message("messages"), {"chosen", "content"}, {"rejected", "content"}},
	VerlRL:  {message("prompt"), {"context"}, {"extra_info", "question"}},
}

func message(column string) []string { return []string{column, "list", "element", "content"} }

// compressor is shared by all files: an encoder keeps 16 MB of what went through it, and
// one a column and file would be most of an export's memory.
type compressor struct {
	zstd.Codec
	room chan struct{} // an encoder each
}

// maxEncoders bounds how many pages are compressed at a time.
const maxEncoders = 4

func newCompressor() *compressor {
	return &compressor{zstd.Codec{Level: zstd.SpeedDefault}, make(chan struct{}, min(runtime.GOMAXPROCS(0), maxEncoders))}
}

func (c *compressor) Encode(dst, src []byte) ([]byte, error) {
	c.room <- struct{}{}
	defer func() { <-c.room }()
	return c.Codec.Encode(dst, src)
}

// writerOptions are how every file is written. created_by holds no version of the
// library: the bytes must not change with it.
func writerOptions(name, exportID, pages string, c *compressor) []parquet.WriterOption {
	out := []parquet.WriterOption{
		parquet.Compression(c), parquet.DataPageStatistics(true), parquet.CreatedBy("mneme", strconv.Itoa(SchemaVersion), Program),
		parquet.DictionaryMaxBytes(dictionaryBytes), parquet.ColumnPageBuffers(parquet.NewFileBufferPool(pages, "*")),
		parquet.KeyValueMetadata(metaFile, name), parquet.KeyValueMetadata(metaSchema, strconv.Itoa(SchemaVersion)), parquet.KeyValueMetadata(metaExport, exportID),
	}
	for _, c := range longColumns[name] {
		out = append(out, parquet.SkipPageBounds(c...))
	}
	return out
}

// FileInfo is a written file as the manifest lists it.
type FileInfo struct {
	Name      string         `json:"name"`
	Rows      int64          `json:"rows"`
	SizeBytes int64          `json:"size_bytes"`
	SHA256    memory.SHA     `json:"sha256"`
	Excluded  map[string]int `json:"excluded,omitempty"` // rows of gates.parquet that are not in it, by reason
}

// unseen is the ending of a file that is being written.
const unseen = ".tmp"

// sink is a file under way: it is seen under its name once it is whole and on the disk.
type sink struct {
	path string
	f    *os.File
	buf  *bufio.Writer
	sum  hash.Hash
	n    int64

	dropped bool // it will not be closed
}

func newSink(dir, name string) (*sink, error) {
	s := &sink{path: filepath.Join(dir, name), sum: sha256.New()}
	f, err := os.OpenFile(s.path+unseen, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	s.f, s.buf = f, bufio.NewWriterSize(f, 256<<10)
	return s, nil
}

func (s *sink) Write(p []byte) (int, error) {
	s.sum.Write(p)
	s.n += int64(len(p))
	return s.buf.Write(p)
}

func (s *sink) close() (memory.SHA, error) {
	err := s.buf.Flush()
	if err == nil {
		err = s.f.Sync()
	}
	if err = errors.Join(err, s.f.Close()); err == nil {
		err = os.Rename(s.path+unseen, s.path)
	}
	if err != nil {
		return "", fault.As(fault.Unavailable, err)
	}
	return memory.SHA(hex.EncodeToString(s.sum.Sum(nil))), syncDir(filepath.Dir(s.path))
}

func (s *sink) abandon() {
	_ = s.f.Close()
	_ = os.Remove(s.path + unseen) // what is left has a name that nobody reads
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return fault.As(fault.Unavailable, err)
	}
	return nil
}

// table is one Parquet file under way. Rows are encoded and compressed by a goroutine of
// its own, batch after batch in the order in which they were added: the bytes do not
// depend on how the files' goroutines run.
type table[T any] struct {
	sink     *sink
	w        *parquet.GenericWriter[T]
	rows     []T
	pending  int // bytes of rows
	group    int // bytes of the row group
	info     FileInfo
	excluded map[string]int

	work   chan batch[T]
	free   chan []T // a batch is filled while the other is written
	ended  bool
	failed atomic.Pointer[error] // set by the goroutine
	done   chan struct{}
}

type batch[T any] struct {
	rows []T
	last bool // of its row group
}

func newTable[T any](dir, name, exportID, pages string, c *compressor) (*table[T], error) {
	s, err := newSink(dir, name)
	if err != nil {
		return nil, err
	}
	t := &table[T]{
		sink: s, w: parquet.NewGenericWriter[T](s, writerOptions(name, exportID, pages, c)...), info: FileInfo{Name: name}, excluded: map[string]int{},
		work: make(chan batch[T], 1), free: make(chan []T, 2), done: make(chan struct{}),
	}
	t.free <- nil
	go t.write()
	return t, nil
}

func (t *table[T]) write() {
	defer close(t.done)
	for b := range t.work {
		if t.failed.Load() == nil {
			t.put(b)
		}
		clear(b.rows) // their texts are not held
		t.free <- b.rows[:0]
	}
	if t.failed.Load() == nil && !t.sink.dropped {
		t.fail(t.w.Close())
	}
}

func (t *table[T]) put(b batch[T]) {
	_, err := t.w.Write(b.rows)
	if err == nil && b.last {
		err = t.w.Flush()
	}
	t.fail(err)
}

func (t *table[T]) fail(err error) {
	if err != nil {
		t.failed.Store(&err)
	}
}

// add takes a row of about size bytes.
func (t *table[T]) add(row T, size int) error {
	t.rows = append(t.rows, row)
	t.pending += size
	t.info.Rows++
	if len(t.rows) < batchRows && t.pending < batchBytes {
		return nil
	}
	return t.flush()
}

func (t *table[T]) flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	b := batch[T]{rows: t.rows}
	if t.group += t.pending; t.group >= rowGroupBytes {
		t.group, b.last = 0, true
	}
	t.work <- b
	t.rows, t.pending = <-t.free, 0
	return t.err()
}

func (t *table[T]) err() error {
	if p := t.failed.Load(); p != nil {
		return fault.As(fault.Unavailable, *p)
	}
	return nil
}

func (t *table[T]) skip(reason string) { t.excluded[reason]++ }

// end gives the last rows away; the footer is written behind them, while other files end.
func (t *table[T]) end() error {
	err := t.flush()
	if !t.ended {
		t.ended = true
		close(t.work)
	}
	return err
}

// finish waits for the footer and makes the file seen.
func (t *table[T]) finish() (FileInfo, error) {
	if err := t.end(); err != nil {
		return t.info, err
	}
	<-t.done
	if err := t.err(); err != nil {
		return t.info, err
	}
	var err error
	if t.info.SHA256, err = t.sink.close(); err != nil {
		return t.info, err
	}
	t.info.SizeBytes, t.info.Excluded = t.sink.n, t.excluded
	return t.info, nil
}

// abandon leaves nothing that is seen.
func (t *table[T]) abandon() {
	if !t.ended {
		t.ended, t.sink.dropped = true, true
		close(t.work)
	}
	<-t.done
	t.sink.abandon()
}

// writeWhole writes a small file as a sink does.
func writeWhole(dir, name string, b []byte) error {
	s, err := newSink(dir, name)
	if err != nil {
		return err
	}
	if _, err := s.Write(b); err != nil {
		s.abandon()
		return fault.As(fault.Unavailable, err)
	}
	_, err = s.close()
	return err
}

func indented(v any) ([]byte, error) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fault.As(fault.Internal, err)
	}
	return append(b, '\n'), nil
}
