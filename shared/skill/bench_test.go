package skill_test

import (
	"fmt"
	"testing"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/skill"
)

// What a skill costs: drafted and checked, and read again and checked, as each
// promotion and each list does.
func BenchmarkSkill(b *testing.B) {
	for _, n := range []int{10, 400} {
		src := skill.Source{Project: "shop", Question: "decisions", Wording: "What was decided, and why?", Level: memory.L1, Node: memory.SumString("m")}
		for i := range n {
			text := fmt.Sprintf("We decided that the limit of queue %d stays at %d messages, because its consumer falls behind after that.", i, 7*i)
			src.Facts = append(src.Facts, skill.Fact{Text: text, Node: memory.SumString(text), Trust: memory.TrustUser})
		}
		d, _, err := skill.Draft(src, skill.Options{})
		if err != nil {
			b.Fatal(err)
		}
		text := []byte(skill.Render(d))
		b.Run(fmt.Sprintf("draft/%d-facts", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := skill.Draft(src, skill.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("lint/%dKB", (len(text)+512)/1024), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if len(skill.Lint("SKILL.md", d.Name, text)) != 2 { // both fields beyond the specification
					b.Fatal("found otherwise")
				}
			}
		})
	}
}
