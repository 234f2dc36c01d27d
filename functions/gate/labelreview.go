package gate

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/labels"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
)

// ReviewItem is one piece that a person is asked about.
type ReviewItem struct {
	Stream   string     `json:"stream"`
	QueryID  string     `json:"query_id"`
	Question string     `json:"question"`
	Admit    int64      `json:"admit"`
	I        int        `json:"i"`
	Chunk    memory.SHA `json:"chunk"`
	Start    int        `json:"start"`
	End      int        `json:"end"`
	Text     string     `json:"text"`
	T        int        `json:"t"`    // the step that decided about it
	Open     bool       `json:"open"` // what it decided; whoever shows the piece hides it
	Said     []Said     `json:"said"` // what others labelled it; hidden too
}

// Said is one label about a piece.
type Said struct {
	Kind     string `json:"kind"`
	Who      string `json:"who"` // model or rule
	Evidence bool   `json:"evidence"`
}

// Review is the answer of GET /memory/labels/review: pieces that no person labelled.
type Review struct {
	Project  string       `json:"project"`
	Items    []ReviewItem `json:"items"`
	Left     int          `json:"left"`     // pieces without a person's label, these included
	Reviewed int          `json:"reviewed"` // pieces that have one
}

// maxReview bounds one answer: its texts are up to 20 KB each.
const maxReview = 200

func (f *Function) getReview(w http.ResponseWriter, r *http.Request) {
	p, err := project(r)
	v := r.URL.Query()
	n, seed := 50, uint64(1)
	if s := v.Get("sample"); err == nil && s != "" {
		if n, err = strconv.Atoi(s); err != nil || n < 1 || n > maxReview {
			err = fault.At(fault.Invalid, "sample", "a number from 1 to "+strconv.Itoa(maxReview), "%q", s)
		}
	}
	if s := v.Get("seed"); err == nil && s != "" {
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			err = fault.At(fault.Invalid, "seed", "a number", "%q", s)
		}
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	out, err := f.Review(r.Context(), p, v.Get("query"), n, seed, v.Get("disagree") == "true")
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

// Review gives n pieces to label by hand, in an order that the seed alone decides:
// open and closed gates in turn, as a random sample of a stream would hold a person up
// with closed ones. Pieces that a person labelled are left out. With disagree only
// those on which the labels of models and rules and the gate are not of one mind.
func (f *Function) Review(ctx context.Context, project, query string, n int, seed uint64, disagree bool) (out Review, err error) {
	defer fault.Wrap(&err, "review %s", project)
	out = Review{Project: project, Items: []ReviewItem{}}
	all, err := f.pieces(ctx, project, query)
	if err != nil {
		return out, err
	}
	set, err := labels.Read(ctx, f.cfg.Log, project, nil)
	if err != nil {
		return out, err
	}
	var open, closed []ranked
	for i := range all {
		p := &all[i]
		said := set.Of(p.stream.Name, p.chunk, p.start, p.end)
		if len(said) > 0 && said[0].Kind == memory.LabelHuman {
			out.Reviewed++
			continue
		}
		if disagree && !disputed(p.open, said) {
			continue
		}
		r := ranked{piece: p, said: said, rank: memory.SumString(strconv.FormatUint(seed, 10) + "\n" + labels.Wording(p.stream.Name) + "\n" + string(p.chunk) + "\n" + strconv.Itoa(p.start))}
		if p.open {
			open = append(open, r)
		} else {
			closed = append(closed, r)
		}
	}
	out.Left = len(open) + len(closed)
	scrub, err := f.scrubbed(ctx, project)
	if err != nil {
		return out, err
	}
	for _, r := range inTurn(open, closed) {
		if len(out.Items) == n {
			break
		}
		p := r.piece
		text, err := f.pieceText(ctx, scrub, project, p)
		if fault.Is(err, fault.NotFound) {
			out.Left--
			continue
		}
		if err != nil {
			return out, err
		}
		item := ReviewItem{
			Stream: labels.Wording(p.stream.Name), QueryID: p.stream.QueryID, Question: p.stream.Question, Admit: p.admit, I: p.i, Chunk: p.chunk, Start: p.start, End: p.end,
			Text: text, T: p.t, Open: p.open, Said: []Said{},
		}
		for _, v := range r.said {
			if v.FormatOK {
				item.Said = append(item.Said, Said{v.Kind, cmp.Or(v.Model, v.Rule), v.Evidence})
			}
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

type ranked struct {
	piece *piece
	said  []labels.Verdict
	rank  memory.SHA
}

// inTurn merges two strata by rank, one of each in turn while there are both.
func inTurn(open, closed []ranked) []ranked {
	by := func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) }
	slices.SortFunc(open, by)
	slices.SortFunc(closed, by)
	out := make([]ranked, 0, len(open)+len(closed))
	for len(open) > 0 && len(closed) > 0 {
		out = append(out, open[0], closed[0])
		open, closed = open[1:], closed[1:]
	}
	return append(append(out, open...), closed...)
}

// disputed reports whether a label says other than the gate or than another label.
func disputed(open bool, said []labels.Verdict) bool {
	return slices.ContainsFunc(said, func(v labels.Verdict) bool { return v.FormatOK && v.Evidence != open })
}

// ReviewLabel is the body of POST /memory/labels/review: what a person says of one
// piece, as GET gave it.
type ReviewLabel struct {
	Project  string     `json:"project"`
	Stream   string     `json:"stream"`
	Admit    int64      `json:"admit"`
	I        int        `json:"i"`
	Chunk    memory.SHA `json:"chunk"`
	Start    int        `json:"start"`
	End      int        `json:"end"`
	Evidence *bool      `json:"evidence"`
	By       string     `json:"by"`
}

// ReviewSaved is its answer: the label stands in the log.
type ReviewSaved struct {
	At time.Time `json:"at"`
}

func (f *Function) postReview(w http.ResponseWriter, r *http.Request) {
	var b ReviewLabel
	err := body(w, r, 64<<10, &b, "send {project, stream, admit, i, chunk, start, end, evidence, by}")
	switch {
	case err != nil:
	case !memory.ValidName(b.Project):
		err = badProject(b.Project)
	case b.Evidence == nil:
		err = fault.At(fault.Invalid, "evidence", "true or false", "missing")
	case b.Admit < 1 || b.I < 0:
		err = fault.At(fault.Invalid, "admit, i", "send them as GET /memory/labels/review gave them", "%d, %d", b.Admit, b.I)
	}
	if err == nil {
		var out ReviewSaved
		if out, err = f.SaveReview(r.Context(), b); err == nil {
			serve.WriteJSON(w, http.StatusOK, out)
			return
		}
	}
	serve.WriteError(w, err)
}

// SaveReview keeps what a person says of a piece, at once, in an object of its own.
func (f *Function) SaveReview(ctx context.Context, b ReviewLabel) (out ReviewSaved, err error) {
	defer fault.Wrap(&err, "label a piece of %s", b.Project)
	row := labels.Row{Stream: b.Stream, Chunk: b.Chunk, Start: b.Start, End: b.End, Evidence: *b.Evidence, Kind: memory.LabelHuman, By: b.By, At: f.cfg.Now().UTC()}
	if bad := row.Check(""); bad != nil {
		return out, fault.At(fault.Invalid, bad.Field, "", "%s", bad.Problem)
	}
	if where := f.secrets()(row.By, "", "", "", ""); where != "" {
		return out, fault.At(fault.Invalid, where, "give a name without it", "holds a secret")
	}
	names, err := f.wordings(ctx, b.Project)
	if err != nil {
		return out, err
	}
	stream, ok := names[b.Stream]
	if !ok {
		return out, fault.At(fault.NotFound, "stream "+b.Stream, "mem question list shows them", "the project has no such question")
	}
	scrub, err := f.scrubbed(ctx, b.Project)
	if err != nil {
		return out, err
	}
	head, err := f.cfg.Log.Head(ctx, b.Project, memory.AdmitStream)
	if err != nil {
		return out, err
	}
	if b.Admit > head.Seq {
		return out, fault.At(fault.NotFound, "admit", "", "the project has no part %d", b.Admit)
	}
	_, at, err := f.admitted(ctx, &writer{f: f, scrub: scrub, project: b.Project}, b.Admit)
	if err != nil {
		return out, err
	}
	if b.I >= len(at.chunks) || at.chunks[b.I].SHA256 != b.Chunk {
		return out, fault.At(fault.NotFound, "chunk "+string(b.Chunk), "ask for the pieces again", "it does not stand there, or was stated anew")
	}
	if b.End > at.chunks[b.I].SizeBytes {
		return out, fault.At(fault.Invalid, "end", "", "[%d,%d) reaches past the chunk's %d bytes", b.Start, b.End, at.chunks[b.I].SizeBytes)
	}
	l := row.Label(stream, b.Admit, b.I)
	l.ReasonCode = labels.Reviewed
	if err := f.putLabels(ctx, b.Project, []*memory.Label{l}); err != nil {
		return out, err
	}
	return ReviewSaved{At: l.At}, nil
}
