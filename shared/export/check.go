package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
)

// schemas are the files' schemas by name.
var schemas = sync.OnceValue(func() map[string]*parquet.Schema {
	return map[string]*parquet.Schema{
		Gates: parquet.SchemaOf(GateRow{}), SFT: parquet.SchemaOf(SFTRow{}), SFTPC: parquet.SchemaOf(SFTPCRow{}), KTO: parquet.SchemaOf(KTORow{}),
		KTOFlat: parquet.SchemaOf(KTOFlatRow{}), DPO: parquet.SchemaOf(DPORow{}), DPOFlat: parquet.SchemaOf(DPOFlatRow{}), VerlRL: parquet.SchemaOf(VerlRow{}),
	}
})

// SchemaText is a file's schema in Parquet's own notation; "" for a name of no file.
func SchemaText(name string) string {
	s := schemas()[name]
	if s == nil {
		return ""
	}
	return s.String()
}

// storedMarker is Marker as shared/objstore/dirstore has it on the disk, where the name of
// a file without a dot ends so.
const storedMarker = Marker + "%"

// maxManifest bounds a manifest that is read: some 200 bytes a stream.
const maxManifest = 256 << 20

// Checked is a file that was found sound.
type Checked struct {
	Path      string `json:"path"`
	File      string `json:"file"` // which of ours it is
	Rows      int64  `json:"rows"`
	SizeBytes int64  `json:"size_bytes"`
	Manifest  bool   `json:"manifest"` // one stood beside it, and agrees
}

// CheckPath checks a Parquet file of an export, a manifest, or a folder of them: the
// schema column by column, every page, the range of the rewards, and where a manifest
// stands beside it the rows, the size and the sha256. A file that is not as it should be
// is fault.Corrupt; the error names each such file, and the column.
func CheckPath(path string) ([]Checked, error) {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fault.At(fault.Invalid, path, "", "%v", plain(err))
	case st.IsDir():
		return checkFolder(path)
	case filepath.Base(path) == Manifest:
		return checkManifest(path)
	}
	c, err := checkFile(path, nil)
	if err != nil {
		return nil, err
	}
	return []Checked{c}, nil
}

func plain(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}

func bad(path, format string, args ...any) error {
	return fault.At(fault.Corrupt, path, "make it anew: mem export", format, args...)
}

func checkFolder(dir string) ([]Checked, error) {
	r, err := readManifest(filepath.Join(dir, Manifest))
	if err != nil {
		return nil, err
	}
	out, wrong := checkFiles(dir, r)
	marker, err := os.ReadFile(filepath.Join(dir, Marker))
	if errors.Is(err, os.ErrNotExist) {
		marker, err = os.ReadFile(filepath.Join(dir, storedMarker))
	}
	if err != nil || strings.TrimSpace(string(marker)) != r.ExportID {
		wrong = errors.Join(wrong, bad(filepath.Join(dir, Marker), "the marker of export %s is missing: it was not written to its end", r.ExportID))
	}
	return out, wrong
}

// checkManifest checks a manifest and every file that it lists.
func checkManifest(path string) ([]Checked, error) {
	r, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	return checkFiles(filepath.Dir(path), r)
}

// checkFiles checks every file of a manifest; the error names all that are not sound.
func checkFiles(dir string, r *Report) (out []Checked, err error) {
	for i := range r.Files {
		c, wrong := checkFile(filepath.Join(dir, r.Files[i].Name), r)
		if wrong != nil {
			err = errors.Join(err, wrong)
			continue
		}
		out = append(out, c)
	}
	return out, err
}

func readManifest(path string) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.At(fault.Invalid, path, "", "%v", plain(err))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxManifest))
	if err != nil {
		return nil, fault.As(fault.Unavailable, err)
	}
	return ParseManifest(path, b)
}

// ParseManifest reads a manifest strictly; name stands in errors.
func ParseManifest(name string, b []byte) (*Report, error) {
	var r Report
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, bad(name, "it is no manifest: %v", err)
	}
	switch {
	case r.Type != "export":
		return nil, bad(name, "it is no manifest: type %q", r.Type)
	case r.V > memory.Version || r.Schema > SchemaVersion:
		return nil, fault.At(fault.Corrupt, name, "install a newer mem", "schema version %d is newer than %d", r.Schema, SchemaVersion)
	case len(r.ExportID) != 2*idBytes:
		return nil, bad(name, "the export id %q is none", r.ExportID)
	}
	for _, f := range r.Files {
		if schemas()[f.Name] == nil || !f.SHA256.Valid() {
			return nil, bad(name, "it lists %q, which is no file of an export", f.Name)
		}
	}
	return &r, nil
}

// checkFile checks one Parquet file; r is its manifest, looked for beside it where nil.
func checkFile(path string, r *Report) (c Checked, err error) {
	f, err := os.Open(path)
	if err != nil {
		return c, fault.At(fault.Invalid, path, "", "%v", plain(err))
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return c, fault.As(fault.Unavailable, err)
	}
	c = Checked{Path: path, SizeBytes: st.Size()}
	pf, err := openParquet(f, st.Size())
	if err != nil {
		return c, bad(path, "it is no whole Parquet file: %v", err)
	}
	if c.File, _ = pf.Lookup(metaFile); schemas()[c.File] == nil {
		return c, bad(path, "it is no file of an export: its metadata names %q", c.File)
	}
	if v, _ := pf.Lookup(metaSchema); v != fmt.Sprint(SchemaVersion) {
		return c, fault.At(fault.Corrupt, path, "install a newer mem", "schema version %q; this one reads %d", v, SchemaVersion)
	}
	if err := sameSchema(path, schemas()[c.File], pf.Schema()); err != nil {
		return c, err
	}
	c.Rows = pf.NumRows()
	if err := readPages(path, pf); err != nil {
		return c, err
	}
	if r == nil {
		beside := filepath.Join(filepath.Dir(path), Manifest)
		if _, err := os.Stat(beside); err != nil {
			return c, nil // nothing to hold it against
		}
		if r, err = readManifest(beside); err != nil {
			return c, err
		}
	}
	return c, heldAgainst(path, &c, pf, f, r)
}

// heldAgainst compares a file with what its manifest says of it.
func heldAgainst(path string, c *Checked, pf *parquet.File, f *os.File, r *Report) error {
	for i := range r.Files {
		want := &r.Files[i]
		if want.Name != filepath.Base(path) {
			continue
		}
		if want.Name != c.File {
			return bad(path, "it is %s under another name", c.File)
		}
		if id, _ := pf.Lookup(metaExport); id != r.ExportID {
			return bad(path, "it is of export %s, the manifest of %s", id, r.ExportID)
		}
		if want.Rows != c.Rows {
			return bad(path, "it has %d rows, the manifest says %d", c.Rows, want.Rows)
		}
		if want.SizeBytes != c.SizeBytes {
			return bad(path, "it has %d bytes, the manifest says %d", c.SizeBytes, want.SizeBytes)
		}
		h := sha256.New()
		if _, err := io.Copy(h, io.NewSectionReader(f, 0, c.SizeBytes)); err != nil {
			return fault.As(fault.Unavailable, err)
		}
		if sum := hex.EncodeToString(h.Sum(nil)); sum != string(want.SHA256) {
			return bad(path, "its sha256 is %s, the manifest says %s", sum, want.SHA256)
		}
		c.Manifest = true
		return nil
	}
	return nil // a file that people put beside
}

// openParquet is parquet.OpenFile, which on some damaged footers panics, and takes the
// memory that a footer's length asks for before it looks at the file's.
func openParquet(f *os.File, size int64) (pf *parquet.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	var tail [8]byte // length of the footer, magic
	if _, err := f.ReadAt(tail[:], max(size-int64(len(tail)), 0)); err != nil {
		return nil, errors.New("it has no footer")
	}
	if n := int64(binary.LittleEndian.Uint32(tail[:])); n > size-12 {
		return nil, fmt.Errorf("its footer of %d bytes is longer than the file", n)
	}
	return parquet.OpenFile(f, size)
}

// sameSchema compares column by column and names the first that differs.
func sameSchema(path string, want, got *parquet.Schema) error {
	if err := sameFields(path, "", want.Fields(), got.Fields()); err != nil {
		return err
	}
	return nil
}

func sameFields(path, under string, want, got []parquet.Field) error {
	for i, w := range want {
		name := strings.TrimPrefix(under+"."+w.Name(), ".")
		if i >= len(got) {
			return bad(path, "column %s is missing", name)
		}
		g := got[i]
		switch {
		case g.Name() != w.Name():
			return bad(path, "column %s stands where %s should", strings.TrimPrefix(under+"."+g.Name(), "."), name)
		case kindOf(g) != kindOf(w):
			return bad(path, "column %s is %s, not %s", name, kindOf(g), kindOf(w))
		}
		if err := sameFields(path, name, w.Fields(), g.Fields()); err != nil {
			return err
		}
	}
	if len(got) > len(want) {
		return bad(path, "column %s does not belong there", strings.TrimPrefix(under+"."+got[len(want)].Name(), "."))
	}
	return nil
}

// kindOf is a field's repetition, physical and logical type.
func kindOf(f parquet.Field) string {
	out := "required"
	switch {
	case f.Optional():
		out = "optional"
	case f.Repeated():
		out = "repeated"
	}
	if f.Leaf() {
		out += " " + f.Type().Kind().String()
	} else {
		out += " group"
	}
	if l := f.Type().LogicalType(); l != nil {
		out += " " + l.String()
	}
	return out
}

// rewardsOf are the values that a column of rewards may hold, beside null (Score); only
// gates.parquet has columns of these names.
var rewardsOf = map[string][]float64{
	"r_update": {rewardRight, rewardWrong},
	"r_exit":   exitRewards(),
	"r_format": {0, 1},
}

func exitRewards() (out []float64) {
	for _, o := range []labels.Outcome{labels.Early, labels.Exact, labels.Late} {
		if r, ok := o.Reward(); ok {
			out = append(out, r)
		}
	}
	return out
}

// readPages decodes every page: a damaged one fails here and not in a trainer.
func readPages(path string, pf *parquet.File) (err error) {
	columns := pf.Schema().Columns()
	for n, g := range pf.RowGroups() {
		for i, chunk := range g.ColumnChunks() {
			if err := readChunk(chunk, rewardsOf[strings.Join(columns[i], ".")]); err != nil {
				return bad(path, "column %s, row group %d: %v", strings.Join(columns[i], "."), n, err)
			}
		}
	}
	return nil
}

// readChunk reads a column of a row group; its values must be among allowed, where that is
// not nil.
func readChunk(c parquet.ColumnChunk, allowed []float64) (err error) {
	defer func() {
		if p := recover(); p != nil { // a decoder met bytes that no encoder writes
			err = fmt.Errorf("%v", p)
		}
	}()
	pages := c.Pages()
	defer func() { err = errors.Join(err, pages.Close()) }()
	var values int64
	for {
		p, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		values += p.NumValues()
		if allowed != nil {
			err = among(p, allowed)
		}
		parquet.Release(p)
		if err != nil {
			return err
		}
	}
	if values != c.NumValues() {
		return fmt.Errorf("%d values, the footer says %d", values, c.NumValues())
	}
	return nil
}

// among reports a value of a page of doubles that is not allowed.
func among(p parquet.Page, allowed []float64) error {
	var some [256]parquet.Value
	for r := p.Values(); ; {
		n, err := r.ReadValues(some[:])
		for _, v := range some[:n] {
			if !v.IsNull() && !slices.Contains(allowed, v.Double()) {
				return fmt.Errorf("a value is %v, none of %v", v.Double(), allowed)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
