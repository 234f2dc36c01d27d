package memory

import "time"

// Kinds of a Tombstone.
const (
	TombstoneScrub  = "scrub"  // newer redaction rules masked what they found
	TombstoneForget = "forget" // a person had texts taken out; see shared/forget
)

// Tombstone says which texts were taken out of the log and what stands in
// their place. Erased records carry its sha256, so that every gap in the log
// leads here. It holds no text but redaction marks; one that forgets has none, its
// edits put nothing in the place of what they take out.
//
//	{"v":1,"type":"tombstone","level":"-","tenant":"local","project":"shop","kind":"scrub","rules":"r3",
//	 "sources":[{"old":"1f0a…","new":"77c2…"}],"blobs":[{"old":"9c41…","new":"d0e5…","edits":[{"start":118,"end":158,"mark":"[REDACTED:api_key:3fa9c1]"}]}]}
//
// One that forgets also bars what it took out from being read again, until a Lift:
//
//	{…,"kind":"forget","target":{"source":"shop/_post/77c2…/note.md"},"raws":["5d0c…"],"turns":["9f31…"],"inbox":false, …}
type Tombstone struct {
	V       int           `json:"v"`
	Type    string        `json:"type"` // "tombstone"
	Level   Level         `json:"level"`
	Tenant  string        `json:"tenant"`
	Project string        `json:"project"`
	Kind    string        `json:"kind"`  // TombstoneScrub | TombstoneForget
	Rules   string        `json:"rules"` // version of the redaction rules that were applied
	Sources []Replacement `json:"sources"`
	Blobs   []Scrubbed    `json:"blobs"` // chunk texts and raw model replies
	// Of TombstoneForget alone.
	Target *Target   `json:"target,omitempty"`
	Raws   []SHA     `json:"raws,omitempty"`  // whole objects that are barred, by the sha256 of their bytes, with all turns of Sources
	Turns  []SHA     `json:"turns,omitempty"` // single turns that are barred where not all of an object is; see TurnKey
	Inbox  bool      `json:"inbox,omitempty"` // the uploads are removed too
	At     time.Time `json:"at,omitzero"`
}

// Target is what a person asked to forget: one of the three.
type Target struct {
	Source  string `json:"source,omitempty"` // as it was named: an object, a session, a file
	Node    SHA    `json:"node,omitempty"`
	Project bool   `json:"project,omitempty"` // all of it
}

// Bridged gives occurrences with what stands behind those that bridges names, which are
// forgotten, in their place: each once, in order. stands says of a node that it is stated
// elsewhere all the same.
func Bridged(bridges map[SHA][]Occurrence, stands func(SHA) bool, os []Occurrence) []Occurrence {
	lost := func(node SHA) ([]Occurrence, bool) {
		next, gone := bridges[node]
		return next, gone && !stands(node)
	}
	hit := false
	for _, o := range os {
		_, gone := lost(o.Node)
		hit = hit || gone
	}
	if !hit {
		return os
	}
	var out []Occurrence
	seen := map[SHA]bool{}
	var walk func([]Occurrence)
	walk = func(os []Occurrence) {
		for _, o := range os {
			if next, gone := lost(o.Node); gone && !seen[o.Node] {
				seen[o.Node] = true
				walk(next)
			} else if !gone && !seen[o.Node] {
				seen[o.Node] = true
				out = append(out, o)
			}
		}
	}
	walk(os)
	return out
}

// TurnKey names a turn of a session, as its source record does.
func TurnKey(session, id string) SHA { return SumString(session + "\n" + id) }

// TypeLift is the type of a Lift.
const TypeLift = "lift"

// Lift says that a person had an object read again of which a tombstone barred
// something. It holds for what was admitted up to Admit: what is admitted later and
// forgotten again is barred again.
type Lift struct {
	V       int       `json:"v"`
	Type    string    `json:"type"` // "lift"
	Level   Level     `json:"level"`
	Tenant  string    `json:"tenant"`
	Project string    `json:"project"`
	Raw     SHA       `json:"raw"`   // sha256 of the object's bytes
	Admit   int64     `json:"admit"` // the last admit line then
	At      time.Time `json:"at"`
}

// Replacement names a source record and the one that stands for it now.
type Replacement struct {
	Old SHA `json:"old"`
	New SHA `json:"new"`
}

// Scrubbed is a blob's text and its newly redacted form, with what was changed.
type Scrubbed struct {
	Old   SHA    `json:"old"`
	New   SHA    `json:"new"`
	Edits []Edit `json:"edits"` // ascending, apart
}

// Edit puts a redaction mark in the place of text [Start,End).
type Edit struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Mark  string `json:"mark"`
}

// Moved is where text [from,to) of the old blob stands in the new one; an end
// inside an edit moves to the mark's end. touched says that an edit changed
// the text.
func (s *Scrubbed) Moved(from, to int) (newFrom, newTo int, touched bool) {
	shift := 0 // of what stands behind the edits so far
	newFrom, newTo = -1, -1
	for _, e := range s.Edits {
		if newFrom < 0 && from < e.End {
			newFrom = from + shift
			if from > e.Start {
				newFrom = e.Start + shift
			}
		}
		if newTo < 0 && to <= e.Start {
			newTo = to + shift
		}
		touched = touched || e.Start < to && e.End > from
		shift += len(e.Mark) - (e.End - e.Start)
		if newTo < 0 && to <= e.End {
			newTo = e.End + shift
		}
	}
	if newFrom < 0 {
		newFrom = from + shift
	}
	if newTo < 0 {
		newTo = to + shift
	}
	return newFrom, newTo, touched
}
