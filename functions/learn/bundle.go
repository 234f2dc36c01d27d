package learn

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/gitbundle"
	"github.com/mneme-ai/mneme/shared/gitlog"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// errBundle says that an object is a git bundle: its text is packed, and is
// admitted by way of an object that has it as it stands.
var errBundle = errors.New("a git bundle")

// errSlow is the cause of a context that ended by Config.BundleBudget.
var errSlow = errors.New("the bundle takes too long")

// bundle makes a git log of a bundle, stores it in the inbox, admits it and
// writes the bundle's receipt, in this order. Each step gives the same again
// when it is repeated: the same bundle has the same log, which has the same key,
// is created once and has a receipt of its own. So a process that is killed
// anywhere leaves no more than a log that the next delivery, or the sweep that
// finds it in the inbox, admits.
func (f *Function) bundle(ctx context.Context, o event.Object, opt objectOptions) (Result, error) {
	select {
	case f.unpacking <- struct{}{}:
		defer func() { <-f.unpacking }()
	case <-ctx.Done():
		return Result{}, fault.As(fault.Unavailable, context.Cause(ctx))
	}
	schemas, err := f.cfg.Catalog.Schemas(ctx)
	if err != nil {
		return Result{}, err
	}
	r := eventlog.Receipt{Bucket: o.Bucket, Key: o.Key, ETag: o.ETag, Schemas: schemas.Version, At: f.cfg.Now().UTC()}
	derived, st, etag, err := f.unpack(ctx, o)
	if etag != "" {
		r.ETag = etag // what was read
	}
	switch {
	case fault.Is(err, fault.Invalid), fault.Is(err, fault.Corrupt):
		if err := f.bury(ctx, r, err); err != nil {
			return Result{}, err
		}
		r.Outcome, r.Reason = OutcomeRefused, err.Error()
		if hint := fault.HintOf(err); hint != "" {
			r.Reason += " (" + hint + ")"
		}
		return f.answer(ctx, r)
	case err != nil:
		return Result{}, err
	case st.Commits == 0:
		r.Outcome, r.Reason = OutcomeEmpty, "no commit in the bundle"
		return f.answer(ctx, r)
	}
	if opt.again {
		if err := f.cfg.Log.ReadmitReceipt(ctx, eventlog.ReceiptID(derived.Bucket, derived.Key, derived.ETag)); err != nil {
			return Result{}, err
		}
	}
	res, err := f.object(ctx, derived, opt)
	if err != nil {
		return Result{}, err
	}
	r.Outcome, r.Parts, r.Counts, r.Derived = res.Receipt.Outcome, res.Receipt.Parts, res.Receipt.Counts, derived.Key
	r.Reason = unpacked(st, derived.Key)
	why := res.Receipt.Reason
	if res.Repeat && r.Outcome == OutcomeAdmitted {
		r.Outcome, why = OutcomeDuplicate, "everything in it is admitted already"
	}
	if why != "" {
		r.Reason += "; " + why
	}
	out, err := f.answer(ctx, r)
	// The parts are announced though the log's receipt stood already: who wrote
	// it may have been killed before that.
	out.Events = f.ready(res.Receipt)
	return out, err
}

// answer writes the receipt of a bundle, which is last.
func (f *Function) answer(ctx context.Context, r eventlog.Receipt) (Result, error) {
	if err := f.cfg.Log.PutReceipt(ctx, r); err != nil {
		return Result{}, err
	}
	return Result{Receipt: r}, nil
}

// unpacked says what was read, and names what was not.
func unpacked(st gitbundle.Stats, key string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "git bundle, %d commits, read as %s", st.Commits, key)
	if st.Partial > 0 {
		fmt.Fprintf(&b, "; of %d commits (%s) not all paths or symbols are known, since the bundle leaves out what they follow from", st.Partial, some(st.PartialSHAs, st.Partial))
	}
	if st.Lost > 0 {
		fmt.Fprintf(&b, "; %d commits or tags (%s) are named and not in it", st.Lost, some(st.LostSHAs, st.Lost))
	}
	return b.String()
}

// some lists names of which there may be more.
func some(names []string, n int) string {
	short := make([]string, len(names))
	for i, s := range names {
		short[i] = s[:min(12, len(s))]
	}
	if n > len(names) {
		short = append(short, "…")
	}
	return strings.Join(short, ", ")
}

// unpack stores the log of a bundle. Of a bundle without commits it stores none.
func (f *Function) unpack(ctx context.Context, o event.Object) (derived event.Object, st gitbundle.Stats, etag string, err error) {
	project, name, _, err := splitKey(o.Key)
	if err != nil {
		return derived, st, "", err
	}
	if project == autoProject {
		return derived, st, "", fault.At(fault.Invalid, "key "+o.Key, "upload it to <project>/"+path.Base(name)+", or mem learn --project", "a git bundle names no folder and no remote, so its project has to be named")
	}
	if name, err = fileName(gitlog.FileName(path.Base(name)), ""); err != nil {
		return derived, st, "", err
	}
	body, info, err := f.cfg.Inbox.Get(ctx, o.Key)
	if errors.Is(err, objstore.ErrNotFound) {
		return derived, st, "", fault.At(fault.Unavailable, o.Bucket+"/"+o.Key, "upload it again", "the object is not there")
	}
	if err != nil {
		return derived, st, "", err
	}
	defer body.Close()
	in, err := transcript.Expand(body)
	if err != nil {
		return derived, st, "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()

	file, err := os.CreateTemp("", "mneme-git-log-")
	if err != nil {
		return derived, st, "", fault.At(fault.Unavailable, "temporary file", "give the function a folder for temporary files (TMPDIR)", "%v", err)
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	sum := sha256.New()
	w := bufio.NewWriterSize(io.MultiWriter(file, sum), 256<<10)
	enc := gitlog.NewEncoder(w)
	limited, cancel := context.WithTimeoutCause(ctx, f.cfg.BundleBudget, errSlow)
	defer cancel()
	st, err = gitbundle.Read(limited, in, f.cfg.Bundle, func(c gitlog.Commit) error {
		return fault.As(fault.Unavailable, enc.Encode(c))
	})
	if errors.Is(err, errSlow) && ctx.Err() == nil {
		err = fault.At(fault.Invalid, "", "upload the history in parts (git bundle create part.bundle OLD..NEW), or use mem learn --git", "git bundle: not read in %v", f.cfg.BundleBudget)
	}
	if err == nil {
		err = fault.As(fault.Unavailable, w.Flush())
	}
	if err != nil || st.Commits == 0 {
		return derived, st, info.ETag, err
	}
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		return derived, st, info.ETag, fault.As(fault.Unavailable, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return derived, st, info.ETag, fault.As(fault.Unavailable, err)
	}
	derived, err = f.store(ctx, project, name, memory.SHA(hex.EncodeToString(sum.Sum(nil))), file, size)
	return derived, st, info.ETag, err
}
