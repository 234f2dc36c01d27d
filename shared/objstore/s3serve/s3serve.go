// Package s3serve is the S3 endpoint of `mem up`: versitygw's gateway over two
// folders, each a dirstore.
//
//	bucket       folder              the S3 key            the operator's key
//	transcripts  Config.DataDir      reads and writes      reads and writes
//	mneme        Config.MnemeDir     403                   reads; writes are 403
//
// versitygw brings the protocol (signatures, chunked bodies, XML); the backend
// under it is this package's own, over objstore's directory driver. So both
// buckets have one rule of durability (an answer means fsync of file and
// folder), one rule of ETags, no extended attributes, and the functions in this
// process see through Transcripts what S3 clients see, without HTTP.
// versitygw's own posix backend does not sync, and refuses the objects "a" and
// "a/b" side by side.
//
// Not served: versions, object lock, ACLs, policies, tags, keys with an empty
// part (a "folder" object, "dir/"). versitygw holds process-wide state, so one
// Server runs at a time in a process.
package s3serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/versity/versitygw/embedgw"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/dirstore"
)

// The buckets, which exist from the start.
const (
	BucketTranscripts = "transcripts"
	BucketMneme       = "mneme"
)

// Region is what the endpoint calls itself; clients sign with it.
const Region = "us-east-1"

// DefaultAddr is where `mem up` serves S3 unless told otherwise.
const DefaultAddr = "127.0.0.1:9000"

// Config is what a Server needs.
type Config struct {
	Addr     string // host:port; port 0 takes any, a taken port the next free one. Default: DefaultAddr
	DataDir  string // holds transcripts/ and the parts of unfinished uploads
	MnemeDir string // root of the dirstore of bucket mneme

	AccessKey, SecretKey string // of the S3 clients
	// OperatorAccessKey and OperatorSecretKey, when set, may also read mneme.
	OperatorAccessKey, OperatorSecretKey string

	// OnEvent is called after each object put, completed or copied into
	// transcripts, before the client has its answer: it must be quick. It may
	// be called at the same time from several goroutines.
	OnEvent func(bucket, key, etag string, sizeBytes int64)
}

// Validate names every wrong field.
func (c Config) Validate() error {
	var bad []error
	if _, port, err := net.SplitHostPort(c.Addr); c.Addr != "" && (err != nil || !isPort(port)) {
		bad = append(bad, fmt.Errorf("Addr %q is not host:port", c.Addr))
	}
	for _, f := range []struct{ name, value string }{
		{"DataDir", c.DataDir}, {"MnemeDir", c.MnemeDir}, {"AccessKey", c.AccessKey}, {"SecretKey", c.SecretKey},
	} {
		if f.value == "" {
			bad = append(bad, fmt.Errorf("%s is empty", f.name))
		}
	}
	if (c.OperatorAccessKey == "") != (c.OperatorSecretKey == "") {
		bad = append(bad, errors.New("the operator's key needs both halves"))
	}
	if c.OperatorAccessKey != "" && c.OperatorAccessKey == c.AccessKey {
		bad = append(bad, errors.New("the operator's access key is the S3 clients'"))
	}
	if bad != nil {
		return fault.As(fault.Invalid, errors.Join(bad...))
	}
	return nil
}

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// OpenTranscripts opens the store of bucket transcripts under dataDir, also
// while no Server runs. What is written through it sends no event.
func OpenTranscripts(dataDir string) (*dirstore.Store, error) {
	return dirstore.Open(filepath.Join(dataDir, BucketTranscripts))
}

// Server is a running endpoint.
type Server struct {
	addr    string
	backend *store
	stop    context.CancelFunc
	done    chan struct{}
	err     error // of the gateway, once done is closed
	closed  sync.Once
}

// limits of the gateway: more than a machine that runs `mem up` has clients.
const (
	maxConnections = 1024
	maxRequests    = 256
	maxParts       = 10000 // S3's own
)

// Start serves until ctx ends or Close is called. It returns when requests are
// answered.
func Start(ctx context.Context, c Config) (_ *Server, err error) {
	defer fault.Wrap(&err, "start S3 endpoint")
	if c.Addr == "" {
		c.Addr = DefaultAddr
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.OperatorAccessKey == "" {
		// The gateway wants a root account; nobody learns this one.
		c.OperatorAccessKey, c.OperatorSecretKey = rand.Text(), rand.Text()
	}
	be, err := openStore(ctx, c)
	if err != nil {
		return nil, err
	}
	for range startTries {
		var addr string
		if addr, err = freeAddr(c.Addr); err != nil {
			break
		}
		s := &Server{addr: addr, backend: be, done: make(chan struct{})}
		if err = s.run(ctx, c); err == nil {
			return s, nil
		}
		if !errors.Is(err, errNotBound) {
			break
		}
	}
	be.Close()
	return nil, err
}

// startTries bounds the starts on ports that someone takes between the look and
// the gateway's own bind.
const startTries = 5

// errNotBound means that the gateway ended before it answered.
var errNotBound = errors.New("the S3 gateway did not start")

// readyIn bounds the start of the gateway, which takes about 0.1 s.
const readyIn = 20 * time.Second

// run starts the gateway on s.addr and waits until it answers.
func (s *Server) run(ctx context.Context, c Config) error {
	ctx, s.stop = context.WithCancel(ctx)
	health := "/" + rand.Text() // by which another server on the port is not taken for ours
	go func() {
		defer close(s.done)
		s.err = embedgw.RunVersityGW(ctx, s.backend, &embedgw.Config{
			RootUserAccess:    c.OperatorAccessKey,
			RootUserSecret:    c.OperatorSecretKey,
			IAMService:        accounts{c},
			Region:            Region,
			Ports:             []string{s.addr},
			MaxConnections:    maxConnections,
			MaxRequests:       maxRequests,
			MultipartMaxParts: maxParts,
			HealthPath:        health,
			DisableACLs:       true,  // the owner alone
			KeepAlive:         false, // after an upload that broke off, its rest is taken for the next request
			Quiet:             true,
		})
	}()
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for deadline := time.Now().Add(readyIn); time.Now().Before(deadline); {
		if resp, err := client.Get(s.URL() + health); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.done:
			s.stop()
			return fault.As(fault.Unavailable, errors.Join(errNotBound, s.err))
		case <-time.After(5 * time.Millisecond):
		}
	}
	s.stop()
	<-s.done
	return fault.New(fault.Unavailable, "the S3 gateway does not answer on %s", s.addr)
}

// URL is the endpoint's base URL, without a slash at its end.
func (s *Server) URL() string { return "http://" + s.addr }

// Addr is the endpoint's host:port.
func (s *Server) Addr() string { return s.addr }

// Transcripts is bucket transcripts for the functions in this process. What is
// written through it sends no event.
func (s *Server) Transcripts() objstore.Driver { return s.backend.transcripts }

// Mneme is bucket mneme, which only this process writes.
func (s *Server) Mneme() objstore.Driver { return s.backend.mneme }

// Done is closed when the endpoint has ended, for whatever reason.
func (s *Server) Done() <-chan struct{} { return s.done }

// Close ends the endpoint: requests under way are answered first, within the
// gateway's 10 s.
func (s *Server) Close() error {
	s.stop()
	<-s.done
	s.closed.Do(s.backend.Close)
	return s.err
}
