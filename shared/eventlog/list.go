package eventlog

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Projects lists the projects that have anything in the log, sorted. It costs
// one LIST call for each, whatever they hold.
func (l *Log) Projects(ctx context.Context) (_ []string, err error) {
	defer fault.Wrap(&err, "projects(%s)", l.tenant)
	if !memory.ValidName(l.tenant) {
		return nil, fault.New(fault.Invalid, "tenant %q is not a name", clip([]byte(l.tenant)))
	}
	return l.folders(ctx, "log/"+l.tenant+"/")
}

// Streams lists the project's question streams, sorted, `_synthesis` and
// ad-hoc streams included; the admit stream is not among them. It costs one
// LIST call for each.
func (l *Log) Streams(ctx context.Context, project string) (_ []string, err error) {
	defer fault.Wrap(&err, "streams(%s)", project)
	if err := l.checkProject(project); err != nil {
		return nil, err
	}
	return l.folders(ctx, "log/"+l.tenant+"/"+project+"/questions/")
}

// folders gives the distinct first parts of the keys under prefix, in order: a
// LIST with a delimiter, made of LISTs that start after each folder.
func (l *Log) folders(ctx context.Context, prefix string) ([]string, error) {
	var out []string
	after := ""
	for {
		name, err := l.firstFolder(ctx, prefix, after)
		if err != nil || name == "" {
			slices.Sort(out) // "a.b/" stands before "a/" in key order
			return out, err
		}
		out = append(out, name)
		after = prefix + name + afterSlash
	}
}

// afterSlash is the byte after "/": no key of folder x is greater than x+"0",
// and every other folder's keys that follow are.
const afterSlash = "0"

func (l *Log) firstFolder(ctx context.Context, prefix, after string) (string, error) {
	next, stop := iter.Pull2(l.b.ListAfter(ctx, prefix, after))
	defer stop()
	for {
		info, err, ok := next()
		if !ok || err != nil {
			return "", err
		}
		if name, _, isFolder := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/"); isFolder {
			return name, nil
		}
	}
}
