package objstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/mneme-ai/mneme/shared/fault"
)

// ProbePrefix is where Prove writes its probe objects.
const ProbePrefix = "ops/probe/"

const (
	probeWriters = 8 // at once, on one key: enough that a check before a write without a lock lets two through
	probeRounds  = 3 // of each race
)

const proveHint = "use a store with conditional writes (If-None-Match and If-Match on PUT): MinIO, AWS S3, versitygw 1.8 or later, or the folder of `mem up`"

// Prove races writers against each other on a probe key, create-only and by
// If-Match, and refuses, as fault.Invalid with a hint, a store on which a race
// has not exactly one winner or a stale condition wins. It removes its probes.
//
// A store that ignores the headers answers every write with success; a store
// that checks before it writes, without a lock, lets several racers through.
func (b *Bucket) Prove(ctx context.Context) (err error) {
	defer fault.Wrap(&err, "prove(%s)", b.name)
	id := rand.Text()
	// The rounds have keys of their own: side by side they cost the start of a
	// function one round's answers, not three.
	var g errgroup.Group
	for round := range probeRounds {
		g.Go(func() error { return b.proveRound(ctx, fmt.Sprintf("%s%s/%d", ProbePrefix, id, round)) })
	}
	return g.Wait()
}

func (b *Bucket) proveRound(ctx context.Context, key string) (err error) {
	defer func() {
		// The probe goes even when the caller has given up.
		err = errors.Join(err, b.Delete(context.WithoutCancel(ctx), key))
	}()
	winner, err := b.race(ctx, key, Condition{Create: true})
	if err != nil {
		return err
	}
	if _, err := b.race(ctx, key, Condition{IfMatch: winner.ETag}); err != nil {
		return err
	}
	for name, stale := range map[string]Condition{"If-None-Match: *": {Create: true}, "If-Match": {IfMatch: winner.ETag}} {
		if _, err := b.probe(ctx, key, "stale", stale); !errors.Is(err, ErrPrecondition) {
			if err != nil {
				return err
			}
			return fault.At(fault.Invalid, name, proveHint, "the store accepted a write whose condition was false")
		}
	}
	return nil
}

// race lets probeWriters write different bytes under cond, and gives the
// winner's Info. The object must then hold the winner's bytes.
func (b *Bucket) race(ctx context.Context, key string, cond Condition) (Info, error) {
	won := make([]Info, probeWriters)
	var g errgroup.Group
	for w := range probeWriters {
		g.Go(func() error {
			info, err := b.probe(ctx, key, fmt.Sprintf("%v by %d", cond, w), cond)
			if err == nil {
				won[w] = info
			} else if !errors.Is(err, ErrPrecondition) {
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return Info{}, err
	}
	name := "If-None-Match: *"
	if !cond.Create {
		name = "If-Match"
	}
	winners, last := 0, Info{}
	for _, info := range won {
		if info.ETag != "" {
			winners, last = winners+1, info
		}
	}
	if winners != 1 {
		return Info{}, fault.At(fault.Invalid, name, proveHint, "%d of %d racing writers won; a store that keeps conditions has one winner", winners, probeWriters)
	}
	now, err := b.Head(ctx, key)
	if err != nil {
		return Info{}, err
	}
	if now.ETag != last.ETag {
		return Info{}, fault.At(fault.Invalid, name, proveHint, "the object is not the one of the writer that won")
	}
	return last, nil
}

func (b *Bucket) probe(ctx context.Context, key, text string, cond Condition) (Info, error) {
	switch {
	case cond.Create:
		return b.Create(ctx, key, []byte(text))
	default:
		return b.Replace(ctx, key, []byte(text), cond.IfMatch)
	}
}
