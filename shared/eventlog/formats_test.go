package eventlog_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"github.com/mneme-ai/mneme/shared/event"
	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

const formatsPage = "../../docs/FORMATS.md"

// update rewrites what the golden blocks of the page give as results. The
// frozen samples keep a result from moving unseen.
var update = flag.Bool("update", false, "rewrite the golden results of docs/FORMATS.md")

// vector is one golden block: its fields in order.
type vector struct{ fields [][2]string }

func (v *vector) all(name string) []string {
	var out []string
	for _, f := range v.fields {
		if f[0] == name {
			out = append(out, f[1])
		}
	}
	return out
}

func (v *vector) one(t *testing.T, name string) string {
	t.Helper()
	if s := v.all(name); len(s) == 1 {
		return s[0]
	}
	t.Fatalf("the block needs one %q", name)
	return ""
}

var goldenBlock = regexp.MustCompile("(?s)```golden ([a-z-]+)\n(.*?)```")

// chainSum is a footer or a source's key, by the words of the page alone.
func chainSum(t *testing.T, lines ...string) string {
	t.Helper()
	h := sha256.New()
	for _, line := range lines {
		sealed, _, err := eventlog.Seal(nil, []byte(line))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(append(sealed, '\n'))
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// canonical is the RFC 8785 form by gowebpki/jcs.
func canonical(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		b, err = jcs.Transform(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// segmentOf reads a block's segment through the real reader.
func segmentOf(t *testing.T, v *vector, seq int64) string {
	t.Helper()
	lines := append([]string{v.one(t, "header")}, v.all("record")...)
	sum := chainSum(t, lines...)
	data := strings.Join(lines, "\n") + "\n" + `{"v":1,"type":"footer","level":"-","sha256":"` + sum + `"}` + "\n"
	seg, err := eventlog.ParseSegment([]byte(data), eventlog.Header{Tenant: "local", Project: "shop", Stream: "decisions@0a1b2c3d", Seq: seq})
	if err != nil {
		t.Fatal(err)
	}
	return string(seg.Hash)
}

// golden computes the results of each kind of block.
var golden = map[string]func(t *testing.T, v *vector) map[string]string{
	"sealed": func(t *testing.T, v *vector) map[string]string {
		line := v.one(t, "line")
		form, err := eventlog.Canonical([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		sealed, _, err := eventlog.Seal(nil, []byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(dumbSeal(t, form), string(sealed)); diff != "" {
			t.Error(diff)
		}
		return map[string]string{"sealed": string(sealed), "sha256": string(memory.Sum(sealed))}
	},
	"erased": func(t *testing.T, v *vector) map[string]string {
		line, err := eventlog.Erase([]byte(v.one(t, "line")), memory.SHA(v.one(t, "tombstone")))
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"erased": string(line)}
	},
	"footer": func(t *testing.T, v *vector) map[string]string {
		return map[string]string{"sha256": segmentOf(t, v, 1)}
	},
	"chain": func(t *testing.T, v *vector) map[string]string {
		// The segment before is that of block footer.
		prev := segmentOf(t, page(t)["footer"], 1)
		head := regexp.MustCompile(`"prev":"[^"]*"`).ReplaceAllString(v.one(t, "header"), `"prev":"`+prev+`"`)
		with := &vector{[][2]string{{"header", head}, {"record", v.one(t, "record")}}}
		return map[string]string{"prev": prev, "header": head, "sha256": segmentOf(t, with, 2)}
	},
	"source": func(t *testing.T, v *vector) map[string]string {
		sum := chainSum(t, v.all("line")...)
		if _, err := eventlog.SumLines([]byte(strings.Join(v.all("line"), "\n")+"\n"), memory.SHA(sum)); err != nil {
			t.Error(err)
		}
		return map[string]string{"sha256": sum}
	},
	"blob": func(t *testing.T, v *vector) map[string]string {
		sha, err := eventlog.Open(newBucket(), tenant, "w").PutBlob(context.Background(), project, []byte(v.one(t, "text")))
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"sha256": string(sha)}
	},
	"vectors": func(t *testing.T, v *vector) map[string]string {
		data := []byte(v.one(t, "header") + "\n")
		for _, p := range v.all("passage") {
			for i := 0; i < len(p); i += 2 {
				n, err := strconv.ParseUint(p[i:i+2], 16, 8)
				if err != nil {
					t.Fatal(err)
				}
				data = append(data, byte(n))
			}
		}
		for _, row := range v.all("row") {
			for _, f := range strings.Fields(row) {
				x, err := strconv.ParseFloat(f, 32)
				if err != nil {
					t.Fatal(err)
				}
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
			}
		}
		sum := sha256.Sum256(data)
		got, err := eventlog.DecodeVectors(append(data, sum[:]...), "local", "shop", "0a1b2c3d", "decisions@0a1b2c3d", 1)
		if err != nil || len(got.Passages) != 1 || got.Row(0)[1] != -0.5 {
			t.Errorf("%+v, %v", got, err)
		}
		return map[string]string{"sha256": fmt.Sprintf("%x", sum)}
	},
	"receipt": func(t *testing.T, v *vector) map[string]string {
		b, k, e := v.one(t, "bucket"), v.one(t, "key"), v.one(t, "etag")
		if diff := cmp.Diff(memory.Sum(canonical(t, []string{b, k, e})), eventlog.ReceiptID(b, k, e)); diff != "" {
			t.Error(diff)
		}
		return map[string]string{"sha256": string(eventlog.ReceiptID(b, k, e))}
	},
	"dead": func(t *testing.T, v *vector) map[string]string {
		d := eventlog.Dead{Function: v.one(t, "function"), EventType: v.one(t, "event_type"), EventID: v.one(t, "event_id"),
			Subject: v.one(t, "subject"), Key: v.one(t, "key"), Body: []byte(v.one(t, "body")), Kind: v.one(t, "kind")}
		id, err := d.DeadID()
		if err != nil {
			t.Fatal(err)
		}
		form := canonical(t, []string{d.Function, d.EventType, d.EventID, d.Subject, d.Key, string(memory.Sum(d.Body)), d.Kind})
		if diff := cmp.Diff(memory.Sum(form), id); diff != "" {
			t.Error(diff)
		}
		return map[string]string{"sha256": string(id)}
	},
	"node": func(t *testing.T, v *vector) map[string]string {
		text := memory.SumString(v.one(t, "text"))
		form, err := jcs.Transform([]byte(strings.Replace(v.one(t, "form"), "TEXT", string(text), 1)))
		if err != nil {
			t.Fatal(err)
		}
		id := memory.NodeID("local", "shop", memory.L1, "decisions@0a1b2c3d", text)
		if diff := cmp.Diff(memory.Sum(form), id); diff != "" {
			t.Error(diff)
		}
		return map[string]string{"sha256": string(id)}
	},
	"stream-name": func(t *testing.T, v *vector) map[string]string {
		w := v.one(t, "wording")
		raw := memory.SHA(v.one(t, "raw"))
		return map[string]string{"stream": memory.StreamName(v.one(t, "id"), " "+w+"\n"), "adhoc": memory.AdhocStream(w, raw), "adhoc_by": memory.AdhocStreamBy(w, raw, v.one(t, "choice"))}
	},
	"run": func(t *testing.T, v *vector) map[string]string {
		kind, ref, _ := strings.Cut(v.one(t, "cause"), ":")
		id := gru.RunID(v.one(t, "stream"), memory.Cause{Kind: kind, Ref: ref}, v.one(t, "policy"), v.one(t, "model"), v.one(t, "prompt_version"))
		form := canonical(t, map[string]string{"cause": v.one(t, "cause"), "model": v.one(t, "model"), "policy": v.one(t, "policy"),
			"prompt_version": v.one(t, "prompt_version"), "stream": v.one(t, "stream")})
		if diff := cmp.Diff(memory.Sum(form), id); diff != "" {
			t.Error(diff)
		}
		return map[string]string{"sha256": string(id)}
	},
	"space": func(t *testing.T, v *vector) map[string]string {
		dims, err := strconv.Atoi(v.one(t, "dims"))
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"space": memory.SpaceID(v.one(t, "model"), v.one(t, "revision"), dims, v.one(t, "prefix"))}
	},
	"event": func(t *testing.T, v *vector) map[string]string {
		var d event.Part
		if err := json.Unmarshal([]byte(v.one(t, "data")), &d); err != nil {
			t.Fatal(err)
		}
		e := event.New(event.Type(v.one(t, "type")), "learn", d)
		if diff := cmp.Diff(v.one(t, "data"), string(e.Data())); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(string(memory.SumString(v.one(t, "type")+"\n"+v.one(t, "data"))), e.ID()); diff != "" {
			t.Error(diff)
		}
		return map[string]string{"sha256": e.ID()}
	},
	"passage": func(t *testing.T, v *vector) map[string]string {
		n, err := strconv.Atoi(v.one(t, "n"))
		if err != nil {
			t.Fatal(err)
		}
		id := index.PassageID(memory.SHA(v.one(t, "node")), n, v.one(t, "text"))
		form := canonical(t, map[string]any{"n": n, "node": v.one(t, "node"), "text_sha256": memory.SumString(v.one(t, "text"))})
		if diff := cmp.Diff(memory.Sum(form), id); diff != "" {
			t.Error(diff)
		}
		return map[string]string{"sha256": string(id)}
	},
	"stream-hash": func(t *testing.T, v *vector) map[string]string {
		h := sha256.New()
		for _, s := range v.all("step") {
			h.Write([]byte(s + "\n"))
			form, err := jcs.Transform([]byte(s))
			if err != nil || string(form) != s {
				t.Errorf("%s is not canonical: %v", s, err)
			}
		}
		var lines []byte
		for _, g := range []*memory.Gate{{Chunk: "aaaa", End: 10, FormatOK: true}, {Chunk: "bbbb", End: 12, Update: true, FormatOK: true, MemorySHA: "cccc"}} {
			lines = eventlog.AppendStep(lines, len(bytes.Split(lines, []byte("\n"))), g)
		}
		if diff := cmp.Diff(strings.Join(v.all("step"), "\n")+"\n", string(lines)); diff != "" {
			t.Error(diff)
		}
		return map[string]string{"sha256": fmt.Sprintf("%x", h.Sum(nil))}
	},
	"log-hash": func(t *testing.T, v *vector) map[string]string {
		hashes := map[string]memory.SHA{}
		h := sha256.New()
		for _, s := range v.all("stream") {
			name, sum, _ := strings.Cut(s, " ")
			hashes[name] = memory.SHA(sum)
			h.Write(append(canonical(t, []string{name, sum}), '\n'))
		}
		if diff := cmp.Diff(fmt.Sprintf("%x", h.Sum(nil)), string(eventlog.SumStreams(hashes))); diff != "" {
			t.Error(diff)
		}
		return map[string]string{"sha256": string(eventlog.SumStreams(hashes))}
	},
	"row": func(t *testing.T, v *vector) map[string]string {
		var n index.Node
		n.Level, n.Project, n.Stream = memory.L0, "shop", "decisions@0a1b2c3d"
		n.ID, n.TextSHA = memory.SHA(strings.Repeat("9", 64)), memory.SHA(strings.Repeat("a", 64))
		b, c, d := memory.SHA(strings.Repeat("b", 64)), memory.SHA(strings.Repeat("c", 64)), memory.SHA(strings.Repeat("d", 64))
		n.Parents, n.Supersedes = []memory.SHA{b, b}, []memory.SHA{d, c}
		if diff := cmp.Diff(memory.SumString(v.one(t, "row")), index.RowHash(&n)); diff != "" {
			t.Error(diff)
		}
		return map[string]string{"sha256": string(memory.SumString(v.one(t, "row")))}
	},
}

// page reads the golden blocks of docs/FORMATS.md.
func page(t *testing.T) map[string]*vector {
	t.Helper()
	data, err := os.ReadFile(formatsPage)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*vector{}
	for _, m := range goldenBlock.FindAllSubmatch(data, -1) {
		name := string(m[1])
		if out[name] != nil {
			t.Fatalf("two blocks %q", name)
		}
		v := &vector{}
		for line := range strings.Lines(string(m[2])) {
			k, val, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			if !ok {
				t.Fatalf("block %s: %q is no field", name, line)
			}
			v.fields = append(v.fields, [2]string{k, strings.TrimPrefix(val, " ")})
		}
		out[name] = v
	}
	return out
}

// Every hash that the page describes has a golden vector, and it holds.
func TestFormatsGolden(t *testing.T) {
	blocks := page(t)
	for name := range golden {
		if blocks[name] == nil {
			t.Errorf("docs/FORMATS.md has no golden block %q", name)
		}
	}
	for name, v := range blocks {
		compute := golden[name]
		if compute == nil {
			t.Errorf("nothing computes the golden block %q", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			results := compute(t, v)
			for i, f := range v.fields {
				want, isResult := results[f[0]]
				if !isResult || want == f[1] {
					continue
				}
				if *update {
					v.fields[i][1] = want
					continue
				}
				t.Errorf("%s: the page has %s, it is %s", f[0], f[1], want)
			}
			for field := range results {
				if len(v.all(field)) == 0 {
					t.Errorf("the block does not give %q", field)
				}
			}
		})
	}
	if !*update {
		return
	}
	data, err := os.ReadFile(formatsPage)
	if err != nil {
		t.Fatal(err)
	}
	data = goldenBlock.ReplaceAllFunc(data, func(m []byte) []byte {
		name := string(goldenBlock.FindSubmatch(m)[1])
		var b bytes.Buffer
		b.WriteString("```golden " + name + "\n")
		for _, f := range blocks[name].fields {
			b.WriteString(strings.TrimSuffix(f[0]+": "+f[1], " ") + "\n")
		}
		b.WriteString("```")
		return b.Bytes()
	})
	if err := os.WriteFile(formatsPage, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Every field of every record and event is on the page, in its section.
func TestFormatsNamesEveryField(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(formatsPage)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	// section is what stands from a mark to the next record's mark.
	marks := []string{"\n`header`", "\n`footer`", "\n`admit`:", "\n`run`:", "\n`gate`:", "\n`evidence`:", "\n`memory`:", "\n`run_end`:", "\n`source`", "\n`counts`:",
		"\n`chunk`", "\n`turns[]`:", "\n`pieces[]`", "\n### Span", "\n## Blob", "\n`vectors`", "\n`receipt`:", "\n`dead`:", "\n`lease`:", "\n`pointer`:", "\n`attempts`:", "\n`fold`:", "\n## Identities", "\n## Events", "\n## Hashes"}
	section := func(mark string) string {
		at := strings.Index(text, mark)
		if at < 0 {
			t.Fatalf("no section %q", mark)
		}
		end := len(text)
		for _, m := range marks {
			if i := strings.Index(text[at+1:], m); i >= 0 && at+1+i < end {
				end = at + 1 + i
			}
		}
		return text[at:end]
	}
	for mark, types := range map[string][]any{
		"\n`header`": {eventlog.Header{}}, "\n`footer`": {eventlog.Footer{}}, "\n`admit`:": {memory.Admit{}},
		"\n`run`:": {memory.Run{}, memory.Cause{}, memory.Sampling{}}, "\n`gate`:": {memory.Gate{}}, "\n`evidence`:": {memory.Evidence{}, memory.Place{}, memory.Occurrence{}},
		"\n`memory`:": {memory.Memory{}}, "\n`run_end`:": {memory.RunEnd{}}, "\n`source`": {memory.Source{}}, "\n`counts`:": {memory.Counts{}},
		"\n`chunk`": {memory.Chunk{}}, "\n`turns[]`:": {memory.ChunkTurn{}}, "\n`pieces[]`": {memory.ChunkPiece{}, memory.Seal{}, memory.Encoding{}, memory.Exception{}},
		"\n`tombstone`:": {memory.Tombstone{}, memory.Replacement{}, memory.Scrubbed{}, memory.Edit{}},
		"\n### Span":     {memory.Span{}}, "\n`receipt`:": {eventlog.Receipt{}, eventlog.ReceiptPart{}}, "\n`dead`:": {eventlog.Dead{}},
		"\n`lease`:": {eventlog.LeaseRecord{}}, "\n`pointer`:": {eventlog.PointerRecord{}}, "\n`attempts`:": {eventlog.AttemptsRecord{}}, "\n`fold`:": {eventlog.FoldRecord{}},
		"\n## Events": {event.Object{}, event.Part{}, event.Project{}, event.Stream{}, event.Segment{}, event.Sweep{}, event.Lessons{}},
	} {
		s := section(mark)
		for _, x := range types {
			typ := reflect.TypeOf(x)
			for i := range typ.NumField() {
				name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
				if name == "-" || slices.Contains([]string{"v", "type", "level"}, name) {
					continue
				}
				if !strings.Contains(s, "`"+name+"`") {
					t.Errorf("%v: field `%s` is not in section %q", typ, name, strings.TrimSpace(mark))
				}
			}
		}
	}
	for _, typ := range event.Types() {
		if !strings.Contains(section("\n## Events"), "`"+string(typ)+"`") {
			t.Errorf("event %s is not on the page", typ)
		}
	}
}
