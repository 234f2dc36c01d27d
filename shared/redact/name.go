package redact

import "strings"

// maxName is how far left of a separator a name is looked for, in bytes.
const maxName = 64

// trust says what a name promises about its value.
type trust uint8

const (
	noSecret trust = iota
	inQuery        // the same, in a query string or a cookie alone
	maybe          // the word stands in the name: only a strongly random value
	random         // a key or token: the value looks random
	anyWord        // a password: the value may be any word
	scheme         // an Authorization header
)

// nameBefore is the identifier left of a separator, past spaces, brackets of
// an index and a closing quote, which may itself be escaped.
func nameBefore(text string, i int) (s, e int, quoted bool) {
	e = i
	for e > 0 && i-e < 4 && (text[e-1] == ' ' || text[e-1] == '\t') {
		e--
	}
	if e > 1 && text[e-1] == ']' {
		if text[e-2] == '"' || text[e-2] == '\'' { // os.environ["API_KEY"] =
			e--
		} else if k := strings.LastIndex(text[max(0, e-maxDefault):e], " ["); k >= 0 { // API key [None]:
			e = max(0, e-maxDefault) + k
		}
	}
	if e > 0 && (text[e-1] == '"' || text[e-1] == '\'' || text[e-1] == '`') {
		e--
		quoted = true
		for e > 0 && text[e-1] == '\\' && i-e < 12 {
			e--
		}
	}
	for e > 0 && i-e < 16 && text[e-1] == '*' { // **Password**: in Markdown
		e--
	}
	s = e
	for s > 0 && e-s < maxName && isName(text[s-1]) {
		s--
	}
	// `\nPASSWORD=` in quoted code: the n belongs to the escape.
	if s > 0 && s < e && text[s-1] == '\\' && strings.IndexByte("nrt", text[s]) >= 0 {
		s++
	}
	return s, e, quoted
}

// maxDefault bounds the default that a prompt shows in brackets, in bytes.
const maxDefault = 32

func isName(c byte) bool {
	return isNum(c) || isLow(c) || isUp(c) || c == '_' || c == '-' || c == '.'
}

// secretName says what a name promises: the kind and how far to trust it. The
// last segments count: TOKEN_LIMIT and secretName are no secrets.
func secretName(name string) (kind string, t trust) {
	if !mayNameSecret(name) {
		return "", noSecret
	}
	segs := segments(name)
	for len(segs) > 1 && suffixes[segs[len(segs)-1]] {
		segs = segs[:len(segs)-1]
	}
	if len(segs) == 0 {
		return "", noSecret
	}
	last, prev := segs[len(segs)-1], ""
	if len(segs) > 1 {
		prev = segs[len(segs)-2]
	}
	switch last {
	case "authorization":
		return "authorization", scheme
	case "pwd":
		if len(segs) == 1 && name == "PWD" || prev == "old" {
			return "", noSecret // the shell's working directory
		}
		return "password", anyWord
	case "pw":
		if len(segs) > 2 && prev != "db" && prev != "user" && prev != "admin" {
			return "", noSecret // base64 ends so too
		}
		return "password", anyWord
	case "pass", "passwort", "passcode", "passw":
		return "password", anyWord
	case "secrets", "secret":
		return "secret", anyWord
	case "credential", "credentials", "creds", "cred":
		return "secret", random
	case "key":
		if keyOf[prev] {
			return "api_key", random
		}
		return "api_key", maybe
	case "keys":
		return "api_key", maybe
	case "auth", "pat", "cookie", "jwt", "webhook":
		return "token", maybe
	case "session", "sessionid", "sid", "sig", "signature", "sas":
		return "token", inQuery
	}
	for _, w := range endings {
		if !strings.HasSuffix(last, w.word) {
			continue
		}
		if w.kind == "token" && tokenOfText[prev+strings.TrimSuffix(last, w.word)] {
			return "", noSecret
		}
		return w.kind, w.trust
	}
	for _, s := range segs {
		for _, w := range endings {
			if s == w.word {
				if notValue[last] {
					return "", noSecret
				}
				return w.kind, maybe
			}
		}
	}
	return "", noSecret
}

// endings are words with which a name's last segment may end: PGPASSWORD,
// authtoken.
var endings = []struct {
	word, kind string
	trust      trust
}{
	{"password", "password", anyWord}, {"passwd", "password", anyWord}, {"passphrase", "password", anyWord}, {"passwords", "password", maybe},
	{"userpass", "password", anyWord}, {"dbpass", "password", anyWord}, {"adminpass", "password", anyWord}, {"userpwd", "password", anyWord},
	{"clientsecret", "secret", anyWord}, {"appsecret", "secret", anyWord}, {"secret", "secret", anyWord},
	{"token", "token", random}, {"apikey", "api_key", random}, {"secretkey", "api_key", random}, {"accesskey", "api_key", random},
	{"privatekey", "api_key", random}, {"authkey", "api_key", random}, {"accountkey", "api_key", random}, {"signingkey", "api_key", random},
	{"encryptionkey", "api_key", random}, {"masterkey", "api_key", random}, {"tokens", "token", maybe},
}

// keyOf are words that make a key secret. DEPLOY_KEY is, CACHE_KEY is not.
var keyOf = set("api secret access private signing encryption auth license master service account storage subscription shared " +
	"client app application consumer deploy ssh webhook admin server crypto aes hmac jwt security rsa sas session ingest write rest " +
	"openai anthropic stripe sendgrid mailgun datadog twilio github gitlab google gemini azure aws groq mistral cohere algolia " +
	"cloudflare heroku mapbox sentry pagerduty honeycomb airtable supabase deepseek openrouter xai voyage tavily serper pinecone " +
	"elevenlabs replicate together fireworks perplexity huggingface hf brave exa maps")

// tokenOfText are tokens that are no credentials: of a language's text, of a
// listing's next page, of cancelling.
var tokenOfText = set("next page nextpage pagination continuation continue cursor sync cancellation cancel eos bos pad unk mask start end max min " +
	"num stop special lexer parser syntax prev previous first last current peek input output prompt completion total n cached resume " +
	"delete change idempotency css design")

// notValue end a name that is about a secret, not it.
var notValue = set("count limit id ids name names path file files url uri type types length len size expiry expires ttl policy field label hint " +
	"prefix suffix format version index source store manager provider service class error input hash mode env var ref reset change " +
	"rotation strength regex pattern min max usage budget pairs bytes dir arn identifier fingerprint algorithm alg header algo kind host endpoint")

// suffixes after a secret's name say whose it is, not what.
var suffixes = set("prod production dev development staging stage test local old new current 1 2 3 4 value val base 64 b enc plain text default primary secondary main live sandbox raw str string")

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// mayNameSecret is the cheap look that nearly every name fails: all kinds of
// names above hold one of these groups of three letters, or end in sid or pw.
func mayNameSecret(name string) bool {
	for i := 0; i+1 < len(name); i++ {
		if c := name[i] | 0x20; !nameHeads[c] {
			continue
		}
		if i+2 >= len(name) {
			return strings.EqualFold(name[i:], "pw")
		}
		switch string([]byte{name[i] | 0x20, name[i+1] | 0x20, lower(name[i+2])}) {
		case "pas", "pwd", "sec", "tok", "key", "aut", "cre", "ses", "sid", "sig", "sas", "pat", "jwt", "dsn", "web", "coo", "pw_", "pw-", "pw.":
			return true
		}
	}
	return false
}

var nameHeads = [256]bool{'p': true, 's': true, 't': true, 'k': true, 'a': true, 'c': true, 'j': true, 'd': true, 'w': true}

// segments splits a name at _ - . and at camel-case borders, in lower case.
func segments(name string) []string {
	out := make([]string, 0, 8)
	from := 0
	cut := func(to int) {
		if to > from {
			out = append(out, strings.ToLower(name[from:to]))
		}
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '_' || c == '-' || c == '.':
			cut(i)
			from = i + 1
		case i > from && isUp(c) && !isUp(name[i-1]),
			i > from && isUp(c) && i+1 < len(name) && isLow(name[i+1]),
			i > from && isNum(c) != isNum(name[i-1]):
			cut(i)
			from = i
		}
	}
	cut(len(name))
	return out
}

// lower is a letter's small form; signs stay.
func lower(c byte) byte {
	if isUp(c) {
		return c | 0x20
	}
	return c
}

func isUp(c byte) bool  { return c >= 'A' && c <= 'Z' }
func isLow(c byte) bool { return c >= 'a' && c <= 'z' }
func isNum(c byte) bool { return c >= '0' && c <= '9' }
