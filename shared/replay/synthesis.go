package replay

import (
	"context"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Synthesized is the last completed run of a project's synthesis.
type Synthesized struct {
	Run    memory.Run
	End    memory.RunEnd
	Memory *memory.Memory // nil: nothing in the inputs answered, or its text was erased
}

// Synthesis reads the last completed run of an L2 stream from the stream's end;
// false where none has completed.
func Synthesis(ctx context.Context, log *eventlog.Log, project, stream string) (out Synthesized, ok bool, err error) {
	defer fault.Wrap(&err, "synthesis %s/%s", project, stream)
	head, err := log.Head(ctx, project, stream)
	if err != nil {
		return out, false, err
	}
	for seq := head.Seq; seq > 0; seq-- {
		seg, err := log.Segment(ctx, project, stream, seq)
		if err != nil {
			return out, false, err
		}
		for i := len(seg.Records) - 1; i >= 0; i-- {
			switch r := seg.Records[i].(type) {
			case *memory.RunEnd:
				if !ok && !r.Continued {
					out.End, ok = *r, true
				}
			case *memory.Memory:
				if ok && out.Memory == nil && r.Run == out.End.Run && r.Erased == "" {
					out.Memory = r
				}
			case *memory.Run:
				if ok && r.Run == out.End.Run {
					out.Run = *r
					return out, true, nil
				}
			}
		}
	}
	return out, false, nil
}
