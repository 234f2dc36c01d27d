package learn_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/cmd/functest"
	"github.com/mneme-ai/mneme/functions/learn"
)

// grown is a session of about n bytes in the proportions of real ones (tool
// output stands twice in its record), and 1 KB that is added later.
func grown(n int) (old, more []byte) {
	r := rand.New(rand.NewPCG(3, 3))
	output := strings.Repeat(`ok  \tgithub.com/acme/shop/internal/cart\t0.412s\n`, 60)
	var b bytes.Buffer
	for b.Len() < n {
		for i, l := range claudeLines(r, "s1", 4) {
			if i == 3 {
				l = strings.Replace(l, `"content":"output`, `"content":"`+output+`output`, 1)
				l = strings.TrimSuffix(l, "}\n") + `,"toolUseResult":{"stdout":"` + output + output + `"}}` + "\n"
			}
			b.WriteString(l)
		}
	}
	return b.Bytes(), []byte(strings.Join(claudeLines(r, "s1", 3), ""))
}

// BenchmarkGrown reads a session that grew by 1 KB: learn reads it whole and
// knows its turns; sha256 is the least that a verified resume would cost.
func BenchmarkGrown(b *testing.B) {
	for _, mb := range []int{20, 200} {
		old, more := grown(mb << 20)
		whole := append(bytes.Clone(old), more...)
		b.Run(fmt.Sprintf("learn/%dMB", mb), func(b *testing.B) {
			w := functest.New(b, functest.Options{Count: functest.Coarse})
			w.Put("shop/s1.jsonl", old)
			if _, err := w.Learn.Handle(b.Context(), w.Put("shop/s1.jsonl", old)); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(whole)))
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				b.StopTimer()
				body := whole
				for range n { // every round grows by one more line
					body = append(body, claudeLines(rand.New(rand.NewPCG(4, uint64(n))), "s1", 1)[0]...)
				}
				e := w.Put("shop/s1.jsonl", body)
				b.StartTimer()
				es, err := w.Learn.Handle(b.Context(), e)
				if err != nil || len(es) != 1 && n == 0 {
					b.Fatalf("%d events, %v", len(es), err)
				}
			}
			if n := len(w.Admits("shop")); n < 2 {
				b.Fatalf("%d admit lines: %s", n, learn.OutcomeAdmitted)
			}
		})
		b.Run(fmt.Sprintf("sha256/%dMB", mb), func(b *testing.B) {
			b.SetBytes(int64(len(whole)))
			for b.Loop() {
				sha256.Sum256(whole)
			}
		})
	}
}
