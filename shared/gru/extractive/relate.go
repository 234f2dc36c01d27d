package extractive

// Relation is how a newer sentence stands to an older one.
type Relation int

const (
	None       Relation = iota // about something else
	Repeat                     // says nothing new; not added
	Related                    // same subject, nothing contradicts
	Supersedes                 // same subject, and the newer one replaces the older
)

// Fingerprint is what Relate compares: content words, literal values and the
// parity of negations. It is built once and compared many times.
type Fingerprint struct {
	words []uint64 // hashes of distinct content words, ascending
	vals  []uint64 // hashes of distinct literal values, ascending
	neg   bool     // an odd number of negations
}

// FingerprintOf builds the fingerprint of a sentence.
func FingerprintOf(sentence string) Fingerprint { return Fingerprint{} }

// Relate says how newer stands to older, where newer is the later in effective
// time. newerMessageSupersedes is HasSupersede of the whole newer message.
func Relate(newer, older Fingerprint, newerMessageSupersedes bool) Relation { return None }

// HasSupersede reports whether the message speaks of replacing something said
// before: "from now on", "no longer", "old limit".
func HasSupersede(message string) bool { return false }
