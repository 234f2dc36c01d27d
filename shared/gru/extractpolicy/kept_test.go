package extractpolicy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/gru/extractpolicy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// talk is one message that is kept more often than not, from few subjects, so
// that messages repeat, contradict and amend one another.
func talk(rnd *rand.Rand) string {
	pick := func(s string) string {
		f := strings.Split(s, "|")
		return f[rnd.IntN(len(f))]
	}
	return fmt.Sprintf("%s the %s must %s %s %d %s, because the %s %s.",
		pick("From now on|We decided that|Please remember:|No,|Actually,|The rule is that"),
		pick("export worker|billing queue|deploy pipeline|search cache"),
		pick("never|always|no longer"),
		pick("hold more than|wait for|keep under|retry after"),
		[]int{5, 10, 90}[rnd.IntN(3)],
		pick("jobs|rows|minutes|files"),
		pick("ERP|region|auditor|node"),
		pick("rejects it|pages us|asks for it"))
}

// The index decides as a comparison with everything does: on one stream, on
// several that take turns, on a state that goes back to an earlier step, and on
// another history under the same name.
func TestIndexDecidesAsComparingWithAll(t *testing.T) {
	t.Parallel()
	type one struct {
		cfg  *gru.Config
		s    gru.State
		past []gru.State
		seq  int64
	}
	repeats, replaced, steps := 0, 0, 0
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 11))
		fast, dumb := extractpolicy.New(extractive.Options{}), extractpolicy.NewExhaustive(extractive.Options{})
		var streams []*one
		var said []string
		for i := range 3 {
			cfg := config(t)
			cfg.Stream, cfg.Policy = fmt.Sprintf("why@%08d", i), fast
			streams = append(streams, &one{cfg: cfg})
		}
		for range 120 {
			o := streams[rnd.IntN(len(streams))]
			switch rnd.IntN(12) {
			case 0: // a lost append: the step before is taken again
				if len(o.past) > 0 {
					o.s = o.past[rnd.IntN(len(o.past))]
				}
			case 1: // another history
				if rnd.IntN(3) == 0 {
					o.s = gru.State{}
				}
			}
			o.past = append(o.past, o.s)
			o.seq++
			// People say the same again, and now and then something new.
			say := func() string {
				if len(said) > 0 && rnd.IntN(4) == 0 {
					return said[rnd.IntN(len(said))]
				}
				said = append(said, talk(rnd))
				return said[len(said)-1]
			}
			text := "user: " + say()
			for range rnd.IntN(3) {
				text += "\nuser: " + say()
			}
			// Later and earlier ones, as uploads come in any order.
			at := epoch.AddDate(0, 0, rnd.IntN(40))
			part := &gru.Part{Admit: memory.Admit{Seq: o.seq, Source: memory.SumString(fmt.Sprint(o.seq)), StoredAt: epoch.AddDate(1, 0, 0)}, Chunks: 1}
			s, _ := gru.Begin(o.s, o.cfg, part, epoch)
			slow := *o.cfg
			slow.Policy = dumb
			in := gru.ChunkInput{Chunk: chunkOf(0, at, text)}
			next, got := gru.StepChunk(s, o.cfg, part, in)
			_, want := gru.StepChunk(s, &slow, part, in)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d, %s: %s\nthe index decides otherwise (-all +index):\n%s", seed, o.cfg.Stream, text, diff)
			}
			for _, r := range got {
				switch r := r.(type) {
				case *memory.Gate:
					repeats += strings.Count(r.Reason, "known") + strings.Count(r.Reason, "nothing new")
				case *memory.Evidence:
					replaced += len(r.Supersedes)
				}
			}
			o.s, _ = gru.End(next, o.cfg, part, epoch.Add(time.Minute))
			steps++
		}
	}
	if repeats < 20 || replaced < 20 {
		t.Errorf("%d steps with %d repeats and %d replacements: too few to show anything", steps, repeats, replaced)
	}
}
