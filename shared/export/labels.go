package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
)

// opinions are a project's labels in little room: labels.Set holds some 300 bytes a
// label, these 80. Which of several counts is labels.Compare's to say.
type opinions struct {
	at     map[[16]byte]uint32 // the last of a (wording, chunk); its number in list, from 1
	list   []opinion
	keys   [][sha256.Size]byte
	models []string
}

type opinion struct {
	next       uint32 // the one before it about the same chunk
	start, end uint32
	key        uint32
	atNanos    int64
	confidence float64 // -1 for none
	model      uint16
	kind       uint8 // index into kinds
	evidence   bool
	memory     bool // see labels.Verdict.Memory
}

var kinds = []string{memory.LabelHuman, memory.LabelModel, memory.LabelRule}

func chunkKey(stream string, chunk memory.SHA) (k [16]byte) {
	h := sha256.Sum256([]byte(labels.Wording(stream) + "\n" + string(chunk)))
	copy(k[:], h[:])
	return k
}

// shelfKeys are the keys of a shelf's objects, ascending.
func shelfKeys(ctx context.Context, log *eventlog.Log, project string, shelf eventlog.Shelf) (out [][sha256.Size]byte, err error) {
	for key, err := range log.RecordKeys(ctx, project, shelf) {
		if err != nil {
			return nil, err
		}
		var b [sha256.Size]byte
		if _, err := hex.Decode(b[:], []byte(key)); err != nil {
			return nil, fault.As(fault.Corrupt, err)
		}
		out = append(out, b)
	}
	return out, nil
}

// digestOf is the digest of objects: sha256 over their keys, ascending, a line each.
func digestOf(keys [][sha256.Size]byte) memory.SHA {
	h := sha256.New()
	for _, k := range keys {
		fmt.Fprintf(h, "%x\n", k)
	}
	return memory.SHA(hex.EncodeToString(h.Sum(nil)))
}

// readOpinions reads a project's labels. One that was erased, that a model gave without
// a readable answer, that is of a kind nobody knows or of a judge who is not trusted,
// says nothing.
func readOpinions(ctx context.Context, log *eventlog.Log, p *project) (_ *opinions, err error) {
	defer fault.Wrap(&err, "labels of %s", p.name)
	o := &opinions{at: map[[16]byte]uint32{}, keys: p.labels}
	models := map[string]uint16{}
	for n, key := range p.labels {
		recs, err := log.Records(ctx, p.name, eventlog.Labels, memory.SHA(hex.EncodeToString(key[:])))
		if fault.Is(err, fault.NotFound) {
			continue // a listing may be ahead of or behind what stands
		}
		if err != nil {
			return nil, err
		}
		for _, r := range recs {
			l, ok, err := eventlog.AsLabel(r)
			if err != nil {
				return nil, err
			}
			if ok && !slices.Contains(p.ignored, judgeOf(l)) {
				o.add(uint32(n), l, models)
			}
		}
	}
	return o, nil
}

func judgeOf(l *memory.Label) Judge {
	if l.Kind == memory.LabelModel {
		return Judge{l.Kind, l.Model}
	}
	return Judge{Kind: l.Kind}
}

func (o *opinions) add(key uint32, l *memory.Label, models map[string]uint16) {
	kind := slices.Index(kinds, l.Kind)
	if kind < 0 || l.Erased != "" || l.Kind == memory.LabelModel && !l.FormatOK || l.Start < 0 || l.End < l.Start {
		return
	}
	m, ok := models[l.Model]
	if !ok {
		if len(o.models) == 1<<16 {
			return // no tenant asks 65,536 models
		}
		m = uint16(len(o.models))
		models[l.Model] = m
		o.models = append(o.models, l.Model)
	}
	v := opinion{start: uint32(l.Start), end: uint32(l.End), key: key, atNanos: l.At.UnixNano(), confidence: -1, model: m, kind: uint8(kind), evidence: l.Evidence, memory: labels.VerdictOf("", l).Memory}
	if l.Confidence != nil {
		v.confidence = *l.Confidence
	}
	at := chunkKey(l.Stream, l.Chunk)
	v.next = o.at[at]
	o.list = append(o.list, v)
	o.at[at] = uint32(len(o.list))
}

// best is the verdict that counts about chunk text [start,end); see labels.Set.Best.
func (o *opinions) best(stream string, chunk memory.SHA, start, end int) (best labels.Verdict, found bool) {
	if o == nil {
		return best, false
	}
	for n := o.at[chunkKey(stream, chunk)]; n != 0; n = o.list[n-1].next {
		p := &o.list[n-1]
		if !(p.start == 0 && p.end == 0 || int(p.start) <= start && end <= int(p.end)) {
			continue
		}
		v := labels.Verdict{
			Key: memory.SHA(hex.EncodeToString(o.keys[p.key][:])), Kind: kinds[p.kind], Model: o.models[p.model], Start: int(p.start), End: int(p.end),
			Evidence: p.evidence, Memory: p.memory, FormatOK: true, AtNanos: p.atNanos,
		}
		if p.confidence >= 0 {
			v.Confidence = ref(p.confidence)
		}
		if !found || labels.Compare(v, best) < 0 {
			best, found = v, true
		}
	}
	return best, found
}

// evidence is what the label that counts says of a piece.
func (o *opinions) evidence(stream string, chunk memory.SHA, start, end int) Evidence {
	v, ok := o.best(stream, chunk, start, end)
	switch {
	case !ok:
		return Unknown
	case v.Evidence:
		return Has
	}
	return HasNot
}

// Untrusted gives the judges whose labels do not agree with people's as well as bound
// asks, by the labels of log: what Config.Untrusted takes.
func Untrusted(log *eventlog.Log, bound labels.Bound) func(context.Context, string) ([]Judge, error) {
	return func(ctx context.Context, project string) (out []Judge, err error) {
		set, err := labels.Read(ctx, log, project, nil)
		if err != nil {
			return nil, err
		}
		for _, j := range set.Judges() {
			if a := set.Agreement(j, bound); !a.Trusted {
				out = append(out, Judge(j))
			}
		}
		return out, nil
	}
}
