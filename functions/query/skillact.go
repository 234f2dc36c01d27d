package query

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/skill"
)

// Actions of POST /memory/skills.
const (
	actPromote  = "promote"
	actWithdraw = "withdraw"
)

// skillRequest is the body of POST /memory/skills.
type skillRequest struct {
	Action  string `json:"action"`
	Project string `json:"project"` // absent: the one that the text names, or that has the skill
	Name    string `json:"name"`
	Text    string `json:"text"` // the SKILL.md; to promote
	By      string `json:"by"`   // who does it
}

const (
	// maxSkillBody bounds the request: a file of the greatest size, escaped.
	maxSkillBody = 2*skill.MaxBytes + 8<<10
	maxBy        = 200 // characters of a name
)

func (f *Function) postSkill(w http.ResponseWriter, r *http.Request) {
	var q skillRequest
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSkillBody))
	dec.DisallowUnknownFields()
	err := dec.Decode(&q)
	if err != nil {
		err = fault.At(fault.Invalid, "body", "send {action, name, text, by, project}", "%v", err)
	}
	var s Skill
	if err == nil {
		s, err = f.actOnSkill(r, q)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, s)
}

func (f *Function) actOnSkill(r *http.Request, q skillRequest) (_ Skill, err error) {
	defer fault.Wrap(&err, "skill %s", q.Name)
	if !skill.ValidName(q.Name) {
		return Skill{}, fault.At(fault.Invalid, "name", "small letters, digits and single hyphens, at most 64, without reserved words", "%q is no name of a skill", q.Name)
	}
	if n := utf8.RuneCountInString(q.By); n == 0 || n > maxBy || strings.ContainsFunc(q.By, unicode.IsControl) || strings.TrimSpace(q.By) != q.By {
		return Skill{}, fault.At(fault.Invalid, "by", "say who does it, in 1 to 200 characters on one line", "who does it is not said")
	}
	known, err := f.asked(r)
	if err != nil {
		return Skill{}, err
	}
	switch q.Action {
	case actPromote:
		return f.promote(r.Context(), known, q)
	case actWithdraw:
		return f.withdraw(r.Context(), known, q)
	}
	return Skill{}, fault.At(fault.Invalid, "action", "promote or withdraw", "%q is neither", q.Action)
}

// promote records a skill that a person moved out of the drafts, or changed since. A
// text that holds a secret is refused rather than masked: the file on the person's
// disk is what agents load.
func (f *Function) promote(ctx context.Context, known []string, q skillRequest) (Skill, error) {
	file := q.Name + "/" + skill.FileName
	if err := skill.Err(skill.Lint(file, q.Name, []byte(q.Text))); err != nil {
		return Skill{}, err
	}
	d, err := skill.Parse(file, []byte(q.Text))
	if err != nil {
		return Skill{}, err
	}
	project, from, ok := d.From()
	if q.Project != "" && ok && q.Project != project {
		return Skill{}, fault.At(fault.Invalid, "project", "leave the project out, or correct mneme_from", "the skill says it is made of project %s", project)
	}
	if !ok {
		project, from = q.Project, ""
	}
	if !slices.Contains(known, project) {
		return Skill{}, fault.At(fault.Invalid, "project", "name a project that is known, with -p", "nothing is known of project %q", project)
	}
	if d.GeneratedFrom != "" {
		stated := false
		if ok {
			if stated, err = f.skills.Stated(ctx, project, from, d.GeneratedFrom); err != nil {
				return Skill{}, err
			}
		}
		if !stated {
			return Skill{}, fault.At(fault.Invalid, "generated_from", "draft it anew, or take generated_from out of a skill that you wrote", "no memory of %s/%s is %s", project, from, d.GeneratedFrom.Short())
		}
	}
	l, err := f.look(ctx)
	if err != nil {
		return Skill{}, err
	}
	if secret, line := l.secret(q.Text); secret != "" {
		return Skill{}, fault.At(fault.Invalid, file+":"+strconv.Itoa(line), "take it out: what is promoted is kept in the log and put into prompts", "the skill holds a secret (%s)", secret)
	}
	rec := memory.Skill{
		Tenant: f.cfg.Tenant, Project: project, Name: q.Name, Action: memory.SkillPromoted, From: from, GeneratedFrom: d.GeneratedFrom,
		SHA256: memory.SumString(q.Text), Text: q.Text, PromotedBy: q.By,
	}
	for _, p := range known {
		all, _, err := f.skills.Records(ctx, p)
		if err != nil {
			return Skill{}, err
		}
		list := all[q.Name]
		if len(list) == 0 {
			continue
		}
		last := list[len(list)-1]
		switch {
		case p != project && last.Action == memory.SkillPromoted:
			return Skill{}, fault.At(fault.Conflict, q.Name, "choose another name, or withdraw that one: mem skill withdraw "+q.Name+" -p "+p, "project %s has a skill of this name", p)
		case p != project:
			continue
		case last.Action == memory.SkillPromoted && last.SHA256 == rec.SHA256 && last.Text != "":
			s, err := l.skillOf(ctx, list)
			s.Unchanged = true
			return s, err
		}
		rec.Prev = last.Key
	}
	return f.keepSkill(ctx, l, rec)
}

// withdraw records that agents are to load the skill no more.
func (f *Function) withdraw(ctx context.Context, known []string, q skillRequest) (Skill, error) {
	if q.Project != "" {
		if !slices.Contains(known, q.Project) {
			return Skill{}, fault.At(fault.NotFound, "project", "mem log lists what is known", "nothing is known of project %q", q.Project)
		}
		known = []string{q.Project}
	}
	list, err := f.findSkill(ctx, known, q.Name)
	if err != nil {
		return Skill{}, err
	}
	l, err := f.look(ctx)
	if err != nil {
		return Skill{}, err
	}
	last := list[len(list)-1]
	if last.Action == memory.SkillWithdrawn {
		s, err := l.skillOf(ctx, list)
		s.Unchanged = true
		return s, err
	}
	return f.keepSkill(ctx, l, memory.Skill{
		Tenant: f.cfg.Tenant, Project: last.Project, Name: q.Name, Action: memory.SkillWithdrawn, From: last.From,
		GeneratedFrom: last.GeneratedFrom, SHA256: last.SHA256, PromotedBy: q.By, Prev: last.Key,
	})
}

func (f *Function) keepSkill(ctx context.Context, l *look, rec memory.Skill) (Skill, error) {
	rec.At = f.cfg.Now().UTC()
	r, err := eventlog.SkillRecord(&rec)
	if err != nil {
		return Skill{}, err
	}
	key, err := f.cfg.Log.PutRecords(ctx, rec.Project, eventlog.Skills, []eventlog.Record{r})
	if err != nil {
		return Skill{}, err
	}
	return l.skillOf(ctx, []skill.Record{{Key: key, Skill: &rec}})
}
