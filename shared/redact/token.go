package redact

import "strings"

// charset says which bytes a token is made of.
type charset uint8

const (
	alnum  charset = iota // letters and digits
	dashed                // and - _
	upper                 // capitals and digits
	hexes                 // lower-case hex
	dotted                // and - _ . ~ + / =
)

func (s charset) has(c byte) bool {
	digit, low, up := c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z'
	switch s {
	case alnum:
		return digit || low || up
	case upper:
		return digit || up
	case hexes:
		return digit || c >= 'a' && c <= 'f'
	case dashed:
		return digit || low || up || c == '-' || c == '_'
	}
	return digit || low || up || strings.IndexByte("-_.~+/=", c) >= 0
}

// rule is a vendor's token: a prefix and at least min bytes of set after it.
// min is under the real length, so that a token cut off by a terminal is still
// masked, and over that of words which begin alike.
type rule struct {
	prefix string
	set    charset
	min    int
	kind   string
	mixed  bool // a digit is needed: the prefix also begins plain words
}

// rules stand with the longer of two prefixes first.
var rules = []rule{
	{"sk-ant-", dashed, 8, "anthropic_key", false},
	{"sk-proj-", dashed, 16, "openai_key", true},
	{"sk-svcacct-", dashed, 16, "openai_key", true},
	{"sk-or-", dashed, 16, "openrouter_key", true},
	{"sk-lf-", dashed, 16, "langfuse_key", true},
	{"sk-", alnum, 16, "openai_key", true},
	{"sk_live_", alnum, 10, "stripe_key", false},
	{"sk_test_", alnum, 10, "stripe_key", false},
	{"rk_live_", alnum, 10, "stripe_key", false},
	{"rk_test_", alnum, 10, "stripe_key", false},
	{"whsec_", alnum, 16, "webhook_secret", false},
	{"ghp_", alnum, 16, "github_token", false},
	{"gho_", alnum, 16, "github_token", false},
	{"ghu_", alnum, 16, "github_token", false},
	{"ghs_", alnum, 16, "github_token", false},
	{"ghr_", alnum, 16, "github_token", false},
	{"github_pat_", dashed, 20, "github_token", false},
	{"glpat-", dashed, 16, "gitlab_token", false},
	{"gldt-", dashed, 16, "gitlab_token", false},
	{"glrt-", dashed, 16, "gitlab_token", false},
	{"glptt-", dashed, 16, "gitlab_token", false},
	{"xoxa-", dashed, 10, "slack_token", true},
	{"xoxb-", dashed, 10, "slack_token", true},
	{"xoxp-", dashed, 10, "slack_token", true},
	{"xoxr-", dashed, 10, "slack_token", true},
	{"xoxs-", dashed, 10, "slack_token", true},
	{"xapp-", dashed, 10, "slack_token", true},
	{"AKIA", upper, 16, "aws_key_id", false},
	{"ASIA", upper, 16, "aws_key_id", false},
	{"AIza", dashed, 30, "google_key", false},
	{"ya29.", dashed, 20, "google_token", false},
	{"GOCSPX-", dashed, 20, "google_secret", false},
	{"hf_", alnum, 20, "huggingface_token", false},
	{"npm_", alnum, 30, "npm_token", false},
	{"pypi-", dashed, 32, "pypi_token", true},
	{"SG.", dotted, 32, "sendgrid_key", true},
	{"dop_v1_", hexes, 32, "digitalocean_token", false},
	{"shpat_", hexes, 24, "shopify_token", false},
	{"shpss_", hexes, 24, "shopify_token", false},
	{"lin_api_", alnum, 20, "linear_key", false},
	{"glsa_", dashed, 24, "grafana_token", false},
	{"dckr_pat_", dashed, 16, "docker_token", false},
	{"hvs.", dashed, 20, "vault_token", false},
	{"ntn_", alnum, 30, "notion_token", false},
	{"figd_", dashed, 20, "figma_token", false},
	{"rubygems_", hexes, 32, "rubygems_key", false},
	{"gsk_", alnum, 30, "groq_key", false},
	{"xai-", alnum, 40, "xai_key", false},
	{"AGE-SECRET-KEY-1", upper, 40, "age_key", false},
	{OwnTokenPrefix, alnum, 20, "mneme_token", true},
}

// byFirst lists the rules by the first byte of their prefix; starts[a] holds a
// bit for each byte that follows a in a prefix or in a shape below.
var byFirst, starts = func() (b [256][]rule, s [256][4]uint64) {
	pair := func(p string) { s[p[0]][p[1]>>6] |= 1 << (p[1] & 63) }
	for _, r := range rules {
		b[r.prefix[0]] = append(b[r.prefix[0]], r)
		pair(r.prefix)
	}
	for _, p := range []string{"ey", "Be", "be", "BE", "bE"} {
		pair(p)
	}
	return b, s
}()

// run is the end of the bytes of set from i on.
func run(text string, i int, set charset) int {
	for i < len(text) && set.has(text[i]) {
		i++
	}
	return i
}

// longToken is how far a token is read before it has shown a digit where it
// must: it keeps the reading linear on text made of prefixes.
const longToken = 128

// inWord says that i stands inside a longer run of token bytes, where the run
// has been looked at already.
func inWord(text string, i int) bool {
	return i > 0 && strings.IndexByte("-_.", text[i-1]) >= 0
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// tokenAt reads a token that begins at i, where a word begins.
func tokenAt(text string, i int) (found, bool) {
	rest := text[i:]
	for _, r := range byFirst[text[i]] {
		if !strings.HasPrefix(rest, r.prefix) {
			continue
		}
		body := i + len(r.prefix)
		if r.set == dotted && inWord(text, i) {
			continue
		}
		end := run(text[:min(len(text), body+longToken)], body, r.set)
		if end-body == longToken && (!r.mixed || hasDigit(text[body:end])) {
			end = run(text, end, r.set)
		}
		for end > body && strings.IndexByte("-_.", text[end-1]) >= 0 && r.set == dotted {
			end-- // the full stop of the sentence
		}
		if end-body < r.min || r.mixed && !hasDigit(text[body:end]) {
			continue
		}
		// A longer word goes on: no token, except for what is fixed in length.
		if end < len(text) && class[text[end]] == wordByte && r.set != upper && r.set != hexes {
			continue
		}
		if r.set == upper && r.min == 16 && (end-body > 20 || end < len(text) && class[text[end]] == wordByte) {
			continue // a constant's name in capitals
		}
		return found{i, end, r.kind}, true
	}
	switch text[i] {
	case 'e':
		return jwtAt(text, i)
	case 'B', 'b':
		return bearerAt(text, i)
	}
	return found{}, false
}

// jwtAt reads header.payload.signature; a header is JSON, so it begins "eyJ".
func jwtAt(text string, i int) (found, bool) {
	if !strings.HasPrefix(text[i:], "eyJ") || inWord(text, i) {
		return found{}, false
	}
	a := run(text, i, dashed)
	if a-i < 12 || a >= len(text) || text[a] != '.' {
		return found{}, false
	}
	b := run(text, a+1, dashed)
	if b-a < 8 || b >= len(text) || text[b] != '.' {
		return found{}, false
	}
	c := run(text, b+1, dashed)
	return found{i, c, "jwt"}, true
}

// minBearer is the least length of a bearer token outside a header: shorter
// ones are words about it.
const minBearer = 16

// bearerAt reads "Bearer <token>" in running text.
func bearerAt(text string, i int) (found, bool) {
	if len(text)-i < 7+minBearer || !strings.EqualFold(text[i:i+7], "bearer ") {
		return found{}, false
	}
	s := i + 7
	end := trimToken(text, s, run(text, s, dotted))
	if end-s < minBearer || !hasDigit(text[s:end]) {
		return found{}, false
	}
	if f, ok := inner(text, s, end); ok {
		return f, true
	}
	return found{s, end, "bearer_token"}, true
}

// trimToken drops what ends a sentence rather than a token.
func trimToken(text string, from, to int) int {
	for to > from && text[to-1] == '.' {
		to--
	}
	return to
}

// inner names a value by the vendor's rule when that covers all of it.
func inner(text string, s, end int) (found, bool) {
	if s < len(text) && text[s] != 'B' && text[s] != 'b' {
		if f, ok := tokenAt(text, s); ok && f.end >= end {
			return f, true
		}
	}
	return found{}, false
}
