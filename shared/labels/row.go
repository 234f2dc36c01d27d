package labels

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Row is one label as people exchange it: a line of JSON, or of CSV with a header.
//
//	{"stream":"limits@1f2e3d4c","chunk":"<sha256>","start":0,"end":812,"evidence":true,"kind":"human","by":"ada","at":"2026-05-01T09:00:00Z"}
//
// Stream or question, chunk and evidence must be there.
type Row struct {
	Stream        string     `json:"stream,omitempty"`
	Question      string     `json:"question,omitempty"` // id of a standing question: the wording that it has now
	Chunk         memory.SHA `json:"chunk"`
	Start         int        `json:"start"` // chunk text [start,end); 0, 0: all of it
	End           int        `json:"end"`
	Evidence      bool       `json:"evidence"`
	Kind          string     `json:"kind,omitempty"`  // human | model | rule
	Basis         string     `json:"basis,omitempty"` // of a model: chunk | memory; see memory.Label
	By            string     `json:"by,omitempty"`
	Model         string     `json:"model,omitempty"`
	Adapter       string     `json:"adapter,omitempty"`
	PromptVersion string     `json:"prompt_version,omitempty"`
	Rule          string     `json:"rule,omitempty"`
	Confidence    *float64   `json:"confidence,omitempty"` // that it is evidence, [0,1]
	Exit          bool       `json:"exit,omitempty"`
	At            time.Time  `json:"at,omitzero"`
	Line          int        `json:"line,omitempty"` // of the file it stands in, from 1
}

// RowError is what is wrong with one row: it is left out, the others are kept.
type RowError struct {
	Line    int    `json:"line"`
	Field   string `json:"field"`
	Problem string `json:"problem"`
}

func (e *RowError) Error() string { return fmt.Sprintf("line %d: %s: %s", e.Line, e.Field, e.Problem) }

// RowOf is a label as a row.
func RowOf(l *memory.Label) Row {
	r := Row{
		Stream: l.Stream, Chunk: l.Chunk, Start: l.Start, End: l.End, Evidence: l.Evidence, Kind: l.Kind, Basis: l.Basis, By: l.By,
		Model: l.Model, Adapter: l.Adapter, PromptVersion: l.PromptVersion, Rule: l.Rule, Confidence: l.Confidence, Exit: l.Exit, At: l.At.UTC(),
	}
	if r.Kind == memory.LabelModel && r.Basis == "" {
		r.Basis = memory.BasisMemory
	}
	return r
}

// Label is the row as a label of a stream and of a chunk's place in its part. It
// passed Check and is of somebody.
func (r *Row) Label(stream string, admit int64, i int) *memory.Label {
	level := memory.L1
	if strings.HasPrefix(stream, "_") {
		level = memory.L2
	}
	return &memory.Label{
		Level: level, Kind: r.Kind, Basis: r.Basis, Stream: stream, QueryID: memory.QueryID(stream), Admit: admit, I: i, Chunk: r.Chunk, Start: r.Start, End: r.End,
		Evidence: r.Evidence, Exit: r.Exit, Confidence: r.Confidence, FormatOK: true, ReasonCode: Imported,
		By: r.By, Rule: r.Rule, Model: r.Model, Adapter: r.Adapter, PromptVersion: r.PromptVersion, At: r.At,
	}
}

// Reason codes of labels that no gate gave.
const (
	Imported = "imported"
	Reviewed = "reviewed"
	Ruled    = "rule"
)

// Bounds of a file of labels: a row is some 300 bytes, its names are ids.
const (
	maxLine = 64 << 10
	maxName = 200
)

// Check completes and judges a row by itself, whatever a Mneme knows. A row without a
// kind is a person's where by names one, which rows may also name themselves; who
// names a model or a rule does not speak as a person.
func (r *Row) Check(by string) *RowError {
	bad := func(field, format string, args ...any) *RowError {
		return &RowError{Line: r.Line, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if r.Kind == "" {
		r.Kind = memory.LabelHuman
	}
	if r.Kind == memory.LabelHuman && r.By == "" {
		r.By = by
	}
	switch {
	case r.Stream == "" && r.Question == "":
		return bad("stream", "missing, and so is question")
	case r.Stream != "" && r.Question != "" && memory.QueryID(r.Stream) != r.Question:
		return bad("question", "%q is not the question of stream %q", clip(r.Question), clip(r.Stream))
	case r.Chunk == "":
		return bad("chunk", "missing")
	case !r.Chunk.Valid():
		return bad("chunk", "%q is not the sha256 of a chunk", clip(string(r.Chunk)))
	case r.Start < 0:
		return bad("start", "%d is below 0", r.Start)
	case r.End < r.Start || r.End == r.Start && r.End != 0:
		return bad("end", "[%d,%d) is nothing of the chunk", r.Start, r.End)
	case r.Confidence != nil && !(*r.Confidence >= 0 && *r.Confidence <= 1):
		return bad("confidence", "%v is not in [0,1]", *r.Confidence)
	}
	if !r.At.IsZero() && (r.At.Year() < 1970 || r.At.Year() > 9999) {
		return bad("at", "%d is not a year in which anybody labelled", r.At.Year())
	}
	for _, f := range []struct{ field, value string }{
		{"stream", r.Stream}, {"question", r.Question}, {"by", r.By}, {"model", r.Model}, {"adapter", r.Adapter}, {"prompt_version", r.PromptVersion}, {"rule", r.Rule},
	} {
		if len(f.value) > maxName {
			return bad(f.field, "longer than %d bytes", maxName)
		}
		if !utf8.ValidString(f.value) || strings.ContainsFunc(f.value, func(c rune) bool { return !unicode.IsPrint(c) }) || strings.TrimSpace(f.value) != f.value {
			return bad(f.field, "%q is not a name", clip(f.value))
		}
	}
	switch r.Kind {
	case memory.LabelHuman:
		switch {
		case r.By == "":
			return bad("by", "whose label is it? name the person in the file or with --by, or say kind")
		case r.Model != "" || r.Adapter != "" || r.PromptVersion != "":
			return bad("kind", "names model %q and says %s", clip(cmp.Or(r.Model, r.Adapter, r.PromptVersion)), r.Kind)
		case r.Rule != "":
			return bad("kind", "names rule %q and says %s", clip(r.Rule), r.Kind)
		case r.Basis == memory.BasisMemory || r.Exit:
			return bad("basis", "a person's label is of the chunk's text alone")
		}
	case memory.LabelModel:
		switch {
		case r.Model == "":
			return bad("model", "missing: which model's label is it?")
		case r.By != "" || r.Rule != "":
			return bad("kind", "names %q and says model", clip(cmp.Or(r.By, r.Rule)))
		}
	case memory.LabelRule:
		switch {
		case r.Rule == "":
			return bad("rule", "missing: which rule's label is it?")
		case r.By != "" || r.Model != "" || r.Adapter != "" || r.PromptVersion != "":
			return bad("kind", "names %q and says rule", clip(cmp.Or(r.By, r.Model, r.Adapter, r.PromptVersion)))
		case r.Basis == memory.BasisMemory || r.Exit:
			return bad("basis", "a rule's label is of the chunk's text alone")
		}
	default:
		return bad("kind", "%q is not human, model or rule", clip(r.Kind))
	}
	switch {
	case r.Basis == "" && r.Kind == memory.LabelModel:
		r.Basis = memory.BasisChunk
	case r.Kind != memory.LabelModel:
		r.Basis = ""
	case r.Basis != memory.BasisChunk && r.Basis != memory.BasisMemory:
		return bad("basis", "%q is not chunk or memory", clip(r.Basis))
	}
	r.At = r.At.UTC()
	return nil
}

// clip keeps messages short and free of control characters.
func clip(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}

// CompareRows is the order of an export: by question, piece, judge, time.
func CompareRows(a, b Row) int {
	conf := func(r Row) float64 {
		if r.Confidence == nil {
			return -1
		}
		return *r.Confidence
	}
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Question, b.Question), cmp.Compare(a.Chunk, b.Chunk), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.By, b.By), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Adapter, b.Adapter), cmp.Compare(a.PromptVersion, b.PromptVersion),
		cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Basis, b.Basis), a.At.Compare(b.At), cmp.Compare(flag(a.Evidence), flag(b.Evidence)), cmp.Compare(conf(a), conf(b)), cmp.Compare(flag(a.Exit), flag(b.Exit)),
	)
}

// Formats of a file of labels.
const (
	JSONL = "jsonl"
	CSV   = "csv" // with a header line; also ; or tab between the fields
)

// columns of CSV, in the order of an export. note is for people: it is read and not
// kept, as nothing that they write freely is (see memory.Label).
var columns = []string{"stream", "question", "chunk", "start", "end", "evidence", "kind", "basis", "by", "model", "adapter", "prompt_version", "rule", "confidence", "exit", "at", "note"}

// Format names the format of a file by its name, or, where that does not say, by its
// first bytes.
func Format(name string, head []byte) string {
	switch name = strings.ToLower(name); {
	case strings.HasSuffix(name, ".csv"), strings.HasSuffix(name, ".tsv"):
		return CSV
	case strings.HasSuffix(name, ".jsonl"), strings.HasSuffix(name, ".ndjson"), strings.HasSuffix(name, ".json"):
		return JSONL
	}
	if h := bytes.TrimLeft(bytes.TrimPrefix(head, bom), " \t\r\n"); len(h) > 0 && (h[0] == '{' || h[0] == '[') {
		return JSONL
	}
	return CSV
}

var bom = []byte("\xef\xbb\xbf")

// ReadRows reads a file line by line. A row that cannot be used is a *RowError, and
// the reading goes on; any other error ends it. by is who speaks in rows that do not
// say.
func ReadRows(r io.Reader, format, by string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var head *header
		for l, err := range fileLines(r) {
			if bad, ok := errors.AsType[*RowError](err); ok {
				if format == CSV && head == nil {
					yield(Row{}, fault.At(fault.Invalid, "line 1", "give the file a header line: "+strings.Join(columns, ","), "%s", bad.Problem))
					return
				}
				if !yield(Row{}, bad) {
					return
				}
				continue
			}
			if err != nil {
				yield(Row{}, err)
				return
			}
			var row Row
			var bad *RowError
			switch {
			case format == CSV && head == nil:
				if head, err = newHeader(l.text); err != nil {
					yield(Row{}, err)
					return
				}
				continue
			case format == CSV:
				row, bad = head.row(l.text)
			case l.text[0] == '[':
				yield(Row{}, fault.At(fault.Invalid, "line "+strconv.Itoa(l.n), "write one object a line, without brackets around them", "a JSON array"))
				return
			default:
				row, bad = jsonRow(l.text)
			}
			row.Line = l.n
			if bad == nil {
				bad = row.Check(by)
			}
			if bad != nil {
				bad.Line = l.n
				if !yield(Row{}, bad) {
					return
				}
				continue
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

type fileLine struct {
	n    int
	text []byte // without white space around it; never empty
}

// fileLines gives the lines that are not blank. One that is too long or no UTF-8 is a
// *RowError.
func fileLines(r io.Reader) iter.Seq2[fileLine, error] {
	return func(yield func(fileLine, error) bool) {
		b := bufio.NewReaderSize(r, maxLine)
		for n := 1; ; n++ {
			line, err := b.ReadSlice('\n')
			long := errors.Is(err, bufio.ErrBufferFull)
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = b.ReadSlice('\n')
			}
			if err != nil && err != io.EOF {
				yield(fileLine{}, err)
				return
			}
			if n == 1 {
				if bytes.HasPrefix(line, []byte("\xff\xfe")) || bytes.HasPrefix(line, []byte("\xfe\xff")) {
					yield(fileLine{}, fault.At(fault.Invalid, "line 1", "save it as UTF-8", "the file is UTF-16"))
					return
				}
				line = bytes.TrimPrefix(line, bom)
			}
			text := bytes.Trim(line, " \r\n")
			ok := true
			switch {
			case long:
				ok = yield(fileLine{}, &RowError{Line: n, Field: "line", Problem: fmt.Sprintf("longer than %d bytes", maxLine)})
			case !utf8.Valid(text):
				ok = yield(fileLine{}, &RowError{Line: n, Field: "line", Problem: "not UTF-8"})
			case len(bytes.TrimSpace(text)) > 0:
				ok = yield(fileLine{n, text}, nil)
			}
			if !ok || err == io.EOF {
				return
			}
		}
	}
}

// loose is a row as its JSON may be: fields that are absent, and yes and no as people
// write them.
type loose struct {
	Row
	Evidence   json.RawMessage `json:"evidence"`
	Exit       json.RawMessage `json:"exit"`
	Confidence *float64        `json:"confidence"`
	At         string          `json:"at"`
	Line       int             `json:"-"`
	Note       any             `json:"note"`
}

func jsonRow(line []byte) (Row, *RowError) {
	var l loose
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && e.Field != "" {
			_, field, _ := cutLast(e.Field, ".")
			return Row{}, &RowError{Field: field, Problem: "a " + e.Value + " does not belong there"}
		}
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return Row{}, &RowError{Field: strings.Trim(name, `"`), Problem: "unknown; known are " + strings.Join(columns, ", ")}
		}
		return Row{}, &RowError{Field: "line", Problem: "no JSON object: " + clip(err.Error())}
	}
	if dec.More() {
		return Row{}, &RowError{Field: "line", Problem: "more than one JSON value"}
	}
	r := l.Row
	r.Confidence = l.Confidence
	yes := func(field string, raw json.RawMessage, into *bool) *RowError {
		s := string(raw)
		if len(raw) > 0 && raw[0] == '"' {
			if json.Unmarshal(raw, &s) != nil {
				s = "?"
			}
		}
		return truth(field, s, into)
	}
	if len(l.Evidence) == 0 {
		return r, &RowError{Field: "evidence", Problem: "missing"}
	}
	if bad := yes("evidence", l.Evidence, &r.Evidence); bad != nil {
		return r, bad
	}
	if len(l.Exit) > 0 {
		if bad := yes("exit", l.Exit, &r.Exit); bad != nil {
			return r, bad
		}
	}
	return r, when(l.At, &r.At)
}

// cutLast splits at the last sep; all is the last part where there is none.
func cutLast(s, sep string) (before, last string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

func truth(field, s string, into *bool) *RowError {
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "true", "yes", "y", "1":
		*into = true
	case "false", "no", "n", "0":
		*into = false
	case "":
		return &RowError{Field: field, Problem: "missing"}
	default:
		return &RowError{Field: field, Problem: fmt.Sprintf("%q is not yes or no", clip(s))}
	}
	return nil
}

func when(s string, into *time.Time) *RowError {
	if s == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		if t, err = time.Parse(time.DateOnly, s); err != nil {
			return &RowError{Field: "at", Problem: fmt.Sprintf("%q is not a time as 2026-01-31T10:00:00Z", clip(s))}
		}
	}
	*into = t.UTC()
	return nil
}

// header says which column is what.
type header struct {
	sep   byte
	names []string
}

func newHeader(line []byte) (*header, error) {
	h := &header{sep: ','}
	for _, sep := range []byte{',', ';', '\t'} {
		if bytes.IndexByte(line, sep) >= 0 {
			h.sep = sep
			break
		}
	}
	fields, bad := split(line, h.sep)
	if bad != nil {
		return nil, fault.At(fault.Invalid, "line 1", "give the file a header line: "+strings.Join(columns, ","), "%s", bad.Problem)
	}
	for _, f := range fields {
		f = strings.ToLower(strings.TrimSpace(f))
		switch {
		case !slices.Contains(columns, f):
			return nil, fault.At(fault.Invalid, "line 1", "the first line names the columns: "+strings.Join(columns, ","), "unknown column %q", clip(f))
		case slices.Contains(h.names, f):
			return nil, fault.At(fault.Invalid, "line 1", "name each column once", "column %q twice", f)
		}
		h.names = append(h.names, f)
	}
	for _, need := range [][]string{{"stream", "question"}, {"chunk"}, {"evidence"}} {
		if !slices.ContainsFunc(need, func(n string) bool { return slices.Contains(h.names, n) }) {
			return nil, fault.At(fault.Invalid, "line 1", "stream or question, chunk and evidence must be there", "no column %s", strings.Join(need, " or "))
		}
	}
	return h, nil
}

func (h *header) row(line []byte) (r Row, bad *RowError) {
	fields, bad := split(line, h.sep)
	if bad != nil {
		return r, bad
	}
	if len(fields) != len(h.names) {
		return r, &RowError{Field: "line", Problem: fmt.Sprintf("%d fields, the header has %d", len(fields), len(h.names))}
	}
	for i, v := range fields {
		v = strings.TrimSpace(v)
		if bad := r.set(h.names[i], v); bad != nil {
			return r, bad
		}
	}
	return r, nil
}

// set puts one field of CSV into the row; empty is absent.
func (r *Row) set(name, v string) *RowError {
	if v == "" && name != "evidence" {
		return nil
	}
	number := func(into *int) *RowError {
		n, err := strconv.Atoi(v)
		if err != nil {
			return &RowError{Field: name, Problem: fmt.Sprintf("%q is not a number", clip(v))}
		}
		*into = n
		return nil
	}
	switch name {
	case "stream":
		r.Stream = v
	case "question":
		r.Question = v
	case "chunk":
		r.Chunk = memory.SHA(v)
	case "start":
		return number(&r.Start)
	case "end":
		return number(&r.End)
	case "evidence":
		return truth(name, v, &r.Evidence)
	case "exit":
		return truth(name, v, &r.Exit)
	case "kind":
		r.Kind = v
	case "basis":
		r.Basis = v
	case "by":
		r.By = v
	case "model":
		r.Model = v
	case "adapter":
		r.Adapter = v
	case "prompt_version":
		r.PromptVersion = v
	case "rule":
		r.Rule = v
	case "confidence":
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(f) {
			return &RowError{Field: name, Problem: fmt.Sprintf("%q is not a number", clip(v))}
		}
		r.Confidence = &f
	case "at":
		return when(v, &r.At)
	}
	return nil
}

// split cuts a line of CSV (RFC 4180) into fields. A field never goes over the end of
// the line, so that an open quote spoils one row and not the rest of the file.
func split(line []byte, sep byte) ([]string, *RowError) {
	var out []string
	for {
		if len(line) == 0 || line[0] != '"' {
			i := bytes.IndexByte(line, sep)
			if i < 0 {
				return append(out, string(line)), nil
			}
			out, line = append(out, string(line[:i])), line[i+1:]
			continue
		}
		var field []byte
		for line = line[1:]; ; {
			i := bytes.IndexByte(line, '"')
			if i < 0 {
				return nil, &RowError{Field: "line", Problem: "a quote is not closed"}
			}
			field = append(field, line[:i]...)
			if line = line[i+1:]; len(line) == 0 || line[0] != '"' {
				break
			}
			field, line = append(field, '"'), line[1:]
		}
		out = append(out, string(field))
		if len(line) == 0 {
			return out, nil
		}
		if line[0] != sep {
			return nil, &RowError{Field: "line", Problem: "text behind a closed quote"}
		}
		line = line[1:]
	}
}

// WriteRows writes rows in a format, in the order they are given.
func WriteRows(w io.Writer, format string, rows iter.Seq[Row]) error {
	b := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	kept := columns[:len(columns)-1] // no note
	if format == CSV {
		if _, err := b.WriteString(strings.Join(kept, ",") + "\n"); err != nil {
			return err
		}
	}
	for r := range rows {
		r.Line = 0
		if format != CSV {
			if err := enc.Encode(r); err != nil {
				return err
			}
			continue
		}
		for i, v := range r.fields() {
			if i > 0 {
				b.WriteByte(',')
			}
			if strings.ContainsAny(v, ",\"") {
				v = `"` + strings.ReplaceAll(v, `"`, `""`) + `"`
			}
			b.WriteString(v)
		}
		if err := b.WriteByte('\n'); err != nil {
			return err
		}
	}
	return b.Flush()
}

func (r *Row) fields() []string {
	conf, at, exit := "", "", ""
	if r.Confidence != nil {
		conf = strconv.FormatFloat(*r.Confidence, 'g', -1, 64)
	}
	if !r.At.IsZero() {
		at = r.At.Format(time.RFC3339Nano)
	}
	if r.Exit {
		exit = "yes"
	}
	yes := "no"
	if r.Evidence {
		yes = "yes"
	}
	return []string{
		r.Stream, r.Question, string(r.Chunk), strconv.Itoa(r.Start), strconv.Itoa(r.End), yes, r.Kind, r.Basis, r.By, r.Model, r.Adapter, r.PromptVersion, r.Rule, conf, exit, at,
	}
}
