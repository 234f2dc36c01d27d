package catalog_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

const schemas = "config/local/_schemas/"

func plain(name string) string {
	return "name: " + name + "\nmatch: [{path: a}]\nmessage: {role: r, text: t}\n"
}

// state names each file and what is wrong with it.
func state(t *testing.T, c *catalog.Catalog) map[string]string {
	t.Helper()
	all, err := c.Schemas(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range all.Files {
		out[f.Name] = ""
		if f.Err != nil {
			out[f.Name] = f.Err.Error()
		}
	}
	return out
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	c, b := open(t, memstore.New())
	if all, err := c.Schemas(t.Context()); err != nil || len(all.Files) != 0 || all.Version != "" || all.Broken() != nil {
		t.Fatalf("%+v %v", all, err)
	}
	for _, name := range []string{"b", "a"} {
		before, after, err := c.SaveSchema(t.Context(), "x.yaml", []byte(plain(name)))
		if err != nil || before.Key != "" || after.Key != schemas+name+".yaml" || after.ETag == "" {
			t.Fatalf("%+v %+v %v", before, after, err)
		}
	}
	first, err := c.Schemas(t.Context())
	if err != nil || len(first.Good()) != 2 || first.Good()[0].Name != "a" || first.Broken() != nil {
		t.Fatalf("%+v %v", first, err)
	}
	before, after, err := c.SaveSchema(t.Context(), "x.yaml", []byte(plain("a")))
	if err != nil || before.ETag != after.ETag || before.ETag == "" {
		t.Errorf("the same again: %+v %+v %v", before, after, err)
	}
	if _, _, err := c.SaveSchema(t.Context(), "x.yaml", []byte("name: a\n")); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "x.yaml:1") {
		t.Errorf("a broken one: %v", err)
	}
	if again, _ := c.Schemas(t.Context()); again.Version != first.Version {
		t.Errorf("version %s, then %s", first.Version, again.Version)
	}

	// What stands there by hand is judged, and the others read on.
	for name, body := range map[string]string{
		"c.yaml": plain("d"), "e.yaml": "name: e\nmatch: &x [{path: a}]\n", "f.yaml": strings.Repeat("#", 65537), "g.yml": plain("g"), "pi.yaml": plain("pi"),
	} {
		if _, err := b.Put(t.Context(), schemas+name, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"a": "", "b": "", "c": schemas + `c.yaml: the schema's name is "d"`, "e": schemas + "e.yaml:2: anchors and aliases are not allowed",
		"f": schemas + "f.yaml: the schema has 65537 bytes, at most 65536 are allowed", "g.yml": schemas + `g.yml: the schema's name is "g"`,
		"pi": schemas + `pi.yaml: "pi" is a format that is read without a schema`,
	}
	if d := cmp.Diff(want, state(t, c)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	broken, err := c.Schemas(t.Context())
	if err != nil || len(broken.Good()) != 2 || broken.Version == first.Version || broken.Broken() == nil {
		t.Errorf("%+v %v", broken, err)
	}
	// A file that is too large to read still has versions.
	if _, err := b.Put(t.Context(), schemas+"f.yaml", []byte(strings.Repeat("%", 65537))); err != nil {
		t.Fatal(err)
	}
	if next, _ := c.Schemas(t.Context()); next.Version == broken.Version {
		t.Error("another file has the same version")
	}
	for _, name := range []string{"c", "e", "f", "g.yml", "pi", "b"} {
		if err := c.RemoveSchema(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.RemoveSchema(t.Context(), "b"); !fault.Is(err, fault.NotFound) {
		t.Errorf("twice: %v", err)
	}
	if d := cmp.Diff(map[string]string{"a": ""}, state(t, c)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A project may be called schemas, and has its own files.
func TestSchemasAreNoProject(t *testing.T) {
	t.Parallel()
	c, b := open(t, memstore.New())
	if _, err := b.Put(t.Context(), "config/local/schemas/questions.yaml", []byte("project: schemas\nqueries: []\n")); err != nil {
		t.Fatal(err)
	}
	if all, err := c.Schemas(t.Context()); err != nil || len(all.Files) != 0 {
		t.Errorf("%+v %v", all, err)
	}
	if _, _, err := c.SaveSchema(t.Context(), "x.yaml", []byte(plain("questions"))); err != nil {
		t.Fatal(err)
	}
	if set, _, err := c.Questions(t.Context(), "schemas"); err != nil || set.Project != "schemas" {
		t.Errorf("%+v %v", set, err)
	}
}

// A file is read once for each of its versions.
func TestSchemasAreCached(t *testing.T) {
	t.Parallel()
	gets := 0
	c, _ := open(t, memstore.NewWith(memstore.Hooks{Before: func(_ context.Context, call memstore.Call) error {
		if call.Op == memstore.OpGet {
			gets++
		}
		return nil
	}}))
	for _, name := range []string{"a", "b"} {
		if _, _, err := c.SaveSchema(t.Context(), "x.yaml", []byte(plain(name))); err != nil {
			t.Fatal(err)
		}
	}
	read := func(want int) {
		t.Helper()
		gets = 0
		if all, err := c.Schemas(t.Context()); err != nil || len(all.Good()) != 2 || gets != want {
			t.Errorf("%d reads, want %d: %v", gets, want, err)
		}
	}
	if _, err := c.Schemas(t.Context()); err != nil {
		t.Fatal(err)
	}
	read(0)
	if _, _, err := c.SaveSchema(t.Context(), "x.yaml", []byte(plain("b")+"# more\n")); err != nil {
		t.Fatal(err)
	}
	read(1)
	read(0)
}

// Two people change one schema at the same time: one of them is told.
func TestSchemaConflict(t *testing.T) {
	t.Parallel()
	var race func()
	c, b := open(t, memstore.NewWith(memstore.Hooks{Before: func(_ context.Context, call memstore.Call) error {
		if race != nil && call.Op == memstore.OpPut {
			f := race
			race = nil
			f()
		}
		return nil
	}}))
	other := catalog.New(b, eventlog.Open(b, "local", "other"), "local")
	for _, text := range []string{"", "# again\n"} {
		race = func() {
			if _, _, err := other.SaveSchema(t.Context(), "y.yaml", []byte(plain("a")+text+"# theirs\n")); err != nil {
				t.Error(err)
			}
		}
		if _, _, err := c.SaveSchema(t.Context(), "x.yaml", []byte(plain("a")+text)); !fault.Is(err, fault.Conflict) {
			t.Errorf("the slower one: %v", err)
		}
		if f, err := c.Schema(t.Context(), "a"); err != nil || !strings.Contains(string(f.Data), "theirs") {
			t.Errorf("%s %v", f.Data, err)
		}
	}
}

func TestSchemaLimit(t *testing.T) {
	t.Parallel()
	c, b := open(t, memstore.New())
	for i := range catalog.MaxSchemas {
		if _, err := b.Create(t.Context(), fmt.Sprintf("%ss%03d.yaml", schemas, i), []byte(plain(fmt.Sprintf("s%03d", i)))); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := c.SaveSchema(t.Context(), "x.yaml", []byte(plain("x"))); !fault.Is(err, fault.Exhausted) {
		t.Errorf("one more: %v", err)
	}
	if _, _, err := c.SaveSchema(t.Context(), "x.yaml", []byte(plain("s000")+"# changed\n")); err != nil {
		t.Errorf("one in the place of another: %v", err)
	}
	if _, err := b.Create(t.Context(), schemas+"z.yaml", []byte(plain("z"))); err != nil {
		t.Fatal(err)
	}
	all, err := c.Schemas(t.Context())
	if err != nil || len(all.Good()) != catalog.MaxSchemas || all.Files[catalog.MaxSchemas].Err == nil {
		t.Errorf("%d read: %v", len(all.Good()), err)
	}
}

// A store that does not answer is an error, and no schema that is not there.
func TestSchemasUnavailable(t *testing.T) {
	t.Parallel()
	for _, op := range []memstore.Op{memstore.OpGet, memstore.OpList} {
		fail := false
		b := objstore.NewBucket("mneme", memstore.NewWith(memstore.Hooks{Before: func(_ context.Context, call memstore.Call) error {
			if fail && call.Op == op {
				return fault.New(fault.Unavailable, "away")
			}
			return nil
		}}), objstore.WithRetry(1, 0))
		if _, err := b.Put(t.Context(), schemas+"a.yaml", []byte(plain("a"))); err != nil {
			t.Fatal(err)
		}
		fail = true
		c := catalog.New(b, eventlog.Open(b, "local", "test"), "local")
		if _, err := c.Schemas(t.Context()); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s fails: %v", op, err)
		}
		fail = false
		if d := cmp.Diff(map[string]string{"a": ""}, state(t, c)); d != "" {
			t.Errorf("afterwards:\n%s", d)
		}
	}
}

func TestSweptSchemas(t *testing.T) {
	t.Parallel()
	c, _ := open(t, memstore.New())
	v, etag, err := c.SweptSchemas(t.Context())
	if v != "" || etag != "" || err != nil {
		t.Fatal(v, etag, err)
	}
	if err := c.SetSweptSchemas(t.Context(), "1a2b3c4d", ""); err != nil {
		t.Fatal(err)
	}
	if v, etag, err = c.SweptSchemas(t.Context()); v != "1a2b3c4d" || etag == "" || err != nil {
		t.Error(v, etag, err)
	}
}
