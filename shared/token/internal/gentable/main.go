// Command gentable compiles tokenizer.json into the table that shared/token
// embeds. It refuses any tokenizer.json but the pinned one, and any shape that
// the table cannot hold, so that a wrong table is never written.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mneme-ai/mneme/shared/token"
)

//go:embed classes.txt
var classes string

func main() {
	in := flag.String("json", "testdata/tokenizer.json.gz", "tokenizer.json, gzip")
	out := flag.String("out", "qwen2.5.bpe", "where the table goes")
	flag.Parse()
	table, err := run(*in)
	if err == nil {
		err = os.WriteFile(*out, table, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gentable:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d bytes, sha256 %x (tableSHA256 in table.go)\n", *out, len(table), sha256.Sum256(table))
}

type tokenizer struct {
	AddedTokens []struct {
		ID         uint32 `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
	} `json:"added_tokens"`
	Normalizer struct {
		Type string `json:"type"`
	} `json:"normalizer"`
	Model struct {
		Type   string            `json:"type"`
		Vocab  map[string]uint32 `json:"vocab"`
		Merges []string          `json:"merges"`
	} `json:"model"`
}

func run(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != token.JSONSHA256 {
		return nil, fmt.Errorf("%s: sha256 %x, want %s", path, sum, token.JSONSHA256)
	}
	var j tokenizer
	if err := json.Unmarshal(raw, &j); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if j.Model.Type != "BPE" || j.Normalizer.Type != "NFC" {
		return nil, fmt.Errorf("%s: model %q, normalizer %q", path, j.Model.Type, j.Normalizer.Type)
	}
	var b bytes.Buffer
	b.WriteString("MNBP")
	put := func(v uint32) { b.Write(binary.LittleEndian.AppendUint32(nil, v)) }
	put(1)
	put(uint32(len(j.AddedTokens)))
	for _, a := range j.AddedTokens {
		if a.SingleWord || a.LStrip || a.RStrip || a.Normalized || !strings.HasPrefix(a.Content, "<") {
			return nil, fmt.Errorf("added token %q has a rule that the table does not hold", a.Content)
		}
		put(a.ID)
		put(uint32(len(a.Content)))
		b.WriteString(a.Content)
	}
	for _, c := range []string{"L", "N", "S"} {
		ranges, err := rangesOf(c)
		if err != nil {
			return nil, err
		}
		put(uint32(len(ranges)))
		for _, r := range ranges {
			put(r[0])
			put(r[1])
		}
	}
	put(uint32(len(j.Model.Merges)))
	for i, m := range j.Model.Merges {
		left, right, _ := strings.Cut(m, " ")
		l, okL := j.Model.Vocab[left]
		r, okR := j.Model.Vocab[right]
		if id, ok := j.Model.Vocab[left+right]; !okL || !okR || !ok || id != uint32(256+i) {
			return nil, fmt.Errorf("merge %d (%q) does not make id %d", i, m, 256+i)
		}
		b.Write([]byte{byte(l), byte(l >> 8), byte(l >> 16), byte(r), byte(r >> 8), byte(r >> 16)})
	}
	return b.Bytes(), nil
}

// rangesOf reads the inclusive ranges of one class from classes.txt.
func rangesOf(class string) (ranges [][2]uint32, err error) {
	for line := range strings.Lines(classes) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != class {
			continue
		}
		var r [2]uint32
		if _, err := fmt.Sscanf(f[1]+" "+f[2], "%x %x", &r[0], &r[1]); err != nil {
			return nil, fmt.Errorf("classes.txt: %q: %w", line, err)
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}
