package eventlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// ErrHeld is returned, with fault kind Exhausted and RetryAfter set, when
// another holds the lease.
var ErrHeld = errors.New("the lease is held by another")

// Lease is a lease that this process holds until Until. It only saves double
// model spend: correctness rests on the fence of Append. A slice of work ends
// within half of TTL. Safe for concurrent use.
type Lease struct {
	l   *Log
	key string
	ttl time.Duration

	mu   sync.Mutex
	rec  leaseRecord
	etag string
}

// leaseRecord is a lease as it is stored.
type leaseRecord struct {
	V      int          `json:"v"`
	Type   string       `json:"type"` // "lease"
	Level  memory.Level `json:"level"`
	Writer string       `json:"writer"`
	Folder string       `json:"folder,omitempty"` // data folder of the writer, see WithFolder
	Nonce  string       `json:"nonce"`            // one Acquire; tells an own lost answer
	Until  time.Time    `json:"until"`            // UTC, store's clock; zero when released
	Since  time.Time    `json:"since,omitzero"`   // UTC, store's clock, of the acquisition
}

const typeLease = "lease"

// acquireTries bounds how often Acquire starts again when another moved first.
const acquireTries = 5

// Acquire takes the lease `name` (key parts joined by "/") for ttl, judged by
// the store's clock. Held by another: ErrHeld. A lease that ended, was
// released, or was written by an earlier process of this folder (WithFolder) is
// taken over. Two goroutines of one process exclude each other as well.
func (l *Log) Acquire(ctx context.Context, name string, ttl time.Duration) (_ *Lease, err error) {
	defer fault.Wrap(&err, "acquire(%s)", name)
	key, err := l.opsKey("lease", name)
	if err != nil {
		return nil, err
	}
	if ttl <= 0 {
		return nil, fault.New(fault.Invalid, "a lease of %s", ttl)
	}
	var nonce [8]byte
	rand.Read(nonce[:]) // crypto/rand.Read never fails
	x := &Lease{l: l, key: key, ttl: ttl, rec: leaseRecord{
		V: memory.Version, Type: typeLease, Level: memory.LevelNone,
		Writer: l.writer, Folder: l.folder, Nonce: hex.EncodeToString(nonce[:]),
	}}
	for range acquireTries {
		now, err := l.b.Now(ctx)
		if err != nil {
			return nil, err
		}
		old, etag, err := l.readLease(ctx, key)
		if err != nil {
			return nil, err
		}
		if left := old.Until.Sub(now); etag != "" && left > 0 && old.Nonce != x.rec.Nonce && !l.earlier(old) {
			by := old.Writer
			if !old.Since.IsZero() {
				by += " since " + old.Since.UTC().Format(time.RFC3339)
			}
			return nil, held(left, by)
		}
		x.rec.Since = now.UTC()
		err = x.write(ctx, now, etag)
		if err == nil {
			return x, nil
		}
		if !errors.Is(err, objstore.ErrPrecondition) {
			return nil, err
		}
	}
	return nil, held(ttl/2, "several writers at once")
}

// earlier reports whether a lease was written by a former process that owned
// this folder: it is dead, as the folder is ours now.
func (l *Log) earlier(old leaseRecord) bool {
	return l.folder != "" && old.Folder == l.folder && old.Writer != l.writer
}

func held(left time.Duration, by string) error {
	return &fault.Error{Kind: fault.Exhausted, Msg: "held by " + by, RetryAfter: left, Err: ErrHeld}
}

// readLease gives the stored lease; etag "" when there is none. A lease that
// does not decode counts as ended: it protects money, not data.
func (l *Log) readLease(ctx context.Context, key string) (rec leaseRecord, etag string, err error) {
	raw, err := l.readLimited(ctx, key, maxSmall)
	if fault.Is(err, fault.NotFound) {
		return rec, "", nil
	}
	if err != nil {
		return rec, "", err
	}
	if json.Unmarshal(raw.data, &rec) != nil {
		rec = leaseRecord{}
	}
	return rec, raw.etag, nil
}

// write stores the lease from now for its ttl over the object with etag, or
// where none stands.
func (x *Lease) write(ctx context.Context, now time.Time, etag string) error {
	rec := x.rec
	rec.Until = now.Add(x.ttl).UTC()
	return x.store(ctx, rec, etag)
}

func (x *Lease) store(ctx context.Context, rec leaseRecord, etag string) error {
	line, err := marshal(&rec)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	var info objstore.Info
	if etag == "" {
		info, err = x.l.b.Create(ctx, x.key, line)
	} else {
		info, err = x.l.b.Replace(ctx, x.key, line, etag)
	}
	if err != nil {
		return err
	}
	x.rec, x.etag = rec, info.ETag
	return nil
}

// Until is when the lease ends, by the store's clock.
func (x *Lease) Until() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.rec.Until
}

// TTL is the time for which the lease is taken and renewed.
func (x *Lease) TTL() time.Duration { return x.ttl }

// Renew makes the lease last its TTL from now. Taken over by another: ErrHeld.
func (x *Lease) Renew(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "renew(%s)", x.key)
	x.mu.Lock()
	defer x.mu.Unlock()
	now, err := x.l.b.Now(ctx)
	if err != nil {
		return err
	}
	err = x.write(ctx, now, x.etag)
	if !errors.Is(err, objstore.ErrPrecondition) {
		return err
	}
	// An earlier Renew may have taken effect without an answer.
	old, etag, err := x.l.readLease(ctx, x.key)
	if err != nil {
		return err
	}
	if etag == "" || old.Nonce != x.rec.Nonce || old.Until.IsZero() {
		return held(max(old.Until.Sub(now), 0), old.Writer)
	}
	err = x.write(ctx, now, etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		return held(0, "another")
	}
	return err
}

// Release frees the lease at once. One that another took over is left alone
// and is no error.
func (x *Lease) Release(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "release(%s)", x.key)
	x.mu.Lock()
	defer x.mu.Unlock()
	freed := x.rec
	freed.Until = time.Time{}
	err = x.store(ctx, freed, x.etag)
	if !errors.Is(err, objstore.ErrPrecondition) {
		return err
	}
	old, etag, err := x.l.readLease(ctx, x.key)
	if err != nil || etag == "" || old.Nonce != x.rec.Nonce {
		return err
	}
	if err = x.store(ctx, freed, etag); errors.Is(err, objstore.ErrPrecondition) {
		return nil
	}
	return err
}
