package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// SpaceWish is what config/<tenant>/spaces.yaml asks of the embedding spaces; each sweep
// looks at it. It names a model of the configuration and no endpoint: who may write the
// bucket can not have a key sent elsewhere.
type SpaceWish struct {
	Embed     string        // name of the model that shall embed; "": the configuration's
	Retention time.Duration // how long a space that served is kept up to date; 0: the default
}

const (
	maxSpaceFile = 64 << 10
	// maxRetention bounds what every new text is embedded for once more.
	maxRetention = 366 * 24 * time.Hour
)

// SpaceWish reads what the bucket asks for; nothing where there is no file.
func (c *Catalog) SpaceWish(ctx context.Context) (w SpaceWish, err error) {
	defer fault.Wrap(&err, "embedding spaces")
	key := "config/" + c.tenant + "/spaces.yaml"
	b, _, err := c.bucket.ReadAll(ctx, key, maxSpaceFile)
	if errors.Is(err, objstore.ErrNotFound) {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	f := strictyaml.File{Name: key, Noun: "the file of spaces", MaxBytes: maxSpaceFile}
	root, err := f.Root(b)
	if err != nil {
		return w, err
	}
	err = f.Mapping(root, "the file of spaces", strictyaml.Fields{
		"embed": func(n *strictyaml.Node) (err error) {
			w.Embed, err = f.Text(n, "embed")
			return err
		},
		"retention": func(n *strictyaml.Node) error {
			v, err := f.Text(n, "retention")
			if err != nil {
				return err
			}
			if w.Retention, err = time.ParseDuration(v); err != nil || w.Retention < time.Minute || w.Retention > maxRetention {
				return f.Fault(n, "from 1m to 8784h, as in 168h", "%q is no retention", v)
			}
			return nil
		},
	})
	if err != nil {
		return SpaceWish{}, err
	}
	return w, nil
}
