package serve

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"github.com/mneme-ai/mneme/shared/fault"
)

// nextPorts is how many ports above a taken one are tried before any free one:
// enough for every Mneme that one person starts side by side.
const nextPorts = 20

// CheckBind refuses an address that other machines could reach: until there are
// credentials for people, only loopback is served. The host must be written
// out: an empty one means all interfaces.
func CheckBind(addr string) error {
	bad := func(why string) error {
		return fault.At(fault.Invalid, addr, "listen on 127.0.0.1:PORT; reach it from elsewhere by an SSH tunnel", "%s", why)
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return bad("not host:port")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return bad("not a port")
	}
	if strings.EqualFold(host, "localhost") {
		return nil
	}
	ip, err := netip.ParseAddr(host)
	if err != nil || !ip.Unmap().IsLoopback() {
		return bad("refuses to bind beyond loopback")
	}
	return nil
}

// Listen listens on addr, which CheckBind must pass; when its port is taken, on
// the next free one. What is bound is checked too, as a hosts file may give
// "localhost" another meaning.
func Listen(addr string) (l net.Listener, err error) {
	defer fault.Wrap(&err, "listen")
	if err := CheckBind(addr); err != nil {
		return nil, err
	}
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	last := min(port+nextPorts, 65535)
	if port == 0 {
		last = 0
	}
	for p := port; p <= last; p++ {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p)))
		if err == nil {
			return loopbackOnly(l)
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fault.At(fault.Unavailable, addr, "choose another port", "%v", err)
		}
	}
	l, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, fault.At(fault.Unavailable, addr, "", "%v", err)
	}
	return loopbackOnly(l)
}

func loopbackOnly(l net.Listener) (net.Listener, error) {
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		return l, nil
	}
	return nil, errors.Join(fault.At(fault.Invalid, l.Addr().String(), "use 127.0.0.1", "refuses to bind beyond loopback"), l.Close())
}
