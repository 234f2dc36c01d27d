package s3store_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/objstoretest"
	"github.com/mneme-ai/mneme/shared/objstore/s3store"
)

const access, secret, bucketName = "test-key", "test-secret", "mneme-test"

// TestVersitygw runs the suite against versitygw with its own backend, in this
// process.
func TestVersitygw(t *testing.T) {
	t.Parallel()
	root, side := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(root, bucketName), 0o700); err != nil {
		t.Fatal(err)
	}
	sidecars, err := meta.NewSideCar(side)
	if err != nil {
		t.Fatal(err)
	}
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	be, err := posix.New(root, sidecars, posix.PosixOpts{SideCarDir: side, NewDirPerm: 0o700})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chdir(wd) }) // posix.New went into its root
	addr := freeAddr(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- embedgw.RunVersityGW(ctx, be, &embedgw.Config{RootUserAccess: access, RootUserSecret: secret, Ports: []string{addr},
			MaxConnections: 256, MaxRequests: 128, MultipartMaxParts: 10000, Quiet: true})
	}()
	t.Cleanup(func() { cancel(); <-ended })
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	suite(t, s3store.Config{Endpoint: "http://" + addr, Bucket: bucketName, AccessKey: access, SecretKey: secret}, objstoretest.Limits{})
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// servers are the real S3 servers of a test run, by the variable that names
// each: http://key:secret@host:port, or with /bucket; the bucket is made if need
// be. require is the server's name in MNEME_TEST_REQUIRE.
var servers = []struct{ name, variable, require string }{
	{"S3", "MNEME_TEST_S3", "s3"},
	{"MinIO", "MNEME_TEST_MINIO", "minio"},
}

// eachServer runs test against every server that there is; bucket is the one to
// use where the variable names none.
func eachServer(t *testing.T, bucket string, test func(t *testing.T, c s3store.Config)) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			where := os.Getenv(s.variable)
			if where == "" {
				msg := s.variable + " is not set: S3 is tested against the other servers alone"
				if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), s.require) {
					t.Fatal(msg)
				}
				t.Skip(msg)
			}
			u, err := url.Parse(where)
			if err != nil || u.User == nil {
				t.Fatalf("%s is not http://key:secret@host:port", s.variable)
			}
			pass, _ := u.User.Password()
			c := s3store.Config{Endpoint: u.Scheme + "://" + u.Host, Bucket: cmp.Or(bucket, strings.Trim(u.Path, "/"), bucketName), AccessKey: u.User.Username(), SecretKey: pass}
			if err := s3store.MakeBucket(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			resp, err := http.Get(c.Endpoint)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			t.Logf("%s calls itself %s", s.variable, resp.Header.Get("Server"))
			test(t, c)
		})
	}
}

// TestServers runs the suite against the real servers.
func TestServers(t *testing.T) {
	t.Parallel()
	eachServer(t, "", func(t *testing.T, c s3store.Config) { suite(t, c, objstoretest.Limits{Many: 10_000}) })
}

// TestVersionedBuckets runs it where the bucket keeps what is replaced and
// deleted: what DeleteVersions leaves is asked of the server by its listing of versions.
func TestVersionedBuckets(t *testing.T) {
	t.Parallel()
	eachServer(t, bucketName+"-versions", func(t *testing.T, c s3store.Config) {
		if err := s3store.Versioning(t.Context(), c); err != nil {
			t.Skipf("this server keeps no versions as it is run: %v", err)
		}
		suite(t, c, objstoretest.Limits{Versioned: true, Many: 1100})
	})
}

// suite runs the conformance suite, each test under a prefix of its own, and
// finds out first what this server cannot do.
func suite(t *testing.T, c s3store.Config, limits objstoretest.Limits) {
	open := func(t *testing.T, prefix string) *s3store.Store {
		t.Helper()
		c := c // tests run side by side, each with its prefix
		c.Prefix = prefix
		d, err := s3store.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	run := fmt.Sprintf("run-%d/", time.Now().UnixNano())
	probe := open(t, run+"probe/")
	put := func(key string) error {
		_, err := probe.Put(t.Context(), key, strings.NewReader("x"), 1, objstore.Condition{})
		return err
	}
	if err := put("a"); err != nil {
		t.Fatal(err)
	}
	if err := put("a/b"); err != nil {
		limits.NoNesting = true
		t.Logf(`this server cannot hold "a" and "a/b": %v`, err)
	} else if page, err := probe.List(t.Context(), "", "", 10); err != nil || len(page) < 2 {
		limits.NoNesting = true // MinIO's documented limit "conflicting objects as parent"
		t.Logf(`this server holds "a" and "a/b" and lists %d of them, error %v`, len(page), err)
	}
	if limits.Versioned {
		if err := probe.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := probe.Put(t.Context(), "a", strings.NewReader("x"), 1, objstore.Condition{Create: true}); err != nil {
			limits.NoRecreate = true
			t.Logf("this server, with versions, refuses to create what was deleted: %v", err)
		}
	}
	if err := put(strings.Repeat("%", 200)); err != nil {
		t.Fatalf("a key part of 200 bytes: %v", err)
	}
	var n atomic.Int32
	t.Run("suite", func(t *testing.T) {
		objstoretest.RunLimited(t, limits, func(t *testing.T) objstore.Driver {
			return open(t, fmt.Sprintf("%s%d/", run, n.Add(1)))
		})
	})
}

// answers is a server that gives the same answer to every request.
func answers(t *testing.T, status int, code string, requests *atomic.Int32) *s3store.Store {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>m</Message></Error>", code)
	}))
	t.Cleanup(srv.Close)
	d, err := s3store.Open(s3store.Config{Endpoint: srv.URL, Bucket: "bbb", AccessKey: "k", SecretKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestFaults: each answer of a server has its kind, and one call is one request.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		code   string
		kind   fault.Kind
		is     error
	}{
		{412, "PreconditionFailed", fault.Conflict, objstore.ErrPrecondition},
		{404, "NoSuchKey", fault.Conflict, objstore.ErrPrecondition}, // under If-Match
		{404, "NoSuchBucket", fault.Unavailable, nil},
		{409, "ConditionalRequestConflict", fault.Unavailable, nil},
		{403, "AccessDenied", fault.Denied, nil},
		{403, "SignatureDoesNotMatch", fault.Denied, nil},
		{400, "InvalidArgument", fault.Invalid, nil},
		{429, "TooManyRequests", fault.Unavailable, nil},
		{500, "InternalError", fault.Unavailable, nil},
		{503, "SlowDown", fault.Unavailable, nil},
		{503, "ServiceUnavailable", fault.Unavailable, nil},
		{507, "InsufficientStorage", fault.Unavailable, objstore.ErrFull},
		{507, "XMinioStorageFull", fault.Unavailable, objstore.ErrFull},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			d := answers(t, c.status, c.code, &requests)
			_, err := d.Put(t.Context(), "k", strings.NewReader("v"), 1, objstore.Condition{IfMatch: "x"})
			if fault.KindOf(err) != c.kind || c.is != nil && !errors.Is(err, c.is) || err == nil {
				t.Errorf("%v of kind %v, want kind %v", err, fault.KindOf(err), c.kind)
			}
			if requests.Load() != 1 {
				t.Errorf("%d requests for one call", requests.Load())
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		t.Parallel()
		d, err := s3store.Open(s3store.Config{Endpoint: "http://" + freeAddr(t), Bucket: "bbb", AccessKey: "k", SecretKey: "s"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Head(t.Context(), "k"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Head: %v of kind %v", err, fault.KindOf(err))
		}
		if _, err := d.Now(t.Context()); !fault.Is(err, fault.Unavailable) {
			t.Errorf("Now: %v of kind %v", err, fault.KindOf(err))
		}
	})
}

// TestLargeStreamKeepsItsCondition: a write of unknown size goes up in parts,
// and its completion carries the condition.
func TestLargeStreamKeepsItsCondition(t *testing.T) {
	t.Parallel()
	var sent []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case r.Method == http.MethodHead:
			w.WriteHeader(http.StatusNotFound)
		case q.Has("uploads"):
			sent = append(sent, "begin")
			fmt.Fprint(w, "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
		case q.Has("partNumber"):
			sent = append(sent, "part "+q.Get("partNumber"))
			w.Header().Set("ETag", `"e"`)
		case r.Method == http.MethodPost:
			sent = append(sent, "complete If-None-Match: "+r.Header.Get("If-None-Match"))
			w.WriteHeader(http.StatusPreconditionFailed)
			fmt.Fprint(w, "<Error><Code>PreconditionFailed</Code></Error>")
		case r.Method == http.MethodDelete:
			sent = append(sent, "abort")
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	t.Cleanup(srv.Close)
	d, err := s3store.Open(s3store.Config{Endpoint: srv.URL, Bucket: "bbb", AccessKey: "k", SecretKey: "s"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.Put(t.Context(), "k", bytes.NewReader(make([]byte, 33<<20)), -1, objstore.Condition{Create: true})
	if !errors.Is(err, objstore.ErrPrecondition) {
		t.Errorf("error %v", err)
	}
	if want := []string{"begin", "part 1", "part 2", "part 3", "complete If-None-Match: *", "abort"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	_, err := s3store.Open(s3store.Config{Endpoint: "ftp://x/y", Prefix: "no-slash"})
	if !fault.Is(err, fault.Invalid) {
		t.Fatalf("error %v", err)
	}
	for _, name := range []string{"Endpoint", "Bucket", "AccessKey", "SecretKey", "Prefix"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}
