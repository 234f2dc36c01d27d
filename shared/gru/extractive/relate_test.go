package extractive_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/gru/extractive"
)

// The rules of extractive.md section 5.
func TestRelate(t *testing.T) {
	t.Parallel()
	const old = "Backoff sleeps are capped at 60 seconds, at most 4 attempts."
	for _, tt := range []struct {
		name, newer, older string
		want               extractive.Relation
	}{
		{"the same", old, old, extractive.Repeat},
		{"the same in other grammar", "So: backoff sleep is capped at 60 seconds and at most 4 attempts", old, extractive.Repeat},
		{"a part of it", "At most 4 attempts, capped at 60 seconds.", old, extractive.Repeat},
		{"another value", "Backoff sleeps are capped at 30 seconds, at most 4 attempts.", old, extractive.Supersedes},
		{"a negation", "Backoff sleeps are not capped at 60 seconds, at most 4 attempts.", old, extractive.Supersedes},
		{"two negations", "Never skip backoff sleeps, not even capped at 60 seconds, at most 4 attempts.", old, extractive.Related},
		{"said to replace", "Backoff sleeps and attempts are capped by the old limit of the gateway.", old, extractive.Supersedes},
		{"the same form about two things", "We decided that the cart service listens on port 6543 because the firewall allows it.", "We decided that the profile service listens on port 7007 because the firewall allows it.", extractive.Related},
		{"the same rule for two things", "The checkout service must never write card numbers to a log.", "The billing service must never write card numbers to a log.", extractive.Related},
		{"another value, other framing", "From now on the cart service listens on port 6543, the firewall allows it.", "We decided that the cart service runs on port 7007, the firewall allows it.", extractive.Supersedes},
		{"capped and limited", "Calls to the upstream gateway are limited to 10 attempts each.", "Calls to the upstream gateway are capped at 5 attempts each.", extractive.Supersedes},
		{"another subject", "Invoices are issued on the 3rd working day.", old, extractive.None},
		{"few words, equal", "Use redis.", "use redis", extractive.Repeat},
		{"few words, other value", "Use `redis`.", "use redis", extractive.None},
		{"few words, negated", "Not redis.", "redis.", extractive.None},
		{"no words, equal", "+1", "+1", extractive.Repeat},
		{"no words, not equal", "it is", "was it", extractive.None},
		{"typographic apostrophe", "Don’t rename exported functions of this package.", "Don't rename exported functions of this package.", extractive.Repeat},
		{"another script, equal", "毎月三日に請求書を発行する", "毎月三日に請求書を発行する", extractive.Repeat},
		{"another script, other subject", "夜間バッチは五時に終わる", "毎月三日に請求書を発行する", extractive.None},
	} {
		a, b := extractive.FingerprintOf(tt.newer), extractive.FingerprintOf(tt.older)
		if got := extractive.Relate(a, b, extractive.HasSupersede(tt.newer)); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestHasSupersede(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"From now on we retry twice.":                 true,
		"This replaces the old cap.":                  true,
		"We changed from tabs to spaces.":             true,
		"It isn’t used any more.":                     true,
		"The cap is 30 seconds.":                      false,
		strings.Repeat("plain text ", 2000) + "amend": true,
		"": false,
	} {
		if got := extractive.HasSupersede(text); got != want {
			t.Errorf("HasSupersede(%.40q) = %v, want %v", text, got, want)
		}
	}
}

func FuzzRelate(f *testing.F) {
	f.Add("Use redis, not 'memcached' 3.5", "use `redis`", true)
	f.Add("", "", false)
	f.Add("\xff", "é日本 x", false)
	f.Fuzz(func(t *testing.T, a, b string, sup bool) {
		x, y := extractive.FingerprintOf(a), extractive.FingerprintOf(b)
		if got := extractive.Relate(x, x, sup); got != extractive.Repeat {
			t.Fatalf("%q to itself is %v", a, got)
		}
		if got := extractive.Relate(extractive.FingerprintOf(" "+a+"\t"), x, sup); got != extractive.Repeat {
			t.Fatalf("%q with spaces around it is %v to itself", a, got)
		}
		if ab, ba := extractive.Relate(x, y, false), extractive.Relate(y, x, false); ab == extractive.Supersedes && ba == extractive.None {
			t.Fatalf("%q supersedes %q, which is about something else", a, b)
		}
	})
}
