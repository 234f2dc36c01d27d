package labels_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
)

// read reads a file; bad rows by line and field.
func read(t testing.TB, file, format, by string) (rows []labels.Row, bad []string, end error) {
	t.Helper()
	for r, err := range labels.ReadRows(strings.NewReader(file), format, by) {
		if e, ok := errors.AsType[*labels.RowError](err); ok {
			bad = append(bad, fmt.Sprintf("%d %s", e.Line, e.Field))
			if e.Problem == "" {
				t.Errorf("line %d has no reason", e.Line)
			}
			continue
		}
		if err != nil {
			return rows, bad, err
		}
		rows = append(rows, r)
	}
	return rows, bad, nil
}

// TestReadRows: every bad row is named by line and field and costs no other.
func TestReadRows(t *testing.T) {
	t.Parallel()
	c := string(memory.SumString("c"))
	good := `{"question":"limits","chunk":"` + c + `","evidence":true}`
	for name, tc := range map[string]struct {
		format, file string
		n            int
		bad          []string
	}{
		"empty":           {labels.JSONL, "", 0, nil},
		"one":             {labels.JSONL, good, 1, nil},
		"bom, CRLF":       {labels.JSONL, "\xef\xbb\xbf" + good + "\r\n\r\n" + good + "\r\n", 2, nil},
		"yes in words":    {labels.JSONL, strings.Replace(good, "true", `"Yes"`, 1), 1, nil},
		"no evidence":     {labels.JSONL, `{"question":"limits","chunk":"` + c + `"}` + "\n" + good, 1, []string{"1 evidence"}},
		"evidence null":   {labels.JSONL, strings.Replace(good, "true", "null", 1), 0, []string{"1 evidence"}},
		"evidence maybe":  {labels.JSONL, strings.Replace(good, "true", `"maybe"`, 1), 0, []string{"1 evidence"}},
		"evidence 2":      {labels.JSONL, strings.Replace(good, "true", `2`, 1), 0, []string{"1 evidence"}},
		"a typo":          {labels.JSONL, strings.Replace(good, `"question"`, `"quesion"`, 1), 0, []string{"1 quesion"}},
		"no question":     {labels.JSONL, `{"chunk":"` + c + `","evidence":true}`, 0, []string{"1 stream"}},
		"no chunk":        {labels.JSONL, `{"question":"q","evidence":true}`, 0, []string{"1 chunk"}},
		"half a hash":     {labels.JSONL, `{"question":"q","chunk":"abc","evidence":true}`, 0, []string{"1 chunk"}},
		"a number there":  {labels.JSONL, `{"question":7,"chunk":"` + c + `","evidence":true}`, 0, []string{"1 question"}},
		"cut off":         {labels.JSONL, good + "\n" + good[:20], 1, []string{"2 line"}},
		"two in a line":   {labels.JSONL, good + good, 0, []string{"1 line"}},
		"not UTF-8":       {labels.JSONL, "\xff\xfa\n" + good, 1, []string{"1 line"}},
		"a long line":     {labels.JSONL, good + "\n" + `{"note":"` + strings.Repeat("x", 70<<10) + `"}` + "\n" + good, 2, []string{"2 line"}},
		"a note":          {labels.JSONL, strings.Replace(good, "{", `{"note":"I wonder",`, 1), 1, nil},
		"over one":        {labels.JSONL, strings.Replace(good, "{", `{"confidence":1.5,`, 1), 0, []string{"1 confidence"}},
		"backwards":       {labels.JSONL, strings.Replace(good, "{", `{"start":9,"end":3,`, 1), 0, []string{"1 end"}},
		"below 0":         {labels.JSONL, strings.Replace(good, "{", `{"start":-1,"end":3,`, 1), 0, []string{"1 start"}},
		"half a place":    {labels.JSONL, strings.Replace(good, "{", `{"start":1.5,"end":3,`, 1), 0, []string{"1 start"}},
		"a day":           {labels.JSONL, strings.Replace(good, "{", `{"at":"2026-05-01",`, 1), 1, nil},
		"yesterday":       {labels.JSONL, strings.Replace(good, "{", `{"at":"yesterday",`, 1), 0, []string{"1 at"}},
		"another stream":  {labels.JSONL, strings.Replace(good, "{", `{"stream":"other@01234567",`, 1), 0, []string{"1 question"}},
		"masked as human": {labels.JSONL, strings.Replace(good, "{", `{"model":"big",`, 1), 0, []string{"1 kind"}},
		"human by a rule": {labels.JSONL, strings.Replace(good, "{", `{"kind":"human","rule":"r",`, 1), 0, []string{"1 kind"}},
		"no such kind":    {labels.JSONL, strings.Replace(good, "{", `{"kind":"oracle",`, 1), 0, []string{"1 kind"}},
		"a model unnamed": {labels.JSONL, strings.Replace(good, "{", `{"kind":"model",`, 1), 0, []string{"1 model"}},
		"a model":         {labels.JSONL, strings.Replace(good, "{", `{"kind":"model","model":"big",`, 1), 1, nil},
		"a rule unnamed":  {labels.JSONL, strings.Replace(good, "{", `{"kind":"rule",`, 1), 0, []string{"1 rule"}},
		"escape in name":  {labels.JSONL, strings.Replace(good, "{", `{"by":"a\u001b[2J",`, 1), 0, []string{"1 by"}},

		"csv":                   {labels.CSV, "question,chunk,evidence\nlimits," + c + ",no\n", 1, nil},
		"csv by semicolons":     {labels.CSV, "evidence;chunk;question;note\nY;" + c + ";limits;\"a; \"\"b\"\"\"\n", 1, nil},
		"csv by tabs":           {labels.CSV, "stream\tchunk\tevidence\nlimits@01234567\t" + c + "\t0", 1, nil},
		"csv, no evidence":      {labels.CSV, "question,chunk,evidence\nlimits," + c + ",\nlimits," + c + ",1\n", 1, []string{"2 evidence"}},
		"csv, fields missing":   {labels.CSV, "question,chunk,evidence\nlimits\nlimits," + c + ",1\n", 1, []string{"2 line"}},
		"csv, an open quote":    {labels.CSV, "question,chunk,evidence\n\"limits," + c + ",1\nlimits," + c + ",1\n", 1, []string{"2 line"}},
		"csv, behind a quote":   {labels.CSV, "question,chunk,evidence\n\"limits\"x," + c + ",1\n", 0, []string{"2 line"}},
		"csv, confidence":       {labels.CSV, "question,chunk,evidence,confidence\nlimits," + c + ",1,NaN\nlimits," + c + ",1,high\n", 0, []string{"2 confidence", "3 confidence"}},
		"csv, not a number":     {labels.CSV, "question,chunk,evidence,end\nlimits," + c + ",1,ten\n", 0, []string{"2 end"}},
		"csv, whole hash twice": {labels.CSV, "question,chunk,evidence\nlimits," + c + c + ",1\n", 0, []string{"2 chunk"}},
	} {
		rows, bad, err := read(t, tc.file, tc.format, "ada")
		if err != nil || len(rows) != tc.n {
			t.Errorf("%s: %d rows, want %d; %v %v", name, len(rows), tc.n, bad, err)
		}
		if diff := cmp.Diff(tc.bad, bad); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, r := range rows {
			if r.Kind == memory.LabelHuman && r.By != "ada" {
				t.Errorf("%s: by %q", name, r.By)
			}
		}
	}
	for name, file := range map[string]string{
		"an array":          "[" + good + "]",
		"UTF-16":            "\xff\xfe{\x00",
		"an unknown column": "question,chunk,evidence,text\n",
		"no header":         "limits," + c + ",1\n",
		"a column twice":    "question,chunk,evidence,chunk\n",
		"a column missing":  "question,chunk\n",
	} {
		format := labels.Format("", []byte(file))
		if rows, _, err := read(t, file, format, "ada"); !fault.Is(err, fault.Invalid) || len(rows) != 0 || fault.HintOf(err) == "" {
			t.Errorf("%s as %s: %v", name, format, err)
		}
	}
	// Nobody is named: a person's label is nobody's.
	if _, bad, err := read(t, good, labels.JSONL, ""); err != nil || !slices.Equal(bad, []string{"1 by"}) {
		t.Errorf("%v %v", bad, err)
	}
}

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, head, want string }{
		{"a.csv", "{", labels.CSV}, {"a.TSV", "", labels.CSV}, {"a.jsonl", "x", labels.JSONL}, {"-", "\n {", labels.JSONL},
		{"-", "\xef\xbb\xbf[", labels.JSONL}, {"labels.txt", "stream,", labels.CSV}, {"", "", labels.CSV},
	} {
		if got := labels.Format(tc.name, []byte(tc.head)); got != tc.want {
			t.Errorf("%q %q: %s", tc.name, tc.head, got)
		}
	}
}

// someRows are rows as an export gives them: every field, every kind.
func someRows(n int, seed uint64) []labels.Row {
	rnd := rand.New(rand.NewPCG(seed, 1))
	out := make([]labels.Row, n)
	for i := range out {
		l := &memory.Label{
			Kind: []string{memory.LabelHuman, memory.LabelModel, memory.LabelRule}[rnd.IntN(3)], Stream: []string{"limits@01234567", "limits@01234567.2", "_synthesis@89abcdef"}[rnd.IntN(3)],
			Chunk: memory.SumString(fmt.Sprint(rnd.IntN(50))), Evidence: rnd.IntN(2) == 0, At: day.Add(time.Duration(rnd.Int64N(1e15))), FormatOK: true,
		}
		if rnd.IntN(2) == 0 {
			l.Start = rnd.IntN(9)
			l.End = l.Start + 1 + rnd.IntN(9)
		}
		if rnd.IntN(2) == 0 {
			c := rnd.Float64()
			l.Confidence = &c
		}
		switch l.Kind {
		case memory.LabelHuman:
			l.By = []string{"ada", `Grace "amazing" H.`, "Čapek, K.", "李"}[rnd.IntN(4)]
		case memory.LabelRule:
			l.Rule = "r-1"
		default:
			l.Model, l.Adapter, l.PromptVersion, l.Exit = "qwen2.5:7b", []string{"", "mneme-gate-1"}[rnd.IntN(2)], []string{"", "t2"}[rnd.IntN(2)], rnd.IntN(2) == 0
			l.Basis = []string{"", memory.BasisChunk}[rnd.IntN(2)]
		}
		out[i] = labels.RowOf(l)
	}
	slices.SortFunc(out, labels.CompareRows)
	return out
}

// TestRoundTrip: what is exported is what is imported, in both formats; a label that
// comes back is the same row again.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rows := someRows(100, seed)
		for _, format := range []string{labels.JSONL, labels.CSV} {
			var b bytes.Buffer
			if err := labels.WriteRows(&b, format, slices.Values(rows)); err != nil {
				t.Fatal(err)
			}
			file := b.String()
			got, bad, err := read(t, file, labels.Format("", []byte(file)), "")
			if err != nil || bad != nil || len(got) != len(rows) {
				t.Fatalf("%s: %d of %d rows, %v %v", format, len(got), len(rows), bad, err)
			}
			for i := range got {
				if got[i].Line == 0 {
					t.Fatal("no line")
				}
				got[i].Line = 0
				back := labels.RowOf(got[i].Label(got[i].Stream, 1, 0))
				// A person's and a rule's label need no basis.
				if diff := cmp.Diff(rows[i], back); diff != "" {
					t.Fatalf("%s, row %d: %s", format, i, diff)
				}
			}
		}
	}
}

// FuzzRows: whatever a file holds, every row that is read passes Check again, can be
// written, and is read back as it was.
func FuzzRows(f *testing.F) {
	var b bytes.Buffer
	for _, format := range []string{labels.JSONL, labels.CSV} {
		b.Reset()
		if err := labels.WriteRows(&b, format, slices.Values(someRows(3, 1))); err != nil {
			f.Fatal(err)
		}
		f.Add(b.String(), format == labels.CSV)
	}
	f.Add("evidence;chunk;question\n\"yes\";"+string(memory.SumString("c"))+";a\n", true)
	f.Fuzz(func(t *testing.T, file string, csv bool) {
		format := labels.JSONL
		if csv {
			format = labels.CSV
		}
		rows, _, _ := read(t, file, format, "ada")
		for i := range rows {
			again := rows[i]
			if bad := again.Check("somebody else"); bad != nil {
				t.Fatalf("%+v: %v", rows[i], bad)
			}
			if diff := cmp.Diff(rows[i], again); diff != "" {
				t.Fatal(diff)
			}
			rows[i].Line = 0
		}
		for _, out := range []string{labels.JSONL, labels.CSV} {
			var b bytes.Buffer
			if err := labels.WriteRows(&b, out, slices.Values(rows)); err != nil {
				t.Fatal(err)
			}
			got, bad, err := read(t, b.String(), out, "")
			if err != nil || bad != nil {
				t.Fatalf("%s: %v %v\n%s", out, bad, err, b.String())
			}
			for i := range got {
				got[i].Line = 0
			}
			if diff := cmp.Diff(rows, got); diff != "" {
				t.Fatalf("%s: %s", out, diff)
			}
		}
	})
}

func BenchmarkReadRows(b *testing.B) {
	for _, format := range []string{labels.JSONL, labels.CSV} {
		var file bytes.Buffer
		if err := labels.WriteRows(&file, format, slices.Values(someRows(100_000, 1))); err != nil {
			b.Fatal(err)
		}
		b.Run(format+"/100k-rows", func(b *testing.B) {
			b.SetBytes(int64(file.Len()))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				for _, err := range labels.ReadRows(bytes.NewReader(file.Bytes()), format, "") {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
				if n != 100_000 {
					b.Fatal(n)
				}
			}
		})
	}
}
