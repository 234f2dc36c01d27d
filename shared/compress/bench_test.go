package compress

import (
	"os"
	"testing"
)

func BenchmarkL(b *testing.B) {
	for _, f := range []string{"l01_one_panic_in_5000.log", "big_error_log1.log", "big_pytest_failures_section.log", "big_test_file_timeout.log"} {
		d, _ := os.ReadFile("/work/shared/optimizer/" + f)
		s := string(d)
		b.Run(f, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Compress(s, Options{})
			}
		})
	}
}
