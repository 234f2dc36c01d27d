// Package event holds the CloudEvents by which Mneme's functions meet: their
// types, their data, and strict encoding and decoding.
//
// Invariant: an event is small and points at objects; it never carries
// transcript text. Its id is derived from its content, so that the same fact
// has the same id however often it is sent. Losing one delays work and loses
// nothing: the sweep finds what no event announced.
//
//	{"specversion":"1.0","type":"dev.mneme.chunks.ready.v1","source":"/mneme/learn",
//	 "subject":"local/shop/_admit","id":"<sha256>","mnemetenant":"local","mnemeproject":"shop",
//	 "data":{"tenant":"local","project":"shop","seq":3,"source":"<sha256>"}}
//
// The package has no transport; shared/serve sends and receives.
package event

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Type is a CloudEvent type.
type Type string

const (
	ObjectCreated    Type = "dev.mneme.object.created.v1"
	ChunksReady      Type = "dev.mneme.chunks.ready.v1"
	QuestionsChanged Type = "dev.mneme.questions.changed.v1"
	RunRequested     Type = "dev.mneme.run.requested.v1"
	RunContinued     Type = "dev.mneme.run.continued.v1"
	RunEnded         Type = "dev.mneme.run.ended.v1"
	VectorsReady     Type = "dev.mneme.vectors.ready.v1"
	Projected        Type = "dev.mneme.projected.v1"
	RebuildRequested Type = "dev.mneme.rebuild.requested.v1"
	SweepRequested   Type = "dev.mneme.sweep.requested.v1"

	SynthesisRequested Type = "dev.mneme.synthesis.requested.v1"
	ExportRequested    Type = "dev.mneme.export.requested.v1"
	ModelChanged       Type = "dev.mneme.model.changed.v1"
	SignatureExtracted Type = "dev.mneme.signature.extracted.v1"
)

// Ping is the type of Knative's cron source; its extension `mnemejob` says
// which of the *.requested types it stands for.
const Ping Type = "dev.knative.sources.ping"

// Object is the data of ObjectCreated.
type Object struct {
	Bucket    string `json:"bucket"`
	Key       string `json:"key"`
	ETag      string `json:"etag"`
	SizeBytes int64  `json:"size"`
	VersionID string `json:"version_id,omitempty"`
	Sequencer string `json:"sequencer,omitempty"`
}

// Part is the data of ChunksReady: one admit line.
type Part struct {
	Tenant  string     `json:"tenant"`
	Project string     `json:"project"`
	Seq     int64      `json:"seq"` // of the admit line
	Source  memory.SHA `json:"source"`
}

// Export is the data of ExportRequested: the runs that ended on a day, UTC.
type Export struct {
	Tenant string `json:"tenant"`
	Day    string `json:"day"` // 2026-01-31
}

// Synthesis is the data of SynthesisRequested. Seq is the last segment of the
// synthesis' stream that the sender knows, and 0 where a clock asks: what was asked for
// after another run is another event. Again asks for a run over memories that were read
// already, as long as the stream ends at Seq.
type Synthesis struct {
	Tenant  string `json:"tenant"`
	Project string `json:"project"`
	Seq     int64  `json:"seq,omitempty"`
	Again   bool   `json:"again,omitempty"`
}

// Project is the data of QuestionsChanged and RebuildRequested.
type Project struct {
	Tenant  string `json:"tenant"`
	Project string `json:"project"`
}

// Stream is the data of RunRequested, RunContinued and RunEnded. Seq is the
// last segment of the stream that the sender knows; 0 before the first.
type Stream struct {
	Tenant  string `json:"tenant"`
	Project string `json:"project"`
	Stream  string `json:"stream"`
	Seq     int64  `json:"seq"`
}

// Segment is the data of VectorsReady and Projected.
type Segment struct {
	Tenant  string `json:"tenant"`
	Project string `json:"project"`
	Stream  string `json:"stream"`
	Seq     int64  `json:"seq"`
	Space   string `json:"space,omitempty"`
}

// Model is the data of ModelChanged. Space names the embedding space that is being
// filled or switched to; "" says that the configuration changed. At makes two of them
// two events.
type Model struct {
	Tenant string `json:"tenant"`
	At     string `json:"at"` // RFC 3339, UTC
	Space  string `json:"space,omitempty"`
}

// Lessons is the data of SignatureExtracted: records of the project's shelf of lessons.
type Lessons struct {
	Tenant  string       `json:"tenant"`
	Project string       `json:"project"`
	Keys    []memory.SHA `json:"keys"` // 1 to MaxLessons
}

// MaxLessons bounds one event; more are several events.
const MaxLessons = 200

// Sweep is the data of SweepRequested. At makes two of them two events.
type Sweep struct {
	Tenant string `json:"tenant"`
	At     string `json:"at"` // RFC 3339, UTC
}

// subjects and scopes of each data shape.
func (d Object) scope() (tenant, project, subject string) { return "", "", d.Key }
func (d Part) scope() (tenant, project, subject string) {
	return d.Tenant, d.Project, d.Tenant + "/" + d.Project + "/" + memory.AdmitStream
}
func (d Project) scope() (tenant, project, subject string) {
	return d.Tenant, d.Project, d.Tenant + "/" + d.Project
}
func (d Stream) scope() (tenant, project, subject string) {
	return d.Tenant, d.Project, d.Tenant + "/" + d.Project + "/" + d.Stream
}
func (d Segment) scope() (tenant, project, subject string) {
	return d.Tenant, d.Project, d.Tenant + "/" + d.Project + "/" + d.Stream
}
func (d Synthesis) scope() (tenant, project, subject string) {
	return d.Tenant, d.Project, d.Tenant + "/" + d.Project
}
func (d Lessons) scope() (tenant, project, subject string) {
	return d.Tenant, d.Project, d.Tenant + "/" + d.Project + "/lessons"
}
func (d Sweep) scope() (tenant, project, subject string)  { return d.Tenant, "", d.Tenant }
func (d Model) scope() (tenant, project, subject string)  { return d.Tenant, "", d.Tenant }
func (d Export) scope() (tenant, project, subject string) { return d.Tenant, "", d.Tenant }

// Data is one of the data shapes of this package.
type Data interface {
	scope() (tenant, project, subject string)
}

// handledBy is the event table of DESIGN section 2: who must receive what.
var handledBy = map[Type][]string{
	ObjectCreated:    {"learn"},
	ChunksReady:      {"gate", "project", "sig"},
	QuestionsChanged: {"gate"},
	RunRequested:     {"gate"},
	RunContinued:     {"gate"},
	RunEnded:         {"embed", "gate"},
	VectorsReady:     {"project"},
	RebuildRequested: {"project"},
	SweepRequested:   {"learn", "gate", "embed", "project", "sig"},
	Projected:        {},

	SynthesisRequested: {"gate"},
	ExportRequested:    {"project"},
	ModelChanged:       {"gate", "embed", "project"},
	SignatureExtracted: {"project"},
}

// Types lists every event type, sorted.
func Types() []Type { return slices.Sorted(maps.Keys(handledBy)) }

// Handlers names the functions that must receive t.
func Handlers(t Type) []string { return slices.Clone(handledBy[t]) }

// New makes an event of type t from source function fn. The id is the sha256
// of type and data, so equal facts have equal ids.
func New(t Type, fn string, d Data) ce.Event {
	b, err := json.Marshal(d)
	if err != nil {
		panic("event: encode: " + err.Error()) // our own structs always encode
	}
	tenant, project, subject := d.scope()
	e := ce.New()
	e.SetType(string(t))
	e.SetSource("/mneme/" + fn)
	e.SetSubject(subject)
	e.SetID(string(memory.Sum(append([]byte(string(t)+"\n"), b...))))
	if tenant != "" {
		e.SetExtension("mnemetenant", tenant)
	}
	if project != "" {
		e.SetExtension("mnemeproject", project)
		e.SetExtension("partitionkey", tenant+"/"+project)
	}
	if err := e.SetData(ce.ApplicationJSON, json.RawMessage(b)); err != nil {
		panic("event: set data: " + err.Error())
	}
	return e
}

// Decode reads the data of e strictly into D: an unknown field, a missing one
// or trailing bytes is Invalid.
func Decode[D Data](e ce.Event) (D, error) {
	var d D
	dec := json.NewDecoder(bytes.NewReader(e.Data()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&d); err != nil {
		return d, fault.At(fault.Invalid, "event "+e.Type()+" data", "send the fields that docs/FORMATS.md lists", "%v", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return d, fault.At(fault.Invalid, "event "+e.Type()+" data", "", "bytes after the JSON value")
	}
	if err := validate(d); err != nil {
		return d, fault.At(fault.Invalid, "event "+e.Type()+" data", "", "%v", err)
	}
	return d, nil
}

// DecodeFor is Decode for a function that serves one tenant: an event of
// another tenant is Denied, so that a misrouted one touches nothing.
func DecodeFor[D Data](e ce.Event, tenant string) (D, error) {
	d, err := Decode[D](e)
	if err != nil {
		return d, err
	}
	if of, _, _ := d.scope(); of != "" && of != tenant {
		return d, fault.At(fault.Denied, "event "+e.Type()+" data, field tenant", "", "this function serves tenant %q, not %q", tenant, of)
	}
	return d, nil
}

func validate(d any) error {
	switch d := d.(type) {
	case Object:
		if d.Bucket == "" || d.Key == "" {
			return fault.New(fault.Invalid, "bucket and key are required")
		}
	case Part:
		if d.Seq < 1 {
			return fault.New(fault.Invalid, "seq must be 1 or more")
		}
		return names(d.Tenant, d.Project)
	case Project:
		return names(d.Tenant, d.Project)
	case Synthesis:
		return names(d.Tenant, d.Project)
	case Stream:
		if d.Stream == "" {
			return fault.New(fault.Invalid, "stream is required")
		}
		return names(d.Tenant, d.Project)
	case Segment:
		if d.Stream == "" || d.Seq < 1 {
			return fault.New(fault.Invalid, "stream and seq are required")
		}
		return names(d.Tenant, d.Project)
	case Lessons:
		if len(d.Keys) == 0 || len(d.Keys) > MaxLessons {
			return fault.New(fault.Invalid, "%d keys, of 1 to %d", len(d.Keys), MaxLessons)
		}
		for _, k := range d.Keys {
			if !k.Valid() {
				return fault.New(fault.Invalid, "a key is a sha256")
			}
		}
		return names(d.Tenant, d.Project)
	case Model:
		if !memory.ValidName(d.Tenant) {
			return fault.New(fault.Invalid, "tenant %q is not a name", d.Tenant)
		}
	case Sweep:
		if !memory.ValidName(d.Tenant) {
			return fault.New(fault.Invalid, "tenant %q is not a name", d.Tenant)
		}
	case Export:
		if !memory.ValidName(d.Tenant) {
			return fault.New(fault.Invalid, "tenant %q is not a name", d.Tenant)
		}
		if _, err := time.Parse(time.DateOnly, d.Day); err != nil {
			return fault.New(fault.Invalid, "day %q is not one, as 2026-01-31 is", d.Day)
		}
	}
	return nil
}

func names(tenant, project string) error {
	if !memory.ValidName(tenant) {
		return fault.New(fault.Invalid, "tenant %q is not a name", tenant)
	}
	if !memory.ValidName(project) {
		return fault.New(fault.Invalid, "project %q is not a name", project)
	}
	return nil
}
