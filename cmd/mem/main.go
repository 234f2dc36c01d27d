// Command mem is Mneme on the command line: `mem up` is the whole memory in one
// process, the other commands talk to it.
//
// Exit codes: 0 done, 1 nothing found or a check failed, 2 wrong usage, 3 no
// server, 4 bad input.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/cmd/internal/wire"
	"github.com/mneme-ai/mneme/shared/fault"
)

// Exit codes.
const (
	exitDone     = 0
	exitNothing  = 1
	exitUsage    = 2
	exitNoServer = 3
	exitBadInput = 4
)

// version is set by the linker for releases.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// errNothing ends a command whose answer is empty or whose check failed, after
// it has printed what there is to say.
var errNothing = errors.New("nothing")

// usageError is a wrong call.
type usageError struct{ err error }

func (u usageError) Error() string { return u.err.Error() }
func (u usageError) Unwrap() error { return u.err }

// noServer says that no Mneme answers.
type noServer struct{ err error }

func (n noServer) Error() string { return n.err.Error() }
func (n noServer) Unwrap() error { return n.err }

// app is what every command shares.
type app struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	json     bool
	dir      string
	project  string
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer, getenv func(string) string) int {
	printed := &output{w: out, screen: isTerminal(out)}
	a := &app{in: in, out: printed, err: errOut, getenv: getenv}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(printed)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = printed.err
	}
	return a.exit(err)
}

// output is where answers go. It remembers that something could not be printed:
// a full disk behind a redirection must not look like a command that is done.
// On a terminal a transcript's control characters are shown and not obeyed: they
// could hide, retitle or overwrite what stands on the screen. A pipe gets every
// byte.
type output struct {
	w      io.Writer
	screen bool
	err    error
}

func (o *output) Write(p []byte) (int, error) {
	b := p
	if o.screen {
		b = visible(p)
	}
	if _, err := o.w.Write(b); err != nil {
		if o.err == nil {
			o.err = err
		}
		return 0, err
	}
	return len(p), nil
}

// visible puts U+FFFD in place of control characters other than tab and line
// feed: C0, DEL, and C1, which terminals obey as they do ESC.
func visible(p []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, p)
}

// exit prints an error for people, with its cure, and gives the exit code.
func (a *app) exit(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errNothing):
		return exitNothing
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.err, "mem: interrupted; nothing is lost, run it again to go on")
		return 130
	}
	fmt.Fprintln(a.err, "mem: "+strings.TrimPrefix(err.Error(), "mem: "))
	if h := fault.HintOf(err); h != "" {
		fmt.Fprintln(a.err, "  hint: "+h)
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[noServer](err); ok {
		return exitNoServer
	}
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Corrupt, fault.Malformed:
		return exitBadInput
	}
	return exitNothing
}

func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:   "mem",
		Short: "Long-term memory for agents: cited answers from your own transcripts",
		Long: `Long-term memory for agents: cited answers from your own transcripts.

Start it with "mem up", give it transcripts with "mem learn" or "mem import",
ask with "mem query". Every answer cites the exact span it came from.

Exit codes: 0 done, 1 nothing found or a check failed, 2 wrong usage,
3 no server, 4 bad input.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	f := c.PersistentFlags()
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.StringVar(&a.dir, "dir", "", "data folder of mem up (default $MNEME_DIR, else $XDG_DATA_HOME/mneme)")
	f.StringVarP(&a.project, "project", "p", "", "project, or any unique prefix of its name")
	for _, sub := range []*cobra.Command{
		a.cmdUp(), a.cmdLearn(), a.cmdImport(), a.cmdQuery(), a.cmdWhy(), a.cmdQuestion(), a.cmdSchema(), a.cmdLog(),
		a.cmdVerify(), a.cmdRebuild(), a.cmdRedact(), a.cmdScrub(), a.cmdForget(), a.cmdWait(), a.cmdStatus(), a.cmdReport(), a.cmdModel(), a.cmdRegate(), a.cmdSynthesis(), a.cmdDead(), a.cmdToken(), a.cmdS3(), a.cmdVersion(),
		a.cmdSkill(), a.cmdCompress(), a.cmdOriginal(),
		a.cmdSig(), a.cmdContext(),
		a.cmdLabel(),
		a.cmdVault(),
		a.cmdDoctor(), a.cmdRead(), a.cmdTokens(), a.cmdEval(), a.cmdExport(),
	} {
		c.AddCommand(sub)
	}
	wrapArgs(c)
	return c
}

// wrapArgs makes a wrong number of arguments a usage error, in the command and
// all below it.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usageError{fmt.Errorf("%w\n  see: %s --help", err, c.CommandPath())}
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}

// folder is the data folder of the command.
func (a *app) folder() string {
	if a.dir != "" {
		return a.dir
	}
	return wire.DefaultDir(a.getenv)
}
