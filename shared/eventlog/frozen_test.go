package eventlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/memory"
)

// freeze writes the samples that are absent. A sample that exists is never
// written again: it stands for logs that people have.
var freeze = flag.Bool("freeze", false, "write the frozen samples that are absent")

const frozenDir = "testdata/v1"

// fill sets every field of v to a value that is not its zero, the same on every
// run: a sample with it shows a field that is renamed, dropped or retyped.
func fill(v reflect.Value, path string) {
	switch v.Type() {
	case reflect.TypeFor[memory.SHA]():
		v.SetString(string(memory.SumString(path)))
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"from":"` + path + `"}`))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" {
				continue
			}
			fill(v.Field(i), path+"."+name)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0, 0xff, 'x'})
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), path+"[0]")
		fill(v.Index(1), path+"[1]")
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, k := range []string{"b", "a é"} {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(e, path+"["+k+"]")
			v.SetMapIndex(reflect.ValueOf(k).Convert(v.Type().Key()), e)
		}
	case reflect.String:
		v.SetString(path + " <é\U0001f600\n\"\\&>")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(len(path)) / 3)
	default:
		v.SetInt(int64(len(path)))
	}
}

// filled is a record with every field set but Erased.
func filled[T any](typ string, level memory.Level) *T {
	x := new(T)
	v := reflect.ValueOf(x).Elem()
	fill(v, typ)
	for name, val := range map[string]any{"V": 1, "Type": typ, "Level": level, "Erased": memory.SHA("")} {
		if f := v.FieldByName(name); f.IsValid() {
			f.Set(reflect.ValueOf(val).Convert(f.Type()))
		}
	}
	return x
}

const frozenStream = "frozen@01234567"

// frozenStore writes one of everything into a store and gives the objects.
func frozenStore(t *testing.T) map[string][]byte {
	t.Helper()
	ctx := context.Background()
	b := newBucket()
	l := eventlog.Open(b, tenant, "frozen", eventlog.WithFolder("folder"))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	head, err := l.Append(ctx, project, frozenStream, eventlog.Head{}, unchecked(t, []eventlog.Record{
		filled[memory.Run]("run", memory.L1), filled[memory.Gate]("gate", memory.L1), filled[memory.Evidence]("evidence", memory.L0),
		filled[memory.Memory]("memory", memory.L2), filled[memory.RunEnd]("run_end", memory.L1),
		&eventlog.Opaque{Type: "label", Line: []byte(`{"v":1,"type":"label","level":"-","evidence":true,"confidence":0.90,"by":"human","text":"<kept>","x":{"z":1,"quote":"q","a":[]}}`)},
	}))
	must(err)
	_, err = l.Append(ctx, project, frozenStream, head, []eventlog.Record{&memory.Gate{Level: memory.L1, T: 1, FormatOK: true}})
	must(err)
	a := filled[memory.Admit]("admit", "-")
	_, _, err = l.AppendAdmit(ctx, project, eventlog.Head{}, *a)
	must(err)
	src, c0, c1 := filled[memory.Source]("source", "-"), filled[memory.Chunk]("chunk", "-"), filled[memory.Chunk]("chunk", "-")
	src.Tenant, src.Project = tenant, project
	c0.I, c1.I = 0, 1
	c1.SHA256 = memory.SumString("second chunk")
	src.Chunks = []memory.SHA{c0.SHA256, c1.SHA256}
	_, err = l.PutSource(ctx, project, *src, []memory.Chunk{*c0, *c1})
	must(err)
	_, err = l.PutBlob(ctx, project, []byte("a chunk's text, kept for ever\n"))
	must(err)
	r := filled[eventlog.Receipt]("receipt", "-")
	r.Outcome = "admitted"
	must(l.PutReceipt(ctx, *r))
	must(l.PutVectors(ctx, project, "0a1b2c3d", frozenStream, 1, eventlog.Vectors{Dims: 2,
		Passages: []memory.SHA{memory.SumString("p1"), memory.SumString("p2")}, Rows: []float32{1, -0.5, 0.1, 3e-20}}))
	must(l.PutVectors(ctx, project, "0a1b2c3d", frozenStream, 2, eventlog.Vectors{Dims: 2}))
	must(l.PutDead(ctx, *filled[eventlog.Dead]("dead", "-")))
	must(l.SetPointer(ctx, "shop/questions", map[string]any{"serving": map[string]string{"frozen": frozenStream}}, ""))
	must(l.PutFoldCache(ctx, project, frozenStream, head, map[string]int{"t": 3}))
	lease, err := eventlog.Marshal(filled[eventlog.LeaseRecord]("lease", "-"))
	must(err)
	_, err = b.Put(ctx, "ops/lease/local/shop/"+frozenStream+".json", append(lease, '\n'))
	must(err)
	seg, err := l.Segment(ctx, project, frozenStream, 1)
	must(err)
	var gone bytes.Buffer
	for _, line := range seg.Lines {
		e, err := eventlog.Erase(line, memory.SumString("tombstone"))
		must(err)
		gone.Write(append(e, '\n'))
	}
	out := map[string][]byte{"erased.jsonl": gone.Bytes()}
	for info, err := range b.List(ctx, "") {
		must(err)
		data, _, err := b.ReadAll(ctx, info.Key, 1<<20)
		must(err)
		out[info.Key] = data
	}
	return out
}

func TestFreeze(t *testing.T) {
	if !*freeze {
		t.Skip("samples are written by -freeze alone")
	}
	for name, data := range frozenStore(t) {
		path := filepath.Join(frozenDir, filepath.FromSlash(name))
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// frozenLog is a store that holds the frozen samples.
func frozenLog(t *testing.T) (*eventlog.Log, map[string][]byte) {
	t.Helper()
	b := newBucket()
	files := map[string][]byte{}
	root := os.DirFS(frozenDir)
	err := walkFiles(root, func(name string, data []byte) {
		files[name] = data
		put(t, b, name, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no frozen sample: they are part of the repository")
	}
	return eventlog.Open(b, tenant, "reader"), files
}

// Version 1 reads for ever: every sample decodes, what is decoded encodes to
// the same bytes, and the hashes are those that were frozen. A new field of a
// record must be left out when it is empty, or this fails: that is the rule
// that new fields are additive.
func TestFrozenV1(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l, files := frozenLog(t)
	got := map[string]string{}
	note := func(name string, sha memory.SHA) { got[name] = string(sha) }

	for n := int64(1); n <= 2; n++ {
		seg, err := l.Segment(ctx, project, frozenStream, n)
		if err != nil {
			t.Fatal(err)
		}
		note(fmt.Sprintf("segment %d", n), seg.Hash)
		for i, r := range seg.Records {
			line, err := eventlog.EncodeRecord(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(seg.Lines[i]), string(line)); diff != "" {
				t.Errorf("segment %d, a %s record: %s", n, r.RecordType(), diff)
			}
			sealed, _, err := eventlog.Seal(nil, line)
			if err != nil {
				t.Fatal(err)
			}
			note(fmt.Sprintf("sealed %s %d.%d", r.RecordType(), n, i+1), memory.Sum(sealed))
		}
	}
	first, err := l.Segment(ctx, project, frozenStream, 1)
	if err != nil {
		t.Fatal(err)
	}
	gone := bytes.Split(bytes.TrimSuffix(files["erased.jsonl"], []byte("\n")), []byte("\n"))
	for i, line := range first.Lines {
		e, err := eventlog.Erase(line, memory.SumString("tombstone"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(gone[i]), string(e)); diff != "" {
			t.Error(diff)
		}
		a, _, _ := eventlog.Seal(nil, line)
		b, isErased, err := eventlog.Seal(nil, gone[i])
		if err != nil || !isErased || !bytes.Equal(a, b) {
			t.Errorf("erased line %d seals to another form: %v", i, err)
		}
	}
	for a, err := range l.Admits(ctx, project, 0) {
		if err != nil {
			t.Fatal(err)
		}
		line, err := eventlog.EncodeRecord(&a)
		if err != nil {
			t.Fatal(err)
		}
		stored := bytes.Split(files[fmt.Sprintf("log/local/shop/admit/%020d.jsonl", a.Seq)], []byte("\n"))[1]
		if diff := cmp.Diff(string(stored), string(line)); diff != "" {
			t.Error(diff)
		}
	}
	head, err := l.Head(ctx, project, memory.AdmitStream)
	if err != nil {
		t.Fatal(err)
	}
	note("admit segment", head.Hash)
	stream, err := l.StreamHash(ctx, project, frozenStream)
	if err != nil {
		t.Fatal(err)
	}
	note("stream hash", stream)
	all, _, err := l.LogHash(ctx)
	if err != nil {
		t.Fatal(err)
	}
	note("log hash", all)

	for name, data := range files {
		dir, base := filepath.ToSlash(filepath.Dir(name)), filepath.Base(name)
		switch {
		case strings.HasSuffix(dir, "/sources"):
			key := memory.SHA(strings.TrimSuffix(base, ".jsonl"))
			src, chunks, err := l.Source(ctx, project, key)
			if err != nil {
				t.Fatal(err)
			}
			note("source key", key)
			again := eventlog.Open(newBucket(), tenant, "w")
			if got, err := again.PutSource(ctx, project, src, chunks); err != nil || got != key {
				t.Errorf("written again: %s, %v; want %s", got, err, key)
			}
		case strings.HasPrefix(name, "blob/"):
			if _, err := l.Blob(ctx, project, memory.SHA(base)); err != nil {
				t.Error(err)
			}
			note("blob", memory.SHA(base))
		case strings.HasPrefix(name, "receipts/"):
			r, found, err := l.ReceiptByID(ctx, memory.SHA(base))
			if err != nil || !found {
				t.Fatalf("%v, %v", found, err)
			}
			same(t, name, data, &r)
			note("receipt id", memory.SHA(base))
		case strings.HasPrefix(name, "ops/dead/"):
			for d, err := range l.DeadLetters(ctx) {
				if err != nil {
					t.Fatal(err)
				}
				same(t, name, data, &d)
				id, err := d.DeadID()
				if err != nil || id != d.ID {
					t.Errorf("dead id %s, %v; want %s", id, err, d.ID)
				}
				note("dead id", id)
			}
		case strings.HasPrefix(name, "ops/lease/"):
			same(t, name, data, &eventlog.LeaseRecord{})
		case strings.HasPrefix(name, "ops/pointer/"):
			same(t, name, data, &eventlog.PointerRecord{})
		case strings.HasPrefix(name, "derived/fold/"):
			same(t, name, data, &eventlog.FoldRecord{})
			var v map[string]int
			if h, ok, err := l.FoldCache(ctx, project, frozenStream, &v); err != nil || !ok || h.Seq != 1 || v["t"] != 3 {
				t.Errorf("fold: %+v, %v, %v", h, ok, err)
			}
		case strings.HasPrefix(name, "vector/"):
			var seq int64
			if _, err := fmt.Sscanf(base, "%d", &seq); err != nil {
				t.Fatal(err)
			}
			v, found, err := l.Vectors(ctx, project, "0a1b2c3d", frozenStream, seq)
			if err != nil || !found {
				t.Fatalf("%v, %v", found, err)
			}
			again := newBucket()
			if err := eventlog.Open(again, tenant, "w").PutVectors(ctx, project, "0a1b2c3d", frozenStream, seq, v); err != nil {
				t.Fatal(err)
			}
			now, _, err := again.ReadAll(ctx, name, 1<<20)
			if err != nil || !bytes.Equal(now, data) {
				t.Errorf("%s: written again it is other bytes: %v", name, err)
			}
			note(fmt.Sprintf("vectors %d", seq), memory.SHA(fmt.Sprintf("%x", data[len(data)-32:])))
		}
	}

	want := map[string]string{}
	path := filepath.Join(frozenDir, "hashes.json")
	if data, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
	} else if *freeze {
		data, err := json.MarshalIndent(got, "", "  ")
		if err == nil {
			err = os.WriteFile(path, append(data, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		want = got
	} else {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// same decodes a stored object of one line and proves that it encodes to the
// same bytes.
func same(t *testing.T, name string, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
	line, err := eventlog.Marshal(into)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(line)+"\n"); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// Every field that version 1 has stands in a sample.
func TestFrozenIsComplete(t *testing.T) {
	t.Parallel()
	_, files := frozenLog(t)
	var all bytes.Buffer
	for name, data := range files {
		if !strings.HasPrefix(name, "vector/") && !strings.HasPrefix(name, "blob/") {
			all.Write(data)
		}
	}
	for _, x := range []any{memory.Source{}, memory.Chunk{}, memory.Admit{}, memory.Run{}, memory.Gate{}, memory.Evidence{}, memory.Memory{}, memory.RunEnd{},
		memory.Span{}, memory.Place{}, memory.Counts{}, memory.ChunkTurn{}, memory.ChunkPiece{}, memory.Seal{}, memory.Exception{},
		eventlog.Header{}, eventlog.Footer{}, eventlog.Receipt{}, eventlog.ReceiptPart{}, eventlog.Dead{}, eventlog.LeaseRecord{}, eventlog.PointerRecord{}, eventlog.FoldRecord{}} {
		typ := reflect.TypeOf(x)
		for i := range typ.NumField() {
			name, opts, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name == "-" || bytes.Contains(all.Bytes(), []byte(`"`+name+`":`)) {
				continue
			}
			if !strings.Contains(opts, "omit") {
				t.Errorf("%v.%s: field %q is newer than version 1's samples and not left out when it is empty", typ, typ.Field(i).Name, name)
			}
		}
	}
}
