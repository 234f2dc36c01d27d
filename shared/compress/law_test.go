package compress_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/compress"
)

// law holds what is true of every result, whatever the input.
func law(t *testing.T, name, text string, o compress.Options) compress.Result {
	t.Helper()
	r := compress.Compress(text, o)
	if again := compress.Compress(text, o); again.Text != r.Text || !slices.Equal(again.Omissions, r.Omissions) {
		t.Errorf("%s: the same input gave two results", name)
	}
	if twice := compress.Compress(r.Text, o); twice.Text != r.Text {
		t.Errorf("%s: compressing the result changes it:\n%s\n--- then\n%s", name, head(r.Text), head(twice.Text))
	}
	if r.Changed != (r.Text != text) || r.Changed == (r.Reason != "") || r.Changed != (r.SHA256 != "") || r.Changed != (len(r.Omissions) > 0) {
		t.Errorf("%s: changed %v, reason %q, hash %q, %d omissions", name, r.Changed, r.Reason, r.SHA256, len(r.Omissions))
	}
	if !r.Changed {
		return r
	}
	if in, out := compress.Tokens(text), compress.Tokens(r.Text); out > in {
		t.Errorf("%s: %d tokens became %d", name, in, out)
	}
	if len(r.Text) >= len(text) {
		t.Errorf("%s: %d bytes became %d", name, len(text), len(r.Text))
	}
	if utf8.ValidString(text) && !utf8.ValidString(r.Text) {
		t.Errorf("%s: UTF-8 became none", name)
	}
	if o.Original && r.Kind != compress.JSON && r.Kind != compress.JSONL && !strings.Contains(r.Text, r.SHA256[:compress.ShownHex]) {
		t.Errorf("%s: no mark names the original", name)
	}
	for _, om := range r.Omissions {
		if om.Count < 1 || om.From > om.To && om.To != 0 {
			t.Errorf("%s: omission %+v", name, om)
		}
	}
	switch r.Kind {
	case compress.JSON, compress.JSONL:
		jsonLaw(t, name, text, r)
	case compress.Log:
		lineLaw(t, name, text, r.Text)
	}
	return r
}

// jsonLaw: the result parses, has every key path of the input, in the same order,
// and every number in it stands in the input as it is written.
func jsonLaw(t *testing.T, name, text string, r compress.Result) {
	t.Helper()
	rest := text
	for _, piece := range jsonMark.Split(r.Text, -1) { // literals, names and white space stay as they are written
		_, after, ok := strings.Cut(rest, piece)
		if !ok {
			t.Errorf("%s: what stands between marks is not the input's, or not in its order: %s", name, head(piece))
			return
		}
		rest = after
	}
	want, ok := keyPaths(text)
	if !ok {
		return // a stream with lines that are no JSON
	}
	got, ok := keyPaths(r.Text)
	if !ok {
		t.Errorf("%s: the result does not parse:\n%s", name, head(r.Text))
		return
	}
	for _, p := range want {
		if !slices.Contains(got, p) {
			t.Errorf("%s: the key path %s is lost", name, p)
		}
	}
}

// keyPaths gives the key paths of every value of a stream, array indexes left
// out, sorted.
func keyPaths(text string) ([]string, bool) {
	set := map[string]bool{}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for dec.More() {
		if !walk(dec, "", set) {
			return nil, false
		}
	}
	return slices.Sorted(maps.Keys(set)), strings.TrimSpace(text[dec.InputOffset():]) == ""
}

// jsonMark is any mark in a JSON text. A mark of the input is found as well: it only
// makes pieces smaller.
var jsonMark = regexp.MustCompile(`\{"_omitted":\d+(,"_ccr":"[0-9a-f]*")?\}|(?:\\n)?\[\.\.\. [^\]\\]*original [0-9a-f]+\]|\s*\[\.\.\. [^\]\\]*\]\s?`)

func walk(dec *json.Decoder, path string, set map[string]bool) bool {
	tok, err := dec.Token()
	if err != nil {
		return false
	}
	switch tok {
	case json.Delim('{'):
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return false
			}
			p := path + "." + key.(string)
			set[p] = true
			if !walk(dec, p, set) {
				return false
			}
		}
		_, err = dec.Token()
	case json.Delim('['):
		for dec.More() {
			if !walk(dec, path+"[]", set) {
				return false
			}
		}
		_, err = dec.Token()
	}
	return err == nil
}

// lineLaw: every line of a result is one of the input's, in its order, or holds a
// mark.
func lineLaw(t *testing.T, name, text, out string) {
	t.Helper()
	in := strings.Split(text, "\n")
	at := 0
	for l := range strings.SplitSeq(out, "\n") {
		if strings.Contains(l, "[... ") {
			continue
		}
		for at < len(in) && in[at] != l {
			at++
		}
		if at == len(in) {
			t.Errorf("%s: the line %q is not the input's, or not in its order", name, l)
			return
		}
		at++
	}
}

func head(s string) string { return s[:min(len(s), 1500)] }
