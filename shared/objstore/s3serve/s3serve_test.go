package s3serve_test

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/objstoretest"
	"github.com/mneme-ai/mneme/shared/objstore/s3serve"
	"github.com/mneme-ai/mneme/shared/objstore/s3store"
)

const (
	access, secret     = "client-key", "client-secret"
	opAccess, opSecret = "operator-key", "operator-secret"
)

// one lets one Server run at a time in this process.
var one sync.Mutex

// events collects what OnEvent is told.
type events struct {
	mu  sync.Mutex
	all []event
}

type event struct {
	Bucket, Key, ETag string
	Size              int64
}

func (e *events) add(bucket, key, etag string, size int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event{bucket, key, etag, size})
}

func (e *events) take() []event {
	e.mu.Lock()
	defer e.mu.Unlock()
	got := e.all
	e.all = nil
	return got
}

func config(t *testing.T) (s3serve.Config, *events) {
	ev := &events{}
	return s3serve.Config{
		Addr: "127.0.0.1:0", DataDir: t.TempDir(), MnemeDir: t.TempDir(),
		AccessKey: access, SecretKey: secret, OperatorAccessKey: opAccess, OperatorSecretKey: opSecret,
		OnEvent: ev.add,
	}, ev
}

func start(t *testing.T, c s3serve.Config) *s3serve.Server {
	t.Helper()
	one.Lock()
	t.Cleanup(one.Unlock)
	s, err := s3serve.Start(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func client(t *testing.T, s *s3serve.Server, access, secret string) *minio.Client {
	t.Helper()
	c, err := minio.New(s.Addr(), &minio.Options{Creds: credentials.NewStaticV4(access, secret, ""), Region: s3serve.Region, MaxRetries: 1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func md5hex(data []byte) string {
	sum := md5.Sum(data)
	return hex.EncodeToString(sum[:])
}

// TestConformance: the S3 driver keeps its contract over this endpoint.
func TestConformance(t *testing.T) {
	c, _ := config(t)
	s := start(t, c)
	t.Run("s3store", func(t *testing.T) {
		objstoretest.Run(t, func(t *testing.T) objstore.Driver {
			d, err := s3store.Open(s3store.Config{Endpoint: s.URL(), Bucket: s3serve.BucketTranscripts, AccessKey: access, SecretKey: secret,
				Prefix: md5hex([]byte(t.Name()))[:8] + "/"})
			if err != nil {
				t.Fatal(err)
			}
			return d
		})
	})
}
