package compress

import (
	"bytes"
	"strings"
)

// lineInfo is what one line of a log says of itself.
type lineInfo struct {
	template uint64 // hash of the line with its numbers and ids masked
	gist     uint64 // hash of its first two words: what it is about
	level    level
	common   bool // weak only by a word that is common elsewhere
	form     bool // a place in a file, a code, or a form of failure stands in it
	stamped  bool // begins with a time or names a level
	frame    bool // a frame of a stack
	summary  bool // says how a run came out
	blank    bool
	closes   bool // has a word of closingWords
}

// classify reads a line once. It takes the line without its line feed.
func classify(line string) (li lineInfo) {
	if len(line) > maxLine {
		rest := line[maxLine:]
		line = line[:maxLine] // a longer one is cut before it is shown
		defer func() {
			if li.level < strong {
				if _, announced := firstFailure(rest); announced {
					li.level, li.form = strong, true
				}
			}
		}()
	}
	start, stamped := prefix(line)
	li.stamped = stamped
	body := line[start:]
	if strings.TrimSpace(body) == "" {
		li.blank = true // or nothing but its time
		li.template = 1
		return li
	}
	for _, i := range formsBy[body[0]] {
		if strings.HasPrefix(body, forms[i].text) {
			li.level, li.form = forms[i].level, forms[i].level > info
			break
		}
	}
	li.stamped = li.stamped || isAccess(line)
	if l := lettered(body); l > li.level {
		li.level, li.form, li.stamped = l, true, true
	}
	li.frame = isFrame(body)
	li.scan(line, start)
	if where := located(body); where > nowhere {
		// A compiler names the column, or says what is wrong; a logger that names its
		// own line does neither.
		if li.level != warn && (where == column || li.level == weak) {
			li.level = strong
		}
		li.level = max(li.level, weak)
		li.form, li.common = true, false
	}
	if li.frame && li.level < strong {
		li.level = min(li.level, info)
	}
	if !li.summary {
		li.summary = isResult(body, li.closes)
	}
	return li
}

// scan masks, counts and looks up the words of a line.
func (li *lineInfo) scan(line string, start int) {
	const prime = 1099511628211
	h, gist := uint64(14695981039346656037), uint64(14695981039346656037)
	wordsSeen := 0
	numberBefore, zeroBefore := false, false // a number stands before this word
	zeroed, summed := false, false
	var pending level // of a counted word that a number behind it may take back
	pendingAt := -1
	var buf [32]byte
	for i := start; i < len(line); {
		c := line[i]
		if c == 0x1b { // a colour is no part of the message
			i = skipEscape(line, i)
			continue
		}
		if !alnum[c] {
			if c != ' ' || i == start || line[i-1] != ' ' {
				h = (h ^ uint64(c)) * prime
			}
			i++
			continue
		}
		j, digits, letters := i, 0, 0
		for j < len(line) && alnum[line[j]] {
			if line[j] <= '9' {
				digits++
			} else {
				letters++
			}
			j++
		}
		if digits > 0 {
			h = (h ^ '#') * prime
			if letters == 0 && j-i == 3 && (c == '4' || c == '5') && isStatus(line, i, j) {
				li.form = true
				h = (h ^ uint64(c)) * prime // a line of another kind than that of a 200
				if c == '5' {
					li.raise(strong, false)
				} else {
					li.raise(weak, false)
				}
			}
			zero := letters == 0 && strings.Trim(line[i:j], "0") == ""
			if pendingAt >= 0 && letters == 0 && i-pendingAt <= 3 { // "fail 0", "errors: 3"
				summed = true
				if zero {
					zeroed, pending = true, info
				}
			}
			if letters > 0 && i > 0 && line[i-1] == '[' && digits >= 3 {
				li.form = li.form || line[i] == 'E' // error[E0382]
			}
			numberBefore, zeroBefore = letters == 0, zero
			i = j
			continue
		}
		for k := i; k < j; k++ {
			h = (h ^ uint64(line[k])) * prime
		}
		if wordsSeen < 2 {
			for k := i; k < j; k++ {
				gist = (gist ^ uint64(line[k])) * prime
			}
			gist = (gist ^ ' ') * prime
		}
		wordsSeen++
		if n := j - i; n >= 2 && n <= len(buf) && wordy[line[i]]>>min(n, 31)&1 == 1 {
			lower := buf[:n]
			caps := true
			for k := range n {
				b := line[i+k]
				if 'A' <= b && b <= 'Z' {
					b += 'a' - 'A'
				} else {
					caps = false
				}
				lower[k] = b
			}
			class, known := words[string(lower)]
			switch {
			case known:
				if class&levelWord != 0 && (caps || n > 0 && i > start && (line[i-1] == '[' || line[i-1] == '=') || i == start) {
					li.stamped = true
				}
				li.closes = li.closes || class&closing != 0
				if class&counted != 0 && j < len(line) && line[j] == '=' {
					if n := counts(line, j+1); n != nothingCounted { // failed=1
						summed = true
						if n == some && class&(fails|doubts) != 0 {
							h = (h ^ 'n') * prime // a line of another kind than that of failed=0
							li.raise(strong, false)
							li.form = true
						}
						numberBefore = false
						i = j
						continue
					}
				}
				if class&counted != 0 {
					if numberBefore && i >= 2 && line[i-1] == ' ' {
						summed = true
						if zeroBefore {
							zeroed = true
							numberBefore = false
							i = j
							continue
						}
					}
				}
				got := wordLevel(line, start, i, j, class, caps)
				if class&counted != 0 && got > info {
					if pendingAt >= 0 {
						li.raise(pending, false)
					}
					pending, pendingAt = got, j
				} else if got > info {
					li.raise(got, got == weak && weakest[string(lower)])
				}
			case n >= 8 && endsInError(lower) && line[i] >= 'A' && line[i] <= 'Z' || bytes.HasSuffix(lower, []byte("exception")) && n > 9:
				// TypeError: …, java.lang.NullPointerException
				if j == len(line) || line[j] == ':' || line[j] == ' ' || line[j] == 0x1b || line[j] == '\r' {
					if j < len(line) && line[j] == ':' || i == start || j == len(line) {
						li.raise(strong, false)
					} else {
						li.raise(weak, false)
					}
				}
			}
		}
		numberBefore = false
		i = j
	}
	if pendingAt >= 0 {
		li.raise(pending, false)
	}
	if summed {
		li.summary = true
		if zeroed && li.level == strong && !li.form {
			li.level = info
		}
	}
	li.template, li.gist = h, gist
}

func (li *lineInfo) raise(l level, common bool) {
	if l > li.level {
		li.level, li.common = l, common
	} else if l == li.level && !common {
		li.common = false
	}
}

func endsInError(w []byte) bool {
	return bytes.HasSuffix(w, []byte("error")) || bytes.HasSuffix(w, []byte("notfound")) || bytes.HasSuffix(w, []byte("failure")) || bytes.HasSuffix(w, []byte("fault"))
}

// counts tells what number stands at i, alone.
func counts(line string, i int) count {
	j, zero := i, true
	for ; j < len(line) && '0' <= line[j] && line[j] <= '9'; j++ {
		zero = zero && line[j] == '0'
	}
	switch {
	case j == i || j < len(line) && (alnum[line[j]] || line[j] == '.'):
		return nothingCounted
	case zero:
		return none
	}
	return some
}

type count uint8

const (
	nothingCounted count = iota
	none
	some
)

// wordLevel judges a known word by where it stands: libgpg-error, errors.go and
// --fail-fast are names.
func wordLevel(line string, start, i, j int, class wordClass, caps bool) level {
	var before, after, after2 byte = ' ', ' ', ' '
	if i > 0 {
		before = line[i-1]
	}
	if j < len(line) {
		after = line[j]
	}
	if j+1 < len(line) {
		after2 = line[j+1]
	}
	switch before {
	case '-', '_', '/', '.', '\\', '$', '@':
		return info
	}
	switch after {
	case '-', '_', '/', '\\', '=':
		if !caps {
			return info
		}
	case '.':
		if after2 > ' ' && alnum[after2] {
			return info
		}
	case '(':
		return info // a call
	}
	switch {
	case class&always != 0:
		return strong
	case class&fails != 0:
		if caps || i == start || after == ':' || after == '!' || after == ']' || after == '[' || line[i] >= 0x80 {
			return strong
		}
		return weak
	case class&doubts != 0:
		return weak
	case class&warns != 0:
		return warn
	}
	return info
}

// wordy are, by their first byte, the lengths of the words that are looked up.
var wordy = func() (t [256]uint32) {
	for w := range words {
		n := uint(min(len(w), 31))
		t[w[0]] |= 1 << n
		if 'a' <= w[0] && w[0] <= 'z' {
			t[w[0]-'a'+'A'] |= 1 << n
		}
	}
	for c := range 256 { // TypeError, java.lang.NullPointerException
		switch {
		case 'A' <= c && c <= 'Z':
			t[c] |= 0xffffff00
		case 'a' <= c && c <= 'z':
			t[c] |= 0xfffffc00
		}
	}
	return t
}()

// alnum are the bytes of words and numbers; bytes of other scripts are letters.
var alnum = func() (t [256]bool) {
	for c := range 256 {
		t[c] = '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
	}
	return t
}()
