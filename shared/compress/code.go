package compress

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
)

// Code loses the bodies of its functions, where it is asked for: what stands
// above them, names and types and imports, is what another file needs. Go is read
// by its own parser, Python by its indentation, languages of braces by a scanner
// that knows their strings and comments. What these do not understand stays.

// languages are the readers by a file's extension.
var languages = map[string]func(string) ([]body, bool){
	".go": goBodies, ".py": pythonBodies, ".pyi": pythonBodies,
	".js": script.bodies, ".mjs": script.bodies, ".cjs": script.bodies, ".jsx": script.bodies, ".ts": script.bodies, ".mts": script.bodies, ".tsx": script.bodies,
	".java": javaLike.bodies, ".kt": javaLike.bodies, ".cs": javaLike.bodies, ".c": cLike.bodies, ".h": cLike.bodies, ".cc": cLike.bodies, ".cpp": cLike.bodies, ".hpp": cLike.bodies, ".cxx": cLike.bodies, ".rs": rust.bodies,
}

// body is what stands inside a function, bytes [from, to), and how a comment in
// its place begins and ends.
type body struct {
	name        string
	from, to    int
	open, close string
}

// bodyLines is the least body that is left out.
const bodyLines = 3

func (o *Options) compressCode(text, hash string) (draft, bool) {
	read := languages[strings.ToLower(path.Ext(strings.ReplaceAll(o.Path, `\`, "/")))]
	if read == nil {
		return draft{}, false
	}
	bodies, ok := read(text)
	if !ok {
		return draft{}, false
	}
	var b strings.Builder
	var omissions []Omission
	at, line, omitted := 0, 1, 0
	for _, f := range bodies {
		n := strings.Count(strings.TrimSpace(text[f.from:f.to]), "\n") + 1
		if strings.TrimSpace(text[f.from:f.to]) == "" || n < bodyLines || f.name != "" && names(o.Query, f.name) {
			continue
		}
		b.WriteString(text[at:f.from])
		line += strings.Count(text[at:f.from], "\n")
		lead := len(text[f.from:f.to]) - len(strings.TrimLeft(text[f.from:f.to], " \t\r\n"))
		first := line + strings.Count(text[f.from:f.from+lead], "\n")
		fmt.Fprintf(&b, "%s[... %d lines omitted: %d-%d]%s", f.open, n, first, first+n-1, f.close)
		omissions = append(omissions, Omission{From: first, To: first + n - 1, Count: n, Unit: "lines"})
		line += strings.Count(text[f.from:f.to], "\n")
		omitted += n
		at = f.to
	}
	if len(omissions) == 0 {
		return draft{text: text}, true
	}
	b.WriteString(text[at:])
	out := b.String()
	if hash != "" {
		comment := "// "
		if bodies[0].open != "" && strings.Contains(bodies[0].open, "#") {
			comment = "# "
		}
		out = lastLine(out, comment+footerLine(omitted, strings.Count(text, "\n")+1, "lines", hash))
	}
	// What was made must be read as the original was: the same functions.
	again, ok := read(out)
	if !ok || len(again) != len(bodies) {
		return draft{}, false
	}
	return draft{text: out, omissions: omissions}, true
}

// names reports that a question names a function.
func names(query, name string) bool {
	return query != "" && slices.Contains(strings.FieldsFunc(query, func(r rune) bool { return r < 0x80 && !alnum[byte(r)] && r != '_' }), name)
}

// longestLine bounds a line of Go: go/parser gives up at ten lines with errors, and
// takes time with the square of a line that is nothing but errors.
const longestLine = 8 << 10

func goBodies(text string) ([]body, bool) {
	for l := range strings.SplitSeq(text, "\n") {
		if len(l) > longestLine {
			return nil, false
		}
	}
	set := token.NewFileSet()
	if _, err := parser.ParseFile(set, "", text, parser.PackageClauseOnly); err != nil {
		return nil, false
	}
	f, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, false
	}
	var out []body
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		// Offset is of the text: SetLines of a //line comment moves no offset.
		from, to := set.Position(fn.Body.Lbrace).Offset+1, set.Position(fn.Body.Rbrace).Offset
		out = append(out, body{name: fn.Name.Name, from: from, to: to, open: "\n\t// ", close: "\n"})
	}
	return out, true
}
