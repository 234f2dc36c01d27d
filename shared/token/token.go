// Package token counts tokens with the Qwen2.5 vocabulary.
//
// Every budget of Mneme (chunk, memory, prompt) is in these tokens, so two
// programs that count differently would cut chunks differently and give other
// hashes. Invariant: the same text has the same ids in every build, and a
// vocabulary other than the pinned one stops the program: the sha256 of
// tokenizer.json is checked where it is read, and that of the table compiled
// from it before its first use.
//
// Two twins give the same ids: pure Go over a compiled table (the default; no
// JSON is parsed at start), and under build tag hf the Rust library of
// Hugging Face through github.com/daulet/tokenizers. A suite under that tag
// compares them; testdata/vectors.jsonl, written by the Rust one, holds the
// pure one to it in every build:
//
//	{"text":"Hello, world!","ids":[9707,11,1879,0]}
//
// The way from text to ids is that of tokenizer.json: the added tokens
// (`<|im_start|>`, `<tool_call>` …) are cut out first, wherever they stand; the
// text between them is brought to NFC (Unicode 9.0, as the Rust crate has it),
// split into words by the pattern in split.go, and each word's UTF-8 bytes are
// merged pairwise by rank (byte-level BPE). No token is added at either end.
// Bytes that are not UTF-8 count as U+FFFD, one for each run of them.
//
// The package does not decode, and knows no other vocabulary. Servers count by
// their own: shared/llm compares.
package token

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// JSONSHA256 is the sha256 of the tokenizer.json that everything here comes
// from: Qwen/Qwen2.5, brief P4.
const JSONSHA256 = "c0382117ea329cdf097041132f6d735924b697924d6f6fc3945713e96ce87539"

// Vocabulary is one more than the greatest id: 256 bytes, 151,387 merges and
// 22 added tokens.
const Vocabulary = 151665

// Tokenizer turns text into Qwen2.5 token ids. It is safe for concurrent use.
type Tokenizer struct {
	enc encoder
}

// encoder is what the twins give: the same ids for the same valid UTF-8.
type encoder interface {
	count(text string) int
	encode(dst []int, text string) []int // appends
}

// Default is the tokenizer of this build: the Rust one under tag hf, else the
// pure-Go one. The first call loads it; its error, of kind Corrupt, stays.
func Default() (*Tokenizer, error) { return loadDefault() }

// Pure is the pure-Go tokenizer, whatever the build.
func Pure() (*Tokenizer, error) { return loadPure() }

var loadPure = sync.OnceValues(func() (*Tokenizer, error) {
	t, err := openTable(compiled)
	if err != nil {
		return nil, err
	}
	return &Tokenizer{enc: newPure(t)}, nil
})

// Count is the number of tokens of text.
func (t *Tokenizer) Count(text string) int { return t.enc.count(valid(text)) }

// Encode is the token ids of text, each in [0, Vocabulary).
func (t *Tokenizer) Encode(text string) []int { return t.enc.encode(nil, valid(text)) }

func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// bytesPerToken is the first guess of Limit: English prose has about 4.4
// bytes a token, code about 3.
const bytesPerToken = 3

// Limit is the length in bytes of a prefix of text that counts at most max
// tokens and ends between two characters. It is the longest one as far as
// bisection finds it: counts may fall by a token where one more character
// completes a merge, so a prefix longer by a word may also fit. The time is
// that of counting the prefix a few times, whatever the length of text.
func (t *Tokenizer) Limit(text string, max int) int {
	if max <= 0 {
		return 0
	}
	floor := func(n int) int { // the character border at or before n
		for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		return n
	}
	lo, hi := 0, min(len(text), max*bytesPerToken)
	for t.Count(text[:floor(hi)]) <= max {
		lo = floor(hi)
		if hi == len(text) {
			return lo
		}
		hi = min(len(text), hi*2)
	}
	hi = floor(hi)
	for {
		mid := floor(lo + (hi-lo)/2)
		if mid <= lo { // one character left between them, perhaps of several bytes
			_, n := utf8.DecodeRuneInString(text[lo:])
			if mid = lo + n; mid >= hi {
				return lo
			}
		}
		if t.Count(text[:mid]) <= max {
			lo = mid
		} else {
			hi = mid
		}
	}
}
