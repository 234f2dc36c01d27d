// Package extractpolicy is the loop's built-in policy: extractive's cues decide
// whether a chunk holds something worth keeping, and the memory is the picked
// sentences themselves, verbatim.
//
//   - Deploys wait for the migration since v2.3. [1f0a77c2]
//   - The cache keeps entries for five minutes. [9c41d0e5]
//
// One statement a line, the newest last (a chronology reads forwards, and what
// stands last is what a small model heeds most), each with the first 8 hex
// digits of its L0 node. What an old statement said stands in the log for
// ever; the memory holds what holds.
//
// Invariants: the decision is a function of the chunk, its context and the
// fold of the stream's own records; a sentence is kept byte for byte; a
// statement that says nothing new is not kept again, and a chunk of nothing
// else leaves the gate closed; which of two contradicting statements stands
// follows from their place in time, not from the order of reading; the memory
// never exceeds its budget and no sentence in it is cut.
//
// The question is looked at by its topic alone (topic.go): likeness of its words
// to a chunk's did not tell chunks apart (AUC .37). Scores are the same for all
// questions; which picks a question keeps follows from what it asks for, and a
// question about decisions or rules, or of no known topic, keeps them all.
package extractpolicy

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/gru"
	"github.com/mneme-ai/mneme/shared/gru/extractive"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Reason codes beside the loop's own.
const (
	reasonNoSubstance = "no_substance" // nothing that a person or an assistant says, or a note of titles
	reasonNothingNew  = "nothing_new"  // everything picked is known
	reasonAbandoned   = "abandoned"    // every turn is off the active path
	reasonOffTopic    = "off_topic"    // what was picked is about other questions
	reasonDerived     = "derived"      // beside the memory's own words there is nothing
)

// Policy is a gru.Policy. It remembers scores and fingerprints, which are
// functions of their text, and is safe for concurrent use.
type Policy struct {
	name   string
	score  *extractive.Policy
	scores *memo[memory.SHA, scored]
	prints *memo[string, extractive.Fingerprint]

	indexing sync.Mutex // above a look-up and what follows from it
	indexes  *memo[stream, *keptIndex]

	everything bool // in tests: compare with all that was kept
}

var _ gru.Policy = (*Policy)(nil)

// Sizes of the memos. Every standing question of a project reads the same
// chunks, one stream after the other, so that a score serves them all, and
// keep much the same sentences. The index of a stream of 10,000 statements
// takes about 3 MB beside their texts; the nine standing questions of some
// projects are at work at a time.
const (
	scoreMemo = 512
	printMemo = 1 << 12
	indexMemo = 64
)

// New makes the policy that o describes.
func New(o extractive.Options) *Policy {
	name := "extractive/" + extractive.Version
	if o.Variant == extractive.AsWritten {
		name = "extractive/x0"
	}
	if o.Threshold != 0 && o.Threshold != extractive.DefaultThreshold {
		name += fmt.Sprintf("@%g", o.Threshold)
	}
	return &Policy{
		name: name, score: extractive.New(o),
		scores: newMemo[memory.SHA, scored](scoreMemo), prints: newMemo[string, extractive.Fingerprint](printMemo),
		indexes: newMemo[stream, *keptIndex](indexMemo),
	}
}

// Name is "extractive/<version>", with the threshold where it is not the
// default one: both decide, so both are frozen in the run record.
func (p *Policy) Name() string { return p.name }

// PromptVersion is "-": there is no prompt.
func (p *Policy) PromptVersion() string { return "-" }

// Decide decides over one chunk.
func (p *Policy) Decide(in gru.PolicyInput) gru.Decision {
	d := gru.Decision{FormatOK: true}
	m := messages(in.Chunk, in.Context)
	if len(m.turn) == 0 {
		d.ReasonCode, d.Reason = reasonNoSubstance, "nothing that a person or an assistant says"
		if in.Chunk.Abandoned {
			d.ReasonCode, d.Reason = reasonAbandoned, "every turn is off the active path"
		}
		return d
	}
	own := p.hideOwn(in, &m)
	key := m.key(in.Chunk, in.Context)
	sc, ok := p.scores.get(key)
	if !ok {
		sc.res, sc.all = p.result(&m)
		p.scores.put(key, sc)
	}
	res := &sc.res
	m = sc.all
	score := res.Score
	d.Score, d.Reason = &score, res.Reason
	if own > 0 {
		d.Reason = fmt.Sprintf("%d passages are the memory's own words; ", own) + d.Reason
	}

	picked := res.Picks
	switch notes, chosen := m.notes(), []int(nil); {
	case notes:
		if chosen = substance(m.list, res.Sentences); len(chosen) == 0 {
			d.ReasonCode, d.Reason = reasonNoSubstance, "a note without a sentence of substance"
			if own > 0 {
				d.ReasonCode, d.Reason = reasonDerived, "a note of nothing but the memory's own words"
			}
			return d
		}
		picked = chosen
		d.Reason = fmt.Sprintf("note: %d of %d sentences have substance", len(chosen), len(res.Sentences))
	case !res.Open || len(picked) == 0:
		d.ReasonCode = gru.ReasonClosed
		if own > 0 {
			d.ReasonCode = reasonDerived
		}
		return d
	}

	about := focusOf(in.Config.Question)
	f := newFolder(p, in)
	defer f.close()
	elsewhere := 0
	for _, i := range picked {
		s := &res.Sentences[i]
		at := m.turn[s.Message]
		base := in.Chunk.Turns[at].Start
		if !about.wants(s.Cues, m.list[s.Message].Text[s.Start:s.End]) {
			elsewhere++
			f.pass(base+s.Start, base+s.End)
			continue
		}
		f.add(at, base+s.Start, base+s.End, s, m.list[s.Message].Text)
	}
	d.Dropped, d.Shingles = f.dropped, f.shingles
	if elsewhere > 0 {
		d.Reason += fmt.Sprintf("; %d not about %s", elsewhere, about)
	}
	if elsewhere == len(picked) {
		d.ReasonCode = reasonOffTopic
		return d
	}
	if len(f.picks) == 0 {
		if f.repeats == 0 {
			d.ReasonCode, d.Reason = "no_citation", d.Reason+"; no pick can be cited"
			return d
		}
		d.ReasonCode, d.Reason = reasonNothingNew, d.Reason+"; nothing new"
		return d
	}
	d.Update, d.ReasonCode = true, gru.ReasonKept
	d.Reason += f.summary()
	d.Picks = f.picks
	d.Candidate, d.Parents = f.compose()
	return d
}

// conversation is a chunk as the score sees it.
type conversation struct {
	list []extractive.Message
	turn map[int]int // index in list -> index into Chunk.Turns; the context has none
	note int
	// hidden are, by index in list, the passages of the memory's own words that
	// stand as spaces in a message's text.
	hidden map[int][]derived.Passage
}

// notes reports whether the chunk is a document rather than a conversation.
func (c *conversation) notes() bool { return c.note == len(c.turn) }

// key names all that the score is a function of: the same text may stand in
// two chunks whose turns differ in role, or in what is off the active path.
func (c *conversation) key(chunk *memory.Chunk, context string) memory.SHA {
	b := []byte(chunk.SHA256)
	b = strconv.AppendQuote(b, context)
	for i := range c.list {
		ti, ok := c.turn[i]
		if !ok {
			continue // the context
		}
		t := &chunk.Turns[ti]
		b = append(b, string(c.list[i].Role)...)
		b = strconv.AppendBool(b, c.list[i].First)
		b = strconv.AppendInt(append(b, ' '), int64(t.Start), 10)
		b = strconv.AppendInt(append(b, ' '), int64(t.End), 10)
		for _, h := range c.hidden[i] {
			b = strconv.AppendInt(append(b, ' '), int64(h.From), 10)
			b = strconv.AppendInt(append(b, '-'), int64(h.To), 10)
		}
	}
	return memory.Sum(b)
}

// messages are the turns that may be evidence: what people, assistants and
// notes say, on the active path and not by Mneme itself. Tool calls, results,
// commands and what harnesses put in are left out, whatever they say.
func messages(c *memory.Chunk, context string) conversation {
	m := conversation{turn: map[int]int{}}
	if context != "" {
		m.list = append(m.list, extractive.Message{Role: memory.RoleAssistant, Text: context, Context: true})
	}
	for i := range c.Turns {
		t := &c.Turns[i]
		switch t.Role {
		case memory.RoleUser, memory.RoleAssistant, memory.RoleNote:
		default:
			continue
		}
		switch t.Kind {
		case memory.KindText, memory.KindFeedback, memory.KindSteering:
		default:
			continue
		}
		switch t.Trust {
		case memory.TrustTool, memory.TrustWeb, memory.TrustInjected:
			continue
		}
		if t.Abandoned || t.Derived {
			continue
		}
		if t.Role == memory.RoleNote {
			m.note++
		}
		m.turn[len(m.list)] = i
		msg := extractive.Message{Role: t.Role, Text: c.Text[t.Start:t.End], First: t.First}
		if t.Time != nil {
			msg.Time = *t.Time
		}
		m.list = append(m.list, msg)
	}
	if n := len(m.list); n > 0 {
		m.list[n-1].First = false // no message follows
	}
	return m
}

// Lengths, in words, of a sentence with substance: one that ends as sentences
// do, or a list item, says something from three words on ("Deploys happen on
// Fridays", "Port: 8443 inside"); a bare line may be a title, and titles of
// eight words are rare.
const (
	substanceWords = 3
	bareWords      = 8
)

// substance picks the sentences of a note that say something. A note is put
// into a memory on purpose, by a person or on their word, so that the cues of
// talk, which tell a decision from chatter, are the wrong bar for it: a plain
// statement of fact has none of them. What is refused is what says nothing by
// itself: titles, questions, and lines that only introduce what follows (brief
// D4).
func substance(msgs []extractive.Message, sentences []extractive.Sentence) (out []int) {
	for i := range sentences {
		s := &sentences[i]
		text := msgs[s.Message].Text
		lineStart := strings.LastIndexByte(text[:s.Start], '\n') + 1
		lineEnd := len(text)
		if n := strings.IndexByte(text[s.End:], '\n'); n >= 0 {
			lineEnd = s.End + n
		}
		if heading(text, lineStart, lineEnd) {
			continue
		}
		said := strings.TrimRight(text[s.Start:s.End], " \t*_\"'`)]”’")
		words := len(strings.Fields(said))
		switch {
		case words < substanceWords, strings.HasSuffix(said, "?"), strings.HasSuffix(said, ":"):
		case words >= bareWords, strings.HasSuffix(said, "."), strings.HasSuffix(said, "!"), strings.HasSuffix(said, ";"),
			listItem(text[lineStart:s.Start]):
			out = append(out, i)
		}
	}
	return out
}

// heading reports a Markdown title: "# …", or a line that is underlined.
func heading(text string, from, to int) bool {
	if strings.HasPrefix(strings.TrimLeft(text[from:to], " "), "#") {
		return true
	}
	if to >= len(text) {
		return false
	}
	next, _, _ := strings.Cut(text[to+1:], "\n")
	next = strings.TrimSpace(next)
	return len(next) >= 2 && (strings.Trim(next, "=") == "" || strings.Trim(next, "-") == "")
}

// listItem reports whether a sentence begins a list item, lead being what
// stands before it on its line.
func listItem(lead string) bool {
	lead = strings.TrimSpace(lead)
	return lead != "" && (strings.ContainsAny(lead[:1], "-*+") || lead[0] >= '0' && lead[0] <= '9' || strings.HasPrefix(lead, "•"))
}
