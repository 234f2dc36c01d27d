package report

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
)

// Sizes of a panel, in units of the picture.
const (
	panelWidth  = 760
	panelHeight = 220
	plotLeft    = 56
	plotRight   = 16
	plotTop     = 50
	plotBottom  = 34
	plotWidth   = panelWidth - plotLeft - plotRight
	plotHeight  = panelHeight - plotTop - plotBottom
)

// panel is the drawing of one stream's memory.
type panel struct {
	Y         int // where it stands in the picture
	Title     string
	Caption   string
	Line      string // points of the memory after each step
	Band      string // between the least and the most, where a point is several steps
	Ticks     []tick
	Marks     []mark // open gates
	Bad       []mark // failures
	BudgetY   float64
	Budget    int // 0: too far above what the memory reached, or not known
	LastT     int
	FirstT    int
	Nothing   bool
	Dot       bool // one point is no line
	DotY      float64
	Left, End int
	Mid       int
}

type tick struct {
	Y, TextY float64
	Text     string
}

type mark struct{ X, Y1, Y2 float64 }

// panelOf lays a stream's series out.
func panelOf(s *Stream, y int) panel {
	p := panel{
		Y: y, Title: s.Project + "/" + s.Stream, Left: plotLeft, End: plotLeft + plotWidth, Mid: plotLeft + plotWidth/2,
		Caption: fmt.Sprintf("update rate %.3f, memory p50 %.0f, most %.0f of %d tokens", s.Figures.UpdateRate, s.Figures.MemoryP50, s.Figures.MemoryMax, s.Memory.BudgetTokens),
	}
	if s.Run != nil {
		p.Title += ", run " + s.Run.Run.Short()
	}
	pts := s.Memory.Points
	if len(pts) == 0 {
		p.Nothing = true
		return p
	}
	p.FirstT, p.LastT = pts[0].T-pts[0].Steps+1, pts[len(pts)-1].T
	most := 1
	for _, q := range pts {
		most = max(most, q.Max)
	}
	top := niceTop(most)
	if b := s.Memory.BudgetTokens; b > 0 && b <= 2*top {
		p.Budget, top = b, max(top, b)
	}
	x := func(t int) float64 {
		if p.LastT == p.FirstT {
			return plotLeft + plotWidth/2
		}
		return round(plotLeft + plotWidth*float64(t-p.FirstT)/float64(p.LastT-p.FirstT))
	}
	yOf := func(v int) float64 { return round(plotTop + plotHeight*(1-float64(v)/float64(top))) }
	p.Dot, p.DotY = len(pts) == 1, yOf(pts[0].Last)
	p.BudgetY = yOf(p.Budget)
	for i := range 3 {
		v := top * i / 2
		p.Ticks = append(p.Ticks, tick{yOf(v), yOf(v) + 4, strconv.Itoa(v)})
	}
	var line, up, down strings.Builder
	for i, q := range pts {
		fmt.Fprintf(&line, "%g,%g ", x(q.T), yOf(q.Last))
		fmt.Fprintf(&up, "%g,%g ", x(q.T), yOf(q.Max))
		r := pts[len(pts)-1-i]
		fmt.Fprintf(&down, "%g,%g ", x(r.T), yOf(r.Min))
		if q.Open > 0 {
			p.Marks = append(p.Marks, mark{x(q.T), plotTop + plotHeight, plotTop + plotHeight + 6})
		}
		if q.Bad > 0 {
			p.Bad = append(p.Bad, mark{x(q.T), plotTop - 6, plotTop})
		}
	}
	p.Line, p.Band = strings.TrimSpace(line.String()), strings.TrimSpace(up.String()+down.String())
	return p
}

// round keeps a picture's bytes few, and the same on every machine.
func round(v float64) float64 { return math.Round(v*10) / 10 }

// niceTop is the least of 1, 2, 5 times a power of ten that v is not above.
func niceTop(v int) int {
	for n := 10; ; n *= 10 {
		for _, f := range [3]int{1, 2, 5} {
			if f*n >= v {
				return f * n
			}
		}
	}
}

func panelsOf(streams []Stream) []panel {
	out := make([]panel, len(streams))
	for i := range streams {
		out[i] = panelOf(&streams[i], i*panelHeight)
	}
	return out
}

// style is the pictures' and the page's; both follow the reader's light or dark. Colours
// stand where they are used: not every viewer of SVG knows variables.
const style = `
svg text{font:12px system-ui,sans-serif;fill:#1b1f24} svg .soft{fill:#69727d} svg .paper{fill:#ffffff}
svg .rule{stroke:#d5dae0} svg .line{fill:none;stroke:#1f6feb;stroke-width:1.5} svg .dot{fill:#1f6feb} svg .band{fill:#1f6feb;fill-opacity:.2}
svg .open{stroke:#1a7f37;stroke-width:1.5} svg .bad{stroke:#cf222e;stroke-width:1.5} svg .budget{stroke:#cf222e;stroke-dasharray:4 4}
@media (prefers-color-scheme:dark){svg text{fill:#e6e9ed} svg .soft{fill:#98a2ad} svg .paper{fill:#14181d} svg .rule{stroke:#3a424b} svg .line{stroke:#6cb0ff}
svg .dot,svg .band{fill:#6cb0ff} svg .open{stroke:#56d364} svg .bad,svg .budget{stroke:#ff7b72}}
`

const panelText = `{{define "panel"}}<g transform="translate(0 {{.Y}})"><title>{{.Title}}: {{.Caption}}</title>
<text x="{{.Left}}" y="14">{{.Title}}</text><text x="{{.Left}}" y="32" class="soft">{{.Caption}}</text>
{{if .Nothing}}<text x="{{.Mid}}" y="110" text-anchor="middle" class="soft">no step</text>{{else -}}
{{$p := .}}{{range .Ticks}}<line class="rule" x1="{{$p.Left}}" x2="{{$p.End}}" y1="{{.Y}}" y2="{{.Y}}"/><text class="soft" x="50" y="{{.TextY}}" text-anchor="end">{{.Text}}</text>
{{end}}{{if .Budget}}<line class="budget" x1="{{.Left}}" x2="{{.End}}" y1="{{.BudgetY}}" y2="{{.BudgetY}}"><title>budget: {{.Budget}} tokens</title></line>
{{end}}<polygon class="band" points="{{.Band}}"/>
<polyline class="line" points="{{.Line}}"/>{{if .Dot}}<circle cx="{{.Mid}}" cy="{{.DotY}}" r="3" class="dot"/>{{end}}
{{range .Marks}}<line class="open" x1="{{.X}}" x2="{{.X}}" y1="{{.Y1}}" y2="{{.Y2}}"/>{{end}}
{{range .Bad}}<line class="bad" x1="{{.X}}" x2="{{.X}}" y1="{{.Y1}}" y2="{{.Y2}}"/>{{end}}
<text class="soft" x="{{.Left}}" y="208">t={{.FirstT}}</text><text class="soft" x="{{.Mid}}" y="208" text-anchor="middle">memory tokens after each step; green: the gate opened; red above: a reply failed</text><text class="soft" x="{{.End}}" y="208" text-anchor="end">t={{.LastT}}</text>{{end}}
</g>{{end}}`

const svgText = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 776 {{.Height}}" width="776" height="{{.Height}}" role="img">
<style>{{.Style}}</style><rect class="paper" width="776" height="{{.Height}}"/>
{{range .Panels}}{{template "panel" .}}
{{end}}</svg>
`

var svgPage = sync.OnceValue(func() *template.Template {
	return template.Must(template.Must(template.New("svg").Parse(svgText)).Parse(panelText))
})

// WriteSVG draws the memory of each stream over its steps, one below the other, with
// the open gates, the failures and the budget.
func WriteSVG(w io.Writer, streams []Stream) error {
	return svgPage().ExecuteTemplate(w, "svg", struct {
		Height int
		Style  template.CSS
		Panels []panel
	}{max(1, len(streams)) * panelHeight, template.CSS(style), panelsOf(streams)})
}
