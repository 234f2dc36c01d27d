package redact

import (
	"slices"
	"strings"
)

// charset says which bytes a token is made of.
type charset uint8

const (
	alnum      charset = iota // letters and digits
	dashed                    // and - _
	upper                     // capitals and digits
	hexes                     // lower-case hex
	dotted                    // and - _ . ~ + / =
	standard64                // letters, digits, + and /
	jwtSet                    // letters, digits, - _ and .
	hostname                  // small letters, digits, - and .
	django                    // letters, digits and the signs of a Django secret key
)

// members holds for each byte a bit for each charset that has it.
var members = func() (t [256]uint16) {
	signs := [...]string{alnum: "", dashed: "-_", upper: "", hexes: "", dotted: "-_.~+/=", standard64: "+/", jwtSet: "-_.", hostname: "-.", django: "!@#$%^&*(-_=+)"}
	for c := range 256 {
		b := byte(c)
		for s, extra := range signs {
			in := isNum(b) || strings.IndexByte(extra, b) >= 0
			switch charset(s) {
			case upper:
				in = in || isUp(b)
			case hexes:
				in = in || b >= 'a' && b <= 'f'
			case hostname:
				in = in || isLow(b)
			default:
				in = in || isLow(b) || isUp(b)
			}
			if in {
				t[c] |= 1 << s
			}
		}
	}
	return t
}()

func (s charset) has(c byte) bool { return members[c]>>s&1 != 0 }

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
	{"sk-admin-", dashed, 16, "openai_key", true},
	{"sk-or-v1-", hexes, 32, "openrouter_key", false},
	{"bedrock-api-key-", dotted, 40, "aws_bedrock_key", false},
	{"pplx-", alnum, 32, "perplexity_key", true},
	{"r8_", alnum, 30, "replicate_token", true},
	{"nvapi-", dashed, 40, "nvidia_key", true},
	{"tvly-", dashed, 24, "tavily_key", true},
	{"lsv2_pt_", dashed, 32, "langsmith_key", false},
	{"lsv2_sk_", dashed, 32, "langsmith_key", false},
	{"e2b_", hexes, 32, "etwob_key", false},
	{"csk-", alnum, 40, "cerebras_key", true},
	{"fw_", alnum, 22, "fireworks_key", true},
	{"ATATT3", dotted, 40, "atlassian_token", true},
	{"ATCTT3", dotted, 40, "atlassian_token", true},
	{"ATBB", alnum, 28, "bitbucket_token", true},
	{"NRAK-", alnum, 24, "newrelic_key", false},
	{"NRII-", dashed, 28, "newrelic_key", false},
	{"tfp_", dashed, 40, "typeform_token", true},
	{"sbp_", hexes, 36, "supabase_token", false},
	{"sb_secret_", dashed, 20, "supabase_token", true},
	{"vercel_", alnum, 20, "vercel_token", true},
	{"vcp_", alnum, 24, "vercel_token", true},
	{"nfp_", alnum, 32, "netlify_token", true},
	{"rnd_", alnum, 24, "render_key", true},
	{"dckr_oat_", dashed, 16, "docker_token", false},
	{"sgp_", dashed, 40, "sourcegraph_token", true},
	{"squ_", hexes, 36, "sonar_token", false},
	{"sqp_", hexes, 36, "sonar_token", false},
	{"sqa_", hexes, 36, "sonar_token", false},
	{"CCIPAT_", dashed, 30, "circleci_token", true},
	{"bkua_", hexes, 32, "buildkite_token", false},
	{"tskey-", dashed, 20, "tailscale_key", true},
	{"phx_", alnum, 32, "posthog_key", true},
	{"sq0csp-", dashed, 36, "square_secret", true},
	{"sq0atp-", dashed, 20, "square_token", true},
	{"xsmtpsib-", dashed, 60, "brevo_key", true},
	{"key-", hexes, 32, "mailgun_key", false},
	{"secret_", alnum, 40, "notion_token", true},
	{"EAA", alnum, 80, "facebook_token", true},
	{"1//0", dashed, 36, "google_refresh_token", true},
	{"AQVN", dashed, 34, "yandex_key", true},
	{"amzn.mws.", dashed, 32, "aws_mws_token", true},
	{"AKID", alnum, 32, "tencent_key_id", true},
	{"sl.", dashed, 60, "dropbox_token", true},
	{"dp.st.", dotted, 40, "doppler_token", true},
	{"dp.ct.", dotted, 40, "doppler_token", true},
	{"dp.sa.", dotted, 40, "doppler_token", true},
	{"dp.pt.", alnum, 40, "doppler_token", true},
	{"hvr.", dashed, 20, "vault_token", false},
	{"hvb.", dashed, 60, "vault_token", false},
	{"oy2", alnum, 43, "nuget_key", true},
	{"shpca_", hexes, 24, "shopify_token", false},
	{"shppa_", hexes, 24, "shopify_token", false},
	{"ATTA", hexes, 60, "trello_token", false},
	{"xoxe-", dashed, 24, "slack_token", true},
	{"xoxe.xox", dotted, 40, "slack_token", true},
	{"xoxc-", dashed, 10, "slack_token", true},
	{"xoxd-", dotted, 20, "slack_token", true},
	{"glcbt-", dashed, 16, "gitlab_token", true},
	{"glft-", dashed, 16, "gitlab_token", true},
	{"gloas-", dashed, 32, "gitlab_token", true},
	{"glsoat-", dashed, 16, "gitlab_token", true},
	{"glagent-", dashed, 32, "gitlab_token", true},
	{"ya29_", dashed, 20, "google_token", true},
	{"sntrys_", dotted, 80, "sentry_org_token", true},
	{"django-insecure-", django, 40, "secret_key", false},
	{OwnTokenPrefix, alnum, 20, "mneme_token", true},
}

// pair holds what may begin with two given bytes.
type pair struct {
	rules    []rule
	vendors  []*vendorPrefix
	words    []string // that a value follows after a space
	tokens   bool     // something but words
	webhook  bool
	bearer   bool
	jwt, mid bool
	pem      bool
}

// pairAt is the pair with which s begins, or nil.
func pairAt(s string) *pair {
	if q := pairs[s[0]]; q != nil {
		return q[s[1]]
	}
	return nil
}

// pairs is the index of the rules by their first two bytes; starts[a] holds a
// bit for each byte b of a pair ab, so that a word costs one look-up.
var pairs, starts = func() (m [256]*[256]*pair, s [256][4]uint64) {
	at := func(p string) *pair {
		s[p[0]][p[1]>>6] |= 1 << (p[1] & 63)
		if m[p[0]] == nil {
			m[p[0]] = &[256]*pair{}
		}
		q := &m[p[0]][p[1]]
		if *q == nil {
			*q = &pair{}
		}
		return *q
	}
	for _, r := range rules {
		q := at(r.prefix)
		q.rules = append(q.rules, r)
	}
	for _, p := range vendorPrefixes {
		heads := []string{p.prefix[:2]}
		if p.fold {
			l, u := heads[0], strings.ToUpper(heads[0])
			heads = append(heads, u, u[:1]+l[1:], l[:1]+u[1:])
		}
		slices.Sort(heads)
		for _, h := range slices.Compact(heads) {
			q := at(h)
			q.vendors = append(q.vendors, p)
		}
	}
	for _, w := range webhooks {
		at(w.text).webhook = true
	}
	for _, w := range spacedWords {
		q := at(w)
		q.words = append(q.words, w+" ")
	}
	for _, w := range []string{"Be", "be", "BE", "bE", "Ba", "ba", "BA"} {
		at(w).bearer = true
	}
	at("ey").jwt = true
	at(pem64).pem = true
	at("at").mid = true
	at("s.").mid = true
	for _, row := range m {
		if row == nil {
			continue
		}
		for _, q := range row {
			if q != nil {
				q.tokens = len(q.rules)+len(q.vendors) > 0 || q.bearer || q.jwt || q.pem
			}
		}
	}
	return m, s
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
	if i+1 >= len(text) {
		return found{}, false
	}
	q := pairAt(text[i:])
	if q == nil {
		return found{}, false
	}
	return q.tokenAt(text, i)
}

func (q *pair) tokenAt(text string, i int) (found, bool) {
	for _, r := range q.rules {
		if strings.HasPrefix(text[i:], r.prefix) {
			if f, ok := r.at(text, i); ok {
				return f, true
			}
		}
	}
	for _, p := range q.vendors {
		if p.begins(text[i:]) {
			if f, ok := p.at(text, i); ok {
				return extend(text, f, dotted), true
			}
		}
	}
	switch {
	case q.pem && strings.HasPrefix(text[i:], pem64):
		return pem64At(text, i)
	case q.jwt && strings.HasPrefix(text[i:], dockerAuths) && !inWord(text, i):
		e := run(text, i, dotted)
		return found{start: i, end: e, kind: "docker_auth"}, e-i >= 40
	case q.jwt:
		return jwtAt(text, i)
	case q.bearer:
		return bearerAt(text, i)
	}
	return found{}, false
}

// at reads the rule's token, whose prefix stands at i.
func (r rule) at(text string, i int) (found, bool) {
	body := i + len(r.prefix)
	if r.set == dotted && inWord(text, i) {
		return found{}, false
	}
	end := run(text[:min(len(text), body+longToken)], body, r.set)
	if end-body == longToken && (!r.mixed || hasDigit(text[body:end])) {
		end = run(text, end, r.set)
	}
	for end > body && strings.IndexByte("-_.", text[end-1]) >= 0 && r.set == dotted {
		end-- // the full stop of the sentence
	}
	f := extend(text, found{start: i, end: end, kind: r.kind}, r.set)
	if f.secret == "" {
		if g, ok := wrapped(text, i, end); ok {
			g.kind = r.kind
			return g, true
		}
	}
	v := f.value(text)[len(r.prefix):]
	if len(v) < r.min || r.mixed && !hasDigit(v) || isStub(v) {
		return found{}, false
	}
	// A longer word goes on: no token, except for what is fixed in length.
	if end == f.end && end < len(text) && class[text[end]] == wordByte && r.set != upper && r.set != hexes {
		return found{}, false
	}
	if (r.set == alnum || r.set == upper) && inBase64(text, i, f.end) {
		return found{}, false
	}
	if r.set == upper && r.min == 16 && (len(v) > 20 || f.end < len(text) && class[text[f.end]] == wordByte) {
		return found{}, false // a constant's name in capitals
	}
	return f, true
}

// isStub says that what follows a vendor's prefix is a placeholder.
func isStub(v string) bool {
	return uniform(v) || strings.Contains(v, "xxxxxx") || strings.Contains(v, "XXXXXX") || strings.Contains(strings.ToLower(v), "example")
}

// wrapped reads a token that a terminal or a file wraps at a bare line end:
// the lines together have a vendor's exact form, and the first alone has not.
func wrapped(text string, i, n int) (found, bool) {
	if _, ok := lineEnd(text, n); !ok {
		return found{}, false
	}
	for _, p := range pairAt(text[i:]).vendors {
		if !p.begins(text[i:]) {
			continue
		}
		if _, whole := p.match(text[i:n]); whole {
			return found{}, false
		}
		if f, ok := p.at(text, i); ok && f.end > n {
			return f, true
		}
	}
	return found{}, false
}

// dockerAuths begins {"auths":, Docker's config, in base64 as Kubernetes holds it.
const dockerAuths = "eyJhdXRocyI6"

// jwtAt reads header.payload.signature; a header is JSON, so it begins "eyJ".
// An encrypted one has five parts.
func jwtAt(text string, i int) (found, bool) {
	if !strings.HasPrefix(text[i:], "eyJ") || inWord(text, i) {
		return found{}, false
	}
	e := run(text, i, jwtSet)
	if e-i < 20 {
		return found{}, false
	}
	f := extend(text, found{start: i, end: trimToken(text, i, e), kind: "jwt"}, jwtSet)
	parts := strings.Split(f.value(text), ".")
	if len(parts) < 3 || len(parts[0]) < 12 || len(parts[1]) < 8 && len(parts) == 3 {
		return found{}, false
	}
	return f, true
}

// inner names a value by the vendor's rule when that covers all of it.
func inner(text string, s, end int) (found, bool) {
	if s < end && s < len(text) && text[s] != 'B' && text[s] != 'b' {
		if f, ok := tokenAt(text, s); ok && f.end >= end {
			return f, true
		}
	}
	return found{}, false
}
