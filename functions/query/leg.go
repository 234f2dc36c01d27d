package query

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
)

// legRest is how long a leg that did not answer is left alone: a question waits for a
// dead store once in that time, not each time.
const legRest = 5 * time.Second

// leg is a store that a question can do without for a while. After a call that found it
// down or late, calls fail at once until its rest is over; then one call tries it again
// while the others still do without it.
type leg struct {
	limit time.Duration // of one call
	rest  time.Duration
	now   func() time.Time

	mu     sync.Mutex
	until  time.Time
	err    error // why it rests; nil when it is well
	trying bool  // a call sees whether it is back
}

// do calls f within the leg's deadline.
func (l *leg) do(ctx context.Context, f func(context.Context) error) error {
	if err := l.resting(); err != nil {
		return err
	}
	own, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	err := f(own)
	if err != nil && ctx.Err() == nil && own.Err() != nil {
		err = fault.New(fault.Unavailable, "no answer within %v", l.limit)
	}
	l.settle(err, ctx.Err() != nil)
	return err
}

// alone is the error of a leg at rest; mu is held.
func (l *leg) alone() error {
	return &fault.Error{Kind: fault.Unavailable, Msg: "left alone after it did not answer", RetryAfter: max(l.until.Sub(l.now()), time.Second), Err: l.err}
}

// resting is why the leg is not to be called now. Who may call it when its rest is over
// tries it for all.
func (l *leg) resting() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	if l.trying || l.until.After(l.now()) {
		return l.alone()
	}
	l.trying = true
	return nil
}

// settle takes down what became of a call. What counts is that the leg is down, full or
// late: not that the caller left, and not what one caller may not see.
func (l *leg) settle(err error, left bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trying = false
	down := fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Exhausted) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case left:
	case down:
		l.err, l.until = err, l.now().Add(max(l.rest, fault.RetryAfterOf(err)))
	default:
		l.err = nil
	}
}

// Degraded is a part of the pipeline that an answer had to do without.
type Degraded struct {
	// Leg is semantic, lexical, graph (the rows: supersession and citations), rerank,
	// questions or project.
	Leg string `json:"leg"`
	Why string `json:"why"`
}

// whyBytes bounds what an answer repeats of an error.
const whyBytes = 300

func degraded(leg string, err error) Degraded {
	why := err.Error()
	if hint := fault.HintOf(err); hint != "" {
		why += "; " + hint
	}
	if len(why) > whyBytes {
		why = why[:whyBytes] + "…"
	}
	return Degraded{leg, why}
}

// neither is the error of a question that no leg answers.
func neither(dense, lexical error) error {
	if lexical == nil {
		return fault.As(kindOf(dense), dense)
	}
	if dense == nil {
		return fault.As(kindOf(lexical), lexical)
	}
	after := max(fault.RetryAfterOf(dense), fault.RetryAfterOf(lexical), time.Second)
	return &fault.Error{
		Kind: fault.Unavailable, RetryAfter: after, Hint: "nothing is lost; look at the index servers, and ask again",
		Msg: "neither the semantic nor the lexical search answers: " + degraded("", dense).Why + " · " + degraded("", lexical).Why,
	}
}

// kindOf is the kind of a leg's error to who asked: a leg that is late, or in an error of
// its own, is unavailable.
func kindOf(err error) fault.Kind {
	if k := fault.KindOf(err); k == fault.Denied || k == fault.Invalid || k == fault.Corrupt {
		return k
	}
	return fault.Unavailable
}
