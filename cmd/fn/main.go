// Command fn runs one function of Mneme: its argument names it. One image holds
// all of them; the environment says the rest (docs/ARCHITECTURE.md).
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/serve"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "usage: fn %s\n", strings.Join(wire.Functions(), "|"))
		os.Exit(2)
	}
	cfg, err := wire.FnFromEnv(os.Args[1], os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fn:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger := slog.New(serve.LogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	if err := wire.Fn(ctx, cfg, logger); err != nil {
		logger.Error("function ended", slog.Any("err", err), slog.String("hint", fault.HintOf(err)))
		os.Exit(1)
	}
}
