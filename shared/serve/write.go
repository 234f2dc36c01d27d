package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Problem is the body of every answer that is an error.
type Problem struct {
	Code    string `json:"code"`            // kind of shared/fault, or "unauthorized"
	Message string `json:"message"`         // what is wrong
	Hint    string `json:"hint,omitempty"`  // what to do
	Where   string `json:"where,omitempty"` // file:line, field or key
}

// ProblemOf describes err for people.
func ProblemOf(err error) Problem {
	p := Problem{Code: fault.KindOf(err).String(), Message: err.Error(), Hint: fault.HintOf(err)}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		p.Where = e.Where
	}
	return p
}

// WriteError answers err to people: the status of fault.APIStatus, Retry-After
// where waiting helps, and a Problem.
func WriteError(w http.ResponseWriter, err error) {
	writeProblem(w, fault.APIStatus(err), fault.RetryAfterOf(err), ProblemOf(err))
}

// defaultRetryAfter is said with 429 and 503 when the error names no time: one
// second, the shortest that the header can say.
const defaultRetryAfter = time.Second

func writeProblem(w http.ResponseWriter, status int, after time.Duration, p Problem) {
	if after <= 0 && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		after = defaultRetryAfter
	}
	if after > 0 {
		w.Header().Set("Retry-After", retryAfter(after))
	}
	b, err := json.Marshal(p)
	if err != nil {
		b = []byte(`{"code":"internal"}`) // four strings always encode
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Del("ETag")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // the client has gone: nobody is left to tell
}

// retryAfter is d in whole seconds, rounded up, at least 1.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(max(1, int64(math.Ceil(d.Seconds()))), 10)
}

// WriteJSON answers v. A 200 carries ETag = sha256 of the body, unless the
// request is known to be a write; to a GET or HEAD whose If-None-Match names
// it the answer is 304 without a body. The request is known under Conditional,
// which Secure and Service put around every route.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // code is full of <, > and &, and nosniff stands
	if err := enc.Encode(v); err != nil {
		WriteError(w, fault.New(fault.Internal, "encode the answer: %v", err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	c := conditionalOf(w)
	if status == http.StatusOK && (c == nil || c.read) {
		etag := `"` + string(memory.Sum(buf.Bytes())) + `"`
		h.Set("ETag", etag)
		if c != nil && matches(c.ifNoneMatch, etag) {
			h.Del("Content-Type")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // the client has gone: nobody is left to tell
}

// Conditional lets WriteJSON under next see whether the request is a read and
// which ETag its client has.
func Conditional(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conditionalOf(w) != nil {
			next.ServeHTTP(w, r)
			return
		}
		read := r.Method == http.MethodGet || r.Method == http.MethodHead
		next.ServeHTTP(&conditional{ResponseWriter: w, read: read, ifNoneMatch: r.Header.Values("If-None-Match")}, r)
	})
}

type conditional struct {
	http.ResponseWriter
	read        bool
	ifNoneMatch []string
}

// Unwrap lets http.ResponseController reach the server's writer.
func (c *conditional) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Flush keeps streams flowing through the wrapper.
func (c *conditional) Flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() }

func conditionalOf(w http.ResponseWriter) *conditional {
	for {
		switch x := w.(type) {
		case *conditional:
			return x
		case interface{ Unwrap() http.ResponseWriter }:
			w = x.Unwrap()
		default:
			return nil
		}
	}
}

// matches compares weakly, as RFC 9110 section 13.1.2 asks of If-None-Match.
func matches(fields []string, etag string) bool {
	for _, f := range fields {
		for one := range strings.SplitSeq(f, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == "*" || one == etag {
				return true
			}
		}
	}
	return false
}
