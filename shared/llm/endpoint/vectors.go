package endpoint

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ReadVectors reads the vectors of an answer, as JSON arrays of numbers in the
// order of the texts; want is how many there must be.
func (c *Client) ReadVectors(raw []json.RawMessage, want int) ([][]float32, error) {
	if len(raw) != want {
		return nil, c.Unreadable(fmt.Sprintf("%d vectors for %d texts", len(raw), want))
	}
	out := make([][]float32, want)
	for i, r := range raw {
		if bytes.Contains(r, []byte("null")) { // some servers' NaN; encoding/json reads it as 0
			return nil, c.NotANumber()
		}
		if json.Unmarshal(r, &out[i]) != nil || len(out[i]) == 0 {
			return nil, c.Unreadable("a vector is no list of numbers")
		}
	}
	return out, nil
}

// SaysNaN reports whether a body that does not decode has a bare NaN or Inf in
// it, as Python's encoder writes them.
func SaysNaN(body []byte) bool {
	return !json.Valid(body) && (bytes.Contains(body, []byte("NaN")) || bytes.Contains(body, []byte("Inf")))
}
