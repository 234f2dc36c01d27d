package forget

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// TypeReceipt is the type of a Receipt.
const TypeReceipt = "forget_receipt"

// Receipt says what was forgotten, what was removed where, and that nothing of it is
// found any more. It holds names, hashes and counts, never a word of what is gone.
type Receipt struct {
	V         int           `json:"v"`
	Type      string        `json:"type"` // "forget_receipt"
	Level     memory.Level  `json:"level"`
	Tenant    string        `json:"tenant"`
	Project   string        `json:"project"`
	Tombstone memory.SHA    `json:"tombstone,omitempty"` // empty: a dry run
	DryRun    bool          `json:"dry_run,omitempty"`
	Finished  bool          `json:"finished,omitempty"` // an earlier call had begun it
	Target    memory.Target `json:"target"`
	// Objects are the uploads of which all is forgotten, by key; Turns counts single turns
	// of others.
	Objects []string `json:"objects"`
	Turns   int      `json:"turns,omitempty"`
	Also    []string `json:"also,omitempty"` // objects that were not named and carry the same text
	Parts   int      `json:"parts"`          // looked at
	Removed Removed  `json:"removed"`
	// Streams says it by stream.
	Streams map[string]*Stream `json:"streams"`
	Rows    map[string]*Rows   `json:"rows,omitempty"` // of the project, by index
	// Kept holds such words and is not Mneme's to erase: notes of people, wordings of
	// questions, names of objects, uploads that stay.
	Kept  []string  `json:"kept,omitempty"`
	Proof Proof     `json:"proof"`
	OK    bool      `json:"ok"` // nothing was found
	At    time.Time `json:"at"`
}

// Removed counts what is gone of the log and beside it.
type Removed struct {
	Sources  int          `json:"sources"`            // source records
	Chunks   int          `json:"chunks"`             // that hold less, or nothing any more
	Blobs    int          `json:"blobs"`              // chunk texts and replies of models
	Replies  int          `json:"replies"`            // of Blobs
	Evidence int          `json:"evidence"`           // statements
	Memories int          `json:"memories"`           // memory texts, of syntheses too
	Gates    int          `json:"gates"`              // decisions whose reasons were erased
	Vectors  int          `json:"vectors"`            // over all spaces
	Skills   []string     `json:"skills,omitempty"`   // promoted ones: their files are on people's disks
	Lessons  []memory.SHA `json:"lessons,omitempty"`  // keys of lessons that rested on it
	Dead     int          `json:"dead,omitempty"`     // bodies of dead letters
	Loose    int          `json:"loose,omitempty"`    // sources and blobs that nothing led to
	Receipts int          `json:"receipts,omitempty"` // of uploads, which answer `forgotten` now
	Inbox    []string     `json:"inbox,omitempty"`    // uploads that were removed, every version
	Versions int          `json:"versions,omitempty"` // old versions of objects of the log
}

// Stream is what was forgotten in one stream.
type Stream struct {
	Evidence int `json:"evidence"`
	Memories int `json:"memories"`
	Gates    int `json:"gates"`
	Vectors  int `json:"vectors"`
	Step     int `json:"step,omitempty"` // that states the memory without it
}

// Rows is how many rows an index had of the tenant, before and after.
type Rows struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Proof is where the words were looked for. Words are those of the erased text that no
// remaining text holds; those that also stand in names and codes are not looked for.
type Proof struct {
	Words    int        `json:"words"`
	Names    int        `json:"names,omitempty"` // words that also stand in names or codes
	Searched []Searched `json:"searched"`
}

// Searched is one store that was looked through.
type Searched struct {
	Where    string   `json:"where"`
	Searched int64    `json:"searched"`          // objects, rows or words
	Found    int64    `json:"found"`             // of them that hold one
	Places   []string `json:"places,omitempty"`  // the first of them
	Skipped  string   `json:"skipped,omitempty"` // why it was not looked through
}

// keep writes the receipt into the log.
func (f *forgetter) keep(ctx context.Context) error {
	line, err := json.Marshal(f.report)
	if err != nil {
		return err
	}
	_, err = f.Log.PutRecords(ctx, f.project, eventlog.Forgotten, []eventlog.Record{&eventlog.Opaque{Type: TypeReceipt, Line: line}})
	return err
}

// Receipts gives the receipts of a project, the oldest first.
func Receipts(ctx context.Context, log *eventlog.Log, project string) (out []Receipt, err error) {
	defer fault.Wrap(&err, "receipts of %s", project)
	for key, err := range log.RecordKeys(ctx, project, eventlog.Forgotten) {
		if err != nil {
			return nil, err
		}
		recs, err := log.Records(ctx, project, eventlog.Forgotten, key)
		if err != nil {
			return nil, err
		}
		for _, r := range recs {
			o, ok := r.(*eventlog.Opaque)
			if !ok || o.Type != TypeReceipt {
				continue
			}
			var rc Receipt
			if err := json.Unmarshal(o.Line, &rc); err != nil {
				return nil, fault.New(fault.Corrupt, "receipt %s does not decode", key.Short())
			}
			out = append(out, rc)
		}
	}
	sortReceipts(out)
	return out, nil
}
