package extractpolicy

import (
	"regexp"
	"strings"
	"sync"
)

// A topic is what a standing question asks for, as its wording tells. Scores do
// not depend on the question, so that without topics every question would keep
// the same statements; with them "what does the user prefer?" keeps
// preferences. A question that asks for decisions or rules, or for something
// that no topic names, keeps every pick: nothing is lost by a wording that is
// not understood, and the set that ships has such questions.
type topic struct {
	name  string
	asks  pattern  // of the question
	cues  []string // a pick with one of these belongs to it
	words pattern  // or one whose text matches; nil: none does
}

// pattern is compiled when it is first asked: fifteen of them take 2 ms, which
// would be a tenth of the start of every function.
type pattern func() *regexp.Regexp

func lazy(source string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(source) })
}

// general are the wordings of questions that every lasting statement answers.
var general = lazy(`(?i)\b(?:decid\w*|decisions?|rules?|constraints?|conventions?|polic(?:y|ies)|everything|anything|remember\w*)\b`)

// topics in the order in which a question is held against them; a question may
// have several.
var topics = []topic{
	{
		name: "preferences", asks: lazy(`(?i)\b(?:prefer\w*|likes?|dislikes?|habits?|taste)\b`),
		cues:  []string{"pref", "choice", "ans", "lets"},
		words: lazy(`(?i)\b(?:prefer\w*|rather|instead of|style|likes?|hates?|want(?:s|ed)?|don'?t (?:use|like|want)|always|never)\b`),
	},
	{
		name: "causes", asks: lazy(`(?i)\b(?:causes?|caused|failures?|failed|fail|bugs?|incidents?|errors?|fix(?:es|ed)?|broke\w*|regressions?)\b`),
		cues:  []string{"root"},
		words: lazy(`(?i)\b(?:caus\w+|because|fail\w*|bugs?|broke\w*|breaks?|crash\w*|errors?|fix(?:es|ed)?|wrong|leak\w*|regress\w*|incident|outage|turn(?:s|ed) out|problem|issue)\b`),
	},
	{
		name: "corrections", asks: lazy(`(?i)\b(?:correct(?:s|ed|ions?)?|reject\w*|take back|took back|retract\w*)\b`),
		cues:  []string{"corr", "opp", "amends", "fact"},
		words: lazy(`(?i)\b(?:no longer|instead|not true|wrong|actually|amend\w*|supersed\w*|replac\w+|revert\w*|anymore|any more)\b`),
	},
	{
		name: "commands", asks: lazy(`(?i)\b(?:commands?|built|build|tested|run|released?|debugged|flags?)\b`),
		words: lazy("(?i)`[^`]+`|\\b(?:make|build\\w*|compil\\w+|tests?|run(?:s|ning)?|deploy\\w*|releas\\w+|flags?|install\\w*|lint\\w*|scripts?|pipeline|ci|commands?|--[a-z-]+)\\b"),
	},
	{
		name: "architecture", asks: lazy(`(?i)\b(?:architecture|components?|data ?flows?|interfaces?|invariants?|designs?|made of)\b`),
		words: lazy(`(?i)\b(?:architecture|components?|services?|modules?|packages?|layers?|apis?|endpoints?|schemas?|tables?|databases?|queues?|caches?|events?|formats?|protocols?|interfaces?|invariants?|stor(?:e|es|ed|age)|keys?|index(?:es)?|contracts?|clients?|servers?)\b`),
	},
	{
		name: "environment", asks: lazy(`(?i)\b(?:environment|hosts?|versions?|limits?|dates?|deadlines?|responsible|owners?|infrastructure)\b`),
		cues:  []string{"who", "numu"},
		words: lazy(`(?i)\b(?:hosts?|versions?|regions?|quotas?|limits?|owns?|owner|responsible|deadline|production|staging|cluster|nodes?|port|machines?|account)\b`),
	},
	{
		name: "open", asks: lazy(`(?i)\b(?:still open|open (?:questions?|problems?|issues?|points?|tasks?)|to-?dos?|next steps?|unresolved|risks?)\b`),
		cues:  []string{"defer", "who"},
		words: lazy(`(?i)\b(?:to-?dos?|still|remain\w*|follow[- ]ups?|later|blocked|pending|not yet|need(?:s|ed)? to|until|open|next|risks?|must be (?:done|fixed))\b`),
	},
}

// focus is the topics of one question; empty keeps everything.
type focus []*topic

// focusOf reads a question.
func focusOf(question string) focus {
	if general().MatchString(question) {
		return nil
	}
	var f focus
	for i := range topics {
		if topics[i].asks().MatchString(question) {
			f = append(f, &topics[i])
		}
	}
	return f
}

// wants reports whether a pick belongs to the question.
func (f focus) wants(cues []string, text string) bool {
	if len(f) == 0 {
		return true
	}
	for _, t := range f {
		for _, c := range t.cues {
			for _, have := range cues {
				if c == have {
					return true
				}
			}
		}
		if t.words != nil && t.words().MatchString(text) {
			return true
		}
	}
	return false
}

// String names the topics.
func (f focus) String() string {
	names := make([]string, len(f))
	for i, t := range f {
		names[i] = t.name
	}
	return strings.Join(names, ", ")
}
