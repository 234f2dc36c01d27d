package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/testdata/transcripts"
)

// sample uploads the sample transcripts through the S3 endpoint, as any client
// would, and asks one question of them.
func (a *app) sample(ctx context.Context, u *wire.Up, r wire.Ready) error {
	creds := u.Credentials()
	c := &client{base: r.HTTP, token: creds.Token.Reveal(), http: newHTTP()}
	known, err := c.known(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	if len(known) == 0 {
		for _, s := range transcripts.Samples {
			body, err := transcripts.Files.ReadFile(s.Name)
			if err != nil {
				return err
			}
			if err := u.Upload(ctx, s.Project+"/"+s.Name, body); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "uploaded  s3://%s/%s/%s (%s)\n", wire.InboxBucket, s.Project, s.Name, sizeText(int64(len(body))))
		}
		if err := waitDone(ctx, c, time.Minute); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.out, "\n$ mem query %q\n", transcripts.Question)
	if err := a.ask(ctx, c, "", transcripts.Question, queryFlags{limit: 3}); err != nil {
		return err
	}
	fmt.Fprintf(a.out, `
API  %s
S3   %s   (keys: mem --dir %s s3 env)

Try in another terminal:
  ./bin/mem --dir %s query "why is the retry limit what it is?"
  ./bin/mem --dir %s learn FILE|DIR
  ./bin/mem --dir %s import ~/.claude/projects
Ctrl-C stops it; nothing is lost.
`, r.HTTP, r.S3, a.folder(), a.folder(), a.folder(), a.folder())
	return nil
}
