// Package originals keeps the texts that shared/compress shortened, so that what
// was left out can be had: the store of originals (CCR).
//
// Invariants: nothing is stored before redaction, so that the hash is that of
// the redacted text. A hash stands in a result only after its original was
// stored. Get gives exactly the bytes that were put, or an error; "expired" and
// "never stored" are different answers. Everything is scoped to a project.
//
// Originals are no part of the log: nothing follows from them, they may be
// dropped at any time, and they go by themselves. So they stand among what is
// derived, and not under eventlog, which never deletes:
//
//	derived/ccr/<tenant>/<project>/<first 24 hex of the sha256>
//
//	{"v":1,"sha256":"9fceb0…","bytes":484166,"touched":"2026-01-31T10:00:00Z"}⏎
//	<the text, zstd>
//
// An original lives for TTL after it was last put or got. Then a stub, an object
// of the same name with ".gone" behind it and the line alone, takes its place: by
// it an answer is "expired". Over MaxEntries or MaxTotal of a project, those that
// were touched longest ago go the same way. Stubs go after stubAge.
//
// A local LRU of LocalBytes stands in front: it saves reading and unpacking, and
// decides nothing, as each Get asks the bucket what stands there. A restarted
// function therefore gives the same answers.
package originals

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/klauspost/compress/zstd"

	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// version of the stored form. History: 1 — first.
const version = 1

// Prefix is where originals stand in the bucket of the log.
const Prefix = "derived/ccr/"

// MaxBytes is the largest original. A larger text is not shortened.
const MaxBytes = 16 << 20

const (
	maxPacked = MaxBytes + MaxBytes/1024 + 4096
	stubAge   = 30 * 24 * time.Hour
	// listEvery is after how many puts a project's originals are counted again:
	// other processes put as well.
	listEvery = 64
)

// Store is the store of one tenant. It is safe for concurrent use.
type Store struct {
	cfg   Config
	local *lru.Cache[string, entry]
	enc   func() (*zstd.Encoder, error)
	dec   func() (*zstd.Decoder, error)

	mu   sync.Mutex // guards what follows
	held int        // bytes in local
	puts map[string]putCount
}

// entry is an original as it was read, under the ETag that it had.
type entry struct {
	etag string
	head header
	text []byte
}

type header struct {
	V       int        `json:"v"`
	SHA256  memory.SHA `json:"sha256"`
	Bytes   int        `json:"bytes"`
	Touched time.Time  `json:"touched"`
}

// Original is a stored text.
type Original struct {
	SHA256  memory.SHA
	Text    string
	Expires time.Time // unless it is got again
}

// ErrExpired is in the chain of the error, of kind NotFound, that Get gives for
// an original that was there.
var ErrExpired = errors.New("the original has expired")

// New checks cfg and fills its defaults.
func New(cfg Config) (*Store, error) {
	if cfg.Bucket == nil || cfg.Redactor == nil || !memory.ValidName(cfg.Tenant) {
		return nil, fault.New(fault.Internal, "originals: a dependency is missing")
	}
	cfg.MaxEntries = cmp.Or(cfg.MaxEntries, 1000)
	cfg.MaxTotal = cmp.Or(cfg.MaxTotal, 256<<20)
	cfg.TTL = cmp.Or(cfg.TTL, time.Hour)
	cfg.LocalBytes = cmp.Or(cfg.LocalBytes, 32<<20)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Store{cfg: cfg, puts: map[string]putCount{}}
	var err error
	s.local, err = lru.NewWithEvict(max(1, cfg.LocalBytes/256), func(_ string, e entry) { s.held -= len(e.text) })
	if err != nil {
		return nil, fault.As(fault.Internal, err)
	}
	s.enc = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	})
	s.dec = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxBytes), zstd.WithDecoderLowmem(true))
	})
	return s, nil
}

// Off reports that nothing is stored.
func (s *Store) Off() bool { return s.cfg.Off }

// Compress shortens a text for a reader of the project. It is masked first, and
// its original stored before the result is given; where it could not be, the text
// comes back whole. Where the store is off the marks name no original.
func (s *Store) Compress(ctx context.Context, project, text string, o compress.Options) (compress.Result, error) {
	masked, err := s.mask(ctx, text)
	if err != nil {
		return compress.Result{}, err
	}
	o.Original = !s.cfg.Off
	r := compress.Compress(masked, o)
	if !r.Changed || s.cfg.Off {
		return r, nil
	}
	if _, err := s.put(ctx, project, masked); err != nil {
		if ctx.Err() != nil {
			return compress.Result{}, fault.As(fault.Unavailable, ctx.Err())
		}
		return compress.Result{Text: masked, Kind: r.Kind, Reason: ReasonNotStored}, nil
	}
	return r, nil
}

// ReasonNotStored is the reason of a result whose original could not be stored.
const ReasonNotStored = "the original could not be stored"

func (s *Store) mask(ctx context.Context, text string) (string, error) {
	redact, _, err := s.cfg.Redactor(ctx)
	if err != nil {
		return "", err
	}
	return redact(text), nil
}

// Put masks a text and stores it. What it gives is what stands there: the text
// differs from the one given where something was masked.
func (s *Store) Put(ctx context.Context, project, text string) (_ Original, err error) {
	defer fault.Wrap(&err, "put original(%s)", project)
	masked, err := s.mask(ctx, text)
	if err != nil {
		return Original{}, err
	}
	return s.put(ctx, project, masked)
}

func (s *Store) put(ctx context.Context, project, text string) (Original, error) {
	switch {
	case s.cfg.Off:
		return Original{}, fault.At(fault.Invalid, "", "set MEM_CCR_ENABLED=on", "originals are not kept here")
	case !memory.ValidName(project):
		return Original{}, fault.At(fault.Invalid, "project", "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", project)
	case len(text) > MaxBytes:
		return Original{}, fault.New(fault.Invalid, "an original of %d bytes; at most %d are kept", len(text), MaxBytes)
	}
	sha := memory.SumString(text)
	head := header{V: version, SHA256: sha, Bytes: len(text), Touched: s.now()}
	key := s.key(project, sha)
	if old, err := s.head(ctx, key); err == nil && old.SHA256 != sha {
		return Original{}, fault.New(fault.Conflict, "another text has the same first %d digits", compress.ShownHex)
	} else if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Corrupt) {
		return Original{}, err
	}
	packed, err := s.write(ctx, key, head, []byte(text))
	if err != nil {
		return Original{}, err
	}
	// The original stands; that others are pushed out late harms nobody.
	_ = s.trim(ctx, project, packed)
	return Original{SHA256: sha, Text: text, Expires: head.Touched.Add(s.cfg.TTL)}, nil
}

// Get gives the original whose sha256 begins with hash, which has at least the
// digits that marks show. fault.NotFound: it never was there, or, with ErrExpired,
// it is no longer. fault.Corrupt: its bytes are not those of its hash.
func (s *Store) Get(ctx context.Context, project, hash string) (_ Original, err error) {
	defer fault.Wrap(&err, "original(%s, %.8s)", project, hash)
	if !memory.ValidName(project) {
		return Original{}, fault.At(fault.Invalid, "project", "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", project)
	}
	if !validHash(hash) {
		return Original{}, fault.At(fault.Invalid, "hash", "the 24 digits that the mark shows, or all 64", "no hash of an original")
	}
	key := s.keyOf(project, hash)
	e, err := s.read(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return Original{}, s.absent(ctx, key)
	}
	if err != nil {
		return Original{}, err
	}
	now := s.cfg.Now()
	switch {
	case !strings.HasPrefix(string(e.head.SHA256), hash):
		return Original{}, never()
	case now.Sub(e.head.Touched) > s.cfg.TTL:
		_ = s.bury(ctx, key) // where it fails the next Get tries
		return Original{}, expired()
	}
	// A secret that the rules of today know is no longer given out, nor kept.
	switch masked, err := s.mask(ctx, string(e.text)); {
	case err != nil:
		return Original{}, err
	case masked != string(e.text):
		_ = s.bury(ctx, key)
		return Original{}, expired()
	}
	if now.Sub(e.head.Touched) > s.cfg.TTL/4 { // not at each get: a write costs more than a read
		e.head.Touched = s.now()
		_, _ = s.write(ctx, key, e.head, e.text) // it is read all the same
	}
	return Original{SHA256: e.head.SHA256, Text: string(e.text), Expires: e.head.Touched.Add(s.cfg.TTL)}, nil
}

// absent tells an original that is no longer there from one that never was.
func (s *Store) absent(ctx context.Context, key string) error {
	switch _, err := s.cfg.Bucket.Head(ctx, key+gone); {
	case err == nil:
		return expired()
	case !fault.Is(err, fault.NotFound):
		return err
	}
	return never()
}

func never() error {
	return fault.At(fault.NotFound, "", "it may be of another project", "no original with this hash was stored here")
}

func expired() error {
	return &fault.Error{Kind: fault.NotFound, Hint: "run again what gave the text; MEM_CCR_TTL_SECS keeps originals longer", Err: ErrExpired}
}

func (s *Store) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Millisecond) }

func validHash(h string) bool {
	if len(h) < compress.ShownHex || len(h) > 64 {
		return false
	}
	return strings.Trim(h, "0123456789abcdef") == ""
}

func (s *Store) prefix(project string) string { return Prefix + s.cfg.Tenant + "/" + project + "/" }

func (s *Store) key(project string, sha memory.SHA) string { return s.keyOf(project, string(sha)) }

func (s *Store) keyOf(project, hash string) string {
	return s.prefix(project) + hash[:compress.ShownHex]
}

// gone ends the key of a stub.
const gone = ".gone"

// write gives how many bytes it put.
func (s *Store) write(ctx context.Context, key string, head header, text []byte) (int64, error) {
	line, err := json.Marshal(head)
	if err != nil {
		return 0, fault.As(fault.Internal, err)
	}
	enc, err := s.enc()
	if err != nil {
		return 0, fault.As(fault.Internal, err)
	}
	packed := enc.EncodeAll(text, append(line, '\n'))
	info, err := s.cfg.Bucket.Put(ctx, key, packed)
	if err != nil {
		return 0, err
	}
	s.keep(key, entry{etag: info.ETag, head: head, text: text})
	return int64(len(packed)), nil
}

// read gives what stands under a key, from memory where it is the same object.
func (s *Store) read(ctx context.Context, key string) (entry, error) {
	info, err := s.cfg.Bucket.Head(ctx, key)
	if err != nil {
		s.forget(key)
		return entry{}, err
	}
	s.mu.Lock()
	e, ok := s.local.Get(key)
	s.mu.Unlock()
	if ok && e.etag == info.ETag && info.ETag != "" {
		return e, nil
	}
	raw, info, err := s.cfg.Bucket.ReadAll(ctx, key, maxPacked)
	if err != nil {
		return entry{}, err
	}
	head, packed, err := parse(raw)
	if err != nil {
		return entry{}, err
	}
	e = entry{etag: info.ETag, head: head}
	dec, err := s.dec()
	if err != nil {
		return entry{}, fault.As(fault.Internal, err)
	}
	if e.text, err = dec.DecodeAll(packed, nil); err != nil {
		return entry{}, fault.New(fault.Corrupt, "the original does not decompress: %v", err)
	}
	if memory.Sum(e.text) != head.SHA256 {
		return entry{}, fault.New(fault.Corrupt, "the original does not hash to its key")
	}
	s.keep(key, e)
	return e, nil
}

// head reads no more than the line.
func (s *Store) head(ctx context.Context, key string) (header, error) {
	r, _, err := s.cfg.Bucket.GetRange(ctx, key, 0, 1024)
	if err != nil {
		return header{}, err
	}
	defer r.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		return header{}, fault.As(fault.Unavailable, err)
	}
	h, _, err := parse(b.Bytes())
	return h, err
}

func parse(raw []byte) (h header, packed []byte, err error) {
	line, packed, ok := bytes.Cut(raw, []byte("\n"))
	if !ok || json.Unmarshal(line, &h) != nil || !h.SHA256.Valid() {
		return h, nil, fault.New(fault.Corrupt, "no header of an original")
	}
	if h.V != version {
		return h, nil, fault.New(fault.Corrupt, "an original of version %d; this program reads %d", h.V, version)
	}
	return h, packed, nil
}

func (s *Store) keep(key string, e entry) {
	if len(e.text) > s.cfg.LocalBytes/4 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.local.Remove(key)
	s.local.Add(key, e)
	s.held += len(e.text)
	for s.held > s.cfg.LocalBytes {
		if _, _, ok := s.local.RemoveOldest(); !ok {
			break
		}
	}
}

func (s *Store) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.local.Remove(key)
}
