package learn

import (
	"context"
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
}

// cacheEvery is how many new lines make a new cached fold worth writing: a
// start then walks at most that many objects.
const cacheEvery = 64

// keepSources bounds the turn ids held in memory.
const keepSources = 256

func newAdmitIndex(log *eventlog.Log) *admitIndex {
	return &admitIndex{log: log, projects: map[string]*admitted{}, sources: map[memory.SHA][]string{}}
}

func newAdmitted() *admitted {
	return &admitted{raw: map[memory.SHA]admittedLine{}, begun: map[memory.SHA][]admittedLine{}, sessions: map[string][]admittedLine{}}
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
		ids, ok := x.sources[l.Source]
		if !ok {
			src, _, err := x.log.Source(ctx, project, l.Source)
			if err != nil {
				return nil, 0, err
			}
			ids = src.TurnIDs
			if len(x.sources) >= keepSources {
				clear(x.sources)
			}
			x.sources[l.Source] = ids
		}
		for _, id := range ids {
			out[id] = true
		}
	}
	return out, head.Seq, nil
}
