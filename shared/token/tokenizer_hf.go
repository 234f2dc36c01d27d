//go:build hf && cgo

package token

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"io"
	"strings"
	"sync"

	hf "github.com/daulet/tokenizers"

	"github.com/mneme-ai/mneme/shared/fault"
)

//go:embed testdata/tokenizer.json.gz
var vendored []byte

var loadDefault = sync.OnceValues(func() (_ *Tokenizer, err error) {
	defer fault.Wrap(&err, "token.Default(hf)")
	z, err := gzip.NewReader(bytes.NewReader(vendored))
	if err != nil {
		return nil, fault.As(fault.Corrupt, err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return nil, fault.As(fault.Corrupt, err)
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != JSONSHA256 {
		return nil, fault.At(fault.Corrupt, "shared/token/testdata/tokenizer.json.gz", "restore the file from the repository",
			"the tokenizer is not the pinned one: sha256 %x, want %s", sum, JSONSHA256)
	}
	t, err := hf.FromBytes(raw)
	if err != nil {
		return nil, fault.As(fault.Corrupt, err)
	}
	p, err := Pure()
	if err != nil {
		return nil, err
	}
	return &Tokenizer{enc: rust{t: t, nul: p.enc}}, nil
})

// rust is the twin over the Rust library. Its C interface ends a text at the
// first NUL, so that a text which holds one goes to the pure twin.
type rust struct {
	t   *hf.Tokenizer // never closed: it lives as long as the program
	nul encoder
}

func (r rust) encode(dst []int, text string) []int {
	if strings.IndexByte(text, 0) >= 0 {
		return r.nul.encode(dst, text)
	}
	ids, _ := r.t.Encode(text, false)
	for _, id := range ids {
		dst = append(dst, int(id))
	}
	return dst
}

func (r rust) count(text string) int {
	if strings.IndexByte(text, 0) >= 0 {
		return r.nul.count(text)
	}
	ids, _ := r.t.Encode(text, false)
	return len(ids)
}
