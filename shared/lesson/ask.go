package lesson

import (
	"slices"
	"strings"

	"github.com/mneme-ai/mneme/shared/fault"
	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/signature"
)

// Ask is what lessons are looked up by: the instance of a failure, then its class, then
// symptoms. The first that finds something answers.
type Ask struct {
	Details  []memory.SHA
	Sigs     []memory.SHA
	Symptoms []memory.SHA
}

// Empty reports whether nothing is asked.
func (a *Ask) Empty() bool { return len(a.Details)+len(a.Sigs)+len(a.Symptoms) == 0 }

// AddLog asks for the failure that a log shows. It adds nothing where the log does not
// say what failed.
func (a *Ask) AddLog(r *signature.Result) {
	if !Usable(r) {
		return
	}
	a.Details = add(a.Details, r.DetailSHA, r.InnerDetailSHA)
	a.Sigs = add(a.Sigs, r.SigSHA, r.InnerSigSHA)
	a.Symptoms = add(a.Symptoms, r.SymSHA)
}

// AddWords asks for what a person says of a failure. Where they name no tool, the tools
// among their words are tried.
func (a *Ask) AddWords(tool, words string) error {
	if strings.TrimSpace(words) == "" {
		return nil
	}
	tool, err := signature.ToolName(tool)
	if err != nil {
		return err
	}
	tools := []string{tool}
	if tool == "" {
		tools = append(signature.ToolsIn(words), "")
	}
	for _, t := range tools {
		if s := signature.Symptom(t, words); s != "error" && s != signature.Symptom(t, "") {
			a.Symptoms = add(a.Symptoms, signature.SymSHA(t, s))
		}
	}
	return nil
}

// AddSig asks for the failures of one class, or one instance: a hash does not say which.
func (a *Ask) AddSig(sha string) error {
	sha = strings.ToLower(strings.TrimSpace(sha))
	if !memory.SHA(sha).Valid() {
		return fault.At(fault.Invalid, "sig_sha", "take it from mem sig", "%.80q is no sha256", sha)
	}
	a.Details, a.Sigs = add(a.Details, sha), add(a.Sigs, sha)
	return nil
}

func add(to []memory.SHA, shas ...string) []memory.SHA {
	for _, s := range shas {
		if s != "" && !slices.Contains(to, memory.SHA(s)) {
			to = append(to, memory.SHA(s))
		}
	}
	return to
}
