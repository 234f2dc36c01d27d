package lesson_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/lesson"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/transcript"
)

// sessionOf is a session of about size bytes: the one of testdata again and
// again, each time with other names, between outputs of passing runs of gap
// bytes.
func sessionOf(b *testing.B, size, gap int) []byte {
	one, err := os.ReadFile("testdata/claude-code.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	for n := 0; out.Len() < size; n++ {
		r := strings.NewReplacer("toolu_", fmt.Sprintf("toolu_%d_", n), `uuid":"`, fmt.Sprintf(`uuid":"%d-`, n), `Uuid":"`, fmt.Sprintf(`Uuid":"%d-`, n), `"parentUuid":null`, fmt.Sprintf(`"parentUuid":"n%d"`, n), "TestTotalRounds", fmt.Sprintf("TestTotal%c%c", 'A'+n%26, 'A'+n/26%26))
		out.WriteString(r.Replace(string(one)))
		noise := strings.Repeat(`=== RUN   TestPrices\n--- PASS: TestPrices (0.00s)\n`, 400)
		for k := 0; k < gap; k += len(noise) {
			id := fmt.Sprintf("%d-%d", n, k)
			fmt.Fprintf(&out, `{"type":"assistant","uuid":"n%s","sessionId":"s","message":{"role":"assistant","content":[{"type":"tool_use","id":"n%s","name":"Bash","input":{"command":"go test -v ./prices"}}]}}`+"\n", id, id)
			fmt.Fprintf(&out, `{"type":"user","uuid":"r%s","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"n%s","content":"%s"}]}}`+"\n", id, id, noise)
		}
	}
	return out.Bytes()
}

func readAll(b *testing.B, object []byte) []memory.Turn {
	rd, err := transcript.Open(bytes.NewReader(object), transcript.Options{Object: "s.jsonl"})
	if err != nil {
		b.Fatal(err)
	}
	var turns []memory.Turn
	for t, err := range rd.Turns() {
		if err != nil {
			b.Fatal(err)
		}
		turns = append(turns, t)
	}
	return turns
}

// BenchmarkMine mines sessions whose turns are read already: one with a
// failure in 200 KB, more than the sample sessions have, and one with a failure in
// 8 KB. What reading them costs stands beside it, as learn does both.
func BenchmarkMine(b *testing.B) {
	for _, x := range []struct {
		name string
		gap  int
	}{{"10MB/sparse", 1 << 20}, {"10MB/dense", 1}} {
		object := sessionOf(b, 10<<20, x.gap)
		turns := readAll(b, object)
		b.Run(x.name, func(b *testing.B) {
			b.SetBytes(int64(len(object)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				n = len(lesson.Mine(turns, options))
			}
			b.ReportMetric(float64(n), "lessons")
		})
		b.Run(x.name+"/reading", func(b *testing.B) {
			b.SetBytes(int64(len(object)))
			b.ReportAllocs()
			for b.Loop() {
				readAll(b, object)
			}
		})
	}
}
