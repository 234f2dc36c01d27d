package lookuptest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/lookup"
	"github.com/mneme-ai/mneme/shared/memory"
)

var (
	shop  = lookup.Scope{Tenant: "acme", Project: "shop"}
	blog  = lookup.Scope{Tenant: "acme", Project: "blog"}
	other = lookup.Scope{Tenant: "umbrella", Project: "shop"}
	day   = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
)

func sha(format string, args ...any) memory.SHA {
	return memory.SumString(fmt.Sprintf(format, args...))
}

// row is a lesson of failure n, stored as the i-th.
func row(i, n int) lookup.Row {
	return lookup.Row{
		Key: sha("record %d", i), At: day.Add(time.Duration(i) * time.Minute), Body: []byte(fmt.Sprintf(`{"text":"cure %d"}`, i)),
		Hashes: []lookup.Hash{{Kind: lookup.Detail, SHA: sha("detail %d", n)}, {Kind: lookup.Class, SHA: sha("class %d", n/2)}, {Kind: lookup.Symptom, SHA: sha("symptom %d", n/4)}},
	}
}

func outcome(i, use int, worked bool) lookup.Outcome {
	return lookup.Outcome{Record: sha("outcome %d %d %v", i, use, worked), Lesson: sha("record %d", i), Use: fmt.Sprintf("use-%d", use), Worked: worked}
}

// Run is the contract of lookup.Index.
func Run(t *testing.T, open func(t *testing.T) lookup.Index) {
	t.Run("kinds", func(t *testing.T) { kinds(t, open(t)) })
	t.Run("scopes", func(t *testing.T) { scopes(t, open(t)) })
	t.Run("outcomes", func(t *testing.T) { outcomes(t, open(t)) })
	t.Run("gone", func(t *testing.T) { gone(t, open(t)) })
	t.Run("bounds", func(t *testing.T) { bounds(t, open(t)) })
	t.Run("refused", func(t *testing.T) { refused(t, open(t)) })
	t.Run("order", func(t *testing.T) { anyOrder(t, open) })
	t.Run("model", func(t *testing.T) { model(t, open(t)) })
}

func apply(t *testing.T, ix lookup.Index, s lookup.Scope, b lookup.Batch) {
	t.Helper()
	if err := ix.Apply(t.Context(), s, b); err != nil {
		t.Fatal(err)
	}
}

func keys(t *testing.T, ix lookup.Index, s lookup.Scope, k lookup.Kind, limit int, hashes ...memory.SHA) ([]memory.SHA, int) {
	t.Helper()
	ms, total, err := ix.Find(t.Context(), s, k, hashes, limit)
	if err != nil {
		t.Fatal(err)
	}
	var out []memory.SHA
	for _, m := range ms {
		out = append(out, m.Key)
	}
	return out, total
}

func kinds(t *testing.T, ix lookup.Index) {
	apply(t, ix, shop, lookup.Batch{Rows: []lookup.Row{row(1, 0), row(2, 1), row(3, 2)}})
	for _, c := range []struct {
		kind lookup.Kind
		ask  []memory.SHA
		want []memory.SHA
	}{
		{lookup.Detail, []memory.SHA{sha("detail 0")}, []memory.SHA{sha("record 1")}},
		{lookup.Class, []memory.SHA{sha("class 0")}, []memory.SHA{sha("record 2"), sha("record 1")}},
		{lookup.Symptom, []memory.SHA{sha("symptom 0")}, []memory.SHA{sha("record 3"), sha("record 2"), sha("record 1")}},
		{lookup.Detail, []memory.SHA{sha("detail 2"), sha("detail 0"), sha("detail 0")}, []memory.SHA{sha("record 3"), sha("record 1")}},
		{lookup.Class, []memory.SHA{sha("detail 0")}, nil}, // a hash is of its kind
		{lookup.Detail, nil, nil},
	} {
		got, total := keys(t, ix, shop, c.kind, 10, c.ask...)
		if d := cmp.Diff(c.want, got); d != "" || total != len(c.want) {
			t.Errorf("kind %d of %d hashes: total %d\n%s", c.kind, len(c.ask), total, d)
		}
	}
	got, total := keys(t, ix, shop, lookup.Symptom, 2, sha("symptom 0"))
	if d := cmp.Diff([]memory.SHA{sha("record 3"), sha("record 2")}, got); d != "" || total != 3 {
		t.Errorf("limit: total %d\n%s", total, d)
	}
	m, ok, err := ix.Get(t.Context(), shop, sha("record 2"))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	want := row(2, 1)
	if err := lookup.CheckBatch(shop, &lookup.Batch{Rows: []lookup.Row{want}}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want.Body, m.Body); d != "" || !m.At.Equal(want.At) || len(m.Hashes) != 3 {
		t.Errorf("the row came back as %+v", m)
	}
}

func scopes(t *testing.T, ix lookup.Index) {
	apply(t, ix, shop, lookup.Batch{Rows: []lookup.Row{row(1, 0)}, Outcomes: []lookup.Outcome{outcome(1, 1, true)}})
	for _, s := range []lookup.Scope{blog, other} {
		for k, h := range map[lookup.Kind]memory.SHA{lookup.Detail: sha("detail 0"), lookup.Class: sha("class 0"), lookup.Symptom: sha("symptom 0")} {
			if got, total := keys(t, ix, s, k, 10, h); len(got) > 0 || total > 0 {
				t.Errorf("%s/%s sees a row of %s/%s", s.Tenant, s.Project, shop.Tenant, shop.Project)
			}
		}
		if _, ok, err := ix.Get(t.Context(), s, sha("record 1")); ok || err != nil {
			t.Error("a row of another scope by its key", ok, err)
		}
		if n, _, err := ix.Holding(t.Context(), s, func(string) bool { return true }); n != 0 || err != nil {
			t.Error("a row of another scope was looked through", n, err)
		}
		if k, err := ix.Known(t.Context(), s); len(k) != 0 || err != nil {
			t.Error("records of another scope", len(k), err)
		}
	}
	// The same record in another project is another row; replacing one leaves the other.
	apply(t, ix, blog, lookup.Batch{Rows: []lookup.Row{row(1, 0)}})
	if err := ix.Replace(t.Context(), blog, lookup.Batch{}); err != nil {
		t.Fatal(err)
	}
	if got, _ := keys(t, ix, blog, lookup.Detail, 10, sha("detail 0")); len(got) > 0 {
		t.Error("replaced rows are found")
	}
	ms, _, err := ix.Find(t.Context(), shop, lookup.Detail, []memory.SHA{sha("detail 0")}, 10)
	if err != nil || len(ms) != 1 || ms[0].Told != 1 {
		t.Error("another project's replacing took rows or outcomes", ms, err)
	}
	if p, err := ix.Projects(t.Context(), "acme"); err != nil || !slices.Equal(p, []string{"shop"}) {
		t.Error("projects", p, err)
	}
}

func outcomes(t *testing.T, ix lookup.Index) {
	// An outcome may come before its lesson.
	apply(t, ix, shop, lookup.Batch{Outcomes: []lookup.Outcome{outcome(1, 1, true)}})
	apply(t, ix, shop, lookup.Batch{Rows: []lookup.Row{row(1, 0), row(2, 0)}})
	apply(t, ix, shop, lookup.Batch{Outcomes: []lookup.Outcome{outcome(1, 1, true), outcome(1, 2, false), outcome(2, 1, true)}})
	m, _, err := ix.Get(t.Context(), shop, sha("record 1"))
	if err != nil || m.Told != 2 || m.Worked != 1 {
		t.Errorf("told %d, worked %d (%v), want 2 and 1: the same again is no second use", m.Told, m.Worked, err)
	}
	// Two records that say differently of one use: the smaller key, whichever came first.
	apply(t, ix, shop, lookup.Batch{Outcomes: []lookup.Outcome{outcome(2, 7, true), outcome(2, 7, false)}})
	m, _, err = ix.Get(t.Context(), shop, sha("record 2"))
	worked := 1
	if outcome(2, 7, true).Record < outcome(2, 7, false).Record {
		worked = 2
	}
	if err != nil || m.Told != 2 || m.Worked != worked {
		t.Errorf("told %d, worked %d (%v), want 2 and %d", m.Told, m.Worked, err, worked)
	}
}

func gone(t *testing.T, ix lookup.Index) {
	apply(t, ix, shop, lookup.Batch{Rows: []lookup.Row{row(1, 0), row(2, 0)}})
	apply(t, ix, shop, lookup.Batch{Gone: []memory.SHA{sha("record 1"), sha("record 3")}})
	apply(t, ix, shop, lookup.Batch{Rows: []lookup.Row{row(1, 0), row(3, 0)}}) // late
	if got, _ := keys(t, ix, shop, lookup.Class, 10, sha("class 0")); !slices.Equal(got, []memory.SHA{sha("record 2")}) {
		t.Error("what was erased is found:", got)
	}
	known, err := ix.Known(t.Context(), shop)
	if err != nil || len(known) != 3 {
		t.Error("known", len(known), err)
	}
	for key, want := range map[memory.SHA]bool{sha("record 1"): true, sha("record 2"): true, sha("record 9"): false} {
		if has, err := ix.Has(t.Context(), shop, key); has != want || err != nil {
			t.Error("has", has, err)
		}
		if has, err := ix.Has(t.Context(), blog, key); has || err != nil {
			t.Error("another project has", has, err)
		}
	}
	if n, found, err := ix.Holding(t.Context(), shop, func(s string) bool { return s == `{"text":"cure 1"}` }); n != 1 || found != 0 || err != nil {
		t.Error("its words stand there", n, found, err)
	}
	if err := ix.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _ := keys(t, ix, shop, lookup.Class, 10, sha("class 0")); len(got) != 1 {
		t.Error("a purge took a row that stands")
	}
}

func bounds(t *testing.T, ix lookup.Index) {
	var rows []lookup.Row
	for i := range lookup.MaxTotal + 20 {
		rows = append(rows, row(i, 0))
	}
	apply(t, ix, shop, lookup.Batch{Rows: rows})
	got, total := keys(t, ix, shop, lookup.Detail, 3, sha("detail 0"))
	n := lookup.MaxTotal + 19
	if want := []memory.SHA{sha("record %d", n), sha("record %d", n-1), sha("record %d", n-2)}; !slices.Equal(got, want) || total != lookup.MaxTotal {
		t.Errorf("of many the newest: %v, total %d", got, total)
	}
}

func refused(t *testing.T, ix lookup.Index) {
	good := row(1, 0)
	for name, c := range map[string]struct {
		s lookup.Scope
		b lookup.Batch
	}{
		"no tenant":     {lookup.Scope{Project: "shop"}, lookup.Batch{Rows: []lookup.Row{good}}},
		"no project":    {lookup.Scope{Tenant: "acme"}, lookup.Batch{Rows: []lookup.Row{good}}},
		"no hash":       {shop, lookup.Batch{Rows: []lookup.Row{{Key: good.Key, Body: good.Body}}}},
		"no sha":        {shop, lookup.Batch{Rows: []lookup.Row{{Key: "x", Hashes: good.Hashes, Body: good.Body}}}},
		"no kind":       {shop, lookup.Batch{Rows: []lookup.Row{{Key: good.Key, Hashes: []lookup.Hash{{Kind: 9, SHA: good.Key}}, Body: good.Body}}}},
		"no use":        {shop, lookup.Batch{Outcomes: []lookup.Outcome{{Record: good.Key, Lesson: good.Key}}}},
		"no gone":       {shop, lookup.Batch{Gone: []memory.SHA{"x"}}},
		"bad after one": {shop, lookup.Batch{Rows: []lookup.Row{row(5, 5), {}}}},
	} {
		if err := ix.Apply(t.Context(), c.s, c.b); err == nil {
			t.Errorf("%s: applied", name)
		}
	}
	if got, _ := keys(t, ix, shop, lookup.Detail, 10, sha("detail 5")); len(got) > 0 {
		t.Error("half of a refused batch stands")
	}
	if _, _, err := ix.Find(t.Context(), lookup.Scope{}, lookup.Detail, []memory.SHA{sha("detail 0")}, 10); err == nil {
		t.Error("an empty scope was asked")
	}
}

// anyOrder: batches in any order, repeated, come to the same rows as one Replace.
func anyOrder(t *testing.T, open func(t *testing.T) lookup.Index) {
	var all []lookup.Batch
	var one lookup.Batch
	for i := range 12 {
		b := lookup.Batch{Rows: []lookup.Row{row(i, i%5)}}
		if i%3 == 0 {
			b.Outcomes = []lookup.Outcome{outcome(i, i, true), outcome((i+1)%12, 1, false)}
		}
		if i%4 == 0 {
			b.Gone = []memory.SHA{sha("record %d", (i+2)%12)}
		}
		all = append(all, b)
		one.Rows, one.Outcomes, one.Gone = append(one.Rows, b.Rows...), append(one.Outcomes, b.Outcomes...), append(one.Gone, b.Gone...)
	}
	want := ""
	for seed := range uint64(4) {
		ix := open(t)
		if seed == 0 {
			apply(t, ix, shop, lookup.Batch{Rows: []lookup.Row{row(99, 1)}}) // what a rebuild finds there
			if err := ix.Replace(t.Context(), shop, one); err != nil {
				t.Fatal(err)
			}
		} else {
			r := rand.New(rand.NewPCG(seed, 1))
			bs := append(slices.Clone(all), all[:5]...)
			r.Shuffle(len(bs), func(i, j int) { bs[i], bs[j] = bs[j], bs[i] })
			for _, b := range bs {
				apply(t, ix, shop, b)
			}
		}
		h, n, err := ix.Hash(t.Context(), shop.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(h, n); want == "" {
			want = got
		} else if got != want {
			t.Errorf("order %d: %s, want %s", seed, got, want)
		}
	}
}

// model holds a driver against Mem over random batches and questions.
func model(t *testing.T, ix lookup.Index) {
	ctx := context.Background()
	mem := NewMem()
	r := rand.New(rand.NewPCG(7, 7))
	all := []lookup.Scope{shop, blog, other}
	for range 60 {
		s := all[r.IntN(3)]
		var b lookup.Batch
		for range r.IntN(4) {
			n := r.IntN(40)
			b.Rows = append(b.Rows, row(n, n%9)) // a record is named by its content: the same key is the same row
		}
		for range r.IntN(3) {
			b.Outcomes = append(b.Outcomes, outcome(r.IntN(40), r.IntN(4), r.IntN(2) == 0))
		}
		if r.IntN(4) == 0 {
			b.Gone = append(b.Gone, sha("record %d", r.IntN(40)))
		}
		do := []func(lookup.Index) error{
			func(ix lookup.Index) error { return ix.Apply(ctx, s, b) },
			func(ix lookup.Index) error { return ix.Replace(ctx, s, b) },
		}[min(1, r.IntN(12)/11)]
		if err := do(ix); err != nil {
			t.Fatal(err)
		}
		if err := do(mem); err != nil {
			t.Fatal(err)
		}
		got, gotN, err := ix.Hash(ctx, s.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		if want, wantN, err := mem.Hash(ctx, s.Tenant); got != want || gotN != wantN || err != nil {
			t.Fatalf("%d rows %s, want %d %s (%v): the hash is of the rows, not of the driver", gotN, got, wantN, want, err)
		}
		s = all[r.IntN(3)]
		for k, name := range map[lookup.Kind]string{lookup.Detail: "detail", lookup.Class: "class", lookup.Symptom: "symptom"} {
			ask := []memory.SHA{sha("%s %d", name, r.IntN(9)), sha("%s %d", name, r.IntN(9))}
			limit := 1 + r.IntN(5)
			got, gotN, err := ix.Find(ctx, s, k, ask, limit)
			if err != nil {
				t.Fatal(err)
			}
			want, wantN, err := mem.Find(ctx, s, k, ask, limit)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" || gotN != wantN {
				t.Fatalf("%s: total %d, want %d\n%s", name, gotN, wantN, d)
			}
		}
	}
}
