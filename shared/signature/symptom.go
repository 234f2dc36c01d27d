package signature

import (
	"slices"

	"strings"
)

// Symptom brings a person's words and a normal form to one form: expand, lower,
// drop stop words, stem, then a sorted set. The tool's name and "error" are in
// every symptom of a tool, whether they were said or not.
//
//	npm error: unable to resolve dependency tree
//	dependency error npm resolve tree
//
// Negations stay: "not found" is not "found".
func Symptom(tool, words string) string {
	if len(words) > maxLine {
		words = cutRune(words, maxLine)
	}
	s := spell(strings.ToLower(words))
	set := []string{"error"}
	if tool != "" {
		set = append(set, tool)
	}
	for _, w := range splitWords(oneWord.Replace(s)) {
		for _, e := range expand(w) {
			if stopWords[e] {
				continue
			}
			set = append(set, stem(e))
		}
	}
	slices.Sort(set)
	return strings.Join(slices.Compact(set), " ")
}

// oneWord joins what is one word in another spelling.
var oneWord = strings.NewReplacer("timed out", "timeout", "time out", "timeout", "time-out", "timeout", "can not ", "cannot ")

// SymSHA is the identity of a symptom.
func SymSHA(tool, symptom string) string { return sum(tool + "\n" + symptom) }

// splitWords cuts at everything that no name has inside. A mask is no word.
func splitWords(s string) []string {
	fields := strings.FieldsFunc(s, func(r rune) bool {
		return r != '\'' && r != '.' && r != '-' && r != '_' && r != '@' && r != '/' && r != '<' && r != '>' && r != '+' &&
			(r < '0' || r > '9') && (r < 'a' || r > 'z') && r < 0x80
	})
	out := fields[:0]
	for _, f := range fields {
		f = strings.Trim(f, "'.-/+")
		if strings.HasPrefix(f, "<") && !strings.HasPrefix(f, "<p>/") || f == "" || strings.HasSuffix(f, ":<l>") {
			continue
		}
		f = strings.TrimPrefix(f, "<p>/")
		if i := strings.IndexAny(f, "<>"); i >= 0 {
			f = strings.Trim(f[:i], "@:-")
		}
		if f != "" {
			out = append(out, f)
		}
	}
	return out
}

// expand says an abbreviation in the words that people use for it.
func expand(w string) []string {
	if e, ok := expansions[w]; ok {
		return e
	}
	if t, ok := strings.CutSuffix(w, "n't"); ok {
		switch t {
		case "ca":
			return []string{"cannot"}
		case "wo":
			return []string{"will", "not"}
		}
		return []string{t, "not"}
	}
	return []string{strings.TrimSuffix(w, "'s")}
}

var expansions = map[string][]string{
	"err": {"error"}, "errors": {"error"}, "failed": {"error"}, "failure": {"error"}, "failures": {"error"}, "fails": {"error"}, "fail": {"error"}, "failing": {"error"}, "fatal": {"error"},
	"eof": {"end", "of", "file"}, "oom": {"out", "of", "memory"}, "oomkilled": {"out", "of", "memory", "kill"},
	"eresolve": {"error", "resolve"}, "enoent": {"no", "such", "file"}, "eacces": {"permission", "denied"}, "eperm": {"operation", "not", "permitted"},
	"econnrefused": {"connection", "refuse"}, "econnreset": {"connection", "reset"}, "etimedout": {"timeout"}, "enotfound": {"host", "not", "found"}, "eai_again": {"host", "not", "found"},
	"eaddrinuse": {"address", "in", "use"}, "enospc": {"no", "space"}, "eexist": {"file", "exists"}, "emfile": {"too", "many", "open", "file"}, "enomem": {"out", "of", "memory"},
	"e404": {"404", "not", "found"}, "e401": {"401", "unauthorized"}, "e403": {"403", "forbidden"}, "eusage": {"usage"}, "etarget": {"no", "match", "version"}, "eintegrity": {"integrity"},
	"module_not_found": {"cannot", "find", "module"}, "modulenotfounderror": {"module", "not", "found"}, "filenotfounderror": {"no", "such", "file"}, "connectionrefusederror": {"connection", "refuse"},
	"permissionerror": {"permission", "denied"}, "timeouterror": {"timeout"}, "timedout": {"timeout"}, "time-out": {"timeout"}, "syntaxerror": {"syntax", "error"}, "typeerror": {"type", "error"},
	"assertionerror": {"assertion"}, "importerror": {"import"}, "sigkill": {"kill"}, "sigsegv": {"segmentation", "fault"}, "segfault": {"segmentation", "fault"},
	"cant": {"cannot"}, "couldnt": {"could", "not"}, "dont": {"do", "not"}, "doesnt": {"does", "not"}, "isnt": {"is", "not"},
	"deps": {"dependency"}, "dep": {"dependency"}, "pkg": {"package"}, "dir": {"directory"}, "conn": {"connection"}, "auth": {"authentication"}, "perms": {"permission"}, "k8s": {"kubernetes"},
}

// stopWords carry no meaning in an error. Negations are none of them.
var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`a an the this that these those of to in on at by for from with within into onto as is are was were be been being am
		it its i im i'm we you my our your me and or but if then so do does did done has have had having will would should could can may might must
		unable able code got get gets getting when while during after before there here what which who how why please help just also very some any
		e.g i.e etc via per up out's let's there's it's`) {
		m[w] = true
	}
	return m
}()

// stem brings forms of a word together by a fixed table, on both sides.
func stem(w string) string {
	if s, ok := stems[w]; ok {
		return s
	}
	if len(w) < 5 || strings.ContainsAny(w, "0123456789._-/@<>+") {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "xes"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"), strings.HasSuffix(w, "ous"):
		return w
	case strings.HasSuffix(w, "s"):
		return w[:len(w)-1]
	}
	return w
}

// stems are the verbs of failures in all their forms.
var stems = func() map[string]string {
	m := map[string]string{}
	for l := range strings.SplitSeq(strings.TrimSpace(`
resolve resolved resolves resolving resolution
connect connected connects connecting
refuse refused refuses refusing
find finds finding
install installed installs installing installation
build built builds building
compile compiled compiles compiling compilation
download downloaded downloads downloading
fetch fetched fetches fetching
pull pulled pulls pulling
push pushed pushes pushing
timeout timeouts timed
kill killed kills killing
crash crashed crashes crashing
expect expected expects expecting
receive received receives receiving
exceed exceeded exceeds exceeding
import imported imports importing
load loaded loads loading
open opened opens opening
read reads reading
write wrote written writes writing
create created creates creating creation
delete deleted deletes deleting deletion
match matched matches matching
miss missed misses missing
define defined defines defining
declare declared declares declaring
assign assigned assigns assigning assignable
require required requires requiring
parse parsed parses parsing
start started starts starting
stop stopped stops stopping
reset resets resetting
close closed closes closing
lock locked locks locking
conflict conflicted conflicts conflicting
deny denied denies denying
permit permitted permits permitting
schedule scheduled schedules scheduling
allocate allocated allocates allocating allocation
authenticate authenticated authenticates authenticating
authorize authorized authorizes authorizing
exist exists existed existing
satisfy satisfied satisfies satisfying
support supported supports supporting
contain contained contains containing
run runs ran running
execute executed executes executing execution
`), "\n") {
		f := strings.Fields(l)
		for _, w := range f {
			m[w] = f[0]
		}
	}
	return m
}()
