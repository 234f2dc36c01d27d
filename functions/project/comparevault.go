package project

import (
	"bytes"
	"context"
	"slices"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/vault"
)

// maxPage bounds a page that is compared.
const maxPage = 256 << 20

// compareVaults renders every project's pages from the log alone and compares them with
// those that stand in the bucket, byte by byte.
func (f *Function) compareVaults(ctx context.Context, b *build, c *Comparison) error {
	if !f.withVault() {
		return nil
	}
	projects, err := f.cfg.Log.Projects(ctx)
	if err != nil {
		return err
	}
	b.of = int64(len(projects))
	b.done.Store(0)
	for _, p := range projects {
		b.say(phaseVault)
		if err := f.compareVault(ctx, p, c); err != nil && !f.beyond(ctx, p, err) {
			return err
		}
		b.done.Add(1)
	}
	return nil
}

// compareTries bounds how often a project is compared anew because its log went on.
const compareTries = 5

func (f *Function) compareVault(ctx context.Context, project string, c *Comparison) (err error) {
	defer fault.Wrap(&err, "vault of %s", project)
	for range compareTries {
		// Pages of an older state of the log are no difference: they are written first.
		current, err := f.vaultCurrent(ctx, project)
		if err == nil && !current {
			err = f.writeVault(ctx, project, false)
		}
		if err != nil {
			return err
		}
		next := Comparison{Pages: c.Pages, Differences: slices.Clone(c.Differences), Omitted: c.Omitted}
		if err := f.comparePages(ctx, project, &next); err != nil {
			return err
		}
		if current, err = f.vaultCurrent(ctx, project); err != nil {
			return err
		}
		if current || len(next.Differences) == len(c.Differences) {
			c.Pages, c.Differences, c.Omitted = next.Pages, next.Differences, next.Omitted
			return nil
		}
	}
	return fault.At(fault.Unavailable, "", "run it again when less is being learned", "the log went on %d times while its pages were compared", compareTries)
}

// vaultCurrent reports whether the pages in the bucket say they are of the log as it is.
func (f *Function) vaultCurrent(ctx context.Context, project string) (bool, error) {
	f.vaultMu.Lock()
	defer f.vaultMu.Unlock()
	state, err := f.vault.State(ctx, project)
	if err != nil {
		return false, err
	}
	marker, err := f.readVault(ctx, project)
	return marker.Key == state.Key(), err
}

func (f *Function) comparePages(ctx context.Context, project string, c *Comparison) error {
	f.vaultMu.Lock()
	defer f.vaultMu.Unlock()
	m, err := vault.NewReader(f.cfg.Log, f.cfg.Catalog).Load(ctx, project) // nothing that was folded before
	if err != nil {
		return err
	}
	there, err := f.standing(ctx, project)
	if err != nil {
		return err
	}
	for _, p := range vault.Render(m).Files {
		c.Pages++
		if _, ok := there[p.Path]; !ok {
			c.differs("%s: page %s is missing", project, p.Path)
			continue
		}
		delete(there, p.Path)
		have, _, err := f.cfg.Bucket.ReadAll(ctx, f.vaultPrefix(project)+p.Path, maxPage)
		if err != nil {
			return err
		}
		if !bytes.Equal(have, p.Bytes) {
			c.differs("%s: page %s has %d bytes, rendered anew %d, and they differ", project, p.Path, len(have), len(p.Bytes))
		}
	}
	left := make([]string, 0, len(there))
	for p := range there {
		left = append(left, p)
	}
	slices.Sort(left)
	for _, p := range left {
		c.differs("%s: page %s is not in the log", project, p)
	}
	return nil
}
