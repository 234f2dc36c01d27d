package query

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/originals"
	"github.com/mneme-ai/mneme/shared/serve"
)

// Original is GET /memory/original/{hash} and POST /memory/original. What was
// stored is masked already; the text is given as it stands and is never shortened
// again, so that who asks for it does not end where he began.
type Original struct {
	Project string    `json:"project"`
	SHA256  string    `json:"sha256"`
	Bytes   int       `json:"bytes"` // of the whole original
	Lines   int       `json:"lines"`
	From    int       `json:"from,omitempty"` // lines from 1, both given, where the request asked for some
	To      int       `json:"to,omitempty"`
	Masked  bool      `json:"masked,omitempty"` // of POST: something was, and the stored text is another
	Expires time.Time `json:"expires"`          // unless it is asked for again
	Text    *string   `json:"text,omitempty"`
	Data    []byte    `json:"data,omitempty"` // base64, of a text that is no UTF-8
}

// code of the answer for an original that was there.
const codeExpired = "expired"

func (f *Function) getOriginal(w http.ResponseWriter, r *http.Request) {
	if f.cfg.Originals == nil || f.cfg.Originals.Off() {
		serve.WriteError(w, fault.At(fault.NotFound, "", "set MEM_CCR_ENABLED=on", "originals are not kept here"))
		return
	}
	project := r.URL.Query().Get("project")
	from, to, err := lineRange(r.URL.Query().Get("lines"))
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	o, err := f.cfg.Originals.Get(r.Context(), project, r.PathValue("hash"))
	if errors.Is(err, originals.ErrExpired) {
		p := serve.ProblemOf(err)
		p.Code = codeExpired
		serve.WriteJSON(w, http.StatusGone, p)
		return
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	out := Original{Project: project, SHA256: string(o.SHA256), Bytes: len(o.Text), Lines: strings.Count(o.Text, "\n") + 1, Expires: o.Expires}
	text := o.Text
	if from > 0 {
		out.From, out.To = from, min(to, out.Lines)
		if out.From > out.Lines {
			serve.WriteError(w, fault.At(fault.Invalid, "lines", "lines count from 1, as in the mark", "the original has %d lines", out.Lines))
			return
		}
		text = linesOf(text, out.From, out.To)
	}
	if utf8.ValidString(text) {
		out.Text = &text
	} else {
		out.Data = []byte(text)
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

// lineRange reads 12-52 or 12.
func lineRange(s string) (from, to int, err error) {
	if s == "" {
		return 0, 0, nil
	}
	a, b, two := strings.Cut(s, "-")
	from, err = strconv.Atoi(a)
	to = from
	if err == nil && two {
		to, err = strconv.Atoi(b)
	}
	if err != nil || from < 1 || to < from {
		return 0, 0, fault.At(fault.Invalid, "lines", "12-52, as the mark says", "%q is no range of lines", s)
	}
	return from, to, nil
}

// linesOf gives lines from..to of a text, with their line feeds.
func linesOf(text string, from, to int) string {
	start := 0
	for range from - 1 {
		start += strings.IndexByte(text[start:], '\n') + 1
	}
	end := start
	for range to - from + 1 {
		i := strings.IndexByte(text[end:], '\n')
		if i < 0 {
			return text[start:]
		}
		end += i + 1
	}
	return text[start:end]
}

// postOriginal stores what a reader shortens on his own machine.
func (f *Function) postOriginal(w http.ResponseWriter, r *http.Request) {
	if f.cfg.Originals == nil || f.cfg.Originals.Off() {
		serve.WriteError(w, fault.At(fault.NotFound, "", "set MEM_CCR_ENABLED=on", "originals are not kept here"))
		return
	}
	var b struct {
		Project string `json:"project"`
		Text    string `json:"text"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 6*originals.MaxBytes)) // a byte may take six in JSON
	dec.DisallowUnknownFields()
	if err := dec.Decode(&b); err != nil {
		serve.WriteError(w, fault.At(fault.Invalid, "body", "send {project, text}", "%v", err))
		return
	}
	o, err := f.cfg.Originals.Put(r.Context(), b.Project, b.Text)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, Original{
		Project: b.Project, SHA256: string(o.SHA256), Bytes: len(o.Text), Lines: strings.Count(o.Text, "\n") + 1, Expires: o.Expires, Masked: o.Text != b.Text,
	})
}
