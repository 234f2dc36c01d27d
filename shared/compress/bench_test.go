package compress_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mneme-ai/mneme/shared/compress"
)

// BenchmarkCompress measures each kind. cpu-MB/s is by the processor time of the
// process, which other programs on the machine change less than the clock.
func BenchmarkCompress(b *testing.B) {
	for _, c := range []struct {
		name string
		text string
	}{
		{"log/50KB", benchLog(50 << 10)}, {"log/5MB", benchLog(5 << 20)},
		{"json/50KB", benchJSON(50 << 10)}, {"json/5MB", benchJSON(5 << 20)},
		{"jsonl/5MB", strings.NewReplacer("[", "", "]", "", "},", "}").Replace(benchJSON(5 << 20))},
		{"diff/50KB", benchDiff(50 << 10)}, {"diff/5MB", benchDiff(5 << 20)},
		{"text/50KB", benchText(50 << 10)}, {"one-line/5MB", strings.Repeat("x", 5<<20)},
	} {
		b.Run(c.name, func(b *testing.B) {
			compress.Tokens("") // the table is loaded once a process
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			start, out := cpu(), 0
			for b.Loop() {
				out = len(compress.Compress(c.text, compress.Options{}).Text)
			}
			b.ReportMetric(float64(len(c.text))*float64(b.N)/1e6/(cpu()-start).Seconds(), "cpu-MB/s")
			b.ReportMetric(100*float64(out)/float64(len(c.text)), "%left")
		})
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func benchLog(n int) string {
	r := rand.New(rand.NewPCG(1, 1))
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		switch r.IntN(200) {
		case 0:
			fmt.Fprintf(&b, "2026-03-04T09:%02d:%02d.%03dZ ERROR worker-%d could not reach db-%d: connection refused\n\tat com.example.Pool.get(Pool.java:%d)\n", i/60%60, i%60, i%1000, i%8, i%3, i%500)
		case 1:
			fmt.Fprintf(&b, "2026-03-04T09:%02d:%02d.%03dZ WARN pool is at %d %%\n", i/60%60, i%60, i%1000, r.IntN(100))
		default:
			fmt.Fprintf(&b, "2026-03-04T09:%02d:%02d.%03dZ INFO worker-%d processed job %d queue=default duration=%dms result=ok\n", i/60%60, i%60, i%1000, i%8, 2000+i, r.IntN(900))
		}
	}
	return b.String()
}

func benchJSON(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("[")
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"ts": "2026-03-04T09:%02d:%02dZ", "level": "INFO", "service": "svc-%d", "msg": "request handled in %dms", "request_id": "%016x"}`, i/60%60, i%60, i%6, r.IntN(90), r.Uint64())
	}
	b.WriteString("]")
	return b.String()
}

func benchDiff(n int) string {
	var b strings.Builder
	for f := 0; b.Len() < n; f++ {
		fmt.Fprintf(&b, "diff --git a/f%d.go b/f%d.go\nindex fdf7ed9..06fe361 100644\n--- a/f%d.go\n+++ b/f%d.go\n", f, f, f, f)
		for h := range 10 {
			fmt.Fprintf(&b, "@@ -%d,8 +%d,8 @@ func f%d(a, b int) int {\n \tx := a*%d + b\n \tif x > 84 {\n \t\treturn x - %d\n-\t}\n+\t} // edited\n \treturn x\n }\n \n func g%d(a, b int) int {\n", 10+20*h, 10+20*h, h, h, h, h)
		}
	}
	return b.String()
}

func benchText(n int) string {
	r := rand.New(rand.NewPCG(1, 3))
	words := strings.Fields("the migration server restarts every night and keeps its table of users until somebody asks for another one with more memory than before")
	var b strings.Builder
	for b.Len() < n {
		for range 12 {
			b.WriteString(words[r.IntN(len(words))] + " ")
		}
		b.WriteString("again. The table stays as it was. ")
	}
	return b.String()
}
