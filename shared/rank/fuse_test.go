package rank_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/rank"
)

var near = cmpopts.EquateApprox(0, 5e-7)

// leg makes hits of "id score" pairs.
func leg(pairs ...any) []rank.Scored {
	var out []rank.Scored
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, rank.Scored{ID: memory.SHA(pairs[i].(string)), Score: pairs[i+1].(float64)})
	}
	return out
}

type line struct {
	ID    memory.SHA
	Score float64
}

func lines(fused []rank.Fused) []line {
	var out []line
	for _, f := range fused {
		out = append(out, line{f.ID, f.Score})
	}
	return out
}

// brief is the weights of the brief's model (U1), lexical scores divided by
// the greatest.
var brief = rank.Options{DenseWeight: 0.6, LexicalWeight: 0.4}

// The vectors and traps of the retrieval page, section C2, by its numbers.
func TestFuse(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	bounded := leg("a", 3.0)
	bounded[0].Max = 12
	failed := func(edit func(*rank.Options)) rank.Options {
		o := brief
		edit(&o)
		return o
	}
	for _, tt := range []struct {
		name           string
		dense, lexical []rank.Scored
		opt            rank.Options
		want           []line
	}{
		{"vector: both legs", leg("a", .92, "b", .90), leg("a", 8.5, "c", 7.0, "b", 3.0), brief, []line{{"a", .952}, {"b", .68117647}, {"c", .32941176}}},
		{"vector: lexical alone", nil, leg("a", 7.3), brief, []line{{"a", .4}}},
		{"vector: lexical all equal", nil, leg("b", 5.0, "a", 5.0, "c", 5.0), brief, []line{{"a", .4}, {"b", .4}, {"c", .4}}},
		{"vector: both empty", nil, nil, brief, nil},
		{"vector: NaN is dropped", leg("a", nan, "b", .5), nil, brief, []line{{"b", .3}}},
		{"vector: brief's own", leg("a", 1.0, "b", .96), leg("c", 1.0, "a", .98, "d", .88), brief, []line{{"a", .992}, {"b", .576}, {"c", .4}, {"d", .352}}},
		{"vector: RRF", leg("a", .9, "b", .8), leg("a", 9.0, "c", 8.0, "b", 7.0), rank.Options{RRF: true}, []line{{"a", 2.0 / 61}, {"b", 1.0/62 + 1.0/63}, {"c", 1.0 / 62}}},
		{"trap 1: one weak hit does not get full marks", nil, bounded, brief, []line{{"a", .1}}},
		{"trap 3: an empty leg keeps the weights", leg("a", .5), nil, brief, []line{{"a", .3}}},
		{"trap 3: a failed dense leg", leg("a", .5), leg("b", 4.0, "c", 2.0), failed(func(o *rank.Options) { o.DenseFailed = true }), []line{{"b", 1}, {"c", .5}}},
		{"trap 3: a failed lexical leg", leg("a", .5), leg("b", 4.0), failed(func(o *rank.Options) { o.LexicalFailed = true }), []line{{"a", .5}}},
		{"routed to words alone", leg("a", .5), leg("b", 4.0, "c", 2.0), failed(func(o *rank.Options) { o.LexicalOnly = true }), []line{{"b", 1}, {"c", .5}}},
		{"trap 3: both failed", leg("a", .5), leg("b", 4.0), failed(func(o *rank.Options) { o.DenseFailed, o.LexicalFailed = true, true }), nil},
		{"trap 4: the last hit is not nothing", nil, leg("a", 4.0, "b", 1.0), brief, []line{{"a", .4}, {"b", .1}}},
		{"trap 6: cosine below 0 is 0", leg("a", -.4, "b", 1.0000001), nil, brief, []line{{"b", .6}, {"a", 0}}},
		{"trap 7: close scores stay close", leg("a", .77, "b", .75), nil, brief, []line{{"a", .462}, {"b", .45}}},
		{"trap 8: all lexical scores negative", nil, leg("a", -1.0, "b", -2.0), brief, []line{{"a", 0}, {"b", 0}}},
		{"trap 9: an id twice counts once, at its best", leg("a", .2, "a", .8, "b", .5), nil, brief, []line{{"a", .48}, {"b", .3}}},
		{"trap 9: in RRF the later ranks close up", leg("a", .9, "a", .8, "b", .7), nil, rank.Options{RRF: true}, []line{{"a", 1.0 / 61}, {"b", 1.0 / 62}}},
		{"trap 10: ties by cosine, then id", leg("b", .4), leg("d", 3.0, "c", 3.0, "x", 5.0), rank.Options{DenseWeight: .6, LexicalWeight: .4}, []line{{"x", .4}, {"b", .24}, {"c", .24}, {"d", .24}}},
		{"trap 11: weights are scaled", leg("a", 1.0), nil, rank.Options{DenseWeight: 3, LexicalWeight: 1}, []line{{"a", .75}}},
		{"infinite scores are dropped", leg("a", inf, "b", -inf), leg("c", inf), brief, nil},
		{"limit", leg("a", .9, "b", .8, "c", .7), nil, failed(func(o *rank.Options) { o.Limit = 2 }), []line{{"a", .54}, {"b", .48}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, lines(rank.Fuse(tt.dense, tt.lexical, tt.opt)), near); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	if got := rank.Dropped(leg("a", nan, "b", .5, "c", inf)); got != 2 {
		t.Errorf("dropped: got %d, want 2", got)
	}
}

// Trap 5: a worse hit more must not move any other.
func TestFuseDoesNotDependOnTheWindow(t *testing.T) {
	t.Parallel()
	bound := func(hits []rank.Scored) []rank.Scored {
		for i := range hits {
			hits[i].Max = 20
		}
		return hits
	}
	d, l := leg("a", .9, "b", .6), bound(leg("a", 9.0, "c", 8.0))
	want := lines(rank.Fuse(d, l, brief))
	got := lines(rank.Fuse(append(d, leg("z", .01)...), append(l, bound(leg("y", .1))...), brief))
	if diff := cmp.Diff(want, got[:3], near); diff != "" {
		t.Errorf("two worse hits moved the rest (-want +got):\n%s", diff)
	}
}

func TestFloor(t *testing.T) {
	t.Parallel()
	opt := rank.Options{DenseWeight: .4, LexicalWeight: .6, FloorCosine: .5, FloorIDF: .4}
	words := func(id string, share float64) rank.Scored {
		return rank.Scored{ID: memory.SHA(id), Score: 10 * share, Max: 10, IDFShare: share}
	}
	for _, tt := range []struct {
		name           string
		dense, lexical []rank.Scored
		want           []memory.SHA
	}{
		{"nonsense: both legs just under", leg("a", .49), []rank.Scored{words("a", .39)}, nil},
		{"known by meaning; half the floor stays", leg("a", .5, "b", .25, "c", .24), nil, []memory.SHA{"a", "b"}},
		{"known by words; half the floor stays", nil, []rank.Scored{words("a", .4), words("b", .2), words("c", .19)}, []memory.SHA{"a", "b"}},
		{"known by one leg, the other's hits count", leg("a", .6), []rank.Scored{words("b", .3)}, []memory.SHA{"a", "b"}},
		{"idf share of a dense hit is not asked", leg("a", .1), nil, nil},
	} {
		var got []memory.SHA
		for _, f := range rank.Fuse(tt.dense, tt.lexical, opt) {
			got = append(got, f.ID)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestSuperseded(t *testing.T) {
	t.Parallel()
	type names = map[memory.SHA][]memory.SHA
	for _, tt := range []struct {
		name       string
		dense      []rank.Scored
		superseded names
		want       []line
	}{
		{"the newer is lifted", leg("old", .9, "x", .5, "new", .3), names{"old": {"new"}}, []line{{"new", .54}, {"old", .54}, {"x", .3}}},
		{"the newer is added", leg("old", .9), names{"old": {"new"}}, []line{{"new", .54}, {"old", .54}}},
		{"a better newer one stays", leg("old", .5, "new", .9), names{"old": {"new"}}, []line{{"new", .54}, {"old", .3}}},
		{"over two steps", leg("a", .9, "c", .1), names{"a": {"b"}, "b": {"c"}}, []line{{"c", .54}, {"b", .54}, {"a", .54}}},
		{"split in two", leg("a", .9), names{"a": {"z", "b"}}, []line{{"b", .54}, {"z", .54}, {"a", .54}}},
		{"a ring ends", leg("a", .9, "b", .5), names{"a": {"b"}, "b": {"a"}}, []line{{"a", .54}, {"b", .54}}},
		{"itself", leg("a", .9), names{"a": {"a"}}, []line{{"a", .54}}},
		{"of a node not found", leg("a", .9), names{"q": {"r"}}, []line{{"a", .54}}},
	} {
		if d := cmp.Diff(tt.want, lines(rank.Fuse(tt.dense, nil, rank.Options{DenseWeight: .6, LexicalWeight: .4, Superseded: tt.superseded})), near); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
	got := rank.Fuse(leg("old", .9), nil, rank.Options{DenseWeight: .6, LexicalWeight: .4, Superseded: names{"old": {"new"}}})
	if got[0].Replaces != "old" || len(got[0].SupersededBy) > 0 || !slices.Equal(got[1].SupersededBy, []memory.SHA{"new"}) {
		t.Errorf("marks: %+v", got)
	}
	rank.Explain(got, &rank.Options{})
	for i, words := range []string{"replaces old", "replaced by new"} {
		if !strings.Contains(got[i].Reason, words) {
			t.Errorf("reason %q does not say %q", got[i].Reason, words)
		}
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	lexical := leg("both", 5.0, "words", 4.0)
	lexical[0].IDFShare, lexical[1].IDFShare = .75, .5
	fused := rank.Fuse(leg("both", .82, "meaning", .7), lexical, brief)
	rank.Explain(fused, &brief)
	for _, f := range fused {
		want := map[memory.SHA]string{
			"both":    "near in meaning (cosine 0.82) and in words (75 % of what the question's rarer words weigh)",
			"meaning": "near in meaning alone (cosine 0.70)",
			"words":   "near in words alone (50 % of what the question's rarer words weigh)",
		}[f.ID]
		if f.Reason != want {
			t.Errorf("%s: got %q, want %q", f.ID, f.Reason, want)
		}
	}
	failed := rank.Options{DenseFailed: true}
	got := rank.Fuse(nil, lexical, failed)
	rank.Explain(got, &failed)
	if !strings.HasSuffix(got[0].Reason, "; the search by meaning failed") {
		t.Errorf("degraded: %q", got[0].Reason)
	}
}

// Any order of the hits gives the same ranking; scores stay in [0,1], in order,
// and a replaced node stands below its replacement.
func TestFuseProperties(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		ids := strings.Split("abcdefghij", "")
		pick := func(scale float64) (out []rank.Scored) {
			for range r.IntN(12) {
				s := float64(r.IntN(20)) / 10 * scale // ties are likely
				out = append(out, rank.Scored{ID: memory.SHA(ids[r.IntN(len(ids))]), Score: s, Max: 3 * scale, IDFShare: r.Float64()})
			}
			return out
		}
		d, l := pick(.5), pick(9)
		opt := rank.Options{DenseWeight: r.Float64(), RRF: r.IntN(3) == 0, Superseded: map[memory.SHA][]memory.SHA{}}
		opt.LexicalWeight = 1 - opt.DenseWeight
		for i := range ids { // always by a later letter: no ring
			if i > 0 && r.IntN(3) == 0 {
				by := memory.SHA(ids[i])
				of := memory.SHA(ids[r.IntN(i)])
				opt.Superseded[of] = append(opt.Superseded[of], by)
			}
		}
		want := rank.Fuse(d, l, opt)
		r.Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] })
		r.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
		if diff := cmp.Diff(want, rank.Fuse(d, l, opt)); diff != "" {
			t.Fatalf("order of hits matters (-want +got):\n%s", diff)
		}
		at := map[memory.SHA]int{}
		for i, f := range want {
			at[f.ID] = i
			if f.Score < 0 || f.Score > 1 || i > 0 && f.Score > want[i-1].Score {
				t.Fatalf("score %v at place %d of %v", f.Score, i, lines(want))
			}
		}
		for of, list := range opt.Superseded {
			for _, by := range list {
				if i, ok := at[of]; ok && at[by] >= i {
					t.Fatalf("%s stands at %d, its replacement %s at %d", of, i, by, at[by])
				}
			}
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		opt rank.Options
		ok  bool
	}{
		{rank.Defaults(), true},
		{rank.ForSpace(memory.Space{DenseWeight: .6, Floor: .3}), true},
		{rank.ForSpace(memory.Space{DenseWeight: 2}), false},
		{rank.Options{DenseWeight: .6, LexicalWeight: .4}, true},
		{rank.Options{DenseWeight: .6, LexicalWeight: .5}, false},
		{rank.Options{DenseWeight: 1.2, LexicalWeight: -.2}, false},
		{rank.Options{DenseWeight: math.NaN(), LexicalWeight: 1}, false},
		{rank.Options{DenseWeight: .5, LexicalWeight: .5, FloorIDF: 1.5}, false},
	} {
		if err := tt.opt.Validate(); (err == nil) != tt.ok || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: got %v", tt.opt, err)
		}
	}
}
