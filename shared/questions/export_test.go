package questions_test

import (
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/questions"
)

// TestExportConsent: a project consents to exports until its file says otherwise, and
// what it says stays where somebody wrote it.
func TestExportConsent(t *testing.T) {
	t.Parallel()
	const head, tail = "# ours\nproject: shop\n", "queries:\n  - id: a\n    question: What?\n"
	for field, refuses := range map[string]bool{"": false, "export: true # asked on Monday\n": false, "export: false # asked on Monday\n": true} {
		s, err := questions.Parse("f.yaml", []byte(head+field+tail))
		if err != nil {
			t.Fatal(err)
		}
		if s.NoExport != refuses {
			t.Errorf("%q: NoExport %v", field, s.NoExport)
		}
		more, err := s.Add(questions.Query{ID: "b", Question: "Why?"})
		if err != nil {
			t.Fatal(err)
		}
		back, err := questions.Parse("f.yaml", more.Marshal())
		if err != nil || !back.Equal(more) || !strings.Contains(string(more.Marshal()), strings.TrimSpace(field)) {
			t.Errorf("%q became, after a question was added:\n%s", field, more.Marshal())
		}
		s.NoExport = !refuses
		if back, err = questions.Parse("f.yaml", s.Marshal()); err != nil || back.NoExport == refuses || !back.Equal(s) {
			t.Errorf("%q turned round gives %v:\n%s", field, err, s.Marshal())
		}
	}
	for field, line := range map[string]string{"export: maybe\n": "f.yaml:3", "export: [false]\n": "f.yaml:3", "export: false\nexport: true\n": "f.yaml:4"} {
		_, err := questions.Parse("f.yaml", []byte(head+field+tail))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), line) {
			t.Errorf("%q: %v, want %s", field, err, line)
		}
	}
}
