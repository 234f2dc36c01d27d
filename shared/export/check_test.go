package export_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/mneme-ai/mneme/shared/export"
	"github.com/mneme-ai/mneme/shared/fault"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestSchemas: the files' columns and types, which trainers were configured for, stand
// still. A change is a new SchemaVersion.
func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, name := range export.Files("all") {
		golden := filepath.Join("testdata", "schema", strings.TrimSuffix(name, ".parquet")+".txt")
		got := export.SchemaText(name) + "\n"
		if *update {
			if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if export.SchemaText("other.parquet") != "" {
		t.Error("a file of no export has a schema")
	}
}

// TestTrainersColumns: every column that specs/models.md 4.6 names for a trainer is there,
// first and in its order, so that a trainer finds what its own documentation asks for.
func TestTrainersColumns(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		export.SFT: "messages", export.SFTPC: "prompt completion", export.KTO: "prompt completion label", export.KTOFlat: "messages label",
		export.DPO: "prompt chosen rejected", export.DPOFlat: "messages chosen rejected", export.VerlRL: "data_source prompt context ability reward_model extra_info",
	} {
		var got []string
		for _, line := range strings.Split(export.SchemaText(name), "\n") {
			if f := strings.Fields(line); strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "\t\t") && len(f) > 2 {
				got = append(got, strings.TrimSuffix(f[2], ";"))
			}
		}
		if !strings.HasPrefix(strings.Join(got, " "), want) {
			t.Errorf("%s: %v, want %s first", name, got, want)
		}
	}
	var all []string
	for _, line := range strings.Split(export.SchemaText(export.Gates), "\n") {
		if f := strings.Fields(line); len(f) > 2 {
			all = append(all, strings.TrimSuffix(f[2], ";"))
		}
	}
	text := " " + strings.Join(all, " ") + " "
	for _, c := range strings.Fields(`run_id project query_id level t total_t chunk_sha memory_before_sha candidate_sha raw_output update exit format_ok reason finish_reason prompt_tokens
		prompt_tokens_own completion_tokens model adapter prompt_version temperature top_p seed exit_acted latency_ms evidence label_source label_conf r_update r_exit r_format split export_id`) {
		if !strings.Contains(text, " "+c+" ") {
			t.Errorf("gates.parquet lacks %s", c)
		}
	}
}

// labelled is an export in which every file has rows.
func labelled(t testing.TB) (string, export.Report) {
	t.Helper()
	w := scriptedWorld(t, scripted{"a-1": "open", "a-2": "open", "a-3": "?", "b-0": "open end"}, map[string]bool{"a-0": true, "a-1": true, "b-0": false, "b-1": false})
	dir, r := write(t, w, export.Options{})
	for _, f := range r.Files {
		if f.Rows == 0 {
			t.Fatalf("%s has no rows", f.Name)
		}
	}
	return dir, r
}

// TestCheck: what is sound is said to be, and each kind of damage is found, with the file
// and, where it is one, the column named.
func TestCheck(t *testing.T) {
	t.Parallel()
	dir, r := labelled(t)
	got, err := export.CheckPath(dir)
	if err != nil || len(got) != len(r.Files) {
		t.Fatalf("%d files, %v", len(got), err)
	}
	for i, c := range got {
		if c.File != r.Files[i].Name || c.Rows != r.Files[i].Rows || c.SizeBytes != r.Files[i].SizeBytes || !c.Manifest {
			t.Errorf("%+v, want %+v", c, r.Files[i])
		}
	}
	whole := contents(t, dir)
	stored := t.TempDir() // as the store on the disk has them
	for n, b := range whole {
		if n == export.Marker {
			n += "%"
		}
		if err := os.WriteFile(filepath.Join(stored, n), []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := export.CheckPath(stored); err != nil || len(got) != len(r.Files) {
		t.Errorf("in the store's folder: %d files, %v", len(got), err)
	}
	// spoil copies the export, changes one file, and checks path, "" for the folder.
	spoil := func(name string, change func([]byte) []byte, path string) error {
		to := t.TempDir()
		for n, b := range whole {
			data := []byte(b)
			if n == name {
				if data = change(data); data == nil {
					continue
				}
			}
			if err := os.WriteFile(filepath.Join(to, n), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := export.CheckPath(filepath.Join(to, path))
		return err
	}
	at := func(i int) func([]byte) []byte {
		return func(b []byte) []byte {
			if i < 0 {
				i += len(b)
			}
			b[i] ^= 0x55
			return b
		}
	}
	replace := func(from, to string) func([]byte) []byte {
		return func(b []byte) []byte { return []byte(strings.Replace(string(b), from, to, 1)) }
	}
	kto := export.KTO
	for _, tt := range []struct {
		what, name string
		change     func([]byte) []byte
		path, want string
	}{
		{"a flipped byte in a page", kto, at(200), "", "kto.parquet"},
		{"a flipped byte in the footer", kto, at(-60), "", "kto.parquet"},
		{"no magic", kto, at(0), "", "kto.parquet"},
		{"cut in half", kto, func(b []byte) []byte { return b[:len(b)/2] }, "", "no whole Parquet file"},
		{"empty", kto, func([]byte) []byte { return []byte{} }, "", "no whole Parquet file"},
		{"missing", kto, func([]byte) []byte { return nil }, "", "no such file"},
		{"another export's file", kto, func([]byte) []byte { return []byte(whole[export.SFT]) }, "", "it is sft.parquet under another name"},
		{"a manifest of other rows", export.Manifest, replace(`"rows": 10`, `"rows": 11`), "", "the manifest says 11"},
		{"a manifest of another export", export.Manifest, replace(r.ExportID, strings.Repeat("0", 32)), export.Gates, "the manifest of 0000"},
		{"a manifest that is not JSON", export.Manifest, at(0), "", "it is no manifest"},
		{"a manifest with a field of another program", export.Manifest, replace(`"v":`, `"w": 1, "v":`), "", "it is no manifest"},
		{"a newer schema", export.Manifest, replace(`"schema": 1`, `"schema": 2`), "", "newer"},
		{"a file outside", export.Manifest, replace(`"name": "gates.parquet"`, `"name": "../../gates.parquet"`), "", "no file of an export"},
		{"no marker", export.Marker, func([]byte) []byte { return nil }, "", "it was not written to its end"},
		{"a marker of another export", export.Marker, at(3), "", "it was not written to its end"},
	} {
		err := spoil(tt.name, tt.change, tt.path)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.what, err, tt.want)
			continue
		}
		if k := fault.KindOf(err); k != fault.Corrupt && k != fault.Invalid {
			t.Errorf("%s: a %s", tt.what, k)
		}
	}
	if _, err := export.CheckPath(filepath.Join(dir, "nowhere")); !fault.Is(err, fault.Invalid) {
		t.Errorf("nowhere: %v", err)
	}
}

// TestCheckColumns: a file of another program says which column is not as it should be.
func TestCheckColumns(t *testing.T) {
	t.Parallel()
	type message struct {
		Role    string `parquet:"role"`
		Content []byte `parquet:"content"`
	}
	type row struct {
		Messages []message `parquet:"messages,list"`
	}
	type less struct {
		Messages []export.Message `parquet:"messages,list"`
	}
	type renamed struct {
		Messages []export.Message `parquet:"message,list"`
		export.Meta
	}
	type more struct {
		Messages []export.Message `parquet:"messages,list"`
		export.Meta
		Extra int64 `parquet:"extra"`
	}
	type flat struct {
		Messages []export.Message `parquet:"messages"` // repeated, not LIST
		export.Meta
	}
	dir := t.TempDir()
	for want, write := range map[string]func(string) error{
		"column messages.list.element.content is": func(p string) error { return parquet.WriteFile(p, []row{{}}, meta(export.SFT)...) },
		"column id is missing":                    func(p string) error { return parquet.WriteFile(p, []less{{}}, meta(export.SFT)...) },
		"column message stands where messages":    func(p string) error { return parquet.WriteFile(p, []renamed{{}}, meta(export.SFT)...) },
		"column extra does not belong there":      func(p string) error { return parquet.WriteFile(p, []more{{}}, meta(export.SFT)...) },
		"column messages is repeated group":       func(p string) error { return parquet.WriteFile(p, []flat{{}}, meta(export.SFT)...) },
		"its metadata names":                      func(p string) error { return parquet.WriteFile(p, []less{{}}) },
		"schema version":                          func(p string) error { return parquet.WriteFile(p, []less{{}}, meta(export.SFT)[0]) },
	} {
		path := filepath.Join(dir, "x.parquet")
		if err := write(path); err != nil {
			t.Fatal(err)
		}
		if _, err := export.CheckPath(path); !fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCheckRewards: a reward that none can be is found without a manifest too.
func TestCheckRewards(t *testing.T) {
	t.Parallel()
	num := func(v float64) *float64 { return &v }
	path := filepath.Join(t.TempDir(), "x.parquet")
	for want, row := range map[string]export.GateRow{
		"":                {RUpdate: num(-1), RExit: num(-0.75), RFormat: num(0)},
		"column r_update": {RUpdate: num(7)},
		"column r_exit":   {RExit: num(0.5)},
		"column r_format": {RFormat: num(math.NaN())},
	} {
		rows := slices.Repeat([]export.GateRow{{}, {RUpdate: num(1), RExit: num(0), RFormat: num(1)}, {RExit: num(-0.5)}}, 200)
		if err := parquet.WriteFile(path, append(rows, row), meta(export.Gates)...); err != nil {
			t.Fatal(err)
		}
		_, err := export.CheckPath(path)
		if want == "" && err != nil || want != "" && (!fault.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCheckNamesAll: every file that is not sound is named, beside those that are.
func TestCheckNamesAll(t *testing.T) {
	t.Parallel()
	dir, r := labelled(t)
	for _, name := range []string{export.SFT, export.KTO} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("PAR1 this is no file PAR1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, export.Marker)); err != nil {
		t.Fatal(err)
	}
	got, err := export.CheckPath(dir)
	if !fault.Is(err, fault.Corrupt) || len(got) != len(r.Files)-2 {
		t.Fatalf("%d files are sound, %v", len(got), err)
	}
	for _, name := range []string{export.SFT, export.KTO, export.Marker} {
		if !strings.Contains(err.Error(), filepath.Join(dir, name)+": ") {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

func meta(file string) []parquet.WriterOption {
	return []parquet.WriterOption{parquet.KeyValueMetadata("mneme.file", file), parquet.KeyValueMetadata("mneme.schema", "1")}
}

// FuzzCheck: whatever bytes stand in a file, the check ends with a verdict, and one that
// it calls sound can be read to its end.
func FuzzCheck(f *testing.F) {
	dir, _ := labelled(f)
	for _, name := range []string{export.DPO, export.Manifest} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("PAR1PAR1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := export.CheckPath(path)
		if err == nil && got[0].File == export.DPO {
			if all, err := parquet.ReadFile[export.DPORow](path); err != nil || int64(len(all)) != got[0].Rows {
				t.Errorf("%d rows of %d, %v", len(all), got[0].Rows, err)
			}
		}
		r, err := export.ParseManifest("m", b)
		if err != nil {
			return
		}
		out, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := export.ParseManifest("m", out); err != nil || cmp.Diff(r, again) != "" {
			t.Errorf("a manifest does not read as it was written: %v", err)
		}
	})
}

// TestLocated: keys of exports are told from all others.
func TestLocated(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("ab", 16)
	for key, want := range map[string]string{
		export.DayPrefix("local", "2026-05-01") + export.Gates:           "2026-05-01",
		export.AskedPrefix("local") + id + "/" + export.Manifest:         "asked",
		export.KeptPrefix("local") + id + "/" + export.Manifest:          "asked",
		export.KeptPrefix("local") + "x/" + export.Manifest:              "",
		export.DayPrefix("other", "2026-05-01") + export.Gates:           "",
		export.DayPrefix("local", "yesterday") + export.Gates:            "",
		export.DayPrefix("local", "2026-05-01") + "deep/" + export.Gates: "",
		"derived/fold/local/2026-05-01/local/x":                          "",
	} {
		day, ok := export.Located("local", key)
		if got := map[bool]string{true: "asked"}[ok && day == ""] + day; ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q %v, want %q", key, day, ok, want)
		}
	}
}
