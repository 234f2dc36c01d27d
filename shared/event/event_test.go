package event_test

import (
	"strings"
	"testing"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

func TestIDIsContent(t *testing.T) {
	t.Parallel()
	p := event.Part{Tenant: "local", Project: "shop", Seq: 3, Source: memory.SumString("s")}
	a, b := event.New(event.ChunksReady, "learn", p), event.New(event.ChunksReady, "gate", p)
	if a.ID() != b.ID() {
		t.Error("the same fact has two ids")
	}
	p.Seq = 4
	if event.New(event.ChunksReady, "learn", p).ID() == a.ID() {
		t.Error("two facts have one id")
	}
	if err := a.Validate(); err != nil {
		t.Error(err)
	}
	if got := a.Subject(); got != "local/shop/_admit" {
		t.Errorf("subject %q", got)
	}
	if x := a.Extensions(); x["mnemetenant"] != "local" || x["mnemeproject"] != "shop" {
		t.Errorf("extensions %v", x)
	}
	got, err := event.Decode[event.Part](a)
	if err != nil || got.Seq != 3 || got.Project != "shop" {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	t.Parallel()
	make := func(data string) ce.Event {
		e := ce.New()
		e.SetType(string(event.RunRequested))
		e.SetSource("/t")
		e.SetID("1")
		if err := e.SetData(ce.ApplicationJSON, []byte(data)); err != nil {
			t.Fatal(err)
		}
		return e
	}
	good := `{"tenant":"local","project":"shop","stream":"rules@1","seq":0}`
	if _, err := event.Decode[event.Stream](make(good)); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"unknown field": strings.Replace(good, `"seq"`, `"sequence"`, 1), "no stream": `{"tenant":"local","project":"shop","seq":0}`,
		"bad project": strings.Replace(good, "shop", "../x", 1), "trailing": good + `{}`, "not json": `x`, "array": `[]`,
	} {
		if _, err := event.Decode[event.Stream](make(data)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnotherTenantIsDenied(t *testing.T) {
	t.Parallel()
	e := event.New(event.RunEnded, "gate", event.Stream{Tenant: "acme", Project: "shop", Stream: "rules@1", Seq: 1})
	if _, err := event.DecodeFor[event.Stream](e, "acme"); err != nil {
		t.Error(err)
	}
	if _, err := event.DecodeFor[event.Stream](e, "rival"); !fault.Is(err, fault.Denied) {
		t.Errorf("another tenant's event: %v", err)
	}
	o := event.New(event.ObjectCreated, "s3", event.Object{Bucket: "transcripts", Key: "shop/a"})
	if _, err := event.DecodeFor[event.Object](o, "acme"); err != nil {
		t.Errorf("an event of a bucket names no tenant: %v", err)
	}
}

// DESIGN section 2: every type has the owners of the table.
func TestHandlers(t *testing.T) {
	t.Parallel()
	want := map[event.Type]string{
		event.ObjectCreated: "learn", event.ChunksReady: "gate project sig", event.QuestionsChanged: "gate", event.RunRequested: "gate",
		event.RunContinued: "gate", event.RunEnded: "embed gate", event.VectorsReady: "project", event.Projected: "",
		event.RebuildRequested: "project", event.SweepRequested: "learn gate embed project sig",
		event.SynthesisRequested: "gate", event.ExportRequested: "project",
		event.ModelChanged: "gate embed project", event.SignatureExtracted: "project",
	}
	if len(event.Types()) != len(want) {
		t.Errorf("%d types, want %d", len(event.Types()), len(want))
	}
	for ty, names := range want {
		if got := strings.Join(event.Handlers(ty), " "); got != names {
			t.Errorf("%s is handled by %q, want %q", ty, got, names)
		}
	}
}
