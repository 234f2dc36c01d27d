package endpoint

import "net/netip"

var (
	Refused    = refused
	RetryAfter = retryAfter
)

// SetCheck changes which addresses are dialled.
func (c *Client) SetCheck(check func(netip.Addr) error) { c.check = check }

// ErrRefused is what a check answers.
var ErrRefused = errRefused

// Resolved is the configuration with its defaults.
func (c *Client) Resolved() Config { return c.c }
