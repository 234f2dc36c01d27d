package export

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// Names lists what an export holds, in the order in which it must be written: the
// files, the manifest, the marker.
func (r *Report) Names() (out []string) {
	for _, f := range r.Files {
		out = append(out, f.Name)
	}
	return append(out, Manifest, Marker)
}

// Receive copies an export into dir. What stands there under the names of an export is
// replaced, or removed where the new one has no such file, and the marker comes last:
// whoever finds it finds the whole. open gives an object by its name.
func Receive(ctx context.Context, dir string, r *Report, open func(ctx context.Context, name string) (io.ReadCloser, error)) (err error) {
	defer fault.Wrap(&err, "receive export into %s", dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.At(fault.Invalid, dir, "", "%v", plain(err))
	}
	names := r.Names()
	for _, old := range append([]string{Marker, Manifest}, Files("all")...) {
		if old != Marker && slices.Contains(names, old) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, old)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fault.At(fault.Invalid, dir, "", "%v", plain(err))
		}
	}
	for _, name := range names {
		if err := receive(ctx, dir, name, r, open); err != nil {
			return err
		}
	}
	return nil
}

func receive(ctx context.Context, dir, name string, r *Report, open func(ctx context.Context, name string) (io.ReadCloser, error)) (err error) {
	from, err := open(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	s, err := newSink(dir, name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(s, from); err != nil {
		s.abandon()
		return fault.As(fault.Unavailable, err)
	}
	for _, f := range r.Files {
		if sum := hex.EncodeToString(s.sum.Sum(nil)); f.Name == name && sum != string(f.SHA256) {
			s.abandon()
			return fault.At(fault.Unavailable, name, "run it again", "it arrived with sha256 %s, not %s", sum, f.SHA256)
		}
	}
	_, err = s.close()
	return err
}

// Publish puts the export in dir under a prefix of a bucket, file by file from the
// disk. A marker that stands there is removed first and the new one is written last, so
// that a marker always stands for the files beside it.
func Publish(ctx context.Context, b *objstore.Bucket, prefix, dir string, r *Report) (err error) {
	defer fault.Wrap(&err, "publish export %s", r.ExportID)
	if err := b.Delete(ctx, prefix+Marker); err != nil {
		return err
	}
	for _, name := range r.Names() {
		if err := put(ctx, b, prefix+name, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func put(ctx context.Context, b *objstore.Bucket, key, path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return fault.As(fault.Unavailable, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return fault.As(fault.Unavailable, err)
	}
	_, err = b.PutReader(ctx, key, f, st.Size())
	return err
}

// Published is the id of the export whose marker stands under a prefix; "" where none
// does.
func Published(ctx context.Context, b *objstore.Bucket, prefix string) (id string, err error) {
	m, _, err := b.ReadAll(ctx, prefix+Marker, 1<<10)
	if errors.Is(err, objstore.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if n := 2 * idBytes; len(m) == n+1 {
		return string(m[:n]), nil
	}
	return "", nil // not one of ours: written anew
}

// Prefix is where all exports stand in the log bucket.
const Prefix = "derived/exports/"

const (
	askedUnder = "_asked"
	keptUnder  = "_kept"
)

// DayPrefix is where a day's export stands in the log bucket.
func DayPrefix(tenant, day string) string { return Prefix + day + "/" + tenant + "/" }

// AskedPrefix is where exports stand that somebody asked for, each under its id, until
// they are fetched.
func AskedPrefix(tenant string) string { return DayPrefix(tenant, askedUnder) }

// KeptPrefix is where exports stand that somebody asked for and that are kept, each under
// its id.
func KeptPrefix(tenant string) string { return DayPrefix(tenant, keptUnder) }

// Located reports whether a key is of an export of the tenant, and of which day; "" for
// one that somebody asked for.
func Located(tenant, key string) (day string, ok bool) {
	part := strings.Split(strings.TrimPrefix(key, Prefix), "/")
	switch {
	case !strings.HasPrefix(key, Prefix) || len(part) < 3 || part[1] != tenant:
		return "", false
	case part[0] == askedUnder || part[0] == keptUnder:
		return "", len(part) == 4 && ValidID(part[2])
	}
	_, err := time.Parse(time.DateOnly, part[0])
	return part[0], err == nil && len(part) == 3
}

// ValidID reports whether s may be the id of an export.
func ValidID(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 2*idBytes
}

// ValidName reports whether s names something that an export holds.
func ValidName(s string) bool {
	return s == Manifest || s == Marker || schemas()[s] != nil
}
