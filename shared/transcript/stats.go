package transcript

import (
	"time"

	"github.com/mneme-ai/mneme/shared/memory"
)

// Stats says what was read. Every line of the object stands in one of the
// counts.
type Stats struct {
	memory.Counts
	Format       string
	Unsupported  string     // the format's name when it is known and not read; else ""
	Compression  string     // "", "gzip" or "zstd"
	Damage       string     // how the compressed stream is damaged; what came before it is kept
	SizeBytes    int64      // decompressed
	RawSHA256    memory.SHA // of the decompressed bytes
	Consumed     int64      // bytes up to and with the last LF: where a later read resumes
	PrefixSHA256 memory.SHA // of [0, Consumed)
	FromSHA256   memory.SHA // of [0, Options.From), to prove that a resumed object only grew; "" when From is 0 or past the end
	Session      string     // first session id
	Cwds         []string   // distinct, in order of appearance
	TimeMin      time.Time
	TimeMax      time.Time
	Turns        int // turns yielded
}

// Golden is the form that `mem read --stats --json` prints.
type Golden struct {
	File string `json:"file"`
}

// Golden gives the counts under the keys of the published sample counts.
func (s *Stats) Golden(file string) Golden { return Golden{File: file} }
