package s3serve_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/mneme-ai/mneme/shared/objstore/s3serve"
)

// BenchmarkPut is an upload by an S3 client: a connection, a signature, and
// file and folder on the disk.
func BenchmarkPut(b *testing.B) {
	one.Lock()
	defer one.Unlock()
	s, err := s3serve.Start(context.Background(), s3serve.Config{Addr: "127.0.0.1:0", DataDir: b.TempDir(), MnemeDir: b.TempDir(), AccessKey: access, SecretKey: secret})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	mc, err := minio.New(s.Addr(), &minio.Options{Creds: credentials.NewStaticV4(access, secret, ""), Region: s3serve.Region})
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{4 << 10, 4 << 20} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			data := pattern(size)
			b.SetBytes(int64(size))
			for i := 0; b.Loop(); i++ {
				if _, err := mc.PutObject(b.Context(), bucket, fmt.Sprintf("p/%d/%d", size, i), bytes.NewReader(data), int64(size), minio.PutObjectOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
