package skill

import (
	"cmp"
	"context"
	"slices"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
)

// Record is one promotion or withdrawal, with the key under which the log has it.
type Record struct {
	Key memory.SHA
	*memory.Skill
}

// Records are a project's, by name, each in the order in which they follow one
// another: by the chain, and of two that follow the same one by time. The last counts.
// damaged are the faults of records that can not be read, which hide no others.
func (r *Reader) Records(ctx context.Context, project string) (_ map[string][]Record, damaged []error, err error) {
	defer fault.Wrap(&err, "skills of %s", project)
	out := map[string][]Record{}
	for key, err := range r.log.RecordKeys(ctx, project, eventlog.Skills) {
		if err != nil {
			return nil, nil, err
		}
		list, err := r.record(ctx, project, key)
		switch {
		case fault.Is(err, fault.Corrupt):
			damaged = append(damaged, err)
		case err != nil:
			return nil, nil, err
		}
		for _, s := range list {
			out[s.Name] = append(out[s.Name], Record{key, s})
		}
	}
	for name, list := range out {
		out[name] = chained(list)
	}
	return out, damaged, nil
}

func (r *Reader) record(ctx context.Context, project string, key memory.SHA) (out []*memory.Skill, err error) {
	recs, err := r.log.Records(ctx, project, eventlog.Skills, key)
	if err != nil {
		return nil, err
	}
	for _, rec := range recs {
		s, ok, err := eventlog.AsSkill(rec)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, s)
		}
	}
	return out, nil
}

// Promoted are the last records of the names that are promoted and whose text is not
// erased, by name.
func (r *Reader) Promoted(ctx context.Context, project string) ([]Record, error) {
	all, _, err := r.Records(ctx, project) // mem verify names the damaged ones
	var out []Record
	for _, list := range all {
		if last := list[len(list)-1]; last.Action == memory.SkillPromoted && last.Text != "" {
			out = append(out, last)
		}
	}
	slices.SortFunc(out, func(a, b Record) int { return cmp.Compare(a.Name, b.Name) })
	return out, err
}

func chained(list []Record) []Record {
	by, depth := map[memory.SHA]Record{}, map[memory.SHA]int{}
	for _, r := range list {
		by[r.Key] = r
	}
	for _, r := range list {
		for prev, ok := by[r.Prev]; ok && depth[r.Key] < len(list); prev, ok = by[prev.Prev] {
			depth[r.Key]++
		}
	}
	slices.SortFunc(list, func(a, b Record) int {
		return cmp.Or(cmp.Compare(depth[a.Key], depth[b.Key]), a.At.Compare(b.At), cmp.Compare(a.Key, b.Key))
	})
	return list
}
