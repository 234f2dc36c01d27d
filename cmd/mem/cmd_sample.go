package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/functions/gate"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/testdata/transcripts"
)

// sampleWait is how long a model may take over the samples: nine questions over two
// sessions are 18 calls, each of a minute or more on a small machine.
const sampleWait = time.Hour

// waitSample waits until the samples are decided. A model is waited for as long as it
// is at work, with what is left shown; what stops it is told with its cure.
func (a *app) waitSample(ctx context.Context, c *client, project string) error {
	var e gate.Estimate
	if err := c.send(ctx, http.MethodPost, "/memory/estimate", map[string]any{"project": project, "chunks": []int{}}, &e); err != nil {
		return err
	}
	if len(e.Sends) == 0 {
		return waitDone(ctx, c, time.Minute)
	}
	for _, d := range e.Sends {
		fmt.Fprintf(a.out, "%-9s %s at %s\n", d.Use, d.Model, d.URL)
	}
	fmt.Fprintf(a.out, "%d questions are decided by the model; a cold one is loaded first (mem doctor looks at it, Ctrl-C stops it, nothing is lost)\n", e.Questions)
	last := -1
	for end := time.Now().Add(sampleWait); time.Now().Before(end); {
		var out struct {
			Done    bool `json:"done"`
			Pending struct {
				Streams int `json:"streams"`
			} `json:"pending"`
		}
		if err := c.get(ctx, "/memory/wait?timeout=3s", &out); err != nil {
			return err
		}
		if err := pausedFor(ctx, c, ""); err != nil {
			return err
		}
		if err := given(ctx, c); err != nil {
			return err
		}
		if out.Done {
			return nil
		}
		if n := out.Pending.Streams; n != last {
			last = n
			fmt.Fprintf(a.out, "          %d of %d questions are left\n", n, e.Questions)
		}
	}
	return waitDone(ctx, c, 0)
}

// given is the first dead letter, as an error with its cure; nil where there is none.
func given(ctx context.Context, c *client) error {
	var out struct {
		Dead []eventlog.Dead `json:"dead"`
	}
	if err := c.get(ctx, "/memory/dead", &out); err != nil || len(out.Dead) == 0 {
		return err
	}
	d := out.Dead[0]
	return &fault.Error{Kind: fault.Unavailable, Msg: d.Error, Hint: cmp.Or(d.Hint, "mem doctor says what is wrong")}
}

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
		if err := a.waitSample(ctx, c, transcripts.Samples[0].Project); err != nil {
			return err
		}
	}
	fmt.Fprintf(a.out, "\n$ mem query %q\n", transcripts.Question)
	if err := a.ask(ctx, c, nil, transcripts.Question, queryFlags{limit: 3}); err != nil {
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
