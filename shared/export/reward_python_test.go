package export_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mneme-ai/mneme/shared/gru"
)

// scored is a reply, and what compute_score of docs/training/reward_mneme.py says of it.
type scored struct {
	Reply string `json:"reply"`
	Call  string `json:"call"`
	Truth string `json:"truth"`
}

type score struct {
	Score   float64 `json:"score"`
	RUpdate float64 `json:"r_update"`
	RFormat float64 `json:"r_format"`
}

// scoreOf is what the reward must be, by the gate's own parser.
func scoreOf(c scored) score {
	shape := gru.ShapeGate
	if c.Call == "decide" {
		shape = gru.ShapeFull
	}
	v, err := gru.ParseReply(shape, c.Reply, "", "stop")
	switch {
	case err != nil:
		return score{-1, -1, 0}
	case v.Update == (c.Truth == "yes"):
		return score{2, 1, 1}
	}
	return score{0, -1, 1}
}

// TestRewardPython: the reward that verl is given reads a reply exactly as the gate does:
// no reply is worth something that the gate refuses.
func TestRewardPython(t *testing.T) {
	t.Parallel()
	py, err := exec.LookPath("python3")
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("MNEME_TEST_REQUIRE"), ","), "python") {
			t.Fatal("there is no python3")
		}
		t.Skip("there is no python3")
	}
	replies := []string{
		"<think>a</think>\n<check>yes</check>\n<update>m</update>\n<next>continue</next>",
		"<think>a</think><check>yes</check><next>end</next>",
		"<check>no</check><next>continue</next>",
		"a</think><check>no</check><next>end</next>",
		"<check> YES </check><update> m </update><next>\nEnd </next>",
		"<check>no</check><update></update><next>end</next>",
		"<check>no</check><update>m</update><next>end</next>",
		"junk <check>yes</check> more junk <next>end</next> tail",
		"junk <check>yes</check> more <update>m</update> junk <next>end</next> tail",
		"<check>yes</check><update>a</update>b</update><next>end</next>",
		"<check>\u00a0no\u3000</check><next>end</next>",

		"<next>end</next><check>YES</check>",
		"<think>x</think><check>yes</check><update></update><update>b</update><next>continue</next>",
		"<think>x</think><check>yes</check><update>a</update><update>b</update><next>continue</next>",
		"<check>yes</check><update> \u2003</update><next>end</next>",
		"<check>yes</check><update>m<next>end</next></update>",
		"<check>yes</check></update><next>end</next>",
		"<update>m</update><check>yes</check><next>end</next>",
		"<update>m <check>yes</check></update><next>end</next>",
		"<check>no\x1c</check><next>end</next>",
		"<Check>no</Check><next>end</next>",
		"<check>maybe</check><next>end</next>",
		"<check>no</check><next>stop</next>",
		"<check>no</check><check>yes</check><next>end</next>",
		"<think><check>yes</check></think><check>no</check><next>end</next>",
		"<think><check>yes</check></think><next>end</next>",
		"<think>a <check>no</check><next>end</next>",
		"<b>so</b> <think>a</think><check>no</check><next>end</next>",
		"<check>no</check><next>end", "<check>no</check>", "yes", "",
	}
	// Any order and number of what replies are made of, the sound ones among them.
	parts := []string{
		"<think>", "</think>", "<think>a</think>", "<check>", "</check>", "<check>yes</check>", "<check>yes</check>", "<check>No</check>", "yes",
		"<update>", "</update>", "<update>m</update>", "<update></update>", "<next>", "</next>", "<next>end</next>", "<next>continue</next>", "<next>END</next>", " ", "<", "é",
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		replies = append(replies, b.String())
	}
	var cases []scored
	for i, reply := range replies {
		for _, call := range []string{"gate", "decide"} {
			cases = append(cases, scored{reply, call, []string{"yes", "no"}[i%2]})
		}
	}
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join("testdata", "python", "reward.py")
	for _, path := range []string{program, filepath.Join(docs, "reward_mneme.py")} {
		if _, err := os.ReadFile(path); err != nil { // so that the test's cached outcome follows from it
			t.Fatal(err)
		}
	}
	cmd := exec.Command(py, program, docs)
	var said bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stderr = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), bytes.NewReader(in), &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
	var got []score
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(cases) {
		t.Fatalf("%d scores of %d replies: %v", len(got), len(cases), err)
	}
	wrong, sound := 0, 0
	for i, c := range cases {
		want := scoreOf(c)
		if want.RFormat == 1 {
			sound++
		}
		if got[i] != want && wrong < 20 {
			wrong++
			t.Errorf("%s, %s is right: %q is %+v, want %+v", c.Call, c.Truth, c.Reply, got[i], want)
		}
	}
	if sound < 200 {
		t.Errorf("%d replies of %d are sound: the test proves little", sound, len(cases))
	}
}
