package eventlog

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// maxBlob is the largest blob in plain bytes. A chunk of 5,000 tokens is some
// 20 KB and a model's reply less; the bound keeps a small hostile object from
// growing without end when it is decompressed.
const maxBlob = 64 << 20

// maxBlobStored bounds a blob as stored: zstd grows what it cannot compress by
// at most a few bytes in every 128 KB.
const maxBlobStored = maxBlob + maxBlob/1024 + 1024

// lazyZstd makes encoder and decoder on first use: a function that only
// queries never pays for them. Both are safe for concurrent EncodeAll and
// DecodeAll. They start no goroutine.
func lazyZstd() (func() (*zstd.Encoder, error), func() (*zstd.Decoder, error)) {
	parallel := runtime.GOMAXPROCS(0)
	enc := sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(parallel), zstd.WithLowerEncoderMem(true))
	})
	dec := sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(parallel), zstd.WithDecoderMaxMemory(maxBlob), zstd.WithDecoderLowmem(true))
	})
	return enc, dec
}

// PutBlob stores data, compressed, under the sha256 of its plain bytes, once.
// More than 64 MiB is fault.Invalid.
func (l *Log) PutBlob(ctx context.Context, project string, data []byte) (_ memory.SHA, err error) {
	defer fault.Wrap(&err, "put blob(%s)", project)
	if err := l.checkProject(project); err != nil {
		return "", err
	}
	if len(data) > maxBlob {
		return "", fault.New(fault.Invalid, "a blob of %d bytes; at most %d", len(data), maxBlob)
	}
	enc, err := l.zenc()
	if err != nil {
		return "", fault.As(fault.Internal, err)
	}
	sha := memory.Sum(data)
	packed := enc.EncodeAll(data, nil)
	err = l.putOnce(ctx, l.blobKey(project, sha), packed, maxBlobStored, func(old []byte) error {
		_, err := l.unpackBlob(old, sha)
		return err
	})
	return sha, err
}

// Blob reads the blob whose plain bytes have this sha256 and verifies it. None
// there: fault.NotFound. Other bytes, or more than 64 MiB: fault.Corrupt.
func (l *Log) Blob(ctx context.Context, project string, sha memory.SHA) (_ []byte, err error) {
	defer fault.Wrap(&err, "blob(%s, %s)", project, sha.Short())
	if err := l.checkProject(project); err != nil {
		return nil, err
	}
	if !sha.Valid() {
		return nil, fault.New(fault.Invalid, "the key of a blob is a sha256")
	}
	key := l.blobKey(project, sha)
	raw, err := l.readLimited(ctx, key, maxBlobStored)
	if err != nil {
		return nil, err
	}
	data, err := l.unpackBlob(raw.data, sha)
	if err != nil {
		return nil, corrupt(key, 0, err)
	}
	return data, nil
}

func (l *Log) unpackBlob(packed []byte, sha memory.SHA) ([]byte, error) {
	dec, err := l.zdec()
	if err != nil {
		return nil, fault.As(fault.Internal, err)
	}
	data, err := dec.DecodeAll(packed, nil)
	if err != nil {
		return nil, fault.New(fault.Corrupt, "the blob does not decompress: %w", err)
	}
	if memory.Sum(data) != sha {
		return nil, errors.New("the blob does not hash to its key")
	}
	return data, nil
}
