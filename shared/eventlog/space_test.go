package eventlog_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TestSpaces: a space has its record, vectors of other dimensions are refused by who knows
// it and found by verify, and a space that is dropped leaves the others.
func TestSpaces(t *testing.T) {
	t.Parallel()
	const stream = "decisions@0a1b2c3d"
	b := newBucket()
	l := build(t, b, "w", 3, 1, stream)
	ctx := t.Context()
	space := func(model string, dims int) memory.Space {
		return memory.Space{ID: memory.SpaceID(model, "1", dims, "none"), Model: model, Revision: "1", Dims: dims, Prefix: "none", DenseWeight: 0.4, Floor: 0.4}
	}
	one, two := space("m", 2), space("m", 3)
	for range 2 { // again is the same object
		for _, s := range []memory.Space{one, two} {
			if err := l.PutSpace(ctx, project, s); err != nil {
				t.Fatal(err)
			}
		}
	}
	keys := 0
	for _, err := range l.RecordKeys(ctx, project, eventlog.Spaces) {
		if keys++; err != nil {
			t.Fatal(err)
		}
	}
	if keys != 2 {
		t.Errorf("%d records of 2 spaces", keys)
	}
	lies := one
	lies.Dims = 5
	if err := l.PutSpace(ctx, project, lies); !fault.Is(err, fault.Invalid) {
		t.Errorf("a space whose id is not its own: %v", err)
	}
	vectors := func(dims int) eventlog.Vectors {
		return eventlog.Vectors{Dims: dims, Passages: []memory.SHA{memory.SumString("p")}, Rows: make([]float32, dims)}
	}
	if err := l.PutVectors(ctx, project, one.ID, stream, 1, vectors(3)); !fault.Is(err, fault.Invalid) {
		t.Errorf("vectors of another space: %v", err)
	}
	for seq := int64(1); seq <= 2; seq++ {
		for _, s := range []memory.Space{one, two} {
			if err := l.PutVectors(ctx, project, s.ID, stream, seq, vectors(s.Dims)); err != nil {
				t.Fatal(err)
			}
		}
	}
	found := func() (out []string) {
		t.Helper()
		rep, err := l.Verify(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range rep.Problems {
			if strings.Contains(p.String(), "dimensions") {
				out = append(out, p.String())
			}
		}
		return out
	}
	if p := found(); len(p) > 0 {
		t.Errorf("%q", p)
	}
	// Who does not know the space writes what it likes; verify finds it.
	if err := eventlog.Open(b, l.Tenant(), "other").PutVectors(ctx, project, one.ID, stream, 3, vectors(3)); err != nil {
		t.Fatal(err)
	}
	if p := found(); len(p) != 1 || !strings.Contains(p[0], one.ID) {
		t.Errorf("%q", p)
	}
	if n, err := l.DropSpace(ctx, project, one.ID); n != 3 || err != nil {
		t.Errorf("%d objects dropped, %v", n, err)
	}
	if n, err := l.DropSpace(ctx, project, one.ID); n != 0 || err != nil {
		t.Errorf("once more: %d, %v", n, err)
	}
	if ids, err := l.VectorSpaces(ctx, project); err != nil || len(ids) != 1 || ids[0] != two.ID {
		t.Errorf("%q are left, %v", ids, err)
	}
	if n, err := l.VectorsHead(ctx, project, two.ID, stream); n != 2 || err != nil {
		t.Errorf("the other space ends at %d, %v", n, err)
	}
	if p := found(); len(p) > 0 {
		t.Errorf("%q", p)
	}
}
