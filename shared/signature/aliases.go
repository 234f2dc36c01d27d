package signature

import (
	"slices"
	"strings"
)

// maxAliases bounds the symptoms of one failure.
const maxAliases = 96

// Aliases are the symptoms under which a lesson of this failure is stored: of
// its class, of its detail, and of both as people say them: one clause of the
// message alone, without the names in it, with each of the words that people
// have for "cannot", with and without the tool. The first is that of SymSHA;
// there are no duplicates.
//
//	docker: pull access denied for acme/api, repository does not exist …
//	access acme/api deny docker error pull      access deny docker error pull
func Aliases(r Result) []string {
	var out []string
	add := func(tool, words string) {
		if len(out) == maxAliases {
			return
		}
		s := Symptom(tool, words)
		if len(out) > 0 && telling(s, tool) < 2 || slices.Contains(out, s) {
			return
		}
		out = append(out, s)
	}
	tools := []string{r.Tool}
	if r.InnerTool != "" {
		tools = append(tools, r.InnerTool)
	}
	add(r.Tool, r.Normalised)
	class, detail := message(r.Normalised), message(r.Detail)
	for _, tool := range tools {
		add(tool, r.Normalised)
		add(tool, r.Detail)
		add(tool, r.Normalised+" "+r.Detail)
		for _, text := range []string{class, detail} {
			for _, p := range clauses(text) {
				for _, v := range inability(p) {
					add(tool, v)
				}
			}
		}
	}
	add("", class)
	add("", detail)
	return out
}

// telling counts the words of a symptom that say what failed. One alone, such
// as "cannot find", would be every failure's.
func telling(symptom, tool string) int {
	n := 0
	for w := range strings.FieldsSeq(symptom) {
		switch w {
		case tool, "error", "not", "no", "cannot", "find", "found", "fail", "failed":
		default:
			n++
		}
	}
	return n
}

// clauses are a message, its parts, and each without the names in it: what
// people repeat of it.
func clauses(text string) []string {
	if text == "" {
		return nil
	}
	out := []string{text}
	parts := strings.Split(text, ": ")
	for i, p := range parts {
		if i > 0 {
			out = append(out, strings.Join(parts[i:], " "))
		}
		out = append(out, p)
		for _, end := range []string{", ", " (", "; ", " because ", " - ", " for ", " from "} {
			if head, _, ok := strings.Cut(p, end); ok {
				out = append(out, head)
			}
		}
	}
	for _, p := range slices.Clone(out) {
		out = append(out, nameless(p))
	}
	keep := out[:0]
	for i, p := range out {
		if (i == 0 || strings.Count(strings.TrimSpace(p), " ") >= 1) && !slices.Contains(keep, p) {
			keep = append(keep, p)
		}
	}
	return keep
}

// nameless is a clause without quoted words, paths, versions and masks.
func nameless(s string) string {
	var out []string
	for w := range strings.FieldsSeq(s) {
		if strings.ContainsAny(w, "0123456789/@=<>'\"`[](){}") {
			continue
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// inability says a sentence with each of the words that people have for it.
func inability(s string) []string {
	out := []string{s}
	said := []string{"unable to ", "cannot ", "could not ", "failed to ", "can't ", "couldn't "}
	for _, w := range said {
		if strings.Contains(s, w) {
			for _, v := range said[:3] {
				out = append(out, strings.Replace(s, w, v, 1))
			}
			if found := strings.Replace(s, w+"find ", "", 1); found != s {
				out = append(out, found+" not found", "cannot "+found+" found", "no "+found)
			}
			return out
		}
	}
	if what, ok := strings.CutSuffix(s, " not found"); ok {
		for _, v := range said[:3] {
			out = append(out, v+"find "+what)
		}
	}
	return out
}

// message is a normal form without its place and its code's brackets.
func message(s string) string {
	if i := strings.Index(s, ":<l>"); i >= 0 {
		s = strings.TrimLeft(s[i+len(":<l>"):], ": -")
	}
	for _, p := range []string{"fatal error: ", "error: ", "error ", "npm error ", "e: "} {
		s = strings.TrimPrefix(s, p)
	}
	return s
}
