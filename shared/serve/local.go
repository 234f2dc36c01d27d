package serve

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// Local is a transport that calls h in this process, in the caller's
// goroutine: the same handler and the same bytes as over a socket, without one.
// A panic of h is an error, as a broken connection would be. As nothing is left
// running behind the caller's back, a handler that ignores its context holds
// the call until it ends.
func Local(h http.Handler) http.RoundTripper { return local{h} }

type local struct{ h http.Handler }

func (l local) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	rec := &recorder{header: http.Header{}}
	r := req.Clone(req.Context())
	r.RequestURI = req.URL.RequestURI()
	r.RemoteAddr = "127.0.0.1:0" // the process itself
	if r.Host == "" {
		r.Host = req.URL.Host
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	defer func() {
		if p := recover(); p != nil {
			resp, err = nil, fmt.Errorf("handler panicked (%T)", p)
		}
	}()
	l.h.ServeHTTP(rec, r)
	if err := req.Context().Err(); err != nil {
		return nil, err // as a client that has hung up sees it
	}
	rec.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: http.StatusText(rec.status), StatusCode: rec.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: rec.sent, Body: io.NopCloser(&rec.body), ContentLength: int64(rec.body.Len()), Request: req,
	}, nil
}

// recorder keeps an answer: no test recorder, as its header is frozen at the
// first write, like a server's.
type recorder struct {
	header, sent http.Header
	status       int
	body         bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 { // 1xx are interim
		r.status, r.sent = status, r.header.Clone()
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}
