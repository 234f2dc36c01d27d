package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/objstore"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// MaxSchemas bounds a tenant's schemas: detection holds up to 20 records of an
// object against each.
const MaxSchemas = 100

// SchemaFile is one schema as it stands in the bucket.
type SchemaFile struct {
	Name   string // of the file, without .yaml
	Key    string
	ETag   string
	Data   []byte // nil when it could not be read
	Schema transcript.Schema
	Err    error // why it reads nothing: fault.Invalid with file, line and field
}

// Schemas are a tenant's schemas in name order.
type Schemas struct {
	Files []SchemaFile
	// Version is sha8 over names and contents, broken ones too; "" where there is
	// none. What was refused under another version may be readable now.
	Version string
}

// Good are those that read.
func (s Schemas) Good() []transcript.Schema {
	var out []transcript.Schema
	for _, f := range s.Files {
		if f.Err == nil {
			out = append(out, f.Schema)
		}
	}
	return out
}

// Broken is the error of the first that reads nothing, or nil.
func (s Schemas) Broken() error {
	for _, f := range s.Files {
		if f.Err != nil {
			return f.Err
		}
	}
	return nil
}

// schemaPrefix holds a "_": no project is named so, and config/<tenant>/schemas/
// would be that of a project called schemas.
func (c *Catalog) schemaPrefix() string { return "config/" + c.tenant + "/_schemas/" }

// Schemas reads the tenant's schemas: one LIST, and one GET of each file that is
// new since this process last looked. A file that can not be read as it stands
// is no error here: it stands in its SchemaFile, and the others read on.
func (c *Catalog) Schemas(ctx context.Context) (out Schemas, err error) {
	defer fault.Wrap(&err, "schemas of %s", c.tenant)
	sums := ""
	for info, err := range c.bucket.List(ctx, c.schemaPrefix()) {
		if err != nil {
			return Schemas{}, err
		}
		f, err := c.schemaFile(ctx, info)
		if errors.Is(err, objstore.ErrNotFound) {
			continue // removed since the LIST
		}
		if err != nil {
			return Schemas{}, err
		}
		if len(out.Files) >= MaxSchemas {
			f.Err = fault.At(fault.Invalid, f.Key, "mem schema rm removes one", "more than %d schemas", MaxSchemas)
		}
		out.Files = append(out.Files, f)
		sums += fmt.Sprintf("%s %s %s\n", f.Name, memory.Sum(f.Data), f.oversize())
	}
	if len(out.Files) > 0 {
		out.Version = memory.SumString(sums).Short()
	}
	return out, nil
}

// oversize tells two versions of a file apart that is not read.
func (f *SchemaFile) oversize() string {
	if f.Data == nil {
		return f.ETag
	}
	return ""
}

// schemaFile reads and parses one file, once for each version of it.
func (c *Catalog) schemaFile(ctx context.Context, info objstore.Info) (SchemaFile, error) {
	if v, ok := c.schemas.Load(info.Key); ok && info.ETag != "" && v.(SchemaFile).ETag == info.ETag {
		return v.(SchemaFile), nil
	}
	f := SchemaFile{Name: strings.TrimSuffix(path.Base(info.Key), ".yaml"), Key: info.Key, ETag: info.ETag}
	b, got, err := c.bucket.ReadAll(ctx, info.Key, transcript.MaxSchemaBytes)
	switch {
	case fault.Is(err, fault.Invalid):
		f.Err = fault.At(fault.Invalid, info.Key, "", "the schema has %d bytes, at most %d are allowed", info.SizeBytes, transcript.MaxSchemaBytes)
	case err != nil:
		return f, err
	default:
		f.Data, f.ETag = b, got.ETag
		f.Schema, f.Err = transcript.ParseSchema(info.Key, b)
		if f.Err == nil && info.Key != c.schemaPrefix()+f.Schema.Name+".yaml" {
			f.Err = fault.At(fault.Invalid, info.Key, "name the file "+f.Schema.Name+".yaml", "the schema's name is %q", f.Schema.Name)
		}
	}
	c.schemas.Store(info.Key, f)
	return f, nil
}

// Schema finds one by name, broken or not; fault.NotFound when there is none.
func (c *Catalog) Schema(ctx context.Context, name string) (SchemaFile, error) {
	s, err := c.Schemas(ctx)
	if err != nil {
		return SchemaFile{}, err
	}
	for _, f := range s.Files {
		if f.Name == name {
			return f, nil
		}
	}
	return SchemaFile{}, fault.At(fault.NotFound, "schema "+name, "mem schema list shows them", "there is no such schema")
}

// SaveSchema writes a schema under its own name, in the place of the one that
// bears it. before is what stood there, with Key "" for a new
// one; the same bytes again write nothing. A file that changes meanwhile gives
// fault.Conflict. file names the bytes in errors.
func (c *Catalog) SaveSchema(ctx context.Context, file string, data []byte) (before, after SchemaFile, err error) {
	defer fault.Wrap(&err, "save schema")
	s, err := transcript.ParseSchema(file, data)
	if err != nil {
		return before, after, err
	}
	all, err := c.Schemas(ctx)
	if err != nil {
		return before, after, err
	}
	for _, f := range all.Files {
		if f.Name == s.Name {
			before = f
		}
	}
	if before.Key != "" && bytes.Equal(before.Data, data) {
		return before, before, nil
	}
	after = SchemaFile{Name: s.Name, Key: c.schemaPrefix() + s.Name + ".yaml", Data: data, Schema: s}
	var info objstore.Info
	switch {
	case before.Key != "":
		info, err = c.bucket.Replace(ctx, after.Key, data, before.ETag)
	case len(all.Files) >= MaxSchemas:
		err = fault.At(fault.Exhausted, file, "mem schema rm removes one", "there are %d schemas, the most allowed", len(all.Files))
	default:
		info, err = c.bucket.Create(ctx, after.Key, data)
	}
	after.ETag = info.ETag
	return before, after, err
}

// RemoveSchema removes one. What was read by it stays as it is.
func (c *Catalog) RemoveSchema(ctx context.Context, name string) (err error) {
	defer fault.Wrap(&err, "remove schema")
	f, err := c.Schema(ctx, name)
	if err != nil {
		return err
	}
	return c.bucket.Delete(ctx, f.Key)
}

// swept names the pointer of SweptSchemas. Its "_" keeps it from a project's.
const swept = "_schemas/swept"

// SweptSchemas is the version of the schemas under which all that was refused
// has been read again, and the ETag to move it by.
func (c *Catalog) SweptSchemas(ctx context.Context) (version, etag string, err error) {
	var v struct {
		Version string `json:"version"`
	}
	etag, err = c.log.Pointer(ctx, swept, &v)
	return v.Version, etag, err
}

// SetSweptSchemas moves it; fault.Conflict when another sweep did.
func (c *Catalog) SetSweptSchemas(ctx context.Context, version, etag string) error {
	return c.log.SetPointer(ctx, swept, map[string]string{"version": version}, etag)
}
