package endpoint

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/mneme-ai/mneme/shared/baseurl"
)

// These mark an address that is not dialled.
var (
	errRefused   = errors.New("a link-local address")
	errElsewhere = errors.New("another machine")
)

// refused says why an address is not dialled; nil when it may be.
func refused(a netip.Addr) error {
	if baseurl.Refused(a) {
		return errRefused
	}
	return nil
}

// elsewhere refuses every address but those of this machine.
func elsewhere(a netip.Addr) error {
	if !a.Unmap().IsLoopback() {
		return errElsewhere
	}
	return nil
}

// newTransport dials what check allows: the address that is connected to, after
// the name was resolved, so that no answer of a name server gets around it.
func newTransport(check func(netip.Addr) error, conns int) *http.Transport {
	d := net.Dialer{
		Timeout: 10 * time.Second, // a server that is up answers a SYN at once
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return errRefused
			}
			return check(ap.Addr())
		},
	}
	return &http.Transport{
		Proxy:               nil, // never http.ProxyFromEnvironment
		DialContext:         d.DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: conns,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true, // the cap is on bytes that are kept, and a small body can unpack to a huge one
	}
}
