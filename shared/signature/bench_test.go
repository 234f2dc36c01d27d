package signature_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/signature"
)

// samples is the folder of labelled logs that stands beside the project.
func samples(tb testing.TB) string {
	tb.Helper()
	root := os.Getenv("MNEME_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	dir := filepath.Join(root, "logs")
	if _, err := os.Stat(filepath.Join(dir, "manifest.json")); err != nil {
		tb.Skipf("no labelled logs: MNEME_SHARED names their parent folder, default ../shared: %v", err)
	}
	return dir
}

func labelled(tb testing.TB) (rows []signature.Labelled, logs [][]byte) {
	tb.Helper()
	dir := samples(tb)
	b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		tb.Fatal(err)
	}
	if rows, err = signature.ParseManifest(b); err != nil {
		tb.Fatal(err)
	}
	for i := range rows {
		log, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(rows[i].File)))
		if err != nil {
			tb.Fatal(err)
		}
		rows[i].CountFrames(signature.FromBytes(log))
		logs = append(logs, log)
	}
	return rows, logs
}

// TestLabelledLogs holds the rules against the labelled logs (signatures.md A6:
// 215 of 225 roots, every pair stable, no collision).
func TestLabelledLogs(t *testing.T) {
	t.Parallel()
	rows, logs := labelled(t)
	results := make([]signature.Result, len(rows))
	for i := range rows {
		results[i] = extract(t, rows[i].Tool, string(logs[i]))
	}
	s := signature.Score(rows, results)
	for _, w := range s.Wrong {
		t.Logf("%+v", w)
	}
	if s.RootRight*225 < s.Logs*215 || s.PairsStable < s.Pairs || s.Collisions > 0 {
		t.Errorf("%d of %d roots, %d of %d pairs, %d collisions", s.RootRight, s.Logs, s.PairsStable, s.Pairs, s.Collisions)
	}
}

// TestLabelledInNoise: 5,000 passing lines around a log, or the log twice, are
// the same failure.
func TestLabelledInNoise(t *testing.T) {
	t.Parallel()
	rows, logs := labelled(t)
	noise := strings.Repeat("  step finished, all is well (3 ms)\n", 5000)
	for i := range rows {
		if rows[i].RootLine == nil || strings.HasPrefix(rows[i].File, "gha_pytorch/") || strings.Contains(string(logs[i]), "section_") {
			continue // a window of a log ends where the runner cut it
		}
		log := strings.TrimSuffix(string(logs[i]), "\n") + "\n"
		want := extract(t, rows[i].Tool, log)
		for name, other := range map[string]string{"behind": noise + log, "before": log + noise, "twice": log + log} {
			if got := extract(t, rows[i].Tool, other); got.SigSHA != want.SigSHA || got.DetailSHA != want.DetailSHA {
				t.Errorf("%s, %s: %q %q, want %q %q", rows[i].File, name, got.Normalised, got.Detail, want.Normalised, want.Detail)
			}
		}
	}
}

// ciLog is a log of about size bytes as a runner writes it: passing tests, a
// few warnings, one failure near the end.
func ciLog(size int) []byte {
	var b strings.Builder
	b.WriteString("2026-03-04T09:15:01.0000000Z ##[group]Run npm ci && npm test\n2026-03-04T09:15:01.0000000Z ##[endgroup]\n")
	for i := 0; b.Len() < size-len(eresolve)-800; i++ {
		fmt.Fprintf(&b, "2026-03-04T09:15:%02d.%07dZ ", i/60%60, i*7919%10000000)
		switch i % 23 {
		case 7:
			fmt.Fprintf(&b, "npm warn deprecated glob@7.%d.3: Glob versions prior to v9 are no longer supported\n", i%9)
		case 11:
			fmt.Fprintf(&b, "\x1b[32m✓\x1b[0m src/cart/totals.test.ts (%d tests) %dms: handles missing and failed items\n", i%40, i%300)
		default:
			fmt.Fprintf(&b, "  ok %d - packages/cart/src/line_%d renders the total of the order\n", i, i)
		}
	}
	for l := range strings.SplitSeq(strings.TrimSuffix(eresolve, "\n"), "\n") {
		b.WriteString("2026-03-04T09:16:02.0000000Z " + l + "\n")
	}
	b.WriteString("2026-03-04T09:16:03.0000000Z ##[error]Process completed with exit code 1.\n")
	return []byte(b.String())
}

func BenchmarkExtract(b *testing.B) {
	for _, c := range []struct {
		name, tool string
		log        []byte
	}{
		{"50KB", "npm", ciLog(50 << 10)}, {"50KB-no-tool", "", ciLog(50 << 10)}, {"5MB", "npm", ciLog(5 << 20)}, {"5MB-no-tool", "", ciLog(5 << 20)},
		{"5MB-all-errors", "", []byte(strings.Repeat("src/a.c:3:4: error: 'x' undeclared here (not in a function)\n", 5<<20/60))},
		{"5MB-one-line", "", []byte(strings.Repeat("error: a ", 5<<20/9))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.log)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := signature.Extract(signature.FromBytes(c.log), signature.Options{Tool: c.tool}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNormalise(b *testing.B) {
	s := "/home/ci/src/build-8f21c/src/a.js:7:8: Cannot find module 'left-pad@1.2.3' (took 20 ms at 0x7f8f7fde97d0)"
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		signature.Normalise(s)
	}
}

func BenchmarkSymptom(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		signature.Symptom("npm", "NPM ERR! ERESOLVE unable to resolve dependency tree")
	}
}
