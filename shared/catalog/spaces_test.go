package catalog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore/memstore"
)

func TestSpaceWish(t *testing.T) {
	t.Parallel()
	c, bucket := open(t, memstore.New())
	if w, err := c.SpaceWish(t.Context()); err != nil || w != (catalog.SpaceWish{}) {
		t.Errorf("no file: %+v, %v", w, err)
	}
	for file, want := range map[string]catalog.SpaceWish{
		"embed: static-128\nretention: 72h\n": {Embed: "static-128", Retention: 72 * time.Hour},
		"embed: static\n":                     {Embed: "static"},
		"retention: 90m\n":                    {Retention: 90 * time.Minute},
	} {
		if _, err := bucket.Put(t.Context(), "config/local/spaces.yaml", []byte(file)); err != nil {
			t.Fatal(err)
		}
		if w, err := c.SpaceWish(t.Context()); err != nil || w != want {
			t.Errorf("%q: %+v, %v", file, w, err)
		}
	}
	for file, says := range map[string]string{
		"embed: static\nurl: http://elsewhere\n": `spaces.yaml:2: unknown field "url"`,
		"retention: soon\n":                      `spaces.yaml:1: "soon" is no retention`,
		"retention: 1s\n":                        `is no retention`,
		"embed:\n":                               `spaces.yaml:1`,
		"- embed\n":                              `spaces.yaml:1`,
	} {
		if _, err := bucket.Put(t.Context(), "config/local/spaces.yaml", []byte(file)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.SpaceWish(t.Context()); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", file, err, says)
		}
	}
}
