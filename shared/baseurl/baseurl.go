// Package baseurl is what the base URL of a model server says by itself: how a
// key goes to it, which wire it speaks, whether it is on this machine, and
// whether it may be called at all.
//
// Invariant: a URL is judged in one place, so that what a configuration file
// says of an endpoint, what a request names and what the client dials cannot
// differ. Where there is doubt a key is not sent.
//
//	https://openrouter.ai/api/v1    bearer, openrouter     as is api.openai.com
//	https://llm.example.org/v1      apikey, openai-compatible: taken for a gateway
//	http://127.0.0.1:11434          none, ollama           this machine; the port is Ollama's
//	http://169.254.169.254/v1       refused: machines in a cloud serve their credentials there
//
// The package resolves no name and sends nothing: what a name resolves to is
// judged by Refused when it is dialled.
package baseurl

import (
	"net"
	"net/netip"
	"net/url"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
)

// Auth is how an endpoint wants its key.
type Auth string

// The ways to send a key.
const (
	Bearer Auth = "bearer" // Authorization: Bearer KEY
	APIKey Auth = "apikey" // apikey: KEY, as gateways want it
	None   Auth = "none"
)

// Kind is which wire an endpoint speaks, and what it can be asked for.
type Kind string

// The kinds of endpoints.
const (
	Ollama     Kind = "ollama" // its native API
	VLLM       Kind = "vllm"
	OpenAI     Kind = "openai"
	OpenRouter Kind = "openrouter"
	Compatible Kind = "openai-compatible" // any other that speaks /v1/chat/completions
)

const (
	ollamaPort     = "11434" // its default; no other server is known to use it
	openRouterHost = "openrouter.ai"
	openAIHost     = "api.openai.com"
)

// Parse reads a base URL. What it says of a wrong one repeats no part of it: it
// may hold a key.
func Parse(base string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	switch {
	case err != nil, u.Host == "", u.Hostname() == "", u.Scheme != "http" && u.Scheme != "https":
		return nil, fault.New(fault.Invalid, "the url must be http:// or https:// and a host")
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fault.New(fault.Invalid, "the url must not hold a user, a query or a fragment: name the key by key_env")
	case RefusedHost(u.Hostname()):
		return nil, fault.New(fault.Invalid, "link-local addresses are not called")
	}
	return u, nil
}

// AuthOf is how a key goes to u where nothing else is said (brief D5).
func AuthOf(u *url.URL) Auth {
	switch host := name(u.Hostname()); {
	case Local(host):
		return None
	case host == openRouterHost, host == openAIHost:
		return Bearer
	}
	return APIKey
}

// KindOf is the kind of u where nothing else is said.
func KindOf(u *url.URL) Kind {
	switch host := name(u.Hostname()); {
	case u.Port() == ollamaPort:
		return Ollama
	case host == openRouterHost:
		return OpenRouter
	case host == openAIHost:
		return OpenAI
	}
	return Compatible
}

// Local reports whether host is this machine: localhost and what is below it
// (RFC 6761 section 6.3), 127.0.0.0/8 and ::1.
func Local(host string) bool {
	host = name(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052: the IPv4 address stands in the last four bytes
	awsIPv6   = netip.MustParseAddr("fd00:ec2::254")  // the metadata service, outside link-local
	sixToFour = netip.MustParsePrefix("2002::/16")    // RFC 3056: the IPv4 address stands in bytes 2 to 5
	compat    = netip.MustParsePrefix("::/96")        // RFC 4291 2.5.5.1, deprecated
	ipv4Only  = func(b []byte) netip.Addr { a, _ := netip.AddrFromSlice(b); return a }
)

// Refused reports whether an address is never dialled: link-local ones, in every
// spelling, and multicast.
func Refused(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	b := a.As16()
	switch {
	case a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsMulticast() || a == awsIPv6:
		return true
	case a.Is4():
		return false
	case (nat64.Contains(a) || compat.Contains(a)) && ipv4Only(b[12:]).IsLinkLocalUnicast():
		return true
	}
	return sixToFour.Contains(a) && ipv4Only(b[2:6]).IsLinkLocalUnicast()
}

// RefusedHost is Refused of a host that is an address; a name is refused by what
// it resolves to.
func RefusedHost(host string) bool {
	a, err := netip.ParseAddr(name(host))
	return err == nil && Refused(a)
}

// Same is u as it is compared: scheme, host, port and path, in the one spelling
// in which two URLs of the same base are equal.
func Same(u *url.URL) string {
	host, port := name(u.Hostname()), u.Port()
	if a, err := netip.ParseAddr(host); err == nil {
		host = a.String()
	}
	switch {
	case port == "" && u.Scheme == "https":
		port = "443"
	case port == "":
		port = "80"
	}
	return u.Scheme + "://" + net.JoinHostPort(host, port) + strings.TrimRight(u.EscapedPath(), "/")
}

// name is a host in lower case, without the root's dot.
func name(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }
