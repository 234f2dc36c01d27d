package query

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/skill"
)

// Skills lists the skills of projects, by name.
func (f *Function) Skills(ctx context.Context, projects []string, loadableOnly bool) (out Skills, err error) {
	defer fault.Wrap(&err, "skills")
	out.Skills = []Skill{}
	l, err := f.look(ctx)
	if err != nil {
		return out, err
	}
	for _, p := range projects {
		all, damaged, err := f.skills.Records(ctx, p)
		if err != nil {
			return out, err
		}
		for _, d := range damaged {
			out.Problems = append(out.Problems, d.Error())
		}
		for _, list := range all {
			if loadableOnly && list[len(list)-1].Action != memory.SkillPromoted {
				continue
			}
			s, err := l.skillOf(ctx, list)
			if err != nil {
				return out, err
			}
			if s.Loadable || !loadableOnly {
				out.Skills = append(out.Skills, s)
			}
		}
	}
	slices.SortFunc(out.Skills, func(a, b Skill) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Project, b.Project)) })
	return out, nil
}

func (f *Function) listSkills(w http.ResponseWriter, r *http.Request) {
	loadable, err := flagOf(r, "loadable")
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	projects, err := f.asked(r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	out, err := f.Skills(r.Context(), projects, loadable)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, out)
}

func flagOf(r *http.Request, name string) (bool, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, fault.At(fault.Invalid, name, "true or false", "%q is neither", v)
	}
	return b, nil
}

// findSkill is the one skill of a name in the projects that were asked: a promoted one
// before those that were withdrawn.
func (f *Function) findSkill(ctx context.Context, projects []string, name string) (found []skill.Record, err error) {
	defer fault.Wrap(&err, "skill %s", name)
	promoted := 0
	for _, p := range projects {
		all, _, err := f.skills.Records(ctx, p)
		if err != nil {
			return nil, err
		}
		list := all[name]
		if len(list) == 0 {
			continue
		}
		if list[len(list)-1].Action == memory.SkillPromoted {
			if promoted++; promoted > 1 {
				return nil, fault.At(fault.Conflict, name, "say which by project=", "two projects have a skill of this name")
			}
			found = list
		} else if promoted == 0 {
			found = list
		}
	}
	if found == nil {
		return nil, fault.At(fault.NotFound, name, "mem skill list shows those there are; drafts stand in vault/skills/_drafts of whoever drafted them", "no skill of this name was promoted")
	}
	return found, nil
}

func (f *Function) showSkill(w http.ResponseWriter, r *http.Request) {
	projects, err := f.asked(r)
	var list []skill.Record
	if err == nil {
		list, err = f.findSkill(r.Context(), projects, r.PathValue("name"))
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	l, err := f.look(r.Context())
	var s Skill
	if err == nil {
		s, err = l.skillOf(r.Context(), list)
	}
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	if s.Loadable {
		s.Text = list[len(list)-1].Text
	}
	if wantsMarkdown(r) {
		if !s.Loadable {
			why := cmp.Or(s.NotLoadable, "it was withdrawn by "+s.PromotedBy)
			serve.WriteError(w, fault.At(fault.NotFound, s.Name, "promote it again to have it loaded", "the skill is not to be loaded: %s", why))
			return
		}
		writeMarkdown(w, r, s.Text, s.SHA256)
		return
	}
	for _, e := range list {
		s.History = append(s.History, SkillEvent{e.Action, e.PromotedBy, e.At, e.SHA256, e.Key})
	}
	serve.WriteJSON(w, http.StatusOK, s)
}

// wantsMarkdown reports whether the first type that the request names and this route
// has is Markdown.
func wantsMarkdown(r *http.Request) bool {
	for v := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		t, _, _ := strings.Cut(v, ";")
		switch strings.ToLower(strings.TrimSpace(t)) {
		case "text/markdown", "text/plain", "text/*":
			return true
		case "application/json", "application/*", "*/*":
			return false
		}
	}
	return false
}

// writeMarkdown answers a text whose ETag is its sha256, or 304 to who has it.
func writeMarkdown(w http.ResponseWriter, r *http.Request, text string, sha memory.SHA) {
	etag := `"` + string(sha) + `"`
	h := w.Header()
	h.Set("ETag", etag)
	h.Set("X-Content-Type-Options", "nosniff")
	for v := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		if v = strings.TrimPrefix(strings.TrimSpace(v), "W/"); v == etag || v == "*" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", "text/markdown; charset=utf-8")
	_, _ = w.Write([]byte(text)) // the client has gone: nobody is left to tell
}

// draftSkill says what a skill of the present memory would be. No skill has a name
// with "_", so that the path is nobody's.
func (f *Function) draftSkill(w http.ResponseWriter, r *http.Request) {
	d, err := f.skillDraft(r)
	if err != nil {
		serve.WriteError(w, err)
		return
	}
	serve.WriteJSON(w, http.StatusOK, d)
}

func (f *Function) skillDraft(r *http.Request) (SkillDraft, error) {
	q := r.URL.Query()
	project, question, _ := strings.Cut(q.Get("from"), "/")
	if question == "" {
		question = "_synthesis"
	}
	if !memory.ValidName(project) {
		return SkillDraft{}, fault.At(fault.Invalid, "from", "from=project/question, or project for its synthesis", "%q names no project", project)
	}
	known, err := f.asked(r)
	if err != nil {
		return SkillDraft{}, err
	}
	if !slices.Contains(known, project) {
		return SkillDraft{}, fault.At(fault.NotFound, "from", "mem log lists what is known", "nothing is known of project %q", project)
	}
	opt := skill.Options{Name: q.Get("name")}
	if opt.IncludeToolOutput, err = flagOf(r, "include_tool_output"); err != nil {
		return SkillDraft{}, err
	}
	if opt.Portable, err = flagOf(r, "portable"); err != nil {
		return SkillDraft{}, err
	}
	src, err := f.skills.Source(r.Context(), project, question)
	if err != nil {
		return SkillDraft{}, err
	}
	d, left, err := skill.Draft(src, opt)
	if err != nil {
		return SkillDraft{}, err
	}
	text := skill.Render(d)
	return SkillDraft{
		Name: d.Name, Text: text, SHA256: memory.SumString(text), Project: project, Question: question, Level: src.Level,
		GeneratedFrom: src.Node, Facts: src.Facts, LeftOut: left,
	}, nil
}
