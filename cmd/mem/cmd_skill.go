package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mneme-ai/mneme/functions/query"
	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/skill"
)

func (a *app) cmdSkill() *cobra.Command {
	c := &cobra.Command{
		Use: "skill", Aliases: []string{"skills"}, Short: "What a memory holds, as a SKILL.md that agents load", Args: cobra.NoArgs,
		Long: `What a memory holds, as a SKILL.md that agents load (docs/SKILLS.md).

A draft stands in vault/skills/_drafts, where no agent looks. A person reads it, and
promotes it: it moves to vault/skills, and the log keeps who did it and when.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	var vault string
	c.PersistentFlags().StringVar(&vault, "vault", "", "folder of the vault (default $MNEME_VAULT, else ./vault)")
	c.AddCommand(a.skillDraft(&vault), a.skillList(&vault), a.skillShow(), a.skillDiff(&vault), a.skillPromote(&vault), a.skillWithdraw(&vault), a.skillLint(&vault))
	return c
}

func (a *app) skillDraft(vault *string) *cobra.Command {
	var from, name string
	var tools, portable, force bool
	c := &cobra.Command{
		Use: "draft --from PROJECT/QUESTION", Short: "Write a draft of a question's memory, or of the project's synthesis", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if from == "" && a.project == "" {
				return usageError{errors.New("say of what: --from PROJECT/QUESTION, or --from PROJECT for its synthesis")}
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			project, question, _ := strings.Cut(from, "/")
			if project == "" {
				project = a.project
			}
			known, err := cl.known(c.Context())
			if err != nil {
				return err
			}
			if project, err = byPrefix(known, project); err != nil {
				return err
			}
			d, err := cl.draft(c.Context(), project+"/"+question, name, tools, portable)
			if err != nil {
				return err
			}
			return a.writeDraft(a.vaultFolder(*vault), d, force)
		},
	}
	c.Flags().StringVar(&from, "from", "", "project/question, or a project for its synthesis")
	c.Flags().StringVar(&name, "name", "", "name of the skill (default made of project and question)")
	c.Flags().BoolVar(&tools, "include-tool-output", false, "take in what tools and pages said; anybody can write those")
	c.Flags().BoolVar(&portable, "portable", false, "keep when_to_use and generated_from under metadata, for strict loaders")
	c.Flags().BoolVar(&force, "force", false, "replace a draft that differs; what you wrote below it stays")
	return c
}

func (c *client) draft(ctx context.Context, from, name string, tools, portable bool) (d query.SkillDraft, err error) {
	flag := func(b bool) string {
		if b {
			return strconv.FormatBool(b)
		}
		return ""
	}
	err = c.get(ctx, "/memory/skills/_draft"+queryString("from", from, "name", name, "include_tool_output", flag(tools), "portable", flag(portable)), &d)
	if err == nil && !skill.ValidName(d.Name) {
		err = fault.New(fault.Corrupt, "the server drafts a skill under the name %q, which is none", d.Name)
	}
	return d, err
}

// draftWritten is what mem skill draft --json prints.
type draftWritten struct {
	Name          string        `json:"name"`
	Path          string        `json:"path"`
	Written       string        `json:"written"` // new | replaced | unchanged
	Project       string        `json:"project"`
	Question      string        `json:"question"`
	Level         memory.Level  `json:"level"`
	GeneratedFrom memory.SHA    `json:"generated_from"`
	SHA256        memory.SHA    `json:"sha256"` // of the file
	Facts         int           `json:"facts"`  // in the draft
	LeftOut       skill.LeftOut `json:"left_out"`
}

// writeDraft writes a draft, under which stands what people wrote below an earlier
// one, or below the skill that they promoted.
func (a *app) writeDraft(vault string, d query.SkillDraft, force bool) error {
	s, err := openSkills(vault, true)
	if err != nil {
		return err
	}
	defer s.Close()
	old, err := s.read(d.Name, true)
	if err != nil {
		return err
	}
	earlier := old
	if earlier == nil {
		if earlier, err = s.read(d.Name, false); err != nil {
			return err
		}
	}
	path := s.path(d.Name, true)
	text, err := kept(path, d.Text, earlier)
	if err != nil {
		return err
	}
	if err := skill.Err(skill.Lint(path, d.Name, []byte(text))); err != nil {
		return err
	}
	out := draftWritten{
		Name: d.Name, Path: path, Written: "new", Project: d.Project, Question: d.Question, Level: d.Level,
		GeneratedFrom: d.GeneratedFrom, SHA256: memory.SumString(text), Facts: len(d.Facts), LeftOut: d.LeftOut,
	}
	for _, n := range d.LeftOut {
		out.Facts -= n
	}
	switch {
	case string(old) == text:
		out.Written = "unchanged"
	case old != nil && !force:
		return fault.At(fault.Conflict, path, "see what differs: mem skill diff "+d.Name+" --draft; replace it: --force", "a draft of this name stands there and differs")
	default:
		if old != nil {
			out.Written = "replaced"
		}
		if err := s.write(d.Name, true, text); err != nil {
			return err
		}
	}
	if a.json {
		return a.printJSON(out)
	}
	fmt.Fprintf(a.out, "%s  %s: %d facts of %s/%s\n", path, out.Written, out.Facts, out.Project, out.Question)
	for _, k := range sortedKeys(out.LeftOut) {
		switch k {
		case "long":
			fmt.Fprintf(a.out, "  left out: the oldest %d, a skill has %d lines at most\n", out.LeftOut[k], skill.MaxBodyLines)
		default:
			fmt.Fprintf(a.out, "  left out: %d said by %s (--include-tool-output takes them in)\n", out.LeftOut[k], k)
		}
	}
	fmt.Fprintf(a.out, "read it, then: mem skill promote %s\n", out.Name)
	return nil
}

// kept is the draft with what people added to an earlier version.
func kept(path, text string, earlier []byte) (string, error) {
	if earlier == nil {
		return text, nil
	}
	was, err := skill.Parse(path, earlier)
	if err != nil {
		return text, nil // it can not be read: nothing of it is carried over, and --force alone replaces it
	}
	d, err := skill.Parse(path, []byte(text))
	if err != nil {
		return "", err
	}
	return skill.Render(skill.Keep(d, was)), nil
}

func (a *app) skillList(vault *string) *cobra.Command {
	var loadable bool
	c := &cobra.Command{
		Use: "list", Short: "List the skills that people promoted; drafts are never among them", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			p := ""
			if a.project != "" {
				if p, err = a.named(c.Context(), cl); err != nil {
					return err
				}
			}
			only := ""
			if loadable {
				only = "true"
			}
			var list query.Skills
			if err := cl.get(c.Context(), "/memory/skills"+queryString("project", p, "loadable", only), &list); err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			return a.printSkills(list, a.vaultFolder(*vault), p == "" && !loadable)
		},
	}
	c.Flags().BoolVar(&loadable, "loadable", false, "only those that agents may load")
	return c
}

// printSkills prints skills, and how this disk differs from what was promoted.
func (a *app) printSkills(list query.Skills, vault string, all bool) error {
	if len(list.Skills) == 0 {
		fmt.Fprintln(a.out, "none")
	}
	for _, p := range list.Problems {
		fmt.Fprintln(a.err, "mem: damaged: "+p)
	}
	disk, err := openSkills(vault, false)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if disk != nil {
		defer disk.Close()
	}
	promoted := map[string]bool{}
	for _, s := range list.Skills {
		promoted[s.Name] = promoted[s.Name] || s.State == memory.SkillPromoted
		a.printSkill(s)
		if disk == nil {
			continue
		}
		here, err := disk.read(s.Name, false)
		switch {
		case err != nil:
			fmt.Fprintf(a.out, "  %v\n", err)
		case s.State != memory.SkillPromoted:
		case here == nil:
			fmt.Fprintf(a.out, "  not in %s: mem skill show %s prints it\n", disk.dir, s.Name)
		case memory.Sum(here) != s.SHA256:
			fmt.Fprintf(a.out, "  %s was changed since: mem skill promote %s keeps that\n", disk.path(s.Name, false), s.Name)
		}
	}
	if disk == nil || !all {
		return nil
	}
	names, err := disk.skills(false)
	for _, n := range names {
		if !promoted[n] {
			fmt.Fprintf(a.out, "%s is loaded by agents, and nobody is known to have promoted it: mem skill promote %s, or move it to %s\n", disk.path(n, false), n, skill.DraftsDir)
		}
	}
	return err
}

func (a *app) printSkill(s query.Skill) {
	from := s.Project
	if s.From != "" {
		from += "/" + s.From
	}
	fmt.Fprintf(a.out, "%s  %s  %s by %s %s  %s\n", s.Name, from, s.State, s.PromotedBy, age(&s.At), s.SHA256.Short())
	switch {
	case s.State == memory.SkillPromoted && !s.Loadable:
		fmt.Fprintf(a.out, "  not loadable: %s\n", s.NotLoadable)
	case s.State == memory.SkillPromoted && s.Drift != "":
		fmt.Fprintf(a.out, "  drift: %s: mem skill diff %s\n", s.Drift, s.Name)
	}
}

// skillNamed takes NAME, and refuses what is none before it becomes part of a path.
func skillNamed(run func(c *cobra.Command, name string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		if !skill.ValidName(args[0]) {
			return fault.At(fault.Invalid, "", "mem skill list prints the names", "%q is no name of a skill", args[0])
		}
		return run(c, args[0])
	}
}

func (a *app) skillShow() *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Print a promoted skill, as it was promoted", Args: cobra.ExactArgs(1),
		RunE: skillNamed(func(c *cobra.Command, name string) error {
			_, s, err := a.promoted(c.Context(), name)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(s)
			}
			if s.Text != "" {
				fmt.Fprint(a.out, s.Text)
			}
			fmt.Fprintf(a.err, "mem: %s by %s %s\n", s.State, s.PromotedBy, age(&s.At))
			switch {
			case !s.Loadable && s.NotLoadable != "":
				fmt.Fprintf(a.err, "mem: not loadable: %s\n", s.NotLoadable)
			case s.Drift != "":
				fmt.Fprintf(a.err, "mem: drift: %s: mem skill diff %s\n", s.Drift, name)
			}
			if s.Text == "" {
				return errNothing
			}
			return nil
		}),
	}
}

// promoted is a skill as the server has it.
func (a *app) promoted(ctx context.Context, name string) (*client, query.Skill, error) {
	var s query.Skill
	cl, err := a.client()
	if err != nil {
		return nil, s, err
	}
	p := ""
	if a.project != "" {
		if p, err = a.named(ctx, cl); err != nil {
			return nil, s, err
		}
	}
	return cl, s, cl.get(ctx, "/memory/skills/"+url.PathEscape(name)+queryString("project", p), &s)
}

// skillDrift is what mem skill diff --json prints.
type skillDrift struct {
	Name          string     `json:"name"`
	Of            string     `json:"of"` // promoted | draft
	GeneratedFrom memory.SHA `json:"generated_from"`
	Serving       memory.SHA `json:"serving"`
	Diff          string     `json:"diff"` // unified; "" where the memory says the same
}

func (a *app) skillDiff(vault *string) *cobra.Command {
	var draft bool
	c := &cobra.Command{
		Use: "diff NAME", Short: "What a skill says, and what a draft of the memory as it is now would say", Args: cobra.ExactArgs(1),
		Long: `What a skill says, and what a draft of the memory as it is now would say.
Exit code 0 where both say the same, 1 where they differ.`,
		RunE: skillNamed(func(c *cobra.Command, name string) error {
			cl, s, err := a.promoted(c.Context(), name)
			if err != nil && (!fault.Is(err, fault.NotFound) || cl == nil) {
				return err
			}
			text, path, of := s.Text, name, "promoted"
			if draft || text == "" {
				if text, path, err = a.draftOnDisk(*vault, name, err); err != nil {
					return err
				}
				of = "draft"
			}
			return a.diffSkill(c.Context(), cl, name, of, path, text)
		}),
	}
	c.Flags().BoolVar(&draft, "draft", false, "compare the draft on this disk, also where a skill of this name was promoted")
	return c
}

// draftOnDisk reads a draft; missing is why there is nothing else to compare.
func (a *app) draftOnDisk(vault, name string, missing error) (text, path string, err error) {
	s, err := openSkills(a.vaultFolder(vault), false)
	if err != nil {
		return "", "", errors.Join(missing, err)
	}
	defer s.Close()
	data, err := s.read(name, true)
	if err == nil && data == nil {
		err = fault.At(fault.NotFound, s.path(name, true), "draft it: mem skill draft --from PROJECT/QUESTION --name "+name, "there is no such draft, and nobody promoted such a skill")
	}
	return string(data), s.path(name, true), err
}

func (a *app) diffSkill(ctx context.Context, cl *client, name, of, path, text string) error {
	was, err := skill.Parse(path, []byte(text))
	if err != nil {
		return err
	}
	project, question, ok := was.From()
	if !ok || was.GeneratedFrom == "" {
		fmt.Fprintf(a.err, "mem: %s was made of no memory: nothing can differ\n", name)
		return nil
	}
	d, err := cl.draft(ctx, project+"/"+question, name, was.IncludesToolOutput(), was.Portable)
	if err != nil {
		return err
	}
	now, err := skill.Parse(path, []byte(d.Text))
	if err != nil {
		return err
	}
	diff := skill.Diff(path+" ("+of+")", text, path+" (of the memory now)", skill.Render(skill.Keep(now, was)))
	if a.json {
		err = a.printJSON(skillDrift{name, of, was.GeneratedFrom, d.GeneratedFrom, diff})
	} else if diff != "" {
		end := a.own()
		fmt.Fprint(a.out, diff)
		end()
	}
	if err == nil && diff != "" {
		if !a.json {
			fmt.Fprintf(a.err, "mem: take it in: mem skill draft --from %s/%s --name %s --force, then mem skill promote %s\n", project, question, name, name)
		}
		return errNothing
	}
	return err
}

// who is the person that acts. At a terminal it is the user of this computer; a program
// has to say for whom it acts.
func (a *app) who(by string) (string, error) {
	if by != "" {
		return by, nil
	}
	if by = a.getenv("MNEME_USER"); by != "" {
		return by, nil
	}
	if u, err := user.Current(); err == nil && isTerminal(a.err) && u.Username != "" {
		return u.Username, nil
	}
	return "", usageError{errors.New("say who does it: --by NAME; a skill tells agents what to do, and a person answers for it")}
}

func (a *app) skillPromote(vault *string) *cobra.Command {
	var by string
	c := &cobra.Command{
		Use: "promote NAME", Short: "Move a draft to where agents load it, and keep in the log who did so", Args: cobra.ExactArgs(1),
		Long: `Move a draft to where agents load it, and keep in the log who did so, when, and the
text. A skill that you moved there yourself, or changed there, is kept likewise.`,
		RunE: skillNamed(func(c *cobra.Command, name string) error {
			who, err := a.who(by)
			if err != nil {
				return err
			}
			s, err := openSkills(a.vaultFolder(*vault), false)
			if err != nil {
				return err
			}
			defer s.Close()
			draft := true
			data, err := s.read(name, true)
			if err == nil && data == nil {
				draft = false
				data, err = s.read(name, false)
			}
			if err != nil {
				return err
			}
			if data == nil {
				return fault.At(fault.NotFound, s.path(name, true), "draft it: mem skill draft --from PROJECT/QUESTION --name "+name, "there is no such draft")
			}
			findings := skill.Lint(s.path(name, draft), name, data)
			if err := skill.Err(findings); err != nil {
				return err
			}
			for _, f := range findings {
				if f.Field == "body" { // what a person should know; lint says all of it
					fmt.Fprintln(a.err, "mem:", f)
				}
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			p := ""
			if d, err := skill.Parse(s.path(name, draft), data); err == nil {
				if _, _, ok := d.From(); !ok {
					if p, err = a.one(c.Context(), cl); err != nil {
						return err
					}
				}
			}
			out, err := cl.actOnSkill(c.Context(), map[string]string{"action": "promote", "project": p, "name": name, "text": string(data), "by": who})
			if err != nil {
				return err
			}
			if draft { // the log first: a skill that agents load is always on record
				stays, err := s.move(name, false, string(data))
				if err != nil {
					return err
				}
				for _, f := range stays {
					fmt.Fprintf(a.err, "mem: %s stays beside the draft: the skill's folder was there already\n", f)
				}
			}
			if a.json {
				return a.printJSON(out)
			}
			a.printSkill(out)
			fmt.Fprintf(a.out, "  agents that read %s load it\n", s.dir)
			return nil
		}),
	}
	c.Flags().StringVar(&by, "by", "", "who promotes it (default $MNEME_USER, else at a terminal your user name)")
	return c
}

func (c *client) actOnSkill(ctx context.Context, body map[string]string) (out query.Skill, err error) {
	return out, c.send(ctx, http.MethodPost, "/memory/skills", body, &out)
}

func (a *app) skillWithdraw(vault *string) *cobra.Command {
	var by string
	c := &cobra.Command{
		Use: "withdraw NAME", Short: "Move a promoted skill back to the drafts, so that no agent loads it", Args: cobra.ExactArgs(1),
		RunE: skillNamed(func(c *cobra.Command, name string) error {
			who, err := a.who(by)
			if err != nil {
				return err
			}
			cl, err := a.client()
			if err != nil {
				return err
			}
			p := ""
			if a.project != "" {
				if p, err = a.named(c.Context(), cl); err != nil {
					return err
				}
			}
			out, err := cl.actOnSkill(c.Context(), map[string]string{"action": "withdraw", "project": p, "name": name, "by": who})
			if err != nil {
				return err
			}
			moved, err := a.backToDrafts(*vault, name)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(out)
			}
			a.printSkill(out)
			if moved != "" {
				fmt.Fprintf(a.out, "  it stands in %s now\n", moved)
			}
			return nil
		}),
	}
	c.Flags().StringVar(&by, "by", "", "who withdraws it (default $MNEME_USER, else at a terminal your user name)")
	return c
}

// backToDrafts moves a skill of this disk back; "" where there is none. A draft of the
// name that is there already is not overwritten: the person decides which to keep.
func (a *app) backToDrafts(vault, name string) (string, error) {
	s, err := openSkills(a.vaultFolder(vault), false)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer s.Close()
	here, err := s.read(name, false)
	if err != nil || here == nil {
		return "", err
	}
	draft, err := s.read(name, true)
	if err != nil {
		return "", err
	}
	if draft != nil && string(draft) != string(here) {
		return "", fault.At(fault.Conflict, s.path(name, false), "remove one of both: agents still load this one", "it is withdrawn, and a draft that differs stands in %s", s.path(name, true))
	}
	if _, err := s.move(name, true, string(here)); err != nil {
		return "", err
	}
	return s.path(name, true), nil
}

func (a *app) skillLint(vault *string) *cobra.Command {
	return &cobra.Command{
		Use: "lint [FILE…]", Short: "Check skills of this disk; without FILE all of the vault, drafts among them", Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, files []string) error {
			if len(files) == 0 {
				var err error
				if files, err = a.skillFiles(*vault); err != nil {
					return err
				}
			}
			findings := []skill.Finding{}
			bad := map[string]bool{}
			for _, file := range files {
				data, err := readSmall(file, skill.MaxBytes, "the skill has %d bytes, at most %d are allowed")
				if err != nil {
					return err
				}
				dir := filepath.Base(filepath.Dir(absolute(file)))
				for _, f := range skill.Lint(file, dir, data) {
					findings = append(findings, f)
					bad[file] = bad[file] || !f.Warning
				}
			}
			refused := 0
			for _, b := range bad {
				if b {
					refused++
				}
			}
			if a.json {
				if err := a.printJSON(map[string]any{"files": len(files), "refused": refused, "findings": findings}); err != nil {
					return err
				}
			} else {
				for _, f := range findings {
					fmt.Fprintln(a.out, f)
				}
				fmt.Fprintf(a.out, "%d skills, %d refused\n", len(files), refused)
			}
			if refused > 0 {
				return errNothing
			}
			return nil
		},
	}
}

// skillFiles are all skills of the vault.
func (a *app) skillFiles(vault string) (out []string, err error) {
	s, err := openSkills(a.vaultFolder(vault), false)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for _, draft := range []bool{false, true} {
		names, err := s.skills(draft)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			out = append(out, s.path(n, draft))
		}
	}
	slices.Sort(out)
	return out, nil
}
