package report

// Series is the memory over the steps.
type Series struct {
	BudgetTokens int     `json:"budget_tokens"` // of the newest run; 0: not known
	Points       []Point `json:"points"`
}

// Point is one step, or several that follow each other where there are more of them
// than a picture has room for.
type Point struct {
	T     int `json:"t"`     // the last of them
	Steps int `json:"steps"` // how many
	Min   int `json:"min"`   // memory tokens after a step, own count
	Max   int `json:"max"`
	Last  int `json:"last"`
	Open  int `json:"open"` // update gates that opened
	Bad   int `json:"bad"`  // replies that could not be read, and prompts that a server cut
}

// thin joins neighbours until there are at most n points, as evenly as it can; what is
// rare (a peak, an open gate, a failure) is still in its point.
func thin(all []Point, n int) []Point {
	if n <= 0 {
		return []Point{}
	}
	n = min(n, len(all))
	out := make([]Point, 0, n)
	for i := range n {
		from, to := i*len(all)/n, (i+1)*len(all)/n
		p := all[from]
		for _, q := range all[from+1 : to] {
			p = Point{T: q.T, Steps: p.Steps + q.Steps, Min: min(p.Min, q.Min), Max: max(p.Max, q.Max), Last: q.Last, Open: p.Open + q.Open, Bad: p.Bad + q.Bad}
		}
		out = append(out, p)
	}
	return out
}
