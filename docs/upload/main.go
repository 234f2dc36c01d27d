// Upload puts files into a project's inbox by plain S3, as any S3 client can.
// It is the example of docs/UPLOAD.md:
//
//	eval "$(mem s3 env)"
//	go run ./docs/upload shop session.jsonl notes.md
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: upload PROJECT FILE…")
		os.Exit(2)
	}
	if err := upload(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "upload:", err)
		os.Exit(1)
	}
}

// upload stores each file as PROJECT/NAME in the bucket of transcripts. Mneme
// learns from it as soon as the object stands.
func upload(ctx context.Context, project string, files []string) error {
	endpoint, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL"))
	if err != nil || endpoint.Host == "" {
		return fmt.Errorf("AWS_ENDPOINT_URL names no server: run eval \"$(mem s3 env)\" first")
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:  credentials.NewEnvAWS(), // AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
		Secure: endpoint.Scheme == "https",
		Region: os.Getenv("AWS_REGION"),
	})
	if err != nil {
		return err
	}
	for _, file := range files {
		key := project + "/" + filepath.Base(file)
		info, err := client.FPutObject(ctx, "transcripts", key, file, minio.PutObjectOptions{})
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		fmt.Printf("transcripts/%s  %d bytes  etag %s\n", info.Key, info.Size, info.ETag)
	}
	return nil
}
