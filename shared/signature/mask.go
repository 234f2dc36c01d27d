package signature

import (
	"regexp"
	"strings"
	"sync"
)

// mask replaces one kind of what changes from run to run. The order of the
// table matters: a uuid in a directory must not hide the path from its mask.
type mask struct {
	name     string
	when     func(string) bool // cheap; an expression runs only where it can match
	apply    func(string) string
	versions bool // not applied to details
}

func has(parts ...string) func(string) bool {
	return func(s string) bool {
		for _, p := range parts {
			if strings.Contains(s, p) {
				return true
			}
		}
		return false
	}
}

func digit(s string) bool { return strings.ContainsAny(s, "0123456789") }

func digitAnd(parts ...string) func(string) bool {
	h := has(parts...)
	return func(s string) bool { return digit(s) && h(s) }
}

func always(string) bool { return true }

// lazy compiles an expression when it is first used: a process that looks at
// one log needs few of them.
func lazy(re string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(re) })
}

func sub(re, with string) func(string) string {
	r := lazy(re)
	return func(s string) string { return r().ReplaceAllString(s, with) }
}

func all(fs ...func(string) string) func(string) string {
	return func(s string) string {
		for _, f := range fs {
			s = f(s)
		}
		return s
	}
}

var masks = []mask{
	{name: "secret", when: has("[redacted:"), apply: sub(`\[redacted:[a-z0-9_]+(?::[0-9a-f]{6})?\]`, "<secret>")},
	{name: "path", when: has("/", `\`), apply: maskPaths},
	{name: "checkout", when: has("<p>/"), apply: maskCheckout},
	{name: "uuid", when: digitAnd("-"), apply: sub(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`, "<uuid>")},
	{name: "time", when: digit, apply: maskTimes},
	{name: "digest", when: has("sha"), apply: sub(`\bsha(?:1|256|384|512)[:-][a-z0-9+/]{16,}=*`, "<digest>")},
	{name: "address", when: has("0x", "@"), apply: maskAddresses},
	{name: "random", when: always, apply: maskRandom},
	{name: "ip", when: has(".", "localhost", "::", "["), apply: maskHosts},
	{name: "version", when: digitAnd("."), apply: maskVersions, versions: true},
	{name: "place", when: digit, apply: maskPlaces},
	{name: "repeat", when: has("(x"), apply: sub(`\(x\d+ over [^)]*\)`, " ")},
	{name: "duration", when: digit, apply: maskDurations},
	{name: "process", when: digit, apply: maskProcesses},
	{name: "count", when: digit, apply: maskCounts},
	{name: "token", when: digit, apply: maskTokens},
	{name: "recovered", when: has("[recovered"), apply: sub(`\s*\[recovered(?:, repanicked)?\]`, "")},
}

// maskCheckout masks the folder that something was run or looked for in: its
// name is the checkout's. A name with an extension is a file's and stays.
var maskCheckout = all(
	sub("(\\b(?:in|this directory|source directory|or any parent of) ?[('\"`]+)<p>/[\\w@+-]+([)'\"`])", "$1<p>$2"),
	gate(has(" in <p>/"), sub(`( in )<p>/[\w@+-]+(:|,|$| or )`, "$1<p>$2")),
	gate(has("(<p>/"), sub(`\(<p>/[\w@+-]+\)`, "(<p>)")),
)

// maskHosts masks addresses of this network and machine, with their ports. A
// port that stands alone is identity.
var maskHosts = all(
	sub(`\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b`, "<ip>"),
	sub(`\blocalhost(?::\d+)?\b`, "<ip>"),
	sub(`\[[0-9a-f]*:[0-9a-f:]*:[0-9a-f:.]*(?:%\w+)?\](?::\d+)?`, "<ip>"),
)

var maskTimes = func() func(string) string {
	clock := lazy(`(^|[^\w:.])\d{2}:\d{2}:\d{2}(?:[.,]\d+)?\b`)
	date := all(
		sub(`\b\d{4}-\d{2}-\d{2}[t_ ]\d{2}[:_]\d{2}[:_]\d{2}(?:[.,_]\d+)?(?: ?[+-]\d{2}:?\d{2}|z\b|_z\b)?(?: utc\b)?`, "<time>"),
		sub(`\b\d{4}/\d{2}/\d{2} \d{2}:\d{2}:\d{2}(?:[.,]\d+)?`, "<time>"),
		sub(`\b(?:(?:mon|tue|wed|thu|fri|sat|sun),? )?(?:\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) {1,2}\d{1,2})(?: \d{4})? \d{2}:\d{2}:\d{2}(?: ?(?:[+-]\d{4}|gmt|utc))?(?: \d{4})?`, "<time>"),
		sub(`\b20\d{2}-[01]\d-[0-3]\d\b`, "<time>"),
	)
	return func(s string) string {
		if strings.ContainsAny(s, ":_/-") {
			s = date(s)
		}
		if strings.Contains(s, ":") {
			s = clock().ReplaceAllString(s, "${1}<time>")
		}
		return s
	}
}()

// maskAddresses masks 0x numbers, and the hash behind a Java object's @; the @
// of a package and its version stays.
var maskAddresses = func() func(string) string {
	hex := sub(`\+?\b0x[0-9a-f]+\b`, "<addr>")
	at := lazy(`@[0-9a-f]{6,16}\b\.?`)
	return func(s string) string {
		s = hex(s)
		return at().ReplaceAllStringFunc(s, func(m string) string {
			if strings.HasSuffix(m, ".") || !digit(m) {
				return m
			}
			return "@<addr>"
		})
	}
}()

// maskRandom masks names that tools make up.
var maskRandom = all(
	gate(has("cc"), sub(`\bcc[a-z0-9]{6}\.(?:ltrans\d*\.)?(?:ltrans\.)?(o|s|c|res|ld)\b`, "<tmp>.$1")),
	gate(has("rustc"), sub(`\brustc[a-z0-9]{6}\b`, "<tmp>")),
	gate(has("/tmp"), sub(`<p>/tmp[a-z0-9_]{6,10}\b`, "<p>/<tmp>")),
	gate(has("ref "), sub(`\bref [a-z0-9]+:[a-z0-9]+::[a-z0-9]+`, "ref <id>")),
	gate(has("request"), sub(`\b(request[ _-]?id:?=? ?"?)[a-z0-9:+/=_-]{8,}`, "$1<id>")),
	gate(has("assumed-role/"), sub(`(assumed-role/[^/\s]+/)[\w+=,.@-]+`, "$1<id>")),
	gate(has("authorization failure message:"), sub(`(authorization failure message: )\S+`, "$1<id>")),
	gate(has("-"), sub(`-[0-9a-f]{6,10}-[a-z0-9]{5}\b`, "-<pod>")),
	gate(has("ip-"), sub(`\bip-\d+-\d+-\d+-\d+\b`, "<ip>")),
	gate(has("total="), sub(`\btotal=\d+`, "total=<n>")),
)

func gate(when func(string) bool, f func(string) string) func(string) string {
	return func(s string) string {
		if !when(s) {
			return s
		}
		return f(s)
	}
}

// maskVersions masks versions of three numbers.
var maskVersions = sub(`\bv?\d+\.\d+\.\d+(?:-[a-z][\w.-]*\w|-\d+)?(?:\+[\w.]*\w)?\b`, "<v>")

// maskPlaces masks line and column behind a file's name, in every form that
// compilers have, to one form.
var maskPlaces = all(
	sub(`(\.(?:`+sourceExt+`)|\b(?:gnu)?makefile|\bdockerfile|\bjenkinsfile|<stdin>|<eval>|\[eval\])(?::\d+(?:[:.]\d+)?(?:-\d+)?|:?\(\d+(?:, ?\d+)?\)|:\[\d+(?:,\d+)?\]|: ?line \d+)`, "$1:<l>"),
	gate(has(":<l> - error"), func(s string) string { return strings.Replace(s, ":<l> - error", ":<l>: error", 1) }),
	gate(has("line", "column", "col ", "position", "offset", "char "), sub(`\b(lines?|columns?|col|position|offset|char)(:? |=)\d+(?:-\d+)?`, "$1$2<n>")),
	gate(has("]"), sub(`:\d+\]`, ":<l>]")),
	gate(has(" error", " warning"), sub(`^\s*\d+:\d+(\s+(?:error|warning)\s)`, "<l>$1")),
)

// sourceExt is what stands behind the dot of a file that has lines. A host and
// its port have none of these.
const sourceExt = `go|rs|c|cc|cpp|cxx|c\+\+|h|hh|hpp|hxx|inc|ipp|m|mm|cu|cuh|js|jsx|mjs|cjs|ts|tsx|mts|cts|vue|svelte|astro|py|pyx|pyi|ipynb|rb|erb|java|kt|kts|scala|groovy|gradle|clj|cs|fs|vb|swift|php|pl|pm|t|sh|bash|zsh|ps1|bat|cmd|tf|tfvars|hcl|ya?ml|json|jsonc|toml|ini|cfg|conf|xml|html?|css|scss|sass|less|sql|proto|graphql|cmake|txt|in|md|mdx|rst|tex|lua|dart|ex|exs|erl|hs|ml|zig|nim|jl|r|f90|v|sv|vhd|s|asm|S|mk|am|ac|bzl|bazel|bp|lock|y|l|so|o|a`

// maskDurations masks numbers with a unit of time. Letters alone count as units
// only where they touch the number.
var maskDurations = all(
	sub(`(^|[^\w.])\d+(?:\.\d+)?(?:ms|us|µs|ns|s|m|h|min)(?:\d+(?:\.\d+)?(?:ms|s|m))*\b`, "$1<t>"),
	gate(has("ms", "sec", "min", "hour", "day"), sub(`(^|[^\w.])\d+(?:\.\d+)? ?(?:ms|millis(?:econds?)?|secs?|seconds?|mins?|minutes?|hours?|days?)\b`, "$1<t>")),
)

var maskProcesses = all(
	sub(`\b(pid|tid|process|thread|goroutine|task|worker)([ =:#]+|: ?)\d{2,}\b`, "$1$2<n>"),
	gate(has("goroutine"), sub(`\bgoroutine \d+\b`, "goroutine <n>")),
	gate(has(") panicked"), sub(`\(\d+\) panicked`, "panicked")),
	gate(has("=="), sub(`==\d+==`, "==<n>==")),
)

var maskCounts = all(
	gate(has("/"), sub(`\b\d+/\d+ (node|pod|replica)s?\b`, "<n> $1")),
	sub(`(^|[^\w.])\d+(?:\.\d+)? (previous |other |more |additional |failing |failed |high |low |moderate |critical )?(error|warning|problem|failure|failed|passed|test|node|file|object|package|task|item|line|byte|time|attempt|retr(?:y|ie)|suite|skipped|spec|example|module|job|pod|vulnerabilit(?:y|ie)|[kmgt]i?b|commit|change|issue|worker|process|thread|replica|byte|character|word|percent)(?:e?s)?\b`, "$1<n> $2$3"),
	gate(has("node(s)", "insufficient", "preemption"), sub(`\b\d+ (node\(s\)|insufficient|no preemption|preemption)`, "<n> $1")),
)
