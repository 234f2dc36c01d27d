package compress_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/mneme-ai/mneme/shared/compress"
)

// TestBadInput: no input makes it fail, hang or grow; what is not understood
// comes back.
func TestBadInput(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)
	wide := []byte{}
	for _, u := range utf16.Encode([]rune("ERROR: no such file\n")) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	same := map[string]string{ // come back as they are
		"empty":                     "",
		"a zip":                     "PK\x03\x04" + strings.Repeat("\x00\x01ERROR\n", 500),
		"UTF-16":                    "\xff\xfe" + strings.Repeat(string(wide), 100),
		"10,000 deep":               deep,
		"10,000 deep, as an object": strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000),
		"open brackets":             strings.Repeat("[", 100_000),
		"counts that lie":           "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,99999999 +1,2 @@\n" + strings.Repeat(" x\n", 400),
		"huge counts":               "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,99999999999999999999 +1,2 @@\n" + strings.Repeat(" x\n", 400),
		"half a rune":               strings.Repeat("a sentence of prose. ", 40) + "\xd0",
		"one line of 5 MB of prose": strings.Repeat("word ", 1<<20),
	}
	for name, text := range same {
		if r := law(t, name, text, compress.Options{}); r.Changed {
			t.Errorf("%s is changed:\n%s", name, head(r.Text))
		}
	}
	random := make([]byte, 1<<20)
	x := uint32(1)
	for i := range random {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		random[i] = byte(x)
	}
	law(t, "random", string(random), compress.Options{Path: "a.log"})
	law(t, "only ANSI", strings.Repeat("\x1b[31m\x1b[0m\n", 1000), compress.Options{Path: "a.log"})
	law(t, "half a rune in a log", strings.Repeat("INFO ошибка\n", 400)+"\xd0", compress.Options{Path: "a.log"})
}

// TestTimeIsLinear: what repeats one byte or one short form for 128 KB takes
// its time once, under every name.
func TestTimeIsLinear(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("some seconds")
	}
	const size = 128 << 10
	forms := []string{
		"[", "]", "{", "}", "[{", `{"a":`, `"`, `\`, `'`, "`", "/", "/*", "//", "#", "(", ")", "()", "f(){", "a", " ", "\t", "\n", "\r", "\r\n", "x\n", "1 ", "1", ". ", "...", "! ", "<", "<t1>", "-", "--- a\n+++ b\n", "@@ -1 +1 @@\n", "+x\n", "diff --git a/x b/x\n",
		"error ", "ERROR: ", "at ", "0:00:00 ", "[0", "\x1b[", "\x1b]", "é", "\xff", "${", "`${", "r#\"", "R\"(", "def f():\n", "def f(\n", `"""`, "'''", "[]", "{}", "[]\n", "{}\n", "1,", `"x",`, "null\n", "[... 1 line omitted: 3]\n", "Get a. b. c. ", "。",
	}
	for _, name := range []string{"", "a.log", "a.py", "a.go", "a.ts", "a.rs", "a.cpp", "a.java", "a.txt"} {
		for _, f := range forms {
			for _, text := range []string{strings.Repeat(f, size/len(f)), "[" + strings.Repeat(f, size/len(f))} {
				start := time.Now()
				compress.Compress(text, compress.Options{Path: name, Code: true, Original: true})
				if d := time.Since(start); d > 10*time.Second {
					t.Errorf("%q for 128 KB, called %q: %v", f, name, d)
				}
			}
		}
	}
}
