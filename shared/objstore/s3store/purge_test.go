package s3store_test

import (
	"context"
	"net/url"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/s3store"
)

// TestPurgeVersions: of what was written over and removed no version is left, of what
// stands the present one, and another object's stay where one key is named.
func TestPurgeVersions(t *testing.T) {
	t.Parallel()
	addr := os.Getenv("MNEME_TEST_S3")
	if addr == "" {
		t.Skip("MNEME_TEST_S3 is not set")
	}
	u, err := url.Parse(addr)
	if err != nil {
		t.Fatal(err)
	}
	pass, _ := u.User.Password()
	c := s3store.Config{Endpoint: u.Scheme + "://" + u.Host, Bucket: "versions-" + strconv.FormatInt(time.Now().UnixNano(), 36), AccessKey: u.User.Username(), SecretKey: pass}
	ctx := t.Context()
	if err := s3store.MakeBucket(ctx, c); err != nil {
		t.Fatal(err)
	}
	client, err := minio.New(u.Host, &minio.Options{Creds: credentials.NewStaticV4(u.User.Username(), pass, ""), Secure: u.Scheme == "https"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s3store.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	b := objstore.NewBucket(c.Bucket, d)
	all := func() (n int) {
		for o := range client.ListObjects(ctx, c.Bucket, minio.ListObjectsOptions{Recursive: true, WithVersions: true}) {
			if o.Err != nil {
				t.Fatal(o.Err)
			}
			n++
		}
		return n
	}
	put := func(key, text string) {
		t.Helper()
		if _, err := b.Put(ctx, key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put("a/plain", "1")
	if n, err := b.PurgeVersions(ctx, "a/", false); err != nil || n != 0 {
		t.Errorf("a bucket without versions: %d %v", n, err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		for o := range client.ListObjects(ctx, c.Bucket, minio.ListObjectsOptions{Recursive: true, WithVersions: true}) {
			_ = client.RemoveObject(ctx, c.Bucket, o.Key, minio.RemoveObjectOptions{VersionID: o.VersionID})
		}
		_ = b.Delete(ctx, "a/plain")
		_ = client.RemoveBucket(ctx, c.Bucket)
	})
	if err := client.EnableVersioning(ctx, c.Bucket); err != nil {
		t.Skipf("this server keeps no versions: %v", err)
	}
	put("a/x", "1")
	put("a/x", "2")
	put("a/x-y", "1")
	put("a/x-y", "2")
	put("a/gone", "1")
	for _, key := range []string{"a/gone", "a/x-y"} {
		if err := b.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	if n := all(); n != 8 {
		t.Fatalf("%d versions before", n)
	}
	if n, err := b.PurgeVersions(ctx, "a/x", true); err != nil || n != 1 {
		t.Errorf("one key: %d %v", n, err)
	}
	if n, err := b.PurgeVersions(ctx, "a/", false); err != nil || n != 5 {
		t.Errorf("all: %d %v", n, err)
	}
	if n := all(); n != 2 { // a/plain and a/x
		t.Errorf("%d versions left", n)
	}
	if got, _, err := b.ReadAll(ctx, "a/x", 10); err != nil || string(got) != "2" {
		t.Errorf("a/x is %q %v", got, err)
	}
}
