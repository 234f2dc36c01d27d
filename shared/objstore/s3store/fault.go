package s3store

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
)

// asWriteFault is asFault where S3 answers a lost condition by 412, or, when
// there is nothing to match, by 404.
func asWriteFault(err error, cond objstore.Condition) error {
	resp := minio.ToErrorResponse(err)
	if resp.StatusCode == http.StatusPreconditionFailed || cond.IfMatch != "" && resp.Code == minio.NoSuchKey {
		return fault.As(fault.Conflict, fmt.Errorf("%w: %w", objstore.ErrPrecondition, err))
	}
	return asFault(err)
}

// asFault gives an error of minio-go its kind. What is no answer of a server is
// a failure of the network.
func asFault(err error) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*fault.Error](err); known {
		return err
	}
	resp := minio.ToErrorResponse(err)
	e := &fault.Error{Kind: fault.Unavailable, Err: err}
	switch code := resp.StatusCode; {
	case resp.Code == minio.NoSuchBucket:
		e.Msg, e.Hint = "the bucket does not exist", "create it, or correct the name"
	case code == http.StatusNotFound:
		e.Kind, e.Err = fault.NotFound, fmt.Errorf("%w: %w", objstore.ErrNotFound, err)
	case code == http.StatusForbidden || code == http.StatusUnauthorized:
		e.Kind, e.Msg, e.Hint = fault.Denied, "the store refuses the key", "look at the access key, its policy and the clock of this machine"
	case code == http.StatusInsufficientStorage || resp.Code == "XMinioStorageFull":
		e.Msg, e.Hint = "the store is full", "free some space there; what was stored before is whole, and the write can be repeated"
		e.Err = fmt.Errorf("%w: %w", objstore.ErrFull, err)
	case code == http.StatusConflict: // ConditionalRequestConflict: not decided, ask again
	case code == http.StatusRequestTimeout || code == http.StatusTooManyRequests || resp.Code == "RequestTimeTooSkewed":
	case code >= 400 && code < 500:
		e.Kind = fault.Invalid
	}
	return e
}
