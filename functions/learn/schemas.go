package learn

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/catalog"
	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Schema is one of the user's schemas as people see it.
type Schema struct {
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"` // as reader_version has it after "+"
	Rules   []string `json:"rules"`             // when a record is of this format, in words
	Error   string   `json:"error,omitempty"`   // why it reads nothing
	Hint    string   `json:"hint,omitempty"`
	YAML    string   `json:"yaml,omitempty"`
	Stored  string   `json:"stored,omitempty"` // by this call: new, replaced or unchanged
}

// Schemas is the answer of GET /memory/schemas.
type Schemas struct {
	Version string   `json:"version"` // of all of them, as receipts have it
	Schemas []Schema `json:"schemas"`
}

// maxSchemaBody bounds POST /memory/schemas: a schema of 64 KiB, escaped.
const maxSchemaBody = 512 << 10

func schemaOf(f catalog.SchemaFile) Schema {
	s := Schema{Name: f.Name, Rules: []string{}}
	if f.Err != nil {
		s.Error, s.Hint = f.Err.Error(), fault.HintOf(f.Err)
		return s
	}
	s.Version, s.Rules = f.Schema.Version(), f.Schema.Rules()
	return s
}

func (f *Function) listSchemas(w http.ResponseWriter, r *http.Request) {
	all, err := f.cfg.Catalog.Schemas(r.Context())
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	out := Schemas{Version: all.Version, Schemas: []Schema{}}
	for _, s := range all.Files {
		out.Schemas = append(out.Schemas, schemaOf(s))
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

func (f *Function) getSchema(w http.ResponseWriter, r *http.Request) {
	s, err := f.cfg.Catalog.Schema(r.Context(), r.PathValue("name"))
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	out := schemaOf(s)
	out.YAML = string(s.Data)
	serve.WriteJSON(w, http.StatusOK, out)
}

func (f *Function) addSchema(w http.ResponseWriter, r *http.Request) {
	var b struct {
		File string `json:"file"`
		YAML string `json:"yaml"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSchemaBody))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {file, yaml}", "%v", err))
		return
	}
	if b.File == "" {
		b.File = "schema.yaml"
	}
	before, after, err := f.cfg.Catalog.SaveSchema(r.Context(), b.File, []byte(b.YAML))
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	out := schemaOf(after)
	switch {
	case before.Key == "":
		out.Stored = "new"
	case before.ETag == after.ETag:
		out.Stored = "unchanged"
	default:
		out.Stored = "replaced"
	}
	if out.Stored != "unchanged" {
		err = f.schemasChanged(r.Context())
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

func (f *Function) removeSchema(w http.ResponseWriter, r *http.Request) {
	err := f.cfg.Catalog.RemoveSchema(r.Context(), r.PathValue("name"))
	if err == nil {
		err = f.schemasChanged(r.Context())
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	f.listSchemas(w, r)
}

// schemasChanged asks for a sweep: what was refused may be readable now.
func (f *Function) schemasChanged(ctx context.Context) error {
	return f.publish(ctx, []ce.Event{event.New(event.SweepRequested, f.Name(), event.Sweep{
		Tenant: f.cfg.Tenant, At: f.cfg.Now().UTC().Format(time.RFC3339Nano),
	})})
}
