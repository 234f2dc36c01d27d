package query

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/mneme-ai/mneme/shared/eventlog"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/redact"
	"github.com/mneme-ai/mneme/shared/serve"
	"github.com/mneme-ai/mneme/shared/skill"
)

// Skill is a skill that people promoted, as the log has it. Drafts stand on people's
// disks alone: the log knows none, and so no route gives one.
type Skill struct {
	Name          string       `json:"name"`
	Project       string       `json:"project"`
	From          string       `json:"from,omitempty"` // the question that it was made of
	Description   string       `json:"description,omitempty"`
	WhenToUse     string       `json:"when_to_use,omitempty"`
	State         string       `json:"state"`                  // promoted | withdrawn
	Loadable      bool         `json:"loadable"`               // an agent may load it
	NotLoadable   string       `json:"not_loadable,omitempty"` // why a promoted one may not be
	SHA256        memory.SHA   `json:"sha256"`                 // of its text
	GeneratedFrom memory.SHA   `json:"generated_from,omitempty"`
	Serving       memory.SHA   `json:"serving,omitempty"` // the memory that answers that question now
	Drift         string       `json:"drift,omitempty"`   // why it may be outdated; empty where it is not
	PromotedBy    string       `json:"promoted_by"`       // who did what State says
	At            time.Time    `json:"at"`
	Record        memory.SHA   `json:"record"` // key of the log's record
	Prev          memory.SHA   `json:"prev,omitempty"`
	Unchanged     bool         `json:"unchanged,omitempty"` // of a POST that found it so
	Text          string       `json:"text,omitempty"`      // of one that was asked by name
	History       []SkillEvent `json:"history,omitempty"`   // likewise, the newest last
}

// SkillEvent is one promotion or withdrawal.
type SkillEvent struct {
	Action string     `json:"action"`
	By     string     `json:"by"`
	At     time.Time  `json:"at"`
	SHA256 memory.SHA `json:"sha256"`
	Record memory.SHA `json:"record"`
}

// Skills is the answer of GET /memory/skills.
type Skills struct {
	Skills   []Skill  `json:"skills"`
	Problems []string `json:"problems,omitempty"` // records that can not be read
}

// SkillDraft is the answer of GET /memory/skills/_draft: what a skill of the present
// memory would be. Nothing of it is kept here.
type SkillDraft struct {
	Name          string        `json:"name"`
	Text          string        `json:"text"`
	SHA256        memory.SHA    `json:"sha256"`
	Project       string        `json:"project"`
	Question      string        `json:"question"`
	Level         memory.Level  `json:"level"`
	GeneratedFrom memory.SHA    `json:"generated_from"`
	Facts         []skill.Fact  `json:"facts"` // of the memory, those left out too
	LeftOut       skill.LeftOut `json:"left_out"`
}

// look is what several skills of one request share: many may be made of one memory.
type look struct {
	skills  *skill.Reader
	rules   *redact.Redactor
	answers map[[2]string]memory.SHA
}

func (f *Function) look(ctx context.Context) (*look, error) {
	ps, err := f.cfg.Catalog.Patterns(ctx)
	if err != nil {
		return nil, err
	}
	// Its marks are never stored, so that any key will do.
	rules := redact.NewWith([]byte("marks of this check are never stored"), redact.Options{Patterns: ps})
	return &look{f.skills, rules, map[[2]string]memory.SHA{}}, nil
}

// serving is the memory that answers a question now; false where nobody asks it.
func (l *look) serving(ctx context.Context, project, question string) (memory.SHA, bool, error) {
	at := [2]string{project, question}
	if node, ok := l.answers[at]; ok {
		return node, true, nil
	}
	node, asked, err := l.skills.Serving(ctx, project, question)
	if err == nil && asked {
		l.answers[at] = node
	}
	return node, asked, err
}

// secret is the kind of the first secret in a text by the present rules, and its line.
func (l *look) secret(text string) (kind string, line int) {
	_, marks := l.rules.Redact(text)
	if len(marks) == 0 {
		return "", 0
	}
	return marks[0].Kind, 1 + strings.Count(text[:marks[0].Start], "\n")
}

// skillOf is how a name stands after its records.
func (l *look) skillOf(ctx context.Context, list []skill.Record) (Skill, error) {
	r := list[len(list)-1]
	s := Skill{
		Name: r.Name, Project: r.Project, From: r.From, State: r.Action, SHA256: r.SHA256, GeneratedFrom: r.GeneratedFrom,
		PromotedBy: r.PromotedBy, At: r.At, Record: r.Key, Prev: r.Prev,
	}
	if s.State == memory.SkillPromoted {
		d, err := skill.Parse(r.Name, []byte(r.Text))
		switch secret, _ := l.secret(r.Text); {
		case r.Text == "":
			s.NotLoadable = "its text was erased; promote it anew"
		case secret != "":
			s.NotLoadable = "it holds what is masked now (" + secret + "); take it out and promote it anew"
		case err != nil:
			s.NotLoadable = err.Error()
		default:
			s.Description, s.WhenToUse, s.Loadable = d.Description, d.WhenToUse, true
		}
	}
	if r.GeneratedFrom == "" {
		return s, nil
	}
	node, asked, err := l.serving(ctx, r.Project, r.From)
	if fault.Is(err, fault.Invalid) {
		s.Drift = "the project's questions can not be read" // a broken file hides no skill
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.Serving = node
	switch {
	case !asked:
		s.Drift = "the question is asked no more"
	case node == "":
		s.Drift = "the memory is gone"
	case node != r.GeneratedFrom:
		s.Drift = "the memory has changed"
	}
	return s, nil
}

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
