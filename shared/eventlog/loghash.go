package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

func isSynthesis(stream string) bool { return memory.QueryID(stream) == memory.SynthesisID }

// streamHasher folds a stream's gate records into its hash.
//
// A question stream hashes every gate record in order. An L2 stream counts the
// steps of one run alone: the last completed one whose inputs are the present
// memories; there t is counted from 1 within the run, as how many runs went
// before depends on when each was triggered.
type streamHasher struct {
	h    hash.Hash
	buf  []byte
	last memory.SHA // the memory after the last step

	synthesis bool
	runs      map[memory.SHA]*l2run
	ended     []*l2run // in the order of their run_end
}

// l2run is one run of an L2 stream.
type l2run struct {
	h      hash.Hash
	t      int
	inputs []memory.SHA // chunks its steps read: text shas of L1 memories
	ended  bool
}

func newStreamHasher(stream string) *streamHasher {
	return &streamHasher{h: sha256.New(), synthesis: isSynthesis(stream), runs: map[memory.SHA]*l2run{}}
}

func (s *streamHasher) add(r Record) {
	switch r := r.(type) {
	case *memory.Gate:
		s.last = r.MemorySHA
		if !s.synthesis {
			s.buf = appendStep(s.buf[:0], r.T, r)
			s.h.Write(s.buf)
			return
		}
		run := s.run(r.Run)
		run.t++
		run.inputs = append(run.inputs, r.Chunk)
		s.buf = appendStep(s.buf[:0], run.t, r)
		run.h.Write(s.buf)
	case *memory.RunEnd:
		if r.MemorySHA != "" {
			s.last = r.MemorySHA
		}
		if !s.synthesis {
			return
		}
		if run := s.run(r.Run); !run.ended {
			run.ended = true
			s.ended = append(s.ended, run)
		}
	}
}

func (s *streamHasher) run(id memory.SHA) *l2run {
	run := s.runs[id]
	if run == nil {
		run = &l2run{h: sha256.New()}
		s.runs[id] = run
	}
	return run
}

// sum is the stream's hash. present holds, for an L2 stream, what the present
// L1 memories are called: text sha and node id of each.
func (s *streamHasher) sum(present map[memory.SHA]bool) memory.SHA {
	h := s.h
	if s.synthesis {
		h = sha256.New()
		for _, run := range slices.Backward(s.ended) {
			if run.current(present) {
				h = run.h
				break
			}
		}
	}
	return memory.SHA(hex.EncodeToString(h.Sum(nil)))
}

func (r *l2run) current(present map[memory.SHA]bool) bool {
	for _, in := range r.inputs {
		if !present[in] {
			return false
		}
	}
	return true
}

// appendStep writes one step as a line: the RFC 8785 form of
// [t, chunk, start, end, update, exit, format_ok, memory_sha]. Shas are ASCII
// and the numbers integers, so it needs no escaping.
func appendStep(dst []byte, t int, g *memory.Gate) []byte {
	dst = append(dst, '[')
	dst = strconv.AppendInt(dst, int64(t), 10)
	dst = append(append(append(dst, `,"`...), g.Chunk...), `",`...)
	dst = strconv.AppendInt(dst, int64(g.Start), 10)
	dst = append(dst, ',')
	dst = strconv.AppendInt(dst, int64(g.End), 10)
	for _, b := range [...]bool{g.Update, g.Exit, g.FormatOK} {
		dst = append(dst, ',')
		dst = strconv.AppendBool(dst, b)
	}
	return append(append(append(dst, `,"`...), g.MemorySHA...), "\"]\n"...)
}

// addPresent notes what a question stream's final memory is called, in an L2
// step's `chunk`: its text's sha256, or its node id.
func (l *Log) addPresent(present map[memory.SHA]bool, project, stream string, last memory.SHA) {
	if last == "" {
		return
	}
	present[last] = true
	present[memory.NodeID(l.tenant, project, memory.L1, stream, last)] = true
}

// StreamHash is the hash of one question stream: sha256 over one line for each
// gate record, the RFC 8785 form of [t, chunk, start, end, update, exit,
// format_ok, memory_sha]. Time, run, slice cuts, latency, cost, tokens and
// reason are never in it. See LogHash for L2.
func (l *Log) StreamHash(ctx context.Context, project, stream string) (_ memory.SHA, err error) {
	defer fault.Wrap(&err, "stream hash(%s/%s)", project, stream)
	s, err := l.hashStream(ctx, project, stream)
	if err != nil || !s.synthesis {
		return s.sum(nil), err
	}
	streams, err := l.Streams(ctx, project)
	if err != nil {
		return "", err
	}
	present := map[memory.SHA]bool{}
	for _, other := range streams {
		if strings.HasPrefix(other, "_") {
			continue
		}
		last, err := l.lastMemory(ctx, project, other)
		if err != nil {
			return "", err
		}
		l.addPresent(present, project, other, last)
	}
	return s.sum(present), nil
}

func (l *Log) hashStream(ctx context.Context, project, stream string) (*streamHasher, error) {
	s := newStreamHasher(stream)
	for seg, err := range l.Segments(ctx, project, stream, 0) {
		if err != nil {
			return s, err
		}
		for _, r := range seg.Records {
			s.add(r)
		}
	}
	return s, nil
}

// lastMemory is the memory after the stream's last step, read from its end.
func (l *Log) lastMemory(ctx context.Context, project, stream string) (memory.SHA, error) {
	head, err := l.Head(ctx, project, stream)
	if err != nil {
		return "", err
	}
	for seq := head.Seq; seq > 0; seq-- {
		seg, err := l.Segment(ctx, project, stream, seq)
		if err != nil {
			return "", err
		}
		s := newStreamHasher(stream)
		decides := false
		for _, r := range seg.Records {
			s.add(r)
			switch r := r.(type) {
			case *memory.Gate:
				decides = true
			case *memory.RunEnd:
				decides = decides || r.MemorySHA != ""
			}
		}
		if decides {
			return s.last, nil
		}
	}
	return "", nil
}

// LogHash is the hash over every question stream of every project of the
// tenant, and the hash of each by its name "project/stream". The admit stream
// is in no hash: the same bytes under other names are the same memory.
func (l *Log) LogHash(ctx context.Context) (_ memory.SHA, _ map[string]memory.SHA, err error) {
	defer fault.Wrap(&err, "log hash(%s)", l.tenant)
	projects, err := l.Projects(ctx)
	if err != nil {
		return "", nil, err
	}
	hashes := map[string]memory.SHA{}
	for _, project := range projects {
		streams, err := l.Streams(ctx, project)
		if err != nil {
			return "", nil, err
		}
		present := map[memory.SHA]bool{}
		for _, stream := range foldOrder(streams) {
			s, err := l.hashStream(ctx, project, stream)
			if err != nil {
				return "", nil, err
			}
			if !s.synthesis {
				l.addPresent(present, project, stream, s.last)
			}
			hashes[project+"/"+stream] = s.sum(present)
		}
	}
	return sumStreams(hashes), hashes, nil
}

// foldOrder puts the reserved streams behind the question streams whose
// memories they read.
func foldOrder(streams []string) []string {
	var out, reserved []string
	for _, s := range streams {
		if strings.HasPrefix(s, "_") {
			reserved = append(reserved, s)
		} else {
			out = append(out, s)
		}
	}
	return append(out, reserved...)
}

// sumStreams is the log hash: sha256 over one line for each stream, the RFC
// 8785 form of [name, hash], in byte order of the name.
func sumStreams(hashes map[string]memory.SHA) memory.SHA {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(hashes)) {
		h.Write([]byte(`["` + name + `","` + string(hashes[name]) + "\"]\n"))
	}
	return memory.SHA(hex.EncodeToString(h.Sum(nil)))
}
