package report

import (
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/mneme-ai/mneme/shared/memory"
)

const pageText = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Mneme: report of {{len .Streams}} stream{{if ne (len .Streams) 1}}s{{end}}</title>
<style>{{.Style}}
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#69727d;--rule:#d5dae0;--paper:#ffffff}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--soft:#98a2ad;--rule:#3a424b;--paper:#14181d}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:52rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.4rem} h2{font-size:1.1rem;margin:2.5rem 0 .3rem} table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums}
td,th{padding:.15rem .8rem .15rem 0;text-align:left;border-bottom:1px solid var(--rule);font-weight:400} th{color:var(--soft)}
.soft{color:var(--soft)} svg{max-width:100%;height:auto} code{font-size:.9em}
</style></head><body>
<h1>What each question’s stream did and cost</h1>
{{range .Streams}}<h2>{{.Project}}/{{.Stream}}</h2>
<p class="soft">by {{by .}}{{if not .Serving}}, not serving{{end}}{{with .Run}}; run <code>{{.Run.Short}}</code>, {{.Cause}}{{end}}</p>
<svg viewBox="0 0 776 220" role="img">{{template "panel" (panel .)}}</svg>
{{with .Figures}}<table>
<tr><th>steps</th><td>{{.Steps}}, {{.Open}} updates: rate {{f3 .UpdateRate}} [{{f3 (index .UpdateCI 0)}}, {{f3 (index .UpdateCI 1)}}]</td></tr>
<tr><th>memory tokens</th><td>p50 {{f0 .MemoryP50}}, p95 {{f0 .MemoryP95}}, most {{f0 .MemoryMax}}, {{printf "%+.2f" .MemorySlope}} a step</td></tr>
<tr><th>format failures</th><td>{{.BadFormat}} ({{f3 .FormatRate}}), {{.Pending}} pending, {{.Retried}} second attempts</td></tr>
<tr><th>truncations</th><td>{{.Cut}} prompts cut by a server</td></tr>
<tr><th>tokens</th><td>{{.PromptTokens}} prompt (own count {{.PromptTokensOwn}}), {{.CompletionTokens}} completion</td></tr>
<tr><th>latency</th><td>p50 {{f0 .LatencyP50}} ms, p95 {{f0 .LatencyP95}} ms a step</td></tr>
<tr><th>cost</th><td>${{printf "%.4f" .USD}}; a kept memory ${{printf "%.4f" .USDPerKept}} ({{.Kept}} kept)</td></tr>
</table>{{end}}
<table><tr><th></th><th>open</th><th>precision</th><th>recall</th><th>F1</th><th>MCC</th><th>mean r_update</th></tr>
{{range .Gates}}<tr><td>{{who .Who}}</td><td>{{f3 .UpdateRate}}</td><td>{{share .Precision .PrecisionCI}}</td><td>{{share .Recall .RecallCI}}</td><td>{{maybe .F1}}</td><td>{{maybe .MCC}}</td><td>{{maybe .Reward}}</td></tr>
{{end}}</table>
<p class="soft">{{bases .}}</p>
<p class="soft">{{against .Labels}}</p>
{{if .Labels.Steps}}<p>{{exits .Exits}}</p>{{end}}
{{end}}<p class="soft">Intervals are of 95 %. mem label says of chunks whether they hold evidence.</p>
</body></html>
`

var page = sync.OnceValue(func() *template.Template {
	return template.Must(template.Must(template.New("page").Funcs(template.FuncMap{
		"by": func(s Stream) string { return s.By() }, "bases": func(s Stream) string { return s.Bases() }, "panel": func(s Stream) panel { return panelOf(&s, 0) }, "who": WhoText, "against": Labelled.Text, "exits": Exits.Text,
		"f0": func(v float64) string { return fmt.Sprintf("%.0f", v) }, "f3": func(v float64) string { return fmt.Sprintf("%.3f", v) },
		"share": ShareText, "maybe": MaybeText,
	}).Parse(pageText)).Parse(panelText))
})

// WriteHTML writes the whole report as one page: no script, and nothing loaded from
// anywhere.
func WriteHTML(w io.Writer, streams []Stream) error {
	return page().ExecuteTemplate(w, "page", struct {
		Style   template.CSS
		Streams []Stream
	}{template.CSS(style), streams})
}

// By says who decided.
func (s *Stream) By() string {
	if len(s.Models) == 0 {
		return "the built-in policy"
	}
	return strings.Join(s.Models, ", ")
}

// Bases says of which steps the shares are.
func (s *Stream) Bases() string {
	out := fmt.Sprintf("the update rate is of all %d steps; open, of the %d that decided about a piece that may be evidence", s.Figures.Steps, s.Labels.Decided)
	if n := s.Labels.Steps; n > 0 {
		out += fmt.Sprintf("; precision to r_update, of the %d of these with a label", n)
	}
	return out
}

// WhoText is who decides in a row of Gates, for people.
func WhoText(who string) string {
	switch who {
	case TheGate:
		return "the gate"
	case AlwaysYes:
		return "always yes"
	case AlwaysNo:
		return "always no"
	}
	return who
}

// ShareText is a share with its interval; "-" where it is not defined.
func ShareText(v *float64, ci [2]float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%s [%s, %s]", two(*v), two(ci[0]), two(ci[1]))
}

// two is a figure with two digits; what is next to nothing has no sign.
func two(v float64) string {
	if s := fmt.Sprintf("%.2f", v); s != "-0.00" {
		return s
	}
	return "0.00"
}

// MaybeText is a figure; "-" where it is not defined.
func MaybeText(v *float64) string {
	if v == nil {
		return "-"
	}
	return two(*v)
}

// Text says which labels the figures rest on.
func (l Labelled) Text() string {
	if l.Steps == 0 {
		return "no label says which steps hold evidence: mem label"
	}
	var by []string
	for _, k := range []struct{ kind, text string }{{memory.LabelHuman, "a person"}, {memory.LabelModel, "a model"}, {memory.LabelRule, "a rule"}} {
		if n := l.ByKind[k.kind]; n > 0 {
			by = append(by, fmt.Sprintf("%d by %s", n, k.text))
		}
	}
	s := fmt.Sprintf("%d steps are labelled (%s), %d as evidence", l.Steps, strings.Join(by, ", "), l.Evidence)
	if len(l.Untrusted) > 0 {
		s += "; not trusted: " + strings.Join(l.Untrusted, ", ") + " (mem label agreement)"
	}
	return s
}

// Text says how the exits of the parts were, for people.
func (e Exits) Text() string {
	s := fmt.Sprintf("early %d, exact %d, late %d", e.Early, e.Exact, e.Late)
	if e.Never > 0 {
		s += fmt.Sprintf(" (%d never opened and end with the part)", e.Never)
	}
	s += fmt.Sprintf("; without evidence %d, not known %d", e.NoEvidence, e.NotKnown)
	if e.Reward != nil {
		s += "; mean r_exit " + two(*e.Reward)
	}
	return s
}
