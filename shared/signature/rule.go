package signature

import "regexp"

// rule finds the root line of one kind of failure. It stands in a table of its
// tool, in order of priority: the first rule with a hit that is no cascade line
// decides.
type rule struct {
	name   string   // tool and kind: "npm.code"
	lits   []string // lower case; a line without one of them is not looked at
	re     string   // of the cleaned line
	not    string   // lines that match are cascade lines, never the root
	need   string   // lower case, with | between; one of them stands somewhere in the log
	keep   string   // groups of the root line that are its identity; "": all of it
	as     string   // the identity itself, where programs say one thing in many ways
	under  string   // the nearest line above with less indent begins so
	trace  bool     // a stack trace follows
	failed bool     // go test: the test that the line stands in did not pass
	then   bool     // the root is the next line that says something
	said   bool     // the root is what the failed command said before the hit, if anything
	pick   pick
	conf   float64 // [0,1], how sure the rule is that its line is the root
	detail detail
	join   detail   // what is joined to the root line before it is normalised
	yes    []string // examples: lines that match
	no     []string // counter-examples
}

// pick says which of several hits is the root.
type pick uint8

const (
	first   pick = iota
	last         // CI: what came before was retried or tolerated
	least        // the smallest normal form, first of each key (group 1): for tools that print in no fixed order
	deepest      // the most indented, or the last `Caused by:` of the first chain
	chain        // Python: the first exception of the last chain
)

// detail says where the line is that tells two failures of one class apart.
type detail struct {
	how   how
	re    string // group 1 where it has one, else the whole match
	lines int    // how far to look; 0: the default of its kind

	orNext bool // the next line, where nothing matches
}

type how uint8

const (
	none   how = iota
	next       // the next line with text
	after      // the next line that matches
	before     // the nearest line before that matches
	within     // anywhere in the log, the first that matches
	para       // the text that follows, unwrapped, to the end of the message
	below      // the line under the next that matches
)

// compiled is a rule ready to run; its expressions wait for their first use.
type compiled struct {
	*rule
	tool          string
	runner        bool // of a CI runner's own set
	lits          []int32
	needs         []int32 // none: no need
	re, not, kept func() *regexp.Regexp
	detail, joins func() *regexp.Regexp
}

// tool is one row of the table of tools.
type tool struct {
	name  string
	alias []string // other names for --tool
	sets  []string // rule sets tried in this order as the tool's own; default: its name
	rules []rule   // its own set
	marks []string // lower-case literals that tell that the tool ran
	own   bool     // its set is for the tools that name it
	ci    bool     // runs other tools: its own rules look at the whole log, others take the last hit
}
