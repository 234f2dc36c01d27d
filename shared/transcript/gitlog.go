package transcript

import (
	"strings"

	"github.com/mneme-ai/mneme/shared/lazy"
	"github.com/mneme-ai/mneme/shared/memory"
)

// gitLog reads the history of a repository as `mem learn --git` writes it, one
// commit a line (brief B15):
//
//	{"type":"commit","sha":"…","parents":["…"],"author":"Ada","email":"ada@x.org",
//	 "date":"2026-02-01T09:00:00+01:00","message":"Cap retries at 5\n\nThe upstream bans us after that.\n",
//	 "files":[{"status":"M","path":"retry.go"}],"symbols":["Retry","maxRetries"]}
//
// A commit is one turn. Its text is the message: a person's statement, so its
// role is user; where an agent wrote it, the trust is an agent's. The paths and
// the names that the diff touches are its heading, which stands over the text
// in a chunk, is searched and is never evidence: as text, lists of names were a
// fifth of what the built-in policy kept of a history.
//
// The id of a turn is the commit's hash, and all commits belong to one session:
// the hash is unique in the world, while the root of a history is not (a
// shallow clone begins elsewhere, a branch may have a root of its own).
//
// Merges, commits of bots and bare version bumps say nothing that was decided;
// they are dropped and counted.
type gitLog struct{ r *Reader }

// gitSession is the session of every commit.
const gitSession = "git"

// maxDiffBytes bounds the heading: about 30 paths or names. A commit that
// touches more is one of vendored or generated files, and a list of them tells
// no more than its beginning.
const maxDiffBytes = 1 << 10

func isCommit(b []byte, ms []member) bool {
	return text(b, fieldOf(ms, "type")) == "commit" && isString(b, fieldOf(ms, "sha")) && isString(b, fieldOf(ms, "message"))
}

func (g *gitLog) end() {}

func (g *gitLog) record(rec *record) {
	s := &g.r.stats
	b := rec.b
	if !isCommit(b, rec.ms) {
		typ := g.r.names.text(b, fieldOf(rec.ms, "type"))
		if typ == "" {
			typ = "?"
		}
		bump(s.types, typ)
		bump(s.Unknown, typ)
		return
	}
	bump(s.types, "commit")
	s.session(gitSession)
	sha := cleanID(strings.ToLower(text(b, fieldOf(rec.ms, "sha"))))
	if g.r.ids.repeated([]byte(sha), nil) {
		s.drop("repeated")
		return
	}
	parents := 0
	elements(b, fieldOf(rec.ms, "parents"), func(span) bool { parents++; return parents < 2 })
	author, email := g.r.names.text(b, fieldOf(rec.ms, "author")), g.r.names.text(b, fieldOf(rec.ms, "email"))
	message := piece(b, fieldOf(rec.ms, "message"), rec.base)
	subject, body := parted(message.Text)
	switch {
	case parents > 1, body == "" && mergeSubject.MatchString(subject):
		s.drop("merge")
		return
	case isBot(author, email):
		s.drop("bot")
		return
	case body == "" && bumpSubject.MatchString(subject):
		s.drop("version_bump")
		return
	}
	t := memory.Turn{
		ID: gitSession + "/" + sha, Session: gitSession, Role: memory.RoleUser, Kind: memory.KindText, Trust: memory.TrustUser,
		TimeQuality: memory.TimeNone, Remote: g.r.names.text(b, fieldOf(rec.ms, "remote")),
		Line: rec.line, From: rec.from(), To: rec.to(),
	}
	if isAgent(author, email) || agentTrailer.MatchString(message.Text) {
		t.Trust = memory.TrustAssistant
	}
	if at, raw, ok := timeOf(b, fieldOf(rec.ms, "date")); ok {
		t.Time, t.TimeRaw, t.TimeQuality = at, raw, memory.TimeExact
		s.time(at, raw)
	}
	words, ok := slice(message, 0, trailers(message.Text))
	if !ok {
		words = message
	}
	kept, injected, own := cutAll([]memory.Piece{words})
	if injected {
		s.drop("system_reminder")
	}
	if own {
		s.drop("own_memory")
	}
	switch {
	case !blank(kept):
	case own:
		t.Derived, kept = true, []memory.Piece{words}
	default:
		s.drop("no_content")
		return
	}
	t.Pieces = kept
	g.touched(&t, rec)
	g.r.emit(t)
}

// touched says what a commit's diff is about.
func (g *gitLog) touched(t *memory.Turn, rec *record) {
	b := rec.b
	var sb strings.Builder
	add := func(name string) bool {
		name = strings.Join(strings.Fields(name), "_") // the heading is one line of words
		if name == "" {
			return true
		}
		if sb.Len()+len(name)+1 > maxDiffBytes {
			return false
		}
		if sb.Len() > 0 {
			sb.WriteByte(' ')
		}
		sb.WriteString(name)
		return true
	}
	var ms []member
	elements(b, fieldOf(rec.ms, "files"), func(v span) bool {
		path := v
		if isObject(b, v) {
			ms, _ = members(b, v.s, ms[:0])
			path = fieldOf(ms, "path")
		}
		return add(text(b, path))
	})
	if sb.Len() > 0 {
		t.Tool = &memory.Tool{Name: "git", Target: label(sb.String())}
	}
	elements(b, fieldOf(rec.ms, "symbols"), func(v span) bool { return add(text(b, v)) })
	t.Heading = sb.String()
}

// trailer is a line by which tools sign a message: who signed, reviewed or
// helped, and what a review system numbers. Others ("Fixes: #12") say what the
// commit is about, and stay.
var trailer = lazy.MustCompile(`(?i)^(?:[a-z]+(?:-[a-z]+)*-by|cc|change-id|git-svn-id|x-[a-z-]+):[ \t]|^(?:🤖 )?generated with \[`)

// trailers is where the trailers of a message begin, or its end. The first line
// is none.
func trailers(s string) int {
	end := len(s)
	for {
		line := strings.TrimRight(s[:end], " \t\r\n")
		at := strings.LastIndexByte(line, '\n') + 1
		if at == 0 || !trailer.MatchString(strings.TrimLeft(line[at:], " \t")) {
			return end
		}
		end = at
	}
}

// parted is a message's first line, and whether more than trailers follow.
func parted(s string) (subject, body string) {
	s = strings.TrimSpace(s[:trailers(s)])
	subject, body, _ = strings.Cut(s, "\n")
	return strings.TrimSpace(subject), strings.TrimSpace(body)
}

var (
	// mergeSubject is what git and its hosts write when branches are joined; a
	// squash leaves it on a commit of one parent.
	mergeSubject = lazy.MustCompile(`^Merge (?:(?:remote-tracking )?branch(?:es)?|(?:pull|merge) request|tags?|commits?) [^ ]`)
	// bumpSubject is a release or the new version of a dependency, and no word
	// more. "Upgrade pgx to v5" is a person's step and stays.
	bumpSubject = lazy.MustCompile(`(?i)^(?:\[maven-release-plugin\] *)?(?:[a-z]+(?:\([^)]*\))?!?: *)?(?:` +
		`(?:(?:bump|set|prepare|release|tag|cut|publish)(?:ed|ing)? +)?(?:the +)?(?:(?:package |project |dev(?:elopment)? )?(?:version|release)s? *)?(?:bump *)?(?:for +|to +|as +|next +)*v?\d+(?:\.\d+)+(?:[-+._]?[a-z0-9]+)*` +
		`|(?:bump|update|upgrade)s? +(?:the +)?(?:dependency +)?\S+(?: version)? +from +\S+ +to +v?\d\S*(?: in \S+)?` +
		`|(?:bump|update)(?:ed)? +(?:the +)?(?:package |project )?version(?: number)?s?` +
		`|version bump)\.?(?: \(#\d+\))?$`) // a squash on GitHub adds the number
	// botName is a bot's name, or the part of its address before the @. "Jan Bot"
	// and "Travis" are people.
	botName = lazy.MustCompile(`(?i)\[bot\]|[-_]bot$|^bot$|\brobot$|(?-i:[a-z]Bot)$|^(?:dependabot|renovate|greenkeeper|snyk|github[- ]actions?|gitlab[- ]ci|travis[- ]ci|circle-?ci|jenkins|buildkite|azure[- ]pipelines|teamcity|semantic-release|release-please|pre-commit-ci|mergify|bors|imgbot|allcontributors|depfu|pyup)(?:[-_.]| (?:bot|ci)\b|$)`)
	// agentName is a coding agent that commits under its own name.
	agentName = lazy.MustCompile(`(?i)^(?:claude(?: code)?|codex|cursor ?agent|(?:github )?copilot|devin ai|openhands|opencode)$|\(aider\)$`)
	agentMail = lazy.MustCompile(`(?i)^(?:noreply@(?:anthropic|openai)\.com|cursoragent@cursor\.com)$`)
	// agentTrailer names an agent as the author of the words.
	agentTrailer = lazy.MustCompile(`(?mi)^co-authored-by:.*<(?:noreply@(?:anthropic|openai)\.com|cursoragent@cursor\.com)>|^co-authored-by:[ \t]*(?:aider|openhands|opencode|copilot|codex)\b|^(?:🤖 )?generated with \[claude`)
)

func isBot(author, email string) bool {
	local, _, _ := strings.Cut(email, "@")
	if _, name, ok := strings.Cut(local, "+"); ok { // GitHub's 49699333+dependabot[bot]
		local = name
	}
	return botName.MatchString(strings.TrimSpace(author)) || botName.MatchString(local)
}

func isAgent(author, email string) bool {
	return agentName.MatchString(strings.TrimSpace(author)) || agentMail.MatchString(strings.TrimSpace(email))
}

// bundleMagic begins a git bundle of version 2 or 3. Its text stands packed, most
// of it as differences between objects, so that no quote of it would have bytes
// to cite; learn makes a git-log of it and reads that.
var bundleMagic = lazy.MustCompile(`\A# v[23] git bundle\n(?:@|-?[0-9a-f]{40})`)
