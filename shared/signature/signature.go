package signature

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/redact"
)

// Version names the rules and masks in force. It is stored beside a signature
// and is not hashed in: changed rules re-project from the log.
//
// History:
//
//	s1  first set
//	s2  a runner's word about an exit is never the root; a report's instance is
//	    the screen's; the folder that a program was run in is masked
const Version = "s2"

// Result is what a failure log says. The order of its fields is that of the
// JSON form.
type Result struct {
	Tool        string   `json:"tool"`
	Raw         string   `json:"raw"`        // the root line, cleaned and redacted
	Normalised  string   `json:"normalised"` // its class
	SigSHA      string   `json:"sig_sha"`    // sha256(tool \n normalised)
	Rule        string   `json:"rule"`
	Confidence  float64  `json:"confidence"`   // [0,1]
	MatchedLine int      `json:"matched_line"` // 1-based in the log as given; 0: none
	Context     []string `json:"context"`      // the lines around it, redacted
	Detail      string   `json:"detail"`       // what tells instances of the class apart, normalised
	DetailSHA   string   `json:"detail_sha"`   // sha256(tool \n normalised \n detail)
	SetSHA      string   `json:"set_sha"`      // sha256 over the sorted normal forms of all the rule's hits
	SymSHA      string   `json:"sym_sha"`      // the symptom of normalised
	InnerTool   string   `json:"inner_tool"`   // the tool whose rule it was, where another ran it; "" else
	SigVersion  string   `json:"sig_version"`
	Truncated   bool     `json:"truncated"` // not all of the log was looked at

	InnerSigSHA    string `json:"inner_sig_sha,omitempty"` // the sig_sha that inner_tool has for it alone
	InnerDetailSHA string `json:"inner_detail_sha,omitempty"`
	Bytes          int64  `json:"bytes"`      // of the log
	BytesRead      int64  `json:"bytes_read"` // of it looked at
}

// Options change how a log is looked at.
type Options struct {
	Tool     string           // who wrote the log; "" is found out
	Baseline *Log             // a passing run of the same: its lines are no failures
	Redactor *redact.Redactor // nil: the built-in rules; marks then carry no fingerprint
}

// Extract finds the root line of a failure log and its signature. Bytes that
// are no text, and an unknown tool's name that is no name, are an error of kind
// Invalid; every text has a result.
func Extract(l *Log, o Options) (Result, error) {
	tb := rules()
	tl, name, err := toolNamed(tb, o.Tool)
	if err != nil {
		return Result{}, err
	}
	head, tail, err := l.text()
	if err != nil {
		return Result{}, err
	}
	t := &text{}
	t.read(head, tail, l.gapLines)
	if o.Baseline != nil {
		if t.green, err = greenForms(tb, o.Baseline); err != nil {
			return Result{}, err
		}
	}
	t.section() // before the index: it silences the headers of steps
	t.index(tb)

	f, inner := t.root(tb, tl)
	if name == "" {
		// Nobody said which tool: the rule that fits says it.
		name, inner = f.tool(t, tb), ""
	}
	r := Result{Tool: name, SigVersion: Version, InnerTool: inner}
	r.Bytes, r.BytesRead = l.Bytes()
	r.Truncated = l.head != nil || t.cut
	mask := masker(o.Redactor)
	t.fill(&r, f, mask)
	return r, nil
}

// root is the line that decides.
func (t *text) root(tb *table, tl *tool) (choice, string) {
	ci := tl != nil && tl.ci
	if tl == nil && t.wrapped() {
		if f, ok := t.run(infra(tb, tl), 0, len(t.lines), true); ok {
			return choice{found: f}, ""
		}
	}
	if tl != nil {
		if ci {
			// What stopped the whole job beats everything, wherever it stands.
			if f, ok := t.run(infra(tb, tl), 0, len(t.lines), true); ok {
				return choice{found: f}, ""
			}
		}
		for _, span := range t.spans() {
			if f, ok := t.run(tb.own(tl), span[0], span[1], ci); ok {
				return choice{found: f}, ""
			}
		}
	}
	for _, span := range t.spans() {
		if f, ok := t.best(tb, tl, span[0], span[1], ci); ok {
			return choice{found: f}, innerName(tb, tl, f.c.tool)
		}
	}
	return t.fallback(tb, tl, ci || tl == nil && t.wrapped()), ""
}

// innerName is the tool whose rule fits, unless it is the named tool's own.
func innerName(tb *table, tl *tool, name string) string {
	if tl != nil && (tl.name == name || slices.Contains(tl.sets, name)) {
		return ""
	}
	return strings.TrimSuffix(name, "-late")
}

// choice is the root line with the rule that chose it.
type choice struct {
	found
	name string  // of a fallback
	conf float64 // of a fallback
}

// tool names the tool of a log that came without one.
func (f choice) tool(t *text, tb *table) string {
	if f.c != nil && !tb.byName[f.c.tool].own {
		return strings.TrimSuffix(f.c.tool, "-late")
	}
	best, name := 0, "unknown"
	for k, n := range t.scores(tb) {
		if n > best {
			best, name = n, tb.tools[k].name
		}
	}
	return name
}

// fill writes what the choice says into a result.
func (t *text) fill(r *Result, f choice, mask func(string) string) {
	r.Rule, r.Confidence = f.name, f.conf
	if f.c != nil {
		r.Rule, r.Confidence = f.c.name, f.c.conf
	}
	if f.at < 0 {
		r.Context = []string{}
		t.hash(r)
		return
	}
	root := &t.lines[f.at]
	r.MatchedLine = int(root.n)
	r.Raw = mask(strings.TrimSpace(root.text))
	detail := ""
	if f.c != nil {
		if j := t.detailOf(f.c.join, f.c.joins, f.at); j != "" {
			r.Raw += " " + mask(j)
		}
		detail = mask(t.detailOf(f.c.rule.detail, f.c.detail, f.at))
	}
	identity := r.Raw
	if f.c != nil && f.c.keep != "" {
		if m := f.c.kept().FindStringSubmatch(identity); m != nil {
			identity = strings.Join(m[1:], " ")
		}
	}
	if f.c != nil && f.c.as != "" {
		identity = f.c.as
	}
	r.Normalised = Normalise(identity)
	if withVersions := NormaliseDetail(identity); withVersions != r.Normalised {
		r.Detail = withVersions
	}
	if detail != "" {
		r.Detail = strings.TrimSpace(r.Detail + " " + NormaliseDetail(detail))
	}
	if r.Confidence > unhelpfulConf && unhelpful(r.Raw) {
		r.Confidence = unhelpfulConf
	}
	r.Context = t.context(f.at, mask)
	t.hash(r)
	t.set(r, f, mask)
}

// Lines of context before and behind the root line, and bytes of each.
const (
	contextBefore = 3
	contextAfter  = 6
	contextBytes  = 400
)

func (t *text) context(at int, mask func(string) string) []string {
	var out []string
	for i := max(0, at-contextBefore); i < len(t.lines) && i <= at+contextAfter; i++ {
		s := t.lines[i].text
		if len(s) > contextBytes {
			s = cutRune(s, contextBytes) + " …"
		}
		out = append(out, s)
	}
	// In one piece: a secret may be known by what its neighbour lines say.
	return strings.Split(mask(strings.Join(out, "\n")), "\n")
}

func (t *text) hash(r *Result) {
	r.SigSHA = SigSHA(r.Tool, r.Normalised)
	r.DetailSHA = DetailSHA(r.Tool, r.Normalised, r.Detail)
	r.SetSHA = setSHA([]string{r.Normalised})
	r.SymSHA = SymSHA(r.Tool, Symptom(r.Tool, r.Normalised))
	if r.InnerTool != "" {
		r.InnerSigSHA = SigSHA(r.InnerTool, r.Normalised)
		r.InnerDetailSHA = DetailSHA(r.InnerTool, r.Normalised, r.Detail)
	}
}

// set hashes all errors of the winning rule, whatever their order.
func (t *text) set(r *Result, f choice, mask func(string) string) {
	if len(f.hits) < 2 {
		return
	}
	seen := map[string]bool{}
	norms := []string{r.Normalised}
	for _, h := range f.hits {
		s := strings.TrimSpace(t.lines[h.at].text)
		if h.at == f.at || seen[s] {
			continue
		}
		if seen[s] = true; len(seen) > maxSet {
			break
		}
		norms = append(norms, Normalise(s))
	}
	slices.Sort(norms)
	r.SetSHA = setSHA(slices.Compact(norms))
}

// maxSet bounds the distinct errors of one set.
const maxSet = 64

// SigSHA is the identity of a class of failures.
func SigSHA(tool, normalised string) string { return sum(tool + "\n" + normalised) }

// DetailSHA is the identity of one failure of a class.
func DetailSHA(tool, normalised, detail string) string {
	return sum(tool + "\n" + normalised + "\n" + detail)
}

func setSHA(norms []string) string { return sum(strings.Join(norms, "\n")) }

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// masker redacts. Without a tenant's key marks carry no fingerprint: one under
// a key that everybody knows would let a secret be guessed.
func masker(r *redact.Redactor) func(string) string {
	if r != nil {
		return func(s string) string { out, _ := r.Redact(s); return out }
	}
	return func(s string) string {
		out, marks := builtin().Redact(s)
		if len(marks) == 0 {
			return out
		}
		var b strings.Builder
		at := 0
		for _, m := range marks {
			b.WriteString(out[at:m.OutStart])
			b.WriteString("[REDACTED:" + m.Kind + "]")
			at = m.OutEnd
		}
		b.WriteString(out[at:])
		return b.String()
	}
}

var builtin = sync.OnceValue(func() *redact.Redactor { return redact.New([]byte("shared/signature")) })
