package models

import (
	"maps"
	"slices"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// noGate is what stands in the place of a gate model where none is to decide.
const noGate = "none"

// maxProjects bounds the projects with an entry of their own.
const maxProjects = 1000

// Choice is which models decide.
type Choice struct {
	Gate    *Use // nil: the built-in policy decides
	Rewrite *Use // nil: Gate writes too
}

// Uses are the models of a choice, the gate's first; none for the built-in
// policy.
func (c Choice) Uses() []*Use {
	switch {
	case c.Gate == nil:
		return nil
	case c.Rewrite == nil:
		return []*Use{c.Gate}
	}
	return []*Use{c.Gate, c.Rewrite}
}

// For is what decides in a project: its own entry, which stands for all of the
// general one, else that. "" has no entry.
func (c *Config) For(project string) Choice {
	if own, ok := c.Projects[project]; ok {
		return own
	}
	return Choice{c.Gate, c.Rewrite}
}

// Uses are the models that decide anywhere, each once, the general ones first,
// then by project.
func (c *Config) Uses() []*Use {
	var out []*Use
	seen := map[Use]bool{}
	for _, project := range append([]string{""}, slices.Sorted(maps.Keys(c.Projects))...) {
		for _, u := range c.For(project).Uses() {
			if !seen[*u] {
				seen[*u] = true
				out = append(out, u)
			}
		}
	}
	return out
}

// choice reads the fields gate and rewrite of the file, or of a project in it;
// done checks them once all fields are read.
func choice(f strictyaml.File, into *Choice, prompts []string) (fields strictyaml.Fields, done func(*Config) error) {
	nodes := map[string]*strictyaml.Node{}
	none := false
	fields = strictyaml.Fields{
		"gate": func(n *strictyaml.Node) (err error) {
			nodes["gate"] = n
			if none = n.Kind == strictyaml.Scalar && n.Value == noGate; none {
				return nil
			}
			into.Gate, err = use(f, n, "gate", prompts)
			return err
		},
		"rewrite": func(n *strictyaml.Node) (err error) {
			nodes["rewrite"] = n
			into.Rewrite, err = use(f, n, "rewrite", prompts)
			return err
		},
	}
	return fields, func(c *Config) error {
		for _, of := range []struct {
			what string
			use  *Use
		}{{"gate", into.Gate}, {"rewrite", into.Rewrite}} {
			if of.use == nil {
				continue
			}
			if _, ok := c.Endpoint(of.use.Endpoint); !ok {
				return f.Fault(nodes[of.what], "name one that stands under endpoints", "%s: no endpoint %q", of.what, of.use.Endpoint)
			}
		}
		switch {
		case into.Rewrite != nil && none:
			return f.Fault(nodes["rewrite"], "leave it out: without a gate model the built-in policy decides alone", "rewrite with gate: "+noGate)
		case into.Rewrite != nil && into.Gate == nil:
			return f.Fault(nodes["rewrite"], "name the gate's model too", "rewrite without gate")
		}
		return nil
	}
}

// projects reads the projects that have models of their own; done checks them
// once all endpoints are read.
func projects(f strictyaml.File, c *Config, prompts []string) (read func(*strictyaml.Node) error, done func(*Config) error) {
	var checks []func(*Config) error
	read = func(n *strictyaml.Node) error {
		c.Projects = map[string]Choice{}
		return f.Each(n, "projects", "a mapping of projects", func(k, v *strictyaml.Node) error {
			switch {
			case !memory.ValidName(k.Value):
				return f.Fault(k, "a project is [a-z0-9][a-z0-9._-]{0,62}", "%q is not a project name", k.Value)
			case len(c.Projects) == maxProjects:
				return f.Fault(k, "", "more than %d projects", maxProjects)
			}
			own := &Choice{}
			fields, check := choice(f, own, prompts)
			if err := f.Mapping(v, "a project", fields); err != nil {
				return err
			}
			if len(v.Content) == 0 {
				return f.Fault(v, "write gate: {endpoint, model}, or gate: "+noGate, "project %q says nothing", k.Value)
			}
			checks = append(checks, check)
			c.Projects[k.Value] = *own
			return nil
		})
	}
	return read, func(c *Config) error {
		for _, check := range checks {
			if err := check(c); err != nil {
				return err
			}
		}
		return nil
	}
}
