package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mneme-ai/mneme/functions/gate"
)

// reviewFlags are those of mem label review.
type reviewFlags struct {
	question, by   string
	sample         int
	seed           uint64
	disagree, show bool
}

func (a *app) cmdLabelReview() *cobra.Command {
	f := reviewFlags{sample: 50, seed: 1}
	c := &cobra.Command{
		Use:   "review",
		Short: "Label one piece at a time by hand",
		Long: `Label one piece at a time: y it holds evidence for the question, n it does not, s skip,
q quit. Each answer is saved before the next piece is shown, so that nothing is lost
by stopping at any time.

What the gate decided and what others said is hidden, so that you are not led (--show
shows it). Pieces come open and closed gates in turn, in an order that --seed decides;
what a person labelled is not shown again. With --disagree only pieces of which a
model's or a rule's label is other than the gate.

Where standard input is no terminal, each line of it is one answer.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.labelReview(c.Context(), f) },
	}
	c.Flags().StringVarP(&f.question, "question", "q", "", "only this question id, or this stream")
	c.Flags().IntVar(&f.sample, "sample", f.sample, "how many pieces, at most 200")
	c.Flags().Uint64Var(&f.seed, "seed", f.seed, "another seed is another order")
	c.Flags().BoolVar(&f.disagree, "disagree", false, "only pieces of which opinions differ")
	c.Flags().BoolVar(&f.show, "show", false, "show what was decided and what others said")
	c.Flags().StringVar(&f.by, "by", "", "your name in the labels (default $USER)")
	return c
}

func (a *app) labelReview(ctx context.Context, f reviewFlags) error {
	cl, project, err := a.inOne(ctx)
	if err != nil {
		return err
	}
	disagree := ""
	if f.disagree {
		disagree = "true"
	}
	var list gate.Review
	err = cl.get(ctx, "/memory/labels/review"+queryString("project", project, "query", f.question, "sample", strconv.Itoa(f.sample),
		"seed", strconv.FormatUint(f.seed, 10), "disagree", disagree), &list)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list)
	}
	if len(list.Items) == 0 {
		fmt.Fprintf(a.err, "mem: nothing to label: %d pieces have a person's label\n", list.Reviewed)
		return errNothing
	}
	by := cmp.Or(f.by, a.getenv("USER"), a.getenv("USERNAME"), "me")
	keys := newKeys(a.in)
	yes, no, skipped := 0, 0, 0
	defer func() {
		fmt.Fprintf(a.out, "%d labelled by %s (%d evidence), %d skipped, %d pieces without a person's label are left\n", yes+no, by, yes, skipped, list.Left-yes-no)
	}()
	for i, it := range list.Items {
		a.printReview(f, it, i+1, len(list.Items))
		again := ""
		if strings.Count(it.Text, "\n") > screenLines {
			again = it.Question // it has left the screen
		}
		answer, err := a.answer(ctx, keys, again)
		if err != nil {
			return err
		}
		switch answer {
		case 'q':
			return nil
		case 's':
			skipped++
			continue
		}
		evidence := answer == 'y'
		var saved gate.ReviewSaved
		if err := cl.send(ctx, http.MethodPost, "/memory/labels/review", gate.ReviewLabel{
			Project: project, Stream: it.Stream, Admit: it.Admit, I: it.I, Chunk: it.Chunk, Start: it.Start, End: it.End, Evidence: &evidence, By: by,
		}, &saved); err != nil {
			return err
		}
		if evidence {
			yes++
		} else {
			no++
		}
	}
	return nil
}

func (a *app) printReview(f reviewFlags, it gate.ReviewItem, n, of int) {
	fmt.Fprintf(a.out, "\n── %d of %d ── %s ── chunk %s [%d,%d) ──\n%s\n\n%s\n", n, of, it.QueryID, it.Chunk.Short(), it.Start, it.End, shown(it.Question), shown(strings.TrimRight(it.Text, "\n")))
	if !f.show {
		return
	}
	was := "closed"
	if it.Open {
		was = "open"
	}
	fmt.Fprintf(a.out, "\nthe gate was %s (t=%d)\n", was, it.T)
	for _, s := range it.Said {
		says := "no evidence"
		if s.Evidence {
			says = "evidence"
		}
		fmt.Fprintf(a.out, "%s %s: %s\n", s.Kind, s.Who, says)
	}
}

// screenLines is more or less what stands on a screen beside the rest of a piece.
const screenLines = 18

// answer asks until one of the keys comes; the end of the input is q.
func (a *app) answer(ctx context.Context, keys *keys, question string) (byte, error) {
	if question != "" {
		fmt.Fprintf(a.out, "\n%s", shown(question))
	}
	fmt.Fprint(a.out, "\nevidence? y n s(kip) q(uit) ")
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		k, err := keys.next()
		if err != nil {
			return 0, err
		}
		switch k {
		case 'y', 'n', 's', 'q':
			fmt.Fprintf(a.out, "%c\n", k)
			return k, nil
		}
	}
}

// keys reads answers: a key each at a terminal, else a line each.
type keys struct {
	tty   *os.File
	lines *bufio.Scanner
	held  []byte
}

func newKeys(in io.Reader) *keys {
	if f, ok := in.(*os.File); ok && isTerminal(f) {
		return &keys{tty: f}
	}
	return &keys{lines: bufio.NewScanner(in)}
}

// Keys that mean q: Ctrl-C and Ctrl-D, which a terminal that gives single keys does
// not turn into a signal and an end.
const (
	ctrlC = 3
	ctrlD = 4
)

// next is the next answer in lower case; q at the end. The terminal gives single keys
// only while one is waited for, so that what is printed is printed as ever, and a
// program that dies leaves the terminal as it was.
func (k *keys) next() (byte, error) {
	if k.tty == nil {
		for k.lines.Scan() {
			if s := strings.ToLower(strings.TrimSpace(k.lines.Text())); s != "" {
				return s[0], nil
			}
		}
		return 'q', k.lines.Err()
	}
	if len(k.held) == 0 {
		state, err := term.MakeRaw(int(k.tty.Fd()))
		if err != nil {
			return 0, err
		}
		var buf [64]byte
		n, err := k.tty.Read(buf[:])
		if e := term.Restore(int(k.tty.Fd()), state); e != nil && err == nil {
			err = e
		}
		if err == io.EOF {
			return 'q', nil
		}
		if err != nil {
			return 0, err
		}
		k.held = append(k.held, typed(buf[:n])...)
		if len(k.held) == 0 {
			return 0, nil
		}
	}
	b := k.held[0]
	k.held = k.held[1:]
	return b, nil
}

// typed are the answers among what a terminal gave at once: the bytes of a function
// key are none, though some are letters.
func typed(b []byte) (out []byte) {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == 0x1b:
			i = escape(b, i+1)
		case c == ctrlC || c == ctrlD:
			out = append(out, 'q')
		case c >= 'A' && c <= 'Z':
			out = append(out, c|0x20)
		default:
			out = append(out, c)
		}
	}
	return out
}

// escape is the last byte of the sequence whose bytes behind ESC begin at i: CSI with
// parameters up to a final byte (ECMA-48), SS3 with one byte, else one byte, which came
// with Alt.
func escape(b []byte, i int) int {
	if i >= len(b) || b[i] != '[' {
		if i < len(b) && b[i] == 'O' {
			i++
		}
		return i
	}
	for i++; i < len(b) && (b[i] < 0x40 || b[i] > 0x7e); i++ {
	}
	return i
}
