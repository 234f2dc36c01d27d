package vault

import (
	"bytes"

	"github.com/mneme-ai/mneme/shared/derived"
	"github.com/mneme-ai/mneme/shared/memory"
)

// notesLine tells people what is theirs; Obsidian shows it in the editor alone. It
// is the last line of what Mneme says, so that it is no evidence.
const notesLine = "%% What stands under Notes is yours: rebuilds keep it, byte for byte. %%\n"

// notesHeading opens the region.
const notesHeading = "## Notes"

// Page is a page's file in its parts: Body + what opens the region + Notes is the
// file, byte for byte.
type Page struct {
	Body  []byte // up to the end of what Mneme says, front matter included
	Open  []byte // the line derived.MarkerClose and that of the heading; empty where the file has no region
	Notes []byte // behind the heading line, to the end of the file
	Found bool   // the file has a Notes region
}

// Split finds the Notes region of a file, whatever stands above it: front matter
// that is no YAML any more, line ends of Windows, a page of which nothing else is
// left. The region begins behind the heading "## Notes" that follows the line
// derived.MarkerClose with nothing but blank lines between, else right behind that
// line; where people took it out, behind the first such heading of the file, as no
// rendered part holds one.
func Split(file []byte) Page {
	heading, headingEnd := -1, 0 // the first "## Notes"
	for at := 0; at < len(file); {
		line, next := lineAt(file, at)
		if isClose(line) {
			return page(file, at, behindClose(file, next))
		}
		if heading < 0 && isNotes(line) {
			heading, headingEnd = at, next
		}
		at = next
	}
	if heading < 0 {
		return Page{Body: file}
	}
	return page(file, heading, headingEnd)
}

// behindClose is where the region begins whose closing line ends at from. A heading
// further down is the person's own, unless nothing but blank lines is before it.
func behindClose(file []byte, from int) int {
	for at := from; at < len(file); {
		line, next := lineAt(file, at)
		if isNotes(line) {
			return next
		}
		if len(bytes.TrimSpace(line)) > 0 {
			break
		}
		at = next
	}
	return from
}

func page(file []byte, open, notes int) Page {
	return Page{Body: file[:open], Open: file[open:notes], Notes: file[notes:], Found: true}
}

// lineAt is the line that begins at at, without its line feed, and where the next
// one begins.
func lineAt(b []byte, at int) (line []byte, next int) {
	if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
		return b[at : at+i], at + i + 1
	}
	return b[at:], len(b)
}

// isClose reports the line that ends what Mneme says: nothing else on it, as what
// people quote or list is theirs.
func isClose(line []byte) bool {
	return bytes.Equal(bytes.TrimSpace(line), []byte(derived.MarkerClose))
}

func isNotes(line []byte) bool {
	return bytes.Equal(bytes.TrimRight(line, " \t\r"), []byte(notesHeading))
}

// BodySum is the sha256 of what Mneme wrote of a page: all but what people wrote.
// Line ends of Windows and a byte order mark, which editors set, do not count.
func (p Page) BodySum() memory.SHA {
	b := bytes.TrimPrefix(p.Body, []byte("\ufeff"))
	return memory.Sum(bytes.TrimRight(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), " \t\n"))
}
