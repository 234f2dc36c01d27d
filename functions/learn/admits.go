package learn

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/memory"
)

// admitIndex folds admit streams into what learn must know to recognise a
// duplicate. It is a cache of immutable lines: a process that starts anew reads
// the folded state from the log's cache and walks on from there.
type admitIndex struct {
	log *eventlog.Log

	mu       sync.Mutex
	projects map[string]*admitted
	sources  map[memory.SHA][]string // turn ids of sources read lately
}

// admitted is the fold of one project's admit stream. As JSON it is the cache.
type admitted struct {
	Lines []admittedLine `json:"lines"`

	head     eventlog.Head
	raw      map[memory.SHA]admittedLine   // by the raw sha of an object that is admitted whole
	begun    map[memory.SHA][]admittedLine // its parts before the last, in order
	sessions map[string][]admittedLine
	uuids    map[uint64]struct{} // of Lines[:uuidsTo]
	uuidsTo  int
}

type admittedLine struct {
	Seq     int64      `json:"seq"`
	Raw     memory.SHA `json:"raw"`
	Source  memory.SHA `json:"source"`
	Session string     `json:"session,omitempty"`
	Object  string     `json:"object,omitempty"`
	ETag    string     `json:"etag,omitempty"`
	Chunks  int        `json:"chunks,omitempty"`
	More    bool       `json:"more,omitempty"`
	UUIDs   []byte     `json:"uuids,omitempty"`  // the turns' uuidKeys, 8 bytes each, big endian
	Listed  bool       `json:"listed,omitempty"` // UUIDs is filled in
}

// cacheEvery is how many new lines make a new cached fold worth writing: a
// start then walks at most that many objects.
const cacheEvery = 64

// maxCachedUUIDs bounds what the cached fold holds of record ids, in bytes: 4
// million turns, 43 MB as base64 of the 64 MiB that a cache may have. A start
// reads the sources of later lines again.
const maxCachedUUIDs = 32 << 20

// keepSources bounds the turn ids held in memory.
const keepSources = 256

func newAdmitIndex(log *eventlog.Log) *admitIndex {
	return &admitIndex{log: log, projects: map[string]*admitted{}, sources: map[memory.SHA][]string{}}
}

func newAdmitted() *admitted {
	return &admitted{raw: map[memory.SHA]admittedLine{}, begun: map[memory.SHA][]admittedLine{}, sessions: map[string][]admittedLine{}, uuids: map[uint64]struct{}{}}
}

func (a *admitted) index(l admittedLine) {
	if l.More {
		a.begun[l.Raw] = append(a.begun[l.Raw], l)
	} else {
		a.raw[l.Raw] = l
	}
	a.sessions[l.Session] = append(a.sessions[l.Session], l)
}

func (a *admitted) add(l admittedLine) {
	a.Lines = append(a.Lines, l)
	a.index(l)
}

// touches reports whether a line after seq belongs to one of the sessions.
func (a *admitted) touches(sessions map[string]map[string]bool, after int64) bool {
	for s := range sessions {
		for _, l := range a.sessions[s] {
			if l.Seq > after {
				return true
			}
		}
	}
	return false
}

// fold brings the project's fold up to date and returns it with its head.
func (x *admitIndex) fold(ctx context.Context, project string) (*admitted, eventlog.Head, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.foldLocked(ctx, project)
}

func (x *admitIndex) foldLocked(ctx context.Context, project string) (*admitted, eventlog.Head, error) {
	a := x.projects[project]
	if a == nil {
		a = newAdmitted()
		head, ok, err := x.log.FoldCache(ctx, project, memory.AdmitStream, a)
		if err != nil {
			return nil, eventlog.Head{}, err
		}
		if !ok {
			a, head = newAdmitted(), eventlog.Head{}
		}
		for _, l := range a.Lines {
			a.index(l)
		}
		a.head = head
	}
	cached := a.head.Seq - a.head.Seq%cacheEvery
	for seg, err := range x.log.Segments(ctx, project, memory.AdmitStream, a.head.Seq) {
		if err != nil {
			return nil, eventlog.Head{}, err
		}
		for _, r := range seg.Records {
			if l, ok := r.(*memory.Admit); ok {
				a.add(admittedLine{Seq: l.Seq, Raw: l.RawSHA256, Source: l.Source, Session: l.Session, Object: l.Object, ETag: l.ETag, Chunks: l.Chunks, More: l.More})
			}
		}
		a.head = eventlog.Head{Seq: seg.Header.Seq, Hash: seg.Hash}
	}
	x.projects[project] = a
	if a.head.Seq-cached >= cacheEvery {
		if err := x.log.PutFoldCache(ctx, project, memory.AdmitStream, a.head, a); err != nil {
			return nil, eventlog.Head{}, err
		}
	}
	return a, a.head, nil
}

// turns gives the turn ids of a session that are admitted in the project, and
// the admit seq up to which that holds.
func (x *admitIndex) turns(ctx context.Context, project, session string) (map[string]bool, int64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a, head, err := x.foldLocked(ctx, project)
	if err != nil {
		return nil, 0, err
	}
	out := map[string]bool{}
	for _, l := range a.sessions[session] {
		ids, err := x.turnIDs(ctx, project, l.Source)
		if err != nil {
			return nil, 0, err
		}
		for _, id := range ids {
			out[id] = true
		}
	}
	return out, head.Seq, nil
}

// turnIDs are the turn ids of a source record.
func (x *admitIndex) turnIDs(ctx context.Context, project string, source memory.SHA) ([]string, error) {
	ids, ok := x.sources[source]
	if !ok {
		src, _, err := x.log.Part(ctx, project, source) // of a forgotten one the turns are barred
		if err != nil {
			return nil, err
		}
		ids = src.TurnIDs
		x.keepLocked(source, ids)
	}
	return ids, nil
}

// barred reports whether a tombstone bars the whole object of a line.
func (x *admitIndex) barred(ctx context.Context, project string, l admittedLine) (bool, error) {
	_, src, _, err := x.log.Next(ctx, project, l.Source)
	if err != nil || !src.Forgotten {
		return false, err
	}
	t, err := x.log.Tombstone(ctx, project, src.Erased)
	return err == nil && slices.Contains(t.Raws, l.Raw), err
}

// standing is what turns and records give without what was forgotten: turn ids of a
// session and keys of records that may not be admitted again all the same.
func (x *admitIndex) standing(ctx context.Context, project, session string) (ids map[string]bool, records map[uint64]bool, err error) {
	a, _, err := x.fold(ctx, project)
	if err != nil {
		return nil, nil, err
	}
	ids, records = map[string]bool{}, map[uint64]bool{}
	for _, l := range a.Lines {
		_, first, _, err := x.log.Next(ctx, project, l.Source)
		if err != nil {
			return nil, nil, err
		}
		src, chunks, err := x.log.Part(ctx, project, l.Source)
		if err != nil {
			return nil, nil, err
		}
		stand := src.TurnIDs
		if first.Forgotten {
			stand = nil
			for i := range chunks {
				for ti := range chunks[i].Turns {
					stand = append(stand, chunks[i].Turns[ti].ID)
				}
			}
		}
		for _, id := range stand {
			if l.Session == session {
				ids[id] = true
			}
			if k, ok := uuidKey(id); ok {
				records[k] = true
			}
		}
	}
	return ids, records, nil
}

// gone are the turn ids of a session whose text was forgotten.
func (x *admitIndex) gone(ctx context.Context, project, session string) (map[string]bool, error) {
	some := false
	for _, err := range x.log.RecordKeys(ctx, project, eventlog.Tombstones) {
		if err != nil {
			return nil, err
		}
		some = true
		break
	}
	out := map[string]bool{}
	if !some {
		return out, nil
	}
	a, _, err := x.fold(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, l := range a.sessions[session] {
		_, first, _, err := x.log.Next(ctx, project, l.Source)
		if err != nil {
			return nil, err
		}
		if !first.Forgotten {
			continue
		}
		src, chunks, err := x.log.Part(ctx, project, l.Source)
		if err != nil {
			return nil, err
		}
		for _, id := range src.TurnIDs {
			out[id] = true
		}
		for i := range chunks {
			for ti := range chunks[i].Turns {
				delete(out, chunks[i].Turns[ti].ID)
			}
		}
	}
	return out, nil
}

func (x *admitIndex) keepLocked(source memory.SHA, ids []string) {
	if len(x.sources) >= keepSources {
		clear(x.sources)
	}
	x.sources[source] = ids
}

// wrote notes the turn ids of a source record that this process wrote, which
// saves reading it.
func (x *admitIndex) wrote(source memory.SHA, ids []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keepLocked(source, ids)
}

// records gives the uuidKeys of all records that are admitted in the project.
// A session that is resumed under a new id carries its older records along, so
// that the session alone does not tell them from new ones. The map is the
// index's own: it grows by later calls only.
func (x *admitIndex) records(ctx context.Context, project string) (map[uint64]struct{}, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a, _, err := x.foldLocked(ctx, project)
	if err != nil {
		return nil, err
	}
	for ; a.uuidsTo < len(a.Lines); a.uuidsTo++ {
		l := &a.Lines[a.uuidsTo]
		if !l.Listed {
			ids, err := x.turnIDs(ctx, project, l.Source)
			if err != nil {
				return nil, err
			}
			var keys []byte
			for _, id := range ids {
				if k, ok := uuidKey(id); ok {
					keys = binary.BigEndian.AppendUint64(keys, k)
					a.uuids[k] = struct{}{}
				}
			}
			if (len(a.uuids)+len(keys))*8 <= maxCachedUUIDs {
				l.UUIDs, l.Listed = keys, true
			}
		}
		for b := l.UUIDs; len(b) >= 8; b = b[8:] {
			a.uuids[binary.BigEndian.Uint64(b)] = struct{}{}
		}
	}
	return a.uuids, nil
}

// uuidKey is the key of a turn whose id ends in its record's UUID, such as
// "session/0b7e4f6c-…" or "session/0b7e4f6c-…#2"; ok is false for any other,
// which is unique within its session only. 64 bits of a sha256: among ten
// million turns two meet by chance once in 400,000 projects.
func uuidKey(id string) (key uint64, ok bool) {
	name := id[strings.LastIndexByte(id, '/')+1:]
	uuid, _, _ := strings.Cut(name, "#")
	if len(uuid) != 36 || uuid[8] != '-' || uuid[13] != '-' || uuid[18] != '-' || uuid[23] != '-' {
		return 0, false
	}
	if _, err := hex.DecodeString(strings.ReplaceAll(uuid, "-", "")); err != nil {
		return 0, false
	}
	sum, err := hex.DecodeString(string(memory.SumString(name))[:16])
	if err != nil {
		return 0, false
	}
	return binary.BigEndian.Uint64(sum), true
}
