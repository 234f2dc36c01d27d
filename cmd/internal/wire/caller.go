package wire

import (
	"net/http"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
)

// IndexTokenHeader carries the caller's own token for the lexical index beside the
// program's own credential, which is no token of that cluster.
const IndexTokenHeader = "X-Mneme-Index-Token"

// callerOf reads MNEME_OS_AUTH: "service", the default, uses the credentials of MNEME_OS;
// with "caller" the cluster sees each caller's own JWT. Behind a gateway that has
// verified it, that is the request's bearer token.
func callerOf(auth string, gateway bool) (func(*http.Request) string, error) {
	switch auth {
	case "", "service":
		return nil, nil
	case "caller":
	default:
		return nil, fault.At(fault.Invalid, "MNEME_OS_AUTH", "service or caller", "%q is neither", auth)
	}
	return func(r *http.Request) string {
		if token := r.Header.Get(IndexTokenHeader); token != "" || !gateway {
			return token
		}
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return ""
		}
		return token
	}, nil
}
