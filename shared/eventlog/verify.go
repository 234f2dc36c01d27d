package eventlog

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Problem is one thing that Verify found.
type Problem struct {
	Key  string `json:"key"`            // of the object
	Line int    `json:"line,omitempty"` // from 1; 0 for the whole object
	Msg  string `json:"msg"`            // no transcript text
}

// String is "key:line: msg".
func (p Problem) String() string {
	if p.Line > 0 {
		return p.Key + ":" + strconv.Itoa(p.Line) + ": " + p.Msg
	}
	return p.Key + ": " + p.Msg
}

// Report is what Verify found and counted.
type Report struct {
	OK       bool                  `json:"ok"` // no problem
	LogHash  memory.SHA            `json:"log_hash"`
	Streams  map[string]memory.SHA `json:"streams"` // by "project/stream"
	Problems []Problem             `json:"problems"`
	Omitted  int                   `json:"omitted,omitempty"` // problems past the first maxProblems
	// Counts holds projects, streams, segments, admits, chunks, runs,
	// open_runs (work in progress), gates, evidence, memories, erased, opaque
	// (records of types this program does not know), vectors and rows.
	Counts map[string]int `json:"counts"`
}

// maxProblems bounds the report: the first of a kind tell what is wrong.
const maxProblems = 1000

// Verify reads the tenant's whole log and checks what it promises: the chain,
// footers and numbers of every stream; that every admit line has its source
// record and every chunk its blob; that every evidence text is its chunk's text
// at its span; that node ids, parents and supersessions resolve; that steps
// count up without a gap inside runs that begin and end once; and the footers
// of packed vectors. What it finds is in the report, never an error; the error
// is of a store that does not answer. progress, when not nil, is called with
// the number of objects read so far.
//
// It reads one object at a time; what it keeps is 32 bytes a chunk, a node and
// an occurrence of the project at hand.
func (l *Log) Verify(ctx context.Context, progress func(done int)) (_ Report, err error) {
	defer fault.Wrap(&err, "verify(%s)", l.tenant)
	v := &verifier{l: l, progress: progress, rep: Report{
		Problems: []Problem{}, Streams: map[string]memory.SHA{}, Counts: map[string]int{},
	}}
	for _, name := range [...]string{"projects", "streams", "segments", "admits", "chunks", "runs", "open_runs", "gates", "evidence", "memories", "erased", "opaque", "vectors", "rows"} {
		v.rep.Counts[name] = 0
	}
	projects, err := l.Projects(ctx)
	if err != nil {
		return v.rep, err
	}
	for _, project := range projects {
		v.count("projects")
		if !memory.ValidName(project) {
			v.problem("log/"+l.tenant+"/"+project+"/", 0, "the folder is no project name")
			continue
		}
		if err := v.project(ctx, project); err != nil {
			return v.rep, err
		}
	}
	v.rep.LogHash = sumStreams(v.rep.Streams)
	v.rep.OK = len(v.rep.Problems) == 0
	return v.rep, nil
}

// sha32 is a sha256 in 32 bytes: half a memory.SHA, for large sets.
type sha32 [hashBytes]byte

func pack(s memory.SHA) (b sha32) {
	for i := range b {
		if 2*i+1 < len(s) {
			b[i] = hexNibble(s[2*i])<<4 | hexNibble(s[2*i+1])
		}
	}
	return b
}

func hexNibble(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// verifier holds what Verify knows of the project at hand.
type verifier struct {
	l        *Log
	rep      Report
	progress func(int)
	done     int

	name    string
	parts   []part              // by admit seq - 1
	blobs   map[sha32]bool      // blobs of the project that verified
	l1      map[sha32]bool      // memory nodes of question streams
	l1text  map[sha32]bool      // their texts: what a synthesis may read
	present map[memory.SHA]bool // what the present L1 memories are called
	heads   map[string]int64    // last segment of each stream
	texts   textCache           // of chunk blobs
	// scrubbed are the blobs that tombstones replace: spans into them are
	// looked up in what stands in their place.
	scrubbed map[memory.SHA]memory.Scrubbed
	dropped  map[sha32]bool // of those that were asked for: whether they stand
}

// part is an admitted part as the streams may refer to it.
type part struct {
	source memory.SHA
	chunks [][]sha32 // as admitted, and in each newly redacted form
	// forgotten says that a record of the part is a stub, which lists none.
	forgotten bool
}

// holds reports whether chunk i of the part is, or was, sha. The list of a part that
// was forgotten is gone: there the tombstones lead from what it had to what it has.
func (v *verifier) holds(p *part, i int, sha memory.SHA) bool {
	is := func(id sha32) bool {
		return slices.ContainsFunc(p.chunks, func(form []sha32) bool { return i >= 0 && i < len(form) && form[i] == id })
	}
	for range maxReplaced {
		if is(pack(sha)) {
			return true
		}
		b, ok := v.scrubbed[sha]
		if !ok || !p.forgotten {
			return false
		}
		sha = b.New
	}
	return false
}

func (v *verifier) count(what string) { v.rep.Counts[what]++ }

func (v *verifier) problem(key string, line int, format string, args ...any) {
	if len(v.rep.Problems) >= maxProblems {
		v.rep.Omitted++
		return
	}
	v.rep.Problems = append(v.rep.Problems, Problem{Key: key, Line: line, Msg: fmt.Sprintf(format, args...)})
}

// fault turns an error about an object into a problem; it returns the error
// when it is not about the object.
func (v *verifier) fault(key string, line int, err error) error {
	switch fault.KindOf(err) {
	case fault.NotFound:
		v.problem(key, line, "the object is missing")
	case fault.Corrupt, fault.Invalid:
		at, n, msg := placeOf(err)
		if at != "" && at != key {
			msg = at + ": " + msg
			n = line
		}
		if n == 0 {
			n = line
		}
		v.problem(key, n, "%s", msg)
	default:
		return err
	}
	return nil
}

// placeOf splits a Corrupt error into key, line and message.
func placeOf(err error) (key string, line int, msg string) {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return "", 0, err.Error()
	}
	msg = e.Msg
	if e.Err != nil {
		if msg != "" {
			msg += ": "
		}
		msg += e.Err.Error()
	}
	key = e.Where
	if i := strings.LastIndexByte(key, ':'); i >= 0 {
		if n, err := strconv.Atoi(key[i+1:]); err == nil {
			return key[:i], n, msg
		}
	}
	return key, 0, msg
}

func (v *verifier) step(ctx context.Context) error {
	if v.done++; v.progress != nil {
		v.progress(v.done)
	}
	if ctx.Err() != nil {
		return fault.As(fault.Unavailable, context.Cause(ctx))
	}
	return nil
}

func (v *verifier) project(ctx context.Context, name string) error {
	v.name, v.parts, v.blobs, v.dropped = name, nil, map[sha32]bool{}, map[sha32]bool{}
	v.l1, v.l1text = map[sha32]bool{}, map[sha32]bool{}
	v.present, v.heads, v.texts = map[memory.SHA]bool{}, map[string]int64{}, textCache{}
	var err error
	if v.scrubbed, err = v.l.ScrubbedBlobs(ctx, name); err != nil {
		if err := v.fault("log/"+v.l.tenant+"/"+name+"/"+string(Tombstones)+"/", 0, err); err != nil {
			return err
		}
	}
	if err := v.admits(ctx); err != nil {
		return err
	}
	streams, err := v.l.Streams(ctx, name)
	if err != nil {
		return err
	}
	for _, s := range foldOrder(streams) {
		if !validPart(s) {
			v.problem(v.l.streamPrefix(name, "")+s, 0, "the folder is no stream name")
			continue
		}
		if err := v.stream(ctx, s); err != nil {
			return err
		}
	}
	if err := v.loose(ctx); err != nil {
		return err
	}
	return v.vectors(ctx)
}

// walk reads every segment of a stream, damaged ones included, and checks the
// chain and the numbers.
func (v *verifier) walk(ctx context.Context, stream string, each func(key string, seg *Segment) error) error {
	prefix := v.l.streamPrefix(v.name, stream)
	prev, chained := memory.SHA(""), true
	var last int64
	for info, err := range v.l.b.ListAfter(ctx, prefix, "") {
		if err != nil {
			return err
		}
		key := info.Key
		seq, ok := seqOf(strings.TrimPrefix(key, prefix))
		if !ok || key != v.l.segmentKey(v.name, stream, seq) {
			v.problem(key, 0, "the name is no segment's")
			continue
		}
		if seq != last+1 {
			v.problem(v.l.segmentKey(v.name, stream, last+1), 0, "segments %d to %d are missing", last+1, seq-1)
			chained = false
		}
		last = seq
		if err := v.step(ctx); err != nil {
			return err
		}
		v.count("segments")
		seg, _, err := v.l.read(ctx, v.name, stream, seq)
		if err != nil {
			chained = false
			if err := v.fault(key, 0, err); err != nil {
				return err
			}
			continue
		}
		if chained && seg.Header.Prev != prev {
			v.problem(key, 1, "`prev` is not the hash of the segment before")
		}
		prev, chained = seg.Hash, true
		if err := each(key, &seg); err != nil {
			return err
		}
	}
	v.heads[stream] = last
	return nil
}

// admits checks the admit stream, the sources it names and their chunk blobs.
func (v *verifier) admits(ctx context.Context) error {
	return v.walk(ctx, memory.AdmitStream, func(key string, seg *Segment) error {
		for int64(len(v.parts)) < seg.Header.Seq-1 {
			v.parts = append(v.parts, part{}) // of segments that did not verify
		}
		a, err := v.l.admitOf(v.name, *seg)
		if err != nil {
			v.parts = append(v.parts, part{})
			return v.fault(key, 0, err)
		}
		v.count("admits")
		src, err := v.source(ctx, a.Source, &v.parts)
		if err != nil || src == nil {
			return err
		}
		if a.RawSHA256 != src.RawSHA256 || a.Object != src.Object || a.ETag != src.ETag ||
			a.From != src.From || a.To != src.To || a.PrefixSHA256 != src.PrefixSHA256 || a.Chunks != len(src.Chunks) {
			v.problem(key, 2, "the admit line and source record %s disagree", a.Source.Short())
		}
		return nil
	})
}

// source checks the source record that an admit line names and those that came
// to stand in its place, and adds the part. It gives the first, nil where that
// was reported.
func (v *verifier) source(ctx context.Context, key memory.SHA, parts *[]part) (*memory.Source, error) {
	p := part{source: key}
	defer func() { *parts = append(*parts, p) }()
	var first *memory.Source
	for range maxReplaced {
		src, chunks, err := v.l.Source(ctx, v.name, key)
		if e := v.step(ctx); e != nil {
			return nil, e
		}
		if err != nil {
			return nil, v.fault(v.l.sourceKey(v.name, key), 0, err)
		}
		if src.Forgotten {
			v.count("erased")
			p.forgotten = true
			next, err := v.l.replacement(ctx, v.name, src.Erased, key)
			if err != nil {
				return nil, v.fault(v.l.sourceKey(v.name, key), 1, err)
			}
			if next == "" {
				v.problem(v.l.sourceKey(v.name, key), 1, "its tombstone %s names no source in its place", src.Erased.Short())
				return nil, nil
			}
			key = next
			continue
		}
		form := make([]sha32, len(chunks))
		for i := range chunks {
			form[i] = pack(chunks[i].SHA256)
		}
		p.chunks = append(p.chunks, form)
		if first == nil {
			first = &src
		} else if len(form) != len(p.chunks[0]) {
			v.problem(v.l.sourceKey(v.name, key), 1, "it stands for a source of %d chunks and has %d", len(p.chunks[0]), len(form))
		}
		if src.Erased == "" {
			for i := range chunks {
				if err := v.chunk(ctx, key, &chunks[i]); err != nil {
					return nil, err
				}
			}
			return first, nil
		}
		v.count("erased")
		next, err := v.l.replacement(ctx, v.name, src.Erased, key)
		if err != nil {
			return nil, v.fault(v.l.sourceKey(v.name, key), 1, err)
		}
		if next == "" {
			v.problem(v.l.sourceKey(v.name, key), 1, "its tombstone %s names no source in its place", src.Erased.Short())
			return first, nil
		}
		key = next
	}
	v.problem(v.l.sourceKey(v.name, key), 1, "it is replaced again and again")
	return first, nil
}

// chunk checks that a chunk's blob is there, is its text, and holds its turns.
func (v *verifier) chunk(ctx context.Context, source memory.SHA, c *memory.Chunk) error {
	v.count("chunks")
	srcKey := v.l.sourceKey(v.name, source)
	text, ok, err := v.blob(ctx, c.SHA256)
	if err != nil || !ok {
		return err
	}
	line := c.I + 2
	if c.SizeBytes != len(text) {
		v.problem(srcKey, line, "chunk %d says %d bytes; its blob has %d", c.I, c.SizeBytes, len(text))
	}
	for _, t := range c.Turns {
		if t.Start < 0 || t.End < t.Start || t.End > len(text) {
			v.problem(srcKey, line, "chunk %d: a turn stands at [%d,%d) of %d bytes", c.I, t.Start, t.End, len(text))
		}
		for _, p := range t.Pieces {
			if p.C0 < t.Start || p.C1 > t.End || p.C0 > p.C1 || p.O0 < 0 || p.O1 < p.O0 {
				v.problem(srcKey, line, "chunk %d: a piece stands at [%d,%d) outside its turn", c.I, p.C0, p.C1)
			}
		}
	}
	return nil
}

// blob gives a verified blob's text; ok is false where it was reported.
func (v *verifier) blob(ctx context.Context, sha memory.SHA) (text string, ok bool, err error) {
	id := pack(sha)
	if text, ok := v.texts.get(id); ok {
		return text, true, nil
	}
	known, seen := v.blobs[id]
	if seen && !known {
		return "", false, nil // reported before
	}
	if !sha.Valid() {
		v.problem(v.l.blobKey(v.name, sha), 0, "the name is no sha256")
		return "", false, nil
	}
	data, err := v.l.Blob(ctx, v.name, sha)
	if e := v.step(ctx); e != nil {
		return "", false, e
	}
	if err != nil {
		v.blobs[id] = false
		return "", false, v.fault(v.l.blobKey(v.name, sha), 0, err)
	}
	v.blobs[id] = true
	text = string(data)
	v.texts.put(id, text)
	return text, true, nil
}

// quoted gives the text of blob [from,to), and where the blob was scrubbed that
// of the same place in what stands for it; ok is false where it was reported. A
// scrubbed blob stands where its text was learned again.
func (v *verifier) quoted(ctx context.Context, sha memory.SHA, from, to int) (text string, ok bool, err error) {
	for range maxReplaced {
		s, gone := v.scrubbed[sha]
		if !gone {
			break
		}
		if stands, err := v.stands(ctx, sha); err != nil {
			return "", false, err
		} else if stands {
			break
		}
		sha = s.New
		from, to, _ = s.Moved(from, to)
	}
	text, ok, err = v.blob(ctx, sha)
	if err != nil || !ok {
		return "", false, err
	}
	if from < 0 || to > len(text) || from > to {
		return "", true, nil
	}
	return text[from:to], true, nil
}

// stands reports whether a scrubbed blob is there all the same.
func (v *verifier) stands(ctx context.Context, sha memory.SHA) (bool, error) {
	id := pack(sha)
	if known, seen := v.blobs[id]; seen {
		return known, nil
	}
	if there, seen := v.dropped[id]; seen {
		return there, nil
	}
	_, err := v.l.b.Head(ctx, v.l.blobKey(v.name, sha))
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	v.dropped[id] = err == nil
	return err == nil, nil
}

// loose checks the unordered write-once objects that no admit line names:
// labels, notes, lessons, tombstones. Their keys are the sha256 of the sealed
// form of their lines.
func (v *verifier) loose(ctx context.Context) error {
	base := "log/" + v.l.tenant + "/" + v.name + "/"
	folders, err := v.l.folders(ctx, base)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if folder == "admit" || folder == "questions" || folder == "sources" {
			continue
		}
		for info, err := range v.l.b.ListAfter(ctx, base+folder+"/", "") {
			if err != nil {
				return err
			}
			raw, err := v.l.readLimited(ctx, info.Key, maxSource)
			if err == nil {
				_, err = sumLines(raw.data, memory.SHA(strings.TrimSuffix(path.Base(info.Key), ".jsonl")))
			}
			if err != nil {
				if err := v.fault(info.Key, 0, err); err != nil {
					return err
				}
			}
			if err := v.step(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// vectors checks the packed vectors of the project.
func (v *verifier) vectors(ctx context.Context) error {
	spaces, err := v.l.VectorSpaces(ctx, v.name)
	if err != nil {
		return err
	}
	dims, err := v.l.spaceDims(ctx, v.name)
	if err != nil {
		return err
	}
	for _, space := range spaces {
		prefix := "vector/" + v.l.tenant + "/" + v.name + "/" + space + "/"
		last := map[string]int64{}
		for info, err := range v.l.b.ListAfter(ctx, prefix, "") {
			if err != nil {
				return err
			}
			stream, base, _ := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/")
			seq, ok := seqOf(base)
			if !ok || !validPart(space) || !validPart(stream) || info.Key != v.l.vectorKey(v.name, space, stream, seq) {
				v.problem(info.Key, 0, "the name is no vector object's")
				continue
			}
			if seq != last[stream]+1 {
				v.problem(v.l.vectorKey(v.name, space, stream, last[stream]+1), 0, "vectors of segments %d to %d are missing", last[stream]+1, seq-1)
			}
			last[stream] = seq
			if seq > v.heads[stream] {
				v.problem(info.Key, 0, "vectors of segment %d; the stream ends at %d", seq, v.heads[stream])
			}
			vec, _, err := v.l.Vectors(ctx, v.name, space, stream, seq)
			if err != nil {
				if err := v.fault(info.Key, 0, err); err != nil {
					return err
				}
			}
			v.count("vectors")
			v.rep.Counts["rows"] += len(vec.Passages)
			if want, known := dims[space]; known && len(vec.Passages) > 0 && vec.Dims != want {
				v.problem(info.Key, 0, "vectors of %d dimensions; the record of space %s says %d", vec.Dims, space, want)
			}
			if n := len(vec.Without); n > 0 {
				v.rep.Counts["without_vector"] += n
			}
			if err := v.step(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxTexts bounds the chunk texts that Verify keeps, in bytes: evidence refers
// to the chunk its step read, so that a few hundred recent ones nearly always
// answer.
const maxTexts = 16 << 20

// textCache keeps recent chunk texts, oldest out first.
type textCache struct {
	texts map[sha32]string
	order []sha32
	size  int
}

func (c *textCache) get(id sha32) (string, bool) {
	t, ok := c.texts[id]
	return t, ok
}

func (c *textCache) put(id sha32, text string) {
	if _, ok := c.texts[id]; ok || len(text) > maxTexts {
		return
	}
	if c.texts == nil {
		c.texts = map[sha32]string{}
	}
	for c.size+len(text) > maxTexts && len(c.order) > 0 {
		c.size -= len(c.texts[c.order[0]])
		delete(c.texts, c.order[0])
		c.order = c.order[1:]
	}
	c.texts[id], c.size = text, c.size+len(text)
	c.order = append(c.order, id)
}
