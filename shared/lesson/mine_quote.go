package lesson

import (
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
)

// quoted is a passage of a turn's text: redacted, and where it stands.
type quoted struct {
	text string
	span Span
	ok   bool
}

// quoter cites passages of one text. Redaction runs over the whole of it, and
// is mapped by offset, so a secret that a passage cuts is still masked.
type quoter struct {
	m      *Miner
	pieces []memory.Piece
	starts []int // of each piece in the text
	text   string
	red    string
	marks  []redact.Mark
	masked bool
}

func (m *Miner) quoter(pieces []memory.Piece) *quoter {
	q := &quoter{m: m, pieces: pieces}
	t := memory.Turn{Pieces: pieces}
	q.text = t.Text()
	at := 0
	for i := range pieces {
		q.starts = append(q.starts, at)
		at += len(pieces[i].Text) + 1
	}
	return q
}

// cite quotes text[from:to), or as much of it as stands in one piece.
func (q *quoter) cite(role string, from, to int) quoted {
	if from < 0 || to <= from || to > len(q.text) {
		return quoted{}
	}
	if !q.masked {
		q.red, q.marks = q.m.opt.Redactor.Redact(q.text)
		q.masked = true
	}
	k := sort.Search(len(q.starts), func(i int) bool { return q.starts[i] > from }) - 1
	p, base := &q.pieces[k], q.starts[k]
	to = min(to, base+len(p.Text))
	// A span's ends never cut a redaction.
	redacted := false
	for _, x := range q.marks {
		if x.End <= from || x.Start >= to {
			continue
		}
		redacted = true
		from, to = min(from, x.Start), max(to, x.End)
	}
	if to > base+len(p.Text) || from < base || to <= from || !p.Cited() {
		return quoted{}
	}
	out := quoted{text: q.red[q.toRed(from):q.toRed(to)]}
	// An escape that the ends cut has no bytes: the span is narrowed to it.
	raw, err := p.Enc.Append(nil, p.Text, from-base, to-base)
	if err != nil {
		return quoted{text: out.text}
	}
	before, err := p.Enc.Append(nil, p.Text, 0, from-base)
	if err != nil {
		return quoted{text: out.text}
	}
	s := memory.Span{
		Object: q.m.opt.Object, ETag: q.m.opt.ETag, Codec: p.Enc.Codec,
		Start: p.Start + int64(len(before)), End: p.Start + int64(len(before)+len(raw)), Redacted: redacted,
	}
	if redacted {
		s.HMAC = memory.HMAC(q.m.opt.TenantKey, raw)
	} else {
		s.SHA256 = memory.Sum(raw)
	}
	out.span, out.ok = Span{Role: role, Span: s}, true
	return out
}

// toRed maps an offset that lies in no secret.
func (q *quoter) toRed(at int) int {
	k := sort.Search(len(q.marks), func(i int) bool { return q.marks[i].End > at })
	if k == 0 {
		return at
	}
	return at - q.marks[k-1].End + q.marks[k-1].OutEnd
}

// line cites the line of the text that stands at an offset, without the blanks
// around it and no longer than most bytes.
func (q *quoter) line(role string, at, most int) quoted {
	from := strings.LastIndexByte(q.text[:at], '\n') + 1
	to := len(q.text)
	if k := strings.IndexByte(q.text[at:], '\n'); k >= 0 {
		to = at + k
	}
	return q.trimmed(role, from, to, most)
}

func (q *quoter) trimmed(role string, from, to, most int) quoted {
	s := q.text[from:to]
	from += len(s) - len(strings.TrimLeft(s, " \t\r\n"))
	s = strings.TrimSpace(s)
	return q.cite(role, from, from+len(clip(s, most)))
}

// clip cuts at a rune's border.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// firstLine is where the first line that says something begins.
func firstLine(s string) int {
	return len(s) - len(strings.TrimLeft(s, " \t\r\n"))
}

// minSentence keeps "1." and "e.g." from being sentences, in bytes.
const minSentence = 8

// sentence is the end of the first sentence, at most most bytes.
func sentence(s string, most int) int {
	head := clip(s, most)
	for i := 0; i < len(head); i++ {
		switch head[i] {
		case '\n':
			if i > minSentence || i+1 < len(head) && head[i+1] == '\n' {
				return i
			}
		case '.', '!', '?', ':':
			if i > minSentence && ends(s[i+1:]) {
				return i + 1
			}
		}
	}
	return len(head)
}

// ends says that what follows a full stop begins a sentence of its own: behind
// "e.g." words go on in small letters.
func ends(rest string) bool {
	next := strings.TrimLeft(rest, " ")
	return next == "" || rest[0] == '\n' || rest[0] == ' ' && (next[0] < 'a' || next[0] > 'z')
}

// ahead are openings of sentences that say what comes next, and nothing of
// what was.
var ahead = []string{"now ", "let me", "let's", "next", "i'll", "i will", "i'm going to", "i need to", "time to", "then ", "ok, now", "okay, now"}

// maxSentences bounds the sentences that are looked at for a verdict.
const maxSentences = 4

// verdict is the first sentence of a text that says something of what was; to
// is 0 where there is none.
func verdict(s string) (from, to int) {
	for range maxSentences {
		from += firstLine(s[from:])
		if from >= len(s) {
			break
		}
		to = from + sentence(s[from:], maxQuote)
		head := strings.ToLower(clip(strings.TrimLeft(s[from:to], "#*_-> ✅✓"), 16))
		next := false
		for _, a := range ahead {
			next = next || strings.HasPrefix(head, a)
		}
		if !next && to > from && !strings.HasPrefix(head, "```") && !strings.HasSuffix(strings.TrimSpace(s[from:to]), ":") {
			return from, to
		}
		if to == from {
			to++
		}
		from = min(to, len(s))
	}
	return 0, 0
}
