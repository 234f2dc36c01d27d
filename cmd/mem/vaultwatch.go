package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// watchSettle is how long a file must be left alone before it is read: editors
// write in several steps.
const watchSettle = 500 * time.Millisecond

// watched is a folder under watch.
type watched struct {
	*vaultSync
	etag  string       // of the listing that the folder is in step with
	local string       // what the folder looked like then
	told  []vaultNamed // refusals that were named
}

// watchVaults keeps folders in step until ctx ends, which is no error. Folder and
// server are looked at in turn rather than waited for: it works on every file
// system, network drives among them, and a look at a state that is known costs one
// request without a body.
func (a *app) watchVaults(ctx context.Context, f vaultFlags) error {
	all := map[string]*watched{}
	defer func() {
		for _, w := range all {
			w.close()
		}
	}()
	down := ""
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	for first := true; ; first = false {
		err := a.watchOnce(ctx, f, all)
		switch {
		case ctx.Err() != nil:
			return a.watchEnds()
		case err != nil && first:
			return err // a wrong name or folder is said at once
		case err != nil && err.Error() != down:
			down = err.Error()
			fmt.Fprintf(a.err, "mem: %v; trying again every %v\n", err, f.every)
		case err == nil && down != "":
			down = ""
			fmt.Fprintln(a.err, "mem: in step again")
		}
		if first {
			fmt.Fprintf(a.err, "mem: watching %s; Ctrl-C ends it\n", f.out)
		}
		select {
		case <-ctx.Done():
			return a.watchEnds()
		case <-tick.C:
		}
	}
}

func (a *app) watchEnds() error {
	fmt.Fprintln(a.err, "mem: watch ended; what you write now goes to the log with the next mem vault")
	return nil
}

// watchOnce looks at every project's folder.
func (a *app) watchOnce(ctx context.Context, f vaultFlags, all map[string]*watched) error {
	cl, err := a.client() // a server that was started again has other addresses
	if err != nil {
		return err
	}
	projects, err := a.vaultProjects(ctx, cl)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range projects {
		w := all[p]
		if w == nil {
			w = &watched{vaultSync: &vaultSync{project: p, out: f.out, evidence: f.evidence}}
			all[p] = w
		}
		w.client = cl
		if err := a.watchFolder(ctx, w); err != nil {
			if len(projects) > 1 {
				err = fmt.Errorf("%s: %w", p, err)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (a *app) watchFolder(ctx context.Context, w *watched) error {
	etag, changed, err := w.changed(ctx)
	if err != nil {
		return err
	}
	local, busy := w.look(time.Now())
	if busy || !changed && w.etag != "" && local == w.local {
		return nil
	}
	r, err := w.sync(ctx)
	if err != nil {
		return err
	}
	// In step is what a whole pass found nothing to do in: what was saved while the
	// pages were written shows in the next.
	w.etag, w.local = "", ""
	if !r.unsettled && r.Written+r.Removed+r.Saved == 0 {
		w.etag, w.local = etag, local
	}
	news := slices.DeleteFunc(slices.Clone(r.Refused), func(x vaultNamed) bool { return slices.Contains(w.told, x) })
	w.told = r.Refused
	r.Refused = news
	if r.Written+r.Removed+r.Saved+len(r.Aside)+len(r.Masked)+len(r.Refused) == 0 {
		return nil
	}
	return a.printVault(r)
}

// changed asks whether the listing is another than the one that the folder is in
// step with.
func (w *watched) changed(ctx context.Context) (etag string, changed bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.client.base+"/memory/vault"+w.query(), nil)
	if err != nil {
		return "", false, err
	}
	req.Header.Set("Authorization", "Bearer "+w.client.token)
	if w.etag != "" {
		req.Header.Set("If-None-Match", w.etag)
	}
	resp, err := w.client.http.Do(req)
	if err != nil {
		return "", false, noServer{fault.At(fault.Unavailable, w.client.base, "start it with: mem up", "%v", errors.Unwrap(err))}
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified:
		return w.etag, false, nil
	case resp.StatusCode >= 300:
		return "", false, problem(resp)
	}
	return resp.Header.Get("ETag"), true, nil
}

// look is what the pages' files look like from outside, by name, size and time;
// busy while one was written just now.
func (w *watched) look(now time.Time) (local string, busy bool) {
	if w.root == nil {
		return "", false
	}
	var b strings.Builder
	for _, p := range w.paths {
		st, err := w.root.Stat(p)
		if err != nil {
			fmt.Fprintf(&b, "%s -\n", p)
			continue
		}
		if d := now.Sub(st.ModTime()); d >= 0 && d < watchSettle {
			busy = true
		}
		fmt.Fprintf(&b, "%s %d %d\n", p, st.Size(), st.ModTime().UnixNano())
	}
	return string(memory.SumString(b.String())), busy
}
