package redact

import "strings"

// Tokens whose tell-tale part stands inside them.

// fresh says that a word begins at s: no word byte stands before it, or one
// that ends an escape, such as ESC[32m, `\n` or %3D.
func fresh(text string, from, s int) bool {
	if s <= from || class[text[s-1]] != wordByte {
		return true
	}
	if text[s-1] == 'm' {
		k := s - 1
		for k > from && s-k < 16 && (isNum(text[k-1]) || text[k-1] == ';') {
			k--
		}
		if k > from && text[k-1] == '[' {
			return true
		}
	}
	return escaped(text, s) || s-3 >= from && text[s-3] == '%' && isHex(text[s-2]) && isHex(text[s-1])
}

// telegram reads a bot's token at its colon: 8 to 10 digits, then 35 bytes
// that begin with A.
func telegram(text string, from, i int) (found, bool) {
	if i+1 >= len(text) || text[i+1] != 'A' || i == 0 || !isNum(text[i-1]) {
		return found{}, false
	}
	s := i
	for s > from && i-s < 17 && isNum(text[s-1]) {
		s--
	}
	e := run(text[:min(len(text), i+64)], i+1, dashed)
	if i-s < 7 || i-s > 16 || e-i != 36 || !fresh(text, from, s) && !strings.HasSuffix(text[:s], "bot") || entropy(text[i:e]) < 3.5 {
		return found{}, false
	}
	return found{start: s, end: e, kind: "telegram_bot_token"}, true
}

// azureAt reads a client secret of Azure AD at its tilde: three bytes, a
// digit and Q, then 31 to 34 bytes.
func azureAt(text string, from, i int) (found, bool) {
	if i < 5 || i-5 < from || text[i-1] != 'Q' || !isNum(text[i-2]) {
		return found{}, false
	}
	s := i - 5
	e := run(text[:min(len(text), i+64)], i+1, dotted)
	e = trimToken(text, i, e)
	if e-i < 31 || e-i > 38 || !fresh(text, from, s) {
		return found{}, false
	}
	return found{start: s, end: e, kind: "azure_client_secret"}, true
}

// terraformAt reads a token of HCP Terraform at ".atlasv1.".
func terraformAt(text string, from, i int) (found, bool) {
	const mid = "atlasv1."
	if !strings.HasPrefix(text[i:], mid) || i < from+15 || text[i-1] != '.' {
		return found{}, false
	}
	s := i - 15
	for k := s; k < i-1; k++ {
		if !alnum.has(text[k]) {
			return found{}, false
		}
	}
	e := run(text[:min(len(text), i+96)], i+len(mid), dashed)
	if e-i < 48 || !fresh(text, from, s) {
		return found{}, false
	}
	return found{start: s, end: e, kind: "hashicorp_tf_api_token"}, true
}

// vaultAt reads a service token of old Vaults: s. and 24 letters and digits.
func vaultAt(text string, from, i int) (found, bool) {
	e := run(text[:min(len(text), i+28)], i+2, alnum)
	v := text[i:e]
	if e-i != 26 || inWord(text, i) || !hasDigit(v) || wordy(v) || entropy(v) < 3.5 || e < len(text) && (class[text[e]] == wordByte || text[e] == '(' || text[e] == '.') {
		return found{}, false
	}
	return found{start: i, end: e, kind: "vault_service_token"}, true
}

// wordy says that v is made of words: two runs of four small letters, which 24
// random letters and digits hold once in ten times.
func wordy(v string) bool {
	words, n := 0, 0
	for i := 0; i <= len(v); i++ {
		if i < len(v) && isLow(v[i]) {
			n++
			continue
		}
		if n >= 4 {
			words++
		}
		n = 0
	}
	return words >= 2
}

// discordAt reads a bot's token at its first dot: base64 of the bot's id,
// 6 bytes, then 27 to 40.
func discordAt(text string, from, i int) (found, bool) {
	if i < 24 || text[i-1] < '0' {
		return found{}, false
	}
	s := i
	for s > from && i-s <= 30 && dashed.has(text[s-1]) {
		s--
	}
	for s = max(s, i-28); s <= i-24 && (strings.IndexByte("MNO", text[s]) < 0 || !fresh(text, from, s)); s++ {
	}
	if s > i-24 {
		return found{}, false
	}
	a := run(text[:min(len(text), i+16)], i+1, dashed)
	if a-i != 7 || a >= len(text) || text[a] != '.' {
		return found{}, false
	}
	e := run(text[:min(len(text), a+64)], a+1, dashed)
	if e-a < 28 || e-a > 45 {
		return found{}, false
	}
	return found{start: s, end: e, kind: "discord_bot_token"}, true
}

// webhooks are URLs that are secrets by what follows them.
var webhooks = []struct {
	text string
	kind string
	min  int
}{
	{"hooks.slack.com/services/", "slack_webhook", 30},
	{"hooks.slack.com/workflows/", "slack_webhook", 30},
	{"hooks.slack.com/triggers/", "slack_webhook", 30},
	{"discord.com/api/webhooks/", "discord_webhook", 60},
	{"discordapp.com/api/webhooks/", "discord_webhook", 60},
	{"webhook.office.com/webhookb2/", "teams_webhook", 60},
	{"outlook.office.com/webhook/", "teams_webhook", 60},
	{"hooks.zapier.com/hooks/catch/", "zapier_webhook", 10},
	{"maker.ifttt.com/trigger/", "ifttt_webhook", 20},
}

// webhookAt reads the secret part of such a URL, whose host begins at i.
func webhookAt(text string, i int) (found, bool) {
	for _, w := range webhooks {
		if !strings.HasPrefix(text[i:], w.text) {
			continue
		}
		s := i + len(w.text)
		e := s
		for e < len(text) && e-s < maxValue && (dotted.has(text[e]) || text[e] == '@') {
			e++
		}
		e = trimToken(text, s, e)
		f := extend(text, found{start: s, end: e, kind: w.kind}, dotted)
		if v := f.value(text); len(v) >= w.min && hasDigit(v) && !isReference(v) {
			return f, true
		}
	}
	return found{}, false
}

// keyIDLook is how far behind an access key's id its secret is looked for.
const keyIDLook = 48

// awsPair reads the secret that stands behind a key id without a name: a line
// of the console's CSV file, or the answers to `aws configure`.
func awsPair(text string, id found) (found, bool) {
	for i := id.end; i < len(text) && i-id.end < keyIDLook; i++ {
		if !standard64.has(text[i]) {
			continue
		}
		e := run(text[:min(len(text), i+48)], i, standard64)
		if v := text[i:e]; e-i == 40 && hasDigit(v) && mixed(v) && entropy(v) >= 4 {
			return found{start: i, end: e, kind: "aws_secret_key"}, true
		}
		i = e
	}
	return found{}, false
}
