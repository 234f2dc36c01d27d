package eventlog_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/memory"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in, want string // want "" means refused
	}{
		{"sorts names", `{"b":1,"a":2}`, `{"a":2,"b":1}`},
		{"sorts nested", `{"z":{"y":1,"x":[{"b":0,"a":0}]},"a":null}`, `{"a":null,"z":{"x":[{"a":0,"b":0}],"y":1}}`},
		// RFC 8785 section 3.2.3: order is by UTF-16 code unit, so that a
		// character past the basic plane stands before U+FB33.
		{"sorts by UTF-16", "{\"\ufb33\":1,\"\U0001f600\":2,\"\u20ac\":3,\"\\r\":4,\"1\":5,\"\u0080\":6,\"\u00f6\":7}",
			"{\"\\r\":4,\"1\":5,\"\u0080\":6,\"\u00f6\":7,\"\u20ac\":3,\"\U0001f600\":2,\"\ufb33\":1}"},
		{"names with escapes", `{"a\"":1,"a!":2,"a\n":3}`, `{"a\n":3,"a!":2,"a\"":1}`},
		{"white space", " { \"a\" :\t[ 1 ,\n2 ] } \r\n", `{"a":[1,2]}`},
		{"string escapes", `"\u0041\/\u00e9\ud83d\ude00\u001f\u007f"`, "\"A/\u00e9\U0001f600\\u001f\u007f\""},
		{"numbers", `[1.0,1e2,0.000001,1e-7,-0,-0.0,123456789012,0.1,5e-324,9007199254740991,4.50]`,
			`[1,100,0.000001,1e-7,0,0,123456789012,0.1,5e-324,9007199254740991,4.5]`},
		{"empty", `{"a":{},"b":[],"":""}`, `{"":"","a":{},"b":[]}`},
		{"integer beyond 2^53-1", `[9007199254740992]`, ""},
		{"negative beyond", `[-9007199254740992]`, ""},
		{"float beyond", `[1e16]`, ""},
		{"more digits than a double", `[0.123456789012345678]`, ""},
		{"underflow", `[1e-400]`, ""},
		{"overflow", `[1e400]`, ""},
		{"leading zero", `[01]`, ""},
		{"bare point", `[1.]`, ""},
		{"plus", `[+1]`, ""},
		{"NaN", `[NaN]`, ""},
		{"duplicate name", `{"a":1,"b":2,"a":3}`, ""},
		{"duplicate by escape", `{"a":1,"\u0061":3}`, ""},
		{"lone surrogate", `"\ud800"`, ""},
		{"surrogates swapped", `"\ude00\ud83d"`, ""},
		{"bad UTF-8", "\"\xff\"", ""},
		{"raw control", "\"a\nb\"", ""},
		{"unknown escape", `"\x41"`, ""},
		{"trailing comma", `[1,]`, ""},
		{"trailing comma in object", `{"a":1,}`, ""},
		{"trailing bytes", `{} {}`, ""},
		{"cut off", `{"a":[1,2`, ""},
		{"nothing", ``, ""},
		{"too deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), ""},
		{"deep enough", strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 64) + strings.Repeat("]", 64)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := eventlog.Canonical([]byte(tt.in))
			if tt.want == "" {
				if err == nil {
					t.Fatalf("accepted as %s", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzCanonical: whatever is accepted has the bytes that gowebpki/jcs gives,
// and its canonical form is its own.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		`{"b":1,"a":[true,false,null,"x\u00e9\n\"\\"],"":{}}`, `-0.0`, `[1e21,1E-7,123.4560]`, "\"\u2028\u007f\"",
		`{"\ud83d\ude00":1,"דּ":2,"z":{"y":{"x":[]}}}`, `{"a":1,"a":2}`, ` [ ] `, `9007199254740993`, `{"type":"gate","t":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := eventlog.Canonical(in)
		if err != nil {
			return
		}
		want, err := jcs.Transform(in)
		if err != nil {
			t.Fatalf("gowebpki/jcs refuses %q: %v", in, err)
		}
		if !bytes.Equal(want, got) {
			t.Fatalf("%q: got %s, want %s", in, got, want)
		}
		again, err := eventlog.Canonical(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q: the canonical form %s is not its own: %s, %v", in, got, again, err)
		}
	})
}

// FuzzSeal: sealing changes nothing but the erasable texts, an erased line
// seals to what the line sealed to, and erasing twice is erasing once.
func FuzzSeal(f *testing.F) {
	for _, s := range []string{
		`{"v":1,"type":"memory","text":"we use <b>zstd</b>","n":{"quote":"q","x":[{"reason":"r"}]}}`,
		`{"text":"sha256:aa","think":""}`, `{"text":1,"quote":null,"question":["a"]}`, `{}`, `{"Text":"stays"}`,
	} {
		f.Add([]byte(s))
	}
	tomb := memory.SumString("tombstone")
	f.Fuzz(func(t *testing.T, in []byte) {
		sealed, isErased, err := eventlog.Seal(nil, in)
		if err != nil {
			return
		}
		plain, err := eventlog.Canonical(in)
		if err != nil {
			t.Fatalf("seals but has no canonical form: %v", err)
		}
		if !isErased {
			if diff := cmp.Diff(dumbSeal(t, plain), string(sealed)); diff != "" {
				t.Fatal(diff)
			}
		}
		if len(plain) == 0 || plain[0] != '{' {
			return
		}
		gone, err := eventlog.Erase(in, tomb)
		if err != nil {
			t.Fatal(err)
		}
		again, nowErased, err := eventlog.Seal(nil, gone)
		if err != nil || !nowErased || !bytes.Equal(again, sealed) {
			t.Fatalf("%q: erased form %s seals to %s, %v; want %s", in, gone, again, err, sealed)
		}
		twice, err := eventlog.Erase(gone, tomb)
		if err != nil || !bytes.Equal(twice, gone) {
			t.Fatalf("erasing twice: %s, %v", twice, err)
		}
	})
}

// dumbSeal is the sealed form by way of a decoded value.
func dumbSeal(t *testing.T, canonical []byte) string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				s, isString := x.(string)
				switch k {
				case "text", "think", "reason", "question", "quote":
					if isString {
						v[k] = "sha256:" + string(memory.SumString(s))
						continue
					}
				}
				v[k] = walk(x)
			}
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		}
		return v
	}
	b, err := json.Marshal(walk(v))
	if err != nil {
		t.Fatal(err)
	}
	out, err := jcs.Transform(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestNodeIDIsCanonical(t *testing.T) {
	t.Parallel()
	sha := memory.SumString("we compress blobs with zstd")
	form, err := jcs.Transform([]byte(`{"tenant":"local","project":"shop-1.a_b","level":"L0","stream":"decisions@0a1b2c3d.2","text_sha256":"` + string(sha) + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(memory.Sum(form), memory.NodeID("local", "shop-1.a_b", memory.L0, "decisions@0a1b2c3d.2", sha)); diff != "" {
		t.Error(diff)
	}
}
