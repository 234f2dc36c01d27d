package wire

import (
	"bytes"
	"context"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/s3store"
)

// inboxOver reaches the inbox through the S3 endpoint, as any client does.
func inboxOver(url string, c Credentials) (*objstore.Bucket, error) {
	d, err := s3store.Open(s3store.Config{Endpoint: url, Bucket: InboxBucket, AccessKey: c.S3AccessKey.Reveal(), SecretKey: c.S3SecretKey.Reveal()})
	if err != nil {
		return nil, err
	}
	return objstore.NewBucket(InboxBucket, d), nil
}

// Upload puts an object into the inbox through the S3 endpoint.
func (u *Up) Upload(ctx context.Context, key string, body []byte) error {
	b, err := inboxOver(u.s3.URL(), u.creds)
	if err != nil {
		return err
	}
	_, err = b.PutReader(ctx, key, bytes.NewReader(body), int64(len(body)))
	return err
}

// ProbeS3 lists the inbox through the S3 endpoint of the folder: it answers and
// takes the folder's key.
func ProbeS3(ctx context.Context, dir string) (err error) {
	defer fault.Wrap(&err, "s3 endpoint")
	r, err := ReadReady(dir)
	if err != nil {
		return err
	}
	creds, err := ReadCredentials(dir)
	if err != nil {
		return err
	}
	b, err := inboxOver(r.S3, creds)
	if err != nil {
		return err
	}
	for _, err := range b.List(ctx, "") {
		return err // the first answer tells
	}
	return nil
}
