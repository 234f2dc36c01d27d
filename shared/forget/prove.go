package forget

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

const (
	// maxIndexWords bounds the words that an index is asked for, each a search.
	maxIndexWords = 200
	// maxPlaces bounds the places that a receipt names.
	maxPlaces = 20
	// maxObject bounds an object that is looked through: a segment or a source is smaller.
	maxObject = 256 << 20
)

func sortReceipts(rs []Receipt) {
	slices.SortStableFunc(rs, func(a, b Receipt) int { return a.At.Compare(b.At) })
}

// prove cleans what follows from the log, and looks everything through.
func (f *forgetter) prove(ctx context.Context, t *memory.Tombstone) error {
	if p := f.Projections; p != nil {
		f.begin("rebuild")
		f.progress()
		before, err := p.Rows(ctx)
		if err != nil {
			return err
		}
		if err := p.Rebuild(ctx, f.project); err != nil {
			return err
		}
		after, err := p.Rows(ctx)
		if err != nil {
			return err
		}
		f.report.Rows = map[string]*Rows{}
		for name, n := range before {
			f.report.Rows[name] = &Rows{Before: n, After: after[name]}
		}
		if err := f.versions(ctx); err != nil { // of pages and exports that were written anew
			return err
		}
	}
	f.begin("search")
	if err := f.names(ctx); err != nil {
		return err
	}
	f.report.Proof.Words = len(f.words)
	if err := f.searchStore(ctx, t); err != nil {
		return err
	}
	if p := f.Projections; p != nil {
		found, err := p.Search(ctx, f.project, f.words.some(maxIndexWords), f.words.in)
		if err != nil {
			return err
		}
		f.report.Proof.Searched = append(f.report.Proof.Searched, found...)
	} else {
		f.report.Proof.Searched = append(f.report.Proof.Searched, Searched{Where: "indexes", Skipped: "they are cleaned by the event rebuild.requested, in the function project"})
	}
	if err := f.searchInbox(ctx, t); err != nil {
		return err
	}
	f.report.OK = true
	for _, s := range f.report.Proof.Searched {
		f.report.OK = f.report.OK && s.Found == 0
	}
	return nil
}

// names takes out of the words those that stand in the sealed forms of records, which
// hold no text that can be erased: names, codes, the words of the format.
func (f *forgetter) names(ctx context.Context) error {
	had := len(f.words)
	base := "log/" + f.Tenant + "/" + f.project + "/"
	for info, err := range f.Store.List(ctx, base) {
		if err != nil {
			return err
		}
		if len(f.words) == 0 {
			break
		}
		if strings.HasPrefix(info.Key, base+"notes/") {
			continue // people's own words were taken out before
		}
		b, _, err := f.Store.ReadAll(ctx, info.Key, maxObject)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			sealed, _, err := eventlog.Seal(nil, []byte(strings.TrimSuffix(line, "\n")))
			if err != nil {
				continue
			}
			for w := range tokens(string(sealed), true) {
				delete(f.words, w)
			}
		}
		f.progress()
	}
	f.report.Proof.Names = had - len(f.words)
	return nil
}

// searchStore looks the log bucket through: what is the project's, and what is the
// tenant's and may hold something of it.
func (f *forgetter) searchStore(ctx context.Context, t *memory.Tombstone) error {
	at := f.Tenant + "/" + f.project + "/"
	for _, s := range []struct{ where, prefix string }{
		{"log", "log/" + at}, {"blobs", "blob/" + at}, {"vectors", "vector/" + at}, {"folds", "derived/fold/" + at}, {"vault", "derived/vault/" + at},
		{"exports", "derived/exports/"}, {"receipts", "receipts/" + f.Tenant + "/"}, {"dead letters", "ops/dead/" + f.Tenant + "/"}, {"operations", "ops/pointer/" + at},
	} {
		out := Searched{Where: s.where}
		if s.where == "exports" {
			// Parquet is compressed by column: what is not of the log as it stands was withdrawn
			// by the rebuild.
			out.Skipped = "exports that held it were withdrawn; they are written anew"
			if f.Projections == nil {
				out.Skipped = "they are withdrawn by the event rebuild.requested"
			}
			f.report.Proof.Searched = append(f.report.Proof.Searched, out)
			continue
		}
		for info, err := range f.Store.List(ctx, s.prefix) {
			if err != nil {
				return err
			}
			if s.where == "log" && strings.HasPrefix(info.Key, s.prefix+"notes/") {
				continue
			}
			text, err := f.read(ctx, s.where, s.prefix, info.Key)
			if fault.Is(err, fault.NotFound) {
				continue
			}
			if err != nil {
				return err
			}
			out.Searched++
			f.progress()
			if f.words.find(text, s.where != "blobs" && s.where != "vault") {
				out.Found++
				if len(out.Places) < maxPlaces {
					out.Places = append(out.Places, info.Key)
				}
			}
		}
		f.report.Proof.Searched = append(f.report.Proof.Searched, out)
	}
	originals := Searched{Where: "originals"} // of shorter forms: all were dropped
	n := 0
	for _, err := range f.Store.List(ctx, "derived/ccr/"+at) {
		if err != nil {
			return err
		}
		n++
	}
	if n > 0 {
		originals.Skipped = fmt.Sprintf("%d were stored since all of the project's were dropped", n)
	}
	f.report.Proof.Searched = append(f.report.Proof.Searched, originals)
	gone := Searched{Where: "blobs by hash"} // also where no word told the text from others
	for _, b := range t.Blobs {
		if b.Old == b.New || f.stands(b.Old) {
			continue
		}
		gone.Searched++
		if _, err := f.Log.Blob(ctx, f.project, b.Old); !fault.Is(err, fault.NotFound) {
			if err != nil && fault.Is(err, fault.Unavailable) {
				return err
			}
			gone.Found++
		}
	}
	f.report.Proof.Searched = append(f.report.Proof.Searched, gone)
	return nil
}

// stands reports whether a part has a chunk of that text: it was learned again.
func (f *forgetter) stands(sha memory.SHA) bool {
	for _, c := range f.chunks {
		if slices.Contains(c, sha) {
			return true
		}
	}
	return false
}

func (f *forgetter) read(ctx context.Context, where, prefix, key string) (string, error) {
	if where == "blobs" {
		b, err := f.Log.Blob(ctx, f.project, memory.SHA(strings.TrimPrefix(key, prefix)))
		if err == nil || !fault.Is(err, fault.Corrupt) && !fault.Is(err, fault.Invalid) {
			return string(b), err
		}
	}
	b, _, err := f.Store.ReadAll(ctx, key, maxObject)
	return string(b), err
}

// searchInbox looks whether the uploads that were to go are gone.
func (f *forgetter) searchInbox(ctx context.Context, t *memory.Tombstone) error {
	if f.Inbox == nil || !t.Inbox {
		return nil
	}
	out := Searched{Where: "inbox"}
	for _, key := range f.report.Removed.Inbox {
		out.Searched++
		_, err := f.Inbox.Head(ctx, key)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		out.Found++
		out.Places = append(out.Places, key)
	}
	f.report.Proof.Searched = append(f.report.Proof.Searched, out)
	return nil
}
