package extractive_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/memory"
)

// chunk builds a conversation of about size bytes from the talk lists.
func chunk(t testing.TB, size int) []extractive.Message {
	var out []extractive.Message
	n := 0
	for {
		for _, name := range []string{"talk3.txt", "talk.txt", "talk2.txt"} {
			for _, e := range readTalk(t, name) {
				for _, m := range e.msgs {
					if m.Role == memory.RoleNote {
						m.Role = memory.RoleAssistant
					}
					m.Context, m.First = false, false
					if n += len(m.Text); n > size {
						return out
					}
					out = append(out, m)
				}
			}
		}
	}
}

func BenchmarkScore(b *testing.B) {
	for _, tt := range []struct {
		name string
		size int
	}{{"2KB", 2 << 10}, {"20KB", 20 << 10}, {"200KB", 200 << 10}} {
		b.Run(tt.name, func(b *testing.B) {
			p := extractive.New(extractive.Options{})
			msgs := chunk(b, tt.size)
			sentences := len(p.Score(msgs).Sentences) // builds the states
			b.SetBytes(int64(tt.size))
			b.ReportAllocs()
			for b.Loop() {
				p.Score(msgs)
			}
			b.ReportMetric(float64(sentences), "sentences")
		})
	}
	b.Run("20KB-cold", func(b *testing.B) {
		msgs := chunk(b, 20<<10)
		b.ReportAllocs()
		for b.Loop() {
			extractive.NewCold().Score(msgs)
		}
	})
	b.Run("5MB-line", func(b *testing.B) {
		p := extractive.New(extractive.Options{})
		msgs := []extractive.Message{{Role: memory.RoleUser, Text: strings.Repeat("we never use it, not even once if you would want to ", 5<<20/52)}}
		b.SetBytes(5 << 20)
		b.ReportAllocs()
		for b.Loop() {
			p.Score(msgs)
		}
	})
}

func BenchmarkFingerprint(b *testing.B) {
	const s = "Node pools stay at 12 machines, because the quota in eu-west-3 is 400 vCPU and we share it with the training team."
	b.Run("build", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			extractive.FingerprintOf(s)
		}
	})
	b.Run("relate", func(b *testing.B) {
		x, y := extractive.FingerprintOf(s), extractive.FingerprintOf("Node pools stay at 14 machines from May on.")
		b.ReportAllocs()
		for b.Loop() {
			extractive.Relate(y, x, false)
		}
	})
	b.Run("supersede-20KB", func(b *testing.B) {
		text := strings.Repeat(s+" ", 20<<10/len(s))
		b.ReportAllocs()
		for b.Loop() {
			extractive.HasSupersede(text)
		}
	})
}
