package vault

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mneme-ai/mneme/shared/memory"
	"github.com/mneme-ai/mneme/shared/strictyaml"
)

// Problem is what Check finds in a page.
type Problem struct {
	Path string `json:"path"`
	Line int    `json:"line"` // from 1; 0 for the whole page
	Msg  string `json:"message"`
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Path + ": " + p.Msg
	}
	return p.Path + ":" + strconv.Itoa(p.Line) + ": " + p.Msg
}

var (
	wikilink  = regexp.MustCompile(`(!?)\[\[([^\[\]]*)\]\]`)
	codeSpan  = regexp.MustCompile("`[^`\n]*`")
	blockID   = regexp.MustCompile(`(?:^|\s)\^([A-Za-z0-9-]+)$`)
	statement = regexp.MustCompile(`^- .*\s\^([A-Za-z0-9-]+)$`)
	cited     = regexp.MustCompile("`([^`]+)` bytes ([0-9]+) to ([0-9]+)(?: \\(([a-z-]+)\\))?(?: (sha256|hmac-sha256) `([0-9a-f]{64})`)?")
)

// Check walks the rendered parts of pages and says what does not hold: front
// matter that is missing or no YAML, a wikilink whose page or block there is not, a
// block id that stands twice, a statement without a citation, a citation that is
// none. Notes regions are people's own and are not looked at.
func Check(files []File) []Problem {
	type pageInfo struct {
		lines  []string
		blocks map[string]int
	}
	pages := map[string]*pageInfo{}
	var out []Problem
	add := func(path string, line int, format string, args ...any) {
		out = append(out, Problem{path, line, fmt.Sprintf(format, args...)})
	}
	for _, f := range files {
		p := &pageInfo{blocks: map[string]int{}}
		body := strings.ReplaceAll(string(Split(f.Bytes).Body), "\r\n", "\n")
		p.lines = strings.Split(body, "\n")
		if pages[foldName(f.Path)] != nil {
			add(f.Path, 0, "another page has this name where case does not count")
		}
		pages[foldName(f.Path)] = p
		for i, l := range p.lines {
			if m := blockID.FindStringSubmatch(l); m != nil {
				if p.blocks[m[1]] > 0 {
					add(f.Path, i+1, "block ^%s stands twice, first on line %d", m[1], p.blocks[m[1]])
					continue
				}
				p.blocks[m[1]] = i + 1
			}
		}
	}
	for _, f := range files {
		p := pages[foldName(f.Path)]
		if err := checkFront(f); err != nil {
			add(f.Path, 0, "%v", err)
		}
		for i, l := range p.lines {
			bare := codeSpan.ReplaceAllString(l, "``")
			links := wikilink.FindAllStringSubmatch(bare, -1)
			for _, m := range links {
				if m[1] != "" {
					add(f.Path, i+1, "an embed: %s", m[0])
				}
				target, _, _ := strings.Cut(m[2], "|")
				name, anchor, _ := strings.Cut(target, "#")
				to := p
				if name != "" {
					at := path.Join(path.Dir(f.Path), name)
					if to = pages[foldName(at+".md")]; to == nil {
						to = pages[foldName(at)]
					}
					if to == nil {
						add(f.Path, i+1, "no page %s", name)
						continue
					}
				}
				if block, ok := strings.CutPrefix(anchor, "^"); ok && to.blocks[block] == 0 {
					add(f.Path, i+1, "no block %s", target)
				} else if anchor != "" && !ok {
					add(f.Path, i+1, "a link to a heading: %s", target)
				}
			}
			if m := statement.FindStringSubmatch(l); m != nil {
				if source := strings.HasPrefix(m[1], "p-") || m[1] == "source"; source && !cited.MatchString(l) {
					add(f.Path, i+1, "provenance without the bytes it means")
				} else if !source && len(links) == 0 && !strings.HasSuffix(l, uncited+" ^"+m[1]) {
					add(f.Path, i+1, "a statement without a citation")
				}
			}
		}
	}
	for _, f := range files {
		for _, c := range citations(f) {
			if c.end <= c.start || c.sum == "" {
				add(f.Path, c.line, "a citation of no bytes, or without their hash")
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// Differences says where the rendered part of a page in a folder is not that of the
// page now: a line for each citation that differs, which is found by the block of its
// line, else one for the first other line. That is left out where said is true, for a
// page of which something was found already. Line ends of Windows do not count.
func Differences(local, now File, said bool) (out []Problem) {
	was, is := Split(local.Bytes), Split(now.Bytes)
	if was.BodySum() == is.BodySum() {
		return nil
	}
	lines := bodyLines(was)
	byBlock, whole := map[string]string{}, map[string]bool{}
	want := bodyLines(is)
	for _, l := range want {
		whole[l] = true
		if m := blockID.FindStringSubmatch(l); m != nil {
			byBlock[m[1]] = l
		}
	}
	for i, l := range lines {
		if whole[l] {
			continue
		}
		block, there := "", false
		if m := blockID.FindStringSubmatch(l); m != nil {
			block, there = byBlock[m[1]]
		}
		have, wants := cited.FindAllString(l, -1), cited.FindAllString(block, -1)
		for n, c := range have {
			switch {
			case !there:
				out = append(out, Problem{local.Path, i + 1, "a citation that stands on no such line now: " + c})
			case n >= len(wants):
				out = append(out, Problem{local.Path, i + 1, "a citation that is not there now: " + c})
			case c != wants[n]:
				out = append(out, Problem{local.Path, i + 1, "a citation that is another now: " + c + ", now " + wants[n]})
			}
		}
		for n := len(have); n < len(wants); n++ {
			out = append(out, Problem{local.Path, i + 1, "a citation is missing: " + wants[n]})
		}
	}
	if len(out) > 0 || said {
		return out
	}
	n := 0
	for n < len(lines) && n < len(want) && lines[n] == want[n] {
		n++
	}
	return []Problem{{local.Path, n + 1, "from here on it is not what Mneme writes now; mem vault writes it anew"}}
}

// bodyLines are the lines of a page's rendered part, as BodySum reads it.
func bodyLines(p Page) []string {
	b := strings.TrimPrefix(string(p.Body), "\ufeff")
	return strings.Split(strings.TrimRight(strings.ReplaceAll(b, "\r\n", "\n"), " \t\n"), "\n")
}

// Links counts the wikilinks in the rendered parts of pages.
func Links(files []File) (n int) {
	for _, f := range files {
		for l := range strings.Lines(string(Split(f.Bytes).Body)) {
			n += len(wikilink.FindAllString(codeSpan.ReplaceAllString(l, "``"), -1))
		}
	}
	return n
}

// checkFront reads a page's front matter.
func checkFront(f File) error {
	text := strings.ReplaceAll(string(f.Bytes), "\r\n", "\n")
	head, ok := strings.CutPrefix(strings.TrimPrefix(text, "\ufeff"), "---\n")
	front, _, closed := strings.Cut(head, "\n---\n")
	if !ok || !closed {
		return fmt.Errorf("no front matter")
	}
	file := strictyaml.File{Name: f.Path, Noun: "front matter", MaxBytes: 64 << 10}
	root, err := file.Root([]byte(front))
	if err != nil {
		return err
	}
	have := map[string]bool{}
	known := strictyaml.Fields{}
	for _, k := range []string{"title", "aliases", "project", "level", "query_id", "stream", "node", "updated", "chunks_seen", "chunks_used", "tags", "generated_by"} {
		known[k] = func(*strictyaml.Node) error { have[k] = true; return nil }
	}
	if err := file.Mapping(root, "front matter", known); err != nil {
		return err
	}
	for _, k := range []string{"title", "project", "level", "query_id", "updated", "chunks_seen", "chunks_used", "generated_by"} {
		if !have[k] {
			return fmt.Errorf("front matter without %s", k)
		}
	}
	return nil
}

// Citation is one place in an upload that a page names.
type Citation struct {
	Path       string // of the page
	Object     string // bucket and key
	Start, End int64
	Codec      memory.Codec
	SHA256     memory.SHA // of those bytes; "" where they hold a secret
}

type rawCitation struct {
	Citation
	line       int
	start, end int64
	sum        string
}

// Citations lists the places that pages name, in the order of pages and lines.
func Citations(files []File) (out []Citation) {
	for _, f := range files {
		for _, c := range citations(f) {
			out = append(out, c.Citation)
		}
	}
	return out
}

func citations(f File) (out []rawCitation) {
	n := 0
	for l := range strings.Lines(string(Split(f.Bytes).Body)) {
		n++
		for _, m := range cited.FindAllStringSubmatch(l, -1) {
			start, _ := strconv.ParseInt(m[2], 10, 64) // digits
			end, _ := strconv.ParseInt(m[3], 10, 64)
			c := rawCitation{line: n, start: start, end: end, sum: m[6]}
			c.Citation = Citation{Path: f.Path, Object: objectKey(m[1]), Start: start, End: end, Codec: memory.Codec(m[4])}
			if c.Codec == "" {
				c.Codec = memory.CodecRaw
			}
			if m[5] == "sha256" {
				c.SHA256 = memory.SHA(m[6])
			}
			out = append(out, c)
		}
	}
	return out
}
