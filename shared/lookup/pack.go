package lookup

import (
	"encoding/hex"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Bytes are the 32 bytes of a sha that was checked.
func Bytes(s memory.SHA) []byte {
	b, _ := hex.DecodeString(string(s))
	return b
}

// SHA is what Bytes was of.
func SHA(b []byte) memory.SHA { return memory.SHA(hex.EncodeToString(b)) }

// packedBytes is one kind byte and the 32 bytes of its sha.
const packedBytes = 33

// Pack gives hashes as drivers store them beside a row.
func Pack(hs []Hash) []byte {
	out := make([]byte, 0, len(hs)*packedBytes)
	for _, h := range hs {
		out = append(append(out, byte(h.Kind)), Bytes(h.SHA)...)
	}
	return out
}

// Unpack is the other way.
func Unpack(b []byte) []Hash {
	out := make([]Hash, 0, len(b)/packedBytes)
	for ; len(b) >= packedBytes; b = b[packedBytes:] {
		out = append(out, Hash{Kind: Kind(b[0]), SHA: SHA(b[1:packedBytes])})
	}
	return out
}
