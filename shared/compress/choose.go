package compress

import (
	"strings"
)

// chooser decides which lines of a log stay.
type chooser struct {
	lines  []string
	info   []lineInfo
	fates  []fate
	used   int // bytes kept
	budget int

	details int // failures from the first whose detail is shown: none where the caller names the one that counts
}

// choose gives the fate of every line.
func (o *Options) choose(lines []string, text string) []fate {
	c := chooser{lines: lines, info: make([]lineInfo, len(lines)), fates: make([]fate, len(lines)), budget: budgetBytes, details: detailsShown}
	seen := make(map[uint64]int32, 256) // how often a form was there so far
	first := make(map[uint64]bool, 256) // gists that were there
	rare := make([]int32, 0, 64)        // lines with a gist of their own
	said := make([]int32, 0, 64)        // first lines of a form
	var failures, doubts, warnings []int32
	var outcomes []int32
	var prev uint64
	for i, l := range lines {
		if l == "" {
			c.info[i] = lineInfo{blank: true, template: 1}
			continue
		}
		li := classify(l)
		c.info[i] = li
		if li.blank {
			continue
		}
		n := seen[li.template]
		seen[li.template] = n + 1
		if li.template == prev {
			c.fates[i] = like
		}
		prev = li.template
		switch {
		case li.level == strong:
			failures = append(failures, int32(i))
		case li.level == weak && n == 0:
			doubts = append(doubts, int32(i))
		case li.level == warn && n == 0:
			warnings = append(warnings, int32(i))
		}
		if li.summary && li.level < strong {
			outcomes = append(outcomes, int32(i))
		}
		if n == 0 {
			said = append(said, int32(i))
		}
		if !first[li.gist] && n == 0 && li.level == info && !li.frame {
			first[li.gist] = true
			rare = append(rare, int32(i))
		}
	}
	if o.Evidence != nil {
		for _, i := range o.Evidence(text) {
			c.around(i, aroundLines, aroundLines)
			c.details = 0
		}
	}
	c.query(o.Query)
	c.ends()
	c.outcomes(outcomes)
	c.failures(failures, seen)
	c.within(doubts, seen)
	for _, i := range warnings[:min(len(warnings), warningsShown)] {
		c.add(int(i), c.budget)
	}
	c.singles(said, seen)
	shown := rareShown
	if len(failures)+len(doubts) > 0 {
		shown = rareBeside
	}
	for k := len(rare) - 1; k >= 0 && shown > 0; k-- { // the end tells more than the beginning
		if i := int(rare[k]); c.fates[i] < aside && c.add(i, c.budget) {
			shown--
		}
	}
	return c.fates
}

// singlesShown is the most lines that stay as theirs is a form that no other line
// has: where more have, it says nothing. So does it in a short log.
const (
	singlesShown = 10
	singlesShare = 25 // lines for each of them
)

// singles keeps lines that stand alone among many that are alike.
func (c *chooser) singles(said []int32, seen map[uint64]int32) {
	most := min(singlesShown, len(c.lines)/singlesShare)
	var alone []int
	for _, i := range said {
		if seen[c.info[i].template] == 1 && c.fates[i] < aside {
			if alone = append(alone, int(i)); len(alone) > most {
				return
			}
		}
	}
	for _, i := range alone {
		c.add(i, c.budget)
	}
}

// cost is what a line takes up once it is shown.
func (c *chooser) cost(i int) int {
	if c.telling(i) {
		return min(len(c.lines[i]), maxLine) + 1
	}
	return min(len(c.lines[i]), maxAside) + 1
}

// telling reports a line that says of itself that something failed, or how it all
// came out.
func (c *chooser) telling(i int) bool {
	li := &c.info[i]
	return li.level >= weak || li.summary
}

// add keeps line i while no more than limit bytes are kept.
func (c *chooser) add(i, limit int) bool {
	if i < 0 || i >= len(c.lines) || c.fates[i] >= aside {
		return true
	}
	n := c.cost(i)
	if c.used+n > limit {
		return false
	}
	c.used += n
	c.fates[i] = aside
	if c.telling(i) {
		c.fates[i] = kept
	}
	return true
}

const noLimit = int(^uint(0) >> 1)

func (c *chooser) around(i, before, after int) {
	for j := max(i-before, 0); j <= i+after && j < len(c.lines); j++ {
		c.add(j, noLimit)
		c.fates[j] = kept
	}
}

// ends keeps the first and the last lines that are not blank, and the empty one
// behind the last line feed.
func (c *chooser) ends() {
	for i, n := 0, 0; i < len(c.lines) && n < headLines; i++ {
		if !c.info[i].blank {
			c.add(i, noLimit)
			n++
		}
	}
	last := len(c.lines) - 1
	if last >= 0 && c.lines[last] == "" {
		c.add(last, noLimit)
	}
	for i, n, size := last, 0, 0; i >= 0 && n < tailLines; i-- {
		if c.info[i].blank {
			continue
		}
		if size += c.cost(i); n >= tailLeast && size > tailBytes {
			break
		}
		c.add(i, noLimit)
		n++
	}
}

// outcomesShown bounds lines that say how a run came out: a monorepo says it for
// each of its packages.
const outcomesShown = 10

// outcomes keeps them, the last first. Of one form the first and the last stay.
func (c *chooser) outcomes(at []int32) {
	count := map[uint64]int{}
	n := 0
	for k := len(at) - 1; k >= 0 && n < outcomesShown; k-- {
		i := int(at[k])
		if count[c.info[i].template]++; count[c.info[i].template] > 2 {
			continue
		}
		c.add(i, noLimit)
		n++
	}
}

// failures keeps the forms of failure, and after that what stands under the first
// and the last of them.
func (c *chooser) failures(at []int32, seen map[uint64]int32) {
	nth := make(map[uint64]int32, len(at))
	var shown []int
	for _, i32 := range at {
		i := int(i32)
		t := c.info[i].template
		n := nth[t]
		nth[t] = n + 1
		if n >= sameFailures && seen[t]-n > lastFailures {
			continue
		}
		shown = append(shown, i)
	}
	if len(shown) > failuresShown {
		cut := failuresShown * 3 / 4 // of the beginning; the last ended the run
		shown = append(shown[:cut:cut], shown[len(shown)-failuresShown+cut:]...)
	}
	for _, i := range shown {
		c.add(i, failureFactor*c.budget)
	}
	for k, i := range shown {
		if k < c.details || k >= len(shown)-2 {
			c.under(i, c.budget)
		}
	}
}

// under keeps the detail of the failure at i: what stands before it, the lines
// after it, and the frames of its stack.
func (c *chooser) under(i, limit int) {
	if nth := c.info[i].template; i > 0 && c.info[i-1].template == nth && c.fates[i-1] >= aside {
		return // one of a list: its lines are its detail
	}
	for j := i + 1; j <= i+afterFailure; j++ {
		if !c.add(j, limit) {
			return
		}
	}
	before := beforeFailure
	if i > 0 && (c.info[i-1].frame || indented(c.lines[i-1])) {
		before = beforeTraced // the exception stands below its stack, the deepest frame last
	}
	for j := i - 1; j >= 0 && before > 0 && j >= i-maxBefore; j-- {
		if letters(c.lines[j]) { // a ruled line says nothing
			before--
		}
		c.add(j, limit)
	}
	frames := 0
	for j := i + afterFailure + 1; j < len(c.lines) && j < i+60 && frames < framesShown; j++ {
		if !c.info[j].frame && !indented(c.lines[j]) && !callLine(c.lines[j]) {
			break
		}
		if !c.add(j, limit) {
			return
		}
		frames++
	}
}

// maxBefore is how far above a failure the line before it may stand.
const maxBefore = 6

// letters reports a line with a letter or a digit.
func letters(l string) bool {
	for i := range len(l) {
		if alnum[l[i]] {
			return true
		}
	}
	return false
}

// indented reports a line that belongs to the one above it, behind its time.
func indented(l string) bool {
	at, _ := prefix(l)
	return at > 0 && l[at-1] == '\t' || at >= 4 && l[at-4:at] == "    "
}

// callLine reports a line of a goroutine's stack that names a function:
// main.run(0x1, …).
func callLine(l string) bool {
	return strings.HasSuffix(strings.TrimSuffix(l, "\r"), ")") && strings.IndexByte(l, '(') > 0 && strings.IndexByte(l, ' ') < 0 || strings.HasPrefix(l, "goroutine ")
}

// within keeps the lines that failures are told with: the rarer form first, and
// the line under each.
func (c *chooser) within(at []int32, seen map[uint64]int32) {
	left := doubtsShown
	for pass := range 2 {
		for k := len(at) - 1; k >= 0; k-- {
			i := int(at[k])
			li := &c.info[i]
			class := 2
			switch {
			case !li.common && seen[li.template] == 1:
				class = 0
			case !li.common || seen[li.template] == 1:
				class = 1
			}
			if class != pass || c.fates[i] >= aside {
				continue
			}
			if left == 0 {
				return
			}
			if c.add(i, c.budget) {
				left--
			}
		}
	}
}

// queryLines bounds how many lines a question's words keep.
const queryLines = 20

func (c *chooser) query(q string) {
	terms := queryTerms(q)
	if len(terms) == 0 {
		return
	}
	n := 0
	for i, l := range c.lines {
		if n == queryLines {
			return
		}
		if matches(l, terms) {
			c.around(i, 1, 1)
			n++
		}
	}
}

// queryTerms are the words of a question that name something.
func queryTerms(q string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(q), func(r rune) bool {
		return r < 0x80 && !alnum[byte(r)] && r != '_' && r != '-' && r != '.' && r != '/'
	}) {
		w = strings.Trim(w, "-./_")
		if len(w) >= 3 && !stopWords[w] {
			out = append(out, w)
		}
	}
	return out
}

var stopWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("the and for are was were why what when where which who how does did has have had this that these those with from into not but its our you your can could should would about there their they them then than all any some get got out off over under between after before log logs file files output error errors show tell find happened happen") {
		m[w] = true
	}
	return m
}()

// matches reports that all terms of a short question, or two of a longer one,
// stand in a line.
func matches(line string, terms []string) bool {
	need, got := min(len(terms), 2), 0
	lower := ""
	for _, t := range terms {
		if lower == "" {
			lower = strings.ToLower(line)
		}
		if strings.Contains(lower, t) {
			if got++; got >= need {
				return true
			}
		}
	}
	return false
}
