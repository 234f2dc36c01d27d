package forget

import (
	"context"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// apply does what the tombstone demands, "done" and "proved" last. Without a plan, as
// after a death, the words are those of the texts that still stand.
func (f *forgetter) apply(ctx context.Context, p *plan) error {
	t, err := f.Log.Tombstone(ctx, f.project, f.tombstone)
	if err != nil {
		return err
	}
	f.report.Tombstone = f.tombstone
	if t.Target != nil {
		f.report.Target = *t.Target
	}
	for _, b := range t.Blobs {
		f.all[b.Old] = b
	}
	if p == nil {
		if err := f.recall(ctx, t); err != nil {
			return err
		}
	}
	if !f.last.Done {
		if err := f.log(ctx, t); err != nil {
			return err
		}
	}
	if err := f.prove(ctx, t); err != nil {
		return err
	}
	f.report.At = f.Now().UTC()
	if err := f.keep(ctx); err != nil {
		return err
	}
	st := f.last
	st.Proved = true
	return f.state(ctx, st)
}

// recall finds the words again as far as the old texts still stand.
func (f *forgetter) recall(ctx context.Context, t *memory.Tombstone) error {
	f.begin("read")
	parts, err := f.readParts(ctx)
	if err != nil {
		return err
	}
	for _, b := range t.Blobs {
		text, err := f.Log.Blob(ctx, f.project, b.Old)
		if fault.Is(err, fault.NotFound) {
			continue // an earlier try came as far as this
		}
		if err != nil {
			return err
		}
		for _, e := range b.Edits {
			if e.End <= len(text) {
				f.words.add(string(text[e.Start:e.End]), f.Count)
			}
		}
	}
	// Of the parts that the tombstone changes the new form counts, whether or not the stub
	// of the old one stands.
	now := map[memory.SHA]memory.SHA{}
	for _, s := range t.Sources {
		now[s.Old] = s.New
	}
	var changed []planned
	for _, pt := range parts {
		next, ok := now[pt.key()]
		if !ok {
			continue
		}
		_, chunks, err := f.Log.Source(ctx, f.project, next)
		if err != nil {
			return err
		}
		changed = append(changed, planned{part: pt, next: chunks})
	}
	f.chunks = map[int64][]memory.SHA{}
	for _, pt := range parts {
		f.chunks[pt.line.Seq] = pt.src.Chunks
	}
	for _, c := range changed {
		f.chunks[c.line.Seq] = nil
		for i := range c.next {
			f.chunks[c.line.Seq] = append(f.chunks[c.line.Seq], c.next[i].SHA256)
		}
	}
	f.report.Removed.Sources, f.report.Removed.Blobs = len(changed), len(t.Blobs)
	seen := map[memory.SHA]bool{}
	for _, pt := range parts {
		if seen[pt.src.RawSHA256] || !slices.Contains(t.Raws, pt.src.RawSHA256) {
			continue
		}
		seen[pt.src.RawSHA256] = true
		f.report.Objects = append(f.report.Objects, name(pt.src.Object))
	}
	f.report.Turns = len(t.Turns)
	return f.remaining(ctx, changed, parts)
}

// log cleans the log.
func (f *forgetter) log(ctx context.Context, t *memory.Tombstone) error {
	f.begin("erase")
	for _, r := range t.Sources {
		if err := f.Log.ForgetSource(ctx, f.project, r.Old, f.tombstone); err != nil {
			return err
		}
	}
	// No slice of the gate that begins later uses what was read before this.
	st := f.last
	st.Marked = true
	if err := f.state(ctx, st); err != nil {
		return err
	}
	lines := map[memory.SHA]bool{} // source records that an admit line leads to
	live := map[memory.SHA]bool{}
	var objects []memory.Source
	f.chunks = map[int64][]memory.SHA{}
	for line, err := range f.Log.Admits(ctx, f.project, 0) {
		if err != nil {
			return err
		}
		for key := line.Source; ; {
			lines[key] = true
			next, src, _, err := f.Log.Next(ctx, f.project, key)
			if err != nil {
				return err
			}
			if next == "" {
				f.chunks[line.Seq] = src.Chunks
				for _, c := range src.Chunks {
					live[c] = true
				}
				objects = append(objects, src)
				break
			}
			if lines[next] && next == key {
				return fault.New(fault.Corrupt, "source %s stands for itself; run mem verify", key.Short())
			}
			key = next
		}
	}
	f.report.Removed.Evidence, f.report.Removed.Memories, f.report.Removed.Gates = 0, 0, 0
	f.report.Streams = map[string]*Stream{}
	// What a slice had in hand when this began is found in a second round: it waits for
	// each stream's lease.
	texts := map[memory.SHA]bool{}
	for range 2 {
		if err := f.each(ctx, func(name string, below lower) (*stream, error) {
			s, err := f.work(ctx, name, below)
			if err != nil {
				return nil, err
			}
			for m := range s.memories { // a synthesis keeps what it read as blobs
				texts[m.text] = true
			}
			return s, nil
		}); err != nil {
			return err
		}
	}
	for name, s := range f.report.Streams {
		if *s == (Stream{}) {
			delete(f.report.Streams, name)
			continue
		}
		f.report.Removed.Evidence += s.Evidence
		f.report.Removed.Memories += s.Memories
		f.report.Removed.Gates += s.Gates
		f.report.Removed.Vectors += s.Vectors
	}
	if err := f.shelves(ctx); err != nil {
		return err
	}
	if err := f.lessons(ctx, t); err != nil {
		return err
	}
	for _, b := range t.Blobs {
		if b.Old != b.New && !live[b.Old] { // one may have been learned again since an earlier try
			if err := f.Log.DropBlob(ctx, f.project, b.Old); err != nil {
				return err
			}
		}
		f.progress()
	}
	for sha := range texts {
		if !live[sha] && sha != memory.SumString("") {
			if err := f.Log.DropBlob(ctx, f.project, sha); err != nil {
				return err
			}
		}
	}
	if err := f.loose(ctx, t, lines, live); err != nil {
		return err
	}
	if err := f.uploads(ctx, t, objects); err != nil {
		return err
	}
	// What a reader shortened may be a text of the source; none of it is needed.
	if err := f.Log.DropOriginals(ctx, f.project); err != nil {
		return err
	}
	if err := f.versions(ctx); err != nil {
		return err
	}
	st.Done = true
	return f.state(ctx, st)
}

// shelves erases promoted skills that hold such words, and bodies of dead letters.
func (f *forgetter) shelves(ctx context.Context) error {
	for key, err := range f.Log.RecordKeys(ctx, f.project, eventlog.Skills) {
		if err != nil {
			return err
		}
		recs, err := f.Log.Records(ctx, f.project, eventlog.Skills, key)
		if err != nil {
			if fault.Is(err, fault.Unavailable) {
				return err
			}
			continue // mem verify names it
		}
		for _, r := range recs {
			sk, ok, err := eventlog.AsSkill(r)
			if err != nil || !ok || sk.Text == "" || !f.words.in(sk.Text) {
				continue
			}
			if err := f.Log.EraseRecords(ctx, f.project, eventlog.Skills, key, f.tombstone); err != nil {
				return err
			}
			f.report.Removed.Skills = append(f.report.Removed.Skills, sk.Name)
		}
	}
	slices.Sort(f.report.Removed.Skills)
	f.report.Removed.Skills = slices.Compact(f.report.Removed.Skills)
	for id, text := range f.Log.SetAside(ctx, f.project) {
		if !f.words.find(text, true) && !f.words.in(text) {
			continue
		}
		if err := f.Log.EraseDead(ctx, id, f.tombstone); err != nil {
			return err
		}
		f.report.Removed.Dead++
	}
	return nil
}

// loose removes what work left that died before its commit: source records that no admit
// line leads to, and blobs that none of them and no step names, where they hold what is
// forgotten.
func (f *forgetter) loose(ctx context.Context, t *memory.Tombstone, lines, live map[memory.SHA]bool) error {
	for key, err := range f.Log.SourceKeys(ctx, f.project) {
		if err != nil {
			return err
		}
		if lines[key] {
			continue
		}
		_, src, chunks, err := f.Log.Next(ctx, f.project, key)
		if err != nil && fault.Is(err, fault.Unavailable) {
			return err
		}
		drop := slices.Contains(t.Raws, src.RawSHA256)
		for i := range chunks {
			_, gone := f.all[chunks[i].SHA256]
			drop = drop || gone && !live[chunks[i].SHA256]
		}
		if err != nil || !drop {
			continue
		}
		if err := f.Log.DropLooseSource(ctx, f.project, key); err != nil {
			return err
		}
		f.report.Removed.Loose++
	}
	if len(f.words) == 0 {
		return nil
	}
	for sha, err := range f.Log.Blobs(ctx, f.project) {
		if err != nil {
			return err
		}
		if live[sha] {
			continue
		}
		text, err := f.Log.Blob(ctx, f.project, sha)
		if fault.Is(err, fault.Unavailable) {
			return err
		}
		f.progress()
		if err != nil || !f.words.in(string(text)) && !f.words.find(string(text), true) {
			continue
		}
		// A reply that a step names stays, empty, as the log says what it was.
		if err := f.Log.DropBlob(ctx, f.project, sha); err != nil {
			return err
		}
		f.report.Removed.Loose++
	}
	return nil
}

// uploads makes the receipts of what is barred say so, and removes the uploads where
// that was asked for.
func (f *forgetter) uploads(ctx context.Context, t *memory.Tombstone, objects []memory.Source) error {
	reason := "tombstone " + f.tombstone.Short() + " bars it; mem learn --again reads it anew"
	forget := func(id memory.SHA) error {
		changed, err := f.Log.ForgetReceipt(ctx, id, reason)
		f.report.Removed.Receipts += b2i(changed)
		return err
	}
	barred := map[memory.SHA]bool{}
	for _, r := range t.Raws {
		barred[r] = true
	}
	seen := map[memory.SHA]bool{}
	stay := map[string]bool{}
	for i := range objects {
		s := &objects[i]
		if !barred[s.RawSHA256] {
			continue
		}
		bucket, key, _ := strings.Cut(s.Object, "/")
		id := eventlog.ReceiptID(bucket, key, s.ETag)
		if seen[id] {
			continue
		}
		seen[id] = true
		if err := forget(id); err != nil {
			return err
		}
		stay[key] = true
	}
	if f.Inbox == nil {
		return nil
	}
	if !t.Inbox {
		for key := range stay {
			if _, err := f.Inbox.Head(ctx, key); err == nil {
				f.kept("the upload " + key + " (--inbox removes it)")
			}
		}
		slices.Sort(f.report.Kept)
		return nil
	}
	remove := func(key string) error {
		if err := f.Inbox.Delete(ctx, key); err != nil {
			return err
		}
		n, err := f.Inbox.PurgeVersions(ctx, key, true)
		f.report.Removed.Versions += n
		if !slices.Contains(f.report.Removed.Inbox, key) {
			f.report.Removed.Inbox = append(f.report.Removed.Inbox, key)
		}
		return err
	}
	for key := range stay {
		if err := remove(key); err != nil {
			return err
		}
	}
	// Other uploads of the same bytes, and what an upload was made of.
	for _, prefix := range []string{f.project + "/", "_auto/"} {
		for info, err := range f.Inbox.List(ctx, prefix) {
			if err != nil {
				return err
			}
			id := eventlog.ReceiptID(f.Inbox.Name(), info.Key, info.ETag)
			r, ok, err := f.Log.ReceiptByID(ctx, id)
			if err != nil || !ok {
				if fault.Is(err, fault.Unavailable) {
					return err
				}
				continue
			}
			hit := len(r.Parts) > 0
			for _, p := range r.Parts {
				hit = hit && p.Project == f.project && barred[p.RawSHA256]
			}
			if !hit {
				continue
			}
			if err := forget(id); err != nil {
				return err
			}
			if err := remove(info.Key); err != nil {
				return err
			}
		}
	}
	slices.Sort(f.report.Removed.Inbox)
	return nil
}

// versions removes the old versions of objects in a bucket that keeps them.
func (f *forgetter) versions(ctx context.Context) error {
	at := f.Tenant + "/" + f.project + "/"
	for _, prefix := range []string{"log/" + at, "blob/" + at, "vector/" + at, "derived/fold/" + at, "derived/vault/" + at, "derived/ccr/" + at, "derived/exports/", "receipts/" + f.Tenant + "/", "ops/dead/" + f.Tenant + "/"} {
		n, err := f.Store.PurgeVersions(ctx, prefix, false)
		f.report.Removed.Versions += n
		if err != nil {
			return err
		}
	}
	return nil
}
