package endpoint

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// errRefused marks an address that is not dialled.
var errRefused = errors.New("a link-local address")

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052: the IPv4 address stands in the last four bytes
	awsIPv6   = netip.MustParseAddr("fd00:ec2::254")  // the metadata service, outside link-local
	sixToFour = netip.MustParsePrefix("2002::/16")    // RFC 3056: the IPv4 address stands in bytes 2 to 5
	compat    = netip.MustParsePrefix("::/96")        // RFC 4291 2.5.5.1, deprecated
	ipv4Only  = func(b []byte) netip.Addr { a, _ := netip.AddrFromSlice(b); return a }
)

// refused says why an address is not dialled, nil when it may be.
func refused(a netip.Addr) error {
	a = a.Unmap().WithZone("")
	b := a.As16()
	switch {
	case a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsMulticast() || a == awsIPv6:
		return errRefused
	case a.Is4():
		return nil
	case (nat64.Contains(a) || compat.Contains(a)) && ipv4Only(b[12:]).IsLinkLocalUnicast():
		return errRefused
	case sixToFour.Contains(a) && ipv4Only(b[2:6]).IsLinkLocalUnicast():
		return errRefused
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
