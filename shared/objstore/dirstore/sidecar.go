package dirstore

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Attrs is what a store keeps of an object beside its bytes and Info.
type Attrs struct {
	// ETag, when set, stands in place of the MD5 of the content: S3's
	// "<md5 of the parts' md5s>-<parts>" of a multipart upload.
	ETag        string            `json:"-"`
	ContentType string            `json:"content_type,omitempty"`
	Meta        map[string]string `json:"meta,omitempty"` // S3 user metadata, names in lower case
	Headers     map[string]string `json:"headers,omitempty"`
}

// plain reports whether all of a's object can be computed from its file.
func (a Attrs) plain() bool {
	return a.ETag == "" && a.ContentType == "" && len(a.Meta) == 0 && len(a.Headers) == 0
}

// sidecarVersion is the version of the sidecar's JSON.
//
//	1: key, etag, md5, size, mtime, content_type, meta, headers
const sidecarVersion = 1

// sidecar stands at meta/<path of the object> and describes its file:
//
//	{"v":1,"key":"p/a.jsonl","etag":"9e10…","md5":"9e10…","size":5,"mtime":"2026-01-02T03:04:05.000000006Z"}
//
// It belongs to the file when key, size and mtime agree, or, after a copy that
// did not keep modification times, when key, size and MD5 do. Otherwise it is
// left over from before a crash, or the file was changed by hand, and the file
// is described anew.
type sidecar struct {
	Version int       `json:"v"`
	Key     string    `json:"key"`
	ETag    string    `json:"etag"`
	MD5     string    `json:"md5"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"mtime"`
	Attrs
}

// describes reports whether sc surely belongs to the file with these facts.
func (sc *sidecar) describes(key string, st fs.FileInfo) bool {
	return sc != nil && sc.Key == key && sc.Size == st.Size() && sc.ModTime.Equal(st.ModTime())
}

// readSidecar gives nil when there is none, or a broken one: a power cut may
// leave an empty file.
func readSidecar(path string) (*sidecar, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var sc sidecar
	if json.Unmarshal(data, &sc) != nil || sc.Version != sidecarVersion {
		return nil, nil
	}
	return &sc, nil
}

// writeSidecar replaces the sidecar at path as a whole. Only with durable does
// it survive a power cut: what can be computed from the object's file need not.
func (s *Store) writeSidecar(path string, sc *sidecar, durable bool) (err error) {
	sc.Version = sidecarVersion
	data, err := json.Marshal(sc)
	if err != nil {
		return err
	}
	return s.writeFile(path, data, durable)
}

// writeFile replaces a small file of the store's own as a whole.
func (s *Store) writeFile(path string, data []byte, durable bool) error {
	tmp, err := s.newTemp()
	if err != nil {
		return err
	}
	defer tmp.discard()
	if _, err := tmp.Write(data); err != nil {
		return err
	}
	if durable {
		if err := tmp.Sync(); err != nil {
			return err
		}
	}
	if err := retryMkdir(path, func() error { return tmp.moveTo(path) }); err != nil {
		return err
	}
	if durable {
		return syncDir(filepath.Dir(path))
	}
	return nil
}
