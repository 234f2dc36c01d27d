package memory

// TombstoneScrub is the kind of a tombstone that newer redaction rules cause.
const TombstoneScrub = "scrub"

// Tombstone says which texts were taken out of the log and what stands in
// their place. Erased records carry its sha256, so that every gap in the log
// leads here. It holds no text but redaction marks.
//
//	{"v":1,"type":"tombstone","level":"-","tenant":"local","project":"shop","kind":"scrub","rules":"r3",
//	 "sources":[{"old":"1f0a…","new":"77c2…"}],"blobs":[{"old":"9c41…","new":"d0e5…","edits":[{"start":118,"end":158,"mark":"[REDACTED:api_key:3fa9c1]"}]}]}
type Tombstone struct {
	V       int           `json:"v"`
	Type    string        `json:"type"` // "tombstone"
	Level   Level         `json:"level"`
	Tenant  string        `json:"tenant"`
	Project string        `json:"project"`
	Kind    string        `json:"kind"`  // TombstoneScrub
	Rules   string        `json:"rules"` // version of the redaction rules that were applied
	Sources []Replacement `json:"sources"`
	Blobs   []Scrubbed    `json:"blobs"` // chunk texts and raw model replies
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
