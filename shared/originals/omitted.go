package originals

import (
	"fmt"
	"net/url"

	"github.com/mneme-ai/mneme/shared/compress"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Omitted says in an answer what a reader was not given, and how he gets it:
//
//	{"of":"5d2a…","field":"text","count":41,"unit":"lines","lines":["12-52"],
//	 "hash":"3fa9…","get":"GET /memory/original/3fa9…?project=shop&lines=12-52"}
type Omitted struct {
	Of    memory.SHA `json:"of,omitempty"` // the result, where it is part of one
	Field string     `json:"field"`        // text, quote, quotes, results
	Count int        `json:"count"`
	Unit  string     `json:"unit"`            // lines, elements, bytes, sentences, words, frames, quotes, results
	Lines []string   `json:"lines,omitempty"` // of the original, from 1
	// Hash and Get are empty where originals are not kept.
	Hash string `json:"hash,omitempty"`
	Get  string `json:"get,omitempty"`
}

// shownRanges bounds the line ranges that one answer names; Get gives them all.
const shownRanges = 20

// OmittedOf gives what a shortened text leaves out, one entry a unit. Only where the
// marks of r name its original can it be had.
func OmittedOf(project string, of memory.SHA, field string, r compress.Result, kept bool) (out []Omitted) {
	at := map[string]int{}
	for _, om := range r.Omissions {
		i, ok := at[om.Unit]
		if !ok {
			i = len(out)
			at[om.Unit] = i
			out = append(out, Omitted{Of: of, Field: field, Unit: om.Unit})
		}
		o := &out[i]
		o.Count += om.Count
		if om.Unit == "lines" && om.From > 0 && r.Kind != compress.JSON && r.Kind != compress.JSONL && len(o.Lines) < shownRanges {
			o.Lines = append(o.Lines, fmt.Sprintf("%d-%d", om.From, om.To))
		}
	}
	if kept {
		for i := range out {
			lines := ""
			if len(out[i].Lines) == 1 {
				lines = out[i].Lines[0]
			}
			out[i].Hash, out[i].Get = r.SHA256, getOf(project, r.SHA256, lines)
		}
	}
	return out
}

// getOf is the request that gives an original.
func getOf(project, sha, lines string) string {
	get := "GET /memory/original/" + sha[:compress.ShownHex] + "?project=" + url.QueryEscape(project)
	if lines != "" {
		get += "&lines=" + lines
	}
	return get
}

// At names the original that was put for what is left out as a whole.
func (o Omitted) At(project string, put Original) Omitted {
	o.Hash, o.Get = string(put.SHA256), getOf(project, string(put.SHA256), "")
	return o
}
