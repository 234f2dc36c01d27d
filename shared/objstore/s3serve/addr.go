package s3serve

import (
	"errors"
	"net"
	"strconv"
	"syscall"

	"github.com/mneme-ai/mneme/shared/fault"
)

// nextPorts is how many ports after a taken one are tried before any free one
// is taken.
const nextPorts = 100

// freeAddr is addr, when its port is free; else the same host with the next
// free port, or with any.
func freeAddr(addr string) (string, error) {
	host, port := hostOf(addr), portOf(addr)
	for p := port; p <= min(port+nextPorts, 65535); p++ {
		free, err := listenable(host, p)
		if err == nil {
			return free, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", fault.As(fault.Unavailable, err)
		}
	}
	free, err := listenable(host, 0)
	return free, fault.As(fault.Unavailable, err)
}

// listenable gives the address listened to on host and port for a moment.
func listenable(host string, port int) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

func hostOf(addr string) string {
	host, _, _ := net.SplitHostPort(addr) // checked by Validate
	return host
}

func portOf(addr string) int {
	_, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	return n
}
