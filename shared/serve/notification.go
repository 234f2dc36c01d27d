package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	// MaxRecords bounds one notification. MinIO and versitygw send one record,
	// AWS a few; 1,000 is what one S3 listing holds.
	MaxRecords = 1000
	// maxKeyBytes is S3's own limit of an object key.
	maxKeyBytes = 1024
)

// notification is what MinIO, versitygw and AWS post, as far as it is read.
type notification struct {
	Event   string // "s3:TestEvent", a probe
	Records []record
}

type record struct {
	EventName   string `json:"eventName"`
	EventSource string `json:"eventSource"`
	S3          struct {
		Bucket struct {
			Name string `json:"name"`
		} `json:"bucket"`
		Object struct {
			Key       string  `json:"key"`
			Size      int64   `json:"size"`
			ETag      *string `json:"eTag"`
			VersionID *string `json:"versionId"`
			Sequencer string  `json:"sequencer"`
		} `json:"object"`
	} `json:"s3"`
}

// created are the events that say an object has new bytes. A large upload ends
// in CompleteMultipartUpload. Changes of tags, retention and legal hold come
// under the same prefix and change no byte.
var created = map[string]bool{
	"ObjectCreated:Put": true, "ObjectCreated:Post": true, "ObjectCreated:Copy": true, "ObjectCreated:CompleteMultipartUpload": true,
}

// ParseNotification reads the JSON that an object store posts when an object
// was written, in the dialects of MinIO, versitygw and AWS:
//
//	           eventName             key             eTag      eventSource
//	MinIO      s3:ObjectCreated:Put  query-escaped   plain     minio:s3
//	AWS        ObjectCreated:Put     query-escaped   plain     aws:s3
//	versitygw  s3:ObjectCreated:Put  as it is        "quoted"  aws:s3
//
// It returns the objects that have new bytes; a test event and events of other
// kinds (removed, tagged, restored) give none and no error. The error names
// every record that could not be read, beside the objects that could.
func ParseNotification(body []byte) (objects []event.Object, err error) {
	defer fault.Wrap(&err, "notification")
	var n notification
	if err := json.Unmarshal(body, &n); err != nil {
		return nil, fault.At(fault.Invalid, "", "point the store's webhook here, and nothing else", "%v", err)
	}
	if n.Event == "s3:TestEvent" {
		return nil, nil
	}
	if n.Records == nil {
		return nil, fault.New(fault.Invalid, "no Records")
	}
	if len(n.Records) > MaxRecords {
		return nil, fault.New(fault.Invalid, "%d records, more than %d", len(n.Records), MaxRecords)
	}
	var bad []error
	for i := range n.Records {
		r := &n.Records[i]
		if r.EventName == "" {
			bad = append(bad, fault.At(fault.Invalid, fmt.Sprintf("record %d", i), "", "no eventName"))
			continue
		}
		if !created[strings.TrimPrefix(r.EventName, "s3:")] {
			continue
		}
		o, err := r.object()
		if err != nil {
			bad = append(bad, fault.At(fault.Invalid, fmt.Sprintf("record %d", i), "", "%v", err))
			continue
		}
		objects = append(objects, o)
	}
	return objects, joined(bad)
}

func (r *record) object() (event.Object, error) {
	key, err := r.key()
	if err != nil {
		return event.Object{}, err
	}
	src := &r.S3.Object
	o := event.Object{
		Bucket: r.S3.Bucket.Name, Key: key, ETag: strings.Trim(deref(src.ETag), `"`),
		SizeBytes: src.Size, VersionID: deref(src.VersionID), Sequencer: src.Sequencer,
	}
	if o.VersionID == "null" {
		o.VersionID = "" // S3's name for the one version of an unversioned object
	}
	switch {
	case o.Bucket == "":
		return o, errors.New("no bucket")
	case o.Key == "":
		return o, errors.New("no key")
	case len(o.Key) > maxKeyBytes:
		return o, fmt.Errorf("key of %d bytes, more than S3's %d", len(o.Key), maxKeyBytes)
	case !utf8.ValidString(o.Key) || strings.ContainsRune(o.Key, 0):
		return o, errors.New("key is not UTF-8 text")
	case o.SizeBytes < 0:
		return o, fmt.Errorf("size %d", o.SizeBytes)
	}
	return o, nil
}

// key undoes the escaping of the dialect. Only versitygw leaves keys as they
// are, and it alone prefixes the name under aws:s3 or quotes the ETag. A plus
// is a space in the others, so PathUnescape would be wrong.
func (r *record) key() (string, error) {
	raw := r.S3.Object.Key
	plain := r.EventSource != "minio:s3" && (strings.HasPrefix(r.EventName, "s3:") || strings.HasPrefix(deref(r.S3.Object.ETag), `"`))
	if plain {
		return raw, nil
	}
	key, err := url.QueryUnescape(raw)
	if err != nil {
		return "", errors.New("key is not query-escaped")
	}
	return key, nil
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// ObjectID identifies the bytes of o: sha256 over bucket, key, and ETag or else
// version. It is the same for a notification sent twice, one of another server
// and an object that the sweep found, which request ids and sequencers are not.
func ObjectID(o event.Object) memory.SHA {
	b, err := json.Marshal([]string{o.Bucket, o.Key, or(o.ETag, o.VersionID)})
	if err != nil {
		panic("serve: object id: " + err.Error()) // strings always encode
	}
	return memory.Sum(b)
}

// ObjectEvent announces o, with ObjectID as the id.
func ObjectEvent(o event.Object) ce.Event {
	e := event.New(event.ObjectCreated, "buckets/"+url.PathEscape(o.Bucket), o)
	e.SetID(string(ObjectID(o)))
	// One object's events stay in order on a broker that keeps it by partition.
	e.SetExtension("partitionkey", memory.SumString(o.Bucket+"/"+o.Key).Short())
	return e
}
