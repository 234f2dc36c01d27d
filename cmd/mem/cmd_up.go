package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/serve"
)

func (a *app) cmdUp() *cobra.Command {
	cfg := wire.UpConfig{}
	var sample, verbose bool
	c := &cobra.Command{
		Use:   "up",
		Short: "Run the whole memory in one process: S3 endpoint, API, and every function",
		Long: `Run the whole memory in one process: S3 endpoint, API, and every function.

When it serves it prints one line "ready http=URL s3=URL" and writes
DIR/ready.json, where the other commands find it. A taken default port gives way
to the next free one. A second "mem up" on the same folder is refused. Stop it
with Ctrl-C at any time: the next start goes on where this one was.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg.Dir = a.folder()
			cfg.TenantKey = a.getenv("MNEME_TENANT_KEY")
			cfg.PG, cfg.OS = wire.Secret(a.getenv("MNEME_PG")), wire.Secret(a.getenv("MNEME_OS"))
			cfg.OSAuth = a.getenv("MNEME_OS_AUTH")
			level := slog.LevelWarn
			if verbose {
				level = slog.LevelInfo
			}
			var err error
			if cfg.Models, err = wire.ModelsFromEnv(a.getenv); err != nil {
				return err
			}
			cfg.Getenv = a.getenv
			cfg.Logger = slog.New(serve.LogHandler(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})))
			if err := wire.ChaosFromEnv(&cfg, a.getenv); err != nil {
				return usageError{err}
			}
			return a.up(c.Context(), cfg, sample)
		},
	}
	f := c.Flags()
	f.StringVar(&cfg.HTTP, "http", or(a.getenv("MNEME_HTTP"), wire.DefaultHTTP), "address of the API (MNEME_HTTP); loopback only; port 0 takes a free one")
	f.StringVar(&cfg.S3, "s3", or(a.getenv("MNEME_S3"), wire.DefaultS3), "address of the S3 endpoint (MNEME_S3)")
	f.BoolVar(&sample, "sample", false, "on the first start upload the sample transcripts and print a cited answer")
	f.BoolVarP(&verbose, "verbose", "v", false, "log what is done")
	return c
}

func or(v, def string) string {
	if v != "" {
		return v
	}
	return def
}

func (a *app) up(ctx context.Context, cfg wire.UpConfig, sample bool) error {
	u, err := wire.Start(ctx, cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err = u.Run(ctx, func(r wire.Ready) {
		fmt.Fprintf(a.out, "ready http=%s s3=%s\n", r.HTTP, r.S3)
		if sample {
			go func() {
				if err := a.sample(ctx, u, r); err != nil && ctx.Err() == nil {
					fmt.Fprintln(a.err, "mem: sample:", err)
					if h := fault.HintOf(err); h != "" {
						fmt.Fprintln(a.err, "  hint: "+h)
					}
				}
			}()
		}
	})
	if ctx.Err() != nil && err == nil {
		fmt.Fprintln(a.err, "stopped; everything that was acknowledged is in the log")
	}
	return err
}
