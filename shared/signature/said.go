package signature

import (
	"path"
	"strings"
	"sync"
)

// said is the line before i that the failed command printed; i itself where
// there is none, or only the command as make and npm print it before they run it.
func (t *text) said(i int) int {
	for j := i - 1; j >= 0 && j >= i-maxSilence; j-- {
		l := &t.lines[j]
		s := strings.TrimSpace(l.text)
		switch {
		case s == "" || strings.HasPrefix(s, "make[") && strings.Contains(s, "directory"):
			continue
		case l.mark == isGroup || l.mark == isNoise, wrapper().MatchString(s), echo(s), unhelpful(s), t.passing(j):
			return i
		}
		return j
	}
	return i
}

// then is the next line behind i that says something; i where none does.
func (t *text) then(i int) int {
	for j := i + 1; j < len(t.lines) && j <= i+maxSilence; j++ {
		if strings.TrimSpace(t.lines[j].text) != "" {
			return j
		}
	}
	return i
}

// maxSilence bounds the blank lines between what a command said and its exit.
const maxSilence = 4

// echo reports whether a line is a command, as make, npm and shells print it.
func echo(s string) bool {
	if strings.HasPrefix(s, "> ") || strings.HasPrefix(s, "+ ") || strings.HasPrefix(s, "$ ") || strings.HasPrefix(s, "./") {
		return true
	}
	if s[0] == '[' && buildStep().MatchString(s) || strings.HasPrefix(s, "Step ") || strings.HasPrefix(s, "---") {
		return true // docker's own
	}
	word, rest, _ := strings.Cut(s, " ")
	if strings.HasSuffix(word, ":") {
		return false // a program's name before what it says
	}
	if strings.Contains(word, "=") && !strings.ContainsAny(word, "\"'(") || commands()[strings.TrimLeft(path.Base(word), "@-")] {
		return true
	}
	return strings.HasPrefix(rest, "-") || strings.Contains(rest, " --") || strings.Contains(rest, " && ") || strings.Contains(rest, " || ") || strings.HasSuffix(s, "\\")
}

var buildStep = lazy(`^\[(?:[\w.-]+ +)?\d+/\d+\] `)

// commands are what recipes begin with.
var commands = sync.OnceValue(func() map[string]bool {
	return words("test [ exit false true cd cp mv rm mkdir ln cat echo printf sh bash zsh dash env export set if for while case " +
		"go gofmt npm npx node yarn pnpm bun deno tsc eslint jest vitest mocha cargo rustc python python2 python3 pip pip3 pytest tox poetry uv ruff mypy black flake8 " +
		"gcc g++ cc c++ clang clang++ ld ar make cmake ninja ctest mvn ./mvnw gradle ./gradlew java javac docker docker-compose kubectl helm terraform tofu ansible ansible-playbook " +
		"git curl wget tar unzip sed awk grep find xargs diff cmp install touch chmod sudo time timeout ruby bundle rake perl php composer protoc buf shellcheck golangci-lint staticcheck")
})

func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}
