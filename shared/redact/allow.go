package redact

import "strings"

// isReference says that a value only names where the secret is, or is a stub
// that stands for one.
func isReference(v string) bool {
	if strings.HasPrefix(v, "<") || strings.HasPrefix(v, "*") || strings.HasSuffix(v, "*") && strings.Contains(v, "**") ||
		strings.Contains(v, "<") && strings.Contains(v, ">") || strings.Contains(v, "...") || strings.Contains(v, "\u2026") {
		return true
	}
	// ${VAR}, $(cmd), $VAR, {{ .Values.x }}, %VAR%, #{x}, @VAR@; a password
	// may hold a $ elsewhere.
	if strings.HasPrefix(v, "$") && len(v) > 1 && (v[1] == '{' || v[1] == '(' || identifier(v[1:])) ||
		strings.Contains(v, "${") || strings.Contains(v, "$(") || strings.Contains(v, "{{") || strings.Contains(v, "#{") ||
		strings.HasPrefix(v, "{") || strings.HasPrefix(v, "%") && strings.HasSuffix(v, "%") || strings.HasPrefix(v, "%(") ||
		len(v) == 2 && v[0] == '%' || strings.HasPrefix(v, "@") && strings.HasSuffix(v, "@") {
		return true
	}
	low := strings.ToLower(v)
	for _, w := range stubStarts {
		if strings.HasPrefix(low, w) {
			return true
		}
	}
	for _, w := range weakStubStarts {
		if strings.HasPrefix(low, w) && (phrase(v) || !hasDigit(v)) {
			return true
		}
	}
	for _, w := range stubParts {
		if strings.Contains(low, w) && (w != "xxxx" || strings.Contains(v, "xxxx") || strings.Contains(v, "XXXX")) { // xXXx stands in random letters
			return true
		}
	}
	return uniform(low) || sequence(low)
}

var stubStarts = []string{
	"your-", "your_", "yoursecret", "yourpass", "yourtoken", "yourapi", "yourkey", "my-", "my_", "mysecret", "mypassword", "mytoken", "insert", "replace", "enter-", "enter_",
	"process.env", "os.environ", "os.getenv", "getenv", "env.", "env(", "env:", "secretref", "vault:", "secrets.", "secrets/", "vars.", "var.", "config.", "settings.", "import.meta",
	"system.getenv", "std::env", "dotenv", "ssm:", "arn:aws:secretsmanager", "arn:aws:ssm", "op://", "ref+", "file:", "gcp:secret", "keyring:", "self.", "this.", "args.", "opts.", "options.", "ctx.", "req.", "request.",
}

// weakStubStarts begin stubs of words, and random values now and then.
var weakStubStarts = []string{
	"sample", "dummy", "fake", "todo", "tbd", "none", "null", "nil", "undefined", "true", "false", "string", "test-", "test_", "some-", "some_", "the-", "the_", "a-", "an-",
}

var stubParts = []string{"example", "placeholder", "changeme", "change-me", "change_me", "redacted", "xxxx", "****", "your-", "your_", "-here", "_here", "goes-here", "not-a-real", "notreal", "not_real", "fixme", "00000000", "dummy", "masked", "abcdefghijkl", "lorem"}

// uniform is "aaaaaaaa", "x-x-x", "------": one letter or digit, and signs.
func uniform(v string) bool {
	first := byte(0)
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '-' || c == '_' || c == '.' || c == '=':
		case first == 0:
			first = c
		case c != first:
			return false
		}
	}
	return true
}

// sequence is "1234567890", "abcdef0123456789", "0123456789abcdef": bytes that
// mostly follow one another.
func sequence(v string) bool {
	if len(v) < 6 {
		return false
	}
	steps := 0
	for i := 1; i < len(v); i++ {
		if d := int(v[i]) - int(v[i-1]); d == 1 || d == 0 || v[i-1] == '9' && (v[i] == '0' || v[i] == 'a') || v[i-1] == 'f' && v[i] == '0' {
			steps++
		}
	}
	return steps >= (len(v)-1)*7/8
}

func identifier(v string) bool {
	for i := 0; i < len(v); i++ {
		if c := v[i]; !isLow(c) && !isUp(c) && c != '_' && (i == 0 || !isNum(c) && c != '.') {
			return false
		}
	}
	return v != ""
}

// isUUID is 8-4-4-4-12 hex digits.
func isUUID(v string) bool {
	if len(v) != 36 {
		return false
	}
	for i := 0; i < len(v); i++ {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if v[i] != '-' {
				return false
			}
		} else if !isHex(v[i]) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool { return isNum(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// isHash is hex of the length of a digest: md5, sha1, sha224 to sha512.
func isHash(v string) bool {
	switch len(v) {
	case 32, 40, 56, 64, 96, 128:
	default:
		return false
	}
	for i := 0; i < len(v); i++ {
		if !isHex(v[i]) {
			return false
		}
	}
	return true
}

// isPath is a path of a file system or a URL without a user.
func isPath(v string) bool {
	return (strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "../") || strings.HasPrefix(v, "~/") || strings.HasPrefix(v, `C:\`)) &&
		entropy(v) < 4.3 || strings.Contains(v, "://")
}

// plainWords are values of schemas and forms, and passwords that say
// "password": masking them hides nothing.
var plainWords = set("required optional undefined disabled enabled identifier nullable varchar encrypted textarea unchanged sensitive " +
	"plaintext protected external internal password passwd secret token username string integer boolean number object " +
	"default unknown invalid missing expired forgotten hidden visible bearer basic digest str bytes text char optional[str] " +
	"secretstr nonempty pass user pwd passphrase credentials authorization hashed salted random generated rotated")
