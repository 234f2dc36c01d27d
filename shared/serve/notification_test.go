package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/serve"
)

// dialects write a notification of one object as each server does.
var dialects = map[string]func(name string, o event.Object) string{
	"minio": func(name string, o event.Object) string {
		return fmt.Sprintf(`{"EventName":"s3:%s","Key":%s,"Records":[{"eventVersion":"2.0","eventSource":"minio:s3","awsRegion":"","eventTime":"2026-02-01T10:00:00.000Z","eventName":"s3:%s","userIdentity":{"principalId":"mneme"},"responseElements":{"x-amz-request-id":"18A1"},"s3":{"s3SchemaVersion":"1.0","configurationId":"Config","bucket":{"name":%s,"ownerIdentity":{"principalId":"mneme"},"arn":"arn:aws:s3:::b"},"object":{"key":%s,"size":%d,"eTag":%s,"contentType":"text/plain","userMetadata":{"content-type":"text/plain"},"sequencer":%s}},"source":{"host":"127.0.0.1"}}]}`,
			name, quote(o.Bucket+"/"+o.Key), name, quote(o.Bucket), quote(url.QueryEscape(o.Key)), o.SizeBytes, quote(o.ETag), quote(o.Sequencer))
	},
	"aws": func(name string, o event.Object) string {
		return fmt.Sprintf(`{"Records":[{"eventVersion":"2.1","eventSource":"aws:s3","awsRegion":"eu-west-1","eventTime":"2026-02-01T10:00:00.000Z","eventName":"%s","responseElements":{"x-amz-request-id":"R","x-amz-id-2":"I"},"s3":{"bucket":{"name":%s},"object":{"key":%s,"size":%d,"eTag":%s,"versionId":%s,"sequencer":%s}}}]}`,
			name, quote(o.Bucket), quote(url.QueryEscape(o.Key)), o.SizeBytes, quote(o.ETag), quote(o.VersionID), quote(o.Sequencer))
	},
	"versitygw": func(name string, o event.Object) string {
		return fmt.Sprintf(`{"Records":[{"eventVersion":"2.2","eventSource":"aws:s3","awsRegion":"us-east-1","eventTime":"2026-02-01T10:00:00Z","eventName":"s3:%s","userIdentity":{"PrincipalId":"a"},"requestParameters":{"sourceIPAddress":"127.0.0.1"},"responseElements":{"x-amz-request-id":"","x-amz-id-2":""},"s3":{"s3SchemaVersion":"1.0","configurationId":"webhook-global","bucket":{"name":%s,"ownerIdentity":{"PrincipalId":"a"},"arn":"arn:aws:s3:::/b/k"},"object":{"key":%s,"size":%d,"eTag":%s,"versionId":null,"sequencer":%s}},"glacierEventData":{"restoreEventData":{"lifecycleRestorationExpiryTime":"","lifecycleRestoreStorageClass":""}}}]}`,
			name, quote(o.Bucket), quote(o.Key), o.SizeBytes, quote(`"`+o.ETag+`"`), quote(o.Sequencer))
	},
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestParseNotification(t *testing.T) {
	t.Parallel()
	object := func(key string) event.Object {
		return event.Object{Bucket: "transcripts", Key: key, ETag: "702314f405adeaa9aa042985692cd49e-2", SizeBytes: 576, Sequencer: "1788"}
	}
	for name, write := range dialects {
		for _, key := range []string{
			"shop/a.jsonl", "shop/with space.jsonl", "shop/a+b.jsonl", "shop/100%.jsonl", "shop/a%41.jsonl", "shop/ä/日本.jsonl",
			"shop/?&=#.jsonl", `shop/"quoted"\.jsonl`, "shop/new\nline", "-Users-me-code/1b2c.jsonl",
		} {
			for _, kind := range []string{"Put", "Post", "Copy", "CompleteMultipartUpload"} {
				got, err := serve.ParseNotification([]byte(write("ObjectCreated:"+kind, object(key))))
				if err != nil {
					t.Errorf("%s %s %q: %v", name, kind, key, err)
				}
				if d := cmp.Diff([]event.Object{object(key)}, got); d != "" {
					t.Errorf("%s %s %q: %s", name, kind, key, d)
				}
			}
		}
		for _, kind := range []string{"ObjectRemoved:Delete", "ObjectRemoved:DeleteMarkerCreated", "ObjectRemoved:DeleteObjects", "ObjectCreated:PutTagging", "ObjectCreated:DeleteTagging", "ObjectCreated:PutRetention", "ObjectCreated:PutLegalHold", "ObjectRestore:Completed", "ObjectTagging:Put", "ObjectAccessed:Get"} {
			if got, err := serve.ParseNotification([]byte(write(kind, object("shop/a")))); err != nil || got != nil {
				t.Errorf("%s %s: %v, %v", name, kind, got, err)
			}
		}
	}
}

func TestParseNotificationEdges(t *testing.T) {
	t.Parallel()
	rec := func(name, bucket, key, rest string) string {
		return `{"eventName":"` + name + `","eventSource":"aws:s3","s3":{"bucket":{"name":"` + bucket + `"},"object":{"key":"` + key + `"` + rest + `}}}`
	}
	one := event.Object{Bucket: "b", Key: "k", ETag: "e"}
	good := rec("ObjectCreated:Put", "b", "k", `,"eTag":"e"`)
	many := strings.TrimSuffix(strings.Repeat(good+",", serve.MaxRecords+1), ",")
	for _, tc := range []struct {
		name, body string
		want       []event.Object
		err        string // part of it; "": none
	}{
		{"AWS's probe", `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-01-01T00:00:00Z","Bucket":"b","RequestId":"r","HostId":"h"}`, nil, ""},
		{"versitygw's probe", `{"Event":"s3:TestEvent"}`, nil, ""},
		{"no records", `{"Records":[]}`, nil, ""},
		{"several", `{"Records":[` + good + `,` + rec("ObjectRemoved:Delete", "b", "x", "") + `,` + good + `]}`, []event.Object{one, one}, ""},
		{"good ones beside bad", `{"Records":[` + rec("ObjectCreated:Put", "b", "%zz", "") + `,` + good + `,` + rec("ObjectCreated:Put", "", "k", "") + `,` + rec("ObjectCreated:Put", "b", "", "") + `]}`, []event.Object{one}, "record 0"},
		{"no ETag", `{"Records":[` + rec("ObjectCreated:Put", "b", "k", `,"eTag":null`) + `]}`, []event.Object{{Bucket: "b", Key: "k"}}, ""},
		{"version", `{"Records":[` + rec("ObjectCreated:Put", "b", "k", `,"eTag":"e","versionId":"v1"`) + `]}`, []event.Object{{Bucket: "b", Key: "k", ETag: "e", VersionID: "v1"}}, ""},
		{"unversioned", `{"Records":[` + rec("ObjectCreated:Put", "b", "k", `,"eTag":"e","versionId":"null"`) + `]}`, []event.Object{one}, ""},
		{"no event name", `{"Records":[{"s3":{}}]}`, nil, "no eventName"},
		{"negative size", `{"Records":[` + rec("ObjectCreated:Put", "b", "k", `,"size":-1`) + `]}`, nil, "size -1"},
		{"size is text", `{"Records":[` + rec("ObjectCreated:Put", "b", "k", `,"size":"1"`) + `]}`, nil, "cannot unmarshal"},
		{"key of NUL", `{"Records":[` + rec("ObjectCreated:Put", "b", "a%00b", "") + `]}`, nil, "not UTF-8 text"},
		{"key not UTF-8", `{"Records":[` + rec("ObjectCreated:Put", "b", "a%ff", "") + `]}`, nil, "not UTF-8 text"},
		{"key too long", `{"Records":[` + rec("ObjectCreated:Put", "b", strings.Repeat("k", 1025), "") + `]}`, nil, "1025 bytes"},
		{"too many", `{"Records":[` + many + `]}`, nil, "1001 records"},
		{"another JSON", `{"hello":1}`, nil, "no Records"},
		{"a list", `[]`, nil, "cannot unmarshal"},
		{"cut off", `{"Records":[`, nil, "unexpected end"},
		{"two values", `{"Records":[]}{}`, nil, "after top-level value"},
		{"empty", ``, nil, "unexpected end"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := serve.ParseNotification([]byte(tc.body))
			if d := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
			if tc.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

// Laws: nothing panics; every object has a bucket, and a key that is text of at
// most 1,024 bytes; what is read can be written in every dialect and read back
// the same.
func FuzzParseNotification(f *testing.F) {
	for _, write := range dialects {
		f.Add([]byte(write("ObjectCreated:Put", event.Object{Bucket: "b", Key: "shop/a b+%.jsonl", ETag: "e", SizeBytes: 3, Sequencer: "1"})))
	}
	f.Add([]byte(`{"Event":"s3:TestEvent"}`))
	f.Add([]byte(`{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"b"},"object":{"key":"%2"}}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		objects, err := serve.ParseNotification(body)
		if err != nil && !fault.Is(err, fault.Invalid) {
			t.Fatalf("kind of %v", err)
		}
		for _, o := range objects {
			if o.Bucket == "" || o.Key == "" || len(o.Key) > 1024 || !utf8.ValidString(o.Key) || o.SizeBytes < 0 || strings.HasPrefix(o.ETag, `"`) {
				t.Fatalf("object %+v", o)
			}
			for name, write := range dialects {
				if name != "aws" {
					o.VersionID = ""
				}
				again, err := serve.ParseNotification([]byte(write("ObjectCreated:Put", o)))
				if err != nil || len(again) != 1 || cmp.Diff(o, again[0], cmpopts.IgnoreFields(event.Object{}, "VersionID")) != "" {
					t.Fatalf("%s: %+v became %+v, %v", name, o, again, err)
				}
			}
		}
	})
}

// The id of an object is that of its bytes' place and version, whoever says it.
func TestObjectEvent(t *testing.T) {
	t.Parallel()
	o := event.Object{Bucket: "transcripts", Key: "shop/a b.jsonl", ETag: "e", SizeBytes: 5, Sequencer: "1"}
	e := serve.ObjectEvent(o)
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	back, err := event.Decode[event.Object](e)
	if err != nil || cmp.Diff(o, back) != "" || e.Subject() != o.Key || e.Source() != "/mneme/buckets/transcripts" {
		t.Errorf("%v, %v", e, err)
	}
	same := o
	same.Sequencer, same.SizeBytes, same.VersionID = "9", 0, "v"
	if serve.ObjectEvent(same).ID() != e.ID() {
		t.Error("sequencer, size or version beside an ETag changes the id")
	}
	for name, other := range map[string]event.Object{
		"ETag": {Bucket: o.Bucket, Key: o.Key, ETag: "f"}, "key": {Bucket: o.Bucket, Key: "shop/a", ETag: "e"}, "bucket": {Bucket: "b", Key: o.Key, ETag: "e"},
		"version": {Bucket: o.Bucket, Key: o.Key, VersionID: "v2"}, "border": {Bucket: o.Bucket + "s", Key: o.Key[1:], ETag: "e"},
	} {
		if serve.ObjectEvent(other).ID() == e.ID() {
			t.Errorf("another %s, the same id", name)
		}
	}
	if err := serve.ObjectEvent(event.Object{Bucket: "a b/%", Key: "k"}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	const token = "s3cret"
	good := dialects["minio"]("ObjectCreated:Put", event.Object{Bucket: "transcripts", Key: "shop/a b", ETag: "e"})
	aws := dialects["aws"]("ObjectCreated:Put", event.Object{Bucket: "transcripts", Key: "shop/a b", ETag: "e"})
	mixed := strings.Replace(aws, `"Records":[`, `"Records":[{"eventName":""},`, 1)
	for _, tc := range []struct {
		name, token, path, body string
		method                  string
		publish, dead           error
		want, objects, letters  int
	}{
		{name: "an object", token: token, path: token, body: good, want: 204, objects: 1},
		{name: "another dialect", token: token, path: token, body: aws, want: 204, objects: 1},
		{name: "the probe", token: token, path: token, body: `{"Event":"s3:TestEvent"}`, want: 204},
		{name: "wrong token", token: token, path: "guess", body: good, want: 403},
		{name: "no token set", token: "", path: "x", body: good, want: 403},
		{name: "no token given", token: token, path: "", body: good, want: 404},
		{name: "GET", method: "GET", token: token, path: token, want: 405},
		{name: "not JSON is a dead letter", token: token, path: token, body: "\x89PNG", want: 204, letters: 1},
		{name: "empty is a dead letter", token: token, path: token, want: 204, letters: 1},
		{name: "good beside bad", token: token, path: token, body: mixed, want: 204, objects: 1, letters: 1},
		{name: "too large is a dead letter", token: token, path: token, body: strings.Repeat(" ", serve.MaxEventBytes+1), want: 204, letters: 1},
		{name: "broker full: the store repeats it", token: token, path: token, body: good, publish: &fault.Error{Kind: fault.Exhausted}, want: 503, objects: 1},
		{name: "broker gone", token: token, path: token, body: good, publish: errors.New("x"), want: 503, objects: 1},
		{name: "dead letter not kept", token: token, path: token, body: "x", dead: errors.New("x"), want: 503, letters: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var objects []ce.Event
			var dead []serve.Dead
			h := serve.Hooks(serve.HooksConfig{Token: tc.token,
				Publish: func(_ context.Context, e ce.Event) error { objects = append(objects, e); return tc.publish },
				Dead:    func(_ context.Context, d serve.Dead) error { dead = append(dead, d); return tc.dead }})
			w := do(h, httptest.NewRequest(or(tc.method, http.MethodPost), serve.HookPath+tc.path, strings.NewReader(tc.body)))
			if w.Code != tc.want || len(objects) != tc.objects || len(dead) != tc.letters {
				t.Fatalf("%d, %d objects, %d dead letters: %s", w.Code, len(objects), len(dead), w.Body)
			}
			if strings.Contains(w.Body.String(), token) {
				t.Errorf("the answer holds the token: %s", w.Body)
			}
			for _, d := range dead {
				if err := d.Event.Validate(); err != nil {
					t.Error(err)
				}
				if kept := d.Event.Data(); string(kept) != tc.body[:min(len(tc.body), serve.MaxUnreadBytes)] {
					t.Errorf("%d bytes kept", len(kept))
				}
				if d.Problem().Message == "" || d.Code != 400 {
					t.Errorf("%+v", d.Problem())
				}
			}
		})
	}
}
