package export_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/index/indextest"
)

// BenchmarkExport writes every file from a log in memory; BenchmarkRaw writes the very
// rows of those files by the library alone, which is what an export could reach at best.
func BenchmarkExport(b *testing.B) {
	for _, kb := range []int{2, 16} {
		w := benchWorld(b, kb)
		for _, format := range []string{"canonical", "all"} {
			b.Run(fmt.Sprintf("%s/8k-gates-%dKB", format, kb), func(b *testing.B) {
				b.ReportAllocs()
				e := exporter(b, w)
				var rows int64
				var size int64
				for b.Loop() {
					s, err := e.Snapshot(b.Context(), dated(format))
					if err != nil {
						b.Fatal(err)
					}
					dir := b.TempDir()
					r, err := e.Write(b.Context(), s, dir, nil)
					if err != nil {
						b.Fatal(err)
					}
					rows, size = 0, 0
					for _, f := range r.Files {
						rows += f.Rows
						size += plainSize(b, filepath.Join(dir, f.Name))
					}
				}
				perSecond(b, rows, size)
			})
		}
	}
}

func BenchmarkRaw(b *testing.B) {
	for _, kb := range []int{2, 16} {
		w := benchWorld(b, kb)
		dir, _ := write(b, w, dated("all"))
		for _, format := range []string{"canonical", "all"} {
			b.Run(fmt.Sprintf("%s/8k-gates-%dKB", format, kb), func(b *testing.B) {
				var again []func()
				var n, size int64
				for _, name := range export.Files(format) {
					f, rows := rewrite(b, dir, name)
					again, n, size = append(again, f), n+rows, size+plainSize(b, filepath.Join(dir, name))
				}
				b.ReportAllocs()
				for b.Loop() {
					for _, f := range again {
						f()
					}
				}
				perSecond(b, n, size)
			})
		}
	}
}

func perSecond(b *testing.B, rows, size int64) {
	s := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(float64(rows)/s, "rows/s")
	b.ReportMetric(float64(size)/1e6/s, "MB/s") // of the columns as they are before compression
}

func benchWorld(b *testing.B, kb int) *functest.World {
	w := functest.New(b, functest.Options{Graph: indextest.NewGraph(), Lexical: indextest.NewLexical()})
	w.Ask("shop", "decisions")
	w.Learned("shop/a.jsonl", prose("a", 50, kb))
	decided(b, w.Log, w.Admits("shop")[0], 8000, 1000)
	return w
}

func plainSize(b *testing.B, path string) (n int64) {
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	pf, err := parquet.OpenFile(f, st.Size())
	if err != nil {
		b.Fatal(err)
	}
	for _, g := range pf.Metadata().RowGroups {
		n += g.TotalByteSize
	}
	return n
}

// rewrite gives what writes a file's rows again, held in memory, with the library alone
// and the compression of an export.
func rewrite(b *testing.B, dir, name string) (func(), int64) {
	switch name {
	case export.Gates:
		return rewriter[export.GateRow](b, dir, name)
	case export.SFT:
		return rewriter[export.SFTRow](b, dir, name)
	case export.SFTPC:
		return rewriter[export.SFTPCRow](b, dir, name)
	case export.KTO:
		return rewriter[export.KTORow](b, dir, name)
	case export.KTOFlat:
		return rewriter[export.KTOFlatRow](b, dir, name)
	case export.DPO:
		return rewriter[export.DPORow](b, dir, name)
	case export.DPOFlat:
		return rewriter[export.DPOFlatRow](b, dir, name)
	}
	return rewriter[export.VerlRow](b, dir, name)
}

func rewriter[T any](b *testing.B, dir, name string) (func(), int64) {
	all := rows[T](b, dir, name)
	return func() {
		w := parquet.NewGenericWriter[T](io.Discard, parquet.Compression(&parquet.Zstd), parquet.DataPageStatistics(true))
		for at := 0; at < len(all); at += 512 {
			if _, err := w.Write(all[at:min(at+512, len(all))]); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}, int64(len(all))
}
