package transcript_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/transcript"
)

// generate writes a Claude Code transcript of about size bytes in the mix that
// 706 MB of real ones have (formats.md section 0 rule 10): of every 706 bytes
// 302 are toolUseResult, 147 progress, 99 tool results, 32 thinking (21 of them
// signatures), 23 tool inputs, 7 prose, and the rest the envelopes. As in the
// sample files 3 % of the bytes are backslashes and 1 % are not ASCII.
func generate(w io.Writer, size int) error {
	rnd := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the store keeps a segment until every reader has moved on so retries are safe func return err if nil package test path value of the next chunk that was read before this one ended and the caller waits for it again")
	text := func(n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteString(words[rnd.IntN(len(words))])
			if rnd.IntN(120) == 0 {
				b.WriteString(" → é")
			}
			switch rnd.IntN(22) {
			case 0:
				b.WriteString("\n\t")
			case 1:
				b.WriteString(` "q"`)
			default:
				b.WriteByte(' ')
			}
		}
		return b.String()
	}
	quote := func(s string) string {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			panic(err) // a string always encodes
		}
		return strings.TrimSpace(b.String())
	}
	sig := func(n int) string {
		const set = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
		b := make([]byte, n)
		for i := range b {
			b[i] = set[rnd.IntN(len(set))]
		}
		return string(b)
	}
	const session = "0cf3db51-1c73-43bb-8d05-dc02739514a5"
	seq := 0
	env := func(typ string) string {
		seq++
		return fmt.Sprintf(`"parentUuid":"%08x-0000-4000-8000-000000000000","isSidechain":false,"userType":"external","cwd":"/home/u/shop","sessionId":%q,"version":"2.1.17","gitBranch":"main","type":%q,"uuid":"%08x-0000-4000-8000-000000000000","timestamp":"2026-01-%02dT%02d:%02d:%02d.%03dZ"`,
			seq-1, session, typ, seq, 1+seq/86400%28, seq/3600%24, seq/60%60, seq%60, seq%1000)
	}
	usage := `"usage":{"input_tokens":6,"cache_creation_input_tokens":8404,"cache_read_input_tokens":18183,"output_tokens":218,"service_tier":"standard"}`
	n := 0
	for turn := 0; n < size; turn++ {
		var b strings.Builder
		if turn%12 == 0 {
			fmt.Fprintf(&b, `{%s,"message":{"role":"user","content":%s}}`+"\n", env("user"), quote(text(250)))
		}
		id := "msg_" + strconv.Itoa(turn)
		if turn%2 == 0 {
			fmt.Fprintf(&b, `{%s,"message":{"model":"m","id":%q,"type":"message","role":"assistant","content":[{"type":"thinking","thinking":%s,"signature":%q}],%s},"requestId":"r"}`+"\n", env("assistant"), id, quote(text(700)), sig(1340), usage)
		}
		if turn%4 == 0 {
			fmt.Fprintf(&b, `{%s,"message":{"model":"m","id":%q,"type":"message","role":"assistant","content":[{"type":"text","text":%s}],%s},"requestId":"r"}`+"\n", env("assistant"), id, quote(text(720)), usage)
		}
		fmt.Fprintf(&b, `{%s,"message":{"model":"m","id":%q,"type":"message","role":"assistant","content":[{"type":"tool_use","id":"toolu_%d","name":"Edit","input":{"file_path":"/home/u/shop/a.go","new_string":%s}}],%s},"requestId":"r"}`+"\n", env("assistant"), id, turn, quote(text(640)), usage)
		for range 3 {
			fmt.Fprintf(&b, `{%s,"data":{"type":"bash_progress","output":%s,"fullOutput":%s,"elapsedTimeSeconds":3},"toolUseID":"bash-progress-1"}`+"\n", env("progress"), quote(text(500)), quote(text(640)))
		}
		fmt.Fprintf(&b, `{%s,"message":{"role":"user","content":[{"tool_use_id":"toolu_%d","type":"tool_result","content":%s,"is_error":false}]},"toolUseResult":{"filePath":"/home/u/shop/a.go","originalFile":%s,"structuredPatch":[{"oldStart":1,"lines":[%s,%s]}]}}`+"\n",
			env("user"), turn, quote(text(2900)), quote(text(7000)), quote(text(900)), quote(text(900)))
		m, err := io.WriteString(w, b.String())
		if err != nil {
			return err
		}
		n += m
	}
	return nil
}

// inputs are the generated file and the real ones, when they are there; with
// MNEME_BENCH_FILES set, each real one by itself as well.
func inputs(tb testing.TB) map[string][]byte {
	tb.Helper()
	var b bytes.Buffer
	if err := generate(&b, 16<<20); err != nil {
		tb.Fatal(err)
	}
	in := map[string][]byte{"claude-generated": b.Bytes()}
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(root, "samples", "claude-code", "cc*.jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	var all []byte
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(append(all, data...), '\n')
		if size, _, _ := strings.Cut(filepath.Base(f), "_"); os.Getenv("MNEME_BENCH_FILES") != "" {
			in["claude-"+size] = data
		}
	}
	if len(all) > 0 {
		in["claude-samples"] = all
	}
	return in
}

// readAll reads a whole transcript: hash, validation, turns, pieces.
func readAll(tb testing.TB, data []byte) {
	r, err := transcript.Open(bytes.NewReader(data), transcript.Options{Object: "x.jsonl"})
	if err != nil {
		tb.Fatal(err)
	}
	turns := 0
	for _, err := range r.Turns() {
		if err != nil {
			tb.Fatal(err)
		}
		turns++
	}
	if turns == 0 {
		tb.Fatal("no turns")
	}
}

// envelope is what a plain reader decodes of each record, nested parts raw.
type envelope struct {
	Type          string          `json:"type"`
	UUID          string          `json:"uuid"`
	ParentUUID    *string         `json:"parentUuid"`
	SessionID     string          `json:"sessionId"`
	Timestamp     string          `json:"timestamp"`
	Cwd           string          `json:"cwd"`
	Version       string          `json:"version"`
	GitBranch     string          `json:"gitBranch"`
	IsMeta        bool            `json:"isMeta"`
	IsSidechain   bool            `json:"isSidechain"`
	Message       json.RawMessage `json:"message"`
	Data          json.RawMessage `json:"data"`
	ToolUseResult json.RawMessage `json:"toolUseResult"`
	Content       json.RawMessage `json:"content"`
}

// decodeEnvelopes decodes each record of each line with encoding/json.
func decodeEnvelopes(data []byte) {
	br := bufio.NewReaderSize(bytes.NewReader(data), 64<<10)
	for {
		line, err := br.ReadBytes('\n')
		if len(line) > 1 {
			d := json.NewDecoder(bytes.NewReader(line))
			for {
				var e envelope
				if d.Decode(&e) != nil {
					break
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// BenchmarkRead reads each input and decodes the same bytes with encoding/json,
// by turns in one loop, so that what else runs on the machine slows both. The
// claim is x-json, the median of the rounds' ratios; MB/s are those of the
// reader's median round.
func BenchmarkRead(b *testing.B) {
	in := inputs(b)
	for _, name := range slices.Sorted(maps.Keys(in)) {
		data := in[name]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			// A small file alone is under the resolution of a clock.
			times := max(1, 1<<20/len(data))
			var ratios, ours []float64
			for b.Loop() {
				t0 := time.Now()
				for range times {
					readAll(b, data)
				}
				t1 := time.Now()
				b.StopTimer()
				for range times {
					decodeEnvelopes(data)
				}
				t2 := time.Now()
				b.StartTimer()
				ours = append(ours, t1.Sub(t0).Seconds()/float64(times))
				ratios = append(ratios, t2.Sub(t1).Seconds()/t1.Sub(t0).Seconds())
			}
			b.ReportMetric(median(ratios), "x-json")
			b.ReportMetric(float64(len(data))/1e6/median(ours), "MB/s")
		})
	}
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// TestPeakMemory reads a generated stream far larger than any buffer and looks
// at the heap on the way: nothing grows with the object but hashes of ids.
func TestPeakMemory(t *testing.T) {
	const size = 40 << 20
	pr, pw := io.Pipe()
	go func() { pw.CloseWithError(generate(pw, size)) }()
	r, err := transcript.Open(pr, transcript.Options{Object: "x.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	turns, peak := 0, uint64(0)
	var ms runtime.MemStats
	for _, err := range r.Turns() {
		if err != nil {
			t.Fatal(err)
		}
		if turns++; turns%2000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&ms)
			peak = max(peak, ms.HeapAlloc)
		}
	}
	if turns < 3000 || r.Stats().SizeBytes < size {
		t.Fatalf("%d turns of %d bytes", turns, r.Stats().SizeBytes)
	}
	if limit := uint64(40 << 20); peak > limit {
		t.Errorf("live heap reached %d MiB, limit %d", peak>>20, limit>>20)
	}
}

// TestWriteGenerated writes the generated transcript where the variable names a
// file, with its size in MB: for a look at the peak RSS of a whole program.
func TestWriteGenerated(t *testing.T) {
	name, mb, ok := strings.Cut(os.Getenv("MNEME_TEST_GENERATE"), ":")
	if !ok {
		t.Skip("MNEME_TEST_GENERATE names no FILE:MEGABYTES to write")
	}
	n, err := strconv.Atoi(mb)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := generate(w, n<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
