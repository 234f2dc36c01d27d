package indextest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Tenant and Project are those of the fixtures.
const (
	Tenant  = "acme"
	Project = "shop"
	Space   = "test0001"
	Dims    = 16
)

// Epoch is the time of the fixtures' first step.
var Epoch = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)

// Evidence is an L0 node said once at step t: one day a step.
func Evidence(project, stream, text string, t int) index.Node {
	at := Epoch.AddDate(0, 0, t)
	n := base(project, stream, memory.L0, text, t)
	n.Role, n.Trust, n.SourceTime = memory.RoleUser, memory.TrustUser, &at
	n.Occurrences = []index.Occurrence{{
		T: t, Place: n.Place, Quote: text, Role: n.Role, TurnID: fmt.Sprintf("s1/%d", t),
		Span: spanOf(text, t),
	}}
	return n
}

func spanOf(text string, t int) memory.Span {
	return memory.Span{
		Object: fmt.Sprintf("transcripts/shop/%d.jsonl", t), ETag: "e1", Start: int64(10 * t), End: int64(10*t + len(text)),
		Codec: memory.CodecJSONString, SHA256: memory.SumString(text), Chunk: memory.SumString(fmt.Sprint("chunk ", t)),
		ChunkStart: 4, ChunkEnd: 4 + len(text),
	}
}

// Raw is a raw node: a chunk's text at place t of the admit stream.
func Raw(project, text string, t int) index.Node {
	n := Evidence(project, memory.AdmitStream, text, t)
	n.Level, n.QueryID = memory.LevelRaw, ""
	n.ID = memory.NodeID(n.Tenant, n.Project, n.Level, n.Stream, n.TextSHA)
	return n
}

// Memory is an L1 or L2 node of step t over parents.
func Memory(project, stream string, level memory.Level, text string, t int, parents ...memory.SHA) index.Node {
	n := base(project, stream, level, text, t)
	n.Parents = parents
	return n
}

func base(project, stream string, level memory.Level, text string, t int) index.Node {
	sum := memory.SumString(text)
	return index.Node{
		ID: memory.NodeID(Tenant, project, level, stream, sum), Level: level,
		Tenant: Tenant, Project: project, Stream: stream, QueryID: memory.QueryID(stream),
		Text: text, TextSHA: sum, T: t,
		Place: memory.Place{Time: Epoch.AddDate(0, 0, t), Admit: int64(t), I: 0, Start: 4},
	}
}

// Batch puts nodes of one project and stream into a batch; those that are not
// raw get a vector for each passage.
func Batch(seq int64, nodes ...index.Node) index.Batch {
	b := index.Batch{Tenant: Tenant, Project: nodes[0].Project, Stream: nodes[0].Stream, Seq: seq, Nodes: nodes}
	if nodes[0].Level == memory.LevelRaw {
		return b
	}
	b.Space = Space
	b.Vectors = map[memory.SHA][]float32{}
	for i := range nodes {
		for _, p := range index.PassagesOf(&nodes[i]) {
			b.Vectors[p.ID] = Embed(p.Embed)
		}
	}
	return b
}

// Embed is a toy embedding: a bag of hashed words, length 1. Texts that share
// words are near.
func Embed(text string) []float32 {
	v := make([]float32, Dims)
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		h := memory.SumString(w)
		r := rand.New(rand.NewPCG(uint64(h[0])<<8|uint64(h[1]), uint64(h[2])<<8|uint64(h[3])))
		for i := range v {
			v[i] += float32(r.NormFloat64())
		}
	}
	var s float64
	for _, x := range v {
		s += float64(x) * float64(x)
	}
	if s == 0 {
		return v
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(s))
	}
	return v
}

// syntheses are the runs of one synthesis, the fourth as the first, and an empty one
// among them.
func syntheses() []index.Batch {
	const s = "_synthesis@44444444"
	below := memory.SumString("a memory")
	run := func(text string, t int) index.Batch {
		b := Batch(1, Memory(Project, s, memory.L2, text, t, below))
		b.Replace = true
		return b
	}
	none := index.Batch{Tenant: Tenant, Project: Project, Stream: s, Space: Space, Replace: true}
	return []index.Batch{
		run("Serves on port 8080 behind the proxy.", 2), run("Serves on port 9090. The queue holds five jobs.", 4), none,
		run("Serves on port 8080 behind the proxy.", 6),
	}
}

// Story is a set of streams of batches that covers what a projection meets:
// two projects, two question streams, raw rows, texts said again, a decision
// replaced, one taken back, one replaced by an older stream, L1 and L2. By
// stream, in order of seq.
func Story() map[string][]index.Batch {
	const a, b = "decisions@11111111", "causes@22222222"
	out := map[string][]index.Batch{}
	add := func(nodes ...index.Node) {
		key := nodes[0].Project + "/" + nodes[0].Stream
		out[key] = append(out[key], Batch(int64(len(out[key])+1), nodes...))
	}
	port := Evidence(Project, a, "We serve on port 8080 behind the proxy.", 1)
	retry := Evidence(Project, a, "Retries are capped at five attempts.", 1)
	m1 := Memory(Project, a, memory.L1, "Port 8080. Five attempts.", 1, port.ID, retry.ID)
	add(port, retry, m1)
	port2 := Evidence(Project, a, "Moved the server to port 9090 for the new ingress.", 2)
	port2.Supersedes = []memory.SHA{port.ID}
	m2 := Memory(Project, a, memory.L1, "Port 9090. Five attempts.", 2, port2.ID, retry.ID)
	m2.Supersedes = []memory.SHA{m1.ID}
	add(port2, m2)
	again := Evidence(Project, a, port.Text, 4) // taken back: 8080 holds again
	again.Supersedes = []memory.SHA{port2.ID}
	m3 := Memory(Project, a, memory.L1, m1.Text, 4, port.ID, retry.ID)
	m3.Supersedes = []memory.SHA{m2.ID}
	add(again, m3)
	old := Evidence(Project, a, "Retries are capped at ten attempts.", 0) // an old session, late
	old.T, old.Occurrences[0].T = 5, 5
	old.SupersededBy = []memory.SHA{retry.ID}
	add(old)
	cause := Evidence(Project, b, "The export broke because commas were not quoted.", 3)
	mb := Memory(Project, b, memory.L1, "Unquoted commas broke the export.", 3, cause.ID)
	add(cause, mb)
	add(Evidence(Project, b, cause.Text, 6), Memory(Project, b, memory.L1, "Commas.", 6, cause.ID, mb.ID))
	add(Memory(Project, "_synthesis@33333333", memory.L2, "Serves on 8080; commas quoted.", 1, m3.ID, mb.ID))
	add(Raw(Project, "user: We serve on port 8080 behind the proxy. Anything else?", 1), Raw(Project, "assistant: nothing to report", 2))
	add(Raw(Project, "user: please run the tests", 3))
	add(Evidence("other", a, "We serve on port 8080 behind the proxy.", 1))
	long := strings.Repeat("The nightly job copies every order to the archive and reports how many rows it wrote. ", 40)
	add(Evidence("other", a, long, 2))
	return out
}
