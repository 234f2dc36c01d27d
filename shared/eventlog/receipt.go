package eventlog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// maxSmall bounds receipts, leases, pointers and other objects of a few KB.
const maxSmall = 1 << 20

// TypeReceipt is the `type` of a receipt.
const TypeReceipt = "receipt"

// What became of an object.
const (
	OutcomeAdmitted    = "admitted"
	OutcomeDuplicate   = "duplicate"
	OutcomeRefused     = "refused"
	OutcomeEmpty       = "empty"
	OutcomeUnsupported = "unsupported"
	OutcomeForgotten   = "forgotten" // a tombstone bars it
)

// outcomes says of each outcome whether it is final: the log holds the parts.
var outcomes = map[string]bool{
	OutcomeAdmitted: true, OutcomeDuplicate: true, OutcomeForgotten: true,
	OutcomeRefused: false, OutcomeEmpty: false, OutcomeUnsupported: false,
}

// Receipt is what became of one version of an uploaded object: it answers a
// repeated notification with one read.
type Receipt struct {
	V       int           `json:"v"`
	Type    string        `json:"type"` // "receipt"
	Level   memory.Level  `json:"level"`
	Bucket  string        `json:"bucket"`
	Key     string        `json:"key"`
	ETag    string        `json:"etag"`
	Outcome string        `json:"outcome"` // admitted | duplicate | refused | empty | unsupported | forgotten
	Parts   []ReceiptPart `json:"parts,omitempty"`
	Reason  string        `json:"reason,omitempty"` // for people; no transcript text
	// Derived is the key of the object that was made of this one and read in its
	// place: the history of a git bundle. Its receipt has the same parts.
	Derived string         `json:"derived,omitempty"`
	Counts  *memory.Counts `json:"counts,omitempty"`
	Schemas string         `json:"schemas,omitempty"` // version of the user's schemas that stood, catalog.Schemas
	At      time.Time      `json:"at"`                // UTC
}

// Final says that the log holds the object's parts: a later reading changes
// nothing.
func (r Receipt) Final() bool { return outcomes[r.Outcome] }

// ReceiptPart is one part that the object gave, or that was known already.
type ReceiptPart struct {
	Project   string     `json:"project"`
	Seq       int64      `json:"seq"` // of the admit line
	Source    memory.SHA `json:"source"`
	RawSHA256 memory.SHA `json:"raw_sha256"`
	Chunks    int        `json:"chunks"`
}

// ReceiptID names an object version: sha256 over the RFC 8785 form of
// [bucket, key, etag].
func ReceiptID(bucket, key, etag string) memory.SHA {
	b, err := marshalLoose([]string{bucket, key, etag})
	if err == nil {
		b, err = canonical(nil, b)
	}
	if err != nil { // strings always encode, bytes that are not UTF-8 as U+FFFD
		panic("eventlog: receipt id: " + err.Error())
	}
	return memory.Sum(b)
}

func (l *Log) receiptKey(id memory.SHA) string {
	return "receipts/" + l.tenant + "/" + string(id)
}

// Receipt reads the receipt of an object version with one read; false when
// there is none.
func (l *Log) Receipt(ctx context.Context, bucket, key, etag string) (_ Receipt, _ bool, err error) {
	defer fault.Wrap(&err, "receipt(%s/%s)", bucket, key)
	r, _, found, err := l.receipt(ctx, ReceiptID(bucket, key, etag))
	return r, found, err
}

// ReceiptByID is Receipt by the receipt's id, which serves as a job's name.
func (l *Log) ReceiptByID(ctx context.Context, id memory.SHA) (_ Receipt, _ bool, err error) {
	defer fault.Wrap(&err, "receipt(%s)", id.Short())
	r, _, found, err := l.receipt(ctx, id)
	return r, found, err
}

// ReceiptIDs lists the ids of all receipts of the tenant: 1,000 a LIST call, so
// that a sweep reads no receipt of an object that was handled.
func (l *Log) ReceiptIDs(ctx context.Context) (_ map[memory.SHA]bool, err error) {
	defer fault.Wrap(&err, "receipts(%s)", l.tenant)
	if !memory.ValidName(l.tenant) {
		return nil, fault.New(fault.Invalid, "tenant %q is not a name", clip([]byte(l.tenant)))
	}
	ids := map[memory.SHA]bool{}
	prefix := "receipts/" + l.tenant + "/"
	for info, err := range l.b.ListAfter(ctx, prefix, "") {
		if err != nil {
			return nil, err
		}
		if id := memory.SHA(strings.TrimPrefix(info.Key, prefix)); id.Valid() {
			ids[id] = true
		}
	}
	return ids, nil
}

func (l *Log) receipt(ctx context.Context, id memory.SHA) (r Receipt, etag string, found bool, err error) {
	if !memory.ValidName(l.tenant) || !id.Valid() {
		return r, "", false, fault.New(fault.Invalid, "a receipt is named by tenant and sha256")
	}
	at := l.receiptKey(id)
	raw, err := l.readLimited(ctx, at, maxSmall)
	if fault.Is(err, fault.NotFound) {
		return r, "", false, nil
	}
	if err != nil {
		return r, "", false, err
	}
	err = decodeStrictType(raw.data, TypeReceipt, &r, func() int { return r.V })
	if err == nil && (r.Type != TypeReceipt || ReceiptID(r.Bucket, r.Key, r.ETag) != id) {
		err = errors.New("the receipt is of another object")
	}
	if err != nil {
		return r, "", false, corrupt(at, 0, fault.At(fault.Corrupt, "", "delete the receipt: the next notification of its object writes it again", "%v", err))
	}
	return r, raw.etag, true, nil
}

// PutReceipt writes the receipt of an object version; it is written last, when
// the log holds its parts. The first answer stays, and a second one is no
// error: only a receipt that admitted nothing (refused, empty, unsupported)
// gives way, to whatever is found the next time.
func (l *Log) PutReceipt(ctx context.Context, r Receipt) (err error) {
	defer fault.Wrap(&err, "put receipt(%s/%s)", r.Bucket, r.Key)
	if err := stamp(&r.V, &r.Type, &r.Level, TypeReceipt, memory.LevelNone); err != nil {
		return err
	}
	if _, ok := outcomes[r.Outcome]; !ok {
		return fault.New(fault.Invalid, "outcome %q", clip([]byte(r.Outcome)))
	}
	if r.Bucket == "" || r.Key == "" || !memory.ValidName(l.tenant) {
		return fault.New(fault.Invalid, "a receipt names tenant, bucket and key")
	}
	if r.At.IsZero() {
		if r.At, err = l.b.Now(ctx); err != nil {
			return err
		}
	}
	r.At = r.At.UTC()
	r.Parts = slices.Clone(r.Parts)
	line, err := marshal(&r)
	if err != nil {
		return err
	}
	if len(line) >= maxSmall {
		return fault.New(fault.Invalid, "a receipt of %d bytes; at most %d", len(line), maxSmall)
	}
	line = append(line, '\n')
	id := ReceiptID(r.Bucket, r.Key, r.ETag)
	at := l.receiptKey(id)
	_, err = l.b.Create(ctx, at, line)
	if !errors.Is(err, objstore.ErrPrecondition) {
		return err
	}
	old, etag, found, err := l.receipt(ctx, id)
	if err != nil || found && outcomes[old.Outcome] {
		return err
	}
	_, err = l.b.Replace(ctx, at, line, etag)
	if errors.Is(err, objstore.ErrPrecondition) {
		return fault.New(fault.Conflict, "another receipt was written at the same time")
	}
	return err
}
