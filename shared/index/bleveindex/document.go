package bleveindex

import (
	"encoding/binary"

	bleve "github.com/blevesearch/bleve_index_api"

	"github.com/mneme-ai/mneme/shared/index"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Fields of a passage's document.
const (
	fieldText  = "text" // analysed words
	fieldCode  = "code" // error codes and constants, exact
	fieldLevel = "lvl"  // L0, L1, L2 or raw
	fieldTime  = "at"   // effective time of each occurrence: sortable 8 bytes
	fieldFrom  = "src"  // object of each occurrence, NUL, its time as in fieldTime
	fieldStore = "doc"  // stored: see packStored
)

// docID is the node's 32 bytes and the passage's number, so that a node's
// passages are found without a query.
func docID(node memory.SHA, n int) string {
	a := array(node)
	return string(binary.BigEndian.AppendUint16(a[:], uint16(n)))
}

// passageDoc is a passage as bleve takes it. It analyses itself: bleve's own
// text field makes an object of every token, which is most of its time.
type passageDoc struct {
	id     string
	fields []bleve.Field
}

func newPassageDoc(st *stemmer, n *index.Node, p *index.Passage, all []stated) *passageDoc {
	text := &textField{name: fieldText}
	codes := &textField{name: fieldCode}
	text.freqs, codes.freqs = bleve.TokenFrequencies{}, bleve.TokenFrequencies{}
	header := p.Embed[:len(p.Embed)-(p.End-p.Start)]
	// Of the header only the date as a whole is a term: "user" and "01" are
	// words of code, and would match every passage of a speaker or a month.
	st.words(header, func(w *word) {
		for _, t := range w.wholes {
			text.add(t)
		}
	})
	st.words(p.Embed[len(header):], func(w *word) {
		for _, t := range w.parts {
			text.add(t)
		}
		for _, t := range w.wholes {
			text.add(t)
		}
		if w.code != "" {
			codes.add(w.code)
		}
	})
	at := &textField{name: fieldTime, freqs: bleve.TokenFrequencies{}, exact: true}
	from := &textField{name: fieldFrom, freqs: bleve.TokenFrequencies{}, exact: true}
	for _, s := range all {
		at.add(timeKey(s.at))
		if s.object != "" {
			from.add(s.object + "\x00" + timeKey(s.at))
		}
	}
	level := &textField{name: fieldLevel, freqs: bleve.TokenFrequencies{}, exact: true}
	level.add(string(n.Level))
	return &passageDoc{
		id:     docID(n.ID, p.N),
		fields: []bleve.Field{text, codes, level, at, from, &storedField{value: packStored(p.ID, text.AnalyzedLength(), all, header)}},
	}
}

// timeKey orders as the number does.
func timeKey(nano int64) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(nano)^1<<63))
}

// stated is when and where a node was said.
type stated struct {
	at     int64
	object string // bucket/key; "" for memories
}

// storedPart is what a hit, a later occurrence and a removal need of a passage.
type storedPart struct {
	id     memory.SHA
	words  int64 // that it adds to the index
	said   []stated
	header string // of its embedded text
}

func packStored(id memory.SHA, words int, said []stated, header string) []byte {
	a := array(id)
	b := binary.AppendUvarint(a[:], uint64(words))
	b = binary.AppendUvarint(b, uint64(len(said)))
	for _, s := range said {
		b = binary.BigEndian.AppendUint64(b, uint64(s.at))
		b = binary.AppendUvarint(b, uint64(len(s.object)))
		b = append(b, s.object...)
	}
	return append(b, header...)
}

// unpackStored reads packStored's form; ok is false when it is not one.
func unpackStored(b []byte) (p storedPart, ok bool) {
	if len(b) < 34 {
		return p, false
	}
	p.id = sha(b[:32])
	words, size := binary.Uvarint(b[32:])
	if size <= 0 {
		return p, false
	}
	p.words = int64(words)
	b = b[32+size:]
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size)/9 {
		return p, false
	}
	b = b[size:]
	for range n {
		if len(b) < 9 {
			return p, false
		}
		s := stated{at: int64(binary.BigEndian.Uint64(b))}
		length, size := binary.Uvarint(b[8:])
		if b = b[8:]; size <= 0 || length > uint64(len(b)-size) {
			return p, false
		}
		s.object = string(b[size : size+int(length)])
		p.said = append(p.said, s)
		b = b[size+int(length):]
	}
	p.header = string(b)
	return p, true
}

func (d *passageDoc) ID() string                                 { return d.id }
func (d *passageDoc) Size() int                                  { return 512 + len(d.id) } // rough: bleve only adds it up for its statistics
func (d *passageDoc) VisitComposite(bleve.CompositeFieldVisitor) {}
func (d *passageDoc) HasComposite() bool                         { return false }
func (d *passageDoc) NumPlainTextBytes() uint64                  { return 0 }
func (d *passageDoc) StoredFieldsBytes() uint64                  { return 0 }
func (d *passageDoc) Indexed() bool                              { return false }
func (d *passageDoc) VisitFields(visit bleve.FieldVisitor) {
	for _, f := range d.fields {
		visit(f)
	}
}

// AddIDField adds the field by which bleve finds a document again.
func (d *passageDoc) AddIDField() {
	f := &textField{name: "_id", freqs: bleve.TokenFrequencies{}, stored: []byte(d.id), exact: true}
	f.add(d.id)
	d.fields = append([]bleve.Field{f}, d.fields...)
}

// textField is a field whose terms are known already.
type textField struct {
	name   string
	freqs  bleve.TokenFrequencies
	length int
	stored []byte
	exact  bool // no frequency and length: a filter
}

func (f *textField) add(term string) {
	f.length++
	if t := f.freqs[term]; t != nil {
		t.SetFrequency(t.Frequency() + 1)
		return
	}
	t := &bleve.TokenFreq{Term: []byte(term)}
	t.SetFrequency(1)
	f.freqs[term] = t
}

func (f *textField) Name() string             { return f.name }
func (f *textField) Value() []byte            { return f.stored }
func (f *textField) ArrayPositions() []uint64 { return nil }
func (f *textField) EncodedFieldType() byte   { return 't' }
func (f *textField) Analyze()                 {}
func (f *textField) Options() bleve.FieldIndexingOptions {
	o := bleve.IndexField
	if f.stored != nil {
		o |= bleve.StoreField
	}
	if f.exact {
		o |= bleve.SkipFreqNorm
	}
	return o
}
func (f *textField) AnalyzedLength() int                              { return f.length }
func (f *textField) AnalyzedTokenFrequencies() bleve.TokenFrequencies { return f.freqs }
func (f *textField) NumPlainTextBytes() uint64                        { return 0 }

// storedField is kept and not indexed.
type storedField struct{ value []byte }

func (f *storedField) Name() string                                     { return fieldStore }
func (f *storedField) Value() []byte                                    { return f.value }
func (f *storedField) ArrayPositions() []uint64                         { return nil }
func (f *storedField) EncodedFieldType() byte                           { return 't' }
func (f *storedField) Analyze()                                         {}
func (f *storedField) Options() bleve.FieldIndexingOptions              { return bleve.StoreField }
func (f *storedField) AnalyzedLength() int                              { return 0 }
func (f *storedField) AnalyzedTokenFrequencies() bleve.TokenFrequencies { return nil }
func (f *storedField) NumPlainTextBytes() uint64                        { return 0 }
