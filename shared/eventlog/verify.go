package eventlog

import (
	"context"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Problem is one thing that Verify found.
type Problem struct {
	Key  string `json:"key"`            // of the object
	Line int    `json:"line,omitempty"` // from 1; 0 for the whole object
	Msg  string `json:"msg"`            // no transcript text
}

// Report is what Verify found and counted.
type Report struct {
	OK       bool                  `json:"ok"` // no problem
	LogHash  memory.SHA            `json:"log_hash"`
	Streams  map[string]memory.SHA `json:"streams"` // by "project/stream"
	Problems []Problem             `json:"problems"`
	Omitted  int                   `json:"omitted,omitempty"` // problems past the first maxProblems
	Counts   Tally                 `json:"counts"`
}

// Tally counts what Verify read.
type Tally struct {
	Projects int `json:"projects"`
	Streams  int `json:"streams"`
	Segments int `json:"segments"`
	Admits   int `json:"admits"`
	Chunks   int `json:"chunks"`
	Gates    int `json:"gates"`
	Evidence int `json:"evidence"`
	Memories int `json:"memories"`
	Runs     int `json:"runs"`
	OpenRuns int `json:"open_runs"` // runs without a run_end: work in progress
	Erased   int `json:"erased"`
	Opaque   int `json:"opaque"` // records of types this program does not know
	Vectors  int `json:"vectors"`
	Rows     int `json:"rows"`
}

// maxProblems bounds the report: the first of a kind tell what is wrong.
const maxProblems = 1000

func (l *Log) Verify(ctx context.Context, progress func(done int)) (_ Report, err error) {
	return Report{}, nil
}
