package s3serve_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/s3serve"
)

const bucket = s3serve.BucketTranscripts

func upload(t *testing.T, c *minio.Client, key string, data []byte, opts minio.PutObjectOptions) minio.UploadInfo {
	t.Helper()
	info, err := c.PutObject(t.Context(), bucket, key, bytes.NewReader(data), int64(len(data)), opts)
	if err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
	return info
}

func download(t *testing.T, c *minio.Client, key string) []byte {
	t.Helper()
	o, err := c.GetObject(t.Context(), bucket, key, minio.GetObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	data, err := io.ReadAll(o)
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	return data
}

// pattern is size bytes that differ from place to place.
func pattern(size int) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 2654435761 >> 11)
	}
	return data
}

func wantCode(t *testing.T, what string, err error, status int, code string) {
	t.Helper()
	got := minio.ToErrorResponse(err)
	if got.StatusCode != status || got.Code != code {
		t.Errorf("%s: got %d %s (%v), want %d %s", what, got.StatusCode, got.Code, err, status, code)
	}
}

func TestPutIsSeenByBothSides(t *testing.T) {
	c, ev := config(t)
	s := start(t, c)
	mc := client(t, s, access, secret)
	text := []byte("{\"a\":1}\n{\"b\":2}\n")
	info := upload(t, mc, "p/2024/x y.jsonl", text, minio.PutObjectOptions{ContentType: "application/jsonl", UserMetadata: map[string]string{"Tool": "pi"}, CacheControl: "no-store"})
	if info.ETag != md5hex(text) {
		t.Errorf("ETag %s, want the content's MD5 %s", info.ETag, md5hex(text))
	}
	r, seen, err := s.Transcripts().Get(t.Context(), "p/2024/x y.jsonl", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, text) || seen.ETag != info.ETag {
		t.Errorf("through the driver: %q, ETag %s, %v", got, seen.ETag, err)
	}
	if onDisk, err := os.ReadFile(filepath.Join(c.DataDir, "transcripts/p/2024/x y.jsonl")); err != nil || !bytes.Equal(onDisk, text) {
		t.Errorf("on disk: %q, %v", onDisk, err)
	}
	want := []event{{bucket, "p/2024/x y.jsonl", md5hex(text), int64(len(text))}}
	if diff := cmp.Diff(want, ev.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	st, err := mc.StatObject(t.Context(), bucket, "p/2024/x y.jsonl", minio.StatObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{st.ContentType, st.UserMetadata["Tool"], st.Metadata.Get("Cache-Control")}
	if diff := cmp.Diff([]string{"application/jsonl", "pi", "no-store"}, got); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	// The other way round: what the functions write, clients read; no event.
	if _, err := s.Transcripts().Put(t.Context(), "p/_post/k", strings.NewReader("posted"), 6, objstore.Condition{Create: true}); err != nil {
		t.Fatal(err)
	}
	if got := download(t, mc, "p/_post/k"); string(got) != "posted" {
		t.Errorf("client reads %q", got)
	}
	if diff := cmp.Diff([]event(nil), ev.take()); diff != "" {
		t.Errorf("events of the driver's own write (-want +got):\n%s", diff)
	}
}

func TestMultipart(t *testing.T) {
	c, ev := config(t)
	s := start(t, c)
	mc := client(t, s, access, secret)
	data := pattern(12<<20 + 3)
	info := upload(t, mc, "p/big.jsonl", data, minio.PutObjectOptions{PartSize: 5 << 20, ContentType: "text/plain", UserMetadata: map[string]string{"K": "v"}})
	if !strings.HasSuffix(info.ETag, "-3") {
		t.Errorf("ETag %s, want one of 3 parts", info.ETag)
	}
	if got := download(t, mc, "p/big.jsonl"); !bytes.Equal(got, data) {
		t.Errorf("%d bytes came back, %d went in, or they differ", len(got), len(data))
	}
	want := []event{{bucket, "p/big.jsonl", info.ETag, int64(len(data))}}
	if diff := cmp.Diff(want, ev.take()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	opts := minio.GetObjectOptions{}
	if err := opts.SetRange(5<<20-2, 5<<20+1); err != nil {
		t.Fatal(err)
	}
	o, err := mc.GetObject(t.Context(), bucket, "p/big.jsonl", opts)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(o); err != nil || !bytes.Equal(got, data[5<<20-2:5<<20+2]) {
		t.Errorf("range over the border of parts: %x, %v", got, err)
	}
	st, err := mc.StatObject(t.Context(), bucket, "p/big.jsonl", minio.StatObjectOptions{})
	if err != nil || st.ETag != info.ETag || st.ContentType != "text/plain" || st.UserMetadata["K"] != "v" {
		t.Errorf("stat: %+v, %v", st, err)
	}
	if left, err := filepath.Glob(filepath.Join(c.DataDir, "uploads", "[^.]*")); err != nil || len(left) != 0 {
		t.Errorf("parts left: %q, %v", left, err)
	}
}

// TestMultipartByHand covers what clients rarely do: gaps, wrong ETags, small
// parts, repeats, listing, abort.
func TestMultipartByHand(t *testing.T) {
	c, ev := config(t)
	s := start(t, c)
	core := minio.Core{Client: client(t, s, access, secret)}
	ctx := t.Context()
	id, err := core.NewMultipartUpload(ctx, bucket, "p/m", minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(n int, data []byte) minio.CompletePart {
		p, err := core.PutObjectPart(ctx, bucket, "p/m", id, n, bytes.NewReader(data), int64(len(data)), minio.PutObjectPartOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return minio.CompletePart{PartNumber: n, ETag: p.ETag}
	}
	large := pattern(5 << 20)
	p2, p5, p9 := put(2, large), put(5, []byte("small")), put(9, []byte("end"))
	complete := func(parts ...minio.CompletePart) error {
		_, err := core.CompleteMultipartUpload(ctx, bucket, "p/m", id, parts, minio.PutObjectOptions{})
		return err
	}
	wantCode(t, "a part that is not there", complete(p2, minio.CompletePart{PartNumber: 3, ETag: p5.ETag}), 400, "InvalidPart")
	wantCode(t, "another part's ETag", complete(minio.CompletePart{PartNumber: 2, ETag: p5.ETag}), 400, "InvalidPart")
	wantCode(t, "a small part before the last", complete(p2, p5, p9), 400, "EntityTooSmall")
	wantCode(t, "parts out of order", complete(p5, p2), 400, "InvalidPartOrder")

	parts, err := core.ListObjectParts(ctx, bucket, "p/m", id, 0, 2)
	if err != nil || len(parts.ObjectParts) != 2 || !parts.IsTruncated || parts.NextPartNumberMarker != 5 {
		t.Errorf("first page of parts: %+v, %v", parts, err)
	}
	parts, err = core.ListObjectParts(ctx, bucket, "p/m", id, 5, 2)
	if err != nil || len(parts.ObjectParts) != 1 || parts.IsTruncated || parts.ObjectParts[0].PartNumber != 9 {
		t.Errorf("second page of parts: %+v, %v", parts, err)
	}
	other, err := core.NewMultipartUpload(ctx, bucket, "q/other", minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ups, err := core.ListMultipartUploads(ctx, bucket, "", "", "", "", 10)
	if err != nil || len(ups.Uploads) != 2 || ups.Uploads[0].Key != "p/m" || ups.Uploads[1].UploadID != other {
		t.Errorf("uploads: %+v, %v", ups, err)
	}
	if err := core.AbortMultipartUpload(ctx, bucket, "q/other", other); err != nil {
		t.Fatal(err)
	}
	_, err = core.PutObjectPart(ctx, bucket, "q/other", other, 1, strings.NewReader("x"), 1, minio.PutObjectPartOptions{})
	wantCode(t, "a part of an aborted upload", err, 404, "NoSuchUpload")
	_, err = core.PutObjectPart(ctx, bucket, "q/other", "../../x", 1, strings.NewReader("x"), 1, minio.PutObjectPartOptions{})
	wantCode(t, "a made-up upload", err, 404, "NoSuchUpload")

	for range 2 { // the second is a client's repeat after a lost answer
		if err := complete(p2, p9); err != nil {
			t.Fatal(err)
		}
	}
	if got := download(t, core.Client, "p/m"); !bytes.Equal(got, append(large, "end"...)) {
		t.Errorf("the joined object has %d bytes", len(got))
	}
	if got := ev.take(); len(got) != 1 {
		t.Errorf("events: %+v, want one", got)
	}
}

func TestListing(t *testing.T) {
	c, _ := config(t)
	s := start(t, c)
	mc := client(t, s, access, secret)
	const folders, files = 30, 100
	var wantAll []string
	for i := range folders {
		dir := fmt.Sprintf("p/f%02d", i)
		if err := os.MkdirAll(filepath.Join(c.DataDir, bucket, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		for j := range files {
			key := fmt.Sprintf("%s/%03d.jsonl", dir, j)
			wantAll = append(wantAll, key)
			// By hand: an fsync for each of 3,000 uploads would take a minute.
			if err := os.WriteFile(filepath.Join(c.DataDir, bucket, key), []byte(key), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	keys := func(opts minio.ListObjectsOptions) []string {
		var got []string
		for o := range mc.ListObjects(t.Context(), bucket, opts) {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			got = append(got, o.Key)
		}
		return got
	}
	var wantFolders []string
	for i := range folders {
		wantFolders = append(wantFolders, fmt.Sprintf("p/f%02d/", i))
	}
	for _, v1 := range []bool{false, true} {
		for name, c := range map[string]struct {
			opts minio.ListObjectsOptions
			want []string
		}{
			"all, in pages of 1,000":       {minio.ListObjectsOptions{Recursive: true}, wantAll},
			"all, in pages of 7":           {minio.ListObjectsOptions{Recursive: true, MaxKeys: 7, Prefix: "p/f0"}, wantAll[:10*files]},
			"folders":                      {minio.ListObjectsOptions{Prefix: "p/"}, wantFolders},
			"folders, in pages of 4":       {minio.ListObjectsOptions{Prefix: "p/", MaxKeys: 4}, wantFolders},
			"top":                          {minio.ListObjectsOptions{}, []string{"p/"}},
			"inside a name":                {minio.ListObjectsOptions{Prefix: "p/f1"}, wantFolders[10:20]},
			"nothing":                      {minio.ListObjectsOptions{Prefix: "p/g", Recursive: true}, nil},
			"after a key":                  {minio.ListObjectsOptions{Recursive: true, StartAfter: "p/f28/099.jsonl"}, wantAll[29*files:]},
			"one folder, in pages of 33":   {minio.ListObjectsOptions{Prefix: "p/f07/", MaxKeys: 33}, wantAll[7*files : 8*files]},
			"one folder, in pages of 100":  {minio.ListObjectsOptions{Prefix: "p/f07/", MaxKeys: 100}, wantAll[7*files : 8*files]},
			"all, a page for every folder": {minio.ListObjectsOptions{Recursive: true, MaxKeys: 100}, wantAll},
		} {
			c.opts.UseV1 = v1
			if diff := cmp.Diff(c.want, keys(c.opts), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s, v1 %t (-want +got):\n%s", name, v1, diff)
			}
		}
	}
}

func TestConditionsAndDelete(t *testing.T) {
	c, ev := config(t)
	s := start(t, c)
	mc := client(t, s, access, secret)
	create, stale := minio.PutObjectOptions{}, minio.PutObjectOptions{}
	create.SetMatchETagExcept("*")
	stale.SetMatchETag(md5hex([]byte("never")))
	upload(t, mc, "k", []byte("one"), create)
	put := func(key string, opts minio.PutObjectOptions) error {
		_, err := mc.PutObject(t.Context(), bucket, key, strings.NewReader("two"), 3, opts)
		return err
	}
	wantCode(t, "second create", put("k", create), 412, "PreconditionFailed")
	wantCode(t, "stale If-Match", put("k", stale), 412, "PreconditionFailed")
	wantCode(t, "If-Match of nothing", put("none", stale), 404, "NoSuchKey")
	right := minio.PutObjectOptions{}
	right.SetMatchETag(md5hex([]byte("one")))
	if err := put("k", right); err != nil {
		t.Errorf("right If-Match: %v", err)
	}
	if _, err := mc.CopyObject(t.Context(), minio.CopyDestOptions{Bucket: bucket, Object: "copy"}, minio.CopySrcOptions{Bucket: bucket, Object: "k"}); err != nil {
		t.Error(err)
	}
	if got := download(t, mc, "copy"); string(got) != "two" {
		t.Errorf("the copy holds %q", got)
	}
	wantEvents := []event{{bucket, "k", md5hex([]byte("one")), 3}, {bucket, "k", md5hex([]byte("two")), 3}, {bucket, "copy", md5hex([]byte("two")), 3}}
	if diff := cmp.Diff(wantEvents, ev.take()); diff != "" {
		t.Errorf("events: refused writes send none (-want +got):\n%s", diff)
	}
	removed := make(chan minio.ObjectInfo, 3)
	for _, key := range []string{"k", "copy", "none"} {
		removed <- minio.ObjectInfo{Key: key}
	}
	close(removed)
	for e := range mc.RemoveObjects(t.Context(), bucket, removed, minio.RemoveObjectsOptions{}) {
		t.Errorf("remove %s: %v", e.ObjectName, e.Err)
	}
	_, err := mc.StatObject(t.Context(), bucket, "k", minio.StatObjectOptions{})
	wantCode(t, "stat of a removed object", err, 404, "NoSuchKey")
	for key, code := range map[string]string{"folder/": "InvalidRequest", "a//b": "InvalidRequest"} {
		_, err := mc.PutObject(t.Context(), bucket, key, strings.NewReader(""), 0, minio.PutObjectOptions{})
		wantCode(t, "put of "+key, err, 400, code)
	}
}

// TestBodyIsChecked: a body that does not match its checksum or breaks off is
// not stored.
func TestBodyIsChecked(t *testing.T) {
	c, ev := config(t)
	s := start(t, c)
	mc, err := minio.New(s.Addr(), &minio.Options{Creds: credentials.NewStaticV4(access, secret, ""), Region: s3serve.Region, MaxRetries: 1, TrailingHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	good := []byte("these bytes are what they say")
	for name, kind := range map[string]minio.ChecksumType{"crc32": minio.ChecksumCRC32, "crc32c": minio.ChecksumCRC32C, "crc64nvme": minio.ChecksumCRC64NVME, "sha1": minio.ChecksumSHA1, "sha256": minio.ChecksumSHA256} {
		sum := kind.ChecksumBytes(good).Encoded()
		opts := minio.PutObjectOptions{UserMetadata: map[string]string{"x-amz-checksum-" + name: sum}, DisableContentSha256: true}
		upload(t, mc, "good/"+name, good, opts)
		_, err := mc.PutObject(t.Context(), bucket, "bad/"+name, strings.NewReader("these bytes are not"), 19, opts)
		wantCode(t, name, err, 400, "BadDigest")
	}
	if n := len(ev.take()); n != 5 {
		t.Errorf("%d events, want those of the 5 good objects", n)
	}
	for o := range mc.ListObjects(t.Context(), bucket, minio.ListObjectsOptions{Prefix: "bad/", Recursive: true}) {
		t.Errorf("stored in spite of its checksum: %s", o.Key)
	}
	// A client that goes away in the middle of an upload.
	r := io.MultiReader(bytes.NewReader(pattern(1<<20)), brokenReader{})
	if _, err := mc.PutObject(t.Context(), bucket, "half", r, 2<<20, minio.PutObjectOptions{DisableMultipart: true}); err == nil {
		t.Error("half an upload succeeded")
	}
	if _, err := mc.StatObject(t.Context(), bucket, "half", minio.StatObjectOptions{}); err == nil {
		t.Error("half an upload is stored")
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWhoMayDoWhat(t *testing.T) {
	c, ev := config(t)
	s := start(t, c)
	ctx := t.Context()
	if _, err := s.Mneme().Put(ctx, "log/local/p/admit/00000000000000000001.jsonl", strings.NewReader("{}\n"), 3, objstore.Condition{Create: true}); err != nil {
		t.Fatal(err)
	}
	const key = "log/local/p/admit/00000000000000000001.jsonl"
	user, operator := client(t, s, access, secret), client(t, s, opAccess, opSecret)

	for name, keys := range map[string][3]string{
		"guessed secret": {access, "guess", "SignatureDoesNotMatch"},
		"guessed key":    {"guess", secret, "InvalidAccessKeyId"},
		"no key":         {"", "", "AccessDenied"},
	} {
		mc := client(t, s, keys[0], keys[1])
		_, err := mc.PutObject(ctx, bucket, "x", strings.NewReader("x"), 1, minio.PutObjectOptions{})
		wantCode(t, name+" puts", err, 403, keys[2])
		core := minio.Core{Client: mc}
		_, err = core.ListObjectsV2(bucket, "", "", "", "", 10)
		wantCode(t, name+" lists", err, 403, keys[2])
	}
	writes := map[string]func(*minio.Client) error{
		"put": func(mc *minio.Client) error {
			_, err := mc.PutObject(ctx, "mneme", "x", strings.NewReader("x"), 1, minio.PutObjectOptions{})
			return err
		},
		"overwrite": func(mc *minio.Client) error {
			_, err := mc.PutObject(ctx, "mneme", key, strings.NewReader("x"), 1, minio.PutObjectOptions{})
			return err
		},
		"delete": func(mc *minio.Client) error {
			return mc.RemoveObject(ctx, "mneme", key, minio.RemoveObjectOptions{})
		},
		"multipart": func(mc *minio.Client) error {
			_, err := minio.Core{Client: mc}.NewMultipartUpload(ctx, "mneme", "x", minio.PutObjectOptions{})
			return err
		},
		"copy": func(mc *minio.Client) error {
			_, err := mc.CopyObject(ctx, minio.CopyDestOptions{Bucket: "mneme", Object: "x"}, minio.CopySrcOptions{Bucket: "mneme", Object: key})
			return err
		},
		"remove bucket": func(mc *minio.Client) error { return mc.RemoveBucket(ctx, "mneme") },
		"make bucket":   func(mc *minio.Client) error { return mc.MakeBucket(ctx, "another", minio.MakeBucketOptions{}) },
	}
	for name, write := range writes {
		wantCode(t, "the S3 key: "+name, write(user), 403, "AccessDenied")
		wantCode(t, "the operator: "+name, write(operator), 403, "AccessDenied")
	}
	_, err := user.StatObject(ctx, "mneme", key, minio.StatObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode != 403 {
		t.Errorf("the S3 key heads mneme: %v", err)
	}
	core := minio.Core{Client: user}
	_, _, _, err = core.GetObject(ctx, "mneme", key, minio.GetObjectOptions{})
	wantCode(t, "the S3 key reads mneme", err, 403, "AccessDenied")
	_, err = core.ListObjectsV2("mneme", "", "", "", "", 10)
	wantCode(t, "the S3 key lists mneme", err, 403, "AccessDenied")
	_, err = user.CopyObject(ctx, minio.CopyDestOptions{Bucket: bucket, Object: "x"}, minio.CopySrcOptions{Bucket: "mneme", Object: key})
	wantCode(t, "the S3 key copies out of mneme", err, 403, "AccessDenied")

	st, err := operator.StatObject(ctx, "mneme", key, minio.StatObjectOptions{})
	if err != nil || st.ETag != md5hex([]byte("{}\n")) {
		t.Errorf("the operator heads mneme: %+v, %v", st, err)
	}
	var listed []string
	for o := range operator.ListObjects(ctx, "mneme", minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		listed = append(listed, o.Key)
	}
	if diff := cmp.Diff([]string{key}, listed); diff != "" {
		t.Errorf("the operator lists mneme, nothing of the store's own (-want +got):\n%s", diff)
	}
	for mc, want := range map[*minio.Client][]string{user: {"transcripts"}, operator: {"mneme", "transcripts"}} {
		all, err := mc.ListBuckets(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range all {
			got = append(got, b.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("buckets (-want +got):\n%s", diff)
		}
	}
	if got := ev.take(); got != nil {
		t.Errorf("events: %+v", got)
	}
	// A web page: no CORS header lets it read an answer.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/transcripts", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "http://evil.example")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 403 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a web page gets %d, allowed origin %q", resp.StatusCode, resp.Header.Get("Access-Control-Allow-Origin"))
	}
}

func TestWithoutOperator(t *testing.T) {
	c, _ := config(t)
	c.OperatorAccessKey, c.OperatorSecretKey = "", ""
	s := start(t, c)
	mc := client(t, s, access, secret)
	upload(t, mc, "k", []byte("v"), minio.PutObjectOptions{})
	_, err := client(t, s, "", "").StatObject(t.Context(), "mneme", "k", minio.StatObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode != 403 {
		t.Errorf("an anonymous client heads mneme: %v", err)
	}
}

// TestRestart: what was stored is served by the next Server, also from a copy
// of the folder that kept no times.
func TestRestart(t *testing.T) {
	c, _ := config(t)
	data := pattern(6 << 20)
	infos := map[string]minio.ObjectInfo{}
	t.Run("first", func(t *testing.T) {
		s := start(t, c)
		mc := client(t, s, access, secret)
		upload(t, mc, "p/small", []byte("small"), minio.PutObjectOptions{})
		upload(t, mc, "p/big", data, minio.PutObjectOptions{PartSize: 5 << 20})
		for _, k := range []string{"p/small", "p/big"} {
			st, err := mc.StatObject(t.Context(), bucket, k, minio.StatObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			infos[k] = st
		}
	})
	moved := c
	moved.DataDir = t.TempDir()
	if err := os.CopyFS(moved.DataDir, os.DirFS(c.DataDir)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]s3serve.Config{"again": c, "elsewhere": moved} {
		t.Run(name, func(t *testing.T) {
			s := start(t, c)
			mc := client(t, s, access, secret)
			for k, want := range infos {
				got, err := mc.StatObject(t.Context(), bucket, k, minio.StatObjectOptions{})
				if err != nil || got.ETag != want.ETag || got.Size != want.Size || !got.LastModified.Equal(want.LastModified) {
					t.Errorf("%s: %s %d %v, want %s %d %v (%v)", k, got.ETag, got.Size, got.LastModified, want.ETag, want.Size, want.LastModified, err)
				}
			}
			if got := download(t, mc, "p/big"); !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back", len(got))
			}
		})
	}
}

func TestStart(t *testing.T) {
	c, _ := config(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c.Addr = taken.Addr().String()
	s := start(t, c)
	if s.Addr() == c.Addr {
		t.Errorf("serves on the taken port %s", s.Addr())
	}
	upload(t, client(t, s, access, secret), "k", []byte("v"), minio.PutObjectOptions{})

	again, _ := config(t)
	if _, err := s3serve.Start(t.Context(), again); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a second Server in one process: %v", err)
	}
	_, err = s3serve.Start(t.Context(), s3serve.Config{Addr: "nowhere", OperatorAccessKey: "k"})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("wrong settings: %v", err)
	}
	for _, name := range []string{"Addr", "DataDir", "MnemeDir", "AccessKey", "SecretKey", "operator"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}

// TestCloseAnswersFirst: an upload under way when the endpoint closes is
// stored and answered, or fails and is not stored.
func TestCloseAnswersFirst(t *testing.T) {
	c, _ := config(t)
	one.Lock()
	defer one.Unlock()
	s, err := s3serve.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	mc := client(t, s, access, secret)
	data := pattern(8 << 20)
	var wg sync.WaitGroup
	answered := make([]bool, 8)
	under := make(chan bool, len(answered))
	for i := range answered {
		wg.Go(func() {
			r := io.MultiReader(bytes.NewReader(data[:4<<20]), &signal{ch: under}, bytes.NewReader(data[4<<20:]))
			_, err := mc.PutObject(context.Background(), bucket, fmt.Sprint(i), r, int64(len(data)), minio.PutObjectOptions{DisableMultipart: true})
			answered[i] = err == nil
		})
	}
	for range answered {
		<-under // half of each upload is sent
	}
	began := time.Now()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("Close took %v", took)
	}
	wg.Wait()
	d, err := s3serve.OpenTranscripts(c.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !slices.Contains(answered, true) {
		t.Error("no upload under way was finished")
	}
	for i, ok := range answered {
		info, err := d.Head(t.Context(), fmt.Sprint(i))
		if ok && (err != nil || info.SizeBytes != int64(len(data))) {
			t.Errorf("upload %d was answered and is not stored: %v", i, err)
		}
	}
}

// signal is an empty reader that says when it is read.
type signal struct{ ch chan bool }

func (s *signal) Read([]byte) (int, error) {
	s.ch <- true
	return 0, io.EOF
}
