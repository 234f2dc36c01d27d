package vault

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Region is one Notes region: what stands in it, and the records it comes from.
type Region struct {
	Note   string // a question's id, memory.NoteIndex or memory.NoteTimeline
	Orphan bool   // no question has it any more
	Text   string // what stands behind the heading line
	Sum    memory.SHA
	Heads  []KeptNote // the present records; more than one are a conflict unless they say the same
	older  []KeptNote // what they and others replaced
}

// Conflict reports whether several versions stand in the region.
func (r *Region) Conflict() bool {
	for i := range r.Heads {
		if r.Heads[i].TextSHA != r.Heads[0].TextSHA {
			return true
		}
	}
	return false
}

// question is what Regions needs of a question that is asked.
type question struct{ id, stream string }

// questionsOf are the questions of a model under their present wordings.
func questionsOf(m *Model) []question {
	qs := make([]question, 0, len(m.Questions))
	for i := range m.Questions {
		qs = append(qs, question{m.Questions[i].ID, m.Questions[i].Asked})
	}
	return qs
}

// MovedOrigin is the Origin of the records that Moves gives.
const MovedOrigin = "moved"

// Moves are the records to append before pages are shown: one for each present note
// that stands on the page of a question under another id or wording than the record
// says. It says the same text under what is asked now, so that the note goes on from
// there when the question changes again. What is given twice is the same record: a
// move keeps the time of the note.
func Moves(m *Model) (out []memory.Note) {
	qs := questionsOf(m)
	asked := make(map[string]string, len(qs))
	for _, q := range qs {
		asked[q.id] = q.stream
	}
	regions := Regions(m.Notes, qs)
	for _, at := range slices.Sorted(maps.Keys(regions)) {
		r := regions[at]
		stream, ok := asked[r.Note]
		if r.Orphan || !ok {
			continue
		}
		for _, h := range r.Heads {
			if h.Note.Note == r.Note && wordingOf(h.Note.Stream) == wordingOf(stream) {
				continue
			}
			n := h.Note
			n.Note, n.Stream, n.Prev, n.Origin = r.Note, stream, []memory.SHA{h.Key}, MovedOrigin
			out = append(out, n)
		}
	}
	return out
}

// Regions finds where every note stands now. A note follows its question: by the
// wording under whatever id, else by the id under whatever wording, else it is an
// orphan under the id it had. Moves says what keeps it there.
func Regions(notes []KeptNote, questions []question) map[string]Region {
	byID, byWording := map[string]bool{}, map[string][]string{}
	for _, q := range questions {
		byID[q.id] = true
		byWording[wordingOf(q.stream)] = append(byWording[wordingOf(q.stream)], q.id)
	}
	where := func(n *memory.Note) (string, bool) {
		if n.Note == memory.NoteIndex || n.Note == memory.NoteTimeline {
			return n.Note, false
		}
		if same := byWording[wordingOf(n.Stream)]; n.Stream != "" && len(same) > 0 {
			if slices.Contains(same, n.Note) {
				return n.Note, false
			}
			return slices.Min(same), false
		}
		return n.Note, !byID[n.Note]
	}
	notes = slices.Clone(notes)
	slices.SortFunc(notes, func(a, b KeptNote) int {
		return cmp.Or(a.Note.At.Compare(b.Note.At), cmp.Compare(a.Key, b.Key))
	})
	replaced, byKey := map[memory.SHA]bool{}, map[memory.SHA]*KeptNote{}
	for i := range notes {
		byKey[notes[i].Key] = &notes[i]
		for _, p := range notes[i].Note.Prev {
			replaced[p] = true
		}
	}
	out := map[string]Region{}
	name := func(n *memory.Note) string {
		note, orphan := where(n)
		if orphan {
			return orphanPrefix + note
		}
		return note
	}
	for i := range notes {
		n := &notes[i]
		if replaced[n.Key] || n.Note.Erased != "" {
			continue
		}
		at := name(&n.Note)
		r := out[at]
		r.Note, r.Orphan = strings.TrimPrefix(at, orphanPrefix), strings.HasPrefix(at, orphanPrefix)
		r.Heads = append(r.Heads, *n)
		// What led to it belongs to it, wherever it stood then.
		seen := map[memory.SHA]bool{}
		todo := slices.Clone(n.Note.Prev)
		for len(todo) > 0 {
			k := todo[0]
			todo = todo[1:]
			if p := byKey[k]; p != nil && !seen[k] {
				seen[k] = true
				r.older = append(r.older, *p)
				todo = append(todo, p.Note.Prev...)
			}
		}
		out[at] = r
	}
	for at, r := range out {
		r.Text = compose(r.Heads)
		r.Sum = memory.SumString(r.Text)
		out[at] = r
	}
	return out
}

// orphanPrefix keeps the notes of questions that are asked no more apart from those
// that are: "/" is in no id.
const orphanPrefix = "orphans/"

// wordingOf is what of a stream's name says the wording.
func wordingOf(stream string) string {
	_, sha, ok := strings.Cut(stream, "@")
	if !ok {
		return stream // ad-hoc: the name is its own
	}
	sha, _, _ = strings.Cut(sha, ".")
	return sha
}

// compose is the text of a region: that of its one record, or all versions under
// a callout, verbatim.
func compose(heads []KeptNote) string {
	var texts []KeptNote
	for _, h := range heads {
		if !slices.ContainsFunc(texts, func(o KeptNote) bool { return o.TextSHA == h.TextSHA }) {
			texts = append(texts, h)
		}
	}
	switch len(texts) {
	case 0:
		return ""
	case 1:
		return texts[0].Note.Text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n> [!warning] %d versions of these notes, written side by side\n> All are kept. Make of them what should stand here: the next edit of this region takes the place of all. #mneme/conflict\n", len(texts))
	for i, t := range texts {
		fmt.Fprintf(&b, "\n**Version %d of %d**, %s\n\n", i+1, len(texts), t.Note.At.UTC().Format("2006-01-02 15:04:05"))
		b.WriteString(t.Note.Text)
		if !strings.HasSuffix(t.Note.Text, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Edit says what becomes of a region's new text, which was written over the text
// whose sha256 is base ("" where nobody knows). new is false where the log holds
// the text already. Else prev are the records that the new one replaces: all
// present ones where base is what stands there now; the one that was edited where
// others came after it, so that both stand side by side; none where base is
// unknown.
func (r *Region) Edit(base memory.SHA, text string) (prev []memory.SHA, isNew bool) {
	sum := memory.SumString(text)
	// White space where no note stands is what editors add to a file, not a note.
	if sum == r.sum() || len(r.Heads) == 0 && strings.TrimSpace(text) == "" {
		return nil, false
	}
	if base == r.sum() {
		for _, h := range r.Heads {
			prev = append(prev, h.Key)
		}
		return prev, true
	}
	has := func(ns []KeptNote, sum memory.SHA) (key memory.SHA, ok bool) {
		for _, n := range ns {
			if n.TextSHA == sum {
				key, ok = n.Key, true // the last such
			}
		}
		return key, ok
	}
	if _, ok := has(r.Heads, sum); ok {
		return nil, false
	}
	for _, ns := range [][]KeptNote{r.Heads, r.older} {
		if key, ok := has(ns, base); ok && base != "" {
			return []memory.SHA{key}, true
		}
	}
	if _, ok := has(r.older, sum); ok {
		return nil, false // an old folder, which nobody has edited
	}
	return nil, true
}

func (r *Region) sum() memory.SHA {
	if r.Sum == "" {
		return memory.SumString("")
	}
	return r.Sum
}

// RegionFor finds the region that an edit means: that of the page which the note
// has now, by the stream of its wording, by where its records moved, or by its id.
// reg.Note and stream are what a new record says of the question. false where no page
// has such a note.
func RegionFor(m *Model, note, stream string) (reg Region, asked string, ok bool) {
	qs := questionsOf(m)
	regions := Regions(m.Notes, qs)
	if note == memory.NoteIndex || note == memory.NoteTimeline {
		reg, ok = regions[note]
		if !ok {
			reg.Note = note
		}
		return reg, "", true
	}
	if stream != "" { // the question may have got another id since the page was written
		same := ""
		for _, q := range qs {
			if wordingOf(q.stream) == wordingOf(stream) && (same == "" || q.id == note || same != note && q.id < same) {
				same = q.id
			}
		}
		if same != "" {
			reg = regions[same]
			reg.Note = same
			return reg, stream, true
		}
		// Its page may be older than two changes of the question: the notes that stood on
		// it say where they went.
		for _, q := range qs {
			stood := func(n KeptNote) bool {
				return n.Note.Note == note && wordingOf(n.Note.Stream) == wordingOf(stream)
			}
			if r := regions[q.id]; slices.ContainsFunc(r.older, stood) {
				return r, q.stream, true
			}
		}
	}
	for _, q := range qs {
		if q.id == note {
			reg = regions[note]
			reg.Note = note
			return reg, q.stream, true
		}
	}
	if reg, ok = regions[orphanPrefix+note]; ok {
		return reg, cmp.Or(stream, reg.Heads[len(reg.Heads)-1].Note.Stream), true
	}
	// A page whose question was taken away meanwhile: what was written on it is kept.
	if memory.ValidQuestionID(note) || strings.HasPrefix(note, "adhoc-") && memory.ValidName(note) {
		return Region{Note: note, Orphan: true}, stream, true
	}
	return Region{}, "", false
}

// RegionOf is the Notes region of a page.
func (v *Vault) RegionOf(f *File) Region {
	key := f.Note
	if strings.HasPrefix(f.Path, orphanPrefix) {
		key = orphanPrefix + key
	}
	return v.Regions[key]
}
